//! Kernels that the library ships, composed of its primitives: to launch as they are, to instantiate for a functor of one's
//! own, and to copy from.

mod elementwise;
mod reduce;
mod sort;

pub use elementwise::{elementwise_any, elementwise_binary, elementwise_ternary, elementwise_unary};
pub use reduce::block_reduce;
pub use sort::{sort_rows, top_k_rows};
