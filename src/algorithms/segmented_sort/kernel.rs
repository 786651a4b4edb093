//! The kernels of segmented sorts.
//!
//! Tiles are sorted first, each segment in them by itself. Passes of merges then join what a segment has in two neighbouring runs: only the
//! segment that goes over the border between them is merged, and only the tiles that it has a part of are moved, from one of
//! two buffers to the other. So short segments cost little after the first kernel, and long ones as much as in any sort.
//! The idea is that of moderngpu's segmented sort (Baxter, 2013).
//!
//! For few items, launches cost more than work. There tiles are short, and in place of all passes each item of a segment in several tiles
//! searches the others of these for how many items come before it, which is its place.

use core::marker::PhantomData;

use kernel_primitives::block::{SegmentedSortStorage, block_segmented_merge_sort_pairs};
use kernel_primitives::functor::Comparator;
use kernel_primitives::input::{Source, Span};
use kernel_primitives::prelude::*;
use kernel_primitives::view::{SharedArray, SharedStorage};

use crate::algorithms::merge::kernel::{
    MERGE_THREADS, MergeStorage, Nothing, Share, by_element, by_items, items, place_of_item, put, write_out,
};
use crate::algorithms::merge_sort::kernel::read;
use crate::algorithms::search::kernel::warp_bound;
use crate::algorithms::segmented::kernel::check;

/// Threads of a block of [`segment_sort_tiles`](struct@segment_sort_tiles).
pub const SEGMENT_SORT_THREADS: usize = 256;

/// Items of a tile of [`segment_sort_tiles`](struct@segment_sort_tiles) whose keys and values have these sizes; 0 for keys alone. A power
/// of two, and a multiple of [`merge_tile_items`](kernel_primitives::kernels::device::merge_tile_items).
pub const fn segment_sort_tile_items(key: usize, value: usize) -> usize {
    SEGMENT_SORT_THREADS * items(key, value)
}

/// Items of a thread in a short tile, unless those of the usual one are fewer.
const FEW: usize = 4;

/// Items of a thread in a short tile whose keys and values have so many bytes.
const fn few_items(key: usize, value: usize) -> usize {
    let items = items(key, value);
    if items < FEW { items } else { FEW }
}

/// Items of a short tile of [`segment_sort_tiles`](struct@segment_sort_tiles) whose keys and values have these sizes; 0 for keys alone.
/// A power of two.
pub const fn segment_sort_short_items(key: usize, value: usize) -> usize {
    SEGMENT_SORT_THREADS * few_items(key, value)
}

/// Calls a function with the number of items of a thread in a short tile as its last constant.
macro_rules! by_few_items {
    ($k:ty, $v:ty, $f:ident::<$($g:ty),*; ITEMS>($($arg:expr),* $(,)?)) => {
        match const { few_items(size_of::<$k>(), size_of::<$v>()) } {
            4 => $f::<$($g,)* 4>($($arg),*),
            2 => $f::<$($g,)* 2>($($arg),*),
            _ => $f::<$($g,)* 1>($($arg),*),
        }
    };
}

/// The shared memory of a tile.
pub struct SegmentSortTileStorage<K, V = [u8; 0]>(PhantomData<(K, V)>);

impl<K: Element, V: Element> SegmentSortTileStorage<K, V> {
    const TILE: usize = segment_sort_tile_items(size_of::<K>(), size_of::<V>());
    const VALUES: usize = (Self::TILE * size_of::<K>()).next_multiple_of(16);
}

// SAFETY: uninitialised elements.
unsafe impl<K: Element, V: Element> SharedStorage for SegmentSortTileStorage<K, V> {
    /// Behind keys and values, the bounds of a segment a thread.
    const BYTES: usize = (Self::VALUES + Self::TILE * size_of::<V>()).next_multiple_of(16)
        + SEGMENT_SORT_THREADS * size_of::<[u32; 2]>();
    const ALIGN: usize = 16;
}

