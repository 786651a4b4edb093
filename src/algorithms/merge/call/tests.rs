use super::*;
use crate::functor::Less;
use crate::input::Span;
use crate::simt::FaultKind;
use crate::{Device, Diagnosis, Error};

/// Whether a launch ends with the fault of wrong shapes.
fn is_bad_shape(launched: Result<()>, stream: &crate::Stream) -> bool {
    let Err(Error::Fault(fault)) = launched.and_then(|()| stream.synchronize()) else { return false };
    matches!(&fault.diagnosis, Diagnosis::Raised(raised) if raised.kind == FaultKind::BadShape)
}

/// What a tile from `begin` to `end` of the result has, whose part of `a` begins and ends at these splits, or as close to them as there
/// is such a part; `None` if its part of `b` goes beyond its end.
fn tile_of(a: &[u32], b: &[u32], (begin, end): (usize, usize), splits: [u64; 2]) -> Option<Vec<u32>> {
    let [from, to] = splits.map(|split| usize::try_from(split).unwrap_or(usize::MAX));
    let from = from.clamp(begin.saturating_sub(b.len()), begin.min(a.len()));
    let to = to.clamp(from, from + end - begin);
    let own = b.get(begin - from..end - to)?;
    let mut items = [a.get(from..to)?, own].concat();
    items.sort_unstable();
    Some(items)
}

/// Splits that are none, as they may be where another graph has the memory, give some of the items, in their places or others.
#[test]
fn splits_that_are_none_are_no_way_out_of_the_inputs() -> Result<()> {
    let stream = Device::auto()?.stream()?;
    let run = Run::on(&stream);
    let (of_a, of_b): (Vec<u32>, Vec<u32>) = ((0..9000).collect(), (5000..12_000).collect());
    let (a, b) = (stream.buffer_from(&of_a)?, stream.buffer_from(&of_b)?);
    let mut around = stream.buffer_from(&vec![77_777u32; 32_000])?;
    let tiles = MergeTiles::of(&run, 16_000, 4, 0)?;
    let mut known = 0;
    for split in [0, 1, 4095, 4097, 9001, 1 << 40, u64::MAX - 1, u64::MAX] {
        // Also fewer splits than tiles: where there is none, it is 0.
        for count in [tiles.tiles(), 2] {
            let splits = vec![split; count];
            let mut out = around.slice_mut(8000..24_000)?;
            device::merge_tiles::<Span<u32>, Span<u32>, Less>::launch(
                &stream,
                tiles.dims_of_keys::<u32, Less>(),
                &a,
                &b,
                &mut out,
                &stream.buffer_from(&splits)?,
                MergePass::INPUTS,
                Less,
            )?;
            stream.synchronize()?;
            let found = around.to_vec()?;
            assert!(found[..8000].iter().chain(&found[24_000..]).all(|&item| item == 77_777), "{split}");
            let found = &found[8000..24_000];
            assert!(found.iter().all(|&item| item < 12_000), "{split}");
            let at = |tile: usize| splits.get(tile).copied().unwrap_or(0);
            for (tile, found) in found.chunks(tiles.tile).enumerate() {
                let (begin, end) = (tile * tiles.tile, tile * tiles.tile + found.len());
                let last = if end == 16_000 { 9000 } else { at(tile + 1) };
                if let Some(expected) = tile_of(&of_a, &of_b, (begin, end), [at(tile), last]) {
                    assert!(found == expected, "{split}, tile {tile} of {count} splits");
                    known += 1;
                }
            }
        }
    }
    assert!(known > 32, "{known}");
    Ok(())
}

#[test]
fn runs_that_are_none_are_a_fault() -> Result<()> {
    for (b, pass) in [(1, MergePass { run: 4096, keep: 9000 }), (8192, MergePass { run: 3000, keep: 9000 })] {
        let stream = Device::auto()?.stream()?;
        let (a, b) = (stream.buffer_zeroed::<u32>(8192)?, stream.buffer_zeroed::<u32>(b)?);
        let (mut splits, mut out) = (stream.buffer_zeroed::<u64>(2)?, stream.buffer_zeroed::<u32>(8192)?);
        let launched = device::merge_splits::<Span<u32>, Span<u32>, Less>::launch(
            &stream,
            (1, device::MERGE_SPLIT_THREADS as u32),
            &a,
            &b,
            &mut splits,
            pass,
            4096,
            Less,
        );
        assert!(is_bad_shape(launched, &stream));
        let none = stream.buffer_zeroed::<u64>(0)?;
        let dims = (2, device::merge_threads::<u32, Less>() as u32);
        let tiles = device::merge_tiles::<Span<u32>, Span<u32>, Less>::launch;
        assert!(is_bad_shape(tiles(&stream, dims, &a, &b, &mut out, &none, pass, Less), &stream));
    }
    Ok(())
}

