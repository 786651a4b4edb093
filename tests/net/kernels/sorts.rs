//! Sorts of a block, and the first few.

use kernel_primitives::block::{
    IndexedSortStorage, MergeSortStorage, RadixRankStorage, RadixSortStorage, SegmentedSortStorage, SortStorage,
    TopKStorage, block_merge_sort, block_merge_sort_pairs, block_radix_rank, block_radix_sort, block_radix_sort_pairs,
    block_radix_sort_pairs_to_striped, block_radix_sort_to_striped, block_segmented_merge_sort_pairs, block_sort,
    block_sort_with_index, block_top_k, block_top_k_by, block_top_k_of, block_top_k_of_sorted,
};
use kernel_primitives::functor::{Direction, Greater, Less};
use kernel_primitives::prelude::*;

use super::Three;

/// The keys of each tile, sorted by a network, that with places, the first `k` with places, by merges, and with values.
#[kernel(max_threads(THREADS), instantiate(<f32, Three, Greater, 4, 1024, 256>, <i64, u32, Less, 2, 256, 100>))]
#[allow(clippy::too_many_arguments, reason = "a kernel's parameters")]
pub fn block_sorts<K, V, O, const ITEMS: usize, const TILE: usize, const THREADS: usize>(
    cx: Block,
    k: u32,
    x: Global<K>,
    values: Global<V>,
    mut out: GlobalMut<[K; 5], Tiles<ITEMS>>,
    mut places_out: GlobalMut<[u32; 2], Tiles<ITEMS>>,
    mut values_out: GlobalMut<V, Tiles<ITEMS>>,
    order: O,
    mut alone: Shared<SortStorage<K, TILE>>,
    mut indexed: Shared<IndexedSortStorage<K, TILE>>,
    mut merged: Shared<MergeSortStorage<THREADS, ITEMS, K>>,
    mut merged_pairs: Shared<MergeSortStorage<THREADS, ITEMS, K, V>>,
) where
    K: SortKey,
    V: Element,
    O: Direction + BinaryFn<K, Output = bool>,
{
    for tile in cx.tiles::<ITEMS>(out.len()) {
        let mut keys = init::<K, ITEMS>(K::ZERO);
        let mut own = init::<V, ITEMS>(V::ZERO);
        read_data(cx, &mut keys, x.tile(tile));
        read_data(cx, &mut own, values.tile(tile));
        let (valid, first) = (tile.len(), cx.thread_rank() * ITEMS as u32);
        let places: [u32; ITEMS] = core::array::from_fn(|i| first + i as u32);
        let (mut all, mut all_places) = ([keys; 5], [places; 2]);
        block_sort::<ITEMS, TILE, K, O>(cx, &mut alone, &mut all[0], valid, order);
        block_sort_with_index::<ITEMS, TILE, K, O, u32>(
            cx,
            &mut indexed,
            &mut all[1],
            &mut all_places[0],
            valid,
            order,
        );
        block_top_k::<ITEMS, TILE, K, O>(cx, &mut indexed, &mut all[2], &mut all_places[1], valid, k as usize, order);
        block_merge_sort(cx, &mut merged, &mut all[3], valid, order);
        block_merge_sort_pairs(cx, &mut merged_pairs, &mut all[4], &mut own, valid, order);
        write_data(cx, out.tile(tile), &core::array::from_fn::<_, ITEMS, _>(|i| all.map(|keys| keys[i])));
        write_data(cx, places_out.tile(tile), &core::array::from_fn::<_, ITEMS, _>(|i| all_places.map(|own| own[i])));
        write_data(cx, values_out.tile(tile), &own);
    }
}

/// Sorts the segments of one block's tile. `ends` has the beginning and the end of each item's segment.
#[kernel(threads(128))]
pub fn segments_sorted(
    cx: Block,
    x: Global<u32>,
    ends: Global<[u32; 2]>,
    mut out: GlobalMut<u32, Tiles<4>>,
    mut places_out: GlobalMut<u32, Tiles<4>>,
    mut shared: Shared<SegmentedSortStorage<128, 4, u32, u32>>,
) {
    for tile in cx.tiles::<4>(out.len()) {
        let first = cx.thread_rank() * 4;
        let (mut keys, mut own) = (init::<u32, 4>(0), init::<[u32; 2], 4>([0; 2]));
        read_data(cx, &mut keys, x.tile(tile));
        read_data(cx, &mut own, ends.tile(tile));
        let mut places = [first, first + 1, first + 2, first + 3];
        let mut heads = 0;
        for i in 0..4 {
            heads |= ((own[i][0] == places[i]) as u32) << i;
        }
        let valid = tile.len();
        block_segmented_merge_sort_pairs(cx, &mut shared, &mut keys, &mut places, heads, own[0], valid, Less);
        write_data(cx, out.tile(tile), &keys);
        write_data(cx, places_out.tile(tile), &places);
    }
}

