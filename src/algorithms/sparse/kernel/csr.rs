//! The kernel of products of a matrix in compressed rows and a vector, for rows of similar lengths, few entries or many; and the views of a
//! matrix.

use core::hint::select_unpredictable;

use kernel_primitives::functor::{Epilogue, Reduction};
use kernel_primitives::input::Source;
use kernel_primitives::prelude::*;

/// Threads of a block of the kernels of products that read by rows.
pub const CSR_THREADS: usize = 128;

/// Entries that a lane of [`csr_rows`](struct@csr_rows) has under way.
const AHEAD: usize = 4;

/// The first entries of a row that a lane has to itself: those of a stencil in three dimensions, and one more.
pub const CSR_FIRST_ENTRIES: usize = 8;

/// Blocks of a multiprocessor at once for results that accumulate in `A`: of up to 4 bytes, of up to 8, and of more. The wider they are, the
/// more registers they take.
pub(super) const fn blocks<A>([narrow, middle, wide]: [usize; 3]) -> usize {
    match size_of::<A>() {
        0..=4 => narrow,
        5..=8 => middle,
        _ => wide,
    }
}

/// `most` entries under way, or half as many if results accumulate in more than 8 bytes.
pub(super) const fn ahead<A>(most: usize) -> usize {
    if size_of::<A>() <= 8 { most } else { most / 2 }
}

/// A kernel of [`algorithms::spmv`](kernel_primitives::algorithms::spmv): so many neighbouring `lanes`, 1, 8, 16 or 32, have a row.
///
/// A lane that has a row to itself reads its entries one after the other, and the lanes of a warp read rows that lie one after the other:
/// what one leaves of a line, the next ones find in the cache.
///
/// What the epilogue reads is in `z`, or in `y` if `z` is empty.
///
/// Rows and entries that another launch has changed since the matrix was checked are a fault, or wrong numbers, and no access
/// outside.
#[kernel(launch(pub(crate)), threads(CSR_THREADS), min_blocks(blocks::<R::Accum>([10, 8, 6])))]
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

/// The total of a row so far and of more products of it.
#[inline(always)]
pub(super) fn sum<T, R: Reduction<T>>(op: &R, total: R::Accum, products: &[R::Accum]) -> R::Accum {
    products.iter().fold(total, |total, &product| op.combine(total, product))
}

/// A matrix in compressed rows: all accesses are checked.
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

    /// Where a row begins and ends; an empty one if it does not exist.
    #[inline(always)]
    #[track_caller]
    pub(super) fn bounds(&self, row: usize) -> (usize, usize) {
        if row < self.rows() { bounds(self.offsets, row) } else { (0, 0) }
    }

    /// Where a row begins.
    #[inline(always)]
    #[track_caller]
    pub(super) fn begin(&self, row: usize) -> usize {
        self.offsets[row].convert() as usize
    }

    /// Where a row ends.
    #[inline(always)]
    #[track_caller]
    pub(super) fn end(&self, row: usize) -> usize {
        self.offsets[row + 1].convert() as usize
    }

    /// The entries from `begin` to `end`, none if that comes before; a fault unless they lie inside.
    #[inline(always)]
    #[track_caller]
    pub(super) fn entries(&self, begin: usize, end: usize) -> Entries<'k, V, I> {
        Entries::of(self.columns, self.values, begin, end)
    }
}

/// Entries of a matrix, all of which lie inside.
pub(super) struct Entries<'k, V, I> {
    /// As many as there are values.
    columns: Global<'k, I>,
    values: Global<'k, V>,
}

impl<'k, V: Element, I: Integer + ConvertTo<u64>> Entries<'k, V, I> {
    /// The entries from `begin` to `end`, none if that comes before; a fault unless they lie inside.
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

    /// What the entries `first`, `first + step` and so on contribute to their rows: `most` of them, a constant up to `N`. It is the identity
    /// where there is no entry.
    ///
    /// No branch lies between the loads, or in place of them. All columns and values are on their way before one of them is used, and so are
    /// then the items of `x`. Instead of an entry after the end, the last one is read again. A column outside, which another launch has
    /// written since the matrix was checked, counts as the last one.
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
        // Few bits, so that each entry costs one comparison.
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
                // Of a branch the compiler would make one around the loads, too.
                *product = select_unpredictable(((k * step) as u32) < left, found, op.identity());
            }
        }
        products
    }
}

/// A column as an index, the last one if it is outside.
#[inline(always)]
pub(super) fn column_of<I: Integer + ConvertTo<u64>>(column: I, last_column: usize) -> usize {
    let column = ConvertTo::<u64>::convert(column);
    // By as few bits as an index has.
    if const { size_of::<I>() <= 4 } {
        (column as u32).min(last_column.min(u32::MAX as usize) as u32) as usize
    } else {
        (column as usize).min(last_column)
    }
}

/// Where a row begins and ends.
#[inline(always)]
#[track_caller]
pub(super) fn bounds<I: Integer + ConvertTo<u64>>(offsets: Global<I>, row: usize) -> (usize, usize) {
    (offsets[row].convert() as usize, offsets[row + 1].convert() as usize)
}

/// What the epilogue reads of a row: in `z`, or in `y` if `z` is empty. Zero if it reads nothing.
///
/// A kernel asks for it before the entries, so that no result waits for it.
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
        let old = read::<A, E>(y, z, row, epilogue);
        y.write(row, epilogue.apply(total, old));
    }
}
