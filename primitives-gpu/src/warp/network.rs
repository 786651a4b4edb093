//! Sorting networks over registers and lanes, which the bitonic sorts of a warp and of a block use.
//!
//! Item `j` of thread `t` is at position `t * N + j`. Every comparison puts the smaller item at the lower position. The textbook network
//! sorts half of its runs in reverse. Here, the first step of a merge compares the two runs end to end instead: position `i` of one run
//! with position `i` from the end of the other. So positions without an item, at the end of a block or a warp, count as items that are
//! greater than all others: comparisons with them are left out, and any number of threads can sort.

use crate::simt::{Block, WARP};
use crate::view::SharedArray;

mod record;

pub use record::{Record, SortBits, SortIndex};

/// Repeats a body for an index from 0 up to a constant of at most 16, or for those of which a condition is true. For a GPU, the index is a
/// constant: loops over registers must not remain loops, because the array would then be in local memory. On the host, where each
/// repetition would only take time to compile, it is a loop.
#[cfg(target_arch = "nvptx64")]
macro_rules! unrolled {
    ($i:ident < $n:expr, where $condition:expr, $body:expr) => { unrolled!($i < $n, if const { $condition } { $body }) };
    ($i:ident < $n:expr, $body:expr) => { unrolled!(@ $i, $n, $body, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15) };
    (@ $i:ident, $n:expr, $body:expr, $($k:literal)*) => {{$(
        // For an index that does not exist, the compiler makes no code that it would have to remove.
        if const { $k < $n } {
            #[allow(unconditional_panic, clippy::out_of_bounds_indexing, reason = "an index that is not there")]
            {
                #[allow(non_upper_case_globals, reason = "an index")]
                const $i: usize = $k;
                $body;
            }
        }
    )*}};
}
#[cfg(not(target_arch = "nvptx64"))]
macro_rules! unrolled {
    ($i:ident < $n:expr, where $condition:expr, $body:expr) => {
        unrolled!(
            $i < $n,
            if $condition {
                $body
            }
        )
    };
    ($i:ident < $n:expr, $body:expr) => {
        #[allow(clippy::needless_range_loop, reason = "constants for a GPU")]
        for $i in 0..$n {
            $body;
        }
    };
}
pub(crate) use unrolled;

/// Puts the items at two constant positions in order.
fn exchange<R: Record, const N: usize>(items: &mut [R; N], i: usize, j: usize) {
    let (a, b) = (items[i], items[j]);
    let swap = b.precedes(a);
    items[i] = if swap { b } else { a };
    items[j] = if swap { a } else { b };
}

/// Sorts a thread's items, 1, 2, 4, 8 or 16: Batcher's odd-even merge sort, in 0, 1, 5, 19 and 63 comparisons.
pub(crate) fn sort_items<R: Record, const N: usize>(items: &mut [R; N]) {
    macro_rules! exchanges {
        ($($i:literal $j:literal),*) => {$( exchange(items, $i, $j); )*};
    }
    if N >= 2 {
        unrolled!(
            i < N,
            if i.is_multiple_of(2) {
                exchange(items, i, i + 1)
            }
        );
    }
    if N >= 4 {
        unrolled!(
            i < N,
            if i % 4 < 2 {
                exchange(items, i, i + 2)
            }
        );
        unrolled!(
            i < N,
            if i % 4 == 1 {
                exchange(items, i, i + 1)
            }
        );
    }
    if N >= 8 {
        unrolled!(
            i < N,
            if i % 8 < 4 {
                exchange(items, i, i + 4)
            }
        );
        unrolled!(
            i < N,
            if i % 8 == 2 || i % 8 == 3 {
                exchange(items, i, i + 2)
            }
        );
        unrolled!(
            i < N,
            if i % 2 == 1 && i % 8 < 7 {
                exchange(items, i, i + 1)
            }
        );
    }
    if N == 16 {
        exchanges!(0 8, 1 9, 2 10, 3 11, 4 12, 5 13, 6 14, 7 15);
        exchanges!(4 8, 5 9, 6 10, 7 11);
        exchanges!(2 4, 3 5, 6 8, 7 9, 10 12, 11 13);
        exchanges!(1 2, 3 4, 5 6, 7 8, 9 10, 11 12, 13 14);
    }
}

