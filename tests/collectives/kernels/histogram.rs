//! Histograms, and runs written out.

use super::Twelve;
use kernel_primitives::functor::Cast;
use kernel_primitives::prelude::*;

/// Counts the values with each remainder for each block, tile after tile with the same storage.
#[kernel]
pub fn remainders(
    cx: Block,
    bins: u32,
    x: Global<u32>,
    counts: GlobalMut<u32, Atomic>,
    mut shared: Shared<HistogramStorage<100>>,
) {
    for tile in cx.tiles::<5>(x.len()) {
        let mut items = init::<u32, 5>(0);
        read_data(cx, &mut items, x.tile(tile));
        let items = items.into_iter().take(tile.valid_items(cx));
        let items = items.map(|value| value % 120);
        let bins = block_histogram(cx, &mut shared, bins as usize, items, Cast::<usize>::new());
        let mut bin = cx.thread_rank() as usize;
        while bin < bins.len() {
            counts.at(bin).fetch_add(bins.get(bin));
            bin += cx.block_threads() as usize;
        }
    }
}

/// Writes out runs, and each item's distance from its run's start.
#[kernel(instantiate(<u8, 32, 1>, <Twelve, 96, 3>, <u32, 65, 2>))]
pub fn decoded<T: Element, const THREADS: usize, const RUNS: usize>(
    cx: Block,
    values: Global<T>,
    lengths: Global<u32>,
    mut out: GlobalMut<T, Tiles<4>>,
    mut offsets: GlobalMut<u32, Tiles<4>>,
    mut total: GlobalMut<u32, PerBlock>,
    mut shared: Shared<RunLengthStorage<T, THREADS, RUNS>>,
) {
    let (mut v, mut l) = (init::<T, RUNS>(T::ZERO), init::<u32, RUNS>(0));
    read_data(cx, &mut v, values);
    read_data(cx, &mut l, lengths);
    // This runs twice, so that the storage is used again.
    run_length_begin(cx, &mut shared, &v, &l);
    let runs = run_length_begin(cx, &mut shared, &v, &l);
    for tile in cx.tiles::<4>(out.len()) {
        let mut items = init::<T, 4>(T::ZERO);
        let at = run_length_decode(cx, runs, tile.start() as u32, &mut items);
        write_data(cx, out.tile(tile), &items);
        write_data(cx, offsets.tile(tile), &at);
    }
    total.store(runs.len());
}
