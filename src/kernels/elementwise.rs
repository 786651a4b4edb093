//! Elementwise kernels.

use kernel_primitives::functor::{
    Abs, Div, Exp, Fold, Gelu, Log, MulAdd, Reciprocal, Relu, Sigmoid, Silu, Sqrt, Square, Sub, Tanh,
};
use kernel_primitives::io::{BroadcastConfig, IndexInt, read_data_bc};
use kernel_primitives::prelude::*;
use kernel_primitives::thread;

/// Returns what fills the places of a tile that have no item: an item of the input, because functors get only such. A whole tile has none.
#[inline(always)]
fn padding<T: Element, const NX: usize>(cx: Block, tile: Tile<NX>, x: Global<T>, at: usize) -> T {
    let is_partial = tile.len() < cx.block_threads() as usize * NX;
    if is_partial { x.get(at).unwrap_or(T::ZERO) } else { T::ZERO }
}

/// Computes `out[i] = f(x[i])`. Each thread has `NX` consecutive items.
///
/// All lengths are equal. Launch with [`Dims::for_items`](kernel_primitives::Dims::for_items)`(n).items_per_thread(NX)`. Any other shape is
/// right, too. Accesses have 16 bytes if `NX` items have 16 bytes and the buffers are aligned to 16 bytes.
///
/// ```
/// use kernel_primitives::functor::Sqrt;
/// use kernel_primitives::kernels::map_unary;
/// use kernel_primitives::{Device, Dims};
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = Device::auto()?.stream()?;
/// let x = stream.buffer_from(&[1.0f32, 4.0, 9.0])?;
/// let mut out = stream.buffer_zeroed::<f32>(3)?;
/// map_unary::<f32, f32, Sqrt, 4>::launch(&stream, Dims::for_items(3).items_per_thread(4), &x, &mut out, Sqrt)?;
/// assert_eq!(out.to_vec()?, [1.0, 2.0, 3.0]);
/// # Ok(())
/// # }
/// ```
#[kernel(equal_len(x, out), instantiate(
    <f32, f32, Abs, 4>, <f32, f32, Square, 4>, <f32, f32, Sqrt, 4>, <f32, f32, Reciprocal, 4>, <f32, f32, Exp, 4>,
    <f32, f32, Log, 4>, <f32, f32, Tanh, 4>, <f32, f32, Sigmoid, 4>, <f64, f64, Sqrt, 2>, <f64, f64, Exp, 2>,
    <f32, f32, Relu, 4>, <f16, f16, Relu, 8>, <bf16, bf16, Relu, 8>,
    <f32, f32, Silu, 4>, <f16, f16, Silu, 8>, <bf16, bf16, Silu, 8>,
    <f32, f32, Gelu, 4>, <f16, f16, Gelu, 8>, <bf16, bf16, Gelu, 8>,
))]
pub fn map_unary<T, U, F, const NX: usize>(cx: Block, x: Global<T>, mut out: GlobalMut<U, Tiles<NX>>, f: F)
where
    T: Element,
    U: Element,
    F: UnaryFn<T, Output = U> + KernelParam,
{
    for tile in cx.tiles::<NX>(out.len()) {
        let mut items = init::<T, NX>(padding(cx, tile, x, 0));
        read_data(cx, &mut items, x.tile(tile));
        write_data(cx, out.tile(tile), &thread::elementwise_unary(&items, f));
    }
}

/// Computes `out[i] = f(x[i], y[i])`. Each thread has `NX` consecutive items. Seed: `ElementwiseAdd`, here for any functor.
///
/// All lengths are equal. Launch with [`Dims::for_items`](kernel_primitives::Dims::for_items)`(n).items_per_thread(NX)`. Any other shape is
/// right, too. Accesses have 16 bytes if `NX` items have 16 bytes and the buffers are aligned to 16 bytes.
///
/// ```
/// use kernel_primitives::functor::Sub;
/// use kernel_primitives::kernels::map_binary;
/// use kernel_primitives::{Device, Dims};
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = Device::auto()?.stream()?;
/// let (x, y) = (stream.buffer_from(&[5, 7, 9])?, stream.buffer_from(&[1, 2, 10])?);
/// let mut out = stream.buffer_zeroed::<i32>(3)?;
/// map_binary::<i32, i32, Sub, 4>::launch(
///     &stream, Dims::for_items(3).items_per_thread(4), &x, &y, &mut out, Sub,
/// )?;
/// assert_eq!(out.to_vec()?, [4, 5, -1]);
/// # Ok(())
/// # }
/// ```
#[kernel(equal_len(x, y, out), instantiate(
    <f32, f32, Add, 4>, <f64, f64, Add, 2>, <f16, f16, Add, 8>, <bf16, bf16, Add, 8>, <i32, i32, Add, 4>, <u32, u32, Add, 4>,
    <f32, f32, Sub, 4>, <f64, f64, Sub, 2>, <f16, f16, Sub, 8>, <bf16, bf16, Sub, 8>, <i32, i32, Sub, 4>, <u32, u32, Sub, 4>,
    <f32, f32, Mul, 4>, <f64, f64, Mul, 2>, <f16, f16, Mul, 8>, <bf16, bf16, Mul, 8>, <i32, i32, Mul, 4>, <u32, u32, Mul, 4>,
    <f32, f32, Div, 4>, <f64, f64, Div, 2>, <f16, f16, Div, 8>, <bf16, bf16, Div, 8>,
    <f32, f32, Max, 4>, <f64, f64, Max, 2>, <f16, f16, Max, 8>, <bf16, bf16, Max, 8>, <i32, i32, Max, 4>, <u32, u32, Max, 4>,
    <f32, f32, Min, 4>, <f64, f64, Min, 2>, <f16, f16, Min, 8>, <bf16, bf16, Min, 8>, <i32, i32, Min, 4>, <u32, u32, Min, 4>,
))]
pub fn map_binary<T, U, F, const NX: usize>(
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
        let mut a = init::<T, NX>(padding(cx, tile, x, 0));
        let mut b = init::<T, NX>(padding(cx, tile, y, 0));
        read_data(cx, &mut a, x.tile(tile));
        read_data(cx, &mut b, y.tile(tile));
        write_data(cx, out.tile(tile), &thread::elementwise_binary(&a, &b, f));
    }
}

