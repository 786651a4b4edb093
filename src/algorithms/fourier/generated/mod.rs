//! Kernels of Fourier transforms that are written at run time, as PTX. Each kernel serves one length.
//!
//! A kernel for any length spends most of its instructions on finding out what to do. A kernel whose length, radices and strides are
//! constants spends 40 to 50 instructions for each number, and runs at the speed of a copy. (H100, driver 580.159.04: 2^26 complex `f32` in
//! lines of 1000 in 0.357 ms; cuFFT 12.0 0.361, a copy 0.356.)
//!
//! - [`pass`]: the work of a kernel, as a plain value.
//! - [`text`]: the kernel of a pass, or of two fused passes.
//! - [`layout`]: the places of numbers in shared memory, chosen by its banks.
//! - [`choose`]: the radices, threads and lines for a length, on a multiprocessor that has some [`room`].
//! - [`plan`]: the passes that make the transforms of an array, and the memory that each uses.
//! - [`launch`]: the launches of these passes on a GPU, and those of transforms of expressions.

pub(super) mod choose;
pub(super) mod launch;
pub(super) mod layout;
pub(super) mod pass;
pub(super) mod plan;
pub(super) mod room;
#[cfg(test)]
mod tests;
pub(super) mod text;
