//! Sorts of the segments of a block.

use core::marker::PhantomData;
use core::mem::size_of;

use super::{MergeSortStorage, Runs, transpose_neighbours};
use crate::element::Element;
use crate::functor::Comparator;
use crate::simt::Block;
use crate::view::{Shared, SharedStorage};

/// The shared memory of [`block_segmented_merge_sort_pairs`]: that of a merge sort, and the beginning and the end of a segment for each
/// thread.
pub struct SegmentedSortStorage<const THREADS: usize, const ITEMS: usize, K, V = [u8; 0]>(PhantomData<(K, V)>);

impl<const THREADS: usize, const ITEMS: usize, K: Element, V: Element> SegmentedSortStorage<THREADS, ITEMS, K, V> {
    const SEGMENTS: usize = MergeSortStorage::<THREADS, ITEMS, K, V>::BYTES.next_multiple_of(16);
}

// SAFETY: uninitialised elements.
unsafe impl<const THREADS: usize, const ITEMS: usize, K: Element, V: Element> SharedStorage
    for SegmentedSortStorage<THREADS, ITEMS, K, V>
{
    const BYTES: usize = SegmentedSortStorage::bytes_of([THREADS, ITEMS], [size_of::<K>(), size_of::<V>()]);
    const ALIGN: usize = 16;
}

impl SegmentedSortStorage<0, 0, ()> {
    /// Returns the bytes of a storage whose keys and values have these sizes.
    #[doc(hidden)]
    pub const fn bytes_of([threads, items]: [usize; 2], sizes: [usize; 2]) -> usize {
        MergeSortStorage::bytes_of([threads, items], sizes).next_multiple_of(16) + threads * size_of::<[u32; 2]>()
    }
}

/// Sorts pairs of a key and a value in each segment of the block's items, by the keys, with any comparator. The sort is stable. For keys
/// without values, the values are `[u8; 0]`.
///
/// The arrangement is that of [`block_merge_sort_pairs`](crate::block::block_merge_sort_pairs). A segment is a run of positions, and stays
/// in its place. Bit `i` of `heads` says that a segment begins at item `i` of the thread. `segment` has the beginning and the end of the
/// segment of the thread's first item, which may be outside the block. For positions from `valid` on, these values do not matter.
///
/// Phases and cost are those of [`block_merge_sort_pairs`](crate::block::block_merge_sort_pairs). When two runs merge, only the items of
/// the segment across their border move.
///
/// Shared memory: that of [`block_merge_sort_pairs`](crate::block::block_merge_sort_pairs), and two words for each thread.
///
/// CUB has no such collective.
///
/// All threads of the block call it: see [divergence](crate::block#divergence).
///
/// ```
/// use kernel_primitives::block::{SegmentedSortStorage, block_segmented_merge_sort_pairs};
/// use kernel_primitives::functor::Less;
/// use kernel_primitives::prelude::*;
///
/// /// Sorts each three neighbours.
/// #[kernel]
/// fn threes(
///     cx: Block,
///     x: Global<u32>,
///     mut out: GlobalMut<u32, Tiles<1>>,
///     mut shared: Shared<SegmentedSortStorage<32, 1, u32>>,
/// ) {
///     for tile in cx.tiles::<1>(out.len()) {
///         let mut keys = init::<u32, 1>(0);
///         read_data(cx, &mut keys, x.tile(tile));
///         let begin = cx.thread_rank() / 3 * 3;
///         let is_head = (cx.thread_rank() == begin) as u32;
///         let segment = [begin, begin + 3];
///         block_segmented_merge_sort_pairs(cx, &mut shared, &mut keys, &mut [[]], is_head, segment, tile.len(), Less);
///         write_data(cx, out.tile(tile), &keys);
///     }
/// }
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = kernel_primitives::Device::emulator().stream()?;
/// let mut out = stream.buffer_zeroed::<u32>(8)?;
/// threes::launch(&stream, (1, 32), &stream.buffer_from(&[3u32, 1, 2, 9, 8, 7, 1, 0])?, &mut out)?;
/// assert_eq!(out.to_vec()?, [1, 2, 3, 7, 8, 9, 0, 1]);
/// # Ok(())
/// # }
/// ```
#[allow(clippy::too_many_arguments, reason = "items, and where they are")]
#[track_caller]
pub fn block_segmented_merge_sort_pairs<
    const THREADS: usize,
    const ITEMS: usize,
    K: Element,
    V: Element,
    C: Comparator<K>,
>(
    cx: Block<'_>,
    shared: &mut Shared<'_, SegmentedSortStorage<THREADS, ITEMS, K, V>>,
    keys: &mut [K; ITEMS],
    values: &mut [V; ITEMS],
    heads: u32,
    segment: [u32; 2],
    valid: usize,
    order: C,
) {
    shared.enter();
    cx.expect_at_most(valid, THREADS * ITEMS);
    let valid = valid.min(THREADS * ITEMS) as u32;
    let segments = shared.array(SegmentedSortStorage::<THREADS, ITEMS, K, V>::SEGMENTS, THREADS);
    let runs = Runs::begin(cx, shared.phase::<MergeSortStorage<THREADS, ITEMS, K, V>>());
    // SAFETY: this thread's element, which others read after a wait.
    unsafe { segments.store(runs.rank as usize, segment) };
    let own = runs.own(valid);
    transpose_neighbours(keys, values, &order, |upper| upper < own && heads >> upper & 1 == 0);
    runs.merge_all(keys, values, 1, THREADS as u32, valid, &order, Some(segments));
}
