//! Conversions between the number types.

use half::{bf16, f16};

use super::halves::{bf16_to_f32, f16_to_f32, f32_to_bf16, f32_to_f16, odd_from_f64, odd_from_integer};
use super::{Complex, Element};

/// Conversion to `U`, which is defined for every value. It follows the rules of Rust's `as`, and adds `bool` and the half types.
///
/// | from | to | rule |
/// |---|---|---|
/// | integer | integer | wraps: the low bits |
/// | float | integer | truncates; what lies outside gives the nearest limit; NaN gives 0 |
/// | integer, float | float | to nearest, ties to even, rounded once; too large gives an infinity; NaN stays NaN |
/// | `bool` | number | 0 or 1 |
/// | number | `bool` | whether it is not 0; NaN is not |
/// | real | complex | the real part; the imaginary part is 0 |
/// | complex | complex | part by part |
///
/// ```
/// use kernel_primitives::prelude::*;
/// assert_eq!(ConvertTo::<u8>::convert(300.7f32), 255);
/// assert_eq!(ConvertTo::<f16>::convert(true), f16::ONE);
/// assert_eq!(ConvertTo::<i8>::convert(f64::NAN), 0);
/// ```
pub trait ConvertTo<U> {
    /// Converts the value to `U`.
    fn convert(self) -> U;
}

macro_rules! casts {
    ($($from:ty),*; $to:tt) => { $(casts!(@from $from, $to);)* };
    (@from $from:ty, [$($to:ty),*]) => {
        $(impl ConvertTo<$to> for $from {
            #[inline(always)]
            fn convert(self) -> $to { self as $to }
        })*
        impl ConvertTo<bool> for $from {
            #[inline(always)]
            fn convert(self) -> bool { self != 0 as $from }
        }
        impl<U: Element> ConvertTo<Complex<U>> for $from
        where
            $from: ConvertTo<U>,
        {
            #[inline(always)]
            fn convert(self) -> Complex<U> { Complex { re: self.convert(), im: U::ZERO } }
        }
    };
}
casts! {
    u8, u16, u32, u64, usize, i8, i16, i32, i64, isize, f32, f64;
    [u8, u16, u32, u64, usize, i8, i16, i32, i64, isize, f32, f64]
}

macro_rules! conversions {
    ($($from:ty => $($to:ty),*: $value:expr;)*) => {$($(
        impl ConvertTo<$to> for $from {
            #[inline(always)]
            fn convert(self) -> $to {
                let f: fn($from) -> $to = $value;
                f(self)
            }
        }
    )*)*};
}
conversions! {
    bool => u8, u16, u32, u64, usize, i8, i16, i32, i64, isize: |x| x.into();
    bool => bool: |x| x;
    bool => f32, f64: |x| if x { 1.0 } else { 0.0 };
    bool => f16: |x| if x { f16::ONE } else { f16::ZERO };
    bool => bf16: |x| if x { bf16::ONE } else { bf16::ZERO };
    f16 => f16: |x| x;
    bf16 => bf16: |x| x;
    f16 => bf16: |x| f32_to_bf16(f16_to_f32(x));
    bf16 => f16: |x| f32_to_f16(bf16_to_f32(x));
    f32 => f16: f32_to_f16;
    f32 => bf16: f32_to_bf16;
    f64 => f16: |x| f32_to_f16(odd_from_f64(x));
    f64 => bf16: |x| f32_to_bf16(odd_from_f64(x));
}

macro_rules! halves {
    ($half:ty, $widen:ident, $narrow:ident; $($float:ty),*; $($integer:ty),*) => {
        $(impl ConvertTo<$float> for $half {
            #[inline(always)]
            fn convert(self) -> $float { $widen(self) as $float }
        })*
        $(impl ConvertTo<$integer> for $half {
            #[inline(always)]
            fn convert(self) -> $integer { $widen(self) as $integer }
        }
        impl ConvertTo<$half> for $integer {
            // Integers of up to 16 bits, and many others, are exact in `f32`, and this folds away.
            fn convert(self) -> $half {
                if <$integer>::BITS <= 16 {
                    $narrow(self as f32)
                } else {
                    #[allow(unused_comparisons)]
                    let negative = self < 0;
                    let magnitude = if negative { (self as u64).wrapping_neg() } else { self as u64 };
                    $narrow(odd_from_integer(negative, magnitude))
                }
            }
        })*
        impl ConvertTo<bool> for $half {
            #[inline(always)]
            fn convert(self) -> bool { $widen(self) != 0.0 }
        }
        impl<U: Element> ConvertTo<Complex<U>> for $half
        where
            $half: ConvertTo<U>,
        {
            #[inline(always)]
            fn convert(self) -> Complex<U> { Complex { re: self.convert(), im: U::ZERO } }
        }
    };
}
halves!(f16, f16_to_f32, f32_to_f16; f32, f64; u8, u16, u32, u64, usize, i8, i16, i32, i64, isize);
halves!(bf16, bf16_to_f32, f32_to_bf16; f32, f64; u8, u16, u32, u64, usize, i8, i16, i32, i64, isize);

impl<T: ConvertTo<U>, U> ConvertTo<Complex<U>> for Complex<T> {
    #[inline(always)]
    fn convert(self) -> Complex<U> {
        Complex { re: self.re.convert(), im: self.im.convert() }
    }
}
