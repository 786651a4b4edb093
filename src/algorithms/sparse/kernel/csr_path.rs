//! The kernels of products of a matrix in compressed rows and a vector by merge path, for rows of very different lengths.

use core::marker::PhantomData;
use core::ops::Range;

use kernel_primitives::block::{PathPlaces, path_share};
use kernel_primitives::element::Segmented;
use kernel_primitives::functor::{BySegment, Epilogue, Reduction};
use kernel_primitives::input::Source;
use kernel_primitives::prelude::*;
use kernel_primitives::thread::merge_path_rows;
use kernel_primitives::view::SharedStorage;

use super::csr::{CSR_THREADS, Csr, blocks, bounds, write};
use super::csr_build::CSR_BUILD_THREADS;

/// Threads of a block of [`csr_ends`](struct@csr_ends), which is also how many tiles it looks at.
pub const CSR_ENDS_THREADS: usize = 256;

/// Shares of rows that a thread of [`csr_ends`](struct@csr_ends) has under way.
const AHEAD: usize = 4;

/// Tiles of a row whose shares one thread of [`csr_ends`](struct@csr_ends) adds up; those of longer rows a block does.
const BY_THREAD: usize = 16;

/// No row.
const NONE: u64 = u64::MAX;

/// The most steps along the merge path that a thread of [`csr_tiles`](struct@csr_tiles) takes.
const STEPS: usize = 7;

/// Steps along the merge path that a thread of [`csr_tiles`](struct@csr_tiles) takes. An odd number, so that threads meet in few
/// banks of shared memory.
const fn steps<A>() -> usize {
    match size_of::<A>() {
        0..=8 => STEPS,
        9..=16 => 5,
        17..=32 => 3,
        _ => 1,
    }
}

/// Steps along the merge path of a tile of [`csr_tiles`](struct@csr_tiles), for results that accumulate in `A`.
pub const fn csr_tile_steps<A>() -> usize {
    CSR_THREADS * steps::<A>()
}

/// Bytes of shared memory that a block has here at most: nearly what one can have on any GPU. The rest is for a kernel's own.
const ROOM: usize = 62 << 10;

/// Whether results that accumulate in `A` are combined along the merge path: for wider ones its kernels take more shared memory than
/// blocks have on some GPUs. The answer is the same on all of them, so that the order of combination is, too.
pub const fn csr_path_fits<A: Element>() -> bool {
    let tiles = <CsrStorage<A> as SharedStorage>::BYTES
        + <ScanStorage<Segmented<A>, CSR_THREADS> as SharedStorage>::BYTES.next_multiple_of(16);
    let ends = <ReduceStorage<u64, CSR_ENDS_THREADS> as SharedStorage>::BYTES
        + <ReduceStorage<A, CSR_ENDS_THREADS> as SharedStorage>::BYTES;
    tiles.next_multiple_of(16) <= ROOM && ends <= ROOM
}

/// The ends of a tile's rows, and the products of its entries.
pub struct CsrStorage<A>(PhantomData<A>);

impl<A> CsrStorage<A> {
    const PRODUCTS: usize = (csr_tile_steps::<A>() * size_of::<u32>()).next_multiple_of(16);
}

// SAFETY: uninitialised elements.
unsafe impl<A: Element> SharedStorage for CsrStorage<A> {
    const BYTES: usize = Self::PRODUCTS + csr_tile_steps::<A>() * size_of::<A>();
    const ALIGN: usize = 16;
}

/// Finds where each tile of [`csr_tiles`](struct@csr_tiles), of so many `steps` along the merge path, begins, and where the last one ends:
/// how many rows end before. The end of row `i` is step `i + end(i)` of the path. A thread a place.
///
/// A launch of its own, as in CUB: so many searches at once hide the memory's latency, and a block of the next launch begins with its
/// entries.
#[kernel(launch(pub(crate)), threads(CSR_BUILD_THREADS))]
pub fn csr_splits<I>(cx: Block, offsets: Global<I>, steps: u64, entries: u64, mut splits: GlobalMut<u64>)
where
    I: Integer + ConvertTo<u64>,
{
    let rows = offsets.len() - 1;
    let end = |row: usize| ConvertTo::<u64>::convert(offsets[row + 1]) as usize;
    for item in cx.items(splits.len()) {
        let step = (item.index() as u64).saturating_mul(steps) as usize;
        splits.set(item, merge_path_rows(step, rows, entries as usize, end) as u64);
    }
}

