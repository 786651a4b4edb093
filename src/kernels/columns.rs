//! Reductions along a dimension that is not the last one.

use kernel_primitives::block::{ColumnStorage, Each};
use kernel_primitives::functor::{All, Any, ArgMax, ArgMin, FirstPass, Indexed, L2, LastPass, MaxOf, Mean, MinOf, Sum};
use kernel_primitives::prelude::*;

/// The number of threads in the largest block.
const THREADS: usize = 256;

/// The number of rows that a thread has in flight.
const BATCH: usize = 8;

/// The number of blocks that share the registers of a multiprocessor, by the bytes of an item and of a thread's accumulators.
const fn blocks_in_flight(item: usize, accumulators: usize) -> u32 {
    match (item, accumulators) {
        // The first pass of an arg-reduction leaves items of four words, and a thread has a batch of them.
        (9.., _) => 1,
        (_, 16) => 3,
        _ => 2,
    }
}

/// Reduces the middle dimension of `x`, whose shape is `[outer, reduced, inner]`. The dimension is divided into as many parts as the grid
/// has blocks along `y`. `out` has the shape `[outer, parts, inner]`, and each element is the reduction of a part of a column. With one
/// part, this is the result. With more parts, `R` is [`FirstPass`], and a second launch reduces `out` with [`LastPass`]. `run` makes both
/// launches.
///
/// The threads of a block along `x` have `NX` columns each. Those along `y` have rows, and those along `z` have outer elements. A block has
/// at most 256 threads. The grid along `x` needs a block for each tile of columns and outer elements, and the tiles of columns come first.
/// A grid with fewer blocks is a fault, and so is a grid along `z`.
///
/// The combination must be commutative. All reductions of [`functor`](kernel_primitives::functor) are, except
/// [`ReduceBy`](kernel_primitives::functor::ReduceBy) with an operator that is not. A thread has eight rows in flight, by accesses of 16
/// bytes, if a row of `inner` elements and the address of the buffer are multiples of 16 bytes. Every element is read once.
/// [`block_y_reduce`] combines the results of a column. The order depends only on the shape of the launch.
///
/// Seed: `ReduceHigherDim`.
///
/// ```
/// use kernel_primitives::functor::{ArgMax, Sum};
/// use kernel_primitives::kernels::reduce_higher_dim;
/// use kernel_primitives::Device;
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = Device::auto()?.stream()?;
/// // Two matrices of two rows and three columns.
/// let x = stream.buffer_from(&[1.0f32, 2.0, 3.0, 10.0, 20.0, 30.0, -1.0, -2.0, -3.0, 0.0, -4.0, 0.5])?;
/// let mut sums = stream.buffer_zeroed::<f32>(6)?;
/// reduce_higher_dim::<f32, Sum, 4>::run(&stream, [2, 2, 3], &x, &mut sums, Sum)?;
/// assert_eq!(sums.to_vec()?, [11.0, 22.0, 33.0, -1.0, -6.0, -2.5]);
/// # Ok(())
/// # }
/// ```
#[kernel(max_threads(THREADS), min_blocks(blocks_in_flight(size_of::<T>(), size_of::<[R::Accum; NX]>())), instantiate(
    <f32, Sum, 4>, <f32, FirstPass<Sum>, 4>, <f32, LastPass<Sum, f32>, 4>,
    <f64, Sum, 2>, <f64, FirstPass<Sum>, 2>, <f64, LastPass<Sum, f64>, 2>,
    <f16, Sum, 8>, <f16, FirstPass<Sum>, 8>, <f32, LastPass<Sum, f16>, 8>,
    <bf16, Sum, 8>, <bf16, FirstPass<Sum>, 8>, <f32, LastPass<Sum, bf16>, 8>,
    <i32, Sum, 4>, <i32, FirstPass<Sum>, 4>, <i32, LastPass<Sum, i32>, 4>,
    <f32, Mean, 4>, <f32, FirstPass<Mean>, 4>, <f32, LastPass<Mean, f32>, 4>,
    <f32, MaxOf, 4>, <f32, FirstPass<MaxOf>, 4>, <f32, LastPass<MaxOf, f32>, 4>,
    <f32, MinOf, 4>, <f32, FirstPass<MinOf>, 4>, <f32, LastPass<MinOf, f32>, 4>,
    <f32, ArgMax, 4>, <f32, FirstPass<ArgMax>, 4>, <Indexed<f32>, LastPass<ArgMax, f32>, 4>,
    <f32, ArgMin, 4>, <f32, FirstPass<ArgMin>, 4>, <Indexed<f32>, LastPass<ArgMin, f32>, 4>,
    <f32, L2, 4>, <f32, FirstPass<L2>, 4>, <f32, LastPass<L2, f32>, 4>,
    <bool, Any, 4>, <bool, FirstPass<Any>, 4>, <bool, LastPass<Any, bool>, 4>,
    <bool, All, 4>, <bool, FirstPass<All>, 4>, <bool, LastPass<All, bool>, 4>,
))]
#[allow(clippy::too_many_arguments, reason = "shape, input and output")]
pub fn reduce_higher_dim<T, R, const NX: usize>(
    cx: Block,
    outer: usize,
    reduced: usize,
    inner: usize,
    x: Global<T>,
    mut out: GlobalMut<R::Output>,
    op: R,
    mut shared: Shared<ColumnStorage<[R::Accum; NX], THREADS>>,
) where
    T: Element,
    R: Reduction<T, Output: Element> + KernelParam,
{
    let (dim, at, block, grid) = (cx.block_dim(), cx.thread_idx(), cx.block_idx(), cx.grid_dim());
    let (parts, part) = (grid.y as usize, block.y as usize);
    let rows_a_part = (reduced + parts - 1).checked_div(parts).unwrap_or(0);
    let begin = (part * rows_a_part).min(reduced);
    let rows = rows_a_part.min(reduced - begin);

    let x = x.slice(..outer.saturating_mul(reduced).saturating_mul(inner));
    // This is the distance from a row of a thread to its next row.
    let stride = inner.saturating_mul(dim.y as usize);
    let in_vectors = inner.is_multiple_of(NX) && x.in_vectors::<NX>() && stride <= u32::MAX as usize / BATCH;
    // With vectors, the columns of a thread are neighbours. Otherwise, the columns of a warp are.
    let (own, apart) = if in_vectors { (at.x as usize * NX, 1) } else { (at.x as usize, dim.x as usize) };

    // Each block has one tile. In a loop over tiles, the compiler would keep all positions in registers.
    let tile = dim.x as usize * NX;
    let tiles = (inner + tile - 1).checked_div(tile).unwrap_or(0).max(1);
    let planes = (grid.x as usize).checked_div(tiles).unwrap_or(0).saturating_mul(dim.z as usize);
    cx.require_at_most(outer, planes);
    cx.require_at_most(grid.z as usize, 1);
    let group = (block.x as usize).checked_div(tiles).unwrap_or(0);
    let plane = group * dim.z as usize + at.z as usize;
    let column = (block.x as usize - group * tiles) * tile + own;
    let is_inside = plane < outer && column < inner;
    let mut totals = [op.identity(); NX];
    if is_inside {
        let start = (plane * reduced + begin) * inner;
        let from = x.slice(start..start + rows * inner);
        let mut take = |items: &[T; NX], row: usize| {
            for (total, &item) in totals.iter_mut().zip(items) {
                *total = op.combine(*total, op.pre(item, (begin + row) as u64));
            }
        };
        let mut row = at.y as usize;
        if in_vectors {
            while row < rows {
                let mut items = [[T::ZERO; NX]; BATCH];
                from.read_vectors(row * inner + column, stride, &mut items);
                let ahead = (rows - row).min(u32::MAX as usize) as u32;
                for (y, items) in items.iter().enumerate() {
                    if y as u32 * dim.y < ahead {
                        take(items, row + y * dim.y as usize);
                    }
                }
                row += BATCH * dim.y as usize;
            }
        } else {
            while row < rows {
                let from = from.row(row, inner);
                // The first column is inside. The reduction gets only items of the input.
                let own = from.get(column).unwrap_or(T::ZERO);
                let items = core::array::from_fn(|i| from.get(column + i * apart).unwrap_or(own));
                take(&items, row);
                row += dim.y as usize;
            }
        }
    }
    let totals = block_y_reduce(cx, &mut shared, totals, Each(op.reducer()));
    if is_inside && at.y == 0 {
        let results = totals.map(|total| op.post(total, reduced as u64));
        let first = (plane * parts + part) * inner + column;
        // SAFETY: of all threads of the grid only this one has this part of these columns.
        unsafe {
            if in_vectors {
                out.write_items(first, &results);
            } else {
                for (i, &result) in results.iter().enumerate() {
                    if column + i * apart < inner {
                        out.write(first + i * apart, result);
                    }
                }
            }
        }
    }
}

