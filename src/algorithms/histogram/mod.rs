//! Histograms.
//!
//! One launch. A block counts in copies of the bins in shared memory, adds them up, and adds the sums to the counts in global memory. Bins that
//! shared memory cannot hold are counted in global memory from the start.

#[cfg(not(target_arch = "nvptx64"))]
pub(crate) mod call;
pub(crate) mod kernel;
