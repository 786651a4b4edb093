//! Sparse matrices whose rows are split over devices.

use std::fmt;
use std::ops::Range;

use super::exchange::Exchange;
use crate::algorithms::{Csr, CsrIndex, SpmvMethod, check_arrays};
use crate::{Buffer, BufferSliceMut, Element, Error, Result, Split, Stream};

/// A sparse matrix in compressed rows (CSR), whose rows are split over devices: [`split::spmv`](crate::split::spmv) multiplies it by a vector.
///
/// Device `d` of the [`Split`] has the rows [`range(d)`](Self::range), and the items [`column_range(d)`](Self::column_range) of the vector
/// that the matrix multiplies. The split determines both ranges, so the vectors of a square matrix are split as its rows.
///
/// The rows of a device form a [`Csr`], its [`part`](Self::part). Its columns have other numbers: first come the columns of the device's
/// own items, and then its [`halo`](Self::halo), the columns whose items it reads from other devices. The constructor finds once which
/// items go between devices.
///
/// ```
/// use kernel_primitives::split::{self, SplitCsr};
/// use kernel_primitives::{Devices, Split, SplitBuffer};
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let devices = Split::even(&Devices::emulated(2)?)?;
/// // 2 1 . .
/// // 1 2 1 .
/// // . 1 2 1
/// // . . 1 2
/// let (offsets, columns) = ([0u32, 2, 5, 8, 10], [0, 1, 0, 1, 2, 1, 2, 3, 2, 3]);
/// let values = [2.0f32, 1.0, 1.0, 2.0, 1.0, 1.0, 2.0, 1.0, 1.0, 2.0];
/// let a = SplitCsr::new(&devices, (4, 4), &offsets, &columns, &values)?;
/// // Each device reads an item of the other one.
/// assert_eq!((a.range(0), a.halo(0), a.halo(1)), (0..2, &[2][..], &[1][..]));
/// let x = SplitBuffer::from_slice(&devices, &[1.0f32, 10.0, 100.0, 1000.0])?;
/// let mut y = SplitBuffer::uninit(&devices, 4)?;
/// split::spmv(&a, &x, &mut y)?;
/// assert_eq!(y.to_vec()?, [12.0, 121.0, 1210.0, 2100.0]);
/// # Ok(())
/// # }
/// ```
pub struct SplitCsr<V, I = u32> {
    split: Split,
    /// The first row of each device, and the number of rows.
    rows: Vec<usize>,
    /// The first column of each device, and the number of columns.
    columns: Vec<usize>,
    parts: Vec<Csr<V, I>>,
    halos: Vec<Vec<usize>>,
    exchange: Exchange,
}

impl<V: Element, I: CsrIndex> SplitCsr<V, I> {
    /// Creates a matrix of shape `(rows, columns)` from arrays on the host, as [`Csr::new`] does.
    ///
    /// Cost: the host reads offsets and columns. For each device, one after the other, it sorts the columns of the entries that read items
    /// of other devices, copies the entries to the device, and waits until the device has checked and measured its rows, as [`Csr::new`]
    /// does.
    ///
    /// # Errors
    /// Returns [`Error::SparseMatrix`] with the place of the mistake, as [`Csr::new`] does. Returns it also if `I` cannot number a column
    /// that an entry of a device reads. Also returns the errors of a launch, of an allocation and of a copy; in a capture, these are not
    /// possible.
    pub fn new(split: &Split, shape: (usize, usize), offsets: &[I], indices: &[I], values: &[V]) -> Result<Self> {
        let call = "SplitCsr::new";
        check_arrays(call, shape, offsets, indices, values.len())?;
        Self::made(call, split, shape, offsets, indices, |stream, entries| stream.buffer_from(&values[entries]))
    }

    /// Copies a matrix of one device, and splits its rows over devices. Each device chooses its own method for products.
    ///
    /// Cost: that of [`new`](Self::new). Offsets and columns go through the host, which waits for them. Values are copied between devices.
    ///
    /// ```
    /// use kernel_primitives::algorithms::Csr;
    /// use kernel_primitives::split::SplitCsr;
    /// use kernel_primitives::{Devices, Split};
    ///
    /// # fn main() -> kernel_primitives::Result<()> {
    /// let devices = Split::even(&Devices::emulated(2)?)?;
    /// let one = Csr::new(&devices.streams()[0], (2, 3), &[0u32, 2, 3], &[0, 2, 1], &[1.0f32, 2.0, 3.0])?;
    /// let a = SplitCsr::from_csr(&devices, &one)?;
    /// assert_eq!((a.part(0).entries(), a.part(1).entries()), (2, 1));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Returns the errors of [`new`](Self::new), and [`Error::WrongDevice`] if the matrix is on a GPU and the split is over devices of the
    /// emulator, or the reverse.
    pub fn from_csr(split: &Split, a: &Csr<V, I>) -> Result<Self> {
        let (call, shape) = ("SplitCsr::from_csr", (a.rows(), a.columns()));
        let (to, from) = (split.streams()[0].device(), a.values().device());
        if to.is_gpu() != from.is_gpu() {
            return Err(Error::WrongDevice {
                kernel: call.into(),
                argument: "the matrix".into(),
                stream: to.to_string(),
                buffer: from.to_string(),
            });
        }
        let (offsets, indices) = (a.offsets().to_vec()?, a.indices().to_vec()?);
        // A launch may have changed the arrays since the matrix was made.
        check_arrays(call, shape, &offsets, &indices, a.entries())?;
        Self::made(call, split, shape, &offsets, &indices, |stream, entries| {
            let mut values = stream.buffer_uninit(entries.len())?;
            if !entries.is_empty() {
                values.as_mut_slice().copy_from_peer(stream, a.values().slice(entries)?)?;
            }
            Ok(values)
        })
    }

