//! The kernels of products of a matrix in compressed rows and a vector by merge path, for rows of very different lengths.

use core::hint::select_unpredictable;
use core::marker::PhantomData;

use kernel_primitives::functor::{Epilogue, Reduction};
use kernel_primitives::input::Source;
use kernel_primitives::prelude::*;
use kernel_primitives::simt::WARP;
use kernel_primitives::thread::merge_path_rows;
use kernel_primitives::view::SharedStorage;

use super::csr::{Csr, blocks, bounds, write};
use super::csr_build::CSR_BUILD_THREADS;
use super::entry_vectors::{Loaded, Vectors, WIDEST, one_by_one, width};

/// Threads of a block of [`csr_tiles`](struct@csr_tiles).
pub const CSR_TILE_THREADS: usize = 256;

/// Warps of that.
const WARPS: usize = CSR_TILE_THREADS / WARP as usize;

/// Threads of a block of [`csr_ends`](struct@csr_ends), which is also how many tiles it looks at.
pub const CSR_ENDS_THREADS: usize = 256;

/// Shares of rows that a thread of [`csr_ends`](struct@csr_ends) has under way.
const AHEAD: usize = 4;

/// Tiles of a row whose shares one thread of [`csr_ends`](struct@csr_ends) adds up; those of longer rows a block does.
const BY_THREAD: usize = 16;

/// No row.
const NONE: u64 = u64::MAX;

/// The most entries of a thread of [`csr_tiles`](struct@csr_tiles).
const ITEMS: usize = 8;

/// No row ends with an entry.
const OPEN: u16 = u16::MAX;

/// Entries of a thread of [`csr_tiles`](struct@csr_tiles), for results that accumulate in `A`.
const fn thread_items<A>() -> usize {
    match size_of::<A>() {
        0..=8 => ITEMS,
        9..=16 => 4,
        17..=32 => 2,
        _ => 1,
    }
}

/// Steps along the merge path of a tile of [`csr_tiles`](struct@csr_tiles), for results that accumulate in `A`. They are fewer than the
/// threads' entries, so that the first vector of entries may begin before the tile.
pub const fn csr_tile_steps<A>() -> usize {
    let items = thread_items::<A>();
    CSR_TILE_THREADS * items - if items < WIDEST { items } else { WIDEST }
}

/// Blocks of [`csr_tiles`](struct@csr_tiles) of a multiprocessor at once, for results that accumulate in `A`: the registers of more do not
/// hold a thread's entries.
const fn tile_blocks<A>() -> usize {
    match size_of::<A>() {
        0..=4 => 4,
        5..=8 => 3,
        _ => 2,
    }
}

/// Bytes of shared memory that a block has here at most: nearly what one can have on any GPU. The rest is for a kernel's own.
pub(super) const ROOM: usize = 62 << 10;

/// Whether results that accumulate in `A` are combined along the merge path: for wider ones its kernels take more shared memory than
/// blocks have on some GPUs. The answer is the same on all of them, so that the order of combination is, too.
pub const fn csr_path_fits<A: Element>() -> bool {
    let ends = <ReduceStorage<u64, CSR_ENDS_THREADS> as SharedStorage>::BYTES
        + <ReduceStorage<A, CSR_ENDS_THREADS> as SharedStorage>::BYTES;
    <CsrStorage<A> as SharedStorage>::BYTES <= ROOM && ends <= ROOM
}

/// Of a tile: which row ends with each of the threads' entries, the totals of its rows, or before them the products of its entries, and of
/// each warp the total after its last end of a row, and whether there is one.
pub struct CsrStorage<A>(PhantomData<A>);

impl<A> CsrStorage<A> {
    const TOTALS: usize = CSR_TILE_THREADS * ITEMS * size_of::<u16>();
    const AFTER: usize = (Self::TOTALS + CSR_TILE_THREADS * thread_items::<A>() * size_of::<A>()).next_multiple_of(16);
    const ENDED: usize = (Self::AFTER + WARPS * size_of::<A>()).next_multiple_of(16);
}

