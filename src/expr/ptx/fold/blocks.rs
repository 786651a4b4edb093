//! Combines the accumulators of a block's threads and of the blocks that share a result, and finishes the result.

use std::fmt::Write;

use super::{Item, LANES, WARPS};
use crate::expr::dtype::DType;
use crate::expr::graph::{Math, Op};
use crate::expr::ptx::emit::{Class, Reg, op};
use crate::expr::ptx::{Folding, Kernel, Param, THREADS};
use crate::expr::reduce::Finish;

impl Kernel<'_> {
    /// Combines the accumulators of all warps of the block. Lane 0 of each warp holds its accumulator; thread 0 holds the result.
    pub(super) fn fold_block(&mut self, fold: Folding, item: Item, thread: Reg) -> Item {
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

    /// Combines the accumulators of all rows of threads for each column. The first row holds the results.
    pub(super) fn fold_rows(
        &mut self,
        fold: Folding,
        items: &[Item],
        (lane, warp): (Reg, Reg),
        leader: Reg,
    ) -> Vec<Item> {
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

    /// Returns the address of shared memory for `items` accumulators of 16 bytes. Only the largest request is allocated.
    fn shared(&mut self, items: usize) -> Reg {
        self.fold_slots = self.fold_slots.max(items);
        self.e.op_with(Class::B32, "mov.u32", &[], "accumulators")
    }

    /// If `leader` is set, stores a block's accumulators for the last block, starting at `slot`.
    pub(super) fn leave(&mut self, items: &[Item], slot: Reg, leader: Reg) {
        let partials = self.argument(Param::Partials)[0];
        let skip = self.e.label();
        op!(self.e, "@!{leader} bra {skip};");
        let to = self.e.op_with(Class::B64, "mad.lo.u64", &[slot], format_args!("{}, {partials}", 16 * items.len()));
        for (i, &item) in items.iter().enumerate() {
            self.store_item("global", item, to, 16 * i);
        }
        self.e.place(&skip);
    }

    /// Ends all blocks of a result except the last one.
    pub(super) fn only_the_last(&mut self, block: Reg, parts: Reg, done: &str) {
        let counters = self.argument(Param::Counters)[0];
        let counter = self.e.op_with(Class::B64, "mad.wide.u32", &[block], format_args!("4, {counters}"));
        let last = self.e.op_with(Class::B32, "sub.u32", &[parts], 1);
        let thread = self.e.op_with(Class::B32, "mov.u32", &[], "%tid.x");
        let first = self.e.op_with(Class::Pred, "setp.eq.u32", &[thread], 0);
        let (skip, memory) = (self.e.label(), self.e.op_with(Class::B32, "mov.u32", &[], "arrived"));
        // All threads have stored their accumulators. The fences are cumulative: the last block sees those of all others.
        op!(self.e, "bar.sync 0;");
        op!(self.e, "@!{first} bra {skip};");
        op!(self.e, "fence.acq_rel.gpu;");
        // The counter wraps to 0 with the last block, and is ready for the next kernel.
        let before = self.e.reg(Class::B32);
        op!(self.e, "atom.relaxed.gpu.global.inc.u32 {before}, [{counter}], {last};");
        op!(self.e, "fence.acq_rel.gpu;");
        op!(self.e, "st.shared.u32 [{memory}], {before};");
        self.e.place(&skip);
        op!(self.e, "bar.sync 0;");
        let before = self.e.op_with(Class::B32, "ld.shared.u32", &[], format_args!("[{memory}]"));
        let early = self.e.op(Class::Pred, "setp.ne.u32", &[before, last]);
        op!(self.e, "@{early} bra {done};");
    }

    /// Combines the accumulators that blocks have stored: those of parts `first`, `first + step`, …
    pub(super) fn collect(
        &mut self,
        fold: Folding,
        slot: Reg,
        first: Reg,
        step: usize,
        parts: Reg,
        slots: usize,
    ) -> Vec<Item> {
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

    /// Writes results along the innermost axis.
    pub(super) fn finish(&mut self, fold: Folding, items: &[Item], address: Option<Reg>) {
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
