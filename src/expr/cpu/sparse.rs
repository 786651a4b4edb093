//! Products of sparse matrices on the CPU's cores. One thread adds up each row, from the left.

use std::marker::PhantomData;
use std::ops::Range;
use std::panic::Location;

use primitives_gpu::Element;
use primitives_gpu::element::{Accumulate, Arithmetic, ConvertTo};
use primitives_gpu::functor::{Axpby, Epilogue, PlusTimes, Reduction};
use primitives_host::storage::{Storage, StorageUse, run_on_host};
use primitives_host::{Buffer, Result, Stream};

use crate::algorithms::{CsrIndex, Format, SparseMatrix};
use crate::expr::cpu::parallel::pieces;
use crate::expr::dtype::{Numeric, Scalar};
use crate::expr::graph::View;
use crate::kernels::device::{SELL_BEGIN, SELL_ROWS};

/// The number of rows that a thread takes at once.
const ROWS: usize = 512;

/// The elements of a memory. The memory outlives the work on it.
struct Elements<T> {
    address: u64,
    len: usize,
    of: PhantomData<fn() -> T>,
}

impl<T> Clone for Elements<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Elements<T> {}

impl<T: Element> Elements<T> {
    fn of(buffer: &Buffer<T>) -> Self {
        Self { address: buffer.address(), len: buffer.len(), of: PhantomData }
    }

    /// Returns the elements of a contiguous vector.
    fn in_row(view: &View) -> Self {
        let address = view.storage.address() + (view.layout.offset * size_of::<T>()) as u64;
        Self { address, len: view.layout.shape[0], of: PhantomData }
    }

    fn at(self, element: usize) -> *mut T {
        std::ptr::with_exposed_provenance_mut::<T>(self.address as usize).wrapping_add(element)
    }

    /// Returns the element, if there is one.
    ///
    /// # Safety
    /// The memory must exist and have values of `T`, and nobody may write the element.
    unsafe fn get(self, element: usize) -> Option<T> {
        // SAFETY: the element is inside; the caller's contract.
        (element < self.len).then(|| unsafe { self.at(element).read() })
    }
}

/// The entries of a matrix.
enum Entries<I> {
    Rows { offsets: Elements<I> },
    Slices { slices: Elements<u64>, order: Elements<I>, lengths: Elements<I> },
}

/// Computes `axpby` of a product and of `z`, or of the target's elements.
///
/// # Safety
/// `x` must be a view of a tensor of `X`; `z` and `target` must be views of tensors of `T`. They must be contiguous vectors. `x` has an
/// item for each column of the matrix, and `z` and `target` have one for each row. The target must not share memory with the other two.
pub(in crate::expr) unsafe fn sparse_product<M, X, T>(
    place: &'static Location<'static>,
    stream: &Stream,
    matrix: &M,
    x: &View,
    z: Option<&View>,
    target: &View,
    axpby: Axpby<T>,
) -> Result<()>
where
    M: SparseMatrix<Value: Accumulate<Accum = T>>,
    X: Scalar + Accumulate<Accum = T>,
    T: Numeric + Arithmetic,
{
    let rows = matrix.shape().0;
    let mut kept = Vec::new();
    let mut arrays = |memory: Storage| kept.push(memory);
    let (entries, indices, values) = match matrix.format() {
        Format::Rows(a) => {
            arrays(Storage::shared(a.offsets()));
            let entries = Entries::Rows { offsets: Elements::of(a.offsets()) };
            (entries, a.indices(), a.values())
        }
        Format::Slices(a) => {
            let (slices, order, lengths, indices, values) = a.arrays();
            arrays(Storage::shared(slices));
            arrays(Storage::shared(order));
            arrays(Storage::shared(lengths));
            let (slices, order, lengths) = (Elements::of(slices), Elements::of(order), Elements::of(lengths));
            (Entries::Slices { slices, order, lengths }, indices, values)
        }
    };
    arrays(Storage::shared(indices));
    arrays(Storage::shared(values));
    // The columns say which items are read. This emulator is unchecked, so it does not check whether they have been written.
    let nothing = |_: &mut dyn FnMut(Range<usize>)| ();
    let read = |storage, name| StorageUse { storage, write: false, ranges: Box::new(nothing), name };
    let mut uses: Vec<StorageUse<'_>> = kept.iter().map(|memory| read(memory, "the matrix")).collect();
    uses.push(read(&x.storage, "x"));
    if axpby.reads() {
        uses.push(read(&z.unwrap_or(target).storage, "z"));
    }
    let start = target.layout.offset * size_of::<T>();
    let bytes = start..start + rows * size_of::<T>();
    let written = move |each: &mut dyn FnMut(Range<usize>)| each(bytes.clone());
    uses.push(StorageUse { storage: &target.storage, write: true, ranges: Box::new(written), name: "target" });

    let (indices, values) = (Elements::of(indices), Elements::of(values));
    let (x, y) = (Elements::<X>::in_row(x), Elements::<T>::in_row(target));
    let old = z.map_or(y, Elements::in_row);
    let job = move || {
        // SAFETY: the launch has the memories, and locks them. No other vector is in the memory of `y`. All of these reads are inside, even
        // if a graph has written to the matrix since it was checked.
        let index = |of: Elements<_>, at: usize| unsafe { of.get(at) }.map(index);
        let term = |entry: usize| {
            // SAFETY: as above.
            unsafe {
                let column = index(indices, entry)?.min(x.len.checked_sub(1)?);
                Some(PlusTimes.pre((values.get(entry)?, x.get(column)?), column as u64))
            }
        };
        let all = |entries: &mut dyn Iterator<Item = usize>| {
            let (mut total, mut count) = (Reduction::<(M::Value, X)>::identity(&PlusTimes), 0);
            for term in entries.map_while(term) {
                (total, count) = (Reduction::<(M::Value, X)>::combine(&PlusTimes, total, term), count + 1);
            }
            Reduction::<(M::Value, X)>::post(&PlusTimes, total, count)
        };
        let row_of = |place: usize| match &entries {
            Entries::Rows { offsets } => {
                let (begin, end) = (index(*offsets, place)?, index(*offsets, place + 1)?);
                Some((place, all(&mut (begin..end))))
            }
            Entries::Slices { slices, order, lengths } => {
                // SAFETY: as above.
                let begin = unsafe { slices.get(place / SELL_ROWS) }? & SELL_BEGIN;
                let first = begin as usize + place % SELL_ROWS;
                let slots = (0..index(*lengths, place)?).map(|k| first + k * SELL_ROWS);
                let row = if order.len == 0 { place } else { index(*order, place)? };
                Some((row, all(&mut { slots })))
            }
        };
        pieces(
            rows.div_ceil(ROWS),
            || (),
            |(), piece| {
                for place in piece * ROWS..rows.min((piece + 1) * ROWS) {
                    let Some((row, total)) = row_of(place).filter(|(row, _)| *row < rows) else { continue };
                    // SAFETY: `row` is inside of both. Each row has one place, so only one thread accesses its elements.
                    unsafe {
                        let old = if axpby.reads() { old.at(row).read() } else { T::ZERO };
                        y.at(row).write(axpby.apply(total, old));
                    }
                }
                Ok(())
            },
        )
    };
    // SAFETY: by the caller's contract, the job accesses elements of these memories, and writes the elements of the target with values of
    // its type.
    unsafe { run_on_host(stream, "a sparse product", place, uses, job) }
}

/// Returns an index as a number.
fn index<I: CsrIndex>(of: I) -> usize {
    ConvertTo::<u64>::convert(of) as usize
}