/// The first `k` of all keys, by one block: those in memory, those that threads read, and those of sorted sequences.
#[kernel(max_threads(1024), instantiate(<f32, Greater, 4, 512>, <u64, Less, 2, 256>))]
pub fn first_of_all<K, O, const ITEMS: usize, const TILE: usize>(
    cx: Block,
    k: u32,
    x: Global<K>,
    sorted: Global<K>,
    mut out: GlobalMut<[K; 3], Tiles<ITEMS>>,
    mut places_out: GlobalMut<[u32; 3], Tiles<ITEMS>>,
    order: O,
    mut shared: Shared<TopKStorage<K, TILE>>,
) where
    K: SortKey,
    O: Direction,
{
    let (k, round) = (k as usize, cx.block_threads() as usize * ITEMS);
    let rounds = x.len().div_ceil(round);
    let read = |x: Global<'_, K>, round_no: usize| {
        let at = round_no * round + cx.thread_rank() as usize * ITEMS;
        let mut keys = init::<K, ITEMS>(K::ZERO);
        let mut count = 0;
        for (i, key) in keys.iter_mut().enumerate() {
            if let Some(found) = x.get(at + i) {
                *key = found;
                count |= 1 << i;
            }
        }
        (keys, core::array::from_fn::<u32, ITEMS, _>(|i| (at + i) as u32), count)
    };
    let (a, a_places) = block_top_k_of::<ITEMS, TILE, K, O>(cx, &mut shared, x, k, order);
    let (b, b_places) =
        block_top_k_by::<ITEMS, TILE, ITEMS, K, O>(cx, &mut shared, rounds, k, order, |at: usize| read(x, at));
    let (c, c_places) =
        block_top_k_of_sorted::<ITEMS, TILE, ITEMS, K, O>(cx, &mut shared, rounds, k, order, |at: usize| {
            read(sorted, at)
        });
    for tile in cx.tiles::<ITEMS>(out.len()) {
        write_data(cx, out.tile(tile), &core::array::from_fn::<_, ITEMS, _>(|i| [a[i], b[i], c[i]]));
        let places = core::array::from_fn::<_, ITEMS, _>(|i| [a_places[i], b_places[i], c_places[i]]);
        write_data(cx, places_out.tile(tile), &places);
    }
}

/// Sorts the keys of each whole tile by some of their bits: alone and with values, blocked and striped.
#[kernel(threads(THREADS), instantiate(<f32, Three, Less, 128, 4>, <i16, u32, Greater, 64, 3>))]
#[allow(clippy::too_many_arguments, reason = "a kernel's parameters")]
pub fn radix_sorts<K: SortKey, V: Element, O: Direction, const THREADS: usize, const ITEMS: usize>(
    cx: Block,
    begin: u32,
    end: u32,
    x: Global<K>,
    values: Global<V>,
    mut out: GlobalMut<[K; 4], Tiles<ITEMS>>,
    mut values_out: GlobalMut<[V; 2], Tiles<ITEMS>>,
    order: O,
    mut shared: Shared<RadixSortStorage<THREADS, ITEMS, K>>,
    mut shared_pairs: Shared<RadixSortStorage<THREADS, ITEMS, K, V>>,
) {
    for tile in cx.tiles::<ITEMS>(out.len()) {
        let mut keys = init::<K, ITEMS>(K::ZERO);
        let mut own = init::<V, ITEMS>(V::ZERO);
        read_data(cx, &mut keys, x.tile(tile));
        read_data(cx, &mut own, values.tile(tile));
        let ([mut a, mut b, mut c, mut d], [mut v, mut w]) = ([keys; 4], [own; 2]);
        block_radix_sort::<THREADS, ITEMS, K, O>(cx, &mut shared, &mut a, begin..end, order);
        block_radix_sort_to_striped::<THREADS, ITEMS, K, O>(cx, &mut shared, &mut b, begin..end, order);
        block_radix_sort_pairs::<THREADS, ITEMS, K, V, O>(cx, &mut shared_pairs, &mut c, &mut v, begin..end, order);
        block_radix_sort_pairs_to_striped::<THREADS, ITEMS, K, V, O>(
            cx,
            &mut shared_pairs,
            &mut d,
            &mut w,
            begin..end,
            order,
        );
        write_data(cx, out.tile(tile), &core::array::from_fn::<_, ITEMS, _>(|i| [a[i], b[i], c[i], d[i]]));
        write_data(cx, values_out.tile(tile), &core::array::from_fn::<_, ITEMS, _>(|i| [v[i], w[i]]));
    }
}

/// Writes the place of each byte of a tile, and for each digit its number of items and the place of the first one.
#[kernel(threads(256))]
pub fn ranked(
    cx: Block,
    x: Global<u8>,
    mut places: GlobalMut<u32, WarpStriped<4>>,
    mut digits: GlobalMut<[u32; 3]>,
    mut shared: Shared<RadixRankStorage<256>>,
) {
    for (tile, digit) in cx.tiles::<4>(x.len()).zip(cx.items(digits.len())) {
        let mut items = [0u8; 4];
        load_warp_striped(cx, &mut items, x.tile(tile));
        let mut counted = u32::MAX;
        let ranked = block_radix_rank(cx, &mut shared, &items.map(u32::from), |count| counted = count);
        store_striped(cx, places.tile(tile), &ranked.places);
        digits.set(digit, [ranked.count, ranked.start, counted]);
    }
}
