//! Forms that a value does not have.

use kernel_primitives::prelude::*;

#[kernel]
fn hexadecimal_float(cx: Block) {
    device_println!(cx, "{:x}", 1.0f32); //~? `{:x}` is for integers
}

fn main() -> kernel_primitives::Result<()> {
    let stream = kernel_primitives::Device::emulator().stream()?;
    hexadecimal_float::launch(&stream, (1, 1))
}
