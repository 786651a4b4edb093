//! Tests prefixes over tiles, by kernels with one tile for each block.

use std::time::Duration;

use kernel_primitives::algorithms::{
    Parameter, Run, Tuning, Workspace, inclusive_scan, inclusive_scan_by_key, reduce, reduce_by_key, run_length_encode,
    select_if, unique,
};
use kernel_primitives::element::Segmented;
use kernel_primitives::functor::{Add, BinaryFn, LessThan, Sum, bind_second};
use kernel_primitives::grid::Chain;
use kernel_primitives::{Device, Diagnosis, EmulatorOptions, Error, Result};

use crate::kernels::{
    Compose, Map, prefixes_after_others, prefixes_of_tiles, prefixes_since_a_head, tiles_of_nothing, total_of_tiles,
    truths_of_a_tile,
};
use crate::support::{stream, values};

/// Numbers of tiles near one group, which has 32 tiles; near four groups; and near a section, which has 32 groups. The last number is so large that the third section begins.
const TILES: [usize; 12] = [1, 2, 31, 32, 33, 65, 128, 129, 1024, 1025, 1057, 2085];

/// The tiles whose totals a warp reads in one look, after those that it knows: eight groups.
const LOOK: usize = 8 * 32;

#[test]
fn every_tile_gets_what_is_before_it_in_order() -> Result<()> {
    tiles_get_their_prefixes(&TILES, &[32, 96, 5])
}

#[test]
fn tiles_of_some_groups_get_their_prefixes_sanitize() -> Result<()> {
    tiles_get_their_prefixes(&[70, 135], &[64])
}

/// Returns the totals of tiles, and the prefix before each tile. No two orders of combination give the same prefix.
fn totals(tiles: usize) -> (Vec<Map<u32>>, Vec<Map<u32>>) {
    let x: Vec<Map<u32>> = (0..tiles as u32).map(|i| Map { a: 2 * (i % 5) + 1, b: i }).collect();
    let mut total = Map { a: 1u32, b: 0 };
    let mut next = |x: Map<u32>| {
        let before = total;
        total = Compose.apply(total, x);
        before
    };
    let before = x.iter().map(|&x| next(x)).collect();
    (x, before)
}

fn tiles_get_their_prefixes(counts: &[usize], blocks: &[u32]) -> Result<()> {
    let stream = stream()?;
    for (k, &tiles) in counts.iter().enumerate() {
        let (x, expected) = totals(tiles);
        let mut out = stream.buffer_zeroed::<Map<u32>>(tiles)?;
        let mut chain = stream.buffer_zeroed::<u64>(Chain::<Map<u32>>::words(tiles))?;
        let threads = blocks[k % blocks.len()];
        // Launches with any numbers use the memory one after the other. No number comes twice.
        for launch in [1, 7, 2, u32::MAX] {
            let (dims, x) = ((tiles as u32, threads), stream.buffer_from(&x)?);
            prefixes_of_tiles::launch(&stream, dims, &x, &mut out, &mut chain, launch, false)?;
            assert!(out.to_vec()? == expected, "{tiles} tiles, {threads} threads");
            out.as_mut_slice().set_zero(&stream)?;
            chain.slice_mut(..1)?.set_zero(&stream)?;
        }
    }
    Ok(())
}

/// The tiles are successive; there is a group in between; they are farther apart than one look; or there are two looks and a part of one.
/// The scans of a pipeline use all of these.
#[test]
fn what_is_known_is_carried_from_tile_to_tile_sanitize() -> Result<()> {
    let stream = stream()?;
    let most = 2 * LOOK + 40;
    for (tiles, step) in [(70, 1), (300, 33), (most, LOOK + 34), (most, most)] {
        let (x, expected) = totals(tiles);
        let mut out = stream.buffer_zeroed::<Map<u32>>(tiles)?;
        let mut chain = stream.buffer_zeroed::<u64>(Chain::<Map<u32>>::words(tiles))?;
        let (dims, x) = ((tiles as u32, 32), stream.buffer_from(&x)?);
        prefixes_after_others::launch(&stream, dims, &x, &mut out, &mut chain, step as u32)?;
        assert!(out.to_vec()? == expected, "every {step}th of {tiles} tiles");
    }
    Ok(())
}

