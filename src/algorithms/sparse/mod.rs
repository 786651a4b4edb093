//! Sparse matrices, and their products with vectors.

mod coo;
mod csr;
mod matrix_market;
mod plan;
mod product;
mod sell;
mod transpose;
mod triplets;
mod vectors;

pub use coo::Coo;
pub use csr::{Csr, CsrIndex};
pub use matrix_market::MatrixMarketValue;
pub use plan::SpmvMethod;
pub use product::{SparseMatrix, Spmv, spmv, spmv_by, spmv_with};
pub use sell::Sell;
pub use vectors::{Spmm, spmm, spmm_by};

use crate::Error;

/// The error of a matrix that is none.
fn wrong(call: &'static str, reason: String) -> Error {
    Error::SparseMatrix { call, reason }
}
