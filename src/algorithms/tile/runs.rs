//! The parts that kernels of runs of equal keys share, after each lane knows which of its items begin a run.

use kernel_primitives::element::Segmented;
use kernel_primitives::functor::BySegment;
use kernel_primitives::grid::Chain;
use kernel_primitives::input::Source;
use kernel_primitives::prelude::*;
use kernel_primitives::simt::WARP;

use crate::algorithms::tile::staged::STAGE_THREADS;
use crate::algorithms::tile::staged::STAGE_WARPS;
use crate::algorithms::tile::warps::{WarpStorage, announce, any_item, differing, prefix, put_by_warp};

/// The places of a block for the runs that its warps write together, if a lane writes `together` of them.
pub(crate) const fn run_places(together: usize) -> usize {
    STAGE_WARPS * WARP as usize * together
}

/// The way in which an input is divided into tiles.
#[derive(Clone, Copy, Debug)]
pub struct RunTiles {
    /// The number of items of a tile.
    pub tile: usize,
    /// The number of vectors of a thread.
    pub vectors: u32,
}

impl RunTiles {
    /// Returns the tiles of `len` items, in rounds of `round` items. A thread has `large` vectors if this gives at least `tiles` tiles, and
    /// otherwise `small` vectors.
    pub(crate) fn large_or_small(len: usize, round: usize, (large, small): (usize, usize), tiles: usize) -> Self {
        let vectors = if len / (round * large) < tiles { small } else { large };
        Self { tile: round * vectors, vectors: vectors as u32 }
    }

    /// Returns the tiles of `len` items, in rounds of `round` items. A thread has one of the numbers of vectors in `sizes`: that with which
    /// the tiles take the least time, if `tiles` of them run at a time.
    pub(crate) fn fastest(len: usize, round: usize, sizes: [usize; 3], tiles: usize) -> Self {
        /// A tile takes about as long as so many vectors for what does not depend on its size.
        const MORE: usize = 4;
        let time = |vectors: usize| len.div_ceil(round * vectors).div_ceil(tiles.max(1)).saturating_mul(vectors + MORE);
        let vectors = sizes.into_iter().min_by_key(|&vectors| time(vectors)).expect("there are three sizes");
        Self { tile: round * vectors, vectors: vectors as u32 }
    }

    /// Returns the tiles of `len` items. A thread has an odd number of vectors of `vector` items, at most `most`. There is one tile if that
    /// is enough. Otherwise there are `tiles` tiles, or fewer if these would be too small, or as many more as necessary.
    pub(crate) fn new(len: usize, (vector, most): (usize, usize), tiles: usize) -> Self {
        let round = STAGE_THREADS * vector;
        let needed = if len <= round * most { len.div_ceil(round) } else { len.div_ceil(round * tiles.max(1)).max(3) };
        let vectors = (needed | 1).min(most);
        Self { tile: round * vectors, vectors: vectors as u32 }
    }
}

/// Evaluates an expression with a number. In the most frequent case, the number is a constant, so that loops are unrolled there.
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

/// Marks for the items of a warp's part that begin a run, in the order in which the lanes' vectors are contiguous.
pub(crate) struct Marks<'k, T> {
    pub(crate) cx: Block<'k>,
    pub(crate) heads: SharedArray<'k, u8>,
    /// The place of this lane's first vector.
    pub(crate) first: usize,
    /// The last lane's item of the round before. In the first round, it is the item before the part.
    pub(crate) earlier: T,
}

impl<T: Element + PartialEq> Marks<'_, T> {
    /// Writes the bits of a round's vector. The input has the first `has` items of it. All lanes call it, round by round. With `is_first`,
    /// the first item begins a run, because it is the input's first item.
    pub(crate) fn put<const N: usize>(&mut self, round: usize, items: &[T; N], is_first: bool, has: usize) {
        let mut bits = differing(self.cx, &mut self.earlier, items) | is_first as u32;
        if has < N {
            bits &= !(!0 << has);
        }
        // SAFETY: the lane's own vector, which is read after the warp has waited.
        unsafe { self.heads.store(self.first + round * WARP as usize, bits as u8) };
    }
}

/// Marks the items of a warp's part, from `first`, that begin a run. Each lane has `vectors` vectors of `N` keys. `AHEAD` of them are in
/// flight at a time, if they are in memory. After the end of the input, no run begins.
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
        let each = || {
            let other = any_item(keys);
            core::array::from_fn(|i| keys.get(at(v) + i).unwrap_or(other))
        };
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

/// The number of a lane's items that begin a run, and the first and the last of them, if there are any.
#[derive(Clone, Copy, Default)]
pub(crate) struct Heads {
    pub(crate) count: u32,
    pub(crate) first: usize,
    pub(crate) last: usize,
}

impl Heads {
    /// Adds the items from `at` that begin a run, by their bits.
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

/// A tile, after each lane knows which of its items begin a run. A lane writes `TOGETHER` runs at a time, whose keys are in flight while the
/// block waits for the tiles before.
pub(crate) struct RunTile<'a, 'k, T: Element, R, const TOGETHER: usize> {
    pub(crate) cx: Block<'k>,
    pub(crate) chain: &'a Chain<'a, 'k, Segmented<T>>,
    pub(crate) tile: usize,
    pub(crate) op: R,
    /// The result of the lanes before in the warp, and that of the warp.
    pub(crate) before: Segmented<T>,
    pub(crate) own: Segmented<T>,
    /// Places for runs: see [`run_places`].
    pub(crate) list: SharedArray<'k, u16>,
}

impl<T: Element, R: Reducer<T> + Copy, const TOGETHER: usize> RunTile<'_, '_, T, R, TOGETHER> {
    /// The number of listed runs of a warp.
    const LISTED: u32 = WARP * TOGETHER as u32;

    /// Writes the runs of the tile: their keys, and with `write` the result of the run before each. `heads` are places of the lane's items
    /// in its warp's part, with bits for the items from there that begin a run. `key` returns the key at a place. `sum` returns the part's
    /// items of the run before one, combined. It gets the places where the two runs begin, or 0 for a run that begins before the part.
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
            let listed = (runs - from).min(Self::LISTED);
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
                    // The input's first item begins a run, so there is at least one run.
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

    /// Lists the runs of the warp from number `from`, as many as there is room for.
    fn list(&self, from: u32, heads: impl Iterator<Item = (usize, u32)>) {
        let mut number = (self.before.heads as u32).wrapping_sub(from);
        for (at, mut bits) in heads {
            while bits != 0 {
                if number < Self::LISTED {
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
        (self.cx.warp() * Self::LISTED + number) as usize
    }
}

/// Returns the result of the warps before, and that of the whole tile. It has one barrier.
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

/// Begins to copy the `len` items from `first` to a place in shared memory, by contiguous vectors of `N` items of the warp's lanes. Where
/// the input has no items, it writes what `other` returns.
///
/// # Safety
/// The array has the places, in vectors of its own, and nobody else accesses them until the warp has waited.
pub(crate) unsafe fn stage<S: Source<Item: Element>, const N: usize>(
    cx: Block,
    x: Input<S>,
    (first, len): (usize, usize),
    (to, place): (SharedArray<'_, S::Item>, usize),
    other: impl Fn() -> S::Item,
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
                        to.store(place + at + i, x.get(first + at + i).unwrap_or_else(&other));
                    }
                }
            }
        }
    }
}
