//! Tests reductions of segments against iterators over each segment.

use kernel_primitives::algorithms::{
    Parameter, Run, Tuning, segmented_exclusive_scan, segmented_inclusive_scan, segmented_reduce, segmented_sort,
};
use kernel_primitives::functor::{Add, All, ArgMax, BinaryFn, Less, MaxOf, MinOf, Reduction, Sum};
use kernel_primitives::input::{Counting, Span, counting, map};
use kernel_primitives::kernels::device::{SEGMENT_SCAN_OFFSETS, SegmentScanItems, segment_tile_items};
use kernel_primitives::{Device, Diagnosis, EmulatorOptions, Error, Result, Stream, f16};

use crate::kernels::{AddEach, Compose, ManyEmpty, Map, Moments};
use crate::support::{stream, values};

/// Returns small whole numbers, whose sums are exact in any order.
fn whole(len: usize) -> Vec<f32> {
    values::<u8>(len, 3).iter().map(|&x| x as f32 - 100.0).collect()
}

/// Returns the offsets of segments with these lengths, starting at `first`.
pub fn offsets(first: usize, lengths: impl IntoIterator<Item = usize>) -> Vec<u32> {
    let mut end = first as u32;
    let ends = lengths.into_iter().map(|length| {
        end += length as u32;
        end
    });
    [first as u32].into_iter().chain(ends).collect()
}

/// A number of empty segments that is so large that they cannot each have a warp, and other kernels reduce them.
const EMPTY: usize = 9000;

/// Adds `count` empty segments: half of them in the middle, and the rest at the end.
fn with_empty(offsets: &[u32], count: usize) -> Vec<u32> {
    let (before, after) = offsets.split_at(offsets.len().div_ceil(2));
    let empty = |offsets: &[u32], count| [offsets[offsets.len() - 1]].repeat(count);
    [before, &empty(before, count / 2), after, &empty(offsets, count - count / 2)].concat()
}

/// Returns offsets of segments of many lengths: all equal, none, one huge among small ones, and any lengths between. Tiles of reductions
/// have 2048 items, and a thread reads eight items of a segment, so a warp reads the huge segments. The longest has more tiles of scans
/// than a group of the chain, 32.
fn shapes() -> Vec<Vec<u32>> {
    let random = |most: u32, count| values::<u32>(count, 7).into_iter().map(move |x| (x % most) as usize);
    let of_scans = SegmentScanItems::<Span<f32>>::tiles(1, 256).tile;
    assert!(segment_tile_items::<Span<f32>>() == 2048 && of_scans >= 2048);
    vec![
        offsets(0, [1024; 20]),
        offsets(0, [0; 100]),
        offsets(0, [1; 5000]),
        offsets(3, [16, 17, 0, 0, 31, 33, 2047, 2048, 2049, 0, 1]),
        offsets(5, (0..100).chain([20_000]).chain(0..50)),
        offsets(1, [2047, 2048, 0, 2048, 4096, 0]),
        offsets(0, random(10, 5000)),
        offsets(7, random(300, 150)),
        offsets(0, random(5000, 12)),
        offsets(100, [33 * of_scans + 7]),
    ]
}

#[test]
fn sums_of_segments_of_any_lengths() -> Result<()> {
    let stream = stream()?;
    for offsets in shapes() {
        for (skipped, behind, empty) in [(0, 0, 0), (1, 3, 0), (0, 0, EMPTY), (1, 3, EMPTY)] {
            let len = offsets[offsets.len() - 1] as usize + behind;
            let offsets = with_empty(&offsets, empty);
            let x = whole(skipped + len);
            let (buffer, at) = (stream.buffer_from(&x)?, stream.buffer_from(&offsets)?);
            let x = &x[skipped..];
            let mut out = stream.buffer_from(&vec![0.5f32; offsets.len()])?;
            segmented_reduce(&stream, buffer.slice(skipped..)?, &at, Sum, &mut out)?;
            let sums = offsets.windows(2).map(|ends| x[ends[0] as usize..ends[1] as usize].iter().sum());
            // The place after the sums is unchanged.
            assert!(out.to_vec()? == sums.chain([0.5]).collect::<Vec<f32>>(), "{:?}", &offsets[..offsets.len().min(9)]);
        }
    }
    Ok(())
}

