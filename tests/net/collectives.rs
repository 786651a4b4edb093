//! The collectives of a warp, a block and a tile, with a module for each family. A module has the kernels that call them, which are
//! compiled for both machines, and the subjects, which only the host compiles.

pub mod block_reduce;
pub mod block_scan;
pub mod exchange;
pub mod fft;
pub mod io;
pub mod neighbours;
pub mod path;
pub mod radix;
pub mod sorts;
pub mod tables;
pub mod warp;
