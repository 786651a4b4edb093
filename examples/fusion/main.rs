//! One expression of five operands is one kernel: `a = b + c * d + sin(e) * f + 10`.
//!
//! ```text
//! cargo run --release --example fusion
//! ```
//!
//! Nothing is computed when the expression is built. The assignment computes all of it in one launch, without a temporary. In a build with
//! the feature `cuda`, the program prints the kernel that a GPU of compute capability 9.0 runs.

use std::time::Instant;

use kernel_primitives::expr::{Tensor, sin};
use kernel_primitives::{Device, Error, Result};

const LEN: usize = 1 << 22;

fn main() -> Result<()> {
    let device = Device::auto()?;
    println!("device  {device}: {}", device.reason());
    let stream = device.stream()?;
    let data = |k: usize| (0..LEN).map(|i| (i * k % 1013) as f32 * 0.01 - 5.0).collect::<Vec<_>>();
    let make = |k| Tensor::from_slice(&stream, LEN, &data(k));
    let (b, c, d, e, f) = (make(3)?, make(5)?, make(7)?, make(11)?, make(13)?);
    let a = Tensor::uninit(&stream, LEN)?;

    let expression = &b + &c * &d + sin(&e) * &f + 10.0;
    match a.ptx(&expression, 90) {
        Ok(kernel) => println!("\n{kernel}"),
        // The sine is compiled with the feature `cuda`.
        Err(error @ Error::NoImage { .. }) => println!("kernel  not shown: {error}"),
        Err(error) => return Err(error),
    }

    let before = device.counters();
    let mut times = Vec::new();
    for _ in 0..5 {
        let start = Instant::now();
        a.assign(&expression)?;
        stream.synchronize()?;
        times.push(start.elapsed());
    }
    let cost = device.counters().since(before);
    println!("{} assignments: {} launches, {} allocations", times.len(), cost.launches, cost.allocations);
    times.sort();
    println!("{LEN} elements in {:.2?}", times[times.len() / 2]);

    let (b, c, d, e, f) = (data(3), data(5), data(7), data(11), data(13));
    for (i, a) in a.to_vec()?.into_iter().enumerate() {
        let expected = b[i] + c[i] * d[i] + e[i].sin() * f[i] + 10.0;
        assert!((a - expected).abs() <= 1e-5 * (1.0 + expected.abs()), "element {i}: {a}, not {expected}");
    }
    println!("checked against the CPU");
    Ok(())
}
