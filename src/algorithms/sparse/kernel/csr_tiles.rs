//! The kernel of products of a matrix in compressed rows and a vector by merge path, for rows of very different lengths.

use core::hint::select_unpredictable;

use kernel_primitives::functor::{Epilogue, Reduction};
use kernel_primitives::input::Source;
use kernel_primitives::prelude::*;
use kernel_primitives::simt::WARP;

use super::csr::{Csr, blocks, column_of};
use super::csr_path::{
    CSR_SPLIT_STEPS, CSR_TILE_THREADS, CsrStorage, ITEMS, csr_tile_steps, thread_items, tile_carveout,
};
use super::csr_vectors::Place;

/// The number of products of a row that a lane of [`csr_tiles`](struct@csr_tiles) reads at once.
const AT_ONCE: usize = 4;

/// The most products of a row that each of its lanes adds up. A warp adds up longer rows.
const BY_LANE: u32 = 32;

/// Returns the number of entries of a vector: as many as 16 bytes hold of values and of columns, at most `most`, a power of two.
const fn width<V, I>(most: usize) -> usize {
    let bytes = if size_of::<V>() > size_of::<I>() { size_of::<V>() } else { size_of::<I>() };
    let width = match bytes {
        0..=4 => 4,
        5..=8 => 2,
        _ => 1,
    };
    if width < most { width } else { most }
}

/// Returns the number of blocks of a multiprocessor that have registers at a time. There are fewer blocks if the values of an entry are wider.
const fn tile_blocks<V, T, I, A>() -> usize {
    let counts = [blocks::<V>(BLOCKS), blocks::<T>(BLOCKS), blocks::<I>(BLOCKS), blocks::<A>(BLOCKS)];
    let (mut least, mut at) = (counts[0], 1);
    while at < counts.len() {
        if counts[at] < least {
            least = counts[at];
        }
        at += 1;
    }
    least
}

/// The number of blocks by the width of one of these values.
const BLOCKS: [usize; 3] = [6, 4, 2];

// PTX: csr_tiles__f32_Span_f32_u32_PlusTimes_Axpby_f32 has 4 loads and 0 stores of 16 bytes.
// PTX: csr_tiles__f64_Span_f64_u32_PlusTimes_Axpby_f64 has 4 loads and 0 stores of 16 bytes.

/// A kernel of [`algorithms::spmv`](kernel_primitives::algorithms::spmv) by merge path. All blocks take the same number of steps. A step is
/// an entry or the end of a row. So rows of any lengths are balanced, and so are runs of empty rows.
///
/// 1. A thread reads the columns and values of its entries. It reads vectors if these are inside and aligned. Then it reads all the items
///    at these columns at once.
/// 2. The products go to shared memory. This is the only wait for the block.
/// 3. Neighbouring lanes add up the products of a row. Each of the tile's rows, including the row that continues after the tile, has the
///    same number of lanes: as many as there are. If a row has more than 32 products for each lane, its warp adds them up. If no row ends
///    in the tile, the block combines the products of its threads, instead of steps 2 and 3.
///
/// `splits` is from [`csr_splits`](struct@super::csr_path::csr_splits).
///
/// The results of rows that begin and end in the tile go to `y`. For a tile `t`, `partials[2 * t]` is the share of the row that began
/// before the tile and ends in it, or the identity if there is no such row. `partials[2 * t + 1]` is the share of the row that continues
/// after the tile. The value that the epilogue reads is in `z`, or in `y` if `z` is empty.
///
/// `x` has an item for each column of the matrix.
///
/// If another launch has changed rows or entries since the matrix was checked, results are wrong, but there is no access outside: every
/// place that could be outside is moved inside, without a branch.
///
/// To take few registers, the numbers of entries have 32 bits if indices have 32 bits, and other places are relative to the tile's first
/// one.
///
/// Merrill and Garland, *Merge-based parallel sparse matrix-vector multiplication*, 2016. For the sums from shared memory: Greathouse and
/// Daga, *Efficient sparse matrix-vector multiplication on GPUs using the CSR storage format*, 2014.
#[kernel(
    launch(pub(crate)),
    threads(CSR_TILE_THREADS),
    one_dimensional,
    min_blocks(tile_blocks::<V, S::Item, I, R::Accum>()),
    carveout(tile_carveout::<R::Accum>())
)]
#[allow(clippy::too_many_arguments, reason = "a kernel's parameters")]
pub fn csr_tiles<V, S, I, R, E>(
    cx: Block,
    offsets: Global<I>,
    columns: Global<I>,
    values: Global<V>,
    x: Input<S>,
    splits: Global<u64>,
    mut partials: GlobalMut<R::Accum>,
    z: Global<E::Output>,
    mut y: GlobalMut<E::Output>,
    op: R,
    epilogue: E,
    mut staged: Shared<CsrStorage<R::Accum>>,
    mut totals: Shared<ReduceStorage<R::Accum>>,
) where
    V: Element,
    S: Source,
    I: Integer + ConvertTo<u64>,
    R: Reduction<(V, S::Item)> + KernelParam,
    E: Epilogue<R::Output> + KernelParam,
{
    let a = Csr { offsets, columns, values };
    // A matrix without columns has no entries, and needs no item.
    cx.require_at_most(values.len().min(1), x.len());
    staged.enter();
    let staged = staged.array::<R::Accum>(0, const { CsrStorage::<R::Accum>::LEN });
    // This type has as many bits as the number of an entry.
    if const { size_of::<I>() <= 4 } {
        let Some(tile) = Tile::<V, I, u32>::of(cx, a, splits, const { thread_items::<R::Accum>() }) else { return };
        tile.rows(cx, x, (staged, &mut totals), &mut partials, z, &mut y, &op, &epilogue);
    } else {
        let Some(tile) = Tile::<V, I, usize>::of(cx, a, splits, const { thread_items::<R::Accum>() }) else { return };
        tile.rows(cx, x, (staged, &mut totals), &mut partials, z, &mut y, &op, &epilogue);
    }
}

