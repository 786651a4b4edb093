//! Tests tensors and buffers that are split over devices of the emulator, or over GPUs if the environment chooses them.
//!
//! The name of this binary, `split`, is a part of its kernels' names. The build script knows it.

#![allow(unreachable_pub, reason = "a test binary exports nothing")]

mod algorithms;
mod assignments;
mod buffers;
mod copies;
mod errors;
mod gathers;
mod halos;
mod kernels;
mod reductions;
mod runs;
mod sorts;
mod sparse;
mod steps;
mod top_k;
mod views;

use kernel_primitives::devices::count;
use kernel_primitives::{Devices, Result, Split};

/// The numbers of devices.
const DEVICES: [usize; 4] = [1, 2, 3, 8];

/// Returns `most` devices of the emulator, or up to `most` GPUs if there are fewer.
fn devices(most: usize) -> Result<Devices> {
    let all = Devices::all()?;
    if all[0].is_gpu() { all.filter(count(most)) } else { Devices::emulated(most) }
}

/// Returns splits over up to `most` devices, by equal weights and by others.
fn splits(most: usize) -> Result<Vec<Split>> {
    let devices = devices(most)?;
    let odd: Vec<f64> = [3.0, 0.7, 1.0, 0.1, 2.5, 1.3, 0.01, 5.0].into_iter().take(devices.len()).collect();
    let turned: Vec<f64> = odd.iter().rev().copied().collect();
    Ok(vec![Split::even(&devices)?, Split::weighted(&devices, &odd)?, Split::weighted(&devices, &turned)?])
}

/// Returns all splits over all numbers of devices.
fn all_splits() -> Result<Vec<Split>> {
    let all: Vec<Vec<Split>> = DEVICES.into_iter().map(splits).collect::<Result<_>>()?;
    Ok(all.into_iter().flatten().collect())
}

/// Returns whether all is tested, as by `scripts/release.sh`. Without this, sorts run on a part of the splits.
fn is_whole() -> bool {
    std::env::var_os("KERNEL_PRIMITIVES_NET_CASES").is_some()
}

/// Returns small whole numbers without order.
fn values(len: usize) -> Vec<i32> {
    (0..len).map(|i| ((i * 7919) % 1009) as i32 - 504).collect()
}
