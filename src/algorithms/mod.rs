//! Algorithms over whole buffers. Each is one call.
//!
//! An input is a buffer, a slice of one, or what [`input`](crate::input) computes from these. The keys and values of [`sort_keys`],
//! [`sort_pairs`] and their forms `_by_bits`, the levels of [`histogram_ranges`], and the `z` of [`spmv_with`] and [`spmm_with`] cannot be
//! computed. An output is a buffer or a slice of one. In [`transform`], [`generate`], [`gather`] and Fourier transforms, it can also be
//! what [`output`](crate::output) makes of these. The compiler does not accept an input that is also an output of the call;
//! [`fft_in_place`] and [`ifft_in_place`] have one argument for both.
//!
//! The first argument says where an algorithm runs: a `&Stream`, or a [`Run`], which adds options to a stream. A call returns when its
//! launches are in the stream's queue. Results stay on the device.
//!
//! | algorithm | result |
//! |---|---|
//! | [`transform`]; [`generate`], [`fill`] | a function of each item; of each index; one value |
//! | [`gather`], [`scatter`] | items from or to indices |
//! | [`reduce`] | all items as one, by any [`Reduction`](crate::functor::Reduction): sums, extremes, their places, norms, … |
//! | [`segmented_reduce`]; [`segmented_inclusive_scan`], [`segmented_exclusive_scan`] | the items of each segment as one; a scan of each |
//! | [`inclusive_scan`], [`exclusive_scan`] | all items up to each, or before it, as one |
//! | [`adjacent_difference`] | a function of each item and the one before |
//! | [`histogram_even`], [`histogram_ranges`] | how many items are in each bin |
//! | [`lower_bound`], [`upper_bound`] | where items go in a sorted input |
//! | [`sort_keys`], [`sort_pairs`] | keys in order, alone or with a value each; stable |
//! | [`sort_keys_by_bits`], [`sort_pairs_by_bits`] | keys in the order of some of their bits |
//! | [`sort_by`], [`sort_pairs_by`] | items in the order of any comparator, alone or with a value each; stable |
//! | [`segmented_sort`], [`segmented_sort_pairs`] | the items of each segment in order |
//! | [`merge`], [`merge_pairs`] | two sorted inputs as one; stable |
//! | [`spmv`], [`spmv_by`], [`spmv_with`] | a sparse matrix, [`Csr`], [`Sell`] or the [`Planned`] one of both, times a vector, by any two operators; from triplets or a Matrix Market file, [`Coo`] |
//! | [`spmm`], [`spmm_by`], [`spmm_with`] | a sparse matrix times several vectors at once |
//! | [`fft`], [`ifft`], [`rfft`], [`irfft`]; [`fft_in_place`], [`ifft_in_place`], [`fft_by`] | Fourier transforms along any axes of an array, complex or real, by a kept [`FftPlan`] |
//! | [`FftChain`] | transforms of [expressions](crate::expr), with expressions between them and after them, in one kernel |
//! | [`top_k`], [`top_k_pairs`] | the first few in an order, sorted, alone or with a value each |
//! | [`select_if`], [`select_flagged`]; [`partition`], [`stable_partition`] | the items whose predicate or flag is true; and the rest after them |
//! | [`unique`], [`unique_by_key`] | the first of each run of equal items |
//! | [`run_length_encode`]; [`reduce_by_key`] | each run's item and length; each run's key, and its values as one |
//! | [`inclusive_scan_by_key`], [`exclusive_scan_by_key`] | a scan that starts again with each run |
//!
//! **Memory.** An algorithm takes its temporary memory from the stream's pool, and gives it back; no thread waits for that. A [`Workspace`]
//! keeps the memory from call to call instead. On a GPU, a stream itself keeps the 36 KiB that reductions, scans and selections of few tiles
//! take: a call without a workspace takes as long as one with a workspace. A graph cannot allocate memory. So a capture needs a workspace that was used before for the
//! same call with inputs of the same lengths, or that is [large enough](Workspace::with_capacity), unless the algorithm needs no memory for
//! these lengths. A call with fewer items may need more memory.
//!
//! **Lengths.** An input has up to 2^48 items, even if it is computed. If it has more, each algorithm returns
//! [`Error::LaunchLimit`](crate::Error::LaunchLimit). [`top_k`] and [`top_k_pairs`] take up to 2^44 items if `k` is at most 1024.
//!
//! **Functors and types.** Most algorithms are ready for all numbers, `i8` to `u64`, `f16`, `bf16`, `f32` and `f64`, with the usual
//! operators. Sparse products and Fourier transforms are ready for `f32` and `f64`, and algorithms by key for keys that are integers of 32
//! and 64 bits. [`docs::ready`](crate::docs::ready) lists what each is ready for. For its own types and functors, a program writes one line
//! in its kernel module, such as `instantiate!(kernel_primitives::algorithms::reduce<f32, MyReduction>);`. This line makes all kernels that
//! the algorithm launches. Without it, the call does not compile, and the error shows the line. Each algorithm has a trait, such as
//! [`Reduce`], that says for which types it has kernels. Generic code has the trait in its bounds: `T: InclusiveScan<Add, Tag>`, where the
//! compiler infers `Tag`. If one `instantiate!` names several algorithms, they share the kernels that more than one of them launches.
//!
//! **Tuning.** One table of values, by architecture and element size, says how each algorithm is launched. [`Tuning`] prints it. A program
//! or an environment variable can change its values.
//!
//! ```
//! use kernel_primitives::algorithms::{inclusive_scan, reduce};
//! use kernel_primitives::functor::{Add, ArgMax, Sum};
//! use kernel_primitives::Device;
//!
//! # fn main() -> kernel_primitives::Result<()> {
//! let stream = Device::auto()?.stream()?;
//! let x = stream.buffer_from(&[3.0f32, 1.0, 4.0, 1.0, 5.0])?;
//! let mut sum = stream.buffer_zeroed::<f32>(1)?;
//! reduce(&stream, &x, Sum, &mut sum)?;
//! assert_eq!(sum.to_vec()?, [14.0]);
//!
//! let mut largest = stream.buffer_zeroed(1)?;
//! reduce(&stream, &x, ArgMax, &mut largest)?;
//! assert_eq!(largest.to_vec()?[0].index(), 4);
//!
//! let mut sums = stream.buffer_zeroed::<f32>(5)?;
//! inclusive_scan(&stream, &x, Add, &mut sums)?;
//! assert_eq!(sums.to_vec()?, [3.0, 4.0, 8.0, 9.0, 14.0]);
//! # Ok(())
//! # }
//! ```

