//! Functors: the library's on every type, bit by bit, and authors' own in the library's kernels.

use kernel_primitives::block::Each;
use kernel_primitives::functor::{
    Add, BinaryFn, BitAnd, BitOr, BitXor, ByIndex, Comparator, DivideBy, Fold, Greater, LessThan, LogicalAnd,
    LogicalOr, LogicalXor, Max, Min, Mul, MulAdd, Neg, Reducer, Relu, Select, Square, Sub,
};
use kernel_primitives::kernels::{map_any, map_binary, map_ternary, map_unary};
use kernel_primitives::{
    Arithmetic, Buffer, Complex, ConvertTo, Device, Element, Float, Result, Stream, UnaryFn, bf16, f16,
};
use proptest::collection;
use proptest::prelude::any;

use crate::kernels::columns::*;
use crate::kernels::functor::Affine;
use crate::support::{Arbitrary, Random, cases, holds, round_to_half, stream, values};

/// Values, and all pairs of them.
fn pairs<T: Copy>(special: &[T]) -> (Vec<T>, Vec<T>) {
    special.iter().flat_map(|&a| special.iter().map(move |&b| (a, b))).unzip()
}

macro_rules! float_functors {
    ($($name:ident: $t:ident, $width:literal, $one:expr, $($op:ident: $reference:expr),*;)*) => {$(
        #[test]
        fn $name() -> Result<()> {
            let stream = stream()?;
            let mut random = Random::new(8);
            let mut special = vec![0.0, -0.0, 1.0, -1.0, 0.1, 3.0, 1e-3, $t::MAX, $t::MIN, $t::INFINITY, $t::NEG_INFINITY];
            special.extend([$t::NAN, -$t::NAN, $t::MIN_POSITIVE, $t::MIN_POSITIVE / 2.0, $t::from_bits(1), $t::EPSILON]);
            special.extend((0..30).map(|_| $t::from_bits(random.bits() as _)));
            let (x, y) = pairs(&special);
            let input = (stream.buffer_from(&x)?, stream.buffer_from(&y)?);
            $({
                let mut out = stream.buffer_zeroed::<$t>(x.len())?;
                map_binary::<$t, $t, $op, $width>::launch(&stream, (2, 128), &input.0, &input.1, &mut out, $op)?;
                let reference: fn($t, $t) -> $t = $reference;
                for ((&a, &b), found) in x.iter().zip(&y).zip(out.to_vec()?) {
                    let expected = reference(a, b);
                    let equal = found.to_bits() == expected.to_bits() || found.is_nan() && expected.is_nan();
                    assert!(equal, "{} of {a:e} and {b:e}: {found:e}, not {expected:e}", stringify!($op));
                }
            })*
            Ok(())
        }
    )*};
}

// NaN wins, and −0 is less than +0.
macro_rules! extreme {
    ($a:ident, $b:ident, $less:expr) => {
        if $a.is_nan() || $b.is_nan() {
            $a + $b
        } else if $less {
            $a
        } else {
            $b
        }
    };
}
float_functors! {
    functors_of_f32_bit_by_bit: f32, 4, 1.0,
        Add: |a, b| a + b, Mul: |a, b| a * b,
        Min: |a, b| extreme!(a, b, a.total_cmp(&b).is_lt()), Max: |a, b| extreme!(a, b, a.total_cmp(&b).is_gt());
    functors_of_f64_bit_by_bit: f64, 2, 1.0,
        Add: |a, b| a + b, Mul: |a, b| a * b,
        Min: |a, b| extreme!(a, b, a.total_cmp(&b).is_lt()), Max: |a, b| extreme!(a, b, a.total_cmp(&b).is_gt());
}

