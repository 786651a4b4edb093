//! A generic element has padding for one of its types. The error is where that type is used.

use kernel_primitives::prelude::*;

#[derive(Clone, Copy, Element)]
#[repr(C)]
struct Tagged<T> {
    value: T,
    tag: u32,
}

fn main() -> kernel_primitives::Result<()> {
    let stream = kernel_primitives::Device::emulator().stream()?;
    let fine = stream.buffer_zeroed::<Tagged<u32>>(1)?;
    let padded = stream.buffer_from(&[Tagged { value: 1u64, tag: 0 }])?;
    let _ = (fine.to_vec()?, padded.to_vec()?);
    Ok(())
}
//~? `Tagged` has padding between its fields
