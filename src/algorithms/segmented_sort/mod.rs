//! Sorts of segments.
//!
//! The first launch sorts each segment within each tile. Then a second launch merges by ranks the segments that lie in several tiles. If
//! there are many items, several passes merge runs in pairs instead, and a last launch copies back what is in the copy.

#[cfg(not(target_arch = "nvptx64"))]
pub(crate) mod call;
pub(crate) mod kernel;
pub(crate) mod merges;
pub(crate) mod ranks;
