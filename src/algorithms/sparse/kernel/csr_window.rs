//! The kernels of products of a matrix in compressed rows and a vector, for bands: the columns of a row are close to each other, but not
//! contiguous. Blocks read the vector from shared memory.

use core::hint::select_unpredictable;
use core::marker::PhantomData;

use kernel_primitives::functor::{Epilogue, Reduction};
use kernel_primitives::input::Source;
use kernel_primitives::prelude::*;
use kernel_primitives::view::{SharedArray, SharedStorage};

use super::csr::{Csr, ahead, blocks, column_of};
use super::csr_build::CSR_BUILD_THREADS;
use super::csr_vectors::Place;

/// The number of threads of a block of [`csr_window_rows`](struct@csr_window_rows).
pub const CSR_WINDOW_THREADS: usize = 512;

/// The number of neighbouring lanes that have a row.
pub const CSR_WINDOW_LANES: usize = 4;

/// The number of rows that a block has at a time.
const AT_ONCE: usize = CSR_WINDOW_THREADS / CSR_WINDOW_LANES;

/// The number of rows that the same lanes have, one after the other.
const TURNS: usize = 4;

/// The number of rows of a block, which have one window.
pub const CSR_WINDOW_ROWS: usize = AT_ONCE * TURNS;

/// The most bytes of a window. Three blocks have this much at once on GPUs of data centres, and one block has it on any GPU.
const ROOM: usize = 40 << 10;

/// The number of entries that a lane has in flight.
const AHEAD: usize = 4;

/// The number of columns that a thread of [`csr_windows`](struct@csr_windows) has in flight.
const COLUMNS_AHEAD: usize = 4;

/// Returns the number of items that a thread copies at a time.
const fn vector<S: Source>() -> usize {
    match S::VECTOR {
        2 | 4 | 8 | 16 => S::VECTOR,
        _ => 1,
    }
}

/// Returns the most items of a source that a window has, in whole vectors, or 0 if shared memory cannot have such items.
pub const fn csr_window_room<S: Source>() -> usize {
    if size_of::<S::Item>() == 0 || align_of::<S::Item>() > CsrWindow::<S>::ALIGN {
        return 0;
    }
    ROOM / size_of::<S::Item>() / vector::<S>() * vector::<S>()
}

/// The items of a window.
pub struct CsrWindow<S>(PhantomData<S>);

// SAFETY: uninitialised items.
unsafe impl<S: Source> SharedStorage for CsrWindow<S> {
    const BYTES: usize = csr_window_room::<S>() * size_of::<S::Item>();
    const ALIGN: usize = 16;
}

/// Finds the window of each block of [`csr_window_rows`](struct@csr_window_rows): the first and the last of the columns of its entries,
/// which may be in any order. If there are no entries, the first column is after the last one. Each block has one window.
///
/// `found[0]` is the number of windows that have up to `room` columns, and `found[1]` is the number of their columns.
#[kernel(launch(pub(crate)), threads(CSR_BUILD_THREADS), one_dimensional)]
#[allow(clippy::too_many_arguments, reason = "a kernel's parameters")]
pub fn csr_windows<I>(
    cx: Block,
    offsets: Global<I>,
    indices: Global<I>,
    columns: u64,
    room: u64,
    mut windows: GlobalMut<[u64; 2], PerBlock>,
    found: GlobalMut<u64, Atomic>,
    mut shared: Shared<ReduceStorage<u64>>,
) where
    I: Integer + ConvertTo<u64>,
{
    let rows = offsets.len() - 1;
    let first_row = (cx.block_rank() * CSR_WINDOW_ROWS).min(rows);
    let last_row = (first_row + CSR_WINDOW_ROWS).min(rows);
    // Another launch may have changed the offsets since they were checked.
    let end = (ConvertTo::<u64>::convert(offsets[last_row]) as usize).min(indices.len());
    let begin = (ConvertTo::<u64>::convert(offsets[first_row]) as usize).min(end);
    let last_column = columns.saturating_sub(1) as usize;
    let (mut first, mut last) = (u64::MAX, 0);
    let mut at = begin + cx.thread_rank() as usize;
    while at < end {
        let mut under_way = [I::ZERO; COLUMNS_AHEAD];
        for (k, column) in under_way.iter_mut().enumerate() {
            // In place of an entry after the end, the last one is read again.
            // SAFETY: before the end, and that is inside.
            *column = unsafe { indices.read_inside((at + k * CSR_BUILD_THREADS).min(end - 1)) };
        }
        for &column in &under_way {
            let column = column_of(column, last_column) as u64;
            first = first.min(column);
            last = last.max(column);
        }
        at += COLUMNS_AHEAD * CSR_BUILD_THREADS;
    }
    let first = block_reduce(cx, &mut shared, first, Min);
    let last = block_reduce(cx, &mut shared, last, Max);
    windows.store([first, last]);
    if cx.thread_rank() == 0 {
        let items = if first <= last { last - first + 1 } else { 0 };
        if items <= room {
            found.at(0).fetch_add(1);
            found.at(1).fetch_add(items);
        }
    }
}

