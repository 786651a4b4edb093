//! Reductions over a block, over its rows, and over groups of its threads.

use core::marker::PhantomData;
use core::panic::Location;

use super::partials::{self, MAX_WARPS};
use super::raking;
use crate::element::Element;
use crate::functor::Reducer;
use crate::simt::{Block, FaultKind, WARP};
use crate::view::{Shared, SharedArray, SharedStorage};
use crate::warp::{self, reduce_down};

/// The largest number of partial results of a block: two for each warp, see [`reduce_rows`].
const SLOTS: usize = 2 * MAX_WARPS;

/// The shared memory of the block's reductions. It also chooses their algorithm.
///
/// `ReduceStorage<T>` is for any block. It has 128 elements, in two halves that are used alternately. Each warp combines the values of its
/// threads.
///
/// `ReduceStorage<T, THREADS>` is for blocks of up to `THREADS` threads; more are a fault. It has two elements for each thread, and a few
/// more. One warp combines for all. This takes at most half the instructions, and one more barrier if every thread gets the result. It is
/// faster if many blocks share a multiprocessor and do little else.
///
/// CUB: `BLOCK_REDUCE_WARP_REDUCTIONS` and `BLOCK_REDUCE_RAKING`.
///
/// ```
/// use kernel_primitives::prelude::*;
///
/// #[kernel]
/// fn totals(cx: Block, x: Global<f32>, mut out: GlobalMut<f32, PerBlock>, mut shared: Shared<ReduceStorage<f32, 128>>) {
///     let rank = cx.block_rank() * cx.block_threads() as usize + cx.thread_rank() as usize;
///     out.store(block_reduce(cx, &mut shared, x[rank], Add));
/// }
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = kernel_primitives::Device::emulator().stream()?;
/// let x = stream.buffer_from(&[0.5f32; 200])?;
/// let mut out = stream.buffer_zeroed::<f32>(2)?;
/// totals::launch(&stream, (2, 100), &x, &mut out)?;
/// assert_eq!(out.to_vec()?, [50.0, 50.0]);
/// # Ok(())
/// # }
/// ```
pub struct ReduceStorage<T, const THREADS: usize = 0>(PhantomData<T>);

// SAFETY: uninitialised elements.
unsafe impl<T: Element, const THREADS: usize> SharedStorage for ReduceStorage<T, THREADS> {
    const BYTES: usize = 2 * Self::HALF;
    const ALIGN: usize = 16;
}

impl<T, const THREADS: usize> ReduceStorage<T, THREADS> {
    const HALF: usize = (Self::SLOTS * size_of::<T>()).next_multiple_of(16);
    const SLOTS: usize = if THREADS == 0 { SLOTS } else { raking::slots::<T>(THREADS) };
}

/// Combines the values of all threads of the block, in the order of their ranks. Every thread gets the result.
///
/// Phases: each warp combines its values by shuffles; one value of each warp goes to shared memory; barrier; every thread combines these
/// values, which it reads in vectors. One barrier, or none in a block of one warp. Any block shape up to 1024 threads, including partial
/// warps.
///
/// With a [`ReduceStorage<T, THREADS>`](ReduceStorage): each thread writes its value to shared memory; barrier; one warp, which differs
/// between blocks, combines the values in order: each lane combines several, and then lanes combine by shuffles; barrier; every thread
/// reads the result.
///
/// Shared memory: several reductions on the same `Shared` cost only their own barriers. Another collective on it, and
/// [`block_reduce_to_first`] with `THREADS`, makes the barrier that it needs by itself.
///
/// CUB: `BlockReduce::Reduce`, `Sum`. Differences: of `block_reduce`, every thread gets the result, and not only the first one; works as
/// `BLOCK_REDUCE_WARP_REDUCTIONS`, or as `BLOCK_REDUCE_RAKING` with a `ReduceStorage<T, THREADS>`.
///
/// All threads of the block call it: see [divergence](crate::block#divergence).
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
#[track_caller]
pub fn block_reduce<T: Element, R: Reducer<T>, const THREADS: usize>(
    cx: Block<'_>,
    shared: &mut Shared<'_, ReduceStorage<T, THREADS>>,
    value: T,
    op: R,
) -> T {
    let warps = partials::warps(cx);
    if THREADS > 0 {
        raking::check::<THREADS>(cx);
        if warps > 1 {
            shared.enter_by_owners(size_of::<T>());
            let slots = shared.array(0, ReduceStorage::<T, THREADS>::SLOTS);
            // SAFETY: a thread's slot is its own until the first barrier; the total is the raking warp's between the barriers.
            unsafe {
                raking::put(cx, slots, value);
                cx.barrier();
                if cx.warp() == raking::raker(cx) {
                    let total = raking::rake::<_, _, THREADS>(cx, slots, &op);
                    raking::put_total(cx, slots, total);
                }
                cx.barrier();
                return raking::total(slots);
            }
        }
    }
    let piece = warp::reduce(cx, value, &op);
    if warps == 1 {
        return piece;
    }
    let slots = publish(cx, shared, warps, piece, &op);
    // SAFETY: published.
    unsafe { partials::fold(slots, warps, &op) }
}