/// Sorts the items of a thread, which must be bitonic: one ascending run and one descending run.
fn merge_items<R: Record, const N: usize>(items: &mut [R; N]) {
    if N >= 16 {
        unrolled!(
            i < N,
            if i & 8 == 0 {
                exchange(items, i, i + 8)
            }
        );
    }
    if N >= 8 {
        unrolled!(
            i < N,
            if i & 4 == 0 {
                exchange(items, i, i + 4)
            }
        );
    }
    if N >= 4 {
        unrolled!(
            i < N,
            if i & 2 == 0 {
                exchange(items, i, i + 2)
            }
        );
    }
    if N >= 2 {
        unrolled!(
            i < N,
            if i & 1 == 0 {
                exchange(items, i, i + 1)
            }
        );
    }
}

/// The lanes of a warp as a network sees them.
#[derive(Clone, Copy)]
pub(crate) struct Lanes<'k> {
    cx: Block<'k>,
    mask: u32,
    /// The number of existing lanes.
    count: u32,
}

impl<'k> Lanes<'k> {
    /// The lanes of this warp.
    #[inline(always)]
    pub(crate) fn of_warp(cx: Block<'k>) -> Self {
        Self { cx, mask: cx.warp_mask(), count: cx.warp_lanes() }
    }

    /// Sorts groups of `width` lanes, a power of two, each with `N` items in any order.
    #[track_caller]
    pub(crate) fn sort<R: Record, const N: usize>(self, items: &mut [R; N], width: u32) {
        sort_items(items);
        let mut size = 2;
        while size <= width {
            self.mirror(items, size - 1);
            self.clean(items, size / 4);
            size *= 2;
        }
    }

    /// Sorts groups of `2 * bit` lanes, or the items of a thread if `bit` is 0. Each must be a bitonic sequence.
    #[track_caller]
    pub(crate) fn clean<R: Record, const N: usize>(self, items: &mut [R; N], mut bit: u32) {
        let lane = self.cx.lane();
        while bit > 0 {
            let partner = lane ^ bit;
            // A lane without a partner compares with itself, which changes nothing.
            let source = if partner < self.count { partner } else { lane };
            let upper = lane & bit != 0;
            unrolled!(i < N, {
                let other = self.cx.shuffle(self.mask, items[i], source, WARP);
                items[i] = items[i].one_of(other, upper);
            });
            bit /= 2;
        }
        merge_items(items);
    }

    /// Compares, end to end, the items of lanes whose numbers differ in all of `bits`.
    #[track_caller]
    fn mirror<R: Record, const N: usize>(self, items: &mut [R; N], bits: u32) {
        let lane = self.cx.lane();
        let partner = lane ^ bits;
        let exists = partner < self.count;
        let source = if exists { partner } else { lane };
        let before = *items;
        unrolled!(i < N, {
            let other = self.cx.shuffle(self.mask, before[N - 1 - i], source, WARP);
            if exists {
                items[i] = items[i].one_of(other, partner < lane);
            }
        });
    }

    /// Works on each group of `width` lanes, a power of two. The first `keep` lanes and the middle `keep` lanes must have a sorted run
    /// each. Moves the smaller half of these items, sorted, to the first `keep` lanes. The items of the other lanes are lost.
    #[track_caller]
    pub(crate) fn select<R: Record, const N: usize>(self, items: &mut [R; N], width: u32, keep_lanes: u32) {
        let lane = self.cx.lane();
        // Lanes whose items are no longer needed read from any place in the warp.
        let partner = (lane & !(width - 1)) + width / 2 + ((keep_lanes - 1) & !lane);
        let exists = partner < self.count;
        let source = if exists { partner } else { lane };
        let before = *items;
        unrolled!(i < N, {
            let other = self.cx.shuffle(self.mask, before[N - 1 - i], source, WARP);
            if exists {
                items[i] = items[i].one_of(other, false);
            }
        });
        self.clean(items, keep_lanes / 2);
    }
}

