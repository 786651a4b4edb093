//! Tests functors of floats: rounding, minima and maxima, elementary functions, and fused operations.

use kernel_primitives::{Arithmetic, ConvertTo, Float, Result, bf16, f16};

use super::columns::{columns_of, compare_columns};
use super::extreme;
use crate::kernels::columns::*;
use crate::support::{Random, round_to_half};

/// Describes a float type by functions of `f64`.
struct Format {
    /// The number of stored bits of the significand.
    fraction_bits: i32,
    /// The exponent of the smallest normal number.
    least_exponent: i32,
    /// Rounds to the type.
    round: fn(f64) -> f64,
    /// Rounds to the accumulation type.
    accumulate: fn(f64) -> f64,
    /// Returns the bits as the kernels encode them.
    encode: fn(f64) -> u64,
}

fn as_f32(value: f64) -> f64 {
    value as f32 as f64
}

const F64: Format =
    Format { fraction_bits: 52, least_exponent: -1022, round: |v| v, accumulate: |v| v, encode: Encode::encode };
const F32: Format = Format {
    fraction_bits: 23,
    least_exponent: -126,
    round: as_f32,
    accumulate: as_f32,
    encode: |v| (v as f32).encode(),
};
const F16: Format = Format {
    fraction_bits: 10,
    least_exponent: -14,
    round: |v| if v.is_nan() { v } else { f16::from_bits(round_to_half(v, 10)).to_f64() },
    accumulate: as_f32,
    encode: |v| if v.is_nan() { 0x7e00 } else { round_to_half(v, 10) as u64 },
};
const BF16: Format = Format {
    fraction_bits: 7,
    least_exponent: -126,
    round: |v| if v.is_nan() { v } else { bf16::from_bits(round_to_half(v, 7)).to_f64() },
    accumulate: as_f32,
    encode: |v| if v.is_nan() { 0x7fc0 } else { round_to_half(v, 7) as u64 },
};

fn least(a: f64, b: f64) -> f64 {
    extreme!(a, b, a.total_cmp(&b).is_lt())
}

fn most(a: f64, b: f64) -> f64 {
    extreme!(a, b, a.total_cmp(&b).is_gt())
}

/// Returns the columns of all numbers for floats. `f64` has more than twice the bits of the other types plus two, so
/// its results are rounded only once.
fn float_reference(format: &Format, x: f64, y: f64) -> Vec<Option<u64>> {
    let r = format.round;
    let value = |v: f64| Some((format.encode)(v));
    let truth = |v: bool| Some(v as u64);
    let half = |v: f64, fraction_bits, nan| Some(if v.is_nan() { nan } else { round_to_half(v, fraction_bits) as u64 });
    let quotient = r(x / y);
    let inverse = (format.accumulate)(1.0 / y);
    let by_inverse = (format.accumulate)(x * inverse);
    // Whole quotients have a reference only if the type has no gaps between whole numbers of their size.
    let rest = x % y;
    let whole = |v: f64| if quotient.abs() < 2f64.powi(format.fraction_bits - 1) { value(v) } else { None };
    let crosses = rest != 0.0 && (rest < 0.0) != (y < 0.0);
    let (truncated, floored) = if y == 0.0 || x.is_infinite() || quotient.is_nan() {
        let v = if y == 0.0 { quotient } else { f64::NAN };
        (value(v), value(v))
    } else {
        // If a quotient rounds to a whole number, the remainder tells its side.
        let exact = ((x - rest) / y).round_ties_even();
        let signed = |v: f64| if v == 0.0 { 0f64.copysign(x / y) } else { v };
        (whole(signed(exact)), whole(signed(if crosses { exact - 1.0 } else { exact })))
    };
    let remainder = if rest == 0.0 {
        0f64.copysign(y)
    } else if crosses {
        rest + y
    } else {
        rest
    };
    let difference = r(x - y);
    vec![
        value(x),
        value(-x),
        value(x * x),
        value(x.abs()),
        value(most(x, 0.0)),
        value(1.0 / y),
        truth(x == 0.0),
        value(by_inverse),
        value(least(most(x, y), 1.0)),
        value(x + y),
        value(x - y),
        value(x * y),
        value(x / y),
        floored,
        truncated,
        value(remainder),
        value(rest),
        value(least(x, y)),
        value(most(x, y)),
        truth(x == y),
        truth(x != y),
        truth(x < y),
        truth(x <= y),
        truth(x > y),
        truth(x >= y),
        truth(x != 0.0 && y != 0.0),
        truth(x != 0.0 || y != 0.0),
        truth((x != 0.0) != (y != 0.0)),
        value(if x < y { x } else { y }),
        value(difference * difference),
        value(y - x),
        value(difference),
        value(y - x),
        value(r(x + y) + x),
        truth(x != 0.0),
        Some(x as u8 as u64),
        Some(x as u16 as u64),
        Some(x as u32 as u64),
        Some(x as u64),
        Some(x as i8 as u64),
        Some(x as i16 as u64),
        Some(x as i32 as u64),
        Some(x as i64 as u64),
        half(x, 10, 0x7e00),
        half(x, 7, 0x7fc0),
        Some((x as f32).encode()),
        Some(x.encode()),
        None,
        value(x),
    ]
}

