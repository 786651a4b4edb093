//! Launches with wrong arguments. The kernels are right, and each launch has one mistake.

use kernel_primitives::input::Span;
use kernel_primitives::prelude::*;
use kernel_primitives::{Buffer, Dims, Result, Stream};

#[kernel]
fn axpy(cx: Block, a: f32, x: Global<f32>, mut y: GlobalMut<f32>) {
    for i in cx.items(y.len()) {
        let before = y.get(i);
        y.set(i, a * x[i] + before);
    }
}

fn too_few(stream: &Stream, x: &Buffer<f32>) -> Result<()> {
    axpy::launch(stream, (1, 32), 2.0, x) //~ takes 5 arguments but 4 arguments were supplied
}

fn too_many(stream: &Stream, x: &Buffer<f32>, y: &mut Buffer<f32>) -> Result<()> {
    axpy::launch(stream, (1, 32), 2.0, x, y, 3.0) //~ takes 5 arguments but 6 arguments were supplied
}

fn the_other_scalar(stream: &Stream, x: &Buffer<f32>, y: &mut Buffer<f32>) -> Result<()> {
    axpy::launch(stream, (1, 32), 2.0f64, x, y) //~ expected `f32`, found `f64`
}

fn another_element(stream: &Stream, x: &Buffer<f64>, y: &mut Buffer<f32>) -> Result<()> {
    axpy::launch(stream, (1, 32), 2.0, x, y) //~ a `Global<f32>` parameter does not take `&Buffer<f64>`
}

fn another_element_to_write(stream: &Stream, x: &Buffer<f32>, y: &mut Buffer<i32>) -> Result<()> {
    axpy::launch(stream, (1, 32), 2.0, x, y) //~ a `GlobalMut<f32>` parameter does not take `&mut Buffer<i32>`
}

fn shared_borrow_to_write(stream: &Stream, x: &Buffer<f32>, y: &Buffer<f32>) -> Result<()> {
    axpy::launch(stream, (1, 32), 2.0, x, y) //~ pass a `&mut Buffer<f32>` or a `BufferSliceMut<f32>`
}

fn host_memory(stream: &Stream, x: &Vec<f32>, y: &mut Buffer<f32>) -> Result<()> {
    axpy::launch(stream, (1, 32), 2.0, x, y) //~ a `Global<f32>` parameter does not take `&Vec<f32>`
}

fn host_memory_by_value(stream: &Stream, x: &Buffer<f32>, y: Vec<f32>) -> Result<()> {
    axpy::launch(stream, (1, 32), 2.0, x, y) //~ a `GlobalMut<f32>` parameter does not take `Vec<f32>`
}

fn host_slice(stream: &Stream, x: &[f32], y: &mut Buffer<f32>) -> Result<()> {
    axpy::launch(stream, (1, 32), 2.0, x, y) //~ pass a `&Buffer<f32>` or a `BufferSlice<f32>`
}

#[kernel]
fn total(cx: Block, x: Input<Span<f32>>, mut out: GlobalMut<f32>) {}

fn another_input(stream: &Stream, x: &Buffer<f64>, y: &mut Buffer<f32>) -> Result<()> {
    total::launch(stream, (1, 32), x, y) //~ type mismatch resolving
}

fn host_memory_as_input(stream: &Stream, x: &Vec<f32>, y: &mut Buffer<f32>) -> Result<()> {
    total::launch(stream, (1, 32), x, y) //~ an `Input<Span<f32>>` parameter does not take `&Vec<f32>`
}

fn a_length_as_a_grid(x: &Buffer<f32>) -> Dims {
    Dims::new(x.len(), 32) //~ `usize` is no extent of a grid or a block
}

fn a_length_as_a_block(x: &Buffer<f32>) -> Dims {
    Dims::for_blocks(x.len()).block(x.len()) //~ for a length, which is a `usize`, write `Dims::for_items(len)`
}

fn no_dimensions(stream: &Stream, x: &Buffer<f32>, y: &mut Buffer<f32>) -> Result<()> {
    axpy::launch(stream, 32, 2.0, x, y) //~ the trait bound `Dims: From<{integer}>` is not satisfied
}

fn main() {}