    /// Creates the matrix from checked arrays. `values` copies the values of a range of entries to a device.
    fn made(
        call: &'static str,
        split: &Split,
        (rows, columns): (usize, usize),
        offsets: &[I],
        indices: &[I],
        values: impl Fn(&Stream, Range<usize>) -> Result<Buffer<V>>,
    ) -> Result<Self> {
        let (rows, columns) = (split.bounds(rows), split.bounds(columns));
        let (mut parts, mut halos) = (Vec::new(), Vec::new());
        for (device, stream) in split.streams().iter().enumerate() {
            let own = columns[device]..columns[device + 1];
            let offsets = &offsets[rows[device]..=rows[device + 1]];
            let entries = number(offsets[0])..number(offsets[offsets.len() - 1]);
            let of_rows = &indices[entries.clone()];
            let halo = halo(of_rows, &own);
            let wide = own.len() + halo.len();
            let index = |number: usize| {
                I::of(number as u64).ok_or_else(|| {
                    let bits = I::WIDTH;
                    let reason = format!(
                        "indices of {bits} bits cannot number the {wide} items that device {device} of the split reads"
                    );
                    Error::SparseMatrix { call, reason }
                })
            };
            let offsets = offsets.iter().map(|&offset| index(number(offset) - entries.start));
            let local = of_rows.iter().map(|&column| index(local(number(column), &own, &halo)));
            let offsets = stream.buffer_from(&offsets.collect::<Result<Vec<I>>>()?)?;
            let indices = stream.buffer_from(&local.collect::<Result<Vec<I>>>()?)?;
            let shape = (rows[device + 1] - rows[device], wide);
            parts.push(Csr::checked(call, stream, shape, offsets, indices, values(stream, entries)?)?);
            halos.push(halo);
        }
        let exchange = Exchange::new(split.streams(), &columns, &halos)?;
        Ok(Self { split: split.clone(), rows, columns, parts, halos, exchange })
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.rows[self.parts.len()]
    }

    /// Returns the number of columns.
    pub fn columns(&self) -> usize {
        self.columns[self.parts.len()]
    }

    /// Returns the number of entries.
    pub fn entries(&self) -> usize {
        self.parts.iter().map(Csr::entries).sum()
    }

    /// Returns the split of the rows.
    pub fn split(&self) -> &Split {
        &self.split
    }

    /// Returns the range of rows that device `device` of the split has.
    ///
    /// # Panics
    /// Panics if the split has no such device.
    pub fn range(&self, device: usize) -> Range<usize> {
        self.rows[device]..self.rows[device + 1]
    }

    /// Returns the columns whose items of a vector are on device `device` of the split.
    ///
    /// # Panics
    /// Panics if the split has no such device.
    pub fn column_range(&self, device: usize) -> Range<usize> {
        self.columns[device]..self.columns[device + 1]
    }

    /// Returns the column of the whole matrix that has the number `column` in the [part](Self::part) of device `device` of the split.
    ///
    /// # Panics
    /// Panics if the split has no such device, or if its part has no such column.
    pub fn column(&self, device: usize, column: usize) -> usize {
        let own = self.column_range(device);
        if column < own.len() { own.start + column } else { self.halos[device][column - own.len()] }
    }

    /// Returns the columns whose items device `device` of the split receives from other devices for a product, in ascending order.
    ///
    /// # Panics
    /// Panics if the split has no such device.
    pub fn halo(&self, device: usize) -> &[usize] {
        &self.halos[device]
    }

    /// Returns the rows of device `device` of the split. The first columns are those of [`column_range(device)`](Self::column_range), and
    /// the rest are those of the [`halo`](Self::halo), both in ascending order.
    ///
    /// Its [method](Csr::method) is chosen for its rows: the methods of two devices may differ.
    ///
    /// # Panics
    /// Panics if the split has no such device.
    pub fn part(&self, device: usize) -> &Csr<V, I> {
        &self.parts[device]
    }

