//! Tests reductions of a whole input against iterators.

use std::thread;

use kernel_primitives::algorithms::{Run, Workspace, inclusive_scan, reduce};
use kernel_primitives::functor::{Add, ArgMax, ArgMin, MaxOf, Mean, MinOf, Mul, ReduceBy, Sum, of_pair};
use kernel_primitives::input::{counting, map, zip};
use kernel_primitives::{Device, Element, Error, Result};

use crate::LENGTHS;
use crate::kernels::{AddEach, Gcd};
use crate::support::{stream, streams, values};

/// Returns small whole numbers, whose sums are exact in any order.
fn whole(len: usize, seed: u64) -> Vec<f32> {
    values::<u8>(len, seed).iter().map(|&x| x as f32 - 100.0).collect()
}

#[test]
fn sums_of_any_length_at_any_offset() -> Result<()> {
    let stream = stream()?;
    for (k, len) in LENGTHS.into_iter().enumerate() {
        let x = whole(len + 5, k as u64);
        let buffer = stream.buffer_from(&x)?;
        let (mut sum, offset) = (stream.buffer_from(&[7.0f32, 8.0])?, k % 5);
        reduce(&stream, buffer.slice(offset..offset + len)?, Sum, &mut sum)?;
        assert_eq!(sum.to_vec()?, [x[offset..offset + len].iter().sum::<f32>(), 8.0], "{len}");
    }
    Ok(())
}

/// A user's operator is used in a scan and, by the same type, in a reduction.
#[test]
fn a_reducer_reduces_what_it_scans() -> Result<()> {
    let stream = stream()?;
    let x: Vec<u64> = (1..=10_000).map(|i| i * 36).collect();
    let (x, mut all) = (stream.buffer_from(&x)?, stream.buffer_zeroed::<u64>(1)?);
    let mut each = stream.buffer_zeroed::<u64>(x.len())?;
    reduce(&stream, &x, ReduceBy(Gcd), &mut all)?;
    inclusive_scan(&stream, &x, Gcd, &mut each)?;
    assert_eq!(all.to_vec()?, [36]);
    assert_eq!(each.to_vec()?, vec![36; x.len()]);
    reduce(&stream, x.slice(..0)?, ReduceBy(Gcd), &mut all)?;
    assert_eq!(all.to_vec()?, [0]);
    Ok(())
}

#[test]
fn every_type_has_its_sum_sanitize() -> Result<()> {
    fn check<T: Element, U: Element + PartialEq + std::fmt::Debug>(
        of: impl Fn(i32) -> T,
        expected: U,
        run: impl Fn(
            &kernel_primitives::Stream,
            &kernel_primitives::Buffer<T>,
            &mut kernel_primitives::Buffer<U>,
        ) -> Result<()>,
    ) -> Result<()> {
        let stream = stream()?;
        let x = stream.buffer_from(&(0..20_001).map(|i| of(i % 10 - 3)).collect::<Vec<T>>())?;
        let mut sum = stream.buffer_zeroed::<U>(1)?;
        run(&stream, &x, &mut sum)?;
        assert_eq!(sum.to_vec()?, [expected]);
        Ok(())
    }
    // The total is 2000 times the sum from -3 to 6, and one -3.
    const TOTAL: i32 = 2000 * 15 - 3;
    use kernel_primitives::{bf16, f16};
    macro_rules! sums {
        ($($t:ty => $u:ty, |$i:ident| $of:expr;)*) => {$(
            check::<$t, $u>(|$i| $of, TOTAL as $u, |stream, x, sum| reduce(stream, x, Sum, sum))?;
        )*};
    }
    sums! {
        f32 => f32, |i| i as f32;
        f64 => f64, |i| i as f64;
        f16 => f32, |i| f16::from_f32(i as f32);
        bf16 => f32, |i| bf16::from_f32(i as f32);
        i32 => i32, |i| i;
        i64 => i64, |i| i as i64;
    }
    // Unsigned sums wrap.
    check::<u32, u32>(|i| i as u32, TOTAL as u32, |stream, x, sum| reduce(stream, x, Sum, sum))?;
    check::<u64, u64>(|i| i as u64, TOTAL as u64, |stream, x, sum| reduce(stream, x, Sum, sum))
}

