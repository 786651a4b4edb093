//! The Kernel Primitive API: GPU kernels in Rust, which are built from primitives of blocks and warps.
//!
//! The crate is `no_std` when it is compiled for the GPU (`nvptx64-nvidia-cuda`) and an ordinary library on the host,
//! where the same code runs in the emulator of `primitives-host`. Most users depend on `kernel-primitives`, which
//! re-exports everything here and adds the runtime.
//!
//! # Semantics
//!
//! **The block token.** A kernel's first parameter is a [`Block`]. Indices, barriers, shuffles, votes and fences are its
//! methods. It takes no register on the GPU, and is a pointer to the emulator's lane on the host. There are no global
//! index functions and no thread-local state. The token cannot outlive the kernel, nor leave its thread.
//!
//! **Global memory.** A [`Global`] is read. No thread writes its elements during the launch; the borrow of the buffer guarantees that. All
//! threads of the grid share a [`GlobalMut`]. Its last parameter, a [partition](view::partition), says which thread owns which element:
//! [`PerThread`](view::PerThread), [`Tiles<N>`](view::Tiles), [`PerBlock`](view::PerBlock), [`Atomic`](view::Atomic) or another one. Owned
//! elements are written through tokens that a [`Block`] gives out. No two threads can get the same token, so writes are disjoint by
//! construction. Any other write is atomic, or `unsafe` with its contract. All accesses are checked against the length of the view on both
//! machines. A violation is a [fault](simt::FaultKind), and never undefined behaviour.
//!
//! **Shared memory.** A block has one arena. A collective declares its storage as a type, and takes it as `&mut Shared<S>`. A kernel takes
//! it as a parameter [`Shared<S>`] from the launcher, which adds up sizes and alignments at compile time. A [`Shared`] remembers whether a
//! collective has used it. If so, the next collective on it starts with a barrier. So a reuse is always correct, and the first use costs
//! nothing.
//!
//! **Convergence.** Every thread of a collective's scope (warp or block) calls it from the same place in the source. The emulator reports a
//! lane that does not arrive.
//!
//! **Faults.** A panic, an index outside a view or a division by zero ends the thread, and reaches the host as an error with kernel, block,
//! thread and source line. The context survives. Waiting loops poll the fault flag through [`Block::spin`], so a fault in one block cannot
//! hang another block that waits for it. On a GPU, a kernel in which the compiler leaves a panic needs 16 bytes of shared memory, and one
//! store for each thread. Each check of this crate costs a comparison.
//!
//! **Elements.** An [`Element`] is plain old data without padding whose all-zero bytes are a value. [`Number`] adds arithmetic and an
//! order; [`element`] lists the other traits. The methods of the traits and the functors wrap integers. The plain operators wrap in the
//! build for a GPU, and on the host without overflow checks. `f16` and `bf16` are the types of the `half` crate. Their traits compute with
//! the GPU's own instructions, and give the same bits on the host.
//!
//! **Functors.** The traits are [`NullaryFn`], [`UnaryFn`], [`BinaryFn`], [`TernaryFn`], [`NaryFn`], [`Reducer`] and [`Reduction`].
//! Closures are functors. The bounds are the same on both machines. A functor that is a kernel parameter implements [`KernelParam`], which
//! fixes its layout.
//!
//! **Inlining.** The device build inlines all functions of a kernel, whatever their size, except `#[cold]` and `#[inline(never)]`
//! functions. `#[inline(always)]` is for the host: with it, a function of a few lines is faster in the emulator, but a longer function
//! makes each of its callers larger and slower to compile.
//!
//! **Numbers.** Minimum and maximum are IEEE 754-2019 `minimum` and `maximum`: NaN propagates and −0 is less than +0.
//! Their identities are +∞ and −∞, or the type's limits. Square root and division are correctly rounded. Multiply and
//! add are not contracted unless the build asks for it.
//!
//! **Two styles.** Primitives with the names of Paddle's Kernel Primitive API, which these docs call the seed, take the shape of the block
//! at run time. Collectives that need a static layout take the number of threads as a const generic.

#![cfg_attr(target_arch = "nvptx64", no_std)]
#![cfg_attr(target_arch = "nvptx64", feature(stdarch_nvptx))]

// The derives name the crate as users see it.
extern crate self as kernel_primitives;

pub mod block;
pub mod element;
pub mod functor;
pub mod grid;
pub mod input;
pub mod io;
pub mod output;
pub mod simt;
pub mod thread;
pub mod view;
pub mod warp;

pub use element::{
    Accumulate, Arithmetic, Bits, Complex, ConvertTo, Divide, Element, Float, Integer, KernelParam, Magnitude, Number,
    Ordered, Quotient, Real, SortKey,
};
pub use functor::{BinaryFn, NaryFn, NullaryFn, Reducer, Reduction, TernaryFn, UnaryFn};
pub use half::{bf16, f16};
pub use input::Input;
pub use output::Output;
#[doc(hidden)]
pub use primitives_macros::{__algorithm_note, __group, __shipped, __shipped_rows};
pub use primitives_macros::{Element, KernelParam, device_function, instantiate, kernel};
pub use simt::{Block, Dim3};
pub use view::{Global, GlobalMut, Shared};

/// What a kernel module imports: `use kernel_primitives::prelude::*;`.
///
/// It has the traits of functors, and the functors `Add`, `Mul`, `Min`, `Max` and `Each`. The other functors are in [`functor`].
pub mod prelude {
    pub use crate::block::*;
    pub use crate::device_println;
    pub use crate::element::{
        Accumulate, Arithmetic, Bits, Complex, ConvertTo, Divide, Element, Float, Integer, KernelParam, Magnitude,
        Number, Ordered, Quotient, Real, SortKey,
    };
    pub use crate::functor::{Add, BinaryFn, Max, Min, Mul, NaryFn, NullaryFn, Reducer, Reduction, TernaryFn, UnaryFn};
    pub use crate::input::Input;
    pub use crate::io::{init, read_data, write_data};
    pub use crate::output::Output;
    pub use crate::simt::{AtomicElement, AtomicInt, AtomicOrder, Block, Dim3, FULL_MASK, Scope};
    pub use crate::thread::{
        cycle_binary, elementwise_any, elementwise_binary, elementwise_constant, elementwise_ternary,
        elementwise_unary, thread_reduce, thread_reduce_x, thread_reduce_y,
    };
    pub use crate::view::{
        Atomic, Global, GlobalMut, Item, PerBlock, PerRow, PerThread, PerWarpRow, Shared, SharedArray, SharedSlice,
        Striped, Tile, TileMut, Tiles, WarpStriped,
    };
    pub use crate::warp::{
        warp_broadcast, warp_exclusive_scan, warp_exclusive_scan_from, warp_group_exclusive_scan,
        warp_group_inclusive_scan, warp_group_reduce, warp_inclusive_scan, warp_reduce, warp_reduce_by_heads,
        warp_reduce_by_tails,
    };
    pub use half::{bf16, f16};
    pub use primitives_macros::{Element, KernelParam, device_function, instantiate, kernel};
}
