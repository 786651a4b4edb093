//! Kernels written as closures, on the emulator alone: memory is the host's, through std's atomics.

mod barriers;
mod collectives;
mod copies;
mod faults;
mod floats;
mod launches;
#[cfg(all(
    target_os = "linux",
    target_env = "gnu",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    not(any(miri, emulator_thread_fibers))
))]
mod overflow;
mod split_barriers;
mod waiting;
mod warps;

use std::panic::Location;
use std::sync::atomic::AtomicU32;

use primitives_gpu::{Block, Dim3};

use super::{EmulatorOptions, Launch, max_resident_blocks, run};
use crate::error::Error;
use crate::fault::{Diagnosis, KernelFault};

/// Block shapes: less than a warp, whole warps, partial warps, two and three dimensions.
const SHAPES: [(u32, u32, u32); 14] = [
    (1, 1, 1),
    (7, 1, 1),
    (32, 1, 1),
    (33, 1, 1),
    (65, 1, 1),
    (256, 1, 1),
    (1024, 1, 1),
    (8, 4, 1),
    (5, 13, 1),
    (31, 33, 1),
    (3, 5, 7),
    (16, 8, 8),
    (1, 1, 64),
    (2, 1, 33),
];

fn checked() -> EmulatorOptions {
    EmulatorOptions { checked: true, ..Default::default() }
}

fn seeded(seed: u64) -> EmulatorOptions {
    EmulatorOptions { checked: true, seed: Some(seed), ..Default::default() }
}

fn parallel() -> EmulatorOptions {
    EmulatorOptions { checked: false, threads: 3, ..Default::default() }
}

/// One of each kind.
fn modes() -> [EmulatorOptions; 4] {
    [checked(), seeded(17), parallel(), EmulatorOptions { seed: Some(23), ..parallel() }]
}

#[track_caller]
fn go(
    options: &EmulatorOptions,
    grid: impl Into<Dim3>,
    block: impl Into<Dim3>,
    body: impl Fn(Block<'_>) + Sync,
) -> Result<(), Error> {
    let (grid, block, place) = (grid.into(), block.into(), Location::caller());
    let launch = Launch {
        kernel: "test",
        place,
        grid,
        block,
        device: 0,
        shared_bytes: 2048,
        shared_params: &[],
        regions: Vec::new(),
        arguments: Vec::new(),
    };
    run(&launch, options, &body)
}

/// Runs what must fail, and returns the fault.
#[track_caller]
fn fails(
    options: &EmulatorOptions,
    grid: impl Into<Dim3>,
    block: impl Into<Dim3>,
    body: impl Fn(Block<'_>) + Sync,
) -> KernelFault {
    match go(options, grid, block, body) {
        Err(Error::Fault(fault)) => *fault,
        other => panic!("expected a fault, got {other:?}"),
    }
}

#[track_caller]
fn divergence(fault: &KernelFault) -> &str {
    match &fault.diagnosis {
        Diagnosis::Divergence { message } => message,
        other => panic!("expected a divergence, got {other:?}"),
    }
}

#[track_caller]
fn here() -> u32 {
    Location::caller().line()
}

/// A one-dimensional index.
fn at(x: u32) -> Dim3 {
    Dim3::new(x, 0, 0)
}

fn atomics(len: usize) -> Vec<AtomicU32> {
    (0..len).map(|_| AtomicU32::new(0)).collect()
}
