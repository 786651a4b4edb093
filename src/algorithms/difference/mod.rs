//! Differences of neighbours.
//!
//! One launch. A lane reads its own vectors, and, once more and from the cache, the item before each of them.

#[cfg(not(target_arch = "nvptx64"))]
pub(crate) mod call;
pub(crate) mod kernel;