/// The heads are in the same lane's tiles, in the group, in the group before, in the section before, or not among the tiles that a warp
/// looks at. Tiles before the first head never publish, so a tile that waits for them would wait for good.
#[test]
fn a_tile_looks_no_further_back_than_to_the_last_head_sanitize() -> Result<()> {
    let stream = stream()?;
    for (tiles, first, every) in [
        (2, 0, 1),
        (40, 17, 1),
        (70, 33, 40),
        (128, 31, 7),
        (128, 3, 120),
        (140, 31, 7),
        (200, 33, 40),
        (200, 32, 150),
        (1100, 1023, 99),
        (1100, 40, 1024),
    ] {
        for threads in [32, 5] {
            let heads: Vec<u32> = (0..tiles).map(|i| (i >= first && (i - first) % every == 0) as u32).collect();
            let x: Vec<Map<u32>> = (0..tiles as u32).map(|i| Map { a: 2 * (i % 5) + 1, b: i }).collect();
            let mut expected = vec![Map { a: 0, b: 0 }; tiles];
            for tile in first + 1..tiles {
                expected[tile] = match heads[tile - 1] {
                    0 => Compose.apply(expected[tile - 1], x[tile - 1]),
                    _ => x[tile - 1],
                };
            }
            let mut out = stream.buffer_zeroed::<Map<u32>>(tiles)?;
            let mut chain = stream.buffer_zeroed::<u64>(Chain::<Segmented<Map<u32>>>::words(tiles))?;
            let (heads, x) = (stream.buffer_from(&heads)?, stream.buffer_from(&x)?);
            let dims = (tiles as u32, threads);
            prefixes_since_a_head::launch(&stream, dims, &heads, &x, &mut out, &mut chain, first as u32)?;
            assert!(out.to_vec()?[first + 1..] == expected[first + 1..], "{tiles} tiles, {threads} threads");
        }
    }
    Ok(())
}

/// The memory belongs to the caller, who may have written anything there. Bits that are not a value do not become one.
#[test]
fn a_chain_makes_no_invalid_values_of_its_memory() -> Result<()> {
    let stream = stream()?;
    for (bits, expected) in
        [(0x01_00_01_01u64, [true, true, false, true]), (0x01_00_01_03, [false; 4]), (!0, [false; 4])]
    {
        let mut words = vec![0; Chain::<[bool; 4]>::words(2)];
        words[1] = 1 << 32 | bits & 0xffff_ffff;
        let (mut out, mut chain) = (stream.buffer_zeroed::<[bool; 4]>(1)?, stream.buffer_from(&words)?);
        truths_of_a_tile::launch(&stream, (1, 1), &mut out, &mut chain)?;
        assert_eq!(out.to_vec()?, [expected], "{bits:#x}");
    }
    Ok(())
}

#[test]
fn the_last_block_gets_the_total_of_all_sanitize() -> Result<()> {
    let stream = stream()?;
    for (tiles, threads) in [(1, 32), (2, 5), (33, 32), (70, 64), (300, 96), (1025, 128)] {
        let x = values::<u64>(tiles, tiles as u64);
        let mut total = stream.buffer_zeroed::<u64>(1)?;
        let mut chain = stream.buffer_zeroed::<u64>(Chain::<u64>::words(tiles))?;
        total_of_tiles::launch(&stream, (tiles as u32, threads), &stream.buffer_from(&x)?, &mut total, &mut chain)?;
        let expected = x.iter().fold(0u64, |sum, &x| sum.wrapping_add(x));
        assert_eq!(total.to_vec()?, [expected], "{tiles} tiles, {threads} threads");
    }
    Ok(())
}

/// One workspace has chains of values of several sizes, with more and with fewer tiles, between launches of a graph with a chain of its
/// own.
#[test]
fn a_workspace_serves_one_chain_after_the_other_sanitize() -> Result<()> {
    let stream = stream()?;
    let mut workspace = Workspace::with_capacity(&stream, 1 << 16)?;
    let most = 50_000;
    let captured = stream.buffer_from(&vec![3u64; most])?;
    let mut captured_sums = stream.buffer_zeroed::<u64>(most)?;
    let graph = stream
        .capture(|stream| inclusive_scan(Run::on(stream).with(&mut workspace), &captured, Add, &mut captured_sums))?;
    for (round, len) in [20_000, most, 9_000, 30_000].into_iter().enumerate() {
        let host: Vec<u32> = values::<u32>(len, round as u64).into_iter().map(|x| x % 5).collect();
        let x = stream.buffer_from(&host)?;
        let (mut out, mut sums) = (stream.buffer_zeroed::<u32>(len)?, stream.buffer_zeroed::<u32>(len)?);
        let mut count = stream.buffer_zeroed::<u64>(1)?;

        inclusive_scan(Run::on(&stream).with(&mut workspace), &x, Add, &mut out)?;
        let mut sum = 0;
        let expected: Vec<u32> = host
            .iter()
            .map(|x| {
                sum += x;
                sum
            })
            .collect();
        assert!(out.to_vec()? == expected, "{len} sums");

        // Blocks of a reduction read words that other blocks have written.
        let long: Vec<i64> = (0..3 * len as i64).map(|i| i * (round as i64 + 1)).collect();
        let mut total = stream.buffer_zeroed::<i64>(1)?;
        reduce(Run::on(&stream).with(&mut workspace), &stream.buffer_from(&long)?, Sum, &mut total)?;
        assert_eq!(total.to_vec()?, [long.iter().sum::<i64>()]);

        select_if(Run::on(&stream).with(&mut workspace), &x, bind_second(LessThan, 2), &mut out, &mut count)?;
        let expected: Vec<u32> = host.iter().copied().filter(|&x| x < 2).collect();
        assert_eq!(count.to_vec()?, [expected.len() as u64]);
        assert!(out.to_vec()?[..expected.len()] == expected, "some of {len}");

        graph.launch(&stream)?;
        assert!(captured_sums.to_vec()?.into_iter().eq((1..=most as u64).map(|i| 3 * i)), "sums of a graph");
        captured_sums.as_mut_slice().set_zero(&stream)?;

        let mut keys = host.clone();
        keys.dedup();
        unique(Run::on(&stream).with(&mut workspace), &x, &mut out, &mut count)?;
        assert_eq!(count.to_vec()?, [keys.len() as u64]);
        assert!(out.to_vec()?[..keys.len()] == keys, "some of {len} runs");

        reduce_by_key(Run::on(&stream).with(&mut workspace), &x, &x, Add, &mut out, &mut sums, &mut count)?;
        let expected: Vec<u32> = host.chunk_by(|a, b| a == b).map(|run| run.iter().sum()).collect();
        assert_eq!(count.to_vec()?, [expected.len() as u64]);
        assert!(sums.to_vec()?[..expected.len()] == expected, "sums of {len}");
    }
    Ok(())
}

