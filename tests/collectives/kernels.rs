//! The kernels of the tests of warp and block collectives, with a file for each subject. They are compiled for both machines, so they use
//! only the device side.

pub mod exchange;
pub mod fft;
pub mod halo;
pub mod histogram;
pub mod limits;
pub mod neighbours;
pub mod path;
pub mod reduce;
pub mod scan;
pub mod shared;
#[allow(dead_code, reason = "each test binary uses a part")]
#[path = "kernels/../../suite/kernels/types.rs"]
pub mod types;
pub mod warp;

pub use types::*;
