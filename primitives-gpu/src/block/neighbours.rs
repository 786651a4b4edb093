//! Collectives of neighbouring threads: differences, shifts and rotations.

use core::marker::PhantomData;
use core::mem::size_of;

use super::combine::partials::{self, MAX_WARPS};
use crate::element::Element;
use crate::functor::BinaryFn;
use crate::simt::{Block, WARP};
use crate::view::{Shared, SharedStorage};

/// The shared memory of the collectives of neighbours: one element for each warp, in two halves that are used alternately.
pub struct NeighbourStorage<T>(PhantomData<T>);

// SAFETY: uninitialised elements.
unsafe impl<T: Element> SharedStorage for NeighbourStorage<T> {
    const BYTES: usize = 2 * NeighbourStorage::<T>::HALF;
    const ALIGN: usize = 16;
}

impl<T> NeighbourStorage<T> {
    const HALF: usize = (MAX_WARPS * size_of::<T>()).next_multiple_of(16);
}

/// Returns the value of the thread with the next lower rank, or `before` in the first thread.
///
/// Phases: one shuffle; the last lane of each warp writes its value to shared memory; barrier; the first lane of the next warp reads it.
/// One barrier, or none in a block of one warp. Any block shape up to 1024 threads.
///
/// Shared memory: two halves that such collectives use alternately. So several calls on the same `Shared` cost one barrier each.
///
/// CUB: `BlockShuffle::Up`. Differences: the first thread gets an argument.
///
/// All threads of the block call it: see [divergence](crate::block#divergence).
///
/// ```
/// use kernel_primitives::prelude::*;
///
/// #[kernel]
/// fn shifted(cx: Block, x: Global<u32>, mut out: GlobalMut<u32>, mut shared: Shared<NeighbourStorage<u32>>) {
///     for tile in cx.tiles::<1>(out.len()) {
///         let mut item = init::<u32, 1>(0);
///         read_data(cx, &mut item, x.tile(tile));
///         write_data(cx, out.tile(tile), &[block_shift_up(cx, &mut shared, item[0], 100)]);
///     }
/// }
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = kernel_primitives::Device::emulator().stream()?;
/// let x = stream.buffer_from(&(0..40).collect::<Vec<u32>>())?;
/// let mut out = stream.buffer_zeroed::<u32>(40)?;
/// shifted::launch(&stream, (1, 40), &x, &mut out)?;
/// assert_eq!(out.to_vec()?[..2], [100, 0]);
/// assert_eq!(out.to_vec()?[31..34], [30, 31, 32]);
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn block_shift_up<T: Element>(
    cx: Block<'_>,
    shared: &mut Shared<'_, NeighbourStorage<T>>,
    value: T,
    before: T,
) -> T {
    let (warps, mask) = (partials::warps(cx), cx.warp_mask());
    let below = cx.try_shuffle_up(mask, value, 1, WARP);
    if warps > 1 {
        let half = shared.enter_double_buffered(NeighbourStorage::<T>::HALF);
        let ends = shared.array::<T>(half, MAX_WARPS);
        let warp = cx.warp() as usize;
        // SAFETY: each warp writes its own element, which the next reads after the barrier.
        unsafe {
            if cx.lane() == WARP - 1 {
                ends.store(warp, value);
            }
            cx.barrier();
            if cx.lane() == 0 && warp > 0 {
                return ends.load(warp - 1);
            }
        }
    }
    below.unwrap_or(before)
}

