//! A shuffle of an element that is too large. The assertion is evaluated where the kernel is compiled.

use kernel_primitives::prelude::*;

#[kernel]
fn shuffle(cx: Block, x: Global<[f64; 3]>, mut out: GlobalMut<[f64; 3]>) {
    for i in cx.items(out.len()) {
        out.set(i, cx.shuffle_xor(FULL_MASK, x[i], 1, 32));
    }
}

fn main() -> kernel_primitives::Result<()> {
    let stream = kernel_primitives::Device::emulator().stream()?;
    let x = stream.buffer_zeroed(32)?;
    let mut out = stream.buffer_zeroed(32)?;
    shuffle::launch(&stream, (1, 32), &x, &mut out)
}
//~? a warp exchanges elements of at most 16 bytes
