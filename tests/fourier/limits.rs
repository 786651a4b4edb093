//! Tests limits: arrays of more numbers than there is memory, blocks with little shared memory, and lengths that no array has.

use kernel_primitives::algorithms::{
    FftKind, FftPath, FftPlan, Run, Workspace, fft, fft_by, ifft_in_place, irfft, rfft,
};
use kernel_primitives::functor::Identity;
use kernel_primitives::input::constant;
use kernel_primitives::output::discard;
use kernel_primitives::{Complex, Device, Error, Result};

use crate::reference::{assert_near, numbers, transform, wide};
use crate::support::stream;
use crate::transforms::with_little_memory;

#[test]
fn more_blocks_than_a_grid_has_are_an_error_with_their_number() -> Result<()> {
    let stream = stream()?;
    // Lines have two numbers, and a block has 256 lines.
    let plan = FftPlan::<f32>::new(&stream, &[1 << 41, 2], &[1])?;
    let len = plan.items();
    let error = fft_by(&stream, &plan, FftKind::Forward, constant(1.0f32, len), Identity, discard::<Complex<f32>>(len))
        .unwrap_err();
    let Error::LaunchLimit { what, asked, .. } = &error else { panic!("{error}") };
    assert_eq!((*what, *asked), ("the grid's x dimension", 1 << 33), "{error}");
    Ok(())
}

#[test]
fn more_numbers_than_any_device_comes_to_the_end_of_are_refused() -> Result<()> {
    let stream = stream()?;
    for shape in [[(1 << 48) + 1, 1], [1 << 60, 1], [1 << 62, 3]] {
        let plan = FftPlan::<f32>::new(&stream, &shape, &[1])?;
        let len = shape[0] * shape[1];
        assert_eq!(plan.items(), len);
        let error =
            fft_by(&stream, &plan, FftKind::Forward, constant(1.0f32, len), Identity, discard::<Complex<f32>>(len))
                .unwrap_err();
        let Error::LaunchLimit { what, asked, .. } = &error else { panic!("{error}") };
        assert_eq!((*what, *asked), ("the number of items", len as u64), "{error}");
    }
    Ok(())
}

#[test]
fn temporary_arrays_that_there_is_no_memory_for_are_an_error() -> Result<()> {
    let stream = stream()?;
    for rows in [1 << 40, 1 << 43] {
        let plan = FftPlan::<f32>::new(&stream, &[rows, 17], &[1])?;
        let len = plan.items();
        let error =
            fft_by(&stream, &plan, FftKind::Forward, constant(1.0f32, len), Identity, discard::<Complex<f32>>(len))
                .unwrap_err();
        assert!(matches!(error, Error::Allocation { .. }), "{error}");
    }
    Ok(())
}

/// The convolutions of 17 numbers have 64 numbers each, which together are more than can be counted.
#[test]
fn a_plan_of_more_convolutions_than_can_be_counted_tells_its_launches() -> Result<()> {
    let stream = stream()?;
    for shape in [&[1 << 59, 17][..], &[1 << 59, 17, 0]] {
        let path = FftPlan::<f32>::new(&stream, shape, &[1])?.path(FftKind::Forward);
        assert!(matches!(path, FftPath::Compiled { launches: 2, .. }), "{shape:?}: {path:?}");
    }
    Ok(())
}

/// A plan relies on the shared memory of the device that it is made for.
#[test]
fn a_plan_for_larger_blocks_is_an_error_of_the_launch() -> Result<()> {
    let (large, small) = (Device::emulator().stream()?, with_little_memory(1 << 10)?);
    let plan = FftPlan::<f32>::new(&large, &[1000], &[0])?;
    let mut data = small.buffer_zeroed::<Complex<f32>>(1000)?;
    let error = ifft_in_place(&small, &plan, &mut data).unwrap_err();
    assert!(matches!(error, Error::LaunchLimit { what: "shared memory in bytes", limit: 1024, .. }), "{error}");
    Ok(())
}

