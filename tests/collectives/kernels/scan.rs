//! Scans of a block.

use super::{Compose, Last, Map, Triangular};
use kernel_primitives::functor::LogicalXor;
use kernel_primitives::prelude::*;

/// Computes every form of scan, each to its own output: inclusive, exclusive, both from `initial`, and both after a prefix that is the
/// total. The total itself comes last. With `THREADS`, one warp scans for all.
#[kernel(max_threads(if THREADS == 0 { 1024 } else { THREADS }), instantiate(
    <f32, Add, 1, 0>, <u8, Last, 4, 0>, <i32, Add, 9, 0>, <f64, Max, 2, 0>, <u16, Add, 3, 0>, <f16, Min, 8, 0>,
    <i64, Add, 1, 0>, <Triangular, Compose, 4, 0>, <Map<u64>, Compose, 2, 0>, <[u64; 4], Each<Max>, 1, 0>,
    <f32, Add, 1, 256>, <u8, Last, 4, 1024>, <i32, Add, 9, 512>, <f16, Min, 8, 160>, <i64, Add, 1, 256>,
    <Triangular, Compose, 4, 128>, <[u64; 4], Each<Max>, 1, 64>,
    <i8, Add, 4, 0>, <i16, Min, 2, 0>, <u32, Max, 1, 0>, <u64, Add, 2, 0>, <bf16, Max, 8, 0>, <bool, LogicalXor, 3, 0>,
    <Complex<f32>, Add, 2, 0>, <Complex<f64>, Add, 1, 0>, <bf16, Max, 3, 320>, <Complex<f64>, Add, 2, 320>,
))]
pub fn all_forms<T: Element, R: Reducer<T> + KernelParam, const N: usize, const THREADS: usize>(
    cx: Block,
    initial: T,
    x: Global<T>,
    mut out: GlobalMut<[T; 7], Tiles<N>>,
    op: R,
    mut shared: Shared<ScanStorage<T, THREADS>>,
) {
    for tile in cx.tiles::<N>(out.len()) {
        let mut items = init::<T, N>(T::ZERO);
        read_data(cx, &mut items, x.tile(tile));
        let (inclusive, total) = block_inclusive_scan(cx, &mut shared, &items, op);
        let (exclusive, _) = block_exclusive_scan(cx, &mut shared, &items, op);
        let (inclusive_from, _) = block_inclusive_scan_from(cx, &mut shared, &items, initial, op);
        let inclusive_after = block_inclusive_scan_after(cx, &mut shared, &items, op, |total| total);
        let (exclusive_from, _) = block_exclusive_scan_from(cx, &mut shared, &items, initial, op);
        let exclusive_after = block_exclusive_scan_after(cx, &mut shared, &items, op, |total| total);
        let results: [[T; 7]; N] = core::array::from_fn(|i| {
            [
                inclusive[i],
                exclusive[i],
                inclusive_from[i],
                exclusive_from[i],
                inclusive_after[i],
                exclusive_after[i],
                total,
            ]
        });
        write_data(cx, out.tile(tile), &results);
    }
}

/// Computes the seed's scan, in the striped arrangement.
#[kernel(max_threads(1024), instantiate(<u32, Add, 1>, <u32, Add, 2>, <Triangular, Compose, 3>))]
pub fn striped<T: Element, R: Reducer<T> + KernelParam, const N: usize>(
    cx: Block,
    x: Global<T>,
    mut out: GlobalMut<[T; N]>,
    op: R,
    mut shared: Shared<ScanStorage<[T; N]>>,
) {
    for i in cx.items(out.len()) {
        let (rank, threads) = (cx.thread_rank() as usize, cx.block_threads() as usize);
        let items = core::array::from_fn(|item| x[(i.index() - rank) * N + item * threads + rank]);
        out.set(i, cumsum(cx, &mut shared, items, op));
    }
}

/// Carries a value from tile to tile through the prefix callback, which runs in one warp.
#[kernel]
pub fn carried(cx: Block, x: Global<u32>, mut out: GlobalMut<u32, Tiles<4>>, mut shared: Shared<ScanStorage<u32>>) {
    let mut carry = 0u32;
    for tile in cx.tiles::<4>(out.len()) {
        let mut items = init::<u32, 4>(0);
        read_data(cx, &mut items, x.tile(tile));
        let sums = block_inclusive_scan_after(cx, &mut shared, &items, Add, |total| {
            let before = carry;
            carry = carry.wrapping_add(total);
            before
        });
        write_data(cx, out.tile(tile), &sums);
    }
}

/// Scans in blocks of up to 64 threads.
#[kernel]
pub fn sums_of_64(cx: Block, x: Global<u32>, mut out: GlobalMut<u32>, mut shared: Shared<ScanStorage<u32, 64>>) {
    for i in cx.items(out.len()) {
        let ([sum], _) = block_inclusive_scan(cx, &mut shared, &[x[i]], Add);
        out.set(i, sum);
    }
}

/// Scans −0 in all places. It writes the scan in rounds from the identity, the value before a warp's first lane, the sum of no values, and
/// the sum of values that do not fill the block.
#[kernel]
pub fn zeros(
    cx: Block,
    x: Global<f32>,
    mut out: GlobalMut<[f32; 4]>,
    mut scans: Shared<ScanStorage<f32>>,
    mut sums: Shared<ReduceStorage<f32>>,
) {
    for i in cx.items(out.len()) {
        let items = [[x[2 * i.index()], x[2 * i.index() + 1]]; 2];
        let (rounds, _) = block_inclusive_scan_rounds(cx, &mut scans, &items, Add.identity(), Add);
        let (before, _) = warp_group_exclusive_scan(cx, x[i], Add, 5);
        let none = block_reduce_partial(cx, &mut sums, &items[0], 0, Add);
        let some = block_reduce_partial(cx, &mut sums, &items[0], 37, Add);
        out.set(i, [rounds[1][1], before, none, some]);
    }
}