/// A kernel of [`algorithms::spmv`](kernel_primitives::algorithms::spmv) for bands. [`CSR_WINDOW_LANES`] neighbouring lanes have a row, and
/// a block has [`CSR_WINDOW_ROWS`] rows.
///
/// The block copies its window to shared memory. The window has the items of `x` from the first to the last column of the block's entries,
/// which [`csr_windows`](struct@csr_windows) has found. Columns and values are read from memory, and items are read from the window. The
/// lanes of a warp access many lines of `x`. A cache serves these one after the other, but shared memory has as many banks as there are
/// lanes. If the window of a block is wider than the room for it, or if items of `x` are computed, the block reads items from `x`. The
/// order of combination is the same.
///
/// `x` has an item for each column of the matrix.
///
/// The value that the epilogue reads is in `z`, or in `y` if `z` is empty.
///
/// If another launch has changed rows or entries since the matrix was checked, results are wrong, but there is no access outside: a row has
/// no entries after the last entry of the matrix, and a column outside the window counts as the window's last column.
///
/// Three blocks are on a multiprocessor at once if a thread has 40 registers. So the numbers of entries have 32 bits if indices have 32
/// bits, and every place that could be outside is moved inside, without a branch. A lane has the columns and values of its next entries in
/// flight, and the beginning and the end of the next row. But it reads the value for the epilogue after the last entry.
#[kernel(launch(pub(crate)), threads(CSR_WINDOW_THREADS), one_dimensional, min_blocks(blocks::<R::Accum>([3, 3, 1])))]
#[allow(clippy::too_many_arguments, reason = "a kernel's parameters")]
pub fn csr_window_rows<V, S, I, R, E>(
    cx: Block,
    offsets: Global<I>,
    columns: Global<I>,
    values: Global<V>,
    x: Input<S>,
    windows: Global<[u64; 2]>,
    z: Global<E::Output>,
    mut y: GlobalMut<E::Output>,
    op: R,
    epilogue: E,
    items: Shared<CsrWindow<S>>,
) where
    V: Element,
    S: Source,
    I: Integer + ConvertTo<u64>,
    R: Reduction<(V, S::Item)> + KernelParam,
    E: Epilogue<R::Output> + KernelParam,
{
    let a = Csr { offsets, columns, values };
    // A matrix without columns has no entries.
    cx.require_at_most(values.len().min(1), x.len());
    let last_column = x.len().saturating_sub(1);
    let [first, last] = windows[cx.block_rank()];
    let (first, end) = (first as usize, (last as usize).saturating_add(1).min(x.len()));
    let start = first - first % const { vector::<S>() };
    let block = Rows { a, z, op: &op, epilogue: &epilogue };
    // The condition is the same for all threads of the block. Computed items are read only for entries, because they may be a fault
    // elsewhere.
    if const { S::IN_MEMORY } && first < end && end - start <= const { csr_window_room::<S>() } {
        let window = items.array::<S::Item>(0, const { csr_window_room::<S>() });
        // SAFETY: there is room for whole vectors, and nobody accesses it before the barrier.
        unsafe {
            match const { vector::<S>() } {
                16 => copy::<S, 16>(cx, x, (start, end), window),
                8 => copy::<S, 8>(cx, x, (start, end), window),
                4 => copy::<S, 4>(cx, x, (start, end), window),
                2 => copy::<S, 2>(cx, x, (start, end), window),
                _ => copy::<S, 1>(cx, x, (start, end), window),
            }
        }
        let last_place = end - 1 - start;
        let item = |column: I| {
            let place = place_of(column, start, last_place);
            // SAFETY: an item of the window, for which all threads have waited, and nobody writes it after the barrier.
            (unsafe { window.load_any(place) }, start + place)
        };
        // Threads that ended with a fault have not waited for their copies.
        let wait = || {
            x.wait_for_copies();
            cx.barrier_count(true) == CSR_WINDOW_THREADS as u32
        };
        block.products(cx, &mut y, wait, item);
    } else {
        let item = |column: I| {
            let column = column_of(column, last_column);
            // SAFETY: the last column at most. There is one if there is an entry.
            let [item] = unsafe { x.items_inside::<1>(column) };
            (item, column)
        };
        block.products(cx, &mut y, || true, item);
    }
}

