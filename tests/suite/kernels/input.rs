//! Kernels with inputs of all sources.

use super::Twelve;
use kernel_primitives::functor::{OfPair, Square, Sub};
use kernel_primitives::input::{Constant, Counting, Map, Permutation, Reversed, Segments, Source, Span, Strided, Zip};
use kernel_primitives::prelude::*;

/// The differences of two buffers.
pub type Differences<T> = Map<Zip<Span<T>, Span<T>>, OfPair<Sub>>;

/// `out[i] = x[i]` as far as `x` goes, and zero after that.
#[kernel(instantiate(
    <Span<f32>, f32, 1>, <Span<f32>, f32, 4>, <Span<f32>, f32, 3>, <Span<u8>, u8, 16>, <Span<Twelve>, Twelve, 2>,
    <Constant<f64>, f64, 2>, <Counting<i32>, i32, 4>, <Counting<u64>, u64, 1>, <Counting<f32>, f32, 4>,
    <Map<Span<f32>, Square>, f32, 4>, <Differences<i32>, i32, 4>, <Permutation<Span<f32>, Span<u32>>, f32, 4>,
    <Permutation<Span<u16>, Reversed<Counting<i64>>>, u16, 8>, <Strided<Span<u16>>, u16, 2>, <Reversed<Span<f32>>, f32, 4>,
    <Reversed<Strided<Differences<i32>>>, i32, 3>, <Segments<Span<i32>>, u32, 4>, <Segments<Span<i8>>, u32, 1>,
))]
pub fn collect<S: Source<Item = T>, T: Element, const NX: usize>(
    cx: Block,
    x: Input<S>,
    mut out: GlobalMut<T, Tiles<NX>>,
) {
    for tile in cx.tiles::<NX>(out.len()) {
        let first = tile.start() + cx.thread_rank() as usize * NX;
        let items = x.items(first).unwrap_or_else(|| {
            let mut items = init::<T, NX>(T::ZERO);
            for (i, item) in items.iter_mut().enumerate() {
                *item = x.get(first + i).unwrap_or(*item);
            }
            items
        });
        write_data(cx, out.tile(tile), &items);
    }
}

/// `out[i] = x[i]`; both have the same length.
#[kernel(equal_len(x, out))]
pub fn squares(cx: Block, x: Input<Map<Span<f32>, Square>>, mut out: GlobalMut<f32>) {
    for i in cx.items(out.len()) {
        out.set(i, x.at(i.index()));
    }
}

/// Reads two vectors that begin at `first` and are `stride` apart. The result says if both are inside, and then has
/// their first and last items.
#[kernel]
pub fn two_vectors(
    _cx: Block,
    first: usize,
    stride: usize,
    x: Input<Span<u32>>,
    mut out: GlobalMut<[u32; 3], PerBlock>,
) {
    let vectors = x.vectors::<4, 2>(first, stride);
    out.store(vectors.map_or([0; 3], |vectors| [1, vectors[0][0], vectors[1][3]]));
}
