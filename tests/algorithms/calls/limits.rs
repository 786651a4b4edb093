//! Tests limits: blocks with little shared memory, inputs with more items than there is memory, and workspaces of other devices. The net
//! calls every algorithm with the shared memory of any architecture.

use kernel_primitives::algorithms::{
    Run, Workspace, exclusive_scan, exclusive_scan_by_key, gather, histogram_even, inclusive_scan,
    inclusive_scan_by_key, lower_bound, merge_pairs, partition, reduce, reduce_by_key, run_length_encode,
    segmented_exclusive_scan, segmented_inclusive_scan, segmented_reduce, segmented_sort_pairs, select_flagged,
    select_if, sort_by, sort_keys, sort_keys_by_bits, sort_pairs, sort_pairs_by, sort_pairs_by_bits, stable_partition,
    top_k_pairs, transform, unique, unique_by_key,
};
use kernel_primitives::functor::{Add, Identity, Less, LessThan, ReduceBy, Sum, bind_second};
use kernel_primitives::input::{Span, constant, counting, map};
use kernel_primitives::kernels::device::{
    MERGE_SORT_THREADS, MergeSortShape, SortTileStorage, count_digits_bytes, histogram_counters,
    merge_sort_tiles_pairs, sort_tile_items,
};
use kernel_primitives::output::discard;
use kernel_primitives::prelude::{Element, SortKey};
use kernel_primitives::simt::FaultKind;
use kernel_primitives::view::SharedStorage;
use kernel_primitives::{Complex, Device, Diagnosis, Dims, EmulatorOptions, Error, Result};

use crate::kernels::{AddEach, Sixteen, Times};
use crate::support::{stream, values};
use crate::{at, in_order};

/// The shared memory of a block by architecture: of sm_75, of sm_86, sm_89 and sm_120, of sm_80 and sm_87, and of sm_90 and sm_100. A
/// kernel that can fault has 16 bytes of it for itself, which the emulator does not need.
const LIMITS: [usize; 4] = [64 << 10, 99 << 10, 163 << 10, 227 << 10];
const OWN: usize = 16;

fn emulator(max_shared_bytes: usize) -> Device {
    let mut options = EmulatorOptions::default();
    options.max_shared_bytes = max_shared_bytes;
    Device::emulator_with(options)
}

/// If a kernel needs more shared memory than there is, the emulator returns the error of a GPU.
#[test]
fn a_launch_that_does_not_fit_is_an_error() -> Result<()> {
    let stream = emulator(4096).stream()?;
    let mut out = stream.buffer_zeroed::<u32>(9)?;
    let error = sort_keys(&stream, &stream.buffer_zeroed::<u32>(9)?, &mut out, Less).unwrap_err();
    assert!(matches!(error, Error::LaunchLimit { what: "shared memory in bytes", limit: 4096, .. }), "{error}");
    Ok(())
}

