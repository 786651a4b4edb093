//! Sparse matrices, and their products with vectors.

mod csr;
mod plan;
mod product;
mod triplets;

pub use csr::{Csr, CsrIndex};
pub use plan::SpmvMethod;
pub use product::{Spmv, spmv, spmv_by};

use crate::Error;

/// The error of a matrix that is none.
fn wrong(call: &'static str, reason: String) -> Error {
    Error::SparseMatrix { call, reason }
}
