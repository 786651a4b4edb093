//! The seed's `Sort`: a bitonic sort of a block of any shape.

use core::marker::PhantomData;
use core::mem::{align_of, size_of};

use crate::element::SortKey;
use crate::functor::Direction;
use crate::simt::Block;
use crate::view::{Shared, SharedStorage};
use crate::warp::{Alone, Ranked, SortIndex, Threads, alone, of_alone, of_ranked, ranked};

/// The shared memory of [`block_sort`] for up to `TILE` keys: two words of 4 or 8 bytes for each key.
pub struct SortStorage<K, const TILE: usize>(PhantomData<K>);

// SAFETY: uninitialised records.
unsafe impl<K: SortKey, const TILE: usize> SharedStorage for SortStorage<K, TILE> {
    const BYTES: usize = 2 * TILE * size_of::<Alone<K>>();
    const ALIGN: usize = align_of::<Alone<K>>();
}

/// The shared memory of [`block_sort_with_index`] and [`block_top_k`](crate::block::block_top_k) for up to `TILE` keys with indices of the
/// type `I`. It has two records for each key. A record has 8 bytes, and 4 more each for keys of 8 bytes and for indices of 8 bytes.
pub struct IndexedSortStorage<K, const TILE: usize, I = u32>(PhantomData<(K, I)>);

// SAFETY: uninitialised records.
unsafe impl<K: SortKey, const TILE: usize, I: SortIndex> SharedStorage for IndexedSortStorage<K, TILE, I> {
    const BYTES: usize = 2 * TILE * size_of::<Ranked<K, I>>();
    const ALIGN: usize = align_of::<Ranked<K, I>>();
}

/// Sorts the keys of the block.
///
/// The arrangement is blocked before and after: thread `t` holds positions `t * ITEMS` to `t * ITEMS + ITEMS`. `ITEMS` is 1, 2, 4, 8 or 16.
/// The first `valid` positions are sorted; the other positions have unspecified values afterwards. A `valid` of more than `TILE` counts as
/// `TILE`, and the emulator reports it. `order` is [`Less`](crate::functor::Less) or [`Greater`](crate::functor::Greater), in the total
/// order of [`SortKey`]. In that order equal keys are identical, so stability does not matter. Any block shape works, with whole or partial
/// warps. A block with more than `TILE` items is a fault.
///
/// Phases: each warp sorts its items in registers, by shuffles. Then runs of one, two, four and more warps merge; threads of different
/// warps compare through shared memory. Cost for 2^`n` items: `n * (n + 1) / 2` comparisons for each item. A comparison in registers costs
/// one instruction, and a comparison by shuffles four; there are `w * (w + 1) / 2` barriers for 2^`w` warps. For keys of 4 bytes and tiles
/// of up to a few thousand items, that is less than a radix sort costs ([`block_radix_sort`](crate::block::block_radix_sort)).
///
/// Shared memory: two records for each item, which are used alternately. It may be used again after the next barrier, which a second
/// collective on the same `Shared` makes by itself.
///
/// Seed: `Sort(out, in, num, monotonic_type)`, which exists for two items in each thread, powers of two and full blocks.
///
/// CUB has no such collective.
///
/// All threads of the block call it: see [divergence](crate::block#divergence).
///
/// ```
/// use kernel_primitives::block::{SortStorage, block_sort};
/// use kernel_primitives::functor::Less;
/// use kernel_primitives::prelude::*;
///
/// #[kernel]
/// fn sort_tiles(
///     cx: Block,
///     x: Global<f32>,
///     mut out: GlobalMut<f32, Tiles<2>>,
///     mut shared: Shared<SortStorage<f32, 200>>,
/// ) {
///     for tile in cx.tiles::<2>(out.len()) {
///         let mut keys = init::<f32, 2>(0.0);
///         read_data(cx, &mut keys, x.tile(tile));
///         block_sort(cx, &mut shared, &mut keys, tile.len(), Less);
///         write_data(cx, out.tile(tile), &keys);
///     }
/// }
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = kernel_primitives::Device::emulator().stream()?;
/// let x: Vec<f32> = (0..150).map(|i| (i * 77 % 150) as f32).collect();
/// let mut out = stream.buffer_zeroed::<f32>(150)?;
/// sort_tiles::launch(&stream, (1, 100), &stream.buffer_from(&x)?, &mut out)?;
/// assert_eq!(out.to_vec()?, (0..150).map(|i| i as f32).collect::<Vec<_>>());
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn block_sort<const ITEMS: usize, const TILE: usize, K: SortKey, O: Direction>(
    cx: Block<'_>,
    shared: &mut Shared<'_, SortStorage<K, TILE>>,
    keys: &mut [K; ITEMS],
    valid: usize,
    order: O,
) {
    let _ = order;
    cx.expect_at_most(valid, TILE);
    let mut records = alone::<K, O, ITEMS>(keys, first_position::<ITEMS, TILE>(cx), valid);
    shared.enter();
    let half = TILE * size_of::<Alone<K>>();
    Threads::of_block(cx, [shared.array(0, TILE), shared.array(half, TILE)]).sort(&mut records);
    of_alone::<K, O, ITEMS>(&records, keys);
}

