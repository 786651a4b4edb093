//! Reductions on the CPU.
//!
//! The input is divided into pieces, whose size does not depend on the number of cores. Each piece has its own accumulators. The
//! accumulators of one result are combined in the order of the pieces, so that every run gives the same bits.

use std::any::{Any, TypeId};
use std::ops::Range;
use std::sync::OnceLock;

use half::{bf16, f16};
use primitives_gpu::element::{Arithmetic, Ordered};
use primitives_host::Diagnosis;

use super::parallel;
use super::{CHUNK, Job, Memory, Plan, kernel};
use crate::expr::dtype::{DType, Scalar, with_type};
use crate::expr::graph::{Math, Op};
use crate::expr::reduce::{Finish, Fold, Spec};

/// The approximate number of elements of a piece, and the most columns of a piece.
const PIECE: usize = 1 << 14;

/// The most columns of a piece that has only a part of the depth.
const BAND: usize = 1 << 10;

/// The most pieces if several pieces share a result. The accumulators of each piece are kept until all pieces are done: 16 bytes for each
/// of up to [`BAND`] columns, which is 4 MiB in all.
const SHARED: usize = 256;

/// A reduction of the program's only result.
pub(crate) struct FoldJob {
    /// The job, whose nest is that of the result and of the inputs.
    pub(crate) job: Job,
    /// The numbers of the results' outer axes, of the reduced axes, and of the results' inner axes.
    pub(crate) ranks: [usize; 3],
    pub(crate) spec: Spec,
    pub(crate) result: Memory,
}

/// The extents of the nest: the number of rows of results, of elements that are reduced for each result, and of columns of results.
#[derive(Clone, Copy)]
struct Extents {
    rows: usize,
    depth: usize,
    columns: usize,
}

impl Extents {
    /// Returns the number of the first element of a row, at some depth.
    fn place(&self, row: usize, depth: usize) -> usize {
        (row * self.depth + depth) * self.columns
    }
}

impl FoldJob {
    pub(crate) fn run(&self) -> Result<(), Diagnosis> {
        let from = self.job.program.code[self.job.program.results[0] as usize].dtype;
        with_type!(from, T => self.run_of::<T>(&*folder::<T>(self.spec.fold)))
    }

    fn extents(&self) -> Extents {
        let extents = |axes: Range<usize>| self.job.nest.extents[axes].iter().product::<usize>();
        let [outer, reduced, _] = self.ranks;
        let (rows, depth) = (extents(0..outer), extents(outer..outer + reduced));
        Extents { rows, depth, columns: extents(outer + reduced..self.job.nest.rank) }
    }

    fn run_of<T: Scalar + Ordered>(&self, folder: &dyn Folder<T>) -> Result<(), Diagnosis> {
        let Extents { rows, depth, columns } = self.extents();
        let plan = self.job.plan();
        // A piece is a part of the depth for a band of columns, or the whole depth for some rows. A piece with the whole depth needs no
        // combination. It is used if this leaves enough columns.
        let band = columns.min((PIECE / depth).max(BAND));
        let bands = columns.div_ceil(band);
        let share = (SHARED / (rows * bands)).max(1);
        let high = (PIECE / band).max(depth.div_ceil(share)).min(depth);
        let pieces = depth.div_ceil(high);
        let rows_each = if pieces * bands > 1 { 1 } else { (PIECE / (depth * columns)).clamp(1, rows) };
        let groups = rows.div_ceil(rows_each);
        // Returns the rows and the columns of the results with number `at`.
        let results = |at: usize| {
            let (row, column) = (at / bands * rows_each, at % bands * band);
            (row..(row + rows_each).min(rows), column..(column + band).min(columns))
        };
        let compute = |registers: &mut [u64], (rows, columns): &(Range<usize>, Range<usize>), piece: usize| {
            let depths = piece * high..((piece + 1) * high).min(depth);
            let mut all = Vec::with_capacity(rows.len() * columns.len());
            for row in rows.clone() {
                all.extend(self.piece(&plan, registers, folder, row, depths.clone(), columns.clone())?);
            }
            Ok::<_, Diagnosis>(all)
        };
        if pieces == 1 {
            return parallel::pieces(
                groups * bands,
                || plan.registers(),
                |registers, at| {
                    let results = results(at);
                    self.store(&compute(registers, &results, 0)?, results);
                    Ok(())
                },
            );
        }
        let parts: Vec<OnceLock<Vec<Item<T>>>> = (0..groups * bands * pieces).map(|_| OnceLock::new()).collect();
        parallel::pieces(
            parts.len(),
            || plan.registers(),
            |registers, part| {
                let _ = parts[part].set(compute(registers, &results(part / pieces), part % pieces)?);
                Ok::<_, Diagnosis>(())
            },
        )?;
        let parts: Vec<Vec<Item<T>>> =
            parts.into_iter().map(|part| part.into_inner().expect("every piece was computed")).collect();
        for (at, parts) in parts.chunks(pieces).enumerate() {
            let mut total = parts[0].clone();
            for part in &parts[1..] {
                for (total, part) in total.iter_mut().zip(part) {
                    *total = folder.combine(*total, *part);
                }
            }
            self.store(&total, results(at));
        }
        Ok(())
    }