/// There are more tiles than a warp looks at in one turn, 256, more than it reads, and more than a block of the second kernel has, 1024.
#[test]
fn one_segment_in_thousands_of_tiles_has_its_sum() -> Result<()> {
    let stream = stream()?;
    let tile = segment_tile_items::<Counting<u64>>() as u32;
    let ends = [0, 5, 270 * tile + 7, 1300 * tile - 9, 1300 * tile - 9, 1300 * tile + 990];
    let mut out = stream.buffer_zeroed::<u64>(5)?;
    segmented_reduce(&stream, counting(0u64, 1301 * tile as usize), &stream.buffer_from(&ends)?, Sum, &mut out)?;
    let sum = |end: u32| end as u64 * (end as u64).saturating_sub(1) / 2;
    assert_eq!(out.to_vec()?, ends.windows(2).map(|ends| sum(ends[1]) - sum(ends[0])).collect::<Vec<_>>());
    Ok(())
}

#[test]
fn every_type_and_reduction_sanitize() -> Result<()> {
    let stream = stream()?;
    let offsets = offsets(2, [0, 3, 5000, 20, 1, 0, 300]);
    for empty in [0, EMPTY] {
        every_type_and_reduction(&stream, &with_empty(&offsets, empty))?;
    }
    Ok(())
}

fn every_type_and_reduction(stream: &Stream, offsets: &[u32]) -> Result<()> {
    let at = stream.buffer_from(offsets)?;
    let x = whole(5400);
    let segments: Vec<&[f32]> = offsets.windows(2).map(|ends| &x[ends[0] as usize..ends[1] as usize]).collect();
    let sums: Vec<f32> = segments.iter().map(|segment| segment.iter().sum()).collect();
    let buffer = stream.buffer_from(&x)?;
    let mut out = stream.buffer_zeroed::<f32>(sums.len())?;
    segmented_reduce(stream, &buffer, &at, MinOf, &mut out)?;
    let least = |segment: &&[f32]| segment.iter().copied().fold(f32::INFINITY, f32::min);
    assert_eq!(out.to_vec()?, segments.iter().map(least).collect::<Vec<_>>());
    segmented_reduce(stream, &buffer, &at, MaxOf, &mut out)?;
    let greatest = |segment: &&[f32]| segment.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    assert_eq!(out.to_vec()?, segments.iter().map(greatest).collect::<Vec<_>>());

    let wide = stream.buffer_from(&offsets.iter().map(|&offset| offset as u64).collect::<Vec<_>>())?;
    segmented_reduce(stream, &buffer, &wide, Sum, &mut out)?;
    assert_eq!(out.to_vec()?, sums);

    let mut out = stream.buffer_zeroed::<f64>(sums.len())?;
    segmented_reduce(
        stream,
        &stream.buffer_from(&x.iter().map(|&x| x as f64).collect::<Vec<_>>())?,
        &at,
        Sum,
        &mut out,
    )?;
    assert_eq!(out.to_vec()?, sums.iter().map(|&sum| sum as f64).collect::<Vec<_>>());
    let mut out = stream.buffer_zeroed::<i32>(sums.len())?;
    segmented_reduce(
        stream,
        &stream.buffer_from(&x.iter().map(|&x| x as i32).collect::<Vec<_>>())?,
        &at,
        Sum,
        &mut out,
    )?;
    assert_eq!(out.to_vec()?, sums.iter().map(|&sum| sum as i32).collect::<Vec<_>>());
    Ok(())
}

#[test]
fn the_index_of_an_item_is_its_place_in_the_segment() -> Result<()> {
    let stream = stream()?;
    let x = values::<u8>(30_000, 4);
    for empty in [0, EMPTY] {
        let offsets = with_empty(&offsets(9, [0, 3, 20_000, 50, 1, 0, 300]), empty);
        let mut out = stream.buffer_zeroed(7 + empty)?;
        segmented_reduce(&stream, &stream.buffer_from(&x)?, &stream.buffer_from(&offsets)?, ArgMax, &mut out)?;
        for (i, largest) in out.to_vec()?.into_iter().enumerate() {
            let segment = &x[offsets[i] as usize..offsets[i + 1] as usize];
            let expected = segment.iter().max().map(|max| segment.iter().position(|x| x == max).expect("is there"));
            assert_eq!(largest.index(), expected.map_or(u64::MAX, |index| index as u64), "{i}");
        }
    }
    Ok(())
}

