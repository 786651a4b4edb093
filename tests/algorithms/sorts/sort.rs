//! Tests sorts of whole buffers against the standard library's sorts.

use std::array;
use std::cmp::Reverse;

use kernel_primitives::algorithms::{
    Run, Workspace, sort_by, sort_keys, sort_keys_by_bits, sort_pairs, sort_pairs_by_bits, top_k,
};
use kernel_primitives::functor::{Greater, Less, Turned};
use kernel_primitives::kernels::device::{SORT_AHEAD, SORT_THREADS, sort_tile, sort_tile_items, sort_tile_pairs};
use kernel_primitives::{Error, Result, SortKey, f16};

use crate::kernels::hostile::Lit;
use crate::kernels::{Flagged, Sixteen};
use crate::support::{stream, streams, values};
use crate::{at, in_order};

/// The number of items of a tile of four-byte keys.
const TILE: usize = sort_tile_items(4, 0);

/// Returns keys of several kinds that are difficult for sorts.
fn keys(len: usize, kind: usize) -> Vec<u32> {
    let random = values::<u32>(len, kind as u64 + 1);
    match kind % 6 {
        0 => random,
        1 => vec![0xabcd_ef01; len],
        2 => random.iter().map(|x| [7, 1 << 31, 0, u32::MAX][*x as usize % 4]).collect(),
        3 => (0..len as u32).map(|i| i * 3).collect(),
        4 => (0..len as u32).rev().collect(),
        _ => random.iter().map(|x| x & 0xff00_0000).collect(),
    }
}

/// Returns the result of a sort by some of the bits: the indices, in order.
fn sorted_by<K: SortKey>(keys: &[K], bits: std::ops::Range<u32>, descending: bool) -> Vec<u32>
where
    u64: From<<K as SortKey>::Bits>,
{
    let digits = |i: usize| {
        let above = u64::from(keys[i].to_sort_bits()) as u128 & ((1 << bits.end) - 1);
        above >> bits.start
    };
    in_order(keys.len(), &|i, j| {
        let order = digits(i).cmp(&digits(j));
        if descending { order.reverse() } else { order }
    })
}

/// Compares all bits, without printing long vectors.
fn same<K: SortKey>(found: &[K], expected: &[K]) -> bool {
    found.len() == expected.len() && found.iter().zip(expected).all(|(a, b)| a.to_sort_bits() == b.to_sort_bits())
}

/// The lengths are near one tile. There are also so many tiles that the last one looks twice at the tiles before it.
#[test]
fn keys_of_any_length_and_kind_are_sorted() -> Result<()> {
    let stream = stream()?;
    let many = (SORT_AHEAD as usize + 1) * TILE + 5;
    for (k, len) in [0, 1, 2, 33, 1000, TILE - 1, TILE, TILE + 1, 2 * TILE, 3 * TILE + 5, many].into_iter().enumerate()
    {
        for kind in [k, k + 3] {
            let (x, from, to) = (keys(len + 4, kind), k % 5, k % 4);
            let buffer = stream.buffer_from(&x)?;
            let x = &x[from.min(4)..][..len];
            let mut out = stream.buffer_from(&vec![77; len + 9])?;
            sort_keys(&stream, buffer.slice(from.min(4)..from.min(4) + len)?, out.slice_mut(to..)?, Less)?;
            let mut expected = x.to_vec();
            expected.sort_unstable();
            let found = out.to_vec()?;
            assert!(found[to..to + len] == expected, "{len} keys of kind {kind}");
            assert!(found[..to].iter().chain(&found[to + len..]).all(|&x| x == 77), "{len} keys of kind {kind}");
        }
    }
    Ok(())
}

#[test]
fn pairs_of_any_length_and_kind_keep_the_order_of_equal_keys() -> Result<()> {
    let stream = stream()?;
    for (k, len) in [0, 1, 31, TILE - 1, TILE, TILE + 1, 2 * TILE + 77, 3 * TILE + 5].into_iter().enumerate() {
        let x = keys(len, k + 1);
        let expected = sorted_by(&x, 0..32, k % 2 == 1);
        let (from, values) = (stream.buffer_from(&x)?, stream.buffer_from(&(0..len as u32).collect::<Vec<_>>())?);
        let (mut out, mut values_out) = (stream.buffer_zeroed::<u32>(len)?, stream.buffer_zeroed::<u32>(len)?);
        if k % 2 == 1 {
            sort_pairs(&stream, &from, &values, &mut out, &mut values_out, Greater)?;
        } else {
            sort_pairs(&stream, &from, &values, &mut out, &mut values_out, Less)?;
        }
        assert!(out.to_vec()? == at(&x, &expected), "{len} keys");
        assert!(values_out.to_vec()? == expected, "values of {len} keys");
    }
    Ok(())
}

