//! Scans of many items' segments, which a pipeline of warps makes: here of few items, since a tuning value says so.

use kernel_primitives::algorithms::{
    Parameter, Run, Tuning, Workspace, inclusive_scan, segmented_exclusive_scan, segmented_inclusive_scan,
};
use kernel_primitives::functor::{Add, BinaryFn};
use kernel_primitives::input::Span;
use kernel_primitives::kernels::device::{SCAN_PIPELINE_SLOTS, scan_pipeline_tile};
use kernel_primitives::{Buffer, Device, Diagnosis, EmulatorOptions, Error, Result, Stream};

use crate::kernels::{AddEach, Compose, Map};
use crate::segmented::{offsets, sums, tiles};
use crate::support::{stream, streams, values};

/// From two tiles on, and fewer by tiles.
fn tuning() -> Result<Tuning> {
    let mut tuning = tiles()?;
    tuning.set(Parameter::ScanPipeline, None, 2)?;
    Ok(tuning)
}

/// By the pipeline, by tiles, and as of few items.
fn tunings() -> Result<[Tuning; 3]> {
    Ok([tuning()?, tiles()?, Tuning::of(stream()?.device())?.clone()])
}

/// Items of a tile, of four bytes each, and of the share of it that a warp marks.
const TILE: usize = scan_pipeline_tile::<Span<u32>>();
const SHARE: usize = TILE / 4;

/// Tiles that are more than a group of the chain has, and that a block's slots have several of.
const MANY: usize = 33;
const _: () = assert!(MANY > 2 * SCAN_PIPELINE_SLOTS, "a slot has three tiles");

/// Lengths of segments: ends at, before and after those of shares and tiles; one of all tiles; one for each item; giants among empty ones
/// and short ones; more at a time than a warp reads, 256; and any.
fn shapes() -> Vec<Vec<u32>> {
    let random = |most: u32, count| values::<u32>(count, 7).into_iter().map(move |x| (x % most) as usize);
    vec![
        offsets(0, [SHARE, SHARE, 2 * SHARE, TILE, 1]),
        offsets(1, [SHARE - 2, 1, 1, 2 * SHARE, SHARE - 1, TILE + 1]),
        offsets(0, [2 * TILE + 1]),
        offsets(0, [0; 9]),
        offsets(0, [1; 2 * TILE + 7]),
        offsets(3, [0; 300].into_iter().chain([2 * TILE]).chain([0; 700]).chain([1, 0, 0, 5]).chain([0; 300])),
        offsets(5, random(3, 9000)),
        offsets(0, random(40, 900)),
        offsets(7, random(3000, 11)),
    ]
}

#[test]
fn pipelined_scans_begin_anew_with_each_segment() -> Result<()> {
    let (stream, tuning) = (stream()?, tuning()?);
    let run = || Run::on(&stream).tuned(&tuning);
    for (i, offsets) in shapes().into_iter().enumerate() {
        // Inputs and outputs on any boundary, and of two tiles and some more.
        let (from, to) = (i % 4, i / 2 % 4);
        let len = (offsets[offsets.len() - 1] as usize).max(2 * TILE) + i;
        let x = values::<u32>(from + len, i as u64);
        let (buffer, at) = (stream.buffer_from(&x)?, stream.buffer_from(&offsets)?);
        let expected = sums(&x[from..], &offsets, 5, u32::wrapping_add);
        let mut out = stream.buffer_from(&vec![77u32; to + len + 5])?;
        segmented_inclusive_scan(run(), buffer.slice(from..)?, &at, Add, out.slice_mut(to..)?)?;
        let found = out.to_vec()?;
        assert!(found[to..to + len] == expected[0], "{i}: {:?}", &offsets[..offsets.len().min(9)]);
        assert_eq!((&found[..to], &found[to + len..]), (&[77; 4][..to], &[77; 5][..]));
        segmented_exclusive_scan(run(), buffer.slice(from..)?, &at, 5, Add, out.slice_mut(to..)?)?;
        assert!(out.to_vec()?[to..to + len] == expected[1], "{i}: {:?}", &offsets[..offsets.len().min(9)]);
    }
    Ok(())
}