pub(crate) mod by_key {
    #[cfg(not(target_arch = "nvptx64"))]
    pub(crate) mod call;
    pub(crate) mod kernel;
    pub(crate) mod run_length;
    pub(crate) mod scan;
}
#[cfg(not(target_arch = "nvptx64"))]
mod chained;
pub(crate) mod difference {
    #[cfg(not(target_arch = "nvptx64"))]
    pub(crate) mod call;
    pub(crate) mod kernel;
}
pub(crate) mod fourier;
pub(crate) mod histogram {
    #[cfg(not(target_arch = "nvptx64"))]
    pub(crate) mod call;
    pub(crate) mod kernel;
}
#[cfg(not(target_arch = "nvptx64"))]
pub(crate) mod kernels;
pub(crate) mod merge {
    #[cfg(not(target_arch = "nvptx64"))]
    pub(crate) mod call;
    pub(crate) mod kernel;
}
pub(crate) mod merge_sort {
    #[cfg(not(target_arch = "nvptx64"))]
    pub(crate) mod call;
    pub(crate) mod kernel;
}
pub(crate) mod reduce {
    #[cfg(not(target_arch = "nvptx64"))]
    pub(crate) mod call;
    pub(crate) mod kernel;
}
#[cfg(not(target_arch = "nvptx64"))]
mod run;
pub(crate) mod scan {
    #[cfg(not(target_arch = "nvptx64"))]
    pub(crate) mod call;
    pub(crate) mod kernel;
    pub(crate) mod pipeline;
}
pub(crate) mod search {
    #[cfg(not(target_arch = "nvptx64"))]
    pub(crate) mod call;
    pub(crate) mod kernel;
}
pub(crate) mod segmented {
    #[cfg(not(target_arch = "nvptx64"))]
    pub(crate) mod call;
    pub(crate) mod kernel;
    pub(crate) mod scan;
    pub(crate) mod scan_warps;
    pub(crate) mod warps;
}
pub(crate) mod segmented_sort {
    #[cfg(not(target_arch = "nvptx64"))]
    pub(crate) mod call;
    pub(crate) mod kernel;
    pub(crate) mod merges;
    pub(crate) mod ranks;
}
pub(crate) mod select {
    #[cfg(not(target_arch = "nvptx64"))]
    pub(crate) mod call;
    pub(crate) mod kernel;
}
pub(crate) mod sort {
    #[cfg(not(target_arch = "nvptx64"))]
    pub(crate) mod call;
    pub(crate) mod kernel;
}
pub(crate) mod sparse;
pub(crate) mod tile;
pub(crate) mod top_k {
    #[cfg(not(target_arch = "nvptx64"))]
    pub(crate) mod call;
    pub(crate) mod kernel;
    pub(crate) mod limit;
}
pub(crate) mod transform {
    #[cfg(not(target_arch = "nvptx64"))]
    pub(crate) mod call;
    pub(crate) mod kernel;
}
#[cfg(not(target_arch = "nvptx64"))]
mod tuning;
pub(crate) mod unique {
    #[cfg(not(target_arch = "nvptx64"))]
    pub(crate) mod call;
    pub(crate) mod kernel;
}

