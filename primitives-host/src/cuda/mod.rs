//! NVIDIA GPUs, through the CUDA driver API.
//!
//! `primitives-cuda-driver` opens the driver at the first call, so that a program starts on a machine without one.

mod context;
mod event;
mod fault;
mod graph;
mod launch;
mod marks;
mod module;
mod nccl;
mod peer;
mod stream;

pub(crate) use context::{Context, HostMemory, all_properties, device_count};
pub(crate) use event::RawEvent;
pub(crate) use fault::Ready;
pub(crate) use graph::{GraphDraft, RawGraph};
pub(crate) use launch::KernelCall;
pub(crate) use module::{LoadedKernel, LoadedKernels};
pub(crate) use nccl::{Communicator, ID_BYTES, Message, Work};
pub(crate) use stream::{Adopted, RawStream};

use primitives_cuda_driver::sys::{self, CUresult};

use crate::{DriverError, Error};

/// Result codes after which the driver refuses the context for good.
const STICKY: [CUresult; 15] = [
    CUresult::CUDA_ERROR_ECC_UNCORRECTABLE,
    CUresult::CUDA_ERROR_NVLINK_UNCORRECTABLE,
    CUresult::CUDA_ERROR_ILLEGAL_ADDRESS,
    CUresult::CUDA_ERROR_LAUNCH_TIMEOUT,
    CUresult::CUDA_ERROR_ASSERT,
    CUresult::CUDA_ERROR_HARDWARE_STACK_ERROR,
    CUresult::CUDA_ERROR_ILLEGAL_INSTRUCTION,
    CUresult::CUDA_ERROR_MISALIGNED_ADDRESS,
    CUresult::CUDA_ERROR_INVALID_ADDRESS_SPACE,
    CUresult::CUDA_ERROR_INVALID_PC,
    CUresult::CUDA_ERROR_LAUNCH_FAILED,
    CUresult::CUDA_ERROR_CONTAINED,
    CUresult::CUDA_ERROR_TENSOR_MEMORY_LEAK,
    CUresult::CUDA_ERROR_MPS_CLIENT_TERMINATED,
    CUresult::CUDA_ERROR_EXTERNAL_DEVICE,
];

/// Whether the driver refuses the context for good after a call that has returned this code.
fn is_sticky(code: CUresult) -> bool {
    STICKY.contains(&code)
}

/// Why something made elsewhere cannot be adopted.
pub(crate) fn adoption(what: &'static str, reason: String) -> Error {
    Error::Adoption { what, reason }
}

/// The driver's name and description of a result code.
fn describe(code: CUresult) -> DriverError {
    let text = |get: unsafe fn(CUresult, *mut *const std::ffi::c_char) -> CUresult| {
        let mut text = std::ptr::null();
        // SAFETY: the driver stores a pointer to a static string, or null for an unknown code.
        unsafe {
            get(code, &raw mut text);
            if text.is_null() { None } else { Some(std::ffi::CStr::from_ptr(text).to_string_lossy().into_owned()) }
        }
    };
    let CUresult(number) = code;
    let name = text(sys::cuGetErrorName).unwrap_or_else(|| format!("CUDA error {number}"));
    let text = match text(sys::cuGetErrorString) {
        Some(words) => format!("{name}: {words}"),
        None => name,
    };
    DriverError::new(number, text)
}

/// Calls a driver function and turns its result code into an error of the context.
macro_rules! call {
    ($context:expr, $function:ident($($argument:expr),* $(,)?)) => {
        match sys::$function($($argument),*) {
            sys::CUresult::CUDA_SUCCESS => Ok(()),
            code => Err($context.error(stringify!($function), code)),
        }
    };
}
use call;
