//! Triplets on the host.

use super::csr::{Csr, CsrIndex};
use super::wrong;
use crate::algorithms::run::Run;
use crate::algorithms::{ReduceByKey, SortPairs};
use crate::{ConvertTo, Element, KernelParam, Reducer, Result};

/// The triplets of a sparse matrix on the host (COO). A triplet is a row, a column and a value. Triplets may be in any order.
///
/// Several triplets may have the same place; [`Csr::from_coo`] combines their values. `I`, `u32` or `u64`, is the type of rows and columns.
///
/// ```
/// use kernel_primitives::algorithms::{Coo, Csr};
/// use kernel_primitives::functor::Add;
/// use kernel_primitives::Device;
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = Device::auto()?.stream()?;
/// let mut triplets: Coo<f32> = Coo::new((2, 3))?;
/// triplets.push(1, 2, 0.5f32)?;
/// triplets.push(0, 0, 7.0)?;
/// triplets.push(1, 2, 0.25)?;
/// let a = Csr::from_coo(&stream, &triplets, Add)?;
/// assert_eq!(a.to_coo()?.iter().collect::<Vec<_>>(), [(0, 0, 7.0), (1, 2, 0.75)]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Coo<V, I = u32> {
    rows: usize,
    columns: usize,
    row_indices: Vec<I>,
    column_indices: Vec<I>,
    values: Vec<V>,
}

impl<V: Copy, I: CsrIndex> Coo<V, I> {
    /// Makes a matrix of `(rows, columns)` without triplets.
    ///
    /// # Errors
    /// Returns [`Error::SparseMatrix`](crate::Error::SparseMatrix) if `I` cannot number the rows and columns.
    pub fn new((rows, columns): (usize, usize)) -> Result<Self> {
        Self::shaped(rows, columns).map_err(|reason| wrong("Coo::new", reason))
    }

    /// Makes a matrix as [`new`](Self::new), or returns the reason why there is no such matrix.
    pub(super) fn shaped(rows: usize, columns: usize) -> Result<Self, String> {
        for (what, count) in [("rows", rows), ("columns", columns)] {
            if count.saturating_sub(1) as u64 > I::MOST {
                return Err(format!("indices of {} bits cannot number {count} {what}", I::WIDTH));
            }
        }
        Ok(Self { rows, columns, row_indices: Vec::new(), column_indices: Vec::new(), values: Vec::new() })
    }

    /// Adds a triplet.
    ///
    /// # Errors
    /// Returns [`Error::SparseMatrix`](crate::Error::SparseMatrix) if the triplet is outside the matrix.
    pub fn push(&mut self, row: usize, column: usize, value: V) -> Result<()> {
        self.put(row, column, value).map_err(|reason| wrong("Coo::push", reason))
    }

    /// Adds a triplet as [`push`](Self::push), or returns the reason why it is outside.
    pub(super) fn put(&mut self, row: usize, column: usize, value: V) -> Result<(), String> {
        match (row < self.rows, column < self.columns, I::of(row as u64), I::of(column as u64)) {
            (true, true, Some(row), Some(column)) => {
                self.row_indices.push(row);
                self.column_indices.push(column);
                self.values.push(value);
                Ok(())
            }
            _ => Err(format!("({row}, {column}) is outside {} × {}", self.rows, self.columns)),
        }
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The number of columns.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// The number of triplets.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there are no triplets.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The row of each triplet.
    pub fn row_indices(&self) -> &[I] {
        &self.row_indices
    }

    /// The column of each triplet.
    pub fn column_indices(&self) -> &[I] {
        &self.column_indices
    }

    /// The value of each triplet.
    pub fn values(&self) -> &[V] {
        &self.values
    }

    /// Iterates over the row, the column and the value of each triplet, in their order.
    pub fn iter(&self) -> impl Iterator<Item = (usize, usize, V)> + '_ {
        let place = |&index: &I| ConvertTo::<u64>::convert(index) as usize;
        let places = self.row_indices.iter().map(place).zip(self.column_indices.iter().map(place));
        places.zip(&self.values).map(|((row, column), &value)| (row, column, value))
    }

    /// Makes a matrix with the same places, whose values are those of `f`.
    ///
    /// ```
    /// use kernel_primitives::algorithms::Coo;
    ///
    /// # fn main() -> kernel_primitives::Result<()> {
    /// let mut weights = Coo::<f32>::new((2, 2))?;
    /// weights.push(0, 1, 3.5)?;
    /// let edges = weights.map(|weight| weight > 0.0);
    /// assert_eq!(edges.values(), [true]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn map<W: Copy>(self, f: impl FnMut(V) -> W) -> Coo<W, I> {
        let Self { rows, columns, row_indices, column_indices, values } = self;
        Coo { rows, columns, row_indices, column_indices, values: values.into_iter().map(f).collect() }
    }
}

impl<V: Element, I: CsrIndex> Csr<V, I> {
    /// Makes a matrix from triplets of the host. `op` combines the values of triplets at the same place, in the order of the triplets.
    ///
    /// Otherwise this works as [`from_triplets`](Self::from_triplets), which takes triplets on the device.
    ///
    /// # Errors
    /// Returns the errors of [`from_triplets`](Self::from_triplets).
    pub fn from_coo<'a, R, SortTag, ReduceTag>(run: impl Into<Run<'a>>, triplets: &Coo<V, I>, op: R) -> Result<Self>
    where
        R: Reducer<V> + KernelParam,
        u64: SortPairs<V, SortTag> + ReduceByKey<V, R, ReduceTag>,
    {
        let run = run.into();
        let stream = run.stream;
        let [rows, columns] =
            [stream.buffer_from(&triplets.row_indices)?, stream.buffer_from(&triplets.column_indices)?];
        let values = stream.buffer_from(&triplets.values)?;
        let shape = (triplets.rows, triplets.columns);
        Self::of_triplets("Csr::from_coo", run, shape, rows.as_slice(), columns.as_slice(), values.as_slice(), op)
    }

    /// Copies the entries to the host as triplets, row by row. Within a row they keep the order of the matrix.
    ///
    /// # Errors
    /// Returns [`Error::SparseMatrix`](crate::Error::SparseMatrix) if `I` cannot number the rows and columns, or if a graph has damaged the
    /// matrix after it was checked. Returns the errors of a copy.
    pub fn to_coo(&self) -> Result<Coo<V, I>> {
        let fail = |reason| wrong("Csr::to_coo", reason);
        let mut triplets = Coo::shaped(self.rows(), self.columns()).map_err(fail)?;
        let offsets = self.offsets().to_vec()?;
        let (columns, values) = (self.indices().to_vec()?, self.values().to_vec()?);
        for row in 0..self.rows() {
            let [begin, end] =
                [offsets[row], offsets[row + 1]].map(|offset| ConvertTo::<u64>::convert(offset) as usize);
            let Some(entries) = columns.get(begin..end) else {
                return Err(fail(format!("row {row} has entries {begin} to {end} of {}", values.len())));
            };
            for (column, &value) in entries.iter().zip(&values[begin..end]) {
                triplets.put(row, ConvertTo::<u64>::convert(*column) as usize, value).map_err(fail)?;
            }
        }
        Ok(triplets)
    }
}
