//! Matrices from triplets.

use super::csr::{Csr, CsrIndex, dims};
use super::wrong;
use crate::algorithms::run::Run;
use crate::algorithms::{ReduceByKey, SortPairs, reduce_by_key, sort_pairs_by_bits};
use crate::functor::Less;
use crate::{BufferSlice, ConvertTo, Element, KernelParam, Reducer, Result};

impl<V: Element, I: CsrIndex> Csr<V, I> {
    /// Makes a matrix of `(rows, columns)` from triplets on the device (COO). A triplet is a row, a column and a value; triplets may be in
    /// any order. `op` combines the values of triplets at the same place, in the order of the triplets. [`Add`](crate::functor::Add) adds
    /// them.
    ///
    /// The columns of each row ascend. A combined value stays an entry, even if it is zero.
    ///
    /// Cost: a stable [sort](fn@crate::algorithms::sort_pairs_by_bits) of the triplets by as many bits as the number of places in the
    /// matrix has, a [reduction by key](fn@crate::algorithms::reduce_by_key), the cost of [`from_buffers`](Self::from_buffers), and three
    /// waits for results. Temporary memory: 16 bytes and two values for each triplet, and the memory of the sort and of the reduction.
    ///
    /// Ready for numbers with `Add`. For other values and operators, write `instantiate!(kernel_primitives::algorithms::sort_pairs<u64,
    /// MyValue>, kernel_primitives::algorithms::reduce_by_key<u64, MyValue, MyOperator>);`.
    ///
    /// ```
    /// use kernel_primitives::algorithms::Csr;
    /// use kernel_primitives::functor::Add;
    /// use kernel_primitives::Device;
    ///
    /// # fn main() -> kernel_primitives::Result<()> {
    /// let stream = Device::auto()?.stream()?;
    /// let rows = stream.buffer_from(&[1u32, 0, 1])?;
    /// let columns = stream.buffer_from(&[2u32, 0, 2])?;
    /// let values = stream.buffer_from(&[0.5f32, 7.0, 0.25])?;
    /// let a = Csr::from_triplets(&stream, (2, 3), &rows, &columns, &values, Add)?;
    /// assert_eq!(a.offsets().to_vec()?, [0, 1, 2]);
    /// assert_eq!(a.indices().to_vec()?, [0, 2]);
    /// assert_eq!(a.values().to_vec()?, [7.0, 0.75]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Returns [`Error::SparseMatrix`](crate::Error::SparseMatrix) if there are not as many rows, columns and values, if a triplet is
    /// outside the matrix, which the error names, or if the matrix has more entries than `I` can count. Returns it also if 64 bits cannot
    /// count the places of the matrix, or its offsets. There is one offset more than rows. Returns the errors of a launch, of an allocation
    /// and of a copy.
    pub fn from_triplets<'a, 'r, 'c, 'v, R, SortTag, ReduceTag>(
        run: impl Into<Run<'a>>,
        shape: (usize, usize),
        row_indices: impl Into<BufferSlice<'r, I>>,
        column_indices: impl Into<BufferSlice<'c, I>>,
        values: impl Into<BufferSlice<'v, V>>,
        op: R,
    ) -> Result<Self>
    where
        R: Reducer<V> + KernelParam,
        u64: SortPairs<V, SortTag> + ReduceByKey<V, R, ReduceTag>,
    {
        let (row_indices, column_indices) = (row_indices.into(), column_indices.into());
        Self::of_triplets("Csr::from_triplets", run.into(), shape, row_indices, column_indices, values.into(), op)
    }

    /// Works as [`from_triplets`](Self::from_triplets), for the call that errors name.
    pub(super) fn of_triplets<R, SortTag, ReduceTag>(
        call: &'static str,
        run: Run<'_>,
        shape: (usize, usize),
        row_indices: BufferSlice<'_, I>,
        column_indices: BufferSlice<'_, I>,
        values: BufferSlice<'_, V>,
        op: R,
    ) -> Result<Self>
    where
        R: Reducer<V> + KernelParam,
        u64: SortPairs<V, SortTag> + ReduceByKey<V, R, ReduceTag>,
    {
        let (stream, len) = (run.stream, values.len());
        if row_indices.len() != len || column_indices.len() != len {
            let (rows, columns) = (row_indices.len(), column_indices.len());
            let reason = format!("there are {rows} row indices, {columns} column indices and {len} values");
            return Err(wrong(call, reason));
        }
        let (rows, columns) = (shape.0 as u64, shape.1 as u64);
        let Some(places) = rows.checked_mul(columns) else {
            return Err(wrong(call, format!("{rows} × {columns} places are too many to be counted in 64 bits")));
        };
        let Some(ends) = shape.0.checked_add(1) else {
            let reason = format!("{rows} rows have {rows} + 1 offsets, which are too many to be counted in 64 bits");
            return Err(wrong(call, reason));
        };

        let mut keys = stream.buffer_uninit::<u64>(len)?;
        let mut found = stream.buffer_from(&[u64::MAX])?;
        let at = (stream, dims(len, u32::MAX as usize));
        I::keys(at, (row_indices, column_indices), (rows, columns), &mut keys, &mut found)?;
        let outside = found.to_vec()?[0];
        if outside != u64::MAX {
            let place = outside as usize;
            let [row, column] = [row_indices, column_indices].map(|indices| indices.slice(place..place + 1));
            let [row, column] = [row?.to_vec()?[0], column?.to_vec()?[0]].map(ConvertTo::<u64>::convert);
            let reason = format!("triplet {place} is at ({row}, {column}), outside {rows} × {columns}");
            return Err(wrong(call, reason));
        }

        let (mut sorted_keys, mut sorted) = (stream.buffer_uninit::<u64>(len)?, stream.buffer_uninit::<V>(len)?);
        let bits = (u64::BITS - places.saturating_sub(1).leading_zeros()).max(1);
        sort_pairs_by_bits(run.part(), &keys, values, &mut sorted_keys, &mut sorted, Less, 0..bits)?;
        let (mut unique, mut combined) = (keys, stream.buffer_uninit::<V>(len)?);
        let mut count = stream.buffer_zeroed::<u64>(1)?;
        reduce_by_key(run, &sorted_keys, &sorted, op, &mut unique, &mut combined, &mut count)?;
        let entries = count.to_vec()?[0];
        if entries > I::MOST {
            let reason = format!("there are {entries} entries, and the index type counts to {}", I::MOST);
            return Err(wrong(call, reason));
        }
        let entries = entries as usize;

        let mut offsets = stream.buffer_uninit::<I>(ends)?;
        let mut indices = stream.buffer_uninit::<I>(entries)?;
        let at = (stream, dims(entries.max(ends), u32::MAX as usize));
        I::rows_of_keys(at, unique.slice(..entries)?, columns, &mut offsets, indices.as_mut_slice())?;
        let mut values = stream.buffer_uninit::<V>(entries)?;
        values.as_mut_slice().copy_from_device(stream, combined.slice(..entries)?)?;
        Self::checked(call, stream, shape, offsets, indices, values)
    }
}
