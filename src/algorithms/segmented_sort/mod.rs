//! Sorts of segments.
//!
//! A launch sorts tiles, each segment in them by itself. Then one merges by ranks what segments have in several tiles; or, if there are many
//! items, each of several passes joins runs two by two, and a last launch gathers what is in the copy.

#[cfg(not(target_arch = "nvptx64"))]
pub(crate) mod call;
pub(crate) mod kernel;
pub(crate) mod merges;
pub(crate) mod ranks;
