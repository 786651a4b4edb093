//! What collectives of a block share: one partial result a warp, in shared memory.

use core::mem::size_of;
use core::panic::Location;

use crate::element::Element;
use crate::functor::Reducer;
use crate::simt::{Block, FaultKind, WARP};
use crate::view::SharedArray;

/// Warps in the largest block.
pub(super) const MAX_WARPS: usize = 32;

/// The warps of the block; more than the largest block has is a fault.
#[inline(always)]
#[track_caller]
pub(super) fn warps(cx: Block<'_>) -> usize {
    let warps = cx.warps() as usize;
    if warps > MAX_WARPS {
        let args = [cx.block_threads() as u64, MAX_WARPS as u64 * WARP as u64];
        cx.raise(FaultKind::BadShape, args, Location::caller());
    }
    warps
}

/// Combines a thread's items in order, as a tree whose branches are independent of each other.
#[inline(always)]
pub(crate) fn tree<T: Element, R: Reducer<T>, const N: usize>(items: &[T; N], op: &R) -> T {
    const { assert!(N > 0, "a collective has at least one item a thread") };
    let mut items = *items;
    let mut count = N;
    while count > 1 {
        let mut i = 0;
        while i < count / 2 {
            items[i] = op.apply(items[2 * i], items[2 * i + 1]);
            i += 1;
        }
        if count % 2 == 1 {
            items[count / 2] = items[count - 1];
        }
        count = count.div_ceil(2);
    }
    items[0]
}

/// Elements that a thread reads at once: a broadcast of 16 bytes costs no more than one of 4, and the registers are few.
const fn chunk<T>(count: usize) -> usize {
    if size_of::<T>() <= 8 && count.is_multiple_of(8) {
        8
    } else if size_of::<T>() <= 16 && count.is_multiple_of(4) {
        4
    } else if size_of::<T>() <= 16 && count.is_multiple_of(2) {
        2
    } else {
        1
    }
}

/// Combines the partial results `first` to `first + count`, in order. All threads that do it get the same bits. `first` is
/// a multiple of `count`.
///
/// # Safety
/// As for [`SharedArray::load`], for each of them; the array starts at a multiple of 16 bytes.
#[inline(always)]
#[track_caller]
pub(super) unsafe fn fold<T: Element, R: Reducer<T>>(
    partials: SharedArray<'_, T>,
    first: usize,
    count: usize,
    op: &R,
) -> T {
    // SAFETY: the caller's contract.
    unsafe {
        match chunk::<T>(count) {
            8 => fold_by::<_, _, 8>(partials, first, count, op),
            4 => fold_by::<_, _, 4>(partials, first, count, op),
            2 => fold_by::<_, _, 2>(partials, first, count, op),
            _ => fold_by::<_, _, 1>(partials, first, count, op),
        }
    }
}

/// As [`fold`], with any `first`.
///
/// # Safety
/// As for [`fold`].
#[inline(always)]
#[track_caller]
pub(super) unsafe fn fold_singly<T: Element, R: Reducer<T>>(
    partials: SharedArray<'_, T>,
    first: usize,
    count: usize,
    op: &R,
) -> T {
    // SAFETY: the caller's contract.
    unsafe { fold_by::<_, _, 1>(partials, first, count, op) }
}

/// # Safety
/// As for [`fold`]; `count` is a multiple of `CHUNK`.
#[inline(always)]
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

/// The partial results before `own`, combined in order, or `None` if there are none.
///
/// # Safety
/// As for [`fold`], with `first` zero.
#[inline(always)]
#[track_caller]
pub(super) unsafe fn before<T: Element, R: Reducer<T>>(
    partials: SharedArray<'_, T>,
    count: usize,
    own: usize,
    op: &R,
) -> Option<T> {
    // SAFETY: the caller's contract.
    unsafe {
        match chunk::<T>(count) {
            8 => before_by::<_, _, 8>(partials, own, op),
            4 => before_by::<_, _, 4>(partials, own, op),
            2 => before_by::<_, _, 2>(partials, own, op),
            _ => before_by::<_, _, 1>(partials, own, op),
        }
    }
}

/// # Safety
/// As for [`before`]; the count is a multiple of `CHUNK`.
#[inline(always)]
#[track_caller]
unsafe fn before_by<T: Element, R: Reducer<T>, const CHUNK: usize>(
    partials: SharedArray<'_, T>,
    own: usize,
    op: &R,
) -> Option<T> {
    // SAFETY: the caller's contract.
    unsafe {
        let items = partials.load_items::<CHUNK>(0);
        let mut total = items[0];
        let mut i = 1;
        while i < CHUNK {
            if i < own {
                total = op.apply(total, items[i]);
            }
            i += 1;
        }
        let mut start = CHUNK;
        while start < own {
            let items = partials.load_items::<CHUNK>(start);
            let mut i = 0;
            while i < CHUNK {
                if start + i < own {
                    total = op.apply(total, items[i]);
                }
                i += 1;
            }
            start += CHUNK;
        }
        if own > 0 { Some(total) } else { None }
    }
}