#[test]
fn extremes_and_their_places_sanitize() -> Result<()> {
    let stream = stream()?;
    let mut x = values::<i32>(30_011, 3);
    x[20_000] = i32::MAX;
    x[29_999] = i32::MAX;
    x[17] = i32::MIN;
    let buffer = stream.buffer_from(&x)?;
    let (mut least, mut greatest) = (stream.buffer_zeroed(1)?, stream.buffer_zeroed(1)?);
    reduce(&stream, &buffer, ArgMin, &mut least)?;
    reduce(&stream, &buffer, ArgMax, &mut greatest)?;
    assert_eq!((least.to_vec()?[0].index(), greatest.to_vec()?[0].index()), (17, 20_000));
    let (mut least, mut greatest) = (stream.buffer_zeroed(1)?, stream.buffer_zeroed(1)?);
    reduce(&stream, &buffer, MinOf, &mut least)?;
    reduce(&stream, &buffer, MaxOf, &mut greatest)?;
    assert_eq!((least.to_vec()?, greatest.to_vec()?), (vec![i32::MIN], vec![i32::MAX]));

    let mut x: Vec<f32> = values::<u8>(50_000, 4).iter().map(|&x| x as f32).collect();
    x[40_000] = f32::NAN;
    let mut least = stream.buffer_zeroed(1)?;
    reduce(&stream, &stream.buffer_from(&x)?, ArgMin, &mut least)?;
    assert_eq!(least.to_vec()?[0].index(), 40_000);
    x[40_000] = -0.0;
    x[10] = 0.0;
    for x in &mut x {
        *x = x.max(0.0);
    }
    x[40_000] = -0.0;
    let mut least = stream.buffer_zeroed(1)?;
    reduce(&stream, &stream.buffer_from(&x)?, MinOf, &mut least)?;
    assert_eq!(least.to_vec()?[0].to_bits(), (-0.0f32).to_bits());
    Ok(())
}

#[test]
fn of_nothing_there_is_the_identity() -> Result<()> {
    let stream = stream()?;
    let x = stream.buffer_zeroed::<f32>(0)?;
    let mut out = stream.buffer_zeroed::<f32>(1)?;
    reduce(&stream, &x, MinOf, &mut out)?;
    assert_eq!(out.to_vec()?, [f32::INFINITY]);
    reduce(&stream, &x, Sum, &mut out)?;
    assert_eq!(out.to_vec()?, [0.0]);
    reduce(&stream, &x, Mean, &mut out)?;
    assert!(out.to_vec()?[0].is_nan());
    Ok(())
}

#[test]
fn a_dot_product_is_a_reduction_of_pairs_sanitize() -> Result<()> {
    let stream = stream()?;
    let (x, y) = (whole(70_001, 1), whole(70_001, 2));
    let mut dot = stream.buffer_zeroed::<f32>(1)?;
    let pairs = (stream.buffer_from(&x)?, stream.buffer_from(&y)?);
    reduce(&stream, map(zip(&pairs.0, &pairs.1), of_pair(Mul)), Sum, &mut dot)?;
    let expected: f64 = x.iter().zip(&y).map(|(&x, &y)| x as f64 * y as f64).sum();
    assert!((dot.to_vec()?[0] as f64 - expected).abs() <= 1e-6 * 70_001.0 * 160.0 * 160.0);
    Ok(())
}

#[test]
fn more_items_than_thirty_two_bits_count() -> Result<()> {
    let stream = stream()?;
    let mut sum = stream.buffer_zeroed::<u64>(1)?;
    // The emulator would take an hour for this length.
    let len = if stream.device().is_gpu() { (1usize << 32) + 12_345 } else { 112_345 };
    reduce(&stream, counting(0u64, len), Sum, &mut sum)?;
    assert_eq!(sum.to_vec()?, [((len as u128 * (len as u128 - 1)) / 2) as u64]);
    Ok(())
}

/// There are five blocks, which two of the emulators run in orders of their own.
#[test]
fn sums_of_floats_have_the_same_bits_on_every_device() -> Result<()> {
    let x: Vec<f32> = values::<u32>(40_003, 8).iter().map(|&x| x as f32 * 1e-5).collect();
    let mut bits = Vec::new();
    for stream in streams()?.into_iter().chain([Device::emulator().stream()?]) {
        let mut sum = stream.buffer_zeroed::<f32>(1)?;
        reduce(&stream, &stream.buffer_from(&x)?, Sum, &mut sum)?;
        bits.push(sum.to_vec()?[0].to_bits());
    }
    assert!(bits.iter().all(|&sum| sum == bits[0]), "{bits:x?}");
    Ok(())
}

