//! The kernel of selections.

use kernel_primitives::functor::{BindSecond, Choice, Flagged, GreaterThan, LessThan, NotEqual};
use kernel_primitives::grid::Chain;
use kernel_primitives::input::{Source, Span, Zip};
use kernel_primitives::prelude::*;

use super::TILE_THREADS;
use super::tile::{Share, TileStorage, WarpStorage, announce, by_rounds, copy_out, prefix};

/// The kernel of [`algorithms::select_if`](kernel_primitives::algorithms::select_if) and its kin: the items that `choice` keeps, in
/// order, go to `out`, and how many they are to `count`. A tile a block; `chain` has the memory of a [`Chain`] of all tiles, or
/// none if there is one tile.
///
/// With `REST` the others follow, in order. Where they begin must be known: a first launch, with `out` empty, adds to `count`
/// how many are kept.
#[kernel(threads(TILE_THREADS), min_blocks(3), instantiate(
    <Span<u32>, BindSecond<LessThan, u32>, false>, <Span<i32>, BindSecond<LessThan, i32>, false>, <Span<f32>, BindSecond<LessThan, f32>, false>,
    <Span<u32>, BindSecond<GreaterThan, u32>, false>, <Span<i32>, BindSecond<GreaterThan, i32>, false>, <Span<f32>, BindSecond<GreaterThan, f32>, false>,
    <Span<u32>, BindSecond<NotEqual, u32>, false>, <Span<i32>, BindSecond<NotEqual, i32>, false>, <Span<f32>, BindSecond<NotEqual, f32>, false>,
    <Span<u32>, BindSecond<LessThan, u32>, true>, <Span<i32>, BindSecond<LessThan, i32>, true>, <Span<f32>, BindSecond<LessThan, f32>, true>,
    <Zip<Span<u32>, Span<bool>>, Flagged, false>, <Zip<Span<i32>, Span<bool>>, Flagged, false>, <Zip<Span<f32>, Span<bool>>, Flagged, false>,
))]
#[allow(clippy::too_many_arguments, reason = "a kernel's parameters")]
pub fn select_tiles<S, C, const REST: bool>(
    cx: Block,
    x: Input<S>,
    mut out: GlobalMut<C::Kept>,
    count: GlobalMut<u64, Atomic>,
    chain: GlobalMut<u64, Atomic>,
    choice: C,
    mut word: Shared<[u64; 1]>,
    mut warps: Shared<WarpStorage<u32>>,
    mut kept: Shared<TileStorage<S, C::Kept>>,
) where
    S: Source,
    C: Choice<S::Item> + KernelParam,
{
    if x.is_empty() {
        if cx.thread_rank() == 0 {
            count.at(0).store(0);
        }
        return;
    }
    let only_count = REST && out.is_empty();
    let chain = Chain::new(cx, &chain, cx.grid_blocks());
    let tile = if only_count {
        cx.block_rank()
    } else if chain.is_empty() {
        0
    } else {
        chain.take_tile(&mut word)
    };
    by_rounds!(
        S,
        size_of::<S::Item>(),
        select_tile_of::<S, C; VECTOR, ROUNDS, REST>(
            cx, x, &mut out, &count, chain, tile, only_count, choice, &mut word, &mut warps, &mut kept
        )
    );
}

/// One tile; or only its count.
#[allow(clippy::too_many_arguments, reason = "a part of the kernel")]
#[inline(always)]
fn select_tile_of<S, C, const N: usize, const ROUNDS: usize, const REST: bool>(
    cx: Block,
    x: Input<S>,
    out: &mut GlobalMut<C::Kept>,
    count: &GlobalMut<u64, Atomic>,
    chain: Chain<'_, '_, u64>,
    tile: usize,
    only_count: bool,
    choice: C,
    word: &mut Shared<[u64; 1]>,
    warps: &mut Shared<WarpStorage<u32>>,
    kept: &mut Shared<TileStorage<S, C::Kept>>,
) where
    S: Source,
    C: Choice<S::Item>,
{
    let share = Share::<N, ROUNDS>::of(cx, tile, x.len());
    let items = share.read(x);
    let bits = share.bits(|round, i| choice.keeps(items[round][i]));
    let (places, total) = share.places(cx, warps, bits);
    if only_count {
        if cx.thread_rank() == 0 {
            count.at(0).fetch_add(total as u64);
        }
        return;
    }
    announce(cx, &chain, tile, total as u64);
    kept.enter();
    let array = kept.array::<C::Kept>(0, super::tile_items::<S>());
    // SAFETY: the items of the tile have each its place, those that are kept the first ones; they are read after a barrier.
    unsafe {
        share.compact(array, bits, &places, |round, i| choice.kept(items[round][i]));
        if REST {
            share.compact_rest(array, bits, &places, total, |round, i| choice.kept(items[round][i]));
        }
    }
    if cx.warp() == 0 {
        let before = prefix(&chain, tile, total as u64, &Add);
        if cx.lane() == 0 {
            word.set(0, before);
        }
    }
    cx.barrier();
    let before = word.get(0) as usize;
    // SAFETY: written before the barrier; no other tile has these places.
    unsafe {
        copy_out::<_, 4>(cx, array, 0, total, out, before);
        if REST {
            let rest = count.at(0).load() as usize + (share.tile - before);
            copy_out::<_, 4>(cx, array, total, share.tile_len() - total, out, rest);
        }
    }
    if !REST && share.is_last() && cx.thread_rank() == 0 {
        count.at(0).store(before as u64 + total as u64);
    }
}
