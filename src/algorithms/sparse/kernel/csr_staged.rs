//! The kernel of products of a matrix in compressed rows and a vector through shared memory, for short rows of similar lengths.

use core::hint::select_unpredictable;
use core::marker::PhantomData;

use kernel_primitives::functor::{Epilogue, Reduction};
use kernel_primitives::input::Source;
use kernel_primitives::prelude::*;
use kernel_primitives::view::SharedStorage;

use super::csr::{CSR_THREADS, Csr, blocks, read, sum};

/// The most lanes of a row in [`csr_staged_rows`](struct@csr_staged_rows). Rows with more lanes use
/// [`csr_rows`](struct@super::csr::csr_rows).
pub const CSR_STAGED_LANES: u32 = 4;

/// The most entries that a thread of [`csr_staged_rows`](struct@csr_staged_rows) has in flight.
const STAGED: usize = 8;

/// The most entries that a block of [`csr_staged_rows`](struct@csr_staged_rows) has in shared memory at a time.
pub const CSR_CHUNK: usize = CSR_THREADS * STAGED;

/// The number of products of a row that a thread reads from shared memory at once.
const ADDED: usize = 4;

/// The most bytes of shared memory of a block, which is half of what a block can have on any GPU.
const ROOM: usize = 32 << 10;

/// Returns the number of entries that a thread has in flight, for results that accumulate in `A`.
const fn staged_items<A>() -> usize {
    match size_of::<A>() {
        0..=8 => STAGED,
        9..=16 => 4,
        17..=32 => 2,
        _ => 1,
    }
}

/// Returns the number of products that a block has in shared memory at a time.
const fn chunk<A>() -> usize {
    CSR_THREADS * staged_items::<A>()
}

/// Returns whether [`csr_staged_rows`](struct@csr_staged_rows) supports rows with this number of lanes, for results that accumulate in `A`.
/// If one lane has a row, it does not need products of other threads. Such rows use [`csr_rows`](struct@super::csr::csr_rows), and so do
/// rows whose products take too much shared memory.
pub const fn csr_stages<A: Element>(lanes: u32) -> bool {
    lanes > 1 && lanes <= CSR_STAGED_LANES && <CsrStaged<A> as SharedStorage>::BYTES <= ROOM
}

/// Returns the place of a product in shared memory. There is a gap after the products that fill all banks once, so that rows of 16 or 32
/// entries begin in different banks.
const fn place<A>(product: usize) -> usize {
    match size_of::<A>() {
        4 => product + (product >> 5),
        8 => product + (product >> 4),
        _ => product,
    }
}

/// The products of neighbouring entries.
pub struct CsrStaged<A>(PhantomData<A>);

impl<A> CsrStaged<A> {
    const ITEMS: usize = place::<A>(chunk::<A>());
}

// SAFETY: uninitialised elements.
unsafe impl<A: Element> SharedStorage for CsrStaged<A> {
    const BYTES: usize = Self::ITEMS * size_of::<A>();
    const ALIGN: usize = 16;
}

/// A kernel of [`algorithms::spmv`](kernel_primitives::algorithms::spmv) for short rows. `lanes` neighbouring lanes, 2 or 4, have a row.
///
/// The entries of the block's rows are contiguous. Neighbouring threads read neighbouring entries, of whatever rows, and put their products
/// into shared memory. Then each lane adds up its share of its row from there. If there are too many entries for this, the block does it
/// chunk by chunk. Neighbouring threads have single entries. If a warp read vectors of entries, each of its accesses would go to four times
/// as many places of `x`.
///
/// The value that the epilogue reads is in `z`, or in `y` if `z` is empty.
///
/// If another launch has changed rows or entries since the matrix was checked, there is a fault or wrong results, but no access outside.
///
/// Greathouse and Daga, *Efficient sparse matrix-vector multiplication on GPUs using the CSR storage format*, 2014.
#[kernel(launch(pub(crate)), threads(CSR_THREADS), one_dimensional, min_blocks(blocks::<R::Accum>([8, 8, 4])))]
#[allow(clippy::too_many_arguments, reason = "a kernel's parameters")]
pub fn csr_staged_rows<V, S, I, R, E>(
    cx: Block,
    offsets: Global<I>,
    columns: Global<I>,
    values: Global<V>,
    x: Input<S>,
    z: Global<E::Output>,
    mut y: GlobalMut<E::Output>,
    op: R,
    epilogue: E,
    lanes: u32,
    mut staged: Shared<CsrStaged<R::Accum>>,
) where
    V: Element,
    S: Source,
    I: Integer + ConvertTo<u64>,
    R: Reduction<(V, S::Item)> + KernelParam,
    E: Epilogue<R::Output> + KernelParam,
{
    let a = Csr { offsets, columns, values };
    let (thread, shift) = (cx.thread_rank(), lanes.trailing_zeros());
    let first_row = cx.block_rank() * (CSR_THREADS >> shift);
    let last_row = (first_row + (CSR_THREADS >> shift)).min(a.rows());
    let (row, lane) = (first_row + (thread >> shift) as usize, thread & (lanes - 1));
    if first_row >= last_row {
        return;
    }
    let (mut from, to) = (a.begin(first_row), a.end(last_row - 1));
    let (begin, end) = a.bounds(row);
    let writes = lane == 0 && row < last_row;
    // SAFETY: a row is of one group of lanes, of which only the first accesses it.
    let old = if writes { unsafe { read::<R::Output, E>(&y, z, row, &epilogue) } } else { E::Output::ZERO };
    let mut total = op.identity();
    while from < to {
        let count = (to - from).min(const { chunk::<R::Accum>() });
        let most = const { staged_items::<R::Accum>() };
        let entries = a.entries(from, from + count);
        let found: [_; STAGED] = entries.products(thread as usize, CSR_THREADS, most, x, &op);
        staged.enter();
        let products = staged.array::<R::Accum>(0, const { CsrStaged::<R::Accum>::ITEMS });
        for (k, &product) in found.iter().enumerate() {
            if k < most {
                let at = place::<R::Accum>(k * CSR_THREADS + thread as usize);
                // SAFETY: below the number of products of a chunk; the thread's own element until the barrier.
                unsafe { products.store(at, product) };
            }
        }
        cx.barrier();
        let in_chunk = |entry: usize| entry.saturating_sub(from).min(count) as u32;
        let (mut at, stop) = (in_chunk(begin) + lane, in_chunk(end));
        while at < stop {
            let mut parts = [op.identity(); ADDED];
            for (k, part) in parts.iter_mut().enumerate() {
                let at = at + k as u32 * lanes;
                let place = place::<R::Accum>(at.min(stop - 1) as usize);
                // SAFETY: below `count`; all of these were written before the barrier, and nobody writes them before the next one.
                let found = unsafe { products.load(place) };
                *part = select_unpredictable(at < stop, found, op.identity());
            }
            total = sum::<(V, S::Item), R>(&op, total, &parts);
            at += ADDED as u32 * lanes;
        }
        from += count;
    }
    let total = warp_group_reduce(cx, total, op.reducer(), lanes);
    if writes {
        let total = op.post(total, end.saturating_sub(begin) as u64);
        // SAFETY: as above.
        unsafe { y.write(row, epilogue.apply(total, old)) };
    }
}
