//! Algorithms over whole buffers. Each is one call.
//!
//! An input is a buffer, or what [`input`](crate::input) computes from buffers. An output is a buffer, or what [`output`](crate::output)
//! makes of buffers. The first argument says where an algorithm runs: a `&Stream`, or a [`Run`], which adds options to a stream. A call
//! returns when its launches are in the stream's queue. Results stay on the device.
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
//! keeps the memory from call to call instead. A graph cannot allocate memory. So a capture needs a workspace that was used before for a
//! call with at least as many items, unless the algorithm needs no memory for that number of items.
//!
//! **Lengths.** An input has up to 2^48 items, even if it is computed. If it has more, each algorithm returns
//! [`Error::LaunchLimit`](crate::Error::LaunchLimit).
//!
//! **Functors and types.** All algorithms are ready for all numbers, `i8` to `u64`, `f16`, `bf16`, `f32` and `f64`, with the usual
//! operators; [`docs::ready`](crate::docs::ready) lists them. For its own types and functors, a program writes one line in its kernel
//! module, such as `instantiate!(kernel_primitives::algorithms::reduce<f32, MyReduction>);`. This line makes all kernels that the algorithm
//! launches. Without it, the call does not compile, and the error shows the line. Each algorithm has a trait, such as [`Reduce`], that says
//! for which types it has kernels. Generic code has the trait in its bounds: `T: InclusiveScan<Add, Tag>`, where the compiler infers `Tag`.
//! If one `instantiate!` names several algorithms, they share the kernels that more than one of them launches.
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

pub(crate) mod by_key;
#[cfg(not(target_arch = "nvptx64"))]
mod chained;
pub(crate) mod difference;
pub(crate) mod fourier;
pub(crate) mod histogram;
#[cfg(not(target_arch = "nvptx64"))]
pub(crate) mod kernels;
pub(crate) mod merge;
pub(crate) mod merge_sort;
pub(crate) mod reduce;
#[cfg(not(target_arch = "nvptx64"))]
mod run;
pub(crate) mod scan;
pub(crate) mod search;
pub(crate) mod segmented;
pub(crate) mod segmented_sort;
pub(crate) mod select;
pub(crate) mod sort;
pub(crate) mod sparse;
pub(crate) mod tile;
pub(crate) mod top_k;
pub(crate) mod transform;
#[cfg(not(target_arch = "nvptx64"))]
mod tuning;
pub(crate) mod unique;

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
