//! Tests scans of many items by a pipeline of warps. Here there are few items, because a tuning value allows it. `chain.rs` tests, with a
//! kernel that has no items, how a warp carries what it knows over groups of tiles.

use kernel_primitives::algorithms::{Parameter, Run, Tuning, Workspace, exclusive_scan, inclusive_scan};
use kernel_primitives::functor::{Add, BinaryFn, Max};
use kernel_primitives::input::Span;
use kernel_primitives::kernels::device::{SCAN_PIPELINE_SLOTS, scan_pipeline_tile};
use kernel_primitives::prelude::*;
use kernel_primitives::{Device, EmulatorOptions, Result, Stream};

use crate::kernels::{AddEach, Compose, Map};
use crate::support::{stream, streams, values};

/// Returns tuning values for a pipeline from two tiles.
fn tuning() -> Result<Tuning> {
    let mut tuning = Tuning::of(&Device::emulator())?.clone();
    tuning.set(Parameter::ScanPipeline, None, 2)?;
    Ok(tuning)
}

/// The number of items of a tile. They have four bytes each.
const TILE: usize = scan_pipeline_tile::<Span<u32>>();

/// The number of tiles of an input that is longer than a group of the chain, which has 32 tiles. If one block has all tiles, each of its
/// slots has several, with both parities of its barriers.
const MANY: usize = 33;
const _: () = assert!(MANY > 2 * SCAN_PIPELINE_SLOTS, "a slot has three tiles");

/// Returns the inclusive and the exclusive scan, from `first`.
fn scanned<T: Copy>(x: &[T], first: T, op: impl Fn(T, T) -> T) -> (Vec<T>, Vec<T>) {
    let mut total = first;
    x.iter()
        .map(|&x| {
            let before = total;
            total = op(total, x);
            (total, before)
        })
        .unzip()
}

/// An added +0 would change the sign of these zeros.
#[test]
fn sums_of_negative_zeros_are_negative() -> Result<()> {
    let (stream, tuning) = (stream()?, tuning()?);
    macro_rules! negative_zeros {
        ($($t:ty),*) => {$({
            let len = 2 * TILE * size_of::<f32>() / size_of::<$t>() + 3;
            let x = stream.buffer_from(&vec![-0.0 as $t; len])?;
            let mut out = stream.buffer_from(&vec![1.0 as $t; len])?;
            inclusive_scan(Run::on(&stream).tuned(&tuning), &x, Add, &mut out)?;
            assert_eq!(out.to_vec()?.iter().position(|sum| sum.to_bits() != (-0.0 as $t).to_bits()), None);
            exclusive_scan(Run::on(&stream).tuned(&tuning), &x, -0.0, Add, &mut out)?;
            assert_eq!(out.to_vec()?.iter().position(|sum| sum.to_bits() != (-0.0 as $t).to_bits()), None);
        })*};
    }
    negative_zeros!(f32, f64);
    Ok(())
}

/// The lengths are near the ends of the second tile and of the third, with both sides on every boundary, and once [`MANY`] tiles. The kind
/// of a scan does not change places, so exclusive scans have one boundary each.
#[test]
fn sums_of_any_length_at_any_offset_sanitize() -> Result<()> {
    let (stream, tuning) = (stream()?, tuning()?);
    let all: &[(usize, usize)] = &[(0, 0), (1, 1), (2, 2), (3, 0), (0, 2)];
    let cases: [(usize, &[_]); 4] =
        [(2 * TILE, all), (2 * TILE + 1, all), (3 * TILE - 1, all), (MANY * TILE + 5, &[(3, 3)])];
    for (k, (len, boundaries)) in cases.into_iter().enumerate() {
        let x = values::<i32>(len + 7, k as u64);
        let buffer = stream.buffer_from(&x)?;
        for (i, &(from, to)) in boundaries.iter().enumerate() {
            let mut out = stream.buffer_from(&vec![77i32; len + 5])?;
            let (upto, before) = scanned(&x[from..from + len], 0, i32::wrapping_add);
            let x = buffer.slice(from..from + len)?;
            inclusive_scan(Run::on(&stream).tuned(&tuning), x, Add, &mut out.slice_mut(to..)?)?;
            let found = out.to_vec()?;
            assert_eq!(
                (&found[..to], &found[to + len..]),
                (&[77; 4][..to], &[77; 5][to..]),
                "{len} from {from} to {to}"
            );
            assert!(found[to..to + len] == upto, "{len} from {from} to {to}");
            if i == k && len < MANY * TILE {
                exclusive_scan(Run::on(&stream).tuned(&tuning), x, -5, Add, &mut out.slice_mut(to..)?)?;
                let expected = before.iter().map(|b| b.wrapping_sub(5));
                assert!(out.to_vec()?[to..to + len].iter().copied().eq(expected), "{len} from {from} to {to}");
            }
        }
    }
    Ok(())
}

