//! The kernel of reductions of runs of equal keys.

use core::marker::PhantomData;

use kernel_primitives::element::Segmented;
use kernel_primitives::functor::BySegment;
use kernel_primitives::grid::Chain;
use kernel_primitives::input::{Source, Span};
use kernel_primitives::prelude::*;
use kernel_primitives::simt::WARP;
use kernel_primitives::view::SharedStorage;

use super::runs::{Heads, LIST, RUN_BYTES, RunTile, RunTiles, stage, with_most};
use super::scan_by_key::Marks;
use super::staged::STAGE_WARPS;
use super::tile::WarpStorage;
use super::{STAGE_THREADS, by_vector};

/// Vectors of keys of a thread that are on their way at a time.
const AHEAD: usize = 9;

/// The values of a tile; a byte for each vector of keys, with a bit for each item that begins a run; and the runs that warps write
/// together.
pub struct ReduceByKeyStorage<K, V>(PhantomData<(K, V)>);

impl<K: Source, V: Source> ReduceByKeyStorage<K, V> {
    /// Items of a vector of keys, no more than a byte has bits.
    const VECTOR: usize = if K::VECTOR < 8 { K::VECTOR } else { 8 };

    /// The most vectors of a lane: an odd number, so that lanes which read their own meet in few banks.
    const VECTORS: usize = {
        let mut vectors = 51;
        while vectors > 1 && STAGE_THREADS * vectors * (Self::VECTOR * size_of::<V::Item>() + 1) > RUN_BYTES {
            vectors -= 2;
        }
        vectors
    };

    const TILE: usize = STAGE_THREADS * Self::VECTORS * Self::VECTOR;

    const OF_HEADS: usize = Self::TILE * size_of::<V::Item>();
    const OF_LIST: usize = Self::OF_HEADS + STAGE_THREADS * Self::VECTORS;

    /// The tiles of so many items, `tiles` of them if they are neither too small nor too large.
    pub fn tiles(len: usize, tiles: usize) -> RunTiles {
        RunTiles::new(len, (Self::VECTOR, Self::VECTORS), tiles)
    }
}

// SAFETY: uninitialised elements.
unsafe impl<K: Source, V: Source> SharedStorage for ReduceByKeyStorage<K, V> {
    const BYTES: usize = Self::OF_LIST + LIST * 2;
    const ALIGN: usize = 16;
}

/// The kernel of [`algorithms::reduce_by_key`](kernel_primitives::algorithms::reduce_by_key): of each run of equal keys, the first
/// goes to `out_keys`, its values, combined by `op` in order, to `out_values`, and how many there are to `count`. A tile a block,
/// of so many `vectors` a thread; `chain` has the memory of a [`Chain`] of all tiles, or none if there is one tile.
#[kernel(threads(STAGE_THREADS), min_blocks(4), instantiate(
    <Span<u32>, Span<f32>, Add>, <Span<u32>, Span<u32>, Add>, <Span<i32>, Span<f32>, Add>, <Span<u32>, Span<f64>, Add>, <Span<u64>, Span<u32>, Add>,
))]
#[allow(clippy::too_many_arguments, reason = "a kernel's parameters")]
pub fn reduce_by_key_tiles<K, V, R>(
    cx: Block,
    keys: Input<K>,
    values: Input<V>,
    mut out_keys: GlobalMut<K::Item>,
    mut out_values: GlobalMut<V::Item>,
    count: GlobalMut<u64, Atomic>,
    chain: GlobalMut<u64, Atomic>,
    vectors: u32,
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
    let chain = Chain::new(cx, &chain, cx.grid_blocks());
    let tile = if chain.is_empty() { 0 } else { chain.take_tile(&mut word) };
    let in_values = shared.array::<V::Item>(0, const { ReduceByKeyStorage::<K, V>::TILE });
    let most = const { ReduceByKeyStorage::<K, V>::VECTORS };
    let vectors = (vectors as usize).min(most);
    let heads = shared.array::<u8>(const { ReduceByKeyStorage::<K, V>::OF_HEADS }, STAGE_THREADS * most);
    let list = shared.array(const { ReduceByKeyStorage::<K, V>::OF_LIST }, LIST);
    let vector = const { ReduceByKeyStorage::<K, V>::VECTOR };

    let lane = cx.lane() as usize;
    let part = WARP as usize * vectors * vector;
    let place = cx.warp() as usize * part;
    let first = tile * (STAGE_THREADS * vectors * vector) + place;
    // The lane's items in the part.
    let own = lane * vectors * vector;
    let first_vector = cx.warp() as usize * WARP as usize * vectors;
    let mut marks = Marks {
        cx,
        heads,
        first: first_vector + lane,
        earlier: keys.get(first.wrapping_sub(1)).unwrap_or(K::Item::ZERO),
    };
    // SAFETY: the warp's part of shared memory; it waits before it reads.
    unsafe {
        with_most!(vectors, ReduceByKeyStorage::<K, V>::VECTORS, {
            let part = (first, WARP as usize * vectors * vector);
            by_vector!(V, stage::<V; VECTOR>(cx, values, part, (in_values, place), op.identity()))
        });
    }
    macro_rules! by_bits {
        ($f:ident::<$($t:ty),*>($($arg:expr),*)) => {
            match vector {
                8 => $f::<$($t,)* 8>($($arg),*),
                4 => $f::<$($t,)* 4>($($arg),*),
                2 => $f::<$($t,)* 2>($($arg),*),
                _ => $f::<$($t,)* 1>($($arg),*),
            }
        };
    }
    with_most!(vectors, ReduceByKeyStorage::<K, V>::VECTORS, by_bits!(mark::<K>(keys, first, vectors, &mut marks)));
    values.wait_for_copies();
    cx.sync_warp(FULL_MASK);
    let (own_values, own_heads) = ((in_values, place + own), (heads, first_vector + lane * vectors));
    // SAFETY: the lane's own vectors of what the warp has written.
    let (found, total) = unsafe {
        with_most!(
            vectors,
            ReduceByKeyStorage::<K, V>::VECTORS,
            by_bits!(add_up::<V, R>(own_values, own_heads, vectors, &op))
        )
    };
    let (before, total) = warp_exclusive_scan(cx, Segmented { heads: found.count as u64, total }, BySegment(op));
    if found.count > 0 {
        let at = place + own + found.first;
        // SAFETY: the lane's own value.
        unsafe { in_values.store(at, op.apply(before.total, in_values.load(at))) };
    }
    let runs = RunTile { cx, chain: &chain, tile, op, before, own: total, list };
    runs.write(
        (&mut word, &mut carry),
        (&mut counts, &mut totals),
        // SAFETY: the lane's own vectors.
        || (0..vectors).map(|v| (own + v * vector, unsafe { heads.load(first_vector + lane * vectors + v) } as u32)),
        |at| keys.at(first + at),
        // SAFETY: there are sums where runs begin; the warp has waited for them.
        |at, _| unsafe { in_values.load(place + at) },
        // SAFETY: of all threads of the grid only this one has the run.
        (&mut out_keys, |run, sum| unsafe { out_values.write(run, sum) }, &count),
    );
}

