//! Tests reductions against plain Rust.

use kernel_primitives::expr::*;
use kernel_primitives::{Device, Error, ExpressionErrorKind, Result};

use crate::assert_error;

/// Returns values without order, whose sums in `f32` are exact.
fn values(n: usize) -> Vec<i32> {
    (0..n).map(|i| ((i * 7919) % 1009) as i32 - 504).collect()
}

#[test]
fn to_one_value() -> Result<()> {
    let stream = Device::auto()?.stream()?;
    for n in [0, 1, 2, 31, 33, 255, 1000, 4097, 100_003, 1_000_003] {
        let host = values(n);
        let x = Tensor::from_slice(&stream, n, &host)?;
        assert_eq!(x.sum().item()?, host.iter().sum::<i32>(), "{n}");
        assert_eq!(x.max().item()?, host.iter().copied().max().unwrap_or(i32::MIN), "{n}");
        assert_eq!(x.min().item()?, host.iter().copied().min().unwrap_or(i32::MAX), "{n}");
        let first =
            |best: Option<&i32>| best.and_then(|b| host.iter().position(|v| v == b)).map_or(u64::MAX, |i| i as u64);
        assert_eq!(x.arg_max().item()?, first(host.iter().max()), "{n}");
        assert_eq!(x.arg_min().item()?, first(host.iter().min()), "{n}");
        assert_eq!(x.gt(scalar(400)).count().item()?, host.iter().filter(|v| **v > 400).count() as u64);
        assert!(x.ge(scalar(-504)).all().item()?);
        assert!(!x.gt(scalar(504)).any().item()?);
        let dotted = dot(&x, x.cast::<i64>()).item()?;
        assert_eq!(dotted, host.iter().map(|v| i64::from(*v) * i64::from(*v)).sum::<i64>());
        let f = x.cast::<f64>();
        let mean = host.iter().map(|v| f64::from(*v)).sum::<f64>() / n as f64;
        let got = f.mean().item()?;
        assert!(got == mean || (got - mean).abs() < 1e-9 || n == 0 && got.is_nan(), "{n}: {got} {mean}");
        let norm = (dotted as f64).sqrt();
        assert!((f.norm().item()? - norm).abs() <= 1e-12 * norm);
    }
    Ok(())
}

#[test]
fn along_axes() -> Result<()> {
    let stream = Device::auto()?.stream()?;
    for shape in [[2, 3, 4], [5, 6, 10], [1, 300, 40], [70, 1, 65], [3, 1025, 3], [130, 70, 2], [2, 2, 5000]] {
        let n = shape.iter().product();
        let host = values(n);
        let x = Tensor::from_slice(&stream, shape, &host)?;
        for axes in [&[][..], &[0], &[1], &[2], &[0, 1], &[0, 2], &[1, 2], &[0, 1, 2]] {
            for turned in [false, true] {
                // The view has the same elements in another order of axes.
                let (view, order) = if turned { (x.permute(&[2, 0, 1])?, [2, 0, 1]) } else { (x.clone(), [0, 1, 2]) };
                let extents = order.map(|axis| shape[axis]);
                let kept: Vec<usize> = (0..3).filter(|axis| !axes.contains(axis)).collect();
                let out: Vec<usize> = kept.iter().map(|&axis| extents[axis]).collect();
                let (mut sums, mut tops) = (vec![0; out.iter().product()], vec![i32::MIN; out.iter().product()]);
                let mut at_tops = vec![0u64; tops.len()];
                for i in 0..n {
                    let index = [i / (extents[1] * extents[2]), i / extents[2] % extents[1], i % extents[2]];
                    let mut source = [0; 3];
                    for (to, from) in order.iter().zip(index) {
                        source[*to] = from;
                    }
                    let value = host[(source[0] * shape[1] + source[1]) * shape[2] + source[2]];
                    let at = kept.iter().fold(0, |at, &axis| at * extents[axis] + index[axis]);
                    let among = axes.iter().fold(0, |at, &axis| at * extents[axis] + index[axis]);
                    sums[at] += value;
                    if value > tops[at] {
                        (tops[at], at_tops[at]) = (value, among as u64);
                    }
                }
                let axes: Vec<isize> = axes.iter().map(|&axis| axis as isize).collect();
                let sum = view.sum().axes(&axes).tensor()?;
                assert_eq!((&*sum.shape(), sum.to_vec()?), (&out[..], sums), "{shape:?} {axes:?} {turned}");
                let top = view.max().axes(&axes).keep_axes().tensor()?;
                assert_eq!((top.shape().rank(), top.to_vec()?), (3, tops), "{shape:?} {axes:?} {turned}");
                let at = view.arg_max().axes(&axes).tensor()?;
                assert_eq!(at.to_vec()?, at_tops, "{shape:?} {axes:?} {turned}");
            }
        }
    }
    Ok(())
}