/// Sorts what each segment has in a tile; stable. A tile a block. What is in no segment stays where it is.
///
/// `copy` is empty, or as long as `x` and gets the same as `out`. Tiles are of [`segment_sort_tile_items`]; with a copy, and where one has
/// all items, of [`segment_sort_short_items`].
///
/// `borders[t]` is then the segment, its begin and its end, that the first item of tile `t` is in; or that item alone, if it is in none.
/// And `marks` are zero: with a copy, a bit for each item of whole tiles, the claims of
/// [`segment_merge_ranks`](struct@segment_merge_ranks); else a byte for each tile of merges, the first row of `moved`.
#[kernel(launch(pub(crate)), threads(SEGMENT_SORT_THREADS), min_blocks(4))]
pub fn segment_sort_tiles<S, O, C>(
    cx: Block,
    x: Input<S>,
    offsets: Input<O>,
    mut out: GlobalMut<S::Item>,
    mut copy: GlobalMut<S::Item>,
    mut borders: GlobalMut<[u64; 2]>,
    mut marks: GlobalMut<u8>,
    order: C,
    mut words: Shared<[u64; 2]>,
    mut shared: Shared<SegmentSortTileStorage<S::Item>>,
) where
    S: Source<Item: Element>,
    O: Source<Item: Integer + ConvertTo<u64>>,
    C: Comparator<S::Item> + KernelParam,
{
    check(cx, offsets, x.len());
    let table = (&mut borders, &mut marks);
    if copy.is_empty() && x.len() > const { segment_sort_short_items(size_of::<S::Item>(), 0) } {
        let (to, values) = ((&mut out, None), None::<Values<Span<Nothing>>>);
        by_items!(S::Item, Nothing, sort_tile::<S, O, Span<Nothing>, C; ITEMS>(cx, x, offsets, to, values, table, order, &mut words, &mut shared));
    } else {
        let (to, values) = ((&mut out, Some(&mut copy)), None::<Values<Span<Nothing>>>);
        by_few_items!(S::Item, Nothing, sort_tile::<S, O, Span<Nothing>, C; ITEMS>(cx, x, offsets, to, values, table, order, &mut words, &mut shared));
    }
}

/// As [`segment_sort_tiles`](struct@segment_sort_tiles), with a value a key that goes where its key goes.
#[kernel(
    launch(pub(crate)),
    threads(SEGMENT_SORT_THREADS),
    min_blocks(2),
    equal_len(out, values_out),
    equal_len(copy, values_copy)
)]
pub fn segment_sort_tiles_pairs<S, X, O, C>(
    cx: Block,
    x: Input<S>,
    values: Input<X>,
    offsets: Input<O>,
    mut out: GlobalMut<S::Item>,
    mut copy: GlobalMut<S::Item>,
    mut values_out: GlobalMut<X::Item>,
    mut values_copy: GlobalMut<X::Item>,
    mut borders: GlobalMut<[u64; 2]>,
    mut marks: GlobalMut<u8>,
    order: C,
    mut words: Shared<[u64; 2]>,
    mut shared: Shared<SegmentSortTileStorage<S::Item, X::Item>>,
) where
    S: Source<Item: Element>,
    X: Source<Item: Element>,
    O: Source<Item: Integer + ConvertTo<u64>>,
    C: Comparator<S::Item> + KernelParam,
{
    check(cx, offsets, x.len());
    cx.require_at_most(x.len(), values.len());
    let table = (&mut borders, &mut marks);
    if copy.is_empty() && x.len() > const { segment_sort_short_items(size_of::<S::Item>(), size_of::<X::Item>()) } {
        let (to, values) = ((&mut out, None), Some((values, (&mut values_out, None))));
        by_items!(S::Item, X::Item, sort_tile::<S, O, X, C; ITEMS>(cx, x, offsets, to, values, table, order, &mut words, &mut shared));
    } else {
        let (to, values) = ((&mut out, Some(&mut copy)), Some((values, (&mut values_out, Some(&mut values_copy)))));
        by_few_items!(S::Item, X::Item, sort_tile::<S, O, X, C; ITEMS>(cx, x, offsets, to, values, table, order, &mut words, &mut shared));
    }
}

/// Where items of a tile go: to the result and, if it is short, to the copy.
type To<'v, 'o, 'c, T> = (&'v mut GlobalMut<'o, T>, Option<&'v mut GlobalMut<'c, T>>);

/// The values, and where they go.
type Values<'v, 'i, 'o, 'c, X> = (Input<'i, X>, To<'v, 'o, 'c, <X as Source>::Item>);

/// What the first kernel tells the others.
type Table<'v, 'b, 'm> = (&'v mut GlobalMut<'b, [u64; 2]>, &'v mut GlobalMut<'m, u8>);

/// An offset; after the last one, more than any.
#[inline(always)]
fn offset<O: Source<Item: ConvertTo<u64>>>(offsets: Input<'_, O>, index: usize) -> u64 {
    offsets.get(index).map_or(u64::MAX, ConvertTo::convert)
}

/// Of the offsets from `at` to `end`, where the first is that is more than a place.
fn behind<O: Source<Item: ConvertTo<u64>>>(offsets: Input<'_, O>, mut at: usize, mut end: usize, place: u64) -> usize {
    while at < end {
        let half = at + (end - at) / 2;
        if offset(offsets, half) <= place {
            at = half + 1;
        } else {
            end = half;
        }
    }
    at
}