/// A kernel of [`algorithms::spmv`](kernel_primitives::algorithms::spmv) by merge path: each block takes equally many steps; a step is an
/// entry or the end of a row. So rows of any lengths are balanced.
///
/// `splits` is from [`csr_splits`](struct@csr_splits). The threads read the tile's entries side by side and put the products and the
/// ends of rows in shared memory. Then each takes its steps there: [`block_reduce_path`](kernel_primitives::block::block_reduce_path) has the
/// same parts. A tile in which no row ends needs no steps: each thread adds up the products that it has.
///
/// Rows that begin and end in the tile are done, and go to `y`. Of a tile `t`, `partials[2 * t]` is the share of the row that
/// began before and ends in it, if there is one: `crossing[t]` is its number, or [`u64::MAX`]. `partials[2 * t + 1]` is the
/// share of the row that goes on after the tile.
///
/// Merrill and Garland, *Merge-based parallel sparse matrix-vector multiplication*, 2016.
#[kernel(launch(pub(crate)), threads(CSR_THREADS), min_blocks(blocks::<R::Accum>(8)))]
#[allow(clippy::too_many_arguments, reason = "a kernel's parameters")]
pub fn csr_tiles<V, S, I, R, E>(
    cx: Block,
    offsets: Global<I>,
    columns: Global<I>,
    values: Global<V>,
    x: Input<S>,
    splits: Global<u64>,
    mut partials: GlobalMut<R::Accum>,
    mut crossing: GlobalMut<u64>,
    z: Global<E::Output>,
    mut y: GlobalMut<E::Output>,
    op: R,
    epilogue: E,
    mut staged: Shared<CsrStorage<R::Accum>>,
    mut carries: Shared<ScanStorage<Segmented<R::Accum>, CSR_THREADS>>,
) where
    V: Element,
    S: Source,
    I: Integer + ConvertTo<u64>,
    R: Reduction<(V, S::Item)> + KernelParam,
    E: Epilogue<R::Output> + KernelParam,
{
    let a = Csr { offsets, columns, values };
    let tile_steps = const { csr_tile_steps::<R::Accum>() };
    let (tile, thread) = (cx.block_rank(), cx.thread_rank() as usize);
    let first = tile * tile_steps;
    let last = (first + tile_steps).min(a.rows() + values.len());
    let (first_row, last_row) = (splits[tile] as usize, splits[tile + 1] as usize);
    // No more of either than steps, whatever the offsets are.
    let row_count = last_row.saturating_sub(first_row).min(tile_steps);
    let first_entry = first.saturating_sub(first_row);
    let count = (last - first).saturating_sub(row_count).min(values.len().saturating_sub(first_entry));

    let end_of = |row: usize| if row < row_count { a.end(first_row + row) } else { 0 };
    // On its way together with the entries. Few tiles have more ends of rows than threads.
    let first_end = end_of(thread);
    let most = const { steps::<R::Accum>() };
    let found: [_; STEPS] = a.entries(first_entry, first_entry + count).products(thread, CSR_THREADS, most, x, &op);

    staged.enter();
    let places = PathPlaces {
        ends: staged.array::<u32>(0, tile_steps),
        items: staged.array::<R::Accum>(const { CsrStorage::<R::Accum>::PRODUCTS }, tile_steps),
    };
    let end = |row: usize| (if row == thread { first_end } else { end_of(row) }).saturating_sub(first_entry);
    let reducer = op.reducer();
    let write_row = |row: usize, items: Range<usize>, total: R::Accum| {
        // SAFETY: a row's end is one step of the path.
        unsafe { write(&mut y, z, first_row + row, op.post(total, items.len() as u64), &epilogue) };
    };
    // SAFETY: both places have room for `tile_steps`, which are `most` for each thread; there are no more rows, and no more entries. Nothing else
    // is in the storage.
    let share = unsafe { path_share(cx, places, (row_count, count), (&found, most), end, &reducer, write_row) };
    let ([before], all) = block_exclusive_scan(cx, &mut carries, &[share.own()], BySegment(reducer));
    if let Some((row, items, total)) = share.first(before, &reducer) {
        let goes_across = row == 0 && a.begin(first_row) < first_entry;
        // SAFETY: `partials` and `crossing` have places for each tile, of which one thread has the first row's end; so it is with `y`.
        unsafe {
            if goes_across {
                partials.write(2 * tile, total);
            } else {
                write(&mut y, z, first_row + row, op.post(total, items.len() as u64), &epilogue);
            }
            if row == 0 {
                crossing.write(tile, if goes_across { first_row as u64 } else { NONE });
            }
        }
    }
    if thread == 0 {
        // SAFETY: of the tile alone; where no row ends, no other thread writes to `crossing`.
        unsafe {
            partials.write(2 * tile + 1, all.total);
            if row_count == 0 {
                crossing.write(tile, NONE);
            }
        }
    }
}

