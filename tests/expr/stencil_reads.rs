//! Tests which elements stencils read of memory, and rows at the ends of axes.

use std::ops::Range;

use kernel_primitives::expr::*;
use kernel_primitives::{Device, Diagnosis, EmulatorOptions, Error, Result};

use Boundary::*;

use crate::stencil::{at, boundaries};
use crate::stream;

/// A part of the tensor was written. One stencil reads only this part, and others read more.
#[test]
fn elements_that_no_neighbour_is_may_be_unwritten() -> Result<()> {
    let mut options = EmulatorOptions::default();
    options.checked = true;
    let stream = Device::emulator_with(options).stream()?;
    let y = Tensor::uninit(&stream, 4)?;
    let nine = Boundary::Constant(9.0);
    for (boundary, by, written, expected) in [
        (Boundary::Clamp, 1, 1..4, [1.0, 2.0, 3.0, 3.0]),
        (Boundary::Clamp, -1, 0..3, [0.0, 0.0, 1.0, 2.0]),
        (Boundary::Clamp, 9, 3..4, [3.0; 4]),
        (nine, 2, 2..4, [2.0, 3.0, 9.0, 9.0]),
        (nine, -3, 0..1, [9.0, 9.0, 9.0, 0.0]),
        (Boundary::Mirror, 1, 1..4, [1.0, 2.0, 3.0, 2.0]),
        (Boundary::Mirror, -2, 0..3, [2.0, 1.0, 0.0, 1.0]),
        (Boundary::Symmetric, 1, 1..4, [1.0, 2.0, 3.0, 3.0]),
        (Boundary::Periodic, 1, 0..4, [1.0, 2.0, 3.0, 0.0]),
    ] {
        let x = Tensor::<f64>::uninit(&stream, 4)?;
        let write = |x: &Tensor<f64>, range: Range<isize>| {
            let values: Vec<_> = range.clone().map(|i| i as f64).collect();
            x.slice(range)?.assign(&Tensor::from_slice(&stream, values.len(), &values)?)
        };
        write(&x, written.clone())?;
        y.assign(stencil(&x, boundary, |n| n.at(by)))?;
        assert_eq!(y.to_vec()?, expected, "{boundary:?}, {by}");
        assert_eq!(stencil(&x, boundary, |n| n.at(by)).sum().item()?, expected.iter().sum::<f64>());
        // This tensor has one element less.
        let x = Tensor::<f64>::uninit(&stream, 4)?;
        let most = written.start..written.end - 1;
        if !most.is_empty() {
            write(&x, most)?;
        }
        for error in [
            y.assign(stencil(&x, boundary, |n| n.at(by))).unwrap_err(),
            stencil(&x, boundary, |n| n.at(by)).sum().item().unwrap_err(),
        ] {
            let Error::Fault(fault) = &error else { panic!("{error}") };
            assert!(matches!(fault.diagnosis, Diagnosis::Unwritten { .. }), "{boundary:?}, {by}: {error}");
        }
    }
    // These neighbours are outside for every place.
    let x = Tensor::<f64>::uninit(&stream, 4)?;
    y.assign(stencil(&x, nine, |n| n.at(4) + n.at(-9)))?;
    assert_eq!(y.to_vec()?, [18.0; 4]);
    // These are neighbours in rows and columns. The element itself is read beside its neighbour.
    let x = Tensor::<f64>::uninit(&stream, [3, 4])?;
    x.slice((1.., ..3))?.assign(constant(2.0))?;
    let z = Tensor::uninit(&stream, [3, 4])?;
    z.assign(stencil(&x, Boundary::Clamp, |n| n.at([1, -1])))?;
    assert_eq!(z.to_vec()?, [2.0; 12]);
    let error = z.assign(stencil(&x, Boundary::Clamp, |n| n.at([1, -1]) + n.at(0))).unwrap_err();
    assert!(matches!(&error, Error::Fault(fault) if matches!(fault.diagnosis, Diagnosis::Unwritten { .. })), "{error}");
    Ok(())
}

/// The same holds for many weights, which are a loop.
#[test]
fn elements_that_have_no_weight_may_be_unwritten() -> Result<()> {
    let mut options = EmulatorOptions::default();
    options.checked = true;
    let stream = Device::emulator_with(options).stream()?;
    let y = Tensor::uninit(&stream, 200)?;
    let weights = [1.0; 65];
    for (boundary, origin, written) in [
        (Boundary::Clamp, -10, 10..200isize),
        (Boundary::Clamp, 90, 0..174),
        (Boundary::Clamp, 30, 0..200),
        (Boundary::Constant(9.0), -10, 10..200),
        (Boundary::Mirror, -120, 15..200),
        (Boundary::Mirror, 184, 0..185),
        (Boundary::Symmetric, -120, 16..200),
        (Boundary::Periodic, -10, 0..200),
    ] {
        let x = Tensor::<f64>::uninit(&stream, 200)?;
        x.slice(written.clone())?.fill(9.0)?;
        y.assign(convolve(&x, &weights, origin, boundary))?;
        assert_eq!(y.to_vec()?, [585.0; 200], "{boundary:?} from {origin}");
        // At either end, one element less is written.
        for less in [written.start + 1..written.end, written.start..written.end - 1] {
            let x = Tensor::<f64>::uninit(&stream, 200)?;
            x.slice(less.clone())?.fill(9.0)?;
            let sum = || convolve(&x, &weights, origin, boundary);
            for error in [y.assign(sum()).unwrap_err(), sum().sum().item().unwrap_err()] {
                let Error::Fault(fault) = &error else { panic!("{error}") };
                let is_unwritten = matches!(fault.diagnosis, Diagnosis::Unwritten { .. });
                assert!(is_unwritten, "{boundary:?} from {origin}, of {less:?}: {error}");
            }
        }
    }
    Ok(())
}

