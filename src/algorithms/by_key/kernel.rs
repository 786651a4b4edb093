//! The kernel of reductions of runs of equal keys.

use core::marker::PhantomData;

use kernel_primitives::element::Segmented;
use kernel_primitives::functor::BySegment;
use kernel_primitives::grid::Chain;
use kernel_primitives::input::Source;
use kernel_primitives::prelude::*;
use kernel_primitives::simt::WARP;
use kernel_primitives::view::SharedStorage;

use crate::algorithms::tile::by_vector;
use crate::algorithms::tile::runs::{Heads, Marks, RunTile, RunTiles, mark, run_places, stage};
use crate::algorithms::tile::staged::STAGE_THREADS;
use crate::algorithms::tile::staged::STAGE_WARPS;
use crate::algorithms::tile::warps::{WarpStorage, any_item};

/// The bytes of a block's shared memory for the values of a tile and its bits. A multiprocessor of an H200 has six such blocks, so that
/// some read while others wait or write. With four blocks, whose tiles are larger, 2^28 items in runs of 16 take an eighth longer, but items in
/// long runs take 5 to 7 percent less.
const TILE_BYTES: usize = 35_200;

/// The number of runs that a lane writes together.
const TOGETHER: usize = 6;

/// Returns an odd number of vectors of `bytes` bytes for each thread, at most 51, for which a block has memory.
const fn odd_vectors(bytes: usize) -> usize {
    let mut vectors = 51;
    while vectors > 1 && STAGE_THREADS * vectors * bytes > TILE_BYTES {
        vectors -= 2;
    }
    vectors
}

/// The shared memory of a tile: its values; a byte for each vector of keys, with a bit for each item that begins a run; and the runs that
/// warps write together.
pub struct ReduceByKeyStorage<K, V>(PhantomData<(K, V)>);

impl<K: Source, V: Source> ReduceByKeyStorage<K, V> {
    /// The number of items of a vector of keys, but not more than the bits of a byte, and not more than a block has memory for.
    const VECTOR: usize = {
        let mut vector = if K::VECTOR < 8 { K::VECTOR } else { 8 };
        while vector > 1 && STAGE_THREADS * (vector * size_of::<V::Item>() + 1) > TILE_BYTES {
            vector /= 2;
        }
        vector
    };

    /// The number of vectors of a lane for whose values a block has memory. It is odd, so that lanes that read their own vectors rarely
    /// access the same bank.
    const STAGED: usize = odd_vectors(Self::VECTOR * size_of::<V::Item>() + 1);

    /// The number of vectors in a large tile. Its keys are read once more where runs begin. They do not have more bytes than the values may
    /// have, so the keys of all tiles that run at a time fit in the second-level cache of an H200.
    const VECTORS: usize = {
        let keys = odd_vectors(Self::VECTOR * size_of::<K::Item>());
        if keys < Self::STAGED { keys } else { Self::STAGED }
    };

    /// The number of vectors in a tile of middle size. With large tiles only, the last of a few rounds of tiles would be short.
    const MIDDLE: usize = (Self::VECTORS * 5 / 6) | 1;

    /// The number of vectors in a small tile, of some 2300 items.
    const FEWER: usize = {
        let fewer = (18 / Self::VECTOR) | 1;
        if fewer < Self::VECTORS { fewer } else { Self::VECTORS }
    };

    const TILE: usize = STAGE_THREADS * Self::VECTORS * Self::VECTOR;

    const OF_HEADS: usize = Self::TILE * size_of::<V::Item>();
    const OF_LIST: usize = Self::OF_HEADS + STAGE_THREADS * Self::VECTORS;

    /// Returns the tiles of `len` items, if `tiles` of them run at a time. The order of sums depends on `tiles`, so it is the same on all
    /// devices.
    pub fn tiles(len: usize, tiles: usize) -> RunTiles {
        let sizes = [Self::VECTORS, Self::MIDDLE, Self::FEWER];
        RunTiles::fastest(len, STAGE_THREADS * Self::VECTOR, sizes, tiles)
    }
}

