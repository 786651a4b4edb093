//! What the kernels share that compact or segment tiles: a thread's items, bits about them, and the places of those with a
//! bit.

use core::marker::PhantomData;

use kernel_primitives::grid::Chain;
use kernel_primitives::input::Source;
use kernel_primitives::prelude::*;
use kernel_primitives::simt::WARP;
use kernel_primitives::view::SharedStorage;

/// Threads of a block of the kernels that select, reduce and scan by key.
pub const TILE_THREADS: usize = 256;

/// Their warps.
pub(super) const WARPS: usize = TILE_THREADS / WARP as usize;

/// Bytes of a thread's items: with two to four blocks a multiprocessor enough are on their way.
const BYTES: usize = 128;

/// Rounds of vectors of a thread, of so many items of so many bytes: as many as have [`BYTES`], and no more items than a word has bits.
pub(super) const fn rounds(vector: usize, item: usize) -> usize {
    let by_bytes = if item == 0 { 1 } else { BYTES / (vector * item) };
    let by_bits = 32 / vector;
    let rounds = if by_bytes < by_bits { by_bytes } else { by_bits };
    if rounds >= 8 {
        8
    } else if rounds >= 4 {
        4
    } else if rounds >= 2 {
        2
    } else {
        1
    }
}

/// Items of a tile of a source.
pub const fn tile_items<S: Source>() -> usize {
    TILE_THREADS * rounds(S::VECTOR, size_of::<S::Item>()) * S::VECTOR
}

/// Shared memory for as many `T` as a tile of `S` has items.
pub struct TileStorage<S, T>(PhantomData<(S, T)>);

// SAFETY: uninitialised elements.
unsafe impl<S: Source, T: Element> SharedStorage for TileStorage<S, T> {
    const BYTES: usize = tile_items::<S>() * size_of::<T>();
    const ALIGN: usize = 16;
}

/// Shared memory for a `T` of each warp, which are read together.
pub struct WarpStorage<T, const WARPS: usize = { TILE_THREADS / WARP as usize }>(PhantomData<T>);

// SAFETY: uninitialised elements.
unsafe impl<T: Element, const WARPS: usize> SharedStorage for WarpStorage<T, WARPS> {
    const BYTES: usize = WARPS * size_of::<T>();
    const ALIGN: usize = 16;
}

/// Puts each warp's `value`, that of its first lane, into an array that all threads may read after a barrier.
#[inline(always)]
#[track_caller]
pub(super) fn put_by_warp<'k, T: Element, const WARPS: usize>(
    cx: Block,
    shared: &mut Shared<'k, WarpStorage<T, WARPS>>,
    value: T,
) -> SharedArray<'k, T> {
    shared.enter();
    let values = shared.array::<T>(0, WARPS);
    if cx.lane() == 0 {
        // SAFETY: the warp's own element.
        unsafe { values.store(cx.warp() as usize, value) };
    }
    values
}

/// What the warps before count, and all of them. One barrier.
#[inline(always)]
#[track_caller]
pub(super) fn add_by_warp<const WARPS: usize>(
    cx: Block,
    shared: &mut Shared<WarpStorage<u32, WARPS>>,
    count: u32,
) -> (u32, u32) {
    let counts = put_by_warp(cx, shared, count);
    cx.barrier();
    // SAFETY: all warps wrote theirs before the barrier.
    let counts = unsafe { counts.load_items::<WARPS>(0) };
    let (mut before, mut total) = (0, 0);
    for (warp, count) in counts.iter().enumerate() {
        if warp < cx.warp() as usize {
            before += count;
        }
        total += count;
    }
    (before, total)
}

/// Calls a function with the number of items in a vector of the source, and the rounds of vectors whose items have so many bytes,
/// as its first constants.
macro_rules! by_rounds {
    ($source:ty, $item:expr, $f:ident::<$($t:ty),*; VECTOR, ROUNDS $(, $constant:tt)*>($($arg:expr),* $(,)?)) => {
        match const {
            let vector = <$source as kernel_primitives::input::Source>::VECTOR;
            (vector, super::tile::rounds(vector, $item))
        } {
            (16, 2) => $f::<$($t,)* 16, 2 $(, $constant)*>($($arg),*),
            (16, _) => $f::<$($t,)* 16, 1 $(, $constant)*>($($arg),*),
            (8, 4) => $f::<$($t,)* 8, 4 $(, $constant)*>($($arg),*),
            (8, 2) => $f::<$($t,)* 8, 2 $(, $constant)*>($($arg),*),
            (8, _) => $f::<$($t,)* 8, 1 $(, $constant)*>($($arg),*),
            (4, 8) => $f::<$($t,)* 4, 8 $(, $constant)*>($($arg),*),
            (4, 4) => $f::<$($t,)* 4, 4 $(, $constant)*>($($arg),*),
            (4, 2) => $f::<$($t,)* 4, 2 $(, $constant)*>($($arg),*),
            (4, _) => $f::<$($t,)* 4, 1 $(, $constant)*>($($arg),*),
            (2, 8) => $f::<$($t,)* 2, 8 $(, $constant)*>($($arg),*),
            (2, 4) => $f::<$($t,)* 2, 4 $(, $constant)*>($($arg),*),
            (2, 2) => $f::<$($t,)* 2, 2 $(, $constant)*>($($arg),*),
            (2, _) => $f::<$($t,)* 2, 1 $(, $constant)*>($($arg),*),
            (_, 8) => $f::<$($t,)* 1, 8 $(, $constant)*>($($arg),*),
            (_, 4) => $f::<$($t,)* 1, 4 $(, $constant)*>($($arg),*),
            (_, 2) => $f::<$($t,)* 1, 2 $(, $constant)*>($($arg),*),
            (_, _) => $f::<$($t,)* 1, 1 $(, $constant)*>($($arg),*),
        }
    };
}
pub(super) use by_rounds;