/// Begins to copy the items from `start` to `end` to a window, by vectors of `N` items. It also copies the items of the last vector after
/// the end.
///
/// # Safety
/// The items lie inside, and `start` is a multiple of `N`. The window has room for as many in whole vectors, and nobody else accesses it
/// until a barrier after [`Input::wait_for_copies`].
#[inline(always)]
unsafe fn copy<S: Source, const N: usize>(
    cx: Block,
    x: Input<S>,
    (start, end): (usize, usize),
    window: SharedArray<'_, S::Item>,
) {
    let mut at = cx.thread_rank() as usize * N;
    while at < end - start {
        let from = start + at;
        // SAFETY: inside; the caller's contract. Each thread has its own vectors.
        unsafe {
            if x.len() - from >= N {
                x.copy_any_inside::<N>(from, window, at);
            } else {
                for i in 0..x.len() - from {
                    x.copy_any_inside::<1>(from + i, window, at + i);
                }
            }
        }
        at += CSR_WINDOW_THREADS * N;
    }
}

/// Returns the place of a column in a window that begins at column `start`. A column outside has the last place.
#[inline(always)]
fn place_of<I: Integer + ConvertTo<u64>>(column: I, start: usize, last_place: usize) -> usize {
    let column = ConvertTo::<u64>::convert(column);
    // This has as few bits as an index. A column before the window becomes a large number.
    if const { size_of::<I>() <= 4 } {
        (column as u32).wrapping_sub(start as u32).min(last_place as u32) as usize
    } else {
        (column as usize).wrapping_sub(start).min(last_place)
    }
}

/// The values from which the rows of a block are made.
struct Rows<'a, 'k, V, I, O, R, E> {
    a: Csr<'k, V, I>,
    z: Global<'k, O>,
    op: &'a R,
    epilogue: &'a E,
}