macro_rules! integer_functors {
    ($($name:ident: $t:ty, $([$op:ident, $width:literal, $reference:expr]),*;)*) => {$(
        #[test]
        fn $name() -> Result<()> {
            let stream = stream()?;
            let mut special: Vec<$t> = vec![0, 1, 2, 3, <$t>::MAX, <$t>::MAX - 1, <$t>::MAX / 2, <$t>::MIN, <$t>::MIN + 1];
            special.extend(values::<$t>(20, 1));
            let (x, y) = pairs(&special);
            let input = (stream.buffer_from(&x)?, stream.buffer_from(&y)?);
            $({
                let mut out = stream.buffer_zeroed::<$t>(x.len())?;
                map_binary::<$t, $t, $op, $width>::launch(&stream, (2, 65), &input.0, &input.1, &mut out, $op)?;
                let reference: fn($t, $t) -> $t = $reference;
                let expected: Vec<$t> = x.iter().zip(&y).map(|(&a, &b)| reference(a, b)).collect();
                assert_eq!(out.to_vec()?, expected, stringify!($op));
            })*
            Ok(())
        }
    )*};
}
integer_functors! {
    functors_of_i32_wrap: i32,
        [Add, 4, i32::wrapping_add], [Mul, 4, i32::wrapping_mul], [Min, 4, i32::min], [Max, 4, i32::max],
        [Sub, 4, i32::wrapping_sub];
    functors_of_u32_wrap: u32,
        [Add, 4, u32::wrapping_add], [Mul, 4, u32::wrapping_mul], [Min, 4, u32::min], [Max, 4, u32::max];
    functors_of_u8_wrap: u8, [Add, 16, u8::wrapping_add];
    functors_of_i64_wrap: i64, [Mul, 2, i64::wrapping_mul];
    functors_of_u64_compare_unsigned: u64, [Max, 2, u64::max];
    functors_of_i8_compare_signed: i8, [Min, 3, i8::min];
    functors_of_i16_wrap: i16, [Mul, 8, i16::wrapping_mul];
}

#[test]
fn identities_of_reducers() {
    fn check<T: PartialEq + Copy + std::fmt::Debug>(op: impl Reducer<T>, values: &[T]) {
        for &v in values {
            assert_eq!((op.apply(op.identity(), v), op.apply(v, op.identity())), (v, v));
        }
    }
    check(Add, &[0u8, 255]);
    check(Mul, &[i32::MIN, -1, 0, i32::MAX]);
    check(Min, &[f32::INFINITY, f32::MAX, f32::NEG_INFINITY]);
    check(Max, &[f32::NEG_INFINITY, f32::MIN, f32::INFINITY]);
    check(Min, &[i64::MAX, i64::MIN]);
    check(Max, &[i64::MIN, i64::MAX]);
    check(Min, &[f16::INFINITY, f16::NEG_INFINITY]);
    check(Max, &[bf16::NEG_INFINITY, bf16::INFINITY]);
    assert_eq!(Reducer::<f64>::identity(&Min), f64::INFINITY);
    assert_eq!(Reducer::<u32>::identity(&Max), 0);
    // A sum with the identity leaves −0 as it is; a sum of nothing is +0.
    fn zeros<T: Arithmetic + std::fmt::Debug>(negative: T, bits: impl Fn(T) -> u64) {
        let (identity, none) = (Reducer::<T>::identity(&Add), Reducer::<T>::of_none(&Add));
        assert_eq!([Add.apply(negative, identity), Add.apply(identity, negative)].map(&bits), [bits(negative); 2]);
        assert_eq!((bits(Add.apply(T::ZERO, identity)), bits(none)), (0, 0));
    }
    zeros(-0.0f32, |x| x.to_bits().into());
    zeros(-0.0f64, f64::to_bits);
    zeros(f16::NEG_ZERO, |x| x.to_bits().into());
    zeros(bf16::NEG_ZERO, |x| x.to_bits().into());
    zeros(Complex::new(-0.0f32, -0.0), |x| (x.re.to_bits() as u64) << 32 | x.im.to_bits() as u64);
    assert_eq!(Each(Add).of_none().map(f32::to_bits), [0; 2]);
}

/// By any divisor of the accumulation type, also by those that are no halves.
#[test]
fn halves_are_divided_by_any_float() {
    for divisor in [4097.0f32, 65536.0, 1e30, 3.0, 2049.0, 1e-30, 0.0, f32::INFINITY] {
        for x in [1.0f32, -1.0, 3.0, 65504.0, 0.5, 6.1e-5, 0.0] {
            let (half, brain) = (f16::from_f32(x), bf16::from_f32(x));
            let expected = |x: f32| x * (1.0 / divisor);
            let found = DivideBy::<f16>::by(divisor).apply(half);
            let exact = f16::from_f32(expected(half.to_f32()));
            assert!(
                found.to_bits() == exact.to_bits() || found.is_nan() && exact.is_nan(),
                "{x} by {divisor}: {found}"
            );
            let found = DivideBy::<bf16>::by(divisor).apply(brain);
            let exact = bf16::from_f32(expected(brain.to_f32()));
            assert!(
                found.to_bits() == exact.to_bits() || found.is_nan() && exact.is_nan(),
                "{x} by {divisor}: {found}"
            );
        }
    }
    assert_eq!((DivideBy::<i8>::by(-3).apply(100), DivideBy::<f64>::by(4.0).apply(1.0)), (-33, 0.25));
    assert_eq!(DivideBy::<f16>::by(3.0), DivideBy::new(f16::from_f32(3.0)));
}

