//! The first kernel of sorts by any comparator, which sorts tiles. [`merge_tiles`](struct@kernel_primitives::kernels::device::merge_tiles)
//! does the rest.

use kernel_primitives::functor::Comparator;
use kernel_primitives::input::{Source, Span};
use kernel_primitives::prelude::*;

use crate::algorithms::merge::kernel::{
    Nothing, by_element, by_items, items, merge_carveout, merge_pairs_carveout, put, write_out,
};
use crate::algorithms::tile::{CONTROL, has_little_shared};

/// The number of threads of a block of [`merge_sort_tiles`](struct@merge_sort_tiles).
pub const MERGE_SORT_THREADS: usize = 512;

/// The number of items of a thread if a block has all of the input and there are only a few items.
const FEW: usize = 4;

/// The number of items of a thread if there are more items than that, or if a block has half a tile.
const SOME: usize = 8;

/// Returns the number of items of a tile of [`merge_sort_tiles`](struct@merge_sort_tiles) whose keys and values have these sizes, or size 0
/// for keys alone. It is a power of two, and a multiple of [`merge_tile_items`](kernel_primitives::kernels::device::merge_tile_items).
pub const fn merge_sort_tile_items(key: usize, value: usize) -> usize {
    MERGE_SORT_THREADS * items(key, value)
}

/// The tiles of [`merge_sort_tiles`](struct@merge_sort_tiles), and the shared memory that a launch gives for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MergeSortShape {
    /// The number of items of a tile. It is [`merge_sort_tile_items`], or half of it on devices with little shared memory and for few
    /// pairs.
    pub tile: usize,
    /// The bytes of shared memory.
    pub shared_bytes: usize,
}

impl MergeSortShape {
    /// Returns the shape for keys and values of these sizes on a device whose blocks have `shared_bytes` bytes of shared memory.
    pub const fn of(key: usize, value: usize, shared_bytes: usize) -> Self {
        let (items, [all, half]) = (items(key, value), bytes(key, value));
        if all <= LITTLE || items == 1 || all + CONTROL <= shared_bytes {
            Self { tile: MERGE_SORT_THREADS * items, shared_bytes: all }
        } else {
            Self { tile: MERGE_SORT_THREADS * (items / 2), shared_bytes: half }
        }
    }

    /// Returns the shape with half as many items in a tile, so that twice as many tiles run at a time. If a tile has few items, returns the
    /// same shape.
    pub const fn halved(self, key: usize, value: usize) -> Self {
        if items(key, value) > SOME {
            Self { tile: MERGE_SORT_THREADS * SOME, shared_bytes: bytes(key, value)[1] }
        } else {
            self
        }
    }
}

/// Returns the bytes of shared memory that sort a tile with its keys and values, and the bytes of half a tile.
const fn bytes(key: usize, value: usize) -> [usize; 2] {
    let items = items(key, value);
    let (all, half) = ([MERGE_SORT_THREADS, items], [MERGE_SORT_THREADS, items / 2]);
    let [all, half] = [MergeSortStorage::bytes_of(all, [key, value]), MergeSortStorage::bytes_of(half, [key, value])];
    [all.next_multiple_of(16), half.next_multiple_of(16)]
}

/// If a tile takes more bytes than this, it may not fit on devices with little shared memory.
const LITTLE: usize = 48 << 10;

const fn tile_of(items: usize) -> usize {
    MERGE_SORT_THREADS * items
}

/// Calls a function with the number of items as its last constant. If the input is short, a tile has all of it. Without shared memory for a
/// whole tile, it is half a tile. Otherwise, it is a whole tile.
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

/// Sorts each tile of the launch's [`MergeSortShape`]. The sort is stable. Each block sorts one tile.
///
/// Anyone may launch it: its result is right for any arguments.
#[kernel(
    threads(MERGE_SORT_THREADS),
    one_dimensional,
    min_blocks(if size_of::<S::Item>() == 4 { 4 } else { 2 }),
    carveout(merge_carveout::<S::Item>())
)]
pub fn merge_sort_tiles<S, C>(cx: Block, x: Input<S>, mut out: GlobalMut<S::Item>, order: C, shared: SharedSlice<u64>)
where
    S: Source<Item: Element>,
    C: Comparator<S::Item> + KernelParam,
{
    let values = None::<Values<Span<Nothing>>>;
    by_shape!(cx, x.len(), S::Item, Nothing, shared, tile::<S, Span<Nothing>, C; ITEMS>(cx, x, &mut out, values, order));
}

/// Works as [`merge_sort_tiles`](struct@merge_sort_tiles), with a value for each key. A value goes to the place of its key.
///
/// Anyone may launch it: its result is right for any arguments.
#[kernel(threads(MERGE_SORT_THREADS), one_dimensional, min_blocks(2), equal_len(out, values_out), carveout(merge_pairs_carveout::<S::Item, X::Item>()))]
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

/// The values, and the places where they go.
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
    // SAFETY: this is the first use.
    let mut shared =
        unsafe { shared.unused_storage::<MergeSortStorage<MERGE_SORT_THREADS, ITEMS, S::Item, X::Item>>() };
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

/// Returns the items from `first`, and zeros after the last item.
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
