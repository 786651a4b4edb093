//! Sparse matrices over devices, and their products with vectors: each device has some of the rows, and gets the items that these read.

mod exchange;
mod matrix;
mod product;

pub use matrix::SplitCsr;
pub use product::{spmv, spmv_by, spmv_with};
