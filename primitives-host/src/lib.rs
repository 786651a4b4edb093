//! The runtime of `kernel-primitives`: devices, streams, buffers and typed launches, on an NVIDIA GPU or in an emulator on
//! the CPU, with one API for both.
//!
//! Most users depend on `kernel-primitives`, which re-exports this crate beside the Kernel Primitive API.
//!
//! # Order and lifetimes
//!
//! A [`Stream`] is a queue of launches and copies that run in order, asynchronously on a GPU. A [`Buffer`] knows the streams
//! that use it. A use on another stream waits for the earlier uses. Dropping the buffer frees its memory after the last use.
//! Reading it back waits for the launches that write it. So a launch borrows its arguments only while it is called: a
//! `&Buffer` for a `Global` parameter, a `&mut Buffer` for a `GlobalMut`.
//!
//! If a buffer was last used on another stream, a stream waits for that use alone. If no stream has waited for the other one during
//! its last 64 launches, it waits for all work that the other stream has so far.
//!
//! GPU memory comes from a pool of this library's own. The pool keeps freed memory for later buffers, until the last handle of the
//! device is gone. Calls that allocate, load kernels or wait do not disturb what other code captures on streams of its own.
//!
//! A [`Graph`] is a sequence of launches. [`Stream::capture`] records it once, and [`Graph::launch`] repeats it as one, as often
//! as you like.
//!
//! # Errors
//!
//! Calls that can fail return [`Error`]. A launch checks grid, block, shared memory, devices and declared lengths before it starts.
//! A fault in a kernel (a panic, an index outside a view) is [`Error::Fault`] with kernel, block, thread and source line. On
//! the emulator the launch itself returns it; on a GPU, the next launch on the [stream](Stream#faults) or the next wait for it.
//!
//! # Observation
//!
//! [`Device::counters`] counts launches, copies, allocations and waits. With the feature `tracing`, each launch of a kernel
//! outside of a graph is a span `launch` of level `debug` with the fields `kernel`, `grid`, `block`, `shared_bytes` and
//! `device`; expressions on the emulator have none. Loads of kernels, allocations and launches of graphs are events of that
//! level, and faults are events of level `error`. Their target is `kernel_primitives`.

mod counters;
#[cfg(feature = "cuda")]
mod cuda;
mod device;
pub mod devices;
mod emulator;
mod error;
mod fault;
mod group;
mod launch;
mod memory;
mod split;
mod stream;
mod trace;

pub use counters::Counters;
pub use device::{DEVICE_VARIABLE, Device, DeviceProperties, EMULATED_ARCH_VARIABLE, EMULATOR_VARIABLE, SEED_VARIABLE};
pub use devices::{DEVICES_VARIABLE, DeviceFilter, Devices};
pub use emulator::EmulatorOptions;
pub use error::{DriverError, Error, ExpressionError, ExpressionErrorKind, Result};
pub use fault::{Accessor, Diagnosis, KernelFault, MemoryAction, MemoryPlace, OutsideView};
pub use group::{Group, GroupNumber, GroupOptions, ReduceOp, SplitGroup};
pub use launch::dims::{Dims, Extents};
pub use launch::function::{FunctionCode, FunctionImage, FunctionInfo, FunctionValue, ValueType};
pub use launch::graph::Graph;
pub use launch::input_arg::InputArg;
pub use launch::kernel::{Image, Images, KernelInfo};
pub use launch::output_arg::OutputArg;
pub use memory::buffer::Buffer;
pub use memory::pinned::PinnedBuffer;
pub use memory::slice::{BufferSlice, BufferSliceMut, ReadArg, WriteArg};
#[doc(hidden)]
pub use memory::storage;
pub use memory::transfer::Transfer;
pub use split::{Split, SplitBuffer};
pub use stream::{Event, Stream};

/// What the expansions of `#[kernel]` and `#[device_function]` call. No stable API.
#[doc(hidden)]
pub mod __private {
    pub use crate::launch::function::symbol;
    pub use crate::launch::input_arg::Again;
    pub use crate::launch::kernel::{Entry, Grouped, Images, Instantiated, KernelInfo, Launch, param};
    pub use crate::launch::output_arg::AgainMut;
    pub use crate::launch::tile_map::{TileAxis, TileMap};
}