/// There is one launch more than for a scan of computed items, or of items of three bytes, because those have no pipeline. Two tiles and a
/// part of a tile are enough, because a size changes only its vectors and their places. The net has scans of sixteen bytes.
#[test]
fn items_of_each_size_go_through_the_pipeline() -> Result<()> {
    let (stream, tuning) = (stream()?, tuning()?);
    let run = || Run::on(&stream).tuned(&tuning);
    macro_rules! check {
        ($($t:ty: $op:expr, $scanned:expr;)*) => {$(
            let len = 2 * TILE * 4 / size_of::<$t>() + 777;
            let x: Vec<$t> = values::<u8>(len, 3).iter().map(|&x| <$t>::from(x)).collect();
            let (upto, before) = scanned(&x, <$t>::from(0u8), $scanned);
            let buffer = stream.buffer_from(&x)?;
            let mut out = stream.buffer_zeroed::<$t>(len)?;
            inclusive_scan(run(), &buffer, $op, &mut out)?;
            assert!(out.to_vec()? == upto, stringify!($t));
            exclusive_scan(run(), &buffer, <$t>::from(0u8), $op, &mut out)?;
            assert!(out.to_vec()? == before, stringify!($t));
        )*};
    }
    check! {
        u32: Add, u32::wrapping_add;
        i64: Add, i64::wrapping_add;
        u64: Add, u64::wrapping_add;
        f64: Add, |a, b| a + b;
    }
    let len = 2 * TILE * 4 + 198;
    let x = values::<u8>(len, 4);
    let mut out = stream.buffer_zeroed::<u8>(len)?;
    inclusive_scan(run(), &stream.buffer_from(&x)?, Max, &mut out)?;
    assert!(out.to_vec()? == scanned(&x, 0, u8::max).0);
    let x: Vec<f16> = x[..len / 2].iter().map(|&x| f16::from_f32(x as f32)).collect();
    let mut out = stream.buffer_zeroed::<f16>(len / 2)?;
    inclusive_scan(run(), &stream.buffer_from(&x)?, Max, &mut out)?;
    assert!(out.to_vec()? == scanned(&x, f16::ZERO, |a, b| a.max(b)).0);
    Ok(())
}

/// A pipeline for these items would take more shared memory than any block has, even if it is never launched.
#[test]
fn items_too_large_for_a_pipeline_are_scanned_by_tiles() -> Result<()> {
    let (stream, tuning) = (stream()?, tuning()?);
    let x = values::<[u64; 16]>(1000, 3);
    let mut out = stream.buffer_zeroed::<[u64; 16]>(x.len())?;
    inclusive_scan(Run::on(&stream).tuned(&tuning), &stream.buffer_from(&x)?, AddEach, &mut out)?;
    assert!(out.to_vec()? == scanned(&x, [0; 16], |a, b| AddEach.apply(a, b)).0);
    Ok(())
}

/// This also runs on the other emulators. The lanes of one run in random order, and are checked for races.
#[test]
fn an_operator_that_does_not_commute_keeps_the_order_sanitize() -> Result<()> {
    let tuning = tuning()?;
    let len = 5 * TILE / 2 + 3;
    let x = values::<Map<u32>>(len, 7);
    let (upto, before) = scanned(&x, Map { a: 1, b: 0 }, |f, g| Compose.apply(f, g));
    for stream in streams()? {
        let buffer = stream.buffer_from(&x)?;
        let mut out = stream.buffer_uninit(len)?;
        inclusive_scan(Run::on(&stream).tuned(&tuning), &buffer, Compose, &mut out)?;
        assert!(out.to_vec()? == upto);
        exclusive_scan(Run::on(&stream).tuned(&tuning), &buffer, Map { a: 1, b: 0 }, Compose, &mut out)?;
        assert!(out.to_vec()? == before);
    }
    Ok(())
}

