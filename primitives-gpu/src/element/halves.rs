//! The half types beside `f32`: conversions, and how one operation on them is rounded once.
//!
//! An operation of `f32` on two halves, rounded to the half type, has the bits of the operation done natively: `f32` has
//! more than twice their significand bits plus two. That holds for sum, difference, product, quotient and square root,
//! and not for `mul_add` or conversions, which go by rounding to odd: a value that was inexact has an odd last bit, so that
//! the second rounding does not take it for a tie (Boldo and Melquiond, "Emulation of a FMA and correctly rounded sums:
//! proved algorithms using rounding to odd", 2008).

use half::{bf16, f16};

#[cfg(target_arch = "nvptx64")]
use crate::simt::nvptx;

pub(super) fn f16_to_f32(x: f16) -> f32 {
    #[cfg(target_arch = "nvptx64")]
    return nvptx::f16_to_f32(x.to_bits());
    #[cfg(not(target_arch = "nvptx64"))]
    x.to_f32()
}

pub(super) fn f32_to_f16(x: f32) -> f16 {
    #[cfg(target_arch = "nvptx64")]
    return f16::from_bits(nvptx::f32_to_f16(x));
    #[cfg(not(target_arch = "nvptx64"))]
    f16::from_f32(x)
}

#[inline(always)]
pub(super) fn bf16_to_f32(x: bf16) -> f32 {
    f32::from_bits((x.to_bits() as u32) << 16)
}

pub(super) fn f32_to_bf16(x: f32) -> bf16 {
    #[cfg(target_arch = "nvptx64")]
    return bf16::from_bits(nvptx::f32_to_bf16(x));
    #[cfg(not(target_arch = "nvptx64"))]
    bf16::from_f32(x)
}

/// Rounds to odd: exact, or else that of the two neighbours whose last bit is 1.
pub(super) fn odd_from_f64(x: f64) -> f32 {
    let near = x as f32;
    let back = near as f64;
    if back == x || x.is_nan() {
        return near;
    }
    // Magnitudes of floats order as their bits.
    let truncated = near.to_bits() - (back.to_bits() << 1 > x.to_bits() << 1) as u32;
    f32::from_bits(truncated | 1)
}

/// Rounds an integer's magnitude to odd.
pub(super) fn odd_from_integer(negative: bool, magnitude: u64) -> f32 {
    // The bits below the 24 that an `f32` holds.
    let low = 40u32.saturating_sub(magnitude.leading_zeros());
    let kept = magnitude >> low;
    let sticky = (kept << low != magnitude) as u64;
    let value = ((kept | sticky) << low) as f32;
    if negative { -value } else { value }
}

/// `a * b + c` of three halves, rounded to odd.
pub(crate) fn odd_mul_add(a: f32, b: f32, c: f32) -> f32 {
    // The product of two halves is exact; the sum is taken with its error (Knuth's TwoSum).
    let product = a as f64 * b as f64;
    let c = c as f64;
    let sum = product + c;
    let other = sum - product;
    let error = (product - (sum - other)) + (c - other);
    let mut bits = sum.to_bits();
    if error.abs() > 0.0 && bits & 1 == 0 {
        // The exact sum lies between this and the neighbour on the error's side, which is odd.
        bits = if (error > 0.0) == (sum > 0.0) { bits + 1 } else { bits - 1 };
    }
    odd_from_f64(f64::from_bits(bits))
}

/// The two results of an instruction that takes pairs of halves, each as a word, the first half in the low bits.
#[cfg(target_arch = "nvptx64")]
macro_rules! by_pairs {
    ($t:ident, $instruction:expr, $($pair:ident),+) => {
        $crate::element::halves::unpack($instruction($($crate::element::halves::pack($pair.map($t::to_bits))),+))
            .map($t::from_bits)
    };
}
#[cfg(target_arch = "nvptx64")]
pub(super) use by_pairs;

#[cfg(target_arch = "nvptx64")]
#[inline(always)]
pub(super) fn pack([low, high]: [u16; 2]) -> u32 {
    (high as u32) << 16 | low as u32
}

#[cfg(target_arch = "nvptx64")]
#[inline(always)]
pub(super) fn unpack(word: u32) -> [u16; 2] {
    [word as u16, (word >> 16) as u16]
}
