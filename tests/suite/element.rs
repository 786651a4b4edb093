//! What elements and numbers promise: identities, zeros, conversions, and the arithmetic of the half types.

use kernel_primitives::functor::{Add, Max, Min, Mul};
use kernel_primitives::kernels::{elementwise_binary, elementwise_unary};
use kernel_primitives::{Accumulate, Element, Number, Result, bf16, f16};

use crate::kernels::functor::{Sub, ToBf16, ToF16, Widen};
use crate::kernels::{Flagged, Sixteen, Twelve};
use crate::support::{Random, round_to_half, stream};

#[test]
fn the_zero_of_an_element_has_zero_bytes() {
    fn check<T: Element>() {
        let zero = T::ZERO;
        // SAFETY: an element has no padding.
        let bytes = unsafe { std::slice::from_raw_parts((&raw const zero).cast::<u8>(), size_of::<T>()) };
        assert!(bytes.iter().all(|&byte| byte == 0));
    }
    check::<u8>();
    check::<f32>();
    check::<f64>();
    check::<f16>();
    check::<bf16>();
    check::<bool>();
    check::<isize>();
    check::<[f32; 3]>();
    check::<Twelve>();
    check::<Sixteen>();
    check::<Flagged>();
}

#[test]
fn identities_change_nothing() {
    fn check<T: Number + std::fmt::Debug>(values: &[T]) {
        for &v in values {
            assert_eq!(v.add(T::ZERO), v);
            assert_eq!(v.sub(T::ZERO), v);
            assert_eq!(v.mul(T::ONE), v);
            assert_eq!((v.minimum(T::GREATEST), T::GREATEST.minimum(v)), (v, v));
            assert_eq!((v.maximum(T::LEAST), T::LEAST.maximum(v)), (v, v));
        }
    }
    check(&[0u8, 1, 127, 255]);
    check(&[i8::MIN, -1, 0, i8::MAX]);
    check(&[u16::MIN, 9, u16::MAX]);
    check(&[i16::MIN, 9, i16::MAX]);
    check(&[u32::MIN, 9, u32::MAX]);
    check(&[i32::MIN, -9, i32::MAX]);
    check(&[u64::MIN, 9, u64::MAX]);
    check(&[i64::MIN, -9, i64::MAX]);
    check(&[usize::MIN, 9, usize::MAX]);
    check(&[isize::MIN, -9, isize::MAX]);
    check(&[f32::NEG_INFINITY, f32::MIN, -0.5, 1e-45, f32::MAX, f32::INFINITY]);
    check(&[f64::NEG_INFINITY, f64::MIN, -0.5, 5e-324, f64::MAX, f64::INFINITY]);
    check(&[f16::NEG_INFINITY, f16::MIN, f16::MIN_POSITIVE_SUBNORMAL, f16::MAX, f16::INFINITY]);
    check(&[bf16::NEG_INFINITY, bf16::MIN, bf16::MIN_POSITIVE_SUBNORMAL, bf16::MAX, bf16::INFINITY]);
}

#[test]
fn only_types_with_a_bool_have_bytes_that_are_no_value() {
    const {
        assert!(f32::ANY_BITS && u8::ANY_BITS && <[f64; 3]>::ANY_BITS && Twelve::ANY_BITS && Sixteen::ANY_BITS);
        assert!(!bool::ANY_BITS && !<[bool; 2]>::ANY_BITS && !Flagged::ANY_BITS);
    }
}

/// All 65536 values of a half type.
fn all_bits() -> Vec<u16> {
    (0..=u16::MAX).collect()
}

/// Halves that matter: zeros, ones, the ends of the subnormal and the normal range, halves of units, infinities, NaN.
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
        elementwise_binary::<$t, $t, $op, 8>::launch(&$stream, (16, 256), &$x, &$y, &mut out, $op)?;
        let reference: fn(f64, f64) -> f64 = $reference;
        for (a, found) in $all.iter().zip(out.to_vec()?) {
            let exact = reference(exact_value(a.to_bits(), $fraction_bits), exact_value($partner.to_bits(), $fraction_bits));
            let expected = round_to_half(exact, $fraction_bits);
            let equal = if exact.is_nan() { found.is_nan() } else { found.to_bits() == expected };
            assert!(equal, "{} of {a:?} and {:?}: {:#06x}, not {expected:#06x}", stringify!($op), $partner, found.to_bits());
        }
    })*};
}