// SAFETY: uninitialised elements.
unsafe impl<A: Element> SharedStorage for CsrStorage<A> {
    const BYTES: usize = Self::ENDED + WARPS * size_of::<u32>();
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

// PTX: csr_tiles__f32_Span_f32_u32_PlusTimes_Axpby_f32 has 4 loads and 0 stores of 16 bytes.
// PTX: csr_tiles__f64_Span_f64_u32_PlusTimes_Axpby_f64 has 4 loads and 0 stores of 16 bytes.

/// A kernel of [`algorithms::spmv`](kernel_primitives::algorithms::spmv) by merge path: each block takes equally many steps; a step is an
/// entry or the end of a row. So rows of any lengths are balanced, and so are runs of empty ones.
///
/// `splits` is from [`csr_splits`](struct@csr_splits). A thread has neighbouring entries, of which it reads columns and values in vectors. While
/// they are on their way, a thread a row marks the last entry of each row that ends in the tile. Then each thread combines the products
/// between its marks, and its warp and the block what lies across threads, in order. Rows' totals go through shared memory, so that
/// neighbouring threads write neighbouring rows. A tile in which no row ends has no marks.
///
/// Rows that begin and end in the tile are done, and go to `y`. Of a tile `t`, `partials[2 * t]` is the share of the row that
/// began before and ends in it, if there is one: `crossing[t]` is its number, or [`u64::MAX`]. `partials[2 * t + 1]` is the
/// share of the row that goes on after the tile.
///
/// Rows and entries that another launch has changed since the matrix was checked are a fault, or wrong numbers, and no access
/// outside.
///
/// Merrill and Garland, *Merge-based parallel sparse matrix-vector multiplication*, 2016; Blelloch, Heroux and Zagha, *Segmented operations
/// for sparse matrix computation on vector multiprocessors*, 1993.
#[kernel(launch(pub(crate)), threads(CSR_TILE_THREADS), min_blocks(tile_blocks::<R::Accum>()))]
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
) where
    V: Element,
    S: Source,
    I: Integer + ConvertTo<u64>,
    R: Reduction<(V, S::Item)> + KernelParam,
    E: Epilogue<R::Output> + KernelParam,
{
    const {
        let (items, steps) = (thread_items::<R::Accum>(), csr_tile_steps::<R::Accum>());
        let lead = width::<V, I>(items) - 1;
        assert!(lead + steps <= CSR_TILE_THREADS * items, "threads have all entries of the vectors of a tile");
        assert!(steps <= OPEN as usize, "no row of a tile has the number that means none");
    };
    let a = Csr { offsets, columns, values };
    let (tile_steps, items) = const { (csr_tile_steps::<R::Accum>(), thread_items::<R::Accum>()) };
    let (tile, thread) = (cx.block_rank(), cx.thread_rank() as usize);
    let first = tile * tile_steps;
    let last = (first + tile_steps).min(a.rows() + values.len());
    let (first_row, last_row) = (splits[tile] as usize, splits[tile + 1] as usize);
    // No more of either than steps, whatever the offsets are.
    let row_count = last_row.saturating_sub(first_row).min(tile_steps);
    let first_entry = first.saturating_sub(first_row);
    let count = (last - first).saturating_sub(row_count).min(values.len().saturating_sub(first_entry));
    // Entries before the tile's in its first vector.
    let lead = if count > 0 { first_entry % const { width::<V, I>(thread_items::<R::Accum>()) } } else { 0 };

    staged.enter();
    let marks = staged.array::<u16>(0, const { CSR_TILE_THREADS * ITEMS });
    let totals = staged.array::<R::Accum>(const { CsrStorage::<R::Accum>::TOTALS }, CSR_TILE_THREADS * items);
    // On their way together with the entries. Few tiles have more ends of rows than threads.
    let own = if thread < row_count { a.bounds(first_row + thread) } else { (0, 0) };
    let bounds_of = |row: usize| if row == thread { own } else { a.bounds(first_row + row) };
    // The last entry of a row in the tile, if it has one there, among those of the threads.
    let last_entry = |(begin, end): (usize, usize)| {
        let (begin, end) = (begin.max(first_entry), end.min(first_entry + count));
        if begin < end { Some(end - first_entry - 1 + lead) } else { None }
    };
    let mark = || {
        if row_count == 0 {
            return;
        }
        // SAFETY: the thread's own until the barrier.
        unsafe { marks.store_items(thread * ITEMS, &[OPEN; ITEMS]) };
        cx.barrier();
        let mut row = thread;
        while row < row_count {
            if let Some(entry) = last_entry(bounds_of(row)) {
                // SAFETY: nobody reads it before the next barrier. If another launch has given two rows the same end, it is either's number: two
                // bytes are one access.
                unsafe { marks.set(entry / items * ITEMS + entry % items, row as u16) };
            }
            row += CSR_TILE_THREADS;
        }
    };
    let entries = (first_entry - lead, (lead + count) as u32);
    let mut found = match const { width::<V, I>(thread_items::<R::Accum>()) } {
        4 => products::<V, S, I, R, 4, 2>(cx, &a, entries, x, &op, totals, mark),
        2 => products::<V, S, I, R, 2, 4>(cx, &a, entries, x, &op, totals, mark),
        _ => products::<V, S, I, R, 1, 8>(cx, &a, entries, x, &op, totals, mark),
    };
    for (k, product) in found.iter_mut().enumerate() {
        if k < items {
            // One before the tile has a large number.
            let entry = ((thread * items + k) as u32).wrapping_sub(lead as u32);
            *product = select_unpredictable(entry < count as u32, *product, op.identity());
        }
    }
    let mut ends = [OPEN; ITEMS];
    if row_count > 0 {
        cx.barrier();
        // SAFETY: written before the barrier, and not again.
        ends = unsafe { marks.load_items(thread * ITEMS) };
    }

    // The first row that ends among the thread's entries, its share of that, and what comes after the last end.
    let (mut first_end, mut head, mut total) = (OPEN, op.identity(), op.identity());
    for (k, &end) in ends.iter().enumerate() {
        if k < items {
            total = op.combine(total, found[k]);
            if end != OPEN {
                if first_end == OPEN {
                    (first_end, head) = (end, total);
                } else {
                    // SAFETY: a row of the tile, which has one last entry. Nobody reads its total before the barriers.
                    unsafe { totals.store(end as usize, total) };
                }
                total = op.identity();
            }
        }
    }
    let carried = Carried::of::<(V, S::Item), R>(cx, &staged, first_end != OPEN, total, &op);
    if first_end != OPEN {
        // SAFETY: as above.
        unsafe { totals.store(first_end as usize, op.combine(carried.before, head)) };
    }
    if thread == CSR_TILE_THREADS - 1 {
        // SAFETY: of the tile alone.
        unsafe { partials.write(2 * tile + 1, carried.after) };
    }
    if row_count == 0 {
        if thread == 0 {
            // SAFETY: of the tile alone.
            unsafe { crossing.write(tile, NONE) };
        }
        return;
    }
    cx.barrier();
    let mut row = thread;
    while row < row_count {
        let (begin, end) = bounds_of(row);
        let total = match last_entry((begin, end)) {
            // SAFETY: the thread that has the row's last entry has written it before the barrier, and nobody writes it again. If another
            // launch has given two rows the same end, nobody has written one of them, and any bits will do.
            Some(_) => unsafe { totals.load(row) },
            None => op.identity(),
        };
        let goes_across = row == 0 && begin < first_entry;
        // SAFETY: `partials` and `crossing` have places for each tile, of which one thread has the first row; a row's end is one step of the
        // path.
        unsafe {
            if row == 0 {
                crossing.write(tile, if goes_across { first_row as u64 } else { NONE });
            }
            if goes_across {
                partials.write(2 * tile, total);
            } else {
                write(&mut y, z, first_row + row, op.post(total, end.saturating_sub(begin) as u64), &epilogue);
            }
        }
        row += CSR_TILE_THREADS;
    }
}

