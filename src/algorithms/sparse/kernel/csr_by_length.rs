//! The kernels of products of a matrix in compressed rows and a vector, for short rows with some long ones and few giant ones among them.

use kernel_primitives::functor::{Epilogue, Reduction};
use kernel_primitives::input::Source;
use kernel_primitives::prelude::*;
use kernel_primitives::simt::WARP;
use kernel_primitives::view::SharedStorage;

use super::csr::{CSR_FIRST_ENTRIES, CSR_THREADS, Csr, Entries, ahead, blocks, bounds, read, sum, write};
use super::csr_path::ROOM;

/// The most entries of a row that a lane has to itself.
pub const CSR_SHORT: usize = 16;

/// The most entries of a row that a warp has to itself, and of a share of a longer one, which is a giant.
pub const CSR_SHARE: usize = 8192;

/// Entries that a lane has under way where a warp has a row, and after the first ones of its own row.
const AHEAD: usize = 4;

/// Entries of a share that a thread has under way.
const SHARE_AHEAD: usize = 8;

/// Whether results that accumulate in `A` are combined by these kernels: wider ones take more shared memory than blocks have on some GPUs.
pub const fn csr_by_length_fits<A: Element>() -> bool {
    <ReduceStorage<A> as SharedStorage>::BYTES <= ROOM
}

/// A kernel of [`algorithms::spmv`](kernel_primitives::algorithms::spmv) by the length of each row: a lane has a short row to itself, as in
/// [`csr_rows`](struct@csr_rows), longer ones are their warp's, one after the other, and the first blocks share the giant ones.
///
/// Of each share, `shares` has the row and the place of its first entry among the row's. Its total goes to the same place of `partials`, for
/// [`csr_giant_rows`](struct@csr_giant_rows).
///
/// What the epilogue reads is in `z`, or in `y` if `z` is empty.
///
/// Rows and entries that another launch has changed since the matrix was checked are a fault, or wrong numbers, and no access
/// outside.
#[kernel(launch(pub(crate)), threads(CSR_THREADS), min_blocks(blocks::<R::Accum>([8, 8, 6])))]
#[allow(clippy::too_many_arguments, reason = "a kernel's parameters")]
pub fn csr_rows_by_length<V, S, I, R, E>(
    cx: Block,
    offsets: Global<I>,
    columns: Global<I>,
    values: Global<V>,
    x: Input<S>,
    shares: Global<[u64; 2]>,
    mut partials: GlobalMut<R::Accum>,
    z: Global<E::Output>,
    mut y: GlobalMut<E::Output>,
    op: R,
    epilogue: E,
    mut totals: Shared<ReduceStorage<R::Accum>>,
) where
    V: Element,
    S: Source,
    I: Integer + ConvertTo<u64>,
    R: Reduction<(V, S::Item)> + KernelParam,
    E: Epilogue<R::Output> + KernelParam,
{
    let a = Csr { offsets, columns, values };
    let (block, thread) = (cx.block_rank(), cx.thread_rank() as usize);
    if block < shares.len() {
        let [row, first] = shares[block];
        let (begin, end) = a.bounds(row as usize);
        let begin = begin.saturating_add(first as usize).min(end);
        let entries = a.entries(begin, begin.saturating_add(CSR_SHARE).min(end));
        let total = total::<V, S, I, R, SHARE_AHEAD>(&entries, thread, CSR_THREADS, x, &op);
        let total = block_reduce(cx, &mut totals, total, op.reducer());
        if thread == 0 {
            // SAFETY: the share's place, which no other block has.
            unsafe { partials.write(block, total) };
        }
        return;
    }

    let row = (block - shares.len()) * CSR_THREADS + thread;
    let (begin, end) = a.bounds(row);
    let len = end.saturating_sub(begin);
    let writes = row < a.rows() && len <= CSR_SHARE;
    // SAFETY: a row is of one thread of these blocks, and the others write no rows.
    let old = if writes { unsafe { read::<R::Output, E>(&y, z, row, &epilogue) } } else { E::Output::ZERO };
    let own = a.entries(begin, if len <= CSR_SHORT { end } else { begin });
    let first = const { ahead::<R::Accum>(CSR_FIRST_ENTRIES) };
    let products = own.products::<S, R, CSR_FIRST_ENTRIES>(0, 1, first, x, &op);
    let mut result = sum::<(V, S::Item), R>(&op, op.identity(), &products);
    let mut at = first;
    while at < own.len() {
        result = sum::<(V, S::Item), R>(&op, result, &own.products::<S, R, AHEAD>(at, 1, AHEAD, x, &op));
        at += AHEAD;
    }
    // Each lane's row that is the warp's. All lanes have the same bits, and so take the same turns.
    let mut of_warp = cx.ballot(FULL_MASK, len > CSR_SHORT && writes);
    while of_warp != 0 {
        let source = of_warp.trailing_zeros();
        of_warp &= of_warp - 1;
        let begin = cx.shuffle(FULL_MASK, begin as u64, source, WARP) as usize;
        let len = cx.shuffle(FULL_MASK, len as u32, source, WARP) as usize;
        let entries = a.entries(begin, begin.saturating_add(len));
        let total = total::<V, S, I, R, AHEAD>(&entries, cx.lane() as usize, WARP as usize, x, &op);
        let total = warp_reduce(cx, total, op.reducer());
        if cx.lane() == source {
            result = total;
        }
    }
    if writes {
        let result = op.post(result, len as u64);
        // SAFETY: as above.
        unsafe { y.write(row, epilogue.apply(result, old)) };
    }
}

