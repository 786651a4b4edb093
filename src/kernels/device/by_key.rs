//! The kernel of reductions of runs of equal keys.

use core::marker::PhantomData;

use kernel_primitives::element::Segmented;
use kernel_primitives::functor::BySegment;
use kernel_primitives::grid::Chain;
use kernel_primitives::input::{Source, Span};
use kernel_primitives::prelude::*;
use kernel_primitives::simt::WARP;
use kernel_primitives::view::SharedStorage;

use super::runs::{Heads, LIST, RUN_BYTES, RunTile, stage};
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

    /// Vectors of a lane: an odd number, so that lanes which read their own meet in few banks.
    const VECTORS: usize = {
        let mut vectors = 51;
        while vectors > 1 && STAGE_THREADS * vectors * (Self::VECTOR * size_of::<V::Item>() + 1) > RUN_BYTES {
            vectors -= 2;
        }
        vectors
    };

    /// Items of a tile.
    pub const TILE: usize = STAGE_THREADS * Self::VECTORS * Self::VECTOR;

    const OF_HEADS: usize = Self::TILE * size_of::<V::Item>();
    const OF_LIST: usize = Self::OF_HEADS + STAGE_THREADS * Self::VECTORS;
}

// SAFETY: uninitialised elements.
unsafe impl<K: Source, V: Source> SharedStorage for ReduceByKeyStorage<K, V> {
    const BYTES: usize = Self::OF_LIST + LIST * 2;
    const ALIGN: usize = 16;
}

/// The kernel of [`algorithms::reduce_by_key`](kernel_primitives::algorithms::reduce_by_key): of each run of equal keys, the first
/// goes to `out_keys`, its values, combined by `op` in order, to `out_values`, and how many there are to `count`. A tile a block;
/// `chain` has the memory of a [`Chain`] of all tiles, or none if there is one tile.
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
    let vectors = const { ReduceByKeyStorage::<K, V>::VECTORS };
    let heads = shared.array::<u8>(const { ReduceByKeyStorage::<K, V>::OF_HEADS }, STAGE_THREADS * vectors);
    let list = shared.array(const { ReduceByKeyStorage::<K, V>::OF_LIST }, LIST);
    let vector = const { ReduceByKeyStorage::<K, V>::VECTOR };

    let lane = cx.lane() as usize;
    let part = WARP as usize * vectors * vector;
    let place = cx.warp() as usize * part;
    let first = tile * const { ReduceByKeyStorage::<K, V>::TILE } + place;
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
    unsafe { by_vector!(V, stage::<V; VECTOR>(cx, values, (first, part), (in_values, place), op.identity())) };
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
    by_bits!(mark::<K, V>(keys, first, &mut marks));
    values.wait_for_copies();
    cx.sync_warp(FULL_MASK);
    // SAFETY: the lane's own vectors of what the warp has written.
    let (found, total) =
        unsafe { by_bits!(add_up::<K, V, R>(in_values, place + own, heads, first_vector + lane * vectors, &op)) };
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
        // SAFETY: there are sums where runs begin; the warp has waited for them.
        |at, _| (keys.at(first + at), unsafe { in_values.load(place + at) }),
        // SAFETY: of all threads of the grid only this one has the run.
        (&mut out_keys, |run, sum| unsafe { out_values.write(run, sum) }, &count),
    );
}

/// Marks which items of a warp's part begin a run, by vectors of `N` keys.
#[inline(always)]
fn mark<K, V, const N: usize>(keys: Input<K>, first: usize, marks: &mut Marks<K::Item>)
where
    K: Source<Item: Element + PartialEq>,
    V: Source<Item: Element>,
{
    let vectors = const { ReduceByKeyStorage::<K, V>::VECTORS };
    let lane = marks.cx.lane() as usize;
    let at = |v: usize| first + (v * WARP as usize + lane) * N;
    let has = keys.len().saturating_sub(first);
    if has >= vectors * WARP as usize * N && keys.is_aligned::<N>(first) {
        for batch in 0..vectors.div_ceil(AHEAD) {
            let vectors = batch * AHEAD..(batch * AHEAD + AHEAD).min(vectors);
            let mut ahead = [[K::Item::ZERO; N]; AHEAD];
            for (items, v) in ahead.iter_mut().zip(vectors.clone()) {
                // SAFETY: inside.
                *items = unsafe { keys.vector_inside::<N>(at(v)) };
            }
            for (items, v) in ahead.iter().zip(vectors) {
                marks.put(v, items, at(v) == 0, N);
            }
        }
    } else {
        for v in 0..vectors {
            let each = || core::array::from_fn(|i| keys.get(at(v) + i).unwrap_or(K::Item::ZERO));
            let items = keys.items::<N>(at(v)).unwrap_or_else(each);
            marks.put(v, &items, at(v) == 0, keys.len().saturating_sub(at(v)));
        }
    }
}

/// Writes, where a run begins, what the run before amounts to, as far as the lane has it. Which ones begin in the lane's items, and what there is
/// behind the last of them.
///
/// # Safety
/// The lane's items lie at `own`, the bits of its vectors at `own_vector`; nobody else accesses them.
#[inline(always)]
unsafe fn add_up<K, V, R, const N: usize>(
    values: SharedArray<'_, V::Item>,
    own: usize,
    heads: SharedArray<'_, u8>,
    own_vector: usize,
    op: &R,
) -> (Heads, V::Item)
where
    K: Source<Item: Element + PartialEq>,
    V: Source<Item: Element>,
    R: Reducer<V::Item>,
{
    let (mut found, mut sum) = (Heads::default(), op.identity());
    for v in 0..const { ReduceByKeyStorage::<K, V>::VECTORS } {
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