/// The tiles of sorts fit for keys and values of all usual sizes. They are as large as before for the sizes that must be fast.
#[test]
fn the_shapes_of_sorts_fit_everywhere() {
    const RANKS: usize = 8224;
    fn fits<K: SortKey, V: Element>() {
        let (key, value) = (size_of::<K>(), size_of::<V>());
        let needed = SortTileStorage::<K, V>::BYTES + RANKS + OWN;
        let tile = sort_tile_items(key, value);
        assert!(needed <= LIMITS[0] && tile >= 2048, "{key} and {value} bytes: {needed}, {tile}");
    }
    fn fits_with<K: SortKey>() {
        fits::<K, [u8; 0]>();
        fits::<K, u8>();
        fits::<K, u16>();
        fits::<K, f32>();
        fits::<K, u64>();
        fits::<K, [f32; 3]>();
        fits::<K, Complex<f64>>();
        fits::<K, [u64; 512]>();
    }
    fits_with::<u8>();
    fits_with::<u16>();
    fits_with::<f32>();
    fits_with::<u64>();
    for value in [0, 1, 2, 4, 8, 12, 16] {
        for key in [1, 2, 4, 8, 12, 16] {
            for limit in LIMITS {
                let shape = MergeSortShape::of(key, value, limit);
                assert!(shape.shared_bytes + OWN <= limit, "{key} and {value} bytes: {shape:?} of {limit}");
            }
        }
    }
    for limit in LIMITS {
        assert!([1, 2, 4, 8].iter().all(|&key| count_digits_bytes(key, limit) + OWN <= limit));
        assert!(histogram_counters::<u32>(limit) * 4 + OWN <= limit);
    }
    assert_eq!([0, 4, 8, 16].map(|value| sort_tile_items(4, value)), [8192, 8192, 6144, 3072]);
    assert_eq!(LIMITS.map(|limit| MergeSortShape::of(4, 4, limit).tile), [4096, 8192, 8192, 8192]);
    assert_eq!(LIMITS.map(histogram_counters::<u32>), [16_380, 16_384, 16_384, 16_384]);
    assert_eq!(LIMITS.map(|limit| count_digits_bytes(4, limit)), [32 << 10, 64 << 10, 64 << 10, 64 << 10]);
}

/// The lengths are near the ends of the tiles, and of the numbers of items for which there is shorter code.
#[test]
fn pairs_are_sorted_in_small_tiles() -> Result<()> {
    let device = emulator(LIMITS[0] - OWN);
    let stream = device.stream()?;
    macro_rules! check {
        ($($k:ty, $v:ty;)*) => {$(
            let tile = sort_tile_items(size_of::<$k>(), size_of::<$v>());
            for len in [1000, 1024, 1025, 4096, 4097, tile - 1, tile, tile + 1, 3 * tile + 5] {
                let (x, y) = (values::<$k>(len, 1), values::<$v>(len, 2));
                let places = in_order(len, &|i, j| x[i].cmp(&x[j]));
                let (sorted, along): (Vec<$k>, Vec<$v>) = (at(&x, &places), at(&y, &places));
                let (keys, values) = (stream.buffer_from(&x)?, stream.buffer_from(&y)?);
                let (mut out, mut values_out) = (stream.buffer_zeroed::<$k>(len)?, stream.buffer_zeroed::<$v>(len)?);
                sort_pairs(&stream, &keys, &values, &mut out, &mut values_out, Less)?;
                assert!(out.to_vec()? == sorted && values_out.to_vec()? == along, "{len} of {}", stringify!($k, $v));
            }
        )*};
    }
    check! {
        u32, u32;
        u64, u32;
        u32, u64;
        u64, Sixteen;
        u32, Sixteen;
    }
    for len in [2048, 2049, 4096, 4097, 8192, 8193, 20_000] {
        let x: Vec<u32> = values::<u32>(len, 1).into_iter().map(|x| x % 99).collect();
        let (keys, mut out) = (stream.buffer_from(&x)?, stream.buffer_zeroed::<u32>(len)?);
        let mut places = stream.buffer_zeroed::<u32>(len)?;
        let expected = in_order(len, &|i, j| x[i].cmp(&x[j]));
        sort_pairs_by(&stream, &keys, counting(0u32, len), Less, &mut out, &mut places)?;
        assert!(places.to_vec()? == expected, "{len}");
        sort_by(&stream, &keys, Less, &mut out)?;
        assert!(out.to_vec()?.into_iter().eq(expected.iter().map(|&i| x[i as usize])), "{len}");
    }
    Ok(())
}

#[test]
fn bins_are_counted_in_little_shared_memory() -> Result<()> {
    let stream = emulator(LIMITS[0] - OWN).stream()?;
    let x = values::<u32>(30_000, 1);
    for bins in [1, 512, 600, 16_379, 16_380, 16_381, 16_384, 20_000] {
        let mut expected = vec![0u32; bins];
        for &x in &x {
            expected[((x as u64 * bins as u64) >> 32) as usize] += 1;
        }
        let mut counts = stream.buffer_zeroed::<u32>(bins)?;
        histogram_even(&stream, &stream.buffer_from(&x)?, 0, 1 << 32, &mut counts)?;
        assert!(counts.to_vec()? == expected, "{bins}");
    }
    Ok(())
}

