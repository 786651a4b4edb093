//! The kernel of products of a matrix in compressed rows and a vector by way of shared memory, for short rows of similar lengths.

use core::hint::select_unpredictable;
use core::marker::PhantomData;

use kernel_primitives::functor::{Epilogue, Reduction};
use kernel_primitives::input::Source;
use kernel_primitives::prelude::*;
use kernel_primitives::view::SharedStorage;

use super::csr::{CSR_THREADS, Csr, blocks, read, sum};

/// The most lanes that have a row in [`csr_staged_rows`](struct@csr_staged_rows). More have one in [`csr_rows`](struct@super::csr::csr_rows).
pub const CSR_STAGED_LANES: u32 = 4;

/// The most entries that a thread of [`csr_staged_rows`](struct@csr_staged_rows) has under way.
const STAGED: usize = 8;

/// The most entries that a block of [`csr_staged_rows`](struct@csr_staged_rows) has in shared memory at a time.
pub const CSR_CHUNK: usize = CSR_THREADS * STAGED;

/// Products of a row that a thread reads from shared memory at once.
const ADDED: usize = 4;

/// Bytes of shared memory that a block has at most: half of what one can have on any GPU.
const ROOM: usize = 32 << 10;

/// Entries that a thread has under way, for results that accumulate in `A`.
const fn staged_items<A>() -> usize {
    match size_of::<A>() {
        0..=8 => STAGED,
        9..=16 => 4,
        17..=32 => 2,
        _ => 1,
    }
}

/// Products that a block has in shared memory at a time.
const fn chunk<A>() -> usize {
    CSR_THREADS * staged_items::<A>()
}

/// Whether [`csr_staged_rows`](struct@csr_staged_rows) has rows of so many lanes, for results that accumulate in `A`. A lane that has a row to
/// itself needs no other threads' products. Those rows are [`csr_rows`](struct@super::csr::csr_rows)'s, and so are those whose products take
/// too much shared memory.
pub const fn csr_stages<A: Element>(lanes: u32) -> bool {
    lanes > 1 && lanes <= CSR_STAGED_LANES && <CsrStaged<A> as SharedStorage>::BYTES <= ROOM
}

/// Where a product lies in shared memory: a gap after those that lie side by side in all banks, so that rows of 16 or 32 entries begin in
/// different banks.
const fn place<A>(product: usize) -> usize {
    match size_of::<A>() {
        4 => product + (product >> 5),
        8 => product + (product >> 4),
        _ => product,
    }
}

/// Products of neighbouring entries.
pub struct CsrStaged<A>(PhantomData<A>);

impl<A> CsrStaged<A> {
    const ITEMS: usize = place::<A>(chunk::<A>());
}

// SAFETY: uninitialised elements.
unsafe impl<A: Element> SharedStorage for CsrStaged<A> {
    const BYTES: usize = Self::ITEMS * size_of::<A>();
    const ALIGN: usize = 16;
}

/// A kernel of [`algorithms::spmv`](kernel_primitives::algorithms::spmv) for short rows: so many neighbouring `lanes`, 2 or 4, have a row.
///
/// The entries of the block's rows lie side by side. The threads read them side by side, whatever rows they are of, and put their
/// products in shared memory. Then each lane adds up its share of its row from there. If the entries are too many for that, it is done
/// chunk by chunk. Neighbouring threads have neighbouring entries, one by one: a warp that read vectors of them would go to four times as
/// many places of `x` by each access.
///
/// What the epilogue reads is in `z`, or in `y` if `z` is empty.
///
/// Rows and entries that another launch has changed since the matrix was checked are a fault, or wrong numbers, and no access
/// outside.
///
/// Greathouse and Daga, *Efficient sparse matrix-vector multiplication on GPUs using the CSR storage format*, 2014.
#[kernel(launch(pub(crate)), threads(CSR_THREADS), min_blocks(blocks::<R::Accum>([8, 8, 4])))]
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
