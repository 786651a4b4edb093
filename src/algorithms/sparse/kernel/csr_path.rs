//! The kernels of products of a matrix in compressed rows and a vector by merge path that come before and after
//! [`csr_tiles`](struct@super::csr_tiles::csr_tiles). They find the beginnings of tiles, and add up rows that are in several tiles. Also
//! the sizes of all these kernels.

use core::hint::select_unpredictable;
use core::marker::PhantomData;

use kernel_primitives::functor::{Epilogue, Reduction};
use kernel_primitives::prelude::*;
use kernel_primitives::thread::merge_path_rows;
use kernel_primitives::view::SharedStorage;

use super::csr::{blocks, bounds};
use super::csr_build::CSR_BUILD_THREADS;

/// The number of threads of a block of [`csr_tiles`](struct@super::csr_tiles::csr_tiles).
pub const CSR_TILE_THREADS: usize = 256;

/// The number of steps along the merge path from one split of [`csr_splits`](struct@csr_splits) to the next. It is one less than the
/// threads of a block, so that there is room if the first vector of entries begins before the tile.
pub const CSR_SPLIT_STEPS: usize = CSR_TILE_THREADS - 1;

/// The number of threads of a block of [`csr_ends`](struct@csr_ends), which is also the number of tiles that it looks at.
pub const CSR_ENDS_THREADS: usize = 256;

/// The number of shares of rows that a thread of [`csr_ends`](struct@csr_ends) has in flight.
const AHEAD: usize = 4;

/// The most tiles of a row whose shares one thread of [`csr_ends`](struct@csr_ends) adds up. A block adds up the shares of longer rows.
const BY_THREAD: u32 = 16;

/// The value for no row.
const NONE: u64 = u64::MAX;

/// The most entries of a thread of [`csr_tiles`](struct@super::csr_tiles::csr_tiles).
pub(super) const ITEMS: usize = 8;

/// Returns the number of entries of a thread of [`csr_tiles`](struct@super::csr_tiles::csr_tiles), for results that accumulate in `A`.
pub(super) const fn thread_items<A>() -> usize {
    match size_of::<A>() {
        0..=8 => ITEMS,
        9..=16 => 4,
        17..=32 => 2,
        _ => 1,
    }
}

/// Returns the number of steps along the merge path of a tile of [`csr_tiles`](struct@super::csr_tiles::csr_tiles), for results that
/// accumulate in `A`. It is [`CSR_SPLIT_STEPS`] for each entry of a thread. So all tiles begin at splits of the matrix.
pub const fn csr_tile_steps<A>() -> usize {
    CSR_SPLIT_STEPS * thread_items::<A>()
}

/// The products of a tile's entries.
pub struct CsrStorage<A>(PhantomData<A>);

impl<A> CsrStorage<A> {
    pub(super) const LEN: usize = CSR_TILE_THREADS * thread_items::<A>();
}

// SAFETY: uninitialised elements.
unsafe impl<A: Element> SharedStorage for CsrStorage<A> {
    const BYTES: usize = Self::LEN * size_of::<A>();
    const ALIGN: usize = 16;
}

/// Returns the bytes of shared memory of a block of [`csr_tiles`](struct@super::csr_tiles::csr_tiles).
const fn tile_bytes<A: Element>() -> usize {
    <CsrStorage<A> as SharedStorage>::BYTES + <ReduceStorage<A> as SharedStorage>::BYTES
}

/// Returns the shared memory of a multiprocessor for [`csr_tiles`](struct@super::csr_tiles::csr_tiles): that of three blocks, each with a
/// kilobyte that the device takes. Items of the vector are often read again, from the cache that is left. On an H200 (driver 580.159.04), a
/// product with a web graph of 2^20 rows took 0.109 ms, and 0.120 to 0.128 ms with the driver's choice, which has room for more blocks.
pub(super) const fn tile_carveout<A: Element>() -> usize {
    3 * (tile_bytes::<A>() + 1024)
}

/// The most bytes of shared memory that a block takes for these kernels' data. A block can have a little more on any GPU, for the kernel's
/// own use.
pub(super) const ROOM: usize = 62 << 10;

/// Returns whether results that accumulate in `A` are combined along the merge path. For wider results, the kernels take more shared memory
/// than blocks have on some GPUs. The answer is the same on all GPUs, so the order of combination is the same, too.
pub const fn csr_path_fits<A: Element>() -> bool {
    let tiles = tile_bytes::<A>();
    let ends = <ReduceStorage<u64, CSR_ENDS_THREADS> as SharedStorage>::BYTES
        + <ReduceStorage<A, CSR_ENDS_THREADS> as SharedStorage>::BYTES;
    tiles <= ROOM && ends <= ROOM
}

/// Finds the splits of a matrix: the number of rows that end before each step of the merge path that is a multiple of [`CSR_SPLIT_STEPS`],
/// and the number of all rows at the end. The end of row `i` is step `i + end(i)` of the path. Each thread has one split.
///
/// They are found once, and kept with the matrix. A block of [`csr_tiles`](struct@super::csr_tiles::csr_tiles) begins with its entries. If
/// another launch has changed the offsets, the splits need not ascend. The code that keeps them must handle this.
#[kernel(launch(pub(crate)), threads(CSR_BUILD_THREADS), one_dimensional)]
pub fn csr_splits<I>(cx: Block, offsets: Global<I>, entries: u64, mut splits: GlobalMut<u64>)
where
    I: Integer + ConvertTo<u64>,
{
    let rows = offsets.len() - 1;
    let end = |row: usize| ConvertTo::<u64>::convert(offsets[row + 1]) as usize;
    for item in cx.items(splits.len()) {
        let step = item.index().saturating_mul(CSR_SPLIT_STEPS);
        splits.set(item, merge_path_rows(step, rows, entries as usize, end) as u64);
    }
}

