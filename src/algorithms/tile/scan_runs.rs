//! The parts that kernels share that scan runs of items. A trait says where runs begin.

use core::marker::PhantomData;

use kernel_primitives::block::block_exclusive_scan_after;
use kernel_primitives::element::Segmented;
use kernel_primitives::functor::BySegment;
use kernel_primitives::grid::Chain;
use kernel_primitives::input::{Source, Zip};
use kernel_primitives::prelude::*;
use kernel_primitives::simt::WARP;
use kernel_primitives::view::SharedStorage;

use super::runs::RunTiles;
use crate::algorithms::scan::kernel::SCAN_THREADS;

/// The number of items of a vector: as many as both sources have contiguously, but not more than the bits of a byte.
const fn vector<K: Source, V: Source>() -> usize {
    let most = <Zip<K, V> as Source>::VECTOR;
    if most < 8 { most } else { 8 }
}

/// The number of vectors of values of a thread in a large tile. They have some 400 bytes, and four blocks of these fill the shared memory
/// of a multiprocessor. The number is odd, so that lanes that read their own vectors rarely access the same bank.
const fn large<K: Source, V: Source>() -> usize {
    match (vector::<K, V>() * size_of::<V::Item>()).div_ceil(16) {
        0 | 1 => 25,
        2 => 13,
        3 | 4 => 7,
        5..=8 => 3,
        _ => 1,
    }
}

/// The number of vectors in a small tile, by the number in a large one.
const fn fewer(vectors: usize) -> usize {
    match vectors {
        25 => 5,
        13 | 7 => 3,
        _ => 1,
    }
}

/// The values of a tile. After them comes a byte for each vector, with a bit for each item that begins a run. `K` are the keys that are
/// read together with the values `V`.
pub struct ScanByKeyItems<K, V>(PhantomData<(K, V)>);

/// The values and the bits for segments, which have no keys.
pub type SegmentScanItems<V> = ScanByKeyItems<V, V>;

impl<K: Source, V: Source> ScanByKeyItems<K, V> {
    /// The number of items of a large tile.
    const TILE: usize = SCAN_THREADS * large::<K, V>() * vector::<K, V>();

    const OF_HEADS: usize = Self::TILE * size_of::<V::Item>();

    /// Returns the tiles of `len` items: large ones if there are at least `tiles` of them, and otherwise small ones.
    pub fn tiles(len: usize, tiles: usize) -> RunTiles {
        let most = large::<K, V>();
        RunTiles::large_or_small(len, SCAN_THREADS * vector::<K, V>(), (most, fewer(most)), tiles)
    }
}

// SAFETY: uninitialised elements.
unsafe impl<K: Source, V: Source> SharedStorage for ScanByKeyItems<K, V> {
    const BYTES: usize = Self::OF_HEADS + SCAN_THREADS * large::<K, V>();
    const ALIGN: usize = 16;
}

/// The source of the places where the runs of a scan begin.
pub(crate) trait Runs: Copy {
    /// Returns the number of items for which the runs are known.
    fn len(self) -> usize;

    /// Returns whether the items that are read together with the vectors of `N` items from `first` are aligned for this.
    fn are_aligned<const N: usize>(self, first: usize) -> bool;

    /// Marks the items of a warp's part that begin a run. All lanes call it, and they wait for each other before they read the marks.
    fn mark<const N: usize, const STAGED: usize>(self, part: MarkedPart);
}

/// A warp's part of a tile. The first item of each run is marked.
#[derive(Clone, Copy)]
pub(crate) struct MarkedPart<'k> {
    pub(crate) cx: Block<'k>,
    /// The part's first item in the input.
    pub(crate) start: usize,
    /// A byte for each vector of the tile, with a bit for each item; and the same memory as words of four vectors.
    pub(crate) heads: SharedArray<'k, u8>,
    pub(crate) words: SharedArray<'k, u32>,
    /// The part's first vector in this memory, which is a multiple of 32.
    pub(crate) first_vector: usize,
}

/// A scan of runs.
#[derive(Clone, Copy)]
pub(crate) struct RunScan<'k, M, V: Source, R> {
    pub(crate) cx: Block<'k>,
    pub(crate) runs: M,
    pub(crate) values: Input<'k, V>,
    pub(crate) first: V::Item,
    pub(crate) exclusive: bool,
    pub(crate) op: R,
}

