//! Matrices in compressed rows (CSR).

use super::by_length::Giants;
use super::path::Splits;
use super::plan::{RowLengths, SpmvMethod, fault};
use super::window::Windows;
use super::wrong;
use crate::algorithms::run::Run;
use crate::algorithms::sort_pairs_by_bits;
use crate::functor::Less;
use crate::kernels::device::{self, CSR_BUILD_THREADS, CSR_DECREASING, CSR_FIRST, CSR_LAST, CSR_OUTSIDE, CSR_UNSEEN};
use crate::{Buffer, BufferSlice, BufferSliceMut, ConvertTo, Dims, Element, Error, Integer, Result, Stream};

mod sealed {
    use crate::algorithms::run::Run;
    use crate::{Buffer, BufferSlice, BufferSliceMut, Dims, Result, Stream};

    /// The launches of the kernels that do not depend on the type of the values.
    #[allow(unreachable_pub, reason = "sealed")]
    pub trait Launches: Sized {
        /// Converts a place to an index, or returns `None` if it is too large.
        fn of(place: u64) -> Option<Self>;
        fn check(
            at: (&Stream, Dims),
            offsets: &Buffer<Self>,
            indices: &Buffer<Self>,
            columns: u64,
            found: &mut Buffer<u64>,
        ) -> Result<()>;
        /// Finds the rows that have more entries than a warp takes.
        fn giants(at: (&Stream, Dims), offsets: &Buffer<Self>, found: &mut Buffer<u64>) -> Result<()>;
        /// Finds the first and the last column of each block's entries, which are its window, in a matrix of `columns` columns. Counts the
        /// windows that a block has room for, and the columns of these.
        fn windows(
            at: (&Stream, Dims),
            matrix: (&Buffer<Self>, &Buffer<Self>),
            sizes: (u64, u64),
            windows: (&mut Buffer<[u64; 2]>, &mut Buffer<u64>),
        ) -> Result<()>;
        fn row_indices(at: (&Stream, Dims), offsets: &Buffer<Self>, row_indices: &mut Buffer<Self>) -> Result<()>;
        /// Finds how many rows end before every `CSR_SPLIT_STEPS`th step along the merge path.
        fn splits(stream: &Stream, offsets: &Buffer<Self>, entries: usize, splits: &mut Buffer<u64>) -> Result<()>;
        /// Sorts the rows of each window by descending length. The windows stay in their order.
        fn order(run: Run<'_>, offsets: &Buffer<Self>, window: u64, longest: u64) -> Result<Buffer<Self>>;
        /// Counts the slots of each slice, with the rows in `order`, or in their own order if `order` is empty.
        fn slots(
            at: (&Stream, Dims),
            offsets: &Buffer<Self>,
            order: &Buffer<Self>,
            slots: &mut Buffer<u64>,
        ) -> Result<()>;
        fn fill(
            at: (&Stream, Dims),
            matrix: (&Buffer<Self>, &Buffer<Self>),
            slices: (&Buffer<Self>, &Buffer<u64>),
            rows: (&mut Buffer<u64>, &mut Buffer<Self>),
            filled: (&mut Buffer<Self>, &mut Buffer<Self>),
        ) -> Result<()>;
        fn keys(
            at: (&Stream, Dims),
            indices: (BufferSlice<'_, Self>, BufferSlice<'_, Self>),
            extents: (u64, u64),
            keys: &mut Buffer<u64>,
            found: &mut Buffer<u64>,
        ) -> Result<()>;
        fn rows_of_keys(
            at: (&Stream, Dims),
            keys: BufferSlice<'_, u64>,
            columns: u64,
            offsets: &mut Buffer<Self>,
            indices: BufferSliceMut<'_, Self>,
        ) -> Result<()>;
    }
}
pub(super) use sealed::Launches;

/// The types of offsets and column indices: `u32` or `u64`.
pub trait CsrIndex: Integer + ConvertTo<u64> + Launches {
    /// The largest number of the type.
    #[doc(hidden)]
    const MOST: u64;
}

macro_rules! indices {
    ($($t:ty),*) => {$(
        impl CsrIndex for $t {
            const MOST: u64 = <$t>::MAX as u64;
        }

        impl Launches for $t {
            fn of(place: u64) -> Option<Self> {
                place.try_into().ok()
            }

            fn check(
                (stream, dims): (&Stream, Dims),
                offsets: &Buffer<Self>,
                indices: &Buffer<Self>,
                columns: u64,
                found: &mut Buffer<u64>,
            ) -> Result<()> {
                device::csr_check::<Self>::launch(stream, dims, offsets, indices, columns, found)
            }

            fn giants((stream, dims): (&Stream, Dims), offsets: &Buffer<Self>, found: &mut Buffer<u64>) -> Result<()> {
                device::csr_giants::<Self>::launch(stream, dims, offsets, found)
            }

            fn windows(
                (stream, dims): (&Stream, Dims),
                (offsets, indices): (&Buffer<Self>, &Buffer<Self>),
                (columns, room): (u64, u64),
                (windows, found): (&mut Buffer<[u64; 2]>, &mut Buffer<u64>),
            ) -> Result<()> {
                device::csr_windows::<Self>::launch(stream, dims, offsets, indices, columns, room, windows, found)
            }

            fn row_indices(
                (stream, dims): (&Stream, Dims),
                offsets: &Buffer<Self>,
                row_indices: &mut Buffer<Self>,
            ) -> Result<()> {
                device::csr_row_indices::<Self>::launch(stream, dims, offsets, row_indices)
            }

            fn splits(
                stream: &Stream,
                offsets: &Buffer<Self>,
                entries: usize,
                splits: &mut Buffer<u64>,
            ) -> Result<()> {
                let dims = dims(splits.len(), u32::MAX as usize);
                device::csr_splits::<Self>::launch(stream, dims, offsets, entries as u64, splits)
            }

            fn order(run: Run<'_>, offsets: &Buffer<Self>, window: u64, longest: u64) -> Result<Buffer<Self>> {
                let (stream, rows) = (run.stream, offsets.len() - 1);
                let bits = u64::BITS - longest.leading_zeros();
                let (mut keys, mut numbers) = (stream.buffer_uninit::<u64>(rows)?, stream.buffer_uninit::<Self>(rows)?);
                let dims = dims(rows, u32::MAX as usize);
                device::sell_keys::<Self>::launch(
                    stream, dims, offsets, window, longest, bits, &mut keys, &mut numbers,
                )?;
                let (mut sorted, mut order) = (stream.buffer_uninit::<u64>(rows)?, stream.buffer_uninit::<Self>(rows)?);
                let windows = (rows as u64).div_ceil(window);
                let bits = bits + u64::BITS - windows.leading_zeros();
                sort_pairs_by_bits(run, &keys, &numbers, &mut sorted, &mut order, Less, 0..bits.max(1))?;
                Ok(order)
            }

            fn slots(
                (stream, dims): (&Stream, Dims),
                offsets: &Buffer<Self>,
                order: &Buffer<Self>,
                slots: &mut Buffer<u64>,
            ) -> Result<()> {
                device::sell_slots::<Self>::launch(stream, dims, offsets, order, slots)
            }

            fn fill(
                (stream, dims): (&Stream, Dims),
                (offsets, indices): (&Buffer<Self>, &Buffer<Self>),
                (order, slices): (&Buffer<Self>, &Buffer<u64>),
                (begins, lengths): (&mut Buffer<u64>, &mut Buffer<Self>),
                (columns, entries): (&mut Buffer<Self>, &mut Buffer<Self>),
            ) -> Result<()> {
                device::sell_fill::<Self>::launch(
                    stream, dims, offsets, indices, order, slices, begins, lengths, columns, entries,
                )
            }

            fn keys(
                (stream, dims): (&Stream, Dims),
                (row_indices, column_indices): (BufferSlice<'_, Self>, BufferSlice<'_, Self>),
                (rows, columns): (u64, u64),
                keys: &mut Buffer<u64>,
                found: &mut Buffer<u64>,
            ) -> Result<()> {
                device::csr_keys::<Self>::launch(
                    stream, dims, row_indices, column_indices, rows, columns, keys, found,
                )
            }

            fn rows_of_keys(
                (stream, dims): (&Stream, Dims),
                keys: BufferSlice<'_, u64>,
                columns: u64,
                offsets: &mut Buffer<Self>,
                mut indices: BufferSliceMut<'_, Self>,
            ) -> Result<()> {
                device::csr_rows_of_keys::<Self>::launch(stream, dims, keys, columns, offsets, &mut indices)
            }
        }
    )*};
}
indices!(u32, u64);

/// A sparse matrix in compressed rows (CSR), on a device.
///
/// Row `r` has the entries `offsets[r]..offsets[r + 1]`. Each entry has a column and a value. The columns of a row may be in any order. A
/// column may come twice; then both entries count. `I`, `u32` or `u64`, is the type of offsets and columns.
///
/// The call that makes a matrix checks it once: a launch reads all offsets and columns, and measures the rows. From these measurements,
/// [`spmv`](super::spmv()) chooses [how to compute](Self::method) a product.
///
/// ```
/// use kernel_primitives::algorithms::{Csr, spmv};
/// use kernel_primitives::Device;
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = Device::auto()?.stream()?;
/// // 1 0 2
/// // 0 0 0
/// // 0 3 0
/// let a = Csr::new(&stream, (3, 3), &[0u32, 2, 2, 3], &[0, 2, 1], &[1.0f32, 2.0, 3.0])?;
/// let x = stream.buffer_from(&[10.0f32, 20.0, 30.0])?;
/// let mut y = stream.buffer_zeroed::<f32>(3)?;
/// spmv(&stream, &a, &x, &mut y)?;
/// assert_eq!(y.to_vec()?, [70.0, 0.0, 60.0]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Csr<V, I = u32> {
    rows: usize,
    columns: usize,
    offsets: Buffer<I>,
    indices: Buffer<I>,
    values: Buffer<V>,
    lengths: RowLengths,
    giants: Giants,
    /// `Some` if the method needs them.
    windows: Option<Windows>,
    /// `Some` if the method needs them.
    splits: Option<Splits>,
    method: SpmvMethod,
}

