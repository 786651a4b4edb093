//! The kernel of scans of runs of equal keys.

use kernel_primitives::element::Segmented;
use kernel_primitives::grid::Chain;
use kernel_primitives::input::Source;
use kernel_primitives::prelude::*;

use crate::algorithms::scan::kernel::SCAN_THREADS;
use crate::algorithms::tile::runs::{Marks, mark};
use crate::algorithms::tile::scan_runs::{MarkedPart, RunScan, Runs, ScanByKeyItems};
use crate::algorithms::tile::warps::any_item;

/// The number of vectors of keys of a thread that are in flight at a time.
const AHEAD: usize = 13;

// PTX: scan_by_key_tiles__Span_u32_Span_f32_Add has 60 loads and 30 stores of 16 bytes, staged.

/// The kernel of [`algorithms::inclusive_scan_by_key`](kernel_primitives::algorithms::inclusive_scan_by_key) and similar algorithms.
/// `out[i]` is `first` and the values of the run of `keys[i]` up to item `i`, combined by `op`. If `exclusive`, item `i` itself is left
/// out. Each block has one tile, with `vectors` vectors for each thread ([`ScanByKeyItems::tiles`]). `chain` has the memory of a [`Chain`]
/// of all tiles of the epoch `epoch`, or is empty if there is one tile.
#[kernel(launch(pub(crate)), threads(SCAN_THREADS), one_dimensional, min_blocks(4))]
#[allow(clippy::too_many_arguments, reason = "a kernel's parameters")]
pub fn scan_by_key_tiles<K, V, R>(
    cx: Block,
    keys: Input<K>,
    values: Input<V>,
    first: V::Item,
    mut out: GlobalMut<V::Item>,
    chain: GlobalMut<u64, Atomic>,
    epoch: u32,
    vectors: u32,
    exclusive: bool,
    op: R,
    mut ticket: Shared<[u64; 1]>,
    items: Shared<ScanByKeyItems<K, V>>,
    mut shared: Shared<ScanStorage<Segmented<V::Item>>>,
) where
    K: Source<Item: Element + PartialEq>,
    V: Source<Item: Element>,
    R: Reducer<V::Item> + KernelParam,
{
    // There is no key that it could compare.
    if keys.is_empty() {
        return;
    }
    let chain = Chain::new(cx, &chain, cx.grid_blocks()).epoch(epoch);
    let tile = chain.take_tile(&mut ticket);
    let scan = RunScan { cx, runs: Keys(keys), values, first, exclusive, op };
    scan.tile(vectors, (tile, chain), &mut out, &items, &mut shared);
}

/// Items with equal keys are a run.
#[derive(Clone, Copy)]
struct Keys<'k, K: Source>(Input<'k, K>);

impl<K: Source<Item: Element + PartialEq>> Runs for Keys<'_, K> {
    #[inline(always)]
    fn len(self) -> usize {
        self.0.len()
    }

    #[inline(always)]
    fn are_aligned<const N: usize>(self, first: usize) -> bool {
        self.0.is_aligned::<N>(first)
    }

    fn mark<const N: usize, const STAGED: usize>(self, part: MarkedPart) {
        let MarkedPart { cx, start, heads, first_vector, .. } = part;
        let earlier = self.0.get(start.wrapping_sub(1)).unwrap_or_else(|| any_item(self.0));
        let mut marks = Marks { cx, heads, first: first_vector + cx.lane() as usize, earlier };
        mark::<K, N, AHEAD>(self.0, start, STAGED, &mut marks);
    }
}