/// Returns the columns of floats that are exact to the bit. Fused multiply-add has its own test.
fn rounding_reference(format: &Format, x: f64, y: f64) -> Vec<Option<u64>> {
    let value = |v: f64| Some((format.encode)(v));
    let truth = |v: bool| Some(v as u64);
    let sign = if x.is_nan() || y.is_nan() { None } else { value(x.copysign(y)) };
    let normal = x.is_finite() && x.abs() >= 2f64.powi(format.least_exponent);
    vec![
        None,
        None,
        None,
        sign,
        truth(x.is_nan()),
        truth(x.is_finite()),
        truth(normal),
        truth(x.is_infinite()),
        value(x.sqrt()),
        value(x.floor()),
        value(x.ceil()),
        value(x.round_ties_even()),
        value(x.trunc()),
        value(x.round()),
        value(x.abs()),
    ]
}

macro_rules! float_columns {
    ($($name:ident: $t:ident, $format:ident;)*) => {$(
        #[test]
        fn $name() -> Result<()> {
            compare_columns::<$t, _>(
                NUMBERS,
                |x, y| float_reference(&$format, x.convert(), y.convert()),
                |stream, x, y, out| columns_of_numbers::<$t>::launch(stream, (2, 96), x, y, out),
            )?;
            compare_columns::<$t, _>(
                FLOATS,
                |x, y| rounding_reference(&$format, x.convert(), y.convert()),
                |stream, x, y, out| columns_of_floats::<$t>::launch(stream, (2, 96), x, y, out),
            )
        }
    )*};
}
float_columns! {
    sanitize_all_functors_of_f16: f16, F16;
    all_functors_of_bf16: bf16, BF16;
    all_functors_of_f32: f32, F32;
    all_functors_of_f64: f64, F64;
}

/// Returns true if a value is within `units` units in the last place of the exact value, which may be too large for the
/// type.
fn within(format: &Format, found: f64, exact: f64, units: f64) -> bool {
    let greatest = 2f64.powi(1 - format.least_exponent) * (2.0 - 2f64.powi(-format.fraction_bits));
    let exponent = (exact.abs().max(f64::MIN_POSITIVE).to_bits() >> 52) as i32 - 1023;
    let unit = 2f64.powi(exponent.max(format.least_exponent)) * 2f64.powi(-format.fraction_bits);
    if exact.is_nan() || found.is_nan() {
        exact.is_nan() && found.is_nan()
    } else if found.is_infinite() {
        found == exact || (found > 0.0) == (exact > 0.0) && exact.abs() + units * unit > greatest
    } else {
        (found - exact).abs() <= units * unit
    }
}

