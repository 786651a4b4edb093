//! Tests the promises of elements and numbers: identities, zeros, conversions, and the arithmetic of the half types.

use kernel_primitives::element::Segmented;
use kernel_primitives::functor::Cast;
use kernel_primitives::kernels::map_unary;
use kernel_primitives::{
    Accumulate, Arithmetic, Complex, ConvertTo, Divide, Element, Float, Integer, Magnitude, Number, Ordered, Quotient,
    Real, Result, SortKey, bf16, f16,
};

use self::halves::{all_bits, exact_value};
use crate::kernels::{Flagged, Sixteen, Twelve};
use crate::support::{Random, round_to_half, stream};

mod halves;

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
    check::<Complex<f32>>();
    check::<isize>();
    check::<[f32; 3]>();
    check::<Twelve>();
    check::<Sixteen>();
    check::<Flagged>();
}

#[test]
fn bytes_are_those_of_a_value_if_those_of_its_parts_are() {
    let mut bytes = [0xFF; 9];
    assert!(Segmented::<u8>::valid_bits(&bytes) && !Segmented::<bool>::valid_bits(&bytes));
    for (last, valid) in [(0, true), (1, true), (2, false)] {
        bytes[8] = last;
        assert_eq!(Segmented::<bool>::valid_bits(&bytes), valid, "{last}");
    }
}