impl<V: Element, I: CsrIndex> Csr<V, I> {
    /// Makes a matrix of `(rows, columns)` from arrays of the host. `offsets` has one item more than there are rows. `indices` has the
    /// column and `values` the value of each entry.
    ///
    /// # Errors
    /// Returns the errors of [`from_buffers`](Self::from_buffers).
    pub fn new(stream: &Stream, shape: (usize, usize), offsets: &[I], indices: &[I], values: &[V]) -> Result<Self> {
        check_lengths("Csr::new", shape.0, offsets.len(), indices.len(), values.len())?;
        let [offsets, indices] = [stream.buffer_from(offsets)?, stream.buffer_from(indices)?];
        Self::checked("Csr::new", stream, shape, offsets, indices, stream.buffer_from(values)?)
    }

    /// Makes a matrix of `(rows, columns)` from buffers on the stream's device, without copying them. The matrix keeps what the check found
    /// about offsets and columns. If a graph that was captured earlier changes these later, products have wrong values.
    ///
    /// Cost: one read of offsets and columns, and a wait for the result. If there are rows of more than 8192 entries, there is one more
    /// read of the offsets and one more wait. If rows have lengths that suit [`SpmvMethod::Window`], there is one more read of offsets and
    /// columns, and one more wait. If the method is [`SpmvMethod::MergePath`], there are two small launches, a wait for them, and 8 bytes
    /// of memory for each 255 entries and rows.
    ///
    /// # Errors
    /// Returns [`Error::SparseMatrix`] if there are not as many columns as values, if there is not one offset more than rows, if the first
    /// offset is not 0, if the last offset is not the number of values, if offsets decrease, or if a column is out of bounds; the error
    /// names the place. Returns the errors of a launch, of an allocation and of a copy, none of which a capture can contain.
    pub fn from_buffers(
        stream: &Stream,
        shape: (usize, usize),
        offsets: Buffer<I>,
        indices: Buffer<I>,
        values: Buffer<V>,
    ) -> Result<Self> {
        check_lengths("Csr::from_buffers", shape.0, offsets.len(), indices.len(), values.len())?;
        Self::checked("Csr::from_buffers", stream, shape, offsets, indices, values)
    }

