//! Matrices in the format that suits their rows.

use super::csr::{Csr, CsrIndex};
use super::sell::Sell;
use crate::algorithms::Gather;
use crate::algorithms::run::Run;
use crate::{ConvertTo, Element, Result};

/// The rows of a window in which the rows of slices are sorted, unless they stay in their order.
const WINDOW: usize = 4096;

/// A sparse matrix in the format in which products are expected to be fastest, by the lengths of its rows: compressed rows, with their
/// [method](Csr::method), or slices.
///
/// [`new`](Self::new) chooses, and a `match` tells what it chose. To take another format, make that one. The choice is the same on all devices.
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
    /// In compressed rows.
    Rows(Csr<V, I>),
    /// In slices.
    Slices(Sell<V, I>),
}

impl<V: Element, I: CsrIndex> Planned<V, I> {
    /// The matrix as it is, or in slices, with windows of 4096 rows. Slices are for large matrices: of some hundred thousand rows
    /// or more, most of which have up to some hundred entries, in whatever order. Rows of very different lengths stay as they are, and so do
    /// matrices whose slices might have more slots than `I` counts.
    ///
    /// Cost: nothing, or that of [`Sell::from_csr`], a few products. Then there is memory for both formats until it is done.
    ///
    /// Ready for numbers with indices of `u32`. For others: `instantiate!(kernel_primitives::algorithms::gather<MyValue, u32, MyValue>);`.
    ///
    /// # Errors
    /// Returns the errors of [`Sell::from_csr`]. The matrix is dropped with an error.
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
