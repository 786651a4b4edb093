//! Differences of neighbours.
//!
//! One launch. A lane reads vectors of its own, and the item before each of them once more, from the cache.

#[cfg(not(target_arch = "nvptx64"))]
pub(crate) mod call;
pub(crate) mod kernel;
