//! A library that is no CUDA driver.

use std::env;

use primitives_cuda_driver as driver;
use primitives_cuda_driver::sys::{self, CUresult};

#[test]
fn another_library_is_refused() {
    // SAFETY: this is the only test of the process, and the harness reads no environment now.
    unsafe { env::set_var(driver::LIBRARY_VARIABLE, "libc.so.6") };
    let error = driver::load().expect_err("no driver");
    assert!(error.to_string().contains("cuInit"), "{error}");
    // SAFETY: a call without pointers.
    assert_eq!(unsafe { sys::cuInit(0) }, CUresult::CUDA_ERROR_NO_DEVICE);
}
