//! Sorts and what takes or gives sorted items.

mod merge;
mod merge_sort;
mod search;
mod sort;
mod top_k;