/// The products of a thread's neighbouring entries, of `len` from `first`; what is after these is anything. `meanwhile` runs once, while
/// columns and values are on their way. There are `M` vectors of `N` entries in [`ITEMS`].
///
/// If the entries cannot be read in vectors, their products go through `staged`, of which each thread reads its own in the end.
#[inline(always)]
#[track_caller]
fn products<V, S, I, R, const N: usize, const M: usize>(
    cx: Block,
    a: &Csr<'_, V, I>,
    (first, len): (usize, u32),
    x: Input<S>,
    op: &R,
    staged: SharedArray<'_, R::Accum>,
    meanwhile: impl FnOnce(),
) -> [R::Accum; ITEMS]
where
    V: Element,
    S: Source,
    I: Integer + ConvertTo<u64>,
    R: Reduction<(V, S::Item)>,
{
    const { assert!(N * M == ITEMS, "vectors have a thread's entries") };
    let (items, most) = const { (thread_items::<R::Accum>(), thread_items::<R::Accum>() / N) };
    let thread = cx.thread_rank() as usize;
    let vectors = Vectors::<V, I, N>::of(a, first, len);
    let loaded = match &vectors {
        Some(vectors) => vectors.load::<M>(most, |m| (thread * most + m) as u32),
        None => Loaded::NONE,
    };
    meanwhile();
    if let Some(vectors) = vectors {
        let found = vectors.products(&loaded, most, x, op);
        return core::array::from_fn(|k| found[k / N][k % N]);
    }
    let entries = a.entries(first, first.saturating_add(len as usize));
    one_by_one(&entries, thread, CSR_TILE_THREADS, x, op, |entry, product| {
        // SAFETY: an entry of the tile, which is this thread's alone until the barrier.
        unsafe { staged.store(entry, product) };
    });
    cx.barrier();
    let mut found = [op.identity(); ITEMS];
    for (k, product) in found.iter_mut().enumerate() {
        let entry = thread * items + k;
        if k < items && entry < len as usize {
            // SAFETY: written before the barrier; nobody writes it again before the next one.
            *product = unsafe { staged.load(entry) };
        }
    }
    found
}