/// Marks which items of a warp's part begin a run, by so many vectors of `N` keys a lane.
#[inline(always)]
fn mark<K, const N: usize>(keys: Input<K>, first: usize, vectors: usize, marks: &mut Marks<K::Item>)
where
    K: Source<Item: Element + PartialEq>,
{
    let lane = marks.cx.lane() as usize;
    let at = |v: usize| first + (v * WARP as usize + lane) * N;
    let has = |v: usize| keys.len().saturating_sub(at(v));
    let is_whole = keys.len().saturating_sub(first) >= vectors * WARP as usize * N && keys.is_aligned::<N>(first);
    for batch in 0..vectors.div_ceil(AHEAD) {
        let vectors = batch * AHEAD..(batch * AHEAD + AHEAD).min(vectors);
        let mut ahead = [[K::Item::ZERO; N]; AHEAD];
        if is_whole {
            for (k, items) in ahead.iter_mut().enumerate() {
                if vectors.start + k < vectors.end {
                    // SAFETY: inside.
                    *items = unsafe { keys.vector_inside::<N>(at(vectors.start + k)) };
                }
            }
        } else {
            for (k, items) in ahead.iter_mut().enumerate() {
                for (i, item) in items.iter_mut().enumerate() {
                    if vectors.start + k < vectors.end && i < has(vectors.start + k) {
                        *item = keys.at(at(vectors.start + k) + i);
                    }
                }
            }
        }
        for (k, items) in ahead.iter().enumerate() {
            let v = vectors.start + k;
            if v < vectors.end {
                marks.put(v, items, at(v) == 0, if is_whole { N } else { has(v) });
            }
        }
    }
}

/// Writes, where a run begins, what the run before amounts to, as far as the lane has it. Which ones begin in the lane's items, and what there is
/// behind the last of them.
///
/// # Safety
/// The lane's items lie from a place on, and so do its vectors' bits; nobody else accesses them.
#[inline(always)]
unsafe fn add_up<V: Source<Item: Element>, R: Reducer<V::Item>, const N: usize>(
    (values, own): (SharedArray<'_, V::Item>, usize),
    (heads, own_vector): (SharedArray<'_, u8>, usize),
    vectors: usize,
    op: &R,
) -> (Heads, V::Item) {
    let (mut found, mut sum) = (Heads::default(), op.identity());
    for v in 0..vectors {
        // SAFETY: the caller's contract.
        let (mut items, bits): ([V::Item; N], u32) =
            unsafe { (values.load_items(own + v * N), heads.load(own_vector + v) as u32) };
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
        unsafe { values.store_items(own + v * N, &items) };
    }
    (found, sum)
}