    /// Makes the matrix after it has checked offsets and columns.
    pub(crate) fn checked(
        call: &'static str,
        stream: &Stream,
        (rows, columns): (usize, usize),
        offsets: Buffer<I>,
        indices: Buffer<I>,
        values: Buffer<V>,
    ) -> Result<Self> {
        // The values take part in no launch before the first product.
        if !values.device().same_as(stream.device()) {
            return Err(Error::WrongDevice {
                kernel: call.into(),
                argument: "`values`".into(),
                stream: stream.device().to_string(),
                buffer: values.device().to_string(),
            });
        }
        let mut found = stream.buffer_from(&CSR_UNSEEN)?;
        let most = stream.device().properties().multiprocessors.max(1) as usize * 8;
        let dims = dims(rows.max(values.len()), most);
        I::check((stream, dims), &offsets, &indices, columns as u64, &mut found)?;
        let mut seen = CSR_UNSEEN;
        found.copy_to(&mut seen)?;
        let at = |buffer: &Buffer<I>, place: usize| Ok(buffer.slice(place..place + 1)?.to_vec()?[0].convert());
        if let Some(reason) = fault(&seen, columns, values.len(), |i| at(&offsets, i), |i| at(&indices, i))? {
            return Err(wrong(call, reason));
        }
        let mut lengths = RowLengths::of(rows, values.len(), &seen);
        let giants = Giants::of(stream, &offsets, &lengths)?;
        let mut windows = None;
        if lengths.may_suit_windows::<V>() {
            let found = Windows::of::<V, I>(stream, &offsets, &indices, columns)?;
            lengths.measured(found.fitting()?);
            windows = Some(found);
        }
        let method = lengths.method();
        let windows = windows.filter(|_| method == SpmvMethod::Window);
        let splits = match method {
            SpmvMethod::MergePath => Some(Splits::of(stream, &offsets, values.len())?),
            _ => None,
        };
        Ok(Self { rows, columns, offsets, indices, values, lengths, giants, windows, splits, method })
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The number of columns.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// The number of entries.
    pub fn entries(&self) -> usize {
        self.values.len()
    }

    /// The number of entries in the longest row.
    pub fn longest_row(&self) -> usize {
        self.lengths.longest() as usize
    }

    /// The offsets: where each row begins, and after the last row, where that one ends.
    pub fn offsets(&self) -> &Buffer<I> {
        &self.offsets
    }

    /// The column of each entry.
    pub fn indices(&self) -> &Buffer<I> {
        &self.indices
    }

    /// Returns the row of each entry. With [`indices`](Self::indices) and [`values`](Self::values), this gives the triplets of the matrix
    /// on the device (COO).
    ///
    /// ```
    /// use kernel_primitives::algorithms::Csr;
    /// use kernel_primitives::Device;
    ///
    /// # fn main() -> kernel_primitives::Result<()> {
    /// let stream = Device::auto()?.stream()?;
    /// let a = Csr::new(&stream, (3, 2), &[0u32, 2, 2, 3], &[0, 1, 1], &[1.0f32, 2.0, 3.0])?;
    /// assert_eq!(a.row_indices(&stream)?.to_vec()?, [0, 0, 2]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Returns the errors of a launch and of an allocation, and [`Error::SparseMatrix`] if `I` cannot number the rows.
    pub fn row_indices(&self, stream: &Stream) -> Result<Buffer<I>> {
        self.rows_of_entries("Csr::row_indices", stream)
    }

    /// Works as [`row_indices`](Self::row_indices), for a call that errors name.
    pub(super) fn rows_of_entries(&self, call: &'static str, stream: &Stream) -> Result<Buffer<I>> {
        if self.rows.saturating_sub(1) as u64 > I::MOST {
            let reason = format!("indices of {} bits cannot number {} rows", I::WIDTH, self.rows);
            return Err(wrong(call, reason));
        }
        let mut row_indices = stream.buffer_uninit(self.entries())?;
        let at = (stream, dims(self.entries(), u32::MAX as usize));
        I::row_indices(at, &self.offsets, &mut row_indices)?;
        Ok(row_indices)
    }

    /// The lengths of the rows.
    pub(super) fn lengths(&self) -> &RowLengths {
        &self.lengths
    }

    /// The rows that several blocks share.
    pub(super) fn giants(&self) -> &Giants {
        &self.giants
    }

    /// The windows of the blocks, if the method needs them.
    pub(super) fn windows(&self) -> Option<&Windows> {
        self.windows.as_ref()
    }

    /// The beginnings of the tiles of the merge path, if the method needs them.
    pub(super) fn splits(&self) -> Option<&Splits> {
        self.splits.as_ref()
    }

    /// The value of each entry.
    pub fn values(&self) -> &Buffer<V> {
        &self.values
    }

    /// The values, which may be changed. Offsets and columns stay, so nothing needs to be checked again.
    pub fn values_mut(&mut self) -> BufferSliceMut<'_, V> {
        self.values.as_mut_slice()
    }

