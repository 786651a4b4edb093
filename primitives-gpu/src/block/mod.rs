//! Collectives of a block. Every thread of the block calls them from the same place.
//!
//! | collective | threads | result | shared memory |
//! |---|---|---|---|
//! | [`block_reduce`], [`block_reduce_items`], [`block_reduce_partial`] | any block | every thread | [`ReduceStorage`] |
//! | [`block_reduce_to_first`], [`block_reduce_items_to_first`] | any block | the thread of rank 0, `None` in the rest | [`ReduceStorage`] |
//! | [`block_x_reduce`], [`block_group_reduce`] | rows of any width | every thread, its row's | [`ReduceStorage`] |
//! | [`block_y_reduce`] | columns of any height, up to `MAX_THREADS` | every thread, its column's | [`ColumnStorage`] |
//! | [`block_inclusive_scan`], [`block_exclusive_scan`] and their forms `_from`, `_after` | any block | each thread its items', blocked; the total in every thread | [`ScanStorage`] |
//! | [`cumsum`] | any block | each thread its items', striped | [`ScanStorage`] of arrays |
//! | [`block_inclusive_scan_rounds`], [`block_exclusive_scan_rounds`], [`block_exclusive_scan_rounds_after`] | any block | each thread its items', in its warp's rounds; the total in every thread | [`ScanStorage`] |
//! | [`block_compact`] | any block | the tile's first elements; how many they are in every thread | [`ScanStorage`] of `u32` |
//! | [`blocked_to_striped`] and its inverse, [`scatter_to_blocked`], [`scatter_to_striped`] | `THREADS`, any number | each thread its items | [`ExchangeStorage`] |
//! | [`blocked_to_warp_striped`] and its inverse | `THREADS`, any number | each lane its items of the warp's | [`ExchangeStorage`] |
//! | [`block_histogram`] | any block | every thread, read from shared memory | [`HistogramStorage`] |
//! | [`block_load_halo`] | any block | every thread, read from shared memory | [`HaloStorage`] |
//! | [`block_shift_up`], [`block_shift_down`], [`block_broadcast`] | any block | each thread its own | [`NeighbourStorage`] |
//! | [`block_rotate`] | up to `MAX_THREADS` | each thread its own | [`RotateStorage`] |
//! | [`load_striped`], [`load_warp_striped`], [`store_striped`] | any threads | each thread its items | none |
//! | [`adjacent_difference_left`], [`flag_heads`] and their forms | any block | each thread its items', blocked | [`NeighbourStorage`] |
//! | [`block_fft`], [`block_ifft`] | `BATCH * N / ITEMS` | each thread its items', striped, of its transform | [`FftStorage`] |
//! | [`block_reduce_path`] | `THREADS`, any number | a call for each row that ends, by one thread; the rest in every thread | [`PathStorage`] |
//! | [`run_length_begin`], [`run_length_decode`] | `THREADS`, any number | each thread its items of the window, blocked | [`RunLengthStorage`] |
//! | [`block_sort`], [`block_sort_with_index`] | any block with up to `TILE` items | each thread its positions, blocked | [`SortStorage`], [`IndexedSortStorage`] |
//! | [`block_radix_sort`], [`block_radix_sort_pairs`] and their forms `_to_striped` | `THREADS`, a multiple of 32 | each thread its positions, blocked or striped | [`RadixSortStorage`] |
//! | [`block_radix_rank`] | `THREADS`, a multiple of 32 of at least 256 | each thread the places of its items, and the first 256 those of a digit | [`RadixRankStorage`] |
//! | [`block_merge_sort`], [`block_merge_sort_pairs`] | `THREADS`, any number | each thread its positions, blocked | [`MergeSortStorage`] |
//! | [`block_segmented_merge_sort_pairs`] | `THREADS`, any number | each thread its positions, blocked | [`SegmentedSortStorage`] |
//! | [`block_top_k`], [`block_top_k_of`], [`block_top_k_by`], [`block_top_k_of_sorted`] | any block with up to `TILE` items | each thread its positions among the first `k`, blocked | [`IndexedSortStorage`], [`TopKStorage`] |
//!
//! *Blocked*: thread `t` has items `t * N` to `t * N + N` of the tile. *Striped*: thread `t` of `T` has items `t`, `t + T`, `t + 2 * T` and
//! so on. *Warp-striped*: the same within each warp's part of the tile. A block has at most 1024 threads, in up to three dimensions.
//! [`Block::thread_rank`](crate::Block::thread_rank) numbers its threads, `x` fastest. "Any block" includes a block whose last warp has
//! fewer than 32 lanes. With a [`ReduceStorage`] or a [`ScanStorage`] for `THREADS`, it has at most so many threads. If a collective does
//! not support the block that calls it, that is a fault.
//!
//! A storage may be used again at once, by the same collective, or through [`Shared::phase`](crate::Shared::phase) by another one. A
//! collective that needs a barrier first makes it. Reductions and scans with a [`ReduceStorage`] or a [`ScanStorage`], and shifts need no
//! barrier between two uses of the same kind: they alternate between two halves of their storage, or, with a storage for `THREADS`, each
//! thread has a place of its own.
//!
//! # Divergence
//!
//! All threads of the block must call a collective, in the same order as other collectives and [barriers](crate::Block::barrier). Arguments
//! that must be the same in all threads, as the docs say, must have the same value. If some threads do not comply:
//!
//! - the emulator ends the launch with an error that names the threads and the places where they wait;
//! - a GPU does not report it: the launch may never end, may end with a fault, or may go on with unspecified results and unspecified
//!   contents of the block's shared memory. Threads that have left the kernel count as arrived.
//!
//! In loops over [tiles](crate::Block::tiles) and [rows](crate::Block::rows), all threads of a block make the same number of rounds. In a
//! loop over [items](crate::Block::items), they do so only if the number of items is a multiple of the block's threads.

