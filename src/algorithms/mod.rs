//! Algorithms over whole buffers, and over all that [`input`](crate::input) and [`output`](crate::output) make of them: each is
//! one call.
//!
//! The first argument says where an algorithm runs: a `&Stream`, or a [`Run`] that adds options to one. A call returns when its
//! launches are in the stream's queue, and results stay on the device.
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
//! | [`sort_by`], [`sort_pairs_by`] | items in the order of any comparator, alone or with a value each; stable |
//! | [`segmented_sort`], [`segmented_sort_pairs`] | so the items of each segment |
//! | [`merge`], [`merge_pairs`] | two sorted inputs as one; stable |
//! | [`top_k`], [`top_k_pairs`] | the first few in an order, sorted, alone or with a value each |
//! | [`select_if`], [`select_flagged`]; [`partition`], [`stable_partition`] | the items of which a predicate or a flag is true; the others behind them |
//! | [`unique`], [`unique_by_key`] | the first of each run of equal items |
//! | [`run_length_encode`]; [`reduce_by_key`] | and how many each run has; and its values as one |
//! | [`inclusive_scan_by_key`], [`exclusive_scan_by_key`] | a scan that begins anew with each run |
//!
//! **Memory.** What an algorithm needs for itself it takes from the stream's pool and gives back: an allocation that waits for
//! nobody. A [`Workspace`] keeps it from call to call instead, and a capture needs one, since graphs do not allocate.
//!
//! **Functors and types.** Each algorithm names the kernel that it launches: for its own types and functors a program
//! instantiates that with one line, `instantiate!(kernel_primitives::kernels::device::reduce_tiles<Span<f32>, MyReduction>);`, in
//! its kernel module. Without it the call does not compile, and the error shows the line.
//!
//! **Tuning.** How an algorithm is launched on an architecture stands in one table of values, which [`Tuning`] prints,
//! and which a program or an environment variable may change.
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

mod by_key;
mod chained;
mod difference;
mod histogram;
mod merge;
mod merge_sort;
mod reduce;
mod run;
mod scan;
mod search;
mod segmented;
mod segmented_sort;
mod select;
mod sort;
mod top_k;
mod transform;
mod tuning;
mod unique;

pub use by_key::{exclusive_scan_by_key, inclusive_scan_by_key, reduce_by_key, run_length_encode};
pub use difference::adjacent_difference;
pub use histogram::{histogram_even, histogram_ranges};
pub use merge::{merge, merge_pairs};
pub use merge_sort::{sort_by, sort_pairs_by};
pub use reduce::reduce;
pub use run::{Run, Workspace};
pub use scan::{exclusive_scan, inclusive_scan};
pub use search::{lower_bound, upper_bound};
pub use segmented::{segmented_exclusive_scan, segmented_inclusive_scan, segmented_reduce};
pub use segmented_sort::{segmented_sort, segmented_sort_pairs};
pub use select::{partition, select_flagged, select_if, stable_partition};
pub use sort::{sort_keys, sort_pairs};
pub use top_k::{top_k, top_k_pairs};
pub use transform::{fill, gather, generate, scatter, transform};
pub use tuning::{Parameter, TUNING_VARIABLE, Tuning};
pub use unique::{unique, unique_by_key};
