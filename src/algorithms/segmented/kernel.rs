//! The kernels of segmented reductions.

use core::marker::PhantomData;

use kernel_primitives::functor::Reduction;
use kernel_primitives::input::Source;
use kernel_primitives::prelude::*;
use kernel_primitives::simt::WARP;
use kernel_primitives::view::SharedStorage;

use crate::algorithms::search::kernel::warp_bound;
use crate::algorithms::tile::by_vector;

/// The number of threads of a block of [`segment_tiles`](struct@segment_tiles).
pub const SEGMENT_THREADS: usize = 128;

/// The number of threads of a block of [`segment_ends`](struct@segment_ends), which is also the number of tiles that it looks at.
pub const SEGMENT_ENDS_THREADS: usize = 1024;

/// The bytes of a warp's tile, unless 32 vectors have more. If a multiprocessor has 24 warps, enough bytes are in flight while each warp
/// finds its segments.
const BYTES: usize = 8192;

/// The most items of a segment that one lane reduces.
const SHORT: u64 = 64;

/// The most tiles of a segment that one thread of [`segment_ends`](struct@segment_ends) goes through, and the most that one warp does.
const BY_THREAD: usize = 8;
const BY_WARP: usize = 1024;

/// The value for no segment.
const NONE: u64 = u64::MAX;

/// Returns the number of vectors of a lane in a tile.
const fn vectors<S: Source>() -> usize {
    let bytes = WARP as usize * S::VECTOR * size_of::<S::Item>();
    let vectors = match BYTES.checked_div(bytes) {
        Some(vectors) => vectors,
        None => 16,
    };
    if vectors >= 16 {
        16
    } else if vectors >= 8 {
        8
    } else if vectors >= 4 {
        4
    } else if vectors >= 2 {
        2
    } else {
        1
    }
}

/// Returns the number of items of a warp's tile, which is a power of two.
pub const fn segment_tile_items<S: Source>() -> usize {
    WARP as usize * S::VECTOR * vectors::<S>()
}

/// The tiles of a block's warps.
pub struct SegmentStorage<S>(PhantomData<S>);

impl<S: Source> SegmentStorage<S> {
    const ITEMS: usize = SEGMENT_THREADS / WARP as usize * segment_tile_items::<S>();
}

// SAFETY: uninitialised elements.
unsafe impl<S: Source> SharedStorage for SegmentStorage<S> {
    const BYTES: usize = Self::ITEMS * size_of::<S::Item>();
    const ALIGN: usize = 16;
}

/// The number of offsets that justify another block, whose threads only check them.
pub const SEGMENT_OFFSETS: usize = 128 * SEGMENT_THREADS;

/// Faults unless all offsets are in order and inside. A thread reads four at once, so that it waits for memory once.
#[track_caller]
pub(crate) fn check<O: Source<Item: Integer + ConvertTo<u64>>>(cx: Block, offsets: Input<O>, len: usize) {
    check_and_list(cx, offsets, len, |_| ());
}

/// Works as [`check`]. In addition, it calls `is_empty` for each empty segment, in one thread of the grid.
#[track_caller]
fn check_and_list<O>(cx: Block, offsets: Input<O>, len: usize, mut is_empty: impl FnMut(usize))
where
    O: Source<Item: Integer + ConvertTo<u64>>,
{
    const AT_ONCE: usize = 4;
    let at = |index: usize| -> u64 { offsets.get(index).map_or(0, ConvertTo::convert) };
    for i in cx.items(offsets.len().div_ceil(AT_ONCE)) {
        let first = i.index() * AT_ONCE;
        let mut begin = at(first.wrapping_sub(1));
        let ends: [u64; AT_ONCE] = match offsets.items::<AT_ONCE>(first) {
            Some(ends) => ends.map(ConvertTo::convert),
            // The last offset stands for those after it.
            None => core::array::from_fn(|i| at((first + i).min(offsets.len() - 1))),
        };
        let mut any_empty = false;
        for &end in &ends {
            cx.require_at_most(begin as usize, end as usize);
            any_empty |= begin == end;
            begin = end;
        }
        cx.require_at_most(begin as usize, len);
        if any_empty {
            // The first offset ends no segment.
            for index in first.max(1)..(first + AT_ONCE).min(offsets.len()) {
                if at(index - 1) == at(index) {
                    is_empty(index - 1);
                }
            }
        }
    }
}

