//! Tests histograms against loops over the items.

use kernel_primitives::algorithms::{histogram_even, histogram_ranges};
use kernel_primitives::input::strided;
use kernel_primitives::{Error, Result, bf16, f16};

use crate::LENGTHS;
use crate::support::{stream, values};

/// Returns the number of items in each bin. `bin` returns the bin of an item.
fn counted<T: Copy>(items: &[T], bins: usize, bin: impl Fn(T) -> Option<usize>) -> Vec<u32> {
    let mut counts = vec![0; bins];
    items.iter().filter_map(|&item| bin(item)).for_each(|bin| counts[bin] += 1);
    counts
}

/// Returns the bin of an integer, exactly.
fn even(x: i128, low: i128, high: i128, bins: usize) -> Option<usize> {
    (low <= x && x < high).then(|| {
        let (distance, range) = ((x - low) as u128, (high - low) as u128);
        // This is computed in parts, because a product may have more than 128 bits.
        let (whole, rest) = (bins as u128 / range, bins as u128 % range);
        (distance * whole + distance * rest / range) as usize
    })
}

#[test]
fn bytes_are_counted_by_value_at_any_length_and_offset_sanitize() -> Result<()> {
    let stream = stream()?;
    for (k, len) in LENGTHS.into_iter().enumerate() {
        let (x, offset) = (values::<u8>(len + 5, k as u64), k % 5);
        let buffer = stream.buffer_from(&x)?;
        let mut counts = stream.buffer_from(&[7u32; 256])?;
        histogram_even(&stream, buffer.slice(offset..offset + len)?, 0, 256, &mut counts)?;
        assert_eq!(counts.to_vec()?, counted(&x[offset..offset + len], 256, |x| Some(x as usize)), "{len}");
    }
    Ok(())
}

/// The ranges and bins are few, or all values, or more bins than values. They are counted in shared memory in many copies or in one, or not
/// in shared memory.
macro_rules! integers {
    ($($name:ident: $t:ty, $c:ty, $len:expr, $cases:expr;)*) => {$(
        #[test]
        fn $name() -> Result<()> {
            let stream = stream()?;
            let x = values::<$t>($len, 5);
            let buffer = stream.buffer_from(&x)?;
            for (low, high, bins) in $cases {
                let mut counts = stream.buffer_zeroed::<$c>(bins)?;
                histogram_even(&stream, &buffer, low, high, &mut counts)?;
                let expected = counted(&x, bins, |x| even(x as i128, low as i128, high as i128, bins));
                assert!(expected.iter().any(|&count| count > 0), "{low}..{high}: the test has items inside");
                let counts: Vec<u32> = counts.to_vec()?.into_iter().map(|count| count as u32).collect();
                assert!(counts == expected, "{low}..{high} by {bins}");
            }
            Ok(())
        }
    )*};
}
integers! {
    even_bins_of_bytes: u8, u32, 20_000, [(0, 256, 1), (3, 250, 7), (0, 256, 1000), (10, 20, 20)];
    even_bins_of_signed_bytes: i8, u64, 20_000, [(-128, 128, 256), (-100, 27, 5), (-1, 1, 3)];
    even_bins_of_u16: u16, u32, 20_000, [(0, 65536, 256), (17, 60_000, 3000), (0, 65536, 65536), (5, 65535, 10_000)];
    even_bins_of_u32: u32, u32, 20_000, [(0, 1 << 32, 100), (1, (1 << 32) - 1, 20_000), (1 << 31, 1 << 32, 3)];
    even_bins_of_i32_sanitize: i32, u32, 20_000, [(-(1 << 31), 1 << 31, 37), (-1_000_000_000, 7, 600)];
    even_bins_of_u64: u64, u32, 20_000, [(0, 1 << 64, 1000), (1, (1 << 64) - 1, 3), (1 << 63, (1 << 63) + (1 << 61), 20_000)];
    even_bins_of_i64: i64, u32, 20_000, [(-(1 << 63), 1 << 63, 999), (-(1 << 62), 77, 2)];
}

/// There are integers at the first and the last place of every bin, where inexact arithmetic would be wrong.
#[test]
fn integers_at_the_ends_of_bins_are_in_them() -> Result<()> {
    let stream = stream()?;
    for (low, high, bins) in [(3u32, 4_294_967_290u32, 1000usize), (0, u32::MAX, 16_384), (100, 1_000_003, 7)] {
        let range = (high - low) as u128;
        let first = |bin: usize| (low as u128 + (bin as u128 * range).div_ceil(bins as u128)) as u32;
        let x: Vec<u32> = (0..bins).flat_map(|bin| [first(bin), first(bin + 1) - 1]).collect();
        let mut counts = stream.buffer_zeroed::<u32>(bins)?;
        histogram_even(&stream, &stream.buffer_from(&x)?, low.into(), high.into(), &mut counts)?;
        assert!(counts.to_vec()? == vec![2; bins], "{low}..{high}");
    }
    Ok(())
}

#[test]
fn floats_outside_and_nan_are_in_no_bin_sanitize() -> Result<()> {
    let stream = stream()?;
    let x: Vec<f32> = (0..30_000).map(|i| (i as f32) * 0.25 - 1000.0).chain([f32::NAN, f32::INFINITY]).collect();
    // All of this arithmetic is exact.
    let expected = counted(&x, 16, |x| (0.0..4096.0).contains(&x).then(|| (x / 256.0) as usize));
    let mut counts = stream.buffer_zeroed::<u32>(16)?;
    histogram_even(&stream, &stream.buffer_from(&x)?, 0.0, 4096.0, &mut counts)?;
    assert_eq!(counts.to_vec()?, expected);

    let x: Vec<f64> = x.iter().map(|&x| x as f64).collect();
    let mut counts = stream.buffer_zeroed::<u32>(16)?;
    histogram_even(&stream, &stream.buffer_from(&x)?, 0.0, 4096.0, &mut counts)?;
    assert_eq!(counts.to_vec()?, expected);

    // The products of the largest items round up to the number of bins.
    let below = 0.1f32.next_down();
    let mut counts = stream.buffer_zeroed::<u32>(3)?;
    histogram_even(&stream, &stream.buffer_from(&[below; 100])?, 0.0, 0.1, &mut counts)?;
    assert_eq!(counts.to_vec()?, [0, 0, 100]);
    Ok(())
}

