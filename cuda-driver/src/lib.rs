//! The CUDA driver, opened at run time, for programs that use [`cust`] 0.3.2.
//!
//! `cust` calls the driver through functions that its binding `cust_raw` declares and that the
//! linker is to find in `libcuda`. A program so linked does not start where there is no driver, and
//! does not link where there is no CUDA toolkit. This crate defines those functions, all 353. Each
//! opens `libcuda.so.1` at its first use and passes the call on, so that one binary builds on any
//! machine and runs on machines with and without a GPU.
//!
//! ```
//! match primitives_cuda_driver::load() {
//!     Ok(driver) => println!("{} for CUDA {:?}", driver.library().display(), driver.cuda_version()),
//!     Err(error) => println!("{error}"),
//! }
//! ```
//!
//! Call [`load`] before anything of `cust`. Besides the readable error it is what makes the linker
//! take the functions from here: a crate that is only named as a dependency is not linked.
//!
//! # Building
//!
//! The build script of `cust_raw` stops with "Could not find a cuda installation" unless it finds
//! a folder `lib64`, in `/usr/local/cuda`, in `/opt/cuda`, or in a folder that the environment
//! variable `CUDA_LIBRARY_PATH` names. On a machine without CUDA, make such a folder; what is in it
//! does not matter. With a file `cuda/lib64/README` beside your workspace's `Cargo.toml` (git keeps
//! no empty folders), `.cargo/config.toml` needs
//!
//! ```toml
//! [env]
//! CUDA_LIBRARY_PATH = { value = "cuda", relative = true }
//! ```
//!
//! Nothing is linked from there. For the linker's `-lcuda` the build script of this crate supplies
//! an empty archive. Where the toolkit's `libcuda.so` is found first, it is given up because no
//! symbol is left for it to define (rustc passes `--as-needed`).
//!
//! # Without a driver, or with an old one
//!
//! * No driver: `cuInit` returns `CUDA_ERROR_NO_DEVICE`, every other function
//!   `CUDA_ERROR_NOT_INITIALIZED`, as a driver does on a machine without a GPU.
//!   `cuGetErrorName` and `cuGetErrorString` work, so errors of `cust` can be printed.
//! * A driver that lacks the function: `CUDA_ERROR_NOT_SUPPORTED`, and [`last_missing_function`]
//!   has its name. (`CUDA_ERROR_NOT_FOUND` would read as a kernel missing from its module.)
//!
//! # Error codes
//!
//! The code that a function returns is a Rust enum in `cust_raw`, with the codes of CUDA 11.4. A
//! number that is none of them would be undefined behaviour; CUDA 13.5 has 19 such. Here they
//! become `CUDA_ERROR_UNKNOWN` (999), and [`last_unmapped_code`] has the true one.
//!
//! `cust` itself reports 28 of the codes that the enum does have as `UnknownError`, among them
//! `CUDA_ERROR_UNSUPPORTED_PTX_VERSION`. [`last_error_code`] tells what it was in both cases, and
//! [`error_name`] gives it a name:
//!
//! ```
//! # fn check(result: cust::error::CudaResult<()>) -> Result<(), String> {
//! result.map_err(|error| {
//!     let code = primitives_cuda_driver::last_error_code();
//!     match code.and_then(primitives_cuda_driver::error_name) {
//!         Some(name) => format!("{error}: {name}"),
//!         None => format!("{error}: code {code:?}"),
//!     }
//! })
//! # }
//! # assert!(check(Err(cust::error::CudaError::NoDevice)).is_err());
//! ```
//!
//! Three things are not covered. Function pointers from `cuGetProcAddress` are the driver's own,
//! with its codes. A callback given to `cuStreamAddCallback` receives the driver's code (`cust`
//! uses `cuLaunchHostFunc`, whose callback receives none). And enums that the driver writes through
//! a pointer, such as the properties of an array, are passed as they are.
//!
//! # Targets
//!
//! Linux on x86-64 and AArch64; elsewhere the crate does not compile.
//!
//! [`cust`]: https://docs.rs/cust/0.3.2/

#[cfg(not(all(
    target_os = "linux",
    target_pointer_width = "64",
    any(target_arch = "x86_64", target_arch = "aarch64")
)))]
compile_error!("primitives-cuda-driver supports Linux on x86-64 and AArch64 only");

mod codes;
mod driver;
mod forward;
mod table;

pub use driver::{DriverInfo, LIBRARY_VARIABLE, LoadError, is_available, load};

/// The code of the latest call on this thread that did not succeed, as the driver returned it.
///
/// Calls that succeed leave it. It includes `CUDA_ERROR_NOT_READY`, which is an answer more than an
/// error, and the codes that this crate returns where there is no driver.
#[must_use]
pub fn last_error_code() -> Option<u32> {
    forward::last_error().map(i32::cast_unsigned)
}

/// The true code behind the latest `CUDA_ERROR_UNKNOWN` on this thread.
///
/// `None` if no call has returned `CUDA_ERROR_UNKNOWN`, or if the driver itself returned that.
#[must_use]
pub fn last_unmapped_code() -> Option<u32> {
    forward::last_unmapped().map(i32::cast_unsigned)
}

/// The function that the driver was last found not to have by a call on this thread.
#[must_use]
pub fn last_missing_function() -> Option<&'static str> {
    // The names are ASCII.
    forward::last_missing().and_then(|name| name.to_str().ok())
}

/// The name of an error code in `cuda.h` (of CUDA 13.5), such as `CUDA_ERROR_INVALID_CLUSTER_SIZE`
/// for 912.
///
/// Unlike `cuGetErrorName` it needs no driver, and knows codes that are newer than the driver.
#[must_use]
pub fn error_name(code: u32) -> Option<&'static str> {
    codes::name(code.cast_signed()).and_then(|name| name.to_str().ok())
}
