//! Bits that sort as the values do.

use half::{bf16, f16};

use super::{Bits, ConvertTo, Element, Integer};
use crate::warp::SortBits;

/// An element that is sorted by its bits. A one-to-one map to an unsigned integer keeps the order.
///
/// The order is total. Integers sort as numbers, and `false` sorts before `true`. Floats sort in this order:
///
/// −∞ … −1 … −0, +0 … 1 … +∞, NaN:
///
/// −0 comes before +0. Every NaN comes after +∞, whatever its sign. This is IEEE `totalOrder`, with the NaNs whose sign bit is set moved
/// from before −∞ to the end. A descending sort reverses the order, so NaN comes first. No two values share their bits, so a sort returns
/// −0, NaN and their payloads unchanged.
///
/// ```
/// use kernel_primitives::prelude::*;
/// let mut values = [f32::NAN, 2.0, 0.0, -0.0, f32::NEG_INFINITY];
/// values.sort_by_key(|value| value.to_sort_bits());
/// assert_eq!(values[..4], [f32::NEG_INFINITY, -0.0, 0.0, 2.0]);
/// assert!(values[1].is_sign_negative() && values[4].is_nan());
/// assert_eq!(i8::from_sort_bits((-3i8).to_sort_bits()), -3);
/// ```
///
/// # Safety
/// The bits depend on the value alone: whenever a sort asks for them, they are the same, and there is no panic. `Bits` is one
/// of Rust's unsigned integers. One value has the bits 0, and one has those of which the low [`SORT_BITS`](SortKey::SORT_BITS) are set.
pub unsafe trait SortKey: Element {
    /// An unsigned integer of the same size.
    type Bits: Integer + ConvertTo<u32> + SortBits;

    /// The number of low bits that differ between values: all, or 1 for `bool`. The other bits are 0.
    const SORT_BITS: u32 = Self::Bits::WIDTH;

    /// The bits whose unsigned order is the order of the values.
    fn to_sort_bits(self) -> Self::Bits;

    /// The value with these [sort bits](SortKey::to_sort_bits).
    ///
    /// Sorts ask for the bits of their keys, for the bits 0, and for those of which the low [`SORT_BITS`](SortKey::SORT_BITS) are set.
    fn from_sort_bits(bits: Self::Bits) -> Self;

    /// The greatest bits of [`SORT_BITS`](SortKey::SORT_BITS).
    #[doc(hidden)]
    #[inline(always)]
    fn greatest_bits() -> Self::Bits {
        <Self::Bits as Bits>::ALL.shr(Self::Bits::WIDTH.saturating_sub(Self::SORT_BITS))
    }

    /// Whether `<` costs less than a comparison of bits, and orders the keys of some ranges in the same way: see
    /// [`is_by_value`](SortKey::is_by_value).
    #[doc(hidden)]
    const BY_VALUE: bool = false;

    /// Whether [`is_below`](SortKey::is_below) is the order of all keys from `first` to `last`.
    #[doc(hidden)]
    #[inline(always)]
    fn is_by_value(first: Self, last: Self) -> bool {
        let _ = (first, last);
        false
    }

    /// `<`, if that is the order.
    #[doc(hidden)]
    #[inline(always)]
    fn is_below(self, other: Self) -> bool {
        self.to_sort_bits() < other.to_sort_bits()
    }

    /// Both, the lesser first, where [`is_below`](SortKey::is_below) is the order.
    #[doc(hidden)]
    #[inline(always)]
    fn low_and_high(self, other: Self) -> [Self; 2] {
        if other.is_below(self) { [other, self] } else { [self, other] }
    }

    /// The bits in which [`to_plain_bits`](SortKey::to_plain_bits) differs from [`to_sort_bits`](SortKey::to_sort_bits).
    #[doc(hidden)]
    const TURNED: Self::Bits = Self::Bits::ZERO;