/// Returns the value of the thread with the next higher rank, or `after` in the last thread. Cost and shared memory are those of
/// [`block_shift_up`].
///
/// CUB: `BlockShuffle::Down`. Differences: the last thread gets an argument.
///
/// All threads of the block call it: see [divergence](crate::block#divergence).
///
/// ```
/// use kernel_primitives::prelude::*;
///
/// #[kernel]
/// fn shifted(cx: Block, x: Global<u32>, mut out: GlobalMut<u32>, mut shared: Shared<NeighbourStorage<u32>>) {
///     for tile in cx.tiles::<1>(out.len()) {
///         // What a partial tile lacks follows its last element.
///         let mut item = init::<u32, 1>(100);
///         read_data(cx, &mut item, x.tile(tile));
///         write_data(cx, out.tile(tile), &[block_shift_down(cx, &mut shared, item[0], 100)]);
///     }
/// }
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = kernel_primitives::Device::emulator().stream()?;
/// let x = stream.buffer_from(&(0..40).collect::<Vec<u32>>())?;
/// let mut out = stream.buffer_zeroed::<u32>(40)?;
/// shifted::launch(&stream, (1, 40), &x, &mut out)?;
/// assert_eq!(out.to_vec()?[30..33], [31, 32, 33]);
/// assert_eq!(out.to_vec()?[38..], [39, 100]);
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn block_shift_down<T: Element>(
    cx: Block<'_>,
    shared: &mut Shared<'_, NeighbourStorage<T>>,
    value: T,
    after: T,
) -> T {
    let (warps, mask, lane) = (partials::warps(cx), cx.warp_mask(), cx.lane());
    let last = cx.warp_lanes() - 1;
    // This shuffles by lane number, because a partial warp has no lane above its last.
    let above = cx.shuffle(mask, value, (lane + 1).min(last), WARP);
    if warps > 1 {
        let half = shared.enter_double_buffered(NeighbourStorage::<T>::HALF);
        let starts = shared.array::<T>(half, MAX_WARPS);
        let warp = cx.warp() as usize;
        // SAFETY: each warp writes its own element, which the one before reads after the barrier.
        unsafe {
            if lane == 0 {
                starts.store(warp, value);
            }
            cx.barrier();
            if lane == WARP - 1 && warp + 1 < warps {
                return starts.load(warp + 1);
            }
        }
    }
    if lane == last { after } else { above }
}

/// The shared memory of [`block_rotate`]: one element for each thread, for blocks of up to `MAX_THREADS` threads.
pub type RotateStorage<T, const MAX_THREADS: usize = 1024> = super::ColumnStorage<T, MAX_THREADS>;

/// Returns the value of the thread whose rank is `by` higher. Ranks wrap at the end of the block.
///
/// Phases: each thread writes its value to shared memory; barrier; each thread reads another value. There is one barrier, and one before it
/// if the storage was used before. More threads than `MAX_THREADS` are a fault. Shared memory: one element for each thread. The next
/// collective on it begins with a barrier.
///
/// CUB: `BlockShuffle::Rotate`.
///
/// All threads of the block call it: see [divergence](crate::block#divergence).
///
/// ```
/// use kernel_primitives::prelude::*;
/// use kernel_primitives::block::{RotateStorage, block_rotate};
///
/// /// Rotates each tile. What a partial tile lacks are zeros, which rotate with the elements.
/// #[kernel]
/// fn rotated(cx: Block, by: u32, x: Global<u8>, mut out: GlobalMut<u8>, mut shared: Shared<RotateStorage<u8, 64>>) {
///     for tile in cx.tiles::<1>(out.len()) {
///         let mut item = init::<u8, 1>(0);
///         read_data(cx, &mut item, x.tile(tile));
///         write_data(cx, out.tile(tile), &[block_rotate(cx, &mut shared, item[0], by)]);
///     }
/// }
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = kernel_primitives::Device::emulator().stream()?;
/// let mut out = stream.buffer_zeroed::<u8>(5)?;
/// rotated::launch(&stream, (1, 5), 2, &stream.buffer_from(b"abcde")?, &mut out)?;
/// assert_eq!(out.to_vec()?, b"cdeab");
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn block_rotate<T: Element, const MAX_THREADS: usize>(
    cx: Block<'_>,
    shared: &mut Shared<'_, RotateStorage<T, MAX_THREADS>>,
    value: T,
    by: u32,
) -> T {
    let threads = super::combine::column::threads::<MAX_THREADS>(cx);
    let rank = cx.thread_rank();
    shared.enter();
    let values = shared.array::<T>(0, MAX_THREADS);
    // SAFETY: each thread writes its own element, and reads another's after the barrier.
    unsafe {
        values.store(rank as usize, value);
        cx.barrier();
        // A block has at least one thread, so the divisor is never zero.
        let source = (rank as u64 + by as u64).checked_rem(threads as u64).unwrap_or(0);
        values.load(source as usize)
    }
}

