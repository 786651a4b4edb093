//! Collectives of a warp.

use super::{Compose, Last, Map, Triangular, Twelve};
use kernel_primitives::functor::LogicalXor;
use kernel_primitives::prelude::*;

/// Writes for each thread: its group's reduction, its inclusive and exclusive scan there, and the group's total.
#[kernel(instantiate(
    <f32, Add>, <u32, Max>, <i32, Add>, <u8, Last>, <i64, Min>, <f64, Add>, <f16, Max>, <u16, Add>, <Triangular, Compose>,
    <Map<u64>, Compose>, <[u64; 4], Each<Add>>, <i8, Min>, <i16, Max>, <u64, Add>, <bf16, Max>, <bool, LogicalXor>,
    <Complex<f32>, Add>, <Complex<f64>, Add>,
))]
pub fn groups<T: Element, R: Reducer<T> + KernelParam>(
    cx: Block,
    width: u32,
    x: Global<T>,
    mut out: GlobalMut<[T; 4]>,
    op: R,
) {
    for i in cx.items(out.len()) {
        let reduced = warp_group_reduce(cx, x[i], op, width);
        let inclusive = warp_group_inclusive_scan(cx, x[i], op, width);
        let (exclusive, total) = warp_group_exclusive_scan(cx, x[i], op, width);
        out.set(i, [reduced, inclusive, exclusive, total]);
    }
}

/// Writes for each thread: the warp's inclusive and exclusive scan, the exclusive scan from 3, and the total.
#[kernel(instantiate(<i32, Add>, <Triangular, Compose>))]
pub fn warps_scanned<T: Element, R: Reducer<T> + KernelParam>(
    cx: Block,
    initial: T,
    x: Global<T>,
    mut out: GlobalMut<[T; 4]>,
    op: R,
) {
    for i in cx.items(out.len()) {
        let (exclusive, total) = warp_exclusive_scan(cx, x[i], op);
        let (from, same_total) = warp_exclusive_scan_from(cx, x[i], initial, op);
        let inclusive = warp_inclusive_scan(cx, x[i], op);
        let _ = same_total;
        out.set(i, [inclusive, exclusive, from, total]);
    }
}

/// Writes the same with a width that the compiler knows.
#[kernel(instantiate(<1>, <2>, <7>, <16>, <32>))]
pub fn groups_of<const WIDTH: u32>(cx: Block, x: Global<f32>, mut out: GlobalMut<f32>) {
    for i in cx.items(out.len()) {
        out.set(i, warp_group_reduce(cx, x[i], Add, WIDTH));
    }
}

/// Writes for each thread: its segment's reduction by heads, and by tails.
#[kernel(instantiate(<u32, Add>, <u8, Last>, <Triangular, Compose>))]
pub fn segments<T: Element, R: Reducer<T> + KernelParam>(
    cx: Block,
    flags: Global<u8>,
    x: Global<T>,
    mut out: GlobalMut<[T; 2]>,
    op: R,
) {
    for i in cx.items(out.len()) {
        let flag = flags[i] != 0;
        out.set(i, [warp_reduce_by_heads(cx, x[i], flag, op), warp_reduce_by_tails(cx, x[i], flag, op)]);
    }
}

/// Writes the value of one lane.
#[kernel(instantiate(<u8>, <Twelve>, <[Twelve; 3]>, <bool>))]
pub fn broadcast<T: Element>(cx: Block, source: u32, x: Global<T>, mut out: GlobalMut<T>) {
    for i in cx.items(out.len()) {
        out.set(i, warp_broadcast(cx, x[i], source));
    }
}
