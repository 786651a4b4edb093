//! Scans.
//!
//! One launch: tiles hand the sum so far from one to the next ([`grid::Chain`](crate::grid::Chain)). Many items in memory are scanned by a
//! pipeline of warps, with a task each; the rest tile by tile.

#[cfg(not(target_arch = "nvptx64"))]
pub(crate) mod call;
pub(crate) mod kernel;
pub(crate) mod pipeline;