/// The threads of a block as a network sees them. Lanes exchange by shuffles, and warps through shared memory.
pub(crate) struct Threads<'k, R> {
    lanes: Lanes<'k>,
    /// Two halves of `N` records for each thread. They are used alternately, so an exchange needs one barrier.
    halves: [SharedArray<'k, R>; 2],
    rank: u32,
    count: u32,
}

impl<'k, R: Record> Threads<'k, R> {
    /// Takes all threads of the block. Each half has as many records as the block has items.
    #[inline(always)]
    pub(crate) fn of_block(cx: Block<'k>, halves: [SharedArray<'k, R>; 2]) -> Self {
        Self { lanes: Lanes::of_warp(cx), halves, rank: cx.thread_rank(), count: cx.block_threads() }
    }

    /// Sorts the block's items.
    #[track_caller]
    pub(crate) fn sort<const N: usize>(&mut self, items: &mut [R; N]) {
        self.lanes.sort(items, WARP);
        let mut size = 2 * WARP;
        while size < 2 * self.count {
            self.meet(items, self.rank ^ (size - 1), true);
            self.clean(items, size / 4);
            size *= 2;
        }
    }

    /// Moves the smallest items, sorted, to the first `keep` threads, a power of two. The items of the other threads are lost.
    #[track_caller]
    pub(crate) fn select<const N: usize>(&mut self, items: &mut [R; N], keep: u32) {
        self.lanes.sort(items, keep.min(WARP));
        let mut size = 2 * WARP.min(keep);
        // Runs longer than a warp are made as in a sort.
        while size <= keep && size < 2 * self.count {
            self.meet(items, self.rank ^ (size - 1), true);
            self.clean(items, size / 4);
            size *= 2;
        }
        while size <= WARP {
            self.lanes.select(items, size, keep);
            size *= 2;
        }
        while size < 2 * self.count {
            let partner = (self.rank & !(size - 1)) + size / 2 + ((keep - 1) & !self.rank);
            // Only the first threads of a group take items; they are the lower ones.
            self.meet_lower(items, partner);
            self.clean(items, keep / 2);
            size *= 2;
        }
    }

    /// Sorts groups of `2 * bit` threads, each a bitonic sequence.
    #[track_caller]
    fn clean<const N: usize>(&mut self, items: &mut [R; N], mut bit: u32) {
        while bit >= WARP {
            self.meet(items, self.rank ^ bit, false);
            bit /= 2;
        }
        self.lanes.clean(items, bit);
    }

    /// Compares with a thread of another warp, item by item or end to end.
    #[track_caller]
    fn meet<const N: usize>(&mut self, items: &mut [R; N], partner: u32, mirrored: bool) {
        let array = self.publish(items);
        if partner < self.count {
            unrolled!(i < N, {
                let j = if mirrored { N - 1 - i } else { i };
                // SAFETY: an item of the partner, written before the barrier; the half is next written after another.
                let other = unsafe { array.load(j * self.count as usize + partner as usize) };
                items[i] = items[i].one_of(other, partner < self.rank);
            });
        }
    }

    /// Works as `meet` end to end, in the lower thread of the two.
    #[track_caller]
    fn meet_lower<const N: usize>(&mut self, items: &mut [R; N], partner: u32) {
        let array = self.publish(items);
        if partner < self.count {
            unrolled!(i < N, {
                // SAFETY: as in `meet`.
                let other = unsafe { array.load((N - 1 - i) * self.count as usize + partner as usize) };
                items[i] = items[i].one_of(other, false);
            });
        }
    }

    #[track_caller]
    fn publish<const N: usize>(&mut self, items: &[R; N]) -> SharedArray<'k, R> {
        let [array, next] = self.halves;
        self.halves = [next, array];
        unrolled!(i < N, {
            // SAFETY: a place of this thread alone. What other threads read there, they read before the barrier of the
            // exchange in between.
            unsafe { array.store(i * self.count as usize + self.rank as usize, items[i]) };
        });
        self.lanes.cx.barrier();
        array
    }
}
