//! The kernels of sparse matrices: products by rows, by their lengths, by windows, by merge path and with several vectors; matrices in slices;
//! conversions and checks.

pub(crate) mod csr;
pub(crate) mod csr_build;
pub(crate) mod csr_by_length;
pub(crate) mod csr_path;
pub(crate) mod csr_staged;
pub(crate) mod csr_tiles;
pub(crate) mod csr_vectors;
pub(crate) mod csr_window;
pub(crate) mod sell;
