//! Sorts, and the first few of a sort.

pub(super) mod bitonic;
pub(super) mod merge_sort;
pub(super) mod radix_rank;
pub(super) mod radix_sort;
pub(super) mod top_k;
