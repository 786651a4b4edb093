//! The kernels of matrices in slices (SELL-C-σ).

use core::hint::select_unpredictable;

use kernel_primitives::functor::{Epilogue, Reduction};
use kernel_primitives::input::Source;
use kernel_primitives::prelude::*;
use kernel_primitives::simt::{FULL_MASK, WARP};

use super::csr::{CSR_THREADS, ahead, blocks, bounds, column_of};
use super::csr_build::CSR_BUILD_THREADS;
use super::csr_vectors::Place;

/// The number of rows of a slice. Each lane of a warp has one row.
pub const SELL_ROWS: usize = WARP as usize;

/// A bit in the number of a slice's beginning. It says that all rows of the slice have as many entries as the slice has room for.
const SELL_EVEN: u64 = 1;

/// The other bits of that number, which are the first slot.
pub const SELL_BEGIN: u64 = !(SELL_ROWS as u64 - 1);

/// The number of entries that a lane of [`sell_rows`](struct@sell_rows) has in flight. It is half of this if results accumulate in more
/// than 8 bytes.
const AHEAD: usize = 8;

/// The number of entries of a short last round.
const FEW: usize = AHEAD / 2;

/// Makes keys by which rows sort by their windows, and by descending lengths in a window. A key has the window, and in the lower `bits` the
/// difference between `longest` and the length of the row. `rows` are the numbers of the rows. Each thread has one row.
#[kernel(launch(pub(crate)), threads(CSR_BUILD_THREADS), one_dimensional)]
pub fn sell_keys<I>(
    cx: Block,
    offsets: Global<I>,
    window: u64,
    longest: u64,
    bits: u32,
    mut keys: GlobalMut<u64>,
    mut rows: GlobalMut<I>,
) where
    I: Integer + ConvertTo<u64>,
    u64: ConvertTo<I>,
{
    for item in cx.items(keys.len()) {
        let row = item.index();
        keys.set(item, ((row as u64 / window.max(1)) << bits) | longest.saturating_sub(length(offsets, row)));
        rows.set(item, (row as u64).convert());
    }
}

/// Writes the number of slots of each slice. All rows of a slice have as many slots as its longest row has entries. After the last slice,
/// it writes 0. Each thread has one slice.
///
/// Rows are as in [`sell_fill`](struct@sell_fill). In `order`, the first row of a slice is the longest.
#[kernel(launch(pub(crate)), threads(CSR_BUILD_THREADS), one_dimensional)]
pub fn sell_slots<I>(cx: Block, offsets: Global<I>, order: Global<I>, mut slots: GlobalMut<u64>)
where
    I: Integer + ConvertTo<u64>,
{
    let rows = offsets.len() - 1;
    for item in cx.items(slots.len()) {
        let first = item.index() * SELL_ROWS;
        let mut longest = 0;
        if first < order.len() {
            longest = length(offsets, number(order[first]));
        } else if order.is_empty() && first < rows {
            let mut begin = number(offsets[first]);
            for row in first..(first + SELL_ROWS).min(rows) {
                let end = number(offsets[row + 1]);
                longest = longest.max(end.saturating_sub(begin) as u64);
                begin = end;
            }
        }
        slots.set(item, longest.saturating_mul(SELL_ROWS as u64));
    }
}

/// Returns the number of entries of a row.
#[inline(always)]
#[track_caller]
fn length<I: Integer + ConvertTo<u64>>(offsets: Global<I>, row: usize) -> u64 {
    let (begin, end) = bounds(offsets, row);
    end.saturating_sub(begin) as u64
}

/// Returns an index of the matrix's type as an index of memory.
#[inline(always)]
fn number<I: Integer + ConvertTo<u64>>(index: I) -> usize {
    ConvertTo::<u64>::convert(index) as usize
}

