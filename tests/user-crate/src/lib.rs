//! Kernels of one's own beside the library's.

pub mod kernels;
