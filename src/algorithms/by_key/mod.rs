//! Runs of equal keys: their lengths, reductions of their values, and scans that start again with each run.
//!
//! Each algorithm is one launch. A tile learns from the tiles before it how many runs they have, and the result so far of the last run:
//! [`tile::runs`](super::tile::runs).

#[cfg(not(target_arch = "nvptx64"))]
pub(crate) mod call;
pub(crate) mod kernel;
pub(crate) mod run_length;
pub(crate) mod scan;
