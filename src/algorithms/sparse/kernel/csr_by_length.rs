//! The kernels of products of a matrix in compressed rows and a vector, for short rows with some long rows and a few giant rows among them.

use kernel_primitives::functor::{Epilogue, Reduction};
use kernel_primitives::input::Source;
use kernel_primitives::prelude::*;
use kernel_primitives::simt::WARP;
use kernel_primitives::view::SharedStorage;

use super::csr::{CSR_FIRST_ENTRIES, CSR_THREADS, Csr, Entries, ahead, blocks, bounds, read, sum, write};
use super::csr_path::ROOM;

/// The most entries of a row that one lane has.
pub const CSR_SHORT: usize = 16;

/// The most entries of a row that one warp has. A longer row is a giant, and this is the most entries of its shares.
pub const CSR_SHARE: usize = 8192;

/// The number of entries that a lane has in flight if a warp has a row. In a lane's own row, it is this number after the first entries.
const AHEAD: usize = 4;

/// The number of entries of a share that a thread has in flight.
const SHARE_AHEAD: usize = 8;

/// Returns whether these kernels combine results that accumulate in `A`. Wider results take more shared memory than blocks have on some
/// GPUs.
pub const fn csr_by_length_fits<A: Element>() -> bool {
    <ReduceStorage<A> as SharedStorage>::BYTES <= ROOM
}

/// A kernel of [`algorithms::spmv`](kernel_primitives::algorithms::spmv) by the length of each row. A lane has a short row, as in
/// [`csr_rows`](struct@csr_rows). The longer rows of a warp have all its lanes, one row after the other. The first blocks share the giant
/// rows.
///
/// For each share, `shares` has the row, and the place of the share's first entry in the row. The total of the share goes to the same place
/// of `partials`, for [`csr_giant_rows`](struct@csr_giant_rows).
///
/// The value that the epilogue reads is in `z`, or in `y` if `z` is empty.
///
/// If another launch has changed rows or entries since the matrix was checked, there is a fault or wrong results, but no access outside.
#[kernel(launch(pub(crate)), threads(CSR_THREADS), one_dimensional, min_blocks(blocks::<R::Accum>([8, 8, 6])))]
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
    // These are the lanes whose row has the whole warp. All lanes have the same bits, so they take the same turns.
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

/// Returns the total of the entries `first`, `first + step` and so on. Up to `N` of them are in flight.
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

/// The kernel of [`algorithms::spmv`](kernel_primitives::algorithms::spmv) after [`csr_rows_by_length`](struct@csr_rows_by_length), if
/// there are giant rows. It adds up their shares, in order. Each block has one row.
///
/// For each row, `giants` has its number, its first share, and the share after its last one.
#[kernel(launch(pub(crate)), threads(CSR_THREADS), one_dimensional, min_blocks(blocks::<R::Accum>([8, 8, 6])))]
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
