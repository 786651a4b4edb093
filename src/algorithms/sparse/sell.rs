//! Matrices in slices (SELL).

use super::coo::Coo;
use super::csr::{Csr, CsrIndex, dims};
use super::wrong;
use crate::algorithms::run::Run;
use crate::algorithms::{Gather, exclusive_scan, gather};
use crate::functor::Add;
use crate::kernels::device::{SELL_BEGIN, SELL_ROWS};
use crate::{Buffer, ConvertTo, Element, Result};

/// The name of the call, in errors.
const CALL: &str = "Sell::from_csr";

/// A sparse matrix in slices of 32 rows (SELL-C-σ, with C = 32), on a device.
///
/// The 32 rows of a slice are stored side by side: the first entry of each row, then the second entry of each row, and so on. So a warp in
/// which each lane has a row reads neighbouring entries. Each row of a slice has as many slots as the longest row has entries. Unused slots
/// take part in no product.
///
/// Rows are sorted by length in windows of σ rows, so that the rows of a slice have similar lengths. They are not sorted if there are few
/// more slots than entries without that, as for stencils. If rows keep their order, neighbouring rows have neighbouring results, and
/// products need not read the order. If all rows of a slice have the same length, products need not read the lengths either.
///
/// [`spmv`](super::spmv()) takes such a matrix as it takes a [`Csr`]. The format is for matrices of short rows that are multiplied often;
/// to make one costs as much as a few products. With a larger window, the rows of a slice have more similar lengths, but the results of
/// neighbouring rows, and the items that they read, lie further apart.
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
    /// The first slot of each slice, combined with `SELL_EVEN`, and, after the last slice, where that ends.
    pub(super) slices: Buffer<u64>,
    /// The order of the rows in the slices. It is empty if the rows keep their own order. No one else writes it, so it contains each row
    /// once.
    pub(super) order: Buffer<I>,
    /// The number of entries of each row, in the order of the slices.
    pub(super) lengths: Buffer<I>,
    pub(super) indices: Buffer<I>,
    pub(super) values: Buffer<V>,
}

