//! Sparse matrices over devices, and their products with vectors. Each device has some of the rows, and receives the items that these rows
//! read.

mod exchange;
mod matrix;
mod product;

pub use matrix::SplitCsr;
pub use product::{spmv, spmv_by, spmv_with};
