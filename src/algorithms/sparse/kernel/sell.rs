//! The kernels of matrices in slices: SELL-C-σ.

use core::hint::select_unpredictable;

use kernel_primitives::functor::{Epilogue, Reduction};
use kernel_primitives::input::Source;
use kernel_primitives::prelude::*;
use kernel_primitives::simt::{FULL_MASK, WARP};

use super::csr::{CSR_THREADS, ahead, blocks, bounds, column_of};
use super::csr_build::CSR_BUILD_THREADS;
use super::csr_vectors::Place;

/// Rows of a slice: a warp's lanes have one each.
pub const SELL_ROWS: usize = WARP as usize;

/// In the number of where a slice begins: all of its rows have as many entries as it has room for.
const SELL_EVEN: u64 = 1;

/// The rest of that number: the first slot.
pub const SELL_BEGIN: u64 = !(SELL_ROWS as u64 - 1);

/// Entries that a lane of [`sell_rows`](struct@sell_rows) has under way; half as many if results accumulate in more than 8 bytes.
const AHEAD: usize = 8;

/// Entries of a last round that is short.
const FEW: usize = AHEAD / 2;

/// Makes keys by which rows sort by their windows, and in a window by descending lengths: the window, and in the lower `bits` how much
/// shorter than `longest` a row is. `rows` are their numbers. A thread a row.
#[kernel(launch(pub(crate)), threads(CSR_BUILD_THREADS))]
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

/// Writes the slots of each slice, those of the longest of its rows for all of them, and 0 after the last slice. A thread a slice.
///
/// Rows are as in [`sell_fill`](struct@sell_fill); in `order`, the first of a slice is the longest.
#[kernel(launch(pub(crate)), threads(CSR_BUILD_THREADS))]
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

/// The entries of a row.
#[inline(always)]
#[track_caller]
fn length<I: Integer + ConvertTo<u64>>(offsets: Global<I>, row: usize) -> u64 {
    let (begin, end) = bounds(offsets, row);
    end.saturating_sub(begin) as u64
}

/// An index of the matrix's type, as one of memory.
#[inline(always)]
fn number<I: Integer + ConvertTo<u64>>(index: I) -> usize {
    ConvertTo::<u64>::convert(index) as usize
}

/// Writes the columns of each slice, entry by entry of its rows, and which of the matrix's entries they are. A slot after a row's last entry
/// has that again, or the matrix's first one if the row has none. A warp a slice.
///
/// `order` has the row of each place, or nothing if each place is its own row. `lengths` is how many entries the row of each place has, and
/// `begins` where each slice begins, as [`sell_rows`](struct@sell_rows) reads them.
#[kernel(launch(pub(crate)), threads(CSR_BUILD_THREADS))]
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
        // No more than the slice has room for, also if the offsets were changed since its rows were measured.
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

/// The kernel of [`algorithms::spmv`](kernel_primitives::algorithms::spmv) for a matrix in slices: a warp has a slice, and a lane one of
/// its rows. The entry `k` of the row in lane `l` is at `slices[slice] + k * 32 + l`, so that a warp reads neighbouring ones.
///
/// A slice begins at a multiple of 32. So its number has room for `SELL_EVEN`: if that is set, all of its rows have as many entries as the slice
/// has room for. Otherwise `lengths` has how many the row of each place has. `order` has the row of each place, once, or nothing if
/// each place is its own row. What the epilogue reads is in `z`, or in `y` if `z` is empty.
///
/// What takes the time is how often a lane waits for memory, and how many bytes it reads. So a row's number and where its slice lies are on their
/// way at once; then its length, if it differs from others, with the first entries, which do not wait for it: slots after a
/// row's last entry have entries, too, which count for nothing. What even slices in the matrix's order do not need is not read. Slots have
/// numbers of 32 bits where indices have as many, and what could lead outside is made to lie inside, without a branch.
///
/// Kreutzer, Hager, Wellein, Fehske and Bishop, *A unified sparse matrix data format for efficient general sparse matrix-vector
/// multiplication on modern processors with wide SIMD units*, 2014.
#[kernel(launch(pub(crate)), threads(CSR_THREADS), min_blocks(blocks::<R::Accum>([12, 10, 4])))]
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
    // As many bits as the number of a slot can have.
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
    /// The row of a thread, slots being counted by `P`.
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
        // Without items of `x` there are no entries.
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
        // The slice has an entry for all of its slots: the first ones need not wait for how many are the row's.
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
                // Of what is not opaque the compiler would ask first for what both ways have in common, and wait for it.
                let at = at.opaque(cx);
                total = self.add::<P, S, R, FEW, 1>(cx, total, at, done, &lane, x, op);
            }
        }
        // Opaque, or the row would be compared, and waited for, where it is read.
        let row = row.opaque(cx).index();
        if row < y.len() {
            // SAFETY: as just looked at, and each row has one place.
            unsafe { y.write_items_inside(row, &[epilogue.apply(op.post(total, count.index() as u64), old)]) };
        }
    }

    /// The total and what the entries from `done` contribute, which are in the slots from `at`: `N` of them, as far as the row has so many.
    ///
    /// No branch lies between the loads: all columns are on their way before one of them is used, with as many values as the assembler has
    /// registers for; then the items and the rest. Instead of a slot after the last one, that is read again. A column outside counts as the
    /// last one.
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
                // What has too many bits becomes a smaller number, which is inside, too.
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
        // Opaque, or the compiler would count down from how many entries there are, and wait for that before the loads.
        let left = lane.count.since(done.opaque(cx));
        for (k, &product) in products.iter().enumerate() {
            // Of a branch the compiler would make one around the loads, too.
            let product = select_unpredictable(left > P::of(k), product, op.identity());
            total = op.combine(total, product);
        }
        total
    }
}

/// A lane's row in its slice.
struct Lane<P> {
    /// The last slot that the lane has room for, if it has any.
    last: P,
    /// How many slots it has.
    room: P,
    /// How many entries the row has, which may still be on its way.
    count: P,
}

impl<P: Place> Lane<P> {
    /// How many entries the row has from entry `done`, as far as there is room.
    #[inline(always)]
    fn left(&self, done: P) -> P {
        self.count.since(done).min(self.room.since(done))
    }
}