/// Works as [`block_reduce`], but only the first thread gets the result. The other threads get `None`, and do not run the last phase. One
/// barrier with either storage. The first warp combines.
///
/// CUB: `BlockReduce::Reduce`, `Sum`. Differences: of `block_reduce_to_first`, the first thread gets the result as an `Option`.
///
/// All threads of the block call it: see [divergence](crate::block#divergence).
///
/// ```
/// use kernel_primitives::prelude::*;
///
/// #[kernel]
/// fn sum(cx: Block, x: Global<u32>, out: GlobalMut<u32, Atomic>, mut shared: Shared<ReduceStorage<u32>>) {
///     let own = cx.items(x.len()).map(|i| x[i]).sum();
///     if let Some(total) = block_reduce_to_first(cx, &mut shared, own, Add) {
///         out.at(0).fetch_add(total);
///     }
/// }
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = kernel_primitives::Device::emulator().stream()?;
/// let x = stream.buffer_from(&(1..=1000).collect::<Vec<u32>>())?;
/// let mut out = stream.buffer_zeroed::<u32>(1)?;
/// sum::launch(&stream, (3, 64), &x, &mut out)?;
/// assert_eq!(out.to_vec()?, [500_500]);
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn block_reduce_to_first<T: Element, R: Reducer<T>, const THREADS: usize>(
    cx: Block<'_>,
    shared: &mut Shared<'_, ReduceStorage<T, THREADS>>,
    value: T,
    op: R,
) -> Option<T> {
    let warps = partials::warps(cx);
    let mut total = value;
    if THREADS > 0 {
        raking::check::<THREADS>(cx);
        // One instruction in each of a few warps costs less than raking by one of them, which is always the first.
        if warps > 1 && !(op.has_instruction() && THREADS <= 128) {
            let slots = begin(shared);
            // SAFETY: the half is not in use until the barrier, and only read after it.
            unsafe {
                raking::put(cx, slots, value);
                cx.barrier();
                if cx.warp() == 0 {
                    total = raking::rake::<_, _, THREADS>(cx, slots, &op);
                }
            }
            return if cx.thread_rank() == 0 { Some(total) } else { None };
        }
    }
    total = warp::reduce(cx, value, &op);
    if warps > 1 {
        let slots = publish(cx, shared, warps, total, &op);
        if cx.thread_rank() == 0 {
            // SAFETY: published.
            total = unsafe { partials::fold(slots, warps, &op) };
        }
    }
    if cx.thread_rank() == 0 { Some(total) } else { None }
}