/// Returns the value of the thread of rank `source` in every thread. A rank that the block does not have is a fault.
///
/// Phases: that thread writes its value to shared memory; barrier; all threads read it. It uses the two halves alternately, as
/// [`block_shift_up`] does.
///
/// CUB has no such collective.
///
/// All threads of the block call it: see [divergence](crate::block#divergence).
///
/// ```
/// use kernel_primitives::prelude::*;
/// use kernel_primitives::block::block_broadcast;
///
/// /// Differences from the last element of each tile.
/// #[kernel]
/// fn up_to_the_last(cx: Block, x: Global<i32>, mut out: GlobalMut<i32>, mut shared: Shared<NeighbourStorage<i32>>) {
///     for tile in cx.tiles::<1>(out.len()) {
///         let mut item = init::<i32, 1>(0);
///         read_data(cx, &mut item, x.tile(tile));
///         let last = block_broadcast(cx, &mut shared, item[0], tile.len() as u32 - 1);
///         write_data(cx, out.tile(tile), &[last - item[0]]);
///     }
/// }
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = kernel_primitives::Device::emulator().stream()?;
/// let x = stream.buffer_from(&(0..40).collect::<Vec<i32>>())?;
/// let mut out = stream.buffer_zeroed::<i32>(40)?;
/// up_to_the_last::launch(&stream, (1, 40), &x, &mut out)?;
/// assert_eq!(out.to_vec()?, (0..40).rev().collect::<Vec<i32>>());
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn block_broadcast<T: Element>(
    cx: Block<'_>,
    shared: &mut Shared<'_, NeighbourStorage<T>>,
    value: T,
    source: u32,
) -> T {
    if source >= cx.block_threads() {
        let args = [source as u64, cx.block_threads() as u64];
        cx.raise(crate::simt::FaultKind::OutOfBounds, args, core::panic::Location::caller());
    }
    let half = shared.enter_double_buffered(NeighbourStorage::<T>::HALF);
    let array = shared.array::<T>(half, MAX_WARPS);
    // SAFETY: one thread writes the element, and all read it after the barrier.
    unsafe {
        if cx.thread_rank() == source {
            array.store(0, value);
        }
        cx.barrier();
        array.load(0)
    }
}

/// Applies `f` to each item of the block and its predecessor: `out[i] = f(item[i], item[i - 1])`. Items are in the blocked arrangement. The
/// predecessor of the first item is `before`, such as the last item of the previous tile. If there is none,
/// [`adjacent_difference_left_open`] keeps the first item.
///
/// Cost: one application of `f` for each item, and a [`block_shift_up`] for the last item of each thread.
///
/// CUB: `BlockAdjacentDifference::SubtractLeft`.
///
/// All threads of the block call it: see [divergence](crate::block#divergence).
///
/// ```
/// use kernel_primitives::prelude::*;
///
/// #[kernel]
/// fn steps(cx: Block, x: Global<i32>, mut out: GlobalMut<i32, Tiles<2>>, mut shared: Shared<NeighbourStorage<i32>>) {
///     for tile in cx.tiles::<2>(out.len()) {
///         let mut items = init::<i32, 2>(0);
///         read_data(cx, &mut items, x.tile(tile));
///         let before = if tile.start() > 0 { x[tile.start() - 1] } else { 0 };
///         let steps = adjacent_difference_left(cx, &mut shared, &items, before, |b: i32, a: i32| b - a);
///         write_data(cx, out.tile(tile), &steps);
///     }
/// }
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = kernel_primitives::Device::emulator().stream()?;
/// let x = stream.buffer_from(&(0..200).map(|i| i * i).collect::<Vec<i32>>())?;
/// let mut out = stream.buffer_zeroed::<i32>(200)?;
/// steps::launch(&stream, (2, 32), &x, &mut out)?;
/// assert_eq!(out.to_vec()?[1..], (1..200).map(|i| 2 * i - 1).collect::<Vec<i32>>());
/// # Ok(())
/// # }
/// ```
#[inline(always)]
#[track_caller]
pub fn adjacent_difference_left<T: Element, F: BinaryFn<T, T>, const N: usize>(
    cx: Block<'_>,
    shared: &mut Shared<'_, NeighbourStorage<T>>,
    items: &[T; N],
    before: T,
    f: F,
) -> [F::Output; N] {
    const { assert!(N > 0, "a collective has at least one item a thread") };
    let below = block_shift_up(cx, shared, items[N - 1], before);
    core::array::from_fn(|i| f.apply(items[i], if i == 0 { below } else { items[i.max(1) - 1] }))
}

