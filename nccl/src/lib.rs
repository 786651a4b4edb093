//! NCCL, opened at run time: the part of its API that `kernel-primitives` calls.
//!
//! Nothing of NCCL is needed to build a program, nor to start it. The first call of [`load`] opens `libnccl.so.2`, of version 2.20 or
//! later, and looks up all functions. What is missing is an error that says how to install it:
//!
//! ```
//! match primitives_nccl::load() {
//!     Ok(nccl) => println!("NCCL {}", nccl.version()),
//!     Err(error) => println!("{error}"),
//! }
//! ```
//!
//! [`Nccl`] has the functions as methods, under their names in `nccl.h`. [`sys`] has the types and constants.
//!
//! # Multicast
//!
//! A fault in NVLink's multicast can take all GPUs of a host out of service. Where others use the host, as in tests, set
//! `NCCL_NVLS_ENABLE=0`, which NCCL reads when a communicator is made.

#[cfg(not(target_pointer_width = "64"))]
compile_error!("primitives-nccl supports targets of 64 bits only");

mod library;
pub mod sys;

pub use library::{LIBRARY_VARIABLE, LoadError, Version, load};
pub use sys::Nccl;
