//! A tile borrows its view, so that there are not two tiles at once.

use kernel_primitives::prelude::*;

#[kernel]
fn two_tiles(cx: Block, mut out: GlobalMut<f32, Tiles<1>>) {
    for tile in cx.tiles::<1>(out.len()) {
        let one = out.tile(tile);
        let two = out.tile(tile); //~ cannot borrow `out` as mutable more than once at a time
        write_data(cx, one, &[1.0]);
        write_data(cx, two, &[2.0]);
    }
}

fn main() {}
