//! Rows along a merge path.

use kernel_primitives::prelude::*;

use super::{Compose, Triangular};

/// Writes the total of each row in the tile in which it ends, its items, and the rest of each tile.
#[kernel(instantiate(<u32, Add, 64, 3>, <Triangular, Compose, 33, 1>, <Triangular, Compose, 128, 7>))]
#[allow(clippy::too_many_arguments, reason = "a kernel's parameters")]
pub fn rows_along_the_path<T: Element, R: Reducer<T> + KernelParam, const THREADS: usize, const ITEMS: usize>(
    cx: Block,
    ends: Global<u32>,
    x: Global<T>,
    op: R,
    mut totals: GlobalMut<T>,
    mut bounds: GlobalMut<[u64; 2]>,
    mut open: GlobalMut<T>,
    mut shared: Shared<PathStorage<T, THREADS, ITEMS>>,
) {
    let end = |row: usize| ends[row] as usize;
    let steps = const { THREADS * ITEMS };
    let mut tile = cx.block_rank();
    // The storage is used many times.
    while tile < open.len() {
        let path = PathTile::between(tile * steps, (tile + 1) * steps, ends.len(), x.len(), end);
        let mut items = init::<T, ITEMS>(T::ZERO);
        load_striped(cx, &mut items, x.slice(path.first_item..path.first_item + path.items));
        let rest = block_reduce_path(cx, &mut shared, path, &items, end, op, |row, items, total| {
            // SAFETY: a row ends once.
            unsafe {
                totals.write(row, total);
                bounds.write(row, [items.start as u64, items.end as u64]);
            }
        });
        if cx.thread_rank() == 0 {
            // SAFETY: a tile belongs to one block.
            unsafe { open.write(tile, rest) };
        }
        tile += cx.grid_blocks();
    }
}