/// The memory of an earlier call is enough for a capture, which allocates nothing.
#[test]
fn a_capture_after_a_call_finds_memory() -> Result<()> {
    let stream = stream()?;
    let mut workspace = Workspace::new();
    let x = stream.buffer_from(&vec![1u32; 50_000])?;
    let mut out = stream.buffer_zeroed::<u32>(50_000)?;
    inclusive_scan(Run::on(&stream).with(&mut workspace), &x, Add, &mut out)?;
    let graph = stream.capture(|stream| inclusive_scan(Run::on(stream).with(&mut workspace), &x, Add, &mut out))?;
    for _ in 0..2 {
        out.as_mut_slice().set_zero(&stream)?;
        graph.launch(&stream)?;
        assert!(out.to_vec()?.into_iter().eq(1..=50_000));
        out.as_mut_slice().set_zero(&stream)?;
        inclusive_scan(Run::on(&stream).with(&mut workspace), &x, Add, &mut out)?;
        assert!(out.to_vec()?.into_iter().eq(1..=50_000));
    }
    Ok(())
}

/// Fewer items may have more tiles.
#[test]
fn a_capture_after_a_call_with_more_items_finds_memory() -> Result<()> {
    const MORE: usize = 140_000;
    const FEWER: usize = 131_069;
    let stream = stream()?;
    let x = stream.buffer_from(&vec![1u32; MORE])?;
    let mut out = stream.buffer_zeroed::<u32>(MORE)?;
    let mut workspace = Workspace::new();
    inclusive_scan(Run::on(&stream).with(&mut workspace), &x, Add, &mut out)?;
    let graph = stream.capture(|stream| {
        let run = Run::on(stream).with(&mut workspace);
        inclusive_scan(run, x.slice(..FEWER)?, Add, out.slice_mut(..FEWER)?)
    })?;
    out.as_mut_slice().set_zero(&stream)?;
    graph.launch(&stream)?;
    assert!(out.to_vec()?[..FEWER].iter().copied().eq(1..=FEWER as u32));
    Ok(())
}

/// A value without a size takes no words, so its chain has fewer words than tiles.
#[test]
fn a_chain_of_values_without_a_size_has_one_word() -> Result<()> {
    let stream = stream()?;
    let words = Chain::<[u32; 0]>::words(5);
    let (mut out, mut chain) = (stream.buffer_zeroed::<u32>(5)?, stream.buffer_zeroed::<u64>(words)?);
    tiles_of_nothing::launch(&stream, (5, 32), &mut out, &mut chain)?;
    assert_eq!((words, out.to_vec()?), (1, vec![1, 2, 3, 4, 5]));
    Ok(())
}

