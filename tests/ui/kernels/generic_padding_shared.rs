//! A generic element has padding for one of its types, and is only written to shared memory.

use kernel_primitives::prelude::*;

#[derive(Clone, Copy, Element)]
#[repr(C)]
struct Tagged<T> {
    value: T,
    tag: u32,
}

#[kernel]
fn keep(cx: Block, mut shared: Shared<[Tagged<u64>; 32]>) {
    shared.set(cx.thread_rank() as usize, Tagged { value: 1, tag: 0 });
}

fn main() -> kernel_primitives::Result<()> {
    keep::launch(&kernel_primitives::Device::emulator().stream()?, (1, 32))
}
//~? `Tagged` has padding between its fields
