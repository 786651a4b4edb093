//! Reductions on the CPU.
//!
//! What is reduced is cut into pieces of a size that does not depend on the number of cores. Each piece has accumulators of its own;
//! they are combined in the order of the pieces, so that every run gives the same bits.

use std::ops::Range;

use half::{bf16, f16};
use primitives_gpu::element::{Arithmetic, Ordered};
use primitives_gpu::simt::Fault;
use rayon::prelude::*;

use super::cpu::{CHUNK, Job, Memory, Plan, kernel};
use super::dtype::{DType, Scalar, with_type};
use super::graph::{Math, Op};
use super::reduce::{Finish, Fold, Spec};

/// Elements of a piece, about.
const PIECE: usize = 1 << 14;

/// A reduction: of the program's only result.
pub(crate) struct FoldJob {
    /// Its nest is that of the result and of the inputs.
    pub(crate) job: Job,
    /// How many axes there are of the results' outer ones, of those that are reduced, and of the results' inner ones.
    pub(crate) ranks: [usize; 3],
    pub(crate) spec: Spec,
    pub(crate) result: Memory,
}

impl FoldJob {
    pub(crate) fn run(&self) -> Result<(), Fault> {
        let from = self.job.program.code[self.job.program.results[0] as usize].dtype;
        with_type!(from, T => self.run_of::<T>(folder::<T>(self.spec.fold)))
    }

    fn run_of<T: Scalar + Ordered>(&self, folder: Box<dyn Folder<T>>) -> Result<(), Fault> {
        let extents = |axes: Range<usize>| self.job.nest.extents[axes].iter().product::<usize>();
        let [outer, reduced, _] = self.ranks;
        let (rows, depth) = (extents(0..outer), extents(outer..outer + reduced));
        let columns = extents(outer + reduced..self.job.nest.rank);
        let plan = self.job.plan();
        // A piece is some of the depth of one row of results, or of all of some rows.
        let high = (PIECE / columns.max(1)).clamp(1, depth.max(1));
        let pieces = depth.div_ceil(high).max(1);
        let rows_each = if pieces > 1 { 1 } else { (PIECE / (depth * columns).max(1)).clamp(1, rows.max(1)) };
        let groups = rows.div_ceil(rows_each);
        let parts = (0..groups * pieces)
            .into_par_iter()
            .map_init(
                || plan.registers(),
                |registers, part| {
                    let (group, piece) = (part / pieces, part % pieces);
                    let rows = group * rows_each..((group + 1) * rows_each).min(rows);
                    let depths = piece * high..((piece + 1) * high).min(depth);
                    let mut all = Vec::with_capacity(rows.len() * columns);
                    for row in rows {
                        all.extend(self.piece(&plan, registers, &*folder, (row, depth, columns), depths.clone())?);
                    }
                    Ok(all)
                },
            )
            .collect::<Result<Vec<Vec<Item<T>>>, Fault>>()?;
        for (group, parts) in parts.chunks(pieces).enumerate() {
            let mut total = parts[0].clone();
            for part in &parts[1..] {
                for (total, part) in total.iter_mut().zip(part) {
                    *total = folder.combine(*total, *part);
                }
            }
            self.store(&total, group * rows_each, (depth, columns));
        }
        Ok(())
    }

    /// The accumulators of a row of results over some of the depth.
    fn piece<T: Scalar>(
        &self,
        plan: &Plan<'_>,
        registers: &mut [u64],
        folder: &dyn Folder<T>,
        (row, depth, columns): (usize, usize, usize),
        depths: Range<usize>,
    ) -> Result<Vec<Item<T>>, Fault> {
        let mut items = vec![folder.identity(); columns];
        let (mut place, end) = ((row * depth + depths.start) * columns, (row * depth + depths.end) * columns);
        while place < end {
            let places = place..(place + CHUNK).min(end);
            plan.chunk(registers.as_mut_ptr(), places.clone())?;
            let values = plan.value(registers.as_mut_ptr(), places.clone()).cast::<T>();
            // SAFETY: the chunk's values, of that type.
            let mut values = unsafe { std::slice::from_raw_parts(values, places.len()) };
            let mut at = place - row * depth * columns;
            while !values.is_empty() {
                let (index, column) = (at / columns, at % columns);
                let len;
                if columns == 1 {
                    len = values.len();
                    items[0] = folder.run(items[0], values, index as u64);
                } else {
                    len = values.len().min(columns - column);
                    folder.each(&mut items[column..column + len], &values[..len], index as u64);
                }
                values = &values[len..];
                at += len;
            }
            place = places.end;
        }
        Ok(items)
    }

