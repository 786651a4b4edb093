//! Searches in a sorted input.
//!
//! One launch, with one thread for each query. [`kernel::warp_bound`] is the search of a whole warp, which other kernels use.

#[cfg(not(target_arch = "nvptx64"))]
pub(crate) mod call;
pub(crate) mod kernel;
