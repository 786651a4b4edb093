// The README links files; the first definition of a link counts, so that here it leads to the page.
//! [Your first collective]: crate::docs::first_collective
//! [Layers]: crate::docs::layers
//! [From CUB]: crate::docs::from_cub
//! [From Paddle's Kernel Primitive API]: crate::docs::seed_map
//! [Debugging]: crate::docs::debugging
//!
#![doc = include_str!("../README.md")]
#![cfg_attr(target_arch = "nvptx64", no_std)]

extern crate self as kernel_primitives;

#[cfg(not(target_arch = "nvptx64"))]
pub mod algorithms;
#[cfg(not(target_arch = "nvptx64"))]
pub mod docs;
#[cfg(not(target_arch = "nvptx64"))]
pub mod expr;
pub mod kernels;
#[cfg(not(target_arch = "nvptx64"))]
pub mod ops;

pub use primitives_gpu::*;
#[cfg(not(target_arch = "nvptx64"))]
pub use primitives_host::*;