/// Where a thread's items of a tile lie: `ROUNDS` vectors of `N`. The lanes of a warp have those of a round side by side, and
/// the warps their parts of the tile.
#[derive(Clone, Copy)]
pub(super) struct Share<const N: usize, const ROUNDS: usize> {
    /// The tile's first item.
    pub(super) tile: usize,
    /// The warp's first item.
    pub(super) warp: usize,
    /// The thread's first item.
    first: usize,
    /// Items of the input.
    len: usize,
}

impl<const N: usize, const ROUNDS: usize> Share<N, ROUNDS> {
    const STRIDE: usize = WARP as usize * N;
    const TILE: usize = TILE_THREADS * N * ROUNDS;

    /// This thread's share of a tile of an input of `len` items.
    #[inline(always)]
    pub(super) fn of(cx: Block, tile: usize, len: usize) -> Self {
        const { assert!(N * ROUNDS <= 32, "a word has a bit for each of a thread's items") };
        let tile = tile * Self::TILE;
        let warp = tile + cx.warp() as usize * (Self::STRIDE * ROUNDS);
        Self { tile, warp, first: warp + cx.lane() as usize * N, len }
    }

    /// The first item of a round.
    #[inline(always)]
    pub(super) fn at(&self, round: usize) -> usize {
        self.first + round * Self::STRIDE
    }

    /// Whether the input ends with this tile.
    #[inline(always)]
    pub(super) fn is_last(&self) -> bool {
        self.len - self.tile <= Self::TILE
    }

    /// Whether the tile has all its items.
    #[inline(always)]
    pub(super) fn is_whole(&self) -> bool {
        self.tile + Self::TILE <= self.len
    }

    /// The items; `other` where it has no more.
    #[inline(always)]
    pub(super) fn read_or<S: Source>(&self, x: Input<S>, other: S::Item) -> [[S::Item; N]; ROUNDS] {
        let mut items = [[other; N]; ROUNDS];
        if self.tile + Self::TILE <= x.len() {
            for (round, items) in items.iter_mut().enumerate() {
                // SAFETY: the whole tile is inside.
                *items = unsafe { x.items_inside(self.at(round)) };
            }
        } else {
            // One branch an item, lest the compiler take these loads and those of a whole tile whose address is odd together.
            for (round, items) in items.iter_mut().enumerate() {
                for (i, item) in items.iter_mut().enumerate() {
                    if let Some(value) = x.get(self.at(round) + i) {
                        *item = value;
                    }
                }
            }
        }
        items
    }

    /// Those of the bits whose items the input has.
    #[inline(always)]
    fn inside(&self, mut bits: u32) -> u32 {
        if !self.is_whole() {
            for round in 0..ROUNDS {
                for i in 0..N {
                    if self.at(round) + i >= self.len {
                        bits &= !(1 << (round * N + i));
                    }
                }
            }
        }
        bits
    }

    /// A bit for each item that is not equal to the one before it; the input's first one is not.
    #[inline(always)]
    pub(super) fn heads<S: Source<Item: Element + PartialEq>>(
        &self,
        cx: Block,
        x: Input<S>,
        items: &[[S::Item; N]; ROUNDS],
    ) -> u32 {
        let lane = cx.lane();
        // All lanes read the one item of the warp before.
        let before_warp = if self.warp == 0 { None } else { x.get(self.warp - 1) };
        let mut heads = 0;
        let mut earlier = items[0][N - 1];
        for (round, items) in items.iter().enumerate() {
            // Each lane's last item goes to the lane above, and the last lane's of the round before to the first lane.
            let given = if lane == WARP - 1 { earlier } else { items[N - 1] };
            earlier = items[N - 1];
            let below = cx.shuffle(FULL_MASK, given, (lane + WARP - 1) % WARP, WARP);
            let mut last = match before_warp {
                Some(item) if round == 0 && lane == 0 => item,
                _ => below,
            };
            for (i, &item) in items.iter().enumerate() {
                heads |= ((last != item) as u32) << (round * N + i);
                last = item;
            }
        }
        self.inside(if self.first == 0 { heads | 1 } else { heads })
    }

