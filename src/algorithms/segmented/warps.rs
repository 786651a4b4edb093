//! The kernel of segmented reductions of few items. Two warps, or a block, reduce each segment.

use kernel_primitives::functor::Reduction;
use kernel_primitives::input::Source;
use kernel_primitives::prelude::*;
use kernel_primitives::simt::WARP;

use crate::algorithms::tile::by_vector;
use crate::algorithms::tile::warps::{WarpStorage, put_by_warp};

/// The number of threads of a block of [`segment_warps`](struct@segment_warps).
pub const SEGMENT_WARPS_THREADS: usize = 512;

/// The number of warps of such a block.
const SEGMENT_WARPS: usize = SEGMENT_WARPS_THREADS / WARP as usize;

/// The number of segments of a block. Two warps have all items of a segment of a thousand eight-byte items in flight.
pub const SEGMENT_PAIRS: usize = SEGMENT_WARPS / 2;

/// Returns the number of items of the largest segment that two warps of [`segment_warps`](struct@segment_warps) reduce. All warps of a
/// block reduce longer segments.
pub const fn segment_warp_items<S: Source>() -> usize {
    16 * WARP as usize * S::VECTOR
}

/// The kernel of [`algorithms::segmented_reduce`](kernel_primitives::algorithms::segmented_reduce) for small inputs, in one launch. Two
/// warps reduce a segment. A block reduces a segment that has more than [`segment_warp_items`] items.
#[kernel(launch(pub(crate)), threads(SEGMENT_WARPS_THREADS), one_dimensional, min_blocks(1))]
pub fn segment_warps<S, O, R>(
    cx: Block,
    x: Input<S>,
    offsets: Input<O>,
    mut out: GlobalMut<R::Output>,
    op: R,
    mut words: Shared<WarpStorage<u32, SEGMENT_WARPS>>,
    mut halves: Shared<WarpStorage<R::Accum, SEGMENT_WARPS>>,
    mut totals: Shared<ReduceStorage<R::Accum>>,
) where
    S: Source<Item: Element>,
    O: Source<Item: Integer + ConvertTo<u64>>,
    R: Reduction<S::Item, Output: Element> + KernelParam,
{
    let first = cx.block_rank() * SEGMENT_PAIRS;
    let (segment, half) = (first + cx.warp() as usize / 2, cx.warp() as usize % 2);
    // After the last segment come empty segments at its end, so that the last offset is checked even if it is the only one.
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

/// Returns the number of vectors that a thread has in flight. They have up to 128 bytes. It is one if the totals of sixteen items fill the
/// registers.
const fn under_way<S: Source>() -> usize {
    match (S::VECTOR, size_of::<S::Item>()) {
        (16, _) | (_, 65..) => 1,
        (_, 33..) => 2,
        (8, _) | (_, 17..) => 4,
        _ => 8,
    }
}

/// Reduces the share of a range of the input of one thread, which has a rank among several threads.
fn total_in_memory<S: Source<Item: Element>, R: Reduction<S::Item>>(
    x: Input<S>,
    range: core::ops::Range<usize>,
    share: (usize, usize),
    op: &R,
) -> R::Accum {
    match const { under_way::<S>() } {
        // With fewer items, half of the eight loads would only read the last vector again.
        8 if range.start % S::VECTOR + range.len() <= 4 * share.1 * S::VECTOR => {
            by_vector!(S, total_by::<S, R; VECTOR, 4>(x, range, share, op))
        }
        8 => by_vector!(S, total_by::<S, R; VECTOR, 8>(x, range, share, op)),
        4 => by_vector!(S, total_by::<S, R; VECTOR, 4>(x, range, share, op)),
        2 => by_vector!(S, total_by::<S, R; VECTOR, 2>(x, range, share, op)),
        _ => by_vector!(S, total_by::<S, R; VECTOR, 1>(x, range, share, op)),
    }
}

/// Works as [`total_in_memory`], by contiguous vectors, of which `AHEAD` are in flight.
fn total_by<S: Source<Item: Element>, R: Reduction<S::Item>, const N: usize, const AHEAD: usize>(
    x: Input<S>,
    range: core::ops::Range<usize>,
    (rank, threads): (usize, usize),
    op: &R,
) -> R::Accum {
    let mut totals = [op.identity(); N];
    let stride = threads * N;
    // All vectors are whole in the input. The items after the last vector are read one by one.
    let end = range.end.min(x.len() & !(N - 1));
    let last = end.wrapping_sub(1) & !(N - 1);
    let is_aligned = x.is_aligned::<N>(0);
    let mut first = (range.start & !(N - 1)) + rank * N;
    while first < end {
        let mut vectors = [[S::Item::ZERO; N]; AHEAD];
        // If there are no more vectors, this reads the last one again, so that no branch lies between the loads.
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
            // Most vectors have no items of other segments. For these, no item is tested.
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