#[test]
fn offsets_that_decrease_or_leave_the_input_are_faults() -> Result<()> {
    for offsets in [vec![0u32, 5, 4, 9], vec![0, 9, 11], vec![11, 11], vec![3, 0, 10]] {
        let stream = stream()?;
        let x = stream.buffer_from(&whole(10))?;
        let mut out = stream.buffer_zeroed::<f32>(offsets.len() - 1)?;
        let at = stream.buffer_from(&offsets)?;
        let result = segmented_reduce(&stream, &x, &at, Sum, &mut out).and_then(|()| stream.synchronize());
        assert!(
            matches!(&result, Err(Error::Fault(fault)) if matches!(fault.diagnosis, Diagnosis::Raised(_))),
            "{result:?}"
        );
    }
    Ok(())
}

#[test]
fn no_place_for_a_segment_and_no_offsets_are_errors() -> Result<()> {
    let stream = stream()?;
    let x = stream.buffer_zeroed::<f32>(9)?;
    let offsets = stream.buffer_from(&[0u32, 3, 9])?;
    let mut out = stream.buffer_zeroed::<f32>(1)?;
    let error = segmented_reduce(&stream, &x, &offsets, Sum, &mut out).unwrap_err();
    assert!(matches!(error, Error::LengthMismatch { first_len: 2, second_len: 1, .. }), "{error}");
    let error = segmented_reduce(&stream, &x, offsets.slice(..0)?, Sum, &mut out).unwrap_err();
    assert!(matches!(error, Error::LengthMismatch { first_len: 1, second_len: 0, .. }), "{error}");
    segmented_reduce(&stream, &x, offsets.slice(..1)?, Sum, &mut out)
}

/// Returns the inclusive sums of segments, and the exclusive sums, starting with `first`.
pub fn sums<T: Copy + Default>(x: &[T], offsets: &[u32], first: T, add: impl Fn(T, T) -> T) -> [Vec<T>; 2] {
    let mut sums = [vec![], vec![]];
    let ends = offsets.iter().map(|&end| end as usize);
    for (begin, end) in [0].into_iter().chain(ends.clone()).zip(ends.chain([x.len()])) {
        let mut sum = T::default();
        for &x in &x[begin..end] {
            sums[1].push(add(first, sum));
            sum = add(sum, x);
            sums[0].push(sum);
        }
    }
    sums
}

/// Returns tuning values that use tiles for any number of items.
pub fn tiles() -> Result<Tuning> {
    let mut tuning = Tuning::of(stream()?.device())?.clone();
    tuning.set(Parameter::ScanSegments, None, 0)?;
    Ok(tuning)
}

#[test]
fn scans_begin_anew_with_each_segment() -> Result<()> {
    scans_of_shapes(&tiles()?)
}

/// These are the scans of few items, which have no tiles.
#[test]
fn scans_of_few_items_begin_anew_with_each_segment() -> Result<()> {
    scans_of_shapes(&Tuning::of(stream()?.device())?.clone())
}

/// The tiles are those of inputs that are so long that all tiles are long.
#[test]
fn scans_of_long_tiles_begin_anew_with_each_segment() -> Result<()> {
    let mut tuning = tiles()?;
    tuning.set(Parameter::RunTiles, None, 1)?;
    scans_of_shapes(&tuning)
}

fn scans_of_shapes(tuning: &Tuning) -> Result<()> {
    let stream = stream()?;
    let run = || Run::on(&stream).tuned(tuning);
    for (i, offsets) in shapes().into_iter().enumerate() {
        let (skipped, len) = (i % 2, offsets[offsets.len() - 1] as usize + 3);
        let x = whole(skipped + len);
        let (buffer, at) = (stream.buffer_from(&x)?, stream.buffer_from(&offsets)?);
        let expected = sums(&x[skipped..], &offsets, 5.0, |a, b| a + b);
        let mut out = stream.buffer_zeroed::<f32>(len)?;
        segmented_inclusive_scan(run(), buffer.slice(skipped..)?, &at, Add, &mut out)?;
        assert!(out.to_vec()? == expected[0], "{:?}", &offsets[..offsets.len().min(9)]);
        segmented_exclusive_scan(run(), buffer.slice(skipped..)?, &at, 5.0, Add, &mut out)?;
        assert!(out.to_vec()? == expected[1], "{:?}", &offsets[..offsets.len().min(9)]);
    }
    Ok(())
}

