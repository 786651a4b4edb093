//! Tests selections and partitions against iterators.

use kernel_primitives::algorithms::{Run, Workspace, partition, select_flagged, select_if, stable_partition};
use kernel_primitives::functor::{GreaterThan, LessThan, NotEqual, bind_second};
use kernel_primitives::input::counting;
use kernel_primitives::{Error, Result};

use crate::LENGTHS;
use crate::kernels::{Even, FewTimes, Twelve};
use crate::support::{stream, streams, values};

#[test]
fn what_a_predicate_keeps_of_any_length_at_any_offset() -> Result<()> {
    let stream = stream()?;
    for (k, len) in LENGTHS.into_iter().enumerate() {
        let x = values::<i32>(len + 7, k as u64);
        let (from, to) = (k % 5, k % 3);
        let buffer = stream.buffer_from(&x)?;
        // These keep half of the items, all items, and none.
        for bound in [0, i32::MAX, i32::MIN] {
            let kept: Vec<i32> = x[from..from + len].iter().copied().filter(|&x| x < bound).collect();
            let mut out = stream.buffer_from(&vec![77; len + 5])?;
            let mut count = stream.buffer_from(&[5u64, 6])?;
            let (x, mut part) = (buffer.slice(from..from + len)?, out.slice_mut(to..)?);
            select_if(&stream, x, bind_second(LessThan, bound), &mut part, &mut count)?;
            assert_eq!(count.to_vec()?, [kept.len() as u64, 6], "{len} {bound}");
            let found = out.to_vec()?;
            assert_eq!((&found[..to], &found[to..to + kept.len()]), (&[77; 2][..to], &kept[..]), "{len} {bound}");
            assert!(found[to + kept.len()..].iter().all(|&x| x == 77), "{len} {bound}");
        }
    }
    Ok(())
}

#[test]
fn every_type_is_selected_sanitize() -> Result<()> {
    let stream = stream()?;
    macro_rules! check {
        ($($t:ty: $seed:literal, $of:expr, $choice:expr, |$x:ident| $keeps:expr;)*) => {$(
            let x: Vec<$t> = values::<u8>(9001, $seed).into_iter().map($of).collect();
            let kept: Vec<$t> = x.iter().copied().filter(|&$x| $keeps).collect();
            let (mut out, mut count) = (stream.buffer_zeroed::<$t>(kept.len())?, stream.buffer_zeroed::<u64>(1)?);
            select_if(&stream, &stream.buffer_from(&x)?, $choice, &mut out, &mut count)?;
            assert_eq!((out.to_vec()?, count.to_vec()?), (kept.clone(), vec![kept.len() as u64]), stringify!($t));
        )*};
    }
    check! {
        u32: 1, |x| x as u32, bind_second(LessThan, 100u32), |x| x < 100;
        i32: 2, |x| x as i32 - 128, bind_second(GreaterThan, 0i32), |x| x > 0;
        f32: 3, |x| x as f32, bind_second(NotEqual, 3.0f32), |x| x != 3.0;
        u8: 4, |x| x, bind_second(LessThan, 77u8), |x| x < 77;
        u16: 5, |x| x as u16, bind_second(GreaterThan, 200u16), |x| x > 200;
        u64: 6, |x| (x as u64) << 33 | x as u64, bind_second(LessThan, 130u64 << 33), |x| x < 130 << 33;
        Twelve: 7, |x| Twelve { a: 1.0, b: x as u32, c: -1 }, Even, |x| x.b % 2 == 0;
    }
    Ok(())
}

#[test]
fn nan_is_below_nothing() -> Result<()> {
    let stream = stream()?;
    let x = [1.0f32, f32::NAN, -0.0, 0.0, f32::NEG_INFINITY];
    let (mut out, mut count) = (stream.buffer_zeroed::<f32>(5)?, stream.buffer_zeroed::<u64>(1)?);
    select_if(&stream, &stream.buffer_from(&x)?, bind_second(LessThan, 0.0f32), &mut out, &mut count)?;
    assert_eq!((count.to_vec()?, out.to_vec()?[0]), (vec![1], f32::NEG_INFINITY));
    Ok(())
}

