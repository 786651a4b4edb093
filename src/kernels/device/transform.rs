//! The kernel of transformations.

use kernel_primitives::functor::Identity;
use kernel_primitives::input::{Constant, Counting, Permutation, Source, Span};
use kernel_primitives::prelude::*;

use super::{by_vector, first_of_warp, warp_items};

/// Vectors that a thread of [`transform_tiles`](struct@transform_tiles) has in flight.
pub const TRANSFORM_VECTORS: usize = 4;

/// The kernel of [`algorithms::transform`](kernel_primitives::algorithms::transform): `out[i] = f(x[i])`, [`warp_items`](super::warp_items) a warp,
/// in blocks of any shape.
#[kernel(max_threads(1024), min_blocks(1), instantiate(
    <Constant<u64>, Identity>, <Constant<u32>, Identity>, <Constant<f32>, Identity>, <Constant<f64>, Identity>, <Constant<u8>, Identity>,
    <Span<f32>, Identity>, <Span<u32>, Identity>, <Counting<u32>, Identity>, <Counting<u64>, Identity>,
    <Permutation<Span<f32>, Span<u32>>, Identity>, <Permutation<Span<u32>, Span<u32>>, Identity>,
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
    let stride = const { warp_items(1, N) };
    let first = first_of_warp::<N>(cx, TRANSFORM_VECTORS);
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

/// The kernel of [`algorithms::transform_pair`](kernel_primitives::algorithms::transform_pair): `(a[i], b[i]) = f(x[i])`, as
/// [`transform_tiles`](struct@transform_tiles).
#[kernel(max_threads(1024), min_blocks(1))]
pub fn transform_pair_tiles<S, F, A, B>(cx: Block, x: Input<S>, mut a: GlobalMut<A>, mut b: GlobalMut<B>, f: F)
where
    S: Source,
    F: UnaryFn<S::Item, Output = (A, B)> + KernelParam,
    A: Element,
    B: Element,
{
    by_vector!(S, pair_tile::<S, F, A, B; VECTOR>(cx, x, &mut a, &mut b, &f));
}

#[inline(always)]
fn pair_tile<S, F, A, B, const N: usize>(cx: Block, x: Input<S>, a: &mut GlobalMut<A>, b: &mut GlobalMut<B>, f: &F)
where
    S: Source,
    F: UnaryFn<S::Item, Output = (A, B)>,
    A: Element,
    B: Element,
{
    let stride = const { warp_items(1, N) };
    let first = first_of_warp::<N>(cx, TRANSFORM_VECTORS);
    if let Some(vectors) = x.vectors::<N, TRANSFORM_VECTORS>(first, stride) {
        for (v, items) in vectors.iter().enumerate() {
            let (mut of_a, mut of_b) = ([A::ZERO; N], [B::ZERO; N]);
            for i in 0..N {
                (of_a[i], of_b[i]) = f.apply(items[i]);
            }
            // SAFETY: of all threads of the grid only this one has these places.
            unsafe {
                a.write_items(first + v * stride, &of_a);
                b.write_items(first + v * stride, &of_b);
            }
        }
    } else {
        // The end of the input.
        for v in 0..TRANSFORM_VECTORS {
            for i in 0..N {
                let index = first + v * stride + i;
                if let Some(item) = x.get(index) {
                    let result = f.apply(item);
                    // SAFETY: as above.
                    unsafe {
                        a.write(index, result.0);
                        b.write(index, result.1);
                    }
                }
            }
        }
    }
}

/// Items of a thread of [`scatter_tiles`](struct@scatter_tiles).
pub const SCATTER_ITEMS: usize = 8;

/// The kernel of [`algorithms::scatter`](kernel_primitives::algorithms::scatter): `out[at[i]] = x[i]`, [`warp_items`](super::warp_items) a
/// warp, in blocks of any shape; a place outside is a fault.
#[kernel(max_threads(1024), min_blocks(1), instantiate(<Span<f32>, Span<u32>>, <Span<u32>, Span<u32>>))]
pub fn scatter_tiles<S, I>(cx: Block, x: Input<S>, at: Input<I>, mut out: GlobalMut<S::Item>)
where
    S: Source<Item: Element>,
    I: Source<Item: Integer + ConvertTo<usize>>,
{
    let (first, stride) = (first_of_warp::<1>(cx, SCATTER_ITEMS), const { warp_items(1, 1) });
    // Rounds of single items, so that a warp reads side by side whatever the types; all reads before all writes.
    let mut values = [S::Item::ZERO; SCATTER_ITEMS];
    let mut places = [NOWHERE; SCATTER_ITEMS];
    for round in 0..SCATTER_ITEMS {
        let index = first + round * stride;
        if let (Some(value), Some(place)) = (x.get(index), at.get(index)) {
            (values[round], places[round]) = (value, place.convert());
        }
    }
    for round in 0..SCATTER_ITEMS {
        if places[round] != NOWHERE {
            // SAFETY: the caller of the algorithm says that no place is named twice.
            unsafe { out.write(places[round], values[round]) };
        }
    }
}

/// No place: no buffer is as long.
const NOWHERE: usize = usize::MAX;