/// Fewer values than keys, and outputs of two lengths.
#[test]
fn values_that_are_none_of_the_keys_are_an_error() -> Result<()> {
    type Keys = Span<u32>;
    let launched = |values: [usize; 2], outs: [usize; 2]| {
        let stream = Device::auto()?.stream()?;
        let run = Run::on(&stream);
        let tiles = MergeTiles::of(&run, 16_000, 4, 4)?;
        let keys = |len: u32| stream.buffer_from(&(0..len).collect::<Vec<u32>>());
        let (a, b) = (keys(9000)?, keys(7000)?);
        let [a_values, b_values] = [keys(values[0] as u32)?, keys(values[1] as u32)?];
        let [mut out, mut values_out] = [stream.buffer_zeroed::<u32>(outs[0])?, stream.buffer_zeroed::<u32>(outs[1])?];
        let none = stream.buffer_zeroed::<u64>(0)?;
        let launched = device::merge_tiles_pairs::<Keys, Keys, Keys, Keys, Less>::launch(
            &stream,
            tiles.dims(),
            &a,
            &b,
            &a_values,
            &b_values,
            &mut out,
            &mut values_out,
            &none,
            MergePass::INPUTS,
            Less,
        );
        Ok::<_, Error>((launched.and_then(|()| stream.synchronize()), stream))
    };
    launched([9000, 7000], [16_000; 2])?.0?;
    for values in [[8999, 7000], [9000, 6999], [0, 7000], [9000, 0]] {
        let (result, stream) = launched(values, [16_000; 2])?;
        assert!(is_bad_shape(result, &stream), "{values:?}");
    }
    for outs in [[16_000, 15_999], [15_999, 16_000], [16_000, 0]] {
        let (result, _) = launched([9000, 7000], outs)?;
        assert!(matches!(result, Err(Error::LengthMismatch { .. })), "{outs:?}: {result:?}");
    }
    Ok(())
}

/// What has no place in the output goes nowhere.
#[test]
fn an_output_that_is_too_short_is_no_way_out_of_it() -> Result<()> {
    let stream = Device::auto()?.stream()?;
    let run = Run::on(&stream);
    let keys = stream.buffer_from(&(0..8000).collect::<Vec<u32>>())?;
    let tiles = MergeTiles::of(&run, 16_000, 4, 0)?;
    for len in [0, 1, 4095, 4097, 9002, 15_999] {
        let mut around = stream.buffer_from(&vec![77_777u32; 32_000])?;
        let mut out = around.slice_mut(8000..8000 + len)?;
        device::merge_tiles::<Span<u32>, Span<u32>, Less>::launch(
            &stream,
            tiles.dims_of_keys::<u32, Less>(),
            &keys,
            &keys,
            &mut out,
            &stream.buffer_zeroed::<u64>(0)?,
            MergePass::INPUTS,
            Less,
        )?;
        stream.synchronize()?;
        let found = around.to_vec()?;
        let expected = |i: usize| if i < len { i as u32 / 2 } else { 77_777 };
        assert!(found[8000..].iter().enumerate().all(|(i, &item)| item == expected(i)), "{len}");
        assert!(found[..8000].iter().all(|&item| item == 77_777), "{len}");
    }
    Ok(())
}

/// Returns the beginnings of tiles of eight items.
fn splits_of(a: &[u32], b: &[u32], pass: MergePass) -> Result<Vec<usize>> {
    let stream = Device::auto()?.stream()?;
    let len = if pass.run == 0 { a.len() + b.len() } else { a.len() };
    let tiles = len.div_ceil(8);
    let (a, b) = (stream.buffer_from(a)?, stream.buffer_from(b)?);
    let mut splits = stream.buffer_from(&vec![u64::MAX; tiles])?;
    let dims = grid(tiles.div_ceil(device::MERGE_SPLIT_THREADS), device::MERGE_SPLIT_THREADS);
    device::merge_splits::<Span<u32>, Span<u32>, Less>::launch(&stream, dims, &a, &b, &mut splits, pass, 8, Less)?;
    Ok(splits.to_vec()?.into_iter().map(|split| split as usize).collect())
}

/// Returns the number of items of `a` among the first `n` items of the merge, for each `n`.
fn counts(a: &[u32], b: &[u32]) -> Vec<usize> {
    let mut counts = vec![0];
    let (mut i, mut j) = (0, 0);
    while i + j < a.len() + b.len() {
        if j == b.len() || i < a.len() && a[i] <= b[j] {
            i += 1;
        } else {
            j += 1;
        }
        counts.push(i);
    }
    counts
}

