//! A kernel of reductions by a block, with a step before and a step after.

use kernel_primitives::functor::{ArgMax, ArgMin, CountNonzero, L2, LogSumExp, MaxOf, Mean, NanSum, Sum};
use kernel_primitives::prelude::*;

/// Reduces all of `x` by one block.
#[kernel(instantiate(
    <f32, ArgMax>, <i16, ArgMin>, <f64, LogSumExp>, <f16, Mean>, <f32, L2>, <f32, NanSum>, <bool, CountNonzero>, <u32, MaxOf>,
    <Complex<f32>, Sum>, <u8, Mean>,
))]
pub fn reduced<T, R>(
    cx: Block,
    x: Global<T>,
    mut out: GlobalMut<R::Output, PerBlock>,
    op: R,
    mut shared: Shared<ReduceStorage<R::Accum>>,
) where
    T: Element,
    R: Reduction<T, Output: Element> + KernelParam,
{
    // Each thread has consecutive items, so that the order is kept.
    let share = x.len().div_ceil(cx.block_threads() as usize);
    let first = cx.thread_rank() as usize * share;
    let mut total = op.identity();
    for i in first..(first + share).min(x.len()) {
        total = op.combine(total, op.pre(x[i], i as u64));
    }
    let total = block_reduce(cx, &mut shared, total, op.reducer());
    out.store(op.post(total, x.len() as u64));
}
