//! The kernel of segmented reductions of few items: warps or a block have a segment each.

use kernel_primitives::functor::Reduction;
use kernel_primitives::input::Source;
use kernel_primitives::prelude::*;
use kernel_primitives::simt::WARP;

use crate::algorithms::tile::by_vector;
use crate::algorithms::tile::warps::{WarpStorage, put_by_warp};

/// Threads of a block of [`segment_warps`](struct@segment_warps).
pub const SEGMENT_WARPS_THREADS: usize = 512;

/// Its warps.
const SEGMENT_WARPS: usize = SEGMENT_WARPS_THREADS / WARP as usize;

/// The segments of a block: two warps have all of a segment of a thousand eight-byte items under way.
pub const SEGMENT_PAIRS: usize = SEGMENT_WARPS / 2;

/// Items of the largest segment that two warps of [`segment_warps`](struct@segment_warps) reduce: longer ones all warps of its block do.
pub const fn segment_warp_items<S: Source>() -> usize {
    16 * WARP as usize * S::VECTOR
}

/// The kernel of [`algorithms::segmented_reduce`](kernel_primitives::algorithms::segmented_reduce) for small inputs, in one launch: two
/// warps reduce a segment, and a block one that has more than [`segment_warp_items`].
#[kernel(launch(pub(crate)), threads(SEGMENT_WARPS_THREADS), min_blocks(1))]
pub fn segment_warps<S, O, R>(
    cx: Block,
    x: Input<S>,
    offsets: Input<O>,
    mut out: GlobalMut<R::Output>,
    op: R,
    mut words: Shared<WarpStorage<u32, SEGMENT_WARPS>>,
    mut halves: Shared<WarpStorage<R::Accum, SEGMENT_WARPS>>,
    mut totals: Shared<ReduceStorage<R::Accum, SEGMENT_WARPS_THREADS>>,
) where
    S: Source<Item: Element>,
    O: Source<Item: Integer + ConvertTo<u64>>,
    R: Reduction<S::Item, Output: Element> + KernelParam,
{
    let first = cx.block_rank() * SEGMENT_PAIRS;
    let (segment, half) = (first + cx.warp() as usize / 2, cx.warp() as usize % 2);
    // After the last segment come empty ones at its end, so that the last offset is looked at even if it is the only one.
    let range = |segment: usize| {
        let at = |index: usize| offsets.get(index.min(offsets.len() - 1)).map_or(0, ConvertTo::<u64>::convert) as usize;
        at(segment)..at(segment + 1)
    };
    let own = range(segment);
    cx.require_at_most(own.start, own.end);
    cx.require_at_most(own.end, x.len());
    let is_long = own.len() > const { segment_warp_items::<S>() };
    let longs = put_by_warp(cx, &mut words, is_long as u32);
    let mut total = op.identity();
    if !is_long {
        let share = (half * WARP as usize + cx.lane() as usize, 2 * WARP as usize);
        total = total_in_memory::<S, R>(x, own.clone(), share, &op);
        total = warp_reduce(cx, total, op.reducer());
    }
    let halves = put_by_warp(cx, &mut halves, total);
    cx.barrier();
    if !is_long && half == 0 && cx.lane() == 0 && segment < offsets.len() - 1 {
        // SAFETY: all warps wrote theirs before the barrier; a segment is of two warps, of whose threads only the first writes.
        unsafe {
            let total = op.reducer().apply(total, halves.load(cx.warp() as usize + 1));
            out.write(segment, op.post(total, own.len() as u64));
        }
    }
    // SAFETY: all warps wrote theirs before the barrier.
    let longs = unsafe { longs.load_items::<SEGMENT_WARPS>(0) };
    let mut left = 0u32;
    for pair in 0..SEGMENT_PAIRS {
        left |= longs[2 * pair] << pair;
    }
    while left != 0 {
        let pair = left.trailing_zeros() as usize;
        left &= left - 1;
        let range = range(first + pair);
        let items = range.len() as u64;
        let share = (cx.thread_rank() as usize, SEGMENT_WARPS_THREADS);
        let total = total_in_memory::<S, R>(x, range, share, &op);
        let total = block_reduce(cx, &mut totals, total, op.reducer());
        if cx.thread_rank() == 0 {
            // SAFETY: a long segment is of one block, of whose threads only the first writes.
            unsafe { out.write(first + pair, op.post(total, items)) };
        }
    }
}

