//! Tests reductions and scans of runs of equal keys against loops.

use kernel_primitives::algorithms::{
    Parameter, Run, Tuning, Workspace, exclusive_scan_by_key, inclusive_scan, inclusive_scan_by_key, reduce_by_key,
    run_length_encode, segmented_exclusive_scan, segmented_inclusive_scan, unique,
};
use kernel_primitives::functor::{Add, BinaryFn, Max};
use kernel_primitives::input::map;
use kernel_primitives::{Devices, Error, Result, f16};

use crate::LENGTHS;
use crate::kernels::{AddEach, Compose, Divisor, Map, Times};
use crate::runs::{Runs, lengths, repeated};
use crate::segments::segmented::tiles;
use crate::support::{stream, streams, values};

/// Returns the combined values of each run.
fn reduced<T: Copy>(lengths: &[usize], values: &[T], op: impl Fn(T, T) -> T) -> Vec<T> {
    let mut rest = values;
    let mut totals = Vec::new();
    for &len in lengths {
        let (run, after) = rest.split_at(len);
        totals.extend(run.iter().copied().reduce(&op));
        rest = after;
    }
    totals
}

/// Returns the inclusive and the exclusive scan of the values of each run.
fn scanned<T: Copy>(lengths: &[usize], values: &[T], first: T, op: impl Fn(T, T) -> T) -> (Vec<T>, Vec<T>) {
    let (mut upto, mut before) = (Vec::new(), Vec::new());
    let mut values = values.iter();
    for &len in lengths {
        let (mut sum, mut total) = (None, first);
        for &value in values.by_ref().take(len) {
            before.push(total);
            total = op(total, value);
            sum = Some(sum.map_or(value, |sum| op(sum, value)));
            upto.extend(sum);
        }
    }
    (upto, before)
}

#[test]
fn sums_of_runs_of_any_length_at_any_offset() -> Result<()> {
    let stream = stream()?;
    for (k, len) in LENGTHS.into_iter().enumerate() {
        for runs in Runs::ALL {
            let lengths = lengths(runs, len, k as u64);
            let keys: Vec<u32> = repeated(&lengths, |run| run as u32 * 5 % 11);
            let x = values::<u32>(len, k as u64);
            let (totals, count) = (reduced(&lengths, &x, u32::wrapping_add), lengths.len());
            let firsts: Vec<u32> = (0..count).map(|run| run as u32 * 5 % 11).collect();
            // The inputs are off the boundary by different amounts.
            let padded =
                |items: &[u32], by: usize| [&vec![items.first().copied().unwrap_or(7); by], items, &[3]].concat();
            let (keys, x) = (stream.buffer_from(&padded(&keys, k % 5))?, stream.buffer_from(&padded(&x, k % 4))?);
            let (keys, x) = (keys.slice(k % 5..k % 5 + len)?, x.slice(k % 4..k % 4 + len)?);
            let (mut out_keys, mut out) =
                (stream.buffer_from(&vec![77u32; count + 3])?, stream.buffer_from(&vec![78u32; count + 3])?);
            let mut number = stream.buffer_from(&[9u64])?;
            let (mut k, mut v) = (out_keys.slice_mut(1..)?, out.slice_mut(2..)?);
            reduce_by_key(&stream, keys, x, Add, &mut k, &mut v, &mut number)?;
            assert_eq!(number.to_vec()?, [count as u64], "{len} {runs:?}");
            assert_eq!(out_keys.to_vec()?, [&[77], &firsts[..], &[77; 2]].concat(), "{len} {runs:?}");
            assert_eq!(out.to_vec()?, [&[78; 2], &totals[..], &[78]].concat(), "{len} {runs:?}");
        }
    }
    Ok(())
}

