//! Top-k: the first `k` of the keys of a block, or of any number of keys.

use core::marker::PhantomData;
use core::mem::{align_of, size_of};

use super::bitonic::{IndexedSortStorage, first_position, indexed_threads};
use super::candidates::Candidates;
use crate::element::SortKey;
use crate::functor::{Direction, KeyOrder};
use crate::simt::Block;
use crate::view::{Global, Shared, SharedArray, SharedStorage};
use crate::warp::{Ranked, Record, SortBits, Threads, of_ranked, ranked, unrolled};

/// Finds the first `k` keys of the block in an order, and sorts them, with their indices. [`Less`](crate::functor::Less) finds the smallest
/// keys, and [`Greater`](crate::functor::Greater) the largest. Of equal keys, the one with the lower index comes first, so the result does
/// not depend on the arrangement.
///
/// The arrangement is blocked: thread `t` holds positions `t * ITEMS` to `t * ITEMS + ITEMS`. The first `valid` positions count. `ITEMS` is
/// 1, 2, 4, 8 or 16. Afterwards the first `min(k, valid)` positions hold the result; the other positions are unspecified. A `valid` of more
/// than `TILE` counts as `TILE`, and the emulator reports it. `k` must be the same in all threads. Any block shape works. A block with more
/// than `TILE` items is a fault.
///
/// Phases: runs of `p` items are sorted, where `p` is `k` rounded up to a power of two, and at least `ITEMS`. Then each merge of two runs
/// keeps the first `p`. Cost: for 2^`n` items and `p` = 2^`m`, about `m * (m + 1) / 2 + (n - m) * (m + 1)` comparisons for each item
/// instead of `n * (n + 1) / 2`; one barrier for each merge of two warps' runs.
///
/// Shared memory: that of [`block_sort_with_index`](crate::block::block_sort_with_index).
///
/// CUB has no such collective.
///
/// All threads of the block call it: see [divergence](crate::block#divergence).
///
/// ```
/// use kernel_primitives::block::{IndexedSortStorage, block_top_k};
/// use kernel_primitives::functor::Greater;
/// use kernel_primitives::prelude::*;
///
/// /// The indices of the three largest, from the first thread.
/// #[kernel]
/// fn largest_three(
///     cx: Block,
///     x: Global<f32>,
///     mut out: GlobalMut<[u32; 4], PerBlock>,
///     mut shared: Shared<IndexedSortStorage<f32, 512>>,
/// ) {
///     let first = cx.thread_rank() * 4;
///     let mut keys = init::<f32, 4>(0.0);
///     let mut indices = [first, first + 1, first + 2, first + 3];
///     read_data(cx, &mut keys, x);
///     block_top_k(cx, &mut shared, &mut keys, &mut indices, x.len(), 3, Greater);
///     out.store(indices);
/// }
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = kernel_primitives::Device::emulator().stream()?;
/// let x: Vec<f32> = (0..500).map(|i| (i * 7 % 100) as f32).collect();
/// let mut out = stream.buffer_zeroed::<[u32; 4]>(1)?;
/// largest_three::launch(&stream, (1, 128), &stream.buffer_from(&x)?, &mut out)?;
/// // 99 is there five times.
/// assert_eq!(out.to_vec()?[0][..3], [57, 157, 257]);
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn block_top_k<const ITEMS: usize, const TILE: usize, K: SortKey, O: Direction>(
    cx: Block<'_>,
    shared: &mut Shared<'_, IndexedSortStorage<K, TILE>>,
    keys: &mut [K; ITEMS],
    indices: &mut [u32; ITEMS],
    valid: usize,
    k: usize,
    order: O,
) {
    let _ = order;
    cx.expect_at_most(valid, TILE);
    let mut records = ranked::<K, O, u32, ITEMS>(keys, indices, first_position::<ITEMS, TILE>(cx), valid);
    shared.enter();
    // No run is longer than the tile.
    indexed_threads(cx, shared).select(&mut records, threads_of::<ITEMS>(k.min(TILE) as u32));
    of_ranked::<K, O, u32, ITEMS>(&records, keys, indices);
}