/// Returns how many of the first `count` offsets are less than `first`. The input has `items` items. All lanes of the warp call it.
#[track_caller]
pub(crate) fn offsets_before<O>(cx: Block, offsets: Input<O>, count: usize, (first, items): (u64, u64)) -> usize
where
    O: Source<Item: Integer + ConvertTo<u64>>,
{
    let is_before = |at: usize| at < count && offsets.get(at).is_some_and(|offset| offset.convert() < first);
    // The guess is right if all segments have the same length, and otherwise it may be anywhere. It is at the end if `first` is after all
    // items.
    let guess = (first as f32 / items as f32 * count as f32) as usize;
    let window = guess.min(count).saturating_sub(WARP as usize / 2);
    let votes = cx.ballot(FULL_MASK, is_before(window + cx.lane() as usize));
    if (window == 0 || votes & 1 != 0) && votes >> (WARP - 1) == 0 {
        window + votes.count_ones() as usize
    } else {
        warp_bound(cx, count, is_before)
    }
}

// PTX: segment_tiles__Span_f32_Span_u32_Sum has 8 loads and 0 stores of 16 bytes, staged.

/// The first kernel of [`algorithms::segmented_reduce`](kernel_primitives::algorithms::segmented_reduce). A warp reduces the items of each
/// segment in its tile.
///
/// If a segment begins and ends in the tile, its result goes to `out`. For a tile `t`, `partials[2 * t]` is the share of the segment that
/// began before the tile, if there is one. If the last segment continues after the tile, `partials[2 * t + 1]` is its share and
/// `crossing[t]` is its number. Otherwise `crossing[t]` is [`u64::MAX`].
#[kernel(launch(pub(crate)), threads(SEGMENT_THREADS), one_dimensional, min_blocks(6))]
pub fn segment_tiles<S, O, R>(
    cx: Block,
    x: Input<S>,
    offsets: Input<O>,
    mut partials: GlobalMut<R::Accum>,
    mut crossing: GlobalMut<u64>,
    mut out: GlobalMut<R::Output>,
    op: R,
    mut shared: Shared<SegmentStorage<S>>,
) where
    S: Source<Item: Element>,
    O: Source<Item: Integer + ConvertTo<u64>>,
    R: Reduction<S::Item, Output: Element> + KernelParam,
{
    let len = x.len() as u64;
    let segments = offsets.len() - 1;
    let tile = cx.block_rank() * const { SEGMENT_THREADS / WARP as usize } + cx.warp() as usize;
    let items = const { segment_tile_items::<S>() } as u64;
    let first = tile as u64 * items;
    let last = (first + items).min(len);
    // The tile is in flight while the warp finds its segments.
    shared.enter();
    let place = cx.warp() as usize * const { segment_tile_items::<S>() };
    let staged = Staged { items: shared.array(0, const { SegmentStorage::<S>::ITEMS }), place, first: first as usize };
    // SAFETY: the warp's part of shared memory, which it reads after it has waited.
    unsafe { by_vector!(S, stage::<S; VECTOR>(cx, x, &staged)) };
    // This checks all offsets, including those that a search for others does not read. There may be far more empty segments than items, so
    // all threads write their results.
    check_and_list(cx, offsets, x.len(), |segment| {
        // SAFETY: one thread has the segment, and none writes it below.
        unsafe { out.write(segment, op.post(op.identity(), 0)) };
    });
    if first >= len {
        return;
    }

    // The first segment is the one that continues into the tile, if there is one.
    let before = offsets_before(cx, offsets, segments, (first, len));
    let range_of = |segment: usize| if segment < segments { bounds(offsets, segment) } else { (NONE, NONE) };
    let mut segment = before.saturating_sub(1) + cx.lane() as usize;
    let mut range = range_of(segment);
    x.wait_for_copies();
    cx.sync_warp(FULL_MASK);
    let mut goes_on = NONE;
    loop {
        let (begin, end) = range;
        let own = segment < segments && begin < last;
        // The next segment begins where this one ends. Its place is in flight while the warp reduces this one.
        let has_more = cx.all(FULL_MASK, own && end < last);
        if has_more {
            if cx.all(FULL_MASK, begin == end) {
                // There may be any number of further empty segments.
                let next = segment - cx.lane() as usize + WARP as usize;
                let rest = segments.saturating_sub(next);
                segment += WARP as usize + warp_bound(cx, rest, |at| bounds(offsets, next + at).1 <= end);
                range = range_of(segment);
                continue;
            }
            range = range_of(segment + WARP as usize);
        }
        let (from, to) = if own { (begin.max(first), end.min(last)) } else { (first, first) };
        let items = to.saturating_sub(from);

        let mut total = op.identity();
        if items <= SHORT {
            // Each lane starts at another place, so that lanes with similar segments never access the same bank.
            let items = items as u32;
            let (place, skipped) = (staged.place_of(from as usize), from.wrapping_sub(begin));
            let mut at = cx.lane() % items.max(1);
            for _ in 0..items {
                // SAFETY: of the tile.
                let item = unsafe { staged.items.load(place.wrapping_add(at as usize)) };
                total = op.combine(total, op.pre(item, skipped.wrapping_add(u64::from(at))));
                at = if at + 1 < items { at + 1 } else { 0 };
            }
        }
        let mut long = cx.ballot(FULL_MASK, items > SHORT);
        while long != 0 {
            let lane = long.trailing_zeros();
            let [from, to, begin] = [from, to, begin].map(|place| warp_broadcast(cx, place, lane));
            let range = from as usize..to as usize;
            // SAFETY: of the tile.
            let all = unsafe { by_vector!(S, total_of::<S, R; VECTOR>(cx, &staged, range, begin as usize, &op)) };
            if cx.lane() == lane {
                total = all;
            }
            long &= long - 1;
        }

        if own && begin < first {
            if items > 0 {
                // SAFETY: of the tile alone.
                unsafe { partials.write(2 * tile, total) };
            }
        } else if own && end > last {
            // SAFETY: as above; no other segment goes on after the tile.
            unsafe { partials.write(2 * tile + 1, total) };
            goes_on = segment as u64;
        } else if own && items > 0 {
            // SAFETY: a segment begins in one tile.
            unsafe { out.write(segment, op.post(total, end.wrapping_sub(begin))) };
        }
        if !has_more {
            break;
        }
        segment += WARP as usize;
    }
    let crosses = cx.ballot(FULL_MASK, goes_on != NONE);
    if if crosses == 0 { cx.lane() == 0 } else { goes_on != NONE } {
        // SAFETY: of the tile alone; one lane.
        unsafe { crossing.write(tile, goes_on) };
    }
}

