//! Tests sorts by comparators against the standard library's stable sort.

use kernel_primitives::algorithms::{Parameter, Run, Tuning, Workspace, sort_by, sort_pairs_by};
use kernel_primitives::functor::{Greater, Less};
use kernel_primitives::input::{counting, reversed};
use kernel_primitives::kernels::device::{MERGE_SPLIT_THREADS, merge_sort_tile_items, merge_tile_items};
use kernel_primitives::{Error, Result, SortKey, f16};

use crate::kernels::{ByB, ByFirst, Flagged, Order, Sixteen, Twelve};
use crate::support::{stream, streams, values};
use crate::{at, in_order};

/// The number of items of a tile of four-byte keys.
const TILE: usize = merge_sort_tile_items(4, 0);

/// Lengths near the items that a block sorts, and lengths with no pass of merges after that, one pass, two and three passes. In the first
/// two passes, the last run is alone.
const LENGTHS: [usize; 15] = [
    0,
    1,
    2,
    31,
    33,
    1000,
    2048,
    2049,
    TILE / 2,
    TILE / 2 + 1,
    TILE - 1,
    TILE,
    TILE + 1,
    3 * TILE + merge_tile_items(4, 0),
    4 * TILE + 5,
];

/// Returns keys of several kinds that are difficult for sorts.
fn keys(len: usize, kind: usize) -> Vec<u32> {
    let random = values::<u32>(len, kind as u64 + 1);
    match kind % 5 {
        0 => random,
        1 => vec![0xabcd_ef01; len],
        2 => random.iter().map(|x| [7, 1 << 31, 0, u32::MAX][*x as usize % 4]).collect(),
        3 => (0..len as u32).map(|i| i * 3).collect(),
        _ => (0..len as u32).rev().collect(),
    }
}

#[test]
fn keys_of_any_length_and_kind_are_sorted() -> Result<()> {
    let stream = stream()?;
    for (k, len) in LENGTHS.into_iter().enumerate() {
        // Either side is on any boundary.
        let (x, from, to) = (keys(len + 4, k), k % 5, k % 4);
        let from = from.min(4);
        let buffer = stream.buffer_from(&x)?;
        let mut out = stream.buffer_from(&vec![77; len + 9])?;
        sort_by(&stream, buffer.slice(from..from + len)?, Less, out.slice_mut(to..)?)?;
        let mut expected = x[from..from + len].to_vec();
        expected.sort_unstable();
        let found = out.to_vec()?;
        assert!(found[to..to + len] == expected, "{len} keys");
        assert!(found[..to].iter().chain(&found[to + len..]).all(|&x| x == 77), "{len} keys");
    }
    Ok(())
}

#[test]
fn equal_keys_stay_in_their_order() -> Result<()> {
    let stream = stream()?;
    for (k, len) in LENGTHS.into_iter().enumerate() {
        let x = keys(len, k + 2);
        let buffer = stream.buffer_from(&x)?;
        let expected = in_order(len, &|i, j| (x[i] % 10).cmp(&(x[j] % 10)));
        let mut out = stream.buffer_zeroed::<u32>(len)?;
        sort_by(&stream, &buffer, Order::by_remainder(10), &mut out)?;
        assert!(out.to_vec()? == at(&x, &expected), "{len} keys");
        let mut places = stream.buffer_zeroed::<u32>(len)?;
        sort_pairs_by(&stream, &buffer, counting(0u32, len), Order::by_remainder(10), &mut out, &mut places)?;
        assert!(places.to_vec()? == expected, "{len} pairs");
        assert!(out.to_vec()? == at(&x, &expected), "{len} pairs");
    }
    Ok(())
}

#[test]
fn pairs_in_the_order_of_keys() -> Result<()> {
    let stream = stream()?;
    for (k, len) in LENGTHS.into_iter().enumerate() {
        let x = keys(len + 1, k);
        let buffer = stream.buffer_from(&x)?;
        let x = &x[k % 2..][..len];
        let places = stream.buffer_from(&(0..len as u32).collect::<Vec<_>>())?;
        let (mut out, mut values) = (stream.buffer_zeroed::<u32>(len + 3)?, stream.buffer_zeroed::<u32>(len + 1)?);
        let from = buffer.slice(k % 2..k % 2 + len)?;
        sort_pairs_by(&stream, from, &places, Less, out.slice_mut(k % 3..)?, values.slice_mut(k % 2..)?)?;
        let expected = in_order(len, &|i, j| x[i].cmp(&x[j]));
        assert!(values.to_vec()?[k % 2..][..len] == expected, "values of {len} pairs");
        assert!(out.to_vec()?[k % 3..][..len] == at(x, &expected), "keys of {len} pairs");
    }
    Ok(())
}

