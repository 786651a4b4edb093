//! More shared memory than any block has, and what is no storage.

use kernel_primitives::block::{ExchangeStorage, blocked_to_striped};
use kernel_primitives::prelude::*;

/// 32 items of 8 bytes for each of 1024 threads: 256 KiB.
#[kernel]
fn more_items_than_shared_memory_holds(cx: Block, mut shared: Shared<ExchangeStorage<f64, 1024, 32>>) {
    //~^ take more than the 227 KiB that any block has
    let _ = blocked_to_striped(cx, &mut shared, &[0.0; 32]);
}

/// Either fits, not both.
#[kernel]
fn two_storages_that_do_not_fit_together(
    cx: Block,
    mut a: Shared<ExchangeStorage<f32, 1024, 32>>,
    mut b: Shared<ExchangeStorage<f32, 1024, 32>>, //~ take more than the 227 KiB that any block has
) {
    let items = blocked_to_striped(cx, &mut a, &[0.0; 32]);
    let _ = blocked_to_striped(cx, &mut b, &items);
}

#[kernel]
fn a_scalar(_cx: Block, _shared: Shared<u32>) {} //~ `u32` is no storage of shared memory: write an array, `Shared<[u32; 1]>`

fn main() {}