/// The shared memory of [`block_top_k_of`] for blocks with up to `TILE` items: two records for each item, and one more. A record has 8
/// bytes (12 for keys of 8 bytes).
pub struct TopKStorage<K, const TILE: usize>(PhantomData<K>);

impl<K: SortKey, const TILE: usize> TopKStorage<K, TILE> {
    pub(super) const RECORD: usize = size_of::<Ranked<K>>();
    /// The place of the last record of the first `k`, after the candidates and the other half of the network's memory.
    pub(super) const THRESHOLD: usize = 2 * TILE * Self::RECORD;
    /// The place of the number of candidates.
    pub(super) const COUNT: usize = Self::THRESHOLD + Self::RECORD;
}

// SAFETY: uninitialised records, and a number.
unsafe impl<K: SortKey, const TILE: usize> SharedStorage for TopKStorage<K, TILE> {
    const BYTES: usize = Self::COUNT + size_of::<u32>();
    const ALIGN: usize = align_of::<Ranked<K>>();
}

/// Finds the first `k` of any number of keys in global memory, and sorts them, with their indices in `x`. `x` and `k` must be the same in
/// all threads of the block.
///
/// The result is in the blocked arrangement: thread `t` holds the results `t * ITEMS` to `t * ITEMS + ITEMS`. The first `min(k, x.len())`
/// count; the others are unspecified. Order, ties and block shapes are those of [`block_top_k`]; `ITEMS` is 2, 4, 8 or 16. These are
/// faults: a `k` above half the items of the block, a block of more than `TILE` items, and 2^32 keys or more.
///
/// Phases: each thread of the block reads `ITEMS / 2` keys at a time. Keys that come before the `k`th found so far are collected in shared
/// memory. When the storage is full, [`block_top_k`] reduces them to `k`. Cost: one pass over `x` with a barrier for each read, and, for
/// `n` keys in random order, about `k * ln(n / k)` candidates. At least `TILE / 2 - k` of them fit between two reductions. The worst case
/// is an input whose keys get better all the way: each read then needs a reduction.
///
/// CUB has no such collective.
///
/// All threads of the block call it: see [divergence](crate::block#divergence).
///
/// ```
/// use kernel_primitives::block::{TopKStorage, block_top_k_of};
/// use kernel_primitives::functor::Less;
/// use kernel_primitives::prelude::*;
///
/// /// The smallest element and its index, from the first thread.
/// #[kernel]
/// fn smallest(
///     cx: Block,
///     x: Global<i64>,
///     mut out: GlobalMut<[i64; 2], PerBlock>,
///     mut shared: Shared<TopKStorage<i64, 256>>,
/// ) {
///     let (keys, indices) = block_top_k_of::<4, 256, _, _>(cx, &mut shared, x, 1, Less);
///     out.store([keys[0], indices[0] as i64]);
/// }
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = kernel_primitives::Device::emulator().stream()?;
/// let x: Vec<i64> = (0..1000).map(|i| (i - 700) * (i - 700)).collect();
/// let mut out = stream.buffer_zeroed::<[i64; 2]>(1)?;
/// smallest::launch(&stream, (1, 64), &stream.buffer_from(&x)?, &mut out)?;
/// assert_eq!(out.to_vec()?, [[0, 700]]);
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn block_top_k_of<const ITEMS: usize, const TILE: usize, K: SortKey, O: Direction>(
    cx: Block<'_>,
    shared: &mut Shared<'_, TopKStorage<K, TILE>>,
    x: Global<'_, K>,
    k: usize,
    order: O,
) -> ([K; ITEMS], [u32; ITEMS]) {
    let threads = cx.block_threads() as usize;
    let step = threads * (ITEMS / 2);
    cx.require_at_most(x.len(), u32::MAX as usize);
    let mut candidates = Candidates::<K, TILE, ITEMS>::begin(cx, shared, k, Ranked::<K>::LAST);

    let mut start = cx.thread_rank() as usize;
    let end = x.len().next_multiple_of(step) + start;
    while start < end {
        let mut records = [Ranked::<K>::LAST; ITEMS];
        unrolled!(
            i < ITEMS,
            if i < ITEMS / 2 {
                let index = start + i * threads;
                if let Some(key) = x.get(index) {
                    records[i] = order.to_bits(key).ranked(index as u32);
                }
            }
        );
        if cx.barrier_any(candidates.has_better(&records)) {
            candidates.gather(&records, ITEMS / 2);
        }
        start += step;
    }
    candidates.finish(order)
}

