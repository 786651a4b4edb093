//! The first kernel of sorts by any comparator: tiles. [`merge_tiles`](struct@kernel_primitives::kernels::device::merge_tiles) does the rest.

use kernel_primitives::functor::Comparator;
use kernel_primitives::input::{Source, Span};
use kernel_primitives::prelude::*;

use crate::algorithms::merge::kernel::{Nothing, by_element, by_items, items, put, write_out};
use crate::algorithms::tile::{CONTROL, has_little_shared};

/// Threads of a block of [`merge_sort_tiles`](struct@merge_sort_tiles).
pub const MERGE_SORT_THREADS: usize = 512;

/// Items of a thread where a block has all of the input, if there are not many.
const FEW: usize = 4;

/// Items of a thread where there are more than that, or in half a tile.
const SOME: usize = 8;

/// Items of a tile of [`merge_sort_tiles`](struct@merge_sort_tiles) whose keys and values have these sizes; 0 for keys alone. A power of
/// two, and a multiple of [`merge_tile_items`](kernel_primitives::kernels::device::merge_tile_items).
pub const fn merge_sort_tile_items(key: usize, value: usize) -> usize {
    MERGE_SORT_THREADS * items(key, value)
}

/// The tiles of [`merge_sort_tiles`](struct@merge_sort_tiles), and how much shared memory a launch says they take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MergeSortShape {
    /// Items of a tile: [`merge_sort_tile_items`], or half as many on devices with little shared memory and where there are few pairs.
    pub tile: usize,
    /// Bytes of shared memory.
    pub shared_bytes: usize,
}

impl MergeSortShape {
    /// That of keys and values of these sizes on a device whose blocks have so much shared memory.
    pub const fn of(key: usize, value: usize, shared_bytes: usize) -> Self {
        let (items, [all, half]) = (items(key, value), bytes(key, value));
        if all <= LITTLE || items == 1 || all + CONTROL <= shared_bytes {
            Self { tile: MERGE_SORT_THREADS * items, shared_bytes: all }
        } else {
            Self { tile: MERGE_SORT_THREADS * (items / 2), shared_bytes: half }
        }
    }

    /// That of tiles of half as many items, so that twice as many run at a time; the same for items of which a tile has few.
    pub const fn halved(self, key: usize, value: usize) -> Self {
        if items(key, value) > SOME {
            Self { tile: MERGE_SORT_THREADS * SOME, shared_bytes: bytes(key, value)[1] }
        } else {
            self
        }
    }
}

/// Bytes of the shared memory of a tile: its keys, then its values; and of one of half as many items.
const fn bytes(key: usize, value: usize) -> [usize; 2] {
    let tile = merge_sort_tile_items(key, value);
    let all = (tile * key).next_multiple_of(16) + (tile * value).next_multiple_of(16);
    [all, all / 2]
}

/// What tiles of some keys and values take more than, and do not fit in on devices with little shared memory.
const LITTLE: usize = 48 << 10;

const fn tile_of(items: usize) -> usize {
    MERGE_SORT_THREADS * items
}

/// Calls a function with the number of items as its last constant: of a tile that has all of the input, if that is short; of half a
/// tile, if there is no shared memory for a whole one; and else of a whole one.
macro_rules! by_shape {
    ($cx:expr, $len:expr, $k:ty, $v:ty, $shared:ident, $f:ident::<$($g:ty),*; ITEMS>($($arg:expr),*)) => {{
        let is_half = $shared.len() * size_of::<u64>() < const { bytes(size_of::<$k>(), size_of::<$v>())[0] };
        if const { items(size_of::<$k>(), size_of::<$v>()) > FEW } && $len <= MERGE_SORT_THREADS * FEW {
            $f::<$($g,)* FEW>($($arg,)* $shared)
        } else if const { items(size_of::<$k>(), size_of::<$v>()) > SOME }
            && (is_half || $len <= MERGE_SORT_THREADS * SOME)
        {
            $f::<$($g,)* SOME>($($arg,)* $shared)
        } else if const {
            items(size_of::<$k>(), size_of::<$v>()) <= SOME && bytes(size_of::<$k>(), size_of::<$v>())[0] > LITTLE
        } && has_little_shared($cx)
            && is_half
        {
            match const { items(size_of::<$k>(), size_of::<$v>()) } {
                8 => $f::<$($g,)* 4>($($arg,)* $shared),
                4 => $f::<$($g,)* 2>($($arg,)* $shared),
                _ => $f::<$($g,)* 1>($($arg,)* $shared),
            }
        } else {
            by_items!($k, $v, $f::<$($g),*; ITEMS>($($arg,)* $shared))
        }
    }};
}

