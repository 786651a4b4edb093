//! The kernels of the tests, one file a subject. Compiled for both machines, so they use the device side alone.

pub mod block;
pub mod cases;
pub mod columns;
pub mod faults;
pub mod functor;
pub mod graph;
pub mod input;
pub mod io;
pub mod launches;
pub mod printing;
pub mod reduction;
pub mod simt;
pub mod thread;
pub mod types;
pub mod warp;

pub use types::*;
