//! Arrays on the host, as files have them.

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;

use primitives_host::{Buffer, BufferSlice, Error, Result, Stream};

use super::element::NpyElement;
use super::elements;
use super::read::{Input, reserve_exact};
use super::write::Output;

/// The order of elements in memory or in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NpyOrder {
    /// The last index changes first, as in C and in this library.
    C,
    /// The first index changes first, as in Fortran.
    Fortran,
}

/// An array in host memory: elements in C order, and their shape.
///
/// ```
/// use kernel_primitives::Device;
/// use kernel_primitives::algorithms::inclusive_scan;
/// use kernel_primitives::functor::Add;
/// use kernel_primitives::interop::npy::NpyArray;
///
/// # fn main() -> kernel_primitives::Result<()> {
/// # let path = std::env::temp_dir().join(format!("npy-array-{}.npy", std::process::id()));
/// NpyArray::new(&[5], vec![3i64, 1, 4, 1, 5])?.write(&path)?; // np.save(path, np.array([3, 1, 4, 1, 5]))
///
/// let stream = Device::auto()?.stream()?;
/// let x = NpyArray::<i64>::read(&path)?.to_buffer(&stream)?;
/// let mut sums = stream.buffer_zeroed::<i64>(x.len())?;
/// inclusive_scan(&stream, &x, Add, &mut sums)?;
/// NpyArray::from_slice(&[5], &sums)?.write(&path)?;
/// assert_eq!(NpyArray::<i64>::read(&path)?.into_values(), [3, 4, 8, 9, 14]);
/// # std::fs::remove_file(path).ok();
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct NpyArray<T> {
    pub(super) shape: Vec<usize>,
    pub(super) values: Vec<T>,
}

impl<T: NpyElement> NpyArray<T> {
    /// Makes an array of this shape, outermost extent first, with these elements in C order.
    ///
    /// # Errors
    ///
    /// Returns [`Error::LengthMismatch`] if there are more or fewer elements than the shape has.
    pub fn new(shape: &[usize], values: Vec<T>) -> Result<Self> {
        check_elements("NpyArray::new", shape, values.len())?;
        Ok(Self { shape: shape.to_vec(), values })
    }

    /// Makes a copy of a buffer or of a part of it, after all work that writes it.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`new`](Self::new) and of [`BufferSlice::to_vec`].
    pub fn from_slice<'a>(shape: &[usize], slice: impl Into<BufferSlice<'a, T>>) -> Result<Self> {
        let slice = slice.into();
        check_elements("NpyArray::from_slice", shape, slice.len())?;
        Self::new(shape, slice.to_vec()?)
    }

    /// Returns the extents, outermost first. A single value has none.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Returns the elements in C order.
    pub fn values(&self) -> &[T] {
        &self.values
    }

    /// Returns the elements in C order, without their shape.
    pub fn into_values(self) -> Vec<T> {
        self.values
    }

    /// Makes a buffer with a copy of the elements in C order.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Allocation`] if the device does not have enough memory.
    pub fn to_buffer(&self, stream: &Stream) -> Result<Buffer<T>> {
        stream.buffer_from(&self.values)
    }

    /// Reads a file that has one array and nothing after it.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Npy`] with the byte and the field if the file cannot be read, if it is not a `.npy` file, or if it has elements
    /// that are not `T`, a damaged header, or more or fewer elements than its shape says. Returns [`Error::Allocation`] if the host does
    /// not have enough memory.
    pub fn read(path: impl AsRef<Path>) -> Result<Self> {
        let mut input = Input::<File>::open(path.as_ref())?;
        let array = input.array()?;
        input.end()?;
        Ok(array)
    }

    /// Reads one array, and nothing after it. Several calls read several arrays.
    ///
    /// Bytes are read in parts of 64 KiB, so a reader needs no buffer of its own.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`read`](Self::read).
    pub fn read_from(input: impl Read) -> Result<Self> {
        Input::new(input).array()
    }

    /// Writes a file in C order. It replaces a file that exists.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Npy`] if the file cannot be written, or for more than 64 axes.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<()> {
        Output::create(path.as_ref(), &self.shape)?.array(&self.shape, &self.values, NpyOrder::C)
    }

    /// Writes the array in an order. Several calls write several arrays.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`write`](Self::write), and [`Error::Allocation`] if the host does not have enough memory for a copy in
    /// Fortran order.
    pub fn write_to(&self, output: impl Write, order: NpyOrder) -> Result<()> {
        let mut output = Output::new(output);
        match order {
            NpyOrder::C => output.array(&self.shape, &self.values, order),
            NpyOrder::Fortran => {
                let mut reversed = self.shape.clone();
                reversed.reverse();
                // Fortran order is C order with the axes reversed.
                let ordered = reordered(&self.values, &reversed)?;
                output.array(&self.shape, ordered.as_deref().unwrap_or(&self.values), order)
            }
        }
    }
}

/// Checks that a shape has `len` elements.
fn check_elements(call: &str, shape: &[usize], len: usize) -> Result<()> {
    match elements(shape) {
        Some(count) if count == len => Ok(()),
        count => Err(Error::LengthMismatch {
            kernel: call.into(),
            first: format!("the shape {shape:?}"),
            first_len: count.unwrap_or(usize::MAX),
            second: "the values".into(),
            second_len: len,
        }),
    }
}

/// Converts elements in Fortran order to C order. Returns `None` if the two orders are the same.
pub(super) fn reordered<T: Copy>(values: &[T], shape: &[usize]) -> Result<Option<Vec<T>>> {
    // An axis with one index does not change the order.
    let axes: Vec<(usize, usize)> = shape
        .iter()
        .scan(1usize, |stride, &extent| {
            let of_this = *stride;
            *stride = stride.saturating_mul(extent);
            Some((extent, of_this))
        })
        .filter(|(extent, _)| *extent != 1)
        .collect();
    if axes.len() < 2 || values.is_empty() {
        return Ok(None);
    }
    let mut ordered = Vec::new();
    reserve_exact(&mut ordered, values.len())?;
    let Some((&(inner, stride), outer)) = axes.split_last() else { return Ok(None) };
    let mut index = vec![0; outer.len()];
    let mut start = 0;
    loop {
        ordered.extend(values[start..].iter().step_by(stride).take(inner));
        // This goes to the next row.
        let mut axis = outer.len();
        loop {
            let Some(before) = axis.checked_sub(1) else { return Ok(Some(ordered)) };
            axis = before;
            let (extent, stride) = outer[axis];
            index[axis] += 1;
            start += stride;
            if index[axis] < extent {
                break;
            }
            start -= index[axis] * stride;
            index[axis] = 0;
        }
    }
}
