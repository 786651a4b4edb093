//! Sorts by any comparator.

use core::mem::size_of;
use core::panic::Location;

use crate::element::{Element, SortKey};
use crate::functor::{Comparator, Direction, Sort};
use crate::simt::{Block, FaultKind, WARP};
use crate::view::{Shared, SharedArray};
use crate::warp::{Alone, Lanes, Record, SortBits, of_bits, to_bits, unrolled};

mod segmented;
mod storage;

pub use segmented::{SegmentedSortStorage, block_segmented_merge_sort_pairs};
pub use storage::MergeSortStorage;
use storage::{between_gaps, place, places, store};

/// Sorts the keys of the block by any comparator. The sort is stable.
///
/// The arrangement is blocked before and after: thread `t` holds positions `t * ITEMS` to `t * ITEMS + ITEMS`. `ITEMS` is 1 to 16. The
/// first `valid` positions are sorted; the other positions have unspecified values afterwards. If `valid` is larger than the block, all
/// positions count, and the emulator reports it. The block must have exactly `THREADS` threads, which may be any number; otherwise it is a
/// fault.
///
/// Phases: each thread sorts its items by exchanges of neighbours. Then runs of one, two, four and more threads merge. (Each warp sorts
/// keys without values as [`warp_sort`](crate::warp::warp_sort) does, if the order is [`Less`](crate::functor::Less) or
/// [`Greater`](crate::functor::Greater) and `ITEMS` is a power of two: identical keys have no order to keep.) For a merge, the runs are in
/// shared memory. Each thread finds by binary search where its part of the result begins in both runs (the merge path), and merges `ITEMS`
/// items one after the other. Cost: `ITEMS * (ITEMS - 1) / 2` comparisons in registers, then `log2(THREADS)` merges of about
/// `ITEMS + log2(run)` comparisons each, or one comparison if two runs are in order already. The merges inside a warp need no barrier, and
/// each later merge needs two.
///
/// For keys in their own order, prefer [`block_sort`](crate::block::block_sort) or [`block_radix_sort`](crate::block::block_radix_sort).
///
/// Shared memory: one key for each item. If a thread's keys have 64 or 128 bytes, it has gaps, so that threads rarely access the same bank.
/// It may be used again after the next barrier, which a second collective on the same `Shared` makes by itself.
///
/// CUB: `BlockMergeSort::Sort`, `StableSort`. Differences: any comparator, always stable; any number of threads; the first `valid`
/// positions.
///
/// All threads of the block call it: see [divergence](crate::block#divergence).
///
/// ```
/// use kernel_primitives::block::{MergeSortStorage, block_merge_sort};
/// use kernel_primitives::prelude::*;
///
/// #[kernel]
/// fn by_magnitude(
///     cx: Block,
///     x: Global<i32>,
///     mut out: GlobalMut<i32, Tiles<4>>,
///     mut shared: Shared<MergeSortStorage<96, 4, i32>>,
/// ) {
///     for tile in cx.tiles::<4>(out.len()) {
///         let mut keys = init::<i32, 4>(0);
///         read_data(cx, &mut keys, x.tile(tile));
///         block_merge_sort(cx, &mut shared, &mut keys, tile.len(), |a: i32, b: i32| a.abs() < b.abs());
///         write_data(cx, out.tile(tile), &keys);
///     }
/// }
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = kernel_primitives::Device::emulator().stream()?;
/// let mut out = stream.buffer_zeroed::<i32>(5)?;
/// by_magnitude::launch(&stream, (1, 96), &stream.buffer_from(&[3, -2, 2, 0, -3])?, &mut out)?;
/// assert_eq!(out.to_vec()?, [0, -2, 2, 3, -3]);
/// # Ok(())
/// # }
/// ```
#[inline(always)]
#[track_caller]
pub fn block_merge_sort<const THREADS: usize, const ITEMS: usize, K: Element, C: Comparator<K>>(
    cx: Block<'_>,
    shared: &mut Shared<'_, MergeSortStorage<THREADS, ITEMS, K>>,
    keys: &mut [K; ITEMS],
    valid: usize,
    order: C,
) {
    block_merge_sort_pairs(cx, shared, keys, &mut [[]; ITEMS], valid, order);
}

