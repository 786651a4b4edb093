//! Tests functors and types that keep no promise. The results may be anything, but nothing outside the outputs is written, nothing outside
//! the inputs is read (the emulator would report this), and every call ends.

use std::sync::atomic::Ordering;

use kernel_primitives::algorithms::{
    Run, inclusive_scan_by_key, merge, merge_pairs, partition, reduce_by_key, run_length_encode,
    segmented_inclusive_scan, segmented_reduce, segmented_sort, select_if, sort_by, sort_pairs_by, stable_partition,
    unique_by_key,
};
use kernel_primitives::functor::{Add, Sum};
use kernel_primitives::input::{Span, counting, map};
use kernel_primitives::kernels::device::{HISTOGRAM_THREADS, histogram_tiles};
use kernel_primitives::{BufferSliceMut, Device, Dims, Element, Error, Result, Stream};

use crate::kernels::Order;
use crate::kernels::hostile::{CALLS, Coin, Drift, EvenCounted, Fickle};
use crate::segments::segmented::tiles;
use crate::support::{stream, values};

/// Lengths of one tile, and of several.
const LENGTHS: [usize; 3] = [3, 2000, 40_000];

/// The number of elements on each side of an output.
const GUARD: usize = 64;

/// Makes an output of `len` elements, and checks that the elements around it are unchanged.
#[track_caller]
fn guarded<T: Element + PartialEq>(
    stream: &Stream,
    len: usize,
    guard: T,
    run: impl FnOnce(BufferSliceMut<'_, T>) -> Result<()>,
) -> Result<()> {
    let mut buffer = stream.buffer_from(&vec![guard; len + 2 * GUARD])?;
    let result = run(buffer.slice_mut(GUARD..GUARD + len)?);
    let found = buffer.to_vec()?;
    let (front, back) = (&found[..GUARD], &found[GUARD + len..]);
    assert!(front.iter().chain(back).all(|&found| found == guard), "what lies around the output was written");
    result
}

/// Checks that the call works, or that a thread has found the mistake.
#[track_caller]
fn works_or_faults(result: Result<()>) {
    assert!(matches!(result, Ok(()) | Err(Error::Fault(_))), "{result:?}");
}

#[test]
fn comparators_that_toss_coins() -> Result<()> {
    let stream = stream()?;
    for len in LENGTHS {
        let (a, b) = (stream.buffer_from(&values::<u32>(len, 1))?, stream.buffer_from(&values::<u32>(len / 3, 2))?);
        guarded(&stream, len, 7, |out| sort_by(&stream, &a, Order::COIN, out))?;
        let (first, second) = (counting(0u32, len), counting(0u32, len / 3));
        guarded(&stream, len, 7, |keys| {
            guarded(&stream, len, 7, |values| sort_pairs_by(&stream, &a, first, Order::COIN, keys, values))
        })?;
        guarded(&stream, len + len / 3, 7, |out| merge(&stream, &a, &b, Order::COIN, out))?;
        guarded(&stream, len + len / 3, 7, |keys| {
            guarded(&stream, len + len / 3, 7, |values| {
                merge_pairs(&stream, (&a, first), (&b, second), Order::COIN, keys, values)
            })
        })?;
    }
    Ok(())
}

#[test]
fn predicates_that_toss_coins() -> Result<()> {
    let stream = stream()?;
    for len in LENGTHS {
        let x = stream.buffer_from(&values::<u32>(len, 3))?;
        let mut count = stream.buffer_zeroed::<u64>(1)?;
        guarded(&stream, len, 7, |out| select_if(&stream, &x, Coin, out, &mut count))?;
        assert!(count.to_vec()?[0] <= len as u64);
        // If a predicate is asked twice about an item and gives two answers, the item gets the place of another item, or a place that does
        // not exist.
        works_or_faults(guarded(&stream, len, 7, |out| partition(&stream, &x, Coin, out, &mut count)));
        works_or_faults(guarded(&stream, len, 7, |out| stable_partition(&stream, &x, Coin, out, &mut count)));
    }
    Ok(())
}

/// A place without an item may have the first item, whose calls are not counted.
#[test]
fn a_predicate_is_called_as_often_as_the_docs_say() -> Result<()> {
    let stream = Device::emulator().stream()?;
    for len in [1000, 40_001] {
        let x = stream.buffer_from(&(0..len).collect::<Vec<u32>>())?;
        let (mut out, mut count) = (stream.buffer_zeroed::<u32>(x.len())?, stream.buffer_zeroed::<u64>(1)?);
        let calls = || CALLS.swap(0, Ordering::Relaxed);
        calls();
        select_if(&stream, &x, EvenCounted, &mut out, &mut count)?;
        stream.synchronize()?;
        assert_eq!(calls(), 2 * (len - 1));
        partition(&stream, &x, EvenCounted, &mut out, &mut count)?;
        stream.synchronize()?;
        assert_eq!(calls(), 2 * (len - 1));
        stable_partition(&stream, &x, EvenCounted, &mut out, &mut count)?;
        stream.synchronize()?;
        assert_eq!(calls(), 3 * (len - 1));
    }
    Ok(())
}

#[test]
fn keys_that_are_equal_by_chance() -> Result<()> {
    let stream = stream()?;
    for len in LENGTHS {
        let keys: Vec<Fickle> = values::<u32>(len, 4).into_iter().map(Fickle).collect();
        let (keys, x) = (stream.buffer_from(&keys)?, stream.buffer_from(&values::<u32>(len, 5))?);
        let (mut count, mut found) = (stream.buffer_zeroed::<u64>(1)?, stream.buffer_zeroed::<Fickle>(len)?);
        guarded(&stream, len, 7, |out| unique_by_key(&stream, &keys, &x, &mut found, out, &mut count))?;
        assert!(count.to_vec()?[0] <= len as u64);
        guarded(&stream, len, 7u32, |out| run_length_encode(&stream, &keys, &mut found, out, &mut count))?;
        assert!(count.to_vec()?[0] <= len as u64);
        let numbers = counting(0u32, len);
        guarded(&stream, len, 7, |out| reduce_by_key(&stream, &keys, numbers, Add, &mut found, out, &mut count))?;
        assert!(count.to_vec()?[0] <= len as u64);
        guarded(&stream, len, 7, |out| inclusive_scan_by_key(&stream, &keys, &x, Add, out))?;
    }
    Ok(())
}

#[test]
fn bins_that_are_none() -> Result<()> {
    let stream = stream()?;
    for (len, bins) in [(3, 1), (2000, 100), (40_000, 50_000)] {
        let x = stream.buffer_from(&values::<u32>(len, 6))?;
        let levels = stream.buffer_zeroed::<u32>(0)?;
        let dims = || Dims::new(3, HISTOGRAM_THREADS as u32).shared_bytes(64 << 10);
        for copies in [0, 5, 31, 32, 61, 64, u32::MAX] {
            guarded(&stream, bins, 0, |counts| {
                histogram_tiles::<Span<u32>, Coin, u32>::launch(&stream, dims(), &x, &levels, counts, Coin, copies)
            })?;
        }
    }
    Ok(())
}

/// Some inputs are longer than the short inputs that are handled in another way.
#[test]
fn offsets_that_move() -> Result<()> {
    let stream = stream()?;
    let tiles = tiles()?;
    let tiled = || Run::on(&stream).tuned(&tiles);
    for (len, segments) in [(300, 10), (40_000, 100), (40_000, 9000)] {
        let x = stream.buffer_from(&values::<u32>(len, 7))?;
        let offsets: Vec<u32> = (0..=segments).map(|i| (i * len / segments) as u32).collect();
        let offsets = stream.buffer_from(&offsets)?;
        for _ in 0..4 {
            let at = || map(&offsets, Drift::BY_CHANCE);
            works_or_faults(guarded(&stream, segments, 7, |out| segmented_reduce(&stream, &x, at(), Sum, out)));
            works_or_faults(guarded(&stream, len, 7, |out| segmented_sort(&stream, &x, at(), Order::COIN, out)));
            works_or_faults(guarded(&stream, len, 7, |out| segmented_inclusive_scan(&stream, &x, at(), Add, out)));
            works_or_faults(guarded(&stream, len, 7, |out| segmented_inclusive_scan(tiled(), &x, at(), Add, out)));
        }
    }
    Ok(())
}