#[cfg(not(target_arch = "nvptx64"))]
pub use {
    by_key::call::{ExclusiveScanByKey, InclusiveScanByKey, ReduceByKey, RunLengthEncode},
    by_key::call::{exclusive_scan_by_key, inclusive_scan_by_key, reduce_by_key, run_length_encode},
    difference::call::{AdjacentDifference, adjacent_difference},
    fourier::{Fft, FftChain, FftKind, FftPath, FftPlan, fft, fft_by, fft_in_place, ifft, ifft_in_place, irfft, rfft},
    histogram::call::{HistogramEven, HistogramRanges, histogram_even, histogram_ranges},
    merge::call::{Merge, MergePairs, merge, merge_pairs},
    merge_sort::call::{SortBy, SortPairsBy, sort_by, sort_pairs_by},
    reduce::call::{Reduce, reduce},
    run::{Run, Workspace},
    scan::call::{ExclusiveScan, InclusiveScan, exclusive_scan, inclusive_scan},
    search::call::{LowerBound, UpperBound, lower_bound, upper_bound},
    segmented::call::{SegmentedExclusiveScan, SegmentedInclusiveScan, SegmentedReduce},
    segmented::call::{segmented_exclusive_scan, segmented_inclusive_scan, segmented_reduce},
    segmented_sort::call::{SegmentedSort, SegmentedSortPairs, segmented_sort, segmented_sort_pairs},
    select::call::{Partition, SelectFlagged, SelectIf, partition, select_flagged, select_if, stable_partition},
    sort::call::{SortKeys, SortPairs, sort_keys, sort_keys_by_bits, sort_pairs, sort_pairs_by_bits},
    sparse::{Coo, Csr, CsrIndex, MatrixMarketValue, Planned, Sell, SparseMatrix, SpmvMethod},
    sparse::{Spmm, Spmv, spmm, spmm_by, spmm_with, spmv, spmv_by, spmv_with},
    top_k::call::{TopK, TopKPairs, top_k, top_k_pairs},
    transform::call::{Fill, Gather, Generate, Scatter, Transform, fill, gather, generate, scatter, transform},
    tuning::{Parameter, TUNING_VARIABLE, Tuning},
    unique::call::{Unique, UniqueByKey, unique, unique_by_key},
};
#[cfg(not(target_arch = "nvptx64"))]
pub(crate) use {
    scan::call::{exclusive_scan_after, inclusive_scan_after},
    sparse::{Format, check_arrays},
};

