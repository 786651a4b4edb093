//! NumPy's files: reads and writes arrays, as `np.load` and `np.save` do.
//!
//! [`NpyArray`] is an array in host memory with the shape from the file. [`Tensor::read_npy`](crate::expr::Tensor::read_npy) copies a file
//! to a device in one call, and [`Tensor::write_npy`](crate::expr::Tensor::write_npy) copies a tensor to a file.
//!
//! | | read | written |
//! |---|---|---|
//! | versions of the format | 1, 2, 3 | 1 |
//! | byte orders | little and big endian | little endian |
//! | orders of elements | C and Fortran; [`NpyArray`] has C order | C, or Fortran on request |
//! | element types | those of [`NpyType`]; the file must have the requested type | the same |
//! | axes | up to 64 | up to 64 |
//!
//! NumPy has no type for `bf16`. Convert to `f32`, which can represent all its values: `x.cast::<f32>()` in an expression. Files with
//! structured types, strings, dates or Python objects cannot be read.
//!
//! A file is not trusted. The length of the header and the shape are checked against the length of the file. If that is not known, memory
//! is allocated only for bytes that have arrived. Nothing in a header is executed.
//!
//! ```
//! use kernel_primitives::interop::npy::{NpyArray, NpyHeader, NpyOrder};
//!
//! # fn main() -> kernel_primitives::Result<()> {
//! let array = NpyArray::new(&[2, 3], vec![1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0])?;
//! let mut file = Vec::new();
//! array.write_to(&mut file, NpyOrder::Fortran)?;
//!
//! let header = NpyHeader::read_from(&file[..])?;
//! assert_eq!((header.element().name(), header.shape()), ("float32", &[2, 3][..]));
//! let again = NpyArray::<f32>::read_from(&file[..])?;
//! assert_eq!(again.values(), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]); // in C order
//!
//! let error = NpyArray::<f64>::read_from(&file[..]).unwrap_err().to_string();
//! assert!(error.contains("the elements are float32 ('<f4'), not float64"));
//! # Ok(())
//! # }
//! ```
//!
//! Reference: the NumPy documentation, `numpy.lib.format`.

mod array;
mod element;
mod header;
mod read;
mod tensor;
mod write;

pub use array::{NpyArray, NpyOrder};
pub use element::{NpyElement, NpyType};
pub use header::NpyHeader;

/// The largest number of axes of an array in NumPy.
const MAX_AXES: usize = 64;

/// The first bytes of every file.
const MAGIC: &[u8; 6] = b"\x93NUMPY";

/// The number of bytes that are read or written at once.
const CHUNK: usize = 1 << 16;

/// Returns the number of elements, or `None` if it is too large to count.
fn elements(shape: &[usize]) -> Option<usize> {
    if shape.contains(&0) {
        return Some(0);
    }
    shape.iter().try_fold(1usize, |all, &extent| all.checked_mul(extent))
}
