//! The first few items in an order.
//!
//! `top_k_tiles` keeps the first `k` items of each block's share, and `top_k_last` keeps the first `k` of these. If `k` is larger than a
//! block can keep, a merge sort runs instead, which drops the items after the first `k` of each run.

#[cfg(not(target_arch = "nvptx64"))]
pub(crate) mod call;
pub(crate) mod kernel;
