//! Tests algorithms by segment and by key.

mod by_key;
pub mod segmented;
mod segmented_sort;
mod segmented_warps;
