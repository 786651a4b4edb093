//! Reductions and scans of a block.

use kernel_primitives::block::{
    block_exclusive_scan_rounds, block_exclusive_scan_rounds_after, block_inclusive_scan_rounds,
};
use kernel_primitives::prelude::*;

use super::{Compose, Latest, Map, Three};

/// Of each thread: the block's reduction, the first thread's (its value elsewhere), that of all items and of the first
/// `valid`, its row's, its group's and its column's.
#[kernel(max_threads(1024), instantiate(<f32, Add, 0>, <i32, Min, 0>, <Three, Latest, 0>, <Map<u64>, Compose, 256>))]
#[allow(clippy::too_many_arguments, reason = "a kernel's parameters")]
pub fn block_reductions<T: Element, R: Reducer<T> + KernelParam, const THREADS: usize>(
    cx: Block,
    width: u32,
    valid: u32,
    x: Global<[T; 3]>,
    mut out: GlobalMut<[T; 7]>,
    op: R,
    mut shared: Shared<ReduceStorage<T, THREADS>>,
    mut rows: Shared<ReduceStorage<T>>,
    mut columns: Shared<ColumnStorage<T>>,
) {
    for i in cx.items(out.len()) {
        let items = x[i];
        let value = items[0];
        let forms = [
            block_reduce(cx, &mut shared, value, op),
            block_reduce_to_first(cx, &mut shared, value, op).unwrap_or(value),
            block_reduce_items(cx, &mut shared, &items, op),
            block_reduce_partial(cx, &mut shared, &items, valid as usize, op),
            block_x_reduce(cx, &mut rows, value, op),
            block_group_reduce(cx, &mut rows, value, op, width),
            block_y_reduce(cx, &mut columns, value, op),
        ];
        out.set(i, forms);
    }
}

/// Of each item: the scans, from a value, after the total, and the total; and of other arrangements the striped one's scan and
/// those in rounds.
#[kernel(max_threads(1024), instantiate(<f32, Add, 0>, <Three, Latest, 0>, <Map<u64>, Compose, 256>))]
pub fn block_scans<T: Element, R: Reducer<T> + KernelParam, const THREADS: usize>(
    cx: Block,
    initial: T,
    x: Global<T>,
    mut out: GlobalMut<[T; 11], Tiles<4>>,
    op: R,
    mut shared: Shared<ScanStorage<T, THREADS>>,
    mut striped: Shared<ScanStorage<[T; 4]>>,
    mut rounds: Shared<ScanStorage<T>>,
) {
    let (rank, threads) = (cx.thread_rank() as usize, cx.block_threads() as usize);
    for tile in cx.tiles::<4>(out.len()) {
        let from = x.tile(tile);
        let mut items = init::<T, 4>(T::ZERO);
        read_data(cx, &mut items, from);
        let (inclusive, total) = block_inclusive_scan(cx, &mut shared, &items, op);
        let (exclusive, _) = block_exclusive_scan(cx, &mut shared, &items, op);
        let (inclusive_from, _) = block_inclusive_scan_from(cx, &mut shared, &items, initial, op);
        let (exclusive_from, _) = block_exclusive_scan_from(cx, &mut shared, &items, initial, op);
        let inclusive_after = block_inclusive_scan_after(cx, &mut shared, &items, op, |total| total);
        let exclusive_after = block_exclusive_scan_after(cx, &mut shared, &items, op, |total| total);
        let at = |place: usize| from.get(place).unwrap_or(T::ZERO);
        let in_stripes = cumsum(cx, &mut striped, core::array::from_fn(|i| at(i * threads + rank)), op);
        // Two rounds of two items.
        let (warp, lanes) = (rank - cx.lane() as usize, cx.warp_lanes() as usize);
        let place = |round: usize, item: usize| warp * 4 + (round * lanes + cx.lane() as usize) * 2 + item;
        let own: [[T; 2]; 2] = core::array::from_fn(|r| core::array::from_fn(|i| at(place(r, i))));
        let (inclusive_rounds, _) = block_inclusive_scan_rounds(cx, &mut rounds, &own, initial, op);
        let (exclusive_rounds, _) = block_exclusive_scan_rounds(cx, &mut rounds, &own, initial, op);
        let rounds_after = block_exclusive_scan_rounds_after(cx, &mut rounds, &own, op, |total| total);
        let results: [[T; 11]; 4] = core::array::from_fn(|i| {
            [
                inclusive[i],
                exclusive[i],
                inclusive_from[i],
                exclusive_from[i],
                inclusive_after[i],
                exclusive_after[i],
                total,
                in_stripes[i],
                inclusive_rounds[i / 2][i % 2],
                exclusive_rounds[i / 2][i % 2],
                rounds_after[i / 2][i % 2],
            ]
        });
        write_data(cx, out.tile(tile), &results);
    }
}
