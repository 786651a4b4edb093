//! Memory that threads access by themselves has no other phases.

use kernel_primitives::prelude::*;
use kernel_primitives::view::{Phases, SplitBarriers};

#[kernel]
fn a_phase_in_the_memory_of_elements(cx: Block, mut shared: Shared<[u8; 1024]>) {
    shared.set(cx.lane() as usize, 2);
    shared.phase::<[u8; 512]>().set(0, 1);
}
//~? threads access this storage by themselves, so that its memory has no other phases: name them in `Phases`

#[kernel]
fn barriers_in_the_memory_of_a_collective(cx: Block, mut shared: Shared<Phases<(SplitBarriers<2>, ReduceStorage<f32>)>>) {
    let _ = block_reduce(cx, shared.phase::<ReduceStorage<f32>>(), 1.0, Max);
    shared.phase::<SplitBarriers<2>>().arrive(0);
}
//~? this storage shares its memory with no other phase

fn main() -> kernel_primitives::Result<()> {
    let stream = kernel_primitives::Device::emulator().stream()?;
    a_phase_in_the_memory_of_elements::launch(&stream, (1, 32))?;
    barriers_in_the_memory_of_a_collective::launch(&stream, (1, 32))
}
