//! The kernel of reductions.

use kernel_primitives::functor::Reduction;
use kernel_primitives::grid::Chain;
use kernel_primitives::input::Source;
use kernel_primitives::prelude::*;

use crate::algorithms::tile::by_vector;

/// The number of threads of a block of [`reduce_tiles`](struct@reduce_tiles).
pub const REDUCE_THREADS: usize = 512;

/// The number of vectors that a thread of [`reduce_tiles`](struct@reduce_tiles) has in flight.
pub const REDUCE_VECTORS: usize = 4;

// PTX: reduce_tiles__Span_f32_Sum has 4 loads and 0 stores of 16 bytes.
// PTX: reduce_tiles__Span_f16_Sum has 4 loads and 0 stores of 16 bytes.

/// The kernel of [`algorithms::reduce`](kernel_primitives::algorithms::reduce): reduces `x` to `out`. Each block reduces its share. The
/// block that finishes last also reduces the results of all shares. `chain` has the memory of a [`Chain`] of all blocks of the epoch
/// `epoch`, or is empty if there is one block.
#[kernel(launch(pub(crate)), threads(REDUCE_THREADS), one_dimensional, min_blocks(2))]
pub fn reduce_tiles<S, R>(
    cx: Block,
    x: Input<S>,
    chain: GlobalMut<u64, Atomic>,
    epoch: u32,
    mut out: GlobalMut<R::Output>,
    op: R,
    mut ticket: Shared<[u64; 1]>,
    mut shared: Shared<ReduceStorage<R::Accum>>,
) where
    S: Source,
    R: Reduction<S::Item, Output: Element> + KernelParam,
{
    let chain = Chain::new(cx, &chain, cx.grid_blocks()).epoch(epoch);
    let share = cx.block_rank();
    let total = by_vector!(S, total_of::<S, R; VECTOR>(cx, x, share, &op));
    let mut total = block_reduce_to_first(cx, &mut shared, total, op.reducer());
    if !chain.is_empty() && cx.warp() == 0 {
        chain.announce(share, total.unwrap_or(op.identity()));
    }
    if !chain.arrive(&mut ticket) {
        return;
    }
    if !chain.is_empty() {
        let all = chain.thread_total(&op.reducer());
        total = block_reduce_to_first(cx, &mut shared, all, op.reducer());
    }
    if let Some(total) = total {
        // SAFETY: of all threads of the grid, only the first of one block comes here.
        unsafe { out.write(0, op.post(total, x.len() as u64)) };
    }
}

/// Reduces this thread's part of a share. There are as many shares as blocks. A thread reads `REDUCE_VECTORS` vectors of `N` items at a
/// time.
fn total_of<S: Source, R: Reduction<S::Item>, const N: usize>(
    cx: Block,
    x: Input<S>,
    share: usize,
    op: &R,
) -> R::Accum {
    let mut totals = [op.identity(); N];
    let stride = REDUCE_THREADS * N;
    let tile = stride * REDUCE_VECTORS;
    let own = cx.thread_rank() as usize * N;
    let mut start = share * tile;
    while start < x.len() {
        let first = start + own;
        if let Some(vectors) = x.vectors::<N, REDUCE_VECTORS>(first, stride) {
            for (v, items) in vectors.iter().enumerate() {
                for (i, &item) in items.iter().enumerate() {
                    totals[i] = op.combine(totals[i], op.pre(item, (first + v * stride + i) as u64));
                }
            }
        } else {
            // This is the end of the input.
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
