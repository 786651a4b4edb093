//! A program on a machine that has no driver.

use std::sync::Once;
use std::{env, fs, ptr};

use primitives_cuda_driver as driver;
use primitives_cuda_driver::sys::{self, CUresult};

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
    // SAFETY: a call without pointers.
    assert_eq!(unsafe { sys::cuInit(0) }, CUresult::CUDA_ERROR_NO_DEVICE);
    assert_eq!(driver::last_missing_function(), None);
}

#[test]
fn other_functions_are_not_initialized() {
    setup();
    let (mut count, mut text) = (7, ptr::null());
    // SAFETY: the pointers are valid for the calls.
    unsafe {
        assert_eq!(sys::cuDeviceGetCount(&raw mut count), CUresult::CUDA_ERROR_NOT_INITIALIZED);
        assert_eq!(sys::cuStreamSynchronize(ptr::null_mut()), CUresult::CUDA_ERROR_NOT_INITIALIZED);
        assert_eq!(sys::cuGetErrorName(CUresult::CUDA_SUCCESS, &raw mut text), CUresult::CUDA_ERROR_NOT_INITIALIZED);
    }
    assert_eq!(count, 7);
    assert!(text.is_null());
}
