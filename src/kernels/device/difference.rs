//! The kernel of differences.

use kernel_primitives::functor::Sub;
use kernel_primitives::input::{Source, Span};
use kernel_primitives::prelude::*;

use super::by_vector;

/// Threads of a block of [`difference_tiles`].
pub const DIFFERENCE_THREADS: usize = 256;

/// Vectors that a thread of [`difference_tiles`] has in flight.
pub const DIFFERENCE_VECTORS: usize = 4;

/// The kernel of [`algorithms::adjacent_difference`](kernel_primitives::algorithms::adjacent_difference): `out[i] = f(x[i], x[i - 1])`,
/// and `out[0] = x[0]`; a tile a block.
#[kernel(threads(DIFFERENCE_THREADS), instantiate(<Span<f32>, Sub>, <Span<f64>, Sub>, <Span<i32>, Sub>, <Span<u32>, Sub>))]
pub fn difference_tiles<S, F>(cx: Block, x: Input<S>, mut out: GlobalMut<S::Item>, f: F)
where
    S: Source<Item: Element>,
    F: BinaryFn<S::Item, Output = S::Item> + KernelParam,
{
    by_vector!(S, tile::<S, F; VECTOR>(cx, x, &mut out, &f));
}

#[inline(always)]
fn tile<S, F, const N: usize>(cx: Block, x: Input<S>, out: &mut GlobalMut<S::Item>, f: &F)
where
    S: Source<Item: Element>,
    F: BinaryFn<S::Item, Output = S::Item>,
{
    let stride = DIFFERENCE_THREADS * N;
    let first = cx.block_rank() * (stride * DIFFERENCE_VECTORS) + cx.thread_rank() as usize * N;
    let vectors: [Option<[S::Item; N]>; DIFFERENCE_VECTORS] = core::array::from_fn(|v| x.items(first + v * stride));
    // The item before: another lane has read it, so that it is in the cache next to the multiprocessor.
    let before: [Option<S::Item>; DIFFERENCE_VECTORS] =
        core::array::from_fn(|v| x.get((first + v * stride).wrapping_sub(1)));
    let difference = |item, before| match before {
        Some(before) => f.apply(item, before),
        None => item,
    };
    for (v, items) in vectors.into_iter().enumerate() {
        let first = first + v * stride;
        match items {
            Some(items) => {
                let differences: [S::Item; N] =
                    core::array::from_fn(|i| difference(items[i], if i == 0 { before[v] } else { Some(items[i - 1]) }));
                // SAFETY: of all threads of the grid only this one has these places.
                unsafe { out.write_items(first, &differences) };
            }
            // The end of the input.
            None => {
                for i in first..first + N {
                    if let Some(item) = x.get(i) {
                        // SAFETY: as above.
                        unsafe { out.write(i, difference(item, x.get(i.wrapping_sub(1)))) };
                    }
                }
            }
        }
    }
}
