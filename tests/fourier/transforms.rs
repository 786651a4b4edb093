//! Tests complex transforms: lengths, batches, axes.

use kernel_primitives::algorithms::{FftPlan, Run, fft, fft_in_place, ifft, ifft_in_place};
use kernel_primitives::element::FftFloat;
use kernel_primitives::{Buffer, Complex, ConvertTo, Device, EmulatorOptions, Result, Stream};

use crate::reference::{assert_near, conjugates, inverse, numbers, results, some_places, transform, wide};
use crate::support::{stream, streams};

/// The calls for a type of parts.
pub trait Calls: FftFloat + ConvertTo<f64> {
    fn forward(stream: &Stream, plan: &FftPlan<Self>, x: &Array<Self>, out: &mut Array<Self>) -> Result<()>;
    fn forward_in(run: Run<'_>, plan: &FftPlan<Self>, x: &Array<Self>, out: &mut Array<Self>) -> Result<()>;
    fn backward(stream: &Stream, plan: &FftPlan<Self>, x: &Array<Self>, out: &mut Array<Self>) -> Result<()>;
    fn replace(stream: &Stream, plan: &FftPlan<Self>, data: &mut Array<Self>, forward: bool) -> Result<()>;
    /// Transforms from and to arrays that begin at the second part. One of these transforms is in place.
    fn forward_parts(
        stream: &Stream,
        plan: &FftPlan<Self>,
        from: &Buffer<Self>,
        to: &mut Buffer<Self>,
        data: &mut Buffer<Self>,
    ) -> Result<()>;
}

pub type Array<T> = Buffer<Complex<T>>;

macro_rules! calls {
    ($($t:ty)*) => {$(
        impl Calls for $t {
            fn forward(stream: &Stream, plan: &FftPlan<Self>, x: &Array<Self>, out: &mut Array<Self>) -> Result<()> {
                fft(stream, plan, x, out)
            }
            fn forward_in(run: Run<'_>, plan: &FftPlan<Self>, x: &Array<Self>, out: &mut Array<Self>) -> Result<()> {
                fft(run, plan, x, out)
            }
            fn backward(stream: &Stream, plan: &FftPlan<Self>, x: &Array<Self>, out: &mut Array<Self>) -> Result<()> {
                ifft(stream, plan, x, out)
            }
            fn replace(stream: &Stream, plan: &FftPlan<Self>, data: &mut Array<Self>, forward: bool) -> Result<()> {
                if forward { fft_in_place(stream, plan, data) } else { ifft_in_place(stream, plan, data) }
            }
            fn forward_parts(
                stream: &Stream,
                plan: &FftPlan<$t>,
                from: &Buffer<$t>,
                to: &mut Buffer<$t>,
                data: &mut Buffer<$t>,
            ) -> Result<()> {
                let end = 1 + 2 * plan.items();
                let from = from.slice(1..end)?.reinterpret::<Complex<$t>>()?;
                fft(stream, plan, from, to.slice_mut(1..end)?.reinterpret::<Complex<$t>>()?)?;
                fft_in_place(stream, plan, data.slice_mut(1..end)?.reinterpret::<Complex<$t>>()?)
            }
        }
    )*};
}
calls!(f32 f64);

/// Checks both directions, out of place and in place.
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

/// Works as [`check`], for one line that is so long that only some results are compared with the sum of the definition. If all results are
/// right, the inverse transform is right.
fn check_long<T: Calls>(stream: &Stream, n: usize) -> Result<()> {
    let plan = FftPlan::<T>::new(stream, &[n], &[0])?;
    let (x, places) = (numbers::<T>(n, n as u64), some_places(n));
    let input = stream.buffer_from(&x)?;
    let epsilon: f64 = T::EPSILON.convert();
    for forward in [true, false] {
        let (mut out, mut back) = (stream.buffer_zeroed(n)?, stream.buffer_zeroed(n)?);
        let expected = if forward {
            T::forward(stream, &plan, &input, &mut out)?;
            T::backward(stream, &plan, &out, &mut back)?;
            results(&wide(&x), &places)
        } else {
            T::backward(stream, &plan, &input, &mut out)?;
            T::forward(stream, &plan, &out, &mut back)?;
            conjugates(&results(&conjugates(&wide(&x)), &places))
        };
        let found = out.to_vec()?;
        let some: Vec<_> = places.iter().map(|&k| found[k]).collect();
        assert_near(&wide(&some), &expected, epsilon, &(n, forward));
        let back: Vec<_> = wide(&back.to_vec()?).into_iter().map(|x| x / n as f64).collect();
        assert_near(&back, &wide(&x), epsilon, &(n, forward, "and back"));
        let mut data = stream.buffer_from(&x)?;
        T::replace(stream, &plan, &mut data, forward)?;
        assert!(data.to_vec()? == found, "{n} in place");
    }
    Ok(())
}

/// Makes a stream on an emulator whose blocks have this many bytes of shared memory, for transforms in many passes.
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
        check_long::<f32>(&stream, n)?;
    }
    check_long::<f64>(&stream, 13_122)
}

