//! Calls through the forwarding functions into a fake driver, compiled here with the C compiler
//! that rustc links with.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::{env, ptr, thread};

use cust::error::CudaError;
use cust_raw::CUresult;
use primitives_cuda_driver as driver;

/// Compiles the fake driver and makes it the one to open.
fn setup() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fake/driver.c");
        let library = Path::new(env!("CARGO_TARGET_TMPDIR")).join("libfake_cuda.so");
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
    unsafe { cust_raw::cuDeviceGetCount(&mut code) }
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
fn cust_works_on_top() {
    setup();
    assert_eq!(cust::init(cust::CudaFlags::empty()), Ok(()));
    let version = cust::CudaApiVersion::get().expect("a version");
    assert_eq!((version.major(), version.minor()), (13, 2));
    let text = CudaError::UnknownError.to_string();
    assert!(text.contains("unknown, says the driver"), "{text}");
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
            cust_raw::cuLaunchKernel(
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
fn eight_arguments() {
    setup();
    let mut got = [0_u64; 7];
    for _ in 0..2 {
        // SAFETY: the fake driver's function writes seven words through the last pointer.
        let code = unsafe {
            cust_raw::cuLinkAddData_v2(
                number(11),
                cust_raw::CUjitInputType::CU_JIT_INPUT_PTX,
                number(12),
                usize::MAX,
                number(13),
                14,
                number(15),
                got.as_mut_ptr().cast(),
            )
        };
        assert_eq!(code, CUresult::CUDA_SUCCESS);
        let kind = cust_raw::CUjitInputType::CU_JIT_INPUT_PTX as u64;
        assert_eq!(got, [11, kind, 12, u64::MAX, 13, 14, 15]);
    }
}

#[test]
fn a_structure_by_value() {
    setup();
    let bytes: [u8; 64] = std::array::from_fn(|i| 200 + i as u8 % 56);
    let mut got = [0_u64; 9];
    for _ in 0..2 {
        let handle = cust_raw::CUipcMemHandle { reserved: bytes.map(|byte| byte as c_char) };
        // SAFETY: the fake driver's function writes nine words through the first pointer.
        let code = unsafe { cust_raw::cuIpcOpenMemHandle_v2(got.as_mut_ptr(), handle, 0x8765_4321) };
        assert_eq!(code, CUresult::CUDA_SUCCESS);
        let seen: Vec<u8> = got[..8].iter().flat_map(|word| word.to_ne_bytes()).collect();
        assert_eq!(seen, bytes);
        assert_eq!(got[8], 0x8765_4321);
    }
}

#[test]
fn floating_point_arguments() {
    setup();
    let mut got = [0.0_f32; 2];
    for _ in 0..2 {
        // SAFETY: the fake driver's function writes two floats through the first pointer.
        let code = unsafe { cust_raw::cuTexRefSetMipmapLevelClamp(got.as_mut_ptr().cast(), 0.25, -7.5) };
        assert_eq!(code, CUresult::CUDA_SUCCESS);
        assert_eq!(got, [0.25, -7.5]);
    }
}

#[test]
fn codes_outside_the_enum_become_unknown() {
    setup();
    // A thread of its own: it starts without a code, even where one thread runs all tests.
    thread::spawn(check_codes).join().expect("no panic");
}

fn check_codes() {
    assert_eq!(driver::last_error_code(), None);
    assert_eq!(driver::last_unmapped_code(), None);

    assert_eq!(returned(0), CUresult::CUDA_SUCCESS);
    assert_eq!(driver::last_error_code(), None);

    for code in [912, 36, 919, 1, 719, 600, 100_000, -3, c_int::MIN] {
        let unmapped = !matches!(code, 1 | 719 | 600);
        let before = driver::last_unmapped_code();
        let seen = returned(code);
        let expected = if unmapped { 999 } else { code };
        assert_eq!(seen as c_int, expected);
        let code = code.cast_unsigned();
        assert_eq!(driver::last_error_code(), Some(code));
        let kept = if unmapped { Some(code) } else { before };
        assert_eq!(driver::last_unmapped_code(), kept);
    }

    // Success leaves them, and another thread has its own.
    assert_eq!(returned(0), CUresult::CUDA_SUCCESS);
    let negative = c_int::MIN.cast_unsigned();
    assert_eq!(driver::last_unmapped_code(), Some(negative));
    let elsewhere = thread::spawn(driver::last_unmapped_code).join();
    assert_eq!(elsewhere.expect("no panic"), None);

    // A 999 of the driver's own has nothing behind it.
    assert_eq!(returned(999), CUresult::CUDA_ERROR_UNKNOWN);
    assert_eq!(driver::last_unmapped_code(), None);
    assert_eq!(driver::last_error_code(), Some(999));
}

#[test]
fn cust_sees_a_new_code_as_unknown() {
    setup();
    let mut code = 912;
    // SAFETY: the fake driver's function reads one integer through the pointer.
    let result = unsafe { cust_raw::cuDeviceGetCount(&mut code) };
    assert_eq!(result, CUresult::CUDA_ERROR_UNKNOWN);
    let code = driver::last_unmapped_code().expect("a code");
    assert_eq!(driver::error_name(code), Some("CUDA_ERROR_INVALID_CLUSTER_SIZE"));
}

#[test]
fn a_function_that_the_driver_lacks() {
    setup();
    for _ in 0..2 {
        // SAFETY: the fake driver has no such function.
        let code = unsafe { cust_raw::cuCtxSynchronize() };
        assert_eq!(code, CUresult::CUDA_ERROR_NOT_SUPPORTED);
        assert_eq!(driver::last_missing_function(), Some("cuCtxSynchronize"));
        assert_eq!(driver::last_error_code(), Some(801));
    }
    let mut text = ptr::null();
    // SAFETY: the pointer may be written through; the fake driver has no such function, and the
    // crate's own answer is a string that lives for ever.
    let name = unsafe {
        let code = cust_raw::cuGetErrorName(CUresult::CUDA_ERROR_NOT_SUPPORTED, &mut text);
        assert_eq!(code, CUresult::CUDA_SUCCESS);
        CStr::from_ptr(text)
    };
    assert_eq!(name, c"CUDA_ERROR_NOT_SUPPORTED");
}

#[test]
fn first_calls_from_many_threads() {
    setup();
    thread::scope(|scope| {
        for _ in 0..32 {
            scope.spawn(|| {
                let mut out: [c_int; 2] = [0; 2];
                for _ in 0..100 {
                    let out = out.as_mut_ptr().cast::<c_void>();
                    // SAFETY: the fake driver's function writes two floats through the pointer.
                    let code = unsafe { cust_raw::cuTexRefSetMipmapLevelClamp(out.cast(), 1.0, 2.0) };
                    assert_eq!(code, CUresult::CUDA_SUCCESS);
                }
            });
        }
    });
}
