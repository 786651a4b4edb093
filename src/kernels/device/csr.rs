//! The kernels of products of a matrix in compressed rows and a vector.

use core::marker::PhantomData;

use kernel_primitives::element::Segmented;
use kernel_primitives::functor::{BySegment, Epilogue, Reduction};
use kernel_primitives::input::Source;
use kernel_primitives::prelude::*;
use kernel_primitives::simt::WARP;
use kernel_primitives::view::SharedStorage;

use super::search::warp_bound;
use super::tile::{WarpStorage, put_by_warp};

/// Threads of a block of [`csr_rows`](struct@csr_rows) and [`csr_tiles`](struct@csr_tiles).
pub const CSR_THREADS: usize = 128;

/// Threads of a block of [`csr_ends`](struct@csr_ends), which is also how many tiles it looks at.
pub const CSR_ENDS_THREADS: usize = 256;

/// Warps of a block of [`csr_tiles`](struct@csr_tiles).
const CSR_WARPS: usize = CSR_THREADS / WARP as usize;

/// Entries that a lane of [`csr_rows`](struct@csr_rows) has under way.
const AHEAD: usize = 4;

/// Tiles of a row whose shares one thread of [`csr_ends`](struct@csr_ends) adds up; those of longer rows a block does.
const BY_THREAD: usize = 16;

/// Blocks of a multiprocessor at once where results that accumulate in `A` have up to 8 bytes and `narrow` blocks do: wider ones take
/// more registers.
pub(super) const fn blocks<A>(narrow: usize) -> usize {
    if size_of::<A>() <= 8 { narrow } else { narrow / 2 }
}

/// No row.
const NONE: u64 = u64::MAX;

/// Steps along the merge path that a thread of [`csr_tiles`](struct@csr_tiles) takes. An odd number, so that threads meet in few
/// banks of shared memory.
const fn steps<A>() -> usize {
    match size_of::<A>() {
        0..=8 => 7,
        9..=16 => 5,
        17..=32 => 3,
        _ => 1,
    }
}

