//! Tests which elements stencils read of memory, and rows at the ends of axes.

use std::ops::Range;

use kernel_primitives::expr::*;
use kernel_primitives::{Device, Diagnosis, EmulatorOptions, Error, Result, Stream};

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

/// On a GPU, threads take several rows here, and the last threads fewer. The stencils are also in place, and beside the numbers of rows.
#[test]
fn rows_of_threads_at_the_ends_of_axes() -> Result<()> {
    let (device, emulator) = (stream()?, Device::emulator().stream()?);
    // There are 2051 = 4 * 512 + 3 rows of 257 vectors.
    let shape = [2051, 1028];
    let data: Vec<f32> = (0..shape[0] * shape[1]).map(|i| (i * 7 % 31) as f32).collect();
    let all = |stream: &Stream, boundary| -> Result<[Vec<f32>; 2]> {
        let [x, y] = [0; 2].map(|_| Tensor::from_slice(stream, shape, &data));
        let (x, y, z) = (x?, y?, Tensor::uninit(stream, shape)?);
        let five = || stencil(&x, boundary, |n| n.at([-2, 0]) + n.at([3, 0]) + n.at(-1) + n.at(1) - 4.0 * n.at(0));
        assign_all([y.to(&y + five()), z.to(five() * 2.0 + axis_index::<f32>(0))])?;
        Ok([y.to_vec()?, z.to_vec()?])
    };
    use Boundary::*;
    for boundary in [Clamp, Periodic, Mirror, Symmetric, Constant(2.5)] {
        assert!(all(&device, boundary)? == all(&emulator, boundary)?, "{boundary:?}");
    }
    Ok(())
}

/// The same holds for three axes, where each row's neighbours are read after the rows before it are stored.
#[test]
fn rows_in_turn_at_the_ends_of_axes() -> Result<()> {
    let (device, emulator) = (stream()?, Device::emulator().stream()?);
    let all = |stream: &Stream, shape: [usize; 3], boundary| -> Result<[Vec<f32>; 3]> {
        let data: Vec<f32> = (0..shape.iter().product()).map(|i| (i * 7 % 31) as f32).collect();
        let [x, y] = [0; 2].map(|_| Tensor::from_slice(stream, shape, &data));
        let (x, y) = (x?, y?);
        let [z, w] = [0; 2].map(|_| Tensor::uninit(stream, shape));
        let (z, w) = (z?, w?);
        let seven = || {
            stencil(&x, boundary, |n| {
                let across = n.at([-1, 0, 0]) + n.at([1, 0, 0]) + n.at([0, -1, 0]) + n.at([0, 1, 0]);
                across + n.at(-1) + n.at(1) - 6.0 * n.at(0)
            })
        };
        w.assign(seven())?;
        assign_all([y.to(&y + seven()), z.to(seven() * 2.0 + axis_index::<f32>(1))])?;
        Ok([w.to_vec()?, y.to_vec()?, z.to_vec()?])
    };
    use Boundary::*;
    // There are 4 * 33 rows of 128 vectors, and then two rows less, which is not a multiple of a thread's four rows.
    for shape in [[33, 132, 512], [33, 130, 512]] {
        for boundary in [Clamp, Periodic, Mirror, Symmetric, Constant(2.5)] {
            let same = all(&device, shape, boundary)? == all(&emulator, shape, boundary)?;
            assert!(same, "{shape:?}, {boundary:?}");
        }
    }
    Ok(())
}