/// The second kernel of [`algorithms::segmented_reduce`](kernel_primitives::algorithms::segmented_reduce). It adds up the shares of
/// segments that are in several tiles, of `1 << bits` items each. Each thread has one tile.
#[kernel(launch(pub(crate)), threads(SEGMENT_ENDS_THREADS), one_dimensional, min_blocks(1))]
pub fn segment_ends<T, O, R>(
    cx: Block,
    offsets: Input<O>,
    partials: Global<R::Accum>,
    crossing: Global<u64>,
    mut out: GlobalMut<R::Output>,
    op: R,
    bits: u32,
    mut firsts: Shared<ReduceStorage<u64, SEGMENT_ENDS_THREADS>>,
    mut totals: Shared<ReduceStorage<R::Accum>>,
) where
    T: Element,
    O: Source<Item: Integer + ConvertTo<u64>>,
    R: Reduction<T, Output: Element> + KernelParam,
{
    // This returns the segment that crosses the end of a tile, its last tile, and the number of its items.
    let segment_of = |tile: usize| match crossing.get(tile) {
        Some(segment) if segment != NONE => {
            let (begin, end) = bounds(offsets, segment as usize);
            // Offsets may have been written after they were checked.
            let last = (end.saturating_sub(1) >> bits).min(crossing.len() as u64 - 1);
            (segment as usize, tile.max(last as usize), end.saturating_sub(begin))
        }
        _ => (0, tile, 0),
    };
    // This combines the shares of one thread, which is the `rank`th of `threads` threads.
    let share = |tile: usize, last: usize, rank: usize, threads: usize| {
        let own = if rank == 0 { partials.get(2 * tile + 1) } else { None };
        let mut total = own.unwrap_or(op.identity());
        let mut at = tile + 1 + rank;
        while at <= last {
            let mut parts = [op.identity(); 8];
            for (k, part) in parts.iter_mut().enumerate() {
                let at = at + k * threads;
                if at <= last {
                    *part = partials.get(2 * at).unwrap_or(op.identity());
                }
            }
            for &part in &parts {
                total = op.combine(total, part);
            }
            at += 8 * threads;
        }
        total
    };

    let tile = cx.block_rank() * SEGMENT_ENDS_THREADS + cx.thread_rank() as usize;
    let (segment, last, items) = segment_of(tile);
    let tiles = last - tile;
    let mut total = op.identity();
    if tiles > 0 && tiles <= BY_THREAD {
        total = share(tile, last, 0, 1);
    }
    let mut long = cx.ballot(FULL_MASK, tiles > BY_THREAD && tiles <= BY_WARP);
    while long != 0 {
        let lane = long.trailing_zeros();
        let [tile, last] = [tile as u64, last as u64].map(|tile| warp_broadcast(cx, tile, lane) as usize);
        let share = share(tile, last, cx.lane() as usize, WARP as usize);
        let all = warp_reduce(cx, share, op.reducer());
        if cx.lane() == lane {
            total = all;
        }
        long &= long - 1;
    }
    let mut first = if tiles > BY_WARP { tile as u64 } else { NONE };
    loop {
        let tile = block_reduce(cx, &mut firsts, first, Min);
        if tile == NONE {
            break;
        }
        let (_, last, _) = segment_of(tile as usize);
        let share = share(tile as usize, last, cx.thread_rank() as usize, SEGMENT_ENDS_THREADS);
        let all = block_reduce(cx, &mut totals, share, op.reducer());
        if first == tile {
            (total, first) = (all, NONE);
        }
    }
    if tiles > 0 {
        // SAFETY: a segment crosses the end of its first tile once.
        unsafe { out.write(segment, op.post(total, items)) };
    }
}

