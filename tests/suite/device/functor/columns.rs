//! Tests many functors in one launch, with a column for each, on important values. Also tests the functors of integers.

use kernel_primitives::{Arithmetic, Buffer, Device, Element, Float, Result, Stream, bf16, f16};

use super::pairs;
use crate::kernels::columns::*;
use crate::support::{Random, round_to_half, stream};

/// Important values, and some arbitrary ones.
pub(super) trait Special: Columns + std::fmt::Debug {
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

/// Pairs of arguments, and their results on each machine.
pub(super) type Columned<T, U> = (Vec<(T, T)>, Vec<Vec<U>>);

/// Runs a kernel of columns for all pairs of special values on this machine's device and on the emulator, and returns
/// the results.
pub(super) fn columns_of<T: Special, U: Element>(
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

/// Compares bit by bit with the reference, if it has a value.
pub(super) fn compare_columns<T: Special, const K: usize>(
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
    // The machines agree, even if the reference has no value.
    assert_eq!(results[0], results[1]);
    Ok(())
}

/// Returns the columns of all numbers for integers. `wrap` gives the type's encoding, and `least` is its least value.
fn integer_reference(x: i128, y: i128, least: i128, wrap: impl Fn(i128) -> u64) -> Vec<Option<u64>> {
    let d = if y == 0 { 1 } else { y };
    let value = |v: i128| Some(wrap(v));
    let truth = |v: bool| Some(v as u64);
    let half = |v: f64, fraction_bits| Some(round_to_half(v, fraction_bits) as u64);
    let floored = x.div_euclid(d) - ((d < 0 && x.rem_euclid(d) != 0) as i128);
    // This is exact in f64 for rounding: wide integers keep the bits that decide the rounding, and one bit for the
    // rest.
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

/// Returns the columns of integers. `width` is the number of the type's bits.
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
