//! Matrices in slices.

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
/// The 32 rows of a slice are side by side: first the first entry of each, then the second, and so on. So a warp with a row a lane reads
/// neighbouring entries. Each row of a slice has as many slots as the longest has entries. A shorter row's other slots take part in no product.
///
/// So that the rows of a slice are alike, they are sorted by length in windows of σ rows; unless there are few more slots than entries without
/// that, as with stencils. Rows in their order have their results and their items side by side, and products need not read which rows they
/// are. Nor do they read the lengths of rows where all of a slice have equally many entries.
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
    /// Where each slice begins among the slots, with `SELL_EVEN`; and after the last one, where that ends.
    pub(super) slices: Buffer<u64>,
    /// The rows as they are in slices; empty if they are in their order. Nobody else writes it: each row is in it once.
    pub(super) order: Buffer<I>,
    /// The entries of each of them.
    pub(super) lengths: Buffer<I>,
    pub(super) indices: Buffer<I>,
    pub(super) values: Buffer<V>,
}

impl<V: Element, I: CsrIndex> Sell<V, I> {
    /// The entries of a matrix in slices, with rows sorted by length in windows of `window` rows, which is rounded up to a multiple of 32. With
    /// 32 or fewer, slices have neighbouring rows. So they have if there are no more slots than 17/16 of the entries then, beside those of lanes
    /// without a row in the last slice.
    ///
    /// Cost: a scan of the slices, a read of the matrix, a write of the slots, and a wait for their number. Sorting costs a sort by as
    /// many bits as the windows and lengths have, and another scan and wait.
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
        let window = window.min(rows).max(1).next_multiple_of(SELL_ROWS);
        let count = rows.div_ceil(SELL_ROWS);
        let slices_of = |order: &Buffer<I>| -> Result<_> {
            let mut slots = stream.buffer_uninit::<u64>(count + 1)?;
            I::slots((stream, dims(count + 1, u32::MAX as usize)), matrix.offsets(), order, &mut slots)?;
            let mut slices = stream.buffer_uninit::<u64>(count + 1)?;
            exclusive_scan(run.part(), &slots, 0, Add, &mut slices)?;
            let all = slices.slice(count..)?.to_vec()?[0];
            Ok((slices, all))
        };
        let (entries, longest) = (matrix.entries() as u64, matrix.longest_row() as u64);
        // Lanes of the last slice may have no row.
        let most = entries + entries / 16 + (count * SELL_ROWS - rows) as u64 * longest;
        let mut order = stream.buffer_uninit::<I>(0)?;
        let (mut slices, mut all) = slices_of(&order)?;
        if window > SELL_ROWS && all > most.min(I::MOST) {
            order = I::order(run.part(), matrix.offsets(), window as u64, longest)?;
            (slices, all) = slices_of(&order)?;
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

    /// The entries as triplets of the host, row by row, and in a row in the matrix's order: those of [`Csr::to_coo`].
    ///
    /// # Errors
    /// Returns the errors of a copy.
    pub fn to_coo(&self) -> Result<Coo<V, I>> {
        let number = |index: I| ConvertTo::<u64>::convert(index) as usize;
        let [order, lengths, indices] = [self.order.to_vec()?, self.lengths.to_vec()?, self.indices.to_vec()?];
        let (slices, values) = (self.slices.to_vec()?, self.values.to_vec()?);
        let mut place_of: Vec<usize> = (0..self.rows()).collect();
        for (place, &row) in order.iter().enumerate() {
            place_of[number(row)] = place;
        }
        let mut triplets = Coo::new((self.rows(), self.columns))?;
        for (row, &place) in place_of.iter().enumerate() {
            let first = (slices[place / SELL_ROWS] & SELL_BEGIN) as usize + place % SELL_ROWS;
            for k in 0..number(lengths[place]) {
                let slot = first + k * SELL_ROWS;
                triplets.push(row, number(indices[slot]), values[slot])?;
            }
        }
        Ok(triplets)
    }

    /// Where slices begin, with `SELL_EVEN`; the row of each place, or nothing if it is the place; the entries of each of them; and columns
    /// and values of the slots.
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

    /// The number of slots: the entries, and what is unused.
    pub fn slots(&self) -> usize {
        self.values.len()
    }
}
