//! Tests sorts by comparators of numbers in memory, which are sorts by digits if there are many. A tuning value says how many, so there are
//! few here. The reference is the standard library's stable sort.

use std::cmp::Ordering;

use kernel_primitives::algorithms::{Parameter, Run, Tuning, Workspace, sort_by, sort_pairs_by};
use kernel_primitives::functor::{Greater, Less};
use kernel_primitives::input::{counting, reversed};
use kernel_primitives::kernels::device::sort_tile_items;
use kernel_primitives::{Device, Devices, Element, EmulatorOptions, Error, Result, SortKey, bf16, f16};

use crate::kernels::{Flagged, Order};
use crate::support::{stream, streams, values};
use crate::{at, in_order};

/// The number of items of a tile of four-byte keys.
const TILE: usize = sort_tile_items(4, 0);

/// Lengths of no tile, one tile, and several tiles.
const LENGTHS: [usize; 5] = [0, 1, 700, TILE + 1, 2 * TILE + 5];

/// Values by which so many numbers or more are sorted by digits.
fn digits(least: usize) -> Result<Tuning> {
    let mut tuning = Tuning::of_capability(None);
    tuning.set(Parameter::SortDigits, None, least as u32)?;
    Ok(tuning)
}

/// Never by digits.
const MERGES: usize = 1 << 31;

/// Calls a macro with each type of numbers, the unsigned type with its bits, and a function of the bits.
macro_rules! for_numbers {
    ($check:ident) => {
        $check!(i8: u8, |x| x as i8);
        $check!(i16: u16, |x| x as i16);
        $check!(i32: u32, |x| x as i32);
        $check!(i64: u64, |x| x as i64);
        $check!(u8: u8, |x| x);
        $check!(u16: u16, |x| x);
        $check!(u32: u32, |x| x);
        $check!(u64: u64, |x| x);
        $check!(f16: u16, f16::from_bits);
        $check!(bf16: u16, bf16::from_bits);
        $check!(f32: u32, f32::from_bits);
        $check!(f64: u64, f64::from_bits);
    };
}

/// The numbers have all bits, so floats are of all kinds, and NaN of each sign and with any payload. The output is longer than the input.
#[test]
fn numbers_are_sorted_by_digits_as_by_merges() -> Result<()> {
    let stream = stream()?;
    for (k, len) in LENGTHS.into_iter().enumerate() {
        for least in [0, MERGES] {
            let tuning = digits(least)?;
            macro_rules! check {
                ($t:ident: $bits:ident, $of:expr) => {
                    let x: Vec<$t> = values::<$bits>(len + 3, k as u64 + 1).into_iter().map($of).collect();
                    let buffer = stream.buffer_from(&x)?;
                    let (x, from) = (&x[k % 4..][..len], buffer.slice(k % 4..k % 4 + len)?);
                    let sevens = [$of(77 as $bits)];
                    for descending in [false, true] {
                        let mut out = stream.buffer_from(&sevens.repeat(len + 9))?;
                        let to = out.slice_mut(k % 3..)?;
                        let run = Run::on(&stream).tuned(&tuning);
                        if descending {
                            sort_by(run, from, Greater, to)?
                        } else {
                            sort_by(run, from, Less, to)?
                        }
                        let order = |i: usize, j: usize| x[i].to_sort_bits().cmp(&x[j].to_sort_bits());
                        let turned = |i, j| if descending { order(i, j).reverse() } else { order(i, j) };
                        let mut expected = sevens.repeat(k % 3);
                        expected.extend(at(x, &in_order(len, &turned)));
                        expected.resize(len + 9, sevens[0]);
                        let found = out.to_vec()?;
                        let same = found.iter().zip(&expected).all(|(a, b)| a.to_sort_bits() == b.to_sort_bits());
                        assert!(same, "{len} of {}, {descending}, at least {least}", stringify!($t));
                    }
                };
            }
            for_numbers!(check);
        }
    }
    Ok(())
}

/// Returns keys of which many are equal.
fn equal_keys(len: usize) -> Vec<u32> {
    values::<u32>(len, 3).into_iter().map(|x| x % 50 * 0x0505_0505).collect()
}

