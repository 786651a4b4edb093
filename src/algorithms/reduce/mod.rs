//! Reductions.
//!
//! One launch: each block reduces its share, and the last block to finish reduces the results of all blocks. A single block reduces few
//! items.

#[cfg(not(target_arch = "nvptx64"))]
pub(crate) mod call;
pub(crate) mod kernel;
