//! What the kernels of runs of equal keys share once each lane knows which of its items begin one.

use kernel_primitives::element::Segmented;
use kernel_primitives::functor::BySegment;
use kernel_primitives::grid::Chain;
use kernel_primitives::input::Source;
use kernel_primitives::prelude::*;
use kernel_primitives::simt::WARP;

use crate::algorithms::tile::staged::STAGE_THREADS;
use crate::algorithms::tile::staged::STAGE_WARPS;
use crate::algorithms::tile::warps::{WarpStorage, announce, differing, prefix, put_by_warp};

/// Bytes of a block's shared memory for a tile and its bits, of which a multiprocessor has four. The time of a tile is
/// its wait for the tiles before, so that all of them are to be large.
pub(crate) const RUN_BYTES: usize = 54_912;

/// Runs that a lane writes together: their keys are on their way while the block waits for the tiles before.
const TOGETHER: usize = 9;

/// Those of a warp, and how they are listed.
const LISTED: usize = WARP as usize * TOGETHER;

/// Places of a block for the runs that its warps write together.
pub(crate) const LIST: usize = STAGE_WARPS * LISTED;

/// How an input is cut into tiles.
#[derive(Clone, Copy, Debug)]
pub struct RunTiles {
    /// Items of a tile.
    pub tile: usize,
    /// Vectors of a thread.
    pub vectors: u32,
}

impl RunTiles {
    /// The tiles of `len` items, of rounds of so many: with `large` vectors a thread if there are `tiles` of them, else with `small` ones.
    pub(crate) fn large_or_small(len: usize, round: usize, (large, small): (usize, usize), tiles: usize) -> Self {
        let vectors = if len / (round * large) < tiles { small } else { large };
        Self { tile: round * vectors, vectors: vectors as u32 }
    }

    /// The tiles of `len` items, of `most` vectors of `vector` items a thread at most, an odd number: one if that is
    /// enough, else `tiles` unless they are too small, or as many more as it takes.
    pub(crate) fn new(len: usize, (vector, most): (usize, usize), tiles: usize) -> Self {
        let round = STAGE_THREADS * vector;
        let needed = if len <= round * most { len.div_ceil(round) } else { len.div_ceil(round * tiles.max(1)).max(3) };
        let vectors = (needed | 1).min(most);
        Self { tile: round * vectors, vectors: vectors as u32 }
    }
}

/// Calls a function with what is known of a number in the most frequent case as a constant, so that its loops are unrolled there.
macro_rules! with_most {
    ($n:ident, $most:expr, $body:expr) => {
        if $n == const { $most } {
            let $n = const { $most };
            $body
        } else {
            $body
        }
    };
}
pub(crate) use with_most;

/// Which items of a warp's part begin a run, by the vectors that its lanes have side by side.
pub(crate) struct Marks<'k, T> {
    pub(crate) cx: Block<'k>,
    pub(crate) heads: SharedArray<'k, u8>,
    /// The place of this lane's first vector.
    pub(crate) first: usize,
    /// The last lane's item of the round before; to begin with, the one before the part.
    pub(crate) earlier: T,
}

impl<T: Element + PartialEq> Marks<'_, T> {
    /// Writes the bits of a round's vector, of which the input has so many items; all lanes do, round by round. The
    /// input's first item begins a run.
    pub(crate) fn put<const N: usize>(&mut self, round: usize, items: &[T; N], is_first: bool, has: usize) {
        let mut bits = differing(self.cx, &mut self.earlier, items) | is_first as u32;
        if has < N {
            bits &= !(!0 << has);
        }
        // SAFETY: the lane's own vector, which is read after the warp has waited.
        unsafe { self.heads.store(self.first + round * WARP as usize, bits as u8) };
    }
}

