//! The kernels that find the first few of many items.
//!
//! Each block goes through its share of the input once, and keeps the first `k` items of it. Then one block does the same with the items
//! that all blocks have kept. After a few tiles, almost no item comes before the `k`th item so far, so only reading remains.

use kernel_primitives::block::{block_top_k_by, block_top_k_of_sorted};
use kernel_primitives::functor::Turned;
use kernel_primitives::input::Source;
use kernel_primitives::prelude::*;

/// The number of threads of a block of these kernels.
pub const TOP_K_THREADS: usize = 256;

/// The most items that they find.
pub const TOP_K_MOST: usize = 1024;

/// The number of items that a thread reads at once.
const READ: usize = 8;

/// The number of candidates of a thread that a block sorts.
const ITEMS: usize = 8;

/// The number of candidates for which a block has room.
const CAPACITY: usize = TOP_K_THREADS * ITEMS;

/// The most blocks whose keys [`top_k_last`](struct@top_k_last) looks at. Four of its rounds have a key of each block.
pub const TOP_K_BLOCKS: usize = 4 * TOP_K_TILE;

/// The number of items of a tile.
pub const TOP_K_TILE: usize = TOP_K_THREADS * READ;

// PTX: top_k_tiles__Span_f32 has 2 loads and 0 stores of 16 bytes.

/// Finds the first `k` items of each block's share, and sorts them. The first `more` blocks have `tiles + 1` tiles, and the other blocks
/// have `tiles`. A share has at least `k` items, and `k` is at most [`TOP_K_MOST`].
///
/// The order is that of keys that are [`Turned`] by `turned`. Of `n` blocks, block `b` writes its `i`th key to `keys[i * n + b]`. Unless
/// `places` is empty, it also writes the key's place in `x` to the same index of `places`.
#[kernel(launch(pub(crate)), threads(TOP_K_THREADS), one_dimensional, min_blocks(2))]
pub fn top_k_tiles<S>(
    cx: Block,
    x: Input<S>,
    mut keys: GlobalMut<S::Item>,
    mut places: GlobalMut<u64>,
    k: usize,
    tiles: usize,
    more: usize,
    turned: u64,
    mut shared: Shared<TopKStorage<S::Item, CAPACITY>>,
) where
    S: Source<Item: SortKey>,
{
    let block = cx.block_rank();
    let first = (block * tiles + block.min(more)) * TOP_K_TILE;
    let tiles = (tiles + (block < more) as usize) as u32;
    // The tiles come in the order of their reversed bits. If the input ascends, only few tiles have new candidates in this order.
    let bits = u32::BITS - tiles.saturating_sub(1).leading_zeros();
    let (found, indices) =
        block_top_k_by::<ITEMS, CAPACITY, READ, _, _>(cx, &mut shared, 1 << bits, k, Turned(turned), |round: usize| {
            let tile = (round as u32).reverse_bits().unbounded_shr(u32::BITS - bits);
            let tile = if tile < tiles { first + tile as usize * TOP_K_TILE } else { x.len() };
            tile_of::<S>(cx, x, first, tile)
        });
    for i in 0..ITEMS {
        let at = cx.thread_rank() as usize * ITEMS + i;
        if at < k {
            // SAFETY: the block's own elements, and in them the thread's.
            unsafe {
                let to = at * cx.grid_blocks() + block;
                keys.write(to, found[i]);
                if !places.is_empty() {
                    places.write(to, (first + indices[i] as usize) as u64);
                }
            }
        }
    }
    // All blocks run at once. A block of the last kernel that waits beside them would slow them down.
    cx.launch_dependents();
}

/// Returns this thread's items of the tile that begins at `tile`, their places relative to `first`, and a bit for each item that the input
/// has.
fn tile_of<S: Source<Item: Element>>(
    cx: Block<'_>,
    x: Input<'_, S>,
    first: usize,
    tile: usize,
) -> ([S::Item; READ], [u32; READ], u32) {
    match const { S::VECTOR } {
        16 | 8 => items_of::<S, 8>(cx, x, first, tile),
        4 => items_of::<S, 4>(cx, x, first, tile),
        2 => items_of::<S, 2>(cx, x, first, tile),
        _ => items_of::<S, 1>(cx, x, first, tile),
    }
}

