//! Reductions of a block.

use kernel_primitives::prelude::*;

use crate::kernels::{Compose, Latest, Map, Three};

/// Of each thread: the block's reduction, the first thread's (its value elsewhere), both of all items, that of the first `valid`
/// items, its row's, its group's and its column's.
#[kernel(max_threads(1024), instantiate(<f32, Add, 0>, <i32, Min, 0>, <Three, Latest, 0>, <Map<u64>, Compose, 256>))]
#[allow(clippy::too_many_arguments, reason = "a kernel's parameters")]
pub fn block_reductions<T: Element, R: Reducer<T> + KernelParam, const THREADS: usize>(
    cx: Block,
    width: u32,
    valid: u32,
    x: Global<[T; 3]>,
    mut out: GlobalMut<[T; 8]>,
    op: R,
    mut shared: Shared<ReduceStorage<T, THREADS>>,
    mut rows: Shared<ReduceStorage<T>>,
    mut columns: Shared<ColumnStorage<T>>,
) {
    for i in cx.items(out.len()) {
        let items = x[i];
        let value = items[0];
        let forms = [
            block_reduce(cx, &mut shared, value, op),
            block_reduce_to_first(cx, &mut shared, value, op).unwrap_or(value),
            block_reduce_items(cx, &mut shared, &items, op),
            block_reduce_items_to_first(cx, &mut shared, &items, op).unwrap_or(value),
            block_reduce_partial(cx, &mut shared, &items, valid as usize, op),
            block_x_reduce(cx, &mut rows, value, op),
            block_group_reduce(cx, &mut rows, value, op, width),
            block_y_reduce(cx, &mut columns, value, op),
        ];
        out.set(i, forms);
    }
}

#[cfg(not(target_arch = "nvptx64"))]
pub use host::subjects;

#[cfg(not(target_arch = "nvptx64"))]
mod host {
    use kernel_primitives::functor::{Add, BinaryFn, Min, Reducer};

    use super::block_reductions;
    use crate::case::Case;
    use crate::data::{items, small};
    use crate::kernels::{Compose, Latest, Map, Three};
    use crate::shape::{Shape, blocks, lengths, tiles, total};
    use crate::subject::{Subject, equal, subject};

    const COVERS: &[&str] = &[
        "block_reduce",
        "block_reduce_to_first",
        "block_reduce_items",
        "block_reduce_items_to_first",
        "block_reduce_partial",
        "block_x_reduce",
        "block_group_reduce",
        "block_y_reduce",
    ];

    /// Returns the number of threads of a group: near whole warps, or any number.
    fn width(case: &Case, threads: usize) -> usize {
        let mut param = case.param(24);
        let warps = 32 * (1 + param.below(threads / 32 + 1));
        [warps, warps, 1 + param.below(threads), threads, 1 + param.below(40), threads + 5][param.below(6)]
    }

    /// Returns the number of items of a partial tile.
    fn valid(case: &Case, tile: usize) -> usize {
        let mut param = case.param(25);
        [0, 1, tile, tile - 1, param.below(tile + 1), param.below(tile + 1)][param.below(6)]
    }

    /// Returns the values that each thread of a block gets.
    fn forms<T: Copy>(
        x: &[[T; 3]],
        case: &Case,
        shape: Shape,
        identity: T,
        op: impl Fn(T, T) -> T + Copy,
    ) -> Vec<[T; 8]> {
        let threads = shape.threads();
        let values: Vec<T> = x.iter().map(|items| items[0]).collect();
        let (block, items) = (total(&values, op), total(x.as_flattened(), op));
        let partial = total(&x.as_flattened()[..valid(case, 3 * threads)], op).unwrap_or(identity);
        let (width, plane) = (width(case, threads), shape.x() * shape.y());
        let of_thread = |thread: usize| {
            let part = |width: usize| {
                let first = thread / width * width;
                total(&values[first..(first + width).min(threads)], op).expect("the thread is in it")
            };
            let first = thread % shape.x() + thread / plane * plane;
            let column: Vec<T> = (0..shape.y()).map(|y| values[first + y * shape.x()]).collect();
            let [block, items] = [block, items].map(|total| total.expect("no block is empty"));
            let [to_first, items_to_first] =
                [block, items].map(|total| if thread == 0 { total } else { values[thread] });
            let column = total(&column, op).expect("the thread is in it");
            [block, to_first, items, items_to_first, partial, part(shape.x()), part(width), column]
        };
        (0..threads).map(of_thread).collect()
    }

    pub fn subjects() -> Vec<Subject> {
        let mut all = Vec::new();
        macro_rules! forms_of {
            ($($name:literal, $t:ty, $op:ident, $most:literal, $storage:literal, $plain:expr, $items:ident;)*) => {$(
                all.push(subject(
                    COVERS,
                    $name,
                    lengths(1024),
                    |case| ($items::<[$t; 3]>(case, 0, Shape::of(case, $most).threads() * tiles(case)),),
                    |case, (x,)| {
                        let (shape, identity) = (Shape::of(case, $most), Reducer::<$t>::identity(&$op));
                        let blocks = x.chunks(shape.threads());
                        (equal(blocks.flat_map(|x| forms(x, case, shape, identity, $plain)).collect()),)
                    },
                    |case, place, (x,), (out,)| {
                        let shape = Shape::of(case, $most);
                        let threads = shape.threads();
                        block_reductions::<$t, $op, $storage>::launch(
                            place.stream, shape.dims(blocks(case)), width(case, threads) as u32,
                            valid(case, 3 * threads) as u32, x.get(), out.exact(), $op,
                        )
                    },
                ));
            )*};
        }
        forms_of! {
            "f32, Add", f32, Add, 1024, 0, |a, b| a + b, small;
            "i32, Min", i32, Min, 1024, 0, i32::min, items;
            "Three, Latest", Three, Latest, 1024, 0, |a, b| Latest.apply(a, b), items;
            "Map<u64>, Compose, 256", Map<u64>, Compose, 256, 256, |a, b| Compose.apply(a, b), items;
        }
        all
    }
}
