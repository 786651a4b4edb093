//! Minimum and maximum.

use half::{bf16, f16};

#[cfg(target_arch = "nvptx64")]
use super::halves::by_pairs;
use super::halves::{bf16_to_f32, f16_to_f32, f32_to_bf16, f32_to_f16};
use super::{Arithmetic, Element};
#[cfg(target_arch = "nvptx64")]
use crate::simt::nvptx;

/// An element with an order.
///
/// Minimum and maximum of floats are IEEE 754-2019 `minimum` and `maximum`: a NaN operand gives NaN, and −0 is less than +0. The
/// comparisons are the usual ones: with NaN they are false, and −0 equals +0. `false` is less than `true`.
pub trait Ordered: Element + PartialOrd {
    /// The identity of [`minimum`](Ordered::minimum): +∞ or the largest value.
    const GREATEST: Self;
    /// The identity of [`maximum`](Ordered::maximum): −∞ or the smallest value.
    const LEAST: Self;

    /// The smaller value.
    fn minimum(self, other: Self) -> Self;
    /// The larger value.
    fn maximum(self, other: Self) -> Self;

    /// Two minima, by one instruction if the hardware has it. The maxima are similar.
    #[doc(hidden)]
    #[inline(always)]
    fn minimum_pair([a, b]: [Self; 2], [c, d]: [Self; 2]) -> [Self; 2] {
        [a.minimum(c), b.minimum(d)]
    }
    #[doc(hidden)]
    #[inline(always)]
    fn maximum_pair([a, b]: [Self; 2], [c, d]: [Self; 2]) -> [Self; 2] {
        [a.maximum(c), b.maximum(d)]
    }

    /// Whether this is less.
    #[inline(always)]
    fn less(self, other: Self) -> bool {
        self < other
    }

    /// Whether this is less or equal.
    #[inline(always)]
    fn less_or_equal(self, other: Self) -> bool {
        self <= other
    }

    /// Whether this differs from itself, as NaN does.
    #[inline(always)]
    fn unordered(self) -> bool {
        false
    }
}

/// A real number: arithmetic and an order.
pub trait Number: Arithmetic + Ordered {}

impl<T: Arithmetic + Ordered> Number for T {}

macro_rules! integers {
    ($($t:ty: $greatest:expr, $least:expr;)*) => {$(
        impl Ordered for $t {
            const GREATEST: Self = $greatest;
            const LEAST: Self = $least;
            #[inline(always)]
            fn minimum(self, other: Self) -> Self { if other < self { other } else { self } }
            #[inline(always)]
            fn maximum(self, other: Self) -> Self { if other > self { other } else { self } }
        }
    )*};
    ($($t:ty),*) => { integers! { $($t: <$t>::MAX, <$t>::MIN;)* } };
}
integers!(u8, u16, u32, u64, usize, i8, i16, i32, i64, isize);
integers! { bool: true, false; }

macro_rules! floats {
    ($($t:ty, $minimum:ident, $maximum:ident;)*) => {$(
        impl Ordered for $t {
            const GREATEST: Self = <$t>::INFINITY;
            const LEAST: Self = <$t>::NEG_INFINITY;
            fn minimum(self, other: Self) -> Self {
                #[cfg(target_arch = "nvptx64")]
                return nvptx::$minimum(self, other);
                #[cfg(not(target_arch = "nvptx64"))]
                if self.is_nan() || other.is_nan() {
                    self + other
                } else if self < other || (self == other && self.is_sign_negative()) {
                    self
                } else {
                    other
                }
            }
            fn maximum(self, other: Self) -> Self {
                #[cfg(target_arch = "nvptx64")]
                return nvptx::$maximum(self, other);
                #[cfg(not(target_arch = "nvptx64"))]
                if self.is_nan() || other.is_nan() {
                    self + other
                } else if self > other || (self == other && self.is_sign_positive()) {
                    self
                } else {
                    other
                }
            }
            #[inline(always)]
            fn unordered(self) -> bool { self.is_nan() }
        }
    )*};
}
floats! {
    f32, minimum_f32, maximum_f32;
    f64, minimum_f64, maximum_f64;
}

// On sm_80 and later, instructions of the type. Otherwise `f32`, in which they are exact.
macro_rules! halves {
    ($($t:ident, $widen:ident, $narrow:ident, $minimum:ident $maximum:ident, $minimum2:ident $maximum2:ident;)*) => {$(
        impl Ordered for $t {
            const GREATEST: Self = $t::INFINITY;
            const LEAST: Self = $t::NEG_INFINITY;
            #[inline(always)]
            fn minimum(self, other: Self) -> Self { halves!(@ $t, $widen, $narrow, $minimum, minimum, self, other) }
            #[inline(always)]
            fn maximum(self, other: Self) -> Self { halves!(@ $t, $widen, $narrow, $maximum, maximum, self, other) }
            #[cfg(target_arch = "nvptx64")]
            #[inline(always)]
            fn minimum_pair(a: [Self; 2], b: [Self; 2]) -> [Self; 2] { halves!(@pair $t, $minimum2, minimum, a, b) }
            #[cfg(target_arch = "nvptx64")]
            #[inline(always)]
            fn maximum_pair(a: [Self; 2], b: [Self; 2]) -> [Self; 2] { halves!(@pair $t, $maximum2, maximum, a, b) }
            #[inline(always)]
            fn less(self, other: Self) -> bool { $widen(self) < $widen(other) }
            #[inline(always)]
            fn less_or_equal(self, other: Self) -> bool { $widen(self) <= $widen(other) }
            #[inline(always)]
            fn unordered(self) -> bool { $widen(self).is_nan() }
        }
    )*};
    (@pair $t:ident, $device:ident, $op:ident, $a:ident, $b:ident) => {{
        if nvptx::arch() < 800 {
            return [$a[0].$op($b[0]), $a[1].$op($b[1])];
        }
        by_pairs!($t, nvptx::$device, $a, $b)
    }};
    (@ $t:ident, $widen:ident, $narrow:ident, $device:ident, $op:ident, $a:ident, $b:ident) => {{
        #[cfg(target_arch = "nvptx64")]
        if nvptx::arch() >= 800 {
            return $t::from_bits(nvptx::$device($a.to_bits(), $b.to_bits()));
        }
        $narrow(Ordered::$op($widen($a), $widen($b)))
    }};
}
halves! {
    f16, f16_to_f32, f32_to_f16, f16_minimum f16_maximum, f16x2_minimum f16x2_maximum;
    bf16, bf16_to_f32, f32_to_bf16, bf16_minimum bf16_maximum, bf16x2_minimum bf16x2_maximum;
}