/// A tile of the merge path, which is all inside. `P` is the type of the numbers of entries.
struct Tile<'k, V, I, P> {
    a: Csr<'k, V, I>,
    /// The number of the tile.
    number: usize,
    first_row: usize,
    /// The number of rows that end in the tile.
    rows: u32,
    first_entry: P,
    entries: u32,
}

/// The products by the places of their entries: `M` vectors of `N`.
type Products<A, const N: usize, const M: usize> = [[A; N]; M];

impl<'k, V, I, P> Tile<'k, V, I, P>
where
    V: Element,
    I: Integer + ConvertTo<u64>,
    P: Place,
{
    /// Returns the block's tile, which has `each` splits, or `None` if there are no splits.
    #[inline(always)]
    #[track_caller]
    fn of(cx: Block, a: Csr<'k, V, I>, splits: Global<'k, u64>, each: usize) -> Option<Self> {
        let number = cx.block_idx().x as usize;
        let last = splits.len().checked_sub(1)?;
        let (begin, end) = ((number * each).min(last), (number * each + each).min(last));
        // SAFETY: the last one at most.
        let (begin, end) = unsafe { (splits.read_inside(begin), splits.read_inside(end)) };
        let (all_rows, all_entries) = (a.rows(), P::of(a.columns.len()).min(P::of(a.values.len())));
        let steps = each * CSR_SPLIT_STEPS;
        let first = number * steps;
        // There are at most as many rows, and entries, as steps, whatever the offsets are.
        let steps = (all_rows + a.values.len()).saturating_sub(first).min(steps) as u32;
        let first_row = (begin as usize).min(all_rows);
        let rows = (end as usize).min(all_rows).saturating_sub(first_row).min(steps as usize) as u32;
        let first_entry = P::of(first.wrapping_sub(first_row)).min(all_entries);
        let left = all_entries.index() - first_entry.index();
        let entries = left.min((steps - rows) as usize) as u32;
        Some(Self { a, number, first_row, rows, first_entry, entries })
    }

    /// Returns the entry after the tile's last one.
    #[inline(always)]
    fn end(&self) -> P {
        self.first_entry.plus(self.entries)
    }

    /// Returns the beginning and the end in the matrix of a row of the tile. `row` counts from the tile's first row, and is at most
    /// `self.rows`.
    #[inline(always)]
    #[track_caller]
    fn bounds(&self, row: u32) -> (P, P) {
        let last = self.a.rows() - self.first_row;
        let next = (row as usize + 1).min(last);
        // SAFETY: there are so many rows at least, and the next one, or where the last one ends.
        let (begin, end) = unsafe {
            (
                self.a.offsets.read_inside(self.first_row + row as usize),
                self.a.offsets.read_inside(self.first_row + next),
            )
        };
        (P::of(begin.convert() as usize), P::of(end.convert() as usize))
    }

    /// Computes the rows of the tile.
    #[allow(clippy::too_many_arguments, reason = "a kernel's parameters")]
    #[inline(always)]
    #[track_caller]
    fn rows<S, R, E>(
        &self,
        cx: Block,
        x: Input<S>,
        shared: (SharedArray<'_, R::Accum>, &mut Shared<'_, ReduceStorage<R::Accum>>),
        partials: &mut GlobalMut<R::Accum>,
        z: Global<E::Output>,
        y: &mut GlobalMut<E::Output>,
        op: &R,
        epilogue: &E,
    ) where
        S: Source,
        R: Reduction<(V, S::Item)>,
        E: Epilogue<R::Output>,
    {
        match const { width::<V, I>(thread_items::<R::Accum>()) } {
            4 => self.rows_by::<S, R, E, 4, 2>(cx, x, shared, partials, z, y, op, epilogue),
            2 => self.rows_by::<S, R, E, 2, 4>(cx, x, shared, partials, z, y, op, epilogue),
            _ => self.rows_by::<S, R, E, 1, 8>(cx, x, shared, partials, z, y, op, epilogue),
        }
    }

    /// Works as [`rows`](Self::rows), with vectors of `N` entries.
    #[allow(clippy::too_many_arguments, reason = "a kernel's parameters")]
    #[inline(always)]
    #[track_caller]
    fn rows_by<S, R, E, const N: usize, const M: usize>(
        &self,
        cx: Block,
        x: Input<S>,
        (staged, totals): (SharedArray<'_, R::Accum>, &mut Shared<'_, ReduceStorage<R::Accum>>),
        partials: &mut GlobalMut<R::Accum>,
        z: Global<E::Output>,
        y: &mut GlobalMut<E::Output>,
        op: &R,
        epilogue: &E,
    ) where
        S: Source,
        R: Reduction<(V, S::Item)>,
        E: Epilogue<R::Output>,
    {
        const { assert!(N * M == ITEMS, "vectors have a thread's entries") };
        // Vectors that are wider than a thread's entries are compiled, too, but not used.
        const { assert!(Self::has_room::<R::Accum, N>(), "a tile has room") };
        let most = const { thread_items::<R::Accum>() / N };
        let thread = cx.thread_rank();
        // The number of lanes of a row is a power of two. It is the largest one for which there are lanes for all rows, including the row
        // that continues after the tile.
        let log = const { CSR_TILE_THREADS.trailing_zeros() }
            .saturating_sub(u32::BITS - self.rows.leading_zeros())
            .min(const { WARP.trailing_zeros() });
        let (mut row, part) = (thread >> log, thread & ((1 << log) - 1));

        // This is the number of entries before the tile in its first vector.
        let lead = (self.first_entry.index() % N) as u32;
        let first = self.first_entry.minus(lead);
        let len = lead + self.entries;
        let in_vectors = self.in_vectors::<N>(first, len);
        // This is in flight together with the entries.
        let mut bounds = self.bounds(row.min(self.rows));
        let mut found = [[op.identity(); N]; M];
        if in_vectors {
            found = self.products::<S, R, N, M>(cx, (first, len), most, x, op);
        } else {
            self.products_one_by_one::<S, R>(cx, (first, len), staged, x, op);
        }

        let (before, after) = (2 * self.number, 2 * self.number + 1);
        let has_partials = after < partials.len();
        if self.rows == 0 {
            if !in_vectors {
                cx.barrier();
                for (m, found) in found.iter_mut().enumerate() {
                    for (k, product) in found.iter_mut().enumerate() {
                        let place = (m * CSR_TILE_THREADS + thread as usize) * N + k;
                        if m < most && place < len as usize {
                            // SAFETY: one of the entries, written before the barrier, and not again.
                            *product = unsafe { staged.load(place) };
                        }
                    }
                }
            }
            let mut total = op.identity();
            for (m, found) in found.iter().enumerate() {
                for (k, &product) in found.iter().enumerate() {
                    if m < most {
                        let place = ((m * CSR_TILE_THREADS) as u32 + thread) * N as u32 + k as u32;
                        // For an entry before the tile, the difference is a large number.
                        let counts = place.wrapping_sub(lead) < self.entries;
                        total = op.combine(total, select_unpredictable(counts, product, op.identity()));
                    }
                }
            }
            if let Some(total) = block_reduce_to_first(cx, totals, total, op.reducer())
                && has_partials
            {
                // SAFETY: inside, and of the tile alone.
                unsafe {
                    partials.write_items_inside(before, &[op.identity()]);
                    partials.write_items_inside(after, &[total]);
                }
            }
            return;
        }
        if in_vectors {
            for (m, found) in found.iter().enumerate() {
                if m < most {
                    let place = (m * CSR_TILE_THREADS + thread as usize) * N;
                    // SAFETY: there is room for as many, a multiple of `N`; the thread's own until the barrier.
                    unsafe { staged.store_items::<N>(place, found) };
                }
            }
        }
        cx.barrier();

        // Returns the total of products from `begin` to `end` for lane `rank` of `lanes` lanes.
        let sum = |begin: u32, end: u32, rank: u32, lanes: u32| {
            let (mut total, mut at) = (op.identity(), begin + rank);
            while at < end {
                let mut products = [op.identity(); AT_ONCE];
                for (k, product) in products.iter_mut().enumerate() {
                    // Instead of a product after the end, this reads the last one again.
                    let place = (at + k as u32 * lanes).min(end - 1);
                    // SAFETY: an entry of the tile, written before the barrier unless a fault has ended the kernel, and not again.
                    *product = unsafe { staged.load(place as usize) };
                }
                for (k, &product) in products.iter().enumerate() {
                    let counts = k == 0 || at + (k as u32) * lanes < end;
                    total = op.combine(total, select_unpredictable(counts, product, op.identity()));
                }
                at += AT_ONCE as u32 * lanes;
            }
            total
        };
        let combined = |mut total: R::Accum, lanes: u32| {
            let mut apart = 1;
            while apart < lanes {
                total = op.combine(total, cx.shuffle_xor(FULL_MASK, total, apart, WARP));
                apart *= 2;
            }
            total
        };
        loop {
            // These are the entries of the row that are in the tile.
            let (begin, end) = bounds;
            let limit = if row < self.rows { end.min(self.end()) } else { self.end() };
            let place = |entry: P| (entry.max(self.first_entry).index() - first.index()) as u32;
            let (from, mut to) = (place(begin.min(self.end())), place(limit));
            if row > self.rows {
                to = from;
            }
            let goes_across = row == 0 && begin < self.first_entry;
            let at = self.first_row + row as usize;
            let writes = part == 0 && row < self.rows && !goes_across && at < y.len();
            let mut old = [E::Output::ZERO];
            if writes && epilogue.reads() {
                if z.is_empty() {
                    // SAFETY: inside; a row's end is one step of the path, and one lane has it.
                    old = unsafe { y.read_items_inside(at) };
                } else if at < z.len() {
                    // SAFETY: as just looked at.
                    old = unsafe { z.read_items_inside(at) };
                }
            }
            let longer = log < const { WARP.trailing_zeros() } && to.saturating_sub(from) > BY_LANE << log;
            let mut total = combined(sum(from, if longer { from } else { to }, part, 1 << log), 1 << log);
            let mut lanes = cx.ballot(FULL_MASK, longer && part == 0);
            while lanes != 0 {
                let lane = lanes.trailing_zeros();
                let from = cx.shuffle(FULL_MASK, from, lane, WARP);
                // If a fault has ended the lane, its values may be anything.
                let to = cx.shuffle(FULL_MASK, to, lane, WARP).min(len);
                let all = combined(sum(from, to, cx.lane(), WARP), WARP);
                total = select_unpredictable(cx.lane() == lane, all, total);
                lanes &= lanes - 1;
            }
            if writes {
                let count = end.index().saturating_sub(begin.index());
                let total = op.post(total, count as u64);
                // SAFETY: as above.
                unsafe { y.write_items_inside(at, &[epilogue.apply(total, old[0])]) };
            }
            if part == 0 && has_partials {
                // SAFETY: inside, and of the tile alone, of which one lane has a row.
                unsafe {
                    if row == 0 {
                        let total = select_unpredictable(goes_across, total, op.identity());
                        partials.write_items_inside(before, &[total]);
                    }
                    if row == self.rows {
                        partials.write_items_inside(after, &[total]);
                    }
                }
            }
            // The lanes of a warp stay together. If rows have several lanes each, all rows are done.
            row += CSR_TILE_THREADS as u32;
            if log > 0 || row - cx.lane() > self.rows {
                break;
            }
            bounds = self.bounds(row.min(self.rows));
        }
    }

    /// Returns whether a tile's products have room, including those of a vector that begins before it. Also true if a thread has no vectors
    /// of `N`.
    const fn has_room<A: Element, const N: usize>() -> bool {
        N > thread_items::<A>() || N - 1 + csr_tile_steps::<A>() <= CsrStorage::<A>::LEN
    }

    /// Returns whether the `len` entries from `first`, a multiple of `N`, can be read in vectors. The last vector may have entries after
    /// them.
    ///
    /// Vectors begin at multiples of `N` in the matrix, for any address in memory. So the order of combination depends only on the matrix.
    #[inline(always)]
    fn in_vectors<const N: usize>(&self, first: P, len: u32) -> bool {
        let ahead = self.a.columns.len().min(self.a.values.len()).saturating_sub(first.index());
        let all = self.a.columns.is_aligned::<N>(0) && self.a.values.is_aligned::<N>(0);
        all && len > 0 && len.next_multiple_of(N as u32) as usize <= ahead
    }

    /// Returns the products of a thread's entries, of the `len` entries from `first`. It reads `most` vectors, a constant up to `M`.
    /// Instead of a vector after the end, it reads the last one again.
    ///
    /// There is no branch between the loads. All columns and values are in flight before one of them is used, and then all items are. A
    /// column outside, which another launch has written since the matrix was checked, counts as the last column.
    #[inline(always)]
    #[track_caller]
    fn products<S, R, const N: usize, const M: usize>(
        &self,
        cx: Block,
        (first, len): (P, u32),
        most: usize,
        x: Input<S>,
        op: &R,
    ) -> Products<R::Accum, N, M>
    where
        S: Source,
        R: Reduction<(V, S::Item)>,
    {
        let last = len.div_ceil(N as u32) - 1;
        let entry = |m: usize| first.plus(((m * CSR_TILE_THREADS) as u32 + cx.thread_rank()).min(last) * N as u32);
        let (mut columns, mut values) = ([[I::ZERO; N]; M], [[V::ZERO; N]; M]);
        for (m, columns) in columns.iter_mut().enumerate() {
            if m < most {
                // SAFETY: one of the vectors, which lie inside and are aligned.
                *columns = unsafe { self.a.columns.read_vector_inside::<N>(entry(m).index()) };
            }
        }
        for (m, values) in values.iter_mut().enumerate() {
            if m < most {
                // SAFETY: as above.
                *values = unsafe { self.a.values.read_vector_inside::<N>(entry(m).index()) };
            }
        }
        // Otherwise, the loads of the values would come after the columns have arrived.
        cx.sync_warp(FULL_MASK);
        let last_column = x.len().saturating_sub(1);
        let mut products = [[op.identity(); N]; M];
        for (m, products) in products.iter_mut().enumerate() {
            for (k, product) in products.iter_mut().enumerate() {
                if m < most {
                    let column = column_of(columns[m][k], last_column);
                    // SAFETY: the last column at most. There is one if there is an entry.
                    let [item] = unsafe { x.items_inside::<1>(column) };
                    *product = op.pre((values[m][k], item), column as u64);
                }
            }
        }
        products
    }

    /// Puts the products of the `len` entries from `first` into shared memory.
    ///
    /// This is a loop of its own. For two branches with the same loads, the compiler makes loads of chosen addresses, which are not
    /// vectors.
    #[inline(always)]
    #[track_caller]
    fn products_one_by_one<S, R>(
        &self,
        cx: Block,
        (first, len): (P, u32),
        staged: SharedArray<'_, R::Accum>,
        x: Input<S>,
        op: &R,
    ) where
        S: Source,
        R: Reduction<(V, S::Item)>,
    {
        let last_column = x.len().saturating_sub(1);
        let mut at = cx.thread_rank();
        while at < len {
            let entry = first.plus(at).index();
            // SAFETY: an entry, and the last column at most, of which there is one. The place is the thread's own until the barrier.
            unsafe {
                let column = column_of(self.a.columns.read_inside(entry), last_column);
                let [item] = x.items_inside::<1>(column);
                staged.store(at as usize, op.pre((self.a.values.read_inside(entry), item), column as u64));
            }
            at += CSR_TILE_THREADS as u32;
        }
    }
}
