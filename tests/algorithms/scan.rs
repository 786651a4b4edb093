//! Tests scans of a whole input against a loop.

use kernel_primitives::algorithms::{
    ExclusiveScan, InclusiveScan, Parameter, Run, Tuning, Workspace, exclusive_scan, inclusive_scan,
};
use kernel_primitives::functor::{Add, BinaryFn, Max, Min};
use kernel_primitives::input::{Span, map, strided};
use kernel_primitives::kernels::device::{ScanTiles, scan_threads, scan_vector};
use kernel_primitives::{Arithmetic, Device, Element, EmulatorOptions, Result, Stream};

use crate::LENGTHS;
use crate::kernels::{AddEach, Compose, Map, Times};
use crate::support::{stream, streams, values};

/// Returns the inclusive and the exclusive scan.
fn scanned<T: Copy>(x: &[T], first: T, op: impl Fn(T, T) -> T) -> (Vec<T>, Vec<T>) {
    let mut before = Vec::new();
    let mut upto = Vec::new();
    let mut total = first;
    for &x in x {
        before.push(total);
        total = op(total, x);
        upto.push(total);
    }
    (upto, before)
}

#[test]
fn sums_up_to_each_item_of_any_length_at_any_offset() -> Result<()> {
    let stream = stream()?;
    for (k, len) in LENGTHS.into_iter().enumerate() {
        let x = values::<i32>(len + 7, k as u64);
        let buffer = stream.buffer_from(&x)?;
        let (from, to) = (k % 5, k % 3);
        let mut out = stream.buffer_from(&vec![77i32; len + 5])?;
        let (upto, before) = scanned(&x[from..from + len], 0, i32::wrapping_add);
        let x = buffer.slice(from..from + len)?;
        inclusive_scan(&stream, x, Add, &mut out.slice_mut(to..)?)?;
        let found = out.to_vec()?;
        assert_eq!(
            (&found[..to], &found[to..to + len], &found[to + len..]),
            (&[77; 2][..to], &upto[..], &[77; 5][to..])
        );
        exclusive_scan(&stream, x, -5, Add, &mut out)?;
        assert_eq!(out.to_vec()?[..len], before.iter().map(|b| b.wrapping_sub(5)).collect::<Vec<_>>());
    }
    Ok(())
}

#[test]
fn every_type_is_scanned_sanitize() -> Result<()> {
    let stream = stream()?;
    macro_rules! check {
        ($($t:ty: $seed:literal, |$a:ident, $b:ident| $sum:expr;)*) => {$(
            let x: Vec<$t> = values::<u8>(9001, $seed).iter().map(|&x| x as $t).collect();
            let buffer = stream.buffer_from(&x)?;
            let mut out = stream.buffer_zeroed::<$t>(9001)?;
            let (upto, before) = scanned(&x, 3 as $t, |$a, $b| $sum);
            inclusive_scan(&stream, &buffer, Add, &mut out)?;
            // Whole numbers are exact.
            assert_eq!(out.to_vec()?, upto.iter().map(|&x| x - 3 as $t).collect::<Vec<_>>());
            exclusive_scan(&stream, &buffer, 3 as $t, Add, &mut out)?;
            assert_eq!(out.to_vec()?, before);
        )*};
    }
    check! {
        f32: 1, |a, b| a + b;
        f64: 2, |a, b| a + b;
        i32: 3, |a, b| a + b;
        u32: 4, |a, b| a + b;
        i64: 5, |a, b| a + b;
        u64: 6, |a, b| a + b;
    }
    Ok(())
}

#[test]
fn extremes_up_to_each_item() -> Result<()> {
    let stream = stream()?;
    let x = values::<i32>(20_000, 5);
    let buffer = stream.buffer_from(&x)?;
    let mut out = stream.buffer_zeroed::<i32>(20_000)?;
    inclusive_scan(&stream, &buffer, Max, &mut out)?;
    assert_eq!(out.to_vec()?, scanned(&x, i32::MIN, i32::max).0);
    inclusive_scan(&stream, &buffer, Min, &mut out)?;
    assert_eq!(out.to_vec()?, scanned(&x, i32::MAX, i32::min).0);

    let mut x: Vec<f32> = values::<u8>(20_000, 6).iter().map(|&x| x as f32).collect();
    x[15_000] = f32::NAN;
    let mut out = stream.buffer_zeroed::<f32>(20_000)?;
    inclusive_scan(&stream, &stream.buffer_from(&x)?, Max, &mut out)?;
    let out = out.to_vec()?;
    assert!(out[..15_000].iter().all(|x| !x.is_nan()) && out[15_000..].iter().all(|x| x.is_nan()));
    assert_eq!(out[..15_000], scanned(&x[..15_000], f32::NEG_INFINITY, f32::max).0);
    Ok(())
}

