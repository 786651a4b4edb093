//! The kernel of products of a matrix in compressed rows and a vector, for rows of similar lengths with few or many entries. Also the views
//! of a matrix.

use core::hint::select_unpredictable;

use kernel_primitives::functor::{Epilogue, Reduction};
use kernel_primitives::input::Source;
use kernel_primitives::prelude::*;

/// The number of threads of a block of the kernels of products that read by rows.
pub const CSR_THREADS: usize = 128;

/// The number of entries that a lane of [`csr_rows`](struct@csr_rows) has in flight.
const AHEAD: usize = 4;

/// The number of entries that a lane reads first of a row of its own: those of a stencil in three dimensions, and one more.
pub const CSR_FIRST_ENTRIES: usize = 8;

/// Returns the number of blocks of a multiprocessor at a time, for results that accumulate in `A`: of up to 4 bytes, of up to 8, and of
/// more. Wider results take more registers.
pub(super) const fn blocks<A>([narrow, middle, wide]: [usize; 3]) -> usize {
    match size_of::<A>() {
        0..=4 => narrow,
        5..=8 => middle,
        _ => wide,
    }
}

/// Returns `most` entries in flight, or half as many if results accumulate in more than 8 bytes.
pub(super) const fn ahead<A>(most: usize) -> usize {
    if size_of::<A>() <= 8 { most } else { most / 2 }
}

/// A kernel of [`algorithms::spmv`](kernel_primitives::algorithms::spmv). `lanes` neighbouring lanes, 1, 8, 16 or 32, have a row.
///
/// If one lane has a row, it reads the entries of the row one after the other, and the lanes of a warp read successive rows. If one entry
/// does not use a whole line of the cache, the next entries find the rest in the cache.
///
/// The value that the epilogue reads is in `z`, or in `y` if `z` is empty.
///
/// If another launch has changed rows or entries since the matrix was checked, there is a fault or wrong results, but no access outside.
#[kernel(launch(pub(crate)), threads(CSR_THREADS), one_dimensional, min_blocks(blocks::<R::Accum>([10, 8, 6])))]
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
        8 => rows::<V, S, I, R, E, 8>(cx, &a, x, z, &mut y, &op, &epilogue),
        16 => rows::<V, S, I, R, E, 16>(cx, &a, x, z, &mut y, &op, &epilogue),
        _ => rows::<V, S, I, R, E, 32>(cx, &a, x, z, &mut y, &op, &epilogue),
    }
}

/// Works as [`csr_rows`](struct@csr_rows), for this number of lanes.
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
    let entries = a.entries(begin, end);
    let writes = lane == 0 && row < a.rows();
    // SAFETY: a row is of one group of lanes, of which only the first accesses it.
    let old = if writes { unsafe { read::<R::Output, E>(y, z, row, epilogue) } } else { E::Output::ZERO };
    let mut total = op.identity();
    let mut at = lane;
    if LANES == 1 {
        let first = const { ahead::<R::Accum>(CSR_FIRST_ENTRIES) };
        total =
            sum::<(V, S::Item), R>(op, total, &entries.products::<S, R, CSR_FIRST_ENTRIES>(at, LANES, first, x, op));
        at += first;
    }
    while at < entries.len() {
        total = sum::<(V, S::Item), R>(op, total, &entries.products::<S, R, AHEAD>(at, LANES, AHEAD, x, op));
        at += AHEAD * LANES;
    }
    let total = warp_group_reduce(cx, total, op.reducer(), LANES as u32);
    if writes {
        let total = op.post(total, entries.len() as u64);
        // SAFETY: as above.
        unsafe { y.write(row, epilogue.apply(total, old)) };
    }
}

/// Returns the total of a row so far, combined with more products of the row.
#[inline(always)]
pub(super) fn sum<T, R: Reduction<T>>(op: &R, total: R::Accum, products: &[R::Accum]) -> R::Accum {
    products.iter().fold(total, |total, &product| op.combine(total, product))
}

/// A matrix in compressed rows. All accesses are checked.
pub(super) struct Csr<'k, V, I> {
    pub(super) offsets: Global<'k, I>,
    pub(super) columns: Global<'k, I>,
    pub(super) values: Global<'k, V>,
}

impl<'k, V: Element, I: Integer + ConvertTo<u64>> Csr<'k, V, I> {
    #[inline(always)]
    pub(super) fn rows(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Returns the beginning and the end of a row. A row that does not exist is empty.
    #[inline(always)]
    #[track_caller]
    pub(super) fn bounds(&self, row: usize) -> (usize, usize) {
        if row < self.rows() { bounds(self.offsets, row) } else { (0, 0) }
    }

    /// Returns the beginning of a row.
    #[inline(always)]
    #[track_caller]
    pub(super) fn begin(&self, row: usize) -> usize {
        self.offsets[row].convert() as usize
    }

    /// Returns the end of a row.
    #[inline(always)]
    #[track_caller]
    pub(super) fn end(&self, row: usize) -> usize {
        self.offsets[row + 1].convert() as usize
    }

    /// Returns the entries from `begin` to `end`, or none if `end` comes before `begin`. It faults unless they are inside.
    #[inline(always)]
    #[track_caller]
    pub(super) fn entries(&self, begin: usize, end: usize) -> Entries<'k, V, I> {
        Entries::of(self.columns, self.values, begin, end)
    }
}

