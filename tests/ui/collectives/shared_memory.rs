//! More shared memory than any block has, and types that are not a storage.

use kernel_primitives::block::{ExchangeStorage, blocked_to_striped};
use kernel_primitives::prelude::*;
use kernel_primitives::view::Phases;

/// Each of 1024 threads has 32 items of 8 bytes, which are 256 KiB.
#[kernel]
fn more_items_than_shared_memory_holds(cx: Block, mut shared: Shared<ExchangeStorage<f64, 1024, 32>>) {
    //~^ take more than the 227 KiB that any block has
    let _ = blocked_to_striped(cx, &mut shared, &[0.0; 32]);
}

/// Each storage fits, but not both.
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

/// An atomic element of one phase cannot be used in the next phase.
#[kernel]
fn an_element_of_another_phase(cx: Block, mut shared: Shared<Phases<([u32; 64], ReduceStorage<u32>)>>) {
    let counter = shared.phase::<[u32; 64]>().at(0);
    let _ = block_reduce(cx, shared.phase::<ReduceStorage<u32>>(), 1, Add); //~ cannot borrow `shared` as mutable more than once at a time
    counter.fetch_add(1);
}

#[kernel]
fn an_element_that_becomes_a_storage(cx: Block, shared: SharedSlice<u32>) {
    let counter = shared.at(0);
    let _ = block_reduce(cx, &mut shared.storage::<ReduceStorage<u32>>(), 1, Add); //~ cannot move out of `shared` because it is borrowed
    counter.fetch_add(1);
}

fn main() {}