/// Combines `N` items of each thread of the block, in the blocked arrangement: thread after thread, and the items of a thread in order.
/// Every thread gets the result.
///
/// Cost: `N - 1` applications of `op` in each thread, as a tree, and then that of [`block_reduce`].
///
/// CUB: `BlockReduce::Reduce` and `Sum` of several items. Differences: of `block_reduce_items`, every thread gets the result.
///
/// All threads of the block call it: see [divergence](crate::block#divergence).
///
/// ```
/// use kernel_primitives::prelude::*;
///
/// #[kernel]
/// fn sums(cx: Block, x: Global<u32>, mut out: GlobalMut<u32, PerBlock>, mut shared: Shared<ReduceStorage<u32>>) {
///     for tile in cx.tiles::<4>(x.len()) {
///         let mut items = init::<u32, 4>(0);
///         read_data(cx, &mut items, x.tile(tile));
///         out.store(block_reduce_items(cx, &mut shared, &items, Add));
///     }
/// }
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = kernel_primitives::Device::emulator().stream()?;
/// let x = stream.buffer_from(&(1..=300).collect::<Vec<u32>>())?;
/// let mut out = stream.buffer_zeroed::<u32>(1)?;
/// sums::launch(&stream, (1, 96), &x, &mut out)?;
/// assert_eq!(out.to_vec()?, [45150]);
/// # Ok(())
/// # }
/// ```
#[inline(always)]
#[track_caller]
pub fn block_reduce_items<T: Element, R: Reducer<T>, const N: usize, const THREADS: usize>(
    cx: Block<'_>,
    shared: &mut Shared<'_, ReduceStorage<T, THREADS>>,
    items: &[T; N],
    op: R,
) -> T {
    block_reduce(cx, shared, partials::tree(items, &op), op)
}

/// Works as [`block_reduce_items`], but only the first thread gets the result, as of [`block_reduce_to_first`]. The others get `None`.
///
/// CUB: `BlockReduce::Reduce` and `Sum` of several items. Differences: of `block_reduce_items_to_first`, an `Option`.
///
/// All threads of the block call it: see [divergence](crate::block#divergence).
///
/// ```
/// use kernel_primitives::prelude::*;
///
/// #[kernel]
/// fn sum(cx: Block, x: Global<u32>, out: GlobalMut<u32, Atomic>, mut shared: Shared<ReduceStorage<u32>>) {
///     for tile in cx.tiles::<4>(x.len()) {
///         let mut items = init::<u32, 4>(0);
///         read_data(cx, &mut items, x.tile(tile));
///         if let Some(total) = block_reduce_items_to_first(cx, &mut shared, &items, Add) {
///             out.at(0).fetch_add(total);
///         }
///     }
/// }
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = kernel_primitives::Device::emulator().stream()?;
/// let x = stream.buffer_from(&(1..=1000).collect::<Vec<u32>>())?;
/// let mut out = stream.buffer_zeroed::<u32>(1)?;
/// sum::launch(&stream, (3, 64), &x, &mut out)?;
/// assert_eq!(out.to_vec()?, [500_500]);
/// # Ok(())
/// # }
/// ```
#[inline(always)]
#[track_caller]
pub fn block_reduce_items_to_first<T: Element, R: Reducer<T>, const N: usize, const THREADS: usize>(
    cx: Block<'_>,
    shared: &mut Shared<'_, ReduceStorage<T, THREADS>>,
    items: &[T; N],
    op: R,
) -> Option<T> {
    block_reduce_to_first(cx, shared, partials::tree(items, &op), op)
}

/// Works as [`block_reduce_items`] for the first `valid` items of the block. The other items count as the identity. If `valid` is 0, the
/// result is the identity, as [`Reducer::of_none`] gives it. If `valid` is larger than the number of items, all count, and the emulator
/// reports it.
///
/// CUB: `BlockReduce::Reduce` and `Sum` with `num_valid`. Differences: counts items, not threads; 0 items give the identity.
///
/// All threads of the block call it: see [divergence](crate::block#divergence).
///
/// ```
/// use kernel_primitives::prelude::*;
///
/// #[kernel]
/// fn minima(cx: Block, x: Global<i32>, mut out: GlobalMut<i32, PerBlock>, mut shared: Shared<ReduceStorage<i32>>) {
///     for tile in cx.tiles::<4>(x.len()) {
///         let mut items = init::<i32, 4>(0);
///         read_data(cx, &mut items, x.tile(tile));
///         out.store(block_reduce_partial(cx, &mut shared, &items, tile.len(), Min));
///     }
/// }
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = kernel_primitives::Device::emulator().stream()?;
/// let x = stream.buffer_from(&[7, 5, 6])?;
/// let mut out = stream.buffer_zeroed::<i32>(1)?;
/// minima::launch(&stream, (1, 32), &x, &mut out)?;
/// assert_eq!(out.to_vec()?, [5]);
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn block_reduce_partial<T: Element, R: Reducer<T>, const N: usize, const THREADS: usize>(
    cx: Block<'_>,
    shared: &mut Shared<'_, ReduceStorage<T, THREADS>>,
    items: &[T; N],
    valid: usize,
    op: R,
) -> T {
    cx.expect_at_most(valid, cx.block_threads() as usize * N);
    let first = cx.thread_rank() as usize * N;
    let items: [T; N] = core::array::from_fn(|i| if first + i < valid { items[i] } else { op.identity() });
    let none = op.of_none();
    let total = block_reduce_items(cx, shared, &items, op);
    if valid == 0 { none } else { total }
}