/// Returns the places of keys in order.
fn places<K: PartialOrd>(x: &[K]) -> Vec<u32> {
    in_order(x.len(), &|i, j| x[i].partial_cmp(&x[j]).unwrap_or(Ordering::Equal))
}

#[test]
fn pairs_by_digits_keep_the_order_of_equal_keys() -> Result<()> {
    let stream = stream()?;
    for (k, len) in LENGTHS.into_iter().enumerate() {
        for least in [0, MERGES] {
            let tuning = digits(least)?;
            let x = equal_keys(len);
            let buffer = stream.buffer_from(&x)?;
            let in_order = places(&x);
            macro_rules! check {
                ($($v:ident),*) => {$({
                    let values = values::<$v>(len + 1, 9);
                    let values_buffer = stream.buffer_from(&values)?;
                    let from = values_buffer.slice(k % 2..k % 2 + len)?;
                    let (mut out, mut values_out) = (stream.buffer_zeroed::<u32>(len + 2)?, stream.buffer_zeroed::<$v>(len + 4)?);
                    let run = Run::on(&stream).tuned(&tuning);
                    sort_pairs_by(run, &buffer, from, Less, out.slice_mut(k % 3..)?, values_out.slice_mut(k % 4..)?)?;
                    assert!(out.to_vec()?[k % 3..][..len] == at(&x, &in_order), "{len}, at least {least}");
                    let found = values_out.to_vec()?;
                    let (before, found) = found.split_at(k % 4);
                    let expected = at(&values[k % 2..], &in_order);
                    assert!(found[..len] == expected, "{len} of {}, at least {least}", stringify!($v));
                    assert!(before.iter().chain(&found[len..]).all(|&x| x == $v::ZERO), "{len} of {}", stringify!($v));
                })*};
            }
            check!(u8, u16, u32, i32, f32, u64);
        }
    }
    Ok(())
}

/// Consecutive values are written to the output before the sort, unless there is one pass or one tile.
#[test]
fn consecutive_values_are_places() -> Result<()> {
    let stream = stream()?;
    let tuning = digits(0)?;
    for (k, len) in LENGTHS.into_iter().enumerate() {
        macro_rules! check {
            ($($t:ident, $c:ident, $of:expr;)*) => {$({
                let x: Vec<$t> = equal_keys(len).into_iter().map($of).collect();
                let first = [0, 5, $c::MAX, $c::MAX - 3, 5][k];
                let expected: Vec<$c> = places(&x).into_iter().map(|i| first.wrapping_add(i as $c)).collect();
                let buffer = stream.buffer_from(&x)?;
                let (mut out, mut found) = (stream.buffer_zeroed::<$t>(len)?, stream.buffer_zeroed::<$c>(len + 1)?);
                let run = Run::on(&stream).tuned(&tuning);
                sort_pairs_by(run, &buffer, counting(first, len), Less, &mut out, &mut found)?;
                let found = found.to_vec()?;
                assert!(found[..len] == expected && found[len] == 0, "{len} of {}", stringify!($t));
                assert!(out.to_vec()?.is_sorted(), "{len} of {}", stringify!($t));
            })*};
        }
        check! {
            u8, u32, |x| x as u8;
            i16, u32, |x| x as i16;
            u32, u32, |x| x;
            u32, u64, |x| x;
            f64, u32, |x| x as i32 as f64;
        }
    }
    Ok(())
}

/// Returns the launches of a call on an emulator of its own. It has one thread: with more, tiles of pairs may be smaller.
fn launches(call: impl FnOnce(&kernel_primitives::Stream) -> Result<()>) -> Result<u64> {
    let mut options = EmulatorOptions::default();
    options.threads = 1;
    let device = Device::emulator_with(options);
    let stream = device.stream()?;
    let before = device.counters();
    call(&stream)?;
    Ok(device.counters().since(before).launches)
}

