//! Tests reductions of split tensors against plain Rust, and against those of one device.

use half::f16;
use kernel_primitives::expr::*;
use kernel_primitives::{Error, Result, Split};

use crate::{all_splits, devices, splits, values};

#[test]
fn to_one_value() -> Result<()> {
    for split in all_splits()? {
        for n in [0, 1, 2, 7, 8, 9, 100, 10_007] {
            let host = values(n);
            let x = SplitTensor::from_slice(&split, n, &host)?;
            let what = format!("{split:?} {n}");
            assert_eq!(x.sum().item()?, host.iter().sum::<i32>(), "{what}");
            assert_eq!(x.max().item()?, host.iter().copied().max().unwrap_or(i32::MIN), "{what}");
            assert_eq!(x.min().item()?, host.iter().copied().min().unwrap_or(i32::MAX), "{what}");
            let odd = (&x * 2 + 1).product().item()?;
            assert_eq!(odd, host.iter().fold(1i32, |all, x| all.wrapping_mul(2 * x + 1)), "{what}");
            let first = |best: Option<&i32>| {
                best.and_then(|best| host.iter().position(|x| x == best)).map_or(u64::MAX, |at| at as u64)
            };
            assert_eq!(x.arg_max().item()?, first(host.iter().max()), "{what}");
            assert_eq!(x.arg_min().item()?, first(host.iter().min()), "{what}");
            assert_eq!(x.gt(scalar(400)).count().item()?, host.iter().filter(|x| **x > 400).count() as u64, "{what}");
            assert!(x.ge(scalar(-504)).all().item()?, "{what}");
            assert!(!x.gt(scalar(504)).any().item()?, "{what}");
            assert_eq!(x.eq(scalar(0)).any().item()?, host.contains(&0), "{what}");
            let squares: i64 = host.iter().map(|&x| i64::from(x) * i64::from(x)).sum();
            assert_eq!(dot(&x, x.cast::<i64>()).item()?, squares, "{what}");
            let f = x.cast::<f64>();
            let (mean, norm) = (host.iter().sum::<i32>() as f64 / n as f64, (squares as f64).sqrt());
            let got = f.mean().item()?;
            assert!((got - mean).abs() < 1e-9 || n == 0 && got.is_nan(), "{what}: {got} {mean}");
            assert!((f.norm().item()? - norm).abs() <= 1e-12 * norm, "{what}");
        }
    }
    Ok(())
}

#[test]
fn the_first_of_equals_is_found_whatever_device_has_it() -> Result<()> {
    for split in splits(3)? {
        for first in 0..12 {
            for second in first..12 {
                let mut host = vec![5.0f32; 12];
                (host[first], host[second]) = (7.0, 7.0);
                let x = SplitTensor::from_slice(&split, 12, &host)?;
                assert_eq!((x.arg_max().item()?, (-&x).arg_min().item()?), (first as u64, first as u64), "{split:?}");
                // NaN wins over all values, and the first NaN counts.
                (host[first], host[second]) = (f32::NAN, f32::NAN);
                let x = SplitTensor::from_slice(&split, 12, &host)?;
                assert_eq!((x.arg_max().item()?, x.arg_min().item()?), (first as u64, first as u64), "{split:?}");
                assert!(x.max().item()?.is_nan() && x.min().item()?.is_nan());
                // Here, zeros of both signs are equal.
                (host[first], host[second]) = (0.0, -0.0);
                let x = SplitTensor::from_slice(&split, 12, &host)?;
                assert_eq!(x.arg_min().item()?, first as u64, "{split:?}");
            }
        }
        let all = SplitTensor::from_slice(&split, 6, &[f32::INFINITY; 6])?;
        assert_eq!((all.arg_min().item()?, all.arg_max().item()?), (0, 0));
        let flags = SplitTensor::from_slice(&split, 4, &[false, true, false, true])?;
        assert_eq!((flags.arg_max().item()?, flags.arg_min().item()?), (1, 0));
    }
    Ok(())
}