#[test]
fn of_other_types_and_of_what_is_computed() -> Result<()> {
    let stream = Device::auto()?.stream()?;
    let h = Tensor::from_slice(&stream, 3000, &vec![half::f16::from_f32(1.0); 3000])?;
    // Sums in `f16` would stop at 2048, because 2048 + 1 = 2048 in it.
    assert_eq!(h.sum().item()?, half::f16::from_f32(3000.0));
    assert_eq!(element_index::<u64>().sum().over(&stream, [100, 1000]).item()?, 99_999 * 50_000);
    let rows = element_index::<u64>().sum().over(&stream, [100, 1000]).axes(&[1]).tensor()?.to_vec()?;
    assert_eq!(rows, (0..100).map(|i| i * 1_000_000 + 499_500).collect::<Vec<u64>>());
    // Expressions that count elements are reduced along any axes, in one kernel.
    let shape = [6usize, 37, 8];
    let weights = Tensor::from_slice(&stream, [37, 1], &(0..37).map(|i| i % 5).collect::<Vec<u64>>())?;
    let value = element_index::<u64>() * 7 + axis_index::<u64>(1) * axis_index::<u64>(2) + &weights;
    let at = |i: usize, j: usize, k: usize| (((i * 37 + j) * 8 + k) * 7 + j * k + j % 5) as u64;
    for axes in [&[][..], &[0], &[1], &[2], &[0, 1], &[0, 2], &[1, 2], &[0, 1, 2]] {
        let kept = |axis: usize| !axes.contains(&(axis as isize));
        let extents = |axis: usize| if kept(axis) { shape[axis] } else { 1 };
        let mut expected = vec![0; (0..3).map(extents).product()];
        for (i, j, k) in (0..6).flat_map(|i| (0..37).flat_map(move |j| (0..8).map(move |k| (i, j, k)))) {
            let place = [i, j, k].into_iter().enumerate().filter(|&(axis, _)| kept(axis));
            expected[place.fold(0, |place, (axis, index)| place * shape[axis] + index)] += at(i, j, k);
        }
        let sums = value.sum().over(&stream, shape).axes(axes).tensor()?;
        assert_eq!(sums.to_vec()?, expected, "{axes:?}");
        assert!(value.sum().over(&stream, shape).axes(axes).ptx(90)?.contains(".entry"));
    }
    let error = axis_index::<u64>(3).sum().over(&stream, shape).item().unwrap_err().to_string();
    assert!(error.contains("no axis 3") && error.contains("[6, 37, 8]"), "{error}");
    // The random numbers of rows are those of the whole tensor.
    let noise = Tensor::<f64>::zeros(&stream, [9, 64])?;
    noise.assign(uniform(3))?;
    let rows = uniform::<f64>(3).max().over(&stream, [9, 64]).axes(&[1]).tensor()?.to_vec()?;
    let expected = noise.to_vec()?.chunks(64).map(|row| row.iter().copied().fold(0.0, f64::max)).collect::<Vec<_>>();
    assert_eq!(rows, expected);
    let x = Tensor::from_slice(&stream, 4, &[1.0f32, f32::NAN, 0.5, f32::NAN])?;
    assert!(x.min().item()?.is_nan() && x.max().item()?.is_nan());
    assert_eq!((x.arg_min().item()?, x.arg_max().item()?), (1, 1));
    let error = x.sum().axes(&[1]).item().unwrap_err().to_string();
    assert!(error.contains("axis 1") && error.contains("[4]"), "{error}");
    Ok(())
}

/// A vector that is gathered from gives no shape.
#[test]
fn what_has_no_shape_is_reduced_over_a_shape_only() -> Result<()> {
    let stream = Device::auto()?.stream()?;
    let table = Tensor::from_slice(&stream, 10, &Vec::from_iter(0..10u64))?;
    let picked = || gather(&table, element_index::<u64>()).sum();
    let total = Tensor::<u64>::zeros(&stream, [0usize; 0])?;
    let number = Tensor::<f64>::zeros(&stream, [0usize; 0])?;
    let refused = [
        picked().item().map(drop),
        picked().assign_to(&total),
        picked().ptx(90).map(drop),
        uniform::<f64>(7).sum().item().map(drop),
        uniform::<f64>(7).sum().assign_to(&number),
        scalar(7u64).sum().assign_to(&total),
    ];
    for refused in refused {
        assert_error(refused, ExpressionErrorKind::BadShape, &["`over`"]);
    }
    assert_eq!(picked().over(&stream, 10).item()?, 45);
    // The shape of a single value is known.
    total.fill(3)?;
    picked().over(&stream, [0usize; 0]).assign_to(&total)?;
    assert_eq!((total.item()?, total.sum().item()?, (&total + 3u64).max().item()?), (0, 0, 3));
    let one = Tensor::from_slice(&stream, 1, &[4u64])?;
    assert_eq!((one.sum().item()?, gather(&table, &one).sum().item()?), (4, 4));
    Ok(())
}