/// The product is halfway between two halves, so that the sign of any small addend decides. If the sum were rounded to
/// `f64` first, it would be the middle.
#[test]
fn a_product_and_a_sum_of_bf16_are_rounded_once() {
    let half = bf16::from_f32;
    let tiny = half(2.0f32.powi(-100));
    for (x, sum, expected) in [(3.0, tiny, 262.0), (3.0, -tiny, 260.0), (-3.0, tiny, -260.0), (-3.0, -tiny, -262.0)] {
        assert_eq!(Float::mul_add(half(x), half(87.0), sum), half(expected), "{x} and {sum}");
        assert_eq!(Float::mul_add(half(87.0), half(x), half(0.0)), half(x.signum() * 260.0), "to even");
    }
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

#[test]
fn halves_widen_exactly() -> Result<()> {
    let stream = stream()?;
    let bits = all_bits();
    let halves: Vec<f16> = bits.iter().map(|&b| f16::from_bits(b)).collect();
    let brains: Vec<bf16> = bits.iter().map(|&b| bf16::from_bits(b)).collect();
    let (mut a, mut b) = (stream.buffer_zeroed(bits.len())?, stream.buffer_zeroed(bits.len())?);
    map_unary::<f16, f32, Cast<f32>, 8>::launch(&stream, (8, 256), &stream.buffer_from(&halves)?, &mut a, Cast::new())?;
    map_unary::<bf16, f32, Cast<f32>, 4>::launch(
        &stream,
        (8, 256),
        &stream.buffer_from(&brains)?,
        &mut b,
        Cast::new(),
    )?;
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
    // This adds the value of each half, the tie above it, and the floats next to both.
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
    map_unary::<f32, f16, Cast<f16>, 4>::launch(&stream, (8, 256), &input, &mut a, Cast::new())?;
    map_unary::<f32, bf16, Cast<bf16>, 2>::launch(&stream, (8, 256), &input, &mut b, Cast::new())?;
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

/// Checks that the bits of all values have the order of the values by `less`, and that they convert back to the values.
fn sorts_by_bits<T: SortKey + std::fmt::Debug>(
    values: impl Iterator<Item = T> + Clone,
    same: impl Fn(T, T) -> bool,
    less: impl Fn(T, T) -> bool,
) {
    for value in values.clone() {
        let bits = value.to_sort_bits();
        assert!(same(T::from_sort_bits(bits), value), "{value:?}");
        assert!(bits.shr(T::SORT_BITS) == T::Bits::ZERO || T::SORT_BITS == T::Bits::WIDTH, "{value:?}");
    }
    for (a, b) in values.clone().zip(values.skip(1)) {
        assert_eq!(a.to_sort_bits() < b.to_sort_bits(), less(a, b), "{a:?} and {b:?}");
        assert_eq!(b.to_sort_bits() < a.to_sort_bits(), less(b, a), "{a:?} and {b:?}");
    }
}

/// NaN comes last. Numbers have the order `totalOrder`, and so has NaN, except that positive NaN comes before negative
/// NaN.
fn float_less(a: (f64, u64), b: (f64, u64)) -> bool {
    let of_nan = |(value, bits): (f64, u64)| if value.is_sign_negative() { (1, !bits) } else { (0, bits) };
    match (a.0.is_nan(), b.0.is_nan()) {
        (true, true) => of_nan(a) < of_nan(b),
        (false, false) => a.0.total_cmp(&b.0).is_lt(),
        (a, _) => !a,
    }
}

#[test]
fn sort_bits_order_as_the_values_and_give_them_back() {
    sorts_by_bits([false, true, false].into_iter(), |a, b| a == b, |a, b| !a & b);
    sorts_by_bits((0..=u8::MAX).chain([0]), |a, b| a == b, |a, b| a < b);
    sorts_by_bits((i8::MIN..=i8::MAX).chain([0]), |a, b| a == b, |a, b| a < b);
    sorts_by_bits((i16::MIN..=i16::MAX).chain([0]), |a, b| a == b, |a, b| a < b);
    let mut random = Random::new(3);
    let bits: Vec<u64> = (0..20_000).map(|_| random.bits()).chain([0, !0, 1 << 63, 1 << 31, 1]).collect();
    sorts_by_bits(bits.iter().copied(), |a, b| a == b, |a, b| a < b);
    sorts_by_bits(bits.iter().map(|&v| v as i64), |a, b| a == b, |a, b| a < b);
    sorts_by_bits(bits.iter().map(|&v| v as i32), |a, b| a == b, |a, b| a < b);
    sorts_by_bits(bits.iter().map(|&v| v as u32), |a, b| a == b, |a, b| a < b);

    // Each half is next to its successor in bits, and next to a random half.
    let pairs = || (0..=u16::MAX).flat_map(|v| [v, (v as u32 * 40503) as u16, v]);
    let key = |v: f64, bits: u16| (v, bits as u64);
    sorts_by_bits(
        pairs().map(f16::from_bits),
        |a, b| a.to_bits() == b.to_bits(),
        |a, b| float_less(key(a.to_f64(), a.to_bits()), key(b.to_f64(), b.to_bits())),
    );
    sorts_by_bits(
        pairs().map(bf16::from_bits),
        |a, b| a.to_bits() == b.to_bits(),
        |a, b| float_less(key(a.to_f64(), a.to_bits()), key(b.to_f64(), b.to_bits())),
    );
    let special = [f64::NAN, -f64::NAN, f64::INFINITY, 0.0, -0.0, f64::NEG_INFINITY, -1.0, 5e-324, -5e-324, f64::MAX];
    let floats = || special.into_iter().flat_map(|a| special.into_iter().flat_map(move |b| [a, b]));
    sorts_by_bits(
        floats().chain(bits.iter().map(|&v| f64::from_bits(v))),
        |a, b| a.to_bits() == b.to_bits(),
        |a, b| float_less((a, a.to_bits()), (b, b.to_bits())),
    );
    sorts_by_bits(
        floats().map(|v| v as f32).chain(bits.iter().map(|&v| f32::from_bits(v as u32))),
        |a, b| a.to_bits() == b.to_bits(),
        |a, b| float_less((a as f64, a.to_bits() as u64), (b as f64, b.to_bits() as u64)),
    );
    // The ends of the range are the ends of the order.
    assert_eq!(
        (f32::NEG_INFINITY.to_sort_bits(), (-f64::NAN).to_sort_bits() > f64::INFINITY.to_sort_bits()),
        (0, true)
    );
}

#[test]
fn conversions_truncate_saturate_wrap_and_round_once() {
    assert_eq!(ConvertTo::<u8>::convert(-1i32), 255);
    assert_eq!(ConvertTo::<i64>::convert(u64::MAX), -1);
    assert_eq!(ConvertTo::<i8>::convert(-129.9f32), -128);
    assert_eq!(ConvertTo::<i32>::convert(-1.9f64), -1);
    assert_eq!(ConvertTo::<u64>::convert(f64::INFINITY), u64::MAX);
    assert_eq!(ConvertTo::<u16>::convert(f16::NAN), 0);
    assert_eq!(ConvertTo::<u8>::convert(f16::from_f32(300.0)), 255);
    assert_eq!(ConvertTo::<i16>::convert(bf16::from_f32(-2.75)), -2);
    assert_eq!((ConvertTo::<bool>::convert(0.0f32), ConvertTo::<bool>::convert(-0.0f64)), (false, false));
    assert_eq!((ConvertTo::<bool>::convert(f32::NAN), ConvertTo::<bool>::convert(f16::NAN)), (true, true));
    assert_eq!((ConvertTo::<bool>::convert(256i64), ConvertTo::<bool>::convert(bf16::ZERO)), (true, false));
    assert_eq!((ConvertTo::<f64>::convert(true), ConvertTo::<bf16>::convert(false)), (1.0, bf16::ZERO));
    assert_eq!(ConvertTo::<Complex<f64>>::convert(3u8), Complex::new(3.0, 0.0));
    assert_eq!(ConvertTo::<Complex<f16>>::convert(Complex::new(1.0f32, 1e9)), Complex::new(f16::ONE, f16::INFINITY));

    // These values are next to a tie. Rounding to f32 first would give the tie, and then the even neighbour.
    assert_eq!(ConvertTo::<f16>::convert(1.0 + 2f64.powi(-11) + 2f64.powi(-40)), f16::from_f32(1.0 + 2f32.powi(-10)));
    assert_eq!(
        ConvertTo::<bf16>::convert((1i64 << 40) + (1 << 32) + 1),
        bf16::from_f32((1i64 << 40) as f32 + 2f32.powi(33))
    );
    let mut random = Random::new(4);
    for k in 0..20_000 {
        let bits = random.bits();
        let integer = bits as i64 >> (k % 64);
        // The conversion to f64 may be inexact. But bits after the 53rd do not change a rounding to 11 bits unless they
        // decide a tie, and they decide none here.
        for (found, fraction_bits, value) in [
            (ConvertTo::<f16>::convert(integer).to_bits(), 10, integer as f64),
            (ConvertTo::<bf16>::convert(integer).to_bits(), 7, integer as f64),
            (ConvertTo::<bf16>::convert(integer as i32).to_bits(), 7, integer as i32 as f64),
            (ConvertTo::<f16>::convert(integer as u32).to_bits(), 10, integer as u32 as f64),
            (ConvertTo::<f16>::convert(integer as i16).to_bits(), 10, integer as i16 as f64),
            (ConvertTo::<bf16>::convert(bits).to_bits(), 7, bits as f64),
        ] {
            assert_eq!(found, round_to_half(value, fraction_bits), "{value} with {fraction_bits} bits");
        }
        // These floats are in the range of the half types, and near their ties.
        let exponent = 1023 - 30 + bits % 50;
        let float = f64::from_bits((bits >> 12 & !((1 << (k % 50)) - 1)) | exponent << 52 | bits << 63);
        assert_eq!(ConvertTo::<f16>::convert(float).to_bits(), round_to_half(float, 10), "{float:e}");
        assert_eq!(ConvertTo::<bf16>::convert(float).to_bits(), round_to_half(float, 7), "{float:e}");
    }
}

#[test]
fn floats_are_classified() {
    fn check<T: Float + std::fmt::Debug>(subnormal: T) {
        for (value, [nan, infinite, finite, normal]) in [
            (T::NAN, [true, false, false, false]),
            (T::NAN.neg(), [true, false, false, false]),
            (T::INFINITY, [false, true, false, false]),
            (T::NEG_INFINITY, [false, true, false, false]),
            (T::ZERO, [false, false, true, false]),
            (T::ZERO.neg(), [false, false, true, false]),
            (subnormal, [false, false, true, false]),
            (T::MIN_POSITIVE, [false, false, true, true]),
            (T::MAX.neg(), [false, false, true, true]),
        ] {
            let found = [value.is_nan(), value.is_infinite(), value.is_finite(), value.is_normal()];
            assert_eq!(found, [nan, infinite, finite, normal], "{value:?}");
            assert_eq!(value.unordered(), nan);
            assert!(value.magnitude().neg().is_sign_negative() && !value.magnitude().is_sign_negative());
            assert!(value.copysign(T::ONE.neg()).is_sign_negative() && !value.copysign(T::ONE).is_sign_negative());
        }
        assert!(T::ONE.add(T::EPSILON) != T::ONE);
    }
    check(f32::from_bits(1));
    check(f64::from_bits(1));
    check(f16::from_bits(1));
    check(bf16::from_bits(1));
}

#[test]
fn shifts_beyond_the_width_leave_nothing_but_the_sign() {
    assert_eq!((Integer::shl(1u8, 7), Integer::shl(1u8, 8), Integer::shl(1i32, 1 << 31)), (128, 0, 0));
    assert_eq!((Integer::shr(200u8, 7), Integer::shr(200u8, 8), Integer::shr(u64::MAX, 64)), (1, 0, 0));
    assert_eq!((Integer::shr(-128i8, 7), Integer::shr(-128i8, 8), Integer::shr(i64::MAX, 99)), (-1, -1, 0));
}

/// The reference uses exact integers.
#[test]
fn quotients_of_integers_floor_and_truncate() {
    for a in i8::MIN..=i8::MAX {
        for b in (i8::MIN..=i8::MAX).filter(|&b| b != 0) {
            let (wide_a, wide_b) = (a as i32, b as i32);
            let floored = (wide_a as f64 / wide_b as f64).floor() as i32;
            assert_eq!(a.floor_divide(b), floored as i8, "{a} // {b}");
            assert_eq!(a.floor_remainder(b), (wide_a - floored * wide_b) as i8, "{a} mod {b}");
            assert_eq!((a.trunc_divide(b), a.divide(b)), ((wide_a / wide_b) as i8, (wide_a / wide_b) as i8));
            assert_eq!(a.trunc_remainder(b), (wide_a % wide_b) as i8, "{a} rem {b}");
            let (a, b) = (a as u8, b as u8);
            assert_eq!((a.floor_divide(b), a.floor_remainder(b)), (a / b, a % b));
            assert_eq!((a.trunc_divide(b), a.trunc_remainder(b)), (a / b, a % b));
        }
    }
    assert_eq!(i32::MIN.floor_divide(-1), i32::MIN, "wraps");
}

/// The examples come from Python's documentation and NumPy's tests. The special values are those of IEEE.
#[test]
fn quotients_of_floats_floor_and_truncate() {
    for (a, b, floored, rest) in [
        (7.5f64, 2.0, 3.0, 1.5),
        (-7.5, 2.0, -4.0, 0.5),
        (7.5, -2.0, -4.0, -0.5),
        (-7.5, -2.0, 3.0, -1.5),
        (6.0, 2.0, 3.0, 0.0),
        (-6.0, 2.0, -3.0, 0.0),
        (6.0, -2.0, -3.0, -0.0),
        (0.0, -2.0, -0.0, -0.0),
        (-1e-20, 2.0, -1.0, 2.0),
        (1.0, 0.1, 9.0, 0.1 - 5.551115123125783e-17),
        (f64::MAX, 3.0, f64::MAX / 3.0, f64::MAX % 3.0),
    ] {
        assert_eq!(a.floor_divide(b).to_bits(), floored.to_bits(), "{a} // {b} is {}", a.floor_divide(b));
        assert_eq!(a.floor_remainder(b).to_bits(), rest.to_bits(), "{a} mod {b} is {}", a.floor_remainder(b));
        assert_eq!(a.trunc_remainder(b).to_bits(), (a % b).to_bits());
        if a.abs() < 100.0 && a != 1.0 {
            assert_eq!(a.trunc_divide(b), (a / b).trunc());
            let (h, k) = (f16::from_f64(a), f16::from_f64(b));
            assert_eq!(h.trunc_divide(k), f16::from_f64((a / b).trunc()));
            if h != f16::ZERO {
                assert_eq!((h.floor_divide(k), h.floor_remainder(k)), (f16::from_f64(floored), f16::from_f64(rest)));
            }
        }
    }
    for zero in [0.0f32, -0.0] {
        assert_eq!(1f32.floor_divide(zero), 1.0 / zero);
        assert_eq!((-1f32).trunc_divide(zero), -1.0 / zero);
        assert!(0f32.floor_divide(zero).is_nan() && 1f32.floor_remainder(zero).is_nan());
        assert!(1f32.trunc_remainder(zero).is_nan());
    }
    assert!(f32::INFINITY.floor_divide(2.0).is_nan() || f32::INFINITY.floor_divide(2.0).is_infinite());
}

#[test]
fn complex_numbers_multiply_divide_and_have_a_length() {
    let c = Complex::<f64>::new;
    assert_eq!(c(1.0, 2.0).mul(c(3.0, -1.0)), c(5.0, 5.0));
    for (divisor, quotient) in [(c(3.0, -1.0), c(1.0, 2.0)), (c(1.0, 2.0), c(3.0, -1.0))] {
        assert!(c(5.0, 5.0).divide(divisor).sub(quotient).magnitude() < 1e-15);
    }
    assert_eq!(c(1e300, 1e300).divide(c(1e300, 1e300)), c(1.0, 0.0), "no overflow on the way");
    assert_eq!(c(1.0, -1.0).divide(c(0.0, 0.0)), c(f64::INFINITY, f64::NEG_INFINITY));
    assert_eq!((c(3.0, 4.0).magnitude(), c(3e300, 4e300).magnitude()), (5.0, 5e300));
    assert_eq!(c(1.0, 2.0).sub(c(1.0, 2.0)).add(Complex::ONE).neg(), c(-1.0, 0.0));
    assert_eq!(Complex::new(f16::ONE, f16::ONE).widen(), Complex::new(1f32, 1.0));
}

#[test]
fn complex_numbers_up_to_half_of_the_largest_are_divided_without_overflow() {
    let (half, one) = (f32::MAX / 2.0, Complex::<f32>::ONE);
    for (re, im) in [(half, half), (half, -half), (-half, half), (half, 0.0), (0.0, half)] {
        let x = Complex::new(re, im);
        assert_eq!(x.divide(x), one, "{x:?}");
    }
    let x = Complex::new(f16::from_f32(32752.0), f16::from_f32(-32752.0));
    assert_eq!(x.divide(x), Complex::new(f16::ONE, f16::ZERO));
}

#[test]
fn truth_values_are_ordered() {
    assert_eq!((bool::GREATEST, bool::LEAST), (true, false));
    assert_eq!((true.minimum(false), false.maximum(true), false.less(true)), (false, true, true));
}

#[test]
fn half_functions_are_rounded_once() {
    assert_eq!(f16::from_f32(2.0).sqrt(), f16::from_f32(2f32.sqrt()));
    assert_eq!(Real::exp(bf16::ONE), bf16::from_f32(1f32.exp()));
    assert_eq!(Real::powf(f16::from_f32(3.0), f16::from_f32(2.0)), f16::from_f32(9.0));
}