impl<V: Element, I: CsrIndex> Sell<V, I> {
    /// Makes a matrix in slices from the entries of `matrix`. Rows are sorted by length in windows of `window` rows, which is rounded up to
    /// a multiple of 32. Rows keep their order if `window` is 32 or less. They also keep it if there are then no more slots than 17/16 of
    /// the entries, without counting lanes of the last slice that have no row.
    ///
    /// Cost: a scan of the slices, a read of the matrix, a write of the slots, and a wait for the number of slots. If rows are sorted,
    /// there are also a sort, by as many bits as the numbers of windows and the lengths have, another scan and another wait.
    ///
    /// Ready for numbers with indices of `u32`. For others, write
    /// `instantiate!(kernel_primitives::algorithms::gather<MyValue, u32, MyValue>);`.
    ///
    /// # Errors
    /// Returns [`Error::SparseMatrix`](crate::Error::SparseMatrix) if `I` cannot count the rows or the slots. Returns the errors of a
    /// launch, of an allocation and of a copy, none of which a capture can contain.
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
        let window = window.min(rows).max(1).next_multiple_of(SELL_ROWS);
        let count = rows.div_ceil(SELL_ROWS);
        let slices_of = |order: &Buffer<I>| -> Result<_> {
            let mut slots = stream.buffer_uninit::<u64>(count + 1)?;
            I::slots((stream, dims(count + 1, u32::MAX as usize)), matrix.offsets(), order, &mut slots)?;
            let mut slices = stream.buffer_uninit::<u64>(count + 1)?;
            exclusive_scan(run.part(), &slots, 0, Add, &mut slices)?;
            let ends = slices.slice(count.saturating_sub(1)..)?.to_vec()?;
            let (last, all) = (ends[0], ends[ends.len() - 1]);
            // Lanes of the last slice may have no row. Damaged offsets may give any numbers.
            let without_row = (count * SELL_ROWS - rows) as u64 * (all.wrapping_sub(last) / SELL_ROWS as u64);
            Ok((slices, all, all.saturating_sub(without_row)))
        };
        let entries = matrix.entries() as u64;
        let mut order = stream.buffer_uninit::<I>(0)?;
        let (mut slices, mut all, of_rows) = slices_of(&order)?;
        if window > SELL_ROWS && (of_rows > entries + entries / 16 || all > I::MOST) {
            order = I::order(run.part(), matrix.offsets(), window as u64, matrix.longest_row() as u64)?;
            (slices, all, _) = slices_of(&order)?;
        }
        if all > I::MOST {
            return Err(wrong(CALL, format!("there are {all} slots, and the index type counts to {}", I::MOST)));
        }
        let all = all as usize;
        let (mut begins, mut lengths) = (stream.buffer_uninit::<u64>(count + 1)?, stream.buffer_uninit::<I>(rows)?);
        let (mut indices, mut entries) = (stream.buffer_uninit::<I>(all)?, stream.buffer_uninit::<I>(all)?);
        I::fill(
            (stream, dims(count * SELL_ROWS, u32::MAX as usize)),
            (matrix.offsets(), matrix.indices()),
            (&order, &slices),
            (&mut begins, &mut lengths),
            (&mut indices, &mut entries),
        )?;
        let mut values = stream.buffer_uninit::<V>(all)?;
        gather(run, matrix.values(), &entries, &mut values)?;
        Ok(Self {
            columns: matrix.columns(),
            entries: matrix.entries(),
            slices: begins,
            order,
            lengths,
            indices,
            values,
        })
    }

    /// Copies the entries to the host as triplets, row by row. Within a row they keep the order of the matrix. The result equals that of
    /// [`Csr::to_coo`].
    ///
    /// # Errors
    /// Returns [`Error::SparseMatrix`](crate::Error::SparseMatrix) if `I` cannot number the rows and columns, or if a graph had damaged the
    /// matrix that the slices were made from. Returns the errors of a copy.
    pub fn to_coo(&self) -> Result<Coo<V, I>> {
        let fail = |reason| wrong("Sell::to_coo", reason);
        let mut triplets = Coo::shaped(self.rows(), self.columns).map_err(fail)?;
        let number = |index: I| ConvertTo::<u64>::convert(index) as usize;
        let [order, lengths, indices] = [self.order.to_vec()?, self.lengths.to_vec()?, self.indices.to_vec()?];
        let (slices, values) = (self.slices.to_vec()?, self.values.to_vec()?);
        let mut place_of: Vec<usize> = (0..self.rows()).collect();
        for (place, &row) in order.iter().enumerate() {
            place_of[number(row)] = place;
        }
        for (row, &place) in place_of.iter().enumerate() {
            let first = (slices[place / SELL_ROWS] & SELL_BEGIN) as usize + place % SELL_ROWS;
            for k in 0..number(lengths[place]) {
                let slot = first + k * SELL_ROWS;
                triplets.put(row, number(indices[slot]), values[slot]).map_err(fail)?;
            }
        }
        Ok(triplets)
    }

    /// Returns the first slot of each slice, combined with `SELL_EVEN`; the row of each place, or an empty buffer if rows keep their order;
    /// the number of entries of each of these rows; and the columns and values of the slots.
    #[allow(clippy::type_complexity, reason = "the fields")]
    pub(crate) fn arrays(&self) -> (&Buffer<u64>, &Buffer<I>, &Buffer<I>, &Buffer<I>, &Buffer<V>) {
        (&self.slices, &self.order, &self.lengths, &self.indices, &self.values)
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.lengths.len()
    }

    /// The number of columns.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// The number of entries.
    pub fn entries(&self) -> usize {
        self.entries
    }

    /// The number of slots, used and unused.
    pub fn slots(&self) -> usize {
        self.values.len()
    }
}