#[allow(clippy::too_many_arguments, reason = "a part of the kernel")]
fn sort_tile<S, O, X, C, const ITEMS: usize>(
    cx: Block<'_>,
    x: Input<'_, S>,
    offsets: Input<'_, O>,
    to: To<'_, '_, '_, S::Item>,
    values: Option<Values<'_, '_, '_, '_, X>>,
    (borders, marks): Table<'_, '_, '_>,
    order: C,
    words: &mut Shared<'_, [u64; 2]>,
    shared: &mut Shared<'_, SegmentSortTileStorage<S::Item, X::Item>>,
) where
    S: Source<Item: Element>,
    O: Source<Item: Integer + ConvertTo<u64>>,
    X: Source<Item: Element>,
    C: Comparator<S::Item>,
{
    type Storage<S, X> = SegmentSortTileStorage<<S as Source>::Item, <X as Source>::Item>;
    let tile = const { SEGMENT_SORT_THREADS * ITEMS };
    let first = cx.block_rank() * tile;
    let len = x.len().saturating_sub(first).min(tile);
    // The offsets that are more than the tile's first place, up to those that are more than its last one.
    if cx.warp() < 2 {
        let place = (if cx.warp() == 0 { first } else { first + tile - 1 }) as u64;
        let found = warp_bound(cx, offsets.len(), |at| offset(offsets, at) <= place);
        if cx.lane() == 0 {
            words.set(cx.warp() as usize, found as u64);
        }
    }
    let own = first + cx.thread_rank() as usize * ITEMS;
    let mut keys = read::<S, ITEMS>(x, own);
    let mut own_values = [X::Item::ZERO; ITEMS];
    if let Some((values, _)) = &values {
        own_values = read::<X, ITEMS>(*values, own);
    }
    cx.barrier();
    let ends = [words.get(0) as usize, words.get(1) as usize];

    // Where segments begin, and each place by itself that is in none: those before the first offset and those after the last.
    let mut at = behind(offsets, ends[0], ends[1], own as u64);
    let is_inside = at > 0 && at < offsets.len();
    let bounds = if is_inside { [offset(offsets, at - 1), offset(offsets, at)] } else { [own as u64, own as u64 + 1] };
    let mut next = offset(offsets, at);
    let bit = |place: u64| place.saturating_sub(own as u64).min(31) as u32;
    let mut heads = if at == 0 { !(!0 << bit(next)) } else { 0u32 };
    if at >= offsets.len() {
        heads = !0;
    }
    while next < (own + ITEMS) as u64 {
        heads |= 1 << bit(next);
        let place = next;
        at += 1;
        if offset(offsets, at) <= place {
            at = behind(offsets, at, ends[1], place);
        }
        next = offset(offsets, at);
        if at >= offsets.len() {
            heads |= !0 << bit(place);
        }
    }
    if cx.thread_rank() == 0 && len > 0 {
        // SAFETY: of the block alone.
        unsafe { borders.write(cx.block_rank(), bounds) };
    }
    let own_marks = if to.1.is_some() { tile / 8 } else { const { tile_ratio() } };
    let mark = cx.block_rank() * own_marks + cx.thread_rank() as usize;
    if cx.thread_rank() < own_marks as u32 && mark < marks.len() {
        // SAFETY: of the thread alone.
        unsafe { marks.write(mark, 0) };
    }

    let bounds = bounds.map(|place| place.saturating_sub(first as u64).min(tile as u64) as u32);
    let storage = shared.phase_checked::<SegmentedSortStorage<SEGMENT_SORT_THREADS, ITEMS, S::Item, X::Item>>();
    block_segmented_merge_sort_pairs(cx, storage, &mut keys, &mut own_values, heads, bounds, len, order);
    shared.sync();
    let in_keys = shared.array::<S::Item>(0, tile);
    let in_values = shared.array::<X::Item>(Storage::<S, X>::VALUES, tile);
    // SAFETY: barriers before and between; the tile's places in the result are its own.
    unsafe {
        by_element!(S::Item, put::<S::Item; VECTOR, ITEMS>(cx, in_keys, &keys));
        by_element!(X::Item, put::<X::Item; VECTOR, ITEMS>(cx, in_values, &own_values));
        cx.barrier();
        by_element!(S::Item, write_to_both::<S::Item; VECTOR, ITEMS>(cx, in_keys, to, first, len as u32));
        if let Some((_, to)) = values {
            by_element!(X::Item, write_to_both::<X::Item; VECTOR, ITEMS>(cx, in_values, to, first, len as u32));
        }
    }
}

