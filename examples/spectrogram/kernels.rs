//! The sound, and the kernels of its transforms.

use kernel_primitives::functor::NormSquared;
use kernel_primitives::input::{Counting, Map};
use kernel_primitives::prelude::*;

/// Samples a second.
pub(crate) const RATE: f64 = 16_000.0;

/// Samples of a frame.
pub(crate) const FRAME: u64 = 1024;

/// Samples from a frame to the next one, which overlap.
pub(crate) const STEP: u64 = 128;

/// A sample of a frame by its number in all frames: the sound at its time, under the window of Hann.
#[derive(Clone, Copy, Debug, KernelParam)]
pub(crate) struct Sample;

impl UnaryFn<u64> for Sample {
    type Output = f32;

    #[inline(always)]
    fn apply(&self, number: u64) -> f32 {
        let (frame, place) = (number / FRAME, number % FRAME);
        let window = 0.5 - 0.5 * Real::cos_pi(2.0 * place as f64 / FRAME as f64);
        (window * sound((frame * STEP + place) as f64 / RATE)) as f32
    }
}

/// The sound at a time in seconds: a tone that rises by 1500 Hz a second from 500 Hz, and a trembling one around 5000 Hz.
#[inline(always)]
pub(crate) fn sound(time: f64) -> f64 {
    // Sines of half turns.
    let rising = Real::sin_pi(2.0 * (500.0 + 750.0 * time) * time);
    let trembling = Real::sin_pi(2.0 * 5000.0 * time + 30.0 * Real::sin_pi(4.0 * time));
    rising + 0.5 * trembling
}

instantiate!(kernel_primitives::algorithms::fft<f32, Map<Counting<u64>, Sample>, NormSquared, f32>);
