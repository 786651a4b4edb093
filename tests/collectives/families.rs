//! The collectives of a warp and a block, with a module for each family. A module has the kernels that call them, which are compiled for
//! both machines, and their tests, which only the host compiles.

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
#[path = "families/../../suite/kernels/types.rs"]
pub mod types;
pub mod warp;

pub use types::*;