/// Finds the first `k` of any number of keys that the threads of the block read, and sorts them, with their indices.
///
/// Otherwise this works as [`block_top_k_of`]. There are `rounds` rounds, the same number in all threads. In each round, a thread `read`s
/// up to `READ` keys. Each has an index that decides among equal keys, and a bit that says whether it counts; the lowest bit is that of the
/// first key. `READ` is a multiple of half of `ITEMS`, and at most 16. Keys can come from anywhere: other inputs, a part of a view, or in
/// another order than their indices.
///
/// Phases: each warp by itself adds the keys of four rounds that come before the `k`th so far, until the storage is full. Then, after a
/// barrier, the candidates are reduced to `k` if there are many. If some keys did not fit, they are dropped, and the rounds are repeated in
/// the way of [`block_top_k_of`]. A round is read while the previous one is processed.
///
/// CUB has no such collective.
///
/// All threads of the block call it: see [divergence](crate::block#divergence).
///
/// ```
/// use kernel_primitives::block::{TopKStorage, block_top_k_by};
/// use kernel_primitives::functor::Greater;
/// use kernel_primitives::prelude::*;
///
/// /// The largest two of the positive elements, from the first thread.
/// #[kernel]
/// fn largest(cx: Block, x: Global<f32>, mut out: GlobalMut<[f32; 2], PerBlock>, mut shared: Shared<TopKStorage<f32, 256>>) {
///     let (found, _): ([f32; 4], _) = block_top_k_by(cx, &mut shared, x.len().div_ceil(128), 2, Greater, |round: usize| {
///         let at = (round * 128) as u32 + cx.thread_rank() * 2;
///         let mut keys = init::<f32, 2>(0.0);
///         x.read_items(at as usize, &mut keys);
///         (keys, [at, at + 1], (keys[0] > 0.0) as u32 | ((keys[1] > 0.0) as u32) << 1)
///     });
///     out.store([found[0], found[1]]);
/// }
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = kernel_primitives::Device::emulator().stream()?;
/// let x: Vec<f32> = (0..1000).map(|i| (i % 77) as f32 * if i % 2 == 0 { 1.0 } else { -1.0 }).collect();
/// let mut out = stream.buffer_zeroed::<[f32; 2]>(1)?;
/// largest::launch(&stream, (1, 64), &stream.buffer_from(&x)?, &mut out)?;
/// assert_eq!(out.to_vec()?, [[76.0, 76.0]]);
/// # Ok(())
/// # }
/// ```
#[inline(always)]
#[track_caller]
pub fn block_top_k_by<const ITEMS: usize, const TILE: usize, const READ: usize, K: SortKey, O: KeyOrder>(
    cx: Block<'_>,
    shared: &mut Shared<'_, TopKStorage<K, TILE>>,
    rounds: usize,
    k: usize,
    order: O,
    read: impl Fn(usize) -> ([K; READ], [u32; READ], u32),
) -> ([K; ITEMS], [u32; ITEMS]) {
    rounds_of::<ITEMS, TILE, READ, K, O, false>(cx, shared, rounds, k, order, read)
}

/// Works as [`block_top_k_by`], for the keys of several sorted sequences. The rounds end when no key of four rounds comes before the `k`th
/// so far.
///
/// Any four rounds must read at least one key of each sequence that has more keys, in the order of the sequence. Of equal keys of a
/// sequence, the one with the lower index must come first. Then no later key of a sequence comes before the keys that four rounds have read
/// of it.
///
/// CUB has no such collective.
///
/// All threads of the block call it: see [divergence](crate::block#divergence).
#[inline(always)]
#[track_caller]
pub fn block_top_k_of_sorted<const ITEMS: usize, const TILE: usize, const READ: usize, K: SortKey, O: KeyOrder>(
    cx: Block<'_>,
    shared: &mut Shared<'_, TopKStorage<K, TILE>>,
    rounds: usize,
    k: usize,
    order: O,
    read: impl Fn(usize) -> ([K; READ], [u32; READ], u32),
) -> ([K; ITEMS], [u32; ITEMS]) {
    rounds_of::<ITEMS, TILE, READ, K, O, true>(cx, shared, rounds, k, order, read)
}

