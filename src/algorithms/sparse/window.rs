//! Products by windows of the vector. The window of each block is found once for a matrix.

use super::csr::{Csr, CsrIndex};
use crate::__algorithms::*;
use crate::__private::Entry;
use crate::algorithms::run::grid;
use crate::functor::{Epilogue, Reduction};
use crate::input::{Source, Span};
use crate::kernels::device::{self, CSR_BUILD_THREADS, CSR_WINDOW_ROWS, CSR_WINDOW_THREADS};
use crate::{Buffer, BufferSlice, BufferSliceMut, Element, InputArg, KernelParam, Result, Stream};

/// The windows of a matrix's blocks, and how many of them blocks have room for.
#[derive(Debug)]
pub(super) struct Windows {
    /// For each block, the first and the last column.
    bounds: Buffer<[u64; 2]>,
    /// The number of windows that a block has room for, and the number of columns of these, for a vector whose items have the size of the
    /// matrix's values.
    found: Buffer<u64>,
}

impl Windows {
    /// Finds the windows of a matrix of values `V`, with one launch, and does not wait for it.
    pub(super) fn of<V: Element, I: CsrIndex>(
        stream: &Stream,
        offsets: &Buffer<I>,
        indices: &Buffer<I>,
        columns: usize,
    ) -> Result<Self> {
        let blocks = (offsets.len() - 1).div_ceil(CSR_WINDOW_ROWS);
        let mut windows = Self { bounds: stream.buffer_uninit(blocks)?, found: stream.buffer_zeroed(2)? };
        if blocks > 0 {
            let sizes = (columns as u64, device::csr_window_room::<Span<V>>() as u64);
            let at = (stream, grid(blocks, CSR_BUILD_THREADS));
            I::windows(at, (offsets, indices), sizes, (&mut windows.bounds, &mut windows.found))?;
        }
        Ok(windows)
    }

    /// The number of windows that a block has room for, and the number of columns of these.
    pub(super) fn fitting(&self) -> Result<(u64, u64)> {
        let found = self.found.to_vec()?;
        Ok((found[0], found[1]))
    }
}

/// Computes the product by windows, with one launch.
pub(super) fn product<V, I, S, R, E>(
    kernel: Entry<csr_window_rows<V, S, I, R, E>>,
    stream: &Stream,
    (a, windows): (&Csr<V, I>, &Windows),
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
    device::csr_window_rows::launch_entry(
        kernel,
        stream,
        grid(a.rows().div_ceil(CSR_WINDOW_ROWS), CSR_WINDOW_THREADS),
        a.offsets(),
        a.indices(),
        a.values(),
        x,
        &windows.bounds,
        z,
        y,
        op,
        epilogue,
    )
}
