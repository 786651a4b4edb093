//! Tests the first few items of many against a stable sort.

use kernel_primitives::algorithms::{Parameter, Run, Tuning, Workspace, top_k, top_k_pairs};
use kernel_primitives::functor::{Greater, Less};
use kernel_primitives::input::{counting, reversed};
use kernel_primitives::kernels::device::{TOP_K_MOST, TOP_K_TILE, merge_sort_tile_items};
use kernel_primitives::{Device, Element, EmulatorOptions, Error, Result, SortKey, Stream};

use crate::kernels::Sixteen;
use crate::support::{stream, streams, values};
use crate::{at, in_order};

/// Returns floats of several kinds that are difficult for searches.
fn floats(len: usize, kind: usize) -> Vec<f32> {
    let random = values::<u32>(len, kind as u64 + 1);
    let special = [0.0f32, -0.0, f32::NAN, -f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1e-40, -1e-40];
    match kind % 6 {
        0 => random.iter().map(|&x| x as f32).collect(),
        1 => vec![2.5; len],
        2 => random.iter().map(|&x| special.get(x as usize % 16).copied().unwrap_or(f32::from_bits(x))).collect(),
        3 => (0..len).map(|i| i as f32).collect(),
        4 => (0..len).map(|i| -(i as f32)).collect(),
        _ => random.iter().map(|&x| (x % 3) as f32).collect(),
    }
}

/// Returns the places of the first `k` items. Of equal items, the first ones count.
fn first<K: SortKey>(x: &[K], k: usize, greatest: bool) -> Vec<u32> {
    let mut places = in_order(x.len(), &|i, j| {
        let order = x[i].to_sort_bits().cmp(&x[j].to_sort_bits());
        if greatest { order.reverse() } else { order }
    });
    places.truncate(k);
    places
}

fn same(found: &[f32], expected: &[f32]) -> bool {
    found.len() == expected.len() && found.iter().zip(expected).all(|(a, b)| a.to_bits() == b.to_bits())
}

/// Checks both directions, with and without places, after `skip` items.
fn check(stream: &Stream, x: &[f32], skip: usize, k: usize) -> Result<()> {
    let buffer = stream.buffer_from(x)?;
    let (x, len) = (&x[skip..], x.len() - skip);
    let mut out = stream.buffer_from(&vec![7.0f32; k + 1])?;
    let mut places = stream.buffer_zeroed::<u32>(k)?;
    let slice = buffer.slice(skip..)?;
    top_k(stream, slice, k, Less, &mut out)?;
    let mut expected = at(x, &first(x, k, false));
    expected.push(7.0);
    assert!(same(&out.to_vec()?, &expected), "the least {k} of {len}");
    let greatest = first(x, k, true);
    top_k(stream, slice, k, Greater, &mut out)?;
    assert!(same(&out.to_vec()?[..k], &at(x, &greatest)), "the greatest {k} of {len}");
    top_k_pairs(stream, slice, counting(0u32, len), k, Greater, &mut out, &mut places)?;
    assert!(same(&out.to_vec()?[..k], &at(x, &greatest)), "the greatest {k} of {len}, with places");
    assert!(places.to_vec()? == greatest, "the places of the greatest {k} of {len}");
    Ok(())
}

/// Lengths for two blocks. A block has at least eight tiles, and a checked emulator has at most two blocks. Both have the same number of
/// tiles, or the first block has one more.
const OF_TWO_BLOCKS: [usize; 2] = [17 * TOP_K_TILE + 5, 19 * TOP_K_TILE - 3];

#[test]
fn of_inputs_of_any_length_and_kind() -> Result<()> {
    let stream = stream()?;
    let lengths = [0, 1, 31, 1000, TOP_K_TILE - 1, TOP_K_TILE, TOP_K_TILE + 1].into_iter().chain(OF_TWO_BLOCKS);
    for (i, len) in lengths.enumerate() {
        for (j, k) in [0, 1, 7, 100, TOP_K_MOST].into_iter().filter(|&k| k <= len).enumerate() {
            let skip = (i + j) % 4;
            check(&stream, &floats(len + skip, i + j), skip, k)?;
        }
    }
    Ok(())
}

