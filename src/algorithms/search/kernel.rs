//! The kernel of searches.

use kernel_primitives::input::Source;
use kernel_primitives::prelude::*;
use kernel_primitives::simt::WARP;

use crate::algorithms::tile::by_vector;

/// The kernel of [`algorithms::lower_bound`](kernel_primitives::algorithms::lower_bound) and, with `UPPER`,
/// [`algorithms::upper_bound`](kernel_primitives::algorithms::upper_bound). Each thread searches for one query.
///
/// Anyone may launch it: its result is right for any arguments.
#[kernel(max_threads(1024), one_dimensional, min_blocks(1))]
pub fn search_tiles<S, Q, const UPPER: bool>(
    cx: Block,
    sorted: Input<S>,
    queries: Input<Q>,
    mut positions: GlobalMut<u64>,
) where
    S: Source<Item: Ordered>,
    Q: Source<Item = S::Item>,
{
    for i in cx.items(queries.len()) {
        let Some(query) = queries.get(i.index()) else { return };
        positions.set(i, bound(sorted, |item| if UPPER { !query.less(item) } else { item.less(query) }) as u64);
    }
}

/// Returns the number of items before the bound: the items at the beginning for which `before` is true. It reads no more items than
/// necessary. A search with the same number of steps for each query would read one item more if the number of items is a power of two.
pub(crate) fn bound<S: Source>(sorted: Input<S>, before: impl Fn(S::Item) -> bool) -> usize {
    by_vector!(S, bound_by::<S, _; VECTOR>(sorted, before))
}

/// Works as [`bound`], with one vector of `N` items instead of the last steps.
fn bound_by<S: Source, F: Fn(S::Item) -> bool, const N: usize>(sorted: Input<S>, before: F) -> usize {
    let len = sorted.len();
    let has_vectors = N > 2 && S::IN_MEMORY && sorted.is_aligned::<N>(0);
    let (mut at, mut end) = (0, len);
    while at < end {
        let first = at - at % N;
        if has_vectors && end - first <= N && len - first >= N {
            // SAFETY: inside, and a multiple of `N` from what is aligned.
            let items = unsafe { sorted.vector_inside::<N>(first) };
            let mut found = at;
            for (i, &item) in items.iter().enumerate() {
                found += (first + i >= at && first + i < end && before(item)) as usize;
            }
            return found;
        }
        let half = at + (end - at) / 2;
        // SAFETY: before the end, which is the length at most.
        let [item] = unsafe { sorted.items_inside::<1>(half) };
        let is_before = before(item);
        at = if is_before { half + 1 } else { at };
        end = if is_before { end } else { half };
    }
    at
}

/// Returns how many of `count` places come before the bound: the places at the beginning for which `before` is true. The lanes of the warp
/// test 32 places at once.
pub(crate) fn warp_bound(cx: Block<'_>, count: usize, before: impl Fn(usize) -> bool) -> usize {
    let (mut at, mut rest) = (0, count);
    let lane = cx.lane() as usize;
    while rest > 0 {
        let step = (rest / WARP as usize).max(1);
        let probe = (lane + 1) * step - 1;
        let found = cx.ballot(FULL_MASK, probe < rest && before(at + probe)).count_ones() as usize;
        at += found * step;
        // The next probe is not before the bound.
        rest = if found < WARP as usize { (step - 1).min(rest) } else { rest - found * step };
    }
    at
}