/// Combines, for each row of the block (the threads with equal `y` and `z`), the values along `x`, in order. Every thread gets the result
/// of its row.
///
/// Cost and shared memory are those of [`block_reduce`]. Rows of a multiple of 32 threads and rows that divide a warp are fast. For other
/// rows, a thread combines up to 33 partial results one after another. To reduce several items of each thread, reduce arrays with
/// [`Each`](crate::block::Each).
///
/// Seed: `BlockXReduce(val, reducer)`, which exists for powers of two. `Reduce` in `kGlobalMode` with `reduce_last_dim` is this collective
/// for each item.
///
/// CUB has no such collective.
///
/// All threads of the block call it: see [divergence](crate::block#divergence).
///
/// ```
/// use kernel_primitives::prelude::*;
///
/// /// Each element of a matrix, as a share of its row's sum.
/// #[kernel]
/// fn shares(cx: Block, x: Global<f32>, mut out: GlobalMut<f32>, mut shared: Shared<ReduceStorage<f32>>) {
///     for tile in cx.tiles::<1>(out.len()) {
///         let mut item = init::<f32, 1>(Add.identity());
///         read_data(cx, &mut item, x.tile(tile));
///         write_data(cx, out.tile(tile), &[item[0] / block_x_reduce(cx, &mut shared, item[0], Add)]);
///     }
/// }
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = kernel_primitives::Device::emulator().stream()?;
/// let x = stream.buffer_from(&[1.0f32, 3.0, 2.0, 2.0, 0.0, 5.0])?;
/// let mut out = stream.buffer_zeroed::<f32>(6)?;
/// shares::launch(&stream, (1, (2, 3)), &x, &mut out)?;
/// assert_eq!(out.to_vec()?, [0.25, 0.75, 0.5, 0.5, 0.0, 1.0]);
/// # Ok(())
/// # }
/// ```
#[inline(always)]
#[track_caller]
pub fn block_x_reduce<T: Element, R: Reducer<T>>(
    cx: Block<'_>,
    shared: &mut Shared<'_, ReduceStorage<T>>,
    value: T,
    op: R,
) -> T {
    let (dim, at) = (cx.block_dim(), cx.thread_idx());
    reduce_rows(cx, shared, value, op, dim.x, at.y + dim.y * at.z)
}

/// Combines the values of each group of `width` threads of consecutive ranks, in order. Every thread gets the result of its group. The last
/// group has the threads that remain. A width of 0 is a fault.
///
/// Cost and shared memory are those of [`block_x_reduce`]: a group is a row of `width` threads.
///
/// CUB has no such collective.
///
/// All threads of the block call it: see [divergence](crate::block#divergence).
///
/// ```
/// use kernel_primitives::prelude::*;
///
/// #[kernel]
/// fn sums_of_three(cx: Block, x: Global<u32>, mut out: GlobalMut<u32>, mut shared: Shared<ReduceStorage<u32>>) {
///     for tile in cx.tiles::<1>(out.len()) {
///         let mut item = init::<u32, 1>(0);
///         read_data(cx, &mut item, x.tile(tile));
///         write_data(cx, out.tile(tile), &[block_group_reduce(cx, &mut shared, item[0], Add, 3)]);
///     }
/// }
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = kernel_primitives::Device::emulator().stream()?;
/// let x = stream.buffer_from(&[1u32, 2, 3, 4, 5, 6, 7, 8])?;
/// let mut out = stream.buffer_zeroed::<u32>(8)?;
/// sums_of_three::launch(&stream, (1, 8), &x, &mut out)?;
/// assert_eq!(out.to_vec()?, [6, 6, 6, 15, 15, 15, 15, 15]);
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn block_group_reduce<T: Element, R: Reducer<T>>(
    cx: Block<'_>,
    shared: &mut Shared<'_, ReduceStorage<T>>,
    value: T,
    op: R,
    width: u32,
) -> T {
    if width == 0 {
        cx.raise(FaultKind::BadShape, [0, cx.block_threads() as u64], Location::caller());
    }
    let width = width.min(cx.block_threads());
    reduce_rows(cx, shared, value, op, width, cx.thread_rank() / width)
}