/// The last tile is not whole, and has fewer items than are found.
#[test]
fn of_more_tiles_than_a_block_has() -> Result<()> {
    let stream = stream()?;
    for kind in 0..6 {
        check(&stream, &floats(OF_TWO_BLOCKS[0], kind), 0, [100, TOP_K_MOST][kind % 2])?;
    }
    Ok(())
}

/// There are bursts of better items. A block with many tiles has no room for all of them at once.
#[test]
fn bursts_of_winners_are_kept() -> Result<()> {
    let stream = stream()?;
    let mut tuning = Tuning::of(stream.device())?.clone();
    tuning.set(Parameter::TopKTiles, Some(4), 1000)?;
    let with = |len: usize, bursts: &[(usize, usize, f32)]| {
        let mut x = vec![0.0f32; len];
        for &(from, count, level) in bursts {
            x.iter_mut().skip(from).take(count).for_each(|item| *item = level);
        }
        x
    };
    let find = |x: &[f32], k: usize| -> Result<()> {
        let buffer = stream.buffer_from(x)?;
        let (mut out, mut places) = (stream.buffer_zeroed::<f32>(k)?, stream.buffer_zeroed::<u32>(k)?);
        let run = Run::on(&stream).tuned(&tuning);
        top_k_pairs(run, &buffer, counting(0u32, x.len()), k, Greater, &mut out, &mut places)?;
        let expected = first(x, k, true);
        assert!(same(&out.to_vec()?, &at(x, &expected)), "the greatest {k}");
        assert!(places.to_vec()? == expected, "the places of the greatest {k}");
        Ok(())
    };
    // In any order of a block's tiles, some burst comes after bursts that have left half of the room.
    for tiles in [15, 16] {
        for second in 1..tiles {
            for third in [second + 1, (second + tiles / 2) % tiles, tiles - second] {
                let tile = TOP_K_TILE;
                let bursts = [(0, tile, 10.0), (second * tile, tile / 2, 30.0), (third * tile, 400, 20.0)];
                find(&with(tiles * tile, &bursts), TOP_K_MOST)?;
            }
        }
    }
    for k in [1, 31, 1000, TOP_K_MOST] {
        for seed in 0..6u64 {
            let places = values::<u32>(12, seed);
            let tiles = 9 + seed as usize;
            let bursts: Vec<_> = places
                .chunks(2)
                .map(|p| {
                    (
                        p[0] as usize % (tiles * TOP_K_TILE),
                        [400, 1024, 1536, 2048][p[1] as usize % 4],
                        (p[1] % 7) as f32,
                    )
                })
                .collect();
            find(&with(tiles * TOP_K_TILE - seed as usize, &bursts), k)?;
        }
    }
    Ok(())
}

/// A merge sort keeps these items.
#[test]
fn of_more_than_a_block_has_room_for() -> Result<()> {
    let stream = stream()?;
    let tile = merge_sort_tile_items(4, 0);
    for (kind, (len, k)) in [
        (TOP_K_MOST + 1, TOP_K_MOST + 1),
        (tile, 5000),
        (2 * tile, 1025),
        (3 * tile + 9, 1100),
        (5 * tile + 100, tile + 3),
        (5 * tile + 100, 5 * tile + 100),
        (4 * tile + 5, 2 * tile + 7),
    ]
    .into_iter()
    .enumerate()
    {
        check(&stream, &floats(len, kind), kind % 2, k - kind % 2)?;
    }
    Ok(())
}

#[test]
fn keys_and_values_of_any_type() -> Result<()> {
    let stream = stream()?;
    let x = values::<u64>(20_000, 1);
    let mut out = stream.buffer_zeroed::<u64>(30)?;
    top_k(&stream, reversed(&stream.buffer_from(&x)?), 30, Less, &mut out)?;
    let mut expected = x;
    expected.sort_unstable();
    assert_eq!(out.to_vec()?, expected[..30]);

    let x: Vec<u8> = values(20_000, 2);
    let y = values::<Sixteen>(20_000, 3);
    for k in [50, 2000] {
        let mut out = stream.buffer_zeroed::<u8>(k)?;
        let mut with = stream.buffer_from(&vec![Sixteen::ZERO; k])?;
        let (keys, values) = (stream.buffer_from(&x)?, stream.buffer_from(&y)?);
        top_k_pairs(&stream, &keys, &values, k, Greater, &mut out, &mut with)?;
        let places = first(&x, k, true);
        assert_eq!(out.to_vec()?, at(&x, &places));
        assert!(with.to_vec()? == at(&y, &places), "values of {k}");
    }
    Ok(())
}