/// This also runs on the other emulators. The blocks of one start in random order.
#[test]
fn flags_say_what_is_kept_sanitize() -> Result<()> {
    let x = values::<u32>(20_011, 3);
    let flags = values::<bool>(20_011, 4);
    let numbers: Vec<i32> = flags.iter().map(|&flag| flag as i32 * -7).collect();
    let kept: Vec<u32> = x.iter().zip(&flags).filter(|(_, flag)| **flag).map(|(&x, _)| x).collect();
    for stream in streams()? {
        let buffer = stream.buffer_from(&x)?;
        let (mut out, mut count) = (stream.buffer_zeroed::<u32>(20_011)?, stream.buffer_zeroed::<u64>(1)?);
        select_flagged(&stream, &buffer, &stream.buffer_from(&flags)?, &mut out, &mut count)?;
        assert_eq!((&out.to_vec()?[..kept.len()], &count.to_vec()?[..]), (&kept[..], &[kept.len() as u64][..]));
        let mut out = stream.buffer_zeroed::<u32>(20_011)?;
        select_flagged(&stream, &buffer, &stream.buffer_from(&numbers)?, &mut out, &mut count)?;
        assert_eq!(out.to_vec()?[..kept.len()], kept);
    }
    Ok(())
}

#[test]
fn indices_of_what_is_true_are_selected() -> Result<()> {
    let stream = stream()?;
    let flags = values::<bool>(30_000, 5);
    let (mut out, mut count) = (stream.buffer_zeroed::<u64>(30_000)?, stream.buffer_zeroed::<u64>(1)?);
    select_flagged(&stream, counting(0u64, 30_000), &stream.buffer_from(&flags)?, &mut out, &mut count)?;
    let expected: Vec<u64> = (0..30_000).filter(|&i| flags[i as usize]).collect();
    assert_eq!(count.to_vec()?, [expected.len() as u64]);
    assert_eq!(out.to_vec()?[..expected.len()], expected);
    Ok(())
}

#[test]
fn a_partition_has_both_and_a_stable_one_in_order_sanitize() -> Result<()> {
    for stream in streams()? {
        for (k, len) in LENGTHS.into_iter().enumerate() {
            let x = values::<u32>(len, k as u64);
            let bound = [1 << 31, 0, u32::MAX][k % 3];
            let (mut kept, others): (Vec<u32>, Vec<u32>) = x.iter().partition(|&&x| x < bound);
            let (mut out, mut count) = (stream.buffer_from(&vec![77u32; len + 2])?, stream.buffer_from(&[9u64])?);
            let (x, mut part) = (stream.buffer_from(&x)?, out.slice_mut(1..)?);
            stable_partition(&stream, &x, bind_second(LessThan, bound), &mut part, &mut count)?;
            assert_eq!(count.to_vec()?, [kept.len() as u64]);
            let expected = [&kept[..], &others].concat();
            let found = out.to_vec()?;
            assert_eq!((found[0], &found[1..=len], found[len + 1]), (77, &expected[..], 77));

            partition(&stream, &x, bind_second(LessThan, bound), out.slice_mut(1..)?, &mut count)?;
            assert_eq!(count.to_vec()?, [kept.len() as u64]);
            kept.extend(others.iter().rev());
            let found = out.to_vec()?;
            assert_eq!((found[0], &found[1..=len], found[len + 1]), (77, &kept[..], 77));
        }
    }
    Ok(())
}

