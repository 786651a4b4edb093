//! The kernel of differences.

use kernel_primitives::input::Source;
use kernel_primitives::prelude::*;

use crate::algorithms::tile::{by_vector, first_of_warp, warp_items};

/// The number of vectors that a thread of [`difference_tiles`](struct@difference_tiles) has in flight.
pub const DIFFERENCE_VECTORS: usize = 4;

// PTX: difference_tiles__Span_f32_Sub has 4 loads and 4 stores of 16 bytes.

/// The kernel of [`algorithms::adjacent_difference`](kernel_primitives::algorithms::adjacent_difference): `out[i] = f(x[i], x[i - 1])`, and
/// `out[0] = x[0]`. Each warp computes [`warp_items`] items.
#[kernel(launch(pub(crate)), max_threads(1024), one_dimensional, min_blocks(1))]
pub fn difference_tiles<S, F>(cx: Block, x: Input<S>, mut out: GlobalMut<S::Item>, f: F)
where
    S: Source<Item: Element>,
    F: BinaryFn<S::Item, Output = S::Item> + KernelParam,
{
    by_vector!(S, tile::<S, F; VECTOR>(cx, x, &mut out, &f));
}

fn tile<S, F, const N: usize>(cx: Block, x: Input<S>, out: &mut GlobalMut<S::Item>, f: &F)
where
    S: Source<Item: Element>,
    F: BinaryFn<S::Item, Output = S::Item>,
{
    let stride = const { warp_items(1, N) };
    let own = first_of_warp::<N>(cx, DIFFERENCE_VECTORS);
    let first = |v: usize| own + v * stride;
    if first(DIFFERENCE_VECTORS - 1) + N <= x.len() {
        let mut vectors = [[S::Item::ZERO; N]; DIFFERENCE_VECTORS];
        let mut before = [S::Item::ZERO; DIFFERENCE_VECTORS];
        for (v, items) in vectors.iter_mut().enumerate() {
            // SAFETY: the last one is inside.
            *items = unsafe { x.items_inside(first(v)) };
        }
        // Another lane has read this item, so it is in the cache next to the multiprocessor.
        for (v, before) in before.iter_mut().enumerate() {
            if let Some(item) = x.get(first(v).wrapping_sub(1)) {
                *before = item;
            }
        }
        for (v, items) in vectors.iter().enumerate() {
            let mut differences = *items;
            if first(v) > 0 {
                differences[0] = f.apply(items[0], before[v]);
            }
            for i in 1..N {
                differences[i] = f.apply(items[i], items[i - 1]);
            }
            // SAFETY: of all threads of the grid only this one has these places.
            unsafe { out.write_items(first(v), &differences) };
        }
    } else {
        // This is the end of the input.
        for v in 0..DIFFERENCE_VECTORS {
            for i in 0..N {
                let at = first(v) + i;
                if let Some(item) = x.get(at) {
                    let difference = match x.get(at.wrapping_sub(1)) {
                        Some(before) => f.apply(item, before),
                        None => item,
                    };
                    // SAFETY: as above.
                    unsafe { out.write(at, difference) };
                }
            }
        }
    }
}
