//! Arrays from other libraries and for them.
//!
//! | module | feature | with whom | copies |
//! |---|---|---|---|
//! | [`npy`] | | NumPy's files, `.npy` | yes |
//! | `dlpack` | `dlpack` | tensors of PyTorch, CuPy, NumPy, JAX, … in the same process | none, on a GPU and on the host |
//! | `ndarray` | `ndarray` | arrays and views of the crate `ndarray` | to a GPU and back; none to look at the emulator's memory |
//!
//! This library can adopt CUDA contexts, streams and memory of other code in the same process by their raw handles: see
//! [`Device::from_raw_context`](crate::Device::from_raw_context). [`lend`] makes an owner for them that comes back. The examples `cudarc`
//! and `candle` in the repository adopt a stream and memory of these libraries, and give them back.

#[cfg(feature = "dlpack")]
pub mod dlpack;
mod loan;
#[cfg(feature = "ndarray")]
pub mod ndarray;
pub mod npy;

pub use loan::{Lent, Loan, lend};
