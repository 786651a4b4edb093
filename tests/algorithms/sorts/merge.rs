//! Tests merges against a stable sort of both inputs.

use kernel_primitives::algorithms::{merge, merge_pairs};
use kernel_primitives::element::SortKey;
use kernel_primitives::functor::{Greater, Less};
use kernel_primitives::input::counting;
use kernel_primitives::kernels::device::merge_tile_items;
use kernel_primitives::{Error, Result, bf16, f16};

use crate::kernels::Order;
use crate::support::{stream, streams, values};

/// The number of items of a tile of four-byte items.
const TILE: usize = merge_tile_items(4, 0);

/// Returns sorted numbers. `most` limits the number of different ones.
fn sorted(len: usize, most: u32, seed: u64) -> Vec<u32> {
    let mut x: Vec<u32> = values::<u32>(len, seed).into_iter().map(|x| x % most).collect();
    x.sort_unstable();
    x
}

#[test]
fn inputs_of_any_lengths_on_any_boundaries() -> Result<()> {
    let stream = stream()?;
    let lengths = [0, 1, 31, TILE / 2, TILE - 1, TILE, TILE + 1, 3 * TILE + 77, 5 * TILE + 1];
    for (k, len) in lengths.into_iter().enumerate() {
        for other in [lengths[(3 * k + 1) % 9], len / 3, 0] {
            let (skip_a, skip_b) = (k % 4, (k + 1) % 3);
            let (a, b) = (sorted(len + skip_a, 1 << 30, 1), sorted(other + skip_b, 1 << 30, 2));
            let (x, y) = (stream.buffer_from(&a)?, stream.buffer_from(&b)?);
            let mut out = stream.buffer_from(&vec![77; len + other + 3])?;
            merge(&stream, x.slice(skip_a..)?, y.slice(skip_b..)?, Less, out.slice_mut(k % 3..)?)?;
            let mut expected = [&a[skip_a..], &b[skip_b..]].concat();
            expected.sort_unstable();
            let found = out.to_vec()?;
            assert!(found[k % 3..][..len + other] == expected, "{len} and {other}");
            assert!(found[..k % 3].iter().chain(&found[k % 3 + len + other..]).all(|&x| x == 77), "{len} and {other}");
        }
    }
    Ok(())
}

#[test]
fn equal_items_of_the_first_come_first_and_stay_in_order() -> Result<()> {
    for stream in streams()? {
        for (len, other, most) in [(5000, 9000, 1), (9000, 100, 7), (6000, 6000, 1000)] {
            let (a, b) = (sorted(len, most, 1), sorted(other, most, 2));
            let (x, y) = (stream.buffer_from(&a)?, stream.buffer_from(&b)?);
            let (mut keys, mut places) =
                (stream.buffer_zeroed::<u32>(len + other)?, stream.buffer_zeroed::<u32>(len + other)?);
            let from = (counting(0u32, len), counting(len as u32, other));
            let from = [from.0, from.1];
            merge_pairs(&stream, (&x, from[0]), (&y, from[1]), Order::by_remainder(1 << 20), &mut keys, &mut places)?;
            let both = [a, b].concat();
            let mut expected: Vec<u32> = (0..both.len() as u32).collect();
            expected.sort_by_key(|&i| both[i as usize]);
            assert!(places.to_vec()? == expected, "{len} and {other}");
            expected.iter_mut().for_each(|i| *i = both[*i as usize]);
            assert!(keys.to_vec()? == expected, "{len} and {other}");
        }
    }
    Ok(())
}

/// There are also tiles with both zeros or NaN, which `<` does not order, and tiles without them.
#[test]
fn floats_are_merged_in_their_total_order() -> Result<()> {
    let stream = stream()?;
    let kinds: [fn(u32) -> f32; 5] = [
        |x| (x % 1000) as f32 + 1.0,
        |x| -((x % 1000) as f32) - 1.0,
        |x| [-0.0, 0.0, -1.0, 1.0][x as usize % 4],
        |x| if x.is_multiple_of(100) { f32::NAN } else { x as f32 + 1.0 },
        f32::from_bits,
    ];
    let len = TILE + 100;
    let items = |kind: fn(u32) -> f32, seed| values::<u32>(len, seed).into_iter().map(kind).collect::<Vec<f32>>();
    let bits = |x: &[f32]| x.iter().map(|x| x.to_bits()).collect::<Vec<u32>>();
    for of_a in kinds {
        for of_b in kinds {
            let (mut a, mut b) = (items(of_a, 1), items(of_b, 2));
            let mut expected = [&a[..], &b].concat();
            let mut out = stream.buffer_zeroed::<f32>(2 * len)?;
            for x in [&mut a, &mut b, &mut expected] {
                x.sort_by_key(|x| x.to_sort_bits());
            }
            merge(&stream, &stream.buffer_from(&a)?, &stream.buffer_from(&b)?, Less, &mut out)?;
            assert!(bits(&out.to_vec()?) == bits(&expected));
            for x in [&mut a, &mut b, &mut expected] {
                x.reverse();
            }
            merge(&stream, &stream.buffer_from(&a)?, &stream.buffer_from(&b)?, Greater, &mut out)?;
            assert!(bits(&out.to_vec()?) == bits(&expected));
        }
    }
    Ok(())
}