/// Vectors have 8, 4 and 2 items, and a word of marks has 4 items.
#[test]
fn scans_of_items_of_any_size_sanitize() -> Result<()> {
    let (stream, tuning) = (stream()?, tiles()?);
    let run = || Run::on(&stream).tuned(&tuning);
    let offsets = offsets(2, [0, 3, 1, 1, 1, 2, 5000, 20, 1, 0, 300]);
    let at = stream.buffer_from(&offsets)?;
    macro_rules! check {
        ($($t:ty, $add:expr;)*) => {$({
            let x: Vec<$t> = values::<u8>(5400, 8).into_iter().map(|x| x as $t).collect();
            let expected = sums(&x, &offsets, 7 as $t, $add);
            let buffer = stream.buffer_from(&x)?;
            let mut out = stream.buffer_zeroed::<$t>(x.len())?;
            segmented_inclusive_scan(run(), &buffer, &at, Add, &mut out)?;
            assert!(out.to_vec()? == expected[0], stringify!($t));
            segmented_exclusive_scan(run(), &buffer, &at, 7 as $t, Add, &mut out)?;
            assert!(out.to_vec()? == expected[1], stringify!($t));
        })*};
    }
    check! {
        u8, u8::wrapping_add;
        u16, u16::wrapping_add;
        u32, u32::wrapping_add;
        f64, |a, b| a + b;
    }
    Ok(())
}

/// The number of empty segments is near the number that a block checks. They are at the beginning, inside and at the end of an input of one
/// tile, of several tiles, and of no tile.
#[test]
fn any_number_of_empty_segments_changes_nothing() -> Result<()> {
    let (stream, tuning) = (stream()?, tiles()?);
    let tile = SegmentScanItems::<Span<u32>>::tiles(1, 256).tile;
    for len in [0, 1, 100, 3 * tile + 1] {
        let x = values::<u32>(len, 9);
        for place in [0, len / 2, (2 * tile).min(len), len] {
            for empty in [200, SEGMENT_SCAN_OFFSETS - 2, SEGMENT_SCAN_OFFSETS - 1, 5 * SEGMENT_SCAN_OFFSETS] {
                let mut offsets = vec![0, (place / 3) as u32];
                offsets.extend(vec![place as u32; empty]);
                offsets.push((place + (len - place) / 3) as u32);
                let at = stream.buffer_from(&offsets)?;
                let mut out = stream.buffer_zeroed::<u32>(len)?;
                let [expected, _] = sums(&x, &offsets, 0, u32::wrapping_add);
                // Tiles are used for more segments in any case.
                let runs = [Run::on(&stream).tuned(&tuning), Run::on(&stream)];
                for run in runs.into_iter().take(if empty == 200 { 2 } else { 1 }) {
                    segmented_inclusive_scan(run, &stream.buffer_from(&x)?, &at, Add, &mut out)?;
                    assert!(out.to_vec()? == expected, "{empty} at {place} of {len}");
                }
            }
        }
    }
    Ok(())
}

#[test]
fn segments_are_scanned_in_order_sanitize() -> Result<()> {
    let (stream, tuning) = (stream()?, tiles()?);
    let run = || Run::on(&stream).tuned(&tuning);
    let offsets = [0u64, 3, 3, 700, 5000];
    let x: Vec<Map<u32>> = (0..5000).map(|i| Map { a: 2 * (i % 7) + 1, b: i }).collect();
    let (buffer, at) = (stream.buffer_from(&x)?, stream.buffer_from(&offsets)?);
    let mut out = stream.buffer_from(&x)?;
    segmented_inclusive_scan(run(), &buffer, &at, Compose, &mut out)?;
    let mut expected = x.clone();
    for i in (1..5000).filter(|i| !offsets.contains(i)) {
        expected[i as usize] = Compose.apply(expected[i as usize - 1], x[i as usize]);
    }
    assert!(out.to_vec()? == expected);
    let first = Map { a: 3, b: 1 };
    segmented_exclusive_scan(run(), &buffer, &at, first, Compose, &mut out)?;
    let before = |i: usize| if offsets.contains(&(i as u64)) { first } else { Compose.apply(first, expected[i - 1]) };
    assert!(out.to_vec()? == (0..5000).map(before).collect::<Vec<_>>());
    Ok(())
}

/// If they were counted in 32 bits, 2^32 offsets between two items would be none. The emulator has fewer offsets, because it looks at all
/// of them one by one.
#[test]
fn any_number_of_empty_segments_parts_two_items() -> Result<()> {
    let stream = stream()?;
    let most = if stream.device().is_gpu() { 1u64 << 32 } else { 1 << 16 };
    let x = stream.buffer_from(&[1u32; 300])?;
    for times in [1, 33, most - 1, most, most + 1] {
        let offsets = map(counting(0u64, times as usize + 2), ManyEmpty { times, items: 300 });
        let mut out = stream.buffer_zeroed(300)?;
        segmented_inclusive_scan(&stream, &x, offsets, Add, &mut out)?;
        let expected: Vec<u32> = [1].into_iter().chain(1..300).collect();
        assert_eq!(out.to_vec()?, expected, "{times} offsets");
    }
    Ok(())
}