/// Entries of a matrix, which are all inside.
pub(super) struct Entries<'k, V, I> {
    /// There are as many as there are values.
    columns: Global<'k, I>,
    values: Global<'k, V>,
}

impl<'k, V: Element, I: Integer + ConvertTo<u64>> Entries<'k, V, I> {
    /// Returns the entries from `begin` to `end`, or none if `end` comes before `begin`. It faults unless they are inside.
    #[inline(always)]
    #[track_caller]
    pub(super) fn of(columns: Global<'k, I>, values: Global<'k, V>, begin: usize, end: usize) -> Self {
        let end = end.max(begin);
        Self { columns: columns.slice(begin..end), values: values.slice(begin..end) }
    }

    #[inline(always)]
    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    /// Returns the contributions of the entries `first`, `first + step` and so on to their rows. There are `most` of them, a constant up to
    /// `N`. Where there is no entry, the contribution is the identity.
    ///
    /// There is no branch between the loads, or instead of them. All columns and values are in flight before one of them is used, and then
    /// all items of `x` are. Instead of an entry after the end, it reads the last entry again. A column outside, which another launch has
    /// written since the matrix was checked, counts as the last column.
    #[track_caller]
    pub(super) fn products<S, R, const N: usize>(
        &self,
        first: usize,
        step: usize,
        most: usize,
        x: Input<S>,
        op: &R,
    ) -> [R::Accum; N]
    where
        S: Source,
        R: Reduction<(V, S::Item)>,
    {
        let mut products = [op.identity(); N];
        let (Some(last), Some(last_column)) = (self.len().checked_sub(1), x.len().checked_sub(1)) else {
            return products;
        };
        // It has few bits, so each entry takes one comparison.
        let left = self.len().saturating_sub(first).min(N * step) as u32;
        let start = first.min(last);
        let place = |k: usize| start + ((k * step) as u32).min(left.saturating_sub(1)) as usize;
        let (mut columns, mut values) = ([0; N], [V::ZERO; N]);
        for (k, column) in columns.iter_mut().enumerate() {
            if k < most {
                // SAFETY: `start + left - 1` is an entry.
                *column = column_of(unsafe { self.columns.read_inside(place(k)) }, last_column);
            }
        }
        for (k, value) in values.iter_mut().enumerate() {
            if k < most {
                // SAFETY: as above.
                *value = unsafe { self.values.read_inside(place(k)) };
            }
        }
        for (k, product) in products.iter_mut().enumerate() {
            if k < most {
                // SAFETY: `columns[k]` is the last column at most.
                let [item] = unsafe { x.items_inside::<1>(columns[k]) };
                let found = op.pre((values[k], item), columns[k] as u64);
                // For a branch, the compiler would also make a branch around the loads.
                *product = select_unpredictable(((k * step) as u32) < left, found, op.identity());
            }
        }
        products
    }
}

/// Returns a column as an index, or the last column if it is outside.
#[inline(always)]
pub(super) fn column_of<I: Integer + ConvertTo<u64>>(column: I, last_column: usize) -> usize {
    let column = ConvertTo::<u64>::convert(column);
    // This has as few bits as an index.
    if const { size_of::<I>() <= 4 } {
        (column as u32).min(last_column.min(u32::MAX as usize) as u32) as usize
    } else {
        (column as usize).min(last_column)
    }
}

/// Returns the beginning and the end of a row.
#[inline(always)]
#[track_caller]
pub(super) fn bounds<I: Integer + ConvertTo<u64>>(offsets: Global<I>, row: usize) -> (usize, usize) {
    (offsets[row].convert() as usize, offsets[row + 1].convert() as usize)
}

/// Returns the value of a row that the epilogue reads. It is in `z`, or in `y` if `z` is empty. Returns zero if the epilogue reads nothing.
///
/// A kernel reads it before the entries, so that no result waits for it.
///
/// # Safety
/// No other thread of the launch accesses the row's element of `y`.
#[track_caller]
pub(super) unsafe fn read<A, E: Epilogue<A>>(
    y: &GlobalMut<<E as Epilogue<A>>::Output>,
    z: Global<<E as Epilogue<A>>::Output>,
    row: usize,
    epilogue: &E,
) -> <E as Epilogue<A>>::Output {
    if !epilogue.reads() {
        E::Output::ZERO
    } else if z.is_empty() {
        // SAFETY: the caller's contract.
        unsafe { y.read(row) }
    } else {
        z[row]
    }
}

/// Writes the result of a row to `y`. The value that the epilogue reads is in `z`, or in `y` if `z` is empty.
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
        let old = read::<A, E>(y, z, row, epilogue);
        y.write(row, epilogue.apply(total, old));
    }
}
