//! Reads and writes in two dimensions.

use crate::element::{ConvertTo, Element};
use crate::functor::{BinaryFn, UnaryFn};
use crate::simt::Block;
use crate::view::{Global, GlobalMut, Partition};

/// The part of a matrix that a block reads or writes in two dimensions: its size, and the distances between the items of a thread.
///
/// Item `[y][x]` of a thread is in column `t + x * stride_x` of row `y`, where `t` is its [`Block::thread_idx`]`.x`. Rows begin `stride_y`
/// elements apart. If `stride_x` is the width of the block, the accesses of a warp are coalesced.
///
/// Seed: `size_nx`, `size_ny`, `stride_nx`, `stride_ny`. There, `size_ny` is compared with an offset in elements, and not at all if `NX`
/// is 1. Here, it counts rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The number of columns, starting at the first column of the block.
    pub columns: usize,
    /// The number of rows, starting at the first row of the block.
    pub rows: usize,
    /// The number of columns from an item of a thread to its next item in the row.
    pub stride_x: usize,
    /// The number of elements from the beginning of a row to the beginning of the next row.
    pub stride_y: usize,
}

impl Window {
    /// Returns the offset of a thread's item, if the window has it.
    fn offset(&self, thread: usize, x: usize, y: usize) -> Option<usize> {
        let column = thread.saturating_add(x.saturating_mul(self.stride_x));
        if column < self.columns && y < self.rows {
            Some(column.saturating_add(y.saturating_mul(self.stride_y)))
        } else {
            None
        }
    }
}

/// Reads in two dimensions, and converts: `dst[y][x]` is the element in column `t + x * stride_x` of row `y`.
///
/// - `dst`: the registers of the thread; an item outside the window keeps its value.
/// - `src`: the data of the block, from its first element. If the window reaches outside it, that is a fault.
/// - `window`: see [`Window`].
///
/// Each item is one access. No shared memory, no barrier.
///
/// Seed: `ReadData<Tx, Ty, NX, NY, IsBoundary>(dst, src, size_nx, size_ny, stride_nx, stride_ny)`.
///
/// ```
/// use kernel_primitives::prelude::*;
/// use kernel_primitives::io::{Window, read_data_2d};
///
/// /// The sum of each column of a matrix, two rows at a time.
/// #[kernel]
/// fn column_sums(cx: Block, rows: u32, x: Global<f16>, mut out: GlobalMut<f32>) {
///     let columns = out.len();
///     for i in cx.items(columns) {
///         let block_start = i.index() - cx.thread_idx().x as usize;
///         let mut sum = 0.0;
///         for row in (0..rows as usize).step_by(2) {
///             let mut items = [[0.0f32]; 2];
///             let window = Window {
///                 columns: columns - block_start,
///                 rows: rows as usize - row,
///                 stride_x: 1,
///                 stride_y: columns,
///             };
///             read_data_2d(cx, &mut items, x.slice(row * columns + block_start..), window);
///             sum += items[0][0] + items[1][0];
///         }
///         out.set(i, sum);
///     }
/// }
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = kernel_primitives::Device::emulator().stream()?;
/// let x = stream.buffer_from(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0].map(f16::from_f32))?;
/// let mut out = stream.buffer_zeroed::<f32>(2)?;
/// column_sums::launch(&stream, (1, 32), 3, &x, &mut out)?;
/// assert_eq!(out.to_vec()?, [9.0, 12.0]);
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn read_data_2d<T, U, const NX: usize, const NY: usize>(
    cx: Block<'_>,
    dst: &mut [[U; NX]; NY],
    src: Global<'_, T>,
    window: Window,
) where
    T: Element + ConvertTo<U>,
{
    let thread = cx.thread_idx().x as usize;
    for (y, row) in dst.iter_mut().enumerate() {
        for (x, item) in row.iter_mut().enumerate() {
            if let Some(offset) = window.offset(thread, x, y) {
                *item = src[offset].convert();
            }
        }
    }
}