/// One segment of all tiles, and some in a few of them.
#[test]
fn a_segment_of_many_tiles_is_scanned() -> Result<()> {
    let (stream, tuning) = (stream()?, tuning()?);
    let len = MANY * TILE + 5;
    let x = values::<u32>(len, 3);
    let buffer = stream.buffer_from(&x)?;
    for offsets in [vec![0], vec![9, 9 * TILE as u32, 9 * TILE as u32 + 3, 32 * TILE as u32]] {
        let mut out = stream.buffer_zeroed::<u32>(len)?;
        let at = stream.buffer_from(&offsets)?;
        segmented_inclusive_scan(Run::on(&stream).tuned(&tuning), &buffer, &at, Add, &mut out)?;
        assert!(out.to_vec()? == sums(&x, &offsets, 0, u32::wrapping_add)[0], "{offsets:?}");
    }
    Ok(())
}

/// Heads at the ends of shares and of tiles, and beside them, wherever in a vector the input begins.
#[test]
fn segments_begin_at_the_ends_of_shares() -> Result<()> {
    let (stream, tuning) = (stream()?, tuning()?);
    let x = values::<u32>(3 * TILE + 4, 9);
    let buffer = stream.buffer_from(&x)?;
    for from in 0..4 {
        for beside in [0, 1, 2] {
            // The first tile begins so many items before the input as those that are left out.
            let place = |share: usize| (share * SHARE + beside - from - 1) as u32;
            let offsets: Vec<u32> = (1..=12).flat_map(|share| [place(share); 2]).collect();
            let [expected, _] = sums(&x[from..], &offsets, 0, u32::wrapping_add);
            let mut out = stream.buffer_zeroed::<u32>(x.len() - from)?;
            let at = stream.buffer_from(&offsets)?;
            segmented_inclusive_scan(Run::on(&stream).tuned(&tuning), buffer.slice(from..)?, &at, Add, &mut out)?;
            assert!(out.to_vec()? == expected, "from {from}, {beside}");
        }
    }
    Ok(())
}

/// A vector has its marks in a word, of 16, 8, 4 or 2 items, or one.
fn items_of_each_size_are_scanned(stream: &Stream) -> Result<()> {
    let tuning = tuning()?;
    let run = || Run::on(stream).tuned(&tuning);
    macro_rules! check {
        ($($t:ty: $op:expr, $plain:expr, $from:expr;)*) => {$({
            let (tile, from) = (scan_pipeline_tile::<Span<$t>>(), $from);
            assert!(tile > 0, "they are for the pipeline");
            let offsets = offsets(2, [0, 3, 1, 1, 1, 2, tile, 20, 1, 0, 300, tile / 2]);
            let at = stream.buffer_from(&offsets)?;
            let x: Vec<$t> = values::<u8>(2 * tile + 341, 8).into_iter().map(from).collect();
            let expected = sums(&x[1..], &offsets, from(7), $plain);
            let buffer = stream.buffer_from(&x)?;
            let mut out = stream.buffer_zeroed::<$t>(x.len() - 1)?;
            segmented_inclusive_scan(run(), buffer.slice(1..)?, &at, $op, &mut out)?;
            assert!(out.to_vec()? == expected[0], stringify!($t));
            segmented_exclusive_scan(run(), buffer.slice(1..)?, &at, from(7), $op, &mut out)?;
            assert!(out.to_vec()? == expected[1], stringify!($t));
        })*};
    }
    check! {
        u8: Add, u8::wrapping_add, |x: u8| x;
        u16: Add, u16::wrapping_add, |x: u8| x as u16;
        i32: Add, i32::wrapping_add, |x: u8| x as i32;
        f64: Add, |a, b| a + b, |x: u8| x as f64;
        [u64; 2]: AddEach, |a, b| AddEach.apply(a, b), |x: u8| [x as u64, 7];
    }
    Ok(())
}

#[test]
fn items_of_each_size_go_through_the_pipeline_of_segments_sanitize() -> Result<()> {
    items_of_each_size_are_scanned(&stream()?)
}

/// One slot, as on the oldest architecture, and two or three, as on a later one. A kernel that can fault has 16 bytes itself.
#[test]
fn a_pipeline_of_segments_fits_in_little_shared_memory() -> Result<()> {
    for limit in [64 << 10, 99 << 10] {
        let mut options = EmulatorOptions::default();
        options.max_shared_bytes = limit - 16;
        items_of_each_size_are_scanned(&Device::emulator_with(options).stream()?)?;
    }
    Ok(())
}

