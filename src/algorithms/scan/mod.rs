//! Scans.
//!
//! One launch: each tile passes the sum so far to the next one ([`grid::Chain`](crate::grid::Chain)). A pipeline of warps, each with its
//! own task, scans long inputs in memory. Other inputs are scanned tile by tile.

#[cfg(not(target_arch = "nvptx64"))]
pub(crate) mod call;
pub(crate) mod kernel;
pub(crate) mod pipeline;
