//! The first few items in an order.
//!
//! `top_k_tiles` keeps the first `k` of each block's share, and `top_k_last` those of what the blocks have kept. For a `k` beyond what a block
//! can keep, there is a merge sort that drops what is past the first `k` of each run.

#[cfg(not(target_arch = "nvptx64"))]
pub(crate) mod call;
pub(crate) mod kernel;
