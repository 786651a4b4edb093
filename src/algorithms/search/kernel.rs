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
    let mut places = cx.items(queries.len());
    let pivots = Pivots::of(cx, sorted);
    loop {
        let place = places.next();
        if !cx.any(cx.warp_mask(), place.is_some()) {
            return;
        }
        // A lane without a query searches for any, because the lanes ask each other.
        let query = queries.get(place.as_ref().map_or(0, |place| place.index()));
        let Some(query) = query else { return };
        // NaN comes after all numbers, where sorts put it. It is neither less than nor equal to a query.
        let before = |item: S::Item| {
            if UPPER { query.unordered() || item.less_or_equal(query) } else { item.less(query) }
        };
        let found = bound(sorted, pivots.part(cx, before), before);
        if let Some(place) = place {
            positions.set(place, found as u64);
        }
    }
}

/// The items that end equal parts of a sorted input: lane `l` of a warp has that of part `l`. The lanes find their parts among them by
/// shuffles, where each of the first five steps of a search would be a read that waits for the one before.
struct Pivots<T> {
    /// The number of items of a part, or 0 if there are no pivots.
    step: usize,
    len: usize,
    own: T,
}

impl<T: Element> Pivots<T> {
    /// Reads the pivots. There are some if the warp is whole, and if no part is so short that a vector has it.
    #[inline(always)]
    fn of<S: Source<Item = T>>(cx: Block<'_>, sorted: Input<S>) -> Self {
        let len = sorted.len();
        let step = len / WARP as usize;
        let step = if step >= 4 && cx.warp_lanes() == WARP { step } else { 0 };
        let mut own = T::ZERO;
        if step > 0 {
            // SAFETY: inside.
            [own] = unsafe { sorted.items_inside::<1>((cx.lane() as usize + 1) * step - 1) };
        }
        Self { step, len, own }
    }

    /// Returns the first and the last place where the bound of this lane can be. All lanes of the warp call it.
    #[inline(always)]
    fn part(&self, cx: Block<'_>, before: impl Fn(T) -> bool) -> (usize, usize) {
        let Self { step, len, own } = *self;
        if step == 0 {
            return (0, len);
        }
        let (mut part, mut more) = (0, WARP / 2);
        while more > 0 {
            let pivot = cx.shuffle(FULL_MASK, own, part + more - 1, WARP);
            part += if before(pivot) { more } else { 0 };
            more /= 2;
        }
        let at = part as usize * step;
        (at, if part < WARP - 1 { at + step - 1 } else { len })
    }
}

/// Returns the number of items before the bound: the items at the beginning for which `before` is true. The bound is at one of the places
/// from the first to the last of `ends`. It reads no more items than necessary. A search with the same number of steps for each query would
/// read one item more if the number of items is a power of two.
fn bound<S: Source>(sorted: Input<S>, ends: (usize, usize), before: impl Fn(S::Item) -> bool) -> usize {
    by_vector!(S, bound_by::<S, _; VECTOR>(sorted, ends, before))
}

/// Works as [`bound`], with one vector of `N` items instead of the last steps.
fn bound_by<S: Source, F: Fn(S::Item) -> bool, const N: usize>(
    sorted: Input<S>,
    (mut at, mut end): (usize, usize),
    before: F,
) -> usize {
    let len = sorted.len();
    let has_vectors = N > 2 && S::IN_MEMORY && sorted.is_aligned::<N>(0);
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
