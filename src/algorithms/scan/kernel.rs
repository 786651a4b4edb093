//! The kernel of scans.

use core::marker::PhantomData;

use kernel_primitives::block::block_exclusive_scan_rounds_after;
use kernel_primitives::grid::Chain;
use kernel_primitives::input::Source;
use kernel_primitives::prelude::*;
use kernel_primitives::simt::WARP;
use kernel_primitives::view::SharedStorage;

use crate::algorithms::tile::staged::lead;

/// The number of threads of a block of a scan by key or of segments.
pub const SCAN_THREADS: usize = 128;

/// Returns the number of threads of a block of [`scan_tiles`](struct@scan_tiles).
pub const fn scan_threads<S: Source>() -> usize {
    // A thread takes long for many vectors, and 2^20 of these items give most multiprocessors one block.
    if matches!(scan_vector::<S>(), 2 | 4) && size_of::<S::Item>() <= 8 { 256 } else { SCAN_THREADS }
}

/// The number of items of a vector: as many as the source has contiguously, up to 16 bytes of results. It is a power of two.
pub const fn scan_vector<S: Source>() -> usize {
    let most = match size_of::<S::Item>() {
        0 | 1 => 16,
        2 => 8,
        3 | 4 => 4,
        5..=8 => 2,
        _ => 1,
    };
    if most < S::VECTOR { most } else { S::VECTOR }
}

/// Returns the number of vectors of a thread in shared memory, up to some 430 bytes, and the number in its registers. The first number is
/// odd, so lanes that read their own vectors never access the same bank. A block has all of these in flight while it waits for the tiles
/// before. A scan is limited by how long it waits, divided by the bytes in flight.
const fn vectors<S: Source>() -> (usize, usize) {
    match ((scan_vector::<S>() * size_of::<S::Item>()).div_ceil(16), scan_vector::<S>()) {
        (0 | 1, 4) => (15, 4),
        (0 | 1, 2) => (9, 8),
        (0 | 1, 1) => (27, 6),
        (0 | 1, _) => (13, 0),
        (2, _) => (13, 0),
        (3 | 4, _) => (7, 0),
        (5..=8, _) => (3, 0),
        _ => (1, 0),
    }
}

/// The way in which a scan is divided into tiles.
#[derive(Clone, Copy, Debug)]
pub struct ScanTiles {
    /// The number of items of all tiles. The first tile may begin inside a vector of the input, and then this includes the places before
    /// the input.
    pub len: usize,
    /// The number of items of a tile.
    pub tile: usize,
    /// The number of vectors of a thread.
    pub rounds: u32,
}

impl ScanTiles {
    /// Returns the tiles of `len` items. There is one tile if that is enough. Otherwise tiles are large, but there are `tiles` tiles if
    /// possible.
    pub fn new<S: Source>(len: usize, tiles: usize) -> Self {
        let (vector, (staged, held)) = (scan_vector::<S>(), vectors::<S>());
        let (len, round, most) = (len + vector - 1, scan_threads::<S>() * vector, staged + held);
        let tiles = if len > round * most { tiles.max(1) } else { 1 };
        let rounds = match len.div_ceil(round * tiles) {
            // In a smaller tile, all vectors are in shared memory, and each lane has an odd number of them.
            needed if needed <= staged => needed | 1,
            _ => most,
        };
        Self { len, tile: round * rounds, rounds: rounds as u32 }
    }
}

// PTX: scan_tiles__Span_f32_Add_false has 13 loads and 13 stores of 16 bytes, staged.
// PTX: scan_tiles__Span_f64_Add_true has 13 loads and 13 stores of 16 bytes, staged.

