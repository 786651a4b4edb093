//! Reductions over a block, or over each of its rows.

use core::mem::MaybeUninit;
use core::panic::Location;

use crate::element::Element;
use crate::functor::Reducer;
use crate::simt::{Block, FaultKind, WARP};
use crate::view::{Shared, SharedStorage};
use crate::warp::{self, butterfly_step, reduce_down};

/// Warps in the largest block.
const MAX_WARPS: u32 = 32;

/// Partial results a block can have at once: two a warp, see [`reduce_rows`].
const SLOTS: usize = 2 * MAX_WARPS as usize;

/// The shared memory of [`block_reduce`] and [`block_x_reduce`]: 64 elements.
#[repr(C, align(16))]
pub struct ReduceStorage<T>([MaybeUninit<T>; SLOTS]);

// SAFETY: uninitialised elements.
unsafe impl<T: Element> SharedStorage for ReduceStorage<T> {}

/// Combines the values of all threads of the block, in the order of their ranks; every thread gets the result.
///
/// Phases: each warp combines its values by shuffles; one value a warp goes to shared memory; barrier; every warp combines
/// those. One barrier, none in a block of one warp. Any block shape up to 1024 threads, partial warps included.
///
/// Shared memory: `shared` holds 64 elements of `T`. It may be reused after the next barrier, which a second collective on
/// the same `Shared` makes by itself.
///
/// ```
/// use kernel_primitives::prelude::*;
///
/// #[kernel]
/// fn block_maxima(cx: Block, x: Global<i32>, mut out: GlobalMut<i32, PerBlock>, mut shared: Shared<ReduceStorage<i32>>) {
///     let mut largest = i32::MIN;
///     for i in cx.items(x.len()) {
///         largest = largest.max(x[i]);
///     }
///     let total = block_reduce(cx, &mut shared, largest, Max);
///     out.store(total);
/// }
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = kernel_primitives::Device::emulator().stream()?;
/// let x = stream.buffer_from(&(0..1000).collect::<Vec<i32>>())?;
/// let mut out = stream.buffer_zeroed::<i32>(1)?;
/// block_maxima::launch(&stream, (1, 100), &x, &mut out)?;
/// assert_eq!(out.to_vec()?, [999]);
/// # Ok(())
/// # }
/// ```
#[inline(always)]
#[track_caller]
pub fn block_reduce<T: Element, R: Reducer<T>>(
    cx: Block<'_>,
    shared: &mut Shared<'_, ReduceStorage<T>>,
    value: T,
    op: R,
) -> T {
    reduce_rows(cx, shared, value, op, cx.block_threads())
}

/// Combines, for each row of the block (the threads with equal `y` and `z`), the values along `x` in order; every thread
/// gets its row's result.
///
/// Cost and shared memory are as for [`block_reduce`]. Rows of a multiple of 32 threads, and rows that divide a warp, are
/// the fast cases: the others combine up to 33 partial results a row one after another.
///
/// Seed: `BlockXReduce(val, reducer)`, there for powers of two.
#[inline(always)]
#[track_caller]
pub fn block_x_reduce<T: Element, R: Reducer<T>>(
    cx: Block<'_>,
    shared: &mut Shared<'_, ReduceStorage<T>>,
    value: T,
    op: R,
) -> T {
    reduce_rows(cx, shared, value, op, cx.block_dim().x)
}

/// Reduces each run of `width` threads of consecutive ranks.
///
/// A row is cut at warp boundaries into pieces. A piece that is a whole row needs no shared memory. Of the other pieces a
/// warp has at most two, one that starts at its first lane and one that starts later: slots `2 * warp` and
/// `2 * warp + 1`.
#[inline(always)]
#[track_caller]
fn reduce_rows<T: Element, R: Reducer<T>>(
    cx: Block<'_>,
    shared: &mut Shared<'_, ReduceStorage<T>>,
    value: T,
    op: R,
    width: u32,
) -> T {
    let warps = cx.warps();
    if warps > MAX_WARPS {
        let args = [cx.block_threads() as u64, (MAX_WARPS * WARP) as u64];
        cx.raise(FaultKind::BadShape, args, Location::caller());
    }
    let mask = cx.warp_mask();
    let rank = cx.thread_rank();
    let (own_warp, lane) = (rank / WARP, cx.lane());

    if width.is_multiple_of(WARP) || width == cx.block_threads() {
        let piece = warp::reduce(cx, value, &op);
        let pieces = width.div_ceil(WARP);
        if pieces == 1 {
            return piece;
        }
        shared.enter();
        if lane == 0 {
            put(shared, own_warp, piece);
        }
        cx.barrier();
        // A partial warp has not the lanes for what follows. All warps must combine in one order, or the threads' results
        // would differ in their last bits: so all walk.
        if !cx.block_threads().is_multiple_of(WARP) {
            let mut total = take(shared, 0);
            for piece in 1..pieces {
                total = op.apply(total, take(shared, piece));
            }
            return total;
        }
        // Every warp reads its row's pieces into groups of lanes as wide as the next power of two, so that each lane ends
        // up with the result and no second barrier is needed to hand it round.
        let first = own_warp / pieces * pieces;
        let group = pieces.next_power_of_two();
        let source = lane & (group - 1);
        let mut total = if source < pieces { take(shared, first + source) } else { op.identity() };
        let mut bit = 1;
        while bit < group {
            total = butterfly_step(cx, mask, total, bit, &op);
            bit *= 2;
        }
        return total;
    }

    // Rows that end inside warps: a segmented reduction, the result at each segment's first lane.
    let row = rank / width;
    let (start, end) = (row * width, row * width + width);
    let segment_start = start.max(own_warp * WARP) - own_warp * WARP;
    let segment_end = end.min(own_warp * WARP + cx.warp_lanes()) - own_warp * WARP;
    let piece = reduce_down(cx, mask, value, segment_end, &op);
    let whole = cx.shuffle(mask, piece, segment_start, WARP);
    if WARP.is_multiple_of(width) {
        return whole;
    }
    shared.enter();
    let split = start / WARP != (end - 1) / WARP;
    if split && lane == segment_start {
        put(shared, 2 * own_warp + (lane != 0) as u32, piece);
    }
    cx.barrier();
    if !split {
        return whole;
    }
    let (first, last) = (start / WARP, (end - 1) / WARP);
    let mut total = take(shared, 2 * first + !start.is_multiple_of(WARP) as u32);
    for warp in first + 1..=last {
        total = op.apply(total, take(shared, 2 * warp));
    }
    total
}

#[inline(always)]
#[track_caller]
fn put<T: Element>(shared: &mut Shared<'_, ReduceStorage<T>>, slot: u32, value: T) {
    // SAFETY: every slot has one writer, and is read after the barrier.
    unsafe { shared.array(0, SLOTS).store(slot as usize, value) }
}

#[inline(always)]
#[track_caller]
fn take<T: Element>(shared: &mut Shared<'_, ReduceStorage<T>>, slot: u32) -> T {
    // SAFETY: `reduce_rows` takes what was put before the barrier.
    unsafe { shared.array(0, SLOTS).load(slot as usize) }
}
