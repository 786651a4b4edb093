//! Reductions on the CPU.
//!
//! The input is divided into pieces, whose size does not depend on the number of cores. Each piece has its own accumulators. The
//! accumulators of one result are combined in the order of the pieces, so that every run gives the same bits.

use std::ops::Range;
use std::sync::OnceLock;

use primitives_gpu::element::{Arithmetic, Element, Ordered};
use primitives_host::Diagnosis;

use super::kernels::among;
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
        self.run_with(&*folder(self.spec.fold, self.dtype()))
    }

    /// Returns the type of the values that are reduced.
    fn dtype(&self) -> DType {
        self.job.program.code[self.job.program.results[0] as usize].dtype
    }

    fn extents(&self) -> Extents {
        let extents = |axes: Range<usize>| self.job.nest.extents[axes].iter().product::<usize>();
        let [outer, reduced, _] = self.ranks;
        let (rows, depth) = (extents(0..outer), extents(outer..outer + reduced));
        Extents { rows, depth, columns: extents(outer + reduced..self.job.nest.rank) }
    }

    fn run_with(&self, folder: &dyn Folder) -> Result<(), Diagnosis> {
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
        let parts: Vec<OnceLock<Vec<Item>>> = (0..groups * bands * pieces).map(|_| OnceLock::new()).collect();
        parallel::pieces(
            parts.len(),
            || plan.registers(),
            |registers, part| {
                let _ = parts[part].set(compute(registers, &results(part / pieces), part % pieces)?);
                Ok::<_, Diagnosis>(())
            },
        )?;
        let parts: Vec<Vec<Item>> =
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
    fn piece(
        &self,
        plan: &Plan<'_>,
        registers: &mut [u64],
        folder: &dyn Folder,
        row: usize,
        depths: Range<usize>,
        columns: Range<usize>,
    ) -> Result<Vec<Item>, Diagnosis> {
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
                let mut values = plan.value(registers.as_mut_ptr(), places.clone());
                let mut left = places.len();
                let mut at = place - extents.place(row, 0);
                while left > 0 {
                    let (index, column) = (at / extents.columns, at % extents.columns);
                    let len = if extents.columns == 1 { left } else { left.min(columns.end - column) };
                    // SAFETY: these are some of the chunk's values, which have the job's type, as the folder has.
                    unsafe {
                        if extents.columns == 1 {
                            items[0] = folder.run(items[0], values, len, index as u64);
                        } else {
                            folder.each(&mut items[column - columns.start..][..len], values, index as u64);
                        }
                        values = values.add(len * self.dtype().size());
                    }
                    left -= len;
                    at += len;
                }
                place = places.end;
            }
        }
        Ok(items)
    }

    /// Finishes results and writes them.
    fn store(&self, items: &[Item], (rows, columns): (Range<usize>, Range<usize>)) {
        let extents = self.extents();
        let Spec { fold, finish, to } = self.spec;
        let (from, count) = (if fold.is_arg() { DType::U64 } else { self.dtype() }, items.len());
        let mut words = vec![0u64; count];
        for (i, item) in items.iter().enumerate() {
            let word = if fold.is_arg() { item.1 } else { item.0 };
            // SAFETY: this is a place of that size in the words, which have room for eight bytes each.
            unsafe {
                words.as_mut_ptr().cast::<u8>().add(i * from.size()).copy_from((&raw const word).cast(), from.size())
            };
        }
        let apply = |op: Op, from: DType, to: DType, a: &[u64], b: &[u64]| {
            let mut result = vec![0u64; count];
            let arguments = [a.as_ptr().cast(), b.as_ptr().cast()];
            // SAFETY: each argument that the operator takes has `count` values of its type. The result has room for eight bytes each.
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
type Item = (u64, u64);

/// Combines values of a type with accumulators.
///
/// The type is the folder's alone, so that all else is compiled once. [`FoldJob::run`] makes the folder of the job's type.
trait Folder: Send + Sync {
    fn identity(&self) -> Item;
    fn combine(&self, a: Item, b: Item) -> Item;
    /// Combines values that all have the same index, each with its own accumulator.
    ///
    /// # Safety
    /// There is a value of the folder's type for each accumulator.
    unsafe fn each(&self, items: &mut [Item], values: *const u8, index: u64);
    /// Combines `len` values with consecutive indices, starting at `index`, with one accumulator.
    ///
    /// # Safety
    /// There are `len` values of the folder's type.
    unsafe fn run(&self, item: Item, values: *const u8, len: usize, index: u64) -> Item;
}

/// Combines values without indices.
struct Plain<T, F> {
    identity: T,
    combine: F,
}

impl<T: Scalar, F: Fn(T, T) -> T + Send + Sync> Folder for Plain<T, F> {
    fn identity(&self) -> Item {
        (self.identity.to_word(), 0)
    }
    fn combine(&self, a: Item, b: Item) -> Item {
        ((self.combine)(T::from_word(a.0), T::from_word(b.0)).to_word(), 0)
    }
    unsafe fn each(&self, items: &mut [Item], values: *const u8, _: u64) {
        // SAFETY: the caller's contract.
        let values = unsafe { std::slice::from_raw_parts(values.cast::<T>(), items.len()) };
        for (item, &value) in items.iter_mut().zip(values) {
            item.0 = (self.combine)(T::from_word(item.0), value).to_word();
        }
    }
    unsafe fn run(&self, item: Item, values: *const u8, len: usize, _: u64) -> Item {
        // There are several chains, so that an operation does not wait for the one before.
        const CHAINS: usize = 16;
        // SAFETY: the caller's contract.
        let values = unsafe { std::slice::from_raw_parts(values.cast::<T>(), len) };
        let mut chains = [self.identity; CHAINS];
        let (whole, rest) = values.as_chunks::<CHAINS>();
        for values in whole {
            for (chain, &value) in chains.iter_mut().zip(values) {
                *chain = (self.combine)(*chain, value);
            }
        }
        let mut total = T::from_word(item.0);
        for values in [&chains, rest] {
            for &value in values {
                total = (self.combine)(total, value);
            }
        }
        (total.to_word(), 0)
    }
}

/// Combines values, and keeps the index of the first best value. It starts with the worst value and the index of no element.
struct Indexed<T, F> {
    worst: T,
    is_better: F,
}

impl<T: Ordered, F: Fn(T, T) -> bool> Indexed<T, F> {
    fn better(&self, a: (T, u64), b: (T, u64)) -> (T, u64) {
        let first = match (a.0.unordered(), b.0.unordered()) {
            (true, false) => true,
            (false, true) => false,
            (true, true) => a.1 <= b.1,
            _ if (self.is_better)(a.0, b.0) => true,
            _ if (self.is_better)(b.0, a.0) => false,
            _ => a.1 <= b.1,
        };
        if first { a } else { b }
    }
}

impl<T: Scalar + Ordered, F: Fn(T, T) -> bool + Send + Sync> Folder for Indexed<T, F> {
    fn identity(&self) -> Item {
        (self.worst.to_word(), u64::MAX)
    }
    fn combine(&self, a: Item, b: Item) -> Item {
        let (value, index) = self.better((T::from_word(a.0), a.1), (T::from_word(b.0), b.1));
        (value.to_word(), index)
    }
    unsafe fn each(&self, items: &mut [Item], values: *const u8, index: u64) {
        // SAFETY: the caller's contract.
        let values = unsafe { std::slice::from_raw_parts(values.cast::<T>(), items.len()) };
        for (item, &value) in items.iter_mut().zip(values) {
            *item = self.combine(*item, (value.to_word(), index));
        }
    }
    unsafe fn run(&self, item: Item, values: *const u8, len: usize, index: u64) -> Item {
        // SAFETY: the caller's contract.
        let values = unsafe { std::slice::from_raw_parts(values.cast::<T>(), len) };
        let mut best = (T::from_word(item.0), item.1);
        for (index, &value) in (index..).zip(values) {
            best = self.better(best, (value, index));
        }
        (best.0.to_word(), best.1)
    }
}

/// Returns the folder of values of a type.
fn folder(fold: Fold, dtype: DType) -> Box<dyn Folder> {
    macro_rules! plain {
        ($identity:expr, $combine:expr) => {
            Box::new(Plain { identity: $identity, combine: $combine }) as Box<dyn Folder>
        };
    }
    macro_rules! indexed {
        ($worst:expr, $is_better:expr) => {
            Box::new(Indexed { worst: $worst, is_better: $is_better }) as Box<dyn Folder>
        };
    }
    match fold {
        Fold::Min => with_type!(dtype, T => plain!(T::GREATEST, |a: T, b: T| Ordered::minimum(a, b))),
        Fold::Max => with_type!(dtype, T => plain!(T::LEAST, |a: T, b: T| Ordered::maximum(a, b))),
        Fold::ArgMin => with_type!(dtype, T => indexed!(T::GREATEST, |a: T, b: T| a.less(b))),
        Fold::ArgMax => with_type!(dtype, T => indexed!(T::LEAST, |a: T, b: T| b.less(a))),
        // For floats, the identity is −0, so that a sum of −0 stays −0.
        Fold::Sum => {
            among!(dtype, numbers, T => plain!(<T as Element>::ZERO.neg(), |a: T, b: T| Arithmetic::add(a, b)))
        }
        Fold::Product => {
            among!(dtype, numbers, T => plain!(<T as Arithmetic>::ONE, |a: T, b: T| Arithmetic::mul(a, b)))
        }
    }
}
