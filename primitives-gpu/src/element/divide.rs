//! Quotients and remainders.

use half::{bf16, f16};

use super::halves::{bf16_to_f32, f16_to_f32, f32_to_bf16, f32_to_f16};
use super::{Arithmetic, Complex, Float, Number, Real};
use crate::simt::{self, math};

/// An element that can be divided.
pub trait Divide: Arithmetic {
    /// The quotient.
    ///
    /// Floats: IEEE division, correctly rounded, so a division by zero is an infinity or NaN. Integers: truncated; the smallest value
    /// divided by −1 wraps. Complex numbers: Smith's algorithm ("Algorithm 116: Complex division", 1962), which squares no part. Its
    /// intermediate results overflow only if a part is larger than half of the largest number; the quotient can then be NaN.
    ///
    /// # Panics
    /// An integer division by zero is a fault.
    #[track_caller]
    fn divide(self, other: Self) -> Self;
}

/// A real number with whole quotients and remainders.
///
/// For both pairs of functions, `a = quotient * b + remainder`. For integers this is exact (wrapping). For floats, the truncated remainder
/// is exact, and the floored remainder is rounded once. The quotients are exact up to a quarter of the range in which the type has all
/// whole numbers, and within one unit in the last place beyond. A division by zero has the quotient of IEEE division, and the remainder
/// NaN. An infinity divided by anything has NaN as both.
///
/// # Panics
/// An integer division by zero is a fault.
pub trait Quotient: Number + Divide {
    /// The quotient rounded down. This is `//` in Python and NumPy.
    #[track_caller]
    fn floor_divide(self, other: Self) -> Self;
    /// The quotient rounded towards 0. This is `/` of integers in C.
    #[track_caller]
    fn trunc_divide(self, other: Self) -> Self;
    /// The remainder of [`floor_divide`](Quotient::floor_divide), which has the sign of `other`. This is `%` in Python and NumPy.
    #[track_caller]
    fn floor_remainder(self, other: Self) -> Self;
    /// The remainder of [`trunc_divide`](Quotient::trunc_divide), which has the sign of `self`. This is `%` and `fmod` in C.
    #[track_caller]
    fn trunc_remainder(self, other: Self) -> Self;
}

macro_rules! integers {
    ($($t:ty),*) => {$(
        impl Divide for $t {
            #[inline(always)]
            #[track_caller]
            fn divide(self, other: Self) -> Self { self.trunc_divide(other) }
        }

        impl Quotient for $t {
            #[inline(always)]
            #[track_caller]
            fn floor_divide(self, other: Self) -> Self {
                let (quotient, rest) = (self.trunc_divide(other), self.trunc_remainder(other));
                // Of unsigned integers the signs agree, and this folds away.
                let down = rest != 0 && (rest < 0 as $t) != (other < 0 as $t);
                quotient.wrapping_sub(down as $t)
            }
            #[inline(always)]
            #[track_caller]
            fn trunc_divide(self, other: Self) -> Self { simt::divide(self, other) }
            #[inline(always)]
            #[track_caller]
            fn floor_remainder(self, other: Self) -> Self {
                let rest = self.trunc_remainder(other);
                if rest != 0 && (rest < 0 as $t) != (other < 0 as $t) { rest.wrapping_add(other) } else { rest }
            }
            #[inline(always)]
            #[track_caller]
            fn trunc_remainder(self, other: Self) -> Self { simt::remainder(self, other) }
        }
    )*};
}
#[allow(unused_comparisons, clippy::absurd_extreme_comparisons)]
mod integers {
    use super::*;
    integers!(u8, u16, u32, u64, usize, i8, i16, i32, i64, isize);
}

macro_rules! floats {
    ($($t:ident, $fmod:path;)*) => {$(
        impl Divide for $t {
            #[inline(always)]
            fn divide(self, other: Self) -> Self { self / other }
        }

        impl Quotient for $t {
            fn floor_divide(self, other: Self) -> Self {
                if other == 0.0 {
                    return self / other;
                }
                let rest = $fmod(self, other);
                let quotient = Real::round_ties_even((self - rest) / other);
                let down = rest != 0.0 && (rest < 0.0) != (other < 0.0);
                signed_zero(if down { quotient - 1.0 } else { quotient }, self, other)
            }
            fn trunc_divide(self, other: Self) -> Self {
                if other == 0.0 {
                    return self / other;
                }
                let rest = $fmod(self, other);
                signed_zero(Real::round_ties_even((self - rest) / other), self, other)
            }
            fn floor_remainder(self, other: Self) -> Self {
                let rest = $fmod(self, other);
                if rest == 0.0 {
                    // A zero has the sign of the divisor, as every remainder has.
                    Float::copysign(rest, other)
                } else if (rest < 0.0) != (other < 0.0) {
                    rest + other
                } else {
                    rest
                }
            }
            #[inline(always)]
            fn trunc_remainder(self, other: Self) -> Self { $fmod(self, other) }
        }
    )*};
}
floats! {
    f32, math::fmod_f32;
    f64, math::fmod_f64;
}

/// If a quotient is zero, it gets the sign that it has before it is made whole.
fn signed_zero<T: Float>(quotient: T, a: T, b: T) -> T {
    if quotient != T::ZERO {
        quotient
    } else if a.is_sign_negative() == b.is_sign_negative() {
        T::ZERO
    } else {
        T::ZERO.neg()
    }
}

// Quotients by `f32`: the remainder of two halves is exact in it, and so a half itself.
macro_rules! halves {
    ($($t:ident, $widen:ident, $narrow:ident;)*) => {$(
        impl Divide for $t {
            #[inline(always)]
            fn divide(self, other: Self) -> Self { $narrow($widen(self) / $widen(other)) }
        }

        impl Quotient for $t {
            #[inline(always)]
            fn floor_divide(self, other: Self) -> Self { $narrow($widen(self).floor_divide($widen(other))) }
            #[inline(always)]
            fn trunc_divide(self, other: Self) -> Self { $narrow($widen(self).trunc_divide($widen(other))) }
            #[inline(always)]
            fn floor_remainder(self, other: Self) -> Self { $narrow($widen(self).floor_remainder($widen(other))) }
            #[inline(always)]
            fn trunc_remainder(self, other: Self) -> Self { $narrow($widen(self).trunc_remainder($widen(other))) }
        }
    )*};
}
halves! {
    f16, f16_to_f32, f32_to_f16;
    bf16, bf16_to_f32, f32_to_bf16;
}

impl<T: Float> Divide for Complex<T> {
    fn divide(self, other: Self) -> Self {
        let Self { re: a, im: b } = self;
        let Self { re: c, im: d } = other;
        if c == T::ZERO && d == T::ZERO {
            // The ratio would be NaN.
            Self { re: a.divide(c), im: b.divide(c) }
        } else if d.magnitude().less_or_equal(c.magnitude()) {
            let ratio = d.divide(c);
            let scale = c.add(d.mul(ratio));
            Self { re: a.add(b.mul(ratio)).divide(scale), im: b.sub(a.mul(ratio)).divide(scale) }
        } else {
            let ratio = c.divide(d);
            let scale = c.mul(ratio).add(d);
            Self { re: a.mul(ratio).add(b).divide(scale), im: b.mul(ratio).sub(a).divide(scale) }
        }
    }
}
