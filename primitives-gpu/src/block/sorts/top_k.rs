//! Top-k: the first `k` of the keys of a block, or of any number of keys.

use core::marker::PhantomData;
use core::mem::{align_of, size_of};

use super::bitonic::{IndexedSortStorage, first_position, indexed_threads};
use crate::element::SortKey;
use crate::functor::{Direction, KeyOrder};
use crate::simt::{Block, WARP};
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
    const RECORD: usize = size_of::<Ranked<K>>();
    /// The place of the last record of the first `k`, after the candidates and the other half of the network's memory.
    const THRESHOLD: usize = 2 * TILE * Self::RECORD;
    /// The place of the number of candidates.
    const COUNT: usize = Self::THRESHOLD + Self::RECORD;
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
    let mut candidates = Candidates::<K, TILE, ITEMS>::begin(cx, shared, k);

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

/// The number of rounds between two looks at the number of candidates.
const TOGETHER: usize = 4;

#[track_caller]
fn rounds_of<const ITEMS: usize, const TILE: usize, const READ: usize, K: SortKey, O: KeyOrder, const SORTED: bool>(
    cx: Block<'_>,
    shared: &mut Shared<'_, TopKStorage<K, TILE>>,
    rounds: usize,
    k: usize,
    order: O,
    read: impl Fn(usize) -> ([K; READ], [u32; READ], u32),
) -> ([K; ITEMS], [u32; ITEMS]) {
    const { assert!(READ <= 16 && READ.is_multiple_of(ITEMS / 2), "a round has several halves of the items") };
    let mut candidates = Candidates::<K, TILE, ITEMS>::begin(cx, shared, k);
    let records = |(keys, indices, counting): ([K; READ], [u32; READ], u32)| {
        let mut records = [Ranked::<K>::LAST; READ];
        unrolled!(
            i < READ,
            if counting >> i & 1 != 0 {
                records[i] = order.to_bits(keys[i]).ranked(indices[i]);
            }
        );
        records
    };
    let ahead = |round: usize| if round < rounds { read(round) } else { ([K::ZERO; READ], [0; READ], 0) };
    let room = candidates.room();
    let mut next = ([K::ZERO; READ], [0; READ], 0);
    let (mut round, mut count) = (0, 0);
    while round < rounds {
        let end = (round + TOGETHER).min(rounds);
        let before = count;
        // In the first rounds, all keys are candidates. Later there are few, which are counted after the rounds.
        if round > 0 {
            for at in round..end {
                let here = next;
                next = ahead(at + 1);
                let records = records(here);
                if cx.any(cx.warp_mask(), candidates.has_better(&records)) {
                    candidates.append(&records, READ);
                }
            }
            count = candidates.counted();
            if SORTED && count == before {
                break;
            }
        }
        if round == 0 || count > room {
            candidates.forget(before);
            for at in round..end {
                let threads = cx.barrier_count(candidates.has_better(&records(read(at))));
                if threads > 0 {
                    // Keys are read again instead of being kept in registers, because this is rare.
                    candidates.gather_round(threads, || records(read(at)));
                }
            }
            next = ahead(end);
            count = candidates.counted();
        }
        // With that many, there is hardly room for the candidates of the next rounds.
        if count > room / 2 + candidates.k / 2 {
            candidates.cut();
            count = candidates.k;
        }
        round = end;
    }
    candidates.finish(order)
}

/// The records that may be among the first `k` so far.
struct Candidates<'k, K: SortKey, const TILE: usize, const ITEMS: usize> {
    cx: Block<'k>,
    /// The candidates, in any order. This is also one half of the network's memory.
    records: SharedArray<'k, Ranked<K>>,
    other_half: SharedArray<'k, Ranked<K>>,
    threshold: SharedArray<'k, Ranked<K>>,
    count: SharedArray<'k, u32>,
    k: u32,
    /// The `k`th record of the last reduction.
    last: Ranked<K>,
}

