//! Bitonic sorts of a block, and the first few.

use kernel_primitives::block::{
    IndexedSortStorage, MergeSortStorage, SortStorage, block_merge_sort, block_sort, block_sort_with_index,
    block_top_k, warp_merge_sort,
};
use kernel_primitives::functor::{Direction, Greater, Less};
use kernel_primitives::prelude::*;
use kernel_primitives::warp::{SortIndex, warp_sort, warp_sort_with_index};

/// Sorts the keys of each tile by the block's network.
#[kernel(max_threads(1024), instantiate(
    <f32, Less, 1, 1024>, <u8, Less, 2, 2048>, <i16, Greater, 4, 4096>, <u32, Less, 8, 2048>, <f64, Less, 2, 2048>,
    <bool, Greater, 4, 4096>, <bf16, Greater, 16, 1040>,
))]
pub fn block_sorted<K: SortKey, O: Direction, const ITEMS: usize, const TILE: usize>(
    cx: Block,
    x: Global<K>,
    mut out: GlobalMut<K, Tiles<ITEMS>>,
    order: O,
    mut shared: Shared<SortStorage<K, TILE>>,
) {
    for tile in cx.tiles::<ITEMS>(out.len()) {
        let mut keys = init::<K, ITEMS>(K::ZERO);
        read_data(cx, &mut keys, x.tile(tile));
        block_sort::<ITEMS, TILE, K, O>(cx, &mut shared, &mut keys, tile.len(), order);
        write_data(cx, out.tile(tile), &keys);
    }
}

/// Sorts the keys of each tile together with the given values, which are indices, by the block's network.
#[kernel(max_threads(1024), instantiate(
    <f32, u32, Greater, 2, 2048>, <i8, u32, Less, 4, 2048>, <u16, u32, Less, 8, 1024>, <i32, u32, Less, 1, 1024>,
    <i64, u32, Greater, 4, 2048>, <f16, u32, Less, 2, 2048>, <u64, u32, Less, 2, 2048>, <f32, u64, Less, 2, 2048>,
    <u64, i64, Greater, 1, 512>, <u8, i16, Less, 4, 1024>, <i32, u8, Greater, 2, 512>, <bf16, usize, Less, 8, 1024>,
    <f64, i32, Less, 2, 512>,
))]
pub fn block_sorted_with_index<K: SortKey, I: SortIndex, O: Direction, const ITEMS: usize, const TILE: usize>(
    cx: Block,
    x: Global<K>,
    indices: Global<I>,
    mut out: GlobalMut<K, Tiles<ITEMS>>,
    mut index_out: GlobalMut<I, Tiles<ITEMS>>,
    order: O,
    mut shared: Shared<IndexedSortStorage<K, TILE, I>>,
) {
    for tile in cx.tiles::<ITEMS>(out.len()) {
        let mut keys = init::<K, ITEMS>(K::ZERO);
        let mut index = init::<I, ITEMS>(I::ZERO);
        read_data(cx, &mut keys, x.tile(tile));
        read_data(cx, &mut index, indices.tile(tile));
        block_sort_with_index::<ITEMS, TILE, K, O, _>(cx, &mut shared, &mut keys, &mut index, tile.len(), order);
        write_data(cx, out.tile(tile), &keys);
        write_data(cx, index_out.tile(tile), &index);
    }
}

/// Finds the first `k` keys of each tile, and the other keys that the collective leaves.
#[kernel(max_threads(1024), instantiate(<f32, Greater, 4, 4096>, <i32, Less, 1, 1024>, <u64, Less, 2, 2048>, <f16, Greater, 8, 2048>))]
pub fn block_top<K: SortKey, O: Direction, const ITEMS: usize, const TILE: usize>(
    cx: Block,
    x: Global<K>,
    k: u32,
    mut out: GlobalMut<K, Tiles<ITEMS>>,
    mut index_out: GlobalMut<u32, Tiles<ITEMS>>,
    order: O,
    mut shared: Shared<IndexedSortStorage<K, TILE>>,
) {
    for tile in cx.tiles::<ITEMS>(out.len()) {
        let mut keys = init::<K, ITEMS>(K::ZERO);
        let first = (tile.start() + cx.thread_rank() as usize * ITEMS) as u32;
        let mut index = core::array::from_fn(|i| first + i as u32);
        read_data(cx, &mut keys, x.tile(tile));
        block_top_k::<ITEMS, TILE, K, O>(cx, &mut shared, &mut keys, &mut index, tile.len(), k as usize, order);
        write_data(cx, out.tile(tile), &keys);
        write_data(cx, index_out.tile(tile), &index);
    }
}

/// Sorts 63 to 0 in a block of 64 threads by any of the sorts, with `valid` as the number of valid keys.
#[kernel]
#[allow(clippy::too_many_arguments, reason = "storages of several sorts")]
pub fn sorted_first(
    cx: Block,
    sort: u32,
    valid: u32,
    mut out: GlobalMut<u32>,
    mut alone: Shared<SortStorage<u32, 64>>,
    mut indexed: Shared<IndexedSortStorage<u32, 64>>,
    mut merged: Shared<MergeSortStorage<64, 1, u32>>,
) {
    let valid = valid as usize;
    for i in cx.items(out.len()) {
        let (mut keys, mut indices) = ([63 - cx.thread_rank()], [cx.thread_rank()]);
        match sort {
            0 => warp_sort::<32, 1, _, _>(cx, &mut keys, valid, Less),
            1 => warp_sort_with_index::<32, 1, _, _, _>(cx, &mut keys, &mut indices, valid, Less),
            2 => warp_merge_sort::<32, 64, 1, _, _>(cx, &mut merged, &mut keys, valid, Less),
            3 => block_sort(cx, &mut alone, &mut keys, valid, Less),
            4 => block_sort_with_index(cx, &mut indexed, &mut keys, &mut indices, valid, Less),
            5 => block_top_k(cx, &mut indexed, &mut keys, &mut indices, valid, 64, Less),
            _ => block_merge_sort::<64, 1, _, _>(cx, &mut merged, &mut keys, valid, Less),
        }
        out.set(i, keys[0]);
    }
}
