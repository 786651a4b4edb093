//! GPU kernels in Rust: primitives for your own kernels, algorithms over whole buffers, and expressions that become one kernel each.
//!
//! A kernel is an ordinary function. The build compiles it to PTX for NVIDIA GPUs, and the same function runs on the CPU, in an
//! emulator with lanes, warps, barriers and shared memory. The emulator is the default; the feature `cuda` adds the GPU.
//!
//! # Parts
//!
//! | for whom | where | what |
//! |---|---|---|
//! | authors of kernels | [`macro@kernel`], [`prelude`], [`Block`], [`view`] | the attribute, the token that every kernel takes, views of memory |
//! | | [`io`], [`thread`], [`warp`], [`block`], [`grid`] | reads and writes, and what a thread, a warp, a block and a grid compute together |
//! | | [`element`], [`functor`], [`input`], [`output`] | what items are, what is done with them, where they come from and go |
//! | | [`kernels`] | shipped kernels: to launch, to instantiate with one's own functors, and to copy from |
//! | callers | [`Device`], [`Stream`], [`Buffer`], [`Dims`], [`Graph`] | the runtime, the same on a GPU and in the emulator |
//! | | [`Devices`], [`Split`], [`SplitBuffer`], [`expr::SplitTensor`] | several devices, and data that is split over them |
//! | | [`Group`], [`SplitGroup`] | what several processes, or the devices of one, send each other |
//! | | [`algorithms`] | sorts, scans, reductions, selections and more over whole buffers, one call each |
//! | | [`expr`] | arithmetic on tensors, one kernel an assignment |
//! | | [`split`](mod@split) | algorithms over buffers that are split over devices |
//! | | [`ops`] | operators with descriptors, for types known only at run time |
//! | | [`interop`] | arrays from and for other libraries: NumPy's files, `ndarray`, DLPack |
//! | readers | [`docs`] | pages |
//!
//! # How a launch goes
//!
//! 1. [`Device::auto`] opens a GPU, or the emulator if there is no GPU. The device makes a [`Stream`], which runs its work in order.
//! 2. The stream makes [`Buffer`]s: from data, zeroed, or without contents.
//! 3. A kernel's `launch` takes the stream, the [`Dims`] of grid and block, and an argument for each parameter after the
//!    [`Block`]: `&Buffer` for a [`Global`], `&mut Buffer` for a [`GlobalMut`], a value for a [`KernelParam`].
//!    [`Shared`] parameters take none. The compiler checks number, types and borrows; the launch checks limits, and
//!    the lengths that the kernel declares to be equal.
//! 4. On a GPU, the launch returns at once. [`Buffer::to_vec`] waits for the work that writes the buffer, and copies the buffer to the
//!    host.
//! 5. A panic or an index outside a view ends the kernel, and a call returns [`Error::Fault`], which names kernel, block, thread and source
//!    line. In the emulator, the launch returns the error. On a GPU, a later call does: the next launch on the stream that finds the fault,
//!    or the next call that waits for the kernel, such as [`Buffer::to_vec`].
//!
//! ```
//! use kernel_primitives::functor::Square;
//! use kernel_primitives::prelude::*;
//! use kernel_primitives::{Device, Dims};
//!
//! /// The sum of squares of the items that each block visits.
//! #[kernel]
//! pub fn squares(cx: Block, x: Global<f32>, mut sums: GlobalMut<f32, PerBlock>, mut shared: Shared<ReduceStorage<f32>>) {
//!     let mut sum = 0.0;
//!     for tile in cx.tiles::<4>(x.len()) {
//!         let mut items = init::<f32, 4>(0.0);
//!         read_data(cx, &mut items, x.tile(tile)); // items past the end keep their 0
//!         sum = thread_reduce(sum, &elementwise_unary(&items, Square), Add);
//!     }
//!     sums.store(block_reduce(cx, &mut shared, sum, Add));
//! }
//!
//! # fn main() -> kernel_primitives::Result<()> {
//! let stream = Device::auto()?.stream()?;
//! let x = stream.buffer_from(&[1.0f32, 2.0, 3.0, 4.0, 5.0])?;
//! let mut sums = stream.buffer_zeroed::<f32>(1)?;
//! squares::launch(&stream, Dims::new(1, 64), &x, &mut sums)?;
//! assert_eq!(sums.to_vec()?, [55.0]);
//! # Ok(())
//! # }
//! ```
//!
//! For a GPU, kernels are in a file of their own, which the build script compiles a second time. [`docs::gpu`] has the steps, and
//! [`docs::architecture`] describes the whole way from source to launch.
//!
//! # The other layers
//!
//! An algorithm is one call, and its result stays on the device. If a program has its own functors or types, it instantiates the
//! algorithm's kernels for them in one line, which the compiler's error shows:
//!
//! ```
//! use kernel_primitives::Device;
//! use kernel_primitives::algorithms::{exclusive_scan, reduce};
//! use kernel_primitives::functor::{Add, MaxOf};
//!
//! # fn main() -> kernel_primitives::Result<()> {
//! let stream = Device::auto()?.stream()?;
//! let counts = stream.buffer_from(&[3i32, 1, 4, 1, 5])?;
//! let (mut offsets, mut largest) = (stream.buffer_zeroed::<i32>(5)?, stream.buffer_zeroed::<i32>(1)?);
//! exclusive_scan(&stream, &counts, 0, Add, &mut offsets)?;
//! assert_eq!(offsets.to_vec()?, [0, 3, 4, 8, 9]);
//! reduce(&stream, &counts, MaxOf, &mut largest)?;
//! assert_eq!(largest.to_vec()?, [5]);
//! # Ok(())
//! # }
//! ```
//!
//! An expression is computed when it is assigned:
//!
//! ```
//! use kernel_primitives::Device;
//! use kernel_primitives::expr::{Reductions, Tensor};
//!
//! # fn main() -> kernel_primitives::Result<()> {
//! let stream = Device::auto()?.stream()?;
//! let x = Tensor::from_slice(&stream, 3, &[1.0f32, 2.0, 3.0])?;
//! let y = Tensor::uninit(&stream, 3)?;
//! y.assign(&x * &x + 1.0)?;
//! assert_eq!(y.to_vec()?, [2.0, 5.0, 10.0]);
//! assert_eq!((&x * &y).sum().item()?, 42.0);
//! # Ok(())
//! # }
//! ```
//!
//! # Rules in short
//!
//! - **The block token.** [`Block`], a kernel's first parameter, has indices, barriers, shuffles, votes and fences as methods. There are
//!   no global index functions.
//! - **Global memory.** Kernels read a [`Global`]. They write a [`GlobalMut`] through tokens that no two threads can both have. Its
//!   partition ([`PerThread`](view::PerThread), [`Tiles`](view::Tiles), [`PerBlock`](view::PerBlock)) says which thread owns which element.
//!   Other writes are atomic, or `unsafe`.
//! - **Inputs and outputs.** An [`Input`] reads items by index from a buffer, or from what [`input`] computes from buffers: counted,
//!   mapped, zipped, permuted, strided or reversed items. Intermediate values take no memory. An [`Output`] writes to a buffer. With
//!   [`output`], it writes to several buffers, or in another order.
//! - **Shared memory.** A collective names its storage as a type, a kernel takes the storage as [`Shared`], and the launch adds up the
//!   sizes. If another collective uses a storage next, that collective makes its own barrier.
//! - **Streams.** Work on a [`Stream`] is in order and, on a GPU, asynchronous. If a [`Buffer`] is used on a second stream, that stream
//!   waits for the first one. A launch borrows its arguments only during the call.
//! - **Graphs.** [`Stream::capture`] records launches. [`Graph::launch`] repeats them with one call, which takes a fraction of the host
//!   time on a GPU.
//! - **Numbers.** Square roots and divisions are correctly rounded. Nothing is contracted unless the build or an expression asks for it.
//!   Minimum and maximum propagate NaN. `f16` and `bf16` accumulate in `f32`. The order of a reduction depends only on the shape of the
//!   launch, so the same launch gives the same bits again.
//!
//! [`docs::guarantees`] has all rules, with the tests that check them.
//!
//! # Where to go on
//!
//! - [`docs::own_types`]: functors, operators, orders and elements of your own
//! - [`docs::first_collective`]: from an idea in a warp to a collective of a block, with a bug that the emulator finds
//! - [`docs::debugging`]: what the checked emulator reports
//! - [`docs::errors`]: which call returns an error or the fault of a kernel, and what works after it
//! - [`docs::graphs`]: launches that are captured once and launched as one
//! - [`docs::several_devices`]: programs on several GPUs
//! - [`docs::scaling_out`]: programs of several processes
//! - [`docs::layers`]: what each layer and each element type has, and where results are
//! - [`docs::ready`]: the types and operators that the algorithms are ready for
//! - [`docs::from_cub`], [`docs::seed_map`]: for readers who know CUB or Paddle's Kernel Primitive API
//! - `examples/README.md` in the repository: programs that check their results, and `examples/template`: a crate to copy
//!
//! The crate needs Rust 1.95 or later and Linux. The feature `cuda` supports x86-64 and AArch64. The feature `tracing` makes each launch a
//! span. The features `ndarray` and `dlpack` are for [`interop`].

