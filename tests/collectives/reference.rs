//! The expected results of the collectives, by plain loops, and the cases.

use kernel_primitives::{Element, Reducer};

use crate::support::threads;

/// Block shapes: those of CUB's tests, and rows and columns that fit in warps and that do not.
pub const SHAPES: [(u32, u32, u32); 18] = [
    (1, 1, 1),
    (7, 1, 1),
    (17, 1, 1),
    (32, 1, 1),
    (65, 1, 1),
    (96, 1, 1),
    (128, 1, 1),
    (256, 1, 1),
    (1024, 1, 1),
    (1, 2, 1),
    (7, 2, 2),
    (32, 2, 1),
    (65, 1, 2),
    (128, 2, 2),
    (17, 5, 3),
    (5, 60, 1),
    (40, 12, 1),
    (1, 77, 1),
];

/// Returns all values, combined in order.
pub fn total<T: Element, R: Reducer<T>>(x: &[T], op: &R) -> T {
    x.iter().copied().reduce(|a, b| op.apply(a, b)).unwrap_or(op.identity())
}

/// Returns each value, combined with the values before it.
pub fn inclusive<T: Element, R: Reducer<T>>(x: &[T], op: &R) -> Vec<T> {
    (0..x.len())
        .scan(None, |sum, i| {
            *sum = Some(sum.map_or(x[i], |sum| op.apply(sum, x[i])));
            *sum
        })
        .collect()
}

/// Returns, for each value, the values before it, combined after `initial`.
pub fn exclusive<T: Element, R: Reducer<T>>(x: &[T], initial: T, op: &R) -> Vec<T> {
    (0..x.len())
        .scan(initial, |sum, i| {
            let before = *sum;
            *sum = op.apply(before, x[i]);
            Some(before)
        })
        .collect()
}

/// Returns, for each thread of a block, its column's total.
pub fn columns<T: Element, R: Reducer<T>>(x: &[T], shape: (u32, u32, u32), op: &R) -> Vec<T> {
    let (dx, dy) = (shape.0 as usize, shape.1 as usize);
    (0..threads(shape))
        .map(|rank| {
            let first = rank % dx + rank / (dx * dy) * (dx * dy);
            total(&(0..dy).map(|y| x[first + y * dx]).collect::<Vec<_>>(), op)
        })
        .collect()
}

/// Calls a macro with the element types that no other test has, and with two types whose order counts. The macro gets the number of cases,
/// the type, and its reduction.
macro_rules! with_other_types {
    ($check:ident) => {
        $check! {
            16: u8, Last;
            16: Triangular, Compose;
            6: i8, Min;
            6: i16, Max;
            6: u64, Add;
            6: bf16, Max;
            6: bool, LogicalXor;
            6: Complex<f32>, Add;
            6: Complex<f64>, Add;
        }
    };
}
pub(crate) use with_other_types;