/// The kernels of the algorithms, and what launches them needs. [`kernels::device`](crate::kernels::device) exports all of it.
pub(crate) mod device {
    pub use super::by_key::kernel::{ReduceByKeyStorage, reduce_by_key_tiles};
    pub use super::by_key::run_length::{RunLengthItems, run_length_tiles};
    pub use super::by_key::scan::scan_by_key_tiles;
    pub use super::difference::kernel::{DIFFERENCE_VECTORS, difference_tiles};
    pub use super::fourier::kernel::{fft_lines, fft_lines_in_place};
    pub use super::fourier::lines::{
        FFT_AFTER, FFT_BEFORE, FFT_CUT, FFT_HALF_INPUT, FFT_HALF_OUTPUT, FFT_MIRRORED, FFT_NUMBERS, FFT_PAD,
        FFT_PADDED, FFT_PAIRS_INPUT, FFT_PAIRS_OUTPUT, FFT_TWIDDLES, FftPass, FftSide, fft_pitch, fft_place,
        fft_shared_bytes, fft_threads,
    };
    pub use super::fourier::steps::FFT_STEPS;
    pub use super::histogram::kernel::{
        Binnable, Binning, EvenBins, FloatScale, HISTOGRAM_THREADS, HISTOGRAM_VECTORS, LevelBins, LongRatio, Ratio,
        histogram_counters, histogram_tiles,
    };
    pub use super::merge::kernel::{
        MERGE_SPLIT_THREADS, MERGE_THREADS, MergePass, MergeSplitStorage, MergeStorage, NETWORK_THREADS, merge_splits,
        merge_threads, merge_tile_items, merge_tiles, merge_tiles_pairs,
    };
    pub use super::merge_sort::kernel::{
        MERGE_SORT_THREADS, MergeSortShape, merge_sort_tile_items, merge_sort_tiles, merge_sort_tiles_pairs,
    };
    pub use super::reduce::kernel::{REDUCE_THREADS, REDUCE_VECTORS, reduce_tiles};
    pub use super::scan::kernel::{SCAN_THREADS, ScanItems, ScanTiles, scan_threads, scan_tiles, scan_vector};
    pub use super::scan::pipeline::{
        SCAN_PIPELINE_SLOTS, SCAN_PIPELINE_THREADS, ScanPipelineStorage, scan_pipeline, scan_pipeline_shared,
        scan_pipeline_tile,
    };
    pub use super::search::kernel::search_tiles;
    pub use super::segmented::kernel::{
        SEGMENT_ENDS_THREADS, SEGMENT_OFFSETS, SEGMENT_THREADS, SegmentStorage, segment_ends, segment_tile_items,
        segment_tiles,
    };
    pub use super::segmented::scan::{SEGMENT_SCAN_OFFSETS, segment_scan_tiles};
    pub use super::segmented::scan_warps::{
        SEGMENT_SCAN_WARPS_THREADS, segment_scan_lane_bits, segment_scan_warp_items, segment_scan_warps,
    };
    pub use super::segmented::warps::{SEGMENT_PAIRS, SEGMENT_WARPS_THREADS, segment_warp_items, segment_warps};
    pub use super::segmented_sort::kernel::{
        SEGMENT_SORT_THREADS, SegmentSortTileStorage, segment_sort_short_items, segment_sort_tile_items,
        segment_sort_tiles, segment_sort_tiles_pairs,
    };
    pub use super::segmented_sort::merges::{
        SegmentMergePass, segment_merge_tiles, segment_merge_tiles_pairs, segment_sort_last,
    };
    pub use super::segmented_sort::ranks::{SEGMENT_RANK_THREADS, segment_merge_ranks, segment_merge_ranks_pairs};
    pub use super::select::kernel::select_tiles;
    pub use super::sort::kernel::{
        SORT_AHEAD, SORT_PORTION, SORT_THREADS, SortPass, SortTileStorage, begin_digits, count_digits,
        count_digits_bytes, sort_sweep, sort_sweep_pairs, sort_tile, sort_tile_items, sort_tile_pairs,
    };
    pub use super::sparse::kernel::csr::{CSR_FIRST_ENTRIES, CSR_THREADS, csr_rows};
    pub use super::sparse::kernel::csr_build::{
        CSR_BUILD_THREADS, CSR_DECREASING, CSR_FIRST, CSR_GIANT_ENTRIES, CSR_LAST, CSR_LONG_ROW, CSR_LONG_STEPS,
        CSR_LONGEST, CSR_MOST_STEPS, CSR_OUTSIDE, CSR_SHORT_STEPS, CSR_STEPS, CSR_UNSEEN, CSR_WAYS, csr_check,
        csr_giants, csr_keys, csr_row_indices, csr_rows_of_keys,
    };
    pub use super::sparse::kernel::csr_by_length::{
        CSR_SHARE, CSR_SHORT, csr_by_length_fits, csr_giant_rows, csr_rows_by_length,
    };
    pub use super::sparse::kernel::csr_path::{
        CSR_ENDS_THREADS, CSR_SPLIT_STEPS, CSR_TILE_THREADS, CsrStorage, csr_ends, csr_path_fits, csr_splits,
        csr_tile_steps,
    };
    pub use super::sparse::kernel::csr_staged::{CSR_CHUNK, CSR_STAGED_LANES, CsrStaged, csr_staged_rows, csr_stages};
    pub use super::sparse::kernel::csr_tiles::csr_tiles;
    pub use super::sparse::kernel::csr_vectors::{CSR_NARROW, csr_lane_vectors, csr_row_vectors};
    pub use super::sparse::kernel::csr_window::{
        CSR_WINDOW_LANES, CSR_WINDOW_ROWS, CSR_WINDOW_THREADS, CsrWindow, csr_window_room, csr_window_rows, csr_windows,
    };
    pub use super::sparse::kernel::sell::{SELL_BEGIN, SELL_ROWS, sell_fill, sell_keys, sell_rows, sell_slots};
    pub use super::tile::runs::RunTiles;
    pub use super::tile::scan_runs::{ScanByKeyItems, SegmentScanItems};
    pub use super::tile::staged::{STAGE_THREADS, StagedStorage, StagedTiles};
    pub use super::tile::warp_items;
    pub use super::tile::warps::WarpStorage;
    pub use super::top_k::kernel::{
        TOP_K_BLOCKS, TOP_K_MOST, TOP_K_THREADS, TOP_K_TILE, top_k_last, top_k_last_pairs, top_k_tiles,
    };
    pub use super::top_k::limit::{
        TOP_K_BEST_THREADS, TOP_K_BEST_WARPS, TOP_K_FOUND_THREADS, TopKRecord, top_k_before, top_k_bests, top_k_found,
        top_k_found_pairs, top_k_rows,
    };
    pub use super::transform::kernel::{SCATTER_ITEMS, scatter_tiles, transform_tiles, transform_vectors};
    pub use super::unique::kernel::{UniqueStorage, unique_bytes, unique_tiles};
}
