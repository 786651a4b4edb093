//! Reductions of a thread's own items.

use crate::functor::BinaryFn;

/// Combines `start` and the items, from the left: `op(op(start, items[0]), items[1])`. Each thread gets the result of its own items.
///
/// `start` is the result so far, or the identity of `op`.
///
/// ```
/// use kernel_primitives::prelude::*;
/// assert_eq!(thread_reduce(10, &[1, 2, 3], Add), 16);
/// ```
#[track_caller]
pub fn thread_reduce<A, T: Copy, R: BinaryFn<A, T, Output = A>, const N: usize>(start: A, items: &[T; N], op: R) -> A {
    let mut total = start;
    let mut i = 0;
    while i < N {
        total = op.apply(total, items[i]);
        i += 1;
    }
    total
}

/// Combines each row of items with its `start`, from the left. There is one result for each row.
///
/// Seed: `Reduce<T, NX, NY, ReduceFunctor, kLocalMode>(out, in, reducer, _)`, in which `out` is both `start` and the result.
///
/// ```
/// use kernel_primitives::prelude::*;
/// assert_eq!(thread_reduce_x([0, 100], &[[1, 2, 3], [4, 5, 6]], Add), [6, 115]);
/// ```
#[track_caller]
pub fn thread_reduce_x<A: Copy, T: Copy, R: BinaryFn<A, T, Output = A>, const NX: usize, const NY: usize>(
    start: [A; NY],
    items: &[[T; NX]; NY],
    op: R,
) -> [A; NY] {
    let mut totals = start;
    let mut y = 0;
    while y < NY {
        let mut x = 0;
        while x < NX {
            totals[y] = op.apply(totals[y], items[y][x]);
            x += 1;
        }
        y += 1;
    }
    totals
}

/// Combines each column of items with its `start`, from the top. There is one result for each column.
///
/// ```
/// use kernel_primitives::prelude::*;
/// assert_eq!(thread_reduce_y([0, 0, 100], &[[1, 2, 3], [4, 5, 6]], Add), [5, 7, 109]);
/// ```
#[track_caller]
pub fn thread_reduce_y<A: Copy, T: Copy, R: BinaryFn<A, T, Output = A>, const NX: usize, const NY: usize>(
    start: [A; NX],
    items: &[[T; NX]; NY],
    op: R,
) -> [A; NX] {
    let mut totals = start;
    let mut y = 0;
    while y < NY {
        let mut x = 0;
        while x < NX {
            totals[x] = op.apply(totals[x], items[y][x]);
            x += 1;
        }
        y += 1;
    }
    totals
}
