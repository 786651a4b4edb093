//! Exchanges, neighbours, histograms and runs.

use kernel_primitives::block::{
    Border, HaloStorage, adjacent_difference_left, adjacent_difference_left_open, adjacent_difference_right,
    adjacent_difference_right_open, block_broadcast, block_load_halo, block_rotate, block_shift_down, block_shift_up,
    flag_heads, flag_heads_and_tails, flag_tails,
};
use kernel_primitives::functor::Sub;
use kernel_primitives::prelude::*;

use super::{Compose, Three, Triangular, Twelve};

/// Writes, for each item, its place in the threads: striped and back, warp-striped and back, scattered to blocked and striped by rank, and
/// loaded and stored in both arrangements.
#[kernel(instantiate(<u8, 65, 16>, <f32, 128, 4>, <Three, 33, 5>))]
pub fn exchanged<T: Element, const THREADS: usize, const ITEMS: usize>(
    cx: Block,
    x: Global<T>,
    ranks: Global<u32>,
    mut out: GlobalMut<[T; 8], Tiles<ITEMS>>,
    mut striped_out: GlobalMut<T, Striped<ITEMS>>,
    mut warp_striped_out: GlobalMut<T, WarpStriped<ITEMS>>,
    mut shared: Shared<ExchangeStorage<T, THREADS, ITEMS>>,
) {
    for tile in cx.tiles::<ITEMS>(out.len()) {
        let mut items = init::<T, ITEMS>(T::ZERO);
        read_data(cx, &mut items, x.tile(tile));
        let mut places = init::<u32, ITEMS>(0);
        read_data(cx, &mut places, ranks.tile(tile));
        let striped = blocked_to_striped(cx, &mut shared, &items);
        let from_striped = striped_to_blocked(cx, &mut shared, &striped);
        let warp_striped = blocked_to_warp_striped(cx, &mut shared, &items);
        let from_warp_striped = warp_striped_to_blocked(cx, &mut shared, &warp_striped);
        let blocked = scatter_to_blocked(cx, &mut shared, &items, &places);
        let scattered = scatter_to_striped(cx, &mut shared, &items, &places);
        let (mut loaded, mut warp_loaded) = (init::<T, ITEMS>(T::ZERO), init::<T, ITEMS>(T::ZERO));
        load_striped(cx, &mut loaded, x.tile(tile));
        load_warp_striped(cx, &mut warp_loaded, x.tile(tile));
        store_striped(cx, striped_out.tile(tile), &loaded);
        store_striped(cx, warp_striped_out.tile(tile), &warp_loaded);
        let results: [[T; 8]; ITEMS] = core::array::from_fn(|i| {
            [
                striped[i],
                from_striped[i],
                warp_striped[i],
                from_warp_striped[i],
                blocked[i],
                scattered[i],
                loaded[i],
                warp_loaded[i],
            ]
        });
        write_data(cx, out.tile(tile), &results);
    }
}

/// Writes each tile's marked items before the items that were in their places. Then it writes the values that every thread finds in its own
/// places.
#[kernel(equal_len(x, keep, out, again), instantiate(<u8, 16>, <f64, 1>, <i32, 4>, <Three, 3>))]
#[allow(clippy::too_many_arguments, reason = "a kernel's parameters")]
pub fn compacted<T: Element, const N: usize>(
    cx: Block,
    x: Global<T>,
    keep: Global<bool>,
    mut out: GlobalMut<T, Tiles<N>>,
    mut again: GlobalMut<T, Tiles<N>>,
    counts: GlobalMut<u32, Atomic>,
    mut shared: Shared<ScanStorage<u32>>,
) {
    for tile in cx.tiles::<N>(x.len()) {
        let (mut items, mut marks) = (init::<T, N>(T::ZERO), [false; N]);
        read_data(cx, &mut items, x.tile(tile));
        read_data(cx, &mut marks, keep.tile(tile));
        write_data(cx, out.tile(tile), &items);
        let kept = block_compact(cx, &mut shared, &items, &marks, out.tile(tile));
        let mut found = init::<T, N>(T::ZERO);
        out.tile(tile).read(&mut found);
        write_data(cx, again.tile(tile), &found);
        if cx.thread_rank() == 0 {
            counts.at(tile.start() / (N * cx.block_threads() as usize)).store(kept);
        }
    }
}

