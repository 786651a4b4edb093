//! Reductions.

use kernel_primitives::prelude::*;

/// Reduces all of `x` to one value a block: `out[b]` is the reduction of the elements that block `b` visits, `NX` at a time
/// and grid-stride. A second launch with one block reduces those to one value.
///
/// `f16` and `bf16` are widened to `f32` first, and so is the result: `R` reduces, and `out` holds, the accumulation type.
/// `out` has one element a block. The order of combination depends on the grid and the block alone, so the same launch
/// gives the same bits again.
#[kernel(instantiate(
    <f32, Add, 4>, <f64, Add, 2>, <f16, Add, 8>, <bf16, Add, 8>, <i32, Add, 4>, <u32, Add, 4>,
    <f32, Mul, 4>, <f64, Mul, 2>, <f16, Mul, 8>, <bf16, Mul, 8>, <i32, Mul, 4>, <u32, Mul, 4>,
    <f32, Max, 4>, <f64, Max, 2>, <f16, Max, 8>, <bf16, Max, 8>, <i32, Max, 4>, <u32, Max, 4>,
    <f32, Min, 4>, <f64, Min, 2>, <f16, Min, 8>, <bf16, Min, 8>, <i32, Min, 4>, <u32, Min, 4>,
))]
pub fn block_reduce<T, R, const NX: usize>(
    cx: Block,
    x: Global<T>,
    mut out: GlobalMut<T::Accum, PerBlock>,
    op: R,
    mut shared: Shared<ReduceStorage<T::Accum>>,
) where
    T: Accumulate,
    R: Reducer<T::Accum> + KernelParam,
{
    let mut total = op.identity();
    for tile in cx.tiles::<NX>(x.len()) {
        let mut items = init::<T, NX>(T::ZERO);
        read_data(cx, &mut items, x.tile(tile));
        let valid = tile.valid_items(cx);
        for (i, &item) in items.iter().enumerate() {
            if i < valid {
                total = op.apply(total, item.widen());
            }
        }
    }
    let total = kernel_primitives::block::block_reduce(cx, &mut shared, total, op);
    out.store(total);
}
