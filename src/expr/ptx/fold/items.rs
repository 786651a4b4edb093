//! Accumulators of a thread, and the combination of two.

use std::fmt::Write;

use primitives_gpu::element::{ConvertTo, Ordered};

use super::Item;
use crate::expr::dtype::{DType, ToWord, with_type};
use crate::expr::graph::Op;
use crate::expr::ptx::emit::{Class, Reg, op};
use crate::expr::ptx::{At, Folding, Kernel};
use crate::expr::reduce::Fold;

impl Kernel<'_> {
    /// Reduces the elements of a thread: numbers from `first` to `end`, `step` apart. Returns an accumulator for each element of a vector.
    pub(super) fn accumulate(
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

    /// Computes elements and combines them into accumulators. Each entry of `places` has the addresses and the number of an element.
    pub(super) fn take(&mut self, fold: Folding, items: &[Item], places: &[(At, Reg)], width: usize) {
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

    pub(super) fn identity(&mut self, fold: Folding) -> Item {
        let dtype = self.folded();
        let word = with_type!(dtype, T => match fold.spec.fold {
            // For floats, the identity is −0, so that a sum of −0 stays −0.
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

    pub(super) fn copy(&mut self, item: Item) -> Item {
        let mut copy = |reg: Reg| self.e.op(reg.class, &format!("mov.{}", reg.class.ptx()), &[reg]);
        Item { value: copy(item.value), index: item.index.map(&mut copy) }
    }

    pub(super) fn assign(&mut self, to: Item, from: Item) {
        op!(self.e, "mov.{} {}, {};", to.value.class.ptx(), to.value, from.value);
        if let (Some(to), Some(from)) = (to.index, from.index) {
            op!(self.e, "mov.b64 {to}, {from};");
        }
    }

    pub(super) fn combine(&mut self, fold: Folding, a: Item, b: Item) -> Item {
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
                // The second is taken if it is better, or if it is equal and its index is lower.
                let better = self.e.compute(Op::Lt, dtype, DType::Bool, &[first, second]);
                let worse = self.e.compute(Op::Lt, dtype, DType::Bool, &[second, first]);
                let before = self.e.op(Class::Pred, "setp.lt.u64", &[j, i]);
                let same = self.e.op(Class::Pred, "not.pred", &[worse]);
                let tie = self.e.op(Class::Pred, "and.pred", &[same, before]);
                let mut take = self.e.op(Class::Pred, "or.pred", &[better, tie]);
                if dtype.is_float() {
                    // NaN is better than any other value. Of two NaNs, the first is taken.
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

    pub(super) fn fold_all(&mut self, fold: Folding, items: &[Item]) -> Item {
        let mut items = items.to_vec();
        while items.len() > 1 {
            items = items
                .chunks(2)
                .map(|pair| if pair.len() == 2 { self.combine(fold, pair[0], pair[1]) } else { pair[0] })
                .collect();
        }
        items[0]
    }

    /// Combines the accumulators of a group of lanes. Its first lane holds the result.
    pub(super) fn fold_lanes(&mut self, fold: Folding, mut item: Item, lanes: usize) -> Item {
        for distance in [16, 8, 4, 2, 1].into_iter().filter(|distance| *distance < lanes) {
            let value = self.shuffle(item.value, distance);
            let index = item.index.map(|index| self.shuffle(index, distance));
            item = self.combine(fold, item, Item { value, index });
        }
        item
    }

    /// Returns the register of the lane that is `distance` lanes further.
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

    /// Copies a value to a register of 32 or 64 bits, which can be stored.
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
    pub(super) fn store_item(&mut self, space: &str, item: Item, address: Reg, offset: usize) {
        let slot = self.slot_of(item.value);
        op!(self.e, "st.{space}.{} [{address}+{offset}], {slot};", slot.class.ptx());
        if let Some(index) = item.index {
            op!(self.e, "st.{space}.b64 [{address}+{}], {index};", offset + 8);
        }
    }

    pub(super) fn load_item(&mut self, space: &str, fold: Folding, address: Reg, offset: usize) -> Item {
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
}
