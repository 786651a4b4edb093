//! The kernel of transformations.

use kernel_primitives::functor::Identity;
use kernel_primitives::input::{Constant, Source, Span};
use kernel_primitives::prelude::*;

use super::by_vector;

/// Threads of a block of [`transform_tiles`].
pub const TRANSFORM_THREADS: usize = 256;

/// Vectors that a thread of [`transform_tiles`] has in flight.
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
    let vectors: [Option<[S::Item; N]>; TRANSFORM_VECTORS] = core::array::from_fn(|v| x.items(first + v * stride));
    for (v, items) in vectors.into_iter().enumerate() {
        let first = first + v * stride;
        match items {
            // SAFETY: of all threads of the grid only this one has these places.
            Some(items) => unsafe { out.write_items(first, &elementwise_unary(&items, |item| f.apply(item))) },
            // The end of the input.
            None => {
                for i in first..first + N {
                    if let Some(item) = x.get(i) {
                        // SAFETY: as above.
                        unsafe { out.write(i, f.apply(item)) };
                    }
                }
            }
        }
    }
}
