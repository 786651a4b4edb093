//! Lends a stream of `cudarc` and its slices to this library. You may copy this file into a program that uses both.

use std::sync::Arc;

use cudarc::driver::{CudaSlice, CudaStream, DevicePtrMut};
use kernel_primitives::interop::{Loan, lend};
use kernel_primitives::{Buffer, Device, Element, Result, Stream};

/// One stream, under the names that both libraries have for it.
pub struct Queue {
    ours: Stream,
    theirs: Arc<CudaStream>,
}

impl Queue {
    /// Adopts a stream of `cudarc`, which stays as long as work of this library is on it.
    ///
    /// # Errors
    ///
    /// Those of [`Device::from_raw_context`] and [`Stream::from_raw_owned`].
    ///
    /// # Safety
    ///
    /// Its context is a device's primary one, that of `CudaContext::new`, or is destroyed after the last handle of the device. The stream
    /// is not the thread's own, which `per_thread_stream` gives. It is adopted once at a time. If `cudarc` captures it, the contract is
    /// that of [`Stream::is_capturing`], too.
    pub unsafe fn adopt(theirs: &Arc<CudaStream>) -> Result<Self> {
        // SAFETY: the stream keeps its context; the caller's contract. This library holds a primary context by itself.
        let device = unsafe { Device::from_raw_context(theirs.context().cu_ctx().cast())? };
        // SAFETY: a stream of that context, which its owner keeps; the caller's contract.
        let ours = unsafe { Stream::from_raw_owned(&device, theirs.cu_stream().cast(), theirs.clone())? };
        Ok(Self { ours, theirs: theirs.clone() })
    }

    /// The stream of this library.
    pub fn stream(&self) -> &Stream {
        &self.ours
    }

    /// Lends a slice: the buffer has its memory, without a copy, and the loan has the slice when the buffer is gone.
    ///
    /// What either library did with the slice before comes first: on this stream by order, on others by the events of `cudarc`.
    ///
    /// # Errors
    ///
    /// Those of [`Buffer::from_raw_owned`]: the slice is then dropped.
    ///
    /// # Panics
    ///
    /// If the slice is of another context than the stream.
    pub fn lend<T: Element>(&self, mut slice: CudaSlice<T>) -> Result<(Buffer<T>, Loan<CudaSlice<T>>)> {
        assert_eq!(slice.context(), self.theirs.context(), "the slice is of another context");
        let len = slice.len();
        let (address, uses) = slice.device_ptr_mut(&self.theirs);
        drop(uses);
        let (owner, loan) = lend(slice);
        // SAFETY: the memory is that of the slice, whose elements are values of its type. The slice is the owner, so that nobody else uses
        // or frees the memory before it comes back.
        let buffer = unsafe { Buffer::from_raw_owned(&self.ours, address, len, owner)? };
        Ok((buffer, loan))
    }
}
