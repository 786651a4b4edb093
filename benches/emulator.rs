//! Benchmarks of the emulator: lane switches and lanes a second, and what checking costs, on one core.
//!
//! ```text
//! cargo bench --bench emulator
//! ```
//!
//! A lane switch is one lane suspending, in a barrier or a shuffle, and another going on. Medians over the rounds; of what
//! checking costs, the fastest rounds.

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

/// Moves elements and does nothing else.
#[kernel]
fn copy(cx: Block, x: Global<f32>, mut out: GlobalMut<f32, Tiles<4>>) {
    for tile in cx.tiles::<4>(out.len()) {
        let mut items = init::<f32, 4>(0.0);
        read_data(cx, &mut items, x.tile(tile));
        write_data(cx, out.tile(tile), &items);
    }
}

/// Reads global memory alone, and little shared memory.
#[kernel]
fn sums(cx: Block, x: Global<f32>, mut out: GlobalMut<f32, PerBlock>, mut shared: Shared<ReduceStorage<f32>>) {
    let mut sum = 0.0;
    for tile in cx.tiles::<4>(x.len()) {
        let mut items = init::<f32, 4>(0.0);
        read_data(cx, &mut items, x.tile(tile));
        sum += items[0] + items[1] + items[2] + items[3];
    }
    let sum = block_reduce(cx, &mut shared, sum, Add);
    out.store(sum);
}

/// Passes a value round the block through shared memory, two barriers a round.
#[kernel]
fn rotations(cx: Block, rounds: u32, mut out: GlobalMut<u32>, mut shared: Shared<[u32; 256]>) {
    let rank = cx.thread_rank() as usize;
    let mut value = cx.thread_rank();
    for _ in 0..rounds {
        shared.set(rank, value);
        cx.barrier();
        value = shared.get((rank + 1) % 256);
        cx.barrier();
    }
    for i in cx.items(out.len()) {
        out.set(i, value);
    }
}

/// Adds to elements that other blocks have.
#[kernel]
fn histogram(cx: Block, x: Global<u32>, counts: GlobalMut<u32, Atomic>) {
    for i in cx.items(x.len()) {
        counts.at(x[i] as usize % 256).fetch_add(1);
    }
}

/// How often what is measured by its fastest run runs.
const RUNS: u32 = 25;

/// The fastest of many runs: on a machine that others use, what is least disturbed.
fn fastest_seconds(mut run: impl FnMut() -> Result<()>) -> Result<f64> {
    let mut fastest = f64::INFINITY;
    for _ in 0..RUNS {
        let begin = Instant::now();
        run()?;
        fastest = fastest.min(begin.elapsed().as_secs_f64());
    }
    Ok(fastest)
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

/// Seconds of kernels that access memory, with their names.
fn memory_heavy(stream: &Stream) -> Result<[(&'static str, f64); 4]> {
    const N: usize = 1 << 20;
    const BLOCKS: u32 = 64;
    const ROUNDS: u32 = 100;
    let x = stream.buffer_from(&vec![1.0f32; N])?;
    let mut out = stream.buffer_zeroed::<f32>(N)?;
    let copied = fastest_seconds(|| copy::launch(stream, (BLOCKS, LANES), &x, &mut out))?;
    assert_eq!(out.to_vec()?, vec![1.0; N]);
    let mut partial = stream.buffer_zeroed::<f32>(BLOCKS as usize)?;
    let summed = fastest_seconds(|| sums::launch(stream, (BLOCKS, LANES), &x, &mut partial))?;
    assert_eq!(partial.to_vec()?.iter().sum::<f32>(), N as f32);
    let mut values = stream.buffer_zeroed::<u32>((BLOCKS * LANES) as usize)?;
    let rotated = fastest_seconds(|| rotations::launch(stream, (BLOCKS, LANES), ROUNDS, &mut values))?;
    assert!(values.to_vec()?.iter().zip(0..).all(|(&value, i)| value == (i + ROUNDS) % LANES));
    let keys = stream.buffer_from(&(0..N as u32).collect::<Vec<_>>())?;
    let mut counts = stream.buffer_zeroed::<u32>(256)?;
    let counted = fastest_seconds(|| histogram::launch(stream, (BLOCKS, LANES), &keys, &mut counts))?;
    assert_eq!(counts.to_vec()?, [RUNS * N as u32 / 256; 256]);
    Ok([("copy", copied), ("reduction", summed), ("barriers", rotated), ("atomics", counted)])
}

fn main() -> Result<()> {
    let emulator = |checked| {
        let mut options = EmulatorOptions::default();
        options.checked = checked;
        options.threads = 1;
        Device::emulator_with(options).stream()
    };
    for (mode, checked) in [("checked", true), ("unchecked", false)] {
        report(&emulator(checked)?, mode)?;
    }
    let (checked, unchecked) = (memory_heavy(&emulator(true)?)?, memory_heavy(&emulator(false)?)?);
    for ((name, checked), (_, unchecked)) in checked.into_iter().zip(unchecked) {
        println!(
            "{name:9}  checked {:8.3} ms   unchecked {:8.3} ms   ratio {:5.2}",
            checked * 1e3,
            unchecked * 1e3,
            checked / unchecked,
        );
    }
    println!("stack of a lane: {} KiB", EmulatorOptions::default().stack_bytes / 1024);
    Ok(())
}