/// A pipeline of them would take more shared memory than any block has, though none is ever launched.
#[test]
fn items_too_large_for_a_pipeline_are_scanned_by_tiles() -> Result<()> {
    let (stream, tuning) = (stream()?, tuning()?);
    let (x, offsets) = (values::<[u64; 16]>(1000, 3), offsets(1, [5, 0, 700]));
    let (buffer, at) = (stream.buffer_from(&x)?, stream.buffer_from(&offsets)?);
    let mut out = stream.buffer_zeroed::<[u64; 16]>(x.len())?;
    segmented_inclusive_scan(Run::on(&stream).tuned(&tuning), &buffer, &at, AddEach, &mut out)?;
    assert!(out.to_vec()? == sums(&x, &offsets, [0; 16], |a, b| AddEach.apply(a, b))[0]);
    inclusive_scan(Run::on(&stream).tuned(&tuning), &buffer, AddEach, &mut out)?;
    assert!(out.to_vec()? == sums(&x, &[0], [0; 16], |a, b| AddEach.apply(a, b))[0]);
    Ok(())
}

#[test]
fn offsets_of_each_type_are_taken() -> Result<()> {
    let (stream, tunings) = (stream()?, tunings()?);
    let offsets = offsets(1, [5, 0, TILE, 3, TILE - 5]);
    let x = values::<u32>(2 * TILE + 9, 4);
    let buffer = stream.buffer_from(&x)?;
    let [expected, _] = sums(&x, &offsets, 0, u32::wrapping_add);
    macro_rules! check {
        ($($o:ty),*) => {$({
            let at = stream.buffer_from(&offsets.iter().map(|&at| at as $o).collect::<Vec<_>>())?;
            for tuning in &tunings {
                let mut out = stream.buffer_zeroed::<u32>(x.len())?;
                segmented_inclusive_scan(Run::on(&stream).tuned(tuning), &buffer, &at, Add, &mut out)?;
                assert!(out.to_vec()? == expected, stringify!($o));
            }
        })*};
    }
    check!(u32, u64, i32, i64);
    Ok(())
}

/// Also on the other emulators: the lanes of one run in random order, and are checked for races.
#[test]
fn segments_keep_the_order_of_an_operator_that_does_not_commute_sanitize() -> Result<()> {
    let tuning = tuning()?;
    let tile = scan_pipeline_tile::<Span<Map<u32>>>();
    assert!(tile > 701, "they are for the pipeline");
    let offsets: Vec<u64> = [3, 3, 700, 701, tile + 9, 2 * tile].map(|at| at as u64).into();
    let x = values::<Map<u32>>(5 * tile / 2 + 3, 7);
    let first = Map { a: 3, b: 1 };
    let is_head = |i: usize| i == 0 || offsets.contains(&(i as u64));
    let mut upto = x.clone();
    let mut before = vec![first; x.len()];
    for i in (0..x.len()).filter(|&i| !is_head(i)) {
        before[i] = Compose.apply(first, upto[i - 1]);
        upto[i] = Compose.apply(upto[i - 1], x[i]);
    }
    for stream in streams()? {
        let (buffer, at) = (stream.buffer_from(&x)?, stream.buffer_from(&offsets)?);
        let mut out = stream.buffer_uninit(x.len())?;
        segmented_inclusive_scan(Run::on(&stream).tuned(&tuning), &buffer, &at, Compose, &mut out)?;
        assert!(out.to_vec()? == upto);
        segmented_exclusive_scan(Run::on(&stream).tuned(&tuning), &buffer, &at, first, Compose, &mut out)?;
        assert!(out.to_vec()? == before);
    }
    Ok(())
}

/// Zeros whose sign an added +0 would lose, by any of the kernels.
#[test]
fn sums_of_segments_of_negative_zeros_are_negative() -> Result<()> {
    let (stream, tunings) = (stream()?, tunings()?);
    macro_rules! negative_zeros {
        ($($t:ty),*) => {$({
            let tile = scan_pipeline_tile::<Span<$t>>();
            let x = stream.buffer_from(&vec![-0.0 as $t; 2 * tile + 3])?;
            let at = stream.buffer_from(&offsets(1, [5, 0, tile + 100, 1, 1]))?;
            for tuning in &tunings {
                let run = || Run::on(&stream).tuned(tuning);
                let mut out = stream.buffer_from(&vec![1.0 as $t; x.len()])?;
                segmented_inclusive_scan(run(), &x, &at, Add, &mut out)?;
                assert_eq!(out.to_vec()?.iter().position(|sum| sum.to_bits() != (-0.0 as $t).to_bits()), None);
                segmented_exclusive_scan(run(), &x, &at, -0.0, Add, &mut out)?;
                assert_eq!(out.to_vec()?.iter().position(|sum| sum.to_bits() != (-0.0 as $t).to_bits()), None);
            }
        })*};
    }
    negative_zeros!(f32, f64);
    Ok(())
}

