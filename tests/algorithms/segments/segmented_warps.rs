//! Tests scans of the segments of few items, in one launch. Each segment has some lanes, a warp or a block.

use kernel_primitives::algorithms::{Parameter, Run, Tuning, segmented_exclusive_scan, segmented_inclusive_scan};
use kernel_primitives::functor::{Add, BinaryFn};
use kernel_primitives::input::{Counting, Span, Strided, counting};
use kernel_primitives::kernels::device::{
    SEGMENT_SCAN_WARPS_THREADS, segment_scan_lane_bits, segment_scan_warp_items, segment_tile_items,
};
use kernel_primitives::{Buffer, Device, Diagnosis, EmulatorOptions, Error, Result, Stream};

use crate::kernels::hostile::AddExactly;
use crate::kernels::{AddEach, Compose, Map};
use crate::segments::segmented::{offsets, sums, tiles};
use crate::support::{stream, streams, values};

/// The number of items of four bytes that a lane has in flight. The next constants are the items of the longest segment of a warp, and the
/// items that a block has in flight.
const LANE: usize = LONGEST / 64;
const LONGEST: usize = segment_scan_warp_items::<Span<u32>>();
const BLOCK: usize = SEGMENT_SCAN_WARPS_THREADS * LANE;

/// Returns the logarithm of the number of lanes, for scans without tiles.
fn lane_bits(len: usize, offsets: &[u32]) -> u32 {
    segment_scan_lane_bits::<Span<u32>>(len, offsets.len()).expect("some lanes have a segment")
}

#[test]
fn lanes_are_as_many_as_segments_are_long() {
    let bits = segment_scan_lane_bits::<Span<u32>>;
    for (len, offsets, expected) in [
        (0, 1, Some(0)),
        (80, 11, Some(0)),
        (81, 11, Some(1)),
        (16 << 16, (1 << 16) + 1, Some(1)),
        (128 * 10, 11, Some(4)),
        (1 << 20, 1025, Some(5)),
        (LONGEST * 3, 4, Some(5)),
        (LONGEST * 3 + 1, 4, Some(8)),
        (2 * BLOCK, 1, Some(8)),
        (2 * BLOCK * 7, 8, Some(8)),
        // Segments are too long on average, or there are too many items.
        (2 * BLOCK + 1, 1, None),
        (2 * BLOCK * 7 + 1, 8, None),
        (0, 8192, Some(0)),
        (0, 8193, None),
        (40_000, 10_000, Some(0)),
        (39_999, 10_000, None),
    ] {
        assert_eq!(bits(len, offsets), expected, "{len} items, {offsets} offsets");
    }
    // For bytes, a lane has two vectors of 16 in flight.
    assert_eq!(segment_scan_lane_bits::<Span<u8>>(160, 11), Some(0));
    assert_eq!(segment_scan_lane_bits::<Span<u8>>(161, 11), Some(1));
    assert_eq!(segment_scan_warp_items::<Span<[u64; 16]>>(), 64);
    // Items that are not read in vectors are fewer.
    for bits in [segment_scan_lane_bits::<Span<[u8; 3]>>, segment_scan_lane_bits::<Strided<Span<u32>>>] {
        assert_eq!([bits(4096, 1), bits(4097, 1)], [Some(8), None]);
    }
    assert_eq!([segment_tile_items::<Span<[u8; 3]>>(), segment_tile_items::<Strided<Span<u32>>>()], [512; 2]);
}

/// Compares both scans of an input and an output that begin anywhere in a vector.
fn check(stream: &Stream, offsets: &[u32], after: usize, (from, to): (usize, usize)) -> Result<()> {
    let len = offsets[offsets.len() - 1] as usize + after;
    let x = values::<u32>(from + len, len as u64);
    let (buffer, at) = (stream.buffer_from(&x)?, stream.buffer_from(offsets)?);
    let expected = sums(&x[from..], offsets, 5, u32::wrapping_add);
    let mut out = stream.buffer_from(&vec![77u32; to + len + 5])?;
    segmented_inclusive_scan(stream, buffer.slice(from..)?, &at, Add, out.slice_mut(to..)?)?;
    let found = out.to_vec()?;
    assert!(found[to..to + len] == expected[0], "from {from} to {to}: {:?}", &offsets[..offsets.len().min(9)]);
    assert_eq!((&found[..to], &found[to + len..]), (&[77; 4][..to], &[77; 5][..]));
    segmented_exclusive_scan(stream, buffer.slice(from..)?, &at, 5, Add, out.slice_mut(to..)?)?;
    let found = out.to_vec()?;
    assert!(found[to..to + len] == expected[1], "from {from} to {to}: {:?}", &offsets[..offsets.len().min(9)]);
    Ok(())
}

