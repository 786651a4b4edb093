//! The kernels that make and check matrices in compressed rows.

use kernel_primitives::prelude::*;
use kernel_primitives::simt::WARP;

use super::csr_by_length::{CSR_SHARE, CSR_SHORT};

/// The number of threads of a block of each of these kernels.
pub const CSR_BUILD_THREADS: usize = 256;

/// The number of ways in which lanes can share a row: one to 32 lanes, by powers of two.
pub const CSR_WAYS: usize = 6;

/// The places of the results of [`csr_check`](struct@csr_check). At first they hold [`CSR_UNSEEN`]. This is the place of the first row
/// whose offsets decrease.
pub const CSR_DECREASING: usize = 0;
/// The first entry whose column is outside.
pub const CSR_OUTSIDE: usize = 1;
/// The first offset.
pub const CSR_FIRST: usize = 2;
/// The last offset.
pub const CSR_LAST: usize = 3;
/// The entries of the longest row.
pub const CSR_LONGEST: usize = 4;
/// The steps of a warp over all rows, for each of the [`CSR_WAYS`].
pub const CSR_STEPS: usize = 5;
/// The steps of a warp over all rows of up to [`CSR_SHORT`] entries, with a lane for each row.
pub const CSR_SHORT_STEPS: usize = CSR_STEPS + CSR_WAYS;
/// The steps of a warp over all longer rows of up to [`CSR_SHARE`] entries, with all lanes for each row, and [`CSR_LONG_ROW`] more for each
/// row.
pub const CSR_LONG_STEPS: usize = CSR_SHORT_STEPS + 1;
/// The most of these steps that one warp has.
pub const CSR_MOST_STEPS: usize = CSR_LONG_STEPS + 1;
/// The entries of all rows of more than [`CSR_SHARE`] entries.
pub const CSR_GIANT_ENTRIES: usize = CSR_MOST_STEPS + 1;

/// The cost of the beginning and the end of a row that a warp has, in steps.
pub const CSR_LONG_ROW: u32 = 6;

/// The values of the places before [`csr_check`](struct@csr_check).
pub const CSR_UNSEEN: [u64; CSR_GIANT_ENTRIES + 1] = {
    let mut unseen = [0; CSR_GIANT_ENTRIES + 1];
    unseen[CSR_DECREASING] = u64::MAX;
    unseen[CSR_OUTSIDE] = u64::MAX;
    unseen
};

/// Finds offsets that decrease and columns that are not below `columns`, and measures the rows. The grid may have any size.
#[kernel(launch(pub(crate)), threads(CSR_BUILD_THREADS), one_dimensional, min_blocks(3))]
pub fn csr_check<I>(cx: Block, offsets: Global<I>, indices: Global<I>, columns: u64, found: GlobalMut<u64, Atomic>)
where
    I: Integer + ConvertTo<u64>,
{
    let rows = offsets.len() - 1;
    let offset = |at: usize| ConvertTo::<u64>::convert(offsets[at]);
    let (mut decreasing, mut outside, mut longest) = (u64::MAX, u64::MAX, 0u64);
    let mut steps = [0u64; CSR_WAYS];
    let (mut short_steps, mut long_steps, mut most_steps, mut giant_entries) = (0u64, 0u64, 0u32, 0u64);
    let warps = cx.grid_blocks() * const { CSR_BUILD_THREADS / WARP as usize };
    let mut first =
        (cx.block_rank() * const { CSR_BUILD_THREADS / WARP as usize } + cx.warp() as usize) * WARP as usize;
    while first < rows {
        let row = first + cx.lane() as usize;
        let mut items = 0;
        if row < rows {
            let (begin, end) = (offset(row), offset(row + 1));
            if end < begin {
                decreasing = decreasing.min(row as u64);
            }
            items = end.saturating_sub(begin);
        }
        longest = longest.max(items);
        // This is the length of the longest of one row, of two rows, and so on. A row then has 32 lanes, 16 lanes, and so on.
        let mut most = items;
        for way in 0..CSR_WAYS {
            if way > 0 {
                most = most.max(cx.shuffle_xor(FULL_MASK, most, 1 << (way - 1), WARP));
            }
            if cx.lane() & ((1 << way) - 1) == 0 {
                let steps = &mut steps[CSR_WAYS - 1 - way];
                // If offsets decrease, the sum may be any number.
                *steps = steps.wrapping_add(most.div_ceil(WARP as u64 >> way));
            }
        }
        // All lanes have the length of the warp's longest row.
        if most <= CSR_SHORT as u64 {
            short_steps += most;
        } else {
            let (mut short, mut long) = (0, 0);
            if items <= CSR_SHORT as u64 {
                short = items as u32;
            } else if items <= CSR_SHARE as u64 {
                long = (items as u32).div_ceil(WARP) + CSR_LONG_ROW;
            } else {
                giant_entries = giant_entries.wrapping_add(items);
            }
            short_steps += warp_reduce(cx, short, Max) as u64;
            let long = warp_reduce(cx, long, Add);
            long_steps += long as u64;
            most_steps = most_steps.max(long);
        }
        first += warps * WARP as usize;
    }
    for entry in cx.items(indices.len()) {
        let column: u64 = indices[entry].convert();
        if column >= columns {
            outside = outside.min(entry.index() as u64);
        }
    }

    let decreasing = warp_reduce(cx, decreasing, Min);
    let outside = warp_reduce(cx, outside, Min);
    let longest = warp_reduce(cx, longest, Max);
    let giant_entries = warp_reduce(cx, giant_entries, Add);
    if cx.lane() == 0 {
        found.at(CSR_DECREASING).fetch_min(decreasing);
        found.at(CSR_OUTSIDE).fetch_min(outside);
        found.at(CSR_LONGEST).fetch_max(longest);
        found.at(CSR_SHORT_STEPS).fetch_add(short_steps);
        found.at(CSR_LONG_STEPS).fetch_add(long_steps);
        found.at(CSR_MOST_STEPS).fetch_max(most_steps as u64);
        found.at(CSR_GIANT_ENTRIES).fetch_add(giant_entries);
    }
    for (way, &steps) in steps.iter().enumerate() {
        let steps = warp_reduce(cx, steps, Add);
        if cx.lane() == 0 {
            found.at(CSR_STEPS + way).fetch_add(steps);
        }
    }
    if cx.block_rank() == 0 && cx.thread_rank() == 0 {
        found.at(CSR_FIRST).fetch_add(offset(0));
        found.at(CSR_LAST).fetch_add(offset(rows));
    }
}