/// By digits, three tiles of four-byte keys take a launch that counts, one that adds, and one for each of four digits. By merges, they take
/// two passes after the first launch.
#[test]
fn many_numbers_in_memory_are_sorted_by_digits_and_all_else_is_merged() -> Result<()> {
    let len = 2 * TILE + 5;
    let (by_digits, by_merges) = (6, 3);
    let sort = |least: usize, len: usize| {
        launches(|stream| {
            let (x, tuning) = (stream.buffer_zeroed::<f32>(len)?, digits(least)?);
            sort_by(Run::on(stream).tuned(&tuning), &x, Greater, &mut stream.buffer_zeroed(len)?)
        })
    };
    assert_eq!([sort(len, len)?, sort(len + 1, len)?, sort(0, len)?], [by_digits, by_merges, by_digits]);
    let pairs = |least: usize, len: usize| {
        launches(|stream| {
            let (x, values, tuning) =
                (stream.buffer_zeroed::<u32>(len)?, stream.buffer_zeroed::<i32>(len)?, digits(least)?);
            let (mut out, mut values_out) = (stream.buffer_zeroed(len)?, stream.buffer_zeroed(len)?);
            sort_pairs_by(Run::on(stream).tuned(&tuning), &x, &values, Less, &mut out, &mut values_out)
        })
    };
    assert_eq!([pairs(len, len)?, pairs(len + 1, len)?], [by_digits, by_merges]);

    let tuning = digits(0)?;
    macro_rules! launches_of {
        (|$stream:ident, $run:ident| $call:expr) => {
            launches(|$stream| {
                let $run = Run::on($stream).tuned(&tuning);
                $call
            })?
        };
    }
    // One more launch writes consecutive values, unless they go to a sort by merges.
    let consecutive = launches_of!(|stream, run| {
        let (mut out, mut found) = (stream.buffer_zeroed::<u32>(len)?, stream.buffer_zeroed::<u32>(len)?);
        sort_pairs_by(run, &stream.buffer_zeroed::<u32>(len)?, counting(0u32, len), Less, &mut out, &mut found)
    });
    assert_eq!(consecutive, by_digits + 1);
    let of_one_pass = launches_of!(|stream, run| {
        let (mut out, mut found) = (stream.buffer_zeroed::<u8>(len)?, stream.buffer_zeroed::<u32>(len)?);
        sort_pairs_by(run, &stream.buffer_zeroed::<u8>(len)?, counting(0u32, len), Less, &mut out, &mut found)
    });
    assert_eq!(of_one_pass, by_merges);
    let computed = launches_of!(|stream, run| {
        let x = stream.buffer_zeroed::<f16>(len)?;
        sort_by(run, reversed(&x), Less, &mut stream.buffer_zeroed::<f16>(len)?)
    });
    assert_eq!(computed, by_merges);
    let in_own_order = launches_of!(|stream, run| {
        let x = stream.buffer_zeroed::<u32>(len)?;
        sort_by(run, &x, Order::by_remainder(10), &mut stream.buffer_zeroed::<u32>(len)?)
    });
    assert_eq!(in_own_order, by_merges);
    let values_of_an_own_type = launches_of!(|stream, run| {
        let (x, values) = (stream.buffer_zeroed::<u32>(len)?, stream.buffer_zeroed::<Flagged>(len)?);
        let (mut out, mut values_out) = (stream.buffer_zeroed::<u32>(len)?, stream.buffer_zeroed::<Flagged>(len)?);
        sort_pairs_by(run, &x, &values, Less, &mut out, &mut values_out)
    });
    assert_eq!(values_of_an_own_type, by_merges);
    Ok(())
}

#[test]
fn a_graph_sorts_numbers_by_digits_again_and_again_and_a_workspace_is_enough() -> Result<()> {
    let stream = stream()?;
    let (len, tuning) = (TILE + 1000, digits(0)?);
    let mut x = stream.buffer_from(&equal_keys(len))?;
    let (mut out, mut found) = (stream.buffer_zeroed::<u32>(len)?, stream.buffer_zeroed::<u32>(len)?);
    let mut workspace = Workspace::new();
    let mut sort = |stream: &kernel_primitives::Stream, x: &kernel_primitives::Buffer<u32>| {
        let run = Run::on(stream).with(&mut workspace).tuned(&tuning);
        sort_pairs_by(run, x, counting(0u32, len), Greater, &mut out, &mut found)
    };
    sort(&stream, &x)?;
    let before = stream.device().counters();
    sort(&stream, &x)?;
    let counted = stream.device().counters().since(before);
    // A GPU also counts the launches of other tests at the same time.
    if !stream.device().is_gpu() {
        assert_eq!((counted.allocations, counted.synchronizations), (0, 0));
    }
    let graph = stream.capture(|stream| sort(stream, &x))?;
    for seed in [1, 2] {
        let keys: Vec<u32> = values::<u32>(len, seed).into_iter().map(|x| x % 1000).collect();
        x.copy_from(&keys)?;
        graph.launch(&stream)?;
        let expected = in_order(len, &|i, j| keys[j].cmp(&keys[i]));
        assert!(found.to_vec()? == expected && out.to_vec()? == at(&keys, &expected), "{seed}");
    }
    Ok(())
}