/// Vectors that a thread has under way: up to 128 bytes, and one where the totals of sixteen items fill its registers.
const fn under_way<S: Source>() -> usize {
    match (S::VECTOR, size_of::<S::Item>()) {
        (16, _) | (_, 65..) => 1,
        (_, 33..) => 2,
        (8, _) | (_, 17..) => 4,
        _ => 8,
    }
}

/// What one of so many threads, of this rank, has of a range of the input.
fn total_in_memory<S: Source<Item: Element>, R: Reduction<S::Item>>(
    x: Input<S>,
    range: core::ops::Range<usize>,
    share: (usize, usize),
    op: &R,
) -> R::Accum {
    match const { under_way::<S>() } {
        // Of fewer items, twice as many loads would be of the last vector.
        8 if range.start % S::VECTOR + range.len() <= 4 * share.1 * S::VECTOR => {
            by_vector!(S, total_by::<S, R; VECTOR, 4>(x, range, share, op))
        }
        8 => by_vector!(S, total_by::<S, R; VECTOR, 8>(x, range, share, op)),
        4 => by_vector!(S, total_by::<S, R; VECTOR, 4>(x, range, share, op)),
        2 => by_vector!(S, total_by::<S, R; VECTOR, 2>(x, range, share, op)),
        _ => by_vector!(S, total_by::<S, R; VECTOR, 1>(x, range, share, op)),
    }
}

/// As [`total_in_memory`]: by vectors side by side, `AHEAD` of which are under way.
fn total_by<S: Source<Item: Element>, R: Reduction<S::Item>, const N: usize, const AHEAD: usize>(
    x: Input<S>,
    range: core::ops::Range<usize>,
    (rank, threads): (usize, usize),
    op: &R,
) -> R::Accum {
    let mut totals = [op.identity(); N];
    let stride = threads * N;
    // Vectors are whole in the input; what it has after the last one goes by itself.
    let end = range.end.min(x.len() & !(N - 1));
    let last = end.wrapping_sub(1) & !(N - 1);
    let is_aligned = x.is_aligned::<N>(0);
    let mut first = (range.start & !(N - 1)) + rank * N;
    while first < end {
        let mut vectors = [[S::Item::ZERO; N]; AHEAD];
        // Where there are no more, the last one once more, so that no branch lies between the loads.
        let place = |v: usize| (first + v * stride).min(last);
        // SAFETY: whole vectors of the input; and aligned.
        unsafe {
            if is_aligned {
                for (v, items) in vectors.iter_mut().enumerate() {
                    *items = x.vector_inside(place(v));
                }
            } else {
                for (v, items) in vectors.iter_mut().enumerate() {
                    *items = x.items_inside(place(v));
                }
            }
        }
        for (v, items) in vectors.iter().enumerate() {
            let at = first + v * stride;
            // Most vectors have no items of other segments, and no item of those is asked about.
            if at >= range.start && at + N <= end {
                for (i, &item) in items.iter().enumerate() {
                    totals[i] = op.combine(totals[i], op.pre(item, (at + i - range.start) as u64));
                }
                continue;
            }
            let [from, to] = [range.start, end].map(|place| place.saturating_sub(at).min(N));
            for (i, &item) in items.iter().enumerate() {
                if i >= from && i < to {
                    totals[i] = op.combine(totals[i], op.pre(item, (at + i - range.start) as u64));
                }
            }
        }
        first += AHEAD * stride;
    }
    let at = end.max(range.start) + rank;
    if at < range.end
        && let Some(item) = x.get(at)
    {
        totals[0] = op.combine(totals[0], op.pre(item, (at - range.start) as u64));
    }
    thread_reduce(op.identity(), &totals, op.reducer())
}
