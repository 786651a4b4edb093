//! The driver's devices, and the errors of those that there are not.

use std::ffi::c_int;

use primitives_cuda_driver::sys::{self, CUdevice, CUresult};

use crate::cuda::describe;
use crate::{DriverError, Error, Result};

pub(super) fn initialise() -> Result<i32> {
    primitives_cuda_driver::load().map_err(|error| Error::NoGpu { reason: error.to_string(), driver: None })?;
    // SAFETY: called with the only flags that there are.
    match unsafe { sys::cuInit(0) } {
        CUresult::CUDA_SUCCESS => {}
        code => return Err(no_gpu(describe(code))),
    }
    let mut version = 0;
    // SAFETY: the pointer is valid for the call.
    match unsafe { sys::cuDriverGetVersion(&raw mut version) } {
        CUresult::CUDA_SUCCESS => Ok(version),
        code => Err(no_gpu(describe(code))),
    }
}

/// The number of GPUs, an error without a driver.
pub(crate) fn device_count() -> Result<usize> {
    initialise()?;
    let mut count = 0;
    // SAFETY: the pointer is valid for the call.
    match unsafe { sys::cuDeviceGetCount(&raw mut count) } {
        CUresult::CUDA_SUCCESS => Ok(count as usize),
        code => Err(no_gpu(describe(code))),
    }
}

/// A GPU's number in the driver.
pub(super) fn device(ordinal: usize) -> Result<CUdevice> {
    let mut device = 0;
    // SAFETY: the pointer is valid for the call.
    match unsafe { sys::cuDeviceGet(&raw mut device, ordinal as c_int) } {
        CUresult::CUDA_SUCCESS => Ok(device),
        code => Err(fail(ordinal, "cuDeviceGet", code)),
    }
}

pub(super) fn fail(ordinal: usize, what: &str, code: CUresult) -> Error {
    let error = describe(code);
    let reason = format!("GPU {ordinal} could not be opened: {what}: {error}");
    Error::NoGpu { reason, driver: Some(error) }
}

pub(super) fn no_gpu(error: DriverError) -> Error {
    Error::NoGpu { reason: error.to_string(), driver: Some(error) }
}