#[test]
fn sums_keep_the_sign_of_zero_and_the_type() -> Result<()> {
    for split in splits(3)? {
        let zeros = SplitTensor::from_slice(&split, 2, &[-0.0f64, -0.0])?;
        assert_eq!(zeros.sum().item()?.to_bits(), (-0.0f64).to_bits(), "{split:?}");
        let bytes = SplitTensor::from_slice(&split, 7, &[100u8; 7])?;
        assert_eq!(bytes.sum().item()?, 100u8.wrapping_mul(7));
        // Halves are summed in `f32`. `f16` does not hold the sums in between: of 3000 ones, and then of 0.25 four times.
        let mut host = vec![f16::ONE; 3000];
        host.extend([f16::from_f32(0.25); 4]);
        let halves = SplitTensor::from_slice(&split, host.len(), &host)?;
        assert_eq!(halves.sum().item()?, f16::from_f32(3001.0));
        assert_eq!(halves.mean().item()?, f16::from_f32(3001.0 / 3004.0));
        assert_eq!((&halves * f16::ZERO + f16::from_f32(2.0)).norm().item()?, f16::from_f32((4.0f32 * 3004.0).sqrt()));
    }
    Ok(())
}

/// Returns a reduction along axes by plain Rust: the results' shape, sums, maxima and the places of the maxima.
fn along(host: &[i32], shape: [usize; 3], axes: &[usize]) -> (Vec<usize>, Vec<i32>, Vec<i32>, Vec<u64>) {
    let kept: Vec<usize> = (0..3).filter(|axis| !axes.contains(axis)).collect();
    let out: Vec<usize> = kept.iter().map(|&axis| shape[axis]).collect();
    let results = out.iter().product();
    let (mut sums, mut tops, mut places) = (vec![0; results], vec![i32::MIN; results], vec![u64::MAX; results]);
    for (i, &value) in host.iter().enumerate() {
        let index = [i / (shape[1] * shape[2]), i / shape[2] % shape[1], i % shape[2]];
        let at = kept.iter().fold(0, |at, &axis| at * shape[axis] + index[axis]);
        let among = axes.iter().fold(0, |at, &axis| at * shape[axis] + index[axis]);
        sums[at] += value;
        if value > tops[at] {
            (tops[at], places[at]) = (value, among as u64);
        }
    }
    (out, sums, tops, places)
}

#[test]
fn along_axes() -> Result<()> {
    for split in splits(3)? {
        for shape in [[1, 1, 1], [2, 3, 4], [7, 1, 5], [5, 6, 10], [70, 3, 2], [0, 2, 3], [3, 0, 2], [4, 3, 0]] {
            let host = values(shape.iter().product());
            let x = SplitTensor::from_slice(&split, shape, &host)?;
            for axes in [&[0][..], &[1], &[2], &[0, 1], &[0, 2], &[1, 2], &[0, 1, 2]] {
                let (out, sums, tops, places) = along(&host, shape, axes);
                let what = format!("{split:?} {shape:?} {axes:?}");
                let signed: Vec<isize> = axes.iter().map(|&axis| axis as isize - 3).collect();
                let (sum, max, at) =
                    (x.sum().axes(&signed), x.max().axes(&signed).keep_axes(), x.arg_max().axes(&signed));
                if axes.contains(&0) {
                    let sum = sum.tensor()?;
                    assert_eq!((&*sum.shape(), sum.to_vec()?), (&out[..], sums), "{what}");
                    assert!(sum.device().to_string() == split.streams()[0].device().to_string());
                    let max = max.tensor()?;
                    assert_eq!((max.shape().rank(), max.to_vec()?), (3, tops), "{what}");
                    assert_eq!(at.tensor()?.to_vec()?, places, "{what}");
                } else {
                    let sum = sum.split_tensor()?;
                    assert_eq!((&*sum.shape(), sum.to_vec()?), (&out[..], sums), "{what}");
                    assert_eq!(
                        (0..split.streams().len()).map(|at| sum.range(at)).collect::<Vec<_>>(),
                        split.ranges(shape[0]).collect::<Vec<_>>()
                    );
                    let max = max.split_tensor()?;
                    assert_eq!((max.shape().rank(), max.to_vec()?), (3, tops), "{what}");
                    assert_eq!(at.split_tensor()?.to_vec()?, places, "{what}");
                }
            }
        }
    }
    Ok(())
}