/// Each of a block's counters has 32 bits. The counts of all blocks may have more.
#[test]
fn more_items_than_a_block_can_count_are_counted() -> Result<()> {
    let stream = stream()?;
    // The emulator would take a day for this length.
    let len = if stream.device().is_gpu() { 1usize << 40 } else { 100_000 };
    let mut counts = stream.buffer_zeroed::<u64>(2)?;
    histogram_even(&stream, constant(5u32, len), 0, 10, &mut counts)?;
    assert_eq!(counts.to_vec()?, [0, len as u64]);
    Ok(())
}

#[test]
fn inputs_of_more_items_than_any_device_comes_to_the_end_of_are_refused() -> Result<()> {
    let stream = stream()?;
    let (flags, offsets) = (stream.buffer_zeroed::<bool>(3)?, stream.buffer_from(&[0u32, 1])?);
    let (mut out, mut count) = (stream.buffer_zeroed::<u64>(3)?, stream.buffer_zeroed::<u64>(1)?);
    for len in [(1 << 48) + 1, isize::MAX as usize, usize::MAX - 1, usize::MAX] {
        let x = counting(0u64, len);
        let errors = [
            ("reduce", reduce(&stream, x, Sum, &mut out)),
            ("transform", transform(&stream, x, Identity, discard(len))),
            ("segmented_reduce", segmented_reduce(&stream, x, &offsets, Sum, &mut out)),
            ("histogram_even", histogram_even(&stream, constant(5u32, len), 0, 10, &mut count)),
        ];
        for (algorithm, result) in errors {
            let error = result.unwrap_err();
            let Error::LaunchLimit { kernel, what, asked, .. } = &error else { panic!("{error}") };
            assert_eq!((&kernel[..], *what, *asked), (algorithm, "the number of items", len as u64), "{error}");
        }
        // The lengths are those of both inputs.
        select_flagged(&stream, x, &flags, &mut out, &mut count)?;
        assert_eq!(count.to_vec()?, [0]);
    }
    Ok(())
}