    /// The sort bits without the change that a kernel makes by a number of its launch. For an integer, they are its own bits, so that a
    /// kernel need not know whether it has a sign.
    #[doc(hidden)]
    #[inline(always)]
    fn to_plain_bits(self) -> Self::Bits {
        self.to_sort_bits()
    }

    /// The value with these [plain bits](SortKey::to_plain_bits).
    #[doc(hidden)]
    #[inline(always)]
    fn from_plain_bits(bits: Self::Bits) -> Self {
        Self::from_sort_bits(bits)
    }
}

macro_rules! unsigned {
    ($($t:ident),*) => {$(
        // SAFETY: the value itself.
        unsafe impl SortKey for $t {
            type Bits = $t;
            #[inline(always)]
            fn to_sort_bits(self) -> $t { self }
            #[inline(always)]
            fn from_sort_bits(bits: $t) -> Self { bits }
        }
    )*};
}
unsigned!(u8, u16, u32, u64, usize);

macro_rules! signed {
    ($($t:ident, $bits:ident;)*) => {$(
        // SAFETY: the value with its sign bit flipped.
        unsafe impl SortKey for $t {
            type Bits = $bits;
            #[inline(always)]
            fn to_sort_bits(self) -> $bits { self as $bits ^ (1 << ($bits::BITS - 1)) }
            #[inline(always)]
            fn from_sort_bits(bits: $bits) -> Self { (bits ^ (1 << ($bits::BITS - 1))) as $t }

            const TURNED: $bits = 1 << ($bits::BITS - 1);
            #[inline(always)]
            fn to_plain_bits(self) -> $bits { self as $bits }
            #[inline(always)]
            fn from_plain_bits(bits: $bits) -> Self { bits as $t }
        }
    )*};
}
signed! { i8, u8; i16, u16; i32, u32; i64, u64; isize, usize; }

// SAFETY: 0 or 1.
unsafe impl SortKey for bool {
    type Bits = u8;
    const SORT_BITS: u32 = 1;
    #[inline(always)]
    fn to_sort_bits(self) -> u8 {
        self as u8
    }
    #[inline(always)]
    fn from_sort_bits(bits: u8) -> Self {
        bits != 0
    }
}

// Sign bit flipped, or for a negative number all bits: that is `totalOrder`. Turned round by the number of NaNs with the
// sign bit set, which come first there and last here.
macro_rules! floats {
    ($($t:ident, $bits:ident, $signed:ident, $fraction_bits:literal, {$($by_value:tt)*};)*) => {$(
        // SAFETY: computed of the value's bits.
        unsafe impl SortKey for $t {
            type Bits = $bits;
            #[inline(always)]
            fn to_sort_bits(self) -> $bits {
                let bits = self.to_bits();
                let flip = (bits as $signed >> ($bits::BITS - 1)) as $bits | 1 << ($bits::BITS - 1);
                (bits ^ flip).wrapping_sub((1 << $fraction_bits) - 1)
            }
            #[inline(always)]
            fn from_sort_bits(bits: $bits) -> Self {
                let bits = bits.wrapping_add((1 << $fraction_bits) - 1);
                let flip = !((bits as $signed >> ($bits::BITS - 1)) as $bits) | 1 << ($bits::BITS - 1);
                $t::from_bits(bits ^ flip)
            }
            $($by_value)*
        }
    )*};
}
floats! {
    f16, u16, i16, 10, {};
    bf16, u16, i16, 7, {};
    f32, u32, i32, 23, {
        const BY_VALUE: bool = true;
        // No zeros, whose signs `<` does not see, and no NaN.
        #[inline(always)]
        fn is_by_value(first: Self, last: Self) -> bool {
            first > 0.0 && last <= Self::INFINITY || last < 0.0
        }
        #[inline(always)]
        fn is_below(self, other: Self) -> bool {
            self < other
        }
        #[inline(always)]
        fn low_and_high(self, other: Self) -> [Self; 2] {
            [self.min(other), self.max(other)]
        }
    };
    // Most GPUs compare few of these at a time.
    f64, u64, i64, 52, {};
}