    /// Finishes rows of results from `row` on and writes them.
    fn store<T: Scalar>(&self, items: &[Item<T>], row: usize, (depth, columns): (usize, usize)) {
        let Spec { fold, finish, to } = self.spec;
        let (from, count) = (if fold.is_arg() { DType::U64 } else { T::DTYPE }, items.len());
        let mut words = vec![0u64; count];
        for (i, item) in items.iter().enumerate() {
            let word = if fold.is_arg() { item.1 } else { item.0.to_word() };
            // SAFETY: a place of that size in the words, which have room for eight bytes each.
            unsafe {
                words.as_mut_ptr().cast::<u8>().add(i * from.size()).copy_from((&raw const word).cast(), from.size())
            };
        }
        let apply = |op: Op, from: DType, to: DType, a: &[u64], b: &[u64]| {
            let mut result = vec![0u64; count];
            let fault =
                kernel(op, from, to)(&[a.as_ptr().cast(), b.as_ptr().cast()], result.as_mut_ptr().cast(), count);
            debug_assert!(fault.is_none());
            result
        };
        words = match finish {
            Finish::Nothing => words,
            Finish::SquareRoot => apply(Op::Math(Math::Sqrt), from, from, &words, &[]),
            Finish::Mean => {
                let counts = vec![depth as u64; count];
                let counts = apply(Op::Cast, DType::U64, from, &counts, &[]);
                apply(Op::Div, from, from, &words, &counts)
            }
        };
        if from != to {
            words = apply(Op::Cast, from, to, &words, &[]);
        }
        let bytes = words.as_ptr().cast::<u8>();
        // A row's first place; the result's elements are repeated along the depth.
        for row_of in 0..count / columns.max(1) {
            let place = (row + row_of) * depth.max(1) * columns;
            self.job.nest.runs(0, place..place + columns, |first, element, stride, len| {
                for i in 0..len {
                    let at = self.result.at(element.wrapping_add_signed(stride * i as isize));
                    let from = (row_of * columns + first + i) * to.size();
                    // SAFETY: an element of the result, and one of the values.
                    unsafe { at.copy_from_nonoverlapping(bytes.add(from), to.size()) };
                }
            });
        }
    }
}

/// An accumulator: a value, and where it was.
type Item<T> = (T, u64);

trait Folder<T>: Send + Sync {
    fn identity(&self) -> Item<T>;
    fn combine(&self, a: Item<T>, b: Item<T>) -> Item<T>;
    /// Combines values that all have one index into accumulators of their own.
    fn each(&self, items: &mut [Item<T>], values: &[T], index: u64);
    /// Combines values that have indices from `index` on.
    fn run(&self, item: Item<T>, values: &[T], index: u64) -> Item<T>;
}

/// By values alone.
struct Plain<T, F> {
    identity: T,
    combine: F,
}

