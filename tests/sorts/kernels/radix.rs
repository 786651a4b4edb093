//! Radix sorts of a block.

use kernel_primitives::block::{
    RadixRankStorage, RadixSortStorage, block_radix_rank, block_radix_sort, block_radix_sort_pairs,
    block_radix_sort_pairs_to_striped, block_radix_sort_to_striped,
};
use kernel_primitives::functor::{Direction, Greater, Less};
use kernel_primitives::prelude::*;

use super::{Flagged, Sixteen, Twelve};

/// Sorts the keys of each tile by some of their bits.
#[kernel(max_threads(THREADS), instantiate(
    <f32, Less, 128, 4>, <i32, Greater, 256, 8>, <u8, Less, 32, 16>, <i64, Less, 96, 3>, <bf16, Greater, 64, 1>,
    <bool, Greater, 64, 2>,
))]
pub fn radix_sorted<K: SortKey, O: Direction, const THREADS: usize, const ITEMS: usize>(
    cx: Block,
    x: Global<K>,
    begin: u32,
    end: u32,
    mut out: GlobalMut<K, Tiles<ITEMS>>,
    order: O,
    mut shared: Shared<RadixSortStorage<THREADS, ITEMS, K>>,
) {
    for tile in cx.tiles::<ITEMS>(out.len()) {
        let mut keys = init::<K, ITEMS>(K::ZERO);
        read_data(cx, &mut keys, x.tile(tile));
        block_radix_sort::<THREADS, ITEMS, K, O>(cx, &mut shared, &mut keys, begin..end, order);
        write_data(cx, out.tile(tile), &keys);
    }
}

/// Sorts the pairs of each tile by some of the keys' bits.
#[kernel(max_threads(THREADS), instantiate(
    <u32, u32, Less, 128, 8>, <f16, u8, Greater, 64, 4>, <i8, Twelve, Less, 96, 5>, <u16, u32, Greater, 1024, 1>,
    <f64, Sixteen, Less, 32, 3>, <u64, u32, Greater, 64, 2>, <i16, Flagged, Less, 256, 2>,
))]
pub fn radix_sorted_pairs<K: SortKey, V: Element, O: Direction, const THREADS: usize, const ITEMS: usize>(
    cx: Block,
    x: Global<K>,
    values: Global<V>,
    begin: u32,
    end: u32,
    mut out: GlobalMut<K, Tiles<ITEMS>>,
    mut value_out: GlobalMut<V, Tiles<ITEMS>>,
    order: O,
    mut shared: Shared<RadixSortStorage<THREADS, ITEMS, K, V>>,
) {
    for tile in cx.tiles::<ITEMS>(out.len()) {
        let mut keys = init::<K, ITEMS>(K::ZERO);
        let mut value = init::<V, ITEMS>(V::ZERO);
        read_data(cx, &mut keys, x.tile(tile));
        read_data(cx, &mut value, values.tile(tile));
        block_radix_sort_pairs::<THREADS, ITEMS, K, V, O>(cx, &mut shared, &mut keys, &mut value, begin..end, order);
        write_data(cx, out.tile(tile), &keys);
        write_data(cx, value_out.tile(tile), &value);
    }
}

/// Sorts pairs, and keys alone, to the striped arrangement. They are written in the threads' order.
#[kernel(max_threads(64))]
pub fn radix_sorted_to_striped(
    cx: Block,
    x: Global<i32>,
    begin: u32,
    end: u32,
    mut out: GlobalMut<i32, Tiles<4>>,
    mut alone_out: GlobalMut<i32, Tiles<4>>,
    mut value_out: GlobalMut<u32, Tiles<4>>,
    mut shared: Shared<RadixSortStorage<64, 4, i32, u32>>,
    mut shared_keys: Shared<RadixSortStorage<64, 4, i32>>,
) {
    for tile in cx.tiles::<4>(out.len()) {
        let mut keys = init::<i32, 4>(0);
        let first = (tile.start() + cx.thread_rank() as usize * 4) as u32;
        let mut value = [first, first + 1, first + 2, first + 3];
        read_data(cx, &mut keys, x.tile(tile));
        let mut alone = keys;
        block_radix_sort_pairs_to_striped(cx, &mut shared, &mut keys, &mut value, begin..end, Less);
        block_radix_sort_to_striped(cx, &mut shared_keys, &mut alone, begin..end, Less);
        write_data(cx, out.tile(tile), &keys);
        write_data(cx, alone_out.tile(tile), &alone);
        write_data(cx, value_out.tile(tile), &value);
    }
}

/// Ranks digits, some of which may be invalid.
#[kernel(threads(256), equal_len(digits, places))]
pub fn digits_ranked(
    cx: Block,
    digits: Global<u32>,
    mut places: GlobalMut<u32, WarpStriped<2>>,
    mut shared: Shared<RadixRankStorage<256>>,
) {
    for tile in cx.tiles::<2>(digits.len()) {
        let mut items = [0u32; 2];
        load_warp_striped(cx, &mut items, digits.tile(tile));
        let ranked = block_radix_rank(cx, &mut shared, &items, |_| ());
        store_striped(cx, places.tile(tile), &ranked.places);
    }
}

/// Ranks a tile's bytes, with the number and the first place of each.
#[kernel(threads(THREADS), equal_len(x, places), equal_len(counts, starts, early), instantiate(<256, 1>, <512, 16>, <1024, 5>))]
pub fn radix_ranked<const THREADS: usize, const ITEMS: usize>(
    cx: Block,
    x: Global<u8>,
    mut places: GlobalMut<u32, WarpStriped<ITEMS>>,
    mut counts: GlobalMut<u32>,
    mut starts: GlobalMut<u32>,
    mut early: GlobalMut<u32>,
    mut shared: Shared<RadixRankStorage<THREADS>>,
) {
    for tile in cx.tiles::<ITEMS>(x.len()) {
        let mut items = [0u8; ITEMS];
        load_warp_striped(cx, &mut items, x.tile(tile));
        let mut counted = None;
        let ranked = block_radix_rank(cx, &mut shared, &items.map(u32::from), |count| counted = Some(count));
        store_striped(cx, places.tile(tile), &ranked.places);
        for digit in cx.items(counts.len()) {
            counts.set(digit, ranked.count);
            starts.set(digit, ranked.start);
            early.set(digit, counted.unwrap_or(u32::MAX));
        }
    }
}