impl<'k, K: SortKey, const TILE: usize, const ITEMS: usize> Candidates<'k, K, TILE, ITEMS> {
    /// Starts without candidates.
    #[track_caller]
    fn begin<'s: 'k>(cx: Block<'k>, shared: &mut Shared<'s, TopKStorage<K, TILE>>, k: usize) -> Self {
        const { assert!(matches!(ITEMS, 2 | 4 | 8 | 16), "the first few of many keys take 2, 4, 8 or 16 items a thread") };
        let tile = cx.block_threads() as usize * ITEMS;
        cx.require_at_most(tile, TILE);
        cx.require_at_most(k, tile / 2);
        shared.enter();
        let candidates = Self {
            cx,
            records: shared.array(0, TILE),
            other_half: shared.array(TILE * TopKStorage::<K, TILE>::RECORD, TILE),
            threshold: shared.array(TopKStorage::<K, TILE>::THRESHOLD, 1),
            count: shared.array(TopKStorage::<K, TILE>::COUNT, 1),
            k: k as u32,
            last: Record::LAST,
        };
        // SAFETY: only the first thread writes; the barrier comes before the others' accesses.
        unsafe {
            if cx.thread_rank() == 0 {
                candidates.count.store(0, 0);
            }
        }
        cx.barrier();
        candidates
    }

    /// Returns the first `k`, sorted.
    #[track_caller]
    fn finish(mut self, order: impl KeyOrder) -> ([K; ITEMS], [u32; ITEMS]) {
        self.cx.barrier();
        let records = self.cut();
        let (mut keys, mut indices) = ([K::ZERO; ITEMS], [0; ITEMS]);
        unrolled!(i < ITEMS, {
            let (bits, index) = SortBits::of_ranked(records[i]);
            (keys[i], indices[i]) = (order.of_bits(bits), index);
        });
        (keys, indices)
    }

    /// Returns whether one of the records comes before the `k`th.
    #[inline(always)]
    fn has_better<const N: usize>(&self, records: &[Ranked<K>; N]) -> bool {
        let mut any = false;
        unrolled!(i < N, any |= records[i].precedes(self.last));
        any
    }

    /// The number of candidates that there is room for.
    #[inline(always)]
    fn room(&self) -> u32 {
        self.cx.block_threads() * ITEMS as u32
    }

    /// Adds those of the first `used` records of each thread that come before the `k`th. A thread uses at most half of `ITEMS`, or so few
    /// threads have any that the total is the same. A barrier must come first.
    #[inline(always)]
    #[track_caller]
    fn gather<const N: usize>(&mut self, records: &[Ranked<K>; N], used: usize) {
        self.make_room();
        self.append(records, used);
    }

    /// Works as `gather` for all of the records that `threads` threads have: at once if they are few, otherwise in halves of `ITEMS`.
    #[track_caller]
    fn gather_round<const READ: usize>(&mut self, threads: u32, records: impl Fn() -> [Ranked<K>; READ]) {
        let at_once = threads * READ as u32 <= self.room() / 2;
        let turns = if at_once { 1 } else { const { (READ / (ITEMS / 2)) as u32 } };
        let mut turn = 0;
        loop {
            let mut own = records();
            if !at_once {
                let all = own;
                unrolled!(i < READ, {
                    own[i] = Ranked::<K>::LAST;
                    unrolled!(
                        k < READ,
                        // The index is not data, because that would need memory.
                        if i < ITEMS / 2 && k % (ITEMS / 2) == i && (k / (ITEMS / 2)) as u32 == turn {
                            own[i] = all[k];
                        }
                    );
                });
            }
            self.gather(&own, READ);
            turn += 1;
            if turn == turns {
                return;
            }
            self.cx.barrier();
        }
    }

