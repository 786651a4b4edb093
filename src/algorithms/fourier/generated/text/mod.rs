//! The texts of kernels.
//!
//! - [`code`]: registers, integers, and real values with pending factors.
//! - [`butterfly`]: transforms of the numbers of one thread.
//! - [`factors`]: tables of roots of unity, and factors between the passes of a long transform.
//! - [`kernel`], [`half`], [`rows`]: a pass, real arrays, and short lines.
//! - [`computed`]: lines of expressions, with expressions between two transforms.
//! - [`convolution`]: lengths with large prime factors.
//! - [`spectrum`]: half spectra of long real arrays.
//! - [`module`]: the head, the parameters and the declarations of a kernel.
//! - [`fused`]: two passes in one launch.
//! - [`ahead`]: passes whose blocks stay, and copy the next tile while they transform one.

pub(super) mod ahead;
pub(super) mod butterfly;
pub(super) mod code;
pub(super) mod computed;
pub(super) mod convolution;
mod factors;
pub(super) mod fused;
mod half;
pub(super) mod kernel;
pub(super) mod module;
mod rows;
pub(super) mod spectrum;
