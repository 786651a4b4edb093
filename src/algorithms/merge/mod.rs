//! Merges of two sorted inputs.
//!
//! Two launches: `merge_splits` finds where each tile of the result begins in both inputs, and `merge_tiles` merges the tiles. If there are few
//! tiles, each finds its own beginning, and there is no first launch. `sort_by` and `top_k` use the same kernels.

#[cfg(not(target_arch = "nvptx64"))]
pub(crate) mod call;
pub(crate) mod kernel;