    /// The number of candidates. It has barriers before and after.
    #[track_caller]
    fn counted(&self) -> u32 {
        self.cx.barrier();
        // SAFETY: the first thread has written it, and barriers lie between this and the additions.
        let count = unsafe { self.count.load(0) };
        self.cx.barrier();
        count
    }

    /// Drops all but the first `count` candidates. A barrier must come after it.
    #[track_caller]
    fn forget(&self, count: u32) {
        if self.cx.thread_rank() == 0 {
            // SAFETY: only this thread writes, between barriers.
            unsafe { self.count.store(0, count) };
        }
        self.cx.barrier();
    }

    /// Adds those of the first `used` records that come before the `k`th. If there is no room for a record, it is counted, but lost.
    #[track_caller]
    fn append<const N: usize>(&self, records: &[Ranked<K>; N], used: usize) {
        let (cx, room) = (self.cx, self.room());
        let mask = cx.warp_mask();
        let below = (1 << cx.lane()) - 1;
        let mut better = [false; N];
        let mut places = [0u32; N];
        let mut total = 0;
        unrolled!(
            i < N,
            if i < used {
                better[i] = records[i].precedes(self.last);
                let votes = cx.ballot(mask, better[i]);
                places[i] = total + (votes & below).count_ones();
                total += votes.count_ones();
            }
        );
        let mut start = 0;
        if cx.lane() == 0 && total > 0 {
            // SAFETY: inside; a barrier lies between this and plain accesses.
            start = unsafe { self.count.at(0) }.fetch_add(total);
        }
        let start = cx.shuffle(mask, start, 0, WARP);
        unrolled!(
            i < N,
            if better[i] && start + places[i] < room {
                // SAFETY: a place of this thread alone, and inside: there is room.
                unsafe { self.records.store((start + places[i]) as usize, records[i]) };
            }
        );
    }

    /// Makes room for half of the largest number of candidates: `k` are no more than the other half. Barriers come before and after.
    #[track_caller]
    fn make_room(&mut self) {
        // SAFETY: barriers lie between the additions and this, and between this and the next ones.
        if unsafe { self.count.load(0) } > self.room() / 2 {
            self.cut();
        } else {
            self.cx.barrier();
        }
    }

    /// Reduces the candidates to the first `k`, which stay in shared memory in order, and returns them in the order of the threads. A
    /// barrier must come first.
    #[track_caller]
    fn cut(&mut self) -> [Ranked<K>; ITEMS] {
        let cx = self.cx;
        let first = cx.thread_rank() * ITEMS as u32;
        let mut records = [Ranked::<K>::LAST; ITEMS];
        // SAFETY: the candidates were written before the last barrier, and the places are inside.
        let count = unsafe { self.count.load(0) };
        unrolled!(
            i < ITEMS,
            if first + (i as u32) < count {
                // SAFETY: as above.
                records[i] = unsafe { self.records.load(first as usize + i) };
            }
        );
        cx.barrier();
        Threads::of_block(cx, [self.records, self.other_half]).select(&mut records, threads_of::<ITEMS>(self.k));
        cx.barrier();
        // SAFETY: places of this thread alone; the network's accesses came before the barrier, and the next reads come after
        // the one below.
        unsafe {
            unrolled!(i < ITEMS, {
                if first + (i as u32) < self.k.min(count) {
                    self.records.store(first as usize + i, records[i]);
                }
                if first + i as u32 + 1 == self.k {
                    self.threshold.store(0, records[i]);
                }
            });
            if cx.thread_rank() == 0 {
                self.count.store(0, self.k.min(count));
            }
        }
        cx.barrier();
        if self.k > 0 {
            // SAFETY: the thread with the `k`th record has written it before the barrier.
            self.last = unsafe { self.threshold.load(0) };
        }
        records
    }
}

/// The number of threads that hold `k` results, a power of two.
#[inline(always)]
fn threads_of<const ITEMS: usize>(k: u32) -> u32 {
    k.div_ceil(ITEMS as u32).max(1).next_power_of_two()
}