#[test]
fn a_reduction_allocates_once_and_with_a_workspace_never() -> Result<()> {
    let device = Device::emulator();
    let stream = device.stream()?;
    let x = stream.buffer_from(&whole(100_003, 5))?;
    let mut sum = stream.buffer_zeroed::<f32>(1)?;
    let cost = |run: &mut dyn FnMut() -> Result<()>| -> Result<(u64, u64, u64, u64)> {
        let before = device.counters();
        run()?;
        let cost = device.counters().since(before);
        Ok((cost.launches, cost.allocations, cost.synchronizations, cost.host_to_device_copies))
    };
    assert_eq!(cost(&mut || reduce(&stream, &x, Sum, &mut sum))?, (1, 1, 0, 0));
    for bytes in [1 << 12, 1 << 16] {
        let mut workspace = Workspace::with_capacity(&stream, bytes)?;
        assert_eq!(cost(&mut || reduce(Run::on(&stream).with(&mut workspace), &x, Sum, &mut sum))?, (1, 0, 0, 0));
    }
    assert_eq!(sum.to_vec()?, [whole(100_003, 5).iter().sum::<f32>()]);
    Ok(())
}

/// The largest input of one block has 32 KiB, or 2048 items of another size.
#[test]
fn a_reduction_by_one_block_allocates_nothing() -> Result<()> {
    let device = Device::emulator();
    let stream = device.stream()?;
    for more in [0, 1] {
        let (x, y) = (stream.buffer_from(&vec![1u32; 8192 + more])?, stream.buffer_from(&vec![[1u8; 3]; 2048 + more])?);
        let (mut sum, mut sums) = (stream.buffer_zeroed::<u32>(1)?, stream.buffer_zeroed::<[u8; 3]>(1)?);
        let before = device.counters();
        reduce(&stream, &x, Sum, &mut sum)?;
        assert_eq!(device.counters().since(before).allocations, more as u64);
        reduce(&stream, &y, ReduceBy(AddEach), &mut sums)?;
        assert_eq!(device.counters().since(before).allocations, 2 * more as u64);
        assert_eq!((sum.to_vec()?, sums.to_vec()?), (vec![8192 + more as u32], vec![[more as u8; 3]]));
    }
    Ok(())
}

#[test]
fn a_reduction_is_captured_with_a_workspace() -> Result<()> {
    let stream = stream()?;
    let mut x = stream.buffer_zeroed::<f32>(50_000)?;
    let mut sum = stream.buffer_zeroed::<f32>(1)?;
    let mut workspace = Workspace::with_capacity(&stream, 1 << 16)?;
    let graph = stream.capture(|stream| reduce(Run::on(stream).with(&mut workspace), &x, Sum, &mut sum))?;
    for seed in 0..3 {
        let data = whole(50_000, seed);
        x.copy_from(&data)?;
        graph.launch(&stream)?;
        assert_eq!(sum.to_vec()?, [data.iter().sum::<f32>()]);
    }
    let without = stream.capture(|stream| reduce(stream, &x, Sum, &mut sum));
    assert!(matches!(without, Err(Error::Capture { .. })), "{without:?}");
    Ok(())
}

/// On a GPU, calls without a workspace use memory that their stream keeps. Threads have it in turn, and a call that finds it taken allocates.
#[test]
fn threads_call_without_workspaces_on_one_stream() -> Result<()> {
    const LEN: usize = 20_500;
    let stream = Device::auto()?.stream()?;
    let x = stream.buffer_from(&vec![3u32; LEN])?;
    let rounds = if stream.device().is_gpu() { 100 } else { 1 };
    let run = || -> Result<()> {
        for _ in 0..rounds {
            let (mut sum, mut sums) = (stream.buffer_zeroed::<u32>(1)?, stream.buffer_zeroed::<u32>(LEN)?);
            for _ in 0..3 {
                reduce(&stream, &x, Sum, &mut sum)?;
                inclusive_scan(&stream, &x, Add, &mut sums)?;
            }
            assert_eq!(sum.to_vec()?, [3 * LEN as u32]);
            assert!(sums.to_vec()?.iter().zip(1..).all(|(&sum, n)| sum == 3 * n));
        }
        Ok(())
    };
    thread::scope(|scope| {
        let threads = [0; 3].map(|_| scope.spawn(run));
        threads.into_iter().try_for_each(|thread| thread.join().expect("no panic"))
    })
}
