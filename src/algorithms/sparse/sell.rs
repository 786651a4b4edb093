//! Matrices in slices.

use super::coo::Coo;
use super::csr::{Csr, CsrIndex, dims};
use super::wrong;
use crate::algorithms::run::Run;
use crate::algorithms::{Gather, exclusive_scan, gather};
use crate::functor::Add;
use crate::kernels::device::SELL_ROWS;
use crate::{Buffer, ConvertTo, Element, Result};

/// The name of the call, in errors.
const CALL: &str = "Sell::from_csr";

/// A sparse matrix in slices of 32 rows (SELL-C-σ, with C = 32), on a device.
///
/// The rows are sorted by length in windows of σ rows, and the 32 rows of a slice are side by side: first the first entry of each, then
/// the second, and so on. So a warp with a row a lane reads neighbouring entries. Each row of a slice has as many slots as the longest has
/// entries. The rest stay unused, and no product reads them.
///
/// [`spmv`](super::spmv()) takes it as it takes a [`Csr`]. It is for matrices of short rows that are multiplied often: making one costs a few
/// products. A large window has slices of alike rows, but the results and the items of neighbouring rows get further apart.
///
/// ```
/// use kernel_primitives::algorithms::{Csr, Sell, spmv};
/// use kernel_primitives::Device;
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = Device::auto()?.stream()?;
/// let a = Csr::new(&stream, (2, 3), &[0u32, 2, 3], &[0, 2, 1], &[1.0f32, 2.0, 3.0])?;
/// let slices = Sell::from_csr(&stream, &a, 256)?;
/// let x = stream.buffer_from(&[10.0f32, 20.0, 30.0])?;
/// let mut y = stream.buffer_zeroed::<f32>(2)?;
/// spmv(&stream, &slices, &x, &mut y)?;
/// assert_eq!(y.to_vec()?, [70.0, 60.0]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Sell<V, I = u32> {
    columns: usize,
    entries: usize,
    /// Where each slice begins among the slots, and after the last one, where that ends.
    pub(super) slices: Buffer<u64>,
    /// The rows as they are in slices. Nobody else writes it: each row is in it once.
    pub(super) order: Buffer<I>,
    /// The entries of each of them.
    pub(super) lengths: Buffer<I>,
    pub(super) indices: Buffer<I>,
    pub(super) values: Buffer<V>,
}

impl<V: Element, I: CsrIndex> Sell<V, I> {
    /// The entries of a matrix in slices, with rows sorted by length in windows of `window` rows, which is rounded up to a multiple of 32. With
    /// 32 or fewer, slices have neighbouring rows.
    ///
    /// Cost: a sort of the rows by as many bits as their windows and lengths have, a scan of the slices, a read of the matrix, a write of the
    /// slots, and a wait for their number.
    ///
    /// Ready for numbers with indices of `u32`. For others, write
    /// `instantiate!(kernel_primitives::algorithms::gather<MyValue, u32, MyValue>);`.
    ///
    /// # Errors
    /// Returns [`Error::SparseMatrix`](crate::Error::SparseMatrix) if there are more rows or slots than `I` counts; and the errors of a launch, of
    /// an allocation and of a copy, which a capture cannot have.
    pub fn from_csr<'a, Tag>(run: impl Into<Run<'a>>, matrix: &Csr<V, I>, window: usize) -> Result<Self>
    where
        I: ConvertTo<usize>,
        V: Gather<I, V, Tag>,
    {
        let run = run.into();
        let (stream, rows) = (run.stream, matrix.rows());
        if rows as u64 > I::MOST {
            return Err(wrong(CALL, format!("indices of {} bits cannot number {rows} rows", I::WIDTH)));
        }
        let window = window.min(rows).max(1).next_multiple_of(SELL_ROWS) as u64;
        let order = I::order(run.part(), matrix.offsets(), window, matrix.longest_row() as u64)?;
        let count = rows.div_ceil(SELL_ROWS);
        let mut slots = stream.buffer_uninit::<u64>(count + 1)?;
        I::slots((stream, dims(count + 1, u32::MAX as usize)), matrix.offsets(), &order, &mut slots)?;
        let mut slices = stream.buffer_uninit::<u64>(count + 1)?;
        exclusive_scan(run.part(), &slots, 0, Add, &mut slices)?;
        let all = slices.slice(count..)?.to_vec()?[0];
        if all > I::MOST {
            return Err(wrong(CALL, format!("there are {all} slots, and the index type counts to {}", I::MOST)));
        }
        let all = all as usize;
        let mut lengths = stream.buffer_uninit::<I>(rows)?;
        let (mut indices, mut entries) = (stream.buffer_uninit::<I>(all)?, stream.buffer_uninit::<I>(all)?);
        I::fill(
            (stream, dims(count * SELL_ROWS, u32::MAX as usize)),
            (matrix.offsets(), matrix.indices()),
            (&order, &slices),
            (&mut lengths, &mut indices, &mut entries),
        )?;
        let mut values = stream.buffer_uninit::<V>(all)?;
        gather(run, matrix.values(), &entries, &mut values)?;
        Ok(Self { columns: matrix.columns(), entries: matrix.entries(), slices, order, lengths, indices, values })
    }

    /// The entries as triplets of the host, row by row, and in a row in the matrix's order: those of [`Csr::to_coo`].
    ///
    /// # Errors
    /// Returns the errors of a copy.
    pub fn to_coo(&self) -> Result<Coo<V, I>> {
        let number = |index: I| ConvertTo::<u64>::convert(index) as usize;
        let [order, lengths, indices] = [self.order.to_vec()?, self.lengths.to_vec()?, self.indices.to_vec()?];
        let (slices, values) = (self.slices.to_vec()?, self.values.to_vec()?);
        let mut place_of = vec![0; order.len()];
        for (place, &row) in order.iter().enumerate() {
            place_of[number(row)] = place;
        }
        let mut triplets = Coo::new((self.rows(), self.columns))?;
        for (row, &place) in place_of.iter().enumerate() {
            let first = slices[place / SELL_ROWS] as usize + place % SELL_ROWS;
            for k in 0..number(lengths[place]) {
                let slot = first + k * SELL_ROWS;
                triplets.push(row, number(indices[slot]), values[slot])?;
            }
        }
        Ok(triplets)
    }

    /// Where slices begin, the row of each place, the entries of each of them, and columns and values of the slots.
    #[allow(clippy::type_complexity, reason = "the fields")]
    pub(crate) fn arrays(&self) -> (&Buffer<u64>, &Buffer<I>, &Buffer<I>, &Buffer<I>, &Buffer<V>) {
        (&self.slices, &self.order, &self.lengths, &self.indices, &self.values)
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.order.len()
    }

    /// The number of columns.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// The number of entries.
    pub fn entries(&self) -> usize {
        self.entries
    }

    /// The number of slots: the entries, and what is unused.
    pub fn slots(&self) -> usize {
        self.values.len()
    }
}
