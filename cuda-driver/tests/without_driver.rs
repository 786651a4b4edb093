//! A program of `cust` on a machine that has no driver.

use std::ffi::CStr;
use std::sync::Once;
use std::{env, fs, ptr};

use cust::CudaFlags;
use cust::error::CudaError;
use cust_raw::CUresult;
use primitives_cuda_driver as driver;

/// Hides the driver, if this machine has one, and checks that the program did not start with it.
fn setup() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let maps = fs::read_to_string("/proc/self/maps").expect("Linux");
        assert!(!maps.contains("libcuda.so"), "linked to libcuda");
        // SAFETY: every test calls this function first, so the other threads of this process are
        // waiting in `call_once`, or are the harness, which reads no environment now.
        unsafe { env::set_var(driver::LIBRARY_VARIABLE, "/nowhere/libcuda.so.1") };
    });
}

#[test]
fn load_says_what_to_do() {
    setup();
    assert!(!driver::is_available());
    let error = driver::load().expect_err("there is no driver");
    assert_eq!(error.library(), "/nowhere/libcuda.so.1");
    assert!(error.cause().contains("No such file"), "{error}");
    let text = error.to_string();
    assert!(text.contains("/nowhere/libcuda.so.1"), "{text}");
    assert!(text.contains(driver::LIBRARY_VARIABLE), "{text}");
}

#[test]
fn init_finds_no_device() {
    setup();
    assert_eq!(cust::init(CudaFlags::empty()), Err(CudaError::NoDevice));
    assert_eq!(driver::last_error_code(), Some(100));
    assert_eq!(driver::last_missing_function(), None);
}

#[test]
fn other_functions_are_not_initialized() {
    setup();
    assert_eq!(cust::device::Device::num_devices(), Err(CudaError::NotInitialized));
    assert_eq!(cust::context::CurrentContext::synchronize(), Err(CudaError::NotInitialized));
}

#[test]
fn errors_can_be_printed() {
    setup();
    let text = CudaError::NoDevice.to_string();
    assert!(text.contains("no CUDA driver"), "{text}");
    let text = CudaError::IllegalAddress.to_string();
    assert!(text.contains("CUDA_ERROR_ILLEGAL_ADDRESS"), "{text}");

    let mut text = ptr::null();
    // SAFETY: the pointer may be written through, and the string lives for ever.
    unsafe {
        let code = cust_raw::cuGetErrorName(CUresult::CUDA_ERROR_NOT_READY, &mut text);
        assert_eq!(code, CUresult::CUDA_SUCCESS);
        assert_eq!(CStr::from_ptr(text), c"CUDA_ERROR_NOT_READY");
        let code = cust_raw::cuGetErrorName(CUresult::CUDA_ERROR_NOT_READY, ptr::null_mut());
        assert_eq!(code, CUresult::CUDA_ERROR_INVALID_VALUE);
    }
}
