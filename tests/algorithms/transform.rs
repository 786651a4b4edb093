//! Functions of each item, against iterators.

use kernel_primitives::algorithms::{fill, transform};
use kernel_primitives::functor::{Identity, Mul, Square, of_pair};
use kernel_primitives::input::zip;
use kernel_primitives::{Error, Result};

use crate::LENGTHS;
use crate::support::{stream, values};

#[test]
fn every_item_is_transformed_at_any_offset_sanitize() -> Result<()> {
    let stream = stream()?;
    for (k, len) in LENGTHS.into_iter().enumerate() {
        let x = values::<u8>(len + 7, k as u64);
        let buffer = stream.buffer_from(&x)?;
        let (from, to) = (k % 5, k % 3);
        let mut out = stream.buffer_from(&vec![77u8; len + 5])?;
        transform(&stream, buffer.slice(from..from + len)?, Square, &mut out.slice_mut(to..)?)?;
        let mut expected = vec![77u8; len + 5];
        for (out, x) in expected[to..].iter_mut().zip(&x[from..from + len]) {
            *out = x.wrapping_mul(*x);
        }
        assert_eq!(out.to_vec()?, expected);
    }
    Ok(())
}

#[test]
fn several_inputs_are_zipped() -> Result<()> {
    let stream = stream()?;
    let (x, y) = (values::<f32>(10_001, 1), values::<f32>(10_001, 2));
    let mut out = stream.buffer_zeroed::<f32>(10_001)?;
    let (a, b) = (stream.buffer_from(&x)?, stream.buffer_from(&y)?);
    transform(&stream, zip(&a, &b), of_pair(Mul), &mut out)?;
    let bits = |x: Vec<f32>| x.into_iter().map(f32::to_bits).collect::<Vec<_>>();
    let expected = x.iter().zip(&y).map(|(x, y)| x * y).collect();
    assert_eq!(bits(out.to_vec()?), bits(expected));
    Ok(())
}

#[test]
fn a_buffer_is_filled_and_copied() -> Result<()> {
    let stream = stream()?;
    for len in LENGTHS {
        let mut x = stream.buffer_uninit::<f32>(len)?;
        fill(&stream, 1.5, &mut x)?;
        let mut out = stream.buffer_zeroed::<f32>(len)?;
        transform(&stream, &x, Identity, &mut out)?;
        assert_eq!(out.to_vec()?, vec![1.5; len]);
    }
    Ok(())
}

#[test]
fn an_output_that_is_too_short_is_an_error() -> Result<()> {
    let stream = stream()?;
    let error = transform(&stream, &stream.buffer_zeroed::<u8>(9)?, Square, &mut stream.buffer_zeroed(8)?).unwrap_err();
    assert!(matches!(error, Error::LengthMismatch { first_len: 9, second_len: 8, .. }), "{error}");
    Ok(())
}
