//! The CUDA driver, opened at run time: the part of its API that `kernel-primitives` calls.
//!
//! Nothing of CUDA is needed to build a program, nor to start it. The first call opens
//! `libcuda.so.1`, so that one binary runs on machines with and without a GPU.
//!
//! ```
//! match primitives_cuda_driver::load() {
//!     Ok(driver) => println!("{} for CUDA {:?}", driver.library().display(), driver.cuda_version()),
//!     Err(error) => println!("{error}"),
//! }
//! ```
//!
//! [`sys`] has the functions, types and constants under their names in `cuda.h`. A function is
//! looked up at its first call:
//!
//! ```
//! use primitives_cuda_driver::sys::{CUresult, cuDeviceGetCount, cuInit};
//!
//! let mut count = 0;
//! // SAFETY: the pointer is valid for the call.
//! let code = unsafe {
//!     match cuInit(0) {
//!         CUresult::CUDA_SUCCESS => cuDeviceGetCount(&raw mut count),
//!         code => code,
//!     }
//! };
//! match code {
//!     CUresult::CUDA_SUCCESS => println!("{count} GPUs"),
//!     CUresult(code) => println!("no GPU: CUDA error {code}"),
//! }
//! ```
//!
//! A name such as `cuMemFree_v2` is the symbol of one version of a function, which `cuda.h` hides by
//! a macro. Its parameters stay as they are in all later drivers.
//!
//! # Without a driver, or with an old one
//!
//! * No driver: `cuInit` returns `CUDA_ERROR_NO_DEVICE`, every other function
//!   `CUDA_ERROR_NOT_INITIALIZED`, as a driver does on a machine without a GPU.
//! * A driver that lacks the function: `CUDA_ERROR_NOT_SUPPORTED`, and [`last_missing_function`]
//!   has its name. (`CUDA_ERROR_NOT_FOUND` would read as a kernel missing from its module.)
//!
//! # Error codes
//!
//! [`sys::CUresult`] is a number. So are the other enumerations: what a driver returns that is newer than
//! this crate is a value like any other. `cuGetErrorName` and `cuGetErrorString` give a code's name
//! and what it means.
//!
//! # Targets
//!
//! Targets of 64 bits. It is tested on Linux.

#[cfg(not(target_pointer_width = "64"))]
compile_error!("primitives-cuda-driver supports targets of 64 bits only");

mod driver;
mod function;
pub mod sys;

pub use driver::{DriverInfo, LIBRARY_VARIABLE, LoadError, is_available, load};

/// The function that the driver was last found not to have by a call on this thread.
#[must_use]
pub fn last_missing_function() -> Option<&'static str> {
    // The names are ASCII.
    function::last_missing().and_then(|name| name.to_str().ok())
}
