//! Collectives of a warp. Every lane of the warp calls them from the same place.
//!
//! | collective | threads | result | shared memory |
//! |---|---|---|---|
//! | [`warp_reduce`], [`warp_broadcast`] | a warp, partial ones too | every lane | none |
//! | [`warp_group_reduce`] | groups of 1 to 32 lanes | every lane, its group's | none |
//! | [`warp_reduce_by_heads`], [`warp_reduce_by_tails`] | segments whose bounds are data | every lane, its segment's | none |
//! | [`warp_inclusive_scan`], [`warp_exclusive_scan`], [`warp_group_inclusive_scan`], [`warp_group_exclusive_scan`] | a warp; groups of 1 to 32 lanes | each lane its own; exclusive ones give the total to every lane | none |
//! | [`warp_sort`], [`warp_sort_with_index`], [`warp_sort_pairs`] | groups of 1, 2, 4 … 32 lanes | each lane its positions, blocked | none |
//! | [`warp_fft`], [`warp_ifft`] | groups of 1, 2, 4 … 32 lanes, whole ones | each lane its items', blocked, of the group's transform | none |
//! | [`warp_merge_sort`], [`warp_merge_sort_pairs`] | groups of 1, 2, 4 … 32 lanes | each lane its positions, blocked | [`MergeSortStorage`] |
//!
//! A *group* is a run of `width` consecutive lanes, from 1 to 32. The first group begins at the first lane of the warp. This is CUB's
//! logical warp, but `width` need not be a power of two. The last group has the lanes that remain. Sorts sort these lanes. For transforms,
//! groups must be whole: the lanes of a group that is not whole get unspecified values on a GPU, and are a fault in the emulator. Values
//! move by shuffles, with one instruction for each 32 bits of the element. So most collectives need no shared memory, and order no memory
//! accesses.
//!
//! # Divergence
//!
//! All lanes that the warp [has](crate::Block::warp_mask) must call a collective, in the same order as other collectives. If some do not:
//!
//! - the emulator ends the launch with an error that names the lanes and the places where they wait;
//! - a GPU does not report it: the launch may never end, or may go on with unspecified results.

mod bitonic;
mod fft;
pub(crate) mod network;
mod reduce;
mod scan;
mod segmented;

pub use crate::block::{MergeSortStorage, warp_merge_sort, warp_merge_sort_pairs};
pub(crate) use bitonic::{Alone, Ranked, alone, of_alone, of_bits, of_ranked, ranked, to_bits};
pub use bitonic::{warp_sort, warp_sort_pairs, warp_sort_with_index};
pub use fft::{warp_fft, warp_ifft};
pub use network::SortIndex;
pub(crate) use network::{Lanes, Threads, unrolled};
#[doc(hidden)]
pub use network::{Record, SortBits};
pub(crate) use reduce::{reduce, reduce_down};
pub use reduce::{warp_group_reduce, warp_reduce};
pub(crate) use scan::{below, inclusive};
pub use scan::{
    warp_exclusive_scan, warp_exclusive_scan_from, warp_group_exclusive_scan, warp_group_inclusive_scan,
    warp_inclusive_scan,
};
pub use segmented::{warp_reduce_by_heads, warp_reduce_by_tails};

use core::panic::Location;

use crate::element::Element;
use crate::simt::{Block, FaultKind, WARP};

/// Returns the value of lane `source` in every lane. A lane that the warp does not have is a fault in the emulator.
///
/// Cost: one shuffle for each 32 bits of the element.
///
/// CUB: `WarpScan::Broadcast`, `ShuffleIndex`. Differences: elements of any type.
///
/// All lanes of the warp call it: see [divergence](crate::warp#divergence).
///
/// ```
/// use kernel_primitives::prelude::*;
///
/// #[kernel]
/// fn first_of_warp(cx: Block, x: Global<u32>, mut out: GlobalMut<u32>) {
///     for tile in cx.tiles::<1>(out.len()) {
///         let mut item = init::<u32, 1>(0);
///         read_data(cx, &mut item, x.tile(tile));
///         write_data(cx, out.tile(tile), &[warp_broadcast(cx, item[0], 0)]);
///     }
/// }
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = kernel_primitives::Device::emulator().stream()?;
/// let x = stream.buffer_from(&(0..64).collect::<Vec<u32>>())?;
/// let mut out = stream.buffer_zeroed::<u32>(64)?;
/// first_of_warp::launch(&stream, (1, 64), &x, &mut out)?;
/// assert_eq!(out.to_vec()?[31..33], [0, 32]);
/// # Ok(())
/// # }
/// ```
#[inline(always)]
#[track_caller]
pub fn warp_broadcast<T: Element>(cx: Block<'_>, value: T, source: u32) -> T {
    // The shuffle reports lanes that a partial warp lacks. It takes the low five bits of the number.
    cx.expect_at_most(source as usize, WARP as usize - 1);
    cx.shuffle(cx.warp_mask(), value, source, WARP)
}

/// Returns the first lane of this lane's group, and the lane after its last one. A width outside 1 to 32 is a fault.
#[track_caller]
fn group(cx: Block<'_>, width: u32) -> (u32, u32) {
    if width == 0 || width > WARP {
        cx.raise(FaultKind::BadShape, [width as u64, WARP as u64], Location::caller());
    }
    let start = cx.lane() / width * width;
    (start, (start + width).min(cx.warp_lanes()))
}
