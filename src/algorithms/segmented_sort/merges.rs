//! Passes of merges, which join the items that a segment has in two neighbouring runs.

use kernel_primitives::functor::Comparator;
use kernel_primitives::prelude::*;

use super::kernel::SEGMENT_SORT_THREADS;
use crate::algorithms::merge::kernel::{
    MERGE_THREADS, MergeStorage, Nothing, Share, by_element, by_items, place_of_item, put,
};
use crate::algorithms::search::kernel::warp_bound;

/// The runs that a pass of [`segment_merge_tiles`](struct@segment_merge_tiles) merges.
#[derive(Clone, Copy, Debug, KernelParam)]
#[repr(C)]
pub struct SegmentMergePass {
    /// The number of items of a run. It is a power of two, and at least a tile of
    /// [`segment_sort_tiles`](struct@kernel_primitives::kernels::device::segment_sort_tiles).
    pub run: usize,
    /// The number of the pass. The first pass is 1.
    pub pass: usize,
}

/// Joins the items that a segment has in two neighbouring runs. The merge is stable. Each block has one tile of merges.
///
/// `moved[p * tiles + t]` says where tile `t` is after pass `p`: in `out`, or in `copy` if it is not zero. A block that has a part of a
/// joined segment writes its tile to the other buffer.
#[kernel(launch(pub(crate)), threads(MERGE_THREADS), one_dimensional, min_blocks(4), equal_len(out, copy))]
pub fn segment_merge_tiles<K, C>(
    cx: Block,
    mut out: GlobalMut<K>,
    mut copy: GlobalMut<K>,
    borders: Global<[u64; 2]>,
    mut moved: GlobalMut<u8>,
    pass: SegmentMergePass,
    order: C,
    shared: Shared<MergeStorage<K>>,
) where
    K: Element,
    C: Comparator<K> + KernelParam,
{
    let values = None::<Both<Nothing>>;
    by_items!(K, Nothing, merge_tile::<K, Nothing, C; ITEMS>(cx, (&mut out, &mut copy), values, borders, &mut moved, pass, &order, &shared));
}

/// Works as [`segment_merge_tiles`](struct@segment_merge_tiles), with a value for each key. A value goes to the place of its key.
#[kernel(
    launch(pub(crate)),
    threads(MERGE_THREADS),
    one_dimensional,
    min_blocks(4),
    equal_len(out, copy, values_out, values_copy)
)]
pub fn segment_merge_tiles_pairs<K, V, C>(
    cx: Block,
    mut out: GlobalMut<K>,
    mut copy: GlobalMut<K>,
    mut values_out: GlobalMut<V>,
    mut values_copy: GlobalMut<V>,
    borders: Global<[u64; 2]>,
    mut moved: GlobalMut<u8>,
    pass: SegmentMergePass,
    order: C,
    shared: Shared<MergeStorage<K, V>>,
) where
    K: Element,
    V: Element,
    C: Comparator<K> + KernelParam,
{
    let values = Some((&mut values_out, &mut values_copy));
    by_items!(K, V, merge_tile::<K, V, C; ITEMS>(cx, (&mut out, &mut copy), values, borders, &mut moved, pass, &order, &shared));
}

/// The result and the copy. Each tile is in one of them.
type Both<'v, 'o, 'c, T> = (&'v mut GlobalMut<'o, T>, &'v mut GlobalMut<'c, T>);

/// Reads from the buffer that has the tile.
///
/// # Safety
/// Nobody writes it meanwhile.
#[inline(always)]
unsafe fn read_from<T: Element>(both: &Both<'_, '_, '_, T>, in_copy: bool, at: usize) -> T {
    // SAFETY: the caller's contract.
    unsafe { if in_copy { both.1.read(at) } else { both.0.read(at) } }
}

