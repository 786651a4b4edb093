//! Kernels that reduce.
//!
//! Results that lie apart in memory, rows, are reduced by a block or a warp each, whose threads take vectors at its stride. Results
//! that lie side by side, columns, are reduced by blocks of 32 lanes along them and 8 rows of threads along what is reduced. Where
//! that makes too few blocks several share a result: each leaves what it has, and the last one combines it, in order.

use std::fmt::Write;

use primitives_gpu::element::{ConvertTo, Ordered};

use super::emit::{Class, Reg, op};
use super::{At, Folding, Kernel, Param, THREADS, Way};
use crate::expr::dtype::{DType, ToWord, with_type};
use crate::expr::graph::{Math, Op};
use crate::expr::layout::shape::MAX_RANK;
use crate::expr::reduce::{Finish, Fold};

/// Lanes of a warp, and threads along columns.
pub(crate) const LANES: usize = 32;
/// Warps of a block, and threads along what is reduced for columns.
pub(crate) const WARPS: usize = THREADS / LANES;

/// An accumulator: a value, and its index if that is looked for.
#[derive(Clone, Copy)]
struct Item {
    value: Reg,
    index: Option<Reg>,
}

impl Kernel<'_> {
    /// Writes the body after the parameters.
    pub(super) fn write_folding(&mut self, fold: Folding) {
        if fold.ranks[2] > 0 {
            self.write_columns(fold);
        } else {
            self.write_rows(fold);
        }
        op!(self.e, "ret;");
    }

    /// The type of what is combined.
    fn folded(&self) -> DType {
        self.program.code[self.program.results[0] as usize].dtype
    }

    fn write_rows(&mut self, fold: Folding) {
        let by_lanes = fold.lanes > 0;
        let group = if by_lanes { fold.lanes.into() } else { THREADS };
        let width = usize::from(self.variant.width);
        let block = self.e.op_with(Class::B32, "mov.u32", &[], "%ctaid.x");
        let part = self.e.op_with(Class::B32, "mov.u32", &[], "%ctaid.y");
        let parts = self.e.op_with(Class::B32, "mov.u32", &[], "%nctaid.y");
        let thread = self.e.op_with(Class::B32, "mov.u32", &[], "%tid.x");
        let (row, lane) = if by_lanes {
            let of_block = self.e.op_with(Class::B32, "shr.u32", &[thread], group.ilog2());
            let of_block = self.e.op(Class::B64, "cvt.u64.u32", &[of_block]);
            let row =
                self.e.op_with(Class::B64, "mad.wide.u32", &[block], format_args!("{}, {of_block}", THREADS / group));
            (row, self.e.op_with(Class::B32, "and.b32", &[thread], group - 1))
        } else {
            (self.e.op(Class::B64, "cvt.u64.u32", &[block]), thread)
        };
        let bases = self.bases(fold, row, None);
        // Lanes without a row have nothing to reduce; they take part in what warps do together.
        let (rows, depth) = (self.argument(Param::Rows)[0], self.argument(Param::Depth)[0]);
        let inside = self.e.op(Class::Pred, "setp.lt.u64", &[row, rows]);
        let nothing = self.e.op_with(Class::B64, "mov.b64", &[], 0);
        let end = self.e.op(Class::B64, "selp.b64", &[depth, nothing, inside]);
        let first = self.e.op_with(Class::B32, "mad.lo.u32", &[part], format_args!("{group}, {lane}"));
        let step = self.e.op_with(Class::B32, "mul.lo.u32", &[parts], group);
        let items = self.accumulate(fold, &bases, (first, step, end), width);
        if fold.rest {
            // The elements after the last vector.
            let skip = self.e.label();
            let place = self.e.op(Class::B64, "cvt.u64.u32", &[first]);
            let place = self.e.op_with(Class::B64, "mad.lo.u64", &[depth], format_args!("{width}, {place}"));
            let elements = self.argument(Param::Elements)[0];
            let outside = self.e.op(Class::Pred, "setp.ge.u64", &[place, elements]);
            op!(self.e, "@{outside} bra {skip};");
            let at = self.reduced_place(fold, &bases, place, 1);
            self.take(fold, &items[..1], &[(at, place)], 1);
            self.e.place(&skip);
        }
        let item = self.fold_all(fold, &items);
        let item = self.fold_lanes(fold, item, group.min(LANES));
        if by_lanes {
            let leader = self.e.op_with(Class::Pred, "setp.eq.u32", &[lane], 0);
            let writes = self.e.op(Class::Pred, "and.pred", &[leader, inside]);
            let skip = self.e.label();
            op!(self.e, "@!{writes} bra {skip};");
            self.finish(fold, &[item], bases.addresses[0]);
            self.e.place(&skip);
            return;
        }
        let mut item = self.fold_block(fold, item, thread);
        let done = self.e.label();
        if fold.split {
            let slot = self.e.op(Class::B64, "cvt.u64.u32", &[parts]);
            let part = self.e.op(Class::B64, "cvt.u64.u32", &[part]);
            let slot = self.e.op(Class::B64, "mad.lo.u64", &[row, slot, part]);
            let leader = self.e.op_with(Class::Pred, "setp.eq.u32", &[thread], 0);
            self.leave(&[item], slot, leader);
            self.only_the_last(block, parts, &done);
            // What all blocks have, in order: each thread takes some, then as before.
            let first = self.e.op(Class::B64, "sub.u64", &[slot, part]);
            let items = self.collect(fold, first, thread, THREADS, parts, 1);
            item = self.fold_lanes(fold, items[0], LANES);
            item = self.fold_block(fold, item, thread);
        }
        let leader = self.e.op_with(Class::Pred, "setp.eq.u32", &[thread], 0);
        op!(self.e, "@!{leader} bra {done};");
        self.finish(fold, &[item], bases.addresses[0]);
        self.e.place(&done);
    }

    fn write_columns(&mut self, fold: Folding) {
        let width = usize::from(self.variant.width);
        let block = self.e.op_with(Class::B32, "mov.u32", &[], "%ctaid.x");
        let part = self.e.op_with(Class::B32, "mov.u32", &[], "%ctaid.y");
        let parts = self.e.op_with(Class::B32, "mov.u32", &[], "%nctaid.y");
        let thread = self.e.op_with(Class::B32, "mov.u32", &[], "%tid.x");
        let lane = self.e.op_with(Class::B32, "and.b32", &[thread], LANES - 1);
        let warp = self.e.op_with(Class::B32, "shr.u32", &[thread], LANES.ilog2());
        let (row, tile) = self.divide(block, Param::Tiles(0));
        let wide_lane = self.e.op(Class::B64, "cvt.u64.u32", &[lane]);
        let column = self.e.op_with(Class::B64, "mad.wide.u32", &[tile], format_args!("{LANES}, {wide_lane}"));
        let bases = self.bases(fold, row, Some(column));
        let columns = self.argument(Param::Columns)[0];
        let inside = self.e.op(Class::Pred, "setp.lt.u64", &[column, columns]);
        let (depth, nothing) = (self.argument(Param::Depth)[0], self.e.op_with(Class::B64, "mov.b64", &[], 0));
        let end = self.e.op(Class::B64, "selp.b64", &[depth, nothing, inside]);
        let first = self.e.op_with(Class::B32, "mad.lo.u32", &[part], format_args!("{WARPS}, {warp}"));
        let step = self.e.op_with(Class::B32, "mul.lo.u32", &[parts], WARPS);
        let items = self.accumulate(fold, &bases, (first, step, end), width);
        let leader = self.e.op_with(Class::Pred, "setp.eq.u32", &[warp], 0);
        let mut items = self.fold_rows(fold, &items, (lane, warp), leader);
        let done = self.e.label();
        if fold.split {
            let (many, part) =
                (self.e.op(Class::B64, "cvt.u64.u32", &[parts]), self.e.op(Class::B64, "cvt.u64.u32", &[part]));
            let here = self.e.op(Class::B64, "cvt.u64.u32", &[block]);
            let start = self.e.op(Class::B64, "mul.lo.u64", &[here, many]);
            let slot = self.e.op(Class::B64, "add.u64", &[start, part]);
            let slot = self.e.op_with(Class::B64, "mad.lo.u64", &[slot], format_args!("{LANES}, {wide_lane}"));
            self.leave(&items, slot, leader);
            self.only_the_last(block, parts, &done);
            let start = self.e.op_with(Class::B64, "mad.lo.u64", &[start], format_args!("{LANES}, {wide_lane}"));
            let all = self.collect(fold, start, warp, WARPS, parts, LANES);
            items = self.fold_rows(fold, &all, (lane, warp), leader);
        }
        let writes = self.e.op(Class::Pred, "and.pred", &[leader, inside]);
        op!(self.e, "@!{writes} bra {done};");
        self.finish(fold, &items, bases.addresses[0]);
        self.e.place(&done);
    }

    /// The place of the first element of a row of results, and a vector of columns.
    fn bases(&mut self, fold: Folding, row: Reg, column: Option<Reg>) -> At {
        let [outer, reduced, inner] = fold.ranks.map(usize::from);
        let addresses: Vec<Option<Reg>> = (0..self.variant.operands.len())
            .map(|operand| {
                let single = operand > 0 && self.variant.operands[operand] == Way::Single;
                (!single).then(|| self.argument(Param::Operand(operand))[0])
            })
            .collect();
        let mut bases = At { offsets: vec![0; addresses.len()], addresses, index: vec![None; MAX_RANK] };
        self.walk_axes(&mut bases, 0..outer, row, 1);
        if let Some(column) = column {
            let first = outer + reduced;
            self.walk_axes(&mut bases, first..first + inner, column, self.variant.width.into());
        }
        bases
    }

    /// Moves to the place that `rest` counts along some axes; the innermost is counted in `width` elements.
    fn walk_axes(&mut self, at: &mut At, axes: std::ops::Range<usize>, rest: Reg, width: usize) {
        let wide = self.variant.wide;
        let last = axes.end.wrapping_sub(1);
        let mut rest = match (wide, rest.class) {
            (true, Class::B32) => self.e.op(Class::B64, "cvt.u64.u32", &[rest]),
            (false, Class::B64) => self.e.op(Class::B32, "cvt.u32.u64", &[rest]),
            _ => rest,
        };
        for axis in axes.clone().rev() {
            let mut index = rest;
            if axis > axes.start {
                (rest, index) = self.divide(rest, Param::Divisor(axis));
            }
            if axis == last && width > 1 {
                let name = if wide { "mul.lo.u64" } else { "mul.lo.u32" };
                index = self.e.op_with(index.class, name, &[index], width);
            }
            at.index[axis] = Some(index);
            let name = if wide { "mad.lo.s64" } else { "mad.wide.s32" };
            for (operand, address) in at.addresses.iter_mut().enumerate() {
                let Some(base) = *address else { continue };
                let stride = self.argument(Param::Stride(operand, axis)).first().copied();
                if let Some(stride) = stride {
                    *address = Some(self.e.op(Class::B64, name, &[index, stride, base]));
                } else if self.variant.operands[operand] == Way::Row && operand > 0 {
                    let size = self.size(operand);
                    *address = Some(self.e.op_with(Class::B64, name, &[index], format_args!("{size}, {base}")));
                }
            }
        }
    }

    /// The place of what is reduced that `place` counts, in vectors.
    fn reduced_place(&mut self, fold: Folding, bases: &At, place: Reg, width: usize) -> At {
        let [outer, reduced, _] = fold.ranks.map(usize::from);
        let mut at = bases.clone();
        // The result does not move along what is reduced.
        at.addresses[0] = None;
        self.walk_axes(&mut at, outer..outer + reduced, place, width);
        at
    }

    /// Reduces what a thread has: places from `first` to `end`, `step` apart. Returns an accumulator for each element of a vector.
    fn accumulate(
        &mut self,
        fold: Folding,
        bases: &At,
        (first, step, end): (Reg, Reg, Reg),
        width: usize,
    ) -> Vec<Item> {
        let identity = self.identity(fold);
        let items: Vec<Item> = (0..width).map(|_| self.copy(identity)).collect();
        let columns = fold.ranks[2] > 0;
        let along = if columns { 1 } else { width };
        let vectors = usize::from(self.variant.vectors);
        let place = self.e.op(Class::B64, "cvt.u64.u32", &[first]);
        let step = self.e.op(Class::B64, "cvt.u64.u32", &[step]);
        let ahead = self.e.op_with(Class::B64, "mul.lo.u64", &[step], vectors - 1);
        let (again, single, next, done) = (self.e.label(), self.e.label(), self.e.label(), self.e.label());
        self.e.place(&again);
        let last = self.e.op(Class::B64, "add.u64", &[place, ahead]);
        let over = self.e.op(Class::Pred, "setp.ge.u64", &[last, end]);
        op!(self.e, "@{over} bra {single};");
        let mut places = Vec::with_capacity(vectors);
        let mut at = place;
        for v in 0..vectors {
            if v > 0 {
                at = self.e.op(Class::B64, "add.u64", &[at, step]);
            }
            places.push((self.reduced_place(fold, bases, at, along), at));
        }
        self.take(fold, &items, &places, width);
        op!(self.e, "add.u64 {place}, {at}, {step};");
        op!(self.e, "bra {again};");
        self.e.place(&single);
        self.e.place(&next);
        let over = self.e.op(Class::Pred, "setp.ge.u64", &[place, end]);
        op!(self.e, "@{over} bra {done};");
        let at = self.reduced_place(fold, bases, place, along);
        self.take(fold, &items, &[(at, place)], width);
        op!(self.e, "add.u64 {place}, {place}, {step};");
        op!(self.e, "bra {next};");
        self.e.place(&done);
        items
    }

    /// Computes the elements at some places and combines them into accumulators. With each place goes its number.
    fn take(&mut self, fold: Folding, items: &[Item], places: &[(At, Reg)], width: usize) {
        let columns = fold.ranks[2] > 0;
        let result = self.program.results[0] as usize;
        let mut values: Vec<_> = places.iter().map(|(at, _)| self.loaded(at, width)).collect();
        for ((at, place), values) in places.iter().zip(&mut values) {
            self.fill(values, at, width);
            for (i, &item) in items.iter().enumerate() {
                let value = if values[result].len() == 1 { values[result][0] } else { values[result][i] };
                let index = fold.spec.fold.is_arg().then(|| {
                    if columns {
                        *place
                    } else {
                        self.e.op_with(Class::B64, "mad.lo.u64", &[*place], format_args!("{width}, {i}"))
                    }
                });
                let both = self.combine(fold, item, Item { value, index });
                self.assign(item, both);
            }
        }
    }

    fn identity(&mut self, fold: Folding) -> Item {
        let dtype = self.folded();
        let word = with_type!(dtype, T => match fold.spec.fold {
            // Of floats −0, which leaves a sum of −0 alone.
            Fold::Sum if dtype.is_float() => 1 << (8 * dtype.size() - 1),
            Fold::Sum => 0,
            Fold::Product => ConvertTo::<T>::convert(true).to_word(),
            Fold::Min | Fold::ArgMin => <T as Ordered>::GREATEST.to_word(),
            Fold::Max | Fold::ArgMax => <T as Ordered>::LEAST.to_word(),
        });
        let value = self.e.constant(dtype, word);
        let index = fold.spec.fold.is_arg().then(|| self.e.op_with(Class::B64, "mov.b64", &[], "-1"));
        Item { value, index }
    }

    fn copy(&mut self, item: Item) -> Item {
        let mut copy = |reg: Reg| self.e.op(reg.class, &format!("mov.{}", reg.class.ptx()), &[reg]);
        Item { value: copy(item.value), index: item.index.map(&mut copy) }
    }

    fn assign(&mut self, to: Item, from: Item) {
        op!(self.e, "mov.{} {}, {};", to.value.class.ptx(), to.value, from.value);
        if let (Some(to), Some(from)) = (to.index, from.index) {
            op!(self.e, "mov.b64 {to}, {from};");
        }
    }

    fn combine(&mut self, fold: Folding, a: Item, b: Item) -> Item {
        let dtype = self.folded();
        let op = match fold.spec.fold {
            Fold::Sum => Op::Add,
            Fold::Product => Op::Mul,
            Fold::Min => Op::Min,
            Fold::Max => Op::Max,
            Fold::ArgMin | Fold::ArgMax => {
                let (Some(i), Some(j)) = (a.index, b.index) else { unreachable!("an index is looked for") };
                let (x, y) = (a.value, b.value);
                let (first, second) = if fold.spec.fold == Fold::ArgMin { (y, x) } else { (x, y) };
                // The second is taken if it is better, or as good and before the first.
                let better = self.e.compute(Op::Lt, dtype, DType::Bool, &[first, second]);
                let worse = self.e.compute(Op::Lt, dtype, DType::Bool, &[second, first]);
                let before = self.e.op(Class::Pred, "setp.lt.u64", &[j, i]);
                let same = self.e.op(Class::Pred, "not.pred", &[worse]);
                let tie = self.e.op(Class::Pred, "and.pred", &[same, before]);
                let mut take = self.e.op(Class::Pred, "or.pred", &[better, tie]);
                if dtype.is_float() {
                    // NaN is better than anything else; of two, the first.
                    let m = self.e.compute(Op::IsNan, dtype, DType::Bool, &[x]);
                    let n = self.e.compute(Op::IsNan, dtype, DType::Bool, &[y]);
                    let not = self.e.op(Class::Pred, "not.pred", &[m]);
                    let sole = self.e.op(Class::Pred, "and.pred", &[n, not]);
                    let early = self.e.op(Class::Pred, "and.pred", &[n, before]);
                    let nan = self.e.op(Class::Pred, "or.pred", &[sole, early]);
                    let numbers = self.e.op(Class::Pred, "and.pred", &[take, not]);
                    take = self.e.op(Class::Pred, "or.pred", &[nan, numbers]);
                }
                let value = self.e.compute(Op::Select, dtype, dtype, &[take, y, x]);
                return Item { value, index: Some(self.e.op(Class::B64, "selp.b64", &[j, i, take])) };
            }
        };
        Item { value: self.e.compute(op, dtype, dtype, &[a.value, b.value]), index: None }
    }

    fn fold_all(&mut self, fold: Folding, items: &[Item]) -> Item {
        let mut items = items.to_vec();
        while items.len() > 1 {
            items = items
                .chunks(2)
                .map(|pair| if pair.len() == 2 { self.combine(fold, pair[0], pair[1]) } else { pair[0] })
                .collect();
        }
        items[0]
    }

    /// What a group of lanes has; its first lane holds it.
    fn fold_lanes(&mut self, fold: Folding, mut item: Item, lanes: usize) -> Item {
        for distance in [16, 8, 4, 2, 1].into_iter().filter(|distance| *distance < lanes) {
            let value = self.shuffle(item.value, distance);
            let index = item.index.map(|index| self.shuffle(index, distance));
            item = self.combine(fold, item, Item { value, index });
        }
        item
    }

    /// The register of the lane `distance` further on.
    fn shuffle(&mut self, reg: Reg, distance: usize) -> Reg {
        let word = |kernel: &mut Self, word: Reg| {
            kernel.e.op_with(Class::B32, "shfl.sync.down.b32", &[word], format_args!("{distance}, 31, -1"))
        };
        let slot = self.slot_of(reg);
        let moved = if matches!(slot.class, Class::B64 | Class::F64) {
            let (low, high) = (self.e.reg(Class::B32), self.e.reg(Class::B32));
            op!(self.e, "mov.b64 {{{low}, {high}}}, {slot};");
            let (low, high) = (word(self, low), word(self, high));
            let moved = self.e.reg(slot.class);
            op!(self.e, "mov.b64 {moved}, {{{low}, {high}}};");
            moved
        } else {
            let bits = self.e.op(Class::B32, "mov.b32", &[slot]);
            let bits = word(self, bits);
            self.e.op(slot.class, "mov.b32", &[bits])
        };
        self.out_of_slot(moved, reg.class)
    }

    /// A value in a register that memory takes, of 32 or 64 bits.
    fn slot_of(&mut self, reg: Reg) -> Reg {
        match reg.class {
            Class::Pred => self.e.op_with(Class::B32, "selp.b32", &[], format_args!("1, 0, {reg}")),
            Class::B16 => self.e.op(Class::B32, "cvt.u32.u16", &[reg]),
            _ => reg,
        }
    }

    fn out_of_slot(&mut self, slot: Reg, class: Class) -> Reg {
        match class {
            Class::Pred => self.e.op_with(Class::Pred, "setp.ne.u32", &[slot], 0),
            Class::B16 => self.e.op(Class::B16, "cvt.u16.u32", &[slot]),
            _ => slot,
        }
    }

    /// Stores an accumulator to its 16 bytes: the value, and the index after it.
    fn store_item(&mut self, space: &str, item: Item, address: Reg, offset: usize) {
        let slot = self.slot_of(item.value);
        op!(self.e, "st.{space}.{} [{address}+{offset}], {slot};", slot.class.ptx());
        if let Some(index) = item.index {
            op!(self.e, "st.{space}.b64 [{address}+{}], {index};", offset + 8);
        }
    }

    fn load_item(&mut self, space: &str, fold: Folding, address: Reg, offset: usize) -> Item {
        let of = Class::of(self.folded());
        let class = if matches!(of, Class::Pred | Class::B16) { Class::B32 } else { of };
        let slot =
            self.e.op_with(class, &format!("ld.{space}.{}", class.ptx()), &[], format_args!("[{address}+{offset}]"));
        let value = self.out_of_slot(slot, of);
        let index = fold.spec.fold.is_arg().then(|| {
            self.e.op_with(Class::B64, &format!("ld.{space}.b64"), &[], format_args!("[{address}+{}]", offset + 8))
        });
        Item { value, index }
    }

    /// What all warps of the block have, of which lane 0 holds each; thread 0 holds it.
    fn fold_block(&mut self, fold: Folding, item: Item, thread: Reg) -> Item {
        let memory = self.shared(WARPS);
        let lane = self.e.op_with(Class::B32, "and.b32", &[thread], LANES - 1);
        let warp = self.e.op_with(Class::B32, "shr.u32", &[thread], LANES.ilog2());
        let leader = self.e.op_with(Class::Pred, "setp.eq.u32", &[lane], 0);
        let skip = self.e.label();
        op!(self.e, "bar.sync 0;");
        op!(self.e, "@!{leader} bra {skip};");
        let to = self.e.op_with(Class::B32, "mad.lo.u32", &[warp], format_args!("16, {memory}"));
        self.store_item("shared", item, to, 0);
        self.e.place(&skip);
        op!(self.e, "bar.sync 0;");
        let mut all = self.load_item("shared", fold, memory, 0);
        for warp in 1..WARPS {
            let from = self.e.op_with(Class::B32, "add.u32", &[memory], 16 * warp);
            let next = self.load_item("shared", fold, from, 0);
            all = self.combine(fold, all, next);
        }
        all
    }

    /// What all rows of threads have of each column; the first row holds it.
    fn fold_rows(&mut self, fold: Folding, items: &[Item], (lane, warp): (Reg, Reg), leader: Reg) -> Vec<Item> {
        let width = items.len();
        let memory = self.shared(THREADS * width);
        let to = self.e.op_with(Class::B32, "mad.lo.u32", &[warp], format_args!("{LANES}, {lane}"));
        let to = self.e.op_with(Class::B32, "mad.lo.u32", &[to], format_args!("{}, {memory}", width * 16));
        op!(self.e, "bar.sync 0;");
        for (i, &item) in items.iter().enumerate() {
            let place = self.e.op_with(Class::B32, "add.u32", &[to], 16 * i);
            self.store_item("shared", item, place, 0);
        }
        op!(self.e, "bar.sync 0;");
        let totals: Vec<Item> = items.iter().map(|&item| self.copy(item)).collect();
        let skip = self.e.label();
        op!(self.e, "@!{leader} bra {skip};");
        for warp in 1..WARPS {
            for (i, &total) in totals.iter().enumerate() {
                let from = self.e.op_with(Class::B32, "add.u32", &[to], 16 * (warp * LANES * width + i));
                let item = self.load_item("shared", fold, from, 0);
                let both = self.combine(fold, total, item);
                self.assign(total, both);
            }
        }
        self.e.place(&skip);
        totals
    }

    /// Shared memory for so many accumulators, 16 bytes each; asked for once with the most.
    fn shared(&mut self, items: usize) -> Reg {
        self.fold_slots = self.fold_slots.max(items);
        self.e.op_with(Class::B32, "mov.u32", &[], "accumulators")
    }

    /// Leaves a block's accumulators for the last block, from `slot`, if `leader`.
    fn leave(&mut self, items: &[Item], slot: Reg, leader: Reg) {
        let partials = self.argument(Param::Partials)[0];
        let skip = self.e.label();
        op!(self.e, "@!{leader} bra {skip};");
        let to = self.e.op_with(Class::B64, "mad.lo.u64", &[slot], format_args!("{}, {partials}", 16 * items.len()));
        for (i, &item) in items.iter().enumerate() {
            self.store_item("global", item, to, 16 * i);
        }
        op!(self.e, "membar.gl;");
        self.e.place(&skip);
    }

    /// Ends all blocks of a result but that which comes last.
    fn only_the_last(&mut self, block: Reg, parts: Reg, done: &str) {
        let counters = self.argument(Param::Counters)[0];
        let counter = self.e.op_with(Class::B64, "mad.wide.u32", &[block], format_args!("4, {counters}"));
        let last = self.e.op_with(Class::B32, "sub.u32", &[parts], 1);
        let thread = self.e.op_with(Class::B32, "mov.u32", &[], "%tid.x");
        let first = self.e.op_with(Class::Pred, "setp.eq.u32", &[thread], 0);
        let (skip, memory) = (self.e.label(), self.e.op_with(Class::B32, "mov.u32", &[], "arrived"));
        // All threads that left something are done with it.
        op!(self.e, "bar.sync 0;");
        op!(self.e, "@!{first} bra {skip};");
        // The counter wraps to 0 with the last block, and is ready for the next kernel.
        let before = self.e.reg(Class::B32);
        op!(self.e, "atom.global.inc.u32 {before}, [{counter}], {last};");
        op!(self.e, "membar.gl;");
        op!(self.e, "st.shared.u32 [{memory}], {before};");
        self.e.place(&skip);
        op!(self.e, "bar.sync 0;");
        let before = self.e.op_with(Class::B32, "ld.shared.u32", &[], format_args!("[{memory}]"));
        let early = self.e.op(Class::Pred, "setp.ne.u32", &[before, last]);
        op!(self.e, "@{early} bra {done};");
    }

    /// Combines what blocks left: those of parts `first`, `first + step`, …
    fn collect(&mut self, fold: Folding, slot: Reg, first: Reg, step: usize, parts: Reg, slots: usize) -> Vec<Item> {
        let width = if slots == 1 { 1 } else { usize::from(self.variant.width) };
        let partials = self.argument(Param::Partials)[0];
        let identity = self.identity(fold);
        let items: Vec<Item> = (0..width).map(|_| self.copy(identity)).collect();
        let part = self.e.op(Class::B32, "mov.b32", &[first]);
        let (again, done) = (self.e.label(), self.e.label());
        self.e.place(&again);
        let over = self.e.op(Class::Pred, "setp.ge.u32", &[part, parts]);
        op!(self.e, "@{over} bra {done};");
        let at = self.e.op(Class::B64, "cvt.u64.u32", &[part]);
        let at = self.e.op_with(Class::B64, "mad.lo.u64", &[at], format_args!("{slots}, {slot}"));
        let from = self.e.op_with(Class::B64, "mad.lo.u64", &[at], format_args!("{}, {partials}", 16 * width));
        for (i, &item) in items.iter().enumerate() {
            let next = self.load_item("global", fold, from, 16 * i);
            let both = self.combine(fold, item, next);
            self.assign(item, both);
        }
        op!(self.e, "add.u32 {part}, {part}, {step};");
        op!(self.e, "bra {again};");
        self.e.place(&done);
        items
    }

    /// Writes results that lie along the innermost axis.
    fn finish(&mut self, fold: Folding, items: &[Item], address: Option<Reg>) {
        let (spec, dtype) = (fold.spec, self.folded());
        let mut address = address.expect("the result lies somewhere");
        for (i, item) in items.iter().enumerate() {
            let (value, from) = match item.index {
                Some(index) => (index, DType::U64),
                None => (item.value, dtype),
            };
            let value = match spec.finish {
                Finish::Nothing => value,
                Finish::Mean => {
                    let size = self.argument(Param::Size)[0];
                    self.e.compute(Op::Div, dtype, dtype, &[value, size])
                }
                Finish::SquareRoot => self.e.compute(Op::Math(Math::Sqrt), dtype, dtype, &[value]),
            };
            let value = self.e.cast(from, spec.to, value);
            if i > 0 {
                let stride = self.argument(Param::Stride(0, usize::from(self.variant.rank) - 1))[0];
                let stride = if self.variant.wide { stride } else { self.e.op(Class::B64, "cvt.s64.s32", &[stride]) };
                address = self.e.op(Class::B64, "add.s64", &[address, stride]);
            }
            self.e.store("global", spec.to, address, 0, &[value]);
        }
    }
}
