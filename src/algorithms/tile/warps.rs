//! The parts that kernels share that compact tiles.

use core::marker::PhantomData;

use kernel_primitives::grid::Chain;
use kernel_primitives::input::Source;
use kernel_primitives::prelude::*;
use kernel_primitives::simt::WARP;
use kernel_primitives::view::SharedStorage;

/// Shared memory for a `T` of each warp. All of them are read together.
pub struct WarpStorage<T, const WARPS: usize>(PhantomData<T>);

// SAFETY: uninitialised elements.
unsafe impl<T: Element, const WARPS: usize> SharedStorage for WarpStorage<T, WARPS> {
    const BYTES: usize = WARPS * size_of::<T>();
    const ALIGN: usize = 16;
}

/// Puts the `value` of each warp's first lane into an array. All threads may read the array after a barrier.
#[track_caller]
pub(crate) fn put_by_warp<'k, T: Element, const WARPS: usize>(
    cx: Block,
    shared: &mut Shared<'k, WarpStorage<T, WARPS>>,
    value: T,
) -> SharedArray<'k, T> {
    shared.enter();
    let values = shared.array::<T>(0, WARPS);
    if cx.lane() == 0 {
        // SAFETY: the warp's own element.
        unsafe { values.store(cx.warp() as usize, value) };
    }
    values
}

/// Returns the count of the warps before, and that of all warps. It has one barrier.
#[track_caller]
pub(crate) fn add_by_warp<const WARPS: usize>(
    cx: Block,
    shared: &mut Shared<WarpStorage<u32, WARPS>>,
    count: u32,
) -> (u32, u32) {
    let counts = put_by_warp(cx, shared, count);
    cx.barrier();
    // SAFETY: all warps wrote theirs before the barrier.
    let counts = unsafe { counts.load_items::<WARPS>(0) };
    let (mut before, mut total) = (0, 0);
    for (warp, count) in counts.iter().enumerate() {
        if warp < cx.warp() as usize {
            before += count;
        }
        total += count;
    }
    (before, total)
}

/// Writes the `count` elements of the array from `from` to `out`, from `first`. Whole warps of the block call it, `threads` threads, each
/// with its rank among them. Each thread has `AHEAD` elements in flight, and the accesses of a warp begin at multiples of 32. It faults
/// unless there is room.
///
/// # Safety
/// As for [`SharedArray::load`] of each, and [`GlobalMut::write`], of which no other block writes one.
#[track_caller]
pub(crate) unsafe fn copy_out<T: Element, const AHEAD: usize>(
    (rank, threads): (u32, u32),
    kept: SharedArray<'_, T>,
    from: u32,
    count: u32,
    out: &mut GlobalMut<T>,
    first: usize,
) {
    // SAFETY: the caller's contract.
    let item = |at: u32| unsafe { kept.load((from + at) as usize) };
    if count == 0 {
        return;
    }
    if count as usize > out.len() || first > out.len() - count as usize {
        // SAFETY: the caller's contract; a fault if it is outside, as it is, unless it wraps.
        return unsafe { out.write(first.saturating_add(count as usize - 1), item(count - 1)) };
    }
    let skip = first as u32 % WARP;
    if rank < WARP && rank >= skip && rank - skip < count {
        // SAFETY: inside, and the caller's contract.
        unsafe { out.write_unchecked(first + (rank - skip) as usize, item(rank - skip)) };
    }
    let mut at = WARP - skip + rank;
    while at + (AHEAD as u32 - 1) * threads < count {
        let mut values = [T::ZERO; AHEAD];
        for (k, value) in values.iter_mut().enumerate() {
            *value = item(at + k as u32 * threads);
        }
        for (k, &value) in values.iter().enumerate() {
            // SAFETY: as above.
            unsafe { out.write_unchecked(first + (at + k as u32 * threads) as usize, value) };
        }
        at += AHEAD as u32 * threads;
    }
    while at < count {
        // SAFETY: as above.
        unsafe { out.write_unchecked(first + at as usize, item(at)) };
        at += threads;
    }
}

/// Returns an item of the input, for a place where the input has none. So predicates and comparisons get only items of the input. If the
/// input is empty, the item is zero.
#[inline(always)]
#[track_caller]
pub(crate) fn any_item<S: Source<Item: Element>>(x: Input<S>) -> S::Item {
    x.get(0).unwrap_or(S::Item::ZERO)
}

/// Returns which items of a vector differ from the item before. The first item has the lowest bit. The vectors of a warp's lanes are
/// contiguous, and all lanes call it, round by round. `earlier` is the last lane's item of the round before. In the first round, it is the
/// item before all.
#[track_caller]
pub(crate) fn differing<T: Element + PartialEq, const N: usize>(cx: Block, earlier: &mut T, items: &[T; N]) -> u32 {
    let lane = cx.lane();
    let given = if lane == WARP - 1 { *earlier } else { items[N - 1] };
    *earlier = items[N - 1];
    let mut last = cx.shuffle(FULL_MASK, given, (lane + WARP - 1) % WARP, WARP);
    let mut bits = 0;
    for (i, &item) in items.iter().enumerate() {
        bits |= (!last.equals(item) as u32) << i;
        last = item;
    }
    bits
}

/// Announces the result of this tile to the tiles after it. The block's first warp does this. Without a chain, there is one tile.
#[inline(always)]
#[track_caller]
pub(crate) fn announce<T: Element>(cx: Block, chain: &Chain<'_, '_, T>, tile: usize, total: T) {
    if cx.warp() == 0 && !chain.is_empty() {
        chain.announce(tile, total);
    }
}

/// Returns the result of all tiles before, after this one is [announced](announce). All lanes of the block's first warp call it.
#[inline(always)]
#[track_caller]
pub(crate) fn prefix<T: Element, R: Reducer<T>>(chain: &Chain<'_, '_, T>, tile: usize, total: T, op: &R) -> T {
    if chain.is_empty() { op.identity() } else { chain.prefix_announced(tile, total, op) }
}