/// Each of the short segments has this number of lanes. Others have the most items for these lanes, for a warp and for one part of a block,
/// or one item more. There are also empty segments, and one of several parts of a block.
#[test]
fn segments_of_any_lengths_have_any_number_of_lanes() -> Result<()> {
    let stream = stream()?;
    for bits in 0..=5 {
        let lanes = 1 << bits;
        let most = 2 * lanes * LANE;
        let long = [0, 1, most, most + 1, 0, LONGEST, LONGEST + 1, 2 * BLOCK + 6, BLOCK, 1, 0, most / 2 + 1];
        let short = 4 * lanes + 1;
        let count = long.iter().sum::<usize>() / (4 * lanes - 1) + long.len();
        let lengths = long.into_iter().flat_map(|long| [long, short]).chain(vec![short; count]);
        let offsets = offsets(3, lengths);
        let len = offsets[offsets.len() - 1] as usize + 7;
        assert_eq!(lane_bits(len, &offsets), bits);
        check(&stream, &offsets, 7, (bits as usize % 4, bits as usize / 2 % 4))?;
    }
    Ok(())
}

#[test]
fn blocks_have_a_segment_each() -> Result<()> {
    let stream = stream()?;
    for (i, (first, lengths, after)) in [
        (0, vec![2 * BLOCK], 0),
        (1, vec![2 * BLOCK - 9, 2 * BLOCK + 3, LONGEST + 1, 0, 1], 0),
        (5000, vec![1], 7000),
        (0, vec![BLOCK, BLOCK + 1, BLOCK - 1], 1),
        (9, vec![], 2 * BLOCK - 9),
        (2, vec![3 * BLOCK + 1, 0, 5 * LONGEST, 2 * BLOCK], 3),
    ]
    .into_iter()
    .enumerate()
    {
        let offsets = offsets(first, lengths);
        let len = offsets[offsets.len() - 1] as usize + after;
        assert_eq!(1usize << lane_bits(len, &offsets), SEGMENT_SCAN_WARPS_THREADS);
        check(&stream, &offsets, after, (i % 4, i / 2 % 4))?;
    }
    Ok(())
}

/// Segments begin and end anywhere in a vector, and so do the input and the output.
#[test]
fn segments_begin_anywhere_in_a_vector() -> Result<()> {
    let stream = stream()?;
    for from in 0..4 {
        for to in 0..4 {
            check(&stream, &offsets(to, [1, 2, 3, 4, 5, 6, 7, 8, 0, 9, 31, 33]), from, (from, to))?;
        }
        check(&stream, &[0], 0, (from, 0))?;
        check(&stream, &[1], 0, (from, 1))?;
        check(&stream, &offsets(from, [255, 257, 256, 1021]), 0, (0, from))?;
    }
    Ok(())
}

/// Vectors have 16, 8, 4, 2 and one item, of which 8, 4, 2 or 1 are in flight.
#[test]
fn items_of_each_size_are_scanned_without_a_chain_sanitize() -> Result<()> {
    let stream = stream()?;
    macro_rules! check {
        ($($t:ty: $op:expr, $plain:expr, $from:expr $(, $exclusive:ident)?;)*) => {$({
            let (warp, from) = (segment_scan_warp_items::<Span<$t>>(), $from);
            for short in [0, 300] {
                let lengths = [0, 3, 1, 1, 2, warp, warp + 1, 20, 4 * warp + 5, 1, 100, warp / 2 + 1];
                let offsets = offsets(2, lengths.into_iter().chain(vec![3; short]));
                let len = offsets[offsets.len() - 1] as usize + 9;
                assert!(segment_scan_lane_bits::<Span<$t>>(len, offsets.len()).is_some());
                let at = stream.buffer_from(&offsets)?;
                let x: Vec<$t> = values::<u8>(len + 1, 8).into_iter().map(from).collect();
                let expected = sums(&x[1..], &offsets, from(7), $plain);
                let buffer = stream.buffer_from(&x)?;
                let mut out = stream.buffer_zeroed::<$t>(len)?;
                segmented_inclusive_scan(&stream, buffer.slice(1..)?, &at, $op, &mut out)?;
                assert!(out.to_vec()? == expected[0], stringify!($t));
                $(
                    $exclusive(&stream, buffer.slice(1..)?, &at, from(7), $op, &mut out)?;
                    assert!(out.to_vec()? == expected[1], stringify!($t));
                )?
            }
        })*};
    }
    check! {
        u8: Add, u8::wrapping_add, |x: u8| x, segmented_exclusive_scan;
        u16: Add, u16::wrapping_add, |x: u8| x as u16, segmented_exclusive_scan;
        i32: Add, i32::wrapping_add, |x: u8| x as i32, segmented_exclusive_scan;
        f64: Add, |a, b| a + b, |x: u8| x as f64, segmented_exclusive_scan;
        [u64; 2]: AddEach, |a, b| AddEach.apply(a, b), |x: u8| [x as u64, 7], segmented_exclusive_scan;
        [u64; 4]: AddEach, |a, b| AddEach.apply(a, b), |x: u8| [x as u64; 4];
        [u64; 8]: AddEach, |a, b| AddEach.apply(a, b), |x: u8| [x as u64; 8];
        [u64; 16]: AddEach, |a, b| AddEach.apply(a, b), |x: u8| [x as u64; 16];
    }
    Ok(())
}