impl<M, V, R> RunScan<'_, M, V, R>
where
    M: Runs,
    V: Source<Item: Element>,
    R: Reducer<V::Item> + Copy,
{
    /// Scans the tile of the block, with `vectors` vectors for each thread.
    pub(crate) fn tile<K: Source>(
        self,
        vectors: u32,
        (tile, chain): (usize, Chain<'_, '_, Segmented<V::Item>>),
        out: &mut GlobalMut<V::Item>,
        items: &Shared<ScanByKeyItems<K, V>>,
        shared: &mut Shared<ScanStorage<Segmented<V::Item>>>,
    ) {
        let most = const { large::<K, V>() };
        let in_values = items.array::<V::Item>(0, const { ScanByKeyItems::<K, V>::TILE });
        let of_heads = const { ScanByKeyItems::<K, V>::OF_HEADS };
        let heads = items.array::<u8>(of_heads, SCAN_THREADS * most);
        let words = items.array::<u32>(of_heads, SCAN_THREADS * most / size_of::<u32>());
        let is_small = vectors as usize != most;
        macro_rules! shapes {
            ($($n:literal x $staged:literal)*) => {
                const {
                    let shape = (vector::<K, V>(), large::<K, V>());
                    assert!(matches!(shape, (1, 1) $(| ($n, $staged))*), "a shape is missing");
                }
                $(if const { vector::<K, V>() == $n && large::<K, V>() == $staged } {
                    if is_small {
                        self.of::<$n, { fewer($staged) }>(tile, chain, in_values, (heads, words), out, shared);
                    } else {
                        self.of::<$n, $staged>(tile, chain, in_values, (heads, words), out, shared);
                    }
                } else)* {
                    self.of::<1, 1>(tile, chain, in_values, (heads, words), out, shared);
                }
            };
        }
        shapes! {
            8 x 25  8 x 13  8 x 7  8 x 3  8 x 1  4 x 25  4 x 13  4 x 7  4 x 3  4 x 1
            2 x 25  2 x 13  2 x 7  2 x 3  2 x 1  1 x 25  1 x 13  1 x 7  1 x 3
        }
    }

    /// Scans a tile. Each warp has a part of it. The lanes copy the values to shared memory, `STAGED` contiguous vectors of `N` items for
    /// each lane. Meanwhile they mark the items that begin a run. Then each lane combines the same number of successive vectors, from the
    /// last head. The results of the lanes before are scanned together. Then each lane scans its items once more, and the results are
    /// written contiguously.
    // On the host, each shape has a frame of its own, and only one frame exists at a time.
    fn of<const N: usize, const STAGED: usize>(
        self,
        tile: usize,
        chain: Chain<'_, '_, Segmented<V::Item>>,
        in_values: SharedArray<'_, V::Item>,
        (heads, words): (SharedArray<'_, u8>, SharedArray<'_, u32>),
        out: &mut GlobalMut<V::Item>,
        shared: &mut Shared<ScanStorage<Segmented<V::Item>>>,
    ) {
        let Self { cx, runs, values, first, exclusive, op } = self;
        let (lane, warp, len) = (cx.lane() as usize, cx.warp() as usize, runs.len());
        let round = WARP as usize * N;
        let part = warp * (STAGED * round);
        let start = tile * const { SCAN_THREADS * STAGED * N } + part;
        let all = len.min(values.len()).min(out.len());
        let is_whole = all.saturating_sub(start) >= STAGED * round
            && runs.are_aligned::<N>(start)
            && values.is_aligned::<N>(start)
            && out.is_aligned::<N>(start);
        // These are the contiguous vectors of lanes: their places in the part and in the inputs.
        let beside = |v: usize| v * round + lane * N;
        let at = |v: usize| start + beside(v);
        let vector_of_part = warp * (STAGED * WARP as usize);
        if is_whole {
            for v in 0..STAGED {
                // SAFETY: inside; the warp's part of shared memory, of which each lane writes its vectors; the warp waits below before
                // it reads.
                unsafe { values.copy_vector_inside::<N>(at(v), in_values, part + beside(v)) };
            }
        } else {
            for v in 0..STAGED {
                // SAFETY: as above.
                unsafe {
                    if !values.copy::<N>(at(v), in_values, part + beside(v)) {
                        for i in 0..N {
                            let value = values.get(at(v) + i).unwrap_or(op.identity());
                            in_values.store(part + beside(v) + i, value);
                        }
                    }
                }
            }
        }
        runs.mark::<N, STAGED>(MarkedPart { cx, start, heads, words, first_vector: vector_of_part });
        values.wait_for_copies();
        cx.sync_warp(FULL_MASK);

        let (own, own_vector) = (part + lane * (STAGED * N), vector_of_part + lane * STAGED);
        let items_of = |v: usize| -> ([V::Item; N], u32) {
            // SAFETY: this lane's own vectors, which the warp has written before it waited.
            unsafe { (in_values.load_items(own + v * N), heads.load(own_vector + v) as u32) }
        };
        let (mut has_head, mut total) = (false, op.identity());
        for v in 0..STAGED {
            let (items, bits) = items_of(v);
            let since = since_head(&items, bits, &op);
            total = if v == 0 || bits != 0 { since } else { op.apply(total, since) };
            has_head |= bits != 0;
        }
        let own_total = Segmented { heads: has_head as u64, total };
        let before = block_exclusive_scan_after(cx, shared, &[own_total], BySegment(op), |total| {
            if chain.is_empty() {
                return BySegment(op).identity();
            }
            // SAFETY: marks of this warp, which is the first one.
            if unsafe { heads.load(0) } & 1 != 0 {
                chain.announce_start(tile, total);
                return BySegment(op).identity();
            }
            // A run that continues here begins in the last tile with a head.
            chain.prefix_since(tile, total, &BySegment(op), |total| total.heads > 0)
        });

        let mut sum = before[0].total;
        for v in 0..STAGED {
            let (mut results, bits) = items_of(v);
            if exclusive {
                scan_runs(&mut results, bits, &mut sum, op, |sum, _| sum.map_or(first, |sum| op.apply(first, sum)));
            } else {
                scan_runs(&mut results, bits, &mut sum, op, |_, upto| upto);
            }
            // SAFETY: as for the loads; the other lanes read these after the next wait.
            unsafe { in_values.store_items(own + v * N, &results) };
        }
        cx.sync_warp(FULL_MASK);
        // SAFETY: written before the wait.
        let results = |v: usize| -> [V::Item; N] { unsafe { in_values.load_items(part + beside(v)) } };
        // SAFETY: of all threads of the grid only this one has these places of the result.
        unsafe {
            if is_whole {
                for v in 0..STAGED {
                    out.write_vector_inside(at(v), &results(v));
                }
            } else {
                for v in 0..STAGED {
                    let items = results(v);
                    if at(v) + N <= len {
                        out.write_items(at(v), &items);
                        continue;
                    }
                    for (i, &item) in items.iter().enumerate() {
                        if at(v) + i < len {
                            out.write(at(v) + i, item);
                        }
                    }
                }
            }
        }
    }
}

/// Combines the items from the last one that begins a run, or all items if no run begins. The bits say which items begin a run.
#[inline(always)]
pub(crate) fn since_head<T: Copy, R: Reducer<T>, const N: usize>(items: &[T; N], bits: u32, op: &R) -> T {
    let mut since = items[0];
    for (i, &item) in items.iter().enumerate().skip(1) {
        since = if bits >> i & 1 != 0 { item } else { op.apply(since, item) };
    }
    since
}

/// Replaces each item by `result` of two values of its run: the items before it, if the run begins before it, and the items up to it. The
/// bits say which items begin a run. `sum` is the value before the first item, and then the value before the next item after the last.
pub(crate) fn scan_runs<T: Copy, R: Reducer<T>, const N: usize>(
    items: &mut [T; N],
    bits: u32,
    sum: &mut T,
    op: R,
    result: impl Fn(Option<T>, T) -> T,
) {
    for (i, item) in items.iter_mut().enumerate() {
        let before = if bits >> i & 1 != 0 { None } else { Some(*sum) };
        let upto = before.map_or(*item, |sum| op.apply(sum, *item));
        *item = result(before, upto);
        *sum = upto;
    }
}