/// The kernel of [`algorithms::inclusive_scan`](kernel_primitives::algorithms::inclusive_scan) and similar algorithms. `out[i]` is `first`,
/// the items of `before`, and the items up to `x[i]`, combined by `op`. If `EXCLUSIVE`, `x[i]` itself is left out. Each block has one tile,
/// with `rounds` vectors for each thread. The first tile may begin inside a vector of the input; see [`ScanTiles`]. `chain` has the memory
/// of a [`Chain`] of all tiles of the epoch `epoch`, or is empty if there is one tile.
#[kernel(launch(pub(crate)), threads(scan_threads::<S>()), one_dimensional, min_blocks(match scan_vector::<S>() { 2 => 2, 4 => 3, _ => 4 }))]
#[allow(clippy::too_many_arguments, reason = "a kernel's parameters")]
pub fn scan_tiles<S, R, const EXCLUSIVE: bool>(
    cx: Block,
    x: Input<S>,
    first: S::Item,
    before: Global<S::Item>,
    mut out: GlobalMut<S::Item>,
    chain: GlobalMut<u64, Atomic>,
    epoch: u32,
    rounds: u32,
    op: R,
    mut ticket: Shared<[u64; 1]>,
    items: Shared<ScanItems<S>>,
    mut shared: Shared<ScanStorage<S::Item>>,
) where
    S: Source<Item: Element>,
    R: Reducer<S::Item> + KernelParam,
{
    cx.require_at_most(x.len(), out.len());
    let chain = Chain::new(cx, &chain, cx.grid_blocks()).epoch(epoch);
    let tile = chain.take_tile(&mut ticket);
    let tile = ScanTile { cx, x, first, before, chain, tile, rounds: rounds as usize, op };
    macro_rules! shapes {
        ($($n:literal x $staged:literal + $held:literal)*) => {
            const {
                let shape = (scan_vector::<S>(), vectors::<S>());
                assert!(matches!(shape, (1, (1, 0)) $(| ($n, ($staged, $held)))*), "a shape is missing");
            }
            // The compiler follows only one branch of this chain of conditions.
            $(if const { scan_vector::<S>() == $n && vectors::<S>().0 == $staged && vectors::<S>().1 == $held } {
                let items = items.array(0, const { scan_threads::<S>() * $staged * $n });
                scan_by::<S, R, $n, $staged, $held, { $held + 1 }, EXCLUSIVE>(tile, &mut out, items, &mut shared)
            } else)* {
                let items = items.array(0, const { scan_threads::<S>() });
                scan_by::<S, R, 1, 1, 0, 1, EXCLUSIVE>(tile, &mut out, items, &mut shared)
            }
        };
    }
    shapes! { 16 x 13 + 0  8 x 13 + 0  4 x 15 + 4  2 x 9 + 8  1 x 27 + 6  1 x 13 + 0  1 x 7 + 0  1 x 3 + 0 }
}

/// The items of a tile of [`scan_tiles`](struct@scan_tiles) that are in shared memory.
pub struct ScanItems<S>(PhantomData<S>);

// SAFETY: uninitialised elements.
unsafe impl<S: Source> SharedStorage for ScanItems<S> {
    const BYTES: usize = scan_threads::<S>() * vectors::<S>().0 * scan_vector::<S>() * size_of::<S::Item>();
    const ALIGN: usize = 16;
}

/// The work of one block.
struct ScanTile<'a, 'k, S: Source, R> {
    cx: Block<'k>,
    x: Input<'k, S>,
    first: S::Item,
    before: Global<'k, S::Item>,
    chain: Chain<'a, 'k, S::Item>,
    tile: usize,
    rounds: usize,
    op: R,
}

