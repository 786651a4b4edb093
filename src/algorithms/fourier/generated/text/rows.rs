//! Short lines: the numbers of a block are in a row, and pass through shared memory in order.
//!
//! If a line has few threads, lanes along it would access less than a line of the cache at a time. So a thread takes each number at the
//! distance of the block's threads, for whatever line it is.

use super::code::{Number, Place, SMALL};
use super::kernel::{Here, Writer};
use crate::expr::ptx::emit::Reg;

/// The numbers that a thread has in flight at once.
const AT_ONCE: usize = 16;

/// A number that passes through: its place in shared memory, its distance in memory from the thread's first number, and whether it exists.
struct Passing {
    shared: Reg,
    offset: i64,
    guard: Option<Reg>,
}

impl Writer<'_> {
    /// Reads the numbers of the first stage.
    pub(in super::super) fn take_rows(&mut self, here: &Here) -> Vec<Number> {
        self.pass_rows(false);
        self.barrier();
        self.in_use = true;
        let stage = self.first_stage();
        let address = self.staged_pointer(here);
        let mut x = Vec::new();
        for i in 0..self.pass.butterflies(&stage) {
            let (_, guard) = self.butterfly(here, &stage, i);
            let guard = self.code.both(guard, here.there);
            for k in 0..stage.radix {
                let offset = self.offset(self.element(&stage, i, k));
                let number = Number::of(self.code.load(Place { space: "shared", address, offset, guard }));
                x.push(self.directed(number));
            }
        }
        x
    }

    /// Writes the results of the last stage.
    pub(in super::super) fn give_rows(&mut self, here: &Here, x: &[Number]) {
        if self.pass.radices.len() > 1 {
            self.barrier();
        }
        let stage = self.last_stage();
        let address = self.staged_pointer(here);
        for i in 0..self.pass.butterflies(&stage) {
            let (_, guard) = self.butterfly(here, &stage, i);
            for k in 0..stage.radix {
                let offset = self.offset(self.element(&stage, i, k));
                let number = self.directed(x[(i * stage.radix + k) as usize]);
                self.code.store(Place { space: "shared", address, offset, guard }, number);
            }
        }
        self.barrier();
        self.pass_rows(true);
    }

    /// Returns the address in shared memory of the thread's first element.
    fn staged_pointer(&mut self, here: &Here) -> Reg {
        let index = match here.line {
            None => here.thread,
            Some(line) => self.code.scaled_plus(line, self.pass.staged_pitch(), here.thread),
        };
        self.code.scaled_plus(index, self.pass.real.number(), self.frame.shared)
    }

    /// Moves all numbers of a block between memory and shared memory.
    fn pass_rows(&mut self, out: bool) {
        let (pass, threads, n) = (self.pass, self.pass.block_threads(), self.pass.length());
        let total = pass.lines * n;
        // This is the number of all numbers, if the last block may lack some.
        let is_full = pass.axes[0].extent.is_multiple_of(pass.lines);
        let all = (!is_full).then(|| self.code.scaled(self.frame.bound, n));
        let first = self.code.scaled_plus(self.frame.tile, total, self.frame.thread);
        let side = usize::from(out);
        let address = self.code.end_address(side, self.frame.parameters[side], first);
        let rounds: Vec<u32> = (0..total.div_ceil(threads)).collect();
        for rounds in rounds.chunks(AT_ONCE) {
            let passing: Vec<Passing> = rounds
                .iter()
                .map(|round| {
                    let number = self.code.plus(self.frame.thread, round * threads);
                    let mut guard = (total - round * threads < threads).then(|| self.code.below(number, total));
                    if let Some(all) = all {
                        let index = self.code.plus(first, round * threads);
                        let inside = self.code.below(index, all);
                        guard = self.code.both(guard, Some(inside));
                    }
                    // One place is left out for each line before, if the length is even.
                    let line = self.code.quotient(number, n, SMALL);
                    let place = self.code.scaled_plus(line, pass.staged_pitch() - n, number);
                    let shared = self.code.scaled_plus(place, pass.real.number(), self.frame.shared);
                    Passing { shared, offset: self.offset(i64::from(round * threads)), guard }
                })
                .collect();
            let of = |from_shared: bool, passing: &Passing| {
                let Passing { shared, offset, guard } = *passing;
                if from_shared {
                    Place { space: "shared", address: shared, offset: 0, guard }
                } else {
                    Place { space: "global", address, offset, guard }
                }
            };
            let numbers: Vec<_> = passing.iter().map(|passing| self.code.load(of(out, passing))).collect();
            for (passing, number) in passing.iter().zip(numbers) {
                self.code.store(of(!out, passing), Number::of(number));
            }
        }
    }
}