/// Writes to the buffer that gets the tile.
///
/// # Safety
/// Nobody else accesses it meanwhile.
#[inline(always)]
unsafe fn write_to<T: Element>(both: &mut Both<'_, '_, '_, T>, in_copy: bool, at: usize, value: T) {
    // SAFETY: the caller's contract.
    unsafe { if in_copy { both.1.write(at, value) } else { both.0.write(at, value) } }
}

#[allow(clippy::too_many_arguments, reason = "a part of the kernel")]
fn merge_tile<K, V, C, const ITEMS: usize>(
    cx: Block<'_>,
    mut keys: Both<'_, '_, '_, K>,
    mut values: Option<Both<'_, '_, '_, V>>,
    borders: Global<'_, [u64; 2]>,
    moved: &mut GlobalMut<'_, u8>,
    SegmentMergePass { run, pass }: SegmentMergePass,
    order: &C,
    shared: &Shared<'_, MergeStorage<K, V>>,
) where
    K: Element,
    V: Element,
    C: Comparator<K>,
{
    let tile = const { MERGE_THREADS * ITEMS };
    let bits = const { (MERGE_THREADS * ITEMS).ilog2() };
    let (rank, all) = (cx.block_rank(), keys.0.len());
    let tiles = all.div_ceil(tile);
    let first = rank * tile;
    if first >= all {
        return;
    }
    // SAFETY: the row of the pass before, which nobody writes.
    let lies_in_copy = |tile: usize| unsafe { moved.read((pass - 1) * tiles + tile) != 0 };
    let in_copy = lies_in_copy(rank);
    let begin = first & !(2 * run - 1);
    let middle = begin + run;
    // These are the items that the segment over the border has in both runs.
    let [from, to] = borders.get(middle >> const { bits_of_sort_tile(ITEMS) }).unwrap_or([middle as u64; 2]);
    let from = (from as usize).max(begin).min(middle);
    let to = (to as usize).min(begin + 2 * run).min(all).max(middle);
    let last = (first + tile).min(all);
    let is_joined = middle < all && from < middle && middle < to && first < to && from < last;
    if cx.thread_rank() == 0 {
        // SAFETY: the row of this pass, of which the block has one element.
        unsafe { moved.write(pass * tiles + rank, (in_copy != is_joined) as u8) };
    }
    if !is_joined {
        return;
    }

    // What a block reads lies where no block writes in this pass.
    // SAFETY: as above.
    let lies_in_copy = |tile: usize| unsafe { moved.read((pass - 1) * tiles + tile) != 0 };
    let (start, end) = (first.max(from), last.min(to));
    let diagonals = [start - from, end - from];
    let lens = [middle - from, to - middle];
    let ends = shared.array::<u64>(0, 2);
    if cx.warp() < 2 {
        let diagonal = if cx.warp() == 0 { diagonals[0] } else { diagonals[1] };
        let least = diagonal.saturating_sub(lens[1]);
        let found = warp_bound(cx, diagonal.min(lens[0]) - least, |at| {
            let places = [from + least + at, middle + diagonal - 1 - least - at];
            // SAFETY: see above.
            let [a, b] = places.map(|at| unsafe { read_from(&keys, lies_in_copy(at >> bits), at) });
            !order.before(b, a)
        });
        if cx.lane() == 0 {
            // SAFETY: the warp's own element.
            unsafe { ends.store(cx.warp() as usize, (least + found) as u64) };
        }
    }
    cx.barrier();
    // SAFETY: written before the barrier.
    let [split, split_end] = unsafe { ends.load_items::<2>(0) };
    // If the comparator is not an order, the splits may have any value within their bounds.
    let len = end - start;
    let split = split as usize;
    let split_end = (split_end as usize).max(split).min(split + len);
    let own = [(from + split, split_end - split), (middle + diagonals[0] - split, len - (split_end - split))];
    let lens = own.map(|(_, len)| len as u32);

    // Each piece has items of at most two tiles.
    let sides = own.map(|(at, len)| {
        let last = if len > 0 { at + len - 1 } else { at };
        if len > 0 { [lies_in_copy(at >> bits), lies_in_copy(last >> bits)] } else { [false; 2] }
    });
    let in_keys = shared.array::<K>(MergeStorage::<K, V>::KEYS, tile);
    let in_values = shared.array::<V>(MergeStorage::<K, V>::VALUES, tile);
    let thread = cx.thread_rank();
    for i in 0..ITEMS {
        let at = (i * MERGE_THREADS) as u32 + thread;
        if at < len as u32 {
            let second = at >= lens[0];
            let (piece, sides) = if second { (own[1].0, sides[1]) } else { (own[0].0, sides[0]) };
            let place = piece + (if second { at - lens[0] } else { at }) as usize;
            let in_copy = if place >> bits == piece >> bits { sides[0] } else { sides[1] };
            // SAFETY: see above; a place of this thread.
            unsafe {
                in_keys.store(at as usize, read_from(&keys, in_copy, place));
                if let Some(values) = &values {
                    in_values.store(at as usize, read_from(values, in_copy, place));
                }
            }
        }
    }
    // The items of other segments in the tile are moved, too.
    for i in 0..ITEMS {
        let at = first + i * MERGE_THREADS + thread as usize;
        if at < last && (at < start || at >= end) {
            // SAFETY: see above; the tile's place where it does not lie.
            unsafe {
                let key = read_from(&keys, in_copy, at);
                write_to(&mut keys, !in_copy, at, key);
                if let Some(values) = &mut values {
                    let value = read_from(values, in_copy, at);
                    write_to(values, !in_copy, at, value);
                }
            }
        }
    }
    cx.barrier();
    let mut own_keys = [K::ZERO; ITEMS];
    let mut own_values = [V::ZERO; ITEMS];
    // SAFETY: the places were written before the barrier, and are next written after another.
    unsafe {
        let places = [0, lens[0]];
        let share = Share { keys: in_keys, values: in_values, key_places: places, value_places: places, lens };
        share.merge(thread * ITEMS as u32, order, &mut own_keys, &mut own_values);
    }
    cx.barrier();
    // SAFETY: barriers before, between and after; the tile's places where it does not lie are its own.
    unsafe {
        by_element!(K, put::<K; VECTOR, ITEMS>(cx, in_keys, &own_keys));
        by_element!(V, put::<V; VECTOR, ITEMS>(cx, in_values, &own_values));
        cx.barrier();
        for i in 0..ITEMS {
            let at = (i * MERGE_THREADS) as u32 + thread;
            if at < len as u32 {
                let key = in_keys.load(place_of_item::<K, ITEMS>(at));
                write_to(&mut keys, !in_copy, start + at as usize, key);
                if let Some(values) = &mut values {
                    let value = in_values.load(place_of_item::<V, ITEMS>(at));
                    write_to(values, !in_copy, start + at as usize, value);
                }
            }
        }
    }
}

/// Returns the number of binary digits of a place in a tile of the first kernel.
const fn bits_of_sort_tile(items: usize) -> u32 {
    (SEGMENT_SORT_THREADS * items).ilog2()
}

/// Copies the tiles that are in `copy` after the last pass to `out`. `moved` is the row of that pass. Each block has one tile.
#[kernel(launch(pub(crate)), threads(MERGE_THREADS), one_dimensional, equal_len(out, copy))]
pub fn segment_sort_last<T: Element>(
    cx: Block,
    mut out: GlobalMut<T>,
    copy: Global<T>,
    moved: Global<u8>,
    tile: usize,
) {
    let first = cx.block_rank() * tile;
    if moved.get(cx.block_rank()).unwrap_or(0) == 0 {
        return;
    }
    let end = (first + tile).min(out.len());
    let mut at = first + cx.thread_rank() as usize;
    while at < end {
        if let Some(item) = copy.get(at) {
            // SAFETY: the thread's own element.
            unsafe { out.write(at, item) };
        }
        at += MERGE_THREADS;
    }
}