/// CUDA begins blocks in any order. If a block takes a tile by its rank, it may wait for a block that cannot begin before this one ends,
/// because the blocks that wait fill the device.
#[test]
fn tiles_by_rank_are_a_deadlock_in_some_orders_and_tiles_by_ticket_in_none() -> Result<()> {
    const TILES: usize = 2500;
    for seed in 0..4 {
        let mut options = EmulatorOptions::default();
        (options.checked, options.seed) = (false, Some(seed));
        options.deadlock_after = Duration::from_millis(50);
        let stream = Device::emulator_with(options).stream()?;
        let x: Vec<Map<u32>> = (0..TILES as u32).map(|i| Map { a: 1, b: i }).collect();
        let x = stream.buffer_from(&x)?;
        let run = |by_rank| {
            let mut out = stream.buffer_zeroed::<Map<u32>>(TILES)?;
            let mut chain = stream.buffer_zeroed::<u64>(Chain::<Map<u32>>::words(TILES))?;
            prefixes_of_tiles::launch(&stream, (TILES as u32, 1), &x, &mut out, &mut chain, 1, by_rank)?;
            out.to_vec()
        };
        let sums = run(false)?;
        assert!((0..TILES as u32).all(|i| sums[i as usize].b == i * i.saturating_sub(1) / 2), "seed {seed}");
        match run(true) {
            Ok(by_rank) => assert!(by_rank == sums, "seed {seed}"),
            // It takes some seconds to notice this.
            Err(Error::Fault(fault)) if matches!(fault.diagnosis, Diagnosis::Deadlock { .. }) => return Ok(()),
            Err(error) => return Err(error),
        }
    }
    panic!("no order was a deadlock");
}

/// There are more tiles than the 64 blocks of 128 threads that run at a time. Tuning values make the tiles of selections small for this.
/// The test also runs in the place of each architecture by which kernels choose.
#[test]
fn algorithms_take_any_order_of_blocks() -> Result<()> {
    const LEN: usize = 200_000;
    let host: Vec<u32> = values::<u32>(LEN, 5).into_iter().map(|x| x % 5).collect();
    let heads: Vec<bool> = (0..LEN).map(|i| i == 0 || host[i] != host[i - 1]).collect();
    for (seed, arch) in [(1, 75), (2, 80), (3, 90)] {
        let mut options = EmulatorOptions::default();
        (options.checked, options.seed, options.arch) = (false, Some(seed), Some(arch));
        let stream = Device::emulator_with(options).stream()?;
        let mut tuning = Tuning::of(stream.device())?.clone();
        tuning.set(Parameter::SelectBlocks, None, 64)?;
        tuning.set(Parameter::UniqueBlocks, None, 64)?;
        let run = || Run::on(&stream).tuned(&tuning);
        let x = stream.buffer_from(&host)?;
        let (mut out, mut sums) = (stream.buffer_zeroed::<u32>(LEN)?, stream.buffer_zeroed::<u32>(LEN)?);
        let mut count = stream.buffer_zeroed::<u64>(1)?;

        reduce(run(), &x, Sum, sums.slice_mut(..1)?)?;
        assert_eq!(sums.slice(..1)?.to_vec()?, [host.iter().sum::<u32>()], "seed {seed}");

        let prefixes: Vec<u32> = host
            .iter()
            .scan(0, |sum, &x| {
                *sum += x;
                Some(*sum)
            })
            .collect();
        inclusive_scan(run(), &x, Add, &mut sums)?;
        assert!(sums.to_vec()? == prefixes, "sums, seed {seed}");

        let kept: Vec<u32> = host.iter().copied().filter(|&x| x < 2).collect();
        select_if(run(), &x, bind_second(LessThan, 2), &mut out, &mut count)?;
        assert_eq!(count.to_vec()?, [kept.len() as u64], "seed {seed}");
        assert!(out.to_vec()?[..kept.len()] == kept, "some, seed {seed}");

        let runs: Vec<u32> = (0..LEN).filter(|&i| heads[i]).map(|i| host[i]).collect();
        unique(run(), &x, &mut out, &mut count)?;
        assert_eq!(count.to_vec()?, [runs.len() as u64], "seed {seed}");
        assert!(out.to_vec()?[..runs.len()] == runs, "runs, seed {seed}");

        let lengths: Vec<u32> = host.chunk_by(|a, b| a == b).map(|run| run.len() as u32).collect();
        run_length_encode(run(), &x, &mut out, &mut sums, &mut count)?;
        assert!(out.to_vec()?[..runs.len()] == runs && sums.to_vec()?[..runs.len()] == lengths, "lengths, seed {seed}");

        let totals: Vec<u32> = runs.iter().zip(&lengths).map(|(x, len)| x * len).collect();
        reduce_by_key(run(), &x, &x, Add, &mut out, &mut sums, &mut count)?;
        assert!(out.to_vec()?[..runs.len()] == runs && sums.to_vec()?[..runs.len()] == totals, "totals, seed {seed}");

        let mut sum = 0;
        let by_key: Vec<u32> = host
            .iter()
            .zip(&heads)
            .map(|(&x, &head)| {
                sum = if head { x } else { sum + x };
                sum
            })
            .collect();
        inclusive_scan_by_key(run(), &x, &x, Add, &mut sums)?;
        assert!(sums.to_vec()? == by_key, "sums by key, seed {seed}");
    }
    Ok(())
}