/// An error of lengths names the algorithm that was called and the argument that is too short.
#[test]
fn errors_name_the_algorithm_and_the_argument() -> Result<()> {
    let stream = stream()?;
    let x = stream.buffer_from(&[1u32, 1, 2])?;
    let offsets = stream.buffer_from(&[0u32, 3])?;
    let (mut out, mut values) = (stream.buffer_zeroed::<u32>(3)?, stream.buffer_zeroed::<u32>(3)?);
    let (mut short, mut other) = (stream.buffer_zeroed::<u32>(2)?, stream.buffer_zeroed::<u32>(2)?);
    let (flags, mut places) = (stream.buffer_zeroed::<bool>(3)?, stream.buffer_zeroed::<u64>(2)?);
    let mut no_count = stream.buffer_zeroed::<u64>(0)?;
    let keep = bind_second(LessThan, 2u32);
    macro_rules! check {
        ($($algorithm:ident($($arg:expr),*) names $argument:literal;)*) => {$(
            let error = $algorithm(&stream, $($arg),*).unwrap_err();
            let Error::LengthMismatch { kernel, second, .. } = &error else { panic!("{error}") };
            assert_eq!((&kernel[..], &second[..]), (stringify!($algorithm), concat!("`", $argument, "`")), "{error}");
        )*};
    }
    check! {
        unique(&x, &mut out, &mut no_count) names "count";
        unique_by_key(&x, &x, &mut out, &mut values, &mut no_count) names "count";
        select_if(&x, keep, &mut out, &mut no_count) names "count";
        select_flagged(&x, &flags, &mut out, &mut no_count) names "count";
        partition(&x, keep, &mut out, &mut no_count) names "count";
        stable_partition(&x, keep, &mut out, &mut no_count) names "count";
        run_length_encode(&x, &mut out, &mut values, &mut no_count) names "count";
        reduce_by_key(&x, &x, Add, &mut out, &mut values, &mut no_count) names "count";
        inclusive_scan(&x, Add, &mut short) names "out";
        exclusive_scan(&x, 0, Add, &mut short) names "out";
        inclusive_scan_by_key(&x, &x, Add, &mut short) names "out";
        exclusive_scan_by_key(&x, &x, 0, Add, &mut short) names "out";
        segmented_inclusive_scan(&x, &offsets, Add, &mut short) names "out";
        segmented_exclusive_scan(&x, &offsets, 0, Add, &mut short) names "out";
        sort_keys(&x, &mut short, Less) names "out";
        sort_keys_by_bits(&x, &mut short, Less, 0..8) names "out";
        sort_pairs(&x, &x, &mut short, &mut values, Less) names "keys_out";
        sort_pairs(&x, &x, &mut out, &mut short, Less) names "values_out";
        sort_pairs_by_bits(&x, &x, &mut out, &mut short, Less, 0..8) names "values_out";
        sort_pairs_by(&x, &x, Less, &mut out, &mut short) names "values_out";
        segmented_sort_pairs(&x, &x, &offsets, Less, &mut short, &mut other) names "keys_out";
        top_k_pairs(&x, counting(0u32, 3), 3, Less, &mut out, &mut short) names "values_out";
        merge_pairs((&x, &x), (&x, &x), Less, &mut out, &mut values) names "keys_out";
        lower_bound(&x, &x, &mut places) names "positions";
        gather(&x, &x, &mut short) names "out";
    }
    Ok(())
}

#[test]
fn the_workspace_of_another_device_is_refused() -> Result<()> {
    let (stream, other) = (stream()?, Device::emulator().stream()?);
    if !stream.device().is_gpu() {
        // There is only one emulator.
        return Ok(());
    }
    let mut workspace = Workspace::new();
    for len in [10, 100_000] {
        let (x, mut sum) = (other.buffer_zeroed::<f32>(len)?, other.buffer_zeroed::<f32>(1)?);
        reduce(Run::on(&other).with(&mut workspace), &x, Sum, &mut sum)?;
        let (x, mut sum) = (stream.buffer_zeroed::<f32>(len)?, stream.buffer_zeroed::<f32>(1)?);
        let error = reduce(Run::on(&stream).with(&mut workspace), &x, Sum, &mut sum).unwrap_err();
        assert!(matches!(&error, Error::WrongDevice { argument, .. } if argument == "the workspace"), "{error}");
    }
    Ok(())
}

/// Calls that fail by a check or by a fault are between calls that are right.
#[test]
fn a_workspace_is_right_after_a_call_that_failed() -> Result<()> {
    let stream = Device::emulator().stream()?;
    let mut workspace = Workspace::new();
    let x: Vec<u32> = values(50_000, 3);
    let flags = values::<bool>(50_000, 4);
    let kept: Vec<u32> = x.iter().zip(&flags).filter(|(_, flag)| **flag).map(|(&x, _)| x).collect();
    let (x, flags) = (stream.buffer_from(&x)?, stream.buffer_from(&flags)?);
    let (mut out, mut count) = (stream.buffer_zeroed::<u32>(50_000)?, stream.buffer_zeroed::<u64>(1)?);
    let mut none = stream.buffer_zeroed::<u64>(0)?;
    for _ in 0..3 {
        select_flagged(Run::on(&stream).with(&mut workspace), &x, &flags, &mut out, &mut count)?;
        assert_eq!((&out.to_vec()?[..kept.len()], &count.to_vec()?[..]), (&kept[..], &[kept.len() as u64][..]));
        let run = Run::on(&stream).with(&mut workspace);
        let error = select_flagged(run, &x, &flags, &mut out, &mut none).unwrap_err();
        assert!(matches!(error, Error::LengthMismatch { .. }), "{error}");
        let run = Run::on(&stream).with(&mut workspace);
        let error = select_flagged(run, &x, &flags, out.slice_mut(..1000)?, &mut count).unwrap_err();
        assert!(matches!(error, Error::Fault(_)), "{error}");
        out.copy_from(&[0; 50_000])?;
    }
    Ok(())
}

