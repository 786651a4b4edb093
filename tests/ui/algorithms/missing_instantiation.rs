//! A generic kernel is launched with arguments that have no instantiation. The message shows the line to add.

use kernel_primitives::kernels::block_reduce;
use kernel_primitives::prelude::*;
use kernel_primitives::{Buffer, Result, Stream};

#[kernel(instantiate(<f32, 4>))]
fn copy<T: Element, const NX: usize>(cx: Block, x: Global<T>, mut out: GlobalMut<T, Tiles<NX>>) {
    for tile in cx.tiles::<NX>(out.len()) {
        let mut items = init::<T, NX>(T::ZERO);
        read_data(cx, &mut items, x.tile(tile));
        write_data(cx, out.tile(tile), &items);
    }
}

fn another_type(stream: &Stream, x: &Buffer<f64>, out: &mut Buffer<f64>) -> Result<()> {
    copy::<f64, 4>::launch(stream, (1, 32), x, out) //~ write `instantiate!(copy<f64, 4>);`
}

fn another_constant(stream: &Stream, x: &Buffer<f32>, out: &mut Buffer<f32>) -> Result<()> {
    copy::<f32, 2>::launch(stream, (1, 32), x, out) //~ the kernel `copy<f32, 2>` is not instantiated for these types
}

fn of_the_library(stream: &Stream, x: &Buffer<f32>, out: &mut Buffer<f32>) -> Result<()> {
    block_reduce::<f32, Add, 16>::launch(stream, (1, 32), x, out, Add) //~ add it to the kernel's list, `#[kernel(instantiate(<…>))]`
}

fn main() {}
