//! The kernels of matrices in slices: SELL-C-σ.

use kernel_primitives::functor::{Epilogue, Reduction};
use kernel_primitives::input::Source;
use kernel_primitives::prelude::*;
use kernel_primitives::simt::WARP;

use super::csr::{CSR_THREADS, Entries, ahead, blocks, bounds, read, sum};
use super::csr_build::CSR_BUILD_THREADS;

/// Rows of a slice: a warp's lanes have one each.
pub const SELL_ROWS: usize = WARP as usize;

/// Entries that a lane of [`sell_rows`](struct@sell_rows) has under way.
const AHEAD: usize = 8;

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
#[kernel(launch(pub(crate)), threads(CSR_BUILD_THREADS))]
pub fn sell_slots<I>(cx: Block, offsets: Global<I>, order: Global<I>, mut slots: GlobalMut<u64>)
where
    I: Integer + ConvertTo<u64>,
{
    for item in cx.items(slots.len()) {
        let first = item.index() * SELL_ROWS;
        // The first row of a slice is the longest.
        let longest = if first < order.len() { length(offsets, number(order[first])) } else { 0 };
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

/// Writes the columns of each slice, entry by entry of its rows, and which of the matrix's entries they are; 0 where there is none. And
/// how many entries each row in `order` has. A warp a slice.
#[kernel(launch(pub(crate)), threads(CSR_BUILD_THREADS))]
#[allow(clippy::too_many_arguments, reason = "a kernel's parameters")]
pub fn sell_fill<I>(
    cx: Block,
    offsets: Global<I>,
    indices: Global<I>,
    order: Global<I>,
    slices: Global<u64>,
    mut lengths: GlobalMut<I>,
    mut columns: GlobalMut<I>,
    mut entries: GlobalMut<I>,
) where
    I: Integer + ConvertTo<u64>,
    u64: ConvertTo<I>,
{
    let place = cx.block_rank() * CSR_BUILD_THREADS + cx.thread_rank() as usize;
    let (slice, lane) = (place / SELL_ROWS, place % SELL_ROWS);
    if slice + 1 >= slices.len() {
        return;
    }
    let (first, end) = (slices[slice] as usize, slices[slice + 1] as usize);
    let (mut begin, mut count) = (0, 0);
    if place < order.len() {
        let row = number(order[place]);
        begin = number(offsets[row]);
        // No more than the slice has room for, also if the offsets were changed since its rows were measured.
        count = (length(offsets, row) as usize).min(end.saturating_sub(first) / SELL_ROWS);
        // SAFETY: the thread's own element.
        unsafe { lengths.write(place, (count as u64).convert()) };
    }
    let (mut slot, mut k) = (first + lane, 0);
    while slot < end {
        let (entry, column) = if k < count { (begin + k, indices[begin + k]) } else { (0, I::ZERO) };
        // SAFETY: a slot is of one slice and one lane.
        unsafe {
            columns.write(slot, column);
            entries.write(slot, (entry as u64).convert());
        }
        (slot, k) = (slot + SELL_ROWS, k + 1);
    }
}

/// The kernel of [`algorithms::spmv`](kernel_primitives::algorithms::spmv) for a matrix in slices: a warp has a slice, and a lane one of
/// its rows. The entry `k` of the row in lane `l` is at `slices[slice] + k * 32 + l`, so that a warp reads neighbouring ones.
///
/// `order` has the row of each place, once, and `lengths` how many entries it has. What the epilogue reads is in `z`, or in `y` if `z` is
/// empty.
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
    let place = cx.block_rank() * CSR_THREADS + cx.thread_rank() as usize;
    if place >= order.len() {
        return;
    }
    let (row, count) = (number(order[place]), number(lengths[place]));
    let first = slices[place / SELL_ROWS] as usize + place % SELL_ROWS;
    // Up to the row's last entry. Without one the row may begin after the last slot.
    let (begin, end) = if count == 0 { (0, 0) } else { (first, first + (count - 1) * SELL_ROWS + 1) };
    let entries = Entries::of(columns, values, begin, end);
    let most = const { ahead::<R::Accum>(AHEAD) };
    // SAFETY: each row is in `order` once.
    let old = unsafe { read::<R::Output, E>(&y, z, row, &epilogue) };
    let mut total = op.identity();
    let mut at = 0;
    while at < entries.len() {
        let products: [_; AHEAD] = entries.products(at, SELL_ROWS, most, x, &op);
        total = sum::<(V, S::Item), R>(&op, total, &products);
        at += most * SELL_ROWS;
    }
    // SAFETY: as above.
    unsafe { y.write(row, epilogue.apply(op.post(total, count as u64), old)) };
}
