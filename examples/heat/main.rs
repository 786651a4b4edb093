//! The heat equation on a square plate, by finite differences: one kernel a step, of views of the plate.
//!
//! ```text
//! cargo run --release --example heat
//! ```
//!
//! The inner points change by the difference of their neighbours' mean and themselves. Neighbours are slices, shifted by one.
//! A product of sines is an eigenfunction of the step: it decays by the same factor each time, which is checked.

#![allow(clippy::reversed_empty_ranges, reason = "negative bounds of slices count from the end")]

use std::f64::consts::PI;

use kernel_primitives::expr::{Reductions, Tensor, abs, axis_index, sin};
use kernel_primitives::{Device, Result};

/// Points along an edge.
const N: usize = 402;
/// The time step in units of the squared grid distance over the diffusivity: at most 1/4 is stable.
const RATE: f64 = 0.2;
const STEPS: i32 = 200;

fn main() -> Result<()> {
    let device = Device::auto()?;
    println!("device  {device}: {}", device.reason());
    let stream = device.stream()?;
    let wave = PI / (N - 1) as f64;
    let mode = |axis| sin(axis_index::<f64>(axis) * wave);

    // The edge is held at 0: the two plates take turns, and their edges are never written.
    let plates = [Tensor::<f64>::zeros(&stream, [N, N])?, Tensor::zeros(&stream, [N, N])?];
    let start = Tensor::uninit(&stream, [N, N])?;
    start.assign(mode(0) * mode(1))?;
    let inner = |plate: &Tensor<f64>| plate.slice((1..-1, 1..-1));
    inner(&plates[0])?.assign(inner(&start)?)?;

    let before = device.counters();
    for step in 0..STEPS as usize {
        let (now, next) = (&plates[step % 2], &plates[(step + 1) % 2]);
        let centre = inner(now)?;
        let (up, down) = (now.slice((..-2, 1..-1))?, now.slice((2.., 1..-1))?);
        let (left, right) = (now.slice((1..-1, ..-2))?, now.slice((1..-1, 2..))?);
        inner(next)?.assign(&centre + (up + down + left + right - &centre * 4.0) * RATE)?;
    }
    let cost = device.counters().since(before);
    println!("{STEPS} steps of {N} × {N} points: {} launches", cost.launches);

    let factor = (1.0 - 8.0 * RATE * (wave / 2.0).sin().powi(2)).powi(STEPS);
    let result = &plates[STEPS as usize % 2];
    let error = abs(inner(result)? - inner(&start)? * factor).max().item()?;
    println!("the mode has decayed by {factor:.6}; largest error {error:.1e}");
    assert!(error < 1e-12, "{error}");
    Ok(())
}
