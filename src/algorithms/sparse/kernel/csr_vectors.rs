//! The kernel of products of a matrix in compressed rows and several vectors.

use core::hint::select_unpredictable;

use kernel_primitives::functor::{Epilogue, Reduction};
use kernel_primitives::input::Source;
use kernel_primitives::prelude::*;
use kernel_primitives::simt::FULL_MASK;

use super::csr::{CSR_THREADS, Csr, blocks, column_of};

/// The number of entries that a lane has in flight.
const AHEAD: usize = 4;

/// Returns the number of neighbouring vectors that a lane of [`csr_row_vectors`](struct@csr_row_vectors) has, if the number of vectors is a
/// multiple of it. It is the number of items `T` in 16 bytes, up to 4. It is one if results accumulate in more than 8 bytes, because few of
/// these fit in registers.
pub const fn csr_lane_vectors<T, A>() -> usize {
    match size_of::<T>() {
        _ if size_of::<A>() > 8 => 1,
        0..=4 => 4,
        5..=8 => 2,
        _ => 1,
    }
}

/// The lengths of a narrow matrix and of its vectors are below this number. Then places a few entries further also fit into 32 bits.
pub const CSR_NARROW: usize = u32::MAX as usize - AHEAD * 32;

/// The kernel of [`algorithms::spmm`](kernel_primitives::algorithms::spmm). `2^lanes` neighbouring lanes have a row. Of these, `2^parts`
/// neighbours have the same vectors, and take the entries in turn. The next lanes have the next vectors. Both are at most 5, and `parts` is
/// at most `lanes`.
///
/// A lane has one or two `groups` of [`csr_lane_vectors`] neighbouring vectors. It has one vector if `x` is not aligned for these groups,
/// or if the number of vectors is not a multiple. The distance to its second group is the number of vectors of all first groups. There may
/// be two groups only if each lane always has both. A pass is the vectors that all lanes have at a time. Neighbouring blocks have the
/// `passes` over the same rows.
///
/// The item of vector `v` at column `c`, up to `last_column`, is `x[c * vectors + v]`, and the result of row `r` is `y[r * vectors + v]`. A
/// lane reads the items of a group at once. Lanes of one part with neighbouring vectors read neighbouring items. All lanes of a part read
/// the same entries, which costs as much as one read. The values that the epilogue reads are in `z`, in the same places as in `y`, or in
/// `y` if `z` is empty.
///
/// If another launch has changed rows or entries since the matrix was checked, results are wrong, but there is no access outside.
///
/// If rows are short, the time depends on the number of instructions, and on how often a lane waits for memory. So numbers have 32 bits if
/// the matrix is `narrow` (1: all lengths except that of `z` are below [`CSR_NARROW`]). Every place that could be outside is moved inside,
/// without a branch. And the loop keeps little in registers or predicates. Otherwise the assembler would load the columns one after the
/// other.
#[kernel(launch(pub(crate)), threads(CSR_THREADS), one_dimensional, min_blocks(blocks::<R::Accum>([8, 8, 4])))]
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
    last_column: usize,
    lanes: u32,
    parts: u32,
    groups: u32,
    passes: u32,
    narrow: u32,
) where
    V: Element,
    S: Source,
    I: Integer + ConvertTo<u64>,
    R: Reduction<(V, S::Item)> + KernelParam,
    E: Epilogue<R::Output> + KernelParam,
{
    let a = Csr { offsets, columns, values };
    let shape = Shape { vectors, last_column, lanes, parts, groups, passes, narrow };
    let neighbours = const { csr_lane_vectors::<S::Item, R::Accum>() };
    let (two, four) = (x.is_aligned::<2>(0), x.is_aligned::<4>(0));
    // A branch that cannot be taken is not compiled.
    if neighbours == 4 && vectors.is_multiple_of(4) && four {
        // SAFETY: as just looked at.
        unsafe { places::<V, S, I, R, E, 4, 2>(cx, &a, x, z, &mut y, &op, &epilogue, shape) };
    } else if neighbours == 2 && vectors.is_multiple_of(2) && two {
        // SAFETY: as just looked at.
        unsafe { places::<V, S, I, R, E, 2, 2>(cx, &a, x, z, &mut y, &op, &epilogue, shape) };
    } else {
        // SAFETY: single items need no alignment.
        unsafe { places::<V, S, I, R, E, 1, 1>(cx, &a, x, z, &mut y, &op, &epilogue, shape) };
    }
}

/// The way in which lanes share rows and vectors.
#[derive(Clone, Copy)]
struct Shape {
    vectors: u32,
    last_column: usize,
    lanes: u32,
    parts: u32,
    groups: u32,
    passes: u32,
    narrow: u32,
}

