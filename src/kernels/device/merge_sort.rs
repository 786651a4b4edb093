//! The first kernel of sorts by any comparator: tiles. [`merge_tiles`](struct@super::merge_tiles) does the rest.

use core::marker::PhantomData;

use kernel_primitives::functor::{Comparator, Greater, Less};
use kernel_primitives::input::{Counting, Source, Span};
use kernel_primitives::prelude::*;
use kernel_primitives::view::SharedStorage;

use super::merge::{Nothing, by_element, by_items, items, put, write_out};

/// Threads of a block of [`merge_sort_tiles`](struct@merge_sort_tiles).
pub const MERGE_SORT_THREADS: usize = 512;

/// Items of a thread where a block has all of the input, if there are not many.
const FEW: usize = 4;

/// Items of a tile of [`merge_sort_tiles`](struct@merge_sort_tiles) whose keys and values have these sizes; 0 for keys alone. A power of
/// two, and a multiple of [`merge_tile_items`](super::merge_tile_items).
pub const fn merge_sort_tile_items(key: usize, value: usize) -> usize {
    MERGE_SORT_THREADS * items(key, value)
}

/// The shared memory of a tile: its keys, then its values.
pub struct MergeSortTileStorage<K, V = [u8; 0]>(PhantomData<(K, V)>);

impl<K: Element, V: Element> MergeSortTileStorage<K, V> {
    const TILE: usize = merge_sort_tile_items(size_of::<K>(), size_of::<V>());
    const VALUES: usize = (Self::TILE * size_of::<K>()).next_multiple_of(16);
}

// SAFETY: uninitialised elements.
unsafe impl<K: Element, V: Element> SharedStorage for MergeSortTileStorage<K, V> {
    const BYTES: usize = Self::VALUES + Self::TILE * size_of::<V>();
    const ALIGN: usize = 16;
}

/// Sorts each tile of [`merge_sort_tile_items`]; stable. A tile a block.
#[kernel(threads(MERGE_SORT_THREADS), min_blocks(2), instantiate(<Span<u32>, Less>, <Span<f32>, Greater>, <Span<f32>, Less>))]
pub fn merge_sort_tiles<S, C>(
    cx: Block,
    x: Input<S>,
    mut out: GlobalMut<S::Item>,
    order: C,
    mut shared: Shared<MergeSortTileStorage<S::Item>>,
) where
    S: Source<Item: Element>,
    C: Comparator<S::Item> + KernelParam,
{
    let values = None::<Values<Span<Nothing>>>;
    if x.len() <= MERGE_SORT_THREADS * FEW && const { items(size_of::<S::Item>(), 0) > FEW } {
        tile::<S, Span<Nothing>, C, FEW>(cx, x, &mut out, values, order, &mut shared);
    } else {
        by_items!(S::Item, Nothing, tile::<S, Span<Nothing>, C; ITEMS>(cx, x, &mut out, values, order, &mut shared));
    }
}

/// As [`merge_sort_tiles`](struct@merge_sort_tiles), with a value a key that goes where its key goes.
#[kernel(threads(MERGE_SORT_THREADS), min_blocks(2), equal_len(out, values_out), instantiate(
    <Span<u32>, Span<u32>, Less>, <Span<u32>, Counting<u32>, Less>, <Span<f32>, Counting<u32>, Greater>, <Span<f32>, Counting<u64>, Greater>,
))]
pub fn merge_sort_tiles_pairs<S, X, C>(
    cx: Block,
    x: Input<S>,
    values: Input<X>,
    mut out: GlobalMut<S::Item>,
    mut values_out: GlobalMut<X::Item>,
    order: C,
    mut shared: Shared<MergeSortTileStorage<S::Item, X::Item>>,
) where
    S: Source<Item: Element>,
    X: Source<Item: Element>,
    C: Comparator<S::Item> + KernelParam,
{
    cx.require_at_most(x.len(), values.len());
    let values = Some((values, &mut values_out));
    if x.len() <= MERGE_SORT_THREADS * FEW && const { items(size_of::<S::Item>(), size_of::<X::Item>()) > FEW } {
        tile::<S, X, C, FEW>(cx, x, &mut out, values, order, &mut shared);
    } else {
        by_items!(S::Item, X::Item, tile::<S, X, C; ITEMS>(cx, x, &mut out, values, order, &mut shared));
    }
}

/// The values, and where they go.
type Values<'v, 'i, 'k, X> = (Input<'i, X>, &'v mut GlobalMut<'k, <X as Source>::Item>);

#[inline(always)]
fn tile<S, X, C, const ITEMS: usize>(
    cx: Block<'_>,
    x: Input<'_, S>,
    out: &mut GlobalMut<'_, S::Item>,
    values: Option<Values<'_, '_, '_, X>>,
    order: C,
    shared: &mut Shared<'_, MergeSortTileStorage<S::Item, X::Item>>,
) where
    S: Source<Item: Element>,
    X: Source<Item: Element>,
    C: Comparator<S::Item>,
{
    type Storage<S, X> = MergeSortTileStorage<<S as Source>::Item, <X as Source>::Item>;
    let tile = const { MERGE_SORT_THREADS * ITEMS };
    let first = cx.block_rank() * tile;
    let len = x.len().saturating_sub(first).min(tile);
    let own = first + cx.thread_rank() as usize * ITEMS;
    let mut keys = read::<S, ITEMS>(x, own);
    let mut own_values = [X::Item::ZERO; ITEMS];
    if let Some((values, _)) = &values {
        own_values = read::<X, ITEMS>(*values, own);
    }
    let storage = shared.phase_checked::<MergeSortStorage<MERGE_SORT_THREADS, ITEMS, S::Item, X::Item>>();
    block_merge_sort_pairs(cx, storage, &mut keys, &mut own_values, len, order);
    shared.sync();
    let in_keys = shared.array::<S::Item>(0, tile);
    let in_values = shared.array::<X::Item>(Storage::<S, X>::VALUES, tile);
    // SAFETY: barriers before and between; the tile's places in the result are its own.
    unsafe {
        by_element!(S::Item, put::<S::Item; VECTOR, ITEMS>(cx, in_keys, &keys));
        by_element!(X::Item, put::<X::Item; VECTOR, ITEMS>(cx, in_values, &own_values));
        cx.barrier();
        by_element!(S::Item, write_out::<S::Item; VECTOR, ITEMS>(cx, in_keys, out, first, len as u32));
        if let Some((_, out)) = values {
            by_element!(X::Item, write_out::<X::Item; VECTOR, ITEMS>(cx, in_values, out, first, len as u32));
        }
    }
}

/// The items from `first` on, and zeros behind the last one.
#[inline(always)]
pub(super) fn read<S: Source<Item: Element>, const ITEMS: usize>(x: Input<'_, S>, first: usize) -> [S::Item; ITEMS] {
    if let Some(items) = x.items::<ITEMS>(first) {
        return items;
    }
    let mut items = [S::Item::ZERO; ITEMS];
    for (i, item) in items.iter_mut().enumerate() {
        if let Some(value) = x.get(first + i) {
            *item = value;
        }
    }
    items
}