/// Computes `out = f(x, y)`. Both inputs broadcast to the shape of the output: `out[i] = f(x[x_shape.index(i)], y[y_shape.index(i)])`. Each
/// thread has `NX` consecutive items.
///
/// Launch with [`Dims::for_items`](kernel_primitives::Dims::for_items)`(out.len()).items_per_thread(NX)`. Any other shape is right, too.
/// `I` may be `u32` if all three have fewer than 2^32 elements. Accesses are those of
/// [`read_data_bc`](kernel_primitives::io::read_data_bc): 16 bytes along a row that is not repeated and is aligned to 16 bytes.
///
/// Seed: `BroadcastKernel` with `ReadDataBc`.
///
/// ```
/// use kernel_primitives::functor::Mul;
/// use kernel_primitives::io::BroadcastConfig;
/// use kernel_primitives::kernels::broadcast_binary;
/// use kernel_primitives::{Device, Dims};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let stream = Device::auto()?.stream()?;
/// let column = stream.buffer_from(&[1.0f32, 10.0])?;
/// let row = stream.buffer_from(&[1.0f32, 2.0, 3.0])?;
/// let mut out = stream.buffer_zeroed::<f32>(6)?;
/// let by_column = BroadcastConfig::new(&[2, 3], &[2, 1])?;
/// let by_row = BroadcastConfig::new(&[2, 3], &[3])?;
/// let dims = Dims::for_items(6).items_per_thread(4);
/// broadcast_binary::<f32, f32, Mul, u32, 4>::launch(&stream, dims, &column, by_column, &row, by_row, &mut out, Mul)?;
/// assert_eq!(out.to_vec()?, [1.0, 2.0, 3.0, 10.0, 20.0, 30.0]);
/// # Ok(())
/// # }
/// ```
#[kernel(max_threads(1024), min_blocks(1), instantiate(
    <f32, f32, Add, u32, 4>, <f64, f64, Add, u32, 2>, <f16, f16, Add, u32, 8>, <bf16, bf16, Add, u32, 8>,
    <i32, i32, Add, u32, 4>, <f32, f32, Sub, u32, 4>, <f32, f32, Div, u32, 4>, <f32, f32, Max, u32, 4>,
    <f32, f32, Mul, u32, 4>, <f64, f64, Mul, u32, 2>, <f16, f16, Mul, u32, 8>, <bf16, bf16, Mul, u32, 8>,
    <i32, i32, Mul, u32, 4>, <f32, f32, Add, u64, 4>, <f32, f32, Mul, u64, 4>,
))]
#[allow(clippy::too_many_arguments, reason = "two inputs with their shapes")]
pub fn broadcast_binary<T, U, F, I, const NX: usize>(
    cx: Block,
    x: Global<T>,
    x_shape: BroadcastConfig<I>,
    y: Global<T>,
    y_shape: BroadcastConfig<I>,
    mut out: GlobalMut<U, Tiles<NX>>,
    f: F,
) where
    T: Element,
    U: Element,
    F: BinaryFn<T, Output = U> + KernelParam,
    I: IndexInt,
{
    let len = out.len();
    for tile in cx.tiles::<NX>(len) {
        let mut a = init::<T, NX>(padding(cx, tile, x, x_shape.index(0)));
        let mut b = init::<T, NX>(padding(cx, tile, y, y_shape.index(0)));
        read_data_bc(cx, &mut a, x, tile.start(), &x_shape, len);
        read_data_bc(cx, &mut b, y, tile.start(), &y_shape, len);
        write_data(cx, out.tile(tile), &thread::elementwise_binary(&a, &b, f));
    }
}

