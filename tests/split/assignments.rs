//! Tests assignments to split tensors against plain Rust, and bit for bit against those of one device.

use std::thread;

use kernel_primitives::expr::*;
use kernel_primitives::{Devices, EmulatorOptions, Error, Result, Split};

use crate::{all_splits, devices, splits, values};

#[test]
fn the_program_of_the_slides() -> Result<()> {
    for split in all_splits()? {
        for n in [0, 1, 2, 5, 7, 8, 9, 1000, 100_003] {
            let (x, y) = (SplitTensor::<f64>::uninit(&split, n)?, SplitTensor::<f64>::uninit(&split, n)?);
            x.assign(element_index::<f64>() / n as f64)?;
            y.assign(sin(&x * 2.0) + sqrt(1.0 - &x * &x))?;
            let (x, y) = (x.to_vec()?, y.to_vec()?);
            assert_eq!((x.len(), y.len()), (n, n));
            for i in 0..n {
                let expected = i as f64 / n as f64;
                assert_eq!(x[i], expected, "{split:?} {n} {i}");
                let expected = (2.0 * expected).sin() + (1.0 - expected * expected).sqrt();
                assert!((y[i] - expected).abs() < 1e-15, "{split:?} {n} {i}: {} {expected}", y[i]);
            }
        }
    }
    Ok(())
}

#[test]
fn indices_and_random_numbers_are_those_of_one_device() -> Result<()> {
    let stream = devices(1)?[0].stream()?;
    for shape in [[1, 1], [2, 7], [5, 3], [100, 33], [0, 4], [4, 0]] {
        let whole = Tensor::<f64>::uninit(&stream, shape)?;
        let value = || {
            let places = element_index::<f64>() * 1000.0 + axis_index::<f64>(0) * 10.0 + axis_index::<f64>(1);
            places + uniform::<f64>(7) + normal::<f64>(8)
        };
        whole.assign(value())?;
        let expected: Vec<u64> = whole.to_vec()?.into_iter().map(f64::to_bits).collect();
        for split in all_splits()? {
            let x = SplitTensor::<f64>::uninit(&split, shape)?;
            x.assign(value())?;
            let got: Vec<u64> = x.to_vec()?.into_iter().map(f64::to_bits).collect();
            assert_eq!(got, expected, "{split:?} {shape:?}");
        }
    }
    Ok(())
}

#[test]
fn each_device_has_the_rows_of_its_range() -> Result<()> {
    for split in all_splits()? {
        for rows in [0, 1, 3, 10, 101] {
            let host = values(rows * 6);
            let x = SplitTensor::from_slice(&split, [rows, 2, 3], &host)?;
            assert_eq!(
                (&*x.shape(), x.len(), x.is_empty(), x.dtype()),
                (&[rows, 2, 3][..], rows * 6, rows == 0, DType::I32)
            );
            let ranges: Vec<_> = split.ranges(rows).collect();
            for (device, (range, shard)) in ranges.iter().zip(x.shards()).enumerate() {
                assert_eq!((x.range(device), &*shard.shape()), (range.clone(), &[range.len(), 2, 3][..]));
                assert_eq!(shard.to_vec()?, host[range.start * 6..range.end * 6]);
                assert_eq!(shard.device().to_string(), split.streams()[device].device().to_string());
            }
            assert_eq!(x.to_vec()?, host);
        }
    }
    Ok(())
}

