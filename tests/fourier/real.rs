//! Tests transforms of real arrays.

use kernel_primitives::algorithms::{FftPlan, fft, irfft, rfft};
use kernel_primitives::element::FftFloat;
use kernel_primitives::{Buffer, Complex, ConvertTo, Result, Stream};

use crate::reference::{assert_near, half, numbers, transform, wide};
use crate::support::{stream, streams};
use crate::transforms::with_little_memory;

/// The calls for a type of parts.
trait Calls: FftFloat + ConvertTo<f64> {
    fn forward(stream: &Stream, plan: &FftPlan<Self>, x: &Buffer<Self>, out: &mut Buffer<Complex<Self>>) -> Result<()>;
    fn backward(stream: &Stream, plan: &FftPlan<Self>, x: &Buffer<Complex<Self>>, out: &mut Buffer<Self>)
    -> Result<()>;
    fn whole(stream: &Stream, plan: &FftPlan<Self>, x: &Buffer<Self>, out: &mut Buffer<Complex<Self>>) -> Result<()>;
}

macro_rules! calls {
    ($($t:ty)*) => {$(
        impl Calls for $t {
            fn forward(stream: &Stream, plan: &FftPlan<$t>, x: &Buffer<$t>, out: &mut Buffer<Complex<$t>>) -> Result<()> {
                rfft(stream, plan, x, out)
            }
            fn backward(stream: &Stream, plan: &FftPlan<$t>, x: &Buffer<Complex<$t>>, out: &mut Buffer<$t>) -> Result<()> {
                irfft(stream, plan, x, out)
            }
            fn whole(stream: &Stream, plan: &FftPlan<$t>, x: &Buffer<$t>, out: &mut Buffer<Complex<$t>>) -> Result<()> {
                fft(stream, plan, x, out)
            }
        }
    )*};
}
calls!(f32 f64);

/// Checks the half spectrum of a real array, the array from it, and the whole spectrum.
fn check<T: Calls>(stream: &Stream, shape: &[usize], axes: &[usize]) -> Result<()> {
    check_each::<T>(std::slice::from_ref(stream), shape, axes)
}

/// Works as [`check`], for several devices. The expected results are computed once.
fn check_each<T: Calls>(streams: &[Stream], shape: &[usize], axes: &[usize]) -> Result<()> {
    let len: usize = shape.iter().product();
    let x: Vec<T> = numbers::<T>(len, len as u64 + 5).into_iter().map(|x| x.re).collect();
    let complex: Vec<Complex<f64>> = x.iter().map(|&x| Complex::new(x.convert(), 0.0)).collect();
    let expected = transform(&complex, shape, axes);
    streams.iter().try_for_each(|stream| check_on(stream, shape, axes, &x, &expected))
}

fn check_on<T: Calls>(
    stream: &Stream,
    shape: &[usize],
    axes: &[usize],
    x: &[T],
    expected: &[Complex<f64>],
) -> Result<()> {
    let plan = FftPlan::<T>::new(stream, shape, axes)?;
    assert_eq!(plan.items(), x.len());
    let count: usize = axes.iter().map(|&axis| shape[axis]).product();
    let plan = plan.scaled(T::ONE, T::from_f64(1.0 / count as f64));
    let epsilon: f64 = T::EPSILON.convert();
    let complex: Vec<Complex<f64>> = x.iter().map(|&x| Complex::new(x.convert(), 0.0)).collect();
    let input = stream.buffer_from(x)?;

    let mut whole = stream.buffer_zeroed(plan.items())?;
    T::whole(stream, &plan, &input, &mut whole)?;
    assert_near(&wide(&whole.to_vec()?), expected, epsilon, &("whole", shape, axes));

    let mut spectrum = stream.buffer_zeroed(plan.half_items())?;
    T::forward(stream, &plan, &input, &mut spectrum)?;
    let halved = half(expected, shape, axes[axes.len() - 1]);
    assert_eq!(plan.half_items(), halved.len());
    assert_near(&wide(&spectrum.to_vec()?), &halved, epsilon, &("half", shape, axes));

    // This is the exact half spectrum, rounded.
    let narrow = |x: Complex<f64>| Complex { re: T::from_f64(x.re), im: T::from_f64(x.im) };
    let halved = stream.buffer_from(&halved.into_iter().map(narrow).collect::<Vec<_>>())?;
    let mut same = stream.buffer_zeroed::<T>(plan.items())?;
    T::backward(stream, &plan, &halved, &mut same)?;
    let same: Vec<Complex<f64>> = same.to_vec()?.into_iter().map(|x| Complex::new(x.convert(), 0.0)).collect();
    assert_near(&same, &complex, epsilon, &("inverse", shape, axes));
    Ok(())
}

