//! The kernel of scans.

use core::marker::PhantomData;

use kernel_primitives::block::block_exclusive_scan_after;
use kernel_primitives::grid::Chain;
use kernel_primitives::input::{Source, Span};
use kernel_primitives::prelude::*;
use kernel_primitives::simt::WARP;
use kernel_primitives::view::SharedStorage;

/// Threads of a block of [`scan_tiles`](struct@scan_tiles).
pub const SCAN_THREADS: usize = 128;

/// Items of a vector: as many as the source has side by side, up to 16 bytes of results.
const fn vector<S: Source>() -> usize {
    let most = 16 / size_of::<S::Item>();
    if most == 0 {
        1
    } else if most < S::VECTOR {
        most
    } else {
        S::VECTOR
    }
}

/// Vectors that a thread has of a tile, up to some 200 bytes: an odd number, so that lanes which read their own meet in no bank.
const fn vectors<S: Source>() -> usize {
    match (vector::<S>() * size_of::<S::Item>()).div_ceil(16) {
        0 | 1 => 13,
        2 => 7,
        3 | 4 => 3,
        _ => 1,
    }
}

/// Items of a tile of [`scan_tiles`](struct@scan_tiles).
pub const fn scan_tile<S: Source>() -> usize {
    SCAN_THREADS * vectors::<S>() * vector::<S>()
}

/// The kernel of [`algorithms::inclusive_scan`](kernel_primitives::algorithms::inclusive_scan) and its kin: `out[i]` is `first`, and
/// the items up to `x[i]`, that one left out if `EXCLUSIVE`, combined by `op`. A tile a block; `chain` has the memory of a [`Chain`] of all
/// tiles, or none if there is one tile.
#[kernel(threads(SCAN_THREADS), min_blocks(if size_of::<S::Item>() > 4 { 6 } else { 7 }), instantiate(
    <Span<f32>, Add, false>, <Span<f64>, Add, false>, <Span<i32>, Add, false>, <Span<u32>, Add, false>, <Span<i64>, Add, false>, <Span<u64>, Add, false>,
    <Span<f32>, Add, true>, <Span<f64>, Add, true>, <Span<i32>, Add, true>, <Span<u32>, Add, true>, <Span<i64>, Add, true>, <Span<u64>, Add, true>,
    <Span<f32>, Max, false>, <Span<i32>, Max, false>, <Span<f32>, Min, false>, <Span<i32>, Min, false>,
))]
pub fn scan_tiles<S, R, const EXCLUSIVE: bool>(
    cx: Block,
    x: Input<S>,
    first: S::Item,
    mut out: GlobalMut<S::Item>,
    chain: GlobalMut<u64, Atomic>,
    op: R,
    mut ticket: Shared<[u64; 1]>,
    items: Shared<ScanItems<S>>,
    mut shared: Shared<ScanStorage<S::Item, SCAN_THREADS>>,
) where
    S: Source<Item: Element>,
    R: Reducer<S::Item> + KernelParam,
{
    let chain = Chain::new(cx, &chain);
    let tile = if chain.is_empty() { 0 } else { chain.take_tile(&mut ticket) };
    let tile = ScanTile { cx, x, first, chain, tile, op };
    macro_rules! shapes {
        ($($n:literal x $vectors:literal)*) => {
            match const { (vector::<S>(), vectors::<S>()) } {
                $(($n, $vectors) => {
                    let items = items.array(0, SCAN_THREADS * $vectors * $n);
                    scan_by::<S, R, $n, $vectors, SCAN_THREADS, EXCLUSIVE>(tile, &mut out, items, &mut shared)
                })*
                _ => {
                    let items = items.array(0, SCAN_THREADS);
                    scan_by::<S, R, 1, 1, SCAN_THREADS, EXCLUSIVE>(tile, &mut out, items, &mut shared)
                }
            }
        };
    }
    shapes! { 16 x 13  8 x 13  4 x 13  2 x 13  1 x 13  1 x 7  1 x 3 }
}

/// The items of a tile of [`scan_tiles`](struct@scan_tiles).
pub struct ScanItems<S>(PhantomData<S>);