/// Returns `len` sorted keys of some kinds: all different, many equal, and all equal.
fn keys(len: usize, kind: usize, seed: usize) -> Vec<u32> {
    let hash = |i: usize| (i * 2_654_435_761 + seed * 40_503) as u32 >> 3;
    let mut keys: Vec<u32> = (0..len).map(|i| [hash(i), hash(i) % 7, 5, hash(i) % 5000][kind]).collect();
    keys.sort_unstable();
    keys
}

/// The blocks of these have 2048 items. So there are several blocks, and their samples are far apart. The last one has many tiles.
#[test]
fn splits_are_those_of_a_stable_merge() -> Result<()> {
    for lens in [[0, 9], [9, 0], [1, 5000], [5000, 3], [4000, 4000], [20_000, 17], [12_345, 6789], [70_000, 80_000]] {
        for kinds in [[0, 0], [1, 1], [2, 2], [0, 2], [2, 3], [3, 3]] {
            let (a, b) = (keys(lens[0], kinds[0], 1), keys(lens[1], kinds[1], 2));
            let counts = counts(&a, &b);
            let expected: Vec<usize> = (0..a.len() + b.len()).step_by(8).map(|n| counts[n]).collect();
            assert_eq!(splits_of(&a, &b, MergePass::INPUTS)?, expected, "{lens:?} {kinds:?}");
            // All of one input before the other.
            let after: Vec<u32> = b.iter().map(|key| key | 1 << 31).collect();
            let expected: Vec<usize> = (0..a.len() + b.len()).step_by(8).map(|n| n.min(a.len())).collect();
            assert_eq!(splits_of(&a, &after, MergePass::INPUTS)?, expected, "{lens:?} {kinds:?}");
        }
    }
    Ok(())
}

/// The merges of these have more items than a block, as many, or fewer. Some last runs are short or missing.
#[test]
fn splits_of_runs_are_those_of_stable_merges() -> Result<()> {
    for (run, len) in [(4096, 20_000), (4096, 8192), (1024, 9000), (64, 5000), (8, 3000), (8192, 8000), (2048, 4100)] {
        for (kind, keep) in [(0, usize::MAX), (1, 3000), (3, 100), (2, usize::MAX), (0, 0)] {
            let x: Vec<u32> = (0..len).step_by(run).flat_map(|first| keys(run.min(len - first), kind, first)).collect();
            let mut expected = Vec::new();
            for first in (0..len).step_by(8) {
                let pair = &x[first - first % (2 * run)..][..(2 * run).min(len - (first - first % (2 * run)))];
                let (a, b) = pair.split_at(run.min(pair.len()));
                let [a, b] = [a, b].map(|run| &run[..keep.min(run.len())]);
                expected.push(counts(a, b)[(first % (2 * run)).min(a.len() + b.len())]);
            }
            assert_eq!(splits_of(&x, &x, MergePass { run, keep })?, expected, "{run} {len} {kind} {keep}");
        }
    }
    Ok(())
}

#[test]
fn splits_of_what_is_not_sorted_are_in_the_inputs() -> Result<()> {
    let mixed = |len: usize, seed: usize| (0..len).map(|i| ((i + seed) * 2_654_435_761) as u32).collect::<Vec<u32>>();
    for [a, b] in [[9000, 9000], [100, 20_000], [20_000, 5], [70_000, 80_000]] {
        let splits = splits_of(&mixed(a, 1), &mixed(b, 2), MergePass::INPUTS)?;
        for (split, first) in splits.into_iter().zip((0..).step_by(8)) {
            assert!((first.max(b) - b..=first.min(a)).contains(&split), "{a} {b} {first} {split}");
        }
    }
    Ok(())
}

#[test]
fn merges_say_which_division_of_memory_they_prefer() {
    let of_keys = device::merge_tiles::<Span<u32>, Span<u32>, Less>::info().carveout();
    let of_pairs = device::merge_tiles_pairs::<Span<u32>, Span<u32>, Span<u32>, Span<u32>, Less>::info().carveout();
    let of_sorted_keys = device::merge_sort_tiles::<Span<u32>, Less>::info().carveout();
    let of_sorted = device::merge_sort_tiles_pairs::<Span<u32>, Span<u32>, Less>::info().carveout();
    assert_eq!([of_keys, of_pairs, of_sorted_keys, of_sorted], [Some(160 << 10); 4]);
    let of_wide = device::merge_tiles::<Span<u64>, Span<u64>, Less>::info().carveout();
    assert_eq!([of_wide, device::merge_sort_tiles::<Span<u64>, Less>::info().carveout()], [Some(128 << 10); 2]);
    // A block has 16 bytes more for faults, and the device takes a kilobyte.
    let block = (device::MergeSortShape::of(4, 0, usize::MAX).shared_bytes + 16).next_multiple_of(128) + 1024;
    assert!(of_sorted_keys >= Some(4 * block));
}
