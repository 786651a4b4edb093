//! Kernels of Fourier transforms that are written at run time, as PTX, for one length each.
//!
//! A kernel for any length spends most of its instructions on finding out what to do. One whose length, radices and strides are constants
//! spends 40 to 50 a number, and runs at the speed of a copy (H100, driver 580.159.04: 2^26 complex `f32` in lines of 1000 in 0.357 ms;
//! cuFFT 12.0 0.361, a copy 0.356).
//!
//! - [`pass`]: what a kernel does, as a plain value.
//! - [`text`]: the kernel of a pass, or of two that are fused.
//! - [`layout`]: where numbers lie in shared memory, by its banks.
//! - [`choose`]: which radices, threads and lines a length takes, on a multiprocessor that has some [`room`].
//! - [`plan`]: which passes make the transforms of an array, and which memory each uses.
//! - [`launch`]: their launches on a GPU, and those of transforms of expressions.

pub(super) mod choose;
pub(super) mod launch;
pub(super) mod layout;
pub(super) mod pass;
pub(super) mod plan;
pub(super) mod room;
#[cfg(test)]
mod tests;
pub(super) mod text;
