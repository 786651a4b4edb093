//! Tests sorts, and algorithms that take or return sorted items.

mod merge;
mod merge_sort;
mod numbers;
mod search;
mod sort;
mod top_k;