/// This runs by tiles, and as for few items.
#[test]
fn offsets_of_each_type_are_taken() -> Result<()> {
    let (stream, tuning) = (stream()?, tiles()?);
    let tile = SegmentScanItems::<Span<u32>>::tiles(1, 256).tile;
    let offsets = offsets(1, [5, 0, tile, 3, tile - 5]);
    let x = values::<u32>(2 * tile + 9, 4);
    let buffer = stream.buffer_from(&x)?;
    let [expected, _] = sums(&x, &offsets, 0, u32::wrapping_add);
    macro_rules! check {
        ($($o:ty),*) => {$({
            let at = stream.buffer_from(&offsets.iter().map(|&at| at as $o).collect::<Vec<_>>())?;
            for run in [Run::on(&stream).tuned(&tuning), Run::on(&stream)] {
                let mut out = stream.buffer_zeroed::<u32>(x.len())?;
                segmented_inclusive_scan(run, &buffer, &at, Add, &mut out)?;
                assert!(out.to_vec()? == expected, stringify!($o));
            }
        })*};
    }
    check!(u32, u64, i32, i64);
    Ok(())
}

#[test]
fn large_items_are_scanned_by_tiles() -> Result<()> {
    let (stream, tuning) = (stream()?, tiles()?);
    let (x, offsets) = (values::<[u64; 16]>(1000, 3), offsets(1, [5, 0, 700]));
    let (buffer, at) = (stream.buffer_from(&x)?, stream.buffer_from(&offsets)?);
    let mut out = stream.buffer_zeroed::<[u64; 16]>(x.len())?;
    segmented_inclusive_scan(Run::on(&stream).tuned(&tuning), &buffer, &at, AddEach, &mut out)?;
    assert!(out.to_vec()? == sums(&x, &offsets, [0; 16], |a, b| AddEach.apply(a, b))[0]);
    Ok(())
}

/// One block has all tiles, or there are two or seven blocks at once.
#[test]
fn sums_of_segments_have_the_same_bits_for_any_number_of_blocks() -> Result<()> {
    let tuning = tiles()?;
    let tile = SegmentScanItems::<Span<f32>>::tiles(1, 256).tile;
    let offsets = offsets(3, [5, 2 * tile, 1, 0, 100]);
    let x: Vec<f32> = values::<u32>(9 * tile + 3, 8).iter().map(|&x| x as f32 * 1e-5).collect();
    let mut bits = Vec::new();
    let emulators = [1, 2, 7].map(|threads| {
        let mut options = EmulatorOptions::default();
        (options.checked, options.threads) = (false, threads);
        Device::emulator_with(options)
    });
    for device in emulators.into_iter().chain(Some(Device::auto()?).filter(Device::is_gpu)) {
        let stream = device.stream()?;
        let (buffer, at) = (stream.buffer_from(&x)?, stream.buffer_from(&offsets)?);
        let mut sums = stream.buffer_zeroed::<f32>(x.len())?;
        segmented_inclusive_scan(Run::on(&stream).tuned(&tuning), &buffer, &at, Add, &mut sums)?;
        bits.push(sums.to_vec()?.into_iter().map(f32::to_bits).collect::<Vec<_>>());
    }
    assert!(bits.windows(2).all(|two| two[0] == two[1]));
    Ok(())
}

#[test]
fn offsets_of_scans_that_decrease_or_leave_the_input_are_faults() -> Result<()> {
    let (stream, tuning) = (stream()?, tiles()?);
    let x = stream.buffer_from(&[1.0f32; 10])?;
    // The wrong offset is among empty segments, of which scans look at the first and the last ones.
    let mut hidden = vec![4; 5000];
    hidden[2500] = 9;
    for (offsets, numbers) in [(vec![0u32, 7, 5], ["7", "5"]), (vec![0, 5, 11], ["11", "10"]), (hidden, ["9", "4"])] {
        let mut out = stream.buffer_zeroed::<f32>(10)?;
        let at = stream.buffer_from(&offsets)?;
        let run = Run::on(&stream).tuned(&tuning);
        let error = segmented_inclusive_scan(run, &x, &at, Add, &mut out).and_then(|()| stream.synchronize());
        let error = error.unwrap_err().to_string();
        assert!(numbers.iter().all(|number| error.contains(number)), "{error}");
    }
    Ok(())
}