/// As [`write_out`]; to the copy, as far as it has places.
///
/// # Safety
/// As for [`write_out`], of both.
unsafe fn write_to_both<T: Element, const N: usize, const ITEMS: usize>(
    cx: Block<'_>,
    array: SharedArray<'_, T>,
    (out, copy): To<'_, '_, '_, T>,
    first: usize,
    len: u32,
) {
    // SAFETY: the caller's contract.
    unsafe {
        write_out::<T, N, ITEMS>(cx, array, out, first, len);
        if let Some(copy) = copy {
            write_out::<T, N, ITEMS>(cx, array, copy, first, len);
        }
    }
}

/// Tiles of merges in one of the first kernel.
const fn tile_ratio() -> usize {
    SEGMENT_SORT_THREADS / MERGE_THREADS
}

/// What a pass of [`segment_merge_tiles`](struct@segment_merge_tiles) merges.
#[derive(Clone, Copy, Debug, KernelParam)]
#[repr(C)]
pub struct SegmentMergePass {
    /// Items of a run: a power of two, a tile of [`segment_sort_tiles`](struct@segment_sort_tiles) at least.
    pub run: usize,
    /// The number of the pass; the first is 1.
    pub pass: usize,
}

/// Joins what a segment has in two neighbouring runs; stable. A tile of merges a block.
///
/// Where a tile lies after pass `p`, `moved[p * tiles + t]` says: in `out`, or, if it is not zero, in `copy`. A block
/// that has a part of a segment that is joined writes its tile to where it does not lie.
#[kernel(launch(pub(crate)), threads(MERGE_THREADS), min_blocks(4), equal_len(out, copy))]
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

/// As [`segment_merge_tiles`](struct@segment_merge_tiles), with a value a key that goes where its key goes.
#[kernel(launch(pub(crate)), threads(MERGE_THREADS), min_blocks(4), equal_len(out, copy, values_out, values_copy))]
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

/// The result and the copy, of which each tile lies in one.
type Both<'v, 'o, 'c, T> = (&'v mut GlobalMut<'o, T>, &'v mut GlobalMut<'c, T>);

/// Reads from where it lies.
///
/// # Safety
/// Nobody writes it meanwhile.
#[inline(always)]
unsafe fn read_from<T: Element>(both: &Both<'_, '_, '_, T>, in_copy: bool, at: usize) -> T {
    // SAFETY: the caller's contract.
    unsafe { if in_copy { both.1.read(at) } else { both.0.read(at) } }
}

/// Writes to where it is to lie.
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
    // What the segment over the border has in both runs.
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
    // With a comparator that is no order, the splits may say anything within their bounds.
    let len = end - start;
    let split = split as usize;
    let split_end = (split_end as usize).max(split).min(split + len);
    let own = [(from + split, split_end - split), (middle + diagonals[0] - split, len - (split_end - split))];
    let lens = own.map(|(_, len)| len as u32);

    // Each piece is of two tiles at most.
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
    // What the tile has of other segments goes along.
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

/// The binary digits of a place in a tile of the first kernel.
const fn bits_of_sort_tile(items: usize) -> u32 {
    (SEGMENT_SORT_THREADS * items).ilog2()
}

/// Brings the tiles that lie in `copy` after the last pass, whose row `moved` is, to `out`. A tile a block.
#[kernel(launch(pub(crate)), threads(MERGE_THREADS), equal_len(out, copy))]
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

/// Threads of a block of [`segment_merge_ranks`](struct@segment_merge_ranks), and its items: fewer than a short tile may have, so that few
/// tiles are blocks for a whole device.
pub const SEGMENT_RANK_THREADS: usize = 256;

/// Short tiles that an item's place is searched in side by side.
const SIDE_BY_SIDE: usize = 4;

/// Brings the items of segments that lie in several short tiles from `copy` to their places in `out`; stable. A thread an item, 2^31 at
/// most.
///
/// `copy` and `borders` are those of [`segment_sort_tiles`](struct@segment_sort_tiles), and `claims` its `marks`. An item that finds its
/// place claimed, as may be if the comparator is no order, goes nowhere.
#[kernel(launch(pub(crate)), threads(SEGMENT_RANK_THREADS), min_blocks(4), equal_len(out, copy))]
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

/// As [`segment_merge_ranks`](struct@segment_merge_ranks), with a value a key that goes where its key goes.
#[kernel(
    launch(pub(crate)),
    threads(SEGMENT_RANK_THREADS),
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

/// An item and its place, if its segment lies in several tiles and nobody has claimed the place before: after the items of its segment
/// that come before it in its own tile and in each other.
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
        // The first and the last item of what the segment has in other tiles; after the last of these, of nothing.
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
                // Of equal items those of earlier tiles come first.
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