/// Returns the elements of an axis that are read at a distance from each of its elements. `None` is the constant outside.
fn read_at(extent: usize, distance: isize, boundary: Boundary<f64>) -> Vec<Option<usize>> {
    let indices: Vec<f64> = (0..extent).map(|i| i as f64).collect();
    let read = (0..extent as isize).map(|i| at(&indices, i + distance, boundary));
    read.map(|index| (index >= 0.0).then_some(index as usize)).collect()
}

/// Returns the weighted sums of neighbours for each element of an array.
fn sums<const N: usize>(
    (shape, data): ([usize; N], &[f32]),
    neighbours: &[([isize; N], f32)],
    boundary: Boundary<f64>,
) -> Vec<f32> {
    let of_axes = |by: &[isize; N]| -> [_; N] { std::array::from_fn(|axis| read_at(shape[axis], by[axis], boundary)) };
    let terms: Vec<_> = neighbours.iter().map(|(by, weight)| (of_axes(by), *weight)).collect();
    let outside = if let Constant(value) = narrow(boundary) { value } else { f32::NAN };
    let mut index = [0; N];
    let mut sums = Vec::with_capacity(data.len());
    for _ in data {
        let mut sum = 0.0;
        for (of_axes, weight) in &terms {
            let mut place = Some(0);
            for axis in 0..N {
                place = place.zip(of_axes[axis][index[axis]]).map(|(rows, along)| rows * shape[axis] + along);
            }
            sum += weight * place.map_or(outside, |place| data[place]);
        }
        sums.push(sum);
        for axis in (0..N).rev() {
            index[axis] = (index[axis] + 1) % shape[axis];
            if index[axis] > 0 {
                break;
            }
        }
    }
    sums
}

fn narrow(boundary: Boundary<f64>) -> Boundary<f32> {
    match boundary {
        Clamp => Clamp,
        Periodic => Periodic,
        Mirror => Mirror,
        Symmetric => Symmetric,
        Interior => Interior,
        Constant(value) => Constant(value as f32),
    }
}

/// Compares a sum of neighbours with loops, by their weights, for all boundaries. The second and third sums are in one kernel. The second one
/// is in place, and the third one is added to the index on `axis`. All numbers are whole and small.
fn assert_sums<const N: usize>(
    shape: [usize; N],
    axis: usize,
    neighbours: &[([isize; N], f32)],
    sum: impl Fn(&Neighbours<f32>) -> Expr<f32>,
) -> Result<()> {
    let stream = stream()?;
    let data: Vec<f32> = (0..shape.iter().product()).map(|i| (i * 7 % 31) as f32).collect();
    let inner: usize = shape[axis + 1..].iter().product();
    for boundary in boundaries() {
        let (x, y) = (Tensor::from_slice(&stream, shape, &data)?, Tensor::from_slice(&stream, shape, &data)?);
        let (z, w) = (Tensor::uninit(&stream, shape)?, Tensor::uninit(&stream, shape)?);
        let sum = || stencil(&x, narrow(boundary), &sum);
        w.assign(sum())?;
        assign_all([y.to(&y + sum()), z.to(sum() * 2.0 + axis_index::<f32>(axis))])?;
        let expected = sums((shape, &data), neighbours, boundary);
        assert!(w.to_vec()? == expected, "{shape:?}, {boundary:?}");
        let in_place: Vec<f32> = expected.iter().zip(&data).map(|(sum, x)| sum + x).collect();
        assert!(y.to_vec()? == in_place, "in place, {shape:?}, {boundary:?}");
        let beside = expected.iter().enumerate().map(|(i, sum)| sum * 2.0 + (i / inner % shape[axis]) as f32);
        assert!(z.to_vec()? == beside.collect::<Vec<_>>(), "beside the index, {shape:?}, {boundary:?}");
    }
    Ok(())
}

/// On a GPU, threads take several rows of these, and the last threads fewer.
#[test]
fn rows_of_threads_at_the_ends_of_axes() -> Result<()> {
    // There are 2051 = 4 * 512 + 3 rows of 257 vectors.
    let shape = if stream()?.device().is_gpu() { [2051, 1028] } else { [67, 36] };
    let neighbours = [([-2, 0], 1.0), ([3, 0], 1.0), ([0, -1], 1.0), ([0, 1], 1.0), ([0, 0], -4.0)];
    assert_sums(shape, 0, &neighbours, |n| n.at([-2, 0]) + n.at([3, 0]) + n.at(-1) + n.at(1) - 4.0 * n.at(0))
}

/// The same holds for three axes, where each row's neighbours are read after the rows before it are stored.
#[test]
fn rows_in_turn_at_the_ends_of_axes() -> Result<()> {
    // There are 4 * 33 rows of 128 vectors, and then two rows less, which is not a multiple of a thread's four rows.
    let shapes =
        if stream()?.device().is_gpu() { [[33, 132, 512], [33, 130, 512]] } else { [[5, 12, 64], [5, 10, 64]] };
    let across = [[-1, 0, 0], [1, 0, 0], [0, -1, 0], [0, 1, 0], [0, 0, -1], [0, 0, 1]].map(|by| (by, 1.0));
    let neighbours = [&across[..], &[([0; 3], -6.0)]].concat();
    for shape in shapes {
        assert_sums(shape, 1, &neighbours, |n| {
            let across = n.at([-1, 0, 0]) + n.at([1, 0, 0]) + n.at([0, -1, 0]) + n.at([0, 1, 0]);
            across + n.at(-1) + n.at(1) - 6.0 * n.at(0)
        })?;
    }
    Ok(())
}
