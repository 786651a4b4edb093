//! NVIDIA GPUs, through `cust`.
//!
//! `cust` manages the driver and the primary context; what it lacks (stream-ordered memory, occupancy, large shared memory,
//! launches by parameter pointers) goes through its raw bindings. The symbols themselves come from
//! `primitives-cuda-driver`, which opens the driver at first use, so that a program starts on a machine without one.

mod context;
mod fault;
mod graph;
mod module;
mod stream;

pub(crate) use context::{Context, HostMemory, device_count};
pub(crate) use graph::{GraphDraft, RawGraph};
pub(crate) use module::LoadedKernels;
pub(crate) use stream::{Adopted, KernelCall, RawEvent, RawStream};

use cust::sys::{self, CUresult};

use crate::Error;

/// Result codes after which the driver refuses the context for good.
const STICKY: [CUresult; 10] = [
    CUresult::CUDA_ERROR_ECC_UNCORRECTABLE,
    CUresult::CUDA_ERROR_ILLEGAL_ADDRESS,
    CUresult::CUDA_ERROR_LAUNCH_TIMEOUT,
    CUresult::CUDA_ERROR_ASSERT,
    CUresult::CUDA_ERROR_HARDWARE_STACK_ERROR,
    CUresult::CUDA_ERROR_ILLEGAL_INSTRUCTION,
    CUresult::CUDA_ERROR_MISALIGNED_ADDRESS,
    CUresult::CUDA_ERROR_INVALID_ADDRESS_SPACE,
    CUresult::CUDA_ERROR_INVALID_PC,
    CUresult::CUDA_ERROR_LAUNCH_FAILED,
];

/// Why something made elsewhere cannot be adopted.
pub(crate) fn adoption(what: &'static str, reason: String) -> Error {
    Error::Adoption { what, reason }
}

/// The driver's name and description of a result code.
fn describe(code: CUresult) -> String {
    let text = |get: unsafe extern "C" fn(CUresult, *mut *const std::ffi::c_char) -> CUresult| {
        let mut text = std::ptr::null();
        // SAFETY: the driver stores a pointer to a static string, or null for an unknown code.
        unsafe {
            get(code, &raw mut text);
            if text.is_null() { None } else { Some(std::ffi::CStr::from_ptr(text).to_string_lossy().into_owned()) }
        }
    };
    let name = text(sys::cuGetErrorName).unwrap_or_else(|| format!("{code:?}"));
    match text(sys::cuGetErrorString) {
        Some(words) => format!("{name}: {words}"),
        None => name,
    }
}

/// Calls a driver function and turns its result code into an error of the context.
macro_rules! call {
    ($context:expr, $function:ident($($argument:expr),* $(,)?)) => {
        match cust::sys::$function($($argument),*) {
            cust::sys::CUresult::CUDA_SUCCESS => Ok(()),
            code => Err($context.error(stringify!($function), code)),
        }
    };
}
use call;
