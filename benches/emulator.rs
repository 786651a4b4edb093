//! Benchmarks of the emulator: lane switches and lanes a second, on one core.
//!
//! ```text
//! cargo bench --bench emulator
//! ```
//!
//! A lane switch is one lane suspending, in a barrier or a shuffle, and another going on. Medians over the rounds.

use std::time::Instant;

use kernel_primitives::prelude::*;
use kernel_primitives::{Device, EmulatorOptions, Result, Stream};

const LANES: u32 = 256;

/// Passes `rounds` barriers.
#[kernel]
fn barriers(cx: Block, rounds: u32, mut out: GlobalMut<u32, PerBlock>) {
    for _ in 0..rounds {
        cx.barrier();
    }
    out.store(rounds);
}

/// Sums over each warp by `rounds` shuffles.
#[kernel]
fn shuffles(cx: Block, rounds: u32, mut out: GlobalMut<u32, PerBlock>) {
    let mut value = 1;
    for _ in 0..rounds {
        value = cx.shuffle_xor(FULL_MASK, value, 1, 32);
    }
    out.store(value);
}

/// Never waits.
#[kernel]
fn independent(cx: Block, mut out: GlobalMut<u32>) {
    for i in cx.items(out.len()) {
        out.set(i, i.index() as u32);
    }
}

fn median_seconds(mut run: impl FnMut() -> Result<()>) -> Result<f64> {
    let mut times = Vec::new();
    for round in 0..13 {
        let begin = Instant::now();
        run()?;
        if round >= 2 {
            times.push(begin.elapsed().as_secs_f64());
        }
    }
    times.sort_by(f64::total_cmp);
    Ok(times[times.len() / 2])
}

fn report(stream: &Stream, mode: &str) -> Result<()> {
    const ROUNDS: u32 = 2000;
    const BLOCKS: u32 = 8;
    let mut results = stream.buffer_zeroed::<u32>(BLOCKS as usize)?;
    let switches = f64::from(ROUNDS * BLOCKS * LANES) / 1e6;
    let barrier = median_seconds(|| barriers::launch(stream, (BLOCKS, LANES), ROUNDS, &mut results))?;
    assert_eq!(results.to_vec()?, [ROUNDS; BLOCKS as usize]);
    let shuffle = median_seconds(|| shuffles::launch(stream, (BLOCKS, LANES), ROUNDS, &mut results))?;
    assert_eq!(results.to_vec()?, [1; BLOCKS as usize]);

    let n = 1 << 22;
    let mut out = stream.buffer_zeroed::<u32>(n)?;
    let lanes = median_seconds(|| independent::launch(stream, (n as u32 / LANES, LANES), &mut out))?;
    assert!(out.to_vec()?.into_iter().eq(0..n as u32));

    println!(
        "{mode:9}  barrier {:6.1} M lane switches/s   shuffle {:6.1} M lane switches/s   without waiting {:6.1} M lanes/s",
        switches / barrier,
        switches / shuffle,
        n as f64 / 1e6 / lanes,
    );
    Ok(())
}

fn main() -> Result<()> {
    for (mode, checked) in [("checked", true), ("unchecked", false)] {
        let mut options = EmulatorOptions::default();
        options.checked = checked;
        options.threads = 1;
        report(&Device::emulator_with(options).stream()?, mode)?;
    }
    println!("stack of a lane: {} KiB", EmulatorOptions::default().stack_bytes / 1024);
    Ok(())
}
