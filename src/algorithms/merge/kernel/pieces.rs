//! The copies of pieces of runs: to shared memory, and to the result.

use kernel_primitives::input::Source;
use kernel_primitives::prelude::*;
use kernel_primitives::view::SharedArray;

use super::{MERGE_THREADS, vector};
use crate::algorithms::tile::warps::any_item;

/// Returns the beginnings of two pieces of inputs in shared memory, where vectors of both keep their alignment. A piece is a first item and
/// a length.
pub(super) fn places<T: Element>([a, b]: &[(usize, usize); 2]) -> [u32; 2] {
    let vector = const { vector::<T>() };
    let skip = [a.0 % vector, b.0 % vector];
    let second = (skip[0] + a.1).next_multiple_of(vector);
    [skip[0] as u32, (second + skip[1]) as u32]
}

/// Begins to copy a piece of an input to shared memory, from `place`, by vectors of `N` items. It also copies the other items of the
/// vectors at its ends, with [any item](any_item) where the input has none: threads compare what is between two pieces.
///
/// # Safety
/// There is room, and nobody else accesses it until a barrier after [`Input::wait_for_copies`].
pub(super) unsafe fn stage<S: Source<Item: Element>, const N: usize, const THREADS: usize>(
    cx: Block<'_>,
    x: Input<'_, S>,
    (first, len): (usize, usize),
    to: SharedArray<'_, S::Item>,
    place: u32,
) {
    let skip = first % N;
    let (first, place) = (first - skip, place as usize - skip);
    let len = if len == 0 { 0 } else { skip + len } as u32;
    let mut at = cx.thread_rank() * N as u32;
    // All vectors are checked at once, so that little more than the copy remains for each.
    if x.len().saturating_sub(first) >= len.next_multiple_of(N as u32) as usize && x.is_aligned::<N>(first) {
        while at < len {
            // SAFETY: inside and aligned; the caller's contract.
            unsafe { x.copy_vector_inside::<N>(first + at as usize, to, place + at as usize) };
            at += (THREADS * N) as u32;
        }
        return;
    }
    while at < len {
        let from = first + at as usize;
        // SAFETY: the caller's contract.
        unsafe {
            if !x.copy::<N>(from, to, place + at as usize) {
                for i in 0..N {
                    to.store(place + at as usize + i, x.get(from + i).unwrap_or_else(|| any_item(x)));
                }
            }
        }
        at += (THREADS * N) as u32;
    }
}

/// Copies a piece of a run to `out`, from `first`, by vectors of `N` items.
///
/// # Safety
/// Nobody else accesses these places of the result, nor those of the last vector after them.
pub(super) unsafe fn copy_run<S: Source<Item: Element>, const N: usize, const THREADS: usize>(
    cx: Block<'_>,
    x: Input<'_, S>,
    (from, len): (usize, usize),
    out: &mut GlobalMut<'_, S::Item>,
    first: usize,
) {
    const AT_ONCE: usize = 4;
    let stride = const { THREADS * N };
    let mut at = cx.thread_rank() as usize * N;
    if len == const { MERGE_THREADS / THREADS * AT_ONCE } * stride {
        for _ in 0..const { MERGE_THREADS / THREADS } {
            let Some(vectors) = x.vectors::<N, AT_ONCE>(from + at, stride) else { break };
            for (i, items) in vectors.iter().enumerate() {
                // SAFETY: the caller's contract.
                unsafe { out.write_items(first + at + i * stride, items) };
            }
            at += AT_ONCE * stride;
        }
    }
    while at < len {
        let items = match x.items::<N>(from + at) {
            Some(items) => items,
            None => core::array::from_fn(|i| x.get(from + at + i).unwrap_or(S::Item::ZERO)),
        };
        // SAFETY: the caller's contract.
        unsafe { out.write_items(first + at, &items) };
        at += stride;
    }
}