/// Computes `out[i] = f(x[i], y[i], z[i])`. Each thread has `NX` consecutive items.
///
/// All lengths are equal. Launch with [`Dims::for_items`](kernel_primitives::Dims::for_items)`(n).items_per_thread(NX)`. Any other shape is
/// right, too. Accesses have 16 bytes if `NX` items have 16 bytes and the buffers are aligned to 16 bytes.
///
/// ```
/// use kernel_primitives::functor::MulAdd;
/// use kernel_primitives::kernels::map_ternary;
/// use kernel_primitives::{Device, Dims};
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = Device::auto()?.stream()?;
/// let (x, y) = (stream.buffer_from(&[1.0f64, 2.0, 3.0])?, stream.buffer_from(&[10.0f64, 10.0, 10.0])?);
/// let z = stream.buffer_from(&[0.5f64, 0.5, 0.5])?;
/// let mut out = stream.buffer_zeroed::<f64>(3)?;
/// let dims = Dims::for_items(3).items_per_thread(2);
/// map_ternary::<f64, f64, f64, f64, MulAdd, 2>::launch(&stream, dims, &x, &y, &z, &mut out, MulAdd)?;
/// assert_eq!(out.to_vec()?, [10.5, 20.5, 30.5]);
/// # Ok(())
/// # }
/// ```
#[kernel(equal_len(x, y, z, out), instantiate(
    <f32, f32, f32, f32, MulAdd, 4>, <f64, f64, f64, f64, MulAdd, 2>, <f16, f16, f16, f16, MulAdd, 8>,
))]
pub fn map_ternary<A, B, C, U, F, const NX: usize>(
    cx: Block,
    x: Global<A>,
    y: Global<B>,
    z: Global<C>,
    mut out: GlobalMut<U, Tiles<NX>>,
    f: F,
) where
    A: Element,
    B: Element,
    C: Element,
    U: Element,
    F: TernaryFn<A, B, C, Output = U> + KernelParam,
{
    for tile in cx.tiles::<NX>(out.len()) {
        let mut a = init::<A, NX>(padding(cx, tile, x, 0));
        let mut b = init::<B, NX>(padding(cx, tile, y, 0));
        let mut c = init::<C, NX>(padding(cx, tile, z, 0));
        read_data(cx, &mut a, x.tile(tile));
        read_data(cx, &mut b, y.tile(tile));
        read_data(cx, &mut c, z.tile(tile));
        write_data(cx, out.tile(tile), &thread::elementwise_ternary(&a, &b, &c, f));
    }
}

/// Computes `out[i] = f([x[i], x[n + i], x[2 * n + i], …])`. Each thread has `NX` consecutive items. `x` has `ARITY` inputs, one after the
/// other. Each input is as long as `out`, which has `n` elements.
///
/// Launch with [`Dims::for_items`](kernel_primitives::Dims::for_items)`(n).items_per_thread(NX)`. Any other shape is right, too. Accesses
/// have 16 bytes if `NX` items have 16 bytes, and the buffers and each input in `x` are aligned to 16 bytes.
///
/// ```
/// use kernel_primitives::functor::{Add, Fold};
/// use kernel_primitives::kernels::map_any;
/// use kernel_primitives::{Device, Dims};
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = Device::auto()?.stream()?;
/// let inputs = stream.buffer_from(&[1.0f32, 2.0, 10.0, 20.0, 100.0, 200.0])?;
/// let mut out = stream.buffer_zeroed::<f32>(2)?;
/// let dims = Dims::for_items(2).items_per_thread(4);
/// map_any::<f32, f32, Fold<Add>, 3, 4>::launch(&stream, dims, &inputs, &mut out, Fold(Add))?;
/// assert_eq!(out.to_vec()?, [111.0, 222.0]);
/// # Ok(())
/// # }
/// ```
#[kernel(instantiate(<f32, f32, Fold<Add>, 3, 4>))]
pub fn map_any<T, U, F, const ARITY: usize, const NX: usize>(
    cx: Block,
    x: Global<T>,
    mut out: GlobalMut<U, Tiles<NX>>,
    f: F,
) where
    T: Element,
    U: Element,
    F: NaryFn<T, ARITY, Output = U> + KernelParam,
{
    let len = out.len();
    for tile in cx.tiles::<NX>(len) {
        let mut items: [[T; NX]; ARITY] = core::array::from_fn(|i| [padding(cx, tile, x, i * len); NX]);
        for (i, items) in items.iter_mut().enumerate() {
            read_data(cx, items, x.slice(i * len..(i + 1) * len).tile(tile));
        }
        write_data(cx, out.tile(tile), &thread::elementwise_any(&items, f));
    }
}