/// The value of a half type's bits.
fn exact_value(bits: u16, fraction_bits: u32) -> f64 {
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

// Sums of bf16 may be inexact in f64, whose 53 bits are more than twice the 8 of bf16 and two: rounding twice gives what
// rounding once does.
half_arithmetic! {
    f16_arithmetic_is_rounded_once_for_all_values: f16, 10,
        [Add: |a, b| a + b, Mul: |a, b| a * b, Min: minimum, Max: maximum, Sub: |a, b| a - b];
    bf16_arithmetic_is_rounded_once_for_all_values: bf16, 7,
        [Add: |a, b| a + b, Mul: |a, b| a * b, Min: minimum, Max: maximum, Sub: |a, b| a - b];
}

#[test]
fn halves_widen_exactly() -> Result<()> {
    let stream = stream()?;
    let bits = all_bits();
    let halves: Vec<f16> = bits.iter().map(|&b| f16::from_bits(b)).collect();
    let brains: Vec<bf16> = bits.iter().map(|&b| bf16::from_bits(b)).collect();
    let (mut a, mut b) = (stream.buffer_zeroed(bits.len())?, stream.buffer_zeroed(bits.len())?);
    elementwise_unary::<f16, f32, Widen, 8>::launch(&stream, (8, 256), &stream.buffer_from(&halves)?, &mut a, Widen)?;
    elementwise_unary::<bf16, f32, Widen, 4>::launch(&stream, (8, 256), &stream.buffer_from(&brains)?, &mut b, Widen)?;
    for ((bits, a), b) in bits.into_iter().zip(a.to_vec()?).zip(b.to_vec()?) {
        for (found, fraction_bits) in [(a, 10), (b, 7)] {
            let exact = exact_value(bits, fraction_bits);
            let expected = exact as f32;
            assert!(found.to_bits() == expected.to_bits() || exact.is_nan() && found.is_nan(), "{bits:#06x}: {found}");
        }
    }
    Ok(())
}

#[test]
fn floats_narrow_to_the_nearest_half_ties_to_even() -> Result<()> {
    let stream = stream()?;
    let mut random = Random::new(2);
    let mut x = vec![0.0f32, -0.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, f32::MAX, 65504.0, 65519.996, 65520.0];
    x.extend([6e-8, 2.98e-8, 2.9802322e-8, 2.9802324e-8, 1e-45, 9.2e-41, 4.6e-41, 3.39e38, 3.4e38]);
    // The value of each half, the tie above it, and the floats beside both.
    for bits in 0..0x7c00u16 {
        let (low, high) = (exact_value(bits, 10) as f32, exact_value(bits + 1, 10) as f32);
        if bits % 7 == 0 && high.is_finite() {
            let tie = (low + high) / 2.0;
            x.extend([low, tie, tie.next_up(), tie.next_down(), -tie]);
        }
        let brain = f32::from_bits((bits as u32) << 16 | 0x8000);
        x.extend([brain, brain.next_up(), -brain.next_down()]);
    }
    x.extend((0..20_000).map(|_| f32::from_bits(random.bits() as u32)));
    let input = stream.buffer_from(&x)?;
    let (mut a, mut b) = (stream.buffer_zeroed(x.len())?, stream.buffer_zeroed(x.len())?);
    elementwise_unary::<f32, f16, ToF16, 4>::launch(&stream, (8, 256), &input, &mut a, ToF16)?;
    elementwise_unary::<f32, bf16, ToBf16, 2>::launch(&stream, (8, 256), &input, &mut b, ToBf16)?;
    for ((x, a), b) in x.into_iter().zip(a.to_vec()?).zip(b.to_vec()?) {
        if x.is_nan() {
            assert!(a.is_nan() && b.is_nan());
        } else {
            assert_eq!(a.to_bits(), round_to_half(x as f64, 10), "{x:e} to f16");
            assert_eq!(b.to_bits(), round_to_half(x as f64, 7), "{x:e} to bf16");
        }
    }
    Ok(())
}

#[test]
fn halves_accumulate_in_f32() {
    assert_eq!(f16::from_f32(1.5).widen(), 1.5f32);
    assert_eq!(bf16::narrow(1.0 + 1.0 / 256.0), bf16::ONE, "a tie goes to even");
    assert_eq!(<f64 as Accumulate>::narrow(0.1), 0.1);
    assert_eq!(7u8.widen(), 7u8);
}

#[test]
fn elements_with_bools_come_back() -> Result<()> {
    let stream = stream()?;
    let x = [Flagged { flags: [true, false], value: 513 }, Flagged { flags: [false, true], value: 0xffff }];
    assert_eq!(stream.buffer_from(&x)?.to_vec()?, x);
    assert_eq!(stream.buffer_zeroed::<Flagged>(2)?.to_vec()?, [Flagged::ZERO; 2]);
    let pairs = [[true, false], [false, false]];
    assert_eq!(stream.buffer_from(&pairs)?.to_vec()?, pairs);
    Ok(())
}