#[test]
fn a_range_of_bits_is_sorted_and_the_rest_is_not_looked_at() -> Result<()> {
    let stream = stream()?;
    for len in [3000, TILE + 3000] {
        let x = values::<u64>(len, 5);
        let (from, values) = (stream.buffer_from(&x)?, stream.buffer_from(&(0..len as u32).collect::<Vec<_>>())?);
        let (mut out, mut values_out) = (stream.buffer_zeroed::<u64>(len)?, stream.buffer_zeroed::<u32>(len)?);
        for (k, bits) in [0..64, 0..0, 64..64, 5..6, 3..11, 30..47, 63..64].into_iter().enumerate() {
            let expected = sorted_by(&x, bits.clone(), k % 2 == 0);
            if k % 2 == 0 {
                sort_keys_by_bits(&stream, &from, &mut out, Greater, bits.clone())?;
                assert!(out.to_vec()? == at(&x, &expected), "{len} keys by {bits:?}");
                sort_pairs_by_bits(&stream, &from, &values, &mut out, &mut values_out, Greater, bits.clone())?;
            } else {
                sort_pairs_by_bits(&stream, &from, &values, &mut out, &mut values_out, Less, bits.clone())?;
            }
            assert!(out.to_vec()? == at(&x, &expected), "{len} keys by {bits:?}");
            assert!(values_out.to_vec()? == expected, "values of {len} keys by {bits:?}");
        }
    }
    Ok(())
}

/// Each type has its order, with −0 before +0 and NaN last, in one tile and in several. The net has sorts of `bool`.
#[test]
fn every_type_of_key_is_sorted_either_way() -> Result<()> {
    let stream = stream()?;
    macro_rules! check {
        ($($t:ty: |$bits:ident| $of:expr;)*) => {$(
            for len in [500, TILE + 500] {
                let x: Vec<$t> = values::<u64>(len, 3).into_iter().map(|$bits| $of).collect();
                let from = stream.buffer_from(&x)?;
                let mut out = stream.buffer_zeroed::<$t>(len)?;
                let mut expected = at(&x, &in_order(len, &|i, j| x[i].to_sort_bits().cmp(&x[j].to_sort_bits())));
                sort_keys(&stream, &from, &mut out, Less)?;
                assert!(same(&out.to_vec()?, &expected), "{}", stringify!($t));
                expected.reverse();
                sort_keys(&stream, &from, &mut out, Greater)?;
                assert!(same(&out.to_vec()?, &expected), "{} descending", stringify!($t));
            }
        )*};
    }
    check! {
        u8: |x| x as u8;
        i32: |x| x as i32;
        i64: |x| x as i64;
        f16: |x| f16::from_bits(x as u16);
        f32: |x| f32::from_bits([x as u32, 0, 1 << 31, x as u32 & 0x807f_ffff, 0x7fc0_0000, 0xffc0_0001][x as usize % 6]);
        f64: |x| f64::from_bits([x, 0, 1 << 63, x & 0x800f_ffff_ffff_ffff, 0xfff8 << 48][(x >> 9) as usize % 5]);
    }
    Ok(())
}