/// Sorts pairs of a key and a value by the keys, with any comparator. The sort is stable.
///
/// Otherwise this works as [`block_merge_sort`]. The values follow the keys in each merge, through shared memory of their own.
///
/// CUB: `BlockMergeSort::Sort`, `StableSort`.
///
/// All threads of the block call it: see [divergence](crate::block#divergence).
///
/// ```
/// use kernel_primitives::prelude::*;
///
/// /// The places of a tile's elements, the largest first.
/// #[kernel]
/// fn argsort(
///     cx: Block,
///     x: Global<i32>,
///     mut out: GlobalMut<u32, Tiles<2>>,
///     mut shared: Shared<MergeSortStorage<48, 2, i32, u32>>,
/// ) {
///     for tile in cx.tiles::<2>(out.len()) {
///         let mut keys = init::<i32, 2>(0);
///         read_data(cx, &mut keys, x.tile(tile));
///         let mut places = core::array::from_fn(|i| cx.thread_rank() * 2 + i as u32);
///         block_merge_sort_pairs(cx, &mut shared, &mut keys, &mut places, tile.len(), |a, b| a > b);
///         write_data(cx, out.tile(tile), &places);
///     }
/// }
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = kernel_primitives::Device::emulator().stream()?;
/// let mut out = stream.buffer_zeroed::<u32>(5)?;
/// argsort::launch(&stream, (1, 48), &stream.buffer_from(&[-10, 30, 20, 30, 0])?, &mut out)?;
/// assert_eq!(out.to_vec()?, [1, 3, 2, 4, 0]);
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn block_merge_sort_pairs<const THREADS: usize, const ITEMS: usize, K: Element, V: Element, C: Comparator<K>>(
    cx: Block<'_>,
    shared: &mut Shared<'_, MergeSortStorage<THREADS, ITEMS, K, V>>,
    keys: &mut [K; ITEMS],
    values: &mut [V; ITEMS],
    valid: usize,
    order: C,
) {
    shared.enter();
    cx.expect_at_most(valid, THREADS * ITEMS);
    let valid = valid.min(THREADS * ITEMS) as u32;
    order.have_sorted(MergeSort { cx, shared, keys, values, width: THREADS as u32, valid });
}

/// Sorts the keys of each group of `WIDTH` lanes, a power of two up to 32, by any comparator. The sort is stable.
///
/// Otherwise this works as [`block_merge_sort`], with `valid` and the positions counted in each group, and without a barrier of the block:
/// every warp has its own part of the storage. All warps of the block may call it or not, once after the last use of the storage. A second
/// call on the same `Shared` begins with a barrier of the block, unless it comes after [`Shared::sync`].
///
/// CUB: `WarpMergeSort::Sort`, `StableSort`. Differences: one storage serves all warps of the block.
///
/// All threads of the block call it: see [divergence](crate::block#divergence).
///
/// ```
/// use kernel_primitives::prelude::*;
///
/// /// Sorts each eight elements by their last decimal digit.
/// #[kernel]
/// fn by_last_digit(
///     cx: Block,
///     x: Global<u32>,
///     mut out: GlobalMut<u32, Tiles<2>>,
///     mut shared: Shared<MergeSortStorage<64, 2, u32>>,
/// ) {
///     for tile in cx.tiles::<2>(out.len()) {
///         let mut keys = init::<u32, 2>(0);
///         read_data(cx, &mut keys, x.tile(tile));
///         warp_merge_sort::<4, 64, 2, _, _>(cx, &mut shared, &mut keys, 8, |a: u32, b: u32| a % 10 < b % 10);
///         write_data(cx, out.tile(tile), &keys);
///     }
/// }
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = kernel_primitives::Device::emulator().stream()?;
/// let x = stream.buffer_from(&[14u32, 33, 12, 31, 24, 23, 22, 21, 8, 7, 6, 5, 4, 3, 2, 1])?;
/// let mut out = stream.buffer_zeroed::<u32>(16)?;
/// by_last_digit::launch(&stream, (1, 64), &x, &mut out)?;
/// assert_eq!(out.to_vec()?, [31, 21, 12, 22, 33, 23, 14, 24, 1, 2, 3, 4, 5, 6, 7, 8]);
/// # Ok(())
/// # }
/// ```
#[inline(always)]
#[track_caller]
pub fn warp_merge_sort<const WIDTH: u32, const THREADS: usize, const ITEMS: usize, K: Element, C: Comparator<K>>(
    cx: Block<'_>,
    shared: &mut Shared<'_, MergeSortStorage<THREADS, ITEMS, K>>,
    keys: &mut [K; ITEMS],
    valid: usize,
    order: C,
) {
    warp_merge_sort_pairs::<WIDTH, THREADS, ITEMS, K, _, C>(cx, shared, keys, &mut [[]; ITEMS], valid, order);
}

