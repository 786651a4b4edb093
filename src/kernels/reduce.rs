//! Reductions.

use kernel_primitives::functor::{
    AbsMax, All, Any, ArgMax, ArgMin, CountNonzero, L1, L2, LogSumExp, MaxOf, Mean, MinOf, PNorm, Prod, Sum,
};
use kernel_primitives::prelude::*;

/// The number of vectors that a thread has in flight.
const BATCH: usize = 4;

/// Reduces all of `x` to one value for each block. `out[b]` is the reduction of the elements that block `b` visits: `NX` at a time, in a
/// grid-stride loop. A second launch with one block reduces these values to one value.
///
/// `f16` and `bf16` are converted to `f32` first, and the result is `f32`, too: `R` reduces the accumulation type, and `out` has it. `out`
/// has one element for each block. The order of combination depends only on the grid and the block, so the same launch gives the same bits
/// again. A thread first combines its items of all tiles. So `op` must be commutative if a block visits several tiles. If `x` is empty, each
/// result is that of no items, see [`Reducer::of_none`].
///
/// ```
/// use kernel_primitives::functor::Add;
/// use kernel_primitives::kernels::block_reduce;
/// use kernel_primitives::Device;
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = Device::auto()?.stream()?;
/// let x = stream.buffer_from(&(1..=1000).collect::<Vec<i32>>())?;
/// let (mut parts, mut total) = (stream.buffer_zeroed::<i32>(8)?, stream.buffer_zeroed::<i32>(1)?);
/// block_reduce::<i32, Add, 4>::launch(&stream, (8, 128), &x, &mut parts, Add)?;
/// block_reduce::<i32, Add, 4>::launch(&stream, (1, 128), &parts, &mut total, Add)?;
/// assert_eq!(total.to_vec()?, [500_500]);
/// # Ok(())
/// # }
/// ```
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
    let (none, mut total) = (op.of_none(), op.identity());
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
    out.store(if x.is_empty() { none } else { total });
}

/// Reduces each row of a matrix. `out[r]` is the reduction of `x[r]`, where the index of an element is its column.
///
/// `x` has `rows * columns` elements, row by row, and `out` has at least `rows` elements. The threads of a block along `x` have one row.
/// The threads along `y` and `z` have different rows. A block has at most 512 threads. Any such shape is right if the blocks have threads
/// for all rows. Otherwise it is a fault. [`reduce_row_dims`](super::reduce_row_dims)`(rows, columns, 4 * NX)` chooses one row for each
/// block if rows are long, and many rows for each block if they are short.
///
/// The combination must be commutative. All reductions of [`functor`](kernel_primitives::functor) are, except
/// [`ReduceBy`](kernel_primitives::functor::ReduceBy) with an operator that is not. A thread has four accesses in flight, of 16 bytes if
/// all rows are aligned to 16 bytes. [`block_x_reduce`] combines its results. The order depends only on the shape of the launch.
///
/// ```
/// use kernel_primitives::functor::{ArgMax, Mean};
/// use kernel_primitives::kernels::{reduce_row_dims, reduce_rows};
/// use kernel_primitives::{Device, functor::Indexed};
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = Device::auto()?.stream()?;
/// let x = stream.buffer_from(&[1.0f32, 2.0, 6.0, 7.0, -1.0, 0.0])?;
/// let mut means = stream.buffer_zeroed::<f32>(2)?;
/// reduce_rows::<f32, Mean, 4>::launch(&stream, reduce_row_dims(2, 3, 16), 2, 3, &x, &mut means, Mean)?;
/// assert_eq!(means.to_vec()?, [3.0, 2.0]);
/// let mut largest = stream.buffer_zeroed::<Indexed<f32>>(2)?;
/// reduce_rows::<f32, ArgMax, 4>::launch(&stream, reduce_row_dims(2, 3, 16), 2, 3, &x, &mut largest, ArgMax)?;
/// assert_eq!(largest.to_vec()?.iter().map(|it| it.index()).collect::<Vec<_>>(), [2, 0]);
/// # Ok(())
/// # }
/// ```
#[kernel(max_threads(512), min_blocks(if size_of::<[R::Accum; NX]>() <= 16 { 2 } else { 1 }), instantiate(
    <f32, Sum, 4>, <f64, Sum, 2>, <f16, Sum, 8>, <bf16, Sum, 8>, <i32, Sum, 4>, <i64, Sum, 2>,
    <f32, Mean, 4>, <f16, Mean, 8>, <f32, Prod, 4>, <f32, L1, 4>, <f32, L2, 4>, <f32, PNorm<f32>, 4>, <f32, LogSumExp, 4>,
    <f32, MinOf, 4>, <f32, MaxOf, 4>, <f16, MaxOf, 8>, <i32, MinOf, 4>, <i32, MaxOf, 4>, <f32, AbsMax, 4>,
    <f32, ArgMin, 4>, <f32, ArgMax, 4>, <i32, ArgMax, 4>,
    <bool, Any, 4>, <bool, All, 4>, <bool, CountNonzero, 4>, <f32, Any, 4>, <f32, All, 4>,
))]
pub fn reduce_rows<T, R, const NX: usize>(
    cx: Block,
    rows: usize,
    columns: usize,
    x: Global<T>,
    mut out: GlobalMut<R::Output>,
    op: R,
    mut shared: Shared<ReduceStorage<R::Accum>>,
) where
    T: Element,
    R: Reduction<T, Output: Element> + KernelParam,
{
    let (dim, at) = (cx.block_dim(), cx.thread_idx());
    let (width, height) = (dim.x as usize, dim.y as usize * dim.z as usize);
    // Each block has one group of rows. In a loop over groups, the compiler would keep all positions in registers.
    cx.require_at_most(rows, cx.grid_blocks().saturating_mul(height));
    let row = cx.block_rank() * height + (at.y + dim.y * at.z) as usize;
    let mut totals = [op.identity(); NX];
    if row < rows {
        let from = x.row(row, columns);
        let mut take = |i: usize, item: T, column: usize| {
            totals[i] = op.combine(totals[i], op.pre(item, column as u64));
        };
        if from.in_vectors::<NX>() {
            let (mut first, stride) = (at.x as usize * NX, width * NX);
            while first < columns {
                let mut items = [[T::ZERO; NX]; BATCH];
                from.read_vectors(first, stride, &mut items);
                // A whole vector is in the row, or no part of it.
                let ahead = (columns - first).min(u32::MAX as usize) as u32;
                for (round, items) in items.iter().enumerate() {
                    if round as u32 * (stride as u32) < ahead {
                        for (i, &item) in items.iter().enumerate() {
                            take(i, item, first + round * stride + i);
                        }
                    }
                }
                first += BATCH * stride;
            }
        } else {
            // Neighbouring threads have neighbouring elements.
            let mut first = at.x as usize;
            while first < columns {
                let items: [Option<T>; NX] = core::array::from_fn(|i| from.get(first + i * width));
                for (i, item) in items.iter().enumerate() {
                    if let Some(item) = item {
                        take(i, *item, first + i * width);
                    }
                }
                first += NX * width;
            }
        }
    }
    let total = thread_reduce(op.identity(), &totals, op.reducer());
    let total = block_x_reduce(cx, &mut shared, total, op.reducer());
    if at.x == 0 && row < rows {
        // SAFETY: of all threads of the grid only this one has this row and column 0.
        unsafe { out.write(row, op.post(total, columns as u64)) };
    }
}