// SAFETY: uninitialised elements.
unsafe impl<K: Source, V: Source> SharedStorage for ReduceByKeyStorage<K, V> {
    const BYTES: usize = Self::OF_LIST + run_places(TOGETHER) * 2;
    const ALIGN: usize = 16;
}

// PTX: reduce_by_key_tiles__Span_u32_Span_f32_Add has 60 loads and 0 stores of 16 bytes, staged.

/// The kernel of [`algorithms::reduce_by_key`](kernel_primitives::algorithms::reduce_by_key). For each run of equal keys, the first key
/// goes to `out_keys`, and its values, combined by `op` in order, go to `out_values`. The number of runs goes to `count`. Each block has
/// one tile, with `vectors` vectors for each thread ([`ReduceByKeyStorage::tiles`]). `chain` has the memory of a [`Chain`] of all tiles of
/// the epoch `epoch`, or is empty if there is one tile. If `is_crowded` is not 0, all blocks run at once.
#[kernel(launch(pub(crate)), threads(STAGE_THREADS), one_dimensional, min_blocks(6))]
#[allow(clippy::too_many_arguments, reason = "a kernel's parameters")]
pub fn reduce_by_key_tiles<K, V, R>(
    cx: Block,
    keys: Input<K>,
    values: Input<V>,
    mut out_keys: GlobalMut<K::Item>,
    mut out_values: GlobalMut<V::Item>,
    count: GlobalMut<u64, Atomic>,
    chain: GlobalMut<u64, Atomic>,
    epoch: u32,
    vectors: u32,
    is_crowded: u32,
    op: R,
    mut word: Shared<[u64; 1]>,
    mut carry: Shared<[V::Item; 1]>,
    mut counts: Shared<WarpStorage<u32, STAGE_WARPS>>,
    mut totals: Shared<WarpStorage<V::Item, STAGE_WARPS>>,
    shared: Shared<ReduceByKeyStorage<K, V>>,
) where
    K: Source<Item: Element + PartialEq>,
    V: Source<Item: Element>,
    R: Reducer<V::Item> + KernelParam,
{
    if keys.is_empty() {
        if cx.thread_rank() == 0 {
            count.at(0).store(0);
        }
        return;
    }
    let chain = Chain::new(cx, &chain, cx.grid_blocks()).epoch(epoch);
    let tile = chain.take_tile(&mut word);
    let most = const { ReduceByKeyStorage::<K, V>::VECTORS };
    let (middle, fewer) = const { (ReduceByKeyStorage::<K, V>::MIDDLE, ReduceByKeyStorage::<K, V>::FEWER) };
    let in_values = shared.array::<V::Item>(0, const { ReduceByKeyStorage::<K, V>::TILE });
    let heads = shared.array::<u8>(const { ReduceByKeyStorage::<K, V>::OF_HEADS }, STAGE_THREADS * most);
    let list = shared.array(const { ReduceByKeyStorage::<K, V>::OF_LIST }, run_places(TOGETHER));

    // The numbers are constants, so that loops are unrolled.
    let (is_large, is_middle) = (vectors as usize == most, vectors as usize == middle);
    let vectors = if is_large {
        most
    } else if is_middle {
        middle
    } else {
        fewer
    };
    let vector = const { ReduceByKeyStorage::<K, V>::VECTOR };
    let first_vector = cx.warp() as usize * WARP as usize * vectors;
    let place = first_vector * vector;
    let first = tile * (STAGE_THREADS * vectors * vector) + place;
    let part = Part { cx, keys, values, first, place, in_values, first_vector, heads, op };
    macro_rules! find {
        ($n:literal, $ahead:literal) => {
            if is_large {
                part.find::<$n, $ahead>(most)
            } else if is_middle {
                part.find::<$n, $ahead>(middle)
            } else {
                part.find::<$n, $ahead>(fewer)
            }
        };
    }
    let (found, total) = match const { ReduceByKeyStorage::<K, V>::VECTOR } {
        8 => find!(8, 4),
        4 => find!(4, 8),
        2 => find!(2, 5),
        _ => find!(1, 8),
    };
    // If all blocks run at once, blocks of the next launch would take places beside some of them. 2^20 items would take a sixth longer on an
    // H200.
    if is_crowded == 0 {
        cx.launch_dependents();
    }
    // These are the lane's items in the part, and its vectors.
    let own = cx.lane() as usize * vectors * vector;
    let own_vector = first_vector + cx.lane() as usize * vectors;
    let (before, total) = warp_exclusive_scan(cx, Segmented { heads: found.count as u64, total }, BySegment(op));
    if found.count > 0 {
        let at = place + own + found.first;
        // SAFETY: the lane's own value.
        unsafe { in_values.store(at, op.apply(before.total, in_values.load(at))) };
    }
    let runs = RunTile::<_, _, TOGETHER> { cx, chain: &chain, tile, op, before, own: total, list };
    runs.write(
        (&mut word, &mut carry),
        (&mut counts, &mut totals),
        // SAFETY: the lane's own vectors.
        || (0..vectors).map(|v| (own + v * vector, unsafe { heads.load(own_vector + v) } as u32)),
        |at| keys.at(first + at),
        // SAFETY: there are sums where runs begin; the warp has waited for them.
        |at, _| unsafe { in_values.load(place + at) },
        // SAFETY: of all threads of the grid only this one has the run.
        (&mut out_keys, |run, sum| unsafe { out_values.write(run, sum) }, &count),
    );
    if is_crowded != 0 {
        cx.launch_dependents();
    }
}