/// Returns the beginning and the end of a segment.
#[inline(always)]
fn bounds<O: Source<Item: ConvertTo<u64>>>(offsets: Input<O>, segment: usize) -> (u64, u64) {
    let at = |index: usize| offsets.get(index).map_or(0, ConvertTo::convert);
    (at(segment), at(segment + 1))
}

/// A tile of a warp in shared memory.
struct Staged<'k, T> {
    items: SharedArray<'k, T>,
    /// The beginning of the tile in shared memory.
    place: usize,
    /// The first item of the tile in the input.
    first: usize,
}

impl<T> Staged<'_, T> {
    /// Returns the place of an item of the tile.
    #[inline(always)]
    fn place_of(&self, index: usize) -> usize {
        self.place + (index - self.first)
    }
}

/// Begins to copy a warp's tile to shared memory, with zeros where the input has no items.
///
/// # Safety
/// Nobody else accesses its place until the warp has waited for its copies.
unsafe fn stage<S: Source<Item: Element>, const N: usize>(cx: Block, x: Input<S>, staged: &Staged<S::Item>) {
    let beside = |v: usize| v * (WARP as usize * N) + cx.lane() as usize * N;
    let items = const { segment_tile_items::<S>() };
    // SAFETY: the caller's contract; what is read is inside.
    unsafe {
        if staged.first < x.len() && x.len() - staged.first >= items && x.is_aligned::<N>(staged.first) {
            for v in 0..const { vectors::<S>() } {
                x.copy_vector_inside::<N>(staged.first + beside(v), staged.items, staged.place + beside(v));
            }
        } else {
            for v in 0..const { vectors::<S>() } {
                let (from, at) = (staged.first + beside(v), staged.place + beside(v));
                if !x.copy::<N>(from, staged.items, at) {
                    for i in 0..N {
                        staged.items.store(at + i, x.get(from + i).unwrap_or(S::Item::ZERO));
                    }
                }
            }
        }
    }
}

/// Reduces a range of a tile, with the whole warp. `begin` is the place of the item with index 0.
///
/// # Safety
/// The tile was staged, and nobody writes it meanwhile.
unsafe fn total_of<S: Source<Item: Element>, R: Reduction<S::Item>, const N: usize>(
    cx: Block,
    staged: &Staged<S::Item>,
    range: core::ops::Range<usize>,
    begin: usize,
    op: &R,
) -> R::Accum {
    let mut totals = [op.identity(); N];
    let stride = WARP as usize * N;
    // The range starts at the beginning of a vector.
    let mut start = range.start & !(N - 1);
    while start < range.end {
        let at = start + cx.lane() as usize * N;
        if at < range.end {
            // SAFETY: the caller's contract; vectors are whole in the tile.
            let items = unsafe { staged.items.load_items::<N>(staged.place_of(at)) };
            if at >= range.start && at + N <= range.end {
                for (i, &item) in items.iter().enumerate() {
                    totals[i] = op.combine(totals[i], op.pre(item, (at + i - begin) as u64));
                }
            } else {
                for (i, &item) in items.iter().enumerate() {
                    if at + i >= range.start && at + i < range.end {
                        totals[i] = op.combine(totals[i], op.pre(item, (at + i - begin) as u64));
                    }
                }
            }
        }
        start += stride;
    }
    warp_reduce(cx, thread_reduce(op.identity(), &totals, op.reducer()), op.reducer())
}