#[test]
fn operators_and_functions() -> Result<()> {
    for split in splits(3)? {
        for n in [1, 2, 50] {
            let (a, b) = (values(n), values(2 * n)[n..].to_vec());
            let (x, y) = (SplitTensor::from_slice(&split, n, &a)?, SplitTensor::from_slice(&split, n, &b)?);
            let out = SplitTensor::<i32>::zeros(&split, n)?;
            let check = |value: Expr<i32>, expected: &dyn Fn(i32, i32) -> i32| -> Result<()> {
                out.assign(&value)?;
                let expected: Vec<i32> = a.iter().zip(&b).map(|(&a, &b)| expected(a, b)).collect();
                assert_eq!(out.to_vec()?, expected, "{split:?}");
                Ok(())
            };
            let e = &x + &y;
            check(e.clone(), &|a, b| a + b)?;
            check(&x - 3, &|a, _| a - 3)?;
            check(3 - &x, &|a, _| 3 - a)?;
            check(&x * &y, &|a, b| a * b)?;
            check(&x * (&y + 1), &|a, b| a * (b + 1))?;
            check((&y + 1) * &x, &|a, b| a * (b + 1))?;
            check(&e * &x, &|a, b| (a + b) * a)?;
            check(&x * &e, &|a, b| (a + b) * a)?;
            check(&x / 7 + &y % 5, &|a, b| a / 7 + b % 5)?;
            check((&x & 12) | (&y ^ 5), &|a, b| (a & 12) | (b ^ 5))?;
            check(-&x, &|a, _| -a)?;
            check(!&x, &|a, _| !a)?;
            check((&x << scalar(2)) + (&y >> scalar(1u64)), &|a, b| (a << 2) + (b >> 1))?;
            check(x.abs().maximum(&y), &|a, b| a.abs().max(b))?;
            check(select(lt(&x, &y), &x, scalar(0)), &|a, b| if a < b { a } else { 0 })?;
            check(minimum(&x, y.cast::<i32>()), &|a, b| a.min(b))?;
            // Operands may be values.
            check(x.clone() * &y - y.clone(), &|a, b| a * b - b)?;
            check(2 - x.clone() * 3, &|a, _| 2 - a * 3)?;
            check(&e - x.clone() + (e.clone() ^ y.clone()), &|a, b| b + ((a + b) ^ b))?;
            check(-x.clone() + !y.clone() + (x.clone() << scalar(1)), &|a, b| a + !b)?;

            let z = SplitTensor::from_slice(&split, n, &a)?;
            z.add_assign(&y)?;
            z.mul_assign(scalar(2))?;
            z.sub_assign(&x)?;
            z.div_assign(&e.square() + 1)?;
            let expected = a.iter().zip(&b).map(|(&a, &b)| (2 * (a + b) - a) / ((a + b) * (a + b) + 1));
            assert_eq!(z.to_vec()?, expected.collect::<Vec<_>>());
            z.fill(-9)?;
            assert_eq!(z.to_vec()?, vec![-9; n]);
        }
    }
    Ok(())
}

#[test]
fn types_are_promoted_and_converted() -> Result<()> {
    for split in splits(2)? {
        let x = SplitTensor::from_slice(&split, 3, &[1u8, 2, 3])?;
        let y = SplitTensor::from_slice(&split, 3, &[0.5f32, 1.5, 2.5])?;
        let out = SplitTensor::<f32>::zeros(&split, 3)?;
        out.assign(&x * &y)?;
        assert_eq!(out.to_vec()?, [0.5, 3.0, 7.5]);
        let flags = SplitTensor::<bool>::zeros(&split, 3)?;
        flags.assign(gt(&y, scalar(1.0)) & ne(&x, scalar(3)))?;
        assert_eq!(flags.to_vec()?, [false, true, false]);
    }
    Ok(())
}

#[test]
fn inner_axes_broadcast() -> Result<()> {
    for split in splits(3)? {
        for rows in [0, 1, 2, 7] {
            let (a, b) = (values(rows), values(rows * 4));
            let column = SplitTensor::from_slice(&split, [rows, 1], &a)?;
            let x = SplitTensor::from_slice(&split, [rows, 4], &b)?;
            let out = SplitTensor::<i32>::zeros(&split, [rows, 4])?;
            out.assign(&x * 10 + &column)?;
            let expected: Vec<i32> = (0..rows * 4).map(|i| b[i] * 10 + a[i / 4]).collect();
            assert_eq!(out.to_vec()?, expected);
        }
    }
    Ok(())
}

#[test]
fn a_target_is_read_in_its_own_places() -> Result<()> {
    for split in splits(3)? {
        let x = SplitTensor::from_slice(&split, 10, &values(10))?;
        let same = x.clone();
        x.assign(&same * 2 + &x)?;
        assert_eq!(same.to_vec()?, values(10).iter().map(|x| x * 3).collect::<Vec<_>>());
    }
    Ok(())
}