#[test]
fn items_and_values_of_any_size() -> Result<()> {
    let stream = stream()?;
    for len in [700, 20_001] {
        macro_rules! check {
            ($($x:expr, $order:expr, |$a:ident| $key:expr;)*) => {$({
                let x = $x;
                let mut out = stream.buffer_zeroed(len)?;
                sort_by(&stream, &stream.buffer_from(&x)?, $order, &mut out)?;
                let key = |i: usize| { let $a = &x[i]; $key };
                let expected = at(&x, &in_order(len, &|i, j| key(i).cmp(&key(j))));
                let same = out.to_vec()?.iter().zip(&expected).all(|(a, b)| format!("{a:?}") == format!("{b:?}"));
                assert!(same, "{len} by {}", stringify!($order));
            })*};
        }
        check! {
            values::<u8>(len, 1), Less, |a| *a;
            values::<u64>(len, 2), Less, |a| *a;
            values::<Twelve>(len, 4), ByB, |a| a.b;
            values::<u32>(len, 7).into_iter().map(|x| [x as u64 % 50, x as u64, 1, 2]).collect::<Vec<_>>(), ByFirst, |a| a[0];
            values::<u32>(len, 8).into_iter().map(|x| x as i32).collect::<Vec<_>>(), Greater, |a| std::cmp::Reverse(*a);
            values::<u64>(len, 9).into_iter().map(|x| x as i64).collect::<Vec<_>>(), Less, |a| *a;
        }
        let x = keys(len, 2);
        let buffer = stream.buffer_from(&x)?;
        let places = in_order(len, &|i, j| x[i].cmp(&x[j]));
        let mut out = stream.buffer_zeroed::<u32>(len)?;
        macro_rules! check_values {
            ($($t:ty),*) => {$({
                let values = values::<$t>(len, 6);
                let mut values_out = stream.buffer_zeroed::<$t>(len)?;
                sort_pairs_by(&stream, &buffer, &stream.buffer_from(&values)?, Less, &mut out, &mut values_out)?;
                assert!(values_out.to_vec()? == at(&values, &places));
            })*};
        }
        check_values!(Sixteen, Flagged, u8);
    }
    Ok(())
}

/// −0 is before +0 and NaN is last, or all of this is the other way round.
#[test]
fn floats_are_in_their_total_order() -> Result<()> {
    let stream = stream()?;
    let special = [0.0f32, -0.0, f32::NAN, -f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1e-40, -1e-40];
    for len in [100, 30_000] {
        let random = values::<u32>(len, 3).into_iter();
        let mut x: Vec<f32> =
            random.map(|x| special.get(x as usize % 16).copied().unwrap_or(f32::from_bits(x))).collect();
        let buffer = stream.buffer_from(&x)?;
        let mut out = stream.buffer_zeroed::<f32>(len)?;
        sort_by(&stream, &buffer, Greater, &mut out)?;
        x.sort_by_key(|x| std::cmp::Reverse(x.to_sort_bits()));
        assert!(out.to_vec()?.iter().zip(&x).all(|(a, b)| a.to_bits() == b.to_bits()), "{len}");

        let mut halves: Vec<f16> = values::<u16>(len, 4).into_iter().map(f16::from_bits).collect();
        let mut out = stream.buffer_zeroed::<f16>(len)?;
        sort_by(&stream, reversed(&stream.buffer_from(&halves)?), Less, &mut out)?;
        halves.sort_by_key(|x| x.to_sort_bits());
        assert!(out.to_vec()?.iter().zip(&halves).all(|(a, b)| a.to_bits() == b.to_bits()), "{len}");
    }
    Ok(())
}

#[test]
fn a_function_that_is_no_order_does_no_harm() -> Result<()> {
    let stream = stream()?;
    for len in [100, 3000, 3 * TILE + 5] {
        let buffer = stream.buffer_from(&keys(len, 0))?;
        let mut out = stream.buffer_zeroed::<u32>(len)?;
        sort_by(&stream, &buffer, Order::NONE, &mut out)?;
        let mut values = stream.buffer_zeroed::<u32>(len)?;
        sort_pairs_by(&stream, &buffer, counting(0u32, len), Order::NONE, &mut out, &mut values)?;
        stream.synchronize()?;
    }
    Ok(())
}

#[test]
fn keys_and_pairs_of_two_tiles_are_sorted_sanitize() -> Result<()> {
    for stream in streams()? {
        let x = keys(TILE + 9, 0);
        let buffer = stream.buffer_from(&x)?;
        let mut out = stream.buffer_zeroed::<u32>(x.len())?;
        sort_by(&stream, &buffer, Less, &mut out)?;
        let expected = in_order(x.len(), &|i, j| x[i].cmp(&x[j]));
        assert!(out.to_vec()? == at(&x, &expected));
        let mut places = stream.buffer_zeroed::<u32>(x.len())?;
        sort_pairs_by(&stream, &buffer, counting(0u32, x.len()), Order::by_remainder(1 << 31), &mut out, &mut places)?;
        let expected = in_order(x.len(), &|i, j| (x[i] % (1 << 31)).cmp(&(x[j] % (1 << 31))));
        assert!(places.to_vec()? == expected);
    }
    Ok(())
}