/// There are more tiles after fewer, and fewer after more.
#[test]
fn a_workspace_and_a_graph_serve_several_pipelines() -> Result<()> {
    let (stream, tuning) = (stream()?, tuning()?);
    let x: Vec<Vec<u32>> = [3, 4, 2].map(|tiles| values::<u32>(tiles * TILE, tiles as u64)).into();
    let mut workspace = Workspace::new();
    for x in x.iter().chain(&x) {
        let mut out = stream.buffer_zeroed::<u32>(x.len())?;
        let buffer = stream.buffer_from(x)?;
        inclusive_scan(Run::on(&stream).tuned(&tuning).with(&mut workspace), &buffer, Add, &mut out)?;
        assert!(out.to_vec()? == scanned(x, 0, u32::wrapping_add).0);
        // The tiles of the scans of few items are chained in the same memory.
        inclusive_scan(Run::on(&stream).with(&mut workspace), &buffer, Add, &mut out)?;
        assert!(out.to_vec()? == scanned(x, 0, u32::wrapping_add).0);
    }
    let (buffer, mut out) = (stream.buffer_from(&x[1])?, stream.buffer_zeroed::<u32>(x[1].len())?);
    let run = |stream: &Stream, workspace: &mut Workspace, out: &mut _| {
        inclusive_scan(Run::on(stream).tuned(&tuning).with(workspace), &buffer, Add, out)
    };
    let graph = stream.capture(|stream| run(stream, &mut workspace, &mut out))?;
    for _ in 0..2 {
        graph.launch(&stream)?;
        assert!(out.to_vec()? == scanned(&x[1], 0, u32::wrapping_add).0);
        out.as_mut_slice().set_zero(&stream)?;
    }
    Ok(())
}

#[test]
fn a_pipeline_allocates_once_and_waits_for_nobody() -> Result<()> {
    let (device, tuning) = (Device::emulator(), tuning()?);
    let stream = device.stream()?;
    let x = stream.buffer_zeroed::<f32>(2 * TILE)?;
    let (mut out, mut workspace) = (stream.buffer_zeroed::<f32>(x.len())?, Workspace::new());
    let before = device.counters();
    inclusive_scan(Run::on(&stream).tuned(&tuning), &x, Add, &mut out)?;
    let cost = device.counters().since(before);
    assert_eq!((cost.launches, cost.allocations, cost.synchronizations), (1, 1, 0));
    let mut scan = || inclusive_scan(Run::on(&stream).tuned(&tuning).with(&mut workspace), &x, Add, &mut out);
    scan()?;
    let before = device.counters();
    scan()?;
    let cost = device.counters().since(before);
    assert_eq!((cost.launches, cost.allocations, cost.synchronizations), (1, 0, 0));
    Ok(())
}

/// For scans by a pipeline, the bits of floats depend only on their number, and not on the number of blocks. There are three groups of
/// tiles, whose totals could be combined in two ways. A checked emulator has one block, for any number of threads.
#[test]
fn sums_of_floats_have_the_same_bits_for_any_number_of_blocks() -> Result<()> {
    let tuning = tuning()?;
    let x: Vec<f32> = values::<u32>(2 * MANY * TILE + 3, 8).iter().map(|&x| x as f32 * 1e-5).collect();
    let mut bits = Vec::new();
    let emulators = [1, 2, 7].map(|threads| {
        let mut options = EmulatorOptions::default();
        (options.checked, options.threads) = (false, threads);
        Device::emulator_with(options)
    });
    for device in emulators.into_iter().chain(Some(Device::auto()?).filter(Device::is_gpu)) {
        let stream = device.stream()?;
        let mut sums = stream.buffer_zeroed::<f32>(x.len())?;
        inclusive_scan(Run::on(&stream).tuned(&tuning), &stream.buffer_from(&x)?, Add, &mut sums)?;
        bits.push(sums.to_vec()?.into_iter().map(f32::to_bits).collect::<Vec<_>>());
    }
    assert!(bits.windows(2).all(|two| two[0] == two[1]));
    Ok(())
}