/// The net has keys of one and of three bytes.
#[test]
fn sums_of_every_type_by_keys_of_every_type_sanitize() -> Result<()> {
    let stream = stream()?;
    let lengths = lengths(Runs::Random, 9001, 4);
    macro_rules! check {
        ($($k:ty, $v:ty: $seed:literal, $op:expr, |$a:ident, $b:ident| $sum:expr;)*) => {$(
            let keys: Vec<$k> = repeated(&lengths, |run| (run % 100) as $k);
            let x: Vec<$v> = values::<u8>(9001, $seed).iter().map(|&x| x as $v).collect();
            let totals = reduced(&lengths, &x, |$a, $b| $sum);
            let count = totals.len();
            let (mut k, mut v) = (stream.buffer_zeroed::<$k>(count)?, stream.buffer_zeroed::<$v>(count)?);
            let mut number = stream.buffer_zeroed::<u64>(1)?;
            let (keys, x) = (stream.buffer_from(&keys)?, stream.buffer_from(&x)?);
            reduce_by_key(&stream, &keys, &x, $op, &mut k, &mut v, &mut number)?;
            assert_eq!(k.to_vec()?, (0..count).map(|run| (run % 100) as $k).collect::<Vec<_>>());
            // Whole numbers are exact.
            assert_eq!((v.to_vec()?, number.to_vec()?), (totals, vec![count as u64]), stringify!($k, $v));
        )*};
    }
    check! {
        u32, f32: 1, Add, |a, b| a + b;
        i32, f32: 2, Add, |a, b| a + b;
        u64, f64: 3, Add, |a, b| a + b;
        u32, f64: 6, Add, |a, b| a + b;
        u64, u32: 7, Add, |a, b| a + b;
        u64, u8: 5, Add, |a, b| a.wrapping_add(b);
        i32, u8: 4, Max, |a, b| a.max(b);
    }
    Ok(())
}

/// This runs in small tiles and in large ones. For keys of forty bytes, both have the same size.
#[test]
fn values_are_reduced_by_keys_that_are_wider() -> Result<()> {
    let stream = stream()?;
    let small = Tuning::of(stream.device())?;
    let mut large = small.clone();
    large.set(Parameter::ReduceByKeyTiles, None, 1)?;
    macro_rules! check {
        ($($k:ty: $lens:expr, |$run:ident| $key:expr;)*) => {$(
            for (len, tuning) in $lens.into_iter().flat_map(|len| [(len, small), (len, &large)]) {
                let lengths = lengths(Runs::Random, len, 9);
                let keys: Vec<$k> = repeated(&lengths, |$run| $key);
                let (x, count) = (values::<u32>(len, 1), lengths.len());
                let (k, v) = (stream.buffer_from(&keys)?, stream.buffer_from(&x)?);
                let (mut firsts, mut sums) = (stream.buffer_zeroed::<$k>(count)?, stream.buffer_zeroed::<u32>(count)?);
                let mut number = stream.buffer_zeroed::<u64>(1)?;
                reduce_by_key(Run::on(&stream).tuned(tuning), &k, &v, Add, &mut firsts, &mut sums, &mut number)?;
                assert_eq!(number.to_vec()?, [count as u64], "{len}");
                assert!(sums.to_vec()? == reduced(&lengths, &x, u32::wrapping_add), "{len}");
                assert!(firsts.to_vec()?.into_iter().eq((0..count).map(|$run| $key)), "{len}");
            }
        )*};
    }
    check! {
        u64: [6399, 6400, 6401, 20_011], |run| (run as u64) << 33;
        [u64; 5]: [1151, 1152, 1153, 9011], |run| [run as u64, 1, 2, 3, 4];
    }
    Ok(())
}

/// This also runs on the other emulators. The blocks of one start in random order.
#[test]
fn an_operator_that_does_not_commute_keeps_the_order_sanitize() -> Result<()> {
    let compose = |f, g| Compose.apply(f, g);
    for stream in streams()? {
        for runs in Runs::ALL {
            let lengths = lengths(runs, 10_000, 5);
            let keys: Vec<u32> = repeated(&lengths, |run| run as u32);
            let x = values::<Map<u32>>(10_000, 7);
            let (k, v) = (stream.buffer_from(&keys)?, stream.buffer_from(&x)?);
            let count = lengths.len();
            let (mut out_keys, mut out) = (stream.buffer_uninit::<u32>(count)?, stream.buffer_uninit(count)?);
            let mut number = stream.buffer_uninit::<u64>(1)?;
            reduce_by_key(&stream, &k, &v, Compose, &mut out_keys, &mut out, &mut number)?;
            assert_eq!(out.to_vec()?, reduced(&lengths, &x, compose), "{runs:?}");
            assert_eq!(out_keys.to_vec()?, (0..count as u32).collect::<Vec<_>>(), "{runs:?}");

            let first = Map { a: 3, b: 5 };
            let (upto, before) = scanned(&lengths, &x, first, compose);
            let mut out = stream.buffer_uninit(10_000)?;
            inclusive_scan_by_key(&stream, &k, &v, Compose, &mut out)?;
            assert_eq!(out.to_vec()?, upto, "{runs:?}");
            exclusive_scan_by_key(&stream, &k, &v, first, Compose, &mut out)?;
            assert_eq!(out.to_vec()?, before, "{runs:?}");
        }
    }
    Ok(())
}