/// Works as [`adjacent_difference_left`], but keeps the first item of the block.
///
/// CUB: `BlockAdjacentDifference::SubtractLeft` without a predecessor.
///
/// All threads of the block call it: see [divergence](crate::block#divergence).
#[track_caller]
pub fn adjacent_difference_left_open<T: Element, F: BinaryFn<T, T, Output = T>, const N: usize>(
    cx: Block<'_>,
    shared: &mut Shared<'_, NeighbourStorage<T>>,
    items: &[T; N],
    f: F,
) -> [T; N] {
    let mut out = adjacent_difference_left(cx, shared, items, items[0], f);
    if cx.thread_rank() == 0 {
        out[0] = items[0];
    }
    out
}

/// Applies `f` to each item of the block and its successor: `out[i] = f(item[i], item[i + 1])`. The successor of the last item is `after`,
/// such as the first item of the next tile. Otherwise this works as [`adjacent_difference_left`]. In a partial tile, the missing items
/// follow the last item: give them the value of `after`.
///
/// CUB: `BlockAdjacentDifference::SubtractRight`.
///
/// All threads of the block call it: see [divergence](crate::block#divergence).
///
/// ```
/// use kernel_primitives::prelude::*;
///
/// #[kernel]
/// fn steps(cx: Block, x: Global<i32>, mut out: GlobalMut<i32, Tiles<2>>, mut shared: Shared<NeighbourStorage<i32>>) {
///     for tile in cx.tiles::<2>(out.len()) {
///         let after = x.get(tile.start() + tile.len()).unwrap_or(0);
///         // What a partial tile lacks.
///         let mut items = init::<i32, 2>(after);
///         read_data(cx, &mut items, x.tile(tile));
///         let steps = adjacent_difference_right(cx, &mut shared, &items, after, |a: i32, b: i32| b - a);
///         write_data(cx, out.tile(tile), &steps);
///     }
/// }
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = kernel_primitives::Device::emulator().stream()?;
/// let x = stream.buffer_from(&(0..128).map(|i| i * i).collect::<Vec<i32>>())?;
/// let mut out = stream.buffer_zeroed::<i32>(127)?;
/// steps::launch(&stream, (2, 32), &x, &mut out)?;
/// assert_eq!(out.to_vec()?, (0..127).map(|i| 2 * i + 1).collect::<Vec<i32>>());
/// # Ok(())
/// # }
/// ```
#[inline(always)]
#[track_caller]
pub fn adjacent_difference_right<T: Element, F: BinaryFn<T, T>, const N: usize>(
    cx: Block<'_>,
    shared: &mut Shared<'_, NeighbourStorage<T>>,
    items: &[T; N],
    after: T,
    f: F,
) -> [F::Output; N] {
    const { assert!(N > 0, "a collective has at least one item a thread") };
    let above = block_shift_down(cx, shared, items[0], after);
    core::array::from_fn(|i| f.apply(items[i], if i + 1 < N { items[(i + 1) % N] } else { above }))
}

/// Works as [`adjacent_difference_right`], but keeps the last item of the block.
///
/// CUB: `BlockAdjacentDifference::SubtractRight` without a successor.
///
/// All threads of the block call it: see [divergence](crate::block#divergence).
#[track_caller]
pub fn adjacent_difference_right_open<T: Element, F: BinaryFn<T, T, Output = T>, const N: usize>(
    cx: Block<'_>,
    shared: &mut Shared<'_, NeighbourStorage<T>>,
    items: &[T; N],
    f: F,
) -> [T; N] {
    let mut out = adjacent_difference_right(cx, shared, items, items[N - 1], f);
    if cx.thread_rank() == cx.block_threads() - 1 {
        out[N - 1] = items[N - 1];
    }
    out
}