/// All results are written, for any empty axis.
#[test]
fn along_axes_that_are_empty() -> Result<()> {
    let stream = Device::auto()?.stream()?;
    assert_eq!(Tensor::<i32>::zeros(&stream, [0, 3, 32])?.sum().axes(&[0, 2]).tensor()?.to_vec()?, [0; 3]);
    let x = Tensor::<f32>::zeros(&stream, [2, 2, 0, 16])?;
    let y = Tensor::from_slice(&stream, [2, 16], &[7.0f32; 32])?;
    x.product().axes(&[1, 2]).assign_to(&y)?;
    assert_eq!(y.to_vec()?, [1.0; 32]);
    let x = Tensor::<i8>::zeros(&stream, [3, 0, 2, 2])?;
    assert_eq!(x.max().axes(&[1, 3]).tensor()?.to_vec()?, [i8::MIN; 6]);
    assert_eq!(x.min().axes(&[0, 1]).keep_axes().tensor()?.to_vec()?, [i8::MAX; 4]);
    assert_eq!(x.arg_min().axes(&[1, 2, 3]).tensor()?.to_vec()?, [u64::MAX; 3]);
    // No element is read, even from a view that has one stride for all.
    let nothing = Tensor::<f64>::zeros(&stream, 0)?.as_strided([0, 4], &[0, 0])?;
    assert!(nothing.mean().axes(&[0]).tensor()?.to_vec()?.iter().all(|mean| mean.is_nan()));
    assert_eq!(nothing.norm().item()?, 0.0);
    let yes = Tensor::<bool>::zeros(&stream, [0, 2])?;
    assert_eq!((yes.all().item()?, yes.any().item()?, yes.count().item()?), (true, false, 0));
    let h = Tensor::<half::f16>::zeros(&stream, [2, 0])?;
    assert_eq!(h.sum().axes(&[1]).tensor()?.to_vec()?, [half::f16::ZERO; 2]);
    assert!(h.sum().axes(&[1]).ptx(90)?.contains(".entry"));
    // There may also be no results.
    assert_eq!(x.sum().axes(&[0]).tensor()?.to_vec()?, [0; 0]);
    let error = axis_index::<u64>(300).sum().over(&stream, [0, 2]).item().unwrap_err().to_string();
    assert!(error.contains("no axis 300"), "{error}");
    Ok(())
}

/// Each addition keeps the sign.
#[test]
fn a_sum_of_negative_zeros_is_one() -> Result<()> {
    let stream = Device::auto()?.stream()?;
    for n in [1, 5, 300, 70_000] {
        let x = Tensor::from_slice(&stream, [n, 2], &vec![-0.0f32; 2 * n])?;
        assert!(x.sum().item()?.is_sign_negative());
        assert!(x.sum().axes(&[0]).tensor()?.to_vec()?.iter().all(|sum| sum.is_sign_negative()));
        assert!(x.mean().axes(&[1]).tensor()?.to_vec()?.iter().all(|mean| mean.is_sign_negative()));
        assert!((&x * 0.0 + &x).cast::<half::bf16>().sum().item()?.is_sign_negative());
        x.slice((0, 0))?.fill(0.0)?;
        assert!(x.sum().item()?.is_sign_positive());
    }
    Ok(())
}

/// On a GPU, several blocks share each of these results.
#[test]
fn of_few_rows_with_many_elements() -> Result<()> {
    let stream = Device::auto()?.stream()?;
    for [rows, len] in [[3, 500_001], [2, 262_144]] {
        let host = values(rows * len);
        let x = Tensor::from_slice(&stream, [rows, len], &host)?;
        let rows = || host.chunks(len);
        let sums: Vec<i32> = rows().map(|row| row.iter().sum()).collect();
        assert_eq!(x.sum().axes(&[1]).tensor()?.to_vec()?, sums);
        let least = |row: &[i32]| (0..len).min_by_key(|&i| row[i]).map_or(u64::MAX, |i| i as u64);
        assert_eq!(x.arg_min().axes(&[1]).tensor()?.to_vec()?, rows().map(least).collect::<Vec<u64>>());
    }
    Ok(())
}

