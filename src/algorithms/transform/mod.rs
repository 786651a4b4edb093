//! A function of each item, and items from or to indices.
//!
//! One launch each. [`transform`](crate::algorithms::transform()), `generate`, `fill` and `gather` are one kernel with other inputs; `scatter` has its own.

#[cfg(not(target_arch = "nvptx64"))]
pub(crate) mod call;
pub(crate) mod kernel;