#![cfg_attr(target_arch = "nvptx64", no_std)]

extern crate self as kernel_primitives;

pub mod algorithms;
#[cfg(not(target_arch = "nvptx64"))]
pub(crate) use algorithms::kernels::algorithm_trait as __algorithm_trait;
#[cfg(not(target_arch = "nvptx64"))]
pub mod docs;
#[cfg(not(target_arch = "nvptx64"))]
pub mod expr;
#[cfg(not(target_arch = "nvptx64"))]
pub mod interop;
pub mod kernels;
#[cfg(not(target_arch = "nvptx64"))]
pub mod ops;
#[cfg(not(target_arch = "nvptx64"))]
pub mod split;

// These lists are those of the roots of the two crates, without what is hidden there.
pub use primitives_gpu::{
    Accumulate, Arithmetic, BinaryFn, Bits, Block, Complex, ConvertTo, Dim3, Divide, Element, Float, Global, GlobalMut,
    Input, Integer, KernelParam, Magnitude, NaryFn, NullaryFn, Number, Ordered, Output, Quotient, Real, Reducer,
    Reduction, Shared, SortKey, TernaryFn, UnaryFn, bf16, block, device_function, device_println, element, f16,
    functor, grid, input, instantiate, io, kernel, output, prelude, simt, thread, view, warp,
};
#[cfg(not(target_arch = "nvptx64"))]
pub use primitives_host::{
    Accessor, Buffer, BufferSlice, BufferSliceMut, Counters, DEVICE_VARIABLE, DEVICES_VARIABLE, Device, DeviceFilter,
    DeviceProperties, Devices, Diagnosis, Dims, DriverError, EMULATED_ARCH_VARIABLE, EMULATOR_VARIABLE,
    EmulatorOptions, Error, Event, ExpressionError, ExpressionErrorKind, Extents, FunctionCode, FunctionImage,
    FunctionInfo, FunctionValue, Graph, Group, GroupNumber, GroupOptions, Image, Images, InputArg, KernelFault,
    KernelInfo, MemoryAction, MemoryPlace, OutputArg, OutsideView, PinnedBuffer, ReadArg, ReduceOp, Result,
    SEED_VARIABLE, Split, SplitBuffer, SplitGroup, Stream, Transfer, ValueType, WriteArg, devices,
};
// The names that expansions of macros use.
#[doc(hidden)]
pub use kernels::device::shipped::names as __algorithms;
#[doc(hidden)]
pub use primitives_gpu::{__algorithm_note, __elementary, __group, __shipped, __shipped_rows};
#[doc(hidden)]
#[cfg(not(target_arch = "nvptx64"))]
pub use primitives_host::__private;

/// The programs of the README, which are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
