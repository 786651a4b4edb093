//! The kernel of run lengths.

use core::marker::PhantomData;

use kernel_primitives::element::Segmented;
use kernel_primitives::functor::BySegment;
use kernel_primitives::grid::Chain;
use kernel_primitives::input::Source;
use kernel_primitives::prelude::*;
use kernel_primitives::simt::WARP;
use kernel_primitives::view::SharedStorage;

use crate::algorithms::tile::by_vector;
use crate::algorithms::tile::runs::{Heads, RunTile, RunTiles, run_places, stage, with_most};
use crate::algorithms::tile::staged::STAGE_THREADS;
use crate::algorithms::tile::staged::STAGE_WARPS;
use crate::algorithms::tile::warps::{WarpStorage, any_item};

/// The bytes of a block's shared memory for the keys of a tile and its bits. A multiprocessor of an H200 has four such blocks.
const TILE_BYTES: usize = 54_912;

/// The number of runs that a lane writes together.
const TOGETHER: usize = 9;

/// The shared memory of a tile: its keys; a bit for each item, which says whether it begins a run; and the runs that warps write together.
pub struct RunLengthItems<K>(PhantomData<K>);

impl<K: Source> RunLengthItems<K> {
    /// The most items of a lane. It is an odd number of vectors, so that lanes that read their own vectors never access the same bank.
    const ITEMS: usize = {
        let mut items = 51 * K::VECTOR;
        while items > K::VECTOR && STAGE_THREADS * (items * size_of::<K::Item>() + items.div_ceil(32) * 4) > TILE_BYTES
        {
            items -= 2 * K::VECTOR;
        }
        items
    };
    const WORDS: usize = Self::ITEMS.div_ceil(32);

    const TILE: usize = STAGE_THREADS * Self::ITEMS;

    const OF_HEADS: usize = (Self::TILE * size_of::<K::Item>()).next_multiple_of(4);
    const OF_LIST: usize = Self::OF_HEADS + STAGE_THREADS * Self::WORDS * 4;

    /// Returns the tiles of `len` items. There are `tiles` of them, if they are neither too small nor too large.
    pub fn tiles(len: usize, tiles: usize) -> RunTiles {
        RunTiles::new(len, (K::VECTOR, Self::ITEMS / K::VECTOR), tiles)
    }
}

// SAFETY: uninitialised elements.
unsafe impl<K: Source> SharedStorage for RunLengthItems<K> {
    const BYTES: usize = Self::OF_LIST + run_places(TOGETHER) * 2;
    const ALIGN: usize = 16;
}

// PTX: run_length_tiles__Span_u32_u32 has 25 loads and 0 stores of 16 bytes, staged.