/// Writes the columns of each slice, entry by entry of its rows, and the numbers of these entries in the matrix. A slot after the last
/// entry of a row has this entry again, or the first entry of the matrix if the row has no entries. Each warp has one slice.
///
/// `order` has the row of each place, or is empty if each place is its own row. `lengths` has the number of entries of the row of each
/// place, and `begins` has the beginning of each slice, as [`sell_rows`](struct@sell_rows) reads them.
#[kernel(launch(pub(crate)), threads(CSR_BUILD_THREADS), one_dimensional)]
#[allow(clippy::too_many_arguments, reason = "a kernel's parameters")]
pub fn sell_fill<I>(
    cx: Block,
    offsets: Global<I>,
    indices: Global<I>,
    order: Global<I>,
    slices: Global<u64>,
    mut begins: GlobalMut<u64>,
    mut lengths: GlobalMut<I>,
    mut columns: GlobalMut<I>,
    mut entries: GlobalMut<I>,
) where
    I: Integer + ConvertTo<u64>,
    u64: ConvertTo<I>,
{
    let place = cx.block_rank() * CSR_BUILD_THREADS + cx.thread_rank() as usize;
    let (slice, lane) = (place / SELL_ROWS, place % SELL_ROWS);
    if place == 0 {
        let last = slices.len() - 1;
        // SAFETY: one thread has the end of the last slice.
        unsafe { begins.write(last, slices[last]) };
    }
    if slice + 1 >= slices.len() {
        return;
    }
    let (first, end) = (slices[slice] as usize, slices[slice + 1] as usize);
    let most = end.saturating_sub(first) / SELL_ROWS;
    let (mut begin, mut count) = (0, 0);
    if place < lengths.len() {
        let row = if order.is_empty() { place } else { number(order[place]) };
        begin = number(offsets[row]);
        // There are at most as many as the slice has room for, even if the offsets were changed after its rows were measured.
        count = (length(offsets, row) as usize).min(most);
        // SAFETY: the thread's own element.
        unsafe { lengths.write(place, (count as u64).convert()) };
    }
    let is_even = cx.ballot(FULL_MASK, count == most || place >= lengths.len()) == FULL_MASK;
    if lane == 0 {
        // SAFETY: one lane has the slice.
        unsafe { begins.write(slice, first as u64 | if is_even { SELL_EVEN } else { 0 }) };
    }
    let last = if count > 0 { begin + (count - 1) } else { 0 };
    let (mut slot, mut entry) = (first + lane, begin.min(last));
    while slot < end {
        // SAFETY: a slot is of one slice and one lane.
        unsafe {
            columns.write(slot, indices[entry]);
            entries.write(slot, (entry as u64).convert());
        }
        (slot, entry) = (slot + SELL_ROWS, (entry + 1).min(last));
    }
}

/// The kernel of [`algorithms::spmv`](kernel_primitives::algorithms::spmv) for a matrix in slices. A warp has a slice, and each lane has
/// one of its rows. The entry `k` of the row in lane `l` is at `slices[slice] + k * 32 + l`, so that a warp reads neighbouring entries.
///
/// A slice begins at a multiple of 32. So the number of its beginning has room for `SELL_EVEN`. If this is set, all rows of the slice have
/// as many entries as the slice has room for. Otherwise `lengths` has the number of entries of the row of each place. `order` has the row
/// of each place, once, or is empty if each place is its own row. The value that the epilogue reads is in `z`, or in `y` if `z` is empty.
///
/// The time depends on how often a lane waits for memory, and on the bytes that it reads. So the number of a row and the place of its slice
/// are in flight at once. Then its length, if it may differ from others, is in flight together with the first entries, which do not wait
/// for it: slots after the last entry of a row also have entries, which count for nothing. Values that even slices in the order of the
/// matrix do not need are not read. The numbers of slots have 32 bits if indices have 32 bits, and every place that could be outside is
/// moved inside, without a branch.
///
/// Kreutzer, Hager, Wellein, Fehske and Bishop, *A unified sparse matrix data format for efficient general sparse matrix-vector
/// multiplication on modern processors with wide SIMD units*, 2014.
#[kernel(launch(pub(crate)), threads(CSR_THREADS), one_dimensional, min_blocks(blocks::<R::Accum>([12, 10, 4])))]
#[allow(clippy::too_many_arguments, reason = "a kernel's parameters")]
pub fn sell_rows<V, S, I, R, E>(
    cx: Block,
    slices: Global<u64>,
    order: Global<I>,
    lengths: Global<I>,
    columns: Global<I>,
    values: Global<V>,
    x: Input<S>,
    z: Global<E::Output>,
    mut y: GlobalMut<E::Output>,
    op: R,
    epilogue: E,
) where
    V: Element,
    S: Source,
    I: Integer + ConvertTo<u64>,
    R: Reduction<(V, S::Item)> + KernelParam,
    E: Epilogue<R::Output> + KernelParam,
{
    let a = Slices { slices, order, lengths, columns, values };
    // This type has as many bits as the number of a slot.
    if const { size_of::<I>() <= 4 } {
        a.product::<u32, S, R, E>(cx, x, z, &mut y, &op, &epilogue);
    } else {
        a.product::<usize, S, R, E>(cx, x, z, &mut y, &op, &epilogue);
    }
}