/// Converts, and writes in two dimensions: `src[y][x]` becomes the element in column `t + x * stride_x` of row `y`, counted from `first`,
/// as far as the window has it.
///
/// Guards and accesses are those of [`read_data_2d`].
///
/// Seed: `WriteData<Tx, Ty, NX, NY, IsBoundary>(dst, src, size_nx, size_ny, stride_nx, stride_ny)`, which computes `size_nx - threadIdx.x`
/// with unsigned numbers.
///
/// ```
/// use kernel_primitives::prelude::*;
/// use kernel_primitives::io::{Window, read_data_2d, write_data_2d};
///
/// /// Copies the left part of a matrix, two rows at a time, and rounds it.
/// #[kernel]
/// fn left_part(cx: Block, from: usize, rows: usize, columns: usize, x: Global<f32>, mut out: GlobalMut<i32>) {
///     for row in (0..rows).step_by(2) {
///         let mut items = [[0.0f32]; 2];
///         let window = |stride_y| Window { columns, rows: rows - row, stride_x: 1, stride_y };
///         read_data_2d(cx, &mut items, x.slice(row * from..), window(from));
///         // SAFETY: one block of one row of threads, and each round writes other rows.
///         unsafe { write_data_2d(cx, &mut out, row * columns, &items, window(columns)) };
///     }
/// }
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = kernel_primitives::Device::emulator().stream()?;
/// let x = stream.buffer_from(&[1.5f32, 2.0, 3.0, 4.0, 5.5, 6.0, 7.0, 8.0, 9.0])?;
/// let mut out = stream.buffer_zeroed::<i32>(6)?;
/// left_part::launch(&stream, (1, 32), 3, 3, 2, &x, &mut out)?;
/// assert_eq!(out.to_vec()?, [1, 2, 4, 5, 7, 8]);
/// # Ok(())
/// # }
/// ```
///
/// # Safety
/// No other thread accesses the elements that this one writes, or a barrier or a release and an acquire lie between:
/// where `block_dim.y` and `block_dim.z` are not 1 they lead to different `first`s, and so do blocks.
#[track_caller]
pub unsafe fn write_data_2d<T, U, P, const NX: usize, const NY: usize>(
    cx: Block<'_>,
    dst: &mut GlobalMut<'_, U, P>,
    first: usize,
    src: &[[T; NX]; NY],
    window: Window,
) where
    T: Copy + ConvertTo<U>,
    U: Element,
    P: Partition,
{
    let thread = cx.thread_idx().x as usize;
    for (y, row) in src.iter().enumerate() {
        for (x, &item) in row.iter().enumerate() {
            if let Some(offset) = window.offset(thread, x, y) {
                // SAFETY: the caller's contract.
                unsafe { dst.write(first.saturating_add(offset), item.convert()) };
            }
        }
    }
}

/// Reads the items that a reduction combines: `dst[y][x] = f(src[index(kept, reduced)])` for the thread's `x`th kept and `y`th reduced
/// element.
///
/// - `index`: maps the numbers of a kept and a reduced element to the index in `src`. It is a closure over strides or over
///   [`BroadcastConfig`](super::BroadcastConfig)s, or another functor.
/// - `f`: is applied to each element. It is a functor, such as [`Cast`](crate::functor::Cast).
/// - `first`: the reduced element with which the block begins.
/// - `window`: `columns` counts kept elements and `rows` counts reduced elements. The first of the block is 0. The strides are the
///   distances between the items of a thread.
/// - `reduce_last`: whether the fastest dimension is reduced. If so, neighbouring threads (`thread_idx().x`) have neighbouring reduced
///   elements, and `thread_idx().y` counts the kept ones. Otherwise it is the other way round. In both cases, the reads of a warp are
///   coalesced.
///
/// An item outside the window keeps its value. No shared memory, no barrier.
///
/// Seed: `ReadDataReduce`, whose `index_cal` knows only the reduced element, and which does not reset `thread_offset` from one column to
/// the next.
///
/// ```
/// use kernel_primitives::prelude::*;
/// use kernel_primitives::functor::Identity;
/// use kernel_primitives::io::{Window, read_data_reduce};
///
/// /// The sums of the columns of a matrix, by blocks of one row of threads: up to four matrix rows at a time.
/// #[kernel]
/// fn column_sums(cx: Block, rows: usize, x: Global<f32>, mut out: GlobalMut<f32>) {
///     let columns = out.len();
///     for i in cx.items(columns) {
///         let start = i.index() - cx.thread_idx().x as usize;
///         let mut sum = [0.0];
///         for first in (0..rows).step_by(4) {
///             let mut items = [[0.0]; 4];
///             let index = |kept: usize, reduced: usize| reduced * columns + start + kept;
///             let window = Window { columns: columns - start, rows: rows - first, stride_x: 1, stride_y: 1 };
///             read_data_reduce(cx, &mut items, x, first, index, window, Identity, false);
///             sum = thread_reduce_y(sum, &items, Add);
///         }
///         out.set(i, sum[0]);
///     }
/// }
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = kernel_primitives::Device::emulator().stream()?;
/// let x = stream.buffer_from(&[1.0f32, 2.0, 10.0, 20.0, 100.0, 200.0])?;
/// let mut out = stream.buffer_zeroed::<f32>(2)?;
/// column_sums::launch(&stream, (1, 32), 3, &x, &mut out)?;
/// assert_eq!(out.to_vec()?, [111.0, 222.0]);
/// # Ok(())
/// # }
/// ```
#[track_caller]
#[allow(clippy::too_many_arguments, reason = "the seed's")]
pub fn read_data_reduce<T, U, const NX: usize, const NY: usize>(
    cx: Block<'_>,
    dst: &mut [[U; NX]; NY],
    src: Global<'_, T>,
    first: usize,
    index: impl BinaryFn<usize, usize, Output = usize>,
    window: Window,
    f: impl UnaryFn<T, Output = U>,
    reduce_last: bool,
) where
    T: Element,
{
    let thread = cx.thread_idx();
    let (kept, reduced) = if reduce_last { (thread.y, thread.x) } else { (thread.x, thread.y) };
    for (y, row) in dst.iter_mut().enumerate() {
        for (x, item) in row.iter_mut().enumerate() {
            let kept = (kept as usize).saturating_add(x.saturating_mul(window.stride_x));
            let reduced = (reduced as usize).saturating_add(y.saturating_mul(window.stride_y));
            if kept < window.columns && reduced < window.rows {
                *item = f.apply(src[index.apply(kept, first.saturating_add(reduced))]);
            }
        }
    }
}
