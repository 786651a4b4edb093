//! Sorts over devices: of each device's items, of which each then gets its share from all, and of what it got.

mod cuts;
mod keys;
mod pairs;
mod shares;

pub use keys::{sort_by, sort_keys};
pub use pairs::{sort_pairs, sort_pairs_by};
