//! The kernel of scans of segments, tile by tile.

use kernel_primitives::element::Segmented;
use kernel_primitives::grid::Chain;
use kernel_primitives::input::Source;
use kernel_primitives::prelude::*;
use kernel_primitives::simt::WARP;

use super::marks::{MarkWords, Offsets};
use crate::algorithms::scan::kernel::SCAN_THREADS;
use crate::algorithms::tile::scan_runs::{MarkedPart, RunScan, Runs, SegmentScanItems};

/// The kernel of [`algorithms::segmented_inclusive_scan`](kernel_primitives::algorithms::segmented_inclusive_scan) and the algorithms like
/// it: `out[i]` is `first`, and the items of the segment of `x[i]` up to it, that one left out if `exclusive`, combined by `op`. A tile a
/// block, of so many `vectors` a thread ([`SegmentScanItems`]); `chain` has the memory of a [`Chain`] of all tiles of the epoch `epoch`,
/// or none if there is one tile. There may be more tiles than items take.
///
/// Tiles are of items, whatever segments they have. A warp looks for the first segment that begins in its part of a tile,
/// and marks the items that begin one, while the items are on their way. What the tiles before amount to matters up to the
/// first head alone, so that a tile waits for those back to the last one with a head.
#[kernel(launch(pub(crate)), threads(SCAN_THREADS), min_blocks(4))]
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

impl<O: Source<Item: Integer + ConvertTo<u64>>> Runs for Offsets<'_, O> {
    #[inline(always)]
    fn len(self) -> usize {
        self.items
    }

    #[inline(always)]
    fn are_aligned<const N: usize>(self, _: usize) -> bool {
        true
    }

    /// The block checks its share of the offsets before: those are close to the ones that it marks, if segments are alike.
    fn mark<const N: usize, const STAGED: usize>(self, part: MarkedPart) {
        let MarkedPart { cx, start, words, first_vector, .. } = part;
        let first_word = first_vector / size_of::<u32>();
        let to = MarkWords { cx, words, first_word, first: start, len: STAGED * WARP as usize * N, lead: 0 };
        to.clear::<N>();
        self.check_share(cx, (cx.block_rank(), cx.grid_blocks()), cx.thread_rank() as usize);
        cx.sync_warp(FULL_MASK);
        self.put::<N>(to);
    }
}
