//! Tests calls: computed inputs and outputs, workspaces, captures, and errors.

use kernel_primitives::algorithms::{
    FftKind, FftPlan, Run, Workspace, fft, fft_by, fft_in_place, ifft_in_place, irfft, rfft,
};
use kernel_primitives::functor::{Identity, Mul, NormSquared, of_pair};
use kernel_primitives::input::{map, reversed, zip};
use kernel_primitives::output::strided;
use kernel_primitives::{Complex, Device, Error, Result};

use crate::reference::{assert_near, half, inverse, numbers, transform, wide};
use crate::support::{Random, stream};

#[test]
fn a_window_and_powers_are_of_the_same_pass() -> Result<()> {
    let stream = stream()?;
    let mut random = Random::new(1);
    // The numbers of a pair are neighbours, or are apart.
    for (shape, axis) in [([1, 64], 1), ([1, 97], 1), ([1, 5000], 1), ([60, 3], 0), ([64, 3], 0), ([34, 3], 0)] {
        let plan = FftPlan::<f32>::new(&stream, &shape, &[axis])?;
        let n = plan.items();
        let window: Vec<f32> =
            (0..n).map(|i| 0.5 - 0.5 * (i as f32 / n as f32 * std::f32::consts::TAU).cos()).collect();
        let x: Vec<f32> = (0..n).map(|_| random.unit() as f32 - 0.5).collect();
        let mut powers = stream.buffer_zeroed::<f32>(plan.half_items())?;
        let (input, by) = (stream.buffer_from(&x)?, stream.buffer_from(&window)?);
        let windowed = map(zip(&input, &by), of_pair(Mul));
        fft_by(&stream, &plan, FftKind::RealForward, windowed, NormSquared, &mut powers)?;

        let product: Vec<_> = x.iter().zip(&window).map(|(x, w)| Complex::new(f64::from(x * w), 0.0)).collect();
        let expected = half(&transform(&product, &shape, &[axis]), &shape, axis);
        let expected: Vec<_> = expected.iter().map(|x| Complex::new(x.norm_sqr(), 0.0)).collect();
        let found: Vec<_> = powers.to_vec()?.into_iter().map(|x| Complex::new(f64::from(x), 0.0)).collect();
        // The square of a number has twice its relative error.
        assert_near(&found, &expected, 2.0 * f64::from(f32::EPSILON), &(shape, axis));
    }
    Ok(())
}

#[test]
fn real_inputs_and_outputs_may_be_in_another_order() -> Result<()> {
    let stream = stream()?;
    // The places that a stride of two leaves out are still zero.
    let every_second = |out: Vec<Complex<f64>>| -> Vec<Complex<f64>> {
        assert!(out.iter().skip(1).step_by(2).all(|&x| x == Complex::ZERO));
        out.into_iter().step_by(2).collect()
    };
    for (shape, axis) in [([2, 12], 1), ([12, 2], 0), ([2, 31], 1), ([1, 32], 1), ([64, 2], 0), ([2, 1], 1)] {
        let plan = FftPlan::<f64>::new(&stream, &shape, &[axis])?;
        let x: Vec<_> = numbers::<f64>(plan.items(), 2).into_iter().map(|x| Complex::new(x.re, 0.0)).collect();
        let input = stream.buffer_from(&x)?;
        let mut out = stream.buffer_zeroed::<Complex<f64>>(2 * plan.half_items())?;
        fft_by(&stream, &plan, FftKind::RealForward, reversed(&input), Identity, strided(&mut out, 2))?;
        let backwards: Vec<_> = x.into_iter().rev().collect();
        let expected = half(&transform(&backwards, &shape, &[axis]), &shape, axis);
        assert_near(&every_second(out.to_vec()?), &expected, f64::EPSILON, &(shape, axis));

        let input = stream.buffer_from(&expected.into_iter().rev().collect::<Vec<_>>())?;
        let mut out = stream.buffer_zeroed::<Complex<f64>>(2 * plan.items())?;
        fft_by(&stream, &plan, FftKind::RealInverse, reversed(&input), Identity, strided(&mut out, 2))?;
        let expected: Vec<_> = backwards.into_iter().map(|x| x * shape[axis] as f64).collect();
        assert_near(&every_second(out.to_vec()?), &expected, f64::EPSILON, &(shape, axis, "inverse"));
    }
    Ok(())
}

#[test]
fn inputs_and_outputs_may_be_in_another_order() -> Result<()> {
    let stream = stream()?;
    for n in [12, 31] {
        let x = numbers::<f64>(n, 2);
        let plan = FftPlan::<f64>::new(&stream, &[n], &[0])?;
        let mut out = stream.buffer_zeroed(2 * n)?;
        let input = stream.buffer_from(&x)?;
        fft_by(&stream, &plan, FftKind::Inverse, reversed(&input), Identity, strided(&mut out, 2))?;
        let turned: Vec<_> = wide(&x).into_iter().rev().collect();
        let out = wide(&out.to_vec()?);
        let found: Vec<_> = out.iter().copied().step_by(2).collect();
        assert_near(&found, &inverse(&turned, &[n], &[0]), f64::EPSILON, &n);
        assert!(out.iter().skip(1).step_by(2).all(|&x| x == Complex::ZERO));
    }
    Ok(())
}

