//! The operations of floating-point types beyond those of numbers.

use half::{bf16, f16};

use super::halves::{bf16_to_f32, f32_to_bf16, odd_mul_add};
#[cfg(not(target_arch = "nvptx64"))]
use super::halves::{f16_to_f32, f32_to_f16};
use super::{ConvertTo, Magnitude, Number, Quotient};

/// A binary floating-point number: `f16`, `bf16`, `f32`, `f64`.
pub trait Float: Number + Quotient + Magnitude<Real = Self> {
    /// Not a number.
    const NAN: Self;
    /// +∞.
    const INFINITY: Self;
    /// −∞.
    const NEG_INFINITY: Self;
    /// The largest finite value.
    const MAX: Self;
    /// The smallest positive normal value.
    const MIN_POSITIVE: Self;
    /// The difference between 1 and the next larger value.
    const EPSILON: Self;

    /// The value nearest to `value`, for a constant in generic code.
    fn from_f64(value: f64) -> Self;

    /// Whether this is NaN.
    fn is_nan(self) -> bool;
    /// Whether this is +∞ or −∞.
    fn is_infinite(self) -> bool;
    /// Whether this is neither infinite nor NaN.
    fn is_finite(self) -> bool;
    /// Whether this is neither zero, subnormal, infinite nor NaN.
    fn is_normal(self) -> bool;
    /// Whether the sign bit is set. It is set for −0.
    fn is_sign_negative(self) -> bool;
    /// The magnitude of this value with the sign of `sign`.
    fn copysign(self, sign: Self) -> Self;
    /// `self * a + b`, rounded once.
    fn mul_add(self, a: Self, b: Self) -> Self;

    /// Two of [`mul_add`](Float::mul_add), by one instruction where the hardware has it.
    #[doc(hidden)]
    #[inline(always)]
    fn mul_add_pair([x, y]: [Self; 2], [a, b]: [Self; 2], [c, d]: [Self; 2]) -> [Self; 2] {
        [x.mul_add(a, c), y.mul_add(b, d)]
    }
}

macro_rules! floats {
    ($($t:ident, $bits:ident, $mul_add:expr $(, $pair:ident from $arch:literal)?;)*) => {$(
        impl Float for $t {
            const NAN: Self = $t::NAN;
            const INFINITY: Self = $t::INFINITY;
            const NEG_INFINITY: Self = $t::NEG_INFINITY;
            const MAX: Self = $t::MAX;
            const MIN_POSITIVE: Self = $t::MIN_POSITIVE;
            const EPSILON: Self = $t::EPSILON;
            #[inline(always)]
            fn from_f64(value: f64) -> Self { value.convert() }
            #[inline(always)]
            fn is_nan(self) -> bool { self.to_bits() << 1 > $t::INFINITY.to_bits() << 1 }
            #[inline(always)]
            fn is_infinite(self) -> bool { self.to_bits() << 1 == $t::INFINITY.to_bits() << 1 }
            #[inline(always)]
            fn is_finite(self) -> bool { (self.to_bits() << 1) < $t::INFINITY.to_bits() << 1 }
            #[inline(always)]
            fn is_normal(self) -> bool {
                let least = $t::MIN_POSITIVE.to_bits() << 1;
                (self.to_bits() << 1).wrapping_sub(least) < ($t::INFINITY.to_bits() << 1) - least
            }
            #[inline(always)]
            fn is_sign_negative(self) -> bool { self.to_bits() >> ($bits::BITS - 1) != 0 }
            #[inline(always)]
            fn copysign(self, sign: Self) -> Self {
                let mask: $bits = 1 << ($bits::BITS - 1);
                $t::from_bits(self.to_bits() & !mask | sign.to_bits() & mask)
            }
            #[inline(always)]
            fn mul_add(self, a: Self, b: Self) -> Self {
                let f: fn(Self, Self, Self) -> Self = $mul_add;
                f(self, a, b)
            }
            $(
                #[cfg(target_arch = "nvptx64")]
                fn mul_add_pair(x: [Self; 2], a: [Self; 2], b: [Self; 2]) -> [Self; 2] {
                    if crate::simt::nvptx::arch() < $arch {
                        return [x[0].mul_add(a[0], b[0]), x[1].mul_add(a[1], b[1])];
                    }
                    super::halves::by_pairs!($t, crate::simt::nvptx::$pair, x, a, b)
                }
            )?
        }
    )*};
}
floats! {
    f32, u32, crate::simt::math::fma_f32;
    f64, u64, crate::simt::math::fma_f64;
    f16, u16, f16_mul_add, f16x2_fma from 750;
    bf16, u16, bf16_mul_add, bf16x2_fma from 800;
}

fn f16_mul_add(x: f16, a: f16, b: f16) -> f16 {
    #[cfg(target_arch = "nvptx64")]
    return f16::from_bits(crate::simt::nvptx::f16_fma(x.to_bits(), a.to_bits(), b.to_bits()));
    #[cfg(not(target_arch = "nvptx64"))]
    f32_to_f16(odd_mul_add(f16_to_f32(x), f16_to_f32(a), f16_to_f32(b)))
}

fn bf16_mul_add(x: bf16, a: bf16, b: bf16) -> bf16 {
    #[cfg(target_arch = "nvptx64")]
    if crate::simt::nvptx::arch() >= 800 {
        return bf16::from_bits(crate::simt::nvptx::bf16_fma(x.to_bits(), a.to_bits(), b.to_bits()));
    }
    f32_to_bf16(odd_mul_add(bf16_to_f32(x), bf16_to_f32(a), bf16_to_f32(b)))
}
