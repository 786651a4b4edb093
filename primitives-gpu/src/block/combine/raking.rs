//! Common part of a block's collectives that have one slot for each thread in shared memory. One warp combines all slots.
//!
//! A scan of each warp costs every warp five shuffles and the instructions around them. Here one warp scans for the whole block: each of
//! its lanes combines the values of `K` consecutive threads by itself, and only these combined values go through shuffles. The other warps
//! write and read a slot, and wait.

use core::mem::size_of;
use core::panic::Location;

use super::partials::{self, MAX_WARPS};
use super::scan::exclusive;
use crate::element::Element;
use crate::functor::Reducer;
use crate::simt::{Block, FULL_MASK, FaultKind, WARP};
use crate::view::SharedArray;
use crate::warp;

/// The slot of the total of the block.
const TOTAL: usize = 0;

/// The slots after each 32, 16 bytes. They let lanes that read vectors at a distance of `K` slots use different banks.
const fn padding<T>() -> usize {
    if size_of::<T>() > 0 && 16 % size_of::<T>() == 0 { 16 / size_of::<T>() } else { 0 }
}

/// The place of the slot of the thread of `rank`. It depends only on the size of an element. So a thread has the same bytes in all uses of
/// [`Shared::enter_by_owners`](crate::view::Shared::enter_by_owners) with that size.
#[inline(always)]
const fn place<T>(rank: usize) -> usize {
    let before = if padding::<T>() > 0 { padding::<T>() } else { 1 };
    before + rank + rank / WARP as usize * padding::<T>()
}

/// The number of threads whose values one lane combines: a power of two, so that they are in one row of 32 slots.
const fn per_lane(threads: usize) -> usize {
    threads.div_ceil(WARP as usize).next_power_of_two()
}

/// The number of elements of the storage of a block of up to `threads` threads.
pub(super) const fn slots<T>(threads: usize) -> usize {
    place::<T>(per_lane(threads) * WARP as usize)
}

/// A block of more than `THREADS` threads is a fault.
#[track_caller]
pub(super) fn check<const THREADS: usize>(cx: Block<'_>) {
    const { assert!(THREADS <= MAX_WARPS * WARP as usize, "a block has at most 1024 threads") };
    if cx.block_threads() as usize > THREADS {
        cx.raise(FaultKind::BadShape, [cx.block_threads() as u64, THREADS as u64], Location::caller());
    }
}

/// The warp that combines, which has 32 lanes. It differs between blocks. Warps with the same number share a scheduler, which would
/// otherwise do the work of all blocks of a multiprocessor while the others had none.
#[inline(always)]
pub(super) fn raker(cx: Block<'_>) -> u32 {
    let at = cx.block_idx();
    let spread = at.x.wrapping_add(at.y).wrapping_add(at.z).wrapping_mul(0x9e37_79b9);
    ((spread as u64 * (cx.block_threads() / WARP) as u64) >> 32) as u32
}

/// Writes the value of this thread to its slot.
///
/// # Safety
/// As for [`SharedArray::store`]: nobody else accesses the slot until the next barrier.
#[inline(always)]
#[track_caller]
pub(super) unsafe fn put<T: Element>(cx: Block<'_>, slots: SharedArray<'_, T>, value: T) {
    // SAFETY: the caller's contract.
    unsafe { slots.store(place::<T>(cx.thread_rank() as usize), value) }
}

/// Reads the value that [`rake_scan`] left for this thread.
///
/// # Safety
/// As for [`SharedArray::load`].
#[inline(always)]
#[track_caller]
pub(super) unsafe fn take<T: Element>(cx: Block<'_>, slots: SharedArray<'_, T>) -> T {
    // SAFETY: the caller's contract.
    unsafe { slots.load(place::<T>(cx.thread_rank() as usize)) }
}

/// Leaves the total of the block for [`total`]. All lanes must have the same bits of it.
///
/// # Safety
/// As for [`SharedArray::store`].
#[inline(always)]
#[track_caller]
pub(super) unsafe fn put_total<T: Element>(cx: Block<'_>, slots: SharedArray<'_, T>, total: T) {
    if cx.lane() == 0 {
        // SAFETY: the caller's contract.
        unsafe { slots.store(TOTAL, total) }
    }
}

/// Reads the total that the raking warp left.
///
/// # Safety
/// As for [`SharedArray::load`].
#[inline(always)]
#[track_caller]
pub(super) unsafe fn total<T: Element>(slots: SharedArray<'_, T>) -> T {
    // SAFETY: the caller's contract.
    unsafe { slots.load(TOTAL) }
}