    /// Returns the buffers of offsets, columns and values.
    pub fn into_buffers(self) -> (Buffer<I>, Buffer<I>, Buffer<V>) {
        (self.offsets, self.indices, self.values)
    }

    /// The method that computes products. The lengths of the rows and their columns determine it, in the same way on all devices, unless
    /// [`set_method`](Self::set_method) has set it.
    ///
    /// ```
    /// use kernel_primitives::algorithms::{Csr, SpmvMethod};
    /// use kernel_primitives::Device;
    ///
    /// # fn main() -> kernel_primitives::Result<()> {
    /// let stream = Device::auto()?.stream()?;
    /// let mut a = Csr::new(&stream, (2, 2), &[0u32, 1, 2], &[0, 1], &[1.0f32, 1.0])?;
    /// println!("{:?}", a.method());
    /// a.set_method(SpmvMethod::Rows { lanes: 4 })?;
    /// assert_eq!(a.method(), SpmvMethod::Rows { lanes: 4 });
    /// # Ok(())
    /// # }
    /// ```
    pub fn method(&self) -> SpmvMethod {
        self.method
    }

    /// Sets the method that computes products.
    ///
    /// Cost: nothing for most methods. If the matrix did not have the method before, [`SpmvMethod::Window`] takes a launch that reads all
    /// columns, and [`SpmvMethod::MergePath`] two launches that read a few offsets. They run on a stream of their own, and the call waits
    /// for them.
    ///
    /// # Errors
    /// Returns [`Error::SparseMatrix`] if a row cannot have that number of lanes. For [`SpmvMethod::Window`] and [`SpmvMethod::MergePath`],
    /// returns the errors of a launch and of an allocation.
    pub fn set_method(&mut self, method: SpmvMethod) -> Result<()> {
        method.check("Csr::set_method")?;
        if method == SpmvMethod::Window && self.windows.is_none() {
            let stream = self.offsets.device().stream()?;
            let windows = Windows::of::<V, I>(&stream, &self.offsets, &self.indices, self.columns)?;
            // No one else can wait for this stream; a product in a capture would have to.
            stream.synchronize()?;
            self.windows = Some(windows);
        }
        if method == SpmvMethod::MergePath && self.splits.is_none() {
            let stream = self.offsets.device().stream()?;
            self.splits = Some(Splits::of(&stream, &self.offsets, self.values.len())?);
        }
        self.method = method;
        Ok(())
    }
}

