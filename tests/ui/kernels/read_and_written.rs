//! A launch either reads or writes a buffer.

use kernel_primitives::prelude::*;
use kernel_primitives::{Buffer, Result, Stream};

#[kernel]
fn copy(cx: Block, x: Global<f32>, mut out: GlobalMut<f32>) {
    for i in cx.items(out.len()) {
        out.set(i, x[i]);
    }
}

#[kernel]
fn swap(cx: Block, mut a: GlobalMut<f32>, mut b: GlobalMut<f32>) {
    for i in cx.items(a.len()) {
        let (u, v) = (a.get(i), b.get(i));
        a.set(i, v);
        b.set(i, u);
    }
}

fn in_place(stream: &Stream, data: &mut Buffer<f32>) -> Result<()> {
    copy::launch(stream, (1, 32), &*data, data) //~ cannot move out of `data` because it is borrowed
}

fn overlapping_slices(stream: &Stream, mut data: Buffer<f32>) -> Result<()> {
    let x = data.slice(0..10)?;
    let out = data.slice_mut(5..15)?; //~ cannot borrow `data` as mutable because it is also borrowed as immutable
    copy::launch(stream, (1, 32), x, out)
}

fn written_twice(stream: &Stream, mut data: Buffer<f32>) -> Result<()> {
    swap::launch(stream, (1, 32), &mut data, &mut data) //~ cannot borrow `data` as mutable more than once at a time
}

fn main() {}
