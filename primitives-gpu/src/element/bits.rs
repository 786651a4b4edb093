//! Bitwise operations on integers and truth values.

use super::{Element, Number};

/// An element with bitwise operations: `bool` and the integers.
pub trait Bits: Element + Eq {
    /// All bits set: the identity of [`and`](Bits::and).
    const ALL: Self;

    /// The bits that are set in both.
    fn and(self, other: Self) -> Self;
    /// The bits that are set in one or in both.
    fn or(self, other: Self) -> Self;
    /// The bits that are set in exactly one of the two.
    fn xor(self, other: Self) -> Self;
    /// The bits that are not set.
    fn not(self) -> Self;
}

macro_rules! bits {
    ($($t:ty: $all:expr),*) => {$(
        impl Bits for $t {
            const ALL: Self = $all;
            #[inline(always)]
            fn and(self, other: Self) -> Self { self & other }
            #[inline(always)]
            fn or(self, other: Self) -> Self { self | other }
            #[inline(always)]
            fn xor(self, other: Self) -> Self { self ^ other }
            #[inline(always)]
            fn not(self) -> Self { !self }
        }
    )*};
}
bits!(bool: true, u8: !0, u16: !0, u32: !0, u64: !0, usize: !0, i8: !0, i16: !0, i32: !0, i64: !0, isize: !0);

/// An integer.
///
/// A shift by [`WIDTH`](Integer::WIDTH) or more gives the same result as that many shifts by one: 0, or −1 for a right shift of a negative
/// number.
pub trait Integer: Number + Bits + Ord {
    /// The number of bits.
    const WIDTH: u32;
    /// Whether the type has negative values.
    const SIGNED: bool;

    /// Times 2 to the power of `by`, wrapping.
    fn shl(self, by: u32) -> Self;
    /// Divided by 2 to the power of `by`, rounded down.
    fn shr(self, by: u32) -> Self;
    /// The number of zeros above the highest set bit.
    fn leading_zeros(self) -> u32;
    /// The number of zeros below the lowest set bit.
    fn trailing_zeros(self) -> u32;
    /// The number of set bits.
    fn count_ones(self) -> u32;
}

macro_rules! integers {
    ($signed:literal: $($t:ty),*) => {$(
        impl Integer for $t {
            const WIDTH: u32 = <$t>::BITS;
            const SIGNED: bool = $signed;
            #[inline(always)]
            fn shl(self, by: u32) -> Self { if by < <$t>::BITS { self.wrapping_shl(by) } else { 0 } }
            #[inline(always)]
            fn shr(self, by: u32) -> Self {
                // A signed shift by all bits but one leaves the sign in every bit.
                let last = <$t>::BITS - 1;
                if $signed || by <= last { self.wrapping_shr(if by < last { by } else { last }) } else { 0 }
            }
            #[inline(always)]
            fn leading_zeros(self) -> u32 { <$t>::leading_zeros(self) }
            #[inline(always)]
            fn trailing_zeros(self) -> u32 { <$t>::trailing_zeros(self) }
            #[inline(always)]
            fn count_ones(self) -> u32 { <$t>::count_ones(self) }
        }
    )*};
}
integers!(false: u8, u16, u32, u64, usize);
integers!(true: i8, i16, i32, i64, isize);