/// Returns an error unless there is one offset more than rows, and a column for each value.
fn check_lengths(call: &'static str, rows: usize, offsets: usize, indices: usize, values: usize) -> Result<()> {
    if rows.checked_add(1) != Some(offsets) {
        return Err(wrong(call, format!("a matrix of {rows} rows has one offset more, but there are {offsets}")));
    }
    if indices != values {
        return Err(wrong(call, format!("there are {indices} column indices, but {values} values")));
    }
    Ok(())
}

/// Returns an error unless arrays of the host are a matrix of `(rows, columns)`. It finds what a launch finds in buffers.
pub(crate) fn check_arrays<I: CsrIndex>(
    call: &'static str,
    (rows, columns): (usize, usize),
    offsets: &[I],
    indices: &[I],
    values: usize,
) -> Result<()> {
    check_lengths(call, rows, offsets.len(), indices.len(), values)?;
    let number = |index: I| -> u64 { index.convert() };
    let mut found = CSR_UNSEEN;
    (found[CSR_FIRST], found[CSR_LAST]) = (number(offsets[0]), number(offsets[rows]));
    let decreasing = offsets.windows(2).position(|pair| pair[1] < pair[0]);
    let outside = indices.iter().position(|&column| number(column) >= columns as u64);
    for (place, first) in [(CSR_DECREASING, decreasing), (CSR_OUTSIDE, outside)] {
        found[place] = first.map_or(u64::MAX, |first| first as u64);
    }
    let reason = fault(&found, columns, values, |row| Ok(number(offsets[row])), |entry| Ok(number(indices[entry])))?;
    reason.map_or(Ok(()), |reason| Err(wrong(call, reason)))
}

/// The blocks of a kernel that makes or checks a matrix.
pub(super) fn dims(items: usize, most: usize) -> Dims {
    Dims::new(items.div_ceil(CSR_BUILD_THREADS).clamp(1, most) as u32, CSR_BUILD_THREADS as u32)
}
