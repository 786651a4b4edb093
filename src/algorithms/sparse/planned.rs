//! Matrices in the format that suits their rows.

use super::csr::{Csr, CsrIndex};
use super::sell::Sell;
use crate::algorithms::Gather;
use crate::algorithms::run::Run;
use crate::{ConvertTo, Element, Result};

/// The number of rows of a window in which the rows of slices are sorted, unless they keep their order.
const WINDOW: usize = 4096;

/// A sparse matrix in the format whose products are expected to be fastest, which depends on the lengths of its rows. It is in compressed
/// rows, with their [method](Csr::method), or in slices.
///
/// [`new`](Self::new) chooses the format, and a `match` shows it. To use another format, make a matrix of that format. The choice is the
/// same on all devices.
///
/// ```
/// use kernel_primitives::algorithms::{Csr, Planned, spmv};
/// use kernel_primitives::Device;
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = Device::auto()?.stream()?;
/// let a = Csr::new(&stream, (2, 3), &[0u32, 2, 3], &[0, 2, 1], &[1.0f32, 2.0, 3.0])?;
/// let a = Planned::new(&stream, a)?;
/// assert!(matches!(a, Planned::Rows(_)));
/// let x = stream.buffer_from(&[10.0f32, 20.0, 30.0])?;
/// let mut y = stream.buffer_zeroed::<f32>(2)?;
/// spmv(&stream, &a, &x, &mut y)?;
/// assert_eq!(y.to_vec()?, [70.0, 60.0]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum Planned<V, I = u32> {
    /// Compressed rows.
    Rows(Csr<V, I>),
    /// Slices.
    Slices(Sell<V, I>),
}

impl<V: Element, I: CsrIndex> Planned<V, I> {
    /// Keeps the matrix in compressed rows, or converts it to slices with windows of 4096 rows. Slices are for large matrices: those with a
    /// few hundred thousand rows or more, most of which have up to a few hundred entries, in any order. A matrix stays in compressed rows
    /// if its rows have very different lengths, or if its slices might have more slots than `I` can count.
    ///
    /// Cost: nothing, or that of [`Sell::from_csr`], which is that of a few products. Until a conversion is done, there is memory for both
    /// formats.
    ///
    /// Ready for numbers with indices of `u32`. For others, write `instantiate!(kernel_primitives::algorithms::gather<MyValue, u32,
    /// MyValue>);`.
    ///
    /// # Errors
    /// Returns the errors of [`Sell::from_csr`]. An error drops the matrix.
    pub fn new<'a, Tag>(run: impl Into<Run<'a>>, matrix: Csr<V, I>) -> Result<Self>
    where
        I: ConvertTo<usize>,
        V: Gather<I, V, Tag>,
    {
        if matrix.rows() as u64 <= I::MOST && matrix.lengths().suit_slices(WINDOW, I::MOST) {
            return Sell::from_csr(run, &matrix, WINDOW).map(Self::Slices);
        }
        Ok(Self::Rows(matrix))
    }
}
