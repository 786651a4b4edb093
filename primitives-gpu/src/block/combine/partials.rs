//! Common part of a block's collectives: one partial result for each warp, in shared memory.

use core::mem::size_of;
use core::panic::Location;

use crate::element::Element;
use crate::functor::Reducer;
use crate::simt::{Block, FaultKind, WARP};
use crate::view::SharedArray;

/// The number of warps in the largest block.
pub(in crate::block) const MAX_WARPS: usize = 32;

/// The number of warps of the block. More than the largest block has is a fault.
#[track_caller]
pub(in crate::block) fn warps(cx: Block<'_>) -> usize {
    let warps = cx.warps() as usize;
    if warps > MAX_WARPS {
        let args = [cx.block_threads() as u64, MAX_WARPS as u64 * WARP as u64];
        cx.raise(FaultKind::BadShape, args, Location::caller());
    }
    warps
}

/// Combines the items of a thread in order, as a tree whose branches are independent of each other.
pub(crate) fn tree<T: Element, R: Reducer<T>, const N: usize>(items: &[T; N], op: &R) -> T {
    const { assert!(N > 0, "a collective has at least one item a thread") };
    let mut items = *items;
    // The source has each level, because the compiler does not unroll loops whose limits change from one level to the next.
    macro_rules! levels {
        ($($apart:literal)*) => {$(
            let mut i = 0;
            while i + $apart < N {
                items[i] = op.apply(items[i], items[i + $apart]);
                i += 2 * $apart;
            }
        )*};
    }
    levels!(1 2 4 8 16 32);
    let mut i = 64;
    while i < N {
        items[0] = op.apply(items[0], items[i]);
        i += 64;
    }
    items[0]
}

/// The number of elements that a thread reads at once from `count` partial results. A broadcast of 16 bytes costs no more than a broadcast
/// of 4.
const fn chunk<T>(count: usize) -> usize {
    if size_of::<T>() > 16 {
        1
    } else if size_of::<T>() > 8 || count <= 4 {
        4
    } else {
        8
    }
}

/// Writes `piece` of each warp's lane `source` to the array, and the identity after the last one, up to the end of the last chunk that is
/// read.
///
/// # Safety
/// As for [`SharedArray::store`]: nobody else accesses the array until the next barrier. There are at least two warps.
#[track_caller]
pub(in crate::block) unsafe fn put<T: Element, R: Reducer<T>>(
    cx: Block<'_>,
    partials: SharedArray<'_, T>,
    warps: usize,
    source: u32,
    piece: T,
    op: &R,
) {
    let (warp, lane) = (cx.warp() as usize, cx.lane());
    // SAFETY: the caller's contract; each warp has its own element, and those after the last are the first warp's.
    unsafe {
        if lane == source {
            partials.store(warp, piece);
        }
        let chunk = chunk::<T>(warps);
        if warp == 0 && !warps.is_multiple_of(chunk) {
            let after = warps + lane as usize;
            if after < warps.next_multiple_of(chunk) {
                partials.store(after, op.identity());
            }
        }
    }
}

/// Combines the partial results of all `warps`, in order. All threads that call it get the same bits.
///
/// # Safety
/// [`put`] wrote them, a barrier lies in between, and nobody writes them until the next. The array starts at a multiple of
/// 16 bytes.
#[track_caller]
pub(in crate::block) unsafe fn fold<T: Element, R: Reducer<T>>(
    partials: SharedArray<'_, T>,
    warps: usize,
    op: &R,
) -> T {
    // SAFETY: the caller's contract.
    unsafe {
        match chunk::<T>(warps) {
            4 => fold_by::<_, _, 4>(partials, 0, warps, op),
            8 => fold_by::<_, _, 8>(partials, 0, warps, op),
            _ => fold_by::<_, _, 1>(partials, 0, warps, op),
        }
    }
}

/// Combines the partial results `first` to `first + count`, in order. Those around them belong to others.
///
/// # Safety
/// As for [`fold`].
#[track_caller]
pub(in crate::block) unsafe fn fold_part<T: Element, R: Reducer<T>>(
    partials: SharedArray<'_, T>,
    first: usize,
    count: usize,
    op: &R,
) -> T {
    // SAFETY: the caller's contract.
    unsafe {
        match count {
            // If the last part is shorter than the others, the first element may have any alignment.
            4 if size_of::<T>() <= 16 && first.is_multiple_of(4) => fold_by::<_, _, 4>(partials, first, 4, op),
            8 if size_of::<T>() <= 8 && first.is_multiple_of(8) => fold_by::<_, _, 8>(partials, first, 8, op),
            _ => fold_by::<_, _, 1>(partials, first, count, op),
        }
    }
}

/// # Safety
/// As for [`fold`]: of all chunks that start before `first + count`.
#[track_caller]
unsafe fn fold_by<T: Element, R: Reducer<T>, const CHUNK: usize>(
    partials: SharedArray<'_, T>,
    first: usize,
    count: usize,
    op: &R,
) -> T {
    // SAFETY: the caller's contract.
    unsafe {
        let mut total = tree(&partials.load_items::<CHUNK>(first), op);
        let mut i = CHUNK;
        while i < count {
            total = op.apply(total, tree(&partials.load_items::<CHUNK>(first + i), op));
            i += CHUNK;
        }
        total
    }
}

/// Returns the combination of the partial results before `own`, in order, or `None` if there are none, and the combination of all `warps`.
///
/// # Safety
/// As for [`fold`].
#[track_caller]
pub(in crate::block) unsafe fn scan<T: Element, R: Reducer<T>>(
    partials: SharedArray<'_, T>,
    warps: usize,
    own: usize,
    op: &R,
) -> (Option<T>, T) {
    // SAFETY: the caller's contract.
    unsafe {
        match chunk::<T>(warps) {
            4 => scan_by::<_, _, 4>(partials, warps, own, op),
            8 => scan_by::<_, _, 8>(partials, warps, own, op),
            _ => scan_by::<_, _, 1>(partials, warps, own, op),
        }
    }
}

/// # Safety
/// As for [`scan`]: of all chunks that start before `warps`.
#[track_caller]
unsafe fn scan_by<T: Element, R: Reducer<T>, const CHUNK: usize>(
    partials: SharedArray<'_, T>,
    warps: usize,
    own: usize,
    op: &R,
) -> (Option<T>, T) {
    // SAFETY: the caller's contract.
    unsafe {
        let items = partials.load_items::<CHUNK>(0);
        let mut total = items[0];
        let mut before = total;
        let mut i = 1;
        while i < CHUNK {
            if i == own {
                before = total;
            }
            total = op.apply(total, items[i]);
            i += 1;
        }
        let mut start = CHUNK;
        while start < warps {
            let items = partials.load_items::<CHUNK>(start);
            let mut i = 0;
            while i < CHUNK {
                if start + i == own {
                    before = total;
                }
                total = op.apply(total, items[i]);
                i += 1;
            }
            start += CHUNK;
        }
        (if own > 0 { Some(before) } else { None }, total)
    }
}
