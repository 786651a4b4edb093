//! Division by a divisor that is known before the launch.

use crate::element::KernelParam;

mod sealed {
    pub trait Sealed {}
    impl Sealed for u32 {}
    impl Sealed for u64 {}
}

/// The index types that [`FastDivMod`] divides: `u32` and `u64`.
pub trait IndexInt: KernelParam + Ord + sealed::Sealed + TryFrom<usize> {
    /// 0.
    const ZERO: Self;
    /// 1.
    const ONE: Self;
    /// Returns the multiplier and the shift for a divisor greater than 0.
    #[doc(hidden)]
    fn reciprocal(divisor: Self) -> (Self, u32);
    /// Returns the quotient, from the result of [`reciprocal`](Self::reciprocal).
    #[doc(hidden)]
    fn quotient(self, multiplier: Self, shift: u32) -> Self;
    /// `self + factor * other`, wrapping.
    #[doc(hidden)]
    fn plus(self, factor: Self, other: Self) -> Self;
    /// `self - factor * other`, wrapping.
    #[doc(hidden)]
    fn minus(self, factor: Self, other: Self) -> Self;
    /// Converts to an index.
    fn to_usize(self) -> usize;
    /// The low bits of an index.
    fn truncate(index: usize) -> Self;
}

// With `l = ⌈log2 d⌉` and `m = ⌊2^b (2^l − d) / d⌋ + 1`, the quotient of every `b`-bit `n` is `(t + n) >> l` for
// `t = (m n) >> b` (Granlund and Montgomery, "Division by invariant integers using multiplication", 1994, figure 4.1). The
// sum has one bit too many: half of the difference is added instead, and the shift is one less. For `d = 1`, `m = 1` and
// `l = 0`, where nothing is left to shift.
macro_rules! index_ints {
    ($($t:ident, $wide:ident;)*) => {$(
        impl IndexInt for $t {
            const ZERO: Self = 0;
            const ONE: Self = 1;

            fn reciprocal(divisor: Self) -> (Self, u32) {
                let shift = $t::BITS - (divisor - 1).leading_zeros();
                let multiplier = (((1 << shift) - divisor as $wide) << $t::BITS) / divisor as $wide + 1;
                (multiplier as $t, shift)
            }

            #[inline(always)]
            fn quotient(self, multiplier: Self, shift: u32) -> Self {
                let high = ((multiplier as $wide * self as $wide) >> $t::BITS) as $t;
                // For the divisor 1, `high` is 0.
                let half = (shift != 0) as u32;
                (high + ((self - high) >> half)) >> (shift - half)
            }

            #[inline(always)]
            fn plus(self, factor: Self, other: Self) -> Self {
                self.wrapping_add(factor.wrapping_mul(other))
            }

            #[inline(always)]
            fn minus(self, factor: Self, other: Self) -> Self {
                self.wrapping_sub(factor.wrapping_mul(other))
            }

            #[inline(always)]
            fn to_usize(self) -> usize {
                self as usize
            }

            #[inline(always)]
            fn truncate(index: usize) -> Self {
                index as $t
            }
        }
    )*};
}
index_ints! {
    u32, u64;
    u64, u128;
}

/// A divisor that the host knows. A division takes a multiplication and two shifts, and is right for every dividend of the type.
///
/// It is made on the host, and passed to a kernel by value. Seed: `FastDivMod`, which supports 32-bit dividends below 2^31.
///
/// ```
/// use kernel_primitives::io::FastDivMod;
///
/// let by_seven = FastDivMod::new(7u32);
/// assert_eq!(by_seven.div_mod(u32::MAX), (u32::MAX / 7, u32::MAX % 7));
/// let by_a_million = FastDivMod::new(1_000_000u64);
/// assert_eq!(by_a_million.quotient(u64::MAX), u64::MAX / 1_000_000);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, crate::KernelParam)]
#[repr(C)]
pub struct FastDivMod<I: IndexInt> {
    divisor: I,
    multiplier: I,
    shift: u32,
}

impl<I: IndexInt> FastDivMod<I> {
    /// Makes the division by `divisor`.
    ///
    /// # Panics
    /// Panics if the divisor is 0.
    #[track_caller]
    pub fn new(divisor: I) -> Self {
        assert!(divisor > I::ZERO, "division by zero: a `FastDivMod` needs a divisor above 0");
        let (multiplier, shift) = I::reciprocal(divisor);
        Self { divisor, multiplier, shift }
    }

    /// The divisor.
    #[inline(always)]
    pub fn divisor(self) -> I {
        self.divisor
    }

    /// The quotient.
    #[inline(always)]
    pub fn quotient(self, dividend: I) -> I {
        dividend.quotient(self.multiplier, self.shift)
    }

    /// The quotient and the remainder.
    #[inline(always)]
    pub fn div_mod(self, dividend: I) -> (I, I) {
        let quotient = self.quotient(dividend);
        (quotient, dividend.minus(quotient, self.divisor))
    }
}
