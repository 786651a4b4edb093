//! Memory whose element type is known at run time.

use std::panic::Location;
use std::sync::Arc;

use primitives_gpu::Element;
use primitives_host::storage::Storage;
use primitives_host::{Buffer, Device, ExpressionErrorKind, Result, Stream};

use crate::expr::Tensor;
use crate::expr::dtype::{DType, Scalar, with_type};
use crate::expr::evaluate::mistake;

/// Device memory of elements whose type is known at run time. A clone is the same memory, which is freed with the last clone.
///
/// Memory of `u8` can hold elements of any type except `bool`, each at a multiple of its size. So one allocation can hold operands of many
/// types.
#[derive(Clone)]
pub struct Memory {
    storage: Arc<Storage>,
    dtype: DType,
}

/// The place where an operand begins: its element with all indices 0. A reference to a [`Memory`] is its first element. A reference to a
/// [`Tensor`] is the tensor's first element.
#[derive(Clone, Copy)]
pub struct OperandStart<'a> {
    pub(super) storage: &'a Arc<Storage>,
    pub(super) dtype: DType,
    pub(super) byte: usize,
}

impl Memory {
    /// Allocates memory, and copies `data` to it.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Allocation`](crate::Error::Allocation) if there is not enough memory.
    pub fn from_slice<T: Scalar>(stream: &Stream, data: &[T]) -> Result<Self> {
        Ok(Self::from_buffer(stream.buffer_from(data)?))
    }

    /// Takes the memory of a buffer.
    pub fn from_buffer<T: Scalar>(buffer: Buffer<T>) -> Self {
        Self { storage: Arc::new(Storage::of(buffer)), dtype: T::DTYPE }
    }

    /// Allocates `len` elements, all zero or `false`.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Allocation`](crate::Error::Allocation) if there is not enough memory.
    pub fn zeros(stream: &Stream, dtype: DType, len: usize) -> Result<Self> {
        with_type!(dtype, T => Ok(Self::from_buffer(stream.buffer_zeroed::<T>(len)?)))
    }

    /// Allocates `len` elements with unspecified values. The emulator reports elements that are read before they are written.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Allocation`](crate::Error::Allocation) if there is not enough memory.
    pub fn uninit(stream: &Stream, dtype: DType, len: usize) -> Result<Self> {
        with_type!(dtype, T => Ok(Self::from_buffer(stream.buffer_uninit::<T>(len)?)))
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.storage.len() / self.dtype.size()
    }

    /// Whether the length is 0.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The device.
    pub fn device(&self) -> &Device {
        self.storage.device()
    }

    /// The place of an element.
    pub fn at(&self, element: usize) -> OperandStart<'_> {
        self.at_byte(element.saturating_mul(self.dtype.size()))
    }

    /// The place `byte` bytes after the beginning.
    pub fn at_byte(&self, byte: usize) -> OperandStart<'_> {
        OperandStart { storage: &self.storage, dtype: self.dtype, byte }
    }

    /// Copies the elements to the host, after all work that writes them.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Expression`](crate::Error::Expression) if the elements have another type, and the errors of
    /// [`BufferSlice::to_vec`](crate::BufferSlice::to_vec).
    #[track_caller]
    pub fn to_vec<T: Scalar>(&self) -> Result<Vec<T>> {
        if T::DTYPE != self.dtype {
            let reason = format!("a memory of {} is read as {}", self.dtype, T::DTYPE);
            return Err(mistake(Location::caller(), ExpressionErrorKind::BadDtype, reason, &[]));
        }
        // SAFETY: it was made of a buffer of `dtype`, which is `T`'s.
        unsafe { self.storage.as_slice::<T>() }.to_vec()
    }
}

impl std::fmt::Debug for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Memory({} {} on {})", self.len(), self.dtype, self.device())
    }
}

impl<'a> From<&'a Memory> for OperandStart<'a> {
    fn from(memory: &'a Memory) -> Self {
        memory.at_byte(0)
    }
}

impl<'a, T: Scalar> From<&'a Tensor<T>> for OperandStart<'a> {
    fn from(tensor: &'a Tensor<T>) -> Self {
        let view = &tensor.view;
        Self { storage: &view.storage, dtype: T::DTYPE, byte: view.layout.offset * size_of::<T>() }
    }
}

impl<T: Element + Scalar> From<Buffer<T>> for Memory {
    fn from(buffer: Buffer<T>) -> Self {
        Self::from_buffer(buffer)
    }
}
