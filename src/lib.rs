#![doc = include_str!("../README.md")]
#![cfg_attr(target_arch = "nvptx64", no_std)]

extern crate self as kernel_primitives;

#[cfg(not(target_arch = "nvptx64"))]
pub mod docs;
pub mod kernels;

pub use primitives_gpu::*;
#[cfg(not(target_arch = "nvptx64"))]
pub use primitives_host::*;
