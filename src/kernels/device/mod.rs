//! The kernels of [`algorithms`](kernel_primitives::algorithms). A program instantiates them for its own types and functors.
//!
//! Most of them rely on numbers, memory and results of earlier launches that their algorithm prepares. Only the algorithm launches these.
//! They check all values that come from data, functors and comparators. Whatever these values are, no access is outside a buffer.

pub(crate) mod shipped;

pub use crate::algorithms::device::*;
