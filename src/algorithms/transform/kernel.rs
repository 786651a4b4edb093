//! The kernel of transformations.

use core::array::from_fn;

use kernel_primitives::input::Source;
use kernel_primitives::output::Sink;
use kernel_primitives::prelude::*;

use crate::algorithms::tile::{by_vector, first_of_warp, warp_items};

/// The number of vectors that a thread of [`transform_tiles`](struct@transform_tiles) has in flight.
pub const fn transform_vectors<S: Source>() -> usize {
    match S::IN_FLIGHT {
        0 => 4,
        vectors => vectors,
    }
}

// PTX: transform_tiles__Span_u32_Identity_SpanMut_u32 has 1 loads and 1 stores of 16 bytes.
// PTX: transform_tiles__Permutation_Span_u32_Span_u32_Identity_SpanMut_u32 has 2 loads and 2 stores of 16 bytes.

/// The kernel of [`algorithms::transform`](kernel_primitives::algorithms::transform): `out[i] = f(x[i])`. Each warp transforms
/// [`warp_items`](kernel_primitives::kernels::device::warp_items) items. Blocks have any number of threads, along one dimension.
#[kernel(launch(pub(crate)), max_threads(1024), one_dimensional, min_blocks(1))]
pub fn transform_tiles<S, F, O>(cx: Block, x: Input<S>, mut out: Output<O>, f: F)
where
    S: Source,
    F: UnaryFn<S::Item> + KernelParam,
    O: Sink<Item = F::Output>,
{
    match const { transform_vectors::<S>() } {
        1 => by_vector!(S, tile::<S, F, O; VECTOR, 1>(cx, x, &mut out, &f)),
        2 => by_vector!(S, tile::<S, F, O; VECTOR, 2>(cx, x, &mut out, &f)),
        _ => by_vector!(S, tile::<S, F, O; VECTOR, 4>(cx, x, &mut out, &f)),
    }
}

fn tile<S, F, O, const N: usize, const VECTORS: usize>(cx: Block, x: Input<S>, out: &mut Output<O>, f: &F)
where
    S: Source,
    F: UnaryFn<S::Item>,
    O: Sink<Item = F::Output>,
{
    if N > 1 && !x.is_aligned::<N>(0) {
        return single_items::<S, F, O, N, VECTORS>(cx, x, out, f);
    }
    let stride = const { warp_items(1, N) };
    let first = first_of_warp::<N>(cx, VECTORS);
    if let Some(vectors) = x.vectors::<N, VECTORS>(first, stride) {
        for (v, items) in vectors.iter().enumerate() {
            // SAFETY: of all threads of the grid only this one has these indices. Where a permutation names a place twice, nobody reads it
            // here, and each of its bytes is one of two values': a value, since what bytes an element has is said byte by byte.
            unsafe { out.write_items(first + v * stride, &items.map(|item| f.apply(item))) };
        }
    } else {
        // This is the end of the input.
        for v in 0..VECTORS {
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

/// Transforms as many items as [`tile`] does, in rounds of single items, so that each access of a warp is contiguous. No vector of the input is
/// aligned.
fn single_items<S, F, O, const N: usize, const VECTORS: usize>(cx: Block, x: Input<S>, out: &mut Output<O>, f: &F)
where
    S: Source,
    F: UnaryFn<S::Item>,
    O: Sink<Item = F::Output>,
{
    let stride = const { warp_items(1, 1) };
    let first = first_of_warp::<1>(cx, N * VECTORS);
    if first + (N * VECTORS - 1) * stride < x.len() {
        // All reads come before all writes.
        let item = |round: usize| {
            // SAFETY: the last round has an item, so all rounds have.
            let [item] = unsafe { x.items_inside::<1>(first + round * stride) };
            item
        };
        let items: [[_; VECTORS]; N] = from_fn(|n| from_fn(|v| item(n * VECTORS + v)));
        for (round, &item) in items.as_flattened().iter().enumerate() {
            // SAFETY: of all threads of the grid only this one has these indices.
            unsafe { out.write(first + round * stride, f.apply(item)) };
        }
    } else {
        for round in 0..N * VECTORS {
            if let Some(item) = x.get(first + round * stride) {
                // SAFETY: as above.
                unsafe { out.write(first + round * stride, f.apply(item)) };
            }
        }
    }
}

/// The number of items of a thread of [`scatter_tiles`](struct@scatter_tiles).
pub const SCATTER_ITEMS: usize = 8;

/// The kernel of [`algorithms::scatter`](kernel_primitives::algorithms::scatter): `out[at[i]] = x[i]`. Each warp scatters
/// [`warp_items`](kernel_primitives::kernels::device::warp_items) items. Blocks have any number of threads, along one dimension. A place outside is a fault.
#[kernel(launch(pub(crate)), max_threads(1024), one_dimensional, min_blocks(1))]
pub fn scatter_tiles<S, I>(cx: Block, x: Input<S>, at: Input<I>, mut out: GlobalMut<S::Item>)
where
    S: Source<Item: Element>,
    I: Source<Item: Integer + ConvertTo<usize>>,
{
    let (first, stride) = (first_of_warp::<1>(cx, SCATTER_ITEMS), const { warp_items(1, 1) });
    let len = x.len().min(at.len());
    // Each round has single items, so that a warp reads contiguous items of any type. All reads come before all writes.
    let mut values = [S::Item::ZERO; SCATTER_ITEMS];
    let mut places = [0; SCATTER_ITEMS];
    for round in 0..SCATTER_ITEMS {
        let index = first + round * stride;
        if index < len {
            (values[round], places[round]) = (x.at(index), at.at(index).convert());
        }
    }
    for round in 0..SCATTER_ITEMS {
        // Any index may be in `places`, so no index can stand for a missing item.
        if first + round * stride < len {
            // SAFETY: as for the permutations of `transform_tiles`, which may name a place twice.
            unsafe { out.write(places[round], values[round]) };
        }
    }
}