#[test]
fn zeros_are_equal_keys_and_nan_equals_nothing() -> Result<()> {
    let stream = stream()?;
    let x = [0.0f32, -0.0, 0.0, f32::NAN, f32::NAN, 1.0, 1.0, -0.0];
    let (mut items, mut lengths) = (stream.buffer_zeroed::<f32>(5)?, stream.buffer_zeroed::<u32>(5)?);
    let mut count = stream.buffer_zeroed::<u64>(1)?;
    run_length_encode(&stream, &stream.buffer_from(&x)?, &mut items, &mut lengths, &mut count)?;
    assert_eq!((count.to_vec()?, lengths.to_vec()?), (vec![5], vec![3, 1, 1, 2, 1]));
    let bits = |x: &[f32]| x.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
    assert_eq!(bits(&items.to_vec()?), bits(&[0.0, f32::NAN, f32::NAN, 1.0, -0.0]));
    Ok(())
}

#[test]
fn runs_are_encoded_sanitize() -> Result<()> {
    let stream = stream()?;
    for runs in Runs::ALL {
        for len in [0, 1, 5000, 20_011] {
            let runs = lengths(runs, len, 6);
            let x: Vec<u64> = repeated(&runs, |run| (run as u64) << 33);
            let count = runs.len();
            let (mut items, mut lengths) = (stream.buffer_zeroed::<u64>(count)?, stream.buffer_zeroed::<u32>(count)?);
            let mut number = stream.buffer_from(&[9u64])?;
            run_length_encode(&stream, &stream.buffer_from(&x)?, &mut items, &mut lengths, &mut number)?;
            assert_eq!(number.to_vec()?, [count as u64]);
            assert_eq!(lengths.to_vec()?, runs.iter().map(|&len| len as u32).collect::<Vec<_>>());
            assert_eq!(items.to_vec()?, (0..count as u64).map(|run| run << 33).collect::<Vec<_>>());
        }
    }
    Ok(())
}

/// A block may also have more runs than it lists at a time, and integers may be too small.
#[test]
fn lengths_are_numbers_of_any_type_sanitize() -> Result<()> {
    let stream = stream()?;
    for (k, runs) in Runs::ALL.into_iter().enumerate() {
        let runs = lengths(runs, 30_011, k as u64);
        let count = runs.len();
        macro_rules! check {
            ($($t:ty, $l:ty: |$run:ident| $key:expr;)*) => {$(
                let x = stream.buffer_from(&repeated(&runs, |$run| $key))?;
                let (mut items, mut lengths) = (stream.buffer_zeroed::<$t>(count)?, stream.buffer_zeroed::<$l>(count)?);
                let mut number = stream.buffer_from(&[9u64])?;
                run_length_encode(&stream, x.slice(..)?, &mut items, &mut lengths, &mut number)?;
                assert_eq!(number.to_vec()?, [count as u64]);
                assert_eq!(lengths.to_vec()?, runs.iter().map(|&len| len as $l).collect::<Vec<_>>());
                assert_eq!(items.to_vec()?, (0..count).map(|$run| $key).collect::<Vec<$t>>());
            )*};
        }
        check! {
            u8, u8: |run| (run % 3) as u8;
            f16, f32: |run| f16::from_f32((run % 3) as f32);
        }
    }
    Ok(())
}