#[test]
fn two_tiles_by_digits_sanitize() -> Result<()> {
    for stream in streams()? {
        let (len, tuning) = (TILE + 9, digits(0)?);
        let x = equal_keys(len);
        let buffer = stream.buffer_from(&x)?;
        let mut out = stream.buffer_zeroed::<u32>(len)?;
        sort_by(Run::on(&stream).tuned(&tuning), &buffer, Less, &mut out)?;
        let expected = places(&x);
        assert!(out.to_vec()? == at(&x, &expected));
        let mut found = stream.buffer_zeroed::<u32>(len)?;
        let run = Run::on(&stream).tuned(&tuning);
        sort_pairs_by(run, &buffer, counting(0u32, len), Less, &mut out, &mut found)?;
        assert!(found.to_vec()? == expected);
    }
    Ok(())
}

#[test]
fn misuse_is_refused_as_it_is_by_merges() -> Result<()> {
    let stream = stream()?;
    let tuning = digits(0)?;
    let run = || Run::on(&stream).tuned(&tuning);
    let x = stream.buffer_zeroed::<u32>(10)?;
    let (mut out, mut short) = (stream.buffer_zeroed::<u32>(11)?, stream.buffer_zeroed::<u32>(9)?);
    let error = sort_by(run(), &x, Less, &mut short).unwrap_err();
    assert!(matches!(error, Error::LengthMismatch { first_len: 10, second_len: 9, .. }), "{error}");
    let mut values = stream.buffer_zeroed::<u32>(10)?;
    let error = sort_pairs_by(run(), &x, &stream.buffer_zeroed::<u32>(11)?, Less, &mut out, &mut values).unwrap_err();
    assert!(error.to_string().contains("`keys` has 10 elements, but `values` has 11"), "{error}");
    let error = sort_pairs_by(run(), &x, &x, Less, &mut out, &mut short).unwrap_err();
    assert!(matches!(error, Error::LengthMismatch { first_len: 10, second_len: 9, .. }), "{error}");
    let large = stream.buffer_zeroed::<u32>(2 * TILE)?;
    let (mut out, mut found) = (stream.buffer_zeroed::<u32>(2 * TILE)?, stream.buffer_zeroed::<u32>(2 * TILE)?);
    let keys = stream.capture(|stream| sort_by(Run::on(stream).tuned(&tuning), &large, Less, &mut out));
    assert!(matches!(keys, Err(Error::Capture { .. })), "temporary memory cannot be allocated in a capture: {keys:?}");
    let pairs = stream.capture(|stream| {
        let values = counting(0u32, 2 * TILE);
        sort_pairs_by(Run::on(stream).tuned(&tuning), &large, values, Less, &mut out, &mut found)
    });
    assert!(matches!(pairs, Err(Error::Capture { .. })), "{pairs:?}");
    Ok(())
}

#[test]
fn an_output_of_another_device_has_its_name_in_the_error() -> Result<()> {
    let streams = Devices::emulated(2)?.streams()?;
    let len = 2 * TILE;
    let keys = streams[0].buffer_zeroed::<u32>(len)?;
    let mut out = streams[0].buffer_zeroed::<u32>(len)?;
    let mut values_out = streams[1].buffer_zeroed::<u32>(len)?;
    for least in [0, MERGES] {
        let tuning = digits(least)?;
        let run = Run::on(&streams[0]).tuned(&tuning);
        let error = sort_pairs_by(run, &keys, counting(0u32, len), Less, &mut out, &mut values_out).unwrap_err();
        assert!(matches!(&error, Error::WrongDevice { argument, .. } if argument == "`values_out`"), "{error}");
    }
    Ok(())
}
