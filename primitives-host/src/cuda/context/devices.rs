//! The driver's devices, and the errors of those that there are not.

use std::ffi::{CStr, c_int};

use primitives_cuda_driver::sys::{self, CUdevice, CUdevice_attribute as Attribute, CUresult};
use primitives_gpu::Dim3;

use crate::cuda::describe;
use crate::device::DeviceProperties;
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

/// What the driver says of a GPU, which need not be open.
pub(super) fn properties(ordinal: usize, device: CUdevice) -> Result<DeviceProperties> {
    let check = |call, code| if code == CUresult::CUDA_SUCCESS { Ok(()) } else { Err(fail(ordinal, call, code)) };
    let (mut name, mut memory) = ([0u8; 128], 0);
    // SAFETY: the pointers are valid for the calls, the first one for so many bytes.
    unsafe {
        check("cuDeviceGetName", sys::cuDeviceGetName(name.as_mut_ptr().cast(), name.len() as c_int, device))?;
        check("cuDeviceTotalMem", sys::cuDeviceTotalMem_v2(&raw mut memory, device))?;
    }
    let name = CStr::from_bytes_until_nul(&name).map(CStr::to_string_lossy).unwrap_or_default().into_owned();
    let get = |attribute| {
        let mut value: c_int = 0;
        // SAFETY: the pointer is valid for the call; an unknown attribute is a result code and leaves 0.
        unsafe { sys::cuDeviceGetAttribute(&raw mut value, attribute, device) };
        value as u32
    };
    let capability = (
        get(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
        get(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR),
    );
    Ok(DeviceProperties {
        name,
        number: ordinal,
        compute_capability: Some(capability),
        arch: capability.0 * 10 + capability.1,
        multiprocessors: get(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT),
        max_block_threads: get(Attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK),
        max_block: Dim3::new(
            get(Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X),
            get(Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y),
            get(Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z),
        ),
        max_grid: Dim3::new(
            get(Attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X),
            get(Attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y),
            get(Attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z),
        ),
        max_shared_bytes: get(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN) as usize,
        memory_bytes: Some(memory),
        double_precision_ratio: get(Attribute::CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO),
        l2_bytes: get(Attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE) as usize,
    })
}

/// Where a GPU is in its host: the domain, the bus and the device of PCI, of 32, 24 and 8 bits. None if the driver does not say.
pub(super) fn place(device: CUdevice) -> Option<u64> {
    let get = |attribute| {
        let mut value: c_int = 0;
        // SAFETY: the pointer is valid for the call.
        let code = unsafe { sys::cuDeviceGetAttribute(&raw mut value, attribute, device) };
        (code == CUresult::CUDA_SUCCESS).then(|| u64::from(value as u32))
    };
    let domain = get(Attribute::CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID)?;
    let (bus, number) =
        (get(Attribute::CU_DEVICE_ATTRIBUTE_PCI_BUS_ID)?, get(Attribute::CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID)?);
    Some((domain << 32) | ((bus & 0xff_ffff) << 8) | (number & 0xff))
}

/// What the driver says of each GPU, in the order of their numbers; nothing is opened.
pub(crate) fn all_properties() -> Result<Vec<DeviceProperties>> {
    (0..device_count()?).map(|ordinal| properties(ordinal, device(ordinal)?)).collect()
}

/// How a GPU is called.
pub(super) fn label(properties: &DeviceProperties) -> String {
    let DeviceProperties { name, number, arch, .. } = properties;
    format!("{name} (GPU {number}, sm_{arch})")
}

/// The error of a GPU that is there and cannot be opened.
pub(super) fn fail(ordinal: usize, call: &'static str, code: CUresult) -> Error {
    Error::Driver { call, device: format!("GPU {ordinal}"), error: describe(code) }
}

/// The error of a driver that cannot say which GPUs there are.
pub(super) fn no_gpu(error: DriverError) -> Error {
    Error::NoGpu { reason: error.to_string(), driver: Some(error) }
}