/// This also runs on the other emulators. The blocks of one start in random order. The net has scans of twelve and of sixteen bytes.
#[test]
fn an_operator_that_does_not_commute_keeps_the_order_sanitize() -> Result<()> {
    let x = values::<Map<u32>>(10_000, 7);
    let (upto, before) = scanned(&x, Map { a: 1, b: 0 }, |f, g| Compose.apply(f, g));
    for stream in streams()? {
        let buffer = stream.buffer_from(&x)?;
        let mut out = stream.buffer_uninit(10_000)?;
        inclusive_scan(&stream, &buffer, Compose, &mut out)?;
        assert_eq!(out.to_vec()?, upto);
        exclusive_scan(&stream, &buffer, Map { a: 1, b: 0 }, Compose, &mut out)?;
        assert_eq!(out.to_vec()?, before);
    }
    Ok(())
}

#[test]
fn computed_inputs_are_scanned() -> Result<()> {
    let stream = stream()?;
    let x = values::<u8>(30_000, 9);
    let mut out = stream.buffer_zeroed::<u8>(10_000)?;
    inclusive_scan(&stream, strided(&stream.buffer_from(&x)?, 3), Max, &mut out)?;
    let every_third: Vec<u8> = x.iter().step_by(3).copied().collect();
    assert_eq!(out.to_vec()?, scanned(&every_third, 0, u8::max).0);
    Ok(())
}

/// The vectors of the source have more items than 16 bytes of results.
#[test]
fn items_of_three_and_of_five_bytes_are_scanned() -> Result<()> {
    let stream = stream()?;
    let x = values::<u8>(30_001, 3);
    let sums = scanned(&x, 0, u8::wrapping_add).0;
    let x = stream.buffer_from(&x)?;
    let mut out = stream.buffer_zeroed::<[u8; 3]>(sums.len())?;
    inclusive_scan(&stream, map(&x, Times::<3>), AddEach, &mut out)?;
    assert!(out.to_vec()?.into_iter().eq(sums.iter().map(|&sum| [sum; 3])));
    let mut out = stream.buffer_zeroed::<[u8; 5]>(sums.len())?;
    inclusive_scan(&stream, map(&x, Times::<5>), AddEach, &mut out)?;
    assert!(out.to_vec()?.into_iter().eq(sums.iter().map(|&sum| [sum; 5])));
    Ok(())
}

#[test]
fn a_scan_is_captured_and_launched_again() -> Result<()> {
    let stream = stream()?;
    let data = values::<u32>(50_000, 6);
    let x = stream.buffer_from(&data)?;
    let mut out = stream.buffer_zeroed::<u32>(50_000)?;
    let mut workspace = Workspace::with_capacity(&stream, 1 << 20)?;
    let graph = stream.capture(|stream| inclusive_scan(Run::on(stream).with(&mut workspace), &x, Add, &mut out))?;
    for _ in 0..3 {
        graph.launch(&stream)?;
        assert_eq!(out.to_vec()?, scanned(&data, 0, u32::wrapping_add).0);
        out.copy_from(&[0; 50_000])?;
    }
    Ok(())
}

#[test]
fn a_scan_allocates_once_and_waits_for_nobody() -> Result<()> {
    let device = Device::emulator();
    let stream = device.stream()?;
    let x = stream.buffer_zeroed::<f32>(100_000)?;
    let mut out = stream.buffer_zeroed::<f32>(100_000)?;
    let before = device.counters();
    inclusive_scan(&stream, &x, Add, &mut out)?;
    let cost = device.counters().since(before);
    assert_eq!((cost.launches, cost.allocations, cost.synchronizations), (1, 1, 0));
    let before = device.counters();
    inclusive_scan(&stream, x.slice(..1000)?, Add, &mut out)?;
    assert_eq!(device.counters().since(before).launches, 1);
    Ok(())
}

