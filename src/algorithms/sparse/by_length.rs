//! Products by the length of each row. Giant rows are found when a matrix is made, and divided into shares.

use super::csr::{Csr, CsrIndex, dims};
use super::plan::RowLengths;
use crate::__algorithms::*;
use crate::__private::Entry;
use crate::algorithms::run::{Run, Scratch, grid};
use crate::functor::{Epilogue, Reduction};
use crate::input::Source;
use crate::kernels::device::{self, CSR_SHARE, CSR_THREADS};
use crate::{Buffer, BufferSlice, BufferSliceMut, Element, InputArg, KernelParam, Result, Stream};

/// The rows that are longer than a share.
#[derive(Debug)]
pub(super) struct Giants {
    /// For each share, its row, and the place of its first entry in the row.
    shares: Buffer<[u64; 2]>,
    /// For each row, its number, its first share, and the share after its last.
    rows: Buffer<[u64; 3]>,
}

impl Giants {
    /// Finds the giant rows of a matrix with these `offsets`. If there are none, there is no launch.
    pub(super) fn of<I: CsrIndex>(stream: &Stream, offsets: &Buffer<I>, lengths: &RowLengths) -> Result<Self> {
        if lengths.giant_entries() == 0 {
            return Ok(Self { shares: stream.buffer_uninit(0)?, rows: stream.buffer_uninit(0)? });
        }
        let (mut shares, mut rows) = (Vec::new(), Vec::new());
        // There are no more shares than the rows had when they were measured, even if another launch has changed the rows.
        let mut left = lengths.giant_entries() as u64;
        for (row, entries) in found(stream, offsets, lengths)? {
            let entries = entries.min(left);
            left -= entries;
            let first = shares.len() as u64;
            shares.extend((0..entries).step_by(CSR_SHARE).map(|entry| [row, entry]));
            rows.push([row, first, shares.len() as u64]);
        }
        Ok(Self { shares: stream.buffer_from(&shares)?, rows: stream.buffer_from(&rows)? })
    }
}

/// The numbers and the entries of giant rows, in order.
fn found<I: CsrIndex>(stream: &Stream, offsets: &Buffer<I>, lengths: &RowLengths) -> Result<Vec<(u64, u64)>> {
    // There is room for the largest possible number of giant rows, all of the shortest length.
    let most = lengths.giant_entries() / (CSR_SHARE + 1);
    let mut found = stream.buffer_zeroed::<u64>(1 + 2 * most)?;
    I::giants((stream, dims(offsets.len() - 1, u32::MAX as usize)), offsets, &mut found)?;
    let found = found.to_vec()?;
    let rows = found[1..].chunks_exact(2).take(found[0] as usize);
    let mut rows: Vec<_> = rows.map(|row| (row[0], row[1])).collect();
    rows.sort_unstable();
    Ok(rows)
}

/// The kernels of products by the length of each row.
type Kernels<V, S, I, R, E> =
    (Entry<csr_rows_by_length<V, S, I, R, E>>, Entry<csr_giant_rows<V, <S as Source>::Item, I, R, E>>);

/// Computes the product by the length of each row, with one launch, or two if there are giant rows.
pub(super) fn product<V, I, S, R, E>(
    (rows_kernel, giants_kernel): Kernels<V, S, I, R, E>,
    run: Run<'_>,
    a: &Csr<V, I>,
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
    let (stream, giants) = (run.stream, a.giants());
    let shares = giants.shares.len();
    let mut memory = run.memory(&[Scratch::<R::Accum>::bytes(shares)])?;
    let mut parts = memory.parts();
    let mut partials = Scratch::take(&mut parts, shares)?;
    let mut partials = partials.as_mut_slice()?;
    device::csr_rows_by_length::launch_entry(
        rows_kernel,
        stream,
        grid(shares.saturating_add(a.rows().div_ceil(CSR_THREADS)), CSR_THREADS),
        a.offsets(),
        a.indices(),
        a.values(),
        x,
        &giants.shares,
        &mut partials,
        z,
        &mut *y,
        op,
        epilogue,
    )?;
    if shares == 0 {
        return Ok(());
    }
    let dims = grid(giants.rows.len(), CSR_THREADS);
    device::csr_giant_rows::launch_entry(
        giants_kernel,
        stream,
        dims,
        a.offsets(),
        &giants.rows,
        &partials,
        z,
        y,
        op,
        epilogue,
    )
}
