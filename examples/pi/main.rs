//! Computes π by Monte Carlo, from the share of random points of a square that are in the circle inside it.
//!
//! ```text
//! cargo run --release --example pi
//! KERNEL_PRIMITIVES_DEVICES=emulator:4 cargo run --release --example pi
//! ```
//!
//! The points are not in memory. The kernel that counts computes each point from a seed and its number. Each device counts a range of these
//! numbers, so the points are the same for any number of devices.

use kernel_primitives::expr::{Functions, Reductions, le, scalar, square, uniform};
use kernel_primitives::{Devices, Result, Split};

const POINTS: usize = 1 << 24;

fn main() -> Result<()> {
    let devices = Devices::all()?;
    for device in &devices {
        println!("{device}: {}", device.reason());
    }
    let split = Split::even(&devices)?;
    let (x, y) = (uniform::<f32>(1), uniform::<f32>(2));
    let inside = le(square(x) + square(y), scalar(1.0));
    let inside = inside.cast::<u64>().sum().over_split(&split, POINTS).item()?;
    let pi = 4.0 * inside as f64 / POINTS as f64;
    // The standard deviation of the mean of this many draws.
    let (quarter, expected) = (std::f64::consts::FRAC_PI_4, std::f64::consts::PI);
    let sigma = 4.0 * (quarter * (1.0 - quarter) / POINTS as f64).sqrt();
    println!("{POINTS} points: π ≈ {pi:.6}, {:+.2} standard deviations off", (pi - expected) / sigma);
    assert!((pi - expected).abs() < 4.0 * sigma, "{pi}");
    Ok(())
}