#[test]
fn of_a_few_items_sanitize() -> Result<()> {
    for stream in streams()? {
        check(&stream, &floats(5000, 2), 1, 33)?;
    }
    Ok(())
}

/// Several blocks find a limit, and look at what comes before it.
#[test]
fn by_a_limit_sanitize() -> Result<()> {
    for stream in streams()? {
        check(&stream, &floats(17 * TOP_K_TILE + 6, 2), 1, 129)?;
    }
    Ok(())
}

/// Both blocks have more segments with candidates than they list.
#[test]
fn of_more_segments_than_a_block_lists() -> Result<()> {
    let stream = stream()?;
    // Two blocks read 8192 items together. Each of their threads has one of the first items, each segment of 256 items has one, and the
    // last of these is a thread's only one, so that the limit comes after all of them.
    let len = 80 * 8192 + 7;
    let mut x: Vec<u64> = values::<u64>(len, 1).into_iter().map(|x| x >> 2 | 1 << 62).collect();
    for (i, item) in x.iter_mut().enumerate() {
        let row = i / 64;
        if row % 128 < 32 && (i % 64 == 0 || row < 32 && i % 2 == 0) {
            *item &= (1 << 60) - 1;
        }
    }
    x[31 * 64 + 62] = 1 << 61;
    let keys = stream.buffer_from(&x)?;
    for k in [900, TOP_K_MOST - 1, TOP_K_MOST] {
        let (mut out, mut places) = (stream.buffer_zeroed::<u64>(k)?, stream.buffer_zeroed::<u32>(k)?);
        top_k_pairs(&stream, &keys, counting(0u32, len), k, Less, &mut out, &mut places)?;
        let expected = first(&x, k, false);
        assert!(out.to_vec()? == at(&x, &expected) && places.to_vec()? == expected, "{k}");
    }
    Ok(())
}

/// The records of these keys differ from the last record only by their places.
#[test]
fn of_keys_that_come_last() -> Result<()> {
    let stream = stream()?;
    for len in [OF_TWO_BLOCKS[0], OF_TWO_BLOCKS[1]] {
        let (most, least) = (stream.buffer_from(&vec![u32::MAX; len])?, stream.buffer_from(&vec![0u32; len])?);
        for k in [1, 127, 128, 129, TOP_K_MOST - 1, TOP_K_MOST] {
            let (mut out, mut places) = (stream.buffer_from(&vec![7u32; k])?, stream.buffer_zeroed::<u32>(k)?);
            top_k_pairs(&stream, &most, counting(0u32, len), k, Less, &mut out, &mut places)?;
            assert!(out.to_vec()? == vec![u32::MAX; k] && places.to_vec()?.into_iter().eq(0..k as u32), "{k}");
            top_k_pairs(&stream, &least, counting(0u32, len), k, Greater, &mut out, &mut places)?;
            assert!(out.to_vec()? == vec![0; k] && places.to_vec()?.into_iter().eq(0..k as u32), "{k}");
        }
    }
    Ok(())
}

#[test]
fn a_workspace_is_enough_and_nobody_waits() -> Result<()> {
    let stream = stream()?;
    let x = stream.buffer_from(&floats(OF_TWO_BLOCKS[1], 0))?;
    let mut out = stream.buffer_zeroed::<f32>(2000)?;
    let mut workspace = Workspace::new();
    for k in [100, 2000] {
        top_k(Run::on(&stream).with(&mut workspace), &x, k, Greater, &mut out)?;
        let before = stream.device().counters();
        top_k(Run::on(&stream).with(&mut workspace), &x, k, Greater, &mut out)?;
        let counted = stream.device().counters().since(before);
        // A GPU also counts the launches of other tests at the same time.
        if !stream.device().is_gpu() {
            assert_eq!((counted.allocations, counted.synchronizations), (0, 0));
        }
        let graph = stream.capture(|stream| top_k(Run::on(stream).with(&mut workspace), &x, k, Greater, &mut out))?;
        out.copy_from(&[0.0; 2000])?;
        graph.launch(&stream)?;
        let host = x.to_vec()?;
        assert!(same(&out.to_vec()?[..k], &at(&host, &first(&host, k, true))), "{k}");
    }
    Ok(())
}

