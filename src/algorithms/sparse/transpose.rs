//! Transposed matrices.

use super::csr::{Csr, CsrIndex, dims};
use super::wrong;
use crate::algorithms::run::Run;
use crate::algorithms::{SortPairs, sort_pairs_by_bits};
use crate::functor::Less;
use crate::{Element, Result};

/// The name of the call, in errors.
const CALL: &str = "Csr::transpose";

impl<V: Element, I: CsrIndex> Csr<V, I> {
    /// Makes the transposed matrix, whose rows are the columns of this one. [`spmv`](super::spmv()) with it is the transposed product.
    ///
    /// The entries of each new row are in the order of the rows of this matrix. Complex values are not conjugated. For the product with the
    /// adjoint matrix, call [`spmv_by`](super::spmv_by()) with the transposed matrix and `OfEntry { function: Conjugate, reduction:
    /// PlusTimes }` ([`OfEntry`](crate::functor::OfEntry)).
    ///
    /// Cost: a stable [sort](fn@crate::algorithms::sort_pairs_by_bits) of the entries by as many bits as columns have, the cost of
    /// [`from_buffers`](Self::from_buffers), and a wait. Temporary memory: 16 bytes and an index for each entry, and the memory of the
    /// sort.
    ///
    /// Ready for numbers. For other values, write `instantiate!(kernel_primitives::algorithms::sort_pairs<u64, MyValue>);`.
    ///
    /// ```
    /// use kernel_primitives::algorithms::{Csr, spmv};
    /// use kernel_primitives::Device;
    ///
    /// # fn main() -> kernel_primitives::Result<()> {
    /// let stream = Device::auto()?.stream()?;
    /// // 1 0 2
    /// // 0 3 0
    /// let a = Csr::new(&stream, (2, 3), &[0u32, 2, 3], &[0, 2, 1], &[1.0f32, 2.0, 3.0])?;
    /// let x = stream.buffer_from(&[10.0f32, 20.0])?;
    /// let mut y = stream.buffer_zeroed::<f32>(3)?;
    /// spmv(&stream, &a.transpose(&stream)?, &x, &mut y)?;
    /// assert_eq!(y.to_vec()?, [10.0, 60.0, 20.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Returns [`Error::SparseMatrix`](crate::Error::SparseMatrix) if `I` cannot number the rows, or if the numbers of a row and a column
    /// have more than 63 bits together. Returns the errors of a launch, of an allocation and of a copy, none of which a capture can
    /// contain.
    pub fn transpose<'a, Tag>(&self, run: impl Into<Run<'a>>) -> Result<Self>
    where
        u64: SortPairs<V, Tag>,
    {
        let run = run.into();
        let (stream, entries) = (run.stream, self.entries());
        let (rows, columns) = (self.rows(), self.columns());
        let [row_bits, column_bits] =
            [rows, columns].map(|count| usize::BITS - count.saturating_sub(1).leading_zeros());
        if row_bits + column_bits >= u64::BITS {
            let reason = format!("{rows} rows and {columns} columns are too many to be numbered in 63 bits");
            return Err(wrong(CALL, reason));
        }
        // A key has a column in its upper bits and a row in its lower bits.
        let stride = 1 << row_bits;
        let row_indices = self.rows_of_entries(CALL, stream)?;
        let mut keys = stream.buffer_uninit::<u64>(entries)?;
        let mut found = stream.buffer_from(&[u64::MAX])?;
        let at = (stream, dims(entries, u32::MAX as usize));
        let places = (self.indices().as_slice(), row_indices.as_slice());
        I::keys(at, places, (columns as u64, stride), &mut keys, &mut found)?;
        let outside = found.to_vec()?[0];
        if outside != u64::MAX {
            return Err(wrong(
                CALL,
                format!("entry {outside} is outside: the matrix was written after it was checked"),
            ));
        }

        let (mut sorted, mut values) = (stream.buffer_uninit::<u64>(entries)?, stream.buffer_uninit::<V>(entries)?);
        let bits = row_bits..row_bits + column_bits.max(1);
        sort_pairs_by_bits(run, &keys, self.values(), &mut sorted, &mut values, Less, bits)?;
        let mut offsets = stream.buffer_uninit::<I>(columns + 1)?;
        let mut indices = stream.buffer_uninit::<I>(entries)?;
        let at = (stream, dims(entries.max(columns + 1), u32::MAX as usize));
        I::rows_of_keys(at, sorted.as_slice(), stride, &mut offsets, indices.as_mut_slice())?;
        Self::checked(CALL, stream, (columns, rows), offsets, indices, values)
    }
}
