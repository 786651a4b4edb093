//! Merges of two sorted inputs.
//!
//! Two launches: `merge_splits` finds where each tile of the result begins in both inputs, and `merge_tiles` merges the tiles. Of few tiles
//! each finds its own place, and the first launch is saved. Sorts by a comparator, and the first few of many items, use the same kernels.

#[cfg(not(target_arch = "nvptx64"))]
pub(crate) mod call;
pub(crate) mod kernel;