#[test]
fn misuse_is_refused() -> Result<()> {
    let stream = Device::emulator_with(EmulatorOptions::default()).stream()?;
    let x = stream.buffer_zeroed::<f32>(10)?;
    let (mut out, mut short) = (stream.buffer_zeroed::<f32>(11)?, stream.buffer_zeroed::<u32>(4)?);
    let error = top_k(&stream, &x, 11, Greater, &mut out).unwrap_err();
    assert_eq!(error.to_string(), "top_k: the first 11 of 10 items were asked for");
    let error = top_k(&stream, &x, 5, Greater, out.slice_mut(..4)?).unwrap_err();
    assert!(matches!(error, Error::LengthMismatch { first_len: 5, second_len: 4, .. }), "{error}");
    let error = top_k_pairs(&stream, &x, counting(0u32, 9), 5, Greater, &mut out, &mut short).unwrap_err();
    assert!(error.to_string().contains("`keys` has 10 elements, but `values` has 9"), "{error}");
    let error = top_k_pairs(&stream, &x, counting(0u32, 10), 5, Greater, &mut out, &mut short).unwrap_err();
    assert!(matches!(error, Error::LengthMismatch { first_len: 5, second_len: 4, .. }), "{error}");
    Ok(())
}

/// There is one block, there are several, and there are more items than blocks find.
#[test]
fn of_truths() -> Result<()> {
    let stream = stream()?;
    for (len, k) in [(50, 7), (40_000, 100), (40_000, TOP_K_MOST), (40_000, 30_000)] {
        let x: Vec<bool> = values::<u8>(len, 4).into_iter().map(|x| x < 2).collect();
        let mut out = stream.buffer_zeroed::<bool>(k)?;
        top_k(&stream, &stream.buffer_from(&x)?, k, Greater, &mut out)?;
        let count = x.iter().filter(|&&x| x).count();
        assert!(out.to_vec()?.into_iter().eq((0..k).map(|i| i < count)), "{k} of {len}");
    }
    Ok(())
}

#[test]
fn of_integers_in_either_order() -> Result<()> {
    let stream = stream()?;
    macro_rules! check {
        ($($t:ty)*) => {$(
            for (len, k) in [(3000, 9), (OF_TWO_BLOCKS[0], 300), (20_000, 5000)] {
                let x = values::<$t>(len, k as u64);
                let keys = stream.buffer_from(&x)?;
                let mut out = stream.buffer_zeroed::<$t>(k)?;
                top_k(&stream, &keys, k, Greater, &mut out)?;
                assert!(out.to_vec()? == at(&x, &first(&x, k, true)), "the greatest {k} of {len}");
                top_k(&stream, &keys, k, Less, &mut out)?;
                assert!(out.to_vec()? == at(&x, &first(&x, k, false)), "the least {k} of {len}");
            }
        )*};
    }
    check!(u32 i32);
    let x = values::<u32>(30_000, 1);
    let keys = stream.buffer_from(&x)?;
    for k in [20, 2000] {
        let (mut out, mut places) = (stream.buffer_zeroed::<u32>(k)?, stream.buffer_zeroed::<u32>(k)?);
        top_k_pairs(&stream, &keys, counting(0u32, x.len()), k, Greater, &mut out, &mut places)?;
        assert!(places.to_vec()? == first(&x, k, true), "{k}");
        top_k_pairs(&stream, &keys, counting(0u32, x.len()), k, Less, &mut out, &mut places)?;
        assert!(places.to_vec()? == first(&x, k, false), "{k}");
    }
    Ok(())
}
