//! Sorting networks over registers and lanes: what the bitonic sorts of a warp and of a block are made of.
//!
//! Item `j` of thread `t` is at position `t * N + j`. Every comparison puts the smaller item at the lower position: where the
//! textbook network sorts half of its runs the other way round, the first step of a merge here compares the two runs end to
//! end (position `i` of the one with the `i`th from the end of the other). So positions that nobody holds, at the end of
//! a block or a warp, count as items greater than all: comparisons with them are left out, and any number of threads sorts.

use crate::element::Element;
use crate::simt::{Block, WARP};
use crate::view::SharedArray;

/// What a network moves. The order is total: of two records that differ, one precedes the other.
pub trait Record: Element {
    /// Whether this one comes first.
    #[doc(hidden)]
    fn precedes(self, other: Self) -> bool;
    /// The record that no other comes after.
    #[doc(hidden)]
    const LAST: Self;
}

impl Record for u32 {
    const LAST: Self = u32::MAX;
    #[inline(always)]
    fn precedes(self, other: Self) -> bool {
        self < other
    }
}

impl Record for u64 {
    const LAST: Self = u64::MAX;
    #[inline(always)]
    fn precedes(self, other: Self) -> bool {
        self < other
    }
}

/// 64 bits, high word first, and an index of 32; or the other way round.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct Long([u32; 3]);

// SAFETY: three words.
unsafe impl crate::element::KernelParam for Long {}
// SAFETY: three words, of which any bits are values.
unsafe impl Element for Long {
    const ZERO: Self = Self([0; 3]);
}

/// 64 bits, high word first, and an index of as many.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct Longest([u32; 4]);

// SAFETY: four words.
unsafe impl crate::element::KernelParam for Longest {}
// SAFETY: four words, of which any bits are values.
unsafe impl Element for Longest {
    const ZERO: Self = Self([0; 4]);
}

impl Record for Longest {
    const LAST: Self = Self([u32::MAX; 4]);
    #[inline(always)]
    fn precedes(self, other: Self) -> bool {
        let parts = |Self([a, b, c, d]): Self| (both_words(a, b), both_words(c, d));
        let ((a, i), (b, j)) = (parts(self), parts(other));
        a < b || (a == b && i < j)
    }
}

#[inline(always)]
fn both_words(high: u32, low: u32) -> u64 {
    (high as u64) << 32 | low as u64
}

impl Record for Long {
    const LAST: Self = Self([u32::MAX; 3]);
    #[inline(always)]
    fn precedes(self, other: Self) -> bool {
        let bits = |Self([high, low, _]): Self| both_words(high, low);
        let (a, b) = (bits(self), bits(other));
        a < b || (a == b && self.0[2] < other.0[2])
    }
}

/// The unsigned integers that [`SortKey`](crate::element::SortKey)s map to, as sorts handle them: in records, alone or
/// with an index behind, and digit by digit.
pub trait SortBits: Element {
    #[doc(hidden)]
    type Alone: Record;
    #[doc(hidden)]
    type Ranked: Record;
    #[doc(hidden)]
    type RankedLong: Record;
    #[doc(hidden)]
    fn alone(self) -> Self::Alone;
    #[doc(hidden)]
    fn of_alone(record: Self::Alone) -> Self;
    #[doc(hidden)]
    fn ranked(self, index: u32) -> Self::Ranked;
    #[doc(hidden)]
    fn of_ranked(record: Self::Ranked) -> (Self, u32);
    #[doc(hidden)]
    fn ranked_long(self, index: u64) -> Self::RankedLong;
    #[doc(hidden)]
    fn of_ranked_long(record: Self::RankedLong) -> (Self, u64);
    #[doc(hidden)]
    fn inverted(self) -> Self;
    #[doc(hidden)]
    fn bits_from(self, begin: u32) -> u32;
    #[doc(hidden)]
    fn to_word(self) -> u64;
    #[doc(hidden)]
    fn of_word(word: u64) -> Self;
}