/// The tiles are in three groups of the chain, which have 32 tiles, and a thread has several vectors. The totals could be combined in more
/// than one way. The emulators are not checked, because only such emulators begin blocks in other orders.
#[test]
fn scans_of_floats_have_the_same_bits_on_every_device_and_run() -> Result<()> {
    let round = scan_threads::<Span<f32>>() * scan_vector::<Span<f32>>();
    let len = 256 * round + 3;
    let tiles = ScanTiles::new::<Span<f32>>(len, 256);
    assert!(tiles.rounds > 1 && len / tiles.tile > 2 * 32, "{tiles:?}");
    let x: Vec<f32> = values::<u32>(len, 8).iter().map(|&x| x as f32 * 1e-5).collect();
    let mut bits = Vec::new();
    let emulator = |threads, seed| {
        let mut options = EmulatorOptions::default();
        (options.checked, options.threads, options.seed) = (false, threads, seed);
        Device::emulator_with(options)
    };
    let auto = Device::auto()?;
    let runs = if auto.is_gpu() { 5 } else { 1 };
    for (device, runs) in [(auto, runs), (emulator(1, None), 1), (emulator(3, Some(1)), 2), (emulator(7, Some(2)), 1)] {
        let stream = device.stream()?;
        let buffer = stream.buffer_from(&x)?;
        for _ in 0..runs {
            let mut sums = stream.buffer_zeroed::<f32>(x.len())?;
            inclusive_scan(&stream, &buffer, Add, &mut sums)?;
            bits.push(sums.to_vec()?.into_iter().map(f32::to_bits).collect::<Vec<_>>());
        }
    }
    assert!(bits.windows(2).all(|two| two[0] == two[1]));
    Ok(())
}

#[test]
fn more_items_than_thirty_two_bits_count_are_scanned() -> Result<()> {
    let stream = stream()?;
    // The emulator would take an hour for this length.
    let far = if stream.device().is_gpu() { 1usize << 32 } else { 100_000 };
    let len = far + 12_345;
    let mut x = stream.buffer_zeroed::<u8>(len)?;
    for (place, value) in [(5, 3), (far - 1, 4), (far + 7, 9)] {
        x.slice_mut(place..=place)?.copy_from(&[value])?;
    }
    let mut out = stream.buffer_zeroed::<u8>(len)?;
    for is_computed in [false, true] {
        if is_computed {
            out.as_mut_slice().set_zero(&stream)?;
            inclusive_scan(&stream, strided(&x, 1), Max, &mut out)?;
        } else {
            inclusive_scan(&stream, &x, Max, &mut out)?;
        }
        for (begin, expected) in [(4, [0, 3, 3]), (far - 2, [3, 4, 4]), (far + 6, [4, 9, 9]), (len - 3, [9; 3])] {
            assert_eq!(out.slice(begin..begin + 3)?.to_vec()?, expected, "from {begin}");
        }
    }
    Ok(())
}

/// Sums of −0 are −0, at any place of a tile and of the chain. Exclusive sums begin with the given value. A tuning value gives the longest
/// inputs more than 32 tiles, a group of the chain, with several vectors for each thread. In one tile, 4097 items are several vectors, too.
#[test]
fn sums_keep_a_negative_zero_sanitize() -> Result<()> {
    const MOST: usize = 100_001;
    let stream = stream()?;
    let mut tuning = Tuning::of(stream.device())?.clone();
    tuning.set(Parameter::ScanTiles, None, 64)?;
    for tiles in [ScanTiles::new::<Span<f32>>(MOST, 64), ScanTiles::new::<Span<f64>>(MOST, 64)] {
        assert!(tiles.rounds > 1 && tiles.len.div_ceil(tiles.tile) > 32, "{tiles:?}");
    }
    fn check<T, A, B>(stream: &Stream, tuning: &Tuning, len: usize, zeros: [T; 2]) -> Result<()>
    where
        T: InclusiveScan<Add, A> + ExclusiveScan<Add, B> + Arithmetic + Element + Copy + Into<f64>,
    {
        let run = || Run::on(stream).tuned(tuning);
        let ([negative, positive], skip) = (zeros, len % 4);
        let x = stream.buffer_from(&vec![negative; len + skip])?;
        let x = x.slice(skip..)?;
        let mut out = stream.buffer_from(&vec![T::ONE; len])?;
        let is = |found: Vec<T>, negative: bool| {
            found.into_iter().map(Into::into).all(|x| x == 0.0 && x.is_sign_negative() == negative)
        };
        inclusive_scan(run(), x, Add, &mut out)?;
        assert!(is(out.to_vec()?, true), "inclusive, {len} items");
        exclusive_scan(run(), x, negative, Add, &mut out)?;
        assert!(is(out.to_vec()?, true), "exclusive from -0, {len} items");
        exclusive_scan(run(), x, positive, Add, &mut out)?;
        assert!(is(out.to_vec()?, false), "exclusive from 0, {len} items");
        Ok(())
    }
    for len in [1, 2, 33, 4097, MOST] {
        check(&stream, &tuning, len, [-0.0f32, 0.0])?;
        check(&stream, &tuning, len, [-0.0f64, 0.0])?;
    }
    Ok(())
}
