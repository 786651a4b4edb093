//! The kernel of reductions.

use kernel_primitives::functor::{ArgMax, ArgMin, MaxOf, Mean, MinOf, Reduction, Sum};
use kernel_primitives::input::{Source, Span};
use kernel_primitives::prelude::*;

use super::by_vector;

/// Threads of a block of [`reduce_tiles`](struct@reduce_tiles).
pub const REDUCE_THREADS: usize = 128;

/// Vectors that a thread of [`reduce_tiles`](struct@reduce_tiles) has in flight.
pub const REDUCE_VECTORS: usize = 4;

/// The kernel of [`algorithms::reduce`](kernel_primitives::algorithms::reduce): reduces `x`, or `parts` if there are any; to one
/// of `partials` a block, or to `out` if there are none.
#[kernel(threads(REDUCE_THREADS), min_blocks(8), instantiate(
    <Span<f32>, Sum>, <Span<f64>, Sum>, <Span<f16>, Sum>, <Span<bf16>, Sum>, <Span<i32>, Sum>, <Span<u32>, Sum>, <Span<i64>, Sum>, <Span<u64>, Sum>,
    <Span<f32>, MinOf>, <Span<f32>, MaxOf>, <Span<f64>, MinOf>, <Span<f64>, MaxOf>, <Span<i32>, MinOf>, <Span<i32>, MaxOf>,
    <Span<f32>, ArgMin>, <Span<f32>, ArgMax>, <Span<i32>, ArgMin>, <Span<i32>, ArgMax>, <Span<f32>, Mean>, <Span<f64>, Mean>,
))]
pub fn reduce_tiles<S, R>(
    cx: Block,
    x: Input<S>,
    parts: Global<R::Accum>,
    mut partials: GlobalMut<R::Accum, PerBlock>,
    mut out: GlobalMut<R::Output>,
    op: R,
    mut shared: Shared<ReduceStorage<R::Accum, REDUCE_THREADS>>,
) where
    S: Source,
    R: Reduction<S::Item, Output: Element> + KernelParam,
{
    let mut total = op.identity();
    if parts.is_empty() {
        total = by_vector!(S, total_of::<S, R; VECTOR>(cx, x, &op));
    }
    let mut at = cx.thread_rank() as usize;
    while let Some(part) = parts.get(at) {
        total = op.combine(total, part);
        at += REDUCE_THREADS;
    }
    let total = kernel_primitives::block::block_reduce(cx, &mut shared, total, op.reducer());
    if !partials.is_empty() {
        partials.store(total);
    } else if cx.thread_rank() == 0 {
        // SAFETY: of all threads of the grid, which is one block, only the first writes.
        unsafe { out.write(0, op.post(total, x.len() as u64)) };
    }
}

/// This thread's share: of each of the block's tiles, `REDUCE_VECTORS` vectors of `N` items.
#[inline(always)]
fn total_of<S: Source, R: Reduction<S::Item>, const N: usize>(cx: Block, x: Input<S>, op: &R) -> R::Accum {
    let mut totals = [op.identity(); N];
    let stride = REDUCE_THREADS * N;
    let tile = stride * REDUCE_VECTORS;
    let own = cx.thread_rank() as usize * N;
    let mut start = cx.block_rank() * tile;
    while start < x.len() {
        let first = start + own;
        if let Some(vectors) = x.vectors::<N, REDUCE_VECTORS>(first, stride) {
            for (v, items) in vectors.iter().enumerate() {
                for (i, &item) in items.iter().enumerate() {
                    totals[i] = op.combine(totals[i], op.pre(item, (first + v * stride + i) as u64));
                }
            }
        } else {
            // The end of the input.
            for v in 0..REDUCE_VECTORS {
                let first = first + v * stride;
                if let Some(items) = x.items::<N>(first) {
                    for (i, &item) in items.iter().enumerate() {
                        totals[i] = op.combine(totals[i], op.pre(item, (first + i) as u64));
                    }
                } else {
                    for (i, total) in totals.iter_mut().enumerate() {
                        if let Some(item) = x.get(first + i) {
                            *total = op.combine(*total, op.pre(item, (first + i) as u64));
                        }
                    }
                }
            }
        }
        start += cx.grid_blocks() * tile;
    }
    thread_reduce(op.identity(), &totals, op.reducer())
}