    /// Where the items with a bit go that each round of this thread begins with, counted in the warp; and how many the warp has. By a scan
    /// over the warp of all rounds' counts at once, in fields of one word.
    #[inline(always)]
    pub(super) fn places_in_warp(&self, cx: Block, bits: u32) -> ([u32; ROUNDS], u32) {
        // A field holds what a round of a warp has at most: all fields of a thread's rounds go into 64 bits.
        let field = const { (WARP as usize * N).ilog2() + 1 };
        let of = |counts: u64, round: usize| (counts >> (round as u32 * field)) as u32 & const { field_mask(N) };
        let mut counts = 0u64;
        for round in 0..ROUNDS {
            let own = bits >> (round * N) & const { !0u32 >> (32 - N) };
            counts |= (own.count_ones() as u64) << (round as u32 * field);
        }
        let (upto, all) = if const { ROUNDS as u32 * ((WARP as usize * N).ilog2() + 1) <= 32 } {
            let upto = warp_inclusive_scan(cx, counts as u32, Add);
            (upto as u64, warp_broadcast(cx, upto, WARP - 1) as u64)
        } else {
            let upto = warp_inclusive_scan(cx, counts, Add);
            (upto, warp_broadcast(cx, upto, WARP - 1))
        };
        let before = upto - counts;
        let mut count = 0;
        let mut places = [0; ROUNDS];
        for (round, place) in places.iter_mut().enumerate() {
            *place = count + of(before, round);
            count += of(all, round);
        }
        (places, count)
    }
}

const fn field_mask(vector: usize) -> u32 {
    (WARP as usize * vector * 2 - 1) as u32
}

/// Writes the `count` elements of the array from `from` on to `out`, from `first` on: so many threads of the block call it, whole warps, each with its
/// rank among them. Each has `AHEAD` of them on their way, and a warp's accesses begin at multiples of 32. A fault unless there is room.
///
/// # Safety
/// As for [`SharedArray::load`] of each, and [`GlobalMut::write`], of which no other block writes one.
#[inline(always)]
#[track_caller]
pub(super) unsafe fn copy_out<T: Element, const AHEAD: usize>(
    (rank, threads): (u32, u32),
    kept: SharedArray<'_, T>,
    from: u32,
    count: u32,
    out: &mut GlobalMut<T>,
    first: usize,
) {
    // SAFETY: the caller's contract.
    let item = |at: u32| unsafe { kept.load((from + at) as usize) };
    if count == 0 {
        return;
    }
    if first + count as usize > out.len() {
        // SAFETY: the caller's contract; a fault if it is outside.
        return unsafe { out.write(first + count as usize - 1, item(count - 1)) };
    }
    let skip = first as u32 % WARP;
    if rank < WARP && rank >= skip && rank - skip < count {
        // SAFETY: inside, and the caller's contract.
        unsafe { out.write_unchecked(first + (rank - skip) as usize, item(rank - skip)) };
    }
    let mut at = WARP - skip + rank;
    while at + (AHEAD as u32 - 1) * threads < count {
        let mut values = [T::ZERO; AHEAD];
        for (k, value) in values.iter_mut().enumerate() {
            *value = item(at + k as u32 * threads);
        }
        for (k, &value) in values.iter().enumerate() {
            // SAFETY: as above.
            unsafe { out.write_unchecked(first + (at + k as u32 * threads) as usize, value) };
        }
        at += AHEAD as u32 * threads;
    }
    while at < count {
        // SAFETY: as above.
        unsafe { out.write_unchecked(first + at as usize, item(at)) };
        at += threads;
    }
}

/// Tells the tiles behind what this one amounts to; the block's first warp does. Without a chain there is one tile.
#[inline(always)]
#[track_caller]
pub(super) fn announce<T: Element>(cx: Block, chain: &Chain<'_, '_, T>, tile: usize, total: T) {
    if cx.warp() == 0 && !chain.is_empty() {
        chain.announce(tile, total);
    }
}

/// What the items of all tiles before amount to, once this one is [announced](announce); in the block's first warp, all of whose
/// lanes call it.
#[inline(always)]
#[track_caller]
pub(super) fn prefix<T: Element, R: Reducer<T>>(chain: &Chain<'_, '_, T>, tile: usize, total: T, op: &R) -> T {
    if chain.is_empty() { op.identity() } else { chain.prefix_announced(tile, total, op) }
}
