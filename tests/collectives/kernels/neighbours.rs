//! Differences, flags, shifts and rotations.

use super::Twelve;
use kernel_primitives::prelude::*;

/// Writes for each thread: the value of the thread before, of the thread after, of the thread `by` further, and of thread 0 or the last.
#[kernel(instantiate(<u8>, <u32>, <Twelve>, <f64>))]
pub fn shifted<T: Element>(
    cx: Block,
    by: u32,
    edge: T,
    x: Global<T>,
    mut out: GlobalMut<[T; 5]>,
    mut shared: Shared<NeighbourStorage<T>>,
    mut all: Shared<RotateStorage<T>>,
) {
    for i in cx.items(out.len()) {
        let up = block_shift_up(cx, &mut shared, x[i], edge);
        let down = block_shift_down(cx, &mut shared, x[i], edge);
        let rotated = block_rotate(cx, &mut all, x[i], by);
        let first = block_broadcast(cx, &mut shared, x[i], 0);
        let last = block_broadcast(cx, &mut shared, x[i], cx.block_threads() - 1);
        out.set(i, [up, down, rotated, first, last]);
    }
}

/// Differences to both sides, with the neighbours' items at the edges and without.
#[kernel(instantiate(<i32, 1>, <i64, 4>, <u16, 9>))]
pub fn differences<T: Number, const N: usize>(
    cx: Block,
    x: Global<T>,
    mut out: GlobalMut<[T; 4], Tiles<N>>,
    mut shared: Shared<NeighbourStorage<T>>,
) {
    for tile in cx.tiles::<N>(out.len()) {
        let mut items = init::<T, N>(T::ZERO);
        read_data(cx, &mut items, x.tile(tile));
        let before = if tile.start() > 0 { x[tile.start() - 1] } else { T::ZERO };
        let end = tile.start() + tile.len();
        let after = x.get(end).unwrap_or(T::ZERO);
        let difference = |a: T, b: T| a.sub(b);
        let left = adjacent_difference_left(cx, &mut shared, &items, before, difference);
        let right = adjacent_difference_right(cx, &mut shared, &items, after, difference);
        let left_open = adjacent_difference_left_open(cx, &mut shared, &items, difference);
        let right_open = adjacent_difference_right_open(cx, &mut shared, &items, difference);
        let all: [[T; 4]; N] = core::array::from_fn(|i| [left[i], right[i], left_open[i], right_open[i]]);
        write_data(cx, out.tile(tile), &all);
    }
}

/// Starts and ends of runs, with the neighbours' items at the edges and without.
#[kernel(instantiate(<u8, 1>, <u32, 4>, <Twelve, 9>))]
pub fn flagged<T: Element + PartialEq, const N: usize>(
    cx: Block,
    x: Global<T>,
    mut out: GlobalMut<[bool; 4], Tiles<N>>,
    mut shared: Shared<NeighbourStorage<T>>,
) {
    for tile in cx.tiles::<N>(out.len()) {
        let mut items = init::<T, N>(T::ZERO);
        read_data(cx, &mut items, x.tile(tile));
        let before = if tile.start() > 0 { Some(x[tile.start() - 1]) } else { None };
        let after = x.get(tile.start() + tile.len());
        let differs = |a: T, b: T| a != b;
        let heads = flag_heads(cx, &mut shared, &items, before, differs);
        let tails = flag_tails(cx, &mut shared, &items, after, differs);
        let (open_heads, open_tails) = flag_heads_and_tails(cx, &mut shared, &items, None, None, differs);
        let all: [[bool; 4]; N] = core::array::from_fn(|i| [heads[i], tails[i], open_heads[i], open_tails[i]]);
        write_data(cx, out.tile(tile), &all);
    }
}
