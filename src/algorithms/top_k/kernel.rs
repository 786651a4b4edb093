//! The kernels of the first few of many.
//!
//! Each block goes through its share of the input once and keeps the first `k` of it; one block then does the same with what those have
//! kept. After a few tiles hardly an item comes before the `k`th so far, so that what remains is to read.

use kernel_primitives::block::{block_top_k_by, block_top_k_of_sorted};
use kernel_primitives::functor::Turned;
use kernel_primitives::input::Source;
use kernel_primitives::prelude::*;

/// Threads of a block of these kernels.
pub const TOP_K_THREADS: usize = 256;

/// The most that they find.
pub const TOP_K_MOST: usize = 1024;

/// Items that a thread reads at once.
const READ: usize = 8;

/// Candidates of a thread that a block sorts.
const ITEMS: usize = 8;

/// Candidates that a block has room for.
const CAPACITY: usize = TOP_K_THREADS * ITEMS;

/// The most blocks whose keys [`top_k_last`](struct@top_k_last) looks at: four of its rounds have a key of each.
pub const TOP_K_BLOCKS: usize = 4 * TOP_K_TILE;

/// Items of a tile.
pub const TOP_K_TILE: usize = TOP_K_THREADS * READ;

// PTX: top_k_tiles__Span_f32 has 2 loads and 0 stores of 16 bytes.

/// Finds the first `k` of each block's share, sorted: the first blocks as many as `more` says have `tiles + 1` tiles,
/// the others `tiles`. A share has `k` items at least, and `k` is at most [`TOP_K_MOST`].
///
/// The order is that of keys [`Turned`] so. Of `n` blocks, block `b` writes its `i`th key to `keys[i * n + b]` and, unless `places` is
/// empty, to `places` where in `x` it is.
#[kernel(launch(pub(crate)), threads(TOP_K_THREADS), min_blocks(2))]
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
    // With their bits in reverse, the tiles of an input that ascends come in an order in which few of them have anything new.
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
}

/// This thread's items of the tile that begins at `tile`, their places after `first`, and a bit for each that the input has.
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

/// As [`tile_of`], by vectors of `N`.
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

/// Finds the first `k` of what the blocks of [`top_k_tiles`](struct@top_k_tiles) have found, sorted. One block.
#[kernel(launch(pub(crate)), threads(TOP_K_THREADS), min_blocks(1))]
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

/// As [`top_k_last`](struct@top_k_last), with the values that belong to them, by their places.
#[kernel(launch(pub(crate)), threads(TOP_K_THREADS), min_blocks(1))]
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

/// The first `k` of the keys, and for each the number of its block times `k`, and of the key among that one's. Those of
/// a block come in the order of their places, and the blocks' too: of equal keys the one with the lowest number has the
/// lowest place.
///
/// The first keys of all blocks come first: hardly one after the first few of each is looked at.
fn last_of<K: SortKey>(
    cx: Block<'_>,
    keys: Global<'_, K>,
    k: usize,
    turned: u64,
    shared: &mut Shared<'_, TopKStorage<K, CAPACITY>>,
) -> ([K; ITEMS], [u32; ITEMS]) {
    let rounds = keys.len().div_ceil(TOP_K_TILE);
    // One at least, of both, lest the compiler think of a division by 0.
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

/// Where the key of a number stands, of so many keys.
#[inline(always)]
fn position(number: usize, keys: usize, k: usize) -> usize {
    let k = k.max(1);
    number % k * (keys / k) + number / k
}
