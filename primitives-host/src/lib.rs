//! The runtime of `kernel-primitives`: devices, streams, buffers and typed launches, on an NVIDIA GPU or in an emulator on
//! the CPU, with one API for both.
//!
//! Most users depend on `kernel-primitives`, which re-exports this crate beside the Kernel Primitive API.
//!
//! # Order and lifetimes
//!
//! A [`Stream`] is a queue of launches and copies that run in order, asynchronously on a GPU. A [`Buffer`] knows the streams
//! that use it: a use on another stream waits for the earlier ones, dropping it frees its memory after the last use, and
//! reading it back waits for what was launched. Hence a launch borrows its arguments only while it is called, and no
//! borrow needs to outlive it: `&Buffer` for a `Global` parameter, `&mut Buffer` for a `GlobalMut`, which the compiler
//! keeps apart.
//!
//! A [`Graph`] is a sequence of launches that [`Stream::capture`] records once and that is launched as one, as often as
//! wanted.
//!
//! # Errors
//!
//! Everything returns [`Error`]. A launch checks grid, block, shared memory, devices and declared lengths before it starts.
//! A fault in a kernel (a panic, an index outside a view) is [`Error::Fault`] with kernel, block, thread and source line:
//! from the launch itself on the emulator, from the next launch or synchronisation on a GPU.
//!
//! # Observation
//!
//! [`Device::counters`] counts launches, copies, allocations and waits. With the feature `tracing`, each launch is a span
//! `launch` of level `debug` with the fields `kernel`, `grid`, `block`, `shared_bytes` and `device`; loads of kernels,
//! allocations and launches of graphs are events of that level, and faults are events of level `error`. Their target is
//! `kernel_primitives`.

mod buffer;
mod counters;
#[cfg(feature = "cuda")]
mod cuda;
mod device;
mod dims;
mod emulator;
mod error;
mod function;
mod graph;
mod input_arg;
mod kernel;
mod memory;
mod output_arg;
mod pinned;
#[doc(hidden)]
pub mod storage;
mod stream;
mod trace;
mod uses;
mod written;

pub use buffer::{Buffer, BufferSlice, BufferSliceMut, ReadArg, WriteArg};
pub use counters::Counters;
pub use device::{DEVICE_VARIABLE, Device, DeviceProperties, EMULATOR_VARIABLE, SEED_VARIABLE};
pub use dims::Dims;
pub use emulator::EmulatorOptions;
pub use error::{
    Accessor, Diagnosis, Error, ExpressionError, ExpressionErrorKind, KernelFault, MemoryAction, MemoryPlace, Result,
};
pub use function::{FunctionCode, FunctionImage, FunctionInfo, FunctionValue, ValueType};
pub use graph::Graph;
pub use input_arg::InputArg;
pub use kernel::{Image, Images, KernelInfo};
pub use output_arg::OutputArg;
pub use pinned::PinnedBuffer;
pub use stream::{Event, Stream};

/// What the expansions of `#[kernel]` and `#[device_function]` call. No stable API.
#[doc(hidden)]
pub mod __private {
    pub use crate::function::symbol;
    pub use crate::input_arg::Again;
    pub use crate::kernel::{Images, Instantiated, KernelInfo, Launch, param};
}