/// The kernel of [`algorithms::run_length_encode`](kernel_primitives::algorithms::run_length_encode). For each run of equal keys, the first
/// key goes to `out_keys`, and its length goes to `lengths`. The number of runs goes to `count`. Each block has one tile, with `vectors`
/// vectors for each thread. `chain` has the memory of a [`Chain`] of all tiles of the epoch `epoch`, or is empty if there is one tile.
#[kernel(launch(pub(crate)), threads(STAGE_THREADS), one_dimensional, min_blocks(4))]
#[allow(clippy::too_many_arguments, reason = "a kernel's parameters")]
pub fn run_length_tiles<K, L>(
    cx: Block,
    keys: Input<K>,
    mut out_keys: GlobalMut<K::Item>,
    mut lengths: GlobalMut<L>,
    count: GlobalMut<u64, Atomic>,
    chain: GlobalMut<u64, Atomic>,
    epoch: u32,
    vectors: u32,
    mut word: Shared<[u64; 1]>,
    mut carry: Shared<[u64; 1]>,
    mut counts: Shared<WarpStorage<u32, STAGE_WARPS>>,
    mut totals: Shared<WarpStorage<u64, STAGE_WARPS>>,
    shared: Shared<RunLengthItems<K>>,
) where
    K: Source<Item: Element + PartialEq>,
    L: Element,
    u64: ConvertTo<L>,
{
    if keys.is_empty() {
        if cx.thread_rank() == 0 {
            count.at(0).store(0);
        }
        return;
    }
    let chain = Chain::new(cx, &chain, cx.grid_blocks()).epoch(epoch);
    let tile = chain.take_tile(&mut word);
    let in_keys = shared.array::<K::Item>(0, const { RunLengthItems::<K>::TILE });
    let bits = shared
        .array::<u32>(const { RunLengthItems::<K>::OF_HEADS }, STAGE_THREADS * const { RunLengthItems::<K>::WORDS });
    let list = shared.array(const { RunLengthItems::<K>::OF_LIST }, run_places(TOGETHER));

    let items = (vectors as usize * K::VECTOR).min(const { RunLengthItems::<K>::ITEMS });
    let part = WARP as usize * items;
    let place = cx.warp() as usize * part;
    let first = tile * (STAGE_THREADS * items) + place;
    let own = cx.lane() as usize * items;
    let has = keys.len().saturating_sub(first + own).min(items);
    let earlier = keys.get(first.wrapping_sub(1)).unwrap_or_else(|| any_item(keys));
    // SAFETY: the warp's part of shared memory; it waits before it reads.
    let found = unsafe {
        with_most!(items, RunLengthItems::<K>::ITEMS, {
            let part = (first, WARP as usize * items);
            by_vector!(K, stage::<K; VECTOR>(cx, keys, part, (in_keys, place), || any_item(keys)))
        });
        keys.wait_for_copies();
        cx.sync_warp(FULL_MASK);
        let earlier = if own == 0 { earlier } else { in_keys.load(place + own - 1) };
        let own_keys = (in_keys, place + own);
        with_most!(
            items,
            RunLengthItems::<K>::ITEMS,
            by_vector!(K, find::<K; VECTOR>(cx, own_keys, (items, has), earlier, first + own == 0, bits))
        )
    };
    let own_length = Segmented { heads: found.count as u64, total: (has - found.last) as u64 };
    let (before, length) = warp_exclusive_scan(cx, own_length, BySegment(Add));
    let runs = RunTile::<_, _, TOGETHER> { cx, chain: &chain, tile, op: Add, before, own: length, list };
    runs.write(
        (&mut word, &mut carry),
        (&mut counts, &mut totals),
        // SAFETY: the thread's own words.
        || (0..items.div_ceil(32)).map(|word| (own + word * 32, unsafe { bits.load(word_of(cx, word)) })),
        // SAFETY: the keys are as they were staged.
        |at| unsafe { in_keys.load(place + at) },
        |at, earlier| (at - earlier) as u64,
        // SAFETY: of all threads of the grid only this one has the run.
        (&mut out_keys, |run, length: u64| unsafe { lengths.write(run, length.convert()) }, &count),
    );
}

/// Returns the place of a word of this thread's bits.
#[inline(always)]
fn word_of(cx: Block, word: usize) -> usize {
    word * STAGE_THREADS + cx.thread_rank() as usize
}

/// Finds which of the lane's `len` items from a place begin a run, and writes their bits. The input has the first `has` of these items.
///
/// # Safety
/// The warp has waited for the keys; the words are the thread's own.
unsafe fn find<K: Source<Item: Element + PartialEq>, const N: usize>(
    cx: Block,
    (keys, own): (SharedArray<'_, K::Item>, usize),
    (len, has): (usize, usize),
    earlier: K::Item,
    is_first: bool,
    bits: SharedArray<'_, u32>,
) -> Heads {
    let mut found = Heads::default();
    let mut last = earlier;
    for word in 0..len.div_ceil(32) {
        let mut heads = (is_first && word == 0) as u32;
        for k in 0..const { 32 / N } {
            let at = word * 32 + k * N;
            if at < len {
                // SAFETY: the caller's contract.
                let items: [K::Item; N] = unsafe { keys.load_items(own + at) };
                for (i, &item) in items.iter().enumerate() {
                    heads |= (!last.equals(item) as u32) << (k * N + i);
                    last = item;
                }
            }
        }
        let rest = has.saturating_sub(word * 32);
        if rest < 32 {
            heads &= !(!0 << rest);
        }
        found.add(word * 32, heads);
        // SAFETY: the caller's contract.
        unsafe { bits.store(word_of(cx, word), heads) };
    }
    found
}