// PTX: merge_sort_tiles__Span_u32_Less has 4 loads and 4 stores of 16 bytes.

/// Sorts each tile of the launch's [`MergeSortShape`]; stable. A tile a block.
///
/// Anybody may launch it: it is right for any arguments.
#[kernel(threads(MERGE_SORT_THREADS), min_blocks(2))]
pub fn merge_sort_tiles<S, C>(cx: Block, x: Input<S>, mut out: GlobalMut<S::Item>, order: C, shared: SharedSlice<u64>)
where
    S: Source<Item: Element>,
    C: Comparator<S::Item> + KernelParam,
{
    let values = None::<Values<Span<Nothing>>>;
    by_shape!(cx, x.len(), S::Item, Nothing, shared, tile::<S, Span<Nothing>, C; ITEMS>(cx, x, &mut out, values, order));
}

/// As [`merge_sort_tiles`](struct@merge_sort_tiles), with a value a key that goes where its key goes.
///
/// Anybody may launch it: it is right for any arguments.
#[kernel(threads(MERGE_SORT_THREADS), min_blocks(2), equal_len(out, values_out))]
pub fn merge_sort_tiles_pairs<S, X, C>(
    cx: Block,
    x: Input<S>,
    values: Input<X>,
    mut out: GlobalMut<S::Item>,
    mut values_out: GlobalMut<X::Item>,
    order: C,
    shared: SharedSlice<u64>,
) where
    S: Source<Item: Element>,
    X: Source<Item: Element>,
    C: Comparator<S::Item> + KernelParam,
{
    cx.require_at_most(x.len(), values.len());
    let values = Some((values, &mut values_out));
    by_shape!(cx, x.len(), S::Item, X::Item, shared, tile::<S, X, C; ITEMS>(cx, x, &mut out, values, order));
}

/// The values, and where they go.
type Values<'v, 'i, 'k, X> = (Input<'i, X>, &'v mut GlobalMut<'k, <X as Source>::Item>);

fn tile<S, X, C, const ITEMS: usize>(
    cx: Block<'_>,
    x: Input<'_, S>,
    out: &mut GlobalMut<'_, S::Item>,
    values: Option<Values<'_, '_, '_, X>>,
    order: C,
    shared: SharedSlice<'_, u64>,
) where
    S: Source<Item: Element>,
    X: Source<Item: Element>,
    C: Comparator<S::Item>,
{
    let tile = const { tile_of(ITEMS) };
    let first = cx.block_rank() * tile;
    let len = x.len().saturating_sub(first).min(tile);
    let own = first + cx.thread_rank() as usize * ITEMS;
    let mut keys = read::<S, ITEMS>(x, own);
    let mut own_values = [X::Item::ZERO; ITEMS];
    if let Some((values, _)) = &values {
        own_values = read::<X, ITEMS>(*values, own);
    }
    let mut shared = shared.storage::<MergeSortStorage<MERGE_SORT_THREADS, ITEMS, S::Item, X::Item>>();
    block_merge_sort_pairs(cx, &mut shared, &mut keys, &mut own_values, len, order);
    shared.sync();
    let in_keys = shared.array::<S::Item>(0, tile);
    let in_values =
        shared.array::<X::Item>(const { (tile_of(ITEMS) * size_of::<S::Item>()).next_multiple_of(16) }, tile);
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

/// The items from `first`, and zeros after the last one.
pub(crate) fn read<S: Source<Item: Element>, const ITEMS: usize>(x: Input<'_, S>, first: usize) -> [S::Item; ITEMS] {
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