/// On a GPU, blocks share results in memory that their stream keeps. Reductions of other forms, faults and other threads do not spoil it.
#[test]
fn one_after_the_other_on_a_stream() -> Result<()> {
    const SHAPE: [usize; 2] = [600, 2000];
    let stream = Device::auto()?.stream()?;
    let host = values(SHAPE[0] * SHAPE[1]);
    let x = Tensor::from_slice(&stream, SHAPE, &host)?;
    let narrow = Tensor::<i16>::uninit(&stream, SHAPE)?;
    narrow.assign(x.cast::<i16>())?;
    let columns = |from: i32| -> Vec<i32> {
        (0..SHAPE[1]).map(|at| host.iter().skip(at).step_by(SHAPE[1]).map(|value| value + from).sum()).collect()
    };
    let rows: Vec<i32> = host.chunks(SHAPE[1]).map(|row| row.iter().sum()).collect();
    let (all, [by_column, narrow_by_column]) = (host.iter().sum::<i32>(), [columns(0), columns(1)]);
    // All of them are enqueued before the first is read.
    let run = || -> Result<()> {
        let mut results = Vec::new();
        for _ in 0..3 {
            let sums = (x.sum().tensor()?, x.sum().axes(&[0]).tensor()?, x.sum().axes(&[1]).tensor()?);
            results.push((sums, (narrow.cast::<i32>() + 1).sum().axes(&[0]).tensor()?, x.arg_max().tensor()?));
        }
        let top = (0..host.len()).rev().max_by_key(|&i| host[i]).map(|i| i as u64);
        for ((sum, of_columns, of_rows), of_narrow, place) in results {
            assert_eq!((sum.to_vec()?, of_rows.to_vec()?), (vec![all], rows.clone()));
            assert_eq!((of_columns.to_vec()?, of_narrow.to_vec()?), (by_column.clone(), narrow_by_column.clone()));
            assert_eq!(place.to_vec()?.first().copied(), top);
        }
        Ok(())
    };
    run()?;
    // Only some of the blocks fault, and do not say that they have ended.
    let divisors = Tensor::<i32>::zeros(&stream, SHAPE)?;
    divisors.slice((..300, ..))?.fill(1)?;
    let faulty = (&x / &divisors).sum().tensor().and_then(|_| stream.synchronize());
    assert!(matches!(&faulty, Err(Error::Fault(_))), "{faulty:?}");
    run()?;
    std::thread::scope(|scope| {
        let threads = [0, 1].map(|_| scope.spawn(run));
        threads.into_iter().try_for_each(|thread| thread.join().expect("no panic"))
    })
}

/// There are more columns than are kept at once, with few and with many rows.
#[test]
fn of_many_columns() -> Result<()> {
    let stream = Device::auto()?.stream()?;
    for [rows, depth, columns] in
        [[1, 7, 50_001], [3, 2, 16_385], [2, 300, 1000], [2, 300, 2500], [1, 40_000, 3], [700, 5, 9]]
    {
        let x = Tensor::<u64>::uninit(&stream, [rows, depth, columns])?;
        x.assign(element_index::<u64>() % 1009)?;
        let mut sums = vec![0u64; rows * columns];
        let mut tops = vec![(0u64, 0u64); rows * columns];
        for (i, value) in (0..(rows * depth * columns) as u64).map(|i| i % 1009).enumerate() {
            let at = i / (depth * columns) * columns + i % columns;
            sums[at] += value;
            if value > tops[at].0 {
                tops[at] = (value, (i / columns % depth) as u64);
            }
        }
        assert_eq!(x.sum().axes(&[1]).tensor()?.to_vec()?, sums);
        let at: Vec<u64> = tops.into_iter().map(|top| top.1).collect();
        assert_eq!(x.arg_max().axes(&[1]).tensor()?.to_vec()?, at);
    }
    Ok(())
}

/// The numbers of rows and columns may need more than 32 bits.
#[test]
fn places_of_results_have_64_bits() -> Result<()> {
    let stream = Device::emulator().stream()?;
    let x = Tensor::<u8>::zeros(&stream, [40, 64])?;
    for axes in [&[0], &[1]] {
        assert!(x.max().axes(axes).ptx(90)?.contains("mad.wide.u32"), "{axes:?}");
    }
    Ok(())
}
