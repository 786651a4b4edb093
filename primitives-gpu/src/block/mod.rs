//! Collectives of a block: every thread of the block calls them, from the same place.
//!
//! | collective | result |
//! |---|---|
//! | [`block_reduce`], [`block_reduce_items`], [`block_reduce_partial`] | in every thread |
//! | [`block_reduce_to_first`] | in the first thread |
//! | [`block_x_reduce`], [`block_y_reduce`], [`block_group_reduce`] | in every thread, its row's, column's or group's |
//! | [`block_inclusive_scan`], [`block_exclusive_scan`], [`cumsum`] and their forms | each thread its own, the total in every thread |

mod bitonic;
mod column;
mod each;
mod merge_sort;
mod partials;
mod radix_sort;
mod reduce;
mod scan;
mod top_k;

pub use bitonic::{IndexedSortStorage, SortStorage, block_sort, block_sort_with_index};
pub use column::{ColumnStorage, block_y_reduce};
pub use each::{Each};
pub use merge_sort::{MergeSortStorage, block_merge_sort, block_merge_sort_pairs, warp_merge_sort, warp_merge_sort_pairs};
pub use radix_sort::{RadixSortStorage, block_radix_sort, block_radix_sort_pairs, block_radix_sort_pairs_to_striped, block_radix_sort_to_striped};
pub use reduce::{ReduceStorage, block_group_reduce, block_reduce, block_reduce_items, block_reduce_partial, block_reduce_to_first, block_x_reduce};
pub use scan::{ScanStorage, block_exclusive_scan, block_exclusive_scan_after, block_exclusive_scan_from, block_inclusive_scan, block_inclusive_scan_after, block_inclusive_scan_from, cumsum};
pub use top_k::{TopKStorage, block_top_k, block_top_k_of};