/// Scans a tile. Each warp has a part of it. The first `STAGED` vectors of `N` items of each lane, or as many as the tile has, go to shared
/// memory, where the vectors of the lanes are contiguous. There, each lane combines the same number of successive vectors. The `HELD`
/// vectors after them stay in the registers of the lanes that read them, in successive rounds of 32 vectors. The values before each of
/// these shares are scanned together. Then each share is scanned once more for its results, which are written contiguously. `ROUNDS` is
/// `HELD + 1`. `items` is the block's shared memory for the tile.
fn scan_by<S, R, const N: usize, const STAGED: usize, const HELD: usize, const ROUNDS: usize, const EXCLUSIVE: bool>(
    scan: ScanTile<'_, '_, S, R>,
    out: &mut GlobalMut<S::Item>,
    items: SharedArray<'_, S::Item>,
    shared: &mut Shared<ScanStorage<S::Item>>,
) where
    S: Source<Item: Element>,
    R: Reducer<S::Item> + Copy,
{
    const { assert!(ROUNDS == HELD + 1, "one round for what is in shared memory") };
    let ScanTile { cx, x, first, before: items_before, chain, tile, rounds: most, op } = scan;
    let (lane, warp, len) = (cx.lane() as usize, cx.warp() as usize, x.len());
    // These are the rounds that a warp's part can have, with a vector for each lane, and the rounds in shared memory.
    let most = most.clamp(1, STAGED + HELD);
    let staged = most.min(STAGED);
    // These are the warp's part in shared memory and in the input, the number of its rounds, and the number of rounds that are whole and
    // aligned.
    let round = WARP as usize * N;
    let part = warp * (STAGED * round);
    let lead = lead::<S, N>(x);
    let first_of_part = (tile * const { scan_threads::<S>() / WARP as usize } + warp) * (most * round);
    let rest = (len + lead).saturating_sub(first_of_part);
    let rounds = rest.div_ceil(round).min(most);
    // If the input begins inside a vector, this is less than a vector before the input. Then the first lane's first vector is not whole.
    let start = first_of_part.wrapping_sub(lead);
    let is_inside = first_of_part >= lead;
    let vectors = if x.is_aligned::<N>(start) && out.is_aligned::<N>(start) { rest / round } else { 0 };
    let is_whole = is_inside && most == STAGED + HELD && vectors >= most;
    let has_vector = |v: usize| v < vectors && (is_inside || v + lane > 0);
    let beside = |v: usize| v * round + lane * N;
    let stage = |v: usize| {
        let (from, at) = (start.wrapping_add(beside(v)), part + beside(v));
        // SAFETY: the warp's part of shared memory, of which each lane writes its vectors; the warp waits below before it reads. Of the
        // input what is known to be inside.
        unsafe {
            if is_whole || has_vector(v) {
                x.copy_vector_inside::<N>(from, items, at);
            } else if !x.copy::<N>(from, items, at) {
                // The items before the beginning and after the end are the identity, which changes nothing.
                for i in 0..N {
                    items.store(at + i, x.get(from.wrapping_add(i)).unwrap_or(op.identity()));
                }
            }
        }
    };
    let mut held = [[op.identity(); N]; HELD];
    if is_whole {
        for v in 0..STAGED {
            stage(v);
        }
        for (v, items) in held.iter_mut().enumerate() {
            // SAFETY: inside.
            *items = unsafe { x.vector_inside(start + beside(STAGED + v)) };
        }
    } else {
        for v in 0..rounds.min(staged) {
            stage(v);
        }
        for v in rounds.min(staged)..staged {
            // SAFETY: as for the copies.
            unsafe { items.store_items(part + beside(v), &[op.identity(); N]) };
        }
        for (v, items) in held.iter_mut().enumerate() {
            if STAGED + v < rounds {
                for (i, item) in items.iter_mut().enumerate() {
                    if let Some(value) = x.get(start.wrapping_add(beside(STAGED + v) + i)) {
                        *item = value;
                    }
                }
            }
        }
    }
    x.wait_for_copies();
    cx.sync_warp(FULL_MASK);
    let own = part + lane * (staged * N);
    let vector = |v: usize| -> [S::Item; N] {
        // SAFETY: this lane's own vectors, which the warp has written before it waited.
        unsafe { items.load_items(own + v * N) }
    };
    let mut shares = [[op.identity()]; ROUNDS];
    let own_total = |staged: usize| {
        let mut total = in_order(&vector(0), &op);
        for v in 1..staged {
            total = op.apply(total, in_order(&vector(v), &op));
        }
        total
    };
    // With a constant, all loads are in flight at once.
    shares[0] = [if is_whole { own_total(STAGED) } else { own_total(staged) }];
    for v in 0..HELD {
        shares[v + 1] = [in_order(&held[v], &op)];
    }
    let before = block_exclusive_scan_rounds_after(cx, shared, &shares, op, |total| {
        // This is read before the wait, not after it.
        let first = combined_after(first, items_before, &op);
        let before = if chain.is_empty() { op.identity() } else { chain.prefix(tile, total, &op) };
        op.apply(first, before)
    });
    let mut write = |v: usize, results: &[S::Item; N]| {
        let to = start.wrapping_add(beside(v));
        // SAFETY: of all threads of the grid only this one has these places of the result.
        unsafe {
            if is_whole || has_vector(v) {
                out.write_vector_inside(to, results);
            } else {
                for (i, result) in results.iter().enumerate() {
                    let to = to.wrapping_add(i);
                    if to < len {
                        out.write(to, *result);
                    }
                }
            }
        }
    };
    if is_whole {
        for (v, items) in held.iter_mut().enumerate() {
            scan_in_order::<_, _, N, EXCLUSIVE>(&mut { before[v + 1][0] }, items, &op);
            write(STAGED + v, items);
        }
    } else {
        for (v, items) in held.iter_mut().enumerate() {
            if STAGED + v < rounds {
                scan_in_order::<_, _, N, EXCLUSIVE>(&mut { before[v + 1][0] }, items, &op);
                write(STAGED + v, items);
            }
        }
    }
    let own_results = |staged: usize| {
        let mut before = before[0][0];
        for v in 0..staged {
            let mut items_of = vector(v);
            scan_in_order::<_, _, N, EXCLUSIVE>(&mut before, &mut items_of, &op);
            // SAFETY: as for the loads; the other lanes read these after the next wait.
            unsafe { items.store_items(own + v * N, &items_of) };
        }
    };
    if is_whole {
        own_results(STAGED);
    } else {
        own_results(staged);
    }
    cx.sync_warp(FULL_MASK);
    // SAFETY: written before the wait.
    let staged_at = |v: usize| unsafe { items.load_items(part + beside(v)) };
    if is_whole {
        for v in 0..STAGED {
            write(v, &staged_at(v));
        }
    } else {
        for v in 0..rounds.min(staged) {
            write(v, &staged_at(v));
        }
    }
}