/// Works as [`tile_of`], with vectors of `N` items.
fn items_of<S: Source<Item: Element>, const N: usize>(
    cx: Block<'_>,
    x: Input<'_, S>,
    first: usize,
    tile: usize,
) -> ([S::Item; READ], [u32; READ], u32) {
    let own = tile + cx.thread_rank() as usize * N;
    let place = |i: usize| own + i / N * (TOP_K_THREADS * N) + i % N;
    let mut items = [S::Item::ZERO; READ];
    let mut bits = 0u32;
    if tile + TOP_K_TILE <= x.len() {
        let (vectors, _) = items.as_chunks_mut::<N>();
        for (m, vector) in vectors.iter_mut().enumerate() {
            // SAFETY: the whole tile is inside.
            *vector = unsafe { x.items_inside(place(m * N)) };
        }
        bits = !0;
    } else {
        for (i, item) in items.iter_mut().enumerate() {
            if let Some(key) = x.get(place(i)) {
                *item = key;
                bits |= 1 << i;
            }
        }
    }
    (items, core::array::from_fn(|i| (place(i) - first) as u32), bits)
}

/// Finds the first `k` of the items that the blocks of [`top_k_tiles`](struct@top_k_tiles) have found, and sorts them. The launch has one
/// block.
#[kernel(launch(pub(crate)), threads(TOP_K_THREADS), one_dimensional, min_blocks(1))]
pub fn top_k_last<K: SortKey>(
    cx: Block,
    keys: Global<K>,
    mut out: GlobalMut<K>,
    k: usize,
    turned: u64,
    mut shared: Shared<TopKStorage<K, CAPACITY>>,
) {
    let (found, _) = last_of(cx, keys, k, turned, &mut shared);
    for (i, &key) in found.iter().enumerate() {
        let at = cx.thread_rank() as usize * ITEMS + i;
        if at < k {
            // SAFETY: the thread's own element.
            unsafe { out.write(at, key) };
        }
    }
}

/// Works as [`top_k_last`](struct@top_k_last), and also writes the values of the keys, which it finds by their places.
#[kernel(launch(pub(crate)), threads(TOP_K_THREADS), one_dimensional, min_blocks(1))]
pub fn top_k_last_pairs<K, X>(
    cx: Block,
    keys: Global<K>,
    places: Global<u64>,
    values: Input<X>,
    mut out: GlobalMut<K>,
    mut values_out: GlobalMut<X::Item>,
    k: usize,
    turned: u64,
    mut shared: Shared<TopKStorage<K, CAPACITY>>,
) where
    K: SortKey,
    X: Source<Item: Element>,
{
    let (found, indices) = last_of(cx, keys, k, turned, &mut shared);
    for i in 0..ITEMS {
        let at = cx.thread_rank() as usize * ITEMS + i;
        if at < k
            && let Some(place) = places.get(position(indices[i] as usize, keys.len(), k))
            && let Some(value) = values.get(place as usize)
        {
            // SAFETY: the thread's own elements.
            unsafe {
                out.write(at, found[i]);
                values_out.write(at, value);
            }
        }
    }
}

/// Returns the first `k` keys. For each, also returns the number of its block times `k`, plus the number of the key in its block. The keys
/// of a block are in the order of their places, and so are the blocks. So among equal keys, the key with the lowest number has the lowest
/// place.
///
/// The first keys of all blocks come first, so it looks at few keys after the first ones of each block.
fn last_of<K: SortKey>(
    cx: Block<'_>,
    keys: Global<'_, K>,
    k: usize,
    turned: u64,
    shared: &mut Shared<'_, TopKStorage<K, CAPACITY>>,
) -> ([K; ITEMS], [u32; ITEMS]) {
    let rounds = keys.len().div_ceil(TOP_K_TILE);
    // Both are at least one. Otherwise the compiler would assume that a division by 0 is possible.
    let k = k.max(1);
    let blocks = ((keys.len() / k) as u32).max(1);
    cx.require_at_most(blocks as usize, TOP_K_BLOCKS);
    block_top_k_of_sorted::<ITEMS, CAPACITY, READ, _, _>(cx, shared, rounds, k, Turned(turned), |round: usize| {
        let place = |i: usize| round * TOP_K_TILE + i * TOP_K_THREADS + cx.thread_rank() as usize;
        let mut items = [K::ZERO; READ];
        let mut bits = 0u32;
        for (i, item) in items.iter_mut().enumerate() {
            if let Some(key) = keys.get(place(i)) {
                *item = key;
                bits |= 1 << i;
            }
        }
        let number = |place: u32| place % blocks * k as u32 + place / blocks;
        (items, core::array::from_fn(|i| number(place(i) as u32)), bits)
    })
}

/// Returns the index of the key with this number, among `keys` keys.
#[inline(always)]
fn position(number: usize, keys: usize, k: usize) -> usize {
    let k = k.max(1);
    number % k * (keys / k) + number / k
}
