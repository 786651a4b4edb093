//! The kernels of the sorts' tests, with a file for each subject. They are compiled for both machines, so they use only the device side.

pub mod merge;
pub mod network;
pub mod radix;
pub mod top_k;
#[allow(dead_code, reason = "each test binary uses a part")]
#[path = "kernels/../../suite/kernels/types.rs"]
pub mod types;
pub mod warp;

pub use types::*;