/// Sorts the keys of the block, and moves an index with each key. Equal keys are in the order of their indices. So the sort is stable if
/// the indices ascend from position to position.
///
/// Otherwise this works as [`block_sort`], with records of 8 bytes (12 for keys of 8 bytes) instead of keys, which takes twice the shuffles
/// and twice the shared memory. Indices are integers of any type, which the storage names; indices of 8 bytes make the records 4 bytes
/// longer.
///
/// Seed: `Sort(out, out_index, in, in_index, num, monotonic_type)`, which is unstable.
///
/// CUB has no such collective.
///
/// All threads of the block call it: see [divergence](crate::block#divergence).
///
/// ```
/// use kernel_primitives::prelude::*;
/// use kernel_primitives::block::{IndexedSortStorage, block_sort_with_index};
/// use kernel_primitives::functor::Greater;
///
/// /// Where each tile's keys stood, in the order of the keys.
/// #[kernel]
/// fn order(
///     cx: Block,
///     x: Global<i32>,
///     mut out: GlobalMut<u32, Tiles<2>>,
///     mut shared: Shared<IndexedSortStorage<i32, 200>>,
/// ) {
///     for tile in cx.tiles::<2>(out.len()) {
///         let mut keys = init::<i32, 2>(0);
///         read_data(cx, &mut keys, x.tile(tile));
///         let first = tile.start() as u32 + cx.thread_rank() * 2;
///         let mut places = [first, first + 1];
///         block_sort_with_index(cx, &mut shared, &mut keys, &mut places, tile.len(), Greater);
///         write_data(cx, out.tile(tile), &places);
///     }
/// }
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = kernel_primitives::Device::emulator().stream()?;
/// let x = stream.buffer_from(&[5, 9, 5, 7])?;
/// let mut out = stream.buffer_zeroed::<u32>(4)?;
/// order::launch(&stream, (1, 100), &x, &mut out)?;
/// assert_eq!(out.to_vec()?, [1, 3, 0, 2]);
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn block_sort_with_index<const ITEMS: usize, const TILE: usize, K: SortKey, O: Direction, I: SortIndex>(
    cx: Block<'_>,
    shared: &mut Shared<'_, IndexedSortStorage<K, TILE, I>>,
    keys: &mut [K; ITEMS],
    indices: &mut [I; ITEMS],
    valid: usize,
    order: O,
) {
    let _ = order;
    cx.expect_at_most(valid, TILE);
    let mut records = ranked::<K, O, I, ITEMS>(keys, indices, first_position::<ITEMS, TILE>(cx), valid);
    shared.enter();
    indexed_threads(cx, shared).sort(&mut records);
    of_ranked::<K, O, I, ITEMS>(&records, keys, indices);
}

#[inline(always)]
#[track_caller]
pub(super) fn indexed_threads<'k, K: SortKey, I: SortIndex, const TILE: usize>(
    cx: Block<'k>,
    shared: &Shared<'k, IndexedSortStorage<K, TILE, I>>,
) -> Threads<'k, Ranked<K, I>> {
    let half = TILE * size_of::<Ranked<K, I>>();
    Threads::of_block(cx, [shared.array(0, TILE), shared.array(half, TILE)])
}

/// The position of this thread's first item. A block with more items than the tile is a fault.
#[inline(always)]
#[track_caller]
pub(super) fn first_position<const ITEMS: usize, const TILE: usize>(cx: Block<'_>) -> usize {
    let items = cx.block_threads() as usize * ITEMS;
    cx.require_at_most(items, TILE);
    cx.thread_rank() as usize * ITEMS
}