macro_rules! sort_bits {
    ($($t:ty, $alone:ty, $ranked:ty, $rank:expr, $unrank:expr, $long:ty, $rank_long:expr, $unrank_long:expr;)*) => {$(
        impl SortBits for $t {
            type Alone = $alone;
            type Ranked = $ranked;
            type RankedLong = $long;
            #[inline(always)]
            fn alone(self) -> $alone { self as $alone }
            #[inline(always)]
            fn of_alone(record: $alone) -> Self { record as $t }
            #[inline(always)]
            fn ranked(self, index: u32) -> $ranked { let f: fn($t, u32) -> $ranked = $rank; f(self, index) }
            #[inline(always)]
            fn of_ranked(record: $ranked) -> ($t, u32) { let f: fn($ranked) -> ($t, u32) = $unrank; f(record) }
            #[inline(always)]
            fn ranked_long(self, index: u64) -> $long { let f: fn($t, u64) -> $long = $rank_long; f(self, index) }
            #[inline(always)]
            fn of_ranked_long(record: $long) -> ($t, u64) { let f: fn($long) -> ($t, u64) = $unrank_long; f(record) }
            #[inline(always)]
            fn inverted(self) -> Self { !self }
            #[inline(always)]
            fn bits_from(self, begin: u32) -> u32 { (self >> begin) as u32 }
            #[inline(always)]
            fn to_word(self) -> u64 { self as u64 }
            #[inline(always)]
            fn of_word(word: u64) -> Self { word as Self }
        }
    )*};
    ($($t:ty: $alone:ty),*) => { sort_bits! { $(
        $t, $alone, u64, |bits, index| (bits as u64) << 32 | index as u64, |record| ((record >> 32) as $t, record as u32),
            Long, |bits, index| Long([bits as u32, (index >> 32) as u32, index as u32]),
            |Long([bits, high, low])| (bits as $t, both_words(high, low));
    )* } };
    (long $($t:ty),*) => { sort_bits! { $(
        $t, u64, Long, |bits, index| Long([(bits as u64 >> 32) as u32, bits as u32, index]),
            |Long([high, low, index])| (both_words(high, low) as $t, index),
            Longest,
            |bits, index| Longest([(bits as u64 >> 32) as u32, bits as u32, (index >> 32) as u32, index as u32]),
            |Longest([a, b, c, d])| (both_words(a, b) as $t, both_words(c, d));
    )* } };
}
sort_bits!(u8: u32, u16: u32, u32: u32);
sort_bits!(long u64, usize);

/// An integer that [`warp_sort_with_index`](super::warp_sort_with_index) and
/// [`block_sort_with_index`](crate::block::block_sort_with_index) take along with each key as its index: any of 8 to 64 bits,
/// signed or not. The library implements it; the methods are its own.
pub trait SortIndex: Element {
    #[doc(hidden)]
    type Record<B: SortBits>: Record;
    #[doc(hidden)]
    fn after<B: SortBits>(self, bits: B) -> Self::Record<B>;
    #[doc(hidden)]
    fn of_record<B: SortBits>(record: Self::Record<B>) -> (B, Self);
}

// Signed ones with the sign turned round, in the order of unsigned ones.
macro_rules! sort_index {
    ($($t:ty),*: $record:ident by $ranked:ident $of_ranked:ident, $signed:ty as $word:ty, $flip:expr) => {$(
        impl SortIndex for $t {
            type Record<B: SortBits> = B::$record;
            #[inline(always)]
            fn after<B: SortBits>(self, bits: B) -> B::$record { bits.$ranked(self as $signed as $word ^ $flip) }
            #[inline(always)]
            fn of_record<B: SortBits>(record: B::$record) -> (B, Self) {
                let (bits, index) = B::$of_ranked(record);
                (bits, (index ^ $flip) as $t)
            }
        }
    )*};
}
sort_index!(u8, u16, u32: Ranked by ranked of_ranked, u32 as u32, 0);
sort_index!(i8, i16, i32: Ranked by ranked of_ranked, i32 as u32, 1 << 31);
sort_index!(u64, usize: RankedLong by ranked_long of_ranked_long, u64 as u64, 0);
sort_index!(i64, isize: RankedLong by ranked_long of_ranked_long, i64 as u64, 1 << 63);

/// Repeats a body for a constant index from 0 up to a constant of at most 16. Loops over registers must not remain loops, or
/// the array would go to local memory.
macro_rules! unrolled {
    ($i:ident < $n:expr, $body:expr) => { unrolled!(@ $i, $n, $body, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15) };
    (@ $i:ident, $n:expr, $body:expr, $($k:literal)*) => {{$(
        if $k < $n {
            let $i: usize = $k;
            $body;
        }
    )*}};
}
pub(crate) use unrolled;

/// Puts the items at two constant positions in order.
#[inline(always)]
fn exchange<R: Record, const N: usize>(items: &mut [R; N], i: usize, j: usize) {
    let (a, b) = (items[i], items[j]);
    let swap = b.precedes(a);
    items[i] = if swap { b } else { a };
    items[j] = if swap { a } else { b };
}

/// Sorts a thread's items, 1, 2, 4, 8 or 16: Batcher's odd-even merge sort, in 0, 1, 5, 19 and 63 comparisons.
#[inline(always)]
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

/// Sorts a thread's items, which are bitonic: one run up and one down.
#[inline(always)]
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

/// What remains in the upper or the lower place of two.
#[inline(always)]
fn keep<R: Record>(own: R, other: R, upper: bool) -> R {
    if other.precedes(own) != upper { other } else { own }
}

/// The lanes of a warp as a network sees them.
#[derive(Clone, Copy)]
pub(crate) struct Lanes<'k> {
    cx: Block<'k>,
    mask: u32,
    /// Lanes that exist.
    count: u32,
}

impl<'k> Lanes<'k> {
    /// Those of this warp.
    #[inline(always)]
    pub(crate) fn of_warp(cx: Block<'k>) -> Self {
        Self { cx, mask: cx.warp_mask(), count: cx.warp_lanes() }
    }

