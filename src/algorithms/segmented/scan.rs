//! The kernel of scans of segments.

use kernel_primitives::element::Segmented;
use kernel_primitives::grid::Chain;
use kernel_primitives::input::Source;
use kernel_primitives::prelude::*;
use kernel_primitives::simt::WARP;

use super::kernel::offsets_before;
use crate::algorithms::scan::kernel::SCAN_THREADS;
use crate::algorithms::search::kernel::warp_bound;
use crate::algorithms::tile::scan_runs::{MarkedPart, RunScan, Runs, SegmentScanItems};

#[cfg(test)]
mod tests;

/// The number of offsets of a lane that are in flight at a time.
const AHEAD: usize = 8;

/// The most offsets that a block of [`segment_scan_tiles`](struct@segment_scan_tiles) checks. A launch has enough blocks for all offsets.
pub const SEGMENT_SCAN_OFFSETS: usize = 128 * SCAN_THREADS;

// PTX: segment_scan_tiles__Span_f32_Span_u32_Add has 30 loads and 30 stores of 16 bytes, staged.

/// The kernel of [`algorithms::segmented_inclusive_scan`](kernel_primitives::algorithms::segmented_inclusive_scan) and similar algorithms.
/// `out[i]` is `first` and the items of the segment of `x[i]` up to `x[i]`, combined by `op`. If `exclusive`, `x[i]` itself is left out.
/// Each block has one tile, with `vectors` vectors for each thread ([`SegmentScanItems`]). `chain` has the memory of a [`Chain`] of all
/// tiles of the epoch `epoch`, or is empty if there is one tile. There may be more tiles than the items need.
///
/// A tile is a number of items, which may be in any segments. A warp finds the first segment that begins in its part of a tile, and marks
/// the items that begin a segment, while the items are in flight. The result of the tiles before matters only up to the first head. So a
/// tile waits only for the tiles back to the last one with a head.
#[kernel(launch(pub(crate)), threads(SCAN_THREADS), one_dimensional, min_blocks(4))]
#[allow(clippy::too_many_arguments, reason = "a kernel's parameters")]
pub fn segment_scan_tiles<S, O, R>(
    cx: Block,
    x: Input<S>,
    offsets: Input<O>,
    first: S::Item,
    mut out: GlobalMut<S::Item>,
    chain: GlobalMut<u64, Atomic>,
    epoch: u32,
    vectors: u32,
    exclusive: bool,
    op: R,
    mut ticket: Shared<[u64; 1]>,
    items: Shared<SegmentScanItems<S>>,
    mut shared: Shared<ScanStorage<Segmented<S::Item>>>,
) where
    S: Source<Item: Element>,
    O: Source<Item: Integer + ConvertTo<u64>>,
    R: Reducer<S::Item> + KernelParam,
{
    let chain = Chain::new(cx, &chain, cx.grid_blocks()).epoch(epoch);
    let tile = chain.take_tile(&mut ticket);
    let scan = RunScan { cx, runs: Offsets { offsets, items: x.len() }, values: x, first, exclusive, op };
    scan.tile(vectors, (tile, chain), &mut out, &items, &mut shared);
}

/// The items between two offsets are a run, and so are the items before the first offset.
#[derive(Clone, Copy)]
struct Offsets<'k, O: Source> {
    offsets: Input<'k, O>,
    items: usize,
}

impl<O: Source<Item: Integer + ConvertTo<u64>>> Runs for Offsets<'_, O> {
    #[inline(always)]
    fn len(self) -> usize {
        self.items
    }

    #[inline(always)]
    fn are_aligned<const N: usize>(self, _: usize) -> bool {
        true
    }

    /// Before it marks items, the block checks its share of the offsets. These are close to the ones that it marks, if segments are
    /// similar.
    fn mark<const N: usize, const STAGED: usize>(self, part: MarkedPart) {
        let MarkedPart { cx, start, words, first_vector, .. } = part;
        let lane = cx.lane() as usize;
        for word in (lane..STAGED * WARP as usize / VECTORS).step_by(WARP as usize) {
            // The input's first item begins a run.
            let marks = (start + word == 0) as u32;
            // SAFETY: the warp's own words, of which each lane writes some; the others wait.
            unsafe { words.store(first_vector / VECTORS + word, marks) };
        }
        check_share(cx, self.offsets, self.items);
        cx.sync_warp(FULL_MASK);
        self.mark_offsets::<N, STAGED>(part);
    }
}

