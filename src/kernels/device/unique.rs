//! The kernel of unique items.

use kernel_primitives::grid::Chain;
use kernel_primitives::input::{Constant, Source, Span};
use kernel_primitives::prelude::*;
use kernel_primitives::view::Phases;

use super::TILE_THREADS;
use super::tile::{Share, TileStorage, WarpStorage, announce, by_rounds, copy_out, prefix, rounds};

/// Items of a tile of [`unique_tiles`](struct@unique_tiles).
pub const fn unique_tile<K: Source, V: Source, const VALUES: bool>() -> usize {
    TILE_THREADS * rounds(K::VECTOR, item_bytes::<K, V, VALUES>()) * K::VECTOR
}

const fn item_bytes<K: Source, V: Source, const VALUES: bool>() -> usize {
    size_of::<K::Item>() + if VALUES { size_of::<V::Item>() } else { 0 }
}

/// The keys of a tile that are kept, and then the values.
type Kept<K, V> = Phases<(TileStorage<K, <K as Source>::Item>, TileStorage<K, <V as Source>::Item>)>;

/// The kernel of [`algorithms::unique`](kernel_primitives::algorithms::unique) and
/// [`unique_by_key`](kernel_primitives::algorithms::unique_by_key): the first item of each run of equal keys goes to `out_keys`,
/// with `VALUES` the value beside it to `out_values`, and how many there are to `count`. A tile a block; `chain` has the memory of
/// a [`Chain`] of all tiles, or none if there is one tile.
#[kernel(threads(TILE_THREADS), min_blocks(3), instantiate(
    <Span<u32>, Constant<u8>, false>, <Span<i32>, Constant<u8>, false>, <Span<f32>, Constant<u8>, false>, <Span<u64>, Constant<u8>, false>,
    <Span<u32>, Span<u32>, true>, <Span<u32>, Span<f32>, true>, <Span<i32>, Span<f32>, true>, <Span<u64>, Span<u32>, true>,
))]
#[allow(clippy::too_many_arguments, reason = "a kernel's parameters")]
pub fn unique_tiles<K, V, const VALUES: bool>(
    cx: Block,
    keys: Input<K>,
    values: Input<V>,
    mut out_keys: GlobalMut<K::Item>,
    mut out_values: GlobalMut<V::Item>,
    count: GlobalMut<u64, Atomic>,
    chain: GlobalMut<u64, Atomic>,
    mut word: Shared<[u64; 1]>,
    mut warps: Shared<WarpStorage<u32>>,
    mut kept: Shared<Kept<K, V>>,
) where
    K: Source<Item: Element + PartialEq>,
    V: Source<Item: Element>,
{
    if keys.is_empty() {
        if cx.thread_rank() == 0 {
            count.at(0).store(0);
        }
        return;
    }
    let chain = Chain::new(cx, &chain, cx.grid_blocks());
    let tile = if chain.is_empty() { 0 } else { chain.take_tile(&mut word) };
    by_rounds!(
        K,
        item_bytes::<K, V, VALUES>(),
        unique_tile_of::<K, V; VECTOR, ROUNDS, VALUES>(
            cx, keys, values, &mut out_keys, &mut out_values, &count, chain, tile, &mut word, &mut warps, &mut kept
        )
    );
}

/// One tile.
#[allow(clippy::too_many_arguments, reason = "a part of the kernel")]
#[inline(always)]
fn unique_tile_of<K, V, const N: usize, const ROUNDS: usize, const VALUES: bool>(
    cx: Block,
    keys: Input<K>,
    values: Input<V>,
    out_keys: &mut GlobalMut<K::Item>,
    out_values: &mut GlobalMut<V::Item>,
    count: &GlobalMut<u64, Atomic>,
    chain: Chain<'_, '_, u64>,
    tile: usize,
    word: &mut Shared<[u64; 1]>,
    warps: &mut Shared<WarpStorage<u32>>,
    kept: &mut Shared<Kept<K, V>>,
) where
    K: Source<Item: Element + PartialEq>,
    V: Source<Item: Element>,
{
    let share = Share::<N, ROUNDS>::of(cx, tile, keys.len());
    let items = share.read_or(keys, K::Item::ZERO);
    let bits = share.heads(cx, keys, &items);
    let (places, total) = share.places(cx, warps, bits);
    announce(cx, &chain, tile, total as u64);
    let kept_keys = kept.phase::<TileStorage<K, K::Item>>();
    kept_keys.enter();
    let array = kept_keys.array::<K::Item>(0, super::tile_items::<K>());
    // SAFETY: each item that is kept has its place; they are read after a barrier.
    unsafe { share.compact(array, bits, &places, |round, i| items[round][i]) };
    // On their way while the block waits for the tiles before.
    let values = if VALUES { Some(share.read_or(values, V::Item::ZERO)) } else { None };
    if cx.warp() == 0 {
        let before = prefix(&chain, tile, total as u64, &Add);
        if cx.lane() == 0 {
            word.set(0, before);
        }
    }
    cx.barrier();
    let before = word.get(0) as usize;
    // SAFETY: written before the barrier; no other tile has these places.
    unsafe { copy_out::<_, 4>(cx, array, 0, total, out_keys, before) };
    if let Some(values) = values {
        let kept = kept.phase::<TileStorage<K, V::Item>>();
        kept.enter();
        let array = kept.array::<V::Item>(0, super::tile_items::<K>());
        // SAFETY: as for the keys.
        unsafe {
            share.compact(array, bits, &places, |round, i| values[round][i]);
            cx.barrier();
            copy_out::<_, 4>(cx, array, 0, total, out_values, before);
        }
    }
    if share.is_last() && cx.thread_rank() == 0 {
        count.at(0).store(before as u64 + total as u64);
    }
}