/// There are also floats that `<` compares, from any boundary.
#[test]
fn values_of_equal_floats_stay_in_their_order() -> Result<()> {
    let stream = stream()?;
    let (len, other) = (TILE + 77, TILE / 2 + 3);
    for (sign, descends) in [(1.0f32, false), (1.0, true), (-1.0, false), (-1.0, true)] {
        let compare = |x: &f32, y: &f32| if descends { y.total_cmp(x) } else { x.total_cmp(y) };
        let items = |len, seed| {
            let mut x: Vec<f32> = sorted(len, 7, seed).into_iter().map(|x| sign * (x as f32 + 1.0)).collect();
            x.sort_by(compare);
            x
        };
        let both = [items(len, 1), items(other, 2)].concat();
        let mut expected: Vec<u32> = (0..both.len() as u32).collect();
        let (x, y) = (stream.buffer_from(&both)?, stream.buffer_from(&expected)?);
        let (a, b) = ((x.slice(..len)?, y.slice(..len)?), (x.slice(len..)?, y.slice(len..)?));
        let (mut keys, mut places) =
            (stream.buffer_zeroed::<f32>(both.len())?, stream.buffer_zeroed::<u32>(both.len())?);
        if descends {
            merge_pairs(&stream, a, b, Greater, &mut keys, &mut places)?;
        } else {
            merge_pairs(&stream, a, b, Less, &mut keys, &mut places)?;
        }
        expected.sort_by(|&i, &j| compare(&both[i as usize], &both[j as usize]));
        assert!(places.to_vec()? == expected, "{sign}, {descends}");
        assert!(keys.to_vec()?.iter().zip(&expected).all(|(&key, &i)| key == both[i as usize]), "{sign}, {descends}");
    }
    Ok(())
}

#[test]
fn two_small_inputs_sanitize() -> Result<()> {
    for stream in streams()? {
        let (a, b) = (sorted(300, 99, 1), sorted(77, 99, 2));
        let (x, y) = (stream.buffer_from(&a)?, stream.buffer_from(&b)?);
        let (mut keys, mut values) = (stream.buffer_zeroed::<u32>(377)?, stream.buffer_zeroed::<u32>(377)?);
        merge_pairs(&stream, (&x, &x), (&y, &y), Less, &mut keys, &mut values)?;
        let mut expected = [a, b].concat();
        expected.sort_unstable();
        assert_eq!(keys.to_vec()?, expected);
        assert_eq!(values.to_vec()?, expected);
    }
    Ok(())
}

#[test]
fn inputs_in_no_order_do_no_harm() -> Result<()> {
    let stream = stream()?;
    let (x, y) = (stream.buffer_from(&values::<u32>(20_000, 1))?, stream.buffer_from(&values::<u32>(9000, 2))?);
    let mut out = stream.buffer_zeroed::<u32>(29_000)?;
    merge(&stream, &x, &y, Less, &mut out)?;
    merge(&stream, &x, &y, Order::NONE, &mut out)?;
    stream.synchronize()
}

#[test]
fn misuse_is_refused() -> Result<()> {
    let stream = stream()?;
    let (x, y) = (stream.buffer_zeroed::<u32>(10)?, stream.buffer_zeroed::<u32>(5)?);
    let (mut out, mut values) = (stream.buffer_zeroed::<u32>(14)?, stream.buffer_zeroed::<u32>(15)?);
    let error = merge(&stream, &x, &y, Less, &mut out).unwrap_err();
    assert!(matches!(error, Error::LengthMismatch { first_len: 15, second_len: 14, .. }), "{error}");
    let error = merge_pairs(&stream, (&x, &x), (&y, &x), Less, &mut values, &mut out).unwrap_err();
    assert!(error.to_string().contains("`keys` has 5 elements, but `values` has 10"), "{error}");
    Ok(())
}

