//! Functions of each item, gathers and scatters.
//!
//! Each algorithm is one launch. [`transform`](crate::algorithms::transform()), `generate`, `fill` and `gather` are one kernel with
//! different inputs; `scatter` has its own kernel.

#[cfg(not(target_arch = "nvptx64"))]
pub(crate) mod call;
pub(crate) mod kernel;
