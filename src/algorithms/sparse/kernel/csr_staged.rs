//! The kernel of products of a matrix in compressed rows and a vector by way of shared memory, for short rows of similar lengths.

use core::hint::select_unpredictable;
use core::marker::PhantomData;

use kernel_primitives::functor::{Epilogue, Reduction};
use kernel_primitives::input::Source;
use kernel_primitives::prelude::*;
use kernel_primitives::view::SharedStorage;

use super::csr::{Csr, blocks, read};
use super::entry_vectors::{Vectors, one_by_one, width};

/// Threads of a block of [`csr_staged_rows`](struct@csr_staged_rows).
pub const CSR_STAGED_THREADS: usize = 256;

/// The most lanes that have a row in [`csr_staged_rows`](struct@csr_staged_rows). More have one in [`csr_rows`](struct@super::csr::csr_rows).
pub const CSR_STAGED_LANES: u32 = 4;

/// The most entries that a block of [`csr_staged_rows`](struct@csr_staged_rows) has in shared memory at a time.
pub const CSR_CHUNK: usize = 2048;

/// Vectors of entries that a thread has under way. A multiprocessor's threads then wait for 48 KiB of `f64` and their columns at once, or for
/// 64 KiB of `f32`.
const AHEAD: usize = 2;

/// Products of a row that a thread reads from shared memory at once.
const ADDED: usize = 4;

/// Bytes of shared memory that a block has at most: half of what one can have on any GPU.
const ROOM: usize = 32 << 10;

/// Products that a block has in shared memory at a time, for results that accumulate in `A`: a multiple of the entries of a vector.
const fn chunk<A>() -> usize {
    match size_of::<A>() {
        0..=8 => CSR_CHUNK,
        9..=16 => 1024,
        17..=32 => 512,
        33..=64 => 256,
        _ => 128,
    }
}

/// Entries of a vector, for values `V`, columns `I` and results that accumulate in `A`: so few that all threads have one.
const fn vector<V, I, A>() -> usize {
    let each = chunk::<A>() / CSR_STAGED_THREADS;
    width::<V, I>(if each > 1 { each } else { 1 })
}

/// Whether [`csr_staged_rows`](struct@csr_staged_rows) has rows of so many lanes, for results that accumulate in `A`. Where their products
/// take too much shared memory, [`csr_rows`](struct@super::csr::csr_rows) has them.
pub const fn csr_stages<A: Element>(lanes: u32) -> bool {
    lanes <= CSR_STAGED_LANES && <CsrStaged<A> as SharedStorage>::BYTES <= ROOM
}

/// Where a product lies in shared memory: a gap after those that lie side by side in all banks. So rows of 8, 16 or 32 entries begin in
/// different banks, and threads that have vectors side by side write theirs to different banks, too.
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

