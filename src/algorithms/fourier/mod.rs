//! Fourier transforms of arrays.
//!
//! A plan says which launches make a transform. On a GPU, `generated` writes kernels for the lengths of the plan. Otherwise each launch
//! runs [`kernel::fft_lines`], whose blocks transform as many lines as their shared memory holds. [`chain`] has transforms of expressions.

#[cfg(not(target_arch = "nvptx64"))]
mod banks;
mod block;
#[cfg(not(target_arch = "nvptx64"))]
mod chain;
#[cfg(not(target_arch = "nvptx64"))]
mod generated;
pub(crate) mod kernel;
#[cfg(not(target_arch = "nvptx64"))]
mod launches;
pub(crate) mod lines;
#[cfg(not(target_arch = "nvptx64"))]
mod passes;
#[cfg(not(target_arch = "nvptx64"))]
mod plan;
mod powers;
#[cfg(not(target_arch = "nvptx64"))]
mod radices;
mod staged;
pub(crate) mod steps;
#[cfg(not(target_arch = "nvptx64"))]
mod tables;
#[cfg(not(target_arch = "nvptx64"))]
mod transform;

#[cfg(not(target_arch = "nvptx64"))]
pub use chain::FftChain;
#[cfg(not(target_arch = "nvptx64"))]
pub use plan::{FftPath, FftPlan};
#[cfg(not(target_arch = "nvptx64"))]
pub use transform::{Fft, FftKind, fft, fft_by, fft_in_place, ifft, ifft_in_place, irfft, rfft};
