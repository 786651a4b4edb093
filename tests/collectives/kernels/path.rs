//! Rows along a merge path.

use kernel_primitives::prelude::*;

/// Adds up each row's items in a given tile, and also the items after the last row.
#[kernel]
pub fn sums_of_rows(
    cx: Block,
    ends: Global<u32>,
    x: Global<u32>,
    rows: usize,
    items: usize,
    sums: GlobalMut<u32, Atomic>,
    mut shared: Shared<PathStorage<u32, 32, 2>>,
) {
    let tile = PathTile { first_row: 0, rows, first_item: 0, items };
    let mut own = init::<u32, 2>(0);
    load_striped(cx, &mut own, x);
    let end = |row: usize| ends[row] as usize;
    let rest = block_reduce_path(cx, &mut shared, tile, &own, end, Add, |row, _, total| sums.at(row).store(total));
    if cx.thread_rank() == 0 {
        sums.at(rows).store(rest);
    }
}
