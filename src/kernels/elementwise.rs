//! Elementwise kernels.

use kernel_primitives::prelude::*;

/// `out[i] = f(x[i])`, `NX` consecutive items a thread.
///
/// All lengths are equal. Launch with [`Dims::for_items`](kernel_primitives::Dims::for_items)`(n).items_per_thread(NX)`; any
/// other shape is right too. 16-byte accesses if `NX` items have 16 bytes and the buffers start on such a boundary.
#[kernel(equal_len(x, out))]
pub fn elementwise_unary<T, U, F, const NX: usize>(cx: Block, x: Global<T>, mut out: GlobalMut<U, Tiles<NX>>, f: F)
where
    T: Element,
    U: Element,
    F: UnaryFn<T, Output = U> + KernelParam,
{
    for tile in cx.tiles::<NX>(out.len()) {
        let mut items = init::<T, NX>(T::ZERO);
        read_data(cx, &mut items, x.tile(tile));
        write_data(cx, out.tile(tile), &kernel_primitives::thread::elementwise_unary(&items, f));
    }
}

/// `out[i] = f(x[i], y[i])`, `NX` consecutive items a thread. Seed: `ElementwiseAdd`, for any functor.
///
/// All lengths are equal. Launch with [`Dims::for_items`](kernel_primitives::Dims::for_items)`(n).items_per_thread(NX)`; any
/// other shape is right too. 16-byte accesses if `NX` items have 16 bytes and the buffers start on such a boundary.
#[kernel(equal_len(x, y, out), instantiate(
    <f32, f32, Add, 4>, <f64, f64, Add, 2>, <f16, f16, Add, 8>, <bf16, bf16, Add, 8>, <i32, i32, Add, 4>, <u32, u32, Add, 4>,
    <f32, f32, Mul, 4>, <f64, f64, Mul, 2>, <f16, f16, Mul, 8>, <bf16, bf16, Mul, 8>, <i32, i32, Mul, 4>, <u32, u32, Mul, 4>,
    <f32, f32, Max, 4>, <f64, f64, Max, 2>, <f16, f16, Max, 8>, <bf16, bf16, Max, 8>, <i32, i32, Max, 4>, <u32, u32, Max, 4>,
    <f32, f32, Min, 4>, <f64, f64, Min, 2>, <f16, f16, Min, 8>, <bf16, bf16, Min, 8>, <i32, i32, Min, 4>, <u32, u32, Min, 4>,
))]
pub fn elementwise_binary<T, U, F, const NX: usize>(
    cx: Block,
    x: Global<T>,
    y: Global<T>,
    mut out: GlobalMut<U, Tiles<NX>>,
    f: F,
) where
    T: Element,
    U: Element,
    F: BinaryFn<T, Output = U> + KernelParam,
{
    for tile in cx.tiles::<NX>(out.len()) {
        let mut a = init::<T, NX>(T::ZERO);
        let mut b = init::<T, NX>(T::ZERO);
        read_data(cx, &mut a, x.tile(tile));
        read_data(cx, &mut b, y.tile(tile));
        write_data(cx, out.tile(tile), &kernel_primitives::thread::elementwise_binary(&a, &b, f));
    }
}