#[test]
fn wrong_offsets_are_faults_of_the_pipeline() -> Result<()> {
    let tuning = tuning()?;
    let len = 2 * TILE + 5;
    // Hidden among empty segments, of which a warp looks at the first ones and the last ones.
    let mut hidden = vec![4; 5000];
    hidden[2500] = 9;
    let outside = len as u32 + 1;
    for (offsets, numbers) in [
        (vec![0, 7, 5], [7, 5]),
        (vec![0, 5, outside], [outside as u64, len as u64]),
        (vec![outside], [outside as u64, len as u64]),
        (hidden, [9, 4]),
    ] {
        let stream = stream()?;
        let (x, at) = (stream.buffer_zeroed::<u32>(len)?, stream.buffer_from(&offsets)?);
        let mut out = stream.buffer_zeroed::<u32>(len)?;
        let result = segmented_inclusive_scan(Run::on(&stream).tuned(&tuning), &x, &at, Add, &mut out);
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

/// More than two offsets an item are for tiles, of which there are enough for all offsets.
#[test]
fn far_more_segments_than_items_are_scanned() -> Result<()> {
    let (stream, tuning) = (stream()?, tuning()?);
    let len = 2 * TILE + 3;
    let x = values::<u32>(len, 6);
    let offsets = offsets(1, [[1, 0, 0]; TILE].into_iter().flatten().chain([TILE - 7]));
    assert!(offsets.len() > len);
    for offsets in [offsets.clone(), [offsets, vec![len as u32; 2 * len]].concat()] {
        let mut out = stream.buffer_zeroed::<u32>(len)?;
        let (buffer, at) = (stream.buffer_from(&x)?, stream.buffer_from(&offsets)?);
        segmented_inclusive_scan(Run::on(&stream).tuned(&tuning), &buffer, &at, Add, &mut out)?;
        assert!(out.to_vec()? == sums(&x, &offsets, 0, u32::wrapping_add)[0], "{} offsets", offsets.len());
    }
    Ok(())
}

#[test]
fn a_workspace_and_a_graph_serve_pipelines_of_segments() -> Result<()> {
    let (device, tuning) = (Device::emulator(), tuning()?);
    let stream = device.stream()?;
    let shapes = [[TILE, 0, 7, 30], [1, 2 * TILE - 3, 0, 0], [TILE - 2, TILE, 5, 1]].map(|lengths| offsets(2, lengths));
    let x = values::<u32>(3 * TILE, 5);
    let expected = |offsets: &[u32]| sums(&x, offsets, 0, u32::wrapping_add)[0].clone();
    let (buffer, mut at) = (stream.buffer_from(&x)?, stream.buffer_from(&shapes[0])?);
    let (mut out, mut workspace) = (stream.buffer_zeroed::<u32>(x.len())?, Workspace::new());
    let scan = |stream: &Stream, workspace: &mut Workspace, at: &Buffer<u32>, out: &mut _| {
        segmented_inclusive_scan(Run::on(stream).tuned(&tuning).with(workspace), &buffer, at, Add, out)
    };
    scan(&stream, &mut workspace, &at, &mut out)?;
    let before = device.counters();
    scan(&stream, &mut workspace, &at, &mut out)?;
    let cost = device.counters().since(before);
    assert_eq!((cost.launches, cost.allocations, cost.synchronizations), (1, 0, 0));
    assert!(out.to_vec()? == expected(&shapes[0]));
    // What is captured has the segments that there are when it is launched.
    let graph = stream.capture(|stream| scan(stream, &mut workspace, &at, &mut out))?;
    for offsets in shapes.iter().chain(&shapes) {
        at.copy_from(offsets)?;
        out.as_mut_slice().set_zero(&stream)?;
        graph.launch(&stream)?;
        assert!(out.to_vec()? == expected(offsets));
    }
    Ok(())
}

/// Of one block, two and seven, of which tiles come to any.
#[test]
fn sums_of_segments_have_the_same_bits_for_any_number_of_blocks() -> Result<()> {
    let tuning = tuning()?;
    let offsets = offsets(3, [5, 2 * TILE, 1, 0, 100]);
    let x: Vec<f32> = values::<u32>(9 * TILE + 3, 8).iter().map(|&x| x as f32 * 1e-5).collect();
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
