//! Tests arithmetic of halves against exact values.

use kernel_primitives::functor::{Add, Max, Min, Mul, Sub};
use kernel_primitives::kernels::map_binary;
use kernel_primitives::{Result, bf16, f16};

use crate::support::{Random, round_to_half, stream};

/// Returns all 65536 values of a half type.
pub(super) fn all_bits() -> Vec<u16> {
    (0..=u16::MAX).collect()
}

/// Returns important halves: zeros, numbers near one, the ends of the subnormal and the normal range, infinities, NaN,
/// and some random ones.
fn partners(fraction_bits: u32) -> Vec<u16> {
    let one = ((1u16 << (14 - fraction_bits)) - 1) << fraction_bits;
    let infinity = 0x7fff >> fraction_bits << fraction_bits;
    let unit = 1 << fraction_bits;
    let positive = [
        0,
        1,
        2,
        unit - 1,
        unit,
        unit + 1,
        one - 1,
        one,
        one + 1,
        one + unit,
        one + 3,
        infinity - 1,
        infinity,
        infinity + 9,
    ];
    let mut all: Vec<u16> = positive.into_iter().flat_map(|bits| [bits, bits | 0x8000]).collect();
    let mut random = Random::new(1);
    all.extend((0..12).map(|_| random.bits() as u16));
    all
}

macro_rules! half_arithmetic {
    ($($name:ident: $t:ident, $fraction_bits:literal, $ops:tt;)*) => {$(
        #[test]
        fn $name() -> Result<()> {
            let stream = stream()?;
            let all: Vec<$t> = all_bits().into_iter().map($t::from_bits).collect();
            let x = stream.buffer_from(&all)?;
            for partner in partners($fraction_bits) {
                let partner = $t::from_bits(partner);
                let y = stream.buffer_from(&vec![partner; all.len()])?;
                half_arithmetic!(@ops $t, $fraction_bits, stream, all, x, y, partner, $ops);
            }
            Ok(())
        }
    )*};
    (@ops $t:ident, $fraction_bits:literal, $stream:ident, $all:ident, $x:ident, $y:ident, $partner:ident,
        [$($op:ident: $reference:expr),*]) => {$({
        let mut out = $stream.buffer_zeroed::<$t>($all.len())?;
        map_binary::<$t, $t, $op, 8>::launch(&$stream, (16, 256), &$x, &$y, &mut out, $op)?;
        let reference: fn(f64, f64) -> f64 = $reference;
        for (a, found) in $all.iter().zip(out.to_vec()?) {
            let exact = reference(exact_value(a.to_bits(), $fraction_bits), exact_value($partner.to_bits(), $fraction_bits));
            let expected = round_to_half(exact, $fraction_bits);
            let equal = if exact.is_nan() { found.is_nan() } else { found.to_bits() == expected };
            assert!(equal, "{} of {a:?} and {:?}: {:#06x}, not {expected:#06x}", stringify!($op), $partner, found.to_bits());
        }
    })*};
}

/// Returns the value of a half type's bits.
pub(super) fn exact_value(bits: u16, fraction_bits: u32) -> f64 {
    let bias = (1i32 << (14 - fraction_bits)) - 1;
    let fraction = (bits & ((1 << fraction_bits) - 1)) as f64;
    let exponent = ((bits & 0x7fff) >> fraction_bits) as i32;
    let unit = 2f64.powi(-(fraction_bits as i32));
    let magnitude = if exponent == 2 * bias + 1 {
        if fraction == 0.0 { f64::INFINITY } else { f64::NAN }
    } else if exponent == 0 {
        fraction * unit * 2f64.powi(1 - bias)
    } else {
        (1.0 + fraction * unit) * 2f64.powi(exponent - bias)
    };
    if bits & 0x8000 == 0 { magnitude } else { -magnitude }
}

/// IEEE 754-2019 `minimum`.
fn minimum(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() {
        f64::NAN
    } else if a == b {
        if a.is_sign_negative() { a } else { b }
    } else {
        a.min(b)
    }
}

fn maximum(a: f64, b: f64) -> f64 {
    -minimum(-a, -b)
}

// Sums of bf16 may be inexact in f64. But the 53 bits of f64 are more than twice the 8 bits of bf16 plus two. Thus
// rounding twice gives the same as rounding once.
half_arithmetic! {
    f16_arithmetic_is_rounded_once_for_all_values: f16, 10,
        [Add: |a, b| a + b, Mul: |a, b| a * b, Min: minimum, Max: maximum, Sub: |a, b| a - b];
    bf16_arithmetic_is_rounded_once_for_all_values: bf16, 7,
        [Add: |a, b| a + b, Mul: |a, b| a * b, Min: minimum, Max: maximum, Sub: |a, b| a - b];
}