/// Finds the giant rows, which have more than [`CSR_SHARE`] entries. `found[0]` is their number. After it come the number and the entries
/// of each giant row, in any order. Each thread has one row.
#[kernel(launch(pub(crate)), threads(CSR_BUILD_THREADS), one_dimensional)]
pub fn csr_giants<I>(cx: Block, offsets: Global<I>, found: GlobalMut<u64, Atomic>)
where
    I: Integer + ConvertTo<u64>,
{
    for item in cx.items(offsets.len() - 1) {
        let offset = |at: usize| ConvertTo::<u64>::convert(offsets[at]);
        let row = item.index();
        let entries = offset(row + 1).saturating_sub(offset(row));
        if entries > CSR_SHARE as u64 {
            let place = 1 + 2 * found.at(0).fetch_add(1) as usize;
            found.at(place).store(row as u64);
            found.at(place + 1).store(entries);
        }
    }
}

/// Writes the row of each entry. Each thread has one entry.
#[kernel(launch(pub(crate)), threads(CSR_BUILD_THREADS), one_dimensional)]
pub fn csr_row_indices<I>(cx: Block, offsets: Global<I>, mut row_indices: GlobalMut<I>)
where
    I: Integer + ConvertTo<u64>,
    u64: ConvertTo<I>,
{
    for item in cx.items(row_indices.len()) {
        let ends_before = |row: usize| ConvertTo::<u64>::convert(offsets[row + 1]) <= item.index() as u64;
        row_indices.set(item, (bound(offsets.len() - 1, ends_before) as u64).convert());
    }
}

/// Makes the keys of triplets: `row * columns + column`. By these, they sort by row and then by column. `found[0]` is the first triplet
/// outside the matrix, or [`u64::MAX`]. Each thread has one triplet.
#[kernel(launch(pub(crate)), threads(CSR_BUILD_THREADS), one_dimensional)]
pub fn csr_keys<I>(
    cx: Block,
    row_indices: Global<I>,
    column_indices: Global<I>,
    rows: u64,
    columns: u64,
    mut keys: GlobalMut<u64>,
    found: GlobalMut<u64, Atomic>,
) where
    I: Integer + ConvertTo<u64>,
{
    for item in cx.items(keys.len()) {
        let (row, column): (u64, u64) = (row_indices[item].convert(), column_indices[item].convert());
        if row < rows && column < columns {
            keys.set(item, row * columns + column);
        } else {
            keys.set(item, 0);
            found.at(0).fetch_min(item.index() as u64);
        }
    }
}

/// Makes offsets and columns from ascending keys. Each thread has one key, and then one offset.
#[kernel(launch(pub(crate)), threads(CSR_BUILD_THREADS), one_dimensional)]
pub fn csr_rows_of_keys<I>(
    cx: Block,
    keys: Global<u64>,
    columns: u64,
    mut offsets: GlobalMut<I>,
    mut indices: GlobalMut<I>,
) where
    I: Integer,
    u64: ConvertTo<I>,
{
    // A matrix without columns has no keys. The compiler does not know this, and would prepare for a fault.
    let divisor = columns.max(1);
    for item in cx.items(keys.len()) {
        indices.set(item, (keys[item] % divisor).convert());
    }
    for item in cx.items(offsets.len()) {
        let first = item.index() as u64 * columns;
        offsets.set(item, (bound(keys.len(), |key| keys[key] < first) as u64).convert());
    }
}

/// Returns how many of `count` places come before the bound: the places at the beginning for which `before` is true.
#[inline(always)]
fn bound(count: usize, before: impl Fn(usize) -> bool) -> usize {
    let (mut at, mut end) = (0, count);
    while at < end {
        let middle = (at + end) / 2;
        if before(middle) { at = middle + 1 } else { end = middle }
    }
    at
}