/// This runs on the emulator, whose counters belong to this test only. Those of a GPU also count the allocations of other tests.
#[test]
fn a_workspace_serves_the_next_call() -> Result<()> {
    let device = Device::emulator();
    let stream = device.stream()?;
    let plan = FftPlan::<f32>::new(&stream, &[3, 101, 2], &[1, 0])?;
    let x = numbers::<f32>(plan.items(), 4);
    let (input, mut out) = (stream.buffer_from(&x)?, stream.buffer_zeroed(plan.items())?);
    let mut workspace = Workspace::new();
    fft(Run::on(&stream).with(&mut workspace), &plan, &input, &mut out)?;
    let first = out.to_vec()?;
    let before = device.counters();
    fft(Run::on(&stream).with(&mut workspace), &plan, &input, &mut out)?;
    assert_eq!(device.counters().since(before).allocations, 0);
    assert!(first == out.to_vec()?);
    assert_near(&wide(&first), &transform(&wide(&x), &[3, 101, 2], &[1, 0]), f64::from(f32::EPSILON), &"first");
    Ok(())
}

#[test]
fn room_after_the_results_stays_as_it_is() -> Result<()> {
    let stream = stream()?;
    let plan = FftPlan::<f32>::new(&stream, &[4], &[0])?;
    let x = stream.buffer_from(&[Complex::new(1.0f32, 0.0); 4])?;
    let mut out = stream.buffer_from(&[Complex::new(7.0f32, 7.0); 6])?;
    fft(&stream, &plan, &x, &mut out)?;
    assert_eq!(out.to_vec()?[..2], [Complex::new(4.0, 0.0), Complex::new(0.0, 0.0)]);
    assert_eq!(out.to_vec()?[4..], [Complex::new(7.0, 7.0); 2]);
    Ok(())
}

#[test]
fn no_arrays_are_no_work() -> Result<()> {
    let stream = stream()?;
    let plan = FftPlan::<f32>::new(&stream, &[0, 17], &[1])?;
    let (x, mut out) = (stream.buffer_zeroed::<Complex<f32>>(0)?, stream.buffer_zeroed(0)?);
    fft(&stream, &plan, &x, &mut out)?;
    fft_in_place(&stream, &plan, &mut out)
}

#[test]
fn plans_that_there_are_not_are_errors_with_the_axis() -> Result<()> {
    let stream = stream()?;
    let reason = |shape: &[usize], axes: &[usize]| {
        let error = FftPlan::<f32>::new(&stream, shape, axes).expect_err("there is no such plan");
        assert!(matches!(error, Error::Fft { .. }), "{error}");
        error.to_string()
    };
    assert_eq!(reason(&[4], &[]), "FftPlan::new: no axis is given");
    assert_eq!(reason(&[4, 5], &[2]), "FftPlan::new: there is no axis 2 in the shape [4, 5]");
    assert_eq!(reason(&[4, 5], &[1, 0, 1]), "FftPlan::new: axis 1 is given twice");
    assert_eq!(reason(&[4, 0], &[1]), "FftPlan::new: the length of axis 1 is 0");
    assert!(reason(&[1 << 50], &[0]).contains("axis 0 is 1125899906842624 numbers long, which is too long for"));
    for (shape, axis) in [(&[usize::MAX, 2][..], 1), (&[0, 1 << 40, 1 << 40, 4], 3)] {
        let rest = format!("the extents of the shape {shape:?} that are not 0 multiply to more than can be counted");
        assert_eq!(reason(shape, &[axis]), format!("FftPlan::new: {rest}"));
    }
    Ok(())
}

#[test]
fn arrays_of_other_lengths_and_devices_are_errors() -> Result<()> {
    let stream = stream()?;
    let plan = FftPlan::<f32>::new(&stream, &[2, 6], &[1])?;
    let complex = |len: usize| stream.buffer_zeroed::<Complex<f32>>(len);
    let mismatch = |result: Result<()>| match result.expect_err("a length is wrong") {
        Error::LengthMismatch { kernel, first_len, second_len, .. } => (kernel, first_len, second_len),
        error => panic!("{error}"),
    };
    assert_eq!(mismatch(fft(&stream, &plan, &complex(13)?, &mut complex(12)?)), ("fft".into(), 12, 13));
    assert_eq!(mismatch(fft(&stream, &plan, &complex(12)?, &mut complex(11)?)), ("fft".into(), 12, 11));
    assert_eq!(mismatch(fft_in_place(&stream, &plan, &mut complex(11)?)), ("fft_in_place".into(), 12, 11));
    assert_eq!(mismatch(ifft_in_place(&stream, &plan, &mut complex(11)?)), ("ifft_in_place".into(), 12, 11));
    let (real, mut half) = (stream.buffer_zeroed::<f32>(12)?, complex(7)?);
    assert_eq!(mismatch(rfft(&stream, &plan, &real, &mut half)), ("rfft".into(), 8, 7));
    let mut out = stream.buffer_zeroed::<f32>(12)?;
    assert_eq!(mismatch(irfft(&stream, &plan, &half, &mut out)), ("irfft".into(), 8, 7));

    // All emulators are one device.
    if !stream.device().is_gpu() {
        return Ok(());
    }
    let other = Device::emulator().stream()?;
    let plan = FftPlan::<f32>::new(&other, &[2, 6], &[1])?;
    let error = fft(&stream, &plan, &complex(12)?, &mut complex(12)?).expect_err("the plan is of another device");
    assert!(matches!(&error, Error::WrongDevice { argument, .. } if argument == "`plan`"), "{error}");
    Ok(())
}