#[track_caller]
fn rounds_of<const ITEMS: usize, const TILE: usize, const READ: usize, K: SortKey, O: KeyOrder, const SORTED: bool>(
    cx: Block<'_>,
    shared: &mut Shared<'_, TopKStorage<K, TILE>>,
    rounds: usize,
    k: usize,
    order: O,
    read: impl Fn(usize) -> ([K; READ], [u32; READ], u32),
) -> ([K; ITEMS], [u32; ITEMS]) {
    let mut candidates = Candidates::<K, TILE, ITEMS>::begin(cx, shared, k, Ranked::<K>::LAST);
    candidates.add_rounds::<READ, O, SORTED, false>(rounds, order, read);
    candidates.finish(order)
}

/// The records of at most `k` keys, in shared memory, in any order.
#[doc(hidden)]
pub struct TopKFound<'k, K: SortKey> {
    records: SharedArray<'k, Ranked<K>>,
    count: u32,
}

impl<K: SortKey> TopKFound<'_, K> {
    /// How many there are. It is the same in all threads.
    #[inline(always)]
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Returns one of them. There is no such record from `count` on.
    #[inline(always)]
    #[track_caller]
    pub fn get(&self, index: u32) -> Option<Ranked<K>> {
        // SAFETY: a barrier lies between the writes and this, and there are no more of them than the array has elements.
        if index < self.count { Some(unsafe { self.records.load(index as usize) }) } else { None }
    }
}

/// Works as [`block_top_k_by`], for the keys whose records come before `end`, and without sorting them: if these are no more than `k`, all of
/// them are found, and otherwise the first `k`. A block has room for `ITEMS` candidates of each thread.
///
/// All threads of the block call it: see [divergence](crate::block#divergence).
#[doc(hidden)]
#[inline(always)]
#[track_caller]
pub fn block_top_k_before<
    'a,
    's: 'a,
    const ITEMS: usize,
    const TILE: usize,
    const READ: usize,
    K: SortKey,
    O: KeyOrder,
>(
    cx: Block<'a>,
    shared: &'a mut Shared<'s, TopKStorage<K, TILE>>,
    rounds: usize,
    k: usize,
    order: O,
    end: Ranked<K>,
    read: impl Fn(usize) -> ([K; READ], [u32; READ], u32),
) -> TopKFound<'a, K> {
    let mut candidates = Candidates::<K, TILE, ITEMS>::begin(cx, shared, k, end);
    let mut count = candidates.add_rounds::<READ, O, false, true>(rounds, order, read);
    if count > candidates.k {
        candidates.cut();
        count = candidates.k;
    }
    TopKFound { records: candidates.records, count }
}

/// Sorts the first `k` of the records of the block's threads: thread `t` has the `t`th afterwards. From `k` on, they are unspecified.
///
/// All threads of the block call it: see [divergence](crate::block#divergence).
#[doc(hidden)]
#[inline(always)]
#[track_caller]
pub fn block_top_k_records<const TILE: usize, K: SortKey>(
    cx: Block<'_>,
    shared: &mut Shared<'_, TopKStorage<K, TILE>>,
    record: Ranked<K>,
    k: usize,
) -> Ranked<K> {
    cx.require_at_most(cx.block_threads() as usize, TILE);
    shared.enter();
    let halves = [shared.array(0, TILE), shared.array(TILE * TopKStorage::<K, TILE>::RECORD, TILE)];
    let mut records = [record];
    Threads::of_block(cx, halves).select(&mut records, threads_of::<1>(k.min(TILE) as u32));
    records[0]
}

/// The number of threads that hold `k` results, a power of two.
#[inline(always)]
pub(super) fn threads_of<const ITEMS: usize>(k: u32) -> u32 {
    k.div_ceil(ITEMS as u32).max(1).next_power_of_two()
}
