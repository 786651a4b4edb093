//! A library that is no CUDA driver.

use std::env;

use cust::error::CudaError;
use primitives_cuda_driver as driver;

#[test]
fn another_library_is_refused() {
    // SAFETY: this is the only test of the process, and the harness reads no environment now.
    unsafe { env::set_var(driver::LIBRARY_VARIABLE, "libc.so.6") };
    let error = driver::load().expect_err("no driver");
    assert!(error.to_string().contains("cuInit"), "{error}");
    let result = cust::init(cust::CudaFlags::empty());
    assert_eq!(result, Err(CudaError::NoDevice));
}
