//! Sorts and top-k of a block.

pub(super) mod bitonic;
mod candidates;
pub(super) mod merge_sort;
pub(super) mod radix_rank;
pub(super) mod radix_sort;
pub(super) mod top_k;