#[test]
fn segments_of_items_that_are_computed_are_scanned() -> Result<()> {
    let stream = stream()?;
    for short in [0, 400] {
        let offsets = offsets(4, [0, 10, 3000, 1, 700, 20_000, 5].into_iter().chain(vec![7; short]));
        let len = offsets[offsets.len() - 1] as usize + 3;
        assert!(segment_scan_lane_bits::<Counting<u64>>(len, offsets.len()).is_some());
        let mut out = stream.buffer_zeroed::<u64>(len)?;
        segmented_inclusive_scan(&stream, counting(0u64, len), &stream.buffer_from(&offsets)?, Add, &mut out)?;
        let x: Vec<u64> = (0..len as u64).collect();
        assert!(out.to_vec()? == sums(&x, &offsets, 0, |a, b| a + b)[0]);
    }
    Ok(())
}

/// This also runs on the other emulators. The lanes of one run in random order, and are checked for races. Long segments have a block each,
/// others have a warp, and there are short ones.
#[test]
fn lanes_keep_the_order_of_an_operator_that_does_not_commute_sanitize() -> Result<()> {
    let warp = segment_scan_warp_items::<Span<Map<u32>>>();
    let first = Map { a: 3, b: 1 };
    for (short, bits) in [(0, 8), (10, 5), (1500, 3)] {
        let long = [3 * warp, 0, warp + 1, 9 * warp, 2];
        let offsets: Vec<u64> = offsets(5, long.into_iter().chain(vec![9; short])).into_iter().map(u64::from).collect();
        let len = offsets[offsets.len() - 1] as usize + 3;
        assert_eq!(segment_scan_lane_bits::<Span<Map<u32>>>(len, offsets.len()), Some(bits));
        let x = values::<Map<u32>>(len, 7);
        let is_head = |i: usize| i == 0 || offsets.binary_search(&(i as u64)).is_ok();
        let mut upto = x.clone();
        let mut before = vec![first; len];
        for i in (0..len).filter(|&i| !is_head(i)) {
            before[i] = Compose.apply(first, upto[i - 1]);
            upto[i] = Compose.apply(upto[i - 1], x[i]);
        }
        for stream in streams()? {
            let (buffer, at) = (stream.buffer_from(&x)?, stream.buffer_from(&offsets)?);
            let mut out = stream.buffer_uninit(len)?;
            segmented_inclusive_scan(&stream, &buffer, &at, Compose, &mut out)?;
            assert!(out.to_vec()? == upto);
            segmented_exclusive_scan(&stream, &buffer, &at, first, Compose, &mut out)?;
            assert!(out.to_vec()? == before);
        }
    }
    Ok(())
}

/// In a vector, a lane reads items of other segments beside its own.
#[test]
fn not_a_number_stays_in_its_segment() -> Result<()> {
    let stream = stream()?;
    let offsets = offsets(1, [5, 6, 7, 70, 1, 1, 1, 3000, 2, 9, 500, 17]);
    let len = offsets[offsets.len() - 1] as usize + 2;
    let segment = |i: usize| offsets.partition_point(|&at| at as usize <= i);
    for odd in [0, 1] {
        let x: Vec<f32> = (0..len).map(|i| if segment(i) % 2 == odd { f32::NAN } else { 1.0 }).collect();
        let mut out = stream.buffer_zeroed::<f32>(len)?;
        segmented_inclusive_scan(&stream, &stream.buffer_from(&x)?, &stream.buffer_from(&offsets)?, Add, &mut out)?;
        let [expected, _] = sums(&x, &offsets, 0.0, |a, b| a + b);
        let is_as_expected = |(a, b): (&f32, &f32)| a == b || a.is_nan() && b.is_nan();
        assert!(out.to_vec()?.iter().zip(&expected).all(is_as_expected));
    }
    Ok(())
}