/// The kernel of [`algorithms::spmv`](kernel_primitives::algorithms::spmv) after [`csr_tiles`](struct@super::csr_tiles::csr_tiles). It adds
/// up the shares of rows that are in several tiles. Each thread has a tile in which such a row may end.
///
/// If another launch has changed rows since the matrix was checked, results are wrong, but there is no access outside.
#[kernel(launch(pub(crate)), threads(CSR_ENDS_THREADS), one_dimensional, min_blocks(blocks::<R::Accum>([4, 4, 2])))]
#[allow(clippy::too_many_arguments, reason = "a kernel's parameters")]
pub fn csr_ends<V, T, I, R, E>(
    cx: Block,
    offsets: Global<I>,
    splits: Global<u64>,
    partials: Global<R::Accum>,
    z: Global<E::Output>,
    mut y: GlobalMut<E::Output>,
    op: R,
    epilogue: E,
    mut tiles: Shared<ReduceStorage<u64, CSR_ENDS_THREADS>>,
    mut totals: Shared<ReduceStorage<R::Accum, CSR_ENDS_THREADS>>,
) where
    V: Element,
    T: Copy,
    I: Integer + ConvertTo<u64>,
    R: Reduction<(V, T)> + KernelParam,
    E: Epilogue<R::Output> + KernelParam,
{
    let (steps, each) = const { (csr_tile_steps::<R::Accum>(), thread_items::<R::Accum>()) };
    let tile_count = (partials.len() / 2).min(u32::MAX as usize) as u32;
    let tile = cx.block_idx().x.wrapping_mul(CSR_ENDS_THREADS as u32).wrapping_add(cx.thread_rank());
    // These are the row that began before the tile and ends in it, its entries, and the tile in which it begins. The latter is this tile if
    // there is no such row.
    let (mut row, mut items, mut first) = (0, 0, tile);
    // This is in flight at the same time as the place of the row.
    let mut last = op.identity();
    if tile < tile_count && !splits.is_empty() {
        let (place, end) = (tile as usize, splits.len() - 1);
        // SAFETY: as just looked at, and the last one at most.
        let next = unsafe {
            last = partials.read_inside(2 * place);
            row = splits.read_inside((place * each).min(end)) as usize;
            splits.read_inside((place * each + each).min(end)) as usize
        };
        if row < next && row < offsets.len() - 1 {
            let (begin, end) = bounds(offsets, row);
            items = end.saturating_sub(begin) as u64;
            first = (begin.saturating_add(row) / steps).min(place) as u32;
        }
    }
    // Returns the share of one thread, the `rank`th of `threads` threads, of a row from tile `first` to `tile`, which exists.
    let share = |first: u32, tile: u32, rank: u32, threads: u32| {
        let (mut total, mut at) = (op.identity(), first + rank);
        while at < tile {
            let mut parts = [op.identity(); AHEAD];
            for (k, part) in parts.iter_mut().enumerate() {
                // Instead of a tile after the end, this reads the last tile again.
                let at = (at + k as u32 * threads).min(tile - 1);
                // SAFETY: before a tile that there is.
                *part = unsafe { partials.read_inside(2 * at as usize + 1) };
            }
            for (k, &part) in parts.iter().enumerate() {
                let counts = k == 0 || at + (k as u32) * threads < tile;
                total = op.combine(total, select_unpredictable(counts, part, op.identity()));
            }
            at += AHEAD as u32 * threads;
        }
        total
    };

    let mut total = op.identity();
    let is_long = tile - first > BY_THREAD;
    if !is_long {
        total = share(first, tile, 0, 1);
    }
    // Few of the rows that end here have more tiles than that. The block adds up each of them. The number has the last tile of the row, and
    // the first.
    let mut next = if is_long { u64::from(tile) << 32 | u64::from(first) } else { NONE };
    if cx.barrier_any(is_long) {
        // There are at most as many of these rows as threads. The loop has this bound, because after a fault other threads may get any
        // values.
        for _ in 0..CSR_ENDS_THREADS {
            let long = block_reduce(cx, &mut tiles, next, Min);
            let (tile, first) = ((long >> 32) as u32, long as u32);
            if tile >= tile_count {
                break;
            }
            let share = share(first, tile, cx.thread_rank(), CSR_ENDS_THREADS as u32);
            let all = block_reduce(cx, &mut totals, share, op.reducer());
            if next == long {
                (total, next) = (all, NONE);
            }
        }
    }
    if tile > first && row < y.len() {
        let total = op.post(op.combine(total, last), items);
        let mut old = [E::Output::ZERO];
        if epilogue.reads() {
            if z.is_empty() {
                // SAFETY: inside; a row ends in one tile.
                old = unsafe { y.read_items_inside(row) };
            } else if row < z.len() {
                // SAFETY: as just looked at.
                old = unsafe { z.read_items_inside(row) };
            }
        }
        // SAFETY: as above.
        unsafe { y.write_items_inside(row, &[epilogue.apply(total, old[0])]) };
    }
}