#[test]
fn results_that_stay_split_go_on_in_expressions() -> Result<()> {
    for split in splits(3)? {
        let host = values(20 * 4);
        let x = SplitTensor::from_slice(&split, [20, 4], &host)?;
        let sums = x.sum().axes(&[1]).keep_axes().split_tensor()?;
        x.sub_assign(&sums)?;
        let expected: Vec<i32> = (0..80).map(|i| host[i] - host[i / 4 * 4..][..4].iter().sum::<i32>()).collect();
        assert_eq!(x.to_vec()?, expected);
    }
    Ok(())
}

#[test]
fn a_result_is_assigned_to_a_tensor_of_the_first_device() -> Result<()> {
    for split in splits(3)? {
        let x = SplitTensor::from_slice(&split, [6, 2], &values(12))?;
        let target = Tensor::<i32>::zeros(&split.streams()[0], 2)?;
        x.sum().axes(&[0]).assign_to(&target)?;
        assert_eq!(target.to_vec()?, along(&values(12), [6, 1, 2], &[0, 1]).1);
    }
    Ok(())
}

#[test]
fn expressions_without_tensors_are_reduced_over_a_split() -> Result<()> {
    let stream = devices(1)?[0].stream()?;
    let inside = le(square(uniform::<f32>(1)) + square(uniform::<f32>(2)), scalar(1.0)).cast::<u64>();
    let expected = inside.sum().over(&stream, [501, 40]).item()?;
    let pi = 4.0 * expected as f64 / (501.0 * 40.0);
    assert!((pi - std::f64::consts::PI).abs() < 0.05, "{pi}");
    for split in all_splits()? {
        // These are exactly the same points.
        assert_eq!(inside.sum().over_split(&split, [501, 40]).item()?, expected, "{split:?}");
        let index = element_index::<u64>() * 2 + axis_index::<u64>(0);
        let rows = index.sum().axes(&[1]).over_split(&split, [9, 3]).split_tensor()?;
        assert_eq!(rows.to_vec()?, (0..9u64).map(|i| 2 * (9 * i + 3) + 3 * i).collect::<Vec<_>>());
        assert_eq!(index.sum().over_split(&split, 0).item()?, 0);
    }
    Ok(())
}

#[test]
fn a_reduction_over_a_split_broadcasts_what_it_reads() -> Result<()> {
    let split = Split::even(&devices(2)?)?;
    let column = SplitTensor::from_slice(&split, [3, 1], &[1, 10, 100])?;
    assert_eq!(column.sum().over_split(&split, [3, 4]).item()?, 444);
    assert_eq!(column.sum().over_split(&split, [3, 4]).axes(&[0]).tensor()?.to_vec()?, [111; 4]);
    Ok(())
}

#[test]
fn what_is_gathered_from_has_no_part_in_the_shape() -> Result<()> {
    let split = Split::even(&devices(1)?)?;
    let table = Tensor::from_slice(&split.streams()[0], 7, &[1i32, 2, 3, 4, 5, 6, 7])?;
    let column = SplitTensor::from_slice(&split, [5, 1], &[0u32, 1, 2, 3, 6])?;
    assert_eq!(gather(&table, &column).sum().item()?, 17);
    assert_eq!(gather(&table, &column).arg_max().item()?, 4);
    let few = SplitTensor::from_slice(&split, 3, &[6u32, 0, 0])?;
    assert_eq!(gather(&table, &few).sum().item()?, 9);
    assert_eq!(gather(&table, axis_index::<u32>(0)).sum().over_split(&split, 2).item()?, 3);
    Ok(())
}

#[test]
fn a_fault_comes_back_whatever_device_has_it() -> Result<()> {
    let split = Split::even(&devices(2)?)?;
    for zero in 0..8 {
        let mut host = [1; 8];
        host[zero] = 0;
        let (x, y) = (SplitTensor::from_slice(&split, 8, &[5; 8])?, SplitTensor::from_slice(&split, 8, &host)?);
        let sum = (&x / &y).sum().item();
        assert!(matches!(sum, Err(Error::Fault(_))), "{zero}: {sum:?}");
        // The fault is returned once.
        assert_eq!(x.sum().item()?, 40, "{zero}");
        // The fault of an earlier assignment, which does not wait on a GPU, is also returned.
        let quotients = SplitTensor::<i32>::zeros(&split, 8)?;
        let sum = quotients.assign(&x / &y).and_then(|()| quotients.sum().item());
        assert!(matches!(sum, Err(Error::Fault(_))), "{zero}: {sum:?}");
        split.synchronize()?;
    }
    Ok(())
}