/// Sorts pairs of a key and a value by the keys, with any comparator, in each group of `WIDTH` lanes. The sort is stable.
///
/// Otherwise this works as [`warp_merge_sort`]. The values follow the keys in each merge, through shared memory of their own, as in the
/// example of [`block_merge_sort_pairs`].
///
/// CUB: `WarpMergeSort::Sort`, `StableSort`.
///
/// All threads of the block call it: see [divergence](crate::block#divergence).
#[track_caller]
pub fn warp_merge_sort_pairs<
    const WIDTH: u32,
    const THREADS: usize,
    const ITEMS: usize,
    K: Element,
    V: Element,
    C: Comparator<K>,
>(
    cx: Block<'_>,
    shared: &mut Shared<'_, MergeSortStorage<THREADS, ITEMS, K, V>>,
    keys: &mut [K; ITEMS],
    values: &mut [V; ITEMS],
    valid: usize,
    order: C,
) {
    const { assert!(WIDTH.is_power_of_two() && WIDTH <= 32, "a group has 1, 2, 4, 8, 16 or 32 lanes") };
    cx.expect_at_most(valid, WIDTH as usize * ITEMS);
    shared.enter();
    let start = cx.thread_rank() & !(WIDTH - 1);
    // A partial warp may have only a part of the group.
    let items = (THREADS as u32).saturating_sub(start).min(WIDTH) * ITEMS as u32;
    let valid = start * ITEMS as u32 + valid.min(items as usize) as u32;
    order.have_sorted(MergeSort { cx, shared, keys, values, width: WIDTH, valid });
}

/// Odd-even transposition: `ITEMS` rounds of exchanges between neighbours, where the upper neighbour takes part.
fn transpose_neighbours<const ITEMS: usize, K: Element, V: Element, C: Comparator<K>>(
    keys: &mut [K; ITEMS],
    values: &mut [V; ITEMS],
    order: &C,
    takes_part: impl Fn(u32) -> bool,
) {
    unrolled!(round < ITEMS, {
        unrolled!(i < ITEMS, where i % 2 == round % 2 && i + 1 < ITEMS, {
            let (a, b) = (keys[i], keys[i + 1]);
            let (u, v) = (values[i], values[i + 1]);
            let swap = takes_part(i as u32 + 1) && order.before(b, a);
            keys[i] = if swap { b } else { a };
            keys[i + 1] = if swap { a } else { b };
            values[i] = if swap { v } else { u };
            values[i + 1] = if swap { u } else { v };
        })
    });
}

/// A sort of groups of `width` threads, before the substitute of the keys is known.
struct MergeSort<'a, 'k, const THREADS: usize, const ITEMS: usize, K, V> {
    cx: Block<'k>,
    shared: &'a Shared<'k, MergeSortStorage<THREADS, ITEMS, K, V>>,
    keys: &'a mut [K; ITEMS],
    values: &'a mut [V; ITEMS],
    width: u32,
    /// Items from here on are in no run.
    valid: u32,
}

