//! Reads tensors from files, and writes them to files.

use std::path::Path;

use primitives_host::{Result, Stream};

use super::array::NpyArray;
use super::element::NpyElement;
use crate::expr::{Scalar, Tensor};

impl<T: Scalar + NpyElement> NpyArray<T> {
    /// Makes a contiguous tensor with a copy of the elements.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Expression`](crate::Error::Expression) for more than [`MAX_RANK`](crate::expr::MAX_RANK) axes, and
    /// [`Error::Allocation`](crate::Error::Allocation) if the device does not have enough memory.
    #[track_caller]
    pub fn to_tensor(&self, stream: &Stream) -> Result<Tensor<T>> {
        Tensor::from_slice(stream, self.shape(), self.values())
    }

    /// Makes a copy of a tensor's elements, after all work that writes them.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Tensor::to_vec`].
    #[track_caller]
    pub fn from_tensor(tensor: &Tensor<T>) -> Result<Self> {
        Self::new(&tensor.shape(), tensor.to_vec()?)
    }
}

impl<T: Scalar + NpyElement> Tensor<T> {
    /// Reads an array from a NumPy file. The elements are contiguous in C order, for any order of the file.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`NpyArray::read`] and of [`NpyArray::to_tensor`].
    ///
    /// ```
    /// use kernel_primitives::Device;
    /// use kernel_primitives::expr::Tensor;
    ///
    /// # fn main() -> kernel_primitives::Result<()> {
    /// # let path = std::env::temp_dir().join(format!("read-npy-{}.npy", std::process::id()));
    /// let stream = Device::auto()?.stream()?;
    /// let x = Tensor::from_slice(&stream, [2, 3], &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0])?;
    /// x.t().write_npy(&path)?;
    /// let y = Tensor::<f32>::read_npy(&stream, &path)?;
    /// assert_eq!(*y.shape(), [3, 2]);
    /// assert_eq!(y.to_vec()?, [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
    /// # std::fs::remove_file(path).ok();
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn read_npy(stream: &Stream, path: impl AsRef<Path>) -> Result<Self> {
        NpyArray::read(path)?.to_tensor(stream)
    }

    /// Writes the elements and their shape to a NumPy file, after all work that writes the elements. It replaces a file that exists.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`to_vec`](Self::to_vec) and of [`NpyArray::write`].
    #[track_caller]
    pub fn write_npy(&self, path: impl AsRef<Path>) -> Result<()> {
        NpyArray::from_tensor(self)?.write(path)
    }
}