/// Segments have a block each, or lanes, or are hidden among empty segments.
#[test]
fn wrong_offsets_of_few_items_are_faults() -> Result<()> {
    let mut hidden = vec![4; 5000];
    hidden[2500] = 9;
    for (len, offsets, numbers) in [
        (9000, vec![0, 7, 5], [7, 5]),
        (9000, vec![0, 5, 9001], [9001, 9000]),
        (9000, vec![9001], [9001, 9000]),
        (10, vec![0, 7, 5], [7, 5]),
        (10, vec![11], [11, 10]),
        (0, vec![1], [1, 0]),
        (9000, hidden, [9, 4]),
    ] {
        let stream = stream()?;
        let _ = lane_bits(len, &offsets);
        let (x, at) = (stream.buffer_zeroed::<u32>(len)?, stream.buffer_from(&offsets)?);
        let mut out = stream.buffer_zeroed::<u32>(len)?;
        let result = segmented_inclusive_scan(&stream, &x, &at, Add, &mut out);
        match result.and_then(|()| stream.synchronize()) {
            Err(Error::Fault(fault)) => match &fault.diagnosis {
                Diagnosis::Raised(raised) => assert_eq!(raised.args, numbers, "{fault}"),
                _ => panic!("{fault}"),
            },
            other => panic!("{other:?}"),
        }
    }
    Ok(())
}

/// This runs by tiles, and as for few items. Offsets are below zero, just after the input, and as large as possible.
#[test]
fn offsets_of_each_type_that_no_input_has_are_faults() -> Result<()> {
    let tuning = tiles()?;
    macro_rules! check {
        ($($o:ty: $($wrong:expr),*;)*) => {$(for wrong in [$($wrong),*] {
            let all: [[$o; 3]; 3] = [[wrong, 3, 9], [0, wrong, 9], [0, 3, wrong]];
            for (offsets, by_tiles) in all.into_iter().flat_map(|offsets| [(offsets, true), (offsets, false)]) {
                let stream = stream()?;
                let (x, at) = (stream.buffer_zeroed::<u32>(10)?, stream.buffer_from(&offsets)?);
                let mut out = stream.buffer_zeroed::<u32>(10)?;
                let run = if by_tiles { Run::on(&stream).tuned(&tuning) } else { Run::on(&stream) };
                let result = segmented_inclusive_scan(run, &x, &at, Add, &mut out);
                match result.and_then(|()| stream.synchronize()) {
                    Err(Error::Fault(fault)) if matches!(fault.diagnosis, Diagnosis::Raised(_)) => {}
                    other => panic!("{offsets:?}, by tiles: {by_tiles}: {other:?}"),
                }
            }
        })*};
    }
    check! {
        u32: 11, u32::MAX;
        u64: 11, 1 << 32, u64::MAX;
        i32: 11, -1, i32::MIN, i32::MAX;
        i64: 11, -1, 1 << 32, i64::MIN, i64::MAX;
    }
    Ok(())
}

/// It takes neither temporary memory nor a workspace. The number of lanes comes from the lengths at the capture, for any later segments.
#[test]
fn a_graph_has_any_segments_and_no_memory() -> Result<()> {
    let device = Device::emulator();
    let stream = device.stream()?;
    let len = 2 * BLOCK + 100;
    let shapes = [
        offsets(0, vec![len / 100; 100]),
        offsets(0, [0; 50].into_iter().chain([len]).chain([0; 49])),
        offsets(7, [1; 99].into_iter().chain([LONGEST + 1])),
        vec![len as u32; 101],
    ];
    let x = values::<u32>(len, 5);
    let expected = |offsets: &[u32]| sums(&x, offsets, 0, u32::wrapping_add)[0].clone();
    let (buffer, mut at) = (stream.buffer_from(&x)?, stream.buffer_from(&shapes[0])?);
    let mut out = stream.buffer_zeroed::<u32>(len)?;
    let scan = |stream: &Stream, at: &Buffer<u32>, out: &mut Buffer<u32>| {
        segmented_inclusive_scan(stream, &buffer, at, Add, out)
    };
    let before = device.counters();
    scan(&stream, &at, &mut out)?;
    let cost = device.counters().since(before);
    assert_eq!((cost.launches, cost.allocations, cost.synchronizations), (1, 0, 0));
    assert!(out.to_vec()? == expected(&shapes[0]));
    let graph = stream.capture(|stream| scan(stream, &at, &mut out))?;
    for offsets in shapes.iter().rev() {
        at.copy_from(offsets)?;
        out.as_mut_slice().set_zero(&stream)?;
        graph.launch(&stream)?;
        assert!(out.to_vec()? == expected(offsets));
    }
    Ok(())
}

