//! The kernel of products of a matrix in compressed rows and several vectors.

use core::hint::select_unpredictable;

use kernel_primitives::functor::{Epilogue, Reduction};
use kernel_primitives::input::Source;
use kernel_primitives::prelude::*;

use super::csr::{CSR_THREADS, Csr, Entries, blocks, column_of, read};

/// Entries that a lane has under way.
const AHEAD: usize = 4;

/// Neighbouring vectors that a lane of [`csr_row_vectors`](struct@csr_row_vectors) has, if their number is a multiple of that: as many as
/// 16 bytes hold items `T` of, up to 4. One if results accumulate in more than 8 bytes, of which few fit in registers.
pub const fn csr_lane_vectors<T, A>() -> usize {
    match size_of::<T>() {
        _ if size_of::<A>() > 8 => 1,
        0..=4 => 4,
        5..=8 => 2,
        _ => 1,
    }
}

/// The kernel of [`algorithms::spmm`](kernel_primitives::algorithms::spmm): so many neighbouring `lanes` have a row. `parts` of them, which
/// are neighbours, take turns by four entries for the same vectors, and the next ones have the next vectors: [`csr_lane_vectors`] of them or one. Both
/// are powers of two, up to 32.
///
/// The item of vector `v` at column `c` of `x_columns` is `x[c * vectors + v]`, and the result of row `r` is `y[r * vectors + v]`. A lane reads the items of its
/// vectors at once, and lanes of one part and neighbouring vectors read neighbouring items. All lanes of a part read the same entries, which
/// costs as much as one reading. What the epilogue reads is in `z`, which lies as `y` does, or in `y` if `z` is empty.
///
/// Rows and entries that another launch has changed since the matrix was checked are a fault, or wrong numbers, and no access
/// outside.
#[kernel(launch(pub(crate)), threads(CSR_THREADS), min_blocks(blocks::<R::Accum>([8, 8, 4])))]
#[allow(clippy::too_many_arguments, reason = "a kernel's parameters")]
pub fn csr_row_vectors<V, S, I, R, E>(
    cx: Block,
    offsets: Global<I>,
    columns: Global<I>,
    values: Global<V>,
    x: Input<S>,
    z: Global<E::Output>,
    mut y: GlobalMut<E::Output>,
    op: R,
    epilogue: E,
    vectors: u32,
    x_columns: usize,
    lanes: u32,
    parts: u32,
) where
    V: Element,
    S: Source,
    I: Integer + ConvertTo<u64>,
    R: Reduction<(V, S::Item)> + KernelParam,
    E: Epilogue<R::Output> + KernelParam,
{
    let a = Csr { offsets, columns, values };
    let shape = Shape { vectors, columns: x_columns, lanes, parts };
    let neighbours = const { csr_lane_vectors::<S::Item, R::Accum>() };
    let (two, four) = (x.is_aligned::<2>(0), x.is_aligned::<4>(0));
    // A branch that cannot be taken is not compiled.
    if neighbours == 4 && vectors.is_multiple_of(4) && four {
        // SAFETY: as just looked at.
        unsafe { rows::<V, S, I, R, E, 4>(cx, &a, x, z, &mut y, &op, &epilogue, shape) };
    } else if neighbours == 2 && vectors.is_multiple_of(2) && two {
        // SAFETY: as just looked at.
        unsafe { rows::<V, S, I, R, E, 2>(cx, &a, x, z, &mut y, &op, &epilogue, shape) };
    } else {
        // SAFETY: single items need no alignment.
        unsafe { rows::<V, S, I, R, E, 1>(cx, &a, x, z, &mut y, &op, &epilogue, shape) };
    }
}

/// How lanes share rows and vectors.
#[derive(Clone, Copy)]
struct Shape {
    vectors: u32,
    /// How many items each vector has.
    columns: usize,
    lanes: u32,
    parts: u32,
}

