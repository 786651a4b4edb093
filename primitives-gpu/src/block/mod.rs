//! Collectives of a block: every thread of the block calls them, from the same place.

mod reduce;

pub use reduce::{ReduceStorage, block_reduce, block_x_reduce};
