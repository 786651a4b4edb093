//! Writes that would not be disjoint.

use kernel_primitives::prelude::*;

#[kernel]
fn another_tile_width(cx: Block, mut out: GlobalMut<f32, Tiles<4>>) {
    for tile in cx.tiles::<2>(out.len()) {
        let part = out.tile(tile); //~ mismatched types
        write_data(cx, part, &[0.0; 4]);
    }
}

#[kernel]
fn registers_of_another_width(cx: Block, mut out: GlobalMut<f32, Tiles<4>>) {
    for tile in cx.tiles::<4>(out.len()) {
        write_data(cx, out.tile(tile), &[0.0; 2]); //~ expected an array with a size of 4, found one with a size of 2
    }
}

#[kernel]
fn plain_write_to_atomic(cx: Block, mut out: GlobalMut<u32, Atomic>) {
    for i in cx.items(out.len()) {
        out.set(i, 1); //~ no method named `set` found
    }
}

#[kernel]
fn atomic_of_owned(_cx: Block, out: GlobalMut<u32>) {
    out.at(0).fetch_add(1); //~ no method named `at` found
}

#[kernel]
fn item_of_a_tile(cx: Block, mut out: GlobalMut<f32>) {
    for tile in cx.tiles::<1>(out.len()) {
        out.set(tile, 1.0); //~ mismatched types
    }
}

#[kernel]
fn item_of_a_row(cx: Block, mut out: GlobalMut<f32, PerRow>) {
    for i in cx.items(out.len()) {
        out.store_row(i, 1.0); //~ mismatched types
    }
}

#[kernel]
fn row_of_a_block_written_by_warps(cx: Block, mut out: GlobalMut<f32, PerWarpRow>) {
    for row in cx.rows(out.len()) {
        out.store_row(row, 1.0); //~ mismatched types
    }
}

#[kernel]
fn any_index(_cx: Block, mut out: GlobalMut<f32>) {
    out.set(7, 1.0); //~ expected `Item`, found integer
}

#[kernel]
fn atomic_of_halves(_cx: Block, counts: GlobalMut<f16, Atomic>) {
    counts.at(0).fetch_add(f16::ONE); //~ AtomicElement
}

#[kernel]
fn unsafe_read(_cx: Block, out: GlobalMut<f32, PerBlock>) {
    let _ = out.read(0); //~ call to unsafe
}

#[kernel]
fn read_only(cx: Block, mut x: Global<f32>) {
    for i in cx.items(x.len()) {
        x[i] = 0.0; //~ cannot assign
    }
}

fn main() {}