/// The input does not fill its tiles. A slice from the second item is not aligned, so its first tile begins before it.
#[test]
fn predicates_get_only_items_of_the_input() -> Result<()> {
    let stream = stream()?;
    for len in [1, 3, 1000, 40_001] {
        let host: Vec<u32> = (0..=len).map(|i| 1 + i % 9).collect();
        let buffer = stream.buffer_from(&host)?;
        for skip in [0, 1] {
            let (x, host) = (buffer.slice(skip..)?, &host[skip..]);
            let (kept, others): (Vec<u32>, Vec<u32>) = host.iter().partition(|&&x| 100 / x > 15);
            let (mut out, mut count) = (stream.buffer_zeroed::<u32>(host.len())?, stream.buffer_zeroed::<u64>(1)?);
            select_if(&stream, x, FewTimes, &mut out, &mut count)?;
            assert_eq!((&out.to_vec()?[..kept.len()], &count.to_vec()?[..]), (&kept[..], &[kept.len() as u64][..]));
            stable_partition(&stream, x, FewTimes, &mut out, &mut count)?;
            assert_eq!((out.to_vec()?, count.to_vec()?), ([&kept[..], &others].concat(), vec![kept.len() as u64]));
            partition(&stream, x, FewTimes, &mut out, &mut count)?;
            assert_eq!((&out.to_vec()?[..kept.len()], &count.to_vec()?[..]), (&kept[..], &[kept.len() as u64][..]));
        }
    }
    Ok(())
}

#[test]
fn a_selection_is_captured_and_launched_again() -> Result<()> {
    let stream = stream()?;
    let data = values::<u32>(50_000, 6);
    let x = stream.buffer_from(&data)?;
    let (mut out, mut count) = (stream.buffer_zeroed::<u32>(50_000)?, stream.buffer_zeroed::<u64>(1)?);
    let mut workspace = Workspace::with_capacity(&stream, 1 << 16)?;
    let graph = stream.capture(|stream| {
        let run = Run::on(stream).with(&mut workspace);
        select_if(run, &x, bind_second(LessThan, 1u32 << 30), &mut out, &mut count)
    })?;
    let kept: Vec<u32> = data.into_iter().filter(|&x| x < 1 << 30).collect();
    for _ in 0..3 {
        graph.launch(&stream)?;
        assert_eq!((&out.to_vec()?[..kept.len()], &count.to_vec()?[..]), (&kept[..], &[kept.len() as u64][..]));
        out.copy_from(&[0; 50_000])?;
    }
    Ok(())
}

#[test]
fn more_items_than_thirty_two_bits_count_are_selected_from() -> Result<()> {
    let stream = stream()?;
    // The emulator would take an hour for this length.
    let far = if stream.device().is_gpu() { 1usize << 32 } else { 100_000 };
    let mut flags = stream.buffer_zeroed::<bool>(far + 12_345)?;
    let places = [5, far - 1, far, far + 12_344];
    for place in places {
        flags.slice_mut(place..=place)?.copy_from(&[true])?;
    }
    let (mut kept, mut count) = (stream.buffer_zeroed::<u64>(9)?, stream.buffer_zeroed::<u64>(1)?);
    select_flagged(&stream, counting(0u64, flags.len()), &flags, &mut kept, &mut count)?;
    assert_eq!(count.to_vec()?, [4]);
    assert_eq!(kept.to_vec()?[..4], places.map(|place| place as u64));
    Ok(())
}

#[test]
fn of_the_counts_only_the_first_is_written() -> Result<()> {
    let stream = stream()?;
    for len in [0, 10, 40_000] {
        let x: Vec<u32> = values(len, 3);
        let kept = x.iter().filter(|&&x| x < 1 << 31).count() as u64;
        let mut out = stream.buffer_zeroed::<u32>(len)?;
        for stable in [false, true] {
            let mut count = stream.buffer_from(&[5u64, 6, 7])?;
            let (x, predicate) = (stream.buffer_from(&x)?, bind_second(LessThan, 1 << 31));
            if stable {
                stable_partition(&stream, &x, predicate, &mut out, &mut count)?;
            } else {
                partition(&stream, &x, predicate, &mut out, &mut count)?;
            }
            assert_eq!(count.to_vec()?, [kept, 6, 7], "{len}");
        }
    }
    let (x, mut none) = (stream.buffer_zeroed::<u32>(1)?, stream.buffer_zeroed::<u64>(0)?);
    let mut out = stream.buffer_zeroed::<u32>(1)?;
    let error = stable_partition(&stream, &x, bind_second(LessThan, 1), &mut out, &mut none).unwrap_err();
    assert!(matches!(error, Error::LengthMismatch { first_len: 1, second_len: 0, .. }), "{error}");
    Ok(())
}