/// Reduces each run of `width` threads of consecutive ranks. `row` is the number of this thread's run.
///
/// Rows are cut into pieces where warps end. A piece that is a whole row needs no shared memory. Of the other pieces, a warp has at most
/// two: one that starts at its first lane, and one that starts later. They use the slots `2 * warp` and `2 * warp + 1`.
#[track_caller]
fn reduce_rows<T: Element, R: Reducer<T>>(
    cx: Block<'_>,
    shared: &mut Shared<'_, ReduceStorage<T>>,
    value: T,
    op: R,
    width: u32,
    row: u32,
) -> T {
    let (threads, warps) = (cx.block_threads(), partials::warps(cx));
    if width == threads {
        return block_reduce(cx, shared, value, op);
    }
    if width.is_multiple_of(WARP) {
        let piece = warp::reduce(cx, value, &op);
        let pieces = (width / WARP) as usize;
        if pieces == 1 {
            return piece;
        }
        let slots = publish(cx, shared, warps, piece, &op);
        let first = row as usize * pieces;
        // SAFETY: published; the last row may have fewer.
        return unsafe { partials::fold_part(slots, first, pieces.min(warps - first), &op) };
    }

    // If rows end inside warps, this is a segmented reduction, whose result is in the first lane of each segment.
    let rank = cx.thread_rank();
    let (own_warp, lane, mask) = (rank / WARP, cx.lane(), cx.warp_mask());
    let (start, end) = (row * width, (row * width + width).min(threads));
    let segment_start = start.max(own_warp * WARP) - own_warp * WARP;
    let segment_end = end.min(own_warp * WARP + cx.warp_lanes()) - own_warp * WARP;
    let piece = reduce_down(cx, mask, value, segment_end, WARP, &op);
    let whole = cx.shuffle(mask, piece, segment_start, WARP);
    if WARP.is_multiple_of(width) {
        return whole;
    }
    let slots = begin(shared);
    let (first, last) = (start / WARP, (end - 1) / WARP);
    // SAFETY: a slot has one writer, and is read after the barrier.
    unsafe {
        if first != last && lane == segment_start {
            slots.store((2 * own_warp + (lane != 0) as u32) as usize, piece);
        }
        cx.barrier();
        if first == last {
            return whole;
        }
        let mut total = slots.load((2 * first + !start.is_multiple_of(WARP) as u32) as usize);
        for warp in first + 1..=last {
            total = op.apply(total, slots.load(2 * warp as usize));
        }
        total
    }
}

/// The half of the storage whose turn it is. The collective then writes it, makes a barrier, and only reads it afterwards.
#[inline(always)]
#[track_caller]
fn begin<'k, T: Element, const THREADS: usize>(
    shared: &mut Shared<'k, ReduceStorage<T, THREADS>>,
) -> SharedArray<'k, T> {
    let half = shared.enter_double_buffered(ReduceStorage::<T, THREADS>::HALF);
    shared.array(half, ReduceStorage::<T, THREADS>::SLOTS)
}

/// Puts the value of each warp's first lane where all threads find it after the barrier. It makes that barrier.
#[track_caller]
fn publish<'k, T: Element, R: Reducer<T>, const THREADS: usize>(
    cx: Block<'_>,
    shared: &mut Shared<'k, ReduceStorage<T, THREADS>>,
    warps: usize,
    piece: T,
    op: &R,
) -> SharedArray<'k, T> {
    let slots = begin(shared);
    // SAFETY: the half is not in use until the barrier.
    unsafe { partials::put(cx, slots, warps, 0, piece, op) };
    cx.barrier();
    slots
}