impl<const THREADS: usize, const ITEMS: usize, K: Element, V: Element> Sort<K>
    for MergeSort<'_, '_, THREADS, ITEMS, K, V>
{
    #[inline(always)]
    #[track_caller]
    fn by(self, order: &impl Comparator<K>) {
        let runs = Runs::begin(self.cx, self.shared);
        runs.sort_items(self.keys, self.values, self.valid, order);
        runs.merge_all(self.keys, self.values, 1, self.width, self.valid, order, None);
    }

    #[track_caller]
    fn in_order<O: Direction>(self)
    where
        K: SortKey,
    {
        const { assert!(size_of::<K::Bits>() == size_of::<K>(), "sort bits are of the key's size") };
        let order = |a: K::Bits, b: K::Bits| a < b;
        let runs = Runs::begin(self.cx, self.shared);
        let mut keys = [K::Bits::ZERO; ITEMS];
        unrolled!(i < ITEMS, keys[i] = to_bits::<K, O>(self.keys[i]));
        let mut run = 1;
        if const { size_of::<V>() == 0 && ITEMS.is_power_of_two() } {
            // If bits are equal, their order cannot be seen. So a network may sort them, which is faster than a merge.
            let own = runs.own(self.valid);
            let mut records = [Alone::<K>::LAST; ITEMS];
            unrolled!(
                i < ITEMS,
                if (i as u32) < own {
                    records[i] = keys[i].alone();
                }
            );
            run = self.width.next_power_of_two().min(WARP);
            Lanes::of_warp(self.cx).sort(&mut records, run);
            unrolled!(i < ITEMS, keys[i] = SortBits::of_alone(records[i]));
        } else {
            runs.sort_items(&mut keys, self.values, self.valid, &order);
        }
        runs.merge_all(&mut keys, self.values, run, self.width, self.valid, &order, None);
        unrolled!(i < ITEMS, self.keys[i] = of_bits::<K, O>(keys[i]));
    }
}

/// The next key of a run, and its place.
#[derive(Clone, Copy)]
struct Head<K> {
    at: u32,
    key: K,
}

/// Replaces one of two values, without an index, which would need memory.
#[inline(always)]
fn replace<T: Copy>([first, second]: &mut [T; 2], in_second: bool, with: T) {
    *first = if in_second { *first } else { with };
    *second = if in_second { with } else { *second };
}

/// The sorted runs of a block, in registers, and in shared memory while they merge.
struct Runs<'k, const THREADS: usize, const ITEMS: usize, K, V> {
    cx: Block<'k>,
    keys: SharedArray<'k, K>,
    values: SharedArray<'k, V>,
    rank: u32,
}

impl<'k, const THREADS: usize, const ITEMS: usize, K: Element, V: Element> Runs<'k, THREADS, ITEMS, K, V> {
    #[track_caller]
    fn begin<S: Element>(cx: Block<'k>, shared: &Shared<'k, MergeSortStorage<THREADS, ITEMS, S, V>>) -> Self {
        const { assert!(ITEMS >= 1 && ITEMS <= 16, "a merge sort takes 1 to 16 items a thread") };
        let threads = cx.block_threads() as usize;
        if threads != THREADS {
            cx.raise(FaultKind::BadShape, [threads as u64, THREADS as u64], Location::caller());
        }
        let keys = shared.array(0, const { places(THREADS, ITEMS, size_of::<K>()) });
        let before = const { MergeSortStorage::bytes_of([THREADS, ITEMS], [size_of::<K>(), 0]) };
        let values = shared.array(before, const { places(THREADS, ITEMS, size_of::<V>()) });
        Self { cx, keys, values, rank: cx.thread_rank() }
    }

    /// The place of the key at this position.
    #[inline(always)]
    fn key_place(position: u32) -> u32 {
        place(const { between_gaps(ITEMS, size_of::<K>()) }, position)
    }

    /// The place of the value at this position.
    #[inline(always)]
    fn value_place(position: u32) -> u32 {
        place(const { between_gaps(ITEMS, size_of::<V>()) }, position)
    }

    /// The number of this thread's items among the first `valid` of the block.
    #[inline(always)]
    fn own(&self, valid: u32) -> u32 {
        valid.saturating_sub(self.rank * ITEMS as u32)
    }

    /// Sorts the items of each thread. Those from `valid` on are in no run.
    fn sort_items<C: Comparator<K>>(&self, keys: &mut [K; ITEMS], values: &mut [V; ITEMS], valid: u32, order: &C) {
        let own = self.own(valid);
        if own >= ITEMS as u32 {
            transpose_neighbours(keys, values, order, |_| true);
        } else {
            transpose_neighbours(keys, values, order, |upper| upper < own);
        }
    }

    /// Merges the runs of `first` threads until those of `width` threads are sorted. The last of these may be shorter.
    #[allow(clippy::too_many_arguments, reason = "items, and where they are")]
    #[track_caller]
    fn merge_all<C: Comparator<K>>(
        &self,
        keys: &mut [K; ITEMS],
        values: &mut [V; ITEMS],
        first: u32,
        width: u32,
        valid: u32,
        order: &C,
        segments: Option<SharedArray<'k, [u32; 2]>>,
    ) {
        let mut run = first;
        // There is one copy of the code of the merges, to save registers and instruction cache.
        #[cfg(target_arch = "nvptx64")]
        {
            run = crate::simt::nvptx::opaque(run);
        }
        while run < width {
            if run > first {
                // The memory that is overwritten here was read by a group of this size.
                self.wait(run);
            }
            self.merge(keys, values, run, valid, order, segments);
            run *= 2;
        }
    }

