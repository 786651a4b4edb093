//! Reductions of a block.

use super::{Compose, Last, Map, Triangular};
use kernel_primitives::functor::LogicalXor;
use kernel_primitives::prelude::*;
use kernel_primitives::view::Phases;

/// Writes for each thread: the block's reduction, the first thread's (the value itself in other threads), its group's and its column's.
#[kernel(max_threads(1024), instantiate(
    <f32, Add>, <u8, Last>, <i32, Min>, <f64, Max>, <u16, Add>, <f16, Min>, <i64, Add>, <Triangular, Compose>,
    <Map<u64>, Compose>, <[u64; 4], Each<Max>>, <i8, Min>, <i16, Max>, <u64, Add>, <bf16, Max>, <bool, LogicalXor>,
    <Complex<f32>, Add>, <Complex<f64>, Add>,
))]
pub fn all_forms<T: Element, R: Reducer<T> + KernelParam>(
    cx: Block,
    width: u32,
    x: Global<T>,
    mut out: GlobalMut<[T; 4]>,
    op: R,
    mut shared: Shared<ReduceStorage<T>>,
    mut columns: Shared<ColumnStorage<T>>,
) {
    for i in cx.items(out.len()) {
        let first = block_reduce_to_first(cx, &mut shared, x[i], op).unwrap_or(x[i]);
        let block = block_reduce(cx, &mut shared, x[i], op);
        let group = block_group_reduce(cx, &mut shared, x[i], op, width);
        let column = block_y_reduce(cx, &mut columns, x[i], op);
        out.set(i, [block, first, group, column]);
    }
}

/// Writes only the reductions of groups of `width` threads.
#[kernel(max_threads(1024), instantiate(<i32, Add>, <f64, Max>, <u8, Last>, <[u64; 4], Each<Max>>))]
pub fn in_groups<T: Element, R: Reducer<T> + KernelParam>(
    cx: Block,
    width: u32,
    x: Global<T>,
    mut out: GlobalMut<T>,
    op: R,
    mut shared: Shared<ReduceStorage<T>>,
) {
    for i in cx.items(out.len()) {
        out.set(i, block_group_reduce(cx, &mut shared, x[i], op, width));
    }
}

/// Writes the block's reduction and the first thread's (the value itself in other threads). One warp computes it for all, twice, and beside
/// a scan in the same memory.
#[kernel(max_threads(THREADS), instantiate(
    <f32, Add, 256>, <u8, Last, 1024>, <i32, Min, 512>, <f64, Max, 128>, <f16, Min, 160>, <i64, Add, 256>,
    <Triangular, Compose, 100>, <[u64; 4], Each<Max>, 64>,
))]
pub fn by_one_warp<T: Element, R: Reducer<T> + KernelParam, const THREADS: usize>(
    cx: Block,
    x: Global<T>,
    mut out: GlobalMut<[T; 5]>,
    op: R,
    mut shared: Shared<Phases<(ReduceStorage<T, THREADS>, ScanStorage<T, THREADS>)>>,
) {
    for i in cx.items(out.len()) {
        let block = block_reduce(cx, shared.phase::<ReduceStorage<T, THREADS>>(), x[i], op);
        let (_, total) = block_inclusive_scan(cx, shared.phase::<ScanStorage<T, THREADS>>(), &[x[i]], op);
        let first = block_reduce_to_first(cx, shared.phase::<ReduceStorage<T, THREADS>>(), x[i], op).unwrap_or(x[i]);
        let second = block_reduce_to_first(cx, shared.phase::<ReduceStorage<T, THREADS>>(), x[i], op).unwrap_or(x[i]);
        let again = block_reduce(cx, shared.phase::<ReduceStorage<T, THREADS>>(), x[i], op);
        out.set(i, [block, total, first, second, again]);
    }
}

/// Writes the reduction of the first `valid` items of each block's tile.
#[kernel(instantiate(<f32, Add, 1>, <u8, Last, 4>, <Triangular, Compose, 9>, <i32, Max, 11>))]
pub fn partial_tiles<T: Element, R: Reducer<T> + KernelParam, const N: usize>(
    cx: Block,
    valid: u64,
    x: Global<T>,
    mut out: GlobalMut<T, PerBlock>,
    op: R,
    mut shared: Shared<ReduceStorage<T>>,
) {
    let tile = cx.block_threads() as usize * N;
    let start = cx.block_rank() * tile;
    let mut items = init::<T, N>(T::ZERO);
    read_data(cx, &mut items, x.slice(start..start + tile));
    let total = block_reduce_partial(cx, &mut shared, &items, valid as usize, op);
    out.store(total);
}

/// Reduces several items for each thread: along `x` and along `y`, each item by itself.
#[kernel(instantiate(<u32, Add, 2>, <f16, Max, 3>))]
pub fn item_by_item<T: Element, R: Reducer<T> + KernelParam, const N: usize>(
    cx: Block,
    x: Global<[T; N]>,
    mut along_x: GlobalMut<[T; N]>,
    mut along_y: GlobalMut<[T; N]>,
    op: R,
    mut shared: Shared<ReduceStorage<[T; N]>>,
    mut columns: Shared<ColumnStorage<[T; N]>>,
) {
    for i in cx.items(along_x.len()) {
        along_x.set(i, block_x_reduce(cx, &mut shared, x[i], Each(op)));
        along_y.set(i, block_y_reduce(cx, &mut columns, x[i], Each(op)));
    }
}