#[test]
fn the_longest_lengths_have_no_plan() -> Result<()> {
    let stream = stream()?;
    for n in [usize::MAX, usize::MAX - 1, 1 << 63, 1 << 62, (1 << 61) - 1, 1 << 40, (1 << 31) + 11] {
        let error = FftPlan::<f64>::new(&stream, &[n], &[0]).unwrap_err();
        assert!(matches!(&error, Error::Fft { reason, .. } if reason.contains("too long")), "{error}");
    }
    Ok(())
}

#[test]
fn no_arrays_of_real_numbers_are_no_work() -> Result<()> {
    let stream = stream()?;
    for (shape, axes) in [([0, 12, 3], [1, 2]), ([5, 12, 0], [1, 0]), ([0, 0, 17], [2, 2])] {
        let axes = if axes[0] == axes[1] { &axes[..1] } else { &axes };
        let plan = FftPlan::<f32>::new(&stream, &shape, axes)?;
        assert_eq!((plan.items(), plan.half_items()), (0, 0));
        let (mut real, mut half) = (stream.buffer_zeroed::<f32>(0)?, stream.buffer_zeroed(0)?);
        rfft(&stream, &plan, &real, &mut half)?;
        irfft(&stream, &plan, &half, &mut real)?;
    }
    Ok(())
}

/// A graph keeps the table of its plan.
#[test]
fn a_graph_runs_after_its_plan_is_gone() -> Result<()> {
    let stream = stream()?;
    for shape in [[2, 60], [2, 101], [1, 16_384]] {
        let plan = FftPlan::<f32>::new(&stream, &shape, &[1])?;
        let items = plan.items();
        let (mut input, mut out) = (stream.buffer_zeroed::<Complex<f32>>(items)?, stream.buffer_zeroed(items)?);
        let mut workspace = Workspace::new();
        fft(Run::on(&stream).with(&mut workspace), &plan, &input, &mut out)?;
        let graph = stream.capture(|stream| fft(Run::on(stream).with(&mut workspace), &plan, &input, &mut out))?;
        drop((plan, workspace));
        let x = numbers::<f32>(items, 8);
        input.copy_from(&x)?;
        graph.launch(&stream)?;
        graph.launch(&stream)?;
        let found = wide(&out.to_vec()?);
        let (found, expected) = if items > 1000 {
            // These are the places of some of the results.
            let places: Vec<usize> = (0..100).map(|i| 163 * i).collect();
            let found = places.iter().map(|&k| found[k]).collect();
            (found, crate::reference::results(&wide(&x), &places))
        } else {
            (found, transform(&wide(&x), &shape, &[1]))
        };
        assert_near(&found, &expected, f64::from(f32::EPSILON), &shape);
    }
    Ok(())
}

#[test]
fn a_line_that_is_not_finite_leaves_the_rest() -> Result<()> {
    let stream = stream()?;
    for (shape, axis) in [([4, 16], 1), ([4, 17], 1), ([60, 3], 0), ([17, 3], 0)] {
        let plan = FftPlan::<f32>::new(&stream, &shape, &[axis])?;
        let mut x = numbers::<f32>(plan.items(), 8);
        let is_first = |i: usize| if axis == 1 { i / shape[1] == 0 } else { i.is_multiple_of(shape[1]) };
        let expected = transform(&wide(&x), &shape, &[axis]);
        x[0].re = f32::NAN;
        let mut out = stream.buffer_zeroed(plan.items())?;
        fft(&stream, &plan, &stream.buffer_from(&x)?, &mut out)?;
        let out = out.to_vec()?;
        assert!((0..out.len()).filter(|&i| is_first(i)).all(|i| out[i].re.is_nan() || out[i].im.is_nan()));
        let rest = |x: &[Complex<f64>]| -> Vec<_> { (0..x.len()).filter(|&i| !is_first(i)).map(|i| x[i]).collect() };
        assert_near(&rest(&wide(&out)), &rest(&expected), f64::from(f32::EPSILON), &(shape, axis));
    }
    Ok(())
}