    /// Sorts groups of `width` lanes, a power of two, each with `N` items in any order.
    #[inline(always)]
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

    /// Sorts groups of `2 * bit` lanes, or a thread's items if `bit` is 0, each a bitonic sequence.
    #[inline(always)]
    #[track_caller]
    pub(crate) fn clean<R: Record, const N: usize>(self, items: &mut [R; N], mut bit: u32) {
        let lane = self.cx.lane();
        while bit > 0 {
            let partner = lane ^ bit;
            // A lane without partner compares with itself, which changes nothing.
            let source = if partner < self.count { partner } else { lane };
            let upper = lane & bit != 0;
            unrolled!(i < N, {
                let other = self.cx.shuffle(self.mask, items[i], source, WARP);
                items[i] = keep(items[i], other, upper);
            });
            bit /= 2;
        }
        merge_items(items);
    }

    /// Compares, end to end, the items of lanes whose numbers differ in all of `bits`.
    #[inline(always)]
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
                items[i] = keep(items[i], other, partner < lane);
            }
        });
    }

    /// Of each group of `width` lanes, a power of two, whose first `keep` and middle `keep` lanes have a sorted run each:
    /// brings the smaller half of those items, sorted, into the first `keep` lanes. The others' items are lost.
    #[inline(always)]
    #[track_caller]
    pub(crate) fn select<R: Record, const N: usize>(self, items: &mut [R; N], width: u32, keep_lanes: u32) {
        let lane = self.cx.lane();
        // The lanes that are no longer of interest look anywhere inside the warp.
        let partner = (lane & !(width - 1)) + width / 2 + ((keep_lanes - 1) & !lane);
        let exists = partner < self.count;
        let source = if exists { partner } else { lane };
        let before = *items;
        unrolled!(i < N, {
            let other = self.cx.shuffle(self.mask, before[N - 1 - i], source, WARP);
            if exists {
                items[i] = keep(items[i], other, false);
            }
        });
        self.clean(items, keep_lanes / 2);
    }
}

/// A block's threads as a network sees them: lanes exchange by shuffles, warps through shared memory.
pub(crate) struct Threads<'k, R> {
    lanes: Lanes<'k>,
    /// Two halves of `N` records a thread, used by turns, so that an exchange has one barrier.
    halves: [SharedArray<'k, R>; 2],
    rank: u32,
    count: u32,
}

impl<'k, R: Record> Threads<'k, R> {
    /// All threads of the block. Each half has as many records as the block has items.
    #[inline(always)]
    pub(crate) fn of_block(cx: Block<'k>, halves: [SharedArray<'k, R>; 2]) -> Self {
        Self { lanes: Lanes::of_warp(cx), halves, rank: cx.thread_rank(), count: cx.block_threads() }
    }

    /// Sorts the block's items.
    #[inline(always)]
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

    /// Brings the smallest items, sorted, into the first `keep` threads, a power of two. The others' items are lost.
    #[inline(always)]
    #[track_caller]
    pub(crate) fn select<const N: usize>(&mut self, items: &mut [R; N], keep: u32) {
        self.lanes.sort(items, keep.min(WARP));
        let mut size = 2 * WARP.min(keep);
        // Runs longer than a warp are made as a sort makes them.
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
            // Only the first threads of a group take; they are the lower ones.
            self.meet_lower(items, partner);
            self.clean(items, keep / 2);
            size *= 2;
        }
    }

    /// Sorts groups of `2 * bit` threads, each a bitonic sequence.
    #[inline(always)]
    #[track_caller]
    fn clean<const N: usize>(&mut self, items: &mut [R; N], mut bit: u32) {
        while bit >= WARP {
            self.meet(items, self.rank ^ bit, false);
            bit /= 2;
        }
        self.lanes.clean(items, bit);
    }

    /// Compares with a thread of another warp, item by item or end to end.
    #[inline(always)]
    #[track_caller]
    fn meet<const N: usize>(&mut self, items: &mut [R; N], partner: u32, mirrored: bool) {
        let array = self.publish(items);
        if partner < self.count {
            unrolled!(i < N, {
                let j = if mirrored { N - 1 - i } else { i };
                // SAFETY: an item of the partner, written before the barrier; the half is next written after another.
                let other = unsafe { array.load(j * self.count as usize + partner as usize) };
                items[i] = keep(items[i], other, partner < self.rank);
            });
        }
    }

    /// As `meet` end to end, where this thread is the lower one.
    #[inline(always)]
    #[track_caller]
    fn meet_lower<const N: usize>(&mut self, items: &mut [R; N], partner: u32) {
        let array = self.publish(items);
        if partner < self.count {
            unrolled!(i < N, {
                // SAFETY: as in `meet`.
                let other = unsafe { array.load((N - 1 - i) * self.count as usize + partner as usize) };
                items[i] = keep(items[i], other, false);
            });
        }
    }

    #[inline(always)]
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