/// A kernel of [`algorithms::spmv`](kernel_primitives::algorithms::spmv) for short rows: so many neighbouring `lanes`, 1, 2 or 4, have a
/// row.
///
/// The entries of the block's rows lie side by side. The threads read them side by side, in vectors of up to 16 bytes of columns and of
/// values, whatever rows they are of, and put their products in shared memory. Then each lane adds up its share of its row from there. If
/// the entries are too many for that, it is done chunk by chunk.
///
/// The first vector may begin before the block's rows, and the last one may end after them. Nobody reads the products of other rows.
///
/// What the epilogue reads is in `z`, or in `y` if `z` is empty.
///
/// Rows and entries that another launch has changed since the matrix was checked are a fault, or wrong numbers, and no access
/// outside.
///
/// Greathouse and Daga, *Efficient sparse matrix-vector multiplication on GPUs using the CSR storage format*, 2014.
#[kernel(launch(pub(crate)), threads(CSR_STAGED_THREADS), min_blocks(blocks::<R::Accum>(4)))]
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
    let first_row = cx.block_rank() * (CSR_STAGED_THREADS >> shift);
    let last_row = (first_row + (CSR_STAGED_THREADS >> shift)).min(a.rows());
    let (row, lane) = (first_row + (thread >> shift) as usize, thread & (lanes - 1));
    if first_row >= last_row {
        return;
    }
    let (first, to) = (a.begin(first_row), a.end(last_row - 1));
    let (begin, end) = a.bounds(row);
    let writes = lane == 0 && row < last_row;
    // SAFETY: a row is of one group of lanes, of which only the first accesses it.
    let old = if writes { unsafe { read::<R::Output, E>(&y, z, row, &epilogue) } } else { E::Output::ZERO };
    let mut total = op.identity();
    // Chunks begin where vectors do.
    let mut from = if first < to { first - first % const { vector::<V, I, R::Accum>() } } else { to };
    while from < to {
        let count = (to - from).min(const { chunk::<R::Accum>() }) as u32;
        staged.enter();
        let products = staged.array::<R::Accum>(0, const { CsrStaged::<R::Accum>::ITEMS });
        match const { vector::<V, I, R::Accum>() } {
            4 => stage::<V, S, I, R, 4>(cx, &a, (from, count), x, &op, products),
            2 => stage::<V, S, I, R, 2>(cx, &a, (from, count), x, &op, products),
            _ => stage::<V, S, I, R, 1>(cx, &a, (from, count), x, &op, products),
        }
        cx.barrier();
        let in_chunk = |entry: usize| entry.saturating_sub(from).min(count as usize) as u32;
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
            for &part in &parts {
                total = op.combine(total, part);
            }
            at += ADDED as u32 * lanes;
        }
        from += count as usize;
    }
    let total = warp_group_reduce(cx, total, op.reducer(), lanes);
    if writes {
        let total = op.post(total, end.saturating_sub(begin) as u64);
        // SAFETY: as above.
        unsafe { y.write(row, epilogue.apply(total, old)) };
    }
}

/// Puts the products of `count` entries from `from` in shared memory, and perhaps of what else is in their vectors of `N`. There are no more
/// of them than a chunk has.
#[inline(always)]
#[track_caller]
fn stage<V, S, I, R, const N: usize>(
    cx: Block,
    a: &Csr<'_, V, I>,
    (from, count): (usize, u32),
    x: Input<S>,
    op: &R,
    products: SharedArray<'_, R::Accum>,
) where
    V: Element,
    S: Source,
    I: Integer + ConvertTo<u64>,
    R: Reduction<(V, S::Item)>,
{
    let mut at = cx.thread_rank();
    let Some(entries) = Vectors::<V, I, N>::of(a, from, count) else {
        let entries = a.entries(from, from + count as usize);
        one_by_one(&entries, at as usize, CSR_STAGED_THREADS, x, op, |entry, product| {
            // SAFETY: of an entry of the chunk, which is this thread's alone until the barrier.
            unsafe { products.store(place::<R::Accum>(entry), product) };
        });
        return;
    };
    if entries.vectors() <= CSR_STAGED_THREADS as u32 {
        put::<V, S, I, R, N, 1>(&entries, at, x, op, products);
        return;
    }
    while at < entries.vectors() {
        put::<V, S, I, R, N, AHEAD>(&entries, at, x, op, products);
        at += (AHEAD * CSR_STAGED_THREADS) as u32;
    }
}

/// Puts the products of the vector `at` and of `M - 1` others, each as far from the one before as there are threads, in shared memory.
#[inline(always)]
#[track_caller]
fn put<V, S, I, R, const N: usize, const M: usize>(
    entries: &Vectors<'_, V, I, N>,
    at: u32,
    x: Input<S>,
    op: &R,
    products: SharedArray<'_, R::Accum>,
) where
    V: Element,
    S: Source,
    I: Integer + ConvertTo<u64>,
    R: Reduction<(V, S::Item)>,
{
    if at >= entries.vectors() {
        return;
    }
    let vector = |m: usize| at + (m * CSR_STAGED_THREADS) as u32;
    let loaded = entries.load::<M>(M, vector);
    let found = entries.products(&loaded, M, x, op);
    for (m, found) in found.iter().enumerate() {
        if vector(m) < entries.vectors() {
            // No gap lies inside a vector.
            let first = place::<R::Accum>(vector(m) as usize * N);
            for (k, &product) in found.iter().enumerate() {
                // SAFETY: of a vector of the chunk, which is this thread's alone until the barrier.
                unsafe { products.store(first + k, product) };
            }
        }
    }
}