#[test]
fn an_assignment_is_one_launch_on_each_device_with_rows() -> Result<()> {
    // On the emulator, nothing else uses these handles. A GPU's counts are those of the process.
    let split = Split::even(&devices(3)?)?;
    let counters = || split.streams().iter().map(|stream| stream.device().counters()).collect::<Vec<_>>();
    let is_emulated = !split.streams()[0].device().is_gpu();
    for rows in [2, 300] {
        let x = SplitTensor::from_slice(&split, rows, &values(rows))?;
        let y = SplitTensor::<i32>::uninit(&split, rows)?;
        let before = counters();
        y.assign(&x + element_index::<i32>())?;
        for ((after, before), range) in counters().into_iter().zip(before).zip(split.ranges(rows)) {
            let cost = after.since(before);
            if is_emulated {
                assert_eq!(cost.launches, u64::from(!range.is_empty()));
                assert_eq!((cost.device_copies, cost.peer_copies, cost.allocations), (0, 0, 0));
            } else {
                assert!(cost.launches >= u64::from(!range.is_empty()));
            }
        }
        y.to_vec()?;
    }
    Ok(())
}

#[test]
fn two_threads_update_one_tensor() -> Result<()> {
    for split in splits(3)? {
        let x = SplitTensor::<u64>::zeros(&split, 1000)?;
        let add = |by: u64| -> Result<()> { (0..50).try_for_each(|_| x.add_assign(scalar(by))) };
        thread::scope(|scope| {
            let others = [scope.spawn(|| add(1)), scope.spawn(|| add(1000))];
            others.into_iter().try_for_each(|other| other.join().expect("no panic"))
        })?;
        assert_eq!(x.to_vec()?, vec![50 * 1001; 1000]);
    }
    Ok(())
}

#[test]
fn a_tensor_outlives_its_split_and_its_devices() -> Result<()> {
    let (x, expression) = {
        let split = Split::even(&Devices::emulated(2)?)?;
        let x = SplitTensor::from_slice(&split, 5, &[1, 2, 3, 4, 5])?;
        let y = SplitTensor::from_slice(&split, 5, &[10, 20, 30, 40, 50])?;
        (x.clone(), &x + &y)
    };
    x.assign(expression)?;
    let shard = x.shard(0);
    assert_eq!(x.to_vec()?, [11, 22, 33, 44, 55]);
    drop(x);
    assert_eq!(shard.to_vec()?, [11, 22]);
    Ok(())
}

#[test]
fn together_devices_hold_what_one_does_not() -> Result<()> {
    let mut options = EmulatorOptions::default();
    options.memory_bytes = Some(4000);
    let split = Split::even(&Devices::emulated_with(3, options)?)?;
    let one = Tensor::<f32>::zeros(&split.streams()[0], 2500).expect_err("too much");
    assert!(matches!(&one, Error::Allocation { bytes: 10000, .. }), "{one}");
    let x = SplitTensor::<f32>::uninit(&split, 2500)?;
    x.assign(element_index::<f32>())?;
    assert_eq!(x.sum().item()?, 2499.0 * 2500.0 / 2.0);
    let more = SplitTensor::<f32>::zeros(&split, 1000).expect_err("full").to_string();
    assert!(more.contains("on device") && more.contains("are left"), "{more}");
    // The memory that was taken before the failure is given back.
    drop(x);
    SplitTensor::<f32>::zeros(&split, 3000)?;
    Ok(())
}

#[test]
fn texts_name_the_tensor_and_its_ranges() -> Result<()> {
    let split = Split::even(&Devices::emulated(2)?)?;
    let x = SplitTensor::<f32>::zeros(&split, [5, 2])?;
    let text = format!("{x:?}");
    assert_eq!(text, "SplitTensor<f32>([5, 2]: 0..2 on device 0 of the emulator, 2..5 on device 1 of the emulator)");
    assert_eq!(format!("{split:?}"), "Split(device 0 of the emulator: 1, device 1 of the emulator: 1)");
    Ok(())
}