#[test]
fn sanitize_real_lines_are_transformed() -> Result<()> {
    for stream in streams()? {
        for n in [1, 2, 3, 4, 16, 17, 32, 60] {
            check::<f32>(&stream, &[3, n], &[1])?;
        }
        for n in [12, 32] {
            check::<f32>(&stream, &[n, 3], &[0])?;
        }
        check::<f64>(&stream, &[6, 7], &[1, 0])?;
    }
    Ok(())
}

#[test]
fn every_real_length_is_transformed() -> Result<()> {
    let stream = stream()?;
    for n in (1..=70).chain([128, 509, 1000, 1024]) {
        check::<f32>(&stream, &[n], &[0])?;
        check::<f64>(&stream, &[n, 2], &[0])?;
    }
    Ok(())
}

#[test]
fn long_real_lines_are_transformed() -> Result<()> {
    let stream = stream()?;
    check::<f32>(&stream, &[8192], &[0])?;
    check::<f32>(&stream, &[6561], &[0])?;
    check::<f64>(&stream, &[10_007], &[0])
}

#[test]
fn real_arrays_are_transformed_along_any_axes() -> Result<()> {
    let stream = stream()?;
    for axes in [&[0][..], &[1], &[2], &[0, 1], &[1, 0], &[2, 0], &[0, 1, 2], &[2, 1, 0]] {
        check::<f32>(&stream, &[6, 9, 10], axes)?;
        check::<f64>(&stream, &[5, 17, 4], axes)?;
    }
    Ok(())
}

/// There are several blocks, and the last one has fewer lines.
#[test]
fn many_real_lines_are_transformed() -> Result<()> {
    let stream = stream()?;
    for (shape, axis) in [([1001, 6], 1), ([6, 1001], 0), ([301, 34], 1), ([301, 32], 1)] {
        check::<f32>(&stream, &shape, &[axis])?;
    }
    check::<f64>(&stream, &[32, 301], &[0])
}

/// In the shared memory of the smallest blocks, lines of pairs fit, and whole lines do not.
#[test]
fn pairs_are_one_pass_where_whole_lines_are_two() -> Result<()> {
    let stream = with_little_memory(64 << 10)?;
    let plan = FftPlan::<f32>::new(&stream, &[8192], &[0])?;
    let (x, mut spectrum) = (stream.buffer_zeroed::<f32>(plan.items())?, stream.buffer_zeroed(plan.half_items())?);
    let before = stream.device().counters();
    rfft(&stream, &plan, &x, &mut spectrum)?;
    assert_eq!(stream.device().counters().since(before).launches, 1);
    check::<f32>(&stream, &[8192], &[0])?;
    check::<f64>(&stream, &[4096], &[0])?;
    let stream = with_little_memory(1 << 10)?;
    check::<f32>(&stream, &[2, 160, 3], &[1])?;
    check::<f64>(&stream, &[3, 70, 2], &[2, 1])
}

/// The line of pairs fits in 99 KiB and in 227 KiB, and not in 64 KiB.
#[test]
fn a_long_real_line_is_transformed_with_the_shared_memory_of_any_architecture() -> Result<()> {
    let streams = [64, 99, 227].map(|kib| with_little_memory((kib << 10) - 16));
    check_each::<f32>(&streams.into_iter().collect::<Result<Vec<_>>>()?, &[20_160], &[0])
}

#[test]
fn little_shared_memory_changes_no_real_result() -> Result<()> {
    let stream = with_little_memory(1 << 10)?;
    for n in [101, 128, 1000, 1001] {
        check::<f32>(&stream, &[n], &[0])?;
        check::<f32>(&stream, &[2, n, 3], &[1])?;
    }
    check::<f64>(&stream, &[3, 97, 2], &[0, 1])
}

/// The numbers that have no partner in a half spectrum are real in the spectrum of a real array.
#[test]
fn imaginary_parts_that_no_real_array_has_do_not_count() -> Result<()> {
    let stream = stream()?;
    for n in [1, 2, 5, 6, 17, 34] {
        let plan = FftPlan::<f64>::new(&stream, &[n], &[0])?;
        let mut half = numbers::<f64>(plan.half_items(), 6);
        let mut results = Vec::new();
        for im in [0.0, 3.0, 1e300, f64::NAN] {
            half[0].im = im;
            if n % 2 == 0 {
                half[n / 2].im = -im;
            }
            let mut out = stream.buffer_zeroed::<f64>(n)?;
            irfft(&stream, &plan, &stream.buffer_from(&half)?, &mut out)?;
            results.push(out.to_vec()?);
        }
        assert!(results.iter().all(|found| *found == results[0]), "{n}: {results:?}");
    }
    Ok(())
}

