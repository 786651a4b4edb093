//! Kernels with collectives of a block.

use super::{Compose, Last, Map, Triangular};
use kernel_primitives::prelude::*;

/// Reduces each block's values, and writes the result for each thread. Several rounds use the same storage.
#[kernel(max_threads(1024), instantiate(
    <f32, Add>, <f64, Mul>, <f16, Max>, <bf16, Min>, <i32, Min>, <i32, Add>, <u32, Max>, <u32, Mul>, <u8, Add>, <i64, Max>,
    <f64, Min>, <u8, Last>, <Map<u32>, Compose>, <Map<u64>, Compose>, <Triangular, Compose>,
))]
pub fn block_reduced<T: Element, R: Reducer<T> + KernelParam>(
    cx: Block,
    x: Global<T>,
    mut out: GlobalMut<T>,
    op: R,
    mut shared: Shared<ReduceStorage<T>>,
) {
    for i in cx.items(out.len()) {
        out.set(i, block_reduce(cx, &mut shared, x[i], op));
    }
}

/// Reduces the values of each row of a block, and writes the result for each thread. Several rounds use the same
/// storage.
#[kernel(max_threads(1024), instantiate(
    <f32, Add>, <f64, Mul>, <f16, Max>, <bf16, Min>, <i32, Min>, <i32, Add>, <u32, Max>, <u32, Mul>, <u8, Add>, <i64, Max>,
    <f64, Min>, <u8, Last>, <Map<u32>, Compose>, <Map<u64>, Compose>, <Triangular, Compose>,
))]
pub fn rows_reduced<T: Element, R: Reducer<T> + KernelParam>(
    cx: Block,
    x: Global<T>,
    mut out: GlobalMut<T>,
    op: R,
    mut shared: Shared<ReduceStorage<T>>,
) {
    for i in cx.items(out.len()) {
        out.set(i, block_x_reduce(cx, &mut shared, x[i], op));
    }
}

/// Calls both collectives in turn on one storage, with a second storage and an explicit [`Shared::sync`] in between.
/// The results are the block's sum, its row's maximum, the block's composition, and the block's sum again.
#[kernel(max_threads(1024))]
pub fn mixed_reductions(
    cx: Block,
    x: Global<u32>,
    mut out: GlobalMut<[u32; 4]>,
    mut shared: Shared<ReduceStorage<u32>>,
    mut maps: Shared<ReduceStorage<Map<u32>>>,
) {
    for i in cx.items(out.len()) {
        let sum = block_reduce(cx, &mut shared, x[i], Add);
        let largest = block_x_reduce(cx, &mut shared, x[i], Max);
        let map = block_reduce(cx, &mut maps, Map { a: x[i] | 1, b: x[i] }, Compose);
        shared.sync();
        let again = block_reduce(cx, &mut shared, x[i], Add);
        out.set(i, [sum, largest, map.a ^ map.b, again]);
    }
}

/// Compacts each tile's items that are less than `below`, and counts them for each tile. Several rounds use the same
/// storage.
#[kernel(equal_len(x, out), instantiate(<u32, 1>, <u32, 4>, <u8, 3>, <f64, 2>))]
pub fn compacted<T: Element + ConvertTo<f64>, const N: usize>(
    cx: Block,
    below: f64,
    x: Global<T>,
    mut out: GlobalMut<T, Tiles<N>>,
    counts: GlobalMut<u32, Atomic>,
    mut shared: Shared<ScanStorage<u32>>,
) {
    for tile in cx.tiles::<N>(x.len()) {
        let mut items = init::<T, N>(T::ZERO);
        read_data(cx, &mut items, x.tile(tile));
        // The last tile lacks some of these items, which are not kept.
        let keep = items.map(|item| item.convert() < below);
        let kept = block_compact(cx, &mut shared, &items, &keep, out.tile(tile));
        counts.at(tile.start() / (N * cx.block_threads() as usize)).fetch_add(kept);
    }
}

/// Writes the sum of each row, with a block for each row.
#[kernel]
pub fn row_totals(
    cx: Block,
    columns: usize,
    x: Global<u32>,
    mut out: GlobalMut<u32, PerRow>,
    mut shared: Shared<ReduceStorage<u32>>,
) {
    for row in cx.rows(out.len()) {
        let items = x.row(row.index(), columns);
        let mut sum = 0u32;
        let mut i = cx.thread_rank() as usize;
        while i < columns {
            sum = sum.wrapping_add(items[i]);
            i += cx.block_threads() as usize;
        }
        out.store_row(row, block_reduce(cx, &mut shared, sum, Add));
    }
}

/// Writes the sum of each row, with a warp for each row.
#[kernel]
pub fn warp_row_totals(cx: Block, rows: usize, columns: usize, x: Global<u32>, mut out: GlobalMut<u32, PerWarpRow>) {
    for row in cx.warp_rows(rows) {
        let items = x.row(row.index(), columns);
        let mut sum = 0u32;
        let mut i = cx.lane() as usize;
        while i < columns {
            sum = sum.wrapping_add(items[i]);
            i += cx.warp_lanes() as usize;
        }
        out.store_row(row, warp_reduce(cx, sum, Add));
    }
}