#[test]
fn more_items_than_can_be_counted_are_refused() -> Result<()> {
    let stream = stream()?;
    let mut out = stream.buffer_zeroed::<u64>(4)?;
    let mut values_out = stream.buffer_zeroed::<u64>(4)?;
    for [a, b] in [[usize::MAX, 5], [5, usize::MAX], [usize::MAX, usize::MAX], [1 << 63, 1 << 63], [1 << 49, 0]] {
        let [a, b] = [a, b].map(|len| counting(0u64, len));
        let errors = [
            merge(&stream, a, b, Less, &mut out).unwrap_err(),
            merge_pairs(&stream, (a, a), (b, b), Less, &mut out, &mut values_out).unwrap_err(),
        ];
        for error in errors {
            assert!(matches!(error, Error::LaunchLimit { what: "the number of items", .. }), "{error}");
        }
    }
    Ok(())
}

/// There are keys of each size and kind of bits. Shares of threads are whole, cut short and empty, and vectors are on boundaries and off
/// them.
#[test]
fn keys_of_each_type_are_merged_in_both_directions() -> Result<()> {
    let stream = stream()?;
    macro_rules! check {
        ($($t:ty, $bits:ty, |$x:ident| $key:expr;)*) => {$({
            let tile = merge_tile_items(size_of::<$t>(), 0);
            let shapes =
                [(1, 1, 0), (2, 31, 0), (40, 26, 1), (1, tile - 1, 0), (tile - 1, 2, 1), (tile + 77, tile / 2 + 3, 0)];
            for (len, other, skip) in shapes {
                let keys = |len: usize, seed| {
                    let mut x: Vec<$t> = values::<$bits>(len + skip, seed).into_iter().map(|$x| $key).collect();
                    x.sort_by_key(|x| x.to_sort_bits());
                    x
                };
                let (mut a, mut b) = (keys(len, 1), keys(other, 2));
                let bits = |x: &[$t]| x.iter().map(|x| x.to_sort_bits()).collect::<Vec<_>>();
                for descends in [false, true] {
                    if descends {
                        a.reverse();
                        b.reverse();
                    }
                    let (x, y) = (stream.buffer_from(&a)?, stream.buffer_from(&b)?);
                    let mut out = stream.buffer_zeroed::<$t>(len + other)?;
                    let (from, with) = (x.slice(skip..)?, y.slice(skip..)?);
                    if descends {
                        merge(&stream, from, with, Greater, &mut out)?;
                    } else {
                        merge(&stream, from, with, Less, &mut out)?;
                    }
                    let mut expected = [bits(&a[skip..]), bits(&b[skip..])].concat();
                    expected.sort_unstable();
                    if descends {
                        expected.reverse();
                    }
                    assert!(bits(&out.to_vec()?) == expected, "{} {len} {other} {descends}", stringify!($t));
                }
            }
        })*};
    }
    check! {
        bool, u8, |x| x % 2 == 1;
        i8, u8, |x| x as i8;
        u8, u8, |x| x;
        i16, u16, |x| x as i16;
        u16, u16, |x| x;
        f16, u16, |x| f16::from_bits(x);
        bf16, u16, |x| bf16::from_bits(x);
        i32, u32, |x| x as i32;
        u32, u32, |x| x;
        f32, u32, |x| f32::from_bits(x);
        i64, u64, |x| x as i64;
        u64, u64, |x| x;
        f64, u64, |x| f64::from_bits(x);
    }
    Ok(())
}

/// One run is computed, and the other one begins inside a vector.
#[test]
fn a_computed_run_and_one_on_any_boundary() -> Result<()> {
    let stream = stream()?;
    for (len, other) in [(1, 40), (TILE, TILE - 1), (2 * TILE + 77, TILE / 2)] {
        let b = sorted(other + 1, 2 * len as u32, 3);
        let y = stream.buffer_from(&b)?;
        let mut out = stream.buffer_zeroed::<u32>(len + other)?;
        merge(&stream, counting(5u32, len), y.slice(1..)?, Less, &mut out)?;
        let mut expected: Vec<u32> = (5..5 + len as u32).chain(b[1..].iter().copied()).collect();
        expected.sort_unstable();
        assert!(out.to_vec()? == expected, "{len} and {other}");
    }
    Ok(())
}

/// A device that takes subnormal floats as zeros would lose their bits.
#[test]
fn subnormal_floats_keep_their_bits() -> Result<()> {
    for stream in streams()? {
        for sign in [0, 1 << 31] {
            let items = |len, seed| {
                let bits = values::<u32>(len, seed).into_iter().map(|x| sign | (1 + x % 0x90_0000));
                let mut x: Vec<f32> = bits.map(f32::from_bits).collect();
                x.sort_by_key(|x| x.to_sort_bits());
                x
            };
            let (a, b) = (items(300, 1), items(77, 2));
            let mut out = stream.buffer_zeroed::<f32>(377)?;
            merge(&stream, &stream.buffer_from(&a)?, &stream.buffer_from(&b)?, Less, &mut out)?;
            let mut expected = [a, b].concat();
            expected.sort_by_key(|x| x.to_sort_bits());
            assert!(out.to_vec()?.iter().zip(&expected).all(|(x, y)| x.to_bits() == y.to_bits()), "{sign}");
        }
    }
    Ok(())
}