/// Arrays begin between two places at which a pair of numbers may begin.
#[test]
fn real_numbers_need_not_be_aligned_for_one_access() -> Result<()> {
    let stream = stream()?;
    for n in [2, 17, 32, 60] {
        let plan = FftPlan::<f32>::new(&stream, &[n], &[0])?;
        let x: Vec<f32> = numbers::<f32>(n + 1, 7).into_iter().map(|x| x.re).collect();
        let (aligned, other) = (stream.buffer_from(&x[1..])?, stream.buffer_from(&x)?);
        let mut expected = stream.buffer_zeroed::<Complex<f32>>(plan.half_items())?;
        rfft(&stream, &plan, &aligned, &mut expected)?;
        let mut parts = stream.buffer_zeroed::<f32>(2 * plan.half_items() + 1)?;
        rfft(&stream, &plan, other.slice(1..)?, parts.slice_mut(1..)?.reinterpret::<Complex<f32>>()?)?;
        let spectrum = parts.slice(1..)?.reinterpret::<Complex<f32>>()?;
        assert!(spectrum.to_vec()? == expected.to_vec()?, "{n}");

        let (mut same, mut to) = (stream.buffer_zeroed::<f32>(n)?, stream.buffer_zeroed::<f32>(n + 1)?);
        irfft(&stream, &plan, &expected, &mut same)?;
        irfft(&stream, &plan, spectrum, to.slice_mut(1..)?)?;
        assert!(to.to_vec()?[1..] == same.to_vec()?, "{n} inverse");
    }
    Ok(())
}

/// The sums that make a half spectrum are up to twice as large as its numbers.
#[test]
fn half_spectra_reach_the_largest_numbers() -> Result<()> {
    let stream = stream()?;
    let plan = FftPlan::<f32>::new(&stream, &[4], &[0])?;
    for place in 0..4 {
        let mut x = [0.0f32; 4];
        x[place] = 3e38;
        let mut half = stream.buffer_zeroed::<Complex<f32>>(3)?;
        rfft(&stream, &plan, &stream.buffer_from(&x)?, &mut half)?;
        // One part of each number is as large as the number of the line, and the other part is 0.
        let found = half.to_vec()?;
        assert!(found.iter().all(|x| (x.re.abs() + x.im.abs() - 3e38).abs() < 1e33), "{place}: {found:?}");
    }
    Ok(())
}

/// The pairs turn once, so one number of their transform is nearly twice as large as the largest one of the half spectrum.
#[test]
fn half_spectra_are_finite_where_transforms_of_pairs_are_not() -> Result<()> {
    const PAIRS: usize = 16;
    const LAST: usize = PAIRS - 1;
    let stream = stream()?;
    let plan = FftPlan::<f32>::new(&stream, &[2 * PAIRS], &[0])?;
    let whole = 1.2 * f64::from(f32::MAX);
    let turn = |j: usize| (std::f64::consts::TAU * j as f64 / PAIRS as f64).sin_cos();
    let parts = (0..PAIRS).map(turn).flat_map(|(sin, cos)| [cos, sin]);
    let x: Vec<f32> = parts.map(|part| (whole / PAIRS as f64 * part) as f32).collect();
    let mut half = stream.buffer_zeroed::<Complex<f32>>(PAIRS + 1)?;
    rfft(&stream, &plan, &stream.buffer_from(&x)?, &mut half)?;
    let (sin, cos) = (std::f64::consts::PI / PAIRS as f64).sin_cos();
    for (k, found) in half.to_vec()?.into_iter().enumerate() {
        let [re, im] = match k {
            1 => [1.0 - sin, -cos],
            LAST => [1.0 + sin, -cos],
            _ => [0.0; 2],
        };
        let is_near = |found: f32, expected: f64| (f64::from(found) - whole / 2.0 * expected).abs() < 1e-5 * whole;
        assert!(is_near(found.re, re) && is_near(found.im, im), "{k}: {found}");
    }
    Ok(())
}

#[test]
fn a_real_line_that_is_not_finite_leaves_the_rest() -> Result<()> {
    let stream = stream()?;
    for (shape, axis) in [([3, 12], 1), ([3, 32], 1), ([3, 17], 1), ([12, 3], 0), ([32, 3], 0)] {
        let plan = FftPlan::<f32>::new(&stream, &shape, &[axis])?;
        let spectra = |x: &[f32]| -> Result<Vec<Complex<f32>>> {
            let mut out = stream.buffer_zeroed(plan.half_items())?;
            rfft(&stream, &plan, &stream.buffer_from(x)?, &mut out)?;
            out.to_vec()
        };
        let mut x: Vec<f32> = numbers::<f32>(plan.items(), 8).into_iter().map(|x| x.re).collect();
        let finite = spectra(&x)?;
        x[0] = f32::NAN;
        let bins = plan.half_shape()[1];
        for (i, (found, finite)) in spectra(&x)?.into_iter().zip(finite).enumerate() {
            let is_first = if axis == 1 { i / bins == 0 } else { i.is_multiple_of(bins) };
            assert_eq!(found.re.is_nan() || found.im.is_nan(), is_first, "{i} of {shape:?}");
            assert!(is_first || found == finite, "{i} of {shape:?}: {found} for {finite}");
        }
    }
    Ok(())
}