#[cfg(not(target_arch = "nvptx64"))]
mod host {
    use kernel_primitives::__private::Instantiated;
    use kernel_primitives::functor::{FirstPass, LastPass};
    use kernel_primitives::{Dims, Element, KernelParam, ReadArg, Reduction, Result, Stream, WriteArg};

    use super::{BATCH, THREADS, reduce_higher_dim};

    /// Returns the grid and the block for a shape and a number of parts.
    fn dims([outer, reduced, inner]: [usize; 3], items: usize, parts: usize) -> Dims {
        // The power of two from an extent on, or `most`, which is one, too.
        let power = |extent: usize, most: usize| extent.min(most).next_power_of_two();
        let x = power(inner.div_ceil(items), 32);
        let y = power(reduced, THREADS / x);
        let z = power(outer, (THREADS / (x * y)).min(64));
        let blocks = inner.div_ceil(x * items).max(1).saturating_mul(outer.div_ceil(z)).clamp(1, i32::MAX as usize);
        Dims::new((blocks as u32, parts as u32), (x as u32, y as u32, z as u32))
    }

    /// Returns the number of parts of the reduced dimension that gives work to all multiprocessors.
    pub(super) fn parts([outer, reduced, inner]: [usize; 3], items: usize, multiprocessors: usize) -> usize {
        let columns = outer.saturating_mul(inner).div_ceil(items * 32).max(1);
        if columns >= 4 * multiprocessors {
            return 1;
        }
        // If a part has less than two batches for each thread, its partial results cost more than it gains.
        let most = (reduced / (2 * BATCH * THREADS / 32)).clamp(1, 65535);
        (16 * multiprocessors).div_ceil(columns).min(most)
    }

