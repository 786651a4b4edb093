//! Functors: the library's on every type, bit by bit, and authors' own in the library's kernels.

use kernel_primitives::functor::{Add, BinaryFn, Max, Min, Mul, Reducer};
use kernel_primitives::kernels::{elementwise_binary, elementwise_unary};
use kernel_primitives::{Buffer, Result, Stream, bf16, f16};

use crate::kernels::functor::{Affine, Less, Sub};
use crate::support::{Arbitrary, Random, cases, stream, values};

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
                elementwise_binary::<$t, $t, $op, $width>::launch(&stream, (2, 128), &input.0, &input.1, &mut out, $op)?;
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
                elementwise_binary::<$t, $t, $op, $width>::launch(&stream, (2, 65), &input.0, &input.1, &mut out, $op)?;
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
    // A sum with the identity may not turn −0 to +0 unless the identity is +0, which it is.
    assert_eq!(Add.apply(-0.0f32, Reducer::<f32>::identity(&Add)).to_bits(), 0);
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
        elementwise_unary::<f32, f32, Affine, 4>::launch(
            &stream,
            case.dims(4, 3),
            input.slice(case.offset..)?,
            &mut out,
            f,
        )?;
        assert_eq!(out.to_vec()?, expected, "{case:?}");
        let mut out = stream.buffer_zeroed(case.len)?;
        elementwise_unary::<f32, f32, Affine, 1>::launch(
            &stream,
            case.dims(1, 9),
            input.slice(case.offset..)?,
            &mut out,
            f,
        )?;
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
        |stream, dims, x, y, out| elementwise_binary::<f32, bool, Less, 4>::launch(stream, dims, x, y, out, Less),
        4,
    )?;
    compares::<i64>(
        5,
        |stream, dims, x, y, out| elementwise_binary::<i64, bool, Less, 3>::launch(stream, dims, x, y, out, Less),
        3,
    )
}
