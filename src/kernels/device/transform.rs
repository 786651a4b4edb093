//! The kernel of transformations.

use kernel_primitives::functor::Identity;
use kernel_primitives::input::{Constant, Source, Span};
use kernel_primitives::prelude::*;

use super::by_vector;

/// Threads of a block of [`transform_tiles`](struct@transform_tiles).
pub const TRANSFORM_THREADS: usize = 256;

/// Vectors that a thread of [`transform_tiles`](struct@transform_tiles) has in flight.
pub const TRANSFORM_VECTORS: usize = 4;

/// The kernel of [`algorithms::transform`](kernel_primitives::algorithms::transform): `out[i] = f(x[i])`, a tile a block.
#[kernel(threads(TRANSFORM_THREADS), instantiate(
    <Constant<u64>, Identity>, <Constant<u32>, Identity>, <Constant<f32>, Identity>, <Constant<f64>, Identity>, <Constant<u8>, Identity>,
    <Span<f32>, Identity>,
))]
pub fn transform_tiles<S, F>(cx: Block, x: Input<S>, mut out: GlobalMut<F::Output>, f: F)
where
    S: Source,
    F: UnaryFn<S::Item, Output: Element> + KernelParam,
{
    by_vector!(S, tile::<S, F; VECTOR>(cx, x, &mut out, &f));
}

#[inline(always)]
fn tile<S, F, const N: usize>(cx: Block, x: Input<S>, out: &mut GlobalMut<F::Output>, f: &F)
where
    S: Source,
    F: UnaryFn<S::Item, Output: Element>,
{
    let stride = TRANSFORM_THREADS * N;
    let first = cx.block_rank() * (stride * TRANSFORM_VECTORS) + cx.thread_rank() as usize * N;
    if let Some(vectors) = x.vectors::<N, TRANSFORM_VECTORS>(first, stride) {
        for (v, items) in vectors.iter().enumerate() {
            // SAFETY: of all threads of the grid only this one has these places.
            unsafe { out.write_items(first + v * stride, &elementwise_unary(items, |item| f.apply(item))) };
        }
    } else {
        // The end of the input.
        for v in 0..TRANSFORM_VECTORS {
            for i in 0..N {
                let index = first + v * stride + i;
                if let Some(item) = x.get(index) {
                    // SAFETY: as above.
                    unsafe { out.write(index, f.apply(item)) };
                }
            }
        }
    }
}
