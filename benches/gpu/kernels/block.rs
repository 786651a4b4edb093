//! Collectives of a block, round after round on the same items, each round's input made of the last one's result.

use kernel_primitives::prelude::*;

/// A reduction whose result only the first thread gets. `zero` is 0, which the compiler does not know.
#[kernel(threads(THREADS), min_blocks(2048 / THREADS), instantiate(
    <f32, 128, 4>, <f32, 128, 8>, <i32, 128, 4>, <i32, 128, 8>, <f32, 256, 4>, <f32, 256, 8>, <i32, 256, 4>, <i32, 256, 8>,
))]
pub fn reduce_to_first<T: Number, const THREADS: usize, const N: usize>(
    cx: Block,
    rounds: u32,
    zero: T,
    x: Global<T>,
    mut out: GlobalMut<T, Tiles<N>>,
    mut shared: Shared<ReduceStorage<T, THREADS>>,
) where
    Add: Reducer<T>,
{
    // One tile a block, as on the peer's side.
    if let Some(tile) = cx.tiles::<N>(out.len()).next() {
        let mut items = init::<T, N>(T::ZERO);
        read_data(cx, &mut items, x.tile(tile));
        let mut total = None;
        let mut round = 0;
        while round < rounds {
            round += 1;
            total = block_reduce_items_to_first(cx, &mut shared, &items, Add);
            if let Some(total) = total {
                items[0] = items[0].add(total.mul(zero));
            }
        }
        items[0] = total.unwrap_or(items[0]);
        write_data(cx, out.tile(tile), &items);
    }
}

/// A reduction whose result all threads get.
#[kernel(threads(THREADS), min_blocks(2048 / THREADS), instantiate(
    <f32, 128, 4>, <f32, 128, 8>, <i32, 128, 4>, <i32, 128, 8>, <f32, 256, 4>, <f32, 256, 8>, <i32, 256, 4>, <i32, 256, 8>,
))]
pub fn reduce<T: Number, const THREADS: usize, const N: usize>(
    cx: Block,
    rounds: u32,
    zero: T,
    x: Global<T>,
    mut out: GlobalMut<T, Tiles<N>>,
    mut shared: Shared<ReduceStorage<T, THREADS>>,
) where
    Add: Reducer<T>,
{
    // One tile a block, as on the peer's side.
    if let Some(tile) = cx.tiles::<N>(out.len()).next() {
        let mut items = init::<T, N>(T::ZERO);
        read_data(cx, &mut items, x.tile(tile));
        let mut total = T::ZERO;
        let mut round = 0;
        while round < rounds {
            round += 1;
            total = block_reduce_items(cx, &mut shared, &items, Add);
            items[0] = items[0].add(total.mul(zero));
        }
        items[0] = total;
        write_data(cx, out.tile(tile), &items);
    }
}

/// A scan, its results scaled so that they stay small.
#[kernel(threads(THREADS), min_blocks(2048 / THREADS), instantiate(
    <f32, 128, 4>, <f32, 128, 8>, <i32, 128, 4>, <i32, 128, 8>, <f32, 256, 4>, <f32, 256, 8>, <i32, 256, 4>, <i32, 256, 8>,
))]
pub fn scan<T: Number, const THREADS: usize, const N: usize>(
    cx: Block,
    rounds: u32,
    scale: T,
    x: Global<T>,
    mut out: GlobalMut<T, Tiles<N>>,
    mut shared: Shared<ScanStorage<T, THREADS>>,
) where
    Add: Reducer<T>,
{
    // One tile a block, as on the peer's side.
    if let Some(tile) = cx.tiles::<N>(out.len()).next() {
        let mut items = init::<T, N>(T::ZERO);
        read_data(cx, &mut items, x.tile(tile));
        let mut round = 0;
        while round < rounds {
            round += 1;
            let (sums, _) = block_inclusive_scan(cx, &mut shared, &items, Add);
            items = core::array::from_fn(|i| sums[i].mul(scale));
        }
        write_data(cx, out.tile(tile), &items);
    }
}
