//! The kernels that make matrices in compressed rows, and check them.

use kernel_primitives::prelude::*;
use kernel_primitives::simt::WARP;

/// Threads of a block of each of these kernels.
pub const CSR_BUILD_THREADS: usize = 256;

/// Ways in which lanes can share a row: one to 32 of them, by powers of two.
pub const CSR_WAYS: usize = 6;

/// What [`csr_check`](struct@csr_check) finds, by places. At first they hold [`CSR_UNSEEN`].
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

/// What the places hold before [`csr_check`](struct@csr_check).
pub const CSR_UNSEEN: [u64; CSR_STEPS + CSR_WAYS] = [u64::MAX, u64::MAX, 0, 0, 0, 0, 0, 0, 0, 0, 0];

/// Looks for offsets that decrease and for columns that are not below `columns`, and measures the rows. A grid of any size.
#[kernel(launch(pub(crate)), threads(CSR_BUILD_THREADS), min_blocks(4))]
pub fn csr_check<I>(cx: Block, offsets: Global<I>, indices: Global<I>, columns: u64, found: GlobalMut<u64, Atomic>)
where
    I: Integer + ConvertTo<u64>,
{
    let rows = offsets.len() - 1;
    let offset = |at: usize| ConvertTo::<u64>::convert(offsets[at]);
    let (mut decreasing, mut outside, mut longest) = (u64::MAX, u64::MAX, 0u64);
    let mut steps = [0u64; CSR_WAYS];
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
        // The longest of one row, of two, and so on: with 32 lanes a row, with 16, and so on.
        let mut most = items;
        for way in 0..CSR_WAYS {
            if way > 0 {
                most = most.max(cx.shuffle_xor(FULL_MASK, most, 1 << (way - 1), WARP));
            }
            if cx.lane() & ((1 << way) - 1) == 0 {
                let steps = &mut steps[CSR_WAYS - 1 - way];
                // Offsets that decrease may make any sum of it.
                *steps = steps.wrapping_add(most.div_ceil(WARP as u64 >> way));
            }
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
    if cx.lane() == 0 {
        found.at(CSR_DECREASING).fetch_min(decreasing);
        found.at(CSR_OUTSIDE).fetch_min(outside);
        found.at(CSR_LONGEST).fetch_max(longest);
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

/// Writes the row of each entry. A thread an entry.
#[kernel(launch(pub(crate)), threads(CSR_BUILD_THREADS))]
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

/// Makes keys of triplets, by which they sort by row and then by column: `row * columns + column`. `found[0]` is the first triplet outside
/// the matrix, or [`u64::MAX`]. A thread a triplet.
#[kernel(launch(pub(crate)), threads(CSR_BUILD_THREADS))]
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

/// Makes offsets and columns of keys that ascend. A thread a key, and then a thread an offset.
#[kernel(launch(pub(crate)), threads(CSR_BUILD_THREADS))]
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
    // A matrix without columns has no keys. The compiler does not know, and would prepare for a fault.
    let divisor = columns.max(1);
    for item in cx.items(keys.len()) {
        indices.set(item, (keys[item] % divisor).convert());
    }
    for item in cx.items(offsets.len()) {
        let first = item.index() as u64 * columns;
        offsets.set(item, (bound(keys.len(), |key| keys[key] < first) as u64).convert());
    }
}

/// How many of `count` places come before the bound: those, at the beginning, of which `before` is true.
#[inline(always)]
fn bound(count: usize, before: impl Fn(usize) -> bool) -> usize {
    let (mut at, mut end) = (0, count);
    while at < end {
        let middle = (at + end) / 2;
        if before(middle) { at = middle + 1 } else { end = middle }
    }
    at
}
