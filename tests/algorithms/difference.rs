//! Tests functions of neighbours against a loop.

use kernel_primitives::algorithms::adjacent_difference;
use kernel_primitives::functor::{Mul, Sub};
use kernel_primitives::{Error, Result};

use crate::LENGTHS;
use crate::support::{stream, values};

macro_rules! differences {
    ($($name:ident: $t:ty, $f:expr, |$x:ident, $before:ident| $value:expr;)*) => {$(
        #[test]
        fn $name() -> Result<()> {
            let stream = stream()?;
            for (k, len) in LENGTHS.into_iter().enumerate() {
                let offset = k % 5;
                let x: Vec<$t> = values::<u32>(len + 5, k as u64).iter().map(|&x| x as $t).collect();
                let buffer = stream.buffer_from(&x)?;
                let mut out = stream.buffer_zeroed::<$t>(len + 1)?;
                adjacent_difference(&stream, buffer.slice(offset..offset + len)?, $f, &mut out)?;
                let x = &x[offset..offset + len];
                let first = x.first().copied();
                let others = x.windows(2).map(|pair| { let ($x, $before) = (pair[1], pair[0]); $value });
                let expected: Vec<$t> = first.into_iter().chain(others).chain([0 as $t]).collect();
                assert!(out.to_vec()? == expected, "{len}");
            }
            Ok(())
        }
    )*};
}
differences! {
    of_f32_sanitize: f32, Sub, |x, before| x - before;
    of_f64: f64, Sub, |x, before| x - before;
    of_i32: i32, Sub, |x, before| x.wrapping_sub(before);
    of_u32: u32, Sub, |x, before| x.wrapping_sub(before);
    of_bytes_by_another_function: u8, Mul, |x, before| x.wrapping_mul(before);
}

#[test]
fn no_place_for_an_item_is_an_error() -> Result<()> {
    let stream = stream()?;
    let x = stream.buffer_zeroed::<f32>(9)?;
    let error = adjacent_difference(&stream, &x, Sub, &mut stream.buffer_zeroed(8)?).unwrap_err();
    assert!(matches!(error, Error::LengthMismatch { first_len: 9, second_len: 8, .. }), "{error}");
    Ok(())
}
