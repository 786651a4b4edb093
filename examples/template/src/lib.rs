//! A crate with kernels of its own.

pub mod kernels;
