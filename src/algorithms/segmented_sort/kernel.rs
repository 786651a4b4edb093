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

use crate::algorithms::merge::kernel::{MERGE_THREADS, Nothing, by_element, by_items, items, put, write_out};
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
/// [`segment_merge_ranks`](struct@kernel_primitives::kernels::device::segment_merge_ranks); else a byte for each tile of merges, the first row of `moved`.
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
