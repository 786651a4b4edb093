//! Tests how near results are to the exact transforms.

use kernel_primitives::algorithms::FftPlan;
use kernel_primitives::{Complex, Device, EmulatorOptions, Result, Stream};

use crate::reference::{self, numbers, results, some_places, wide};
use crate::support::stream;
use crate::transforms::{Calls, with_little_memory};

/// Returns the root mean square error of transforms, in machine epsilons. It is the error of one long transform, of which only some results
/// are compared, or the average over many short transforms.
fn error<T: Calls>(stream: &Stream, n: usize) -> Result<f64> {
    let arrays = (2048 / n).max(1);
    let plan = FftPlan::<T>::new(stream, &[arrays, n], &[1])?;
    let x = numbers::<T>(plan.items(), n as u64 + 9);
    let mut out = stream.buffer_zeroed(x.len())?;
    T::forward(stream, &plan, &stream.buffer_from(&x)?, &mut out)?;
    let (x, out) = (wide(&x), wide(&out.to_vec()?));
    let places: Vec<usize> = if n <= 2048 { (0..n).collect() } else { some_places(n) };
    let error_of = |(x, out): (&[Complex<f64>], &[Complex<f64>])| {
        let found: Vec<_> = places.iter().map(|&k| out[k]).collect();
        reference::error(&found, &results(x, &places))
    };
    let epsilon: f64 = T::EPSILON.convert();
    Ok(x.chunks(n).zip(out.chunks(n)).map(error_of).sum::<f64>() / arrays as f64 / epsilon)
}

/// Checks that errors are less than `times` the root of the logarithm of the length.
fn check<T: Calls>(stream: &Stream, lens: &[usize], times: f64) -> Result<()> {
    let mut wrong = Vec::new();
    for &n in lens {
        let (error, bound) = (error::<T>(stream, n)?, times * (n as f64).log2().sqrt());
        if error > bound {
            wrong.push(format!("{n}: {error} epsilons, and not {bound}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

#[test]
fn errors_grow_with_the_root_of_the_logarithm_of_the_length() -> Result<()> {
    let stream = stream()?;
    let lens = [2, 3, 5, 8, 13, 16, 60, 143, 512, 1000, 1001, 1024, 2197, 4096, 8192, 16_384, 30_030];
    check::<f32>(&stream, &lens, 0.5)?;
    check::<f64>(&stream, &lens, 0.5)
}

/// The emulator runs without its checks, which change no number.
#[test]
fn millions_of_numbers_are_as_near() -> Result<()> {
    let stream = stream()?;
    if stream.device().is_gpu() {
        // The second transform takes three passes. The emulator makes these for shorter arrays, in blocks with little memory.
        return check::<f32>(&stream, &[1 << 20, 1 << 23], 0.5);
    }
    let mut options = EmulatorOptions::default();
    options.checked = false;
    check::<f32>(&Device::emulator_with(options).stream()?, &[1 << 20], 0.5)
}

#[test]
fn three_passes_are_as_near() -> Result<()> {
    // Blocks have 1 KiB.
    let stream = with_little_memory(1 << 10)?;
    check::<f32>(&stream, &[1000, 1024, 2048, 4096], 0.5)?;
    check::<f32>(&stream, &[101, 1009], 0.9)
}

#[test]
fn lengths_with_large_prime_factors_are_nearly_as_near() -> Result<()> {
    let stream = stream()?;
    let lens = [17, 34, 97, 1009, 2018, 4093, 10_007, 65_537];
    check::<f32>(&stream, &lens, 0.9)?;
    check::<f64>(&stream, &lens, 0.9)
}