/// Values accumulate in bytes that are not all values, and in 3, 8 and 12 bytes, in one launch and in two.
#[test]
fn accumulators_of_any_type_sanitize() -> Result<()> {
    let stream = stream()?;
    for empty in [0, EMPTY] {
        let offsets = with_empty(&offsets(2, [0, 3, 5000, 20, 1, 0, 300]), empty);
        let at = stream.buffer_from(&offsets)?;
        let (len, segments) = (5400, offsets.len() - 1);
        macro_rules! check {
            ($($op:expr, $x:expr;)*) => {$({
                let (op, x) = ($op, $x);
                let expected: Vec<_> =
                    offsets.windows(2).map(|ends| op.of(&x[ends[0] as usize..ends[1] as usize])).collect();
                let mut out = stream.buffer_zeroed(segments)?;
                segmented_reduce(&stream, &stream.buffer_from(&x)?, &at, op, &mut out)?;
                assert!(out.to_vec()? == expected, "{} and {empty} empty segments", stringify!($op));
            })*};
        }
        check! {
            All, values::<u8>(len, 5).into_iter().map(|x| x >= 2).collect::<Vec<bool>>();
            Moments::<false>, values::<u8>(len, 6);
            Moments::<true>, values::<u8>(len, 7);
            MinOf, values::<f16>(len, 8);
            Sum, values::<u32>(len, 9).into_iter().map(u64::from).collect::<Vec<_>>();
        }
    }
    Ok(())
}

#[test]
fn without_an_offset_there_is_no_end_of_no_segments() -> Result<()> {
    let stream = stream()?;
    let (x, offsets) = (stream.buffer_zeroed::<u32>(10)?, stream.buffer_zeroed::<u32>(0)?);
    let (mut out, numbers) = (stream.buffer_zeroed::<u32>(10)?, stream.buffer_zeroed::<f32>(10)?);
    let mut sums = stream.buffer_zeroed::<f32>(10)?;
    for error in [
        segmented_reduce(&stream, &numbers, &offsets, Sum, &mut sums).unwrap_err(),
        segmented_inclusive_scan(&stream, &x, &offsets, Add, &mut out).unwrap_err(),
        segmented_exclusive_scan(&stream, &x, &offsets, 1, Add, &mut out).unwrap_err(),
    ] {
        assert!(matches!(error, Error::LengthMismatch { first_len: 1, second_len: 0, .. }), "{error}");
    }
    // With one offset, there is no segment. A scan has only the items before and after it.
    let one = stream.buffer_from(&[4u32])?;
    segmented_reduce(&stream, &numbers, &one, Sum, &mut sums)?;
    segmented_inclusive_scan(&stream, &stream.buffer_from(&[1u32; 10])?, &one, Add, &mut out)?;
    assert_eq!(out.to_vec()?, [1, 2, 3, 4, 1, 2, 3, 4, 5, 6]);
    Ok(())
}

#[test]
fn a_lone_offset_lies_in_the_input() -> Result<()> {
    for (len, offset, is_inside) in
        [(10, 10, true), (10, 11, false), (0, 0, true), (0, 1, false), (100_000, 100_001, false)]
    {
        let stream = stream()?;
        let x = stream.buffer_from(&whole(len))?;
        let at = stream.buffer_from(&[offset])?;
        let (mut none, mut out) = (stream.buffer_zeroed::<f32>(0)?, stream.buffer_zeroed::<f32>(len)?);
        let results = [
            ("reduce", segmented_reduce(&stream, &x, &at, Sum, &mut none).and_then(|()| stream.synchronize())),
            ("scan", segmented_inclusive_scan(&stream, &x, &at, Add, &mut out).and_then(|()| stream.synchronize())),
            ("sort", segmented_sort(&stream, &x, &at, Less, &mut out).and_then(|()| stream.synchronize())),
        ];
        for (name, result) in results {
            match result {
                Ok(()) => assert!(is_inside, "{name} of {len} items with an offset {offset}"),
                Err(Error::Fault(fault)) => {
                    let Diagnosis::Raised(raised) = &fault.diagnosis else { panic!("{name}: {fault}") };
                    assert_eq!((is_inside, raised.args), (false, [offset as u64, len as u64]), "{name}: {fault}");
                }
                Err(error) => return Err(error),
            }
        }
    }
    Ok(())
}
