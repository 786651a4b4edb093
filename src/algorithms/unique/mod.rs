//! The first item of each run of equal items.
//!
//! One launch: a tile learns from the tiles before it how many items they keep ([`tile::staged`](super::tile::staged)).

#[cfg(not(target_arch = "nvptx64"))]
pub(crate) mod call;
pub(crate) mod kernel;
