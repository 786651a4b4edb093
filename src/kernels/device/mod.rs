//! The kernels of [`algorithms`](kernel_primitives::algorithms). A program instantiates them for its own types and functors.
//!
//! Most of them rely on numbers, memory and results of earlier launches that their algorithm prepares. Only the algorithm launches these.
//! They check all values that come from data, functors and comparators. Whatever these values are, no access is outside a buffer.

use kernel_primitives::prelude::*;

mod shipped;

pub use crate::algorithms::by_key::kernel::{ReduceByKeyStorage, reduce_by_key_tiles};
pub use crate::algorithms::by_key::run_length::{RunLengthItems, run_length_tiles};
pub use crate::algorithms::by_key::scan::scan_by_key_tiles;
pub use crate::algorithms::difference::kernel::{DIFFERENCE_VECTORS, difference_tiles};
pub use crate::algorithms::fourier::kernel::{fft_lines, fft_lines_in_place};
pub use crate::algorithms::fourier::lines::{
    FFT_AFTER, FFT_BEFORE, FFT_CUT, FFT_HALF_INPUT, FFT_HALF_OUTPUT, FFT_MIRRORED, FFT_NUMBERS, FFT_PAD, FFT_PADDED,
    FFT_PAIRS_INPUT, FFT_PAIRS_OUTPUT, FFT_TWIDDLES, FftPass, FftSide, fft_pitch, fft_place, fft_shared_bytes,
    fft_threads,
};
pub use crate::algorithms::fourier::steps::FFT_STEPS;
pub use crate::algorithms::histogram::kernel::{
    Binnable, Binning, EvenBins, FloatScale, HISTOGRAM_THREADS, HISTOGRAM_VECTORS, LevelBins, LongRatio, Ratio,
    histogram_counters, histogram_tiles,
};
pub use crate::algorithms::merge::kernel::{
    MERGE_SPLIT_THREADS, MERGE_THREADS, MergePass, MergeStorage, NETWORK_THREADS, merge_splits, merge_threads,
    merge_tile_items, merge_tiles, merge_tiles_pairs,
};
pub use crate::algorithms::merge_sort::kernel::{
    MERGE_SORT_THREADS, MergeSortShape, merge_sort_tile_items, merge_sort_tiles, merge_sort_tiles_pairs,
};
pub use crate::algorithms::reduce::kernel::{REDUCE_THREADS, REDUCE_VECTORS, reduce_tiles};
pub use crate::algorithms::scan::kernel::{SCAN_THREADS, ScanItems, ScanTiles, scan_tiles, scan_vector};
pub use crate::algorithms::scan::pipeline::{
    SCAN_PIPELINE_SLOTS, SCAN_PIPELINE_THREADS, ScanPipelineStorage, scan_pipeline, scan_pipeline_shared,
    scan_pipeline_tile,
};
pub use crate::algorithms::search::kernel::search_tiles;
pub use crate::algorithms::segmented::kernel::{
    SEGMENT_ENDS_THREADS, SEGMENT_THREADS, SegmentStorage, segment_ends, segment_tile_items, segment_tiles,
};
pub use crate::algorithms::segmented::scan::{SEGMENT_SCAN_OFFSETS, segment_scan_tiles};
pub use crate::algorithms::segmented::scan_warps::{
    SEGMENT_SCAN_WARPS_THREADS, segment_scan_lane_bits, segment_scan_warp_items, segment_scan_warps,
};
pub use crate::algorithms::segmented::warps::{
    SEGMENT_PAIRS, SEGMENT_WARPS_THREADS, segment_warp_items, segment_warps,
};
pub use crate::algorithms::segmented_sort::kernel::{
    SEGMENT_SORT_THREADS, SegmentSortTileStorage, segment_sort_short_items, segment_sort_tile_items,
    segment_sort_tiles, segment_sort_tiles_pairs,
};
pub use crate::algorithms::segmented_sort::merges::{
    SegmentMergePass, segment_merge_tiles, segment_merge_tiles_pairs, segment_sort_last,
};
pub use crate::algorithms::segmented_sort::ranks::{
    SEGMENT_RANK_THREADS, segment_merge_ranks, segment_merge_ranks_pairs,
};
pub use crate::algorithms::select::kernel::select_tiles;
pub use crate::algorithms::sort::kernel::{
    SORT_AHEAD, SORT_PORTION, SORT_THREADS, SortPass, SortShape, begin_digits, count_digits, count_digits_bytes,
    sort_sweep, sort_sweep_pairs, sort_tile, sort_tile_items, sort_tile_pairs,
};
pub use crate::algorithms::sparse::kernel::csr::{CSR_FIRST_ENTRIES, CSR_THREADS, csr_rows};
pub use crate::algorithms::sparse::kernel::csr_build::{
    CSR_BUILD_THREADS, CSR_DECREASING, CSR_FIRST, CSR_GIANT_ENTRIES, CSR_LAST, CSR_LONG_ROW, CSR_LONG_STEPS,
    CSR_LONGEST, CSR_MOST_STEPS, CSR_OUTSIDE, CSR_SHORT_STEPS, CSR_STEPS, CSR_UNSEEN, CSR_WAYS, csr_check, csr_giants,
    csr_keys, csr_row_indices, csr_rows_of_keys,
};
pub use crate::algorithms::sparse::kernel::csr_by_length::{
    CSR_SHARE, CSR_SHORT, csr_by_length_fits, csr_giant_rows, csr_rows_by_length,
};
pub use crate::algorithms::sparse::kernel::csr_path::{
    CSR_ENDS_THREADS, CSR_SPLIT_STEPS, CSR_TILE_THREADS, csr_ends, csr_path_fits, csr_splits, csr_tile_steps,
};
pub use crate::algorithms::sparse::kernel::csr_staged::{
    CSR_CHUNK, CSR_STAGED_LANES, CsrStaged, csr_staged_rows, csr_stages,
};
pub use crate::algorithms::sparse::kernel::csr_tiles::{CsrStorage, csr_tiles};
pub use crate::algorithms::sparse::kernel::csr_vectors::{CSR_NARROW, csr_lane_vectors, csr_row_vectors};
pub use crate::algorithms::sparse::kernel::csr_window::{
    CSR_WINDOW_LANES, CSR_WINDOW_ROWS, CSR_WINDOW_THREADS, CsrWindow, csr_window_room, csr_window_rows, csr_windows,
};
pub use crate::algorithms::sparse::kernel::sell::{SELL_BEGIN, SELL_ROWS, sell_fill, sell_keys, sell_rows, sell_slots};
pub use crate::algorithms::tile::runs::RunTiles;
pub use crate::algorithms::tile::scan_runs::{ScanByKeyItems, SegmentScanItems};
pub use crate::algorithms::tile::staged::{STAGE_THREADS, StagedStorage, StagedTiles};
pub use crate::algorithms::tile::warp_items;
pub use crate::algorithms::tile::warps::WarpStorage;
pub use crate::algorithms::top_k::kernel::{
    TOP_K_BLOCKS, TOP_K_MOST, TOP_K_THREADS, TOP_K_TILE, top_k_last, top_k_last_pairs, top_k_tiles,
};
pub use crate::algorithms::transform::kernel::{SCATTER_ITEMS, scatter_tiles, transform_tiles, transform_vectors};
pub use crate::algorithms::unique::kernel::{UniqueStorage, unique_bytes, unique_tiles};
