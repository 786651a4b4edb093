//! The kernels of [`algorithms`](kernel_primitives::algorithms): what a program instantiates for types and functors of its own.
//!
//! Most of them rely on numbers, memory and results of earlier launches that their algorithm prepares, and only that launches them. What
//! data, functors and comparators say, they check themselves: whatever it is, no access lies outside a buffer.

use kernel_primitives::prelude::*;
use kernel_primitives::simt::WARP;

mod by_key;
mod csr;
mod csr_build;
mod csr_vectors;
mod difference;
mod histogram;
mod merge;
mod merge_sort;
mod pipeline;
mod reduce;
mod run_length;
mod runs;
mod scan;
mod scan_by_key;
mod search;
mod segmented;
mod segmented_sort;
mod select;
mod sell;
mod shipped;
mod sort;
mod staged;
mod tile;
mod top_k;
mod transform;
mod unique;

pub use by_key::{ReduceByKeyStorage, reduce_by_key_tiles};
pub use csr::{CSR_ENDS_THREADS, CSR_THREADS, CsrStorage, csr_ends, csr_rows, csr_tile_steps, csr_tiles};
pub use csr_build::{
    CSR_BUILD_THREADS, CSR_DECREASING, CSR_FIRST, CSR_LAST, CSR_LONGEST, CSR_OUTSIDE, CSR_STEPS, CSR_UNSEEN, CSR_WAYS,
    csr_check, csr_keys, csr_row_indices, csr_rows_of_keys,
};
pub use csr_vectors::csr_row_vectors;
pub use difference::{DIFFERENCE_VECTORS, difference_tiles};
pub use histogram::{
    Binnable, Binning, EvenBins, FloatScale, HISTOGRAM_THREADS, HISTOGRAM_VECTORS, LevelBins, LongRatio, Ratio,
    histogram_counters, histogram_tiles,
};
pub use merge::{
    MERGE_SPLIT_THREADS, MERGE_THREADS, MergePass, MergeStorage, merge_splits, merge_tile_items, merge_tiles,
    merge_tiles_pairs,
};
pub use merge_sort::{
    MERGE_SORT_THREADS, MergeSortShape, merge_sort_tile_items, merge_sort_tiles, merge_sort_tiles_pairs,
};
pub use pipeline::{
    SCAN_PIPELINE_SLOTS, SCAN_PIPELINE_THREADS, ScanPipelineStorage, scan_pipeline, scan_pipeline_shared,
    scan_pipeline_tile,
};
pub use reduce::{REDUCE_THREADS, REDUCE_VECTORS, reduce_tiles};
pub use run_length::{RunLengthItems, run_length_tiles};
pub use runs::RunTiles;
pub use scan::{SCAN_THREADS, ScanItems, ScanTiles, scan_tiles, scan_vector};
pub use scan_by_key::{ScanByKeyItems, scan_by_key_tiles};
pub use search::search_tiles;
pub use segmented::{
    SEGMENT_ENDS_THREADS, SEGMENT_PAIRS, SEGMENT_THREADS, SEGMENT_WARPS_THREADS, SegmentStorage, check_offsets,
    segment_ends, segment_tile_items, segment_tiles, segment_warp_items, segment_warps,
};
pub use segmented_sort::{
    SEGMENT_RANK_THREADS, SEGMENT_SORT_THREADS, SegmentMergePass, SegmentSortTileStorage, segment_merge_ranks,
    segment_merge_ranks_pairs, segment_merge_tiles, segment_merge_tiles_pairs, segment_sort_last,
    segment_sort_short_items, segment_sort_tile_items, segment_sort_tiles, segment_sort_tiles_pairs,
};
pub use select::select_tiles;
pub use sell::{SELL_ROWS, sell_fill, sell_keys, sell_rows, sell_slots};
pub use sort::{
    SORT_AHEAD, SORT_PORTION, SORT_THREADS, SortPass, SortShape, begin_digits, count_digits, count_digits_bytes,
    sort_sweep, sort_sweep_pairs, sort_tile, sort_tile_items, sort_tile_pairs,
};
pub use staged::{STAGE_THREADS, StagedStorage, StagedTiles};
pub use tile::WarpStorage;
pub use top_k::{TOP_K_BLOCKS, TOP_K_MOST, TOP_K_THREADS, TOP_K_TILE, top_k_last, top_k_last_pairs, top_k_tiles};
pub use transform::{SCATTER_ITEMS, scatter_tiles, transform_tiles, transform_vectors};
pub use unique::{UniqueStorage, unique_bytes, unique_tiles};

/// Items that a warp has of so many rounds of a vector a lane, where each has a part of the input, whatever the blocks' shape.
pub const fn warp_items(rounds: usize, vector: usize) -> usize {
    WARP as usize * rounds * vector
}

/// The first item of this thread's first vector, where each of the grid's warps has so many rounds of vectors of `N`
/// items: the lanes' side by side, one round `32 * N` items behind the other. Threads of blocks that are no whole warps
/// are counted on into the next block.
#[inline(always)]
fn first_of_warp<const N: usize>(cx: Block, rounds: usize) -> usize {
    let thread = cx.block_rank() * cx.block_threads() as usize + cx.thread_rank() as usize;
    thread / WARP as usize * warp_items(rounds, N) + thread % WARP as usize * N
}

/// Bytes of a block's shared memory that a kernel needs for what it reports faults to.
const CONTROL: usize = 16;

/// Whether blocks may have 64 KiB of shared memory and no more: in code for architectures before sm_80, and in the emulator, whose
/// options say how much there is.
#[inline(always)]
fn has_little_shared(cx: Block<'_>) -> bool {
    cfg!(not(target_arch = "nvptx64")) || cx.arch() < 800
}

/// Calls a function with the number of items in a vector of the source as its constant.
macro_rules! by_vector {
    ($source:ty, $f:ident::<$($t:ty),*; VECTOR $(, $constant:tt)*>($($arg:expr),*)) => {
        match const { <$source as kernel_primitives::input::Source>::VECTOR } {
            16 => $f::<$($t,)* 16 $(, $constant)*>($($arg),*),
            8 => $f::<$($t,)* 8 $(, $constant)*>($($arg),*),
            4 => $f::<$($t,)* 4 $(, $constant)*>($($arg),*),
            2 => $f::<$($t,)* 2 $(, $constant)*>($($arg),*),
            _ => $f::<$($t,)* 1 $(, $constant)*>($($arg),*),
        }
    };
}
use by_vector;
