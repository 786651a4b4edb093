//! Collectives of a block.

use super::{Compose, Last, Map, Triangular};
use kernel_primitives::prelude::*;

/// Each thread's result of reducing its block's values, round after round with the same storage.
#[kernel(max_threads(1024), instantiate(
    <f32, Add>, <f64, Mul>, <f16, Max>, <bf16, Min>, <i32, Min>, <i32, Add>, <u32, Max>, <u32, Mul>, <u8, Add>, <i64, Max>,
    <f64, Min>, <u8, Last>, <Map<u32>, Compose>, <Map<u64>, Compose>, <Triangular, Compose>,
))]
pub fn block_reduced<T: Element, R: Reducer<T> + KernelParam>(
    cx: Block,
    x: Global<T>,
    mut out: GlobalMut<T>,
    op: R,
    mut shared: Shared<ReduceStorage<T>>,
) {
    for i in cx.items(out.len()) {
        out.set(i, block_reduce(cx, &mut shared, x[i], op));
    }
}

/// Each thread's result of reducing its row's values, round after round with the same storage.
#[kernel(max_threads(1024), instantiate(
    <f32, Add>, <f64, Mul>, <f16, Max>, <bf16, Min>, <i32, Min>, <i32, Add>, <u32, Max>, <u32, Mul>, <u8, Add>, <i64, Max>,
    <f64, Min>, <u8, Last>, <Map<u32>, Compose>, <Map<u64>, Compose>, <Triangular, Compose>,
))]
pub fn rows_reduced<T: Element, R: Reducer<T> + KernelParam>(
    cx: Block,
    x: Global<T>,
    mut out: GlobalMut<T>,
    op: R,
    mut shared: Shared<ReduceStorage<T>>,
) {
    for i in cx.items(out.len()) {
        out.set(i, block_x_reduce(cx, &mut shared, x[i], op));
    }
}

/// Both collectives by turns on one storage, a second storage, and an explicit [`Shared::sync`] in between: the block's
/// sum, its row's maximum, the block's composition, the block's sum again.
#[kernel(max_threads(1024))]
pub fn mixed_reductions(
    cx: Block,
    x: Global<u32>,
    mut out: GlobalMut<[u32; 4]>,
    mut shared: Shared<ReduceStorage<u32>>,
    mut maps: Shared<ReduceStorage<Map<u32>>>,
) {
    for i in cx.items(out.len()) {
        let sum = block_reduce(cx, &mut shared, x[i], Add);
        let largest = block_x_reduce(cx, &mut shared, x[i], Max);
        let map = block_reduce(cx, &mut maps, Map { a: x[i] | 1, b: x[i] }, Compose);
        shared.sync();
        let again = block_reduce(cx, &mut shared, x[i], Add);
        out.set(i, [sum, largest, map.a ^ map.b, again]);
    }
}
