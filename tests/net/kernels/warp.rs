//! Collectives of a warp.

use kernel_primitives::block::{MergeSortStorage, warp_merge_sort, warp_merge_sort_pairs};
use kernel_primitives::functor::{Direction, Greater, Less, LogicalXor};
use kernel_primitives::prelude::*;
use kernel_primitives::warp::{warp_sort, warp_sort_pairs, warp_sort_with_index};

use super::{Compose, Latest, Map, Three, Twelve};

/// Of each thread: its warp's reduction, inclusive and exclusive scan, that after a value, and total; the same of its group,
/// its segment by heads and by tails, and a lane's value.
#[kernel(max_threads(1024), instantiate(<f32, Add>, <Three, Latest>, <Map<u64>, Compose>, <bool, LogicalXor>))]
#[allow(clippy::too_many_arguments, reason = "a kernel's parameters")]
pub fn warp_forms<T: Element, R: Reducer<T> + KernelParam>(
    cx: Block,
    width: u32,
    source: u32,
    initial: T,
    flags: Global<bool>,
    x: Global<T>,
    mut out: GlobalMut<[T; 12]>,
    op: R,
) {
    for i in cx.items(out.len()) {
        let (value, flag) = (x[i], flags[i]);
        let (exclusive, total) = warp_exclusive_scan(cx, value, op);
        let (after, _) = warp_exclusive_scan_from(cx, value, initial, op);
        let (of_group, group_total) = warp_group_exclusive_scan(cx, value, op, width);
        let forms = [
            warp_reduce(cx, value, op),
            warp_inclusive_scan(cx, value, op),
            exclusive,
            after,
            total,
            warp_group_reduce(cx, value, op, width),
            warp_group_inclusive_scan(cx, value, op, width),
            of_group,
            group_total,
            warp_reduce_by_heads(cx, value, flag, op),
            warp_reduce_by_tails(cx, value, flag, op),
            warp_broadcast(cx, value, source),
        ];
        out.set(i, forms);
    }
}

/// The keys of each group of `WIDTH` lanes, sorted by a network, that with places, with values, by merges, and with values.
#[kernel(max_threads(THREADS), instantiate(<f32, Twelve, Greater, 32, 96, 4>, <u8, u32, Less, 8, 65, 2>))]
#[allow(clippy::too_many_arguments, reason = "a kernel's parameters")]
pub fn warp_sorts<K, V, O, const WIDTH: u32, const THREADS: usize, const ITEMS: usize>(
    cx: Block,
    x: Global<K>,
    values: Global<V>,
    mut out: GlobalMut<[K; 5], Tiles<ITEMS>>,
    mut places_out: GlobalMut<u32, Tiles<ITEMS>>,
    mut values_out: GlobalMut<[V; 2], Tiles<ITEMS>>,
    order: O,
    mut shared: Shared<MergeSortStorage<THREADS, ITEMS, K>>,
    mut shared_pairs: Shared<MergeSortStorage<THREADS, ITEMS, K, V>>,
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
        // These are the tile's positions in this lane's group.
        let first = (cx.thread_rank() & !(WIDTH - 1)) as usize * ITEMS;
        let valid = tile.len().saturating_sub(first).min(WIDTH as usize * ITEMS);
        let (mut all, mut all_values) = ([keys; 5], [own; 2]);
        let own = cx.thread_rank() * ITEMS as u32;
        let mut places: [u32; ITEMS] = core::array::from_fn(|i| own + i as u32);
        warp_sort::<WIDTH, ITEMS, K, O>(cx, &mut all[0], valid, order);
        warp_sort_with_index::<WIDTH, ITEMS, K, O, u32>(cx, &mut all[1], &mut places, valid, order);
        warp_sort_pairs::<WIDTH, ITEMS, K, V, O>(cx, &mut all[2], &mut all_values[0], valid, order);
        warp_merge_sort::<WIDTH, THREADS, ITEMS, K, O>(cx, &mut shared, &mut all[3], valid, order);
        let [_, merged] = &mut all_values;
        warp_merge_sort_pairs::<WIDTH, THREADS, ITEMS, K, V, O>(
            cx,
            &mut shared_pairs,
            &mut all[4],
            merged,
            valid,
            order,
        );
        write_data(cx, out.tile(tile), &core::array::from_fn::<_, ITEMS, _>(|i| all.map(|keys| keys[i])));
        write_data(cx, places_out.tile(tile), &places);
        write_data(cx, values_out.tile(tile), &core::array::from_fn::<_, ITEMS, _>(|i| all_values.map(|own| own[i])));
    }
}