/// The kernel of [`algorithms::spmv`](kernel_primitives::algorithms::spmv) after [`csr_tiles`](struct@csr_tiles): adds up the shares of
/// rows that lie in several tiles. A thread a tile in which such a row ends.
#[kernel(launch(pub(crate)), threads(CSR_ENDS_THREADS), min_blocks(blocks::<R::Accum>(4)))]
#[allow(clippy::too_many_arguments, reason = "a kernel's parameters")]
pub fn csr_ends<V, T, I, R, E>(
    cx: Block,
    offsets: Global<I>,
    partials: Global<R::Accum>,
    crossing: Global<u64>,
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
    // The row that ends in a tile, its entries, and the tile that it begins in.
    let row_of = |tile: usize| match crossing.get(tile) {
        Some(row) if row != NONE => {
            let (begin, end) = bounds(offsets, row as usize);
            let first = (begin.saturating_add(row as usize)) / const { csr_tile_steps::<R::Accum>() };
            (row as usize, end.saturating_sub(begin) as u64, first.min(tile))
        }
        _ => (0, 0, tile),
    };
    // What so many threads, of which this is the `rank`th, have of a row.
    let share = |first: usize, tile: usize, rank: usize, threads: usize| {
        let mut total = op.identity();
        let mut at = first + rank;
        while at < tile {
            let mut parts = [op.identity(); AHEAD];
            for (k, part) in parts.iter_mut().enumerate() {
                let at = at + k * threads;
                if at < tile {
                    *part = partials[2 * at + 1];
                }
            }
            for &part in &parts {
                total = op.combine(total, part);
            }
            at += AHEAD * threads;
        }
        total
    };

    let tile = cx.block_rank() * CSR_ENDS_THREADS + cx.thread_rank() as usize;
    let (row, items, first) = row_of(tile);
    let mut total = op.identity();
    if tile - first <= BY_THREAD {
        total = share(first, tile, 0, 1);
    }
    // Few rows have more tiles than that among those that end here. Each is the block's work.
    let mut next = if tile - first > BY_THREAD { tile as u64 } else { NONE };
    // As many as the block has, and no more if threads have left it with a fault, so that what others get of them is anything.
    for _ in 0..CSR_ENDS_THREADS {
        let long = block_reduce(cx, &mut tiles, next, Min);
        if long == NONE {
            break;
        }
        let (_, _, first) = row_of(long as usize);
        let share = share(first, long as usize, cx.thread_rank() as usize, CSR_ENDS_THREADS);
        let all = block_reduce(cx, &mut totals, share, op.reducer());
        if next == long {
            (total, next) = (all, NONE);
        }
    }
    if tile > first {
        let total = op.combine(total, partials[2 * tile]);
        // SAFETY: a row ends in one tile.
        unsafe { write(&mut y, z, row, op.post(total, items), &epilogue) };
    }
}