#[test]
fn halves_are_scaled_in_f32() -> Result<()> {
    let stream = stream()?;
    let numbers: Vec<f32> = values::<u8>(5000, 2).iter().map(|&x| x as f32).collect();
    let expected = counted(&numbers, 4, |x| (x < 200.0).then_some((x * 0.02) as usize));
    let mut counts = stream.buffer_zeroed::<u32>(4)?;
    let x: Vec<f16> = numbers.iter().map(|&x| f16::from_f32(x)).collect();
    histogram_even(&stream, &stream.buffer_from(&x)?, f16::ZERO, f16::from_f32(200.0), &mut counts)?;
    assert_eq!(counts.to_vec()?, expected);
    let x: Vec<bf16> = numbers.iter().map(|&x| bf16::from_f32(x)).collect();
    histogram_even(&stream, &stream.buffer_from(&x)?, bf16::ZERO, bf16::from_f32(200.0), &mut counts)?;
    assert_eq!(counts.to_vec()?, expected);
    Ok(())
}

#[test]
fn items_between_levels_are_counted_sanitize() -> Result<()> {
    let stream = stream()?;
    let x = values::<i32>(20_000, 9);
    // There are a few levels, some of which are equal, and more levels than shared memory has counters for.
    let few = vec![-2_000_000_000, -5, 0, 0, 1_000_000, 2_000_000_000];
    let many: Vec<i32> = (0..20_000).map(|i| i * 100_000 - 1_000_000_000).collect();
    for levels in [few, many] {
        let bins = levels.len() - 1;
        let expected =
            counted(&x, bins, |x| levels.partition_point(|&level| level <= x).checked_sub(1).filter(|&bin| bin < bins));
        let mut counts = stream.buffer_zeroed::<u32>(bins)?;
        histogram_ranges(&stream, &stream.buffer_from(&x)?, &stream.buffer_from(&levels)?, &mut counts)?;
        assert!(counts.to_vec()? == expected);
    }

    let x = values::<u8>(20_000, 9);
    let levels = [1u8, 4, 4, 5, 200];
    let expected = counted(&x, 4, |x| [1..4, 4..4, 4..5, 5..200].iter().position(|bin| bin.contains(&x)));
    let mut counts = stream.buffer_zeroed::<u32>(4)?;
    histogram_ranges(&stream, &stream.buffer_from(&x)?, &stream.buffer_from(&levels)?, &mut counts)?;
    assert_eq!(counts.to_vec()?, expected);

    let x: Vec<f32> = x.iter().map(|&x| if x == 0 { f32::NAN } else { x as f32 }).collect();
    let levels = [1.0f32, 4.0, 4.0, 5.0, 200.0];
    histogram_ranges(&stream, &stream.buffer_from(&x)?, &stream.buffer_from(&levels)?, &mut counts)?;
    assert_eq!(counts.to_vec()?, expected);
    Ok(())
}

#[test]
fn items_may_be_computed() -> Result<()> {
    let stream = stream()?;
    let x = values::<u16>(10_000, 1);
    let mut counts = stream.buffer_zeroed::<u32>(64)?;
    histogram_even(&stream, strided(&stream.buffer_from(&x)?, 3), 0, 65536, &mut counts)?;
    let every_third: Vec<u16> = x.into_iter().step_by(3).collect();
    assert_eq!(counts.to_vec()?, counted(&every_third, 64, |x| Some(x as usize / 1024)));
    Ok(())
}

#[test]
fn what_is_no_range_is_an_error() -> Result<()> {
    let stream = stream()?;
    let (x, bytes) = (stream.buffer_from(&[1.0f32])?, stream.buffer_from(&[1u8])?);
    let mut counts = stream.buffer_zeroed::<u32>(4)?;
    for (low, high) in [
        (1.0, 1.0),
        (2.0, 1.0),
        (f32::NAN, 1.0),
        (0.0, f32::NAN),
        (0.0, f32::INFINITY),
        (f32::MIN, f32::MAX),
        (0.0, 1e-38),
    ] {
        let error = histogram_even(&stream, &x, low, high, &mut counts).unwrap_err();
        assert!(matches!(error, Error::Bins { .. }), "{error}");
    }
    for (low, high) in [(0, 257), (-1, 256), (5, 5)] {
        let error = histogram_even(&stream, &bytes, low, high, &mut counts).unwrap_err();
        assert!(matches!(error, Error::Bins { .. }), "{error}");
    }
    let mut none = stream.buffer_zeroed::<u32>(0)?;
    let error = histogram_even(&stream, &x, 0.0, 1.0, &mut none).unwrap_err();
    assert!(matches!(error, Error::Bins { .. }), "{error}");
    let error = histogram_ranges(&stream, &x, &x, &mut none).unwrap_err();
    assert!(matches!(error, Error::Bins { .. }), "{error}");
    let error = histogram_ranges(&stream, &x, &x, &mut counts).unwrap_err();
    assert!(matches!(error, Error::LengthMismatch { first_len: 5, second_len: 1, .. }), "{error}");
    Ok(())
}