#[test]
fn closures_and_functions_are_functors() {
    fn twice<A: Copy>(f: impl BinaryFn<A, Output = A>, a: A) -> A {
        f.apply(f.apply(a, a), a)
    }
    assert_eq!(twice(|a: i32, b: i32| a - b, 5), -5);
    assert_eq!(twice(i32::wrapping_mul, 2), 8);
    let offset = 10;
    assert_eq!(twice(move |a: i32, b: i32| a + b + offset, 1), 23);
}

#[test]
fn sanitize_a_functor_with_state_in_a_library_kernel() -> Result<()> {
    let stream = stream()?;
    let f = Affine { a: 3.0, b: -0.5 };
    for case in cases(1) {
        let x = values::<f32>(case.len + case.offset, 1);
        let input = stream.buffer_from(&x)?;
        let expected: Vec<f32> = x[case.offset..].iter().map(|x| 3.0 * x - 0.5).collect();
        let mut out = stream.buffer_zeroed(case.len)?;
        map_unary::<f32, f32, Affine, 4>::launch(&stream, case.dims(4, 3), input.slice(case.offset..)?, &mut out, f)?;
        assert_eq!(out.to_vec()?, expected, "{case:?}");
        let mut out = stream.buffer_zeroed(case.len)?;
        map_unary::<f32, f32, Affine, 1>::launch(&stream, case.dims(1, 9), input.slice(case.offset..)?, &mut out, f)?;
        assert_eq!(out.to_vec()?, expected, "{case:?}");
    }
    Ok(())
}

/// Compares two sequences by a kernel.
fn compares<T: Arbitrary + PartialOrd>(
    variant: usize,
    launch: impl Fn(&Stream, kernel_primitives::Dims, &Buffer<T>, &Buffer<T>, &mut Buffer<bool>) -> Result<()>,
    per_thread: usize,
) -> Result<()> {
    let stream = stream()?;
    for case in cases(variant) {
        let (x, y) = (values::<T>(case.len, 1), values::<T>(case.len, 2));
        let mut out = stream.buffer_zeroed(case.len)?;
        launch(&stream, case.dims(per_thread, 3), &stream.buffer_from(&x)?, &stream.buffer_from(&y)?, &mut out)?;
        let expected: Vec<bool> = x.iter().zip(&y).map(|(x, y)| x < y).collect();
        assert_eq!(out.to_vec()?, expected, "{case:?}");
    }
    Ok(())
}

#[test]
fn sanitize_a_functor_whose_result_is_bool() -> Result<()> {
    compares::<f32>(
        2,
        |stream, dims, x, y, out| map_binary::<f32, bool, LessThan, 4>::launch(stream, dims, x, y, out, LessThan),
        4,
    )?;
    compares::<i64>(
        5,
        |stream, dims, x, y, out| map_binary::<i64, bool, LessThan, 3>::launch(stream, dims, x, y, out, LessThan),
        3,
    )
}

/// Values that matter, and some arbitrary ones.
trait Special: Columns + std::fmt::Debug {
    fn special() -> Vec<Self>;
}

macro_rules! special {
    ($($t:ty),*: |$random:ident| $values:expr) => {$(
        impl Special for $t {
            fn special() -> Vec<$t> {
                type T = $t;
                let mut $random = Random::new(11);
                $values
            }
        }
    )*};
}
special! { u8, u16, u32, u64, i8, i16, i32, i64: |random| {
    let fixed = [0, 1, 2, 3, 7, 33, 100, T::MAX, T::MAX - 1, T::MAX / 2, T::MIN, T::MIN + 1, (0 as T).wrapping_sub(1), T::MAX - 6];
    fixed.into_iter().chain((0..12).map(|k| (random.bits() >> (5 * k)) as T)).collect()
}}
special! { f16, bf16, f32, f64: |random| {
    let positive = [0.0, 1.0, 0.1, 0.5, 1.5, 2.5, 3.0, 127.5, 300.0, 65519.0, 1e-3, 5e9].map(<T as Float>::from_f64);
    let ends = [T::MAX, T::INFINITY, T::NAN, T::MIN_POSITIVE, T::EPSILON, T::from_bits(1), T::from_bits(77)];
    let both = positive.into_iter().chain(ends).flat_map(|v| [v, Arithmetic::neg(v)]);
    both.chain((0..12).map(|_| T::from_bits(random.bits() as _))).collect()
}}

/// Pairs of arguments, and on each machine what they give.
type Columned<T, U> = (Vec<(T, T)>, Vec<Vec<U>>);

