//! Collectives of a block: every thread of the block calls them, from the same place.

mod bitonic;
mod merge_sort;
mod radix_sort;
mod reduce;
mod top_k;

pub use bitonic::{IndexedSortStorage, SortStorage, block_sort, block_sort_with_index};
pub use merge_sort::{
    MergeSortStorage, block_merge_sort, block_merge_sort_pairs, warp_merge_sort, warp_merge_sort_pairs,
};
pub use radix_sort::{
    RadixSortStorage, block_radix_sort, block_radix_sort_pairs, block_radix_sort_pairs_to_striped,
    block_radix_sort_to_striped,
};
pub use reduce::{ReduceStorage, block_reduce, block_x_reduce};
pub use top_k::{TopKStorage, block_top_k, block_top_k_of};
