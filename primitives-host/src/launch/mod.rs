//! Launches: kernels, their arguments, their dimensions, and graphs of launches.

pub(crate) mod dims;
pub(crate) mod function;
pub(crate) mod graph;
pub(crate) mod in_kernel;
pub(crate) mod input_arg;
pub(crate) mod kernel;
pub(crate) mod output_arg;
pub(crate) mod tile_map;