/// The number of a row, an entry, an item or a column. It has no more bits than it needs.
pub(super) trait Place: Copy + Ord {
    /// Converts an index, and drops the bits that the type does not have.
    fn of(at: usize) -> Self;
    fn index(self) -> usize;
    fn plus(self, count: u32) -> Self;
    /// Subtracts `count`. The result is at least zero.
    fn minus(self, count: u32) -> Self;
    /// Returns the number of places from `first` up to, but not including, this one. It is at least zero.
    fn since(self, first: Self) -> Self;
    /// Returns `self * factor + more`, without the bits that the type does not have.
    fn times_plus(self, factor: u32, more: u32) -> Self;
    /// Returns whether the columns up to `self`, with `vectors` items each, are at most `len` items.
    fn fits(self, vectors: u32, len: usize) -> bool;
    /// Returns the same number. The compiler knows nothing about the result.
    fn opaque(self, cx: Block) -> Self;
}

impl Place for u32 {
    #[inline(always)]
    fn of(at: usize) -> Self {
        at as Self
    }
    #[inline(always)]
    fn index(self) -> usize {
        self as usize
    }
    #[inline(always)]
    fn plus(self, count: u32) -> Self {
        self + count
    }
    #[inline(always)]
    fn minus(self, count: u32) -> Self {
        self.saturating_sub(count)
    }
    #[inline(always)]
    fn since(self, first: Self) -> Self {
        self.saturating_sub(first)
    }
    #[inline(always)]
    fn times_plus(self, factor: u32, more: u32) -> Self {
        self.wrapping_mul(factor).wrapping_add(more)
    }
    #[inline(always)]
    fn fits(self, vectors: u32, len: usize) -> bool {
        u64::from(self) * u64::from(vectors) + u64::from(vectors) <= len as u64
    }
    #[inline(always)]
    fn opaque(self, cx: Block) -> Self {
        cx.opaque(self)
    }
}

impl Place for usize {
    #[inline(always)]
    fn of(at: usize) -> Self {
        at
    }
    #[inline(always)]
    fn index(self) -> usize {
        self
    }
    #[inline(always)]
    fn plus(self, count: u32) -> Self {
        self + count as usize
    }
    #[inline(always)]
    fn minus(self, count: u32) -> Self {
        self.saturating_sub(count as usize)
    }
    #[inline(always)]
    fn since(self, first: Self) -> Self {
        self.saturating_sub(first)
    }
    #[inline(always)]
    fn times_plus(self, factor: u32, more: u32) -> Self {
        self.wrapping_mul(factor as usize).wrapping_add(more as usize)
    }
    #[inline(always)]
    fn fits(self, vectors: u32, len: usize) -> bool {
        self.saturating_mul(vectors as usize).saturating_add(vectors as usize) <= len
    }
    #[inline(always)]
    fn opaque(self, cx: Block) -> Self {
        self + cx.opaque(0) as usize
    }
}

/// The kernel for lanes that have `N` neighbouring vectors at a time.
///
/// # Safety
/// `vectors` is a multiple of `N`, and `x` is aligned for vectors of `N` items unless `N` is 1. All lengths but that of `z` are below
/// [`CSR_NARROW`] if `shape.narrow` is 1; only then `shape.groups` may be 2.
#[allow(clippy::too_many_arguments, reason = "a kernel's parameters")]
#[inline(always)]
unsafe fn places<V, S, I, R, E, const N: usize, const MOST: usize>(
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
    let groups = if MOST == 2 && shape.groups == 2 && width::<N, 2>(shape).is_some() { 2 } else { 1 };
    // SAFETY: the caller's contract, and as just looked at.
    unsafe {
        match (groups, shape.narrow, shape.parts) {
            (2, 1, 0) => rows::<V, S, I, R, E, u32, N, MOST, true>(cx, a, x, z, y, op, epilogue, shape),
            (2, 1, _) => rows::<V, S, I, R, E, u32, N, MOST, false>(cx, a, x, z, y, op, epilogue, shape),
            (1, 1, 0) => rows::<V, S, I, R, E, u32, N, 1, true>(cx, a, x, z, y, op, epilogue, shape),
            (1, 1, _) => rows::<V, S, I, R, E, u32, N, 1, false>(cx, a, x, z, y, op, epilogue, shape),
            _ => rows::<V, S, I, R, E, usize, N, 1, false>(cx, a, x, z, y, op, epilogue, shape),
        }
    }
}