impl<T: Scalar, F: Fn(T, T) -> T + Send + Sync> Folder<T> for Plain<T, F> {
    fn identity(&self) -> Item<T> {
        (self.identity, 0)
    }
    fn combine(&self, a: Item<T>, b: Item<T>) -> Item<T> {
        ((self.combine)(a.0, b.0), 0)
    }
    fn each(&self, items: &mut [Item<T>], values: &[T], _: u64) {
        for (item, &value) in items.iter_mut().zip(values) {
            item.0 = (self.combine)(item.0, value);
        }
    }
    fn run(&self, item: Item<T>, values: &[T], _: u64) -> Item<T> {
        // Several chains, so that one operation does not wait for the one before.
        const CHAINS: usize = 16;
        let mut chains = [self.identity; CHAINS];
        let (whole, rest) = values.as_chunks::<CHAINS>();
        for values in whole {
            for (chain, &value) in chains.iter_mut().zip(values) {
                *chain = (self.combine)(*chain, value);
            }
        }
        let all = chains.into_iter().chain(rest.iter().copied());
        (all.fold(item.0, |a, b| (self.combine)(a, b)), 0)
    }
}

/// By values, with the index of the first that is best.
struct Indexed<F>(F);

impl<F> Indexed<F> {
    fn better<T: Ordered>(&self, a: Item<T>, b: Item<T>) -> Item<T>
    where
        F: Fn(T, T) -> bool,
    {
        let first = match (a.0.unordered(), b.0.unordered()) {
            (true, false) => true,
            (false, true) => false,
            (true, true) => a.1 <= b.1,
            _ if (self.0)(a.0, b.0) => true,
            _ if (self.0)(b.0, a.0) => false,
            _ => a.1 <= b.1,
        };
        if first { a } else { b }
    }
}

/// The worst value, and the index of none.
struct WithWorst<T, F>(Indexed<F>, T);

impl<T: Scalar + Ordered, F: Fn(T, T) -> bool + Send + Sync> Folder<T> for WithWorst<T, F> {
    fn identity(&self) -> Item<T> {
        (self.1, u64::MAX)
    }
    fn combine(&self, a: Item<T>, b: Item<T>) -> Item<T> {
        self.0.better(a, b)
    }
    fn each(&self, items: &mut [Item<T>], values: &[T], index: u64) {
        for (item, &value) in items.iter_mut().zip(values) {
            *item = self.0.better(*item, (value, index));
        }
    }
    fn run(&self, item: Item<T>, values: &[T], index: u64) -> Item<T> {
        (index..).zip(values).fold(item, |item, (index, &value)| self.0.better(item, (value, index)))
    }
}

fn folder<T: Scalar + Ordered>(fold: Fold) -> Box<dyn Folder<T>> {
    match fold {
        Fold::Min => Box::new(Plain { identity: T::GREATEST, combine: |a: T, b: T| Ordered::minimum(a, b) }),
        Fold::Max => Box::new(Plain { identity: T::LEAST, combine: |a: T, b: T| Ordered::maximum(a, b) }),
        Fold::ArgMin => Box::new(WithWorst(Indexed(|a: T, b: T| a.less(b)), T::GREATEST)),
        Fold::ArgMax => Box::new(WithWorst(Indexed(|a: T, b: T| b.less(a)), T::LEAST)),
        Fold::Sum | Fold::Product => arithmetic(fold),
    }
}

/// A sum or a product of numbers.
fn arithmetic<T: Scalar>(fold: Fold) -> Box<dyn Folder<T>> {
    macro_rules! of {
        ($($t:ty),*) => {
            $(if let Some(folder) = number::<$t, T>(fold) { return folder; })*
        };
    }
    of!(i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64);
    unreachable!("{fold:?} of {}, which its bounds exclude", T::DTYPE)
}

/// The folder of `N`, if that is `T`.
fn number<N: Scalar + Arithmetic, T: Scalar>(fold: Fold) -> Option<Box<dyn Folder<T>>> {
    let folder: Box<dyn Folder<N>> = match fold {
        Fold::Sum => Box::new(Plain { identity: N::ZERO, combine: |a: N, b: N| Arithmetic::add(a, b) }),
        _ => Box::new(Plain { identity: N::ONE, combine: |a: N, b: N| Arithmetic::mul(a, b) }),
    };
    let any: Box<dyn std::any::Any> = Box::new(folder);
    any.downcast::<Box<dyn Folder<T>>>().ok().map(|folder| *folder)
}