    /// Returns the values of the entries of device `device` of the split, for changes. They are in the order of the arrays from which the
    /// matrix was made.
    ///
    /// # Panics
    /// Panics if the split has no such device.
    pub fn values_mut(&mut self, device: usize) -> BufferSliceMut<'_, V> {
        self.parts[device].values_mut()
    }

    /// Sets the method of products on all devices, in place of the method that was chosen for each.
    ///
    /// Cost: that of [`Csr::set_method`] on each device, one after the other.
    ///
    /// # Errors
    /// Returns the errors of [`Csr::set_method`]. After the error of a launch or of an allocation on one device, the devices before it have
    /// the new method, and the rest have the old one.
    pub fn set_method(&mut self, method: SpmvMethod) -> Result<()> {
        method.check("SplitCsr::set_method")?;
        self.parts.iter_mut().try_for_each(|part| part.set_method(method))
    }

    /// Returns the first row of each device, and the number of rows.
    pub(super) fn row_bounds(&self) -> &[usize] {
        &self.rows
    }

    /// Returns the first column of each device, and the number of columns.
    pub(super) fn column_bounds(&self) -> &[usize] {
        &self.columns
    }

    pub(super) fn exchange(&self) -> &Exchange {
        &self.exchange
    }
}

/// Returns an offset or a column of a matrix that was checked, as a number.
fn number<I: CsrIndex>(index: I) -> usize {
    let number: u64 = index.convert();
    number as usize
}

/// Returns the columns of entries whose items the device does not have. Each comes once, in ascending order.
fn halo<I: CsrIndex>(indices: &[I], own: &Range<usize>) -> Vec<usize> {
    let mut halo: Vec<usize> =
        indices.iter().map(|&column| number(column)).filter(|column| !own.contains(column)).collect();
    halo.sort_unstable();
    halo.dedup();
    halo.shrink_to_fit();
    halo
}

/// Returns the number of a column on its device. It is a column of the device's own items or of the halo.
fn local(column: usize, own: &Range<usize>, halo: &[usize]) -> usize {
    if own.contains(&column) { column - own.start } else { own.len() + halo.partition_point(|&other| other < column) }
}

/// Writes `SplitCsr<f32, u32>(rows 0..2 on device 0 of the emulator, …; columns 0..3 on …; 9 entries)`.
impl<V: Element, I: CsrIndex> fmt::Debug for SplitCsr<V, I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [value, index] = [std::any::type_name::<V>(), std::any::type_name::<I>()];
        let [rows, columns] = [&self.rows, &self.columns].map(|bounds| self.split.describe(bounds));
        write!(f, "SplitCsr<{value}, {index}>(rows {rows}; columns {columns}; {} entries)", self.entries())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::split::spmv;
    use crate::{Devices, SplitBuffer};

    /// The stream of a split captures if the driver is told so after the matrix was made. Here the matrix gets another stream.
    #[test]
    fn a_product_is_in_a_graph_if_its_device_exchanges_nothing() -> Result<()> {
        let streams = Devices::emulated(2)?.streams()?;
        let over = |first: &Stream| Split::of_streams([first.clone(), streams[1].clone()], &[1.0, 1.0]);
        let split = over(&streams[0])?;
        let x = SplitBuffer::from_slice(&split, &[1.0f32, 10.0])?;
        let captured = |columns: [u32; 2], y: &mut SplitBuffer<f32>| -> Result<_> {
            let mut a = SplitCsr::new(&split, (2, 2), &[0u32, 1, 2], &columns, &[2.0f32, 3.0])?;
            a.set_method(SpmvMethod::Rows { lanes: 1 })?;
            Ok(streams[0].capture(|stream| {
                a.split = over(stream)?;
                spmv(&a, &x, y)
            }))
        };
        // The first device receives an item, and then it sends one. In the last case below, it does neither.
        for columns in [[1, 1], [0, 0]] {
            let mut y = SplitBuffer::from_slice(&split, &[7.0f32, 7.0])?;
            let graph = captured(columns, &mut y)?;
            assert!(matches!(graph, Err(Error::Capture { call: "`split::spmv`", .. })), "{:?}", graph.err());
            assert_eq!(y.to_vec()?, [7.0, 7.0]);
        }
        let mut y = SplitBuffer::from_slice(&split, &[7.0f32, 7.0])?;
        let graph = captured([0, 1], &mut y)??;
        assert_eq!(y.to_vec()?, [7.0, 30.0]);
        graph.launch(&streams[0])?;
        assert_eq!(y.to_vec()?, [2.0, 30.0]);
        Ok(())
    }
}
