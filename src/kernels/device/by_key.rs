//! The kernel of reductions of runs of equal keys.

use kernel_primitives::element::Segmented;
use kernel_primitives::functor::BySegment;
use kernel_primitives::grid::Chain;
use kernel_primitives::input::{Constant, Source, Span, Zip};
use kernel_primitives::prelude::*;
use kernel_primitives::simt::WARP;

use super::TILE_THREADS;
use super::tile::{Share, TileStorage, WARPS, WarpStorage, announce, by_rounds, copy_out, prefix, put_by_warp};

/// The kernel of [`algorithms::reduce_by_key`](kernel_primitives::algorithms::reduce_by_key): of each run of equal keys, the first
/// goes to `out_keys`, its values, combined by `op` in order, to `out_values`, and how many there are to `count`. A tile a block;
/// `chain` has the memory of a [`Chain`] of all tiles, or none if there is one tile.
#[kernel(threads(TILE_THREADS), min_blocks(if size_of::<V::Item>() > 4 { 2 } else { 3 }), instantiate(
    <Span<u32>, Span<f32>, Add>, <Span<u32>, Span<u32>, Add>, <Span<i32>, Span<f32>, Add>, <Span<u32>, Span<f64>, Add>, <Span<u64>, Span<u32>, Add>,
    <Span<u32>, Constant<u32>, Add>, <Span<i32>, Constant<u32>, Add>, <Span<f32>, Constant<u32>, Add>, <Span<u64>, Constant<u32>, Add>,
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
    mut counts: Shared<WarpStorage<u32>>,
    mut totals: Shared<WarpStorage<V::Item>>,
    mut heads: Shared<TileStorage<Zip<K, V>, K::Item>>,
    mut sums: Shared<TileStorage<Zip<K, V>, V::Item>>,
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
    by_rounds!(
        Zip<K, V>,
        size_of::<(K::Item, V::Item)>(),
        reduce_tile_of::<K, V, R; VECTOR, ROUNDS>(
            cx, keys, values, &mut out_keys, &mut out_values, &count, chain, tile, op, &mut word, &mut carry, &mut counts,
            &mut totals, &mut heads, &mut sums
        )
    );
}

/// One tile.
#[allow(clippy::too_many_arguments, reason = "a part of the kernel")]
#[inline(always)]
fn reduce_tile_of<K, V, R, const N: usize, const ROUNDS: usize>(
    cx: Block,
    keys: Input<K>,
    values: Input<V>,
    out_keys: &mut GlobalMut<K::Item>,
    out_values: &mut GlobalMut<V::Item>,
    count: &GlobalMut<u64, Atomic>,
    chain: Chain<'_, '_, Segmented<V::Item>>,
    tile: usize,
    op: R,
    word: &mut Shared<[u64; 1]>,
    carry: &mut Shared<[V::Item; 1]>,
    counts: &mut Shared<WarpStorage<u32>>,
    totals: &mut Shared<WarpStorage<V::Item>>,
    heads: &mut Shared<TileStorage<Zip<K, V>, K::Item>>,
    sums: &mut Shared<TileStorage<Zip<K, V>, V::Item>>,
) where
    K: Source<Item: Element + PartialEq>,
    V: Source<Item: Element>,
    R: Reducer<V::Item> + Copy,
{
    let share = Share::<N, ROUNDS>::of(cx, tile, keys.len());
    let keys_of = share.read_or(keys, K::Item::ZERO);
    let values = share.read_or(values, op.identity());
    let bits = share.heads(cx, keys, &keys_of);
    let (mut places, warp_count) = share.places_in_warp(cx, bits);
    let runs = Runs::in_warp(cx, bits, &values, &op);
    let warps = Warps::of(cx, counts, totals, warp_count, runs.total(&op), &op);
    announce(cx, &chain, tile, warps.tile);
    for place in &mut places {
        *place += warps.heads_before;
    }
    heads.enter();
    sums.enter();
    let tile_items = super::tile_items::<Zip<K, V>>();
    let (heads, sums) = (heads.array::<K::Item>(0, tile_items), sums.array::<V::Item>(0, tile_items));
    // Beside the key that begins a run, what the run before it amounts to: all that a tile knows of by itself, but for the
    // first, to which belongs what the tiles before say.
    let before = runs.before(cx, warps.before, &op);
    for round in 0..ROUNDS {
        let (mut place, mut sum) = (places[round] as usize, before[round]);
        for i in 0..N {
            let value = values[round][i];
            if bits >> (round * N + i) & 1 != 0 {
                // SAFETY: each item that begins a run has its place; they are read after the barrier.
                unsafe {
                    heads.store(place, keys_of[round][i]);
                    sums.store(place, sum);
                }
                place += 1;
                sum = value;
            } else {
                sum = op.apply(sum, value);
            }
        }
    }
    if cx.warp() == 0 {
        let before = prefix(&chain, tile, warps.tile, &BySegment(op));
        if cx.lane() == 0 {
            word.set(0, before.heads);
            carry.set(0, before.total);
        }
    }
    cx.barrier();
    let (first, total) = (word.get(0) as usize, warps.tile.heads as u32);
    // SAFETY: the first thread wrote it before the barrier.
    let carried = unsafe { carry.get_written(0) };
    // SAFETY: written before the barrier; no other tile has these places.
    unsafe {
        copy_out::<_, 2>((cx.thread_rank(), TILE_THREADS as u32), heads, 0, total, out_keys, first);
        copy_out::<_, 2>((cx.thread_rank(), TILE_THREADS as u32), sums, 1, total.saturating_sub(1), out_values, first);
        if cx.thread_rank() == 0 {
            if total > 0 && first > 0 {
                out_values.write(first - 1, op.apply(carried, sums.load(0)));
            }
            if share.is_last() {
                let last = warps.tile.total;
                let last = if total > 0 { last } else { op.apply(carried, last) };
                let runs = first + total as usize;
                // The input's first item begins a run, so that there is one.
                out_values.write(runs.saturating_sub(1), last);
                count.at(0).store(runs as u64);
            }
        }
    }
}