/// Threads with streams of their own take turns with one workspace.
#[test]
fn a_workspace_serves_two_threads_and_two_streams() -> Result<()> {
    let device = Device::auto()?;
    let workspace = std::sync::Mutex::new(Workspace::new());
    let work = |seed: u64| -> Result<bool> {
        let stream = device.stream()?;
        let len = 30_000 + 5000 * seed as usize;
        let x: Vec<u32> = values::<u32>(len, seed).into_iter().map(|x| x % 1000).collect();
        let mut sorted = x.clone();
        sorted.sort_unstable();
        let (keys, mut out) = (stream.buffer_from(&x)?, stream.buffer_zeroed::<u32>(len)?);
        let mut sum = stream.buffer_zeroed::<u32>(1)?;
        let mut is_right = true;
        for _ in 0..5 {
            {
                let mut workspace = workspace.lock().expect("no thread panics");
                sort_keys(Run::on(&stream).with(&mut workspace), &keys, &mut out, Less)?;
                reduce(Run::on(&stream).with(&mut workspace), &keys, Sum, &mut sum)?;
            }
            is_right &= out.to_vec()? == sorted && sum.to_vec()? == [x.iter().sum::<u32>()];
            out.as_mut_slice().set_zero(&stream)?;
        }
        Ok(is_right)
    };
    std::thread::scope(|scope| {
        let other = scope.spawn(|| work(1));
        assert!(work(2)?);
        assert!(other.join().expect("it does not panic")?);
        Ok(())
    })
}

/// If few tiles of pairs are sorted, there are twice as many tiles, each for itself. In a whole tile, a key and a value of every 33 places are
/// gaps. Half a tile has none.
#[test]
fn tiles_of_half_the_pairs_are_sorted() -> Result<()> {
    let stream = stream()?;
    let whole = MergeSortShape::of(4, 4, stream.device().properties().max_shared_bytes);
    let half = whole.halved(4, 4);
    let shape = MergeSortShape::of(4, 4, usize::MAX);
    assert_eq!((shape.tile, shape.shared_bytes), (8192, 2 * (8192 + 8192 / 32) * 4));
    assert_eq!((half.tile, half.shared_bytes), (4096, 2 * 4096 * 4));
    assert_eq!(MergeSortShape::of(8, 8, usize::MAX).halved(8, 8), MergeSortShape::of(8, 8, usize::MAX));
    let x: Vec<u32> = (0..2 * half.tile as u32 - 50).map(|i| i.wrapping_mul(0x9e37_79b9) >> 8).collect();
    let (keys, values) = (stream.buffer_from(&x)?, stream.buffer_from(&(0..x.len() as u32).collect::<Vec<_>>())?);
    let (mut out, mut values_out) = (stream.buffer_zeroed::<u32>(x.len())?, stream.buffer_zeroed::<u32>(x.len())?);
    merge_sort_tiles_pairs::<Span<u32>, Span<u32>, Less>::launch(
        &stream,
        Dims::new(2, MERGE_SORT_THREADS as u32).shared_bytes(half.shared_bytes),
        &keys,
        &values,
        &mut out,
        &mut values_out,
        Less,
    )?;
    let mut places: Vec<u32> = (0..x.len() as u32).collect();
    places.chunks_mut(half.tile).for_each(|tile| tile.sort_by_key(|&i| x[i as usize]));
    assert!(values_out.to_vec()? == places);
    assert!(out.to_vec()?.iter().zip(&places).all(|(&key, &place)| key == x[place as usize]));
    Ok(())
}

