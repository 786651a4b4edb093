//! The kernel of unique items.

use core::marker::PhantomData;

use kernel_primitives::grid::Chain;
use kernel_primitives::input::Source;
use kernel_primitives::prelude::*;
use kernel_primitives::simt::WARP;
use kernel_primitives::view::SharedStorage;

use crate::algorithms::tile::staged::STAGE_THREADS;
use crate::algorithms::tile::staged::{Part, STAGE_WARPS, by_vectors, items, lead, most_batches};
use crate::algorithms::tile::warps::{WarpStorage, add_by_warp, announce, copy_out, prefix};

/// Returns the bytes of an item of a tile of [`unique_tiles`](struct@unique_tiles).
pub const fn unique_bytes<K: Source, V: Source, const VALUES: bool>() -> usize {
    size_of::<K::Item>() + if VALUES { size_of::<V::Item>() } else { 0 }
}

/// The keys of a tile, and its values after them.
pub struct UniqueStorage<K, V, const VALUES: bool>(PhantomData<(K, V)>);

impl<K: Source, V: Source, const VALUES: bool> UniqueStorage<K, V, VALUES> {
    const ITEMS: usize = items::<K>(unique_bytes::<K, V, VALUES>());
    const OF_VALUES: usize = (Self::ITEMS * size_of::<K::Item>()).next_multiple_of(16);
}

// SAFETY: uninitialised elements.
unsafe impl<K: Source, V: Source, const VALUES: bool> SharedStorage for UniqueStorage<K, V, VALUES> {
    const BYTES: usize = Self::OF_VALUES + if VALUES { Self::ITEMS * size_of::<V::Item>() } else { 0 };
    const ALIGN: usize = 16;
}

// PTX: unique_tiles__Span_u32_Constant_u8_false has 1 loads and 0 stores of 16 bytes, staged.

/// The kernel of [`algorithms::unique`](kernel_primitives::algorithms::unique) and
/// [`unique_by_key`](kernel_primitives::algorithms::unique_by_key). The first item of each run of equal keys goes to `out_keys`. With
/// `VALUES`, its value goes to `out_values`. The number of runs goes to `count`. Each block has one tile of `batches` batches. The first
/// tile may begin inside a vector of the input; see [`StagedTiles`](kernel_primitives::kernels::device::StagedTiles). `chain` has the
/// memory of a [`Chain`] of all tiles of the epoch `epoch`, or is empty if there is one tile.
#[kernel(launch(pub(crate)), threads(STAGE_THREADS), one_dimensional, min_blocks(4))]
#[allow(clippy::too_many_arguments, reason = "a kernel's parameters")]
pub fn unique_tiles<K, V, const VALUES: bool>(
    cx: Block,
    keys: Input<K>,
    values: Input<V>,
    mut out_keys: GlobalMut<K::Item>,
    mut out_values: GlobalMut<V::Item>,
    count: GlobalMut<u64, Atomic>,
    chain: GlobalMut<u64, Atomic>,
    epoch: u32,
    batches: u32,
    mut word: Shared<[u64; 1]>,
    mut warps: Shared<WarpStorage<u32, STAGE_WARPS>>,
    mut shared: Shared<UniqueStorage<K, V, VALUES>>,
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
    if VALUES {
        cx.require_at_most(keys.len(), values.len());
    }
    let chain = Chain::new(cx, &chain, cx.grid_blocks()).epoch(epoch);
    let tile = chain.take_tile(&mut word);
    shared.enter();
    let batches = batches.min(const { most_batches::<K>(unique_bytes::<K, V, VALUES>()) });
    by_vectors!(
        K,
        unique_bytes::<K, V, VALUES>(),
        unique_tile_of::<K, V; VECTOR, TOGETHER, VALUES>(
            cx, keys, values, &mut out_keys, &mut out_values, &count, chain, (tile, batches), &mut word, &mut warps, &shared
        )
    );
}

/// Processes one tile.
#[allow(clippy::too_many_arguments, reason = "a part of the kernel")]
// On the host, each shape has a frame of its own, and only one frame exists at a time.
fn unique_tile_of<K, V, const N: usize, const TOGETHER: usize, const VALUES: bool>(
    cx: Block,
    keys: Input<K>,
    values: Input<V>,
    out_keys: &mut GlobalMut<K::Item>,
    out_values: &mut GlobalMut<V::Item>,
    count: &GlobalMut<u64, Atomic>,
    chain: Chain<'_, '_, u64>,
    (tile, batches): (usize, u32),
    word: &mut Shared<[u64; 1]>,
    warps: &mut Shared<WarpStorage<u32, STAGE_WARPS>>,
    shared: &Shared<UniqueStorage<K, V, VALUES>>,
) where
    K: Source<Item: Element + PartialEq>,
    V: Source<Item: Element>,
{
    let part = Part::<N, TOGETHER>::of(cx, tile, batches, keys.len(), lead::<K, N>(keys));
    let items = const { UniqueStorage::<K, V, VALUES>::ITEMS };
    let in_keys = shared.array::<K::Item>(0, items);
    let in_values = if VALUES {
        let at = const { UniqueStorage::<K, V, VALUES>::OF_VALUES };
        Some(shared.array::<V::Item>(at, items))
    } else {
        None
    };
    // SAFETY: the tile's place in shared memory, of which each warp accesses its own part; it waits before it reads.
    let own = unsafe {
        part.stage(keys, in_keys);
        if let Some(in_values) = in_values {
            part.stage(values, in_values);
        }
        part.wait(keys);
        part.count(in_keys, part.heads(keys))
    };
    let (before, total) = add_by_warp(cx, warps, own);
    announce(cx, &chain, tile, total as u64);
    // SAFETY: the warp's own part.
    unsafe {
        // The values come first, because the keys must still be in their places.
        if let Some(in_values) = in_values {
            let mut heads = part.heads(keys);
            part.compact(in_values, |_, at| heads(&part.vector(in_keys, at), at));
        }
        part.compact(in_keys, part.heads(keys));
    }
    if cx.warp() == 0 {
        let before = prefix(&chain, tile, total as u64, &Add);
        if cx.lane() == 0 {
            word.set(0, before);
        }
    }
    cx.barrier();
    let first = word.get(0) as usize;
    let before = first.wrapping_add(before as usize);
    // SAFETY: written by the warp; no other part has these places.
    unsafe {
        copy_out::<_, 4>((cx.lane(), WARP), in_keys, part.place(), own, out_keys, before);
        if let Some(in_values) = in_values {
            copy_out::<_, 4>((cx.lane(), WARP), in_values, part.place(), own, out_values, before);
        }
    }
    if tile + 1 == cx.grid_blocks() && cx.thread_rank() == 0 {
        count.at(0).store(first as u64 + total as u64);
    }
}