/// Steps along the merge path of a tile of [`csr_tiles`](struct@csr_tiles), for results that accumulate in `A`.
pub const fn csr_tile_steps<A>() -> usize {
    CSR_THREADS * steps::<A>()
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

/// A kernel of [`algorithms::spmv`](kernel_primitives::algorithms::spmv): so many neighbouring `lanes`, 1 to 32, have a row.
///
/// What the epilogue reads is in `z`, or in `y` if `z` is empty.
///
/// Rows and entries that another launch has changed since the matrix was checked are a fault, or wrong numbers, and no access
/// outside.
#[kernel(launch(pub(crate)), threads(CSR_THREADS), min_blocks(blocks::<R::Accum>(12)))]
#[allow(clippy::too_many_arguments, reason = "a kernel's parameters")]
pub fn csr_rows<V, S, I, R, E>(
    cx: Block,
    offsets: Global<I>,
    columns: Global<I>,
    values: Global<V>,
    x: Input<S>,
    z: Global<E::Output>,
    mut y: GlobalMut<E::Output>,
    op: R,
    epilogue: E,
    lanes: u32,
) where
    V: Element,
    S: Source,
    I: Integer + ConvertTo<u64>,
    R: Reduction<(V, S::Item)> + KernelParam,
    E: Epilogue<R::Output> + KernelParam,
{
    let a = Csr { offsets, columns, values };
    match lanes {
        1 => rows::<V, S, I, R, E, 1>(cx, &a, x, z, &mut y, &op, &epilogue),
        2 => rows::<V, S, I, R, E, 2>(cx, &a, x, z, &mut y, &op, &epilogue),
        4 => rows::<V, S, I, R, E, 4>(cx, &a, x, z, &mut y, &op, &epilogue),
        8 => rows::<V, S, I, R, E, 8>(cx, &a, x, z, &mut y, &op, &epilogue),
        16 => rows::<V, S, I, R, E, 16>(cx, &a, x, z, &mut y, &op, &epilogue),
        _ => rows::<V, S, I, R, E, 32>(cx, &a, x, z, &mut y, &op, &epilogue),
    }
}

/// [`csr_rows`](struct@csr_rows) for so many lanes.
fn rows<V, S, I, R, E, const LANES: usize>(
    cx: Block,
    a: &Csr<'_, V, I>,
    x: Input<S>,
    z: Global<E::Output>,
    y: &mut GlobalMut<E::Output>,
    op: &R,
    epilogue: &E,
) where
    V: Element,
    S: Source,
    I: Integer + ConvertTo<u64>,
    R: Reduction<(V, S::Item)>,
    E: Epilogue<R::Output>,
{
    let thread = cx.block_rank() * CSR_THREADS + cx.thread_rank() as usize;
    let (row, lane) = (thread / LANES, thread % LANES);
    let (begin, end) = a.bounds(row);
    let mut total = op.identity();
    let mut at = begin.saturating_add(lane);
    // Loads that do not wait for each other.
    while at.saturating_add((AHEAD - 1) * LANES) < end {
        let mut products = [op.identity(); AHEAD];
        let mut columns = [0; AHEAD];
        for (k, column) in columns.iter_mut().enumerate() {
            *column = a.column(at + k * LANES);
        }
        for (k, product) in products.iter_mut().enumerate() {
            *product = a.product(at + k * LANES, columns[k], x, op);
        }
        for &product in &products {
            total = op.combine(total, product);
        }
        at += AHEAD * LANES;
    }
    while at < end {
        total = op.combine(total, a.product(at, a.column(at), x, op));
        at += LANES;
    }
    let total = warp_group_reduce(cx, total, op.reducer(), LANES as u32);
    if lane == 0 && row < a.rows() {
        // SAFETY: a row is of one group of lanes, of which only the first writes.
        unsafe { write(y, z, row, op.post(total, end.saturating_sub(begin) as u64), epilogue) };
    }
}

/// A kernel of [`algorithms::spmv`](kernel_primitives::algorithms::spmv) by merge path: each block takes as many steps, of which one
/// is an entry or the end of a row, so that rows of any lengths are balanced.
///
/// Rows that begin and end in the tile are done, and go to `y`. Of a tile `t`, `partials[2 * t]` is the share of the row that
/// began before and ends in it, if there is one: `crossing[t]` is its number, or [`u64::MAX`]. `partials[2 * t + 1]` is the
/// share of the row that goes on after the tile.
///
/// Merrill and Garland, *Merge-based parallel sparse matrix-vector multiplication*, 2016.
#[kernel(launch(pub(crate)), threads(CSR_THREADS), min_blocks(blocks::<R::Accum>(7)))]
#[allow(clippy::too_many_arguments, reason = "a kernel's parameters")]
pub fn csr_tiles<V, S, I, R, E>(
    cx: Block,
    offsets: Global<I>,
    columns: Global<I>,
    values: Global<V>,
    x: Input<S>,
    mut partials: GlobalMut<R::Accum>,
    mut crossing: GlobalMut<u64>,
    z: Global<E::Output>,
    mut y: GlobalMut<E::Output>,
    op: R,
    epilogue: E,
    mut places: Shared<WarpStorage<u64, CSR_WARPS>>,
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
    let last = (first + tile_steps).min(a.rows() + a.entries());

    // One warp finds where the tile begins, the rest where it ends. The end of row `i` is step `i + end(i)` of the path.
    let place = if cx.warp() == 0 { first } else { last };
    let found = warp_bound(cx, a.rows(), |row| a.end(row).saturating_add(row) < place);
    let places = put_by_warp(cx, &mut places, found as u64);
    cx.barrier();
    // SAFETY: all warps wrote theirs before the barrier.
    let [first_row, last_row] = unsafe { [places.load(0) as usize, places.load(1) as usize] };
    // No more of either than steps, whatever the offsets are.
    let row_count = last_row.saturating_sub(first_row).min(tile_steps);
    let first_entry = first.saturating_sub(first_row);
    let count = (last - first).saturating_sub(row_count).min(a.entries().saturating_sub(first_entry));

    staged.enter();
    let ends = staged.array::<u32>(0, tile_steps);
    let products = staged.array::<R::Accum>(const { CsrStorage::<R::Accum>::PRODUCTS }, tile_steps);
    for k in 0..const { steps::<R::Accum>() } {
        let at = k * CSR_THREADS + thread;
        if at < row_count {
            let end = a.end(first_row + at).saturating_sub(first_entry).min(count);
            // SAFETY: below the number of steps; the thread's own element until the barrier.
            unsafe { ends.store(at, end as u32) };
        }
        if at < count {
            let product = a.product(first_entry + at, a.column(first_entry + at), x, &op);
            // SAFETY: as above.
            unsafe { products.store(at, product) };
        }
    }
    cx.barrier();

    // SAFETY: all were written before the barrier, and nobody writes them after it; `row` is below `row_count`.
    let end = |row: usize| unsafe { ends.load(row) } as usize;
    let begin = thread * const { steps::<R::Accum>() };
    let path = begin.min(row_count + count);
    let (mut row, mut high) = (path.saturating_sub(count), path.min(row_count));
    while row < high {
        let middle = (row + high) / 2;
        if middle + end(middle) < path { row = middle + 1 } else { high = middle }
    }
    let mut entry = path - row;
    // The thread's first row may have begun in a thread before. Later ones are its own.
    let (head_row, mut head, mut ended) = (row, op.identity(), 0u64);
    let mut total = op.identity();
    let mut row_end = if row < row_count { end(row) } else { count };
    for _ in 0..const { steps::<R::Accum>() } {
        if row + entry == row_count + count {
            break;
        }
        if entry < row_end {
            // SAFETY: all were written before the barrier, and `entry` is below `count`.
            total = op.combine(total, unsafe { products.load(entry) });
            entry += 1;
            continue;
        }
        if ended == 0 {
            head = total;
        } else {
            let items = row_end - end(row - 1).min(row_end);
            // SAFETY: a row's end is one step of the path.
            unsafe { write(&mut y, z, first_row + row, op.post(total, items as u64), &epilogue) };
        }
        (total, ended, row) = (op.identity(), ended + 1, row + 1);
        row_end = if row < row_count { end(row) } else { count };
    }

    let own = Segmented { heads: ended, total };
    let ([before], all) = block_exclusive_scan(cx, &mut carries, &[own], BySegment(op.reducer()));
    if ended > 0 {
        let total = op.combine(before.total, head);
        let (row_begin, row_end) = a.bounds(first_row + head_row);
        let goes_across = head_row == 0 && row_begin < first_entry;
        // SAFETY: `partials` and `crossing` have places for each tile, of which one thread has the first row's end; so it is with `y`.
        unsafe {
            if goes_across {
                partials.write(2 * tile, total);
            } else {
                let items = row_end.saturating_sub(row_begin);
                write(&mut y, z, first_row + head_row, op.post(total, items as u64), &epilogue);
            }
            if head_row == 0 {
                crossing.write(tile, if goes_across { (first_row + head_row) as u64 } else { NONE });
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

/// A matrix in compressed rows: all accesses are checked.
pub(super) struct Csr<'k, V, I> {
    pub(super) offsets: Global<'k, I>,
    pub(super) columns: Global<'k, I>,
    pub(super) values: Global<'k, V>,
}

impl<V: Element, I: Integer + ConvertTo<u64>> Csr<'_, V, I> {
    #[inline(always)]
    pub(super) fn rows(&self) -> usize {
        self.offsets.len() - 1
    }

    #[inline(always)]
    fn entries(&self) -> usize {
        self.values.len()
    }

    /// Where a row begins and ends; an empty one if it does not exist.
    #[inline(always)]
    pub(super) fn bounds(&self, row: usize) -> (usize, usize) {
        if row < self.rows() { bounds(self.offsets, row) } else { (0, 0) }
    }

    /// Where a row ends.
    #[inline(always)]
    #[track_caller]
    fn end(&self, row: usize) -> usize {
        self.offsets[row + 1].convert() as usize
    }

    #[inline(always)]
    #[track_caller]
    pub(super) fn column(&self, entry: usize) -> usize {
        self.columns[entry].convert() as usize
    }

    /// What an entry contributes to its row.
    #[inline(always)]
    #[track_caller]
    fn product<S, R>(&self, entry: usize, column: usize, x: Input<S>, op: &R) -> R::Accum
    where
        S: Source,
        R: Reduction<(V, S::Item)>,
    {
        op.pre((self.values[entry], x.at(column)), column as u64)
    }
}

/// Where a row begins and ends.
#[inline(always)]
#[track_caller]
fn bounds<I: Integer + ConvertTo<u64>>(offsets: Global<I>, row: usize) -> (usize, usize) {
    (offsets[row].convert() as usize, offsets[row + 1].convert() as usize)
}

/// Writes a row's result to `y`. What the epilogue reads is in `z`, or in `y` if `z` is empty.
///
/// # Safety
/// No other thread of the launch accesses the row's element of `y`.
#[track_caller]
pub(super) unsafe fn write<A, E: Epilogue<A>>(
    y: &mut GlobalMut<<E as Epilogue<A>>::Output>,
    z: Global<<E as Epilogue<A>>::Output>,
    row: usize,
    total: A,
    epilogue: &E,
) {
    // SAFETY: the caller's contract.
    unsafe {
        let old = if !epilogue.reads() {
            E::Output::ZERO
        } else if z.is_empty() {
            y.read(row)
        } else {
            z[row]
        };
        y.write(row, epilogue.apply(total, old));
    }
}
