//! Collectives of a block: every thread of the block calls them, from the same place.
//!
//! | collective | result |
//! |---|---|
//! | [`block_reduce`], [`block_reduce_items`], [`block_reduce_partial`] | in every thread |
//! | [`block_reduce_to_first`] | in the first thread |
//! | [`block_x_reduce`], [`block_y_reduce`], [`block_group_reduce`] | in every thread, its row's, column's or group's |
//! | [`block_inclusive_scan`], [`block_exclusive_scan`], [`cumsum`], [`block_inclusive_scan_rounds`] and their forms | each thread its own, the total in every thread |
//! | [`blocked_to_striped`] and the other exchanges, [`scatter_to_blocked`], [`scatter_to_striped`] | each thread its items |
//! | [`load_striped`], [`load_warp_striped`], [`store_striped`] | each thread its items |
//! | [`block_histogram`], [`block_load_halo`] | in shared memory |
//! | [`block_radix_rank`] | each thread its items' places, and those of the digit of its rank |
//! | [`adjacent_difference_left`], [`flag_heads`] and their forms | each thread those of its items |
//! | [`block_shift_up`], [`block_shift_down`], [`block_rotate`], [`block_broadcast`] | each thread its own |
//! | [`run_length_decode`] | each thread its items |
//! | [`block_fft`], [`block_ifft`] | each thread its items |
//!
//! # Divergence
//!
//! All threads of the block call a collective, in the same order as other collectives and [barriers](crate::Block::barrier),
//! and with the same value of what its docs say is the same in all threads. If some do not:
//!
//! - the emulator ends the launch with an error that names the threads and where they wait;
//! - a GPU does not tell: the launch may never end, may end with a fault, or may go on with unspecified results and
//!   unspecified contents of the block's shared memory. Threads that have left the kernel count as having come.
//!
//! Loops over [tiles](crate::Block::tiles) and [rows](crate::Block::rows) take all threads of a block equally often, which one over
//! [items](crate::Block::items) does only if their number is a multiple of the block's threads.

mod bitonic;
mod column;
mod compact;
mod each;
mod exchange;
mod fft;
mod halo;
mod histogram;
mod load;
mod merge_sort;
mod neighbours;
mod partials;
mod radix_rank;
mod radix_sort;
mod raking;
mod reduce;
mod run_length;
mod scan;
mod scan_rounds;
mod top_k;

pub use bitonic::{IndexedSortStorage, SortStorage, block_sort, block_sort_with_index};
pub use column::{ColumnStorage, block_y_reduce};
pub use compact::block_compact;
pub use each::Each;
pub use exchange::{
    ExchangeStorage, blocked_to_striped, blocked_to_warp_striped, scatter_to_blocked, scatter_to_striped,
    striped_to_blocked, warp_striped_to_blocked,
};
pub use fft::{FftStorage, block_fft, block_ifft};
pub use halo::{Border, Halo, HaloStorage, block_load_halo};
pub use histogram::{Bins, HistogramStorage, block_histogram};
pub use load::{load_striped, load_warp_striped, store_striped};
pub use merge_sort::{
    MergeSortStorage, SegmentedSortStorage, block_merge_sort, block_merge_sort_pairs, block_segmented_merge_sort_pairs,
    warp_merge_sort, warp_merge_sort_pairs,
};
pub use neighbours::{
    NeighbourStorage, RotateStorage, adjacent_difference_left, adjacent_difference_left_open,
    adjacent_difference_right, adjacent_difference_right_open, block_broadcast, block_rotate, block_shift_down,
    block_shift_up, flag_heads, flag_heads_and_tails, flag_tails,
};
pub use radix_rank::{RadixRankStorage, RadixRanks, block_radix_rank};
pub use radix_sort::{
    RadixSortStorage, block_radix_sort, block_radix_sort_pairs, block_radix_sort_pairs_to_striped,
    block_radix_sort_to_striped,
};
pub use reduce::{
    ReduceStorage, block_group_reduce, block_reduce, block_reduce_items, block_reduce_partial, block_reduce_to_first,
    block_x_reduce,
};
pub use run_length::{RunLengthStorage, RunWindow, run_length_begin, run_length_decode};
pub use scan::{
    ScanStorage, block_exclusive_scan, block_exclusive_scan_after, block_exclusive_scan_from, block_inclusive_scan,
    block_inclusive_scan_after, block_inclusive_scan_from, cumsum,
};
pub use scan_rounds::{block_exclusive_scan_rounds, block_exclusive_scan_rounds_after, block_inclusive_scan_rounds};
pub use top_k::{TopKStorage, block_top_k, block_top_k_by, block_top_k_of, block_top_k_of_sorted};
