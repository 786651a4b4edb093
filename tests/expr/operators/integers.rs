//! Tests operators of integers and of `bool`.

use kernel_primitives::Result;
use kernel_primitives::expr::*;

use super::{check_pairs, check1, check2, compares, pairs};
use crate::{Sample, stream};

/// A count that does not fit in the type of the shifted value is more than the number of bits. So is a negative count.
#[test]
fn shifts_by_counts_of_other_types() -> Result<()> {
    macro_rules! check {
        ($($t:ident by $($by:ident)*;)*) => {$($(
            let counts = [0i128, 1, 3, 7, 8, 15, 16, 31, 32, 63, 64, 127, 128, 200, 255, 256, 257, 1 << 16, 1 << 32, -1, -8, -256, -1 << 32];
            let counts: Vec<$by> = counts.into_iter().filter_map(|count| count.try_into().ok()).collect();
            for x in $t::samples() {
                let by = |count: $by| u32::try_from(count).unwrap_or(u32::MAX).min(200);
                let pairs = || (vec![x; counts.len()], counts.clone());
                check_pairs("<<", pairs(), |a, b| a << b, 0, |a: $t, b| (0..by(b)).fold(a, |a, _| a.wrapping_add(a)))?;
                check_pairs(">>", pairs(), |a, b| a >> b, 0, |a: $t, b| (0..by(b)).fold(a, |a, _| a >> 1))?;
            }
        )*)*};
    }
    check! {
        u8 by u16 u32 u64 i8 i16 i32 i64;
        i8 by u8 i16 u32 u64 i64;
        u16 by u8 u32 i32 i64;
        i32 by i8 u64 i64;
        u64 by i8 u32 i64;
    }
    // All elements have one count.
    let stream = stream()?;
    let x = Tensor::from_slice(&stream, 3, &[1u8, 2, 255])?;
    let z = Tensor::uninit(&stream, 3)?;
    z.assign(&x << scalar(256i32))?;
    assert_eq!(z.to_vec()?, [0; 3]);
    Ok(())
}

macro_rules! integers {
    ($($name:ident $t:ident;)*) => {$(
        #[test]
        fn $name() -> Result<()> {
            type T = $t;
            /// Returns pairs whose second value is not 0.
            fn divisors() -> (Vec<T>, Vec<T>) {
                let (a, b) = pairs::<T>();
                a.into_iter().zip(b).filter(|pair| pair.1 != 0).unzip()
            }
            let wide = |x: T| x as i128;
            check2("+", |a, b| a + b, 0, T::wrapping_add)?;
            check2("-", |a, b| a - b, 0, T::wrapping_sub)?;
            check2("*", |a, b| a * b, 0, T::wrapping_mul)?;
            check_pairs("/", divisors(), |a, b| a / b, 0, T::wrapping_div)?;
            check_pairs("%", divisors(), |a, b| a % b, 0, T::wrapping_rem)?;
            let floor = move |a: T, b: T| {
                let (a, b): (i128, i128) = (wide(a), wide(b));
                (a.rem_euclid(b) + if a.rem_euclid(b) != 0 && b < 0 { b } else { 0 }, a, b)
            };
            check_pairs("floor_rem", divisors(), floor_rem, 0, move |a, b| floor(a, b).0 as T)?;
            check_pairs("floor_div", divisors(), floor_div, 0, move |a, b| {
                let (rest, a, b) = floor(a, b);
                ((a - rest) / b) as T
            })?;
            check2("min", minimum, 0, T::min)?;
            check2("max", maximum, 0, T::max)?;
            check2("&", |a, b| a & b, 0, |a: T, b: T| a & b)?;
            check2("|", |a, b| a | b, 0, |a: T, b: T| a | b)?;
            check2("^", |a, b| a ^ b, 0, |a: T, b: T| a ^ b)?;
            // A shift by the number of bits or more is the same as that many shifts by one. A negative number counts as a large number.
            let by = |b: T| -> u32 { u32::try_from(b).unwrap_or(u32::MAX).min(200) };
            check2("<<", |a, b| a << b, 0, move |a: T, b: T| (0..by(b)).fold(a, |a, _| a.wrapping_add(a)))?;
            check2(">>", |a, b| a >> b, 0, move |a: T, b: T| (0..by(b)).fold(a, |a, _| a >> 1))?;
            check1("neg", |a| -a, 0, T::wrapping_neg)?;
            check1("!", |a| !a, 0, |a: T| !a)?;
            check1("abs", abs, 0, |a: T| if wide(a) < 0 { a.wrapping_neg() } else { a })?;
            check1("square", square, 0, |a: T| a.wrapping_mul(a))?;
            check1("relu", relu, 0, |a: T| a.max(0))?;
            check1("clamp", |a| clamp(a, 3, 100), 0, |a: T| a.clamp(3, 100))?;
            compares::<T>()?;
            // Numbers may be on either side.
            check1("7 - x", |a| 7 - a, 0, |a: T| (7 as T).wrapping_sub(a))?;
            check1("x + 7", |a| a + 7, 0, |a: T| a.wrapping_add(7))?;
            check1("x >> 2", |a| a >> scalar(2u8), 0, |a: T| a >> 2)?;
            check1("6 & x", |a| 6 & a, 0, |a: T| a & 6)?;
            check1("constant", |a| a * constant(3 as T), 0, |a: T| a.wrapping_mul(3))
        }
    )*};
}
integers! {
    operators_i8 i8; operators_i16 i16; operators_i32 i32; operators_i64 i64;
    operators_u8 u8; operators_u16 u16; operators_u32 u32; operators_u64 u64;
}

fn bits<T: Sample>(x: T) -> T {
    x
}

#[test]
fn operators_bool() -> Result<()> {
    check2("&", |a, b| a & b, 0, |a: bool, b| a & b)?;
    check2("|", |a, b| a | b, 0, |a: bool, b| a | b)?;
    check2("^", |a, b| a ^ b, 0, |a: bool, b| a ^ b)?;
    check2("min", minimum, 0, |a: bool, b| a & b)?;
    check2("max", maximum, 0, |a: bool, b| a | b)?;
    check1("!", |a| !a, 0, |a: bool| !a)?;
    check1("true & x", |a| true & a, 0, bits::<bool>)?;
    compares::<bool>()
}