mod combine;
mod compact;
mod exchange;
mod fft;
mod flags;
mod halo;
mod histogram;
mod load;
mod neighbours;
mod run_length;
mod sorts;

pub use combine::column::{ColumnStorage, block_y_reduce};
pub use combine::each::Each;
#[doc(hidden)]
pub use combine::path::{PathPlaces, PathShare, path_share};
pub use combine::path::{PathStorage, PathTile, block_reduce_path};
pub use combine::reduce::{
    ReduceStorage, block_group_reduce, block_reduce, block_reduce_items, block_reduce_items_to_first,
    block_reduce_partial, block_reduce_to_first, block_x_reduce,
};
pub use combine::scan::{
    ScanStorage, block_exclusive_scan, block_exclusive_scan_after, block_exclusive_scan_from, block_inclusive_scan,
    block_inclusive_scan_after, block_inclusive_scan_from, cumsum,
};
pub use combine::scan_rounds::{
    block_exclusive_scan_rounds, block_exclusive_scan_rounds_after, block_inclusive_scan_rounds,
};
pub use compact::block_compact;
pub use exchange::{
    ExchangeStorage, blocked_to_striped, blocked_to_warp_striped, scatter_to_blocked, scatter_to_striped,
    striped_to_blocked, warp_striped_to_blocked,
};
pub use fft::{FftStorage, block_fft, block_ifft};
pub use flags::{flag_heads, flag_heads_and_tails, flag_tails};
pub use halo::{Border, Halo, HaloStorage, block_load_halo};
pub use histogram::{Bins, HistogramStorage, block_histogram};
pub use load::{load_striped, load_warp_striped, store_striped};
pub use neighbours::{
    NeighbourStorage, RotateStorage, adjacent_difference_left, adjacent_difference_left_open,
    adjacent_difference_right, adjacent_difference_right_open, block_broadcast, block_rotate, block_shift_down,
    block_shift_up,
};
pub use run_length::{RunLengthStorage, RunWindow, run_length_begin, run_length_decode};
pub use sorts::bitonic::{IndexedSortStorage, SortStorage, block_sort, block_sort_with_index};
pub use sorts::merge_sort::{
    MergeSortStorage, SegmentedSortStorage, block_merge_sort, block_merge_sort_pairs, block_segmented_merge_sort_pairs,
    warp_merge_sort, warp_merge_sort_pairs,
};
pub use sorts::radix_rank::{RadixRankStorage, RadixRanks, block_radix_rank};
pub use sorts::radix_sort::{
    RadixSortStorage, block_radix_sort, block_radix_sort_pairs, block_radix_sort_pairs_to_striped,
    block_radix_sort_to_striped,
};
#[doc(hidden)]
pub use sorts::top_k::{TopKFound, block_top_k_before, block_top_k_records};
pub use sorts::top_k::{TopKStorage, block_top_k, block_top_k_by, block_top_k_of, block_top_k_of_sorted};