impl<O: Source<Item: Integer + ConvertTo<u64>>> Offsets<'_, O> {
    /// Marks the items of a warp's part at which a segment begins, in addition to earlier marks.
    fn mark_offsets<const N: usize, const STAGED: usize>(self, part: MarkedPart) {
        let Self { offsets, items } = self;
        let MarkedPart { cx, start, .. } = part;
        let lane = cx.lane() as usize;
        let end = (start + STAGED * WARP as usize * N) as u64;
        // After the last offset, this returns a place that is in no part.
        let at = |index: usize| offsets.get(index).map_or(u64::MAX, ConvertTo::convert);
        let mut next = offsets_before(cx, offsets, offsets.len(), (start as u64, items as u64));
        loop {
            let mut begins = [u64::MAX; AHEAD];
            for (k, begin) in begins.iter_mut().enumerate() {
                *begin = at(next + k * WARP as usize + lane);
            }
            for &begin in &begins {
                put::<N>(part, begin, end);
            }
            let [least, greatest] =
                [(begins[0], 0), (begins[AHEAD - 1], WARP - 1)].map(|(begin, lane)| warp_broadcast(cx, begin, lane));
            // This is a vote, because a lane that found a wrong offset has left, and a shuffle from it returns anything.
            if cx.any(FULL_MASK, begins[AHEAD - 1] >= end) {
                return;
            }
            next += AHEAD * WARP as usize;
            if least == greatest {
                // There may be any number of empty segments.
                next += warp_bound(cx, offsets.len().saturating_sub(next), |index| at(next + index) <= greatest);
            }
        }
    }
}

/// Faults unless the block's share of all offsets is in order and inside.
#[track_caller]
fn check_share<O: Source<Item: Integer + ConvertTo<u64>>>(cx: Block, offsets: Input<O>, items: usize) {
    let at = |index: usize| offsets.get(index).map_or(0, ConvertTo::convert);
    // The divisor is at least one. Otherwise the compiler would make the kernel prepare for a panic.
    let share = offsets.len().div_ceil(cx.grid_blocks().max(1));
    let first = cx.block_rank() * share;
    let end = (first + share).min(offsets.len());
    let mut next = first + cx.thread_rank() as usize;
    while next < end {
        let mut segments = [(0u64, 0u64); AHEAD];
        for (k, segment) in segments.iter_mut().enumerate() {
            let index = next + k * SCAN_THREADS;
            if index < end {
                *segment = (at(index.wrapping_sub(1)), at(index));
            }
        }
        for &(begin, end) in &segments {
            cx.require_at_most(begin as usize, end as usize);
            cx.require_at_most(end as usize, items);
        }
        next += AHEAD * SCAN_THREADS;
    }
}

/// The number of vectors whose marks are in a word.
const VECTORS: usize = size_of::<u32>();

/// Marks the item at `begin`, for each lane of a warp, if the part has it. The part ends before `end`. The lanes' items do not decrease.
fn put<const N: usize>(part: MarkedPart, begin: u64, end: u64) {
    let MarkedPart { cx, start, words, first_vector, .. } = part;
    let is_inside = begin >= start as u64 && begin < end;
    if !cx.any(FULL_MASK, is_inside) {
        return;
    }
    let place = begin.wrapping_sub(start as u64) as u32;
    let (vector, item) = (place / N as u32, place % N as u32);
    let word = if is_inside { vector / VECTORS as u32 } else { u32::MAX };
    let mut marks = if is_inside { 1u32 << (vector % VECTORS as u32 * u8::BITS + item) } else { 0 };
    // Lanes with the same word are neighbours. The last of them has the marks of all, and writes the word alone.
    let lane = cx.lane();
    let is_shared = word == cx.shuffle_down(FULL_MASK, word, 1, WARP) && lane < WARP - 1;
    if cx.any(FULL_MASK, is_shared && is_inside) {
        let mut apart = 1;
        while apart < WARP {
            let [other, others] = [word, marks].map(|value| cx.shuffle_up(FULL_MASK, value, apart, WARP));
            // A lane without a lane `apart` below it gets its own marks, which changes nothing.
            marks |= if other == word { others } else { 0 };
            apart *= 2;
        }
    }
    if is_inside && !is_shared {
        // SAFETY: inside the part; atomic between the waits of the warp.
        unsafe { words.at(first_vector / VECTORS + word as usize).fetch_or(marks) };
    }
}
