//! Exchanges between arrangements, and loads and stores in them.

use super::{Flagged, Sixteen, Twelve};
use kernel_primitives::prelude::*;
use kernel_primitives::view::Phases;

/// Writes, for each item, its place in the threads afterwards: striped and back, warp-striped and back, and scattered to blocked and
/// striped by its rank in the tile.
#[kernel(instantiate(
    <f32, 128, 4>, <u8, 65, 16>, <f64, 96, 9>, <u32, 256, 8>, <Twelve, 32, 11>, <f16, 17, 8>, <Sixteen, 64, 2>, <i32, 1, 4>,
    <u32, 64, 16>, <Complex<f64>, 40, 3>, <bool, 96, 5>, <bool, 64, 32>, <Flagged, 33, 4>, <[bool; 3], 20, 3>,
    <u64, 1, 1>, <bf16, 2, 16>, <u64, 7, 4>, <i8, 31, 7>, <u32, 33, 5>, <i16, 100, 6>, <u32, 160, 12>, <u16, 512, 2>,
))]
pub fn exchanged<T: Element, const THREADS: usize, const ITEMS: usize>(
    cx: Block,
    x: Global<T>,
    ranks: Global<u32>,
    mut out: GlobalMut<[T; 6], Tiles<ITEMS>>,
    mut shared: Shared<ExchangeStorage<T, THREADS, ITEMS>>,
) {
    for tile in cx.tiles::<ITEMS>(out.len()) {
        let mut items = init::<T, ITEMS>(T::ZERO);
        read_data(cx, &mut items, x.tile(tile));
        let mut places = init::<u32, ITEMS>(0);
        read_data(cx, &mut places, ranks);
        let striped = blocked_to_striped(cx, &mut shared, &items);
        let from_striped = striped_to_blocked(cx, &mut shared, &striped);
        let warp_striped = blocked_to_warp_striped(cx, &mut shared, &items);
        let from_warp_striped = warp_striped_to_blocked(cx, &mut shared, &warp_striped);
        let blocked = scatter_to_blocked(cx, &mut shared, &items, &places);
        let scattered = scatter_to_striped(cx, &mut shared, &items, &places);
        let results: [[T; 6]; ITEMS] = core::array::from_fn(|i| {
            [striped[i], from_striped[i], warp_striped[i], from_warp_striped[i], blocked[i], scattered[i]]
        });
        write_data(cx, out.tile(tile), &results);
    }
}

/// Keeps the odd items of a tile, in order, at its start. Returns the number of these items.
#[kernel]
pub fn odd_first(
    cx: Block,
    x: Global<u32>,
    mut out: GlobalMut<u32, Striped<3>>,
    mut shared: Shared<ExchangeStorage<u32, 96, 3>>,
    mut scan: Shared<ScanStorage<u32>>,
) {
    for tile in cx.tiles::<3>(out.len()) {
        let mut items = init::<u32, 3>(0);
        read_data(cx, &mut items, x.tile(tile));
        let kept: [u32; 3] = core::array::from_fn(|i| items[i] % 2);
        let (before, count) = block_exclusive_scan(cx, &mut scan, &kept, Add);
        // First, all places get zeros, because a scatter writes only its own places.
        let everywhere = core::array::from_fn(|i| cx.thread_rank() * 3 + i as u32);
        scatter_to_striped(cx, &mut shared, &[0; 3], &everywhere);
        let ranks = core::array::from_fn(|i| if kept[i] == 1 { before[i] } else { u32::MAX });
        let mut compacted = scatter_to_striped(cx, &mut shared, &items, &ranks);
        for (i, item) in compacted.iter_mut().enumerate() {
            if cx.thread_rank() as usize + i * 96 >= count as usize {
                *item = 0;
            }
        }
        store_striped(cx, out.tile(tile), &compacted);
    }
}

/// Writes the tile's items at every other place, striped and blocked. Between them are the old bits of the memory, which are not values.
#[kernel(instantiate(<bool, 64, 2>, <bool, 40, 16>, <Flagged, 32, 4>, <[bool; 3], 20, 3>))]
pub fn scattered_apart<T: Element, const THREADS: usize, const ITEMS: usize>(
    cx: Block,
    x: Global<T>,
    mut out: GlobalMut<[T; 2], Tiles<ITEMS>>,
    mut shared: Shared<Phases<(ExchangeStorage<T, THREADS, ITEMS>, [u8; 1024])>>,
) {
    for tile in cx.tiles::<ITEMS>(out.len()) {
        let mut items = init::<T, ITEMS>(T::ZERO);
        read_data(cx, &mut items, x.tile(tile));
        let first = cx.thread_rank() * ITEMS as u32;
        let ranks: [u32; ITEMS] = core::array::from_fn(|i| (first + i as u32) * 2);
        let [striped, blocked] = [true, false].map(|to_striped| {
            shared.sync();
            let bytes = shared.phase::<[u8; 1024]>();
            let mut i = cx.thread_rank() as usize;
            while i < bytes.len() {
                bytes.set(i, 0xfe);
                i += THREADS;
            }
            shared.sync();
            let storage = shared.phase::<ExchangeStorage<T, THREADS, ITEMS>>();
            if to_striped {
                scatter_to_striped(cx, storage, &items, &ranks)
            } else {
                scatter_to_blocked(cx, storage, &items, &ranks)
            }
        });
        let both: [[T; 2]; ITEMS] = core::array::from_fn(|i| [striped[i], blocked[i]]);
        write_data(cx, out.tile(tile), &both);
    }
}

/// Writes each item and its place in the thread that reads it, striped and warp-striped.
#[kernel(instantiate(<u8, 1>, <f32, 4>, <Twelve, 3>, <f64, 11>))]
pub fn copied<T: Element, const ITEMS: usize>(
    cx: Block,
    x: Global<T>,
    mut striped: GlobalMut<T, Striped<ITEMS>>,
    mut warp_striped: GlobalMut<T, WarpStriped<ITEMS>>,
    mut seen: GlobalMut<[T; 2], Tiles<ITEMS>>,
) {
    for tile in cx.tiles::<ITEMS>(x.len()) {
        let (mut a, mut b) = (init::<T, ITEMS>(T::ZERO), init::<T, ITEMS>(T::ZERO));
        load_striped(cx, &mut a, x.tile(tile));
        load_warp_striped(cx, &mut b, x.tile(tile));
        store_striped(cx, striped.tile(tile), &a);
        store_striped(cx, warp_striped.tile(tile), &b);
        let both: [[T; 2]; ITEMS] = core::array::from_fn(|i| [a[i], b[i]]);
        write_data(cx, seen.tile(tile), &both);
    }
}