impl<V, I, R, E, O> Rows<'_, '_, V, I, O, R, E>
where
    V: Element,
    I: Integer + ConvertTo<u64>,
    O: Element,
{
    /// Computes the rows of a block. `item` returns the item of a column, and the column that it belongs to. It is called after `wait`, and
    /// not at all if `wait` returns false.
    #[inline(always)]
    #[track_caller]
    fn products<T>(&self, cx: Block, y: &mut GlobalMut<O>, wait: impl FnOnce() -> bool, item: impl Fn(I) -> (T, usize))
    where
        T: Copy,
        R: Reduction<(V, T)>,
        E: Epilogue<R::Output, Output = O>,
    {
        // This type has as many bits as the number of an entry.
        if const { size_of::<I>() <= 4 } {
            self.products_of::<u32, T>(cx, y, wait, item);
        } else {
            self.products_of::<usize, T>(cx, y, wait, item);
        }
    }

    /// Works as [`products`](Self::products), where `P` is the type of the numbers of entries.
    #[inline(always)]
    #[track_caller]
    fn products_of<P, T>(
        &self,
        cx: Block,
        y: &mut GlobalMut<O>,
        wait: impl FnOnce() -> bool,
        item: impl Fn(I) -> (T, usize),
    ) where
        P: Place,
        T: Copy,
        R: Reduction<(V, T)>,
        E: Epilogue<R::Output, Output = O>,
    {
        let (op, epilogue) = (self.op, self.epilogue);
        let most = const { ahead::<R::Accum>(AHEAD) };
        let step = (most * CSR_WINDOW_LANES) as u32;
        let lane = cx.thread_rank() % CSR_WINDOW_LANES as u32;
        let mut turn = cx.thread_rank() / CSR_WINDOW_LANES as u32;
        let first = cx.block_rank() * CSR_WINDOW_ROWS;
        let rows = self.a.rows().min(y.len()).saturating_sub(first).min(CSR_WINDOW_ROWS) as u32;
        let (mut columns, mut values) = ([I::ZERO; AHEAD], [V::ZERO; AHEAD]);
        let (mut begin, mut count) = self.entries::<P>(cx, self.ends(first, turn, rows));
        let (mut at, mut left) = (begin.times_plus(1, lane), count.minus(lane));
        // SAFETY: entries of one row, all inside.
        unsafe { self.ask(at, left, most, &mut columns, &mut values) };
        if !wait() {
            return;
        }
        // If the turns were unrolled, they would take more registers.
        let apart = cx.opaque(AT_ONCE as u32);
        while turn < CSR_WINDOW_ROWS as u32 {
            let (of_row, next) = (count, self.ends(first, turn + apart, rows));
            let mut total = op.identity();
            while left > P::of(0) {
                let mut products = [op.identity(); AHEAD];
                for (k, product) in products.iter_mut().enumerate() {
                    if k < most {
                        let (item, column) = item(columns[k]);
                        *product = op.pre((values[k], item), column as u64);
                    }
                }
                for (k, &product) in products.iter().enumerate() {
                    if k < most {
                        let counts = k == 0 || left > P::of(k * CSR_WINDOW_LANES);
                        total = op.combine(total, select_unpredictable(counts, product, op.identity()));
                    }
                }
                (at, left) = (at.times_plus(1, step), left.minus(step));
                // SAFETY: the rest of these.
                unsafe { self.ask(at, left, most, &mut columns, &mut values) };
            }
            // The entries of the next row are in flight before the lanes of this row combine.
            (begin, count) = self.entries(cx, next);
            (at, left) = (begin.times_plus(1, lane), count.minus(lane));
            // SAFETY: entries of one row, all inside.
            unsafe { self.ask(at, left, most, &mut columns, &mut values) };
            let (writes, row) = (lane == 0 && turn < rows, first + turn as usize);
            let mut old = [O::ZERO];
            if writes && epilogue.reads() {
                if self.z.is_empty() {
                    // SAFETY: inside, and one lane has the row.
                    old = unsafe { y.read_items_inside(row) };
                } else if row < self.z.len() {
                    // SAFETY: as just looked at.
                    old = unsafe { self.z.read_items_inside(row) };
                }
            }
            let total = warp_group_reduce(cx, total, op.reducer(), CSR_WINDOW_LANES as u32);
            if writes {
                let total = op.post(total, of_row.index() as u64);
                // SAFETY: inside, and one lane has the row.
                unsafe { y.write_items_inside(row, &[epilogue.apply(total, old[0])]) };
            }
            turn += apart;
        }
    }

    /// Returns the beginning and the end of a row of a block. If the block has no such row, it is empty.
    #[inline(always)]
    #[track_caller]
    fn ends(&self, first: usize, turn: u32, rows: u32) -> (I, I) {
        if turn >= rows {
            return (I::ZERO, I::ZERO);
        }
        let row = first + turn as usize;
        // SAFETY: there is such a row.
        unsafe { (self.a.offsets.read_inside(row), self.a.offsets.read_inside(row + 1)) }
    }

    /// Returns the first entry of a row, and the number of its entries. All of them are inside, for any beginning and end.
    #[inline(always)]
    fn entries<P: Place>(&self, cx: Block, (begin, end): (I, I)) -> (P, P) {
        let entries = P::of(self.a.columns.len().min(self.a.values.len()));
        // This is opaque. Otherwise the compiler would compute all of it where the offsets are read, and wait for them there.
        let end = P::of(end.convert() as usize).opaque(cx).min(entries);
        let begin = P::of(begin.convert() as usize).opaque(cx).min(end);
        (begin, P::of(end.index() - begin.index()))
    }

    /// Begins to read `most` entries of a lane, a constant: the entry at `at`, and the following ones at the distance of the lanes. Instead
    /// of an entry after the `left` entries from `at`, it reads the last one again. If there are no entries, it does nothing.
    ///
    /// # Safety
    /// The `left` entries from `at` lie inside.
    #[inline(always)]
    #[track_caller]
    unsafe fn ask<P: Place>(&self, at: P, left: P, most: usize, columns: &mut [I; AHEAD], values: &mut [V; AHEAD]) {
        if left > P::of(0) {
            let last = P::of(at.index() + left.index() - 1);
            // A place with too many bits becomes a smaller number, which is an entry, too.
            let place = |k: usize| at.times_plus(1, (k * CSR_WINDOW_LANES) as u32).min(last).index();
            for (k, column) in columns.iter_mut().enumerate() {
                if k < most {
                    // SAFETY: the last entry at most; the caller's contract.
                    *column = unsafe { self.a.columns.read_inside(place(k)) };
                }
            }
            for (k, value) in values.iter_mut().enumerate() {
                if k < most {
                    // SAFETY: as above.
                    *value = unsafe { self.a.values.read_inside(place(k)) };
                }
            }
        }
    }
}
