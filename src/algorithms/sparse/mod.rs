//! Sparse matrices, and their products with vectors.
//!
//! A product of rows of similar lengths is one launch, of 1 to 32 lanes a row, and so is one by the length of each row, of a lane or a warp a
//! row. If blocks share rows of more than 8192 entries, another launch adds up their shares. By windows it is one launch, whose blocks copy the part
//! of the vector that they need to shared memory. By merge path it is two launches: blocks of equally many entries and ends of rows, and what rows have
//! in several blocks; or one, if there is one block. Where blocks begin is found when the matrix is made, or gets the method.

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

/// The error of a matrix that is none.
#[cfg(not(target_arch = "nvptx64"))]
fn wrong(call: &'static str, reason: String) -> crate::Error {
    crate::Error::SparseMatrix { call, reason }
}
