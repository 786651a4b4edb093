//! Differences of neighbours.
//!
//! One launch, in which each item is read once: a lane gets its vector's last neighbour from the lane before.

#[cfg(not(target_arch = "nvptx64"))]
pub(crate) mod call;
pub(crate) mod kernel;
