//! All items as one.
//!
//! One launch: each block reduces its share, and the last one that is done reduces what the blocks have. Few items are left to one block.

#[cfg(not(target_arch = "nvptx64"))]
pub(crate) mod call;
pub(crate) mod kernel;
