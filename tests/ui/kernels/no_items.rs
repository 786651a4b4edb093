//! Tiles without items.

use kernel_primitives::prelude::*;

#[kernel]
fn nothing(cx: Block, mut out: GlobalMut<f32, Tiles<0>>) {
    for tile in cx.tiles::<0>(out.len()) {
        write_data(cx, out.tile(tile), &[]);
    }
}

fn main() -> kernel_primitives::Result<()> {
    let stream = kernel_primitives::Device::emulator().stream()?;
    let mut out = stream.buffer_zeroed(1)?;
    nothing::launch(&stream, (1, 32), &mut out)
}
//~? a tile has at least one item a thread
