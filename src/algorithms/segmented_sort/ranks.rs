//! A merge of few items in one launch. Each item of a segment in several tiles finds its place by searches.

use kernel_primitives::functor::Comparator;
use kernel_primitives::input::Span;
use kernel_primitives::prelude::*;

use super::kernel::segment_sort_short_items;
use crate::algorithms::merge::kernel::Nothing;

/// The number of threads of a block of [`segment_merge_ranks`](struct@segment_merge_ranks), which is also the number of its items. It is
/// smaller than a short tile may be, so that a few tiles have enough blocks for a whole device.
pub const SEGMENT_RANK_THREADS: usize = 256;

/// The number of short tiles in which an item's place is searched at the same time.
const SIDE_BY_SIDE: usize = 4;

/// Moves the items of segments that are in several short tiles from `copy` to their places in `out`. The order is stable. Each thread has
/// one item, of at most 2^31 items.
///
/// `copy` and `borders` are the results of [`segment_sort_tiles`](struct@kernel_primitives::kernels::device::segment_sort_tiles), and
/// `claims` are its `marks`. If the comparator is not an order, an item may find its place claimed. Then the item is not written.
#[kernel(launch(pub(crate)), threads(SEGMENT_RANK_THREADS), one_dimensional, min_blocks(4), equal_len(out, copy))]
pub fn segment_merge_ranks<K, C>(
    cx: Block,
    mut out: GlobalMut<K>,
    copy: Input<Span<K>>,
    borders: Global<[u64; 2]>,
    claims: GlobalMut<u32, Atomic>,
    order: C,
) where
    K: Element,
    C: Comparator<K> + KernelParam,
{
    let at = cx.block_rank() * SEGMENT_RANK_THREADS + cx.thread_rank() as usize;
    if let Some((key, place)) = claim_place::<K, Nothing, C>(at, copy, borders, &claims, &order) {
        // SAFETY: only this thread has claimed the place.
        unsafe { out.write(place, key) };
    }
}

/// Works as [`segment_merge_ranks`](struct@segment_merge_ranks), with a value for each key. A value goes to the place of its key.
#[kernel(
    launch(pub(crate)),
    threads(SEGMENT_RANK_THREADS),
    one_dimensional,
    min_blocks(4),
    equal_len(out, copy, values_out, values_copy)
)]
pub fn segment_merge_ranks_pairs<K, V, C>(
    cx: Block,
    mut out: GlobalMut<K>,
    copy: Input<Span<K>>,
    mut values_out: GlobalMut<V>,
    values_copy: Global<V>,
    borders: Global<[u64; 2]>,
    claims: GlobalMut<u32, Atomic>,
    order: C,
) where
    K: Element,
    V: Element,
    C: Comparator<K> + KernelParam,
{
    let at = cx.block_rank() * SEGMENT_RANK_THREADS + cx.thread_rank() as usize;
    if let Some((key, place)) = claim_place::<K, V, C>(at, copy, borders, &claims, &order) {
        // SAFETY: only this thread has claimed the place.
        unsafe {
            out.write(place, key);
            values_out.write(place, values_copy[at]);
        }
    }
}

/// Returns an item and its place, if its segment is in several tiles and no other item has claimed the place. The place is after the items
/// of the segment that come before this item, in its own tile and in each other tile.
fn claim_place<K, V, C>(
    at: usize,
    copy: Input<'_, Span<K>>,
    borders: Global<'_, [u64; 2]>,
    claims: &GlobalMut<'_, u32, Atomic>,
    order: &C,
) -> Option<(K, usize)>
where
    K: Element,
    V: Element,
    C: Comparator<K>,
{
    let tile = const { segment_sort_short_items(size_of::<K>(), size_of::<V>()) as u32 };
    let bits = const { segment_sort_short_items(size_of::<K>(), size_of::<V>()).ilog2() };
    let len = copy.len().min(1 << 31) as u32;
    if at >= len as usize {
        return None;
    }
    let at = at as u32;
    let own = at >> bits;
    let first = own << bits;
    let [front, back] = [own, own + 1].map(|tile| borders.get(tile as usize).unwrap_or([u64::MAX; 2]));
    let [from, to] = if front[0] < first as u64 && front[1] > at as u64 {
        front
    } else if back[0] <= at as u64 {
        back
    } else {
        return None;
    };
    let (from, to) = (from as u32, to.max(at as u64 + 1).min(len as u64) as u32);

    // SAFETY: inside, and so are all that the segment has in any tile.
    let item = |at: u32| unsafe { copy.items_inside::<1>(at as usize) }[0];
    let key = item(at);
    let first_tile = from >> bits;
    let others = ((to - 1) >> bits) - first_tile;
    let mut place = from + at - from.max(first);
    let mut next = 0;
    while next < others {
        // These are the first and the last item of the segment in each other tile. After the last tile, the range is empty.
        let parts: [_; SIDE_BY_SIDE] = core::array::from_fn(|k| {
            let other = next + k as u32;
            let tile = first_tile + other + (first_tile + other >= own) as u32;
            if other < others { [from.max(tile << bits), to.min((tile + 1) << bits) - 1] } else { [at + 1, at] }
        });
        let mut counts = [0u32; SIDE_BY_SIDE];
        for k in 0..bits + 1 {
            let step = tile >> k;
            for (count, &[begin, last]) in counts.iter_mut().zip(&parts) {
                let probe = begin + *count + step - 1;
                let other = item(probe.min(last));
                // Among equal items, those of earlier tiles come first.
                let is_earlier = begin < first;
                let (a, b) = if is_earlier { (key, other) } else { (other, key) };
                let is_before = order.before(a, b) != is_earlier;
                *count += if (probe <= last) & is_before { step } else { 0 };
            }
        }
        place += counts.iter().sum::<u32>();
        next += SIDE_BY_SIDE as u32;
    }
    let bit = 1 << (place % u32::BITS);
    let claimed = claims.at((place / u32::BITS) as usize).fetch_or(bit);
    if claimed & bit == 0 { Some((key, place as usize)) } else { None }
}