/// What fills the last tile comes after all keys, also if few of the bits are sort bits. There are no keys of other bits.
#[test]
fn keys_of_own_types_come_before_what_fills_a_tile() -> Result<()> {
    let stream = stream()?;
    for len in [3, 1000, 2 * sort_tile_items(1, 0) + 77] {
        let x: Vec<Lit> = (0..len).map(|i| Lit(i % 3 != 1)).collect();
        let from = stream.buffer_from(&x)?;
        let mut out = stream.buffer_zeroed::<Lit>(len)?;
        let lit = x.iter().filter(|key| key.0).count();
        sort_keys(&stream, &from, &mut out, Less)?;
        assert!(out.to_vec()?.iter().enumerate().all(|(i, key)| key.0 == (i >= len - lit)), "{len}");
        sort_keys(&stream, &from, &mut out, Greater)?;
        assert!(out.to_vec()?.iter().enumerate().all(|(i, key)| key.0 == (i < lit)), "{len} descending");
        sort_by(&stream, &from, Less, &mut out)?;
        assert!(out.to_vec()?.iter().enumerate().all(|(i, key)| key.0 == (i >= len - lit)), "{len} by the order");
        let few = len.min(40);
        top_k(&stream, &from, few, Less, out.slice_mut(..few)?)?;
        assert!(out.slice(..few)?.to_vec()?.iter().enumerate().all(|(i, key)| key.0 == (i >= len - lit)), "{len}, top");
    }
    Ok(())
}

#[test]
fn values_are_any_elements() -> Result<()> {
    let stream = stream()?;
    // Of the last keys, three bytes are the same in all.
    for (len, kind) in [(100, 2), (2 * TILE + 100, 2), (2 * TILE + 100, 5)] {
        let x: Vec<u32> = keys(len, kind);
        let expected = sorted_by(&x, 0..32, false);
        let from = stream.buffer_from(&x)?;
        let mut out = stream.buffer_zeroed::<u32>(len)?;
        macro_rules! check {
            ($($values:expr;)*) => {$({
                let values = $values;
                let mut values_out = stream.buffer_zeroed(len)?;
                sort_pairs(&stream, &from, &stream.buffer_from(&values)?, &mut out, &mut values_out, Less)?;
                assert!(out.to_vec()? == at(&x, &expected));
                assert!(values_out.to_vec()? == at(&values, &expected), "{len}");
            })*};
        }
        check! {
            (0..len as u64).map(|i| i << 33).collect::<Vec<_>>();
            crate::support::values::<Sixteen>(len, 1);
            crate::support::values::<Flagged>(len, 2);
            (0..len as u32).map(|i| [i, i + 1, i + 2, i + 3, i + 4]).collect::<Vec<_>>();
            (0..len as u32).map(|i| array::from_fn(|k| (i >> k) as u16)).collect::<Vec<[u16; 9]>>();
            (0..len as u32).map(|i| array::from_fn(|k| (i >> k) as u8)).collect::<Vec<[u8; 21]>>();
        }
    }
    Ok(())
}

#[test]
fn values_of_half_a_kibibyte_follow_their_keys() -> Result<()> {
    let stream = stream()?;
    for len in [9, 1100, 4500, 2 * sort_tile_items(8, 512) + 7] {
        let x: Vec<u64> = keys(len, 2).into_iter().map(|x| (x as u64) << 20).collect();
        let expected = sorted_by(&x, 0..64, true);
        let values: Vec<[u64; 64]> = (0..len as u64).map(|i| array::from_fn(|k| i << 8 | k as u64)).collect();
        let (mut out, mut values_out) = (stream.buffer_zeroed(len)?, stream.buffer_zeroed(len)?);
        let (from, along) = (stream.buffer_from(&x)?, stream.buffer_from(&values)?);
        sort_pairs(&stream, &from, &along, &mut out, &mut values_out, Greater)?;
        assert!(out.to_vec()? == at(&x, &expected));
        assert!(values_out.to_vec()? == at(&values, &expected), "{len}");
    }
    Ok(())
}

#[test]
fn keys_and_pairs_of_two_tiles_are_sorted_sanitize() -> Result<()> {
    for stream in streams()? {
        let x = keys(TILE + 9, 0);
        let expected = sorted_by(&x, 20..32, false);
        let (from, values) = (stream.buffer_from(&x)?, stream.buffer_from(&(0..x.len() as u32).collect::<Vec<_>>())?);
        let mut out = stream.buffer_zeroed::<u32>(x.len())?;
        let mut values_out = stream.buffer_zeroed::<u32>(x.len())?;
        sort_keys_by_bits(&stream, &from, &mut out, Less, 20..32)?;
        assert!(out.to_vec()? == at(&x, &expected));
        sort_pairs_by_bits(&stream, &from, &values, &mut out, &mut values_out, Less, 20..32)?;
        assert!(values_out.to_vec()? == expected);
    }
    Ok(())
}

