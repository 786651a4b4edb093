//! The kernels of the benchmarks, one file a subject.

pub mod block;
pub mod block_sort;
pub mod fourier;
pub mod orders;
