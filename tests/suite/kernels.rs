//! The kernels of the tests, with one file for each subject. They are compiled for both machines, so they use only the
//! device side.

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