/// Calls `$f` with the number of threads whose values a lane has as its constant.
macro_rules! per_lane {
    ($threads:ident, $f:ident($($arg:expr),*)) => {
        match const { per_lane($threads) } {
            1 => $f::<_, _, 1>($($arg),*),
            2 => $f::<_, _, 2>($($arg),*),
            4 => $f::<_, _, 4>($($arg),*),
            8 => $f::<_, _, 8>($($arg),*),
            16 => $f::<_, _, 16>($($arg),*),
            _ => $f::<_, _, 32>($($arg),*),
        }
    };
}

/// Combines the values of all threads, in order. Every lane gets the result. It is for one warp of 32 lanes.
///
/// # Safety
/// All threads have [`put`] their values, a barrier lies in between, and nobody writes them until the next.
#[inline(always)]
#[track_caller]
pub(super) unsafe fn rake<T: Element, R: Reducer<T>, const THREADS: usize>(
    cx: Block<'_>,
    slots: SharedArray<'_, T>,
    op: &R,
) -> T {
    // SAFETY: the caller's contract.
    let items = unsafe { per_lane!(THREADS, folded(cx, slots, op)) };
    warp::reduce(cx, items, op)
}

/// # Safety
/// As for [`rake`].
#[inline(always)]
#[track_caller]
unsafe fn folded<T: Element, R: Reducer<T>, const K: usize>(cx: Block<'_>, slots: SharedArray<'_, T>, op: &R) -> T {
    // SAFETY: the caller's contract.
    partials::tree(&unsafe { load::<_, _, K>(cx, slots, op) }, op)
}

/// Computes, from the values of all threads, the total, for [`total`], and for [`take`] the combination before each thread's own value: the
/// values of the lower threads, after `first` or the identity. It is for one warp of 32 lanes.
///
/// If `first` is wanted, it is called with the total in all lanes; the result of the first lane counts.
///
/// # Safety
/// As for [`rake`], and nobody else accesses the slots until the next barrier.
#[inline(always)]
#[track_caller]
pub(super) unsafe fn rake_scan<T: Element, R: Reducer<T>, const THREADS: usize>(
    cx: Block<'_>,
    slots: SharedArray<'_, T>,
    op: &R,
    first: Option<impl FnOnce(T) -> T>,
) {
    // SAFETY: the caller's contract.
    unsafe { per_lane!(THREADS, scanned(cx, slots, op, first)) }
}

/// # Safety
/// As for [`rake_scan`].
#[track_caller]
unsafe fn scanned<T: Element, R: Reducer<T>, const K: usize>(
    cx: Block<'_>,
    slots: SharedArray<'_, T>,
    op: &R,
    first: Option<impl FnOnce(T) -> T>,
) {
    // SAFETY: the caller's contract.
    let items = unsafe { load::<_, _, K>(cx, slots, op) };
    let own = partials::tree(&items, op);
    let upto = warp::inclusive(cx, FULL_MASK, own, op);
    let mut below = warp::below(cx, FULL_MASK, upto, own, op).unwrap_or(op.identity());
    if let Some(first) = first {
        let first = first(cx.shuffle(FULL_MASK, upto, WARP - 1, WARP));
        below = op.apply(cx.shuffle(FULL_MASK, first, 0, WARP), below);
    }
    let last = const { WARP as usize - 1 };
    let at = place::<T>(cx.lane() as usize * K);
    // SAFETY: the caller's contract; the storage has slots for all lanes.
    unsafe {
        slots.store_items(at, &exclusive(below, &items, op));
        if cx.lane() as usize == last {
            // This goes from the lane's own slots, whose address is known.
            slots.store(at - place::<T>(last * K) + TOTAL, upto);
        }
    }
}

/// # Safety
/// As for [`rake`].
#[track_caller]
unsafe fn load<T: Element, R: Reducer<T>, const K: usize>(cx: Block<'_>, slots: SharedArray<'_, T>, op: &R) -> [T; K] {
    let (threads, first) = (cx.block_threads() as usize, cx.lane() as usize * K);
    let at = place::<T>(first);
    // SAFETY: the caller's contract: the block's threads have written these.
    unsafe {
        if threads == WARP as usize * K || first + K <= threads {
            slots.load_items(at)
        } else {
            core::array::from_fn(|i| if first + i < threads { slots.load(at + i) } else { op.identity() })
        }
    }
}