/// Marks which items of a warp's part, from `first`, begin a run, by so many vectors of `N` keys a lane. `AHEAD` of them are on their
/// way at a time, if they lie in memory. Behind the input's end nothing begins.
pub(crate) fn mark<K, const N: usize, const AHEAD: usize>(
    keys: Input<K>,
    first: usize,
    vectors: usize,
    marks: &mut Marks<K::Item>,
) where
    K: Source<Item: Element + PartialEq>,
{
    let lane = marks.cx.lane() as usize;
    let at = |v: usize| first + (v * WARP as usize + lane) * N;
    let is_whole = keys.len().saturating_sub(first) >= vectors * WARP as usize * N && keys.is_aligned::<N>(first);
    // SAFETY: inside, if all of the part is.
    let vector = |v: usize| -> [K::Item; N] { unsafe { keys.vector_inside(at(v)) } };
    let vector_or_less = |v: usize| -> [K::Item; N] {
        let each = || core::array::from_fn(|i| keys.get(at(v) + i).unwrap_or(K::Item::ZERO));
        keys.items(at(v)).unwrap_or_else(each)
    };
    let mut put = |v: usize, items: &[K::Item; N]| {
        marks.put(v, items, at(v) == 0, if is_whole { N } else { keys.len().saturating_sub(at(v)) });
    };
    if !K::IN_MEMORY {
        for v in 0..vectors {
            put(v, &if is_whole { vector(v) } else { vector_or_less(v) });
        }
        return;
    }
    for batch in 0..vectors.div_ceil(AHEAD) {
        let begin = batch * AHEAD;
        let mut ahead = [[K::Item::ZERO; N]; AHEAD];
        if is_whole {
            for (k, items) in ahead.iter_mut().enumerate() {
                if begin + k < vectors {
                    *items = vector(begin + k);
                }
            }
        } else {
            for (k, items) in ahead.iter_mut().enumerate() {
                if begin + k < vectors {
                    *items = vector_or_less(begin + k);
                }
            }
        }
        for (k, items) in ahead.iter().enumerate() {
            if begin + k < vectors {
                put(begin + k, items);
            }
        }
    }
}

/// What a lane knows of its items: how many begin a run, and which one is the first and which one the last of them, if there are any.
#[derive(Clone, Copy, Default)]
pub(crate) struct Heads {
    pub(crate) count: u32,
    pub(crate) first: usize,
    pub(crate) last: usize,
}

impl Heads {
    /// Adds those of some items from `at`, by their bits.
    pub(crate) fn add(&mut self, at: usize, bits: u32) {
        if bits != 0 {
            if self.count == 0 {
                self.first = at + bits.trailing_zeros() as usize;
            }
            self.last = at + bits.ilog2() as usize;
            self.count += bits.count_ones();
        }
    }
}

/// A tile whose lanes know of their items which ones begin a run.
pub(crate) struct RunTile<'a, 'k, T: Element, R> {
    pub(crate) cx: Block<'k>,
    pub(crate) chain: &'a Chain<'a, 'k, Segmented<T>>,
    pub(crate) tile: usize,
    pub(crate) op: R,
    /// What the lanes before in the warp amount to, and what the warp does.
    pub(crate) before: Segmented<T>,
    pub(crate) own: Segmented<T>,
    /// A place for each of [`LIST`].
    pub(crate) list: SharedArray<'k, u16>,
}

impl<T: Element, R: Reducer<T> + Copy> RunTile<'_, '_, T, R> {
    /// Writes the tile's runs: their keys, and by `write` what the run before each amounts to. `heads` are places of
    /// the lane's items in its warp's part, with bits for those from there on that begin a run; `key` is the key at a
    /// place; and `sum` what the part has of the run before one, given where the two begin, 0 for one that begins
    /// before the part.
    pub(crate) fn write<K: Element, H: Iterator<Item = (usize, u32)>>(
        self,
        (word, carry): (&mut Shared<[u64; 1]>, &mut Shared<[T; 1]>),
        (counts, totals): (&mut Shared<WarpStorage<u32, STAGE_WARPS>>, &mut Shared<WarpStorage<T, STAGE_WARPS>>),
        heads: impl Fn() -> H,
        key: impl Fn(usize) -> K,
        sum: impl Fn(usize, usize) -> T,
        (out_keys, mut write, count): (&mut GlobalMut<K>, impl FnMut(usize, T), &GlobalMut<u64, Atomic>),
    ) {
        let Self { cx, chain, tile, op, own, .. } = self;
        let (before_warp, total) = by_warp(cx, counts, totals, own, &op);
        announce(cx, chain, tile, total);
        let runs = own.heads as u32;
        let (mut from, mut earlier) = (0, 0);
        let mut before = before_warp;
        loop {
            self.list(from, heads());
            // SAFETY: the warp's own list, which it has waited for, and waits again before it writes.
            let at = |number: u32| unsafe { self.list.load(self.listed(number)) } as usize;
            let listed = (runs - from).min(LISTED as u32);
            let mut keys = [K::ZERO; TOGETHER];
            for (k, found) in keys.iter_mut().enumerate() {
                let number = k as u32 * WARP + cx.lane();
                if number < listed {
                    *found = key(at(number));
                }
            }
            if from == 0 {
                if cx.warp() == 0 {
                    let before = prefix(chain, tile, total, &BySegment(op));
                    if cx.lane() == 0 {
                        word.set(0, before.heads);
                        carry.set(0, before.total);
                    }
                }
                cx.barrier();
                // SAFETY: the first thread wrote it before the barrier.
                let before_tile = Segmented { heads: word.get(0), total: unsafe { carry.get_written(0) } };
                before = BySegment(op).apply(before_tile, before_warp);
                if tile + 1 == cx.grid_blocks() && cx.thread_rank() == 0 {
                    let all = BySegment(op).apply(before_tile, total);
                    // The input's first item begins a run, so that there is one.
                    write((all.heads as usize).saturating_sub(1), all.total);
                    count.at(0).store(all.heads);
                }
            }
            for (k, &key) in keys.iter().enumerate() {
                let number = k as u32 * WARP + cx.lane();
                if number < listed {
                    let to = before.heads as usize + (from + number) as usize;
                    // SAFETY: of all threads of the grid only this one has the place.
                    unsafe { out_keys.write(to, key) };
                    if to > 0 {
                        let sum = sum(at(number), if number > 0 { at(number - 1) } else { earlier });
                        write(to - 1, if from + number == 0 { op.apply(before.total, sum) } else { sum });
                    }
                }
            }
            from += listed;
            if from == runs {
                return;
            }
            earlier = at(listed - 1);
            cx.sync_warp(FULL_MASK);
        }
    }