/// Tiles of merges have only one run, from and to any boundary, with values of another size.
#[test]
fn runs_one_behind_the_other_are_in_order_sanitize() -> Result<()> {
    let stream = stream()?;
    let len = 3 * TILE + merge_tile_items(4, 0) / 2 + 3;
    for (k, kind) in [1, 3, 4, 1].into_iter().enumerate() {
        let x = keys(len + 4, kind);
        let (buffer, x) = (stream.buffer_from(&x)?, &x[k..][..len]);
        let values = values::<Sixteen>(len, 5);
        let expected = in_order(len, &|i, j| x[i].cmp(&x[j]));

        let from = buffer.slice(k..k + len)?;
        let mut out = stream.buffer_zeroed::<u32>(len + 3)?;
        sort_by(&stream, from, Less, out.slice_mut(3 - k..)?)?;
        assert!(out.to_vec()?[3 - k..][..len] == at(x, &expected), "kind {kind}");
        let mut values_out = stream.buffer_zeroed::<Sixteen>(len)?;
        sort_pairs_by(&stream, from, &stream.buffer_from(&values)?, Less, out.slice_mut(..len)?, &mut values_out)?;
        assert!(out.to_vec()?[..len] == at(x, &expected), "pairs of kind {kind}");
        assert!(values_out.to_vec()? == at(&values, &expected), "kind {kind}");
    }
    Ok(())
}

/// There are more tiles than search for themselves, because a tuning value makes this number small. There are also more than a block of the
/// search has threads. Tiles of items of forty bytes are small.
#[test]
fn more_tiles_than_search_for_themselves_are_sorted() -> Result<()> {
    let stream = stream()?;
    let mut tuning = Tuning::of(stream.device())?.clone();
    tuning.set(Parameter::MergeSearching, None, 100)?;
    let len = (MERGE_SPLIT_THREADS + 1) * merge_tile_items(40, 0) + 30;
    let mut x: Vec<[u64; 5]> =
        values::<u32>(len, 1).into_iter().map(|x| [(x % 5000) as u64, x as u64, 1, 2, 3]).collect();
    let mut out = stream.buffer_zeroed::<[u64; 5]>(len)?;
    sort_by(Run::on(&stream).tuned(&tuning), &stream.buffer_from(&x)?, ByFirst, &mut out)?;
    x.sort_by_key(|x| x[0]);
    assert!(out.to_vec()? == x);
    Ok(())
}

#[test]
fn a_graph_sorts_again_and_again_and_a_workspace_is_enough() -> Result<()> {
    let stream = stream()?;
    let len = TILE + 1000;
    let mut from = stream.buffer_from(&keys(len, 0))?;
    let mut out = stream.buffer_zeroed::<u32>(len)?;
    let mut workspace = Workspace::new();
    sort_by(Run::on(&stream).with(&mut workspace), &from, Less, &mut out)?;
    let before = stream.device().counters();
    sort_by(Run::on(&stream).with(&mut workspace), &from, Less, &mut out)?;
    let counted = stream.device().counters().since(before);
    // A GPU also counts the launches of other tests at the same time.
    if !stream.device().is_gpu() {
        assert_eq!((counted.allocations, counted.synchronizations), (0, 0));
    }
    let graph = stream.capture(|stream| sort_by(Run::on(stream).with(&mut workspace), &from, Less, &mut out))?;
    for kind in [0, 2, 4] {
        let mut expected = keys(len, kind);
        from.copy_from(&expected)?;
        graph.launch(&stream)?;
        expected.sort_unstable();
        assert!(out.to_vec()? == expected);
    }
    Ok(())
}

#[test]
fn misuse_is_refused() -> Result<()> {
    let stream = stream()?;
    let x = stream.buffer_zeroed::<u32>(10)?;
    let (mut out, mut short) = (stream.buffer_zeroed::<u32>(11)?, stream.buffer_zeroed::<u32>(9)?);
    let error = sort_by(&stream, &x, Less, &mut short).unwrap_err();
    assert!(matches!(error, Error::LengthMismatch { first_len: 10, second_len: 9, .. }), "{error}");
    let mut values = stream.buffer_zeroed::<u32>(10)?;
    let error = sort_pairs_by(&stream, &x, counting(0u32, 11), Less, &mut out, &mut values).unwrap_err();
    assert!(error.to_string().contains("`keys` has 10 elements, but `values` has 11"), "{error}");
    let error = sort_pairs_by(&stream, &x, counting(0u32, 10), Less, &mut out, &mut short).unwrap_err();
    assert!(matches!(error, Error::LengthMismatch { .. }), "{error}");
    Ok(())
}