#[test]
fn arrays_are_transformed_along_any_axes() -> Result<()> {
    let stream = stream()?;
    for axes in [&[0][..], &[1], &[2], &[0, 1], &[2, 0], &[2, 1, 0]] {
        check::<f32>(&stream, &[6, 10, 9], axes)?;
        check::<f64>(&stream, &[17, 4, 19], axes)?;
    }
    // There are several blocks, and the last one has fewer lines.
    check::<f32>(&stream, &[301, 17], &[1])?;
    check::<f32>(&stream, &[17, 301], &[0])?;
    check::<f32>(&stream, &[3, 4, 5, 6], &[1, 3])?;
    check::<f32>(&stream, &[64, 100], &[0, 1])
}

#[test]
fn little_shared_memory_changes_no_result() -> Result<()> {
    // In 1 KiB, there are lines of up to about 96 numbers of `f32`. Arrays of 1000 numbers and more take three passes.
    let stream = with_little_memory(1 << 10)?;
    for n in [128, 1000, 1001, 101, 2048] {
        check::<f32>(&stream, &[n], &[0])?;
        check::<f32>(&stream, &[2, n, 3], &[1])?;
    }
    check::<f64>(&stream, &[3, 180, 2], &[1, 0])
}

/// A kernel has 16 bytes of the shared memory for itself. The line takes two passes.
#[test]
fn a_long_line_is_transformed_with_the_shared_memory_of_any_architecture() -> Result<()> {
    for kib in [64, 99, 227] {
        check_long::<f32>(&with_little_memory((kib << 10) - 16)?, 20_160)?;
    }
    Ok(())
}

#[test]
fn a_transform_has_the_same_bits_on_every_run() -> Result<()> {
    // There are one pass, two passes, and a convolution. The array is alone, or the third of five.
    for n in [60, 1000, 1024, 1009, 15_015, 1 << 15] {
        has_the_same_bits::<f32>(n)?;
        has_the_same_bits::<f64>(n)?;
    }
    Ok(())
}

fn has_the_same_bits<T: Calls>(n: usize) -> Result<()> {
    let x = numbers::<T>(5 * n, 1);
    let mut results: Vec<[Vec<Complex<T>>; 2]> = Vec::new();
    for stream in streams()? {
        for (arrays, first) in [(1, 2), (5, 0)] {
            let plan = FftPlan::<T>::new(&stream, &[arrays, n], &[1])?;
            let input = stream.buffer_from(&x[first * n..(first + arrays) * n])?;
            let mut out = [stream.buffer_zeroed(arrays * n)?, stream.buffer_zeroed(arrays * n)?];
            T::forward(&stream, &plan, &input, &mut out[0])?;
            T::backward(&stream, &plan, &input, &mut out[1])?;
            let third = (2 - first) * n;
            let found = [out[0].to_vec()?, out[1].to_vec()?];
            results.push(found.map(|out| out[third..third + n].to_vec()));
        }
    }
    assert!(results.iter().all(|result| *result == results[0]), "{n}");
    Ok(())
}

/// An array begins between two places at which a whole number may begin.
#[test]
fn numbers_need_not_be_aligned_for_one_access() -> Result<()> {
    for n in [16, 60, 17, 1024, 16_384] {
        is_same_unaligned::<f32>(&stream()?, n)?;
        is_same_unaligned::<f64>(&stream()?, n)?;
    }
    is_same_unaligned::<f32>(&with_little_memory(1 << 10)?, 1000)
}

fn is_same_unaligned<T: Calls>(stream: &Stream, n: usize) -> Result<()> {
    let plan = FftPlan::<T>::new(stream, &[n], &[0])?;
    let x = numbers::<T>(n, 3);
    let mut expected = stream.buffer_zeroed(n)?;
    T::forward(stream, &plan, &stream.buffer_from(&x)?, &mut expected)?;
    let parts = |x: &[Complex<T>]| -> Vec<T> {
        std::iter::once(T::ZERO).chain(x.iter().flat_map(|x| [x.re, x.im])).chain([T::ONE]).collect()
    };
    let (from, mut to, mut data) =
        (stream.buffer_from(&parts(&x))?, stream.buffer_zeroed::<T>(2 * n + 2)?, stream.buffer_from(&parts(&x))?);
    T::forward_parts(stream, &plan, &from, &mut to, &mut data)?;
    let expected = parts(&expected.to_vec()?);
    assert!(to.to_vec()?[1..=2 * n] == expected[1..=2 * n], "{n}");
    assert!(data.to_vec()? == expected, "{n} in place");
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
