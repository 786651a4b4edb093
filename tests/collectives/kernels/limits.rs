//! Collectives and views at their limits, and beyond.

use super::{Compose, Map};
use kernel_primitives::grid::Chain;
use kernel_primitives::input::Zip;
use kernel_primitives::output::SpanMut;
use kernel_primitives::prelude::*;
use kernel_primitives::view::{Parity, Rows, SplitBarriers};

#[kernel]
pub fn columns_of_64_threads(
    cx: Block,
    mut out: GlobalMut<u32, PerThread>,
    mut shared: Shared<ColumnStorage<u32, 64>>,
) {
    let total = block_y_reduce(cx, &mut shared, 1, Add);
    for i in cx.items(out.len()) {
        out.set(i, total);
    }
}

#[kernel]
pub fn sum_of_64_threads(cx: Block, mut out: GlobalMut<u32, PerThread>, mut shared: Shared<ReduceStorage<u32, 64>>) {
    let total = block_reduce(cx, &mut shared, 1, Add);
    for i in cx.items(out.len()) {
        out.set(i, total);
    }
}

#[kernel]
pub fn scan_of_64_threads(cx: Block, mut out: GlobalMut<u32, PerThread>, mut shared: Shared<ScanStorage<u32, 64>>) {
    let ([sum], _) = block_inclusive_scan(cx, &mut shared, &[1], Add);
    for i in cx.items(out.len()) {
        out.set(i, sum);
    }
}

#[kernel]
pub fn scan_after_of_64_threads(
    cx: Block,
    mut out: GlobalMut<u32, PerThread>,
    mut shared: Shared<ScanStorage<u32, 64>>,
) {
    let [sum] = block_inclusive_scan_after(cx, &mut shared, &[1], Add, |_| 0);
    for i in cx.items(out.len()) {
        out.set(i, sum);
    }
}

#[kernel]
pub fn broadcast_from(
    cx: Block,
    source: u32,
    mut out: GlobalMut<u32, PerThread>,
    mut shared: Shared<NeighbourStorage<u32>>,
) {
    let value = block_broadcast(cx, &mut shared, 7 * cx.thread_rank(), source);
    for i in cx.items(out.len()) {
        out.set(i, value);
    }
}

#[kernel]
pub fn vectors_from(cx: Block, first: u64, stride: u64, x: Global<u32>, mut out: GlobalMut<u32, PerThread>) {
    let mut vectors = [[7; 4]; 2];
    x.read_vectors(first as usize, stride as usize, &mut vectors);
    for i in cx.items(out.len()) {
        out.set(i, vectors[0][0] + vectors[1][3]);
    }
}

#[kernel]
pub fn announce_tile(cx: Block, tile: u64, tiles: u64, chain: GlobalMut<u64, Atomic>) {
    Chain::new(cx, &chain, tiles as usize).announce(tile as usize, 1u64);
}

/// Each thread writes four numbers, if there is room.
#[kernel]
pub fn write_fours(cx: Block, mut out: Output<SpanMut<u32>>) {
    let first = cx.thread_rank() as usize * 4;
    let items = core::array::from_fn(|i| (first + i) as u32);
    // SAFETY: each thread has places of its own.
    unsafe { out.write_items::<4>(first, &items) };
}

/// Writes a pair for each place that both outputs have.
#[kernel]
pub fn write_pairs(cx: Block, mut out: Output<Zip<SpanMut<u32>, SpanMut<u64>>>) {
    for i in cx.items(out.len()) {
        // SAFETY: each thread has places of its own.
        unsafe { out.write(i.index(), (i.index() as u32 + 1, i.index() as u64 + 2)) };
    }
}

/// Says whether a row of this number of columns is empty: 1 for a row, and 2 for a row by warps.
#[kernel]
pub fn empty_rows(cx: Block, columns: u64, mut x: GlobalMut<u32, Rows<4>>, mut out: GlobalMut<u32, PerBlock>) {
    let columns = columns as usize;
    let mut empty = 0;
    for row in cx.rows(1) {
        // SAFETY: the number of columns is the launch's.
        empty += unsafe { x.row(row, columns) }.is_empty() as u32;
        // SAFETY: as above, and nothing is accessed.
        empty += 2 * unsafe { x.row_by_warps::<2>(row, columns) }.is_empty() as u32;
    }
    out.store(empty);
}

#[kernel]
pub fn begin_split_barrier(cx: Block, warps: u32, barriers: Shared<SplitBarriers<1>>) {
    if cx.thread_rank() == 0 {
        barriers.begin(0, warps);
    }
}

/// The first warp waits for the second warp, phase after phase. In one phase, a lane of the second warp faults before it arrives.
#[kernel]
pub fn wait_for_a_warp_that_faults(cx: Block, barriers: Shared<SplitBarriers<1>>) {
    if cx.thread_rank() == 0 {
        barriers.begin(0, 1);
    }
    cx.barrier();
    if cx.warp() > 0 {
        // If one lane arrives for all lanes, it is this one.
        if cx.lane() == 0 {
            cx.fault(7);
        }
        return barriers.arrive(0);
    }
    let mut parity = Parity::default();
    for _ in 0..u32::MAX {
        barriers.wait(0, parity);
        parity = parity.other();
    }
}

/// Computes every scan of items that warps have side by side: the inclusive scan, the exclusive scan from a first value, and the exclusive
/// scan after the total of all. Each item is computed from its place.
#[kernel(max_threads(1024))]
pub fn scans_of_rounds(
    cx: Block,
    mut inclusive: GlobalMut<Map<u64>>,
    mut exclusive: GlobalMut<Map<u64>>,
    mut after: GlobalMut<Map<u64>>,
    mut totals: GlobalMut<Map<u64>, PerThread>,
    mut shared: Shared<ScanStorage<Map<u64>>>,
) {
    const ROUNDS: usize = 3;
    let (warp, lane, lanes) = (cx.warp() as usize, cx.lane() as usize, cx.warp_lanes() as usize);
    let place = |round: usize, i: usize| warp * 32 * 2 * ROUNDS + (round * lanes + lane) * 2 + i;
    let item = |place: usize| Map { a: 2 * (place % 5) as u64 + 1, b: place as u64 };
    let items: [[_; 2]; ROUNDS] = core::array::from_fn(|round| core::array::from_fn(|i| item(place(round, i))));
    let first = Map { a: 3, b: 1 };
    let (to_each, total) = block_inclusive_scan_rounds(cx, &mut shared, &items, first, Compose);
    let (before_each, _) = block_exclusive_scan_rounds(cx, &mut shared, &items, first, Compose);
    let after_all = block_exclusive_scan_rounds_after(cx, &mut shared, &items, Compose, |total| total);
    for round in 0..ROUNDS {
        for i in 0..2 {
            // SAFETY: each thread has places of its own.
            unsafe {
                inclusive.write(place(round, i), to_each[round][i]);
                exclusive.write(place(round, i), before_each[round][i]);
                after.write(place(round, i), after_all[round][i]);
            }
        }
    }
    for i in cx.items(totals.len()) {
        totals.set(i, total);
    }
}