#[test]
fn scans_begin_anew_with_each_run_of_any_length_at_any_offset_sanitize() -> Result<()> {
    let stream = stream()?;
    for (k, len) in LENGTHS.into_iter().enumerate() {
        let runs = Runs::ALL[k % 5];
        let lengths = lengths(runs, len, k as u64);
        let keys: Vec<u32> = repeated(&lengths, |run| run as u32 % 3);
        let x = values::<u32>(len + 3, k as u64);
        let from = k % 4;
        let (upto, before) = scanned(&lengths, &x[from..from + len], 100, u32::wrapping_add);
        let (keys, x) = (stream.buffer_from(&keys)?, stream.buffer_from(&x)?);
        let x = x.slice(from..from + len)?;
        let mut out = stream.buffer_from(&vec![77u32; len + 2])?;
        inclusive_scan_by_key(&stream, &keys, x, Add, &mut out.slice_mut(1..)?)?;
        assert_eq!(out.to_vec()?, [&[77], &upto[..], &[77]].concat(), "{len} {runs:?}");
        exclusive_scan_by_key(&stream, &keys, x, 100, Add, &mut out)?;
        assert_eq!(out.to_vec()?[..len], before, "{len} {runs:?}");
    }
    Ok(())
}

/// The tiles are those of inputs that are so long that all tiles are long.
#[test]
fn long_tiles_in_a_chain() -> Result<()> {
    let stream = stream()?;
    let mut tuning = Tuning::of(stream.device())?.clone();
    tuning.set(Parameter::RunTiles, None, 1)?;
    let run = || Run::on(&stream).tuned(&tuning);
    for (runs, len, from) in [(Runs::Sixteen, 60_001, 0), (Runs::Sixteen, 55_555, 1), (Runs::One, 60_000, 3)] {
        let lengths = lengths(runs, len, 5);
        let keys: Vec<u32> = repeated(&lengths, |run| run as u32);
        let x = values::<u32>(from + len, 6);
        let totals = reduced(&lengths, &x[from..], u32::wrapping_add);
        let (keys, x) = (stream.buffer_from(&[&vec![7; from], &keys[..]].concat())?, stream.buffer_from(&x)?);
        let (keys, x) = (keys.slice(from..)?, x.slice(from..)?);
        let count = lengths.len();
        let mut out_keys = stream.buffer_zeroed::<u32>(count)?;
        let mut out = stream.buffer_zeroed::<u32>(count)?;
        let mut number = stream.buffer_zeroed::<u64>(1)?;
        let firsts: Vec<u32> = (0..count as u32).collect();
        reduce_by_key(run(), keys, x, Add, &mut out_keys, &mut out, &mut number)?;
        assert!(
            (number.to_vec()?[0], out_keys.to_vec()?, out.to_vec()?) == (count as u64, firsts.clone(), totals),
            "{len}"
        );
        run_length_encode(run(), keys, &mut out_keys, &mut out, &mut number)?;
        let lengths: Vec<u32> = lengths.iter().map(|&length| length as u32).collect();
        assert!((number.to_vec()?[0], out_keys.to_vec()?, out.to_vec()?) == (count as u64, firsts, lengths), "{len}");
    }
    Ok(())
}

#[test]
fn outputs_that_are_much_longer_keep_their_rest() -> Result<()> {
    let stream = stream()?;
    for len in [1, 31, 1000, 20_001] {
        let lengths = lengths(Runs::Sixteen, len, 3);
        let host = values::<u32>(len, 4);
        let (upto, before) = scanned(&lengths, &host, 100, u32::wrapping_add);
        let keys = stream.buffer_from(&repeated(&lengths, |run| run as u32))?;
        let (x, rest) = (stream.buffer_from(&host)?, vec![77u32; 30_000]);
        let mut out = stream.buffer_from(&vec![77u32; len + rest.len()])?;
        inclusive_scan_by_key(&stream, &keys, &x, Add, &mut out)?;
        assert!(out.to_vec()? == [&upto[..], &rest].concat(), "{len}");
        exclusive_scan_by_key(&stream, &keys, &x, 100, Add, &mut out)?;
        assert!(out.to_vec()? == [&before[..], &rest].concat(), "{len}");
    }
    Ok(())
}