    impl<T, R, const NX: usize> reduce_higher_dim<T, R, NX>
    where
        T: Element,
        R: Reduction<T, Output: Element> + KernelParam,
    {
        /// Reduces the middle dimension of `x`, of the shape `[outer, reduced, inner]`, to `out`, of the shape `[outer, inner]`.
        ///
        /// It makes one launch, or two if there are too few columns for the device. With two launches, it allocates memory for partial
        /// results of the accumulation type. There are at most a 128th as many as `x` has elements. In a capture, allocation is not
        /// possible. There, make the two launches by `launch`.
        ///
        /// # Errors
        /// Returns the errors of the launches and of the allocation. Buffers that are too short are a fault.
        pub fn run<Single, First, Last>(
            stream: &Stream,
            shape: [usize; 3],
            x: impl ReadArg<T>,
            out: impl WriteArg<R::Output>,
            op: R,
        ) -> Result<()>
        where
            Self: Instantiated<Single>,
            reduce_higher_dim<T, FirstPass<R>, NX>: Instantiated<First>,
            reduce_higher_dim<R::Accum, LastPass<R, T>, NX>: Instantiated<Last>,
        {
            let [outer, reduced, inner] = shape;
            if outer == 0 || inner == 0 {
                return Ok(());
            }
            let multiprocessors = stream.device().properties().multiprocessors as usize;
            let parts = parts(shape, NX, multiprocessors);
            if parts == 1 {
                return Self::launch(stream, dims(shape, NX, 1), outer, reduced, inner, x, out, op);
            }
            let mut partial = stream.buffer_uninit::<R::Accum>(outer * parts * inner)?;
            reduce_higher_dim::<T, FirstPass<R>, NX>::launch(
                stream,
                dims(shape, NX, parts),
                outer,
                reduced,
                inner,
                x,
                &mut partial,
                FirstPass(op),
            )?;
            reduce_higher_dim::<R::Accum, LastPass<R, T>, NX>::launch(
                stream,
                dims([outer, parts, inner], NX, 1),
                outer,
                parts,
                inner,
                &partial,
                out,
                LastPass::new(op, reduced as u64),
            )
        }
    }
}