/// Runs a kernel of columns for all pairs of special values, on this machine's device and on the emulator; the results.
fn columns_of<T: Special, U: Element>(
    launch: impl Fn(&Stream, &Buffer<T>, &Buffer<T>, &mut Buffer<U>) -> Result<()>,
) -> Result<Columned<T, U>> {
    let (x, y) = pairs(&T::special());
    let mut results = Vec::new();
    for stream in [stream()?, Device::emulator().stream()?] {
        let mut out = stream.buffer_zeroed(x.len())?;
        launch(&stream, &stream.buffer_from(&x)?, &stream.buffer_from(&y)?, &mut out)?;
        results.push(out.to_vec()?);
    }
    Ok((x.into_iter().zip(y).collect(), results))
}

/// Compares bit by bit with a reference, where that has an opinion.
fn compare_columns<T: Special, const K: usize>(
    names: &[&str],
    reference: impl Fn(T, T) -> Vec<Option<u64>>,
    launch: impl Fn(&Stream, &Buffer<T>, &Buffer<T>, &mut Buffer<[u64; K]>) -> Result<()>,
) -> Result<()> {
    let (pairs, results) = columns_of(launch)?;
    for results in &results {
        for (&(x, y), found) in pairs.iter().zip(results) {
            let expected = reference(x, y);
            assert_eq!(expected.len(), K);
            for ((name, &found), expected) in names.iter().zip(found).zip(expected) {
                assert!(
                    expected.is_none_or(|expected| found == expected),
                    "{name} of {x:?} and {y:?}: {found:#x}, not {expected:#x?}"
                );
            }
        }
    }
    // Where the reference has none as well: the machines agree.
    assert_eq!(results[0], results[1]);
    Ok(())
}

/// The columns that all numbers have, of integers: `wrap` gives the type's encoding, `width` its bits.
fn integer_reference(x: i128, y: i128, least: i128, wrap: impl Fn(i128) -> u64) -> Vec<Option<u64>> {
    let d = if y == 0 { 1 } else { y };
    let value = |v: i128| Some(wrap(v));
    let truth = |v: bool| Some(v as u64);
    let half = |v: f64, fraction_bits| Some(round_to_half(v, fraction_bits) as u64);
    let floored = x.div_euclid(d) - ((d < 0 && x.rem_euclid(d) != 0) as i128);
    // Exactly in f64: wide integers are cut to what decides the rounding, and a bit for the rest.
    let exact =
        |v: i128| if v.abs() < 1 << 50 { v as f64 } else { ((v >> 12 << 1 | (v & 4095 != 0) as i128) as f64) * 2048.0 };
    vec![
        value(x),
        value(-x),
        value(x.wrapping_mul(x)),
        value(x.abs()),
        value(x.max(0)),
        value(1 / d),
        truth(x == 0),
        value(x / d),
        value(x.max(y).min(1)),
        value(x + y),
        value(x - y),
        value(x.wrapping_mul(y)),
        value(x / d),
        value(floored),
        value(x / d),
        value(x - floored * d),
        value(x % d),
        value(x.min(y)),
        value(x.max(y)),
        truth(x == y),
        truth(x != y),
        truth(x < y),
        truth(x <= y),
        truth(x > y),
        truth(x >= y),
        truth(x != 0 && y != 0),
        truth(x != 0 || y != 0),
        truth((x != 0) != (y != 0)),
        value(x.min(y)),
        value((x - y).wrapping_mul(x - y)),
        value(y - x),
        value(x - y),
        value(y - x),
        value(x + y + x),
        truth(x != 0),
        Some(x as u8 as u64),
        Some(x as u16 as u64),
        Some(x as u32 as u64),
        Some(x as u64),
        Some(x as i8 as u64),
        Some(x as i16 as u64),
        Some(x as i32 as u64),
        Some(x as i64 as u64),
        half(exact(x), 10),
        half(exact(x), 7),
        Some((x as f32).to_bits() as u64),
        Some((x as f64).to_bits()),
        Some((x - least) as u64),
        value(x),
    ]
}

/// The columns that integers have.
fn bits_reference(x: i128, y: i128, width: u32, wrap: impl Fn(i128) -> u64) -> Vec<Option<u64>> {
    let bits = |v: i128| (v as u128) & ((1 << width) - 1);
    let shl = |by: u128| Some(wrap(if by < width as u128 { (bits(x) << by) as i128 } else { 0 }));
    let shr = |by: u128| Some(wrap(x >> by.min(100)));
    let signed_five = y >> 5;
    vec![
        Some(wrap(x & y)),
        Some(wrap(x | y)),
        Some(wrap(x ^ y)),
        Some(wrap(!x)),
        shl(bits(y)),
        shr(bits(y)),
        shr(1),
        shl(bits(signed_five)),
        Some((bits(x).leading_zeros() - (128 - width)) as u64),
        Some(bits(x).trailing_zeros().min(width) as u64),
        Some(bits(x).count_ones() as u64),
    ]
}