/// The ends of both runs are floats that `<` compares, and the floats between are not. There are also keys of a byte, sixteen in a vector.
#[test]
fn floats_and_bytes_in_no_order_do_no_harm() -> Result<()> {
    let stream = stream()?;
    for (len, other) in [(300, 77), (TILE / 2, TILE / 2 - 5), (2 * TILE + 77, TILE + 3)] {
        let floats = |len: usize, seed, ends: [f32; 2]| {
            let mut x: Vec<f32> = values::<u32>(len, seed).into_iter().map(f32::from_bits).collect();
            [x[0], x[len - 1]] = ends;
            stream.buffer_from(&x)
        };
        let mut out = stream.buffer_from(&vec![77.0f32; len + other + 9])?;
        merge(
            &stream,
            &floats(len, 1, [1.0, 2.0])?,
            &floats(other, 2, [3.0, 4.0])?,
            Less,
            out.slice_mut(..len + other)?,
        )?;
        merge(
            &stream,
            &floats(len, 1, [2.0, 1.0])?,
            &floats(other, 2, [4.0, 3.0])?,
            Greater,
            out.slice_mut(..len + other)?,
        )?;
        assert!(out.to_vec()?[len + other..].iter().all(|&x| x == 77.0), "{len} and {other}");
        let bytes = |len, seed| stream.buffer_from(&values::<u8>(len, seed));
        let mut out = stream.buffer_zeroed::<u8>(len + other)?;
        merge(&stream, &bytes(len, 3)?, &bytes(other, 4)?, Less, &mut out)?;
        stream.synchronize()?;
    }
    Ok(())
}

/// The first input ends inside a vector, and threads look at what is after it.
#[test]
fn comparators_get_only_items_of_the_inputs() -> Result<()> {
    let stream = stream()?;
    for (len, other) in [(1, 1), (3, 2), (5, 4), (4097, 6), (9001, 9002)] {
        let [a, b] = [len, other].map(|len| (0..len).map(|i| 1 + i * 9 / len).collect::<Vec<u32>>());
        let (x, y) = (stream.buffer_from(&a)?, stream.buffer_from(&b)?);
        let both = [a, b].concat();
        // Numbers up to 9 have different quotients.
        let mut expected: Vec<u32> = (0..len + other).collect();
        expected.sort_by_key(|&i| both[i as usize]);
        let (mut keys, mut places) =
            (stream.buffer_zeroed::<u32>(both.len())?, stream.buffer_zeroed::<u32>(both.len())?);
        let values = [counting(0u32, len as usize), counting(len, other as usize)];
        merge_pairs(&stream, (&x, values[0]), (&y, values[1]), Order::BY_QUOTIENT, &mut keys, &mut places)?;
        assert!(places.to_vec()? == expected, "{len} and {other}");
        expected.iter_mut().for_each(|i| *i = both[*i as usize]);
        assert!(keys.to_vec()? == expected, "{len} and {other}");
        keys.as_mut_slice().set_zero(&stream)?;
        merge(&stream, &x, &y, Order::BY_QUOTIENT, &mut keys)?;
        assert!(keys.to_vec()? == expected, "{len} and {other}");
    }
    Ok(())
}

#[test]
fn values_of_keys_of_no_bytes_stay_in_their_order() -> Result<()> {
    let stream = stream()?;
    // Together, the last ones have more than a tile, and one tile has items of both.
    for (len, other) in [(1, 1), (3, 2), (5000, 4097)] {
        let [x, y] = [len, other].map(|len| vec![[0u32; 0]; len]);
        let (x, y) = (stream.buffer_from(&x)?, stream.buffer_from(&y)?);
        let mut keys = stream.buffer_zeroed::<[u32; 0]>(len + other)?;
        let mut places = stream.buffer_zeroed::<u32>(len + other)?;
        let order = Order::by_remainder(1);
        merge(&stream, &x, &y, order, &mut keys)?;
        let values = [counting(0u32, len), counting(len as u32, other)];
        merge_pairs(&stream, (&x, values[0]), (&y, values[1]), order, &mut keys, &mut places)?;
        assert!(places.to_vec()?.into_iter().eq(0..(len + other) as u32), "{len} and {other}");
    }
    Ok(())
}
