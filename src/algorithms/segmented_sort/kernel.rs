//! The kernels of segmented sorts.
//!
//! First, tiles are sorted, with each segment in a tile sorted by itself. Then passes of merges join the items that a segment has in two
//! neighbouring runs. A pass merges only the segment that crosses the border between the runs. It moves only the tiles that have a part of
//! this segment, from one of two buffers to the other. So after the first kernel, short segments cost little, and long ones cost as much as
//! in any sort. The idea is that of moderngpu's segmented sort (Baxter, 2013).
//!
//! For few items, launches cost more than the work. Then tiles are short. Instead of all passes, each item of a segment in several tiles
//! searches the other tiles of the segment for the number of items that come before it. This number gives its place.

use core::marker::PhantomData;

use kernel_primitives::block::{SegmentedSortStorage, block_segmented_merge_sort_pairs};
use kernel_primitives::functor::Comparator;
use kernel_primitives::input::{Source, Span};
use kernel_primitives::prelude::*;
use kernel_primitives::view::{SharedArray, SharedStorage};

use crate::algorithms::merge::kernel::{MERGE_THREADS, Nothing, by_element, by_items, items, put, write_out};
use crate::algorithms::merge_sort::kernel::read;
use crate::algorithms::search::kernel::warp_bound;
use crate::algorithms::segmented::kernel::check;

/// The number of threads of a block of [`segment_sort_tiles`](struct@segment_sort_tiles).
pub const SEGMENT_SORT_THREADS: usize = 256;

/// Returns the number of items of a tile of [`segment_sort_tiles`](struct@segment_sort_tiles) whose keys and values have these sizes, or
/// size 0 for keys alone. It is a power of two, and a multiple of
/// [`merge_tile_items`](kernel_primitives::kernels::device::merge_tile_items).
pub const fn segment_sort_tile_items(key: usize, value: usize) -> usize {
    SEGMENT_SORT_THREADS * items(key, value)
}

/// The number of items of a thread in a short tile, unless a usual tile has fewer.
const FEW: usize = 4;

/// Returns the number of items of a thread in a short tile, by the bytes of its keys and values.
const fn few_items(key: usize, value: usize) -> usize {
    let items = items(key, value);
    if items < FEW { items } else { FEW }
}

/// Returns the number of items of a short tile of [`segment_sort_tiles`](struct@segment_sort_tiles) whose keys and values have these sizes,
/// or size 0 for keys alone. It is a power of two.
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
    const BYTES: usize = {
        let sizes = [size_of::<K>(), size_of::<V>()];
        SegmentedSortStorage::bytes_of([SEGMENT_SORT_THREADS, items(sizes[0], sizes[1])], sizes)
    };
    const ALIGN: usize = 16;
}

/// Sorts the items of each segment in a tile. The sort is stable. Each block sorts one tile. Items that are in no segment stay in their
/// places.
///
/// `copy` is empty, or it is as long as `x` and gets the same items as `out`. Tiles have [`segment_sort_tile_items`] items. With a copy, or
/// if one tile has all items, tiles have [`segment_sort_short_items`] items.
///
/// Afterwards, `borders[t]` is the beginning and the end of the segment of the first item of tile `t`, or of that item alone if it is in no
/// segment. And `marks` are zero. With a copy, they have a bit for each item of whole tiles, which are the claims of
/// [`segment_merge_ranks`](struct@kernel_primitives::kernels::device::segment_merge_ranks). Without one, they have a byte for each tile of
/// merges, which is the first row of `moved`.
#[kernel(launch(pub(crate)), threads(SEGMENT_SORT_THREADS), one_dimensional, min_blocks(4))]
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

/// Works as [`segment_sort_tiles`](struct@segment_sort_tiles), with a value for each key. A value goes to the place of its key.
#[kernel(
    launch(pub(crate)),
    threads(SEGMENT_SORT_THREADS),
    one_dimensional,
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

/// The outputs for the items of a tile: the result and, if the tile is short, the copy.
type To<'v, 'o, 'c, T> = (&'v mut GlobalMut<'o, T>, Option<&'v mut GlobalMut<'c, T>>);

/// The values, and their outputs.
type Values<'v, 'i, 'o, 'c, X> = (Input<'i, X>, To<'v, 'o, 'c, <X as Source>::Item>);

/// The values that the first kernel gives to the others.
type Table<'v, 'b, 'm> = (&'v mut GlobalMut<'b, [u64; 2]>, &'v mut GlobalMut<'m, u8>);

/// Returns an offset. After the last one, it returns a number that is larger than any.
#[inline(always)]
fn offset<O: Source<Item: ConvertTo<u64>>>(offsets: Input<'_, O>, index: usize) -> u64 {
    offsets.get(index).map_or(u64::MAX, ConvertTo::convert)
}

/// Returns the index of the first offset that is larger than a place, among those from `at` to `end`.
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
    // These are the offsets that are larger than the tile's first place, up to those that are larger than its last place.
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

    // These are the places where segments begin. Each place that is in no segment is one by itself: the places before the first offset and
    // those after the last offset.
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

/// Works as [`write_out`]. It also writes the copy, as far as the copy has places.
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

/// Returns the number of tiles of merges in a tile of the first kernel.
const fn tile_ratio() -> usize {
    SEGMENT_SORT_THREADS / MERGE_THREADS
}