/// The values are so large that a thread has one vector of them.
#[test]
fn values_of_many_bytes_are_scanned_by_key() -> Result<()> {
    let stream = stream()?;
    let lengths = lengths(Runs::Sixteen, 5_001, 1);
    let x = values::<u32>(5_001, 7);
    let keys = stream.buffer_from(&repeated(&lengths, |run| run as u32))?;
    let mut out = stream.buffer_zeroed::<[u32; 10]>(x.len())?;
    inclusive_scan_by_key(&stream, &keys, map(&stream.buffer_from(&x)?, Times::<10>), AddEach, &mut out)?;
    let (mut expected, mut rest) = (Vec::new(), &x[..]);
    for &length in &lengths {
        let (run, others) = rest.split_at(length);
        let mut sum = 0u32;
        for &x in run {
            sum = sum.wrapping_add(x);
            expected.push([sum; 10]);
        }
        rest = others;
    }
    assert!(out.to_vec()? == expected);
    Ok(())
}

#[test]
fn a_reduction_by_key_is_captured_and_launched_again() -> Result<()> {
    let stream = stream()?;
    let lengths = lengths(Runs::Sixteen, 50_000, 1);
    let x = values::<u32>(50_000, 6);
    let keys = stream.buffer_from(&repeated(&lengths, |run| run as u32))?;
    let values = stream.buffer_from(&x)?;
    let (mut k, mut v) = (stream.buffer_zeroed::<u32>(4000)?, stream.buffer_zeroed::<u32>(4000)?);
    let mut count = stream.buffer_zeroed::<u64>(1)?;
    let mut workspace = Workspace::with_capacity(&stream, 1 << 16)?;
    let graph = stream.capture(|stream| {
        reduce_by_key(Run::on(stream).with(&mut workspace), &keys, &values, Add, &mut k, &mut v, &mut count)
    })?;
    for _ in 0..2 {
        graph.launch(&stream)?;
        assert_eq!(count.to_vec()?, [3125]);
        assert_eq!(v.to_vec()?[..3125], reduced(&lengths, &x, u32::wrapping_add));
        v.copy_from(&[0; 4000])?;
    }
    Ok(())
}

#[test]
fn keys_without_values_and_outputs_that_are_too_short_are_errors() -> Result<()> {
    let stream = stream()?;
    let (keys, x) = (stream.buffer_zeroed::<u32>(10)?, stream.buffer_zeroed::<u32>(10)?);
    let (mut k, mut v) = (stream.buffer_zeroed::<u32>(10)?, stream.buffer_zeroed::<u32>(10)?);
    let (mut count, mut none) = (stream.buffer_zeroed::<u64>(1)?, stream.buffer_zeroed::<u64>(0)?);
    let error = reduce_by_key(&stream, &keys, x.slice(1..)?, Add, &mut k, &mut v, &mut count).unwrap_err();
    assert!(matches!(error, Error::LengthMismatch { first_len: 10, second_len: 9, .. }), "{error}");
    let error = reduce_by_key(&stream, &keys, &x, Add, &mut k, &mut v, &mut none).unwrap_err();
    assert!(matches!(error, Error::LengthMismatch { first_len: 1, second_len: 0, .. }), "{error}");
    let error = inclusive_scan_by_key(&stream, &keys, &x, Add, &mut v.slice_mut(1..)?).unwrap_err();
    assert!(matches!(error, Error::LengthMismatch { first_len: 10, second_len: 9, .. }), "{error}");
    Ok(())
}

