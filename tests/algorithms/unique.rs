//! Tests the first item of each run of equal items against a loop.

use kernel_primitives::algorithms::{unique, unique_by_key};
use kernel_primitives::input::counting;
use kernel_primitives::{Error, Result, bf16, f16};

use crate::LENGTHS;
use crate::runs::{Runs, lengths, repeated};
use crate::support::{stream, streams, values};

#[test]
fn the_first_of_each_run_of_any_length_at_any_offset() -> Result<()> {
    let stream = stream()?;
    for (k, len) in LENGTHS.into_iter().enumerate() {
        for runs in Runs::ALL {
            let x: Vec<i32> = repeated(&lengths(runs, len, k as u64), |run| run as i32 * 3 - 50);
            let mut kept = x.clone();
            kept.dedup();
            let (from, to) = (k % 5, k % 3);
            let mut padded = vec![x.first().copied().unwrap_or(0); from];
            padded.extend(&x);
            padded.extend([1; 3]);
            let buffer = stream.buffer_from(&padded)?;
            let (mut out, mut count) = (stream.buffer_from(&vec![77; len + 5])?, stream.buffer_zeroed::<u64>(1)?);
            let (x, mut part) = (buffer.slice(from..from + len)?, out.slice_mut(to..)?);
            unique(&stream, x, &mut part, &mut count)?;
            assert_eq!(count.to_vec()?, [kept.len() as u64], "{len} {runs:?}");
            let found = out.to_vec()?;
            assert_eq!((&found[..to], &found[to..to + kept.len()]), (&[77; 2][..to], &kept[..]), "{len} {runs:?}");
            assert!(found[to + kept.len()..].iter().all(|&x| x == 77), "{len} {runs:?}");
        }
    }
    Ok(())
}

/// This also runs on the other emulators. The blocks of one start in random order.
#[test]
fn each_first_key_has_its_value_sanitize() -> Result<()> {
    for stream in streams()? {
        for runs in Runs::ALL {
            let keys: Vec<u32> = repeated(&lengths(runs, 20_011, 9), |run| run as u32 % 7);
            let values = values::<f32>(20_011, 10);
            let firsts: Vec<usize> = (0..keys.len()).filter(|&i| i == 0 || keys[i] != keys[i - 1]).collect();
            let len = firsts.len();
            let (mut out_keys, mut out_values) = (stream.buffer_zeroed::<u32>(len)?, stream.buffer_zeroed::<f32>(len)?);
            let mut count = stream.buffer_zeroed::<u64>(1)?;
            let (k, v) = (stream.buffer_from(&keys)?, stream.buffer_from(&values)?);
            unique_by_key(&stream, &k, &v, &mut out_keys, &mut out_values, &mut count)?;
            assert_eq!(count.to_vec()?, [len as u64], "{runs:?}");
            assert_eq!(out_keys.to_vec()?, firsts.iter().map(|&i| keys[i]).collect::<Vec<_>>(), "{runs:?}");
            assert_eq!(out_values.to_vec()?, firsts.iter().map(|&i| values[i]).collect::<Vec<_>>(), "{runs:?}");
        }
    }
    Ok(())
}

#[test]
fn zeros_are_equal_and_nan_equals_nothing_sanitize() -> Result<()> {
    let stream = stream()?;
    let x = [0.0f32, -0.0, 0.0, f32::NAN, f32::NAN, 1.0, 1.0, -0.0, f32::NAN];
    let (mut out, mut count) = (stream.buffer_zeroed::<f32>(9)?, stream.buffer_zeroed::<u64>(1)?);
    unique(&stream, &stream.buffer_from(&x)?, &mut out, &mut count)?;
    let expected = [0.0, f32::NAN, f32::NAN, 1.0, -0.0, f32::NAN].map(f32::to_bits);
    assert_eq!(count.to_vec()?, [6]);
    assert_eq!(out.to_vec()?[..6].iter().map(|x| x.to_bits()).collect::<Vec<_>>(), expected);
    Ok(())
}

/// Every half comes twice. After it come, by turns, a zero, the other zero, infinity, or NaN.
#[test]
fn halves_of_any_bits_are_compared_as_their_type_does() -> Result<()> {
    let stream = stream()?;
    let all = || (0..=u16::MAX).flat_map(|bits| [bits, bits, [0, 0x8000, 0x7c00, 0x7fc1][bits as usize % 4]]);
    macro_rules! check {
        ($($half:ident)*) => {$(
            let x: Vec<$half> = all().map($half::from_bits).collect();
            let mut expected = x.clone();
            expected.dedup();
            let mut out = stream.buffer_zeroed::<$half>(x.len())?;
            let mut count = stream.buffer_zeroed::<u64>(1)?;
            unique(&stream, &stream.buffer_from(&x)?, &mut out, &mut count)?;
            assert_eq!(count.to_vec()?, [expected.len() as u64]);
            let bits = |x: &[$half]| x.iter().map(|x| x.to_bits()).collect::<Vec<u16>>();
            assert!(bits(&out.to_vec()?[..expected.len()]) == bits(&expected), stringify!($half));
        )*};
    }
    check!(f16 bf16);
    Ok(())
}

#[test]
fn items_of_other_sizes_and_computed_ones_are_unique() -> Result<()> {
    let stream = stream()?;
    let runs = lengths(Runs::Random, 30_001, 3);
    let x: Vec<u8> = repeated(&runs, |run| (run % 200) as u8);
    let mut kept = x.clone();
    kept.dedup();
    let (mut out, mut count) = (stream.buffer_zeroed::<u8>(30_001)?, stream.buffer_zeroed::<u64>(1)?);
    unique(&stream, &stream.buffer_from(&x)?, &mut out, &mut count)?;
    assert_eq!((&out.to_vec()?[..kept.len()], count.to_vec()?), (&kept[..], vec![kept.len() as u64]));

    let x: Vec<u64> = repeated(&runs, |run| (run as u64) << 40);
    let mut kept = x.clone();
    kept.dedup();
    let mut out = stream.buffer_zeroed::<u64>(30_001)?;
    unique(&stream, &stream.buffer_from(&x)?, &mut out, &mut count)?;
    assert_eq!(out.to_vec()?[..kept.len()], kept);

    // These are the places where runs begin.
    let (keys, mut begins) = (stream.buffer_from(&x)?, stream.buffer_zeroed::<u64>(30_001)?);
    unique_by_key(&stream, &keys, counting(0u64, 30_001), &mut out, &mut begins, &mut count)?;
    let expected: Vec<u64> = (0..x.len()).filter(|&i| i == 0 || x[i] != x[i - 1]).map(|i| i as u64).collect();
    assert_eq!(begins.to_vec()?[..expected.len()], expected);
    Ok(())
}

#[test]
fn keys_without_values_are_an_error() -> Result<()> {
    let stream = stream()?;
    let (keys, values) = (stream.buffer_zeroed::<u32>(10)?, stream.buffer_zeroed::<f32>(9)?);
    let (mut k, mut v, mut count) =
        (stream.buffer_zeroed::<u32>(10)?, stream.buffer_zeroed::<f32>(10)?, stream.buffer_zeroed::<u64>(1)?);
    let error = unique_by_key(&stream, &keys, &values, &mut k, &mut v, &mut count).unwrap_err();
    assert!(matches!(error, Error::LengthMismatch { first_len: 10, second_len: 9, .. }), "{error}");
    Ok(())
}