/// Returns the number of vectors that all lanes of a row have at a time, with `G` groups of `N` neighbouring vectors each. If there are
/// several groups, returns it only if all vectors are in whole passes.
#[inline(always)]
fn width<const N: usize, const G: usize>(shape: Shape) -> Option<u32> {
    let width = ((N * G) as u32) << (shape.lanes & 31).saturating_sub(shape.parts & 31);
    if G == 1 || shape.vectors & (width - 1) == 0 { Some(width) } else { None }
}

/// The kernel for lanes that have `N` neighbouring vectors at a time. With `ALONE`, a lane has all entries of the row.
///
/// # Safety
/// `vectors` is a multiple of `N`, and `x` is aligned for vectors of `N` items unless `N` is 1. Places `P` have room for all lengths but that of
/// `z`, and a few entries more.
#[allow(clippy::too_many_arguments, reason = "a kernel's parameters")]
#[inline(always)]
unsafe fn rows<V, S, I, R, E, P, const N: usize, const G: usize, const ALONE: bool>(
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
    P: Place,
{
    let Shape { vectors, .. } = shape;
    let (lanes, log) = (shape.lanes & 31, if ALONE { 0 } else { shape.parts & 31 });
    let (parts, thread) = (1 << log, cx.thread_rank());
    let (block, pass) = match (cx.block_idx().x, shape.passes) {
        (block, 0..=1) => (block, 0),
        (block, passes) => (block / passes, block % passes),
    };
    let row = P::of(block as usize).times_plus(CSR_THREADS as u32 >> lanes, thread >> lanes);
    let lane = thread & ((1 << lanes) - 1);
    let (own, part) = ((lane >> log) * N as u32, lane & (parts - 1));
    // These are the number of vectors that all lanes have at a time, and the distance between the groups of a lane.
    let Some(width) = width::<N, G>(shape) else { return };
    let apart = width / G as u32;
    let exists = row.plus(1) < P::of(a.offsets.len());
    let last = P::of(shape.last_column);
    let (mut begin, mut end) = (P::of(0), P::of(0));
    if exists {
        // SAFETY: both are offsets.
        let ends = unsafe { (a.offsets.read_inside(row.index()), a.offsets.read_inside(row.index() + 1)) };
        let entries = P::of(a.columns.len()).min(P::of(a.values.len()));
        let entries = if last.fits(vectors, x.len()) { entries } else { P::of(0) };
        // Wrong offsets are replaced by offsets that name entries.
        end = P::of((ends.1.convert()).min(entries.index() as u64) as usize);
        begin = P::of((ends.0.convert()).min(end.index() as u64) as usize);
    }
    let count = (end.index() - begin.index()) as u64;
    let items = Entries { a, x, vectors, apart, last, end };
    let mut first = pass.wrapping_mul(width);
    loop {
        // A lane without vectors follows the other lanes.
        let has = if G == 1 { own < vectors.saturating_sub(first) } else { first < vectors };
        let vector = if has {
            first + own
        } else if G == 1 {
            0
        } else {
            own
        };
        let mut totals = [[op.identity(); N]; G];
        let mut at = begin.plus(part);
        let whole = end.minus((AHEAD as u32 - 1) * parts);
        while at < whole {
            // Otherwise, each load of the loop would have a pointer of its own, which must be increased.
            let from = at.opaque(cx);
            // SAFETY: these are entries. `x` is as aligned as the caller says, and has an item of each vector for each column; a lane has `N` vectors from a multiple
            // of `N`.
            unsafe { items.add::<R, N, G, AHEAD, ALONE, false>(&mut totals, from, parts, vector, op) };
            at = at.plus(AHEAD as u32 * parts);
        }
        if at < end {
            // SAFETY: as above, and the first of these is an entry. After `AHEAD - 1` of them there is none.
            unsafe { items.add::<R, N, G, { AHEAD - 1 }, ALONE, true>(&mut totals, at, parts, vector, op) };
        }
        if !ALONE {
            let mut bit = 1;
            while bit < parts {
                for total in totals.as_flattened_mut() {
                    let other = cx.shuffle_xor(FULL_MASK, *total, bit, 32);
                    *total = if part & bit == 0 { op.combine(*total, other) } else { op.combine(other, *total) };
                }
                bit *= 2;
            }
        }
        let place = row.times_plus(vectors, vector);
        if part == 0 && has && exists && place < P::of(y.len()).minus((G as u32 - 1) * apart + N as u32 - 1) {
            let place = place.index();
            let mut results = [[E::Output::ZERO; N]; G];
            if epilogue.reads() {
                for (group, results) in results.iter_mut().enumerate() {
                    let place = place + group * apart as usize;
                    if z.is_empty() {
                        // SAFETY: one lane has the row, the vector and the first part.
                        *results = unsafe { y.read_items_inside(place) };
                    } else if place < z.len().saturating_sub(N - 1) {
                        // SAFETY: as just looked at.
                        *results = unsafe { z.read_items_inside(place) };
                    }
                }
                for (n, result) in results.as_flattened_mut().iter_mut().enumerate() {
                    *result = epilogue.apply(op.post(totals[n / N][n % N], count), *result);
                }
            } else {
                for (n, result) in results.as_flattened_mut().iter_mut().enumerate() {
                    *result = epilogue.apply(op.post(totals[n / N][n % N], count), E::Output::ZERO);
                }
            }
            for (group, results) in results.iter().enumerate() {
                // SAFETY: as above, and inside.
                unsafe { y.write_items_inside(place + group * apart as usize, results) };
            }
        }
        // The number of passes assumes that a lane has as many vectors as possible. A loop would keep values in registers that are needed
        // only at its end.
        let step = width.saturating_mul(shape.passes.max(1));
        if G > 1 || N == const { csr_lane_vectors::<S::Item, R::Accum>() } || vectors.saturating_sub(first) <= step {
            break;
        }
        first += step;
    }
}

/// The entries up to an end, and the items at their columns.
struct Entries<'a, 'k, V, I, S: Source, P> {
    a: &'a Csr<'k, V, I>,
    x: Input<'k, S>,
    vectors: u32,
    /// The distance from one group of neighbouring vectors to the next.
    apart: u32,
    /// The last column that all vectors have.
    last: P,
    end: P,
}

impl<V, I, S, P> Entries<'_, '_, V, I, S, P>
where
    V: Element,
    I: Integer + ConvertTo<u64>,
    S: Source,
    P: Place,
{
    /// Adds the contributions of the entries `at`, `at + step` and so on to `N` vectors from `vector`. There are `M` entries. With `TAIL`,
    /// entries that are not before the end contribute nothing.
    ///
    /// There is no branch between the loads. All columns and values are in flight before one of them is used, and then all items are. A
    /// column outside, which another launch has written since the matrix was checked, counts as the last column.
    ///
    /// # Safety
    /// `at` is before the end, which is inside, and without `TAIL` all of the entries are. `x` is aligned for vectors of `N` items unless `N` is 1, and has
    /// `(last + 1) * vectors` of them; `vector` and `vectors` are multiples of `N`, and `vector` is below `vectors`.
    #[inline(always)]
    #[track_caller]
    unsafe fn add<R, const N: usize, const G: usize, const M: usize, const ALONE: bool, const TAIL: bool>(
        &self,
        totals: &mut [[R::Accum; N]; G],
        at: P,
        step: u32,
        vector: u32,
        op: &R,
    ) where
        R: Reduction<(V, S::Item)>,
    {
        let place = |k: usize| {
            if TAIL {
                at.plus(k as u32 * step).min(self.end.minus(1)).index()
            } else if ALONE {
                at.index() + k
            } else {
                at.plus(k as u32 * step).index()
            }
        };
        let (mut columns, mut values) = ([0; M], [V::ZERO; M]);
        for (k, column) in columns.iter_mut().enumerate() {
            // SAFETY: an entry: by the caller's contract, or no later than the last one.
            *column = column_of(unsafe { self.a.columns.read_inside(place(k)) }, self.last.index());
        }
        for (k, value) in values.iter_mut().enumerate() {
            // SAFETY: as above.
            *value = unsafe { self.a.values.read_inside(place(k)) };
        }
        let mut products = [[[op.identity(); N]; G]; M];
        for (k, products) in products.iter_mut().enumerate() {
            let first = P::of(columns[k]).times_plus(self.vectors, vector);
            for (group, products) in products.iter_mut().enumerate() {
                let place = first.plus(group as u32 * self.apart).index();
                // A complex number need not be aligned for the one access that moves it.
                // SAFETY: the last column at most, and the caller's contract.
                let items =
                    unsafe { if N == 1 { self.x.items_inside::<N>(place) } else { self.x.vector_inside::<N>(place) } };
                for (n, product) in products.iter_mut().enumerate() {
                    *product = op.pre((values[k], items[n]), columns[k] as u64);
                }
            }
        }
        for (k, products) in products.iter().enumerate() {
            let counts = !TAIL || at.plus(k as u32 * step) < self.end;
            for (total, &product) in totals.as_flattened_mut().iter_mut().zip(products.as_flattened()) {
                // An operator may rely on it that no total has an entry twice, even if the total is not used.
                let product =
                    if TAIL && k > 0 { select_unpredictable(counts, product, op.identity()) } else { product };
                *total = op.combine(*total, product);
            }
        }
    }
}
