//! Arithmetic with the same rules on both machines.

use half::{bf16, f16};

use super::Element;
#[cfg(target_arch = "nvptx64")]
use crate::simt::nvptx;

/// An element with arithmetic.
///
/// Integers wrap. Minimum and maximum of floats are IEEE 754-2019 `minimum` and `maximum`: a NaN operand gives NaN, and −0
/// is less than +0.
pub trait Number: Element + PartialOrd {
    /// One.
    const ONE: Self;
    /// The identity of [`minimum`](Number::minimum): +∞ or the largest value.
    const GREATEST: Self;
    /// The identity of [`maximum`](Number::maximum): −∞ or the smallest value.
    const LEAST: Self;

    /// The sum.
    fn add(self, other: Self) -> Self;
    /// The difference.
    fn sub(self, other: Self) -> Self;
    /// The product.
    fn mul(self, other: Self) -> Self;
    /// The smaller value.
    fn minimum(self, other: Self) -> Self;
    /// The larger value.
    fn maximum(self, other: Self) -> Self;
}

macro_rules! integers {
    ($($t:ty),*) => {$(
        impl Number for $t {
            const ONE: Self = 1;
            const GREATEST: Self = <$t>::MAX;
            const LEAST: Self = <$t>::MIN;
            #[inline(always)]
            fn add(self, other: Self) -> Self { self.wrapping_add(other) }
            #[inline(always)]
            fn sub(self, other: Self) -> Self { self.wrapping_sub(other) }
            #[inline(always)]
            fn mul(self, other: Self) -> Self { self.wrapping_mul(other) }
            #[inline(always)]
            fn minimum(self, other: Self) -> Self { if other < self { other } else { self } }
            #[inline(always)]
            fn maximum(self, other: Self) -> Self { if other > self { other } else { self } }
        }
    )*};
}
integers!(u8, u16, u32, u64, usize, i8, i16, i32, i64, isize);

macro_rules! floats {
    ($($t:ty, $minimum:ident, $maximum:ident;)*) => {$(
        impl Number for $t {
            const ONE: Self = 1.0;
            const GREATEST: Self = <$t>::INFINITY;
            const LEAST: Self = <$t>::NEG_INFINITY;
            #[inline(always)]
            fn add(self, other: Self) -> Self { self + other }
            #[inline(always)]
            fn sub(self, other: Self) -> Self { self - other }
            #[inline(always)]
            fn mul(self, other: Self) -> Self { self * other }
            #[inline(always)]
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
            #[inline(always)]
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
        }
    )*};
}
floats! {
    f32, minimum_f32, maximum_f32;
    f64, minimum_f64, maximum_f64;
}

#[inline(always)]
fn f16_to_f32(x: f16) -> f32 {
    #[cfg(target_arch = "nvptx64")]
    return nvptx::f16_to_f32(x.to_bits());
    #[cfg(not(target_arch = "nvptx64"))]
    x.to_f32()
}

#[inline(always)]
fn f32_to_f16(x: f32) -> f16 {
    #[cfg(target_arch = "nvptx64")]
    return f16::from_bits(nvptx::f32_to_f16(x));
    #[cfg(not(target_arch = "nvptx64"))]
    f16::from_f32(x)
}

#[inline(always)]
fn bf16_to_f32(x: bf16) -> f32 {
    f32::from_bits((x.to_bits() as u32) << 16)
}

#[inline(always)]
fn f32_to_bf16(x: f32) -> bf16 {
    #[cfg(target_arch = "nvptx64")]
    return bf16::from_bits(nvptx::f32_to_bf16(x));
    #[cfg(not(target_arch = "nvptx64"))]
    bf16::from_f32(x)
}

// One operation in f32, rounded once to the half type, has the bits of the operation done natively: f32 has more than
// twice the significand bits plus two of either type.
macro_rules! halves {
    ($($t:ident, $widen:ident, $narrow:ident;)*) => {$(
        impl Number for $t {
            const ONE: Self = $t::ONE;
            const GREATEST: Self = $t::INFINITY;
            const LEAST: Self = $t::NEG_INFINITY;
            #[inline(always)]
            fn add(self, other: Self) -> Self { $narrow($widen(self) + $widen(other)) }
            #[inline(always)]
            fn sub(self, other: Self) -> Self { $narrow($widen(self) - $widen(other)) }
            #[inline(always)]
            fn mul(self, other: Self) -> Self { $narrow($widen(self) * $widen(other)) }
            #[inline(always)]
            fn minimum(self, other: Self) -> Self { $narrow(Number::minimum($widen(self), $widen(other))) }
            #[inline(always)]
            fn maximum(self, other: Self) -> Self { $narrow(Number::maximum($widen(self), $widen(other))) }
        }
    )*};
}
halves! {
    f16, f16_to_f32, f32_to_f16;
    bf16, bf16_to_f32, f32_to_bf16;
}

/// The type in which an element's sums and products are accumulated: `f32` for `f16` and `bf16`, else the type itself.
pub trait Accumulate: Element {
    /// The accumulation type.
    type Accum: Number;
    /// Converts exactly.
    fn widen(self) -> Self::Accum;
    /// Rounds to nearest, ties to even.
    fn narrow(value: Self::Accum) -> Self;
}

macro_rules! accumulate {
    ($($t:ty, $accum:ty, $widen:expr, $narrow:expr;)*) => {$(
        impl Accumulate for $t {
            type Accum = $accum;
            #[inline(always)]
            fn widen(self) -> $accum { let f: fn($t) -> $accum = $widen; f(self) }
            #[inline(always)]
            fn narrow(value: $accum) -> Self { let f: fn($accum) -> $t = $narrow; f(value) }
        }
    )*};
    ($($t:ty),*) => { accumulate! { $($t, $t, |x| x, |x| x;)* } };
}
accumulate!(u8, u16, u32, u64, usize, i8, i16, i32, i64, isize, f32, f64);
accumulate! {
    f16, f32, f16_to_f32, f32_to_f16;
    bf16, f32, bf16_to_f32, f32_to_bf16;
}
