//! DLPack: converts tensors of other libraries to tensors of this library, and back, without a copy, on a GPU and in the host's memory.
//!
//! PyTorch, CuPy, NumPy, JAX and others exchange arrays by a C struct with a pointer, a shape, strides and a function that gives the memory
//! back. This module imports and exports both forms of the struct: [`DLManagedTensorVersioned`], and the older [`DLManagedTensor`], which
//! cannot express that memory is read-only.
//!
//! | from | to | call |
//! |---|---|---|
//! | a pointer to such a struct | [`DlpackTensor`], which owns it | [`DlpackTensor::from_raw`], [`from_raw_unversioned`](DlpackTensor::from_raw_unversioned) |
//! | [`DlpackTensor`] | tensor, of any strides | [`Tensor::from_dlpack`](crate::expr::Tensor::from_dlpack) |
//! | [`DlpackTensor`] | buffer, of contiguous elements, also [`Complex`](crate::Complex) | [`DlpackTensor::into_buffer`] |
//! | tensor | [`DlpackExport`], which shares it | [`Tensor::to_dlpack`](crate::expr::Tensor::to_dlpack) |
//! | buffer | [`DlpackExport`], which owns it | [`DlpackExport::of_buffer`] |
//! | [`DlpackExport`] | a pointer to such a struct | [`DlpackExport::into_raw`], [`into_raw_unversioned`](DlpackExport::into_raw_unversioned) |
//!
//! Memory of the emulator is host memory: `kDLCPU`, device 0. The emulator also imports pinned memory, `kDLCUDAHost`. Memory of a GPU is
//! `kDLCUDA` with [`Device::ordinal`](crate::Device::ordinal); any GPU imports `kDLCUDAManaged`. Other libraries use the primary context of
//! the GPU, as [`Device::gpu_at`](crate::Device::gpu_at) does.
//!
//! # Streams
//!
//! The struct names no stream. On a GPU, the code that passes it on must keep the order of work.
//!
//! - **Import.** Ask the producer for its tensor with the handle of the stream that you import it on: `__dlpack__(stream=s)`, where `s` is
//!   [`Stream::as_raw`](crate::Stream::as_raw) as a number. The producer makes that stream wait for its work. In this library, work on all
//!   streams waits for the work that is on that stream at the time of the import. The producer gets the memory back when all work that uses
//!   it is over: a drop of the last tensor waits for that, as [`Buffer::from_raw_owned`](crate::Buffer::from_raw_owned) says.
//! - **Export.** The consumer names its stream, the argument of `__dlpack__(stream=s)`. Adopt this stream with
//!   [`Stream::from_raw_borrowed`](crate::Stream::from_raw_borrowed), once for all exports, and export on it. CUDA's legacy default stream
//!   is 1 in Python, and null here. Number 2 is another stream on each thread, so it cannot be adopted for a deleter that any thread calls.
//!   The consumer's later work on its stream sees all work that was enqueued before on any stream here. When the consumer gives the memory
//!   back, the memory is freed after the work that is on the consumer's stream at that time, without a wait. A consumer that uses other
//!   streams must first make its stream wait for them. The deleter makes the GPU's context current on its thread, as every call here does.
//! - **Between.** Work of the other library has no order relative to work of this library, unless both are on that stream or a call orders
//!   them.
//!
//! On the emulator, work is done when its call returns, so there is nothing to wait for. The other library may access the memory only while
//! no call here uses it, and no closure reads it.
//!
//! Code that writes memory of `bool` must leave bytes of 0 or 1.
//!
//! ```
//! use kernel_primitives::Device;
//! use kernel_primitives::expr::{Tensor, scalar};
//! use kernel_primitives::interop::dlpack::DlpackTensor;
//!
//! # fn main() -> kernel_primitives::Result<()> {
//! let stream = Device::auto()?.stream()?;
//! let x = Tensor::from_slice(&stream, [2, 3], &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0])?;
//! let pointer = x.t().to_dlpack(&stream)?.into_raw(); // for a `PyCapsule` named "dltensor_versioned", say
//! // SAFETY: just exported, and consumed once; all work is on one stream.
//! let y = Tensor::<f32>::from_dlpack(&stream, unsafe { DlpackTensor::from_raw(pointer)? })?;
//! y.mul_assign(scalar(10.0f32))?; // the memory of `x`
//! assert_eq!(*y.shape(), [3, 2]);
//! assert_eq!(x.to_vec()?, [10.0, 20.0, 30.0, 40.0, 50.0, 60.0]);
//! # Ok(())
//! # }
//! ```
//!
//! `scripts/dlpack/check.py` in the repository exchanges arrays with NumPy, PyTorch and CuPy by this module.
//!
//! Reference: the DLPack documentation, `dlpack.h`, version 1.

mod abi;
mod element;
mod export;
mod import;

pub use abi::{
    DLDataType, DLDevice, DLManagedTensor, DLManagedTensorVersioned, DLPackVersion, DLTensor, FLAG_IS_COPIED,
    FLAG_READ_ONLY,
};
pub use element::DlpackElement;
pub use export::DlpackExport;
pub use import::DlpackTensor;
