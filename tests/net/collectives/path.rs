//! Rows of any lengths along a merge path.

use kernel_primitives::prelude::*;

use crate::kernels::{Compose, Triangular};

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

#[cfg(not(target_arch = "nvptx64"))]
pub use host::subjects;

#[cfg(not(target_arch = "nvptx64"))]
mod host {
    use kernel_primitives::functor::{Add, Reducer};

    use super::rows_along_the_path;
    use crate::case::{Case, Lengths};
    use crate::data::{items, offsets};
    use crate::items::Item;
    use crate::kernels::{Compose, Triangular};
    use crate::shape::{Shape, blocks};
    use crate::subject::{Subject, exact, subject};

    /// The path, step by step. For each row, it has the total in the tile in which the row ends, and the items. For each tile, it has the
    /// rest.
    struct Walk<T> {
        totals: Vec<T>,
        bounds: Vec<[u64; 2]>,
        open: Vec<T>,
    }

    impl<T: Item> Walk<T> {
        fn of(ends: &[u32], x: &[T], [threads, each]: [usize; 2], op: &impl Reducer<T>) -> Self {
            let all = |items: &[usize]| items.iter().fold(op.identity(), |total, &item| op.apply(total, x[item]));
            let mut walk = Self { totals: Vec::new(), bounds: Vec::new(), open: Vec::new() };
            let (mut row, mut item) = (0, 0);
            for _ in 0..tiles(ends.len(), x.len(), threads * each) {
                let (first_row, mut open) = (row, Vec::new());
                for _ in 0..(threads * each).min(ends.len() + x.len() - row - item) {
                    if row < ends.len() && item == ends[row] as usize {
                        walk.totals.push(all(&open));
                        walk.bounds.push([(item - open.len()) as u64, item as u64]);
                        open.clear();
                        row += 1;
                    } else {
                        open.push(item);
                        item += 1;
                    }
                }
                if row == first_row {
                    // These are each thread's own items, one thread after the other.
                    let of_thread = |thread: usize| (0..each).map(move |k| k * threads + thread);
                    open = (0..threads).flat_map(of_thread).filter_map(|k| open.get(k).copied()).collect();
                }
                walk.open.push(all(&open));
            }
            walk
        }
    }

    /// Returns the number of tiles of a path, at least one.
    fn tiles(rows: usize, items: usize, steps: usize) -> usize {
        (rows + items).div_ceil(steps).max(1)
    }

    /// Returns the ends of rows.
    fn ends(case: &Case) -> Vec<u32> {
        offsets(case, case.len)[1..].iter().map(|&end| end as u32).collect()
    }

    pub fn subjects() -> Vec<Subject> {
        let mut all = Vec::new();
        macro_rules! of {
            ($($name:literal, $t:ty, $op:ident, $threads:literal, $each:literal;)*) => {$(
                all.push(subject(
                    &["block_reduce_path", "path_share"],
                    $name,
                    Lengths::near(&[$threads * $each]).most(6 * $threads * $each),
                    |case| (ends(case), items::<$t>(case, 1, case.len)),
                    |_, (ends, x)| {
                        let Walk { totals, bounds, open } = Walk::of(ends, x, [$threads, $each], &$op);
                        (exact(totals), exact(bounds), exact(open))
                    },
                    |case, place, (ends, x), (totals, bounds, open)| {
                        let dims = Shape::exactly(case, $threads).dims(blocks(case));
                        rows_along_the_path::<$t, $op, $threads, $each>::launch(
                            place.stream, dims, ends.get(), x.get(), $op, totals.exact(), bounds.exact(), open.exact(),
                        )
                    },
                ));
            )*};
        }
        of! {
            "u32, Add, 64, 3", u32, Add, 64, 3;
            "Triangular, Compose, 33, 1", Triangular, Compose, 33, 1;
            "Triangular, Compose, 128, 7", Triangular, Compose, 128, 7;
        }
        all
    }
}
