//! The kernel of selections.

use kernel_primitives::functor::Choice;
use kernel_primitives::grid::Chain;
use kernel_primitives::input::Source;
use kernel_primitives::prelude::*;
use kernel_primitives::simt::WARP;

use crate::algorithms::tile::staged::STAGE_THREADS;
use crate::algorithms::tile::staged::{self, Part, STAGE_WARPS, StagedStorage, by_vectors, lead};
use crate::algorithms::tile::warps::{WarpStorage, add_by_warp, announce, copy_out, prefix};

// PTX: select_tiles__Span_u32_Constant_BindSecond_LessThan_u32_false has 1 loads and 0 stores of 16 bytes, staged.

/// The kernel of [`algorithms::select_if`](kernel_primitives::algorithms::select_if) and similar algorithms. The items that `choice` keeps
/// go to `out`, in order, and their number goes to `count`. It looks at as many items as there are both items and flags. Each block has one
/// tile of `batches` batches. The first tile may begin inside a vector of the input; see
/// [`StagedTiles`](kernel_primitives::kernels::device::StagedTiles). `chain` has the memory of a [`Chain`] of all tiles of the epoch
/// `epoch`, or is empty if there is one tile.
///
/// With `REST`, the other items go to `out`, too. If `in_order`, they follow in order. Otherwise they fill the input's length from its end:
/// the first one is the last. If `in_order`, the place where they begin must be known: a first launch, with `out` empty, adds to `count`
/// how many items are kept.
#[kernel(launch(pub(crate)), threads(STAGE_THREADS), one_dimensional, min_blocks(4))]
#[allow(clippy::too_many_arguments, reason = "a kernel's parameters")]
pub fn select_tiles<S, F, C, const REST: bool>(
    cx: Block,
    x: Input<S>,
    flags: Input<F>,
    mut out: GlobalMut<S::Item>,
    count: GlobalMut<u64, Atomic>,
    chain: GlobalMut<u64, Atomic>,
    epoch: u32,
    choice: C,
    batches: u32,
    in_order: bool,
    mut word: Shared<[u64; 1]>,
    mut warps: Shared<WarpStorage<u32, STAGE_WARPS>>,
    mut items: Shared<StagedStorage<S>>,
) where
    S: Source<Item: Element>,
    F: Source,
    C: Choice<S::Item, F::Item> + KernelParam,
{
    let len = x.len().min(flags.len());
    if len == 0 {
        if cx.thread_rank() == 0 {
            count.at(0).store(0);
        }
        return;
    }
    let only_count = REST && in_order && out.is_empty();
    let chain = Chain::new(cx, &chain, cx.grid_blocks()).epoch(epoch);
    let tile = if only_count { cx.block_rank() } else { chain.take_tile(&mut word) };
    items.enter();
    let items = items.array(0, const { staged::items::<S>(size_of::<S::Item>()) });
    let batches = batches.min(const { staged::most_batches::<S>(size_of::<S::Item>()) });
    let selection = Selection { cx, x, flags, len, chain, tile, choice, batches, in_order, only_count };
    by_vectors!(
        S,
        size_of::<S::Item>(),
        select_tile::<S, F, C; VECTOR, TOGETHER, REST>(selection, items, &mut out, &count, &mut word, &mut warps)
    );
}

/// The work of one block.
struct Selection<'a, 'k, S, F, C> {
    cx: Block<'k>,
    x: Input<'k, S>,
    flags: Input<'k, F>,
    len: usize,
    chain: Chain<'a, 'k, u64>,
    tile: usize,
    choice: C,
    batches: u32,
    in_order: bool,
    only_count: bool,
}

/// Selects in one tile. Each warp has a part of the tile in shared memory. It tests each item, and moves the items to keep to the front of
/// the part. Meanwhile the first warp waits for the counts of the tiles before.
// On the host, each shape has a frame of its own, and only one frame exists at a time.
fn select_tile<S, F, C, const N: usize, const TOGETHER: usize, const REST: bool>(
    selection: Selection<'_, '_, S, F, C>,
    items: SharedArray<'_, S::Item>,
    out: &mut GlobalMut<S::Item>,
    count: &GlobalMut<u64, Atomic>,
    word: &mut Shared<[u64; 1]>,
    warps: &mut Shared<WarpStorage<u32, STAGE_WARPS>>,
) where
    S: Source<Item: Element>,
    F: Source,
    C: Choice<S::Item, F::Item>,
{
    let Selection { cx, x, flags, len, chain, tile, choice, batches, in_order, only_count } = selection;
    let part = Part::<N, TOGETHER>::of(cx, tile, batches, len, lead::<S, N>(x));
    // The length is not 0.
    let other = flags.at(0);
    let keep = |items: &[S::Item; N], at: u32| {
        let flags = flags
            .items::<N>(part.index(at))
            .unwrap_or_else(|| core::array::from_fn(|i| flags.get(part.index(at + i as u32)).unwrap_or(other)));
        let mut bits = 0;
        for i in 0..N {
            bits |= (choice.keeps(items[i], flags[i]) as u32) << i;
        }
        bits
    };
    // SAFETY: the tile's place in shared memory, of which each warp accesses its own part.
    let own = unsafe {
        part.stage(x, items);
        part.wait(x);
        part.count(items, keep)
    };
    let (before, total) = add_by_warp(cx, warps, own);
    if only_count {
        if cx.thread_rank() == 0 {
            count.at(0).fetch_add(total as u64);
        }
        return;
    }
    announce(cx, &chain, tile, total as u64);
    let mut kept_of_batch = 0;
    // SAFETY: the warp's own part.
    unsafe {
        if REST {
            kept_of_batch = part.partition(items, !in_order, keep);
        } else {
            part.compact(items, keep);
        }
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
    if REST {
        let others_before = part.first().wrapping_sub(before);
        let others = if in_order {
            (count.at(0).load() as usize).wrapping_add(others_before)
        } else {
            len.wrapping_sub(others_before)
        };
        // SAFETY: written by the warp; no other part has these places.
        unsafe { part.copy_partition(items, (kept_of_batch, !in_order), out, (before, others)) };
    } else {
        // SAFETY: written by the warp; no other part has these places.
        unsafe { copy_out::<_, 4>((cx.lane(), WARP), items, part.place(), own, out, before) };
    }
    if !(REST && in_order) && tile + 1 == cx.grid_blocks() && cx.thread_rank() == 0 {
        count.at(0).store(first as u64 + total as u64);
    }
}