    /// Waits for the threads of a group.
    #[track_caller]
    fn wait(&self, threads: u32) {
        if threads <= WARP {
            self.cx.sync_warp(self.cx.warp_mask());
        } else {
            self.cx.barrier();
        }
    }

    /// Merges the runs of `run` threads in pairs. If there are segments, merges only the segment across the border of the two runs.
    /// `segments` has the segment of each thread's first position.
    #[track_caller]
    fn merge<C: Comparator<K>>(
        &self,
        keys: &mut [K; ITEMS],
        values: &mut [V; ITEMS],
        run: u32,
        valid: u32,
        order: &C,
        segments: Option<SharedArray<'k, [u32; 2]>>,
    ) {
        let own = self.rank * ITEMS as u32;
        // SAFETY: this thread's places, which other threads have read before the wait.
        unsafe {
            store::<K, ITEMS>(self.keys, own, keys);
            store::<V, ITEMS>(self.values, own, values);
        }
        self.wait(2 * run);
        let group = self.rank & !(2 * run - 1);
        let mut start = group * ITEMS as u32;
        let mut end = (start + 2 * run * ITEMS as u32).min(valid).max(start);
        let mut middle = (start + run * ITEMS as u32).min(valid).max(start);
        if let Some(segments) = segments {
            // Without a second run, there is nothing to merge.
            let [begins, ends] = if group + run < THREADS as u32 {
                // SAFETY: written before the first wait.
                unsafe { segments.load((group + run) as usize) }
            } else {
                [u32::MAX; 2]
            };
            start = start.max(begins).min(end);
            end = end.min(ends).max(start);
            middle = middle.max(start).min(end);
        }
        if middle == start || middle == end {
            // There is only one run, which is in order.
            return;
        }
        // SAFETY: the group's positions were written before the wait, and are next written after another.
        let key = |position: u32| unsafe { self.keys.load(Self::key_place(position) as usize) };
        if !order.before(key(middle), key(middle - 1)) {
            // The two runs are one run already.
            return;
        }
        let skip = own.max(start).min(end) - start;
        // The merge path: how far the first `skip` items of the result reach in the first run, and so how far in the second run.
        let mut first = start + skip.saturating_sub(end - middle);
        let mut high = (start + skip).min(middle);
        let both = middle + start + skip;
        while first < high {
            let half = (first + high) / 2;
            if order.before(key(both - 1 - half), key(half)) {
                high = half;
            } else {
                first = half + 1;
            }
        }
        // Without gaps, places are in bytes, which step without a multiplication.
        let (has_gaps, step) = const {
            let has_gaps = between_gaps(ITEMS, size_of::<K>()) > 0;
            (has_gaps, if has_gaps { 1 } else { SharedArray::<K>::STEP })
        };
        let (from, upto) = (start, end);
        let (middle, end) = (middle * step, end * step);
        // A place where a read does no harm. All lanes read every time, so there is no branch.
        let last = end - step;
        let head = |at: u32| {
            let read = at.min(last);
            // SAFETY: as for `key`.
            let key = if has_gaps { key(read) } else { unsafe { self.keys.load_at(read as usize) } };
            Head { at, key }
        };
        let mut heads = [head(first * step), head((both - first) * step)];
        unrolled!(i < ITEMS, {
            let [first, second] = heads;
            let is_outside = segments.is_some() & ((own + (i as u32) < from) | (own + i as u32 >= upto));
            let take_second = (second.at < end) & ((first.at >= middle) | order.before(second.key, first.key));
            let taken = if take_second { second } else { first };
            keys[i] = if is_outside { keys[i] } else { taken.key };
            // After the end, there is nothing to take.
            if size_of::<V>() > 0 && taken.at < end && !is_outside {
                // SAFETY: as for the keys.
                values[i] = unsafe { self.values.load(Self::value_place(taken.at / step) as usize) };
            }
            // One load serves either run.
            let next = head(if is_outside { taken.at } else { taken.at + step });
            replace(&mut heads, take_second, next);
        });
    }
}
