//! Tests arrays from and for other libraries, the code of `src/interop`.

#![allow(missing_docs)]

#[cfg(feature = "dlpack")]
mod dlpack;
#[cfg(feature = "ndarray")]
mod ndarray;
mod npy;
#[cfg(feature = "dlpack")]
mod producer;
