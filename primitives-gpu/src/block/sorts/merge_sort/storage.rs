//! The shared memory of merge sorts, with gaps, so that threads rarely access the same bank.

use core::marker::PhantomData;
use core::mem::{align_of, size_of};

use crate::element::Element;
use crate::view::{SharedArray, SharedStorage};
use crate::warp::unrolled;

/// The shared memory of [`block_merge_sort`](crate::block::block_merge_sort) and
/// [`block_merge_sort_pairs`](crate::block::block_merge_sort_pairs), and of the merge sorts of a warp: a key for each item, and for pairs
/// also a value. If a thread's keys have 64 or 128 bytes, and a key has 4, 8 or 16, there is a gap of one key after each 128 bytes. The
/// same is true for values. For an example see [`block_merge_sort`](crate::block::block_merge_sort).
pub struct MergeSortStorage<const THREADS: usize, const ITEMS: usize, K, V = [u8; 0]>(PhantomData<(K, V)>);

// SAFETY: uninitialised elements.
unsafe impl<const THREADS: usize, const ITEMS: usize, K: Element, V: Element> SharedStorage
    for MergeSortStorage<THREADS, ITEMS, K, V>
{
    const BYTES: usize = MergeSortStorage::bytes_of([THREADS, ITEMS], [size_of::<K>(), size_of::<V>()]);
    const ALIGN: usize = {
        assert!(align_of::<K>() <= 16 && align_of::<V>() <= 16, "shared memory is aligned to 16 bytes at most");
        16
    };
}

impl MergeSortStorage<0, 0, ()> {
    /// Returns the bytes of a storage whose keys and values have these sizes.
    #[doc(hidden)]
    pub const fn bytes_of([threads, items]: [usize; 2], [key, value]: [usize; 2]) -> usize {
        // The values are aligned for vector access.
        (places(threads, items, key) * key).next_multiple_of(16) + places(threads, items, value) * value
    }
}

/// Returns the number of places in shared memory for the items of a block that have `bytes` bytes each.
pub(super) const fn places(threads: usize, items: usize, bytes: usize) -> usize {
    place(between_gaps(items, bytes), (threads * items) as u32) as usize
}

/// Returns the number of items of `bytes` bytes between two gaps of one item in shared memory, or 0 if there are no gaps.
///
/// Without gaps, threads with items of 64 or 128 bytes that read their own first items, or take the same step of a search, would often
/// access the same bank. With fewer bytes for each thread, gaps cost more instructions than they save. No gap is inside of a thread's
/// items.
pub(super) const fn between_gaps(items: usize, bytes: usize) -> u32 {
    match (bytes, items * bytes) {
        (4 | 8 | 16, 64 | 128) => 128 / bytes as u32,
        _ => 0,
    }
}

/// Returns the place in shared memory of a position of the block.
#[inline(always)]
pub(super) const fn place(between_gaps: u32, position: u32) -> u32 {
    match between_gaps {
        0 => position,
        items => position + position / items,
    }
}

/// Writes the items of a thread to their places.
///
/// # Safety
/// As for [`SharedArray::store_items`] without gaps, with the places of the positions from `first`.
#[inline(always)]
#[track_caller]
pub(super) unsafe fn store<T: Element, const ITEMS: usize>(to: SharedArray<'_, T>, first: u32, items: &[T; ITEMS]) {
    let between = const { between_gaps(ITEMS, size_of::<T>()) };
    // SAFETY: the caller's contract.
    unsafe {
        if between == 0 {
            to.store_items(first as usize, items);
        } else {
            let first = place(between, first) as usize;
            unrolled!(i < ITEMS, to.store_items(first + i, &[items[i]]));
        }
    }
}