/// The total of the entries `first`, `first + step` and so on. Up to `N` are under way.
#[inline(always)]
#[track_caller]
fn total<V, S, I, R, const N: usize>(
    entries: &Entries<'_, V, I>,
    first: usize,
    step: usize,
    x: Input<S>,
    op: &R,
) -> R::Accum
where
    V: Element,
    S: Source,
    I: Integer + ConvertTo<u64>,
    R: Reduction<(V, S::Item)>,
{
    let most = const { ahead::<R::Accum>(N) };
    let mut total = op.identity();
    let mut at = first;
    while at < entries.len() {
        total = sum::<(V, S::Item), R>(op, total, &entries.products::<S, R, N>(at, step, most, x, op));
        at += most * step;
    }
    total
}

/// The kernel of [`algorithms::spmv`](kernel_primitives::algorithms::spmv) after [`csr_rows_by_length`](struct@csr_rows_by_length), if there are
/// giant rows: adds up their shares, in order. A block a row.
///
/// Of each row, `giants` has its number, its first share, and the one after its last.
#[kernel(launch(pub(crate)), threads(CSR_THREADS), min_blocks(blocks::<R::Accum>([8, 8, 6])))]
#[allow(clippy::too_many_arguments, reason = "a kernel's parameters")]
pub fn csr_giant_rows<V, T, I, R, E>(
    cx: Block,
    offsets: Global<I>,
    giants: Global<[u64; 3]>,
    partials: Global<R::Accum>,
    z: Global<E::Output>,
    mut y: GlobalMut<E::Output>,
    op: R,
    epilogue: E,
    mut totals: Shared<ReduceStorage<R::Accum>>,
) where
    V: Element,
    T: Copy,
    I: Integer + ConvertTo<u64>,
    R: Reduction<(V, T)> + KernelParam,
    E: Epilogue<R::Output> + KernelParam,
{
    let [row, first, end] = giants[cx.block_rank()];
    let (row, first, end) = (row as usize, first as usize, end as usize);
    let mut total = op.identity();
    let mut at = first + cx.thread_rank() as usize;
    while at < end {
        let mut parts = [op.identity(); AHEAD];
        for (k, part) in parts.iter_mut().enumerate() {
            let at = at + k * CSR_THREADS;
            if at < end {
                *part = partials[at];
            }
        }
        total = sum::<(V, T), R>(&op, total, &parts);
        at += AHEAD * CSR_THREADS;
    }
    let total = block_reduce(cx, &mut totals, total, op.reducer());
    if cx.thread_rank() == 0 {
        let (begin, end) = bounds(offsets, row);
        // SAFETY: a row is of one block, of which one thread accesses it.
        unsafe { write(&mut y, z, row, op.post(total, end.saturating_sub(begin) as u64), &epilogue) };
    }
}
