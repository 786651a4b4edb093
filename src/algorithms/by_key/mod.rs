//! Runs of equal keys: their lengths, their values as one, and scans that start again with each.
//!
//! One launch each, in which a tile learns from those before it how many runs they have, and what the last one has come to:
//! [`tile::runs`](super::tile::runs).

#[cfg(not(target_arch = "nvptx64"))]
pub(crate) mod call;
pub(crate) mod kernel;
pub(crate) mod run_length;
pub(crate) mod scan;