/// Returns `first` and the items after it, combined in order.
#[inline(always)]
#[track_caller]
pub(crate) fn combined_after<T: Element, R: Reducer<T>>(first: T, items: Global<T>, op: &R) -> T {
    let mut total = first;
    let mut at = 0;
    while at < items.len() {
        total = op.apply(total, items[at]);
        at += 1;
    }
    total
}

/// Replaces each item by the items up to it, combined after `before`. If `EXCLUSIVE`, the item itself is left out. `before` is the value
/// before the first item, and then the value before the next item after the last.
pub(crate) fn scan_in_order<T: Copy, R: Reducer<T>, const N: usize, const EXCLUSIVE: bool>(
    before: &mut T,
    items: &mut [T; N],
    op: &R,
) {
    for item in items {
        let upto = op.apply(*before, *item);
        *item = if EXCLUSIVE { *before } else { upto };
        *before = upto;
    }
}

/// Combines the items in order, as a tree whose branches do not depend on each other.
pub(crate) fn in_order<T: Copy, R: Reducer<T>, const N: usize>(items: &[T; N], op: &R) -> T {
    let mut items = *items;
    // The levels are written one by one, because the compiler does not unroll loops whose bounds change from one level to the next.
    macro_rules! levels {
        ($($apart:literal)*) => {$(
            let mut i = 0;
            while i + $apart < N {
                items[i] = op.apply(items[i], items[i + $apart]);
                i += 2 * $apart;
            }
        )*};
    }
    levels!(1 2 4 8);
    items[0]
}
