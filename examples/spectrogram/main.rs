//! The spectrogram of a sound, which shows how strong each frequency is at each time.
//!
//! ```text
//! cargo run --release --example spectrogram [picture.png]
//! ```
//!
//! The sound is divided into frames that overlap. One kernel computes the samples of each frame, multiplies them by a window, transforms
//! them, and writes the powers. Neither samples nor spectra are in memory. In the PNG, time goes to the right, and frequency goes up.

#[path = "../common/picture.rs"]
mod picture;

mod kernels;

use std::error::Error;

use kernel_primitives::Device;
use kernel_primitives::algorithms::{FftKind, FftPlan, fft_by};
use kernel_primitives::functor::NormSquared;
use kernel_primitives::input::{counting, map};

use kernels::{FRAME, RATE, STEP, Sample};
use picture::{Picture, heat_colour};

/// The number of frames of three seconds.
const FRAMES: usize = 375;

fn main() -> std::result::Result<(), Box<dyn Error>> {
    let device = Device::auto()?;
    println!("device  {device}: {}", device.reason());
    let stream = device.stream()?;
    let plan = FftPlan::<f32>::new(&stream, &[FRAMES, FRAME as usize], &[1])?;
    let mut powers = stream.buffer_uninit::<f32>(plan.half_items())?;
    let samples = map(counting(0u64, plan.items()), Sample);
    fft_by(&stream, &plan, FftKind::RealForward, samples, NormSquared, &mut powers)?;

    let powers = powers.to_vec()?;
    let rows = FRAME as usize / 2 + 1;
    check(&powers, rows);
    println!("{FRAMES} spectra of {FRAME} samples; the strongest frequencies are those of the sound");
    let strongest = powers.iter().copied().fold(0.0, f32::max);
    let picture = Picture::from_fn(2 * FRAMES, rows, |column, row| {
        let power = powers[column / 2 * rows + (rows - 1 - row)];
        // The colours cover 60 decibels.
        heat_colour(1.0 + f64::from((power / strongest).max(1e-12)).log10() / 6.0)
    });
    picture.write(std::env::args_os().nth(1), "spectrogram.png")?;
    Ok(())
}

/// The strongest frequency of each frame must be that of the rising tone in the middle of the frame.
fn check(powers: &[f32], rows: usize) {
    assert!(powers.iter().all(|power| power.is_finite()), "a power is not finite");
    for (frame, powers) in powers.chunks(rows).enumerate() {
        let strongest = (0..rows).max_by(|&a, &b| powers[a].total_cmp(&powers[b])).expect("there are some");
        let time = (frame as f64 * STEP as f64 + FRAME as f64 / 2.0) / RATE;
        let expected = (500.0 + 1500.0 * time) * FRAME as f64 / RATE;
        // The trembling tone comes near the rising one, and adds to it, where they cross.
        let crosses = (expected * RATE / FRAME as f64 - 5000.0).abs() < 800.0;
        assert!(crosses || (strongest as f64 - expected).abs() < 2.0, "frame {frame}: {strongest}, not {expected}");
    }
}
