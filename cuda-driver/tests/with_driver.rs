//! Calls into a fake driver, compiled here with the C compiler that rustc links with.

use std::ffi::{CStr, c_int};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::{env, ptr, thread};

use primitives_cuda_driver as driver;
use primitives_cuda_driver::sys::{self, CUjit_option, CUresult, CUstreamCaptureMode};

/// Compiles the fake driver and makes it the one to open.
fn setup() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fake/driver.c");
        // Of this process alone: another run of this test may have the same library open.
        let library = format!("{}_libfake_cuda.so", std::process::id());
        let library = Path::new(env!("CARGO_TARGET_TMPDIR")).join(library);
        let compiler = env::var_os("CC").unwrap_or_else(|| "cc".into());
        let status = Command::new(compiler)
            .args(["-shared", "-fPIC", "-O1", "-o"])
            .args([&library, &source])
            .status()
            .expect("a C compiler");
        assert!(status.success());
        // SAFETY: every test calls this function first, so the other threads of this process are
        // waiting in `get_or_init`, or are the harness, which reads no environment now.
        unsafe { env::set_var(driver::LIBRARY_VARIABLE, &library) };
        library
    })
}

/// What the driver returns as `code`, as the caller sees it.
fn returned(mut code: c_int) -> CUresult {
    // SAFETY: the fake driver's function reads one integer through the pointer.
    unsafe { sys::cuDeviceGetCount(&raw mut code) }
}

/// A pointer that is only a number.
fn number<T>(value: usize) -> *mut T {
    ptr::without_provenance_mut(value)
}

#[test]
fn load_tells_library_and_version() {
    let library = setup();
    let info = driver::load().expect("the fake driver opens");
    assert_eq!(info.library(), library);
    assert_eq!(info.cuda_version(), Some((13, 2)));
    assert!(driver::is_available());
}

#[test]
fn launch_passes_all_eleven_arguments() {
    setup();
    let mut got = [0_u64; 10];
    // The first call takes the way through the lookup, the second one does not.
    for round in 0..2_u32 {
        let big = 0xfedc_ba98_7654_3210_usize + round as usize;
        // SAFETY: the fake driver's function writes ten words through the last pointer.
        let code = unsafe {
            sys::cuLaunchKernel(
                number(big),
                2 + round,
                3,
                u32::MAX,
                5,
                6,
                7,
                u32::MAX - 8,
                number(big + 9),
                number(big + 10),
                got.as_mut_ptr().cast(),
            )
        };
        assert_eq!(code, CUresult::CUDA_SUCCESS);
        let big = big as u64;
        let first = 2 + u64::from(round);
        let max = u64::from(u32::MAX);
        assert_eq!(got, [big, first, 3, max, 5, 6, 7, max - 8, big + 9, big + 10]);
    }
}

#[test]
fn enumerations_are_passed_as_integers() {
    setup();
    let mut got = [0_u64; 5];
    let mut options = [CUjit_option::CU_JIT_ERROR_LOG_BUFFER, CUjit_option(12345)];
    let mut values = [got.as_mut_ptr().cast(), ptr::null_mut()];
    for _ in 0..2 {
        // SAFETY: the fake driver's function reads two options, and writes five words through the first value.
        let code = unsafe {
            sys::cuModuleLoadDataEx(number(11), number(12), u32::MAX, options.as_mut_ptr(), values.as_mut_ptr())
        };
        assert_eq!(code, CUresult::CUDA_SUCCESS);
        assert_eq!(got, [11, 12, u64::from(u32::MAX), 5, 12345]);
    }
}

#[test]
fn values_that_only_a_newer_driver_knows_come_as_they_are() {
    setup();
    for code in [0, 1, 36, 226, 600, 700, 912, 999, 100_000, -3, c_int::MIN, c_int::MAX] {
        assert_eq!(returned(code), CUresult(code.cast_unsigned()));
    }
    let mut mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
    // SAFETY: the pointer is valid for the call.
    assert_eq!(unsafe { sys::cuThreadExchangeStreamCaptureMode(&raw mut mode) }, CUresult::CUDA_SUCCESS);
    assert_eq!(mode, CUstreamCaptureMode(1002));
}

#[test]
fn the_driver_describes_its_codes() {
    setup();
    let mut text = ptr::null();
    // SAFETY: the pointer may be written through, and the string lives for ever.
    unsafe {
        assert_eq!(sys::cuGetErrorString(CUresult::CUDA_ERROR_UNKNOWN, &raw mut text), CUresult::CUDA_SUCCESS);
        assert_eq!(CStr::from_ptr(text), c"unknown, says the driver");
        assert_eq!(sys::cuGetErrorString(CUresult(5000), &raw mut text), CUresult::CUDA_ERROR_INVALID_VALUE);
        assert!(text.is_null());
    }
}

#[test]
fn a_function_that_the_driver_lacks() {
    setup();
    // A thread of its own: it starts without a name, even where one thread runs all tests.
    let names = thread::spawn(|| {
        let before = driver::last_missing_function();
        for _ in 0..2 {
            // SAFETY: the fake driver has no such function.
            let code = unsafe { sys::cuStreamSynchronize(ptr::null_mut()) };
            assert_eq!(code, CUresult::CUDA_ERROR_NOT_SUPPORTED);
            assert_eq!(driver::last_missing_function(), Some("cuStreamSynchronize"));
        }
        // A call that succeeds leaves it, and another thread has its own.
        assert_eq!(returned(0), CUresult::CUDA_SUCCESS);
        let elsewhere = thread::spawn(driver::last_missing_function).join().expect("no panic");
        (before, driver::last_missing_function(), elsewhere)
    });
    assert_eq!(names.join().expect("no panic"), (None, Some("cuStreamSynchronize"), None));
}

#[test]
fn first_calls_from_many_threads() {
    setup();
    thread::scope(|scope| {
        for _ in 0..32 {
            scope.spawn(|| {
                for step in 0..100 {
                    let mut milliseconds = 0.0;
                    // SAFETY: the fake driver's function writes one float through the pointer.
                    let code =
                        unsafe { sys::cuEventElapsedTime(&raw mut milliseconds, number(1000), number(1000 + step)) };
                    assert_eq!((code, milliseconds), (CUresult::CUDA_SUCCESS, step as f32 / 4.0));
                }
            });
        }
    });
}