#[test]
fn keys_of_one_tile_are_sorted_sanitize() -> Result<()> {
    for stream in streams()? {
        let x = keys(300, 0);
        let mut out = stream.buffer_zeroed::<u32>(x.len())?;
        sort_keys(&stream, &stream.buffer_from(&x)?, &mut out, Less)?;
        assert!(out.to_vec()? == at(&x, &sorted_by(&x, 0..32, false)));
    }
    Ok(())
}

/// One block sorts a tile. The other blocks of the launch write nothing.
#[test]
fn a_tile_is_sorted_once_by_a_launch_of_several_blocks() -> Result<()> {
    let stream = stream()?;
    let (x, turned) = (keys(700, 0), Turned::of::<u32, Less>().0);
    let expected = sorted_by(&x, 0..32, false);
    let (from, along) = (stream.buffer_from(&x)?, stream.buffer_from(&(0..700).collect::<Vec<u32>>())?);
    for blocks in [1u32, 2, 5] {
        let dims = (blocks, SORT_THREADS as u32);
        let (mut out, mut places) = (stream.buffer_zeroed::<u32>(700)?, stream.buffer_zeroed::<u32>(700)?);
        sort_tile::<u32>::launch(&stream, dims, &from, &mut out, 0, 32, turned)?;
        assert!(out.to_vec()? == at(&x, &expected), "{blocks} blocks");
        sort_tile_pairs::<u32, u32>::launch(&stream, dims, &from, &mut out, &along, &mut places, 0, 32, turned)?;
        assert!(out.to_vec()? == at(&x, &expected), "{blocks} blocks");
        assert!(places.to_vec()? == expected, "{blocks} blocks");
    }
    Ok(())
}

#[test]
fn a_graph_sorts_again_and_again() -> Result<()> {
    let stream = stream()?;
    let len = TILE + 1000;
    let mut from = stream.buffer_from(&keys(len, 0))?;
    let mut out = stream.buffer_zeroed::<u32>(len)?;
    let mut workspace = Workspace::new();
    sort_keys(Run::on(&stream).with(&mut workspace), &from, &mut out, Less)?;
    let graph = stream.capture(|stream| sort_keys(Run::on(stream).with(&mut workspace), &from, &mut out, Greater))?;
    for kind in [0, 2, 0] {
        let mut expected = keys(len, kind);
        from.copy_from(&expected)?;
        graph.launch(&stream)?;
        expected.sort_unstable_by_key(|&key| Reverse(key));
        assert!(out.to_vec()? == expected);
    }
    Ok(())
}

#[test]
fn misuse_is_refused() -> Result<()> {
    let stream = stream()?;
    let x = stream.buffer_zeroed::<u32>(10)?;
    let (mut out, mut short) = (stream.buffer_zeroed::<u32>(10)?, stream.buffer_zeroed::<u32>(9)?);
    let error = sort_keys_by_bits(&stream, &x, &mut out, Less, 5..33).unwrap_err();
    assert_eq!(error.to_string(), "sort_keys_by_bits: 5..33 is no range of the 32 sort bits of u32");
    #[allow(clippy::reversed_empty_ranges, reason = "what is tested")]
    let error = sort_keys_by_bits(&stream, &x, &mut out, Less, 9..8).unwrap_err();
    assert!(matches!(error, Error::SortBits { start: 9, end: 8, .. }), "{error}");
    let error = sort_keys(&stream, &x, &mut short, Less).unwrap_err();
    assert!(matches!(error, Error::LengthMismatch { .. }), "{error}");
    let values = stream.buffer_zeroed::<u32>(11)?;
    let mut values_out = stream.buffer_zeroed::<u32>(11)?;
    let error = sort_pairs(&stream, &x, &values, &mut out, &mut values_out, Less).unwrap_err();
    assert!(error.to_string().contains("`keys` has 10 elements, but `values` has 11"), "{error}");
    let error = sort_pairs(&stream, &x, &x, &mut out, &mut short, Less).unwrap_err();
    assert!(matches!(error, Error::LengthMismatch { .. }), "{error}");
    Ok(())
}