/// The device has processors for twice the number of tiles. There are more launches than for whole tiles, in one workspace and in a graph.
#[test]
fn few_pairs_are_sorted_by_tiles_of_half_as_many() -> Result<()> {
    let mut options = EmulatorOptions::default();
    (options.checked, options.threads) = (false, 8);
    let device = Device::emulator_with(options);
    let stream = device.stream()?;
    let mut workspace = Workspace::new();
    // There is one tile; then three, four and eight tiles of half the pairs; and then five whole tiles, because half tiles would need too
    // many processors.
    for (len, launches) in [(8192, 1), (8193, 3), (12_289, 3), (32_768, 4), (32_769, 4)] {
        let x: Vec<u32> = values::<u32>(len, 1).into_iter().map(|x| x % 99).collect();
        let expected = in_order(len, &|i, j| x[i].cmp(&x[j]));
        let (keys, mut out) = (stream.buffer_from(&x)?, stream.buffer_zeroed::<u32>(len)?);
        let mut places = stream.buffer_zeroed::<u32>(len)?;
        let before = device.counters();
        let run = Run::on(&stream).with(&mut workspace);
        sort_pairs_by(run, &keys, counting(0u32, len), Less, &mut out, &mut places)?;
        assert_eq!(device.counters().since(before).launches, launches, "{len}");
        assert!(places.to_vec()? == expected, "{len}");
        places.copy_from(&vec![0; len])?;
        let graph = stream.capture(|stream| {
            let run = Run::on(stream).with(&mut workspace);
            sort_pairs_by(run, &keys, counting(0u32, len), Less, &mut out, &mut places)
        })?;
        graph.launch(&stream)?;
        assert!(places.to_vec()? == expected, "{len}");
        assert!(out.to_vec()? == at(&x, &expected), "{len}");
    }
    Ok(())
}

/// Pairs of 16 bytes are sorted in tiles of half as many if blocks have 64 KiB of shared memory.
#[test]
fn wide_pairs_are_sorted_by_halves_in_little_shared_memory() -> Result<()> {
    let stream = emulator(LIMITS[0] - OWN).stream()?;
    assert_eq!(LIMITS.map(|limit| MergeSortShape::of(8, 8, limit - OWN).tile), [2048, 4096, 4096, 4096]);
    for len in [2048, 2049, 4096, 4097, 9000] {
        let x: Vec<u64> = values::<u64>(len, 1).into_iter().map(|x| x % 99).collect();
        let expected = in_order(len, &|i, j| x[i].cmp(&x[j]));
        let along: Vec<u64> = (0..len as u64).collect();
        let (keys, from) = (stream.buffer_from(&x)?, stream.buffer_from(&along)?);
        let (mut out, mut places) = (stream.buffer_zeroed::<u64>(len)?, stream.buffer_zeroed::<u64>(len)?);
        sort_pairs_by(&stream, &keys, &from, Less, &mut out, &mut places)?;
        assert!(places.to_vec()? == at(&along, &expected), "{len}");
    }
    Ok(())
}

