//! Sorts by any comparator.
//!
//! `merge_sort_tiles` sorts tiles, and each pass of merges joins two sorted runs: see [`merge`](super::merge).

#[cfg(not(target_arch = "nvptx64"))]
pub(crate) mod call;
pub(crate) mod kernel;