/// If there is more than one tile, the scan takes memory for the chain.
#[test]
fn a_tuning_value_says_how_many_items_need_no_chain() -> Result<()> {
    // This is not a GPU, because all tests share its counts.
    let device = Device::emulator();
    let stream = device.stream()?;
    let (len, mut tuning) = (30_000, Tuning::of(&device)?.clone());
    let x = values::<u32>(len, 5);
    let offsets = offsets(0, vec![100; 300]);
    let (buffer, at) = (stream.buffer_from(&x)?, stream.buffer_from(&offsets)?);
    let mut out = stream.buffer_zeroed::<u32>(len)?;
    for (most, has_chain) in [(0, true), (len - 1, true), (len, false)] {
        tuning.set(Parameter::ScanSegments, Some(4), most as u32)?;
        let before = device.counters();
        segmented_inclusive_scan(Run::on(&stream).tuned(&tuning), &buffer, &at, Add, &mut out)?;
        assert_eq!(device.counters().since(before).allocations > 0, has_chain, "{most}");
        assert!(out.to_vec()? == sums(&x, &offsets, 0, u32::wrapping_add)[0], "{most}");
    }
    Ok(())
}

#[test]
fn sums_of_few_items_have_the_same_bits_on_every_device() -> Result<()> {
    let offsets = offsets(3, [5, 3 * BLOCK, 1, 0, LONGEST + 7].into_iter().chain(vec![100; 50]));
    let len = offsets[offsets.len() - 1] as usize + 3;
    let _ = lane_bits(len, &offsets);
    let x: Vec<f32> = values::<u32>(len, 8).iter().map(|&x| x as f32 * 1e-5).collect();
    let mut bits = Vec::new();
    let emulators = [1, 7].map(|threads| {
        let mut options = EmulatorOptions::default();
        (options.checked, options.threads) = (false, threads);
        Device::emulator_with(options)
    });
    for device in emulators.into_iter().chain(Some(Device::auto()?).filter(Device::is_gpu)) {
        let stream = device.stream()?;
        let (buffer, at) = (stream.buffer_from(&x)?, stream.buffer_from(&offsets)?);
        let mut sums = stream.buffer_zeroed::<f32>(len)?;
        segmented_inclusive_scan(&stream, &buffer, &at, Add, &mut sums)?;
        bits.push(sums.to_vec()?.into_iter().map(f32::to_bits).collect::<Vec<_>>());
    }
    assert!(bits.windows(2).all(|two| two[0] == two[1]));
    Ok(())
}

/// The first items of two segments have a sum that is too large. Lanes, a warp, a block or tiles have segments, which begin anywhere in a
/// vector.
#[test]
fn an_operator_gets_only_items_of_one_segment() -> Result<()> {
    let stream = stream()?;
    for (short, first) in [(100, 0), (100, 1), (1500, 2), (1500, 3)] {
        let some = [1, 1, 1, 1, 5, LONGEST + 1, 3, BLOCK, 2];
        let offsets = offsets(first, some.into_iter().chain(vec![1; short]).chain([3; 50]));
        let len = offsets[offsets.len() - 1] as usize;
        lane_bits(len, &offsets);
        let is_head = |i: usize| i == 0 || offsets.binary_search(&(i as u32)).is_ok();
        let x: Vec<u32> = (0..len).map(|i| if is_head(i) { 3_000_000_000 } else { 1 }).collect();
        let (buffer, at) = (stream.buffer_from(&x)?, stream.buffer_from(&offsets)?);
        let mut out = stream.buffer_zeroed::<u32>(len)?;
        for tuning in [Tuning::of(stream.device())?, &tiles()?] {
            segmented_inclusive_scan(Run::on(&stream).tuned(tuning), &buffer, &at, AddExactly, &mut out)?;
            let [inclusive, exclusive] = sums(&x, &offsets, 0, |a, b| a + b);
            assert!(out.to_vec()? == inclusive);
            segmented_exclusive_scan(Run::on(&stream).tuned(tuning), &buffer, &at, 0, AddExactly, &mut out)?;
            assert!(out.to_vec()? == exclusive);
        }
    }
    Ok(())
}