/// The kernel for lanes that have `N` neighbouring vectors at a time.
///
/// # Safety
/// `vectors` is a multiple of `N`, and `x` is aligned for vectors of `N` items unless `N` is 1.
#[allow(clippy::too_many_arguments, reason = "a kernel's parameters")]
unsafe fn rows<V, S, I, R, E, const N: usize>(
    cx: Block,
    a: &Csr<'_, V, I>,
    x: Input<S>,
    z: Global<E::Output>,
    y: &mut GlobalMut<E::Output>,
    op: &R,
    epilogue: &E,
    shape: Shape,
) where
    V: Element,
    S: Source,
    I: Integer + ConvertTo<u64>,
    R: Reduction<(V, S::Item)>,
    E: Epilogue<R::Output>,
{
    let Shape { vectors, columns, lanes, parts } = shape;
    let row = (cx.block_rank() * CSR_THREADS + cx.thread_rank() as usize) >> lanes.trailing_zeros();
    let lane = cx.lane() & (lanes - 1);
    let (own, part) = ((lane >> parts.trailing_zeros()) * N as u32, (lane & (parts - 1)) as usize);
    // What all lanes have at a time, and entries from one round of a part to its next.
    let (width, round) = ((lanes >> parts.trailing_zeros()) * N as u32, parts as usize * AHEAD);
    let (begin, end) = a.bounds(row);
    let entries = a.entries(begin, end);
    // Their number comes from the host, since a division takes longer than a row.
    let columns = if columns.saturating_mul(vectors as usize) <= x.len() { columns } else { 0 };
    let mut left = vectors;
    while left > 0 {
        let (has, vector) = (own < left, (vectors - left).saturating_add(own));
        let mut totals = [op.identity(); N];
        if columns > 0 {
            // A lane without vectors goes along with the others.
            let items = Items { x, vectors, vector: if has { vector } else { 0 }, last: columns - 1 };
            let mut at = part * AHEAD;
            while entries.len() >= AHEAD && at <= entries.len() - AHEAD {
                // SAFETY: these are entries. `x` is as aligned as the caller says, and has an item of each vector for each column; a lane has `N`
                // vectors from a multiple of `N`.
                unsafe { items.add::<V, I, R, N, false>(&mut totals, &entries, at, op) };
                at += round;
            }
            if at < entries.len() {
                // SAFETY: as above, and the first of these is an entry.
                unsafe { items.add::<V, I, R, N, true>(&mut totals, &entries, at, op) };
            }
        }
        for total in &mut totals {
            *total = warp_group_reduce(cx, *total, op.reducer(), parts);
        }
        if part == 0 && has && row < a.rows() {
            let place = row * vectors as usize + vector as usize;
            let mut results = [E::Output::ZERO; N];
            for (k, (result, &total)) in results.iter_mut().zip(&totals).enumerate() {
                // SAFETY: one lane has the row, the vector and the first part.
                let old = unsafe { read::<R::Output, E>(y, z, place + k, epilogue) };
                *result = epilogue.apply(op.post(total, entries.len() as u64), old);
            }
            // SAFETY: as above.
            unsafe { y.write_items(place, &results) };
        }
        left = left.saturating_sub(width);
    }
}

/// The items of some neighbouring vectors.
struct Items<'k, S: Source> {
    x: Input<'k, S>,
    vectors: u32,
    /// The first of the vectors.
    vector: u32,
    /// The last column that all vectors have.
    last: usize,
}

impl<S: Source> Items<'_, S> {
    /// Adds what the `AHEAD` entries from `at` contribute to `N` vectors. With `TAIL`, what is after the last entry counts for nothing.
    ///
    /// No branch lies between the loads: all columns and values are on their way before one of them is used, and so are then the items.
    /// A column outside, which another launch has written since the matrix was checked, counts as the last one.
    ///
    /// # Safety
    /// `at` is an entry, and without `TAIL` all of them are. `x` is aligned for vectors of `N` items unless `N` is 1, and has `(last + 1) * vectors` of them;
    /// `vector` and `vectors` are multiples of `N`, and `vector` is below `vectors`.
    #[inline(always)]
    #[track_caller]
    unsafe fn add<V, I, R, const N: usize, const TAIL: bool>(
        &self,
        totals: &mut [R::Accum; N],
        entries: &Entries<'_, V, I>,
        at: usize,
        op: &R,
    ) where
        V: Element,
        I: Integer + ConvertTo<u64>,
        R: Reduction<(V, S::Item)>,
    {
        let left = entries.len() - at;
        let place = |k: usize| if TAIL { at + k.min(left - 1) } else { at + k };
        let (mut columns, mut values) = ([0; AHEAD], [V::ZERO; AHEAD]);
        for (k, column) in columns.iter_mut().enumerate() {
            // SAFETY: an entry: by the caller's contract, or no later than the last one.
            *column = column_of(unsafe { entries.column_inside(place(k)) }, self.last);
        }
        for (k, value) in values.iter_mut().enumerate() {
            // SAFETY: as above.
            *value = unsafe { entries.value_inside(place(k)) };
        }
        let mut products = [[op.identity(); N]; AHEAD];
        for (k, products) in products.iter_mut().enumerate() {
            let place = columns[k] * self.vectors as usize + self.vector as usize;
            // A complex number need not be aligned for the one access that moves it.
            // SAFETY: the last column at most, and the caller's contract.
            let items =
                unsafe { if N == 1 { self.x.items_inside::<N>(place) } else { self.x.vector_inside::<N>(place) } };
            for (n, product) in products.iter_mut().enumerate() {
                *product = op.pre((values[k], items[n]), columns[k] as u64);
            }
        }
        for (n, total) in totals.iter_mut().enumerate() {
            for (k, products) in products.iter().enumerate() {
                let next = op.combine(*total, products[n]);
                *total = if TAIL { select_unpredictable(k < left, next, *total) } else { next };
            }
        }
    }
}
