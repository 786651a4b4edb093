//! Computation on a thread's own registers: no communication, no shared memory.

use crate::functor::{BinaryFn, UnaryFn};

/// Applies `f` to each item: `out[i] = f(a[i])`. Each thread holds the results of its own items.
///
/// Seed: `ElementwiseUnary<InT, OutT, NX, 1, OpFunc>(out, in, compute)`.
///
/// ```
/// use kernel_primitives::prelude::*;
/// assert_eq!(elementwise_unary(&[1.0f32, 2.0], |x: f32| x * x), [1.0, 4.0]);
/// ```
#[inline(always)]
pub fn elementwise_unary<A: Copy, F: UnaryFn<A>, const N: usize>(a: &[A; N], f: F) -> [F::Output; N] {
    core::array::from_fn(|i| f.apply(a[i]))
}

/// Applies `f` to each pair of items: `out[i] = f(a[i], b[i])`. Each thread holds the results of its own items.
///
/// Seed: `ElementwiseBinary<InT, OutT, NX, 1, OpFunc>(out, in1, in2, compute)`.
///
/// ```
/// use kernel_primitives::prelude::*;
/// assert_eq!(elementwise_binary(&[1, 2], &[10, 20], Add), [11, 22]);
/// ```
#[inline(always)]
pub fn elementwise_binary<A: Copy, B: Copy, F: BinaryFn<A, B>, const N: usize>(
    a: &[A; N],
    b: &[B; N],
    f: F,
) -> [F::Output; N] {
    core::array::from_fn(|i| f.apply(a[i], b[i]))
}
