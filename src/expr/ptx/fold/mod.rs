//! Kernels of reductions.
//!
//! For rows, whose elements are contiguous, a block or a warp reduces each row; its threads take vectors at the stride of the block or the
//! warp. For columns, a block has 32 lanes along the columns, and 8 rows of threads along the axis that is reduced. If there would be too
//! few blocks, several blocks share a result: each stores its accumulator, and the last block combines them, in order.

mod blocks;
mod items;

use std::fmt::Write;

use super::emit::{Class, Reg, op};
use super::{At, Folding, Kernel, Param, THREADS, Way};
use crate::expr::dtype::DType;
use crate::expr::layout::shape::MAX_RANK;

/// The number of lanes of a warp, and of threads along columns.
pub(crate) const LANES: usize = 32;
/// The number of warps of a block, and of threads along the reduced axis for columns.
pub(crate) const WARPS: usize = THREADS / LANES;

/// An accumulator: a value, and its index if the reduction returns an index.
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

    /// Returns the type of the combined values.
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
        // Lanes without a row have nothing to reduce, but take part in the shuffles of their warp.
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
            // The accumulators of all blocks are combined in order: each thread takes some, and the rest is as before.
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

    /// Returns the addresses of the first element of a row of results and of a vector of columns.
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

    /// Moves along some axes to the element with number `rest`. The innermost axis counts in units of `width` elements.
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

    /// Returns the addresses of the reduced element with number `place`, in vectors.
    fn reduced_place(&mut self, fold: Folding, bases: &At, place: Reg, width: usize) -> At {
        let [outer, reduced, _] = fold.ranks.map(usize::from);
        let mut at = bases.clone();
        // The result's address does not change along the reduced axes.
        at.addresses[0] = None;
        self.walk_axes(&mut at, outer..outer + reduced, place, width);
        at
    }
}
