//! Sparse matrices, and their products with vectors.
//!
//! The number of launches of a product depends on the method. A product by rows of similar lengths is one launch, with 1 to 32 lanes for
//! each row. A product by the length of each row is one launch, with a lane or a warp for each row; if blocks share rows of more than 8192
//! entries, another launch adds their shares. A product by windows is one launch, whose blocks copy the part of the vector that they need
//! to shared memory. A product by merge path is two launches, or one if there is one block: in the first, each block has the same number of
//! entries and ends of rows; the second combines the parts of rows that lie in several blocks. The places where blocks begin are found when
//! the matrix is made, or when the method is set.

pub(crate) mod kernel;

#[cfg(not(target_arch = "nvptx64"))]
mod by_length;
#[cfg(not(target_arch = "nvptx64"))]
mod coo;
#[cfg(not(target_arch = "nvptx64"))]
mod csr;
#[cfg(not(target_arch = "nvptx64"))]
mod matrix_market;
#[cfg(not(target_arch = "nvptx64"))]
mod path;
#[cfg(not(target_arch = "nvptx64"))]
mod plan;
#[cfg(not(target_arch = "nvptx64"))]
mod planned;
#[cfg(not(target_arch = "nvptx64"))]
mod product;
#[cfg(not(target_arch = "nvptx64"))]
mod sell;
#[cfg(not(target_arch = "nvptx64"))]
mod transpose;
#[cfg(not(target_arch = "nvptx64"))]
mod triplets;
#[cfg(not(target_arch = "nvptx64"))]
mod vectors;
#[cfg(not(target_arch = "nvptx64"))]
mod window;

#[cfg(not(target_arch = "nvptx64"))]
pub use {
    coo::Coo,
    csr::{Csr, CsrIndex},
    matrix_market::MatrixMarketValue,
    plan::SpmvMethod,
    planned::Planned,
    product::{SparseMatrix, Spmv, spmv, spmv_by, spmv_with},
    sell::Sell,
    vectors::{Spmm, spmm, spmm_by, spmm_with},
};
#[cfg(not(target_arch = "nvptx64"))]
pub(crate) use {csr::check_arrays, product::Format};

/// The error of a matrix that is not valid.
#[cfg(not(target_arch = "nvptx64"))]
fn wrong(call: &'static str, reason: String) -> crate::Error {
    crate::Error::SparseMatrix { call, reason }
}
