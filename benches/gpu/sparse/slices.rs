//! Slices as cuSPARSE takes them: of 32 neighbouring rows, without an order of their lengths.

use kernel_primitives::{Buffer, Element, Result, Stream};

/// Rows of a slice: what `benches/peers/sparse.cu` says.
const ROWS: usize = 32;

/// The column of a slot without an entry: -1.
const NONE: u32 = u32::MAX;

/// A matrix in slices.
pub(super) struct Slices<T> {
    offsets: Buffer<u32>,
    columns: Buffer<u32>,
    values: Buffer<T>,
}

impl<T: Element> Slices<T> {
    /// The matrix, if it takes no more slots than that.
    pub(super) fn of(
        stream: &Stream,
        offsets: &[u32],
        indices: &[u32],
        values: &[T],
        most: usize,
    ) -> Result<Option<Self>> {
        let rows: Vec<_> = offsets.windows(2).map(|of| of[0] as usize..of[1] as usize).collect();
        let longest = |slice: &[std::ops::Range<usize>]| slice.iter().map(ExactSizeIterator::len).max().unwrap_or(0);
        if rows.chunks(ROWS).map(|slice| ROWS * longest(slice)).sum::<usize>() > most {
            return Ok(None);
        }
        let (mut begins, mut columns, mut sliced) = (vec![0], Vec::new(), Vec::new());
        for slice in rows.chunks(ROWS) {
            for k in 0..longest(slice) {
                for lane in 0..ROWS {
                    let entry = slice.get(lane).and_then(|row| row.clone().nth(k));
                    columns.push(entry.map_or(NONE, |entry| indices[entry]));
                    sliced.push(entry.map_or(T::ZERO, |entry| values[entry]));
                }
            }
            begins.push(columns.len() as u32);
        }
        let [offsets, columns] = [stream.buffer_from(&begins)?, stream.buffer_from(&columns)?];
        Ok(Some(Self { offsets, columns, values: stream.buffer_from(&sliced)? }))
    }

    pub(super) fn slots(&self) -> usize {
        self.values.len()
    }

    pub(super) fn addresses(&self) -> [u64; 3] {
        [self.offsets.address(), self.columns.address(), self.values.address()]
    }
}
