//! Mean and standard deviation of a series, on a GPU or in the emulator. The CPU checks the results.
//!
//! ```text
//! cargo run --release --example quickstart [file.npy]
//! ```

mod data;
mod kernels;

use std::error::Error;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use kernel_primitives::functor::Add;
use kernel_primitives::kernels::block_reduce;
use kernel_primitives::{Buffer, Device, Dims, Stream};

use data::Series;
use kernels::{Difference, SquaredDistance, map_and_sum};

/// Threads in a block.
const BLOCK: usize = 256;

/// Items that a thread handles at a time: 16 bytes.
const ITEMS: usize = 4;

/// Launches that are timed after the first one.
const REPEATS: usize = 11;

/// The largest error that passes, as a share of the range of the values, or, for squares, of its square.
const BOUND: f64 = 1e-5;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("quickstart: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let series = match std::env::args_os().nth(1) {
        Some(path) => Series::from_file(Path::new(&path))?,
        None => Series::co2()?,
    };
    let n = series.values.len();
    println!("data    {}, {n} {}", series.name, series.items);

    let device = Device::auto()?;
    println!("device  {device}: {}", device.reason());
    let stream = device.stream()?;

    // The first pass computes how far each value is from the first one, and the sum of these differences. They lose less to rounding than
    // the values would, because they are small.
    let from = series.values[0];
    let values = stream.buffer_from(&series.values)?;
    let mut changes = stream.buffer_uninit::<f32>(n)?;
    let mut sums = stream.buffer_uninit::<f32>(blocks(n))?;
    let mut launch = || {
        let f = Difference { from };
        map_and_sum::<Difference, ITEMS>::launch(&stream, dims(n), &values, &mut changes, &mut sums, f)
    };
    // On a GPU, the first launch loads the kernel. If there is only PTX, it also compiles the kernel.
    let first = timed(&stream, &mut launch)?;
    let mut times = (0..REPEATS).map(|_| timed(&stream, &mut launch)).collect::<Result<Vec<_>, _>>()?;
    times.sort();
    println!("time    first launch {first:.1?}, median of {REPEATS} more {:.1?}", times[REPEATS / 2]);
    let mean_change = total(&stream, sums)? / n as f32;

    // The second pass starts with the output of the first one, which stays on the device.
    let mut squares = stream.buffer_uninit::<f32>(n)?;
    let mut sums = stream.buffer_uninit::<f32>(blocks(n))?;
    let f = SquaredDistance { centre: mean_change };
    map_and_sum::<SquaredDistance, ITEMS>::launch(&stream, dims(n), &changes, &mut squares, &mut sums, f)?;
    let variance = total(&stream, sums)? / n as f32;

    let reference = Reference::of(&series.values);
    let (linear, square) = (reference.range, reference.range * reference.range);
    let errors = [
        ("changes", largest_error(&changes.to_vec()?, &reference.changes) / linear),
        ("mean", largest_error(&[mean_change], &[reference.mean_change]) / linear),
        ("squares", largest_error(&squares.to_vec()?, &reference.squares) / square),
        ("variance", largest_error(&[variance], &[reference.variance]) / square),
    ];
    println!("errors  largest difference from the CPU in f64, as a share of the values' range; bound {BOUND:e}");
    println!("        {}", errors.map(|(what, error)| format!("{what} {error:.1e}")).join(", "));
    // Written this way, a NaN does not pass.
    if !errors.iter().all(|&(_, error)| error <= BOUND) {
        return Err(format!("an error is above the bound of {BOUND:e}").into());
    }

    let Series { items, unit, .. } = series;
    let (mean, deviation) = (f64::from(from) + f64::from(mean_change), f64::from(variance).sqrt());
    // The deviation has four digits, and the mean has as many decimals.
    let decimals = (3.0 - deviation.log10().floor()).clamp(0.0, 12.0) as usize;
    println!("\n{n} {items}: mean {mean:.decimals$}{unit}, standard deviation {deviation:.decimals$}{unit}");
    Ok(())
}

/// The number of blocks for `items` items, which is also the number of sums that they leave.
fn blocks(items: usize) -> usize {
    items.div_ceil(BLOCK * ITEMS)
}

fn dims(items: usize) -> Dims {
    Dims::new(blocks(items) as u32, BLOCK as u32)
}

/// The sum of all elements. Each launch leaves one sum for every 1024 elements.
fn total(stream: &Stream, mut parts: Buffer<f32>) -> kernel_primitives::Result<f32> {
    while parts.len() > 1 {
        let mut fewer = stream.buffer_uninit::<f32>(blocks(parts.len()))?;
        block_reduce::<f32, Add, ITEMS>::launch(stream, dims(parts.len()), &parts, &mut fewer, Add)?;
        parts = fewer;
    }
    Ok(parts.to_vec()?[0])
}

/// The time that the device takes for the work that `work` puts on the stream.
fn timed(stream: &Stream, work: impl FnOnce() -> kernel_primitives::Result<()>) -> kernel_primitives::Result<Duration> {
    let start = stream.record()?;
    work()?;
    stream.record()?.since(&start)
}

/// The same figures, computed on the CPU in `f64`.
struct Reference {
    changes: Vec<f64>,
    mean_change: f64,
    squares: Vec<f64>,
    variance: f64,
    /// The largest change up or down, but never zero.
    range: f64,
}

impl Reference {
    fn of(values: &[f32]) -> Self {
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let from = f64::from(values[0]);
        let changes: Vec<f64> = values.iter().map(|&value| f64::from(value) - from).collect();
        let mean_change = mean(&changes);
        let squares: Vec<f64> = changes.iter().map(|change| (change - mean_change).powi(2)).collect();
        let variance = mean(&squares);
        let range = changes.iter().fold(f64::from(f32::MIN_POSITIVE), |range, change| range.max(change.abs()));
        Self { changes, mean_change, squares, variance, range }
    }
}

/// The largest difference between elements at the same place, or NaN if one of the differences is NaN.
fn largest_error(results: &[f32], reference: &[f64]) -> f64 {
    assert_eq!(results.len(), reference.len());
    let differences = results.iter().zip(reference).map(|(&result, reference)| (f64::from(result) - reference).abs());
    // In this order, a NaN without a minus sign is larger than all numbers.
    differences.max_by(f64::total_cmp).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::largest_error;

    #[test]
    fn a_nan_at_any_place_is_the_largest_error() {
        assert_eq!(largest_error(&[1.0, -3.0, 2.0], &[0.0; 3]), 3.0);
        for place in 0..3 {
            for nan in [f32::NAN, -f32::NAN] {
                let mut results = [5.0, f32::INFINITY, 0.0];
                results[place] = nan;
                assert!(largest_error(&results, &[0.0; 3]).is_nan(), "{results:?}");
            }
        }
    }
}