macro_rules! elementary {
    ($($name:ident: $t:ident, $format:ident, $units:expr;)*) => {$(
        #[test]
        fn $name() -> Result<()> {
            let (pairs, results) = columns_of::<$t, _>(|stream, x, y, out| {
                columns_of_reals::<$t>::launch(stream, (2, 96), x, y, out)
            })?;
            for ((x, y), found) in results.iter().flat_map(|results| pairs.iter().zip(results)) {
                for (&(name, exact, tolerance), found) in ELEMENTARY.iter().zip(found) {
                    let (found, exact) = ((*found).convert(), exact((*x).convert(), (*y).convert()));
                    let units: fn(f64) -> f64 = $units;
                    let close = within(&$format, found, exact, units(tolerance));
                    assert!(close, "{name} of {x:?} and {y:?}: {found:e}, not {exact:e}");
                }
            }
            Ok(())
        }
    )*};
}
elementary! {
    // These are rounded once from f32.
    elementary_functions_of_f16: f16, F16, |_| 1.0;
    elementary_functions_of_bf16: bf16, BF16, |_| 1.0;
    elementary_functions_of_f32: f32, F32, |units| units;
    // The reference has errors, too.
    elementary_functions_of_f64: f64, F64, |units| units + 2.0;
}

/// Returns `x * a + b` as an integer, in units of 2⁻⁵⁶. This is exact for halves of magnitudes between 2⁻²⁴ and 2³⁰.
fn exact_mul_add(x: f64, a: f64, b: f64) -> i128 {
    let units = |v: f64| (v * 2f64.powi(28)) as i128;
    units(x) * units(a) + (units(b) << 28)
}

macro_rules! fused {
    ($($name:ident: $t:ident, $exponent_of_one:literal, $fraction_bits:literal;)*) => {$(
        #[test]
        fn $name() {
            let mut random = Random::new(5);
            let mut half = || {
                let bits = random.bits();
                // Few bits make ties likely. The exponents are from −7 to 7.
                let exponent = $exponent_of_one - 7 + (bits >> 32) % 15;
                let fraction = (bits & ((1 << $fraction_bits) - 1)) >> ((bits >> 40) % 8) << ((bits >> 40) % 8);
                $t::from_bits((exponent << $fraction_bits | fraction | (bits >> 63 << 15)) as u16)
            };
            let (mut inexact, mut twice) = (0, 0);
            for _ in 0..100_000 {
                let (x, a, b) = (half(), half(), half());
                // Some addends have about the size of the product. Others are far less, and decide ties.
                let b = if b.to_bits() & 1 == 0 { b } else { Arithmetic::mul(b, <$t as Float>::from_f64(1.0 / 1024.0)) };
                let found = Float::mul_add(x, a, b);
                let exact = exact_mul_add(x.to_f64(), a.to_f64(), b.to_f64());
                let units = |v: $t| (v.to_f64() * 2f64.powi(56)) as i128;
                let error = (units(found) - exact).abs();
                for neighbour in [found.to_bits().wrapping_add(1), found.to_bits().wrapping_sub(1)] {
                    let neighbour = $t::from_bits(neighbour);
                    if neighbour.is_nan() || neighbour.is_infinite() || found == $t::ZERO {
                        continue;
                    }
                    let other = (units(neighbour) - exact).abs();
                    let nearest = error < other || error == other && found.to_bits() & 1 == 0;
                    assert!(nearest, "{x} * {a} + {b} is not {found}");
                }
                inexact += (error != 0) as u32;
                let in_f32 = x.to_f32().mul_add(a.to_f32(), b.to_f32());
                twice += ($t::from_f32(in_f32).to_bits() != found.to_bits()) as u32;
            }
            assert!(inexact > 10_000 && twice > 0, "{inexact} inexact, {twice} that rounding twice gets wrong");
        }
    )*};
}
fused! {
    multiply_add_of_f16_rounds_once: f16, 15, 10;
    multiply_add_of_bf16_rounds_once: bf16, 127, 7;
}