/// Of each thread's first item: the one before, after, `by` further, and a thread's; of each item: the function of it and
/// its neighbour, with those beside the tile and without, and whether it begins or ends a run.
#[kernel(max_threads(1024), instantiate(<i32, Sub, 1>, <u8, Sub, 9>, <Triangular, Compose, 4>))]
#[allow(clippy::too_many_arguments, reason = "a kernel's parameters")]
pub fn beside<T: Element + PartialEq, F: BinaryFn<T, T, Output = T> + KernelParam, const N: usize>(
    cx: Block,
    by: u32,
    source: u32,
    x: Global<T>,
    mut moved: GlobalMut<[T; 4]>,
    mut out: GlobalMut<[T; 4], Tiles<N>>,
    mut flags: GlobalMut<[bool; 4], Tiles<N>>,
    f: F,
    mut shared: Shared<NeighbourStorage<T>>,
    mut all: Shared<RotateStorage<T>>,
) {
    for (tile, i) in cx.tiles::<N>(out.len()).zip(cx.items(moved.len())) {
        let mut items = init::<T, N>(T::ZERO);
        read_data(cx, &mut items, x.tile(tile));
        let before = if tile.start() > 0 { Some(x[tile.start() - 1]) } else { None };
        let after = x.get(tile.start() + tile.len());
        let (edge_before, edge_after) = (before.unwrap_or(T::ZERO), after.unwrap_or(T::ZERO));
        let up = block_shift_up(cx, &mut shared, items[0], edge_before);
        let down = block_shift_down(cx, &mut shared, items[0], edge_after);
        let rotated = block_rotate(cx, &mut all, items[0], by);
        moved.set(i, [up, down, rotated, block_broadcast(cx, &mut shared, items[0], source)]);
        let left = adjacent_difference_left(cx, &mut shared, &items, edge_before, f);
        let right = adjacent_difference_right(cx, &mut shared, &items, edge_after, f);
        let left_open = adjacent_difference_left_open(cx, &mut shared, &items, f);
        let right_open = adjacent_difference_right_open(cx, &mut shared, &items, f);
        let results: [[T; 4]; N] = core::array::from_fn(|i| [left[i], right[i], left_open[i], right_open[i]]);
        write_data(cx, out.tile(tile), &results);
        let differs = |a: T, b: T| a != b;
        let heads = flag_heads(cx, &mut shared, &items, before, differs);
        let tails = flag_tails(cx, &mut shared, &items, after, differs);
        let (open_heads, open_tails) = flag_heads_and_tails(cx, &mut shared, &items, None, None, differs);
        let results: [[bool; 4]; N] = core::array::from_fn(|i| [heads[i], tails[i], open_heads[i], open_tails[i]]);
        write_data(cx, flags.tile(tile), &results);
    }
}

/// Writes the elements of a window of a matrix.
#[kernel(max_threads(1024), instantiate(<u8>, <Twelve>))]
#[allow(clippy::too_many_arguments, reason = "a kernel's parameters")]
pub fn window<T: Element>(
    cx: Block,
    extents: [u32; 2],
    first: [i32; 2],
    window: [u32; 2],
    border: u32,
    outside: T,
    x: Global<T>,
    mut out: GlobalMut<T>,
    mut shared: Shared<HaloStorage<T, 512>>,
) {
    let border = match border {
        0 => Border::Clamp,
        1 => Border::Periodic,
        2 => Border::Mirror,
        3 => Border::Symmetric,
        _ => Border::Constant(outside),
    };
    let (extents, window) = (extents.map(|extent| extent as usize), window.map(|extent| extent as usize));
    let elements = block_load_halo(cx, &mut shared, x, extents, first.map(|at| at as isize), window, border);
    for i in cx.items(out.len()) {
        out.set(i, elements.at([i.index() / window[1], i.index() % window[1]]));
    }
}

/// Counts the items of each block with each remainder by 120 for which there is a bin.
#[kernel(max_threads(1024))]
pub fn remainders(
    cx: Block,
    bins: u32,
    x: Global<u32>,
    counts: GlobalMut<u32, Atomic>,
    mut shared: Shared<HistogramStorage<120>>,
) {
    for tile in cx.tiles::<5>(x.len()) {
        let mut items = init::<u32, 5>(0);
        read_data(cx, &mut items, x.tile(tile));
        let items = items.into_iter().take(tile.valid_items(cx));
        let bins = block_histogram(cx, &mut shared, bins as usize, items, |value: u32| (value % 120) as usize);
        let mut bin = cx.thread_rank() as usize;
        while bin < bins.len() {
            counts.at(bin).fetch_add(bins.get(bin));
            bin += cx.block_threads() as usize;
        }
    }
}

/// Writes out runs, and each item's distance from its run's first item.
#[kernel(instantiate(<u8, 32, 1>, <Twelve, 65, 3>))]
pub fn decoded<T: Element, const THREADS: usize, const RUNS: usize>(
    cx: Block,
    values: Global<T>,
    lengths: Global<u32>,
    mut out: GlobalMut<T, Tiles<4>>,
    mut distances: GlobalMut<u32, Tiles<4>>,
    mut shared: Shared<RunLengthStorage<T, THREADS, RUNS>>,
) {
    let (mut own, mut own_lengths) = (init::<T, RUNS>(T::ZERO), init::<u32, RUNS>(0));
    read_data(cx, &mut own, values);
    read_data(cx, &mut own_lengths, lengths);
    let runs = run_length_begin(cx, &mut shared, &own, &own_lengths);
    for tile in cx.tiles::<4>(out.len()) {
        let mut items = init::<T, 4>(T::ZERO);
        let at = run_length_decode(cx, runs, tile.start() as u32, &mut items);
        write_data(cx, out.tile(tile), &items);
        write_data(cx, distances.tile(tile), &at);
    }
}
