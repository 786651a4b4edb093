//! What a network sorts: records, and the elements that they are made of.

use crate::element::Element;

/// What a network moves. The order is total: of two records that differ, one precedes the other.
pub trait Record: Element {
    /// Whether this one comes first.
    #[doc(hidden)]
    fn precedes(self, other: Self) -> bool;
    /// The record that no other comes after.
    #[doc(hidden)]
    const LAST: Self;
    /// Returns the first of two records, or the last one if `upper`.
    #[doc(hidden)]
    #[inline(always)]
    fn one_of(self, other: Self, upper: bool) -> Self {
        if other.precedes(self) != upper { other } else { self }
    }
}

impl Record for u32 {
    const LAST: Self = u32::MAX;
    #[inline(always)]
    fn precedes(self, other: Self) -> bool {
        self < other
    }
    // Two instructions on a GPU, where a comparison whose result is turned takes three.
    #[inline(always)]
    fn one_of(self, other: Self, upper: bool) -> Self {
        if upper { self.max(other) } else { self.min(other) }
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
/// with an index after it, and digit by digit.
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

/// An integer that [`warp_sort_with_index`](crate::warp::warp_sort_with_index) and
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
