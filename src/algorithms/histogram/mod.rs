//! Histograms.
//!
//! One launch. A block counts in copies of the bins in shared memory, and adds their sums to the counts in global memory. If shared memory cannot
//! hold the bins, the block counts in global memory.

#[cfg(not(target_arch = "nvptx64"))]
pub(crate) mod call;
pub(crate) mod kernel;
