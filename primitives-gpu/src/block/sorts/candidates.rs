//! The records that may be among the first `k` of many.

use super::top_k::{TopKStorage, threads_of};
use crate::element::SortKey;
use crate::functor::KeyOrder;
use crate::simt::{Block, WARP};
use crate::view::{Shared, SharedArray};
use crate::warp::{Ranked, Record, SortBits, Threads, unrolled};

/// The number of rounds between two looks at the number of candidates.
const TOGETHER: usize = 4;

/// The records that may be among the first `k` so far.
pub(super) struct Candidates<'k, K: SortKey, const TILE: usize, const ITEMS: usize> {
    cx: Block<'k>,
    /// The candidates, in any order. This is also one half of the network's memory.
    pub(super) records: SharedArray<'k, Ranked<K>>,
    other_half: SharedArray<'k, Ranked<K>>,
    threshold: SharedArray<'k, Ranked<K>>,
    count: SharedArray<'k, u32>,
    pub(super) k: u32,
    /// The `k`th record of the last reduction, or the end of the records that count.
    last: Ranked<K>,
}

impl<'k, K: SortKey, const TILE: usize, const ITEMS: usize> Candidates<'k, K, TILE, ITEMS> {
    /// Starts without candidates. Only records before `end` become candidates.
    #[track_caller]
    pub(super) fn begin<'s: 'k>(
        cx: Block<'k>,
        shared: &mut Shared<'s, TopKStorage<K, TILE>>,
        k: usize,
        end: Ranked<K>,
    ) -> Self {
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
            last: end,
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

    /// Adds the keys of `rounds` rounds: see [`block_top_k_by`](super::top_k::block_top_k_by), and for `SORTED`
    /// [`block_top_k_of_sorted`](super::top_k::block_top_k_of_sorted). With `BEFORE`, few keys come before the
    /// end that the candidates began with. Returns the number of candidates.
    #[track_caller]
    pub(super) fn add_rounds<const READ: usize, O: KeyOrder, const SORTED: bool, const BEFORE: bool>(
        &mut self,
        rounds: usize,
        order: O,
        read: impl Fn(usize) -> ([K; READ], [u32; READ], u32),
    ) -> u32 {
        const { assert!(READ <= 16 && READ.is_multiple_of(ITEMS / 2), "a round has several halves of the items") };
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
        let (cx, room) = (self.cx, self.room());
        let mut next = if BEFORE { ahead(0) } else { ([K::ZERO; READ], [0; READ], 0) };
        let (mut round, mut count) = (0, 0);
        while round < rounds {
            let end = (round + TOGETHER).min(rounds);
            let before = count;
            // In the first rounds, all keys are candidates. Later there are few, which are counted after the rounds.
            let are_few = BEFORE || round > 0;
            if are_few {
                for at in round..end {
                    let here = next;
                    next = ahead(at + 1);
                    let records = records(here);
                    if cx.any(cx.warp_mask(), self.has_better(&records)) {
                        self.append(&records, READ);
                    }
                }
                count = self.counted();
                if SORTED && count == before {
                    break;
                }
            }
            if !are_few || count > room {
                self.forget(before);
                for at in round..end {
                    let threads = cx.barrier_count(self.has_better(&records(read(at))));
                    if threads > 0 {
                        // Keys are read again instead of being kept in registers, because this is rare.
                        self.gather_round(threads, || records(read(at)));
                    }
                }
                next = ahead(end);
                count = self.counted();
            }
            // With that many, there is hardly room for the candidates of the next rounds.
            if count > room / 2 + self.k / 2 {
                self.cut();
                count = self.k;
            }
            round = end;
        }
        count
    }

    /// Returns the first `k`, sorted.
    #[track_caller]
    pub(super) fn finish(mut self, order: impl KeyOrder) -> ([K; ITEMS], [u32; ITEMS]) {
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
    pub(super) fn has_better<const N: usize>(&self, records: &[Ranked<K>; N]) -> bool {
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
    pub(super) fn gather<const N: usize>(&mut self, records: &[Ranked<K>; N], used: usize) {
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
    pub(super) fn cut(&mut self) -> [Ranked<K>; ITEMS] {
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