/// Sums of −0 are −0 in runs of any length, by key and by segment. Exclusive sums begin with the given value.
#[test]
fn sums_by_key_keep_a_negative_zero_sanitize() -> Result<()> {
    let (stream, tuning) = (stream()?, tiles()?);
    // The first run is by tiles. The second run is not, because there are few items.
    let runs = || [Run::on(&stream).tuned(&tuning), Run::on(&stream)];
    for (len, run) in [(1usize, 1), (40, 7), (9001, 3000), (9001, 1), (60_000, 100_000), (400_000, 13_000)] {
        let keys: Vec<u32> = (0..len).map(|i| (i / run) as u32).collect();
        let offsets: Vec<u32> = (0..len.div_ceil(run)).map(|i| (i * run) as u32).chain([len as u32]).collect();
        let (keys, offsets) = (stream.buffer_from(&keys)?, stream.buffer_from(&offsets)?);
        let x = stream.buffer_from(&vec![-0.0f32; len])?;
        let mut out = stream.buffer_from(&vec![1.0f32; len])?;
        let all = |found: Vec<f32>, zero: f32| found.iter().all(|x| x.to_bits() == zero.to_bits());
        inclusive_scan_by_key(&stream, &keys, &x, Add, &mut out)?;
        assert!(all(out.to_vec()?, -0.0), "by key, {len} items");
        for run in runs() {
            segmented_inclusive_scan(run, &x, &offsets, Add, &mut out)?;
            assert!(all(out.to_vec()?, -0.0), "by segment, {len} items");
        }
        for first in [-0.0, 0.0] {
            exclusive_scan_by_key(&stream, &keys, &x, first, Add, &mut out)?;
            assert!(all(out.to_vec()?, first), "by key from {first}, {len} items");
            for run in runs() {
                segmented_exclusive_scan(run, &x, &offsets, first, Add, &mut out)?;
                assert!(all(out.to_vec()?, first), "by segment from {first}, {len} items");
            }
        }
        let (mut found, mut sums) = (stream.buffer_zeroed::<u32>(len)?, stream.buffer_from(&vec![1.0f32; len])?);
        let mut count = stream.buffer_zeroed::<u64>(1)?;
        reduce_by_key(&stream, &keys, &x, Add, &mut found, &mut sums, &mut count)?;
        assert!(all(sums.to_vec()?[..len.div_ceil(run)].to_vec(), -0.0), "runs of {len} items");
    }
    Ok(())
}

/// The first item has no item before it, and the last tile ends after the input. A slice from the second key is not aligned.
#[test]
fn keys_are_compared_only_with_keys_of_the_input() -> Result<()> {
    let stream = stream()?;
    for len in [0, 1, 1000, 40_001] {
        let host: Vec<Divisor> = (0..=len).map(|i| Divisor(1 + i / 3 % 9)).collect();
        let buffer = stream.buffer_from(&host)?;
        for skip in [0, 1] {
            let (keys, host) = (buffer.slice(skip..)?, &host[skip..]);
            let lengths: Vec<u32> = host.chunk_by(|a, b| a == b).map(|run| run.len() as u32).collect();
            let (runs, counted) = (lengths.len(), [lengths.len() as u64]);
            let ones = stream.buffer_from(&vec![1u32; host.len()])?;
            let mut found = stream.buffer_zeroed::<Divisor>(host.len())?;
            let (mut out, mut count) = (stream.buffer_zeroed::<u32>(host.len())?, stream.buffer_zeroed::<u64>(1)?);

            unique(&stream, keys, &mut found, &mut count)?;
            assert_eq!(count.to_vec()?, counted);
            run_length_encode(&stream, keys, &mut found, &mut out, &mut count)?;
            assert_eq!((count.to_vec()?, &out.to_vec()?[..runs]), (counted.to_vec(), &lengths[..]));
            reduce_by_key(&stream, keys, &ones, Add, &mut found, &mut out, &mut count)?;
            assert_eq!((count.to_vec()?, &out.to_vec()?[..runs]), (counted.to_vec(), &lengths[..]));
            inclusive_scan_by_key(&stream, keys, &ones, Add, &mut out)?;
            assert!(out.to_vec()?.into_iter().eq(lengths.iter().flat_map(|&len| 1..=len)));
        }
    }
    Ok(())
}

#[test]
fn no_items_of_another_device_are_refused_too() -> Result<()> {
    let streams = Devices::emulated(2)?.streams()?;
    let (x, mut out) = (streams[0].buffer_zeroed::<u32>(0)?, streams[0].buffer_zeroed::<u32>(0)?);
    let results = [
        inclusive_scan(&streams[1], &x, Add, &mut out),
        inclusive_scan_by_key(&streams[1], &x, &x, Add, &mut out),
        exclusive_scan_by_key(&streams[1], &x, &x, 0, Add, &mut out),
    ];
    assert!(results.iter().all(|result| matches!(result, Err(Error::WrongDevice { .. }))), "{results:?}");
    Ok(())
}