/// This is a launch of its own. Usually the caller of the kernel checks the lengths before.
#[test]
fn a_tile_of_pairs_has_a_value_for_each_key() -> Result<()> {
    let stream = stream()?;
    let shape = MergeSortShape::of(4, 4, stream.device().properties().max_shared_bytes);
    let keys = stream.buffer_from(&[3u32, 1, 2])?;
    for (values, is_enough) in [(3, true), (2, false), (0, false)] {
        let values = stream.buffer_from(&[10u32, 20, 30][..values])?;
        let (mut out, mut values_out) = (stream.buffer_zeroed::<u32>(3)?, stream.buffer_zeroed::<u32>(3)?);
        let launched = merge_sort_tiles_pairs::<Span<u32>, Span<u32>, Less>::launch(
            &stream,
            Dims::new(1, MERGE_SORT_THREADS as u32).shared_bytes(shape.shared_bytes),
            &keys,
            &values,
            &mut out,
            &mut values_out,
            Less,
        );
        match launched.and_then(|()| stream.synchronize()) {
            Ok(()) => assert_eq!((is_enough, values_out.to_vec()?), (true, vec![20, 30, 10])),
            Err(Error::Fault(fault)) => {
                assert!(!is_enough);
                assert!(
                    matches!(&fault.diagnosis, Diagnosis::Raised(raised) if raised.kind == FaultKind::BadShape),
                    "{fault}"
                );
            }
            Err(other) => return Err(other),
        }
    }
    Ok(())
}

/// There are few segments, and so many that tiles are reduced. The second segment is in several of these.
#[test]
fn wide_items_are_reduced_with_little_shared_memory() -> Result<()> {
    macro_rules! check {
        ($($n:literal)*) => {$(for limit in LIMITS {
            let stream = emulator(limit - OWN).stream()?;
            for empty in [0, 9000] {
                let offsets: Vec<u32> = [0, 5, 305].into_iter().chain(vec![305; empty]).collect();
                let x: Vec<[u64; $n]> = (0..305).map(|i| [i; $n]).collect();
                let (x, at) = (stream.buffer_from(&x)?, stream.buffer_from(&offsets)?);
                let mut out = stream.buffer_zeroed::<[u64; $n]>(offsets.len() - 1)?;
                segmented_reduce(&stream, &x, &at, ReduceBy(AddEach), &mut out)?;
                let expected = [[10; $n], [(5..305).sum::<u64>(); $n]];
                assert_eq!(out.to_vec()?[..2], expected, "{limit} bytes, {empty} empty segments");
            }
        })*};
    }
    check!(3 32);
    Ok(())
}

#[test]
fn wide_values_of_narrow_keys_fit_everywhere() -> Result<()> {
    for limit in LIMITS {
        let stream = emulator(limit - OWN).stream()?;
        let keys = stream.buffer_from(&(0..1000).map(|i| (i / 3 % 7) as u8).collect::<Vec<_>>())?;
        let x = stream.buffer_from(&vec![[1u64; 32]; 1000])?;
        let (mut found, mut sums) = (stream.buffer_zeroed::<u8>(334)?, stream.buffer_zeroed::<[u64; 32]>(334)?);
        let mut count = stream.buffer_zeroed::<u64>(1)?;
        reduce_by_key(&stream, &keys, &x, AddEach, &mut found, &mut sums, &mut count)?;
        assert_eq!(count.to_vec()?, [334]);
        assert!(sums.to_vec()?[..333].iter().all(|sum| *sum == [3; 32]));

        let (mut items, mut lengths) = (stream.buffer_zeroed::<[u8; 128]>(334)?, stream.buffer_zeroed::<u32>(334)?);
        run_length_encode(&stream, map(&keys, Times::<128>), &mut items, &mut lengths, &mut count)?;
        assert!(lengths.to_vec()?[..333].iter().all(|&length| length == 3));
        assert!(items.to_vec()?.iter().enumerate().all(|(run, item)| *item == [(run % 7) as u8; 128]));
    }
    Ok(())
}

/// The error has the number of blocks that are needed, also if it has more than 32 bits.
#[test]
fn a_grid_that_is_too_large_is_named_by_its_blocks() -> Result<()> {
    let stream = stream()?;
    let blocks = |len: usize| match transform(&stream, counting(0u64, len), Identity, discard(len)).unwrap_err() {
        Error::LaunchLimit { what: "the grid's x dimension", asked, .. } => asked,
        error => panic!("{error}"),
    };
    assert_eq!(blocks(1 << 48), 2 * blocks(1 << 47));
    assert!(blocks(1 << 48) > u64::from(u32::MAX));
    Ok(())
}
