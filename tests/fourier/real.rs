//! Transforms of real arrays.

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

/// The half spectrum of a real array, the array from it, and the whole spectrum.
fn check<T: Calls>(stream: &Stream, shape: &[usize], axes: &[usize]) -> Result<()> {
    let plan = FftPlan::<T>::new(stream, shape, axes)?;
    let count: usize = axes.iter().map(|&axis| shape[axis]).product();
    let plan = plan.scaled(T::ONE, T::from_f64(1.0 / count as f64));
    let epsilon: f64 = T::EPSILON.convert();
    let x: Vec<T> = numbers::<T>(plan.items(), plan.items() as u64 + 5).into_iter().map(|x| x.re).collect();
    let complex: Vec<Complex<f64>> = x.iter().map(|&x| Complex::new(x.convert(), 0.0)).collect();
    let expected = transform(&complex, shape, axes);
    let input = stream.buffer_from(&x)?;

    let mut whole = stream.buffer_zeroed(plan.items())?;
    T::whole(stream, &plan, &input, &mut whole)?;
    assert_near(&wide(&whole.to_vec()?), &expected, epsilon, &("whole", shape, axes));

    let mut spectrum = stream.buffer_zeroed(plan.half_items())?;
    T::forward(stream, &plan, &input, &mut spectrum)?;
    let halved = half(&expected, shape, axes[axes.len() - 1]);
    assert_eq!(plan.half_items(), halved.len());
    assert_near(&wide(&spectrum.to_vec()?), &halved, epsilon, &("half", shape, axes));

    // The exact half spectrum, rounded.
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
        for n in [1, 2, 3, 16, 17, 60] {
            check::<f32>(&stream, &[3, n], &[1])?;
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

#[test]
fn little_shared_memory_changes_no_real_result() -> Result<()> {
    let stream = with_little_memory(1 << 10)?;
    for n in [101, 128, 1000, 1001] {
        check::<f32>(&stream, &[n], &[0])?;
        check::<f32>(&stream, &[2, n, 3], &[1])?;
    }
    check::<f64>(&stream, &[3, 97, 2], &[0, 1])
}

/// The numbers that stand alone in a half spectrum are real in that of a real array.
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
