//! Bitonic sorts of a warp.

use kernel_primitives::functor::{Direction, Greater, Less};
use kernel_primitives::prelude::*;
use kernel_primitives::warp::{SortIndex, warp_sort, warp_sort_pairs, warp_sort_with_index};

use super::{Flagged, Twelve};

/// Returns the number of positions of a tile that belong to this lane's group of `WIDTH` lanes.
pub(super) fn of_group<const WIDTH: u32, const ITEMS: usize>(cx: Block, tile: usize) -> usize {
    tile.saturating_sub((cx.thread_rank() & !(WIDTH - 1)) as usize * ITEMS).min(WIDTH as usize * ITEMS)
}

/// Sorts the keys of each group of `WIDTH` lanes.
#[kernel(max_threads(1024), instantiate(
    <f32, Less, 32, 1>, <u8, Greater, 32, 4>, <i64, Less, 32, 2>, <f64, Greater, 16, 4>, <bool, Less, 8, 8>,
    <i16, Less, 4, 16>, <u32, Greater, 2, 2>, <bf16, Less, 1, 8>,
))]
pub fn warp_sorted<K: SortKey, O: Direction, const WIDTH: u32, const ITEMS: usize>(
    cx: Block,
    x: Global<K>,
    mut out: GlobalMut<K, Tiles<ITEMS>>,
    order: O,
) {
    for tile in cx.tiles::<ITEMS>(out.len()) {
        let mut keys = init::<K, ITEMS>(K::ZERO);
        read_data(cx, &mut keys, x.tile(tile));
        warp_sort::<WIDTH, ITEMS, K, O>(cx, &mut keys, of_group::<WIDTH, ITEMS>(cx, tile.len()), order);
        write_data(cx, out.tile(tile), &keys);
    }
}

/// Sorts the keys of each group of `WIDTH` lanes together with the given values, which are indices.
#[kernel(max_threads(1024), instantiate(
    <u16, u32, Less, 32, 2>, <f32, u32, Greater, 32, 4>, <u64, u32, Less, 8, 2>, <f32, i64, Less, 32, 1>,
    <u64, u64, Greater, 4, 2>, <i16, i8, Less, 16, 4>, <bool, u16, Greater, 32, 2>,
))]
pub fn warp_sorted_with_index<K: SortKey, I: SortIndex, O: Direction, const WIDTH: u32, const ITEMS: usize>(
    cx: Block,
    x: Global<K>,
    indices: Global<I>,
    mut out: GlobalMut<K, Tiles<ITEMS>>,
    mut index_out: GlobalMut<I, Tiles<ITEMS>>,
    order: O,
) {
    for tile in cx.tiles::<ITEMS>(out.len()) {
        let mut keys = init::<K, ITEMS>(K::ZERO);
        let mut index = init::<I, ITEMS>(I::ZERO);
        read_data(cx, &mut keys, x.tile(tile));
        read_data(cx, &mut index, indices.tile(tile));
        let valid = of_group::<WIDTH, ITEMS>(cx, tile.len());
        warp_sort_with_index::<WIDTH, ITEMS, K, O, _>(cx, &mut keys, &mut index, valid, order);
        write_data(cx, out.tile(tile), &keys);
        write_data(cx, index_out.tile(tile), &index);
    }
}

/// Sorts the pairs of each group of `WIDTH` lanes.
#[kernel(max_threads(1024), instantiate(
    <i8, u32, Less, 32, 1>, <f16, Twelve, Greater, 32, 4>, <u32, Flagged, Less, 16, 2>, <i32, u8, Greater, 4, 8>,
))]
pub fn warp_sorted_pairs<K: SortKey, V: Element, O: Direction, const WIDTH: u32, const ITEMS: usize>(
    cx: Block,
    x: Global<K>,
    values: Global<V>,
    mut out: GlobalMut<K, Tiles<ITEMS>>,
    mut value_out: GlobalMut<V, Tiles<ITEMS>>,
    order: O,
) {
    for tile in cx.tiles::<ITEMS>(out.len()) {
        let mut keys = init::<K, ITEMS>(K::ZERO);
        let mut value = init::<V, ITEMS>(V::ZERO);
        read_data(cx, &mut keys, x.tile(tile));
        read_data(cx, &mut value, values.tile(tile));
        let valid = of_group::<WIDTH, ITEMS>(cx, tile.len());
        warp_sort_pairs::<WIDTH, ITEMS, K, V, O>(cx, &mut keys, &mut value, valid, order);
        write_data(cx, out.tile(tile), &keys);
        write_data(cx, value_out.tile(tile), &value);
    }
}
