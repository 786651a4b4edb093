//! Products by merge path. Where blocks begin is found once for a matrix.

use super::csr::{Csr, CsrIndex};
use crate::__algorithms::*;
use crate::__private::Entry;
use crate::algorithms::inclusive_scan;
use crate::algorithms::run::{Run, Scratch, grid};
use crate::functor::{Epilogue, Max, Reduction};
use crate::input::Source;
use crate::kernels::device::{self, CSR_ENDS_THREADS, CSR_SPLIT_STEPS, CSR_TILE_THREADS};
use crate::{Buffer, BufferSlice, BufferSliceMut, Element, InputArg, KernelParam, Result, Stream};

/// The number of rows that end before every [`CSR_SPLIT_STEPS`]th step of a matrix's merge path. The numbers ascend, so that each row ends
/// in one tile.
#[derive(Debug)]
pub(super) struct Splits {
    splits: Buffer<u64>,
}

impl Splits {
    /// Finds the splits of a matrix with these `offsets` and `entries` entries. It makes two launches and waits for them, because a product
    /// in a capture cannot wait for this stream.
    pub(super) fn of<I: CsrIndex>(stream: &Stream, offsets: &Buffer<I>, entries: usize) -> Result<Self> {
        let steps = offsets.len() - 1 + entries;
        let count = steps.div_ceil(CSR_SPLIT_STEPS) + 1;
        let (mut found, mut splits) = (stream.buffer_uninit(count)?, stream.buffer_uninit(count)?);
        I::splits(stream, offsets, entries, &mut found)?;
        // The numbers may not ascend if another launch has changed the offsets.
        inclusive_scan(stream, &found, Max, &mut splits)?;
        stream.synchronize()?;
        Ok(Self { splits })
    }
}

/// The kernels of products by merge path.
type Kernels<V, S, I, R, E> = (Entry<csr_tiles<V, S, I, R, E>>, Entry<csr_ends<V, <S as Source>::Item, I, R, E>>);

/// Computes the product by merge path, with two launches, or one if there is one tile.
pub(super) fn product<V, I, S, R, E>(
    (tiles_kernel, ends_kernel): Kernels<V, S, I, R, E>,
    run: Run<'_>,
    (a, splits): (&Csr<V, I>, &Splits),
    x: impl InputArg<S>,
    (z, y): (BufferSlice<'_, E::Output>, &mut BufferSliceMut<'_, E::Output>),
    (op, epilogue): (R, E),
) -> Result<()>
where
    V: Element,
    I: CsrIndex,
    S: Source,
    R: Reduction<(V, S::Item)> + KernelParam,
    E: Epilogue<R::Output> + KernelParam,
{
    let (stream, offsets) = (run.stream, a.offsets());
    let tiles = (a.rows() + a.entries()).div_ceil(device::csr_tile_steps::<R::Accum>());
    // A single tile shares no row.
    let shares = if tiles == 1 { 0 } else { 2 * tiles };
    let mut memory = run.memory(&[Scratch::<R::Accum>::bytes(shares)])?;
    let mut partials = Scratch::take(&mut memory.parts(), shares)?;
    let mut partials = partials.as_mut_slice()?;
    device::csr_tiles::launch_entry(
        tiles_kernel,
        stream,
        grid(tiles, CSR_TILE_THREADS),
        offsets,
        a.indices(),
        a.values(),
        x,
        &splits.splits,
        &mut partials,
        z,
        &mut *y,
        op,
        epilogue,
    )?;
    if tiles == 1 {
        return Ok(());
    }
    let dims = grid(tiles.div_ceil(CSR_ENDS_THREADS), CSR_ENDS_THREADS);
    device::csr_ends::launch_entry(ends_kernel, stream, dims, offsets, &splits.splits, &partials, z, y, op, epilogue)
}