    /// Lists the warp's runs from number `from` on, as many as there is room for.
    fn list(&self, from: u32, heads: impl Iterator<Item = (usize, u32)>) {
        let mut number = (self.before.heads as u32).wrapping_sub(from);
        for (at, mut bits) in heads {
            while bits != 0 {
                if number < LISTED as u32 {
                    // SAFETY: each run has a place of its own in the warp's list, and nobody reads it.
                    unsafe { self.list.store(self.listed(number), (at + bits.trailing_zeros() as usize) as u16) };
                }
                number = number.wrapping_add(1);
                bits &= bits - 1;
            }
        }
        self.cx.sync_warp(FULL_MASK);
    }

    #[inline(always)]
    fn listed(&self, number: u32) -> usize {
        self.cx.warp() as usize * LISTED + number as usize
    }
}

/// What the warps before amount to, and all of the tile. One barrier.
#[track_caller]
fn by_warp<T: Element, R: Reducer<T> + Copy>(
    cx: Block,
    counts: &mut Shared<WarpStorage<u32, STAGE_WARPS>>,
    totals: &mut Shared<WarpStorage<T, STAGE_WARPS>>,
    own: Segmented<T>,
    op: &R,
) -> (Segmented<T>, Segmented<T>) {
    let (counts, totals) = (put_by_warp(cx, counts, own.heads as u32), put_by_warp(cx, totals, own.total));
    cx.barrier();
    // SAFETY: all warps wrote them before the barrier.
    let (counts, totals) = unsafe { (counts.load_items::<STAGE_WARPS>(0), totals.load_items::<STAGE_WARPS>(0)) };
    let op = BySegment(*op);
    let (mut before, mut all) = (op.identity(), op.identity());
    for (warp, (&count, &total)) in counts.iter().zip(&totals).enumerate() {
        if warp == cx.warp() as usize {
            before = all;
        }
        let of_warp = Segmented { heads: count as u64, total };
        all = if warp == 0 { of_warp } else { op.apply(all, of_warp) };
    }
    (before, all)
}

/// Begins to copy so many items from `first` to a place in shared memory, by vectors of `N` that the lanes of the warp have side by
/// side, with `other` where the input has none.
///
/// # Safety
/// The array has the places, in vectors of its own, and nobody else accesses them until the warp has waited.
pub(crate) unsafe fn stage<S: Source<Item: Element>, const N: usize>(
    cx: Block,
    x: Input<S>,
    (first, len): (usize, usize),
    (to, place): (SharedArray<'_, S::Item>, usize),
    other: S::Item,
) {
    let is_whole = x.len().saturating_sub(first) >= len && x.is_aligned::<N>(first);
    let vectors = (0..len.div_ceil(WARP as usize * N)).map(|v| (v * WARP as usize + cx.lane() as usize) * N);
    let vectors = vectors.filter(|&at| at < len);
    // SAFETY: the caller's contract; each lane writes its own vectors, and reads what is known to be inside.
    unsafe {
        if is_whole {
            for at in vectors {
                x.copy_vector_inside::<N>(first + at, to, place + at);
            }
        } else {
            for at in vectors {
                if !x.copy::<N>(first + at, to, place + at) {
                    for i in 0..N {
                        to.store(place + at + i, x.get(first + at + i).unwrap_or(other));
                    }
                }
            }
        }
    }
}
