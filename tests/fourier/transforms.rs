//! Complex transforms: lengths, batches, axes.

use kernel_primitives::algorithms::{FftPlan, fft, fft_in_place, ifft, ifft_in_place};
use kernel_primitives::element::FftFloat;
use kernel_primitives::{Buffer, Complex, ConvertTo, Device, EmulatorOptions, Result, Stream};

use crate::reference::{assert_near, inverse, numbers, transform, wide};
use crate::support::{stream, streams};

/// The calls for a type of parts.
pub trait Calls: FftFloat + ConvertTo<f64> {
    fn forward(stream: &Stream, plan: &FftPlan<Self>, x: &Array<Self>, out: &mut Array<Self>) -> Result<()>;
    fn backward(stream: &Stream, plan: &FftPlan<Self>, x: &Array<Self>, out: &mut Array<Self>) -> Result<()>;
    fn replace(stream: &Stream, plan: &FftPlan<Self>, data: &mut Array<Self>, forward: bool) -> Result<()>;
}

pub type Array<T> = Buffer<Complex<T>>;

macro_rules! calls {
    ($($t:ty)*) => {$(
        impl Calls for $t {
            fn forward(stream: &Stream, plan: &FftPlan<Self>, x: &Array<Self>, out: &mut Array<Self>) -> Result<()> {
                fft(stream, plan, x, out)
            }
            fn backward(stream: &Stream, plan: &FftPlan<Self>, x: &Array<Self>, out: &mut Array<Self>) -> Result<()> {
                ifft(stream, plan, x, out)
            }
            fn replace(stream: &Stream, plan: &FftPlan<Self>, data: &mut Array<Self>, forward: bool) -> Result<()> {
                if forward { fft_in_place(stream, plan, data) } else { ifft_in_place(stream, plan, data) }
            }
        }
    )*};
}
calls!(f32 f64);

/// Both directions, out of place and in place.
fn check<T: Calls>(stream: &Stream, shape: &[usize], axes: &[usize]) -> Result<()> {
    let plan = FftPlan::<T>::new(stream, shape, axes)?;
    let x = numbers::<T>(plan.items(), plan.items() as u64);
    let input = stream.buffer_from(&x)?;
    let epsilon: f64 = T::EPSILON.convert();
    for forward in [true, false] {
        let (mut out, mut data) = (stream.buffer_zeroed(x.len())?, stream.buffer_from(&x)?);
        let expected = if forward {
            T::forward(stream, &plan, &input, &mut out)?;
            transform(&wide(&x), shape, axes)
        } else {
            T::backward(stream, &plan, &input, &mut out)?;
            inverse(&wide(&x), shape, axes)
        };
        T::replace(stream, &plan, &mut data, forward)?;
        let found = out.to_vec()?;
        assert_near(&wide(&found), &expected, epsilon, &(shape, axes, forward));
        assert!(data.to_vec()? == found, "{shape:?} along {axes:?} in place");
    }
    Ok(())
}

/// A stream on an emulator whose blocks have so much shared memory, for transforms in many passes.
pub fn with_little_memory(shared_bytes: usize) -> Result<Stream> {
    let mut options = EmulatorOptions::default();
    options.max_shared_bytes = shared_bytes;
    Device::emulator_with(options).stream()
}

#[test]
fn sanitize_short_lines_are_transformed() -> Result<()> {
    for stream in streams()? {
        for (shape, axis) in
            [([1, 1], 1), ([7, 2], 1), ([3, 16], 1), ([2, 60], 1), ([3, 17], 1), ([12, 5], 0), ([35, 3], 0)]
        {
            check::<f32>(&stream, &shape, &[axis])?;
        }
        check::<f64>(&stream, &[4, 6, 5], &[0, 2])?;
    }
    Ok(())
}

#[test]
fn every_length_is_transformed() -> Result<()> {
    let stream = stream()?;
    for n in 1..=200 {
        check::<f32>(&stream, &[n], &[0])?;
        check::<f64>(&stream, &[2, n], &[1])?;
    }
    Ok(())
}

#[test]
fn long_lines_are_transformed() -> Result<()> {
    let stream = stream()?;
    for n in [256, 729, 1000, 1001, 1009, 1024, 1331, 2048, 2187, 2310, 3000, 4093, 4096] {
        check::<f32>(&stream, &[n], &[0])?;
    }
    for n in [512, 1024, 1009, 2197, 2401, 4096] {
        check::<f64>(&stream, &[n], &[0])?;
    }
    Ok(())
}

#[test]
fn lines_longer_than_a_block_are_transformed() -> Result<()> {
    let stream = stream()?;
    for n in [8192, 6561, 10_007, 16_384, 15_015] {
        check::<f32>(&stream, &[n], &[0])?;
    }
    check::<f64>(&stream, &[13_122], &[0])
}

#[test]
fn arrays_are_transformed_along_any_axes() -> Result<()> {
    let stream = stream()?;
    for axes in [&[0][..], &[1], &[2], &[0, 1], &[2, 0], &[2, 1, 0]] {
        check::<f32>(&stream, &[6, 10, 9], axes)?;
        check::<f64>(&stream, &[17, 4, 19], axes)?;
    }
    check::<f32>(&stream, &[3, 4, 5, 6], &[1, 3])?;
    check::<f32>(&stream, &[64, 100], &[0, 1])
}

#[test]
fn little_shared_memory_changes_no_result() -> Result<()> {
    // 1 KiB has lines of up to about 96 numbers of `f32`, and arrays of 1000 and more take three passes.
    let stream = with_little_memory(1 << 10)?;
    for n in [128, 1000, 1001, 101, 2048] {
        check::<f32>(&stream, &[n], &[0])?;
        check::<f32>(&stream, &[2, n, 3], &[1])?;
    }
    check::<f64>(&stream, &[3, 180, 2], &[1, 0])
}

#[test]
fn a_transform_has_the_same_bits_on_every_run() -> Result<()> {
    let x = numbers::<f32>(1000, 1);
    let mut results = Vec::new();
    for stream in streams()? {
        let plan = FftPlan::<f32>::new(&stream, &[1000], &[0])?;
        let mut out = stream.buffer_zeroed(1000)?;
        fft(&stream, &plan, &stream.buffer_from(&x)?, &mut out)?;
        results.push(out.to_vec()?);
    }
    assert!(results.windows(2).all(|two| two[0] == two[1]));
    Ok(())
}

#[test]
fn scales_multiply_results() -> Result<()> {
    let stream = stream()?;
    for n in [8, 17] {
        let plan = FftPlan::<f32>::new(&stream, &[n], &[0])?.scaled(2.0, 0.5 / n as f32);
        let x = numbers::<f32>(n, 3);
        let (mut spectrum, mut same) = (stream.buffer_zeroed(n)?, stream.buffer_zeroed(n)?);
        fft(&stream, &plan, &stream.buffer_from(&x)?, &mut spectrum)?;
        ifft(&stream, &plan, &spectrum, &mut same)?;
        let doubled: Vec<_> = transform(&wide(&x), &[n], &[0]).into_iter().map(|x| x * 2.0).collect();
        assert_near(&wide(&spectrum.to_vec()?), &doubled, f64::from(f32::EPSILON), &n);
        assert_near(&wide(&same.to_vec()?), &wide(&x), f64::from(f32::EPSILON), &n);
    }
    Ok(())
}