macro_rules! integer_columns {
    ($($name:ident: $t:ident;)*) => {$(
        #[test]
        fn $name() -> Result<()> {
            let wrap = |v: i128| v as $t as u64;
            compare_columns::<$t, _>(
                NUMBERS,
                |x, y| integer_reference(x as i128, y as i128, $t::MIN as i128, wrap),
                |stream, x, y, out| columns_of_numbers::<$t>::launch(stream, (2, 96), x, y, out),
            )?;
            compare_columns::<$t, _>(
                INTEGERS,
                |x, y| bits_reference(x as i128, y as i128, $t::BITS, wrap),
                |stream, x, y, out| columns_of_integers::<$t>::launch(stream, (2, 96), x, y, out),
            )
        }
    )*};
}
integer_columns! {
    all_functors_of_u8: u8;
    all_functors_of_u16: u16;
    all_functors_of_u32: u32;
    all_functors_of_u64: u64;
    sanitize_all_functors_of_i8: i8;
    all_functors_of_i16: i16;
    all_functors_of_i32: i32;
    all_functors_of_i64: i64;
}

/// A float type, in `f64`.
struct Format {
    /// The bits of the significand that are stored.
    fraction_bits: i32,
    /// The exponent of the smallest normal number.
    least_exponent: i32,
    /// Rounds to the type.
    round: fn(f64) -> f64,
    /// Rounds to the accumulation type.
    accumulate: fn(f64) -> f64,
    /// The bits, as the kernels encode them.
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

/// The columns that all numbers have, of floats: `f64` has more than twice the bits of the others and two, so rounding its
/// results rounds once.
fn float_reference(format: &Format, x: f64, y: f64) -> Vec<Option<u64>> {
    let r = format.round;
    let value = |v: f64| Some((format.encode)(v));
    let truth = |v: bool| Some(v as u64);
    let half = |v: f64, fraction_bits, nan| Some(if v.is_nan() { nan } else { round_to_half(v, fraction_bits) as u64 });
    let quotient = r(x / y);
    let inverse = (format.accumulate)(1.0 / y);
    let by_inverse = (format.accumulate)(x * inverse);
    // Whole quotients, where the type has no gaps between them.
    let rest = x % y;
    let whole = |v: f64| if quotient.abs() < 2f64.powi(format.fraction_bits - 1) { value(v) } else { None };
    let crosses = rest != 0.0 && (rest < 0.0) != (y < 0.0);
    let (truncated, floored) = if y == 0.0 || x.is_infinite() || quotient.is_nan() {
        let v = if y == 0.0 { quotient } else { f64::NAN };
        (value(v), value(v))
    } else {
        // Of what rounds to a whole number the remainder tells the side.
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

/// The columns that floats have to the bit. Fused multiply-add has its own test.
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

/// The elementary functions in `f64`, and the units in the last place that one may be off: what libdevice documents, and for
/// the activation functions what their arguments' rounding makes of it.
type Elementary = (&'static str, fn(f64, f64) -> f64, f64);

const ELEMENTARY: [Elementary; 30] = [
    ("Rsqrt", |x, _| 1.0 / x.sqrt(), 3.0),
    ("Cbrt", |x, _| x.cbrt(), 3.0),
    ("Exp", |x, _| x.exp(), 3.0),
    ("Exp2", |x, _| x.exp2(), 3.0),
    ("ExpM1", |x, _| x.exp_m1(), 3.0),
    ("Log", |x, _| x.ln(), 3.0),
    ("Log2", |x, _| x.log2(), 3.0),
    ("Log10", |x, _| x.log10(), 4.0),
    ("Log1p", |x, _| x.ln_1p(), 3.0),
    ("Sin", |x, _| x.sin(), 3.0),
    ("Cos", |x, _| x.cos(), 3.0),
    ("Tan", |x, _| x.tan(), 5.0),
    ("Asin", |x, _| x.asin(), 4.0),
    ("Acos", |x, _| x.acos(), 4.0),
    ("Atan", |x, _| x.atan(), 3.0),
    ("Sinh", |x, _| x.sinh(), 5.0),
    ("Cosh", |x, _| x.cosh(), 4.0),
    ("Tanh", |x, _| x.tanh(), 4.0),
    ("Asinh", |x, _| libm::asinh(x), 4.0),
    ("Acosh", |x, _| if x < 1.0 { f64::NAN } else { libm::acosh(x) }, 5.0),
    ("Atanh", |x, _| libm::atanh(x), 4.0),
    ("Erf", |x, _| libm::erf(x), 4.0),
    ("Erfc", |x, _| libm::erfc(x), 7.0),
    ("Sigmoid", |x, _| if x < 0.0 { x.exp() / (1.0 + x.exp()) } else { 1.0 / (1.0 + (-x).exp()) }, 6.0),
    (
        "Silu",
        |x, _| {
            if x == f64::NEG_INFINITY {
                -0.0
            } else if x < 0.0 {
                x * x.exp() / (1.0 + x.exp())
            } else {
                x / (1.0 + (-x).exp())
            }
        },
        8.0,
    ),
    ("Gelu", |x, _| if x == f64::NEG_INFINITY { -0.0 } else { 0.5 * x * libm::erfc(-x / 2f64.sqrt()) }, 300.0),
    ("GeluTanh", gelu_tanh, 300.0),
    ("Pow", |x, y| x.powf(y), 9.0),
    ("Hypot", |x, y| x.hypot(y), 4.0),
    ("Atan2", |x, y| x.atan2(y), 4.0),
];

fn gelu_tanh(x: f64, _: f64) -> f64 {
    // e to the power of 2u over 1 plus that; for large u the same as 1.
    let u = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x * x * x);
    if x == f64::NEG_INFINITY {
        -0.0
    } else if u > 20.0 {
        x
    } else {
        x * (2.0 * u).exp() / (1.0 + (2.0 * u).exp())
    }
}

/// Whether a value is within so many units in the last place of the exact one, which may be too large for the type.
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
            assert_eq!(REALS.len(), ELEMENTARY.len());
            for ((x, y), found) in results.iter().flat_map(|results| pairs.iter().zip(results)) {
                for (k, (name, exact, tolerance)) in ELEMENTARY.into_iter().enumerate() {
                    assert!(REALS[k].starts_with(&format!("{name}.")), "{} is not {name}", REALS[k]);
                    let (found, exact) = (found[k].convert(), exact((*x).convert(), (*y).convert()));
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
    // Rounded once from f32.
    elementary_functions_of_f16: f16, F16, |_| 1.0;
    elementary_functions_of_bf16: bf16, BF16, |_| 1.0;
    elementary_functions_of_f32: f32, F32, |units| units;
    // The reference is off as well.
    elementary_functions_of_f64: f64, F64, |units| units + 2.0;
}

/// `x * a + b` as an integer, in units of 2⁻⁵⁶: exact for halves of magnitudes between 2⁻²⁴ and 2³⁰.
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
                // Few bits make ties likely; exponents −10 to 10 and −7 to 7 around 0.
                let exponent = $exponent_of_one - 7 + (bits >> 32) % 15;
                let fraction = (bits & ((1 << $fraction_bits) - 1)) >> ((bits >> 40) % 8) << ((bits >> 40) % 8);
                $t::from_bits((exponent << $fraction_bits | fraction | (bits >> 63 << 15)) as u16)
            };
            let (mut inexact, mut twice) = (0, 0);
            for _ in 0..100_000 {
                let (x, a, b) = (half(), half(), half());
                // Beside the product's size, and far below it, where it decides ties.
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

#[test]
fn sanitize_functors_of_complex_numbers() -> Result<()> {
    let parts = [0.0f32, -0.0, 1.0, -2.5, 1e30, 3e-20, f32::MAX, f32::INFINITY, f32::NAN];
    let special: Vec<Complex<f32>> =
        parts.into_iter().flat_map(|re| parts.into_iter().map(move |im| Complex::new(re, im))).collect();
    let (x, y) = pairs(&special);
    let mut results = Vec::new();
    for stream in [stream()?, Device::emulator().stream()?] {
        let mut out = stream.buffer_zeroed(x.len())?;
        columns_of_complexes::<Complex<f32>>::launch(
            &stream,
            (7, 96),
            &stream.buffer_from(&x)?,
            &stream.buffer_from(&y)?,
            &mut out,
        )?;
        results.push(out.to_vec()?);
    }
    assert_eq!(results[0], results[1]);
    let encode = |re: f32, im: f32| Complex::new(re, im).encode();
    let close = |found: u64, re: f64, im: f64| {
        let part = |bits: u64| f32::from_bits(bits as u32) as f64;
        let size = re.hypot(im);
        (part(found >> 32) - re).hypot(part(found) - im) <= 4e-7 * size
    };
    for ((x, y), found) in x.iter().zip(&y).zip(&results[0]) {
        let [neg, square, sum, difference, product, quotient, inverse, equal] = *found;
        assert_eq!(neg, encode(-x.re, -x.im));
        assert_eq!(square, encode(x.re * x.re - x.im * x.im, x.re * x.im + x.im * x.re), "{x}²");
        assert_eq!(sum, encode(x.re + y.re, x.im + y.im));
        assert_eq!(difference, encode(x.re - y.re, x.im - y.im));
        assert_eq!(product, encode(x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re), "{x} · {y}");
        assert_eq!(equal, (x.re == y.re && x.im == y.im) as u64);
        // In f64 there is no overflow; results that f32 cannot hold well are left out.
        let wide = |v: &Complex<f32>| Complex::new(v.re as f64, v.im as f64);
        for (found, a, b) in [(quotient, wide(x), wide(y)), (inverse, Complex::new(1.0, 0.0), wide(x))] {
            let size = b.re * b.re + b.im * b.im;
            let (re, im) = ((a.re * b.re + a.im * b.im) / size, (a.im * b.re - a.re * b.im) / size);
            let holds = |v: f64| v == 0.0 || (1e-30..1e37).contains(&v.abs());
            if holds(re) && holds(im) && holds(size.sqrt()) && holds(a.re.hypot(a.im)) {
                assert!(close(found, re, im), "{a} / {b}: {found:#x}, not {re} + {im}i");
            }
        }
    }
    Ok(())
}

#[test]
fn sanitize_functors_of_three_and_of_any_number_of_arguments() -> Result<()> {
    let stream = stream()?;
    for case in cases(9).filter(|case| case.len < 5000) {
        let condition = values::<bool>(case.len, 1);
        let (x, y) = (values::<f64>(case.len, 2), values::<f64>(case.len, 3));
        let mut out = stream.buffer_zeroed(case.len)?;
        map_ternary::<bool, f64, f64, f64, Select, 2>::launch(
            &stream,
            case.dims(2, 3),
            &stream.buffer_from(&condition)?,
            &stream.buffer_from(&x)?,
            &stream.buffer_from(&y)?,
            &mut out,
            Select,
        )?;
        let expected: Vec<f64> = (0..case.len).map(|i| if condition[i] { x[i] } else { y[i] }).collect();
        assert_eq!(out.to_vec()?, expected, "{case:?}");

        let all = values::<u16>(4 * case.len, 4);
        let mut out = stream.buffer_zeroed(case.len)?;
        let input = stream.buffer_from(&all)?;
        map_any::<u16, u16, Fold<Max>, 4, 8>::launch(&stream, case.dims(8, 3), &input, &mut out, Fold(Max))?;
        let expected: Vec<u16> = (0..case.len).map(|i| (0..4).map(|k| all[k * case.len + i]).max().unwrap()).collect();
        assert_eq!(out.to_vec()?, expected, "{case:?}");
    }
    Ok(())
}

#[test]
fn elementwise_activations_and_multiply_adds_of_the_library() -> Result<()> {
    let stream = stream()?;
    for case in cases(10).filter(|case| case.len < 5000) {
        let x: Vec<f16> = values(case.len, 1);
        let (a, b): (Vec<f16>, Vec<f16>) = (values(case.len, 2), values(case.len, 3));
        let input = stream.buffer_from(&x)?;
        let mut out = stream.buffer_zeroed(case.len)?;
        map_unary::<f16, f16, Relu, 8>::launch(&stream, case.dims(8, 3), &input, &mut out, Relu)?;
        let expected: Vec<f16> = x.iter().map(|&x| if x < f16::ZERO { f16::ZERO } else { x }).collect();
        assert_eq!(out.to_vec()?, expected, "{case:?}");
        map_ternary::<f16, f16, f16, f16, MulAdd, 8>::launch(
            &stream,
            case.dims(8, 3),
            &input,
            &stream.buffer_from(&a)?,
            &stream.buffer_from(&b)?,
            &mut out,
            MulAdd,
        )?;
        // Integers up to 100: exact in f64, so rounded once.
        let exact = (0..case.len).map(|i| x[i].to_f64() * a[i].to_f64() + b[i].to_f64());
        let expected: Vec<u16> = exact.map(|v| round_to_half(v, 10)).collect();
        let zero = |bits: u16| if bits == 0x8000 { 0 } else { bits };
        let found: Vec<u16> = out.to_vec()?.iter().map(|v| zero(v.to_bits())).collect();
        assert_eq!(found, expected.into_iter().map(zero).collect::<Vec<_>>(), "{case:?}");
    }
    Ok(())
}

#[test]
fn identities_of_the_other_reducers() {
    fn check<T: PartialEq + Copy + std::fmt::Debug>(op: impl Reducer<T>, values: &[T]) {
        for &v in values {
            assert_eq!((op.apply(op.identity(), v), op.apply(v, op.identity())), (v, v));
        }
    }
    check(LogicalAnd, &[false, true]);
    check(LogicalOr, &[false, true]);
    check(LogicalXor, &[false, true]);
    check(Min, &[false, true]);
    check(Max, &[false, true]);
    check(BitAnd, &[0u8, 1, 255]);
    check(BitOr, &[i64::MIN, -1, 7]);
    check(BitXor, &[u32::MAX, 1]);
    check(BitAnd, &[false, true]);
    check(Add, &[Complex::new(1.0f32, -2.0)]);
    check(Mul, &[Complex::new(1.0f64, -2.0)]);
}

/// Two at a time, where the hardware can: eight a thread, and an odd number.
#[test]
fn sanitize_halves_in_pairs_compute_as_one_by_one() {
    macro_rules! launch {
        ($kernel:ident::<$t:ident, $f:ident, $n:literal>($stream:expr, $(&$input:ident),*, $offset:ident, $len:ident, $found:ident)) => {{
            let mut out = $stream.buffer_zeroed::<$t>($len)?;
            $kernel::<$t, $t, $f, $n>::launch($stream, (1, 33), $($input.slice($offset..)?),*, &mut out, $f)?;
            $found.push(out.to_vec()?);
        }};
    }
    macro_rules! check {
        ($($t:ident, $fraction_bits:literal;)*) => {$({
            // The values of all functors of each two halves, rounded once.
            fn expected(a: $t, b: $t) -> [f64; 8] {
                let (x, y) = (a.to_f64(), b.to_f64());
                let extreme = |less: bool| if x.is_nan() || y.is_nan() { f64::NAN } else if less { x } else { y };
                let relu = if x.is_nan() || x > 0.0 { x } else { 0.0 };
                [
                    x + y, x - y, x * y, extreme(x.total_cmp(&y).is_le()), extreme(x.total_cmp(&y).is_ge()), relu, -x,
                    x * x,
                ]
            }
            let inputs = collection::vec((any::<u16>(), any::<u16>()), 0..300);
            holds(24, (inputs, 0..4usize), |(bits, offset)| {
                let stream = stream()?;
                let (mut x, mut y): (Vec<_>, Vec<_>) =
                    bits.into_iter().map(|(a, b)| ($t::from_bits(a), $t::from_bits(b))).unzip();
                for (a, b) in [(0.0, -0.0), (-0.0, 0.0), (f64::NAN, 1.0), (-1.0, f64::NAN), (f64::INFINITY, 2.0)] {
                    x.push($t::from_f64(a));
                    y.push($t::from_f64(b));
                }
                let (a, b) = (stream.buffer_from(&x)?, stream.buffer_from(&y)?);
                let len = x.len() - offset;
                let mut found = Vec::new();
                launch!(map_binary::<$t, Add, 8>(&stream, &a, &b, offset, len, found));
                launch!(map_binary::<$t, Sub, 8>(&stream, &a, &b, offset, len, found));
                launch!(map_binary::<$t, Mul, 8>(&stream, &a, &b, offset, len, found));
                launch!(map_binary::<$t, Min, 8>(&stream, &a, &b, offset, len, found));
                launch!(map_binary::<$t, Max, 8>(&stream, &a, &b, offset, len, found));
                launch!(map_unary::<$t, Relu, 8>(&stream, &a, offset, len, found));
                launch!(map_unary::<$t, Neg, 8>(&stream, &a, offset, len, found));
                launch!(map_unary::<$t, Square, 7>(&stream, &a, offset, len, found));
                for (i, (&a, &b)) in x.iter().zip(&y).skip(offset).enumerate() {
                    for (k, value) in expected(a, b).into_iter().enumerate() {
                        let found = found[k][i];
                        let right = if value.is_nan() { found.is_nan() } else { found.to_bits() == round_to_half(value, $fraction_bits) };
                        assert!(right, "functor {k} of {a:?} and {b:?}: {found:?}, not {value:e}");
                    }
                }
                Ok(())
            });
        })*};
    }
    check! {
        f16, 10;
        bf16, 7;
    }
}

#[test]
fn of_equal_values_the_smaller_index_comes_first_and_none_before_itself() {
    let order = ByIndex(Greater);
    for (a, i, b, j, before) in [
        (2, 3, 2, 7, true),
        (2, 7, 2, 3, false),
        (2, 3, 2, 3, false),
        (3, 7, 2, 3, true),
        (2, 3, 3, 7, false),
        (3, 5, 2, 5, true),
    ] {
        assert_eq!(order.before((a, i), (b, j)), before, "({a}, {i}) and ({b}, {j})");
    }
}
