//! The kernel of scans.

use kernel_primitives::block::{block_exclusive_scan_rounds_after, block_inclusive_scan_rounds_after};
use kernel_primitives::grid::Chain;
use kernel_primitives::input::{Source, Span};
use kernel_primitives::prelude::*;
use kernel_primitives::simt::WARP;

use super::by_vector;

/// Threads of a block of [`scan_tiles`].
pub const SCAN_THREADS: usize = 128;

/// Bytes of a thread's items.
const BYTES: usize = 128;

/// Items of a tile of [`scan_tiles`] whose source has vectors of `vector` items.
pub const fn scan_tile<S: Source>() -> usize {
    SCAN_THREADS * rounds(S::VECTOR, size_of::<S::Item>()) * S::VECTOR
}

/// Rounds of vectors.
const fn rounds(vector: usize, item: usize) -> usize {
    let vectors = BYTES / (vector * item);
    if vectors >= 8 {
        8
    } else if vectors >= 4 {
        4
    } else if vectors >= 2 {
        2
    } else {
        1
    }
}

/// The kernel of [`algorithms::inclusive_scan`](kernel_primitives::algorithms::inclusive_scan) and its kin: `out[i]` is `first`, and
/// the items up to `x[i]`, that one left out if `EXCLUSIVE`, combined by `op`. A tile a block; `chain` has the memory of a [`Chain`] of all
/// tiles, or none if there is one tile.
#[kernel(threads(SCAN_THREADS), min_blocks(if size_of::<S::Item>() > 4 { 5 } else { 6 }), instantiate(
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
    mut shared: Shared<ScanStorage<S::Item>>,
) where
    S: Source<Item: Element>,
    R: Reducer<S::Item> + KernelParam,
{
    let chain = Chain::new(cx, &chain);
    let tile = if chain.is_empty() { 0 } else { chain.take_tile(&mut ticket) };
    by_vector!(S, by_rounds::<S, R; VECTOR, EXCLUSIVE>(cx, x, first, &mut out, chain, tile, op, &mut shared));
}

#[allow(clippy::too_many_arguments, reason = "a part of the kernel")]
#[inline(always)]
fn by_rounds<S: Source<Item: Element>, R: Reducer<S::Item> + Copy, const N: usize, const EXCLUSIVE: bool>(
    cx: Block,
    x: Input<S>,
    first: S::Item,
    out: &mut GlobalMut<S::Item>,
    chain: Chain<'_, '_, S::Item>,
    tile: usize,
    op: R,
    shared: &mut Shared<ScanStorage<S::Item>>,
) {
    match const { rounds(N, size_of::<S::Item>()) } {
        8 => scan_tile_of::<S, R, N, 8, EXCLUSIVE>(cx, x, first, out, chain, tile, op, shared),
        4 => scan_tile_of::<S, R, N, 4, EXCLUSIVE>(cx, x, first, out, chain, tile, op, shared),
        2 => scan_tile_of::<S, R, N, 2, EXCLUSIVE>(cx, x, first, out, chain, tile, op, shared),
        _ => scan_tile_of::<S, R, N, 1, EXCLUSIVE>(cx, x, first, out, chain, tile, op, shared),
    }
}

/// One tile: `ROUNDS` vectors of `N` items a thread, which the lanes of a warp read side by side.
#[allow(clippy::too_many_arguments, reason = "a part of the kernel")]
#[inline(always)]
#[doc(hidden)]
pub fn scan_tile_of<S, R, const N: usize, const ROUNDS: usize, const EXCLUSIVE: bool>(
    cx: Block,
    x: Input<S>,
    first: S::Item,
    out: &mut GlobalMut<S::Item>,
    chain: Chain<'_, '_, S::Item>,
    tile: usize,
    op: R,
    shared: &mut Shared<ScanStorage<S::Item>>,
) where
    S: Source<Item: Element>,
    R: Reducer<S::Item> + Copy,
{
    let warp = tile * (cx.block_threads() as usize * (N * ROUNDS)) + (cx.warp() * WARP) as usize * (N * ROUNDS);
    let start = warp + cx.lane() as usize * N;
    let stride = WARP as usize * N;
    // What lies behind the end comes last in its tile, and changes nothing.
    let mut items = [[op.identity(); N]; ROUNDS];
    if let Some(vectors) = x.vectors::<N, ROUNDS>(start, stride) {
        items = vectors;
    } else {
        for (round, items) in items.iter_mut().enumerate() {
            for (i, item) in items.iter_mut().enumerate() {
                if let Some(value) = x.get(start + round * stride + i) {
                    *item = value;
                }
            }
        }
    }
    let prefix = |total| {
        let before = if chain.is_empty() { op.identity() } else { chain.prefix(tile, total, &op) };
        op.apply(first, before)
    };
    let results = if EXCLUSIVE {
        block_exclusive_scan_rounds_after(cx, shared, &items, op, prefix)
    } else {
        block_inclusive_scan_rounds_after(cx, shared, &items, op, prefix)
    };
    let end = x.len();
    for (round, results) in results.iter().enumerate() {
        let first = start + round * stride;
        if first + N <= end {
            // SAFETY: of all threads of the grid only this one has these places.
            unsafe { out.write_items(first, results) };
        } else {
            for (i, result) in results.iter().enumerate() {
                if first + i < end {
                    // SAFETY: as above.
                    unsafe { out.write(first + i, *result) };
                }
            }
        }
    }
}
