//! Merge sorts of a warp and a block.

use kernel_primitives::block::{
    MergeSortStorage, block_merge_sort, block_merge_sort_pairs, warp_merge_sort, warp_merge_sort_pairs,
};
use kernel_primitives::functor::{Comparator, Greater, Less};
use kernel_primitives::prelude::*;

use super::warp::of_group;
use super::{Flagged, Sixteen, Twelve};

/// Sorts the pairs of each group of `WIDTH` lanes by a comparator.
#[kernel(max_threads(THREADS), instantiate(
    <f32, u32, Less, 32, 128, 3>, <i32, Sixteen, ByMagnitude, 8, 65, 4>, <u64, u32, Greater, 16, 40, 1>,
))]
pub fn warp_merged<K, V, C, const WIDTH: u32, const THREADS: usize, const ITEMS: usize>(
    cx: Block,
    x: Global<K>,
    values: Global<V>,
    mut out: GlobalMut<K, Tiles<ITEMS>>,
    mut value_out: GlobalMut<V, Tiles<ITEMS>>,
    order: C,
    mut shared: Shared<MergeSortStorage<THREADS, ITEMS, K, V>>,
) where
    K: Element,
    V: Element,
    C: Comparator<K> + KernelParam,
{
    for tile in cx.tiles::<ITEMS>(out.len()) {
        let mut keys = init::<K, ITEMS>(K::ZERO);
        let mut value = init::<V, ITEMS>(V::ZERO);
        read_data(cx, &mut keys, x.tile(tile));
        read_data(cx, &mut value, values.tile(tile));
        let valid = of_group::<WIDTH, ITEMS>(cx, tile.len());
        warp_merge_sort_pairs::<WIDTH, THREADS, ITEMS, K, V, C>(cx, &mut shared, &mut keys, &mut value, valid, order);
        write_data(cx, out.tile(tile), &keys);
        write_data(cx, value_out.tile(tile), &value);
    }
}

/// Sorts the keys of each warp by magnitude.
#[kernel(max_threads(96))]
pub fn warp_merged_keys(
    cx: Block,
    x: Global<i32>,
    mut out: GlobalMut<i32, Tiles<4>>,
    mut shared: Shared<MergeSortStorage<96, 4, i32>>,
) {
    for tile in cx.tiles::<4>(out.len()) {
        let mut keys = init::<i32, 4>(0);
        read_data(cx, &mut keys, x.tile(tile));
        let valid = of_group::<32, 4>(cx, tile.len());
        warp_merge_sort::<32, 96, 4, _, _>(cx, &mut shared, &mut keys, valid, ByMagnitude);
        write_data(cx, out.tile(tile), &keys);
    }
}

/// Works as [`warp_merged_keys`], in blocks that may have another size than the sort's.
#[kernel]
pub fn warp_merged_in_any_block(
    cx: Block,
    x: Global<i32>,
    mut out: GlobalMut<i32, Tiles<4>>,
    mut shared: Shared<MergeSortStorage<48, 4, i32>>,
) {
    for tile in cx.tiles::<4>(out.len()) {
        let mut keys = init::<i32, 4>(0);
        read_data(cx, &mut keys, x.tile(tile));
        warp_merge_sort::<16, 48, 4, _, _>(cx, &mut shared, &mut keys, 64, ByMagnitude);
        write_data(cx, out.tile(tile), &keys);
    }
}

/// Sorts the pairs of each tile by a comparator.
#[kernel(max_threads(THREADS), instantiate(
    <f32, u32, Less, 128, 4>, <i32, Sixteen, ByMagnitude, 65, 3>, <Twelve, u8, ByMiddle, 33, 2>, <u8, u32, Greater, 256, 8>,
    <i64, Flagged, Less, 1, 5>, <bool, u32, Less, 1024, 1>,
))]
pub fn merge_sorted_pairs<K, V, C, const THREADS: usize, const ITEMS: usize>(
    cx: Block,
    x: Global<K>,
    values: Global<V>,
    mut out: GlobalMut<K, Tiles<ITEMS>>,
    mut value_out: GlobalMut<V, Tiles<ITEMS>>,
    order: C,
    mut shared: Shared<MergeSortStorage<THREADS, ITEMS, K, V>>,
) where
    K: Element,
    V: Element,
    C: Comparator<K> + KernelParam,
{
    for tile in cx.tiles::<ITEMS>(out.len()) {
        let mut keys = init::<K, ITEMS>(K::ZERO);
        let mut value = init::<V, ITEMS>(V::ZERO);
        read_data(cx, &mut keys, x.tile(tile));
        read_data(cx, &mut value, values.tile(tile));
        block_merge_sort_pairs(cx, &mut shared, &mut keys, &mut value, tile.len(), order);
        write_data(cx, out.tile(tile), &keys);
        write_data(cx, value_out.tile(tile), &value);
    }
}

/// Sorts the keys of each tile by a comparator.
#[kernel(max_threads(THREADS), instantiate(
    <i32, Less, 128, 8>, <f64, Greater, 256, 4>, <u16, Less, 7, 16>, <i32, ByMagnitude, 48, 1>, <i32, ByMagnitude, 7, 16>, <f64, Greater, 65, 8>,
))]
pub fn merge_sorted<K, C, const THREADS: usize, const ITEMS: usize>(
    cx: Block,
    x: Global<K>,
    mut out: GlobalMut<K, Tiles<ITEMS>>,
    order: C,
    mut shared: Shared<MergeSortStorage<THREADS, ITEMS, K>>,
) where
    K: Element,
    C: Comparator<K> + KernelParam,
{
    for tile in cx.tiles::<ITEMS>(out.len()) {
        let mut keys = init::<K, ITEMS>(K::ZERO);
        read_data(cx, &mut keys, x.tile(tile));
        block_merge_sort(cx, &mut shared, &mut keys, tile.len(), order);
        write_data(cx, out.tile(tile), &keys);
    }
}

/// An order by magnitude, the smaller first. Many different keys are equal in it.
#[derive(Clone, Copy, Debug, KernelParam)]
pub struct ByMagnitude;

impl BinaryFn<i32> for ByMagnitude {
    type Output = bool;
    #[inline(always)]
    fn apply(&self, a: i32, b: i32) -> bool {
        a.unsigned_abs() < b.unsigned_abs()
    }
}

/// An order by the second field only.
#[derive(Clone, Copy, Debug, KernelParam)]
pub struct ByMiddle;

impl BinaryFn<Twelve> for ByMiddle {
    type Output = bool;
    #[inline(always)]
    fn apply(&self, a: Twelve, b: Twelve) -> bool {
        a.b < b.b
    }
}

/// A relation that is not an order, because everything comes before everything.
#[derive(Clone, Copy, Debug, KernelParam)]
pub struct Always;

impl BinaryFn<u32> for Always {
    type Output = bool;
    #[inline(always)]
    fn apply(&self, _: u32, _: u32) -> bool {
        true
    }
}

instantiate!(merge_sorted::<u32, Always, 64, 4>);