// SAFETY: uninitialised elements.
unsafe impl<S: Source> SharedStorage for ScanItems<S> {
    const BYTES: usize = scan_tile::<S>() * size_of::<S::Item>();
    const ALIGN: usize = 16;
}

/// What one block scans.
#[doc(hidden)]
#[allow(missing_docs, reason = "for this library's own tuning")]
pub struct ScanTile<'a, 'k, S: Source, R> {
    pub cx: Block<'k>,
    pub x: Input<'k, S>,
    pub first: S::Item,
    pub chain: Chain<'a, 'k, S::Item>,
    pub tile: usize,
    pub op: R,
}

/// Scans a tile: its items go to shared memory side by side, each thread combines its own `VECTORS` vectors of `N`, which lie there
/// one after the other, and once it knows what comes before them, once more for the results, which leave side by side. Every warp has a part
/// of `items`, the block's memory for the tile, to itself.
#[doc(hidden)]
#[inline(always)]
pub fn scan_by<S, R, const N: usize, const VECTORS: usize, const THREADS: usize, const EXCLUSIVE: bool>(
    scan: ScanTile<'_, '_, S, R>,
    out: &mut GlobalMut<S::Item>,
    items: SharedArray<'_, S::Item>,
    shared: &mut Shared<ScanStorage<S::Item, THREADS>>,
) where
    S: Source<Item: Element>,
    R: Reducer<S::Item> + Copy,
{
    let ScanTile { cx, x, first, chain, tile, op } = scan;
    let (lane, len) = (cx.lane() as usize, x.len());
    // The warp's part, in the tile and in the input.
    let part = cx.warp() as usize * (WARP as usize * VECTORS * N);
    let start = tile * (THREADS * VECTORS * N) + part;
    let beside = |v: usize| (v * WARP as usize + lane) * N;
    for v in 0..VECTORS {
        let (at, from) = (part + beside(v), start + beside(v));
        // SAFETY: the warp's part, of which each lane writes its vectors; the warp waits below before it reads.
        unsafe {
            if !x.copy::<N>(from, items, at) {
                // What lies behind the end comes last, and changes nothing.
                for i in 0..N {
                    items.store(at + i, x.get(from + i).unwrap_or(op.identity()));
                }
            }
        }
    }
    x.wait_for_copies();
    cx.sync_warp(FULL_MASK);
    let own = part + lane * (VECTORS * N);
    let vector = |v: usize| -> [S::Item; N] {
        // SAFETY: this lane's own vectors, which the warp has written before it waited.
        unsafe { items.load_items(own + v * N) }
    };
    let mut total = thread_reduce_in_order(&vector(0), &op);
    for v in 1..VECTORS {
        total = op.apply(total, thread_reduce_in_order(&vector(v), &op));
    }
    let [mut before] = block_exclusive_scan_after(cx, shared, &[total], op, |total| {
        let before = if chain.is_empty() { op.identity() } else { chain.prefix(tile, total, &op) };
        op.apply(first, before)
    });
    for v in 0..VECTORS {
        let mut results = vector(v);
        for result in &mut results {
            let upto = op.apply(before, *result);
            *result = if EXCLUSIVE { before } else { upto };
            before = upto;
        }
        // SAFETY: as above; the other lanes read these after the next wait.
        unsafe { items.store_items(own + v * N, &results) };
    }
    cx.sync_warp(FULL_MASK);
    for v in 0..VECTORS {
        let to = start + beside(v);
        // SAFETY: written before the wait; of all threads of the grid only this one has these places of the result.
        unsafe {
            let results: [S::Item; N] = items.load_items(part + beside(v));
            if to + N <= len {
                out.write_items(to, &results);
            } else {
                for (i, result) in results.iter().enumerate() {
                    if to + i < len {
                        out.write(to + i, *result);
                    }
                }
            }
        }
    }
}

/// The items combined from the left.
#[inline(always)]
fn thread_reduce_in_order<T: Copy, R: Reducer<T>, const N: usize>(items: &[T; N], op: &R) -> T {
    let mut total = items[0];
    for &item in &items[1..] {
        total = op.apply(total, item);
    }
    total
}
