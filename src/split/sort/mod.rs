//! Sorts over devices: each device sorts its items, then receives its share of all items, and merges or sorts this share.

mod cuts;
mod keys;
mod pairs;
mod shares;

pub use keys::{sort_by, sort_keys};
pub use pairs::{sort_pairs, sort_pairs_by};
