//! The types of sums, products and means.

use half::{bf16, f16};

use super::halves::{bf16_to_f32, f16_to_f32, f32_to_bf16, f32_to_f16};
use super::{Arithmetic, Complex, Divide, Element};

/// The type in which an element's sums and products are accumulated: `f32` for `f16` and `bf16`, `u32` for `bool`, and the type itself for
/// all others.
pub trait Accumulate: Element {
    /// The accumulation type.
    type Accum: Arithmetic;
    /// Converts exactly.
    fn widen(self) -> Self::Accum;
    /// Rounds to nearest, ties to even. For `bool`, the result is whether the value is not zero.
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
    bool, u32, |x| x as u32, |x| x != 0;
}

/// An element that has a mean: its sum, in a type that is large enough for many items, divided by their number.
///
/// Sums of integers have 64 bits, and wrap; a sum of 2³² items of 32 bits does not wrap. Sums of `f16` and `bf16` are `f32`, and sums of
/// other floats have their own type. A complex sum has such a sum of each part.
pub trait Average: Accumulate {
    /// The type of the sum.
    type Sum: Arithmetic;
    /// Converts exactly.
    fn to_sum(self) -> Self::Sum;
    /// Divides the sum by the number of items. Integers truncate.
    ///
    /// # Panics
    /// For integers, a mean of no items is a fault.
    #[track_caller]
    fn average(sum: Self::Sum, count: u64) -> Self::Accum;
}

macro_rules! average {
    ($($t:ty: $sum:ty),*) => {$(
        impl Average for $t {
            type Sum = $sum;
            #[inline(always)]
            fn to_sum(self) -> $sum { self.widen() as $sum }
            #[inline(always)]
            #[track_caller]
            fn average(sum: $sum, count: u64) -> Self::Accum { sum.divide(count as $sum) as Self::Accum }
        }
    )*};
}
average! {
    u8: u64, u16: u64, u32: u64, u64: u64, usize: u64, bool: u64, i8: i64, i16: i64, i32: i64, i64: i64, isize: i64,
    f16: f32, bf16: f32, f32: f32, f64: f64
}

impl<T: Average> Average for Complex<T> {
    type Sum = Complex<T::Sum>;
    #[inline(always)]
    fn to_sum(self) -> Self::Sum {
        Complex { re: self.re.to_sum(), im: self.im.to_sum() }
    }
    #[inline(always)]
    #[track_caller]
    fn average(sum: Self::Sum, count: u64) -> Self::Accum {
        Complex { re: T::average(sum.re, count), im: T::average(sum.im, count) }
    }
}

impl<T: Accumulate> Accumulate for Complex<T> {
    type Accum = Complex<T::Accum>;
    #[inline(always)]
    fn widen(self) -> Self::Accum {
        Complex { re: self.re.widen(), im: self.im.widen() }
    }
    #[inline(always)]
    fn narrow(value: Self::Accum) -> Self {
        Complex { re: T::narrow(value.re), im: T::narrow(value.im) }
    }
}