/// A warp's part of a tile, and its place in shared memory.
#[derive(Clone, Copy)]
struct Part<'k, K: Source, V: Source, R> {
    cx: Block<'k>,
    keys: Input<'k, K>,
    values: Input<'k, V>,
    /// The part's first item in the inputs, and its place in shared memory.
    first: usize,
    place: usize,
    in_values: SharedArray<'k, V::Item>,
    /// The place of the bits of the part's first vector.
    first_vector: usize,
    heads: SharedArray<'k, u8>,
    op: R,
}

impl<K, V, R> Part<'_, K, V, R>
where
    K: Source<Item: Element + PartialEq>,
    V: Source<Item: Element>,
    R: Reducer<V::Item>,
{
    /// Finds where runs begin in the lane's items, which are `vectors` vectors of `N`. `AHEAD` vectors of keys are in flight at a time. At each
    /// of these places, it writes the result of the run before, as far as the lane has it. Returns the items that begin a run, and the result
    /// of the items after the last of them.
    fn find<const N: usize, const AHEAD: usize>(self, vectors: usize) -> (Heads, V::Item) {
        let Self { cx, keys, values, first, place, in_values, first_vector, heads, op } = self;
        let lane = cx.lane() as usize;
        let part = (first, WARP as usize * vectors * N);
        // SAFETY: the warp's part of shared memory; it waits before it reads.
        unsafe { by_vector!(V, stage::<V; VECTOR>(cx, values, part, (in_values, place), || op.identity())) };
        let earlier = keys.get(first.wrapping_sub(1)).unwrap_or_else(|| any_item(keys));
        mark::<K, N, AHEAD>(keys, first, vectors, &mut Marks { cx, heads, first: first_vector + lane, earlier });
        values.wait_for_copies();
        cx.sync_warp(FULL_MASK);

        let (own, own_vector) = (place + lane * vectors * N, first_vector + lane * vectors);
        let (mut found, mut sum) = (Heads::default(), op.identity());
        for v in 0..vectors {
            // SAFETY: the lane's own vectors of what the warp has written.
            let (mut items, bits): ([V::Item; N], u32) =
                unsafe { (in_values.load_items(own + v * N), heads.load(own_vector + v) as u32) };
            found.add(v * N, bits);
            for (i, item) in items.iter_mut().enumerate() {
                let value = *item;
                if bits >> i & 1 != 0 {
                    *item = sum;
                    sum = value;
                } else {
                    sum = op.apply(sum, value);
                }
            }
            // SAFETY: as above.
            unsafe { in_values.store_items(own + v * N, &items) };
        }
        (found, sum)
    }
}
