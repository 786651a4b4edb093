//! The copy of a tile's two runs to shared memory.

use kernel_primitives::input::Source;
use kernel_primitives::prelude::*;
use kernel_primitives::view::SharedArray;

use super::super::pieces::stage as stage_run;
use super::super::{merge_tile_items, vector};
use super::NETWORK_THREADS;

/// Returns the beginnings of two pieces of inputs in shared memory, where vectors of both keep their alignment. A piece is a first item and
/// a length. The second piece comes first: after the other piece, there is room.
pub(super) fn places<T: Element>([a, b]: &[(usize, usize); 2]) -> [u32; 2] {
    let vector = const { vector::<T>() };
    let skip = [a.0 % vector, b.0 % vector];
    let after = (skip[1] + b.1).next_multiple_of(vector);
    [(after + skip[0]) as u32, skip[1] as u32]
}

/// Begins to copy a piece of each input to shared memory, in one loop, to where [`places`] says, by vectors of `N` items. It also copies the
/// other items of the vectors at its ends. Both pieces have items.
///
/// # Safety
/// There is room, and nobody else accesses it until a barrier after [`Input::wait_for_copies`].
pub(super) unsafe fn stage<S, T, const N: usize>(
    cx: Block<'_>,
    (a, b): (Input<'_, S>, Input<'_, T>),
    own: [(usize, usize); 2],
    to: SharedArray<'_, S::Item>,
    [first_place, second_place]: [u32; 2],
) where
    S: Source<Item: Element>,
    T: Source<Item = S::Item>,
{
    let begins = own.map(|(first, _)| first - first % N);
    let lens = own.map(|(first, len)| (first % N + len).next_multiple_of(N) as u32);
    // All vectors are checked at once, so that little more than the copy remains for each.
    let are_inside =
        a.len().saturating_sub(begins[0]) >= lens[0] as usize && b.len().saturating_sub(begins[1]) >= lens[1] as usize;
    if are_inside && a.is_aligned::<N>(begins[0]) && b.is_aligned::<N>(begins[1]) {
        // The vectors of both runs are side by side, so one count is enough.
        let before = begins[0].wrapping_sub(lens[1] as usize);
        for k in 0..const { merge_tile_items(size_of::<S::Item>(), 0) / (NETWORK_THREADS * N) + 1 } {
            let at = (cx.thread_rank() + (k * NETWORK_THREADS) as u32) * N as u32;
            // SAFETY: inside and aligned; the caller's contract.
            unsafe {
                if at < lens[1] {
                    b.copy_vector_inside::<N>(begins[1] + at as usize, to, at as usize);
                } else if at < lens[1] + lens[0] {
                    a.copy_vector_inside::<N>(before.wrapping_add(at as usize), to, at as usize);
                }
            }
        }
        return;
    }
    // SAFETY: the caller's contract.
    unsafe {
        stage_run::<S, N, NETWORK_THREADS>(cx, a, own[0], to, first_place);
        stage_run::<T, N, NETWORK_THREADS>(cx, b, own[1], to, second_place);
    }
}