/// What goes from threads to those after them in a tile.
struct Carried<A> {
    /// The combination of the entries after the last end of a row in the threads before, for the first end in this one.
    before: A,
    /// The same up to and with this thread's entries.
    after: A,
}

impl<A: Element> Carried<A> {
    /// Carries `total`, what a thread has after its last end of a row, to the threads up to the next one in which a row ends, and with it.
    /// `ends` says whether one ends in this thread; then its `total` starts anew. One barrier.
    #[inline(always)]
    #[track_caller]
    fn of<T, R: Reduction<T, Accum = A>>(
        cx: Block<'_>,
        staged: &Shared<'_, CsrStorage<A>>,
        ends: bool,
        total: A,
        op: &R,
    ) -> Self {
        let after = staged.array::<A>(const { CsrStorage::<A>::AFTER }, WARPS);
        let ended = staged.array::<u32>(const { CsrStorage::<A>::ENDED }, WARPS);
        let (lane, warp) = (cx.lane(), cx.warp());
        // The lanes in which a row ends, and the last of them up to this one.
        let lanes = cx.ballot(FULL_MASK, ends);
        let start = 31 - ((lanes & (FULL_MASK >> (31 - lane))) | 1).leading_zeros();
        let mut scanned = total;
        let mut delta = 1;
        while delta < WARP {
            let below = cx.shuffle_up(FULL_MASK, scanned, delta, WARP);
            if lane >= start + delta {
                scanned = op.combine(below, scanned);
            }
            delta *= 2;
        }
        let below = cx.shuffle_up(FULL_MASK, scanned, 1, WARP);
        if lane == WARP - 1 {
            // SAFETY: the warp's own until the barrier.
            unsafe {
                after.store(warp as usize, scanned);
                ended.store(warp as usize, (lanes != 0) as u32);
            }
        }
        cx.barrier();
        let mut across = op.identity();
        for warp in 0..warp as usize {
            // SAFETY: written before the barrier, and not again.
            let (after, ended) = unsafe { (after.load(warp), ended.load(warp)) };
            across = if ended != 0 { after } else { op.combine(across, after) };
        }
        let below = if lane > 0 { below } else { op.identity() };
        let is_first = lanes & !(FULL_MASK << lane) == 0;
        let is_open = lanes & (FULL_MASK >> (31 - lane)) == 0;
        Self {
            before: if is_first { op.combine(across, below) } else { below },
            after: if is_open { op.combine(across, scanned) } else { scanned },
        }
    }
}

/// The kernel of [`algorithms::spmv`](kernel_primitives::algorithms::spmv) after [`csr_tiles`](struct@csr_tiles): adds up the shares of
/// rows that lie in several tiles. A thread a tile in which such a row ends.
#[kernel(launch(pub(crate)), threads(CSR_ENDS_THREADS), min_blocks(blocks::<R::Accum>([4, 4, 2])))]
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
