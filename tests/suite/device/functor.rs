//! Tests the library's functors on every type, bit by bit, and users' functors in the library's kernels.

use kernel_primitives::block::Each;
use kernel_primitives::functor::{
    Add, BinaryFn, BitAnd, BitOr, BitXor, ByIndex, Comparator, Div, DivideBy, Fold, Greater, LessThan, LogicalAnd,
    LogicalOr, LogicalXor, Max, Min, Mul, MulAdd, Neg, Reciprocal, Reducer, Relu, Select, Square, Sub,
};
use kernel_primitives::io::BroadcastConfig;
use kernel_primitives::kernels::{broadcast_binary, map_any, map_binary, map_ternary, map_unary, reduce_higher_dim};
use kernel_primitives::{Arithmetic, Buffer, Complex, Device, Result, Stream, UnaryFn, bf16, f16};
use proptest::collection;
use proptest::prelude::any;

use crate::kernels::columns::*;
use crate::kernels::functor::{Affine, Quotients};
use crate::support::{Arbitrary, Random, cases, holds, round_to_half, stream, values};

mod columns;
mod floats;

/// Returns all pairs of values.
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

// If one value is NaN, the result is NaN. −0 is less than +0.
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
use extreme;

float_functors! {
    functors_of_f32_bit_by_bit: f32, 4, 1.0,
        Add: |a, b| a + b, Mul: |a, b| a * b,
        Min: |a, b| extreme!(a, b, a.total_cmp(&b).is_lt()), Max: |a, b| extreme!(a, b, a.total_cmp(&b).is_gt());
    functors_of_f64_bit_by_bit: f64, 2, 1.0,
        Add: |a, b| a + b, Mul: |a, b| a * b,
        Min: |a, b| extreme!(a, b, a.total_cmp(&b).is_lt()), Max: |a, b| extreme!(a, b, a.total_cmp(&b).is_gt());
}

/// As the docs say.
#[test]
fn a_division_by_a_constant_needs_a_finite_inverse() {
    // This is 2⁻¹²⁸, whose inverse overflows.
    let least = f32::MIN_POSITIVE / 4.0;
    assert!(DivideBy::new(least).apply(0.0).is_nan());
    assert_eq!(DivideBy::new(least).apply(least), f32::INFINITY);
    assert_eq!(DivideBy::new(-least.next_up()).apply(least.next_up()), -1.0);
    // The inverse is subnormal and exact.
    assert_eq!(DivideBy::new(2f32.powi(127)).apply(2f32.powi(127)), 1.0);
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
    // A sum with the identity keeps −0. A sum of nothing is +0.
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

/// The divisor may be any number of the accumulation type, even one that is not a half.
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
        // There is no overflow in f64. Results that f32 cannot represent well are left out.
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
        // These are integers up to 100, which are exact in f64. Thus the result is rounded once.
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

/// The hardware computes two halves at a time if it can. The tests have eight items for each thread, and an odd number.
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
            // Returns the values of all functors for two halves in `f64`. The test rounds them once.
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

/// A division by what fills the last tile would be a fault.
#[test]
fn functors_get_only_items_of_the_input_sanitize() -> Result<()> {
    let stream = stream()?;
    for len in [1, 3, 127, 257, 1000] {
        let x: Vec<i32> = (0..len).map(|i| 1000 - i).collect();
        let y: Vec<i32> = (0..len).map(|i| 1 + i % 7).collect();
        let (a, b) = (stream.buffer_from(&x)?, stream.buffer_from(&y)?);
        let mut out = stream.buffer_zeroed::<i32>(x.len())?;
        let assert = |out: &Buffer<i32>, expected: &dyn Fn(usize) -> i32, what: &str| -> Result<()> {
            assert!(out.to_vec()?.into_iter().eq((0..x.len()).map(expected)), "{what} of {len}");
            Ok(())
        };
        map_unary::<i32, i32, Reciprocal, 4>::launch(&stream, (2, 65), &b, &mut out, Reciprocal)?;
        assert(&out, &|i| 1 / y[i], "map_unary")?;
        map_binary::<i32, i32, Div, 4>::launch(&stream, (2, 65), &a, &b, &mut out, Div)?;
        assert(&out, &|i| x[i] / y[i], "map_binary")?;
        let whole = BroadcastConfig::new(&[x.len()], &[x.len()]).expect("a shape");
        broadcast_binary::<i32, i32, Div, u32, 4>::launch(&stream, (2, 65), &a, whole, &b, whole, &mut out, Div)?;
        assert(&out, &|i| x[i] / y[i], "broadcast_binary")?;
        map_ternary::<i32, i32, i32, i32, Quotients, 4>::launch(&stream, (2, 65), &b, &b, &a, &mut out, Quotients)?;
        assert(&out, &|i| 5040 / y[i] / y[i] / x[i], "map_ternary")?;
        let both = stream.buffer_from(&[&y[..], &x[..]].concat())?;
        map_any::<i32, i32, Quotients, 2, 4>::launch(&stream, (2, 65), &both, &mut out, Quotients)?;
        assert(&out, &|i| 5040 / y[i] / x[i], "map_any")?;
    }
    // Three rows of five columns. The last thread of a row has places for more.
    let (x, mut out) = (stream.buffer_from(&(1..=15).collect::<Vec<i32>>())?, stream.buffer_zeroed::<i32>(5)?);
    reduce_higher_dim::<i32, Quotients, 4>::launch(&stream, (1, (2, 2)), 1, 3, 5, &x, &mut out, Quotients)?;
    assert!(out.to_vec()?.into_iter().eq((1..6).map(|c| 5040 / c + 5040 / (5 + c) + 5040 / (10 + c))));
    Ok(())
}