/// What a warp's items amount to, of those in each round: since the last item there that begins a run.
struct Runs<T, const N: usize, const ROUNDS: usize> {
    /// The lanes in which a run begins.
    heads: [u32; ROUNDS],
    /// The lanes below.
    below: [T; ROUNDS],
    /// All lanes.
    all: [T; ROUNDS],
}

impl<T: Element, const N: usize, const ROUNDS: usize> Runs<T, N, ROUNDS> {
    /// Phases: each thread combines the items of each of its rounds since the last head; a vote a round; each warp scans all its
    /// rounds at once by shuffles, in which a lane takes nothing from before the last lane with a head.
    #[inline(always)]
    fn in_warp<R: Reducer<T>>(cx: Block, bits: u32, values: &[[T; N]; ROUNDS], op: &R) -> Self {
        let lane = cx.lane();
        let mut heads = [0; ROUNDS];
        // How many lanes below are still of this lane's run.
        let mut reach = [0; ROUNDS];
        let mut upto = [T::ZERO; ROUNDS];
        for round in 0..ROUNDS {
            let own = bits >> (round * N) & const { !0u32 >> (32 - N) };
            heads[round] = cx.ballot(FULL_MASK, own != 0);
            // The first lane has no other before it in any case.
            let start = (WARP - 1) - (heads[round] & (!0 >> (WARP - 1 - lane)) | 1).leading_zeros();
            reach[round] = lane - start;
            let mut sum = values[round][0];
            let mut i = 1;
            while i < N {
                let value = values[round][i];
                sum = if own >> i & 1 != 0 { value } else { op.apply(sum, value) };
                i += 1;
            }
            upto[round] = sum;
        }
        let mut delta = 1;
        while delta < WARP {
            for round in 0..ROUNDS {
                let below = cx.shuffle_up(FULL_MASK, upto[round], delta, WARP);
                if reach[round] >= delta {
                    upto[round] = op.apply(below, upto[round]);
                }
            }
            delta *= 2;
        }
        let (mut below, mut all) = (upto, upto);
        for round in 0..ROUNDS {
            below[round] = cx.shuffle_up(FULL_MASK, upto[round], 1, WARP);
            all[round] = warp_broadcast(cx, upto[round], WARP - 1);
        }
        Self { heads, below, all }
    }

    /// What the warp amounts to since its last head.
    #[inline(always)]
    fn total<R: Reducer<T>>(&self, op: &R) -> T {
        let mut total = self.all[0];
        for round in 1..ROUNDS {
            total = if self.heads[round] != 0 { self.all[round] } else { op.apply(total, self.all[round]) };
        }
        total
    }

    /// What comes before this lane's items of each round, since the last head, given what comes before the warp.
    #[inline(always)]
    fn before<R: Reducer<T>>(&self, cx: Block, before: T, op: &R) -> [T; ROUNDS] {
        let lane = cx.lane();
        let lower = !(!0 << lane);
        let mut carried = before;
        let mut before = self.below;
        for (round, before) in before.iter_mut().enumerate() {
            if lane == 0 {
                *before = carried;
            } else if self.heads[round] & lower == 0 {
                *before = op.apply(carried, *before);
            }
            let all = self.all[round];
            carried = if self.heads[round] != 0 { all } else { op.apply(carried, all) };
        }
        before
    }
}

/// What the warps of a tile amount to.
struct Warps<T: Copy> {
    /// How many runs begin in the warps before this one.
    heads_before: u32,
    /// What those amount to since the last head.
    before: T,
    /// What the tile amounts to.
    tile: Segmented<T>,
}

impl<T: Element> Warps<T> {
    /// One barrier.
    #[inline(always)]
    #[track_caller]
    fn of<R: Reducer<T>>(
        cx: Block,
        counts: &mut Shared<WarpStorage<u32>>,
        totals: &mut Shared<WarpStorage<T>>,
        count: u32,
        total: T,
        op: &R,
    ) -> Self {
        let (counts, totals) = (put_by_warp(cx, counts, count), put_by_warp(cx, totals, total));
        cx.barrier();
        // SAFETY: all warps wrote them before the barrier.
        let (counts, totals) = unsafe { (counts.load_items::<WARPS>(0), totals.load_items::<WARPS>(0)) };
        let (mut heads, mut sum) = (counts[0], totals[0]);
        let (mut heads_before, mut before) = (0, op.identity());
        for warp in 1..WARPS {
            if warp == cx.warp() as usize {
                (heads_before, before) = (heads, sum);
            }
            heads += counts[warp];
            sum = if counts[warp] > 0 { totals[warp] } else { op.apply(sum, totals[warp]) };
        }
        Self { heads_before, before, tile: Segmented { heads: heads as u64, total: sum } }
    }
}