    /// Computes the accumulators of some columns of a row of results, over a part of the depth.
    fn piece<T: Scalar>(
        &self,
        plan: &Plan<'_>,
        registers: &mut [u64],
        folder: &dyn Folder<T>,
        row: usize,
        depths: Range<usize>,
        columns: Range<usize>,
    ) -> Result<Vec<Item<T>>, Diagnosis> {
        let extents = self.extents();
        let mut items = vec![folder.identity(); columns.len()];
        // Whole rows follow each other.
        let whole = columns.len() == extents.columns;
        let runs = if whole { 1 } else { depths.len() };
        for run in 0..runs {
            let (first, last) =
                if whole { (depths.start, depths.end - 1) } else { (depths.start + run, depths.start + run) };
            let mut place = extents.place(row, first) + columns.start;
            let end = extents.place(row, last) + columns.end;
            while place < end {
                let places = place..(place + CHUNK).min(end);
                plan.chunk(registers.as_mut_ptr(), places.clone())?;
                let values = plan.value(registers.as_mut_ptr(), places.clone()).cast::<T>();
                // SAFETY: these are the chunk's values, which have that type.
                let mut values = unsafe { std::slice::from_raw_parts(values, places.len()) };
                let mut at = place - extents.place(row, 0);
                while !values.is_empty() {
                    let (index, column) = (at / extents.columns, at % extents.columns);
                    let len;
                    if extents.columns == 1 {
                        len = values.len();
                        items[0] = folder.run(items[0], values, index as u64);
                    } else {
                        len = values.len().min(columns.end - column);
                        let items = &mut items[column - columns.start..][..len];
                        folder.each(items, &values[..len], index as u64);
                    }
                    values = &values[len..];
                    at += len;
                }
                place = places.end;
            }
        }
        Ok(items)
    }

    /// Finishes results and writes them.
    fn store<T: Scalar>(&self, items: &[Item<T>], (rows, columns): (Range<usize>, Range<usize>)) {
        let extents = self.extents();
        let Spec { fold, finish, to } = self.spec;
        let (from, count) = (if fold.is_arg() { DType::U64 } else { T::DTYPE }, items.len());
        let mut words = vec![0u64; count];
        for (i, item) in items.iter().enumerate() {
            let word = if fold.is_arg() { item.1 } else { item.0.to_word() };
            // SAFETY: this is a place of that size in the words, which have room for eight bytes each.
            unsafe {
                words.as_mut_ptr().cast::<u8>().add(i * from.size()).copy_from((&raw const word).cast(), from.size())
            };
        }
        let apply = |op: Op, from: DType, to: DType, a: &[u64], b: &[u64]| {
            let mut result = vec![0u64; count];
            let arguments = [a.as_ptr().cast(), b.as_ptr().cast()];
            // SAFETY: the arguments and the result have room for that many elements of eight bytes.
            let fault = unsafe { kernel(op, from, to).compute(&arguments, result.as_mut_ptr().cast(), count) };
            debug_assert!(fault.is_none());
            result
        };
        words = match finish {
            Finish::Nothing => words,
            Finish::SquareRoot => apply(Op::Math(Math::Sqrt), from, from, &words, &[]),
            Finish::Mean => {
                let counts = vec![extents.depth as u64; count];
                let counts = apply(Op::Cast, DType::U64, from, &counts, &[]);
                apply(Op::Div, from, from, &words, &counts)
            }
        };
        if from != to {
            words = apply(Op::Cast, from, to, &words, &[]);
        }
        let bytes = words.as_ptr().cast::<u8>();
        for (at, row) in rows.enumerate() {
            // The result's elements are repeated along the depth.
            let place = extents.place(row, 0);
            self.job.nest.runs(0, place + columns.start..place + columns.end, |first, element, stride, len| {
                for i in 0..len {
                    let to_place = self.result.at(element.wrapping_add_signed(stride * i as isize));
                    let from = (at * columns.len() + first + i) * to.size();
                    // SAFETY: these are one of the values, and an element of the result that no other piece writes.
                    unsafe { to_place.copy_from_nonoverlapping(bytes.add(from), to.size()) };
                }
            });
        }
    }
}

/// An accumulator: a value, and its index.
type Item<T> = (T, u64);

trait Folder<T>: Send + Sync {
    fn identity(&self) -> Item<T>;
    fn combine(&self, a: Item<T>, b: Item<T>) -> Item<T>;
    /// Combines values that all have the same index, each with its own accumulator.
    fn each(&self, items: &mut [Item<T>], values: &[T], index: u64);
    /// Combines values with consecutive indices, starting at `index`, with one accumulator.
    fn run(&self, item: Item<T>, values: &[T], index: u64) -> Item<T>;
}

/// Combines values without indices.
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
        // There are several chains, so that an operation does not wait for the one before.
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

/// Combines values, and keeps the index of the first best value.
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

/// Combines values with indices, starting with the worst value and the index of no element.
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

/// Returns the folder for a sum or a product of numbers.
fn arithmetic<T: Scalar>(fold: Fold) -> Box<dyn Folder<T>> {
    macro_rules! of {
        ($($t:ty),*) => {
            $(if TypeId::of::<$t>() == TypeId::of::<T>() {
                let folder: Box<dyn Any> = Box::new(number::<$t>(fold));
                return *folder.downcast().expect("a folder of this type");
            })*
        };
    }
    of!(i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64);
    unreachable!("{fold:?} of {}, which its bounds exclude", T::DTYPE)
}

/// Returns the folder of a type of numbers. It is not a part of [`arithmetic`]: there, it would be compiled for each pair of types.
fn number<N: Scalar + Arithmetic>(fold: Fold) -> Box<dyn Folder<N>> {
    match fold {
        // For floats, the identity is −0, so that a sum of −0 stays −0.
        Fold::Sum => Box::new(Plain { identity: N::ZERO.neg(), combine: |a: N, b: N| Arithmetic::add(a, b) }),
        _ => Box::new(Plain { identity: N::ONE, combine: |a: N, b: N| Arithmetic::mul(a, b) }),
    }
}
