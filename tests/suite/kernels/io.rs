//! Moving data.

use super::{Flagged, Sixteen, Twelve};
use kernel_primitives::prelude::*;

/// `out = x`, tile by tile.
#[kernel(equal_len(x, out), instantiate(
    <f32, 1>, <f32, 2>, <f32, 4>, <f32, 8>, <f32, 3>, <f64, 1>, <f64, 2>, <f64, 4>, <f64, 8>, <f64, 3>,
    <f16, 1>, <f16, 2>, <f16, 4>, <f16, 8>, <f16, 3>, <bf16, 1>, <bf16, 2>, <bf16, 4>, <bf16, 8>, <bf16, 3>,
    <i32, 1>, <i32, 2>, <i32, 4>, <i32, 8>, <i32, 3>, <u32, 1>, <u32, 2>, <u32, 4>, <u32, 8>, <u32, 3>,
    <bool, 1>, <bool, 2>, <bool, 4>, <bool, 8>, <bool, 3>, <u8, 1>, <u8, 2>, <u8, 4>, <u8, 8>, <u8, 3>, <u8, 16>,
    <i64, 1>, <i64, 2>, <i64, 4>, <i64, 8>, <i64, 3>, <Twelve, 1>, <Twelve, 2>, <Twelve, 4>, <Twelve, 8>, <Twelve, 3>,
    <Sixteen, 1>, <Sixteen, 2>, <Sixteen, 4>, <Sixteen, 8>, <Sixteen, 3>, <Flagged, 1>, <Flagged, 4>, <[u8; 3], 4>,
))]
pub fn copy<T: Element, const NX: usize>(cx: Block, x: Global<T>, mut out: GlobalMut<T, Tiles<NX>>) {
    for tile in cx.tiles::<NX>(out.len()) {
        let mut items = init::<T, NX>(T::ZERO);
        read_data(cx, &mut items, x.tile(tile));
        write_data(cx, out.tile(tile), &items);
    }
}

/// Reads `x` by one block, into registers that hold `before`, and writes all of the registers.
#[kernel(instantiate(<f32, 1>, <f32, 4>, <f16, 8>, <u8, 3>, <f64, 2>, <Twelve, 2>))]
pub fn read_guarded<T: Element, const NX: usize>(cx: Block, before: T, x: Global<T>, mut out: GlobalMut<T, Tiles<NX>>) {
    for tile in cx.tiles::<NX>(out.len()) {
        let mut items = init::<T, NX>(before);
        read_data(cx, &mut items, x);
        write_data(cx, out.tile(tile), &items);
    }
}

/// `data *= 2`, in place.
#[kernel(instantiate(<f32, 4>, <i32, 1>, <f64, 3>, <u8, 8>))]
pub fn double_tiles<T: Number, const NX: usize>(cx: Block, mut data: GlobalMut<T, Tiles<NX>>) {
    for tile in cx.tiles::<NX>(data.len()) {
        let part = data.tile(tile);
        let mut items = init::<T, NX>(T::ONE);
        part.read(&mut items);
        let items = items.map(|item| item.add(item));
        write_data(cx, part, &items);
    }
}

/// `data *= 2`, in place, item by item.
#[kernel]
pub fn double_items(cx: Block, mut data: GlobalMut<f32>) {
    for i in cx.items(data.len()) {
        let value = data.get(i);
        data.set(i, value + value);
    }
}

/// Counts how often each index is visited as an item.
#[kernel]
pub fn visit_items(cx: Block, visits: GlobalMut<u32, Atomic>) {
    for i in cx.items(visits.len()) {
        visits.at(i.index()).fetch_add(1);
    }
}

/// Counts how often each index is visited in a tile.
#[kernel(instantiate(<1>, <2>, <3>, <4>, <8>))]
pub fn visit_tiles<const NX: usize>(cx: Block, visits: GlobalMut<u32, Atomic>) {
    for tile in cx.tiles::<NX>(visits.len()) {
        for k in 0..NX {
            let inside = cx.thread_rank() as usize * NX + k;
            if inside < tile.len() {
                visits.at(tile.start() + inside).fetch_add(1);
            }
        }
    }
}

/// The number of tiles of `len` elements, of which there need be no memory, the elements in them, and the last's start.
#[kernel]
pub fn count_tiles(cx: Block, len: u64, mut out: GlobalMut<[u64; 3], PerBlock>) {
    let mut found = [0; 3];
    for tile in cx.tiles::<65536>(len as usize) {
        found = [found[0] + 1, found[1] + tile.len() as u64, tile.start() as u64];
    }
    out.store(found);
}

/// `out[i] = x[start..end].get(i)`, or `none` where there is none.
#[kernel]
pub fn get_of_slice(cx: Block, start: u64, end: u64, none: u32, x: Global<u32>, mut out: GlobalMut<u32>) {
    let part = x.slice(start as usize..end as usize);
    for i in cx.items(out.len()) {
        out.set(i, part.get(i.index()).unwrap_or(none));
    }
}

/// The length of `x`, and of slices of it by each kind of range.
#[kernel]
pub fn slice_lengths(_cx: Block, x: Global<f64>, mut out: GlobalMut<[u64; 6], PerBlock>) {
    let lengths = [x, x.slice(..), x.slice(2..), x.slice(..3), x.slice(1..=3), x.slice(4..4)];
    out.store(lengths.map(|part| part.len() as u64 + part.is_empty() as u64 * 1000));
}

/// `out[b]` is the rank of block `b`.
#[kernel]
pub fn store_block_ranks(cx: Block, mut out: GlobalMut<u64, PerBlock>) {
    out.store(cx.block_rank() as u64);
}