/// A matrix in slices.
struct Slices<'k, V, I> {
    slices: Global<'k, u64>,
    order: Global<'k, I>,
    lengths: Global<'k, I>,
    columns: Global<'k, I>,
    values: Global<'k, V>,
}

impl<V: Element, I: Integer + ConvertTo<u64>> Slices<'_, V, I> {
    /// Computes the row of a thread. `P` is the type of the numbers of slots.
    #[inline(always)]
    #[track_caller]
    fn product<P, S, R, E>(
        &self,
        cx: Block,
        x: Input<S>,
        z: Global<E::Output>,
        y: &mut GlobalMut<E::Output>,
        op: &R,
        epilogue: &E,
    ) where
        P: Place,
        S: Source,
        R: Reduction<(V, S::Item)>,
        E: Epilogue<R::Output>,
    {
        let (block, thread) = (P::of(cx.block_rank()), cx.thread_rank());
        let place = block.times_plus(CSR_THREADS as u32, thread).index();
        let slice = block.times_plus((CSR_THREADS / SELL_ROWS) as u32, thread / WARP).index();
        if place >= self.lengths.len() || slice + 1 >= self.slices.len() {
            return;
        }
        let mut row = P::of(place);
        if place < self.order.len() {
            // SAFETY: as just looked at.
            row = P::of(number(unsafe { self.order.read_inside(place) }));
        }
        // SAFETY: as looked at first.
        let (begin, end) = unsafe { (self.slices.read_inside(slice), self.slices.read_inside(slice + 1)) };
        // If `x` has no items, there are no entries.
        let slots = if x.is_empty() { 0 } else { self.columns.len().min(self.values.len()) };
        let is_even = begin & SELL_EVEN != 0;
        let end = P::of((end & SELL_BEGIN) as usize).min(P::of(slots));
        let begin = P::of((begin & SELL_BEGIN) as usize).min(end);
        let room = P::of(end.since(begin).index() / SELL_ROWS);
        let mut count = room;
        if !is_even {
            // SAFETY: inside, as looked at first.
            count = P::of(number(unsafe { self.lengths.read_inside(place) }));
        }
        let mut at = begin.times_plus(1, thread % WARP);
        let last = P::of(at.index() + room.minus(1).index() * SELL_ROWS);
        let mut old = E::Output::ZERO;
        if epilogue.reads() {
            let row = row.index();
            if !z.is_empty() {
                if row < z.len() {
                    // SAFETY: as just looked at.
                    old = unsafe { z.read_inside(row) };
                }
            } else if row < y.len() {
                // SAFETY: as just looked at, and each row has one place.
                [old] = unsafe { y.read_items_inside(row) };
            }
        }
        let lane = Lane { last, room, count };
        let mut total = op.identity();
        // All slots of the slice have entries, so the first loads need not wait for the length of the row.
        let (mut done, mut most) = (P::of(0), room);
        // SAFETY: slots from `at` are those from entry `done`, and the lane has room for `most` of them.
        unsafe {
            if const { ahead::<R::Accum>(AHEAD) == AHEAD } {
                while most >= P::of(AHEAD) {
                    total = self.add::<P, S, R, AHEAD, AHEAD>(cx, total, at, done, &lane, x, op);
                    (at, done) = (at.times_plus(1, (AHEAD * SELL_ROWS) as u32), done.plus(AHEAD as u32));
                    most = lane.left(done);
                }
                if most > P::of(FEW) {
                    total = self.add::<P, S, R, { AHEAD - 1 }, { FEW + 1 }>(cx, total, at, done, &lane, x, op);
                    most = P::of(0);
                }
            } else {
                while most >= P::of(FEW) {
                    total = self.add::<P, S, R, FEW, FEW>(cx, total, at, done, &lane, x, op);
                    (at, done) = (at.times_plus(1, (FEW * SELL_ROWS) as u32), done.plus(FEW as u32));
                    most = lane.left(done);
                }
            }
            if most > P::of(0) {
                // This is opaque. Otherwise the compiler would first load what both branches have in common, and wait for it.
                let at = at.opaque(cx);
                total = self.add::<P, S, R, FEW, 1>(cx, total, at, done, &lane, x, op);
            }
        }
        // This is opaque. Otherwise the row would be compared where it is read, and would be waited for there.
        let row = row.opaque(cx).index();
        if row < y.len() {
            // SAFETY: as just looked at, and each row has one place.
            unsafe { y.write_items_inside(row, &[epilogue.apply(op.post(total, count.index() as u64), old)]) };
        }
    }

    /// Adds the contributions of the entries from `done` to the total. They are in the slots from `at`. There are `N` of them, as far as
    /// the row has as many.
    ///
    /// There is no branch between the loads. All columns are in flight before one of them is used, with as many values as the assembler has
    /// registers for. Then the items and the other values follow. Instead of a slot after the last one, it reads the last slot again. A
    /// column outside counts as the last column.
    ///
    /// # Safety
    /// The first `ROOM` of these slots are the lane's, and inside, and so is its last one; and `x` has an item.
    #[inline(always)]
    #[track_caller]
    #[allow(clippy::too_many_arguments, reason = "what all rounds have in common, and where they are")]
    unsafe fn add<P, S, R, const N: usize, const ROOM: usize>(
        &self,
        cx: Block,
        mut total: R::Accum,
        at: P,
        done: P,
        lane: &Lane<P>,
        x: Input<S>,
        op: &R,
    ) -> R::Accum
    where
        P: Place,
        S: Source,
        R: Reduction<(V, S::Item)>,
    {
        let last_column = x.len() - 1;
        let slot = |k: usize| {
            if k < ROOM {
                at.index() + k * SELL_ROWS
            } else {
                // A place with too many bits becomes a smaller number, which is inside, too.
                at.times_plus(1, (k * SELL_ROWS) as u32).min(lane.last).index()
            }
        };
        let (mut columns, mut values) = ([I::ZERO; N], [V::ZERO; N]);
        for (k, column) in columns.iter_mut().enumerate() {
            // SAFETY: the caller's contract, or the last slot at most.
            *column = unsafe { self.columns.read_inside(slot(k)) };
        }
        for (k, value) in values.iter_mut().enumerate() {
            // SAFETY: as above.
            *value = unsafe { self.values.read_inside(slot(k)) };
        }
        let mut products = [op.identity(); N];
        for (k, product) in products.iter_mut().enumerate() {
            let column = column_of(columns[k], last_column);
            // SAFETY: the last column at most.
            let [item] = unsafe { x.items_inside::<1>(column) };
            *product = op.pre((values[k], item), column as u64);
        }
        // This is opaque. Otherwise the compiler would count down from the number of entries, and wait for it before the loads.
        let left = lane.count.since(done.opaque(cx));
        for (k, &product) in products.iter().enumerate() {
            // For a branch, the compiler would also make a branch around the loads.
            let product = select_unpredictable(left > P::of(k), product, op.identity());
            total = op.combine(total, product);
        }
        total
    }
}

/// The row of a lane in its slice.
struct Lane<P> {
    /// The last slot of the lane, if it has any slots.
    last: P,
    /// The number of slots of the lane.
    room: P,
    /// The number of entries of the row, which may still be in flight.
    count: P,
}

impl<P: Place> Lane<P> {
    /// Returns the number of entries of the row from entry `done`, as far as there is room.
    #[inline(always)]
    fn left(&self, done: P) -> P {
        self.count.since(done).min(self.room.since(done))
    }
}
