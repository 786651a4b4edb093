//! A GPU and its primary context.

use std::ffi::{c_int, c_uint};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cust::sys::{self, CUcontext, CUdevice, CUdevice_attribute as Attribute, CUresult};
use primitives_gpu::{Dim3, Element};

use super::fault::FaultPage;
use super::{STICKY, call, describe};
use crate::counters::Tally;
use crate::device::DeviceProperties;
use crate::kernel::Limits;
use crate::memory::bytes_of_mut;
use crate::{Error, Result};

/// The oldest driver that has what the runtime calls: stream-ordered memory.
const OLDEST_DRIVER: i32 = 11020;

/// An open GPU. One a device and process; buffers, streams and kernels keep it alive.
pub(crate) struct Context {
    /// First, so that it goes while the context is there.
    pub(super) faults: FaultPage,
    /// Held while a launch or a copy notes its use of buffers and is put in the queue: between the two, another thread's
    /// use of the same buffer would miss it.
    order: Mutex<()>,
    pub(super) raw: CUcontext,
    device: CUdevice,
    properties: DeviceProperties,
    limits: Limits,
    label: String,
    tally: Arc<Tally>,
    /// Holds the primary context. Last, so that what belongs to it has gone before.
    _primary: cust::context::Context,
}

impl Drop for Context {
    /// What the fields give back goes to this context.
    fn drop(&mut self) {
        let _ = self.make_current();
    }
}

// SAFETY: a context may be current in any thread and used by several at once; the driver synchronises.
unsafe impl Send for Context {}
// SAFETY: as above; interior state is behind locks.
unsafe impl Sync for Context {}

/// The open contexts by device.
static OPEN: Mutex<Vec<(usize, std::sync::Weak<Context>)>> = Mutex::new(Vec::new());

fn initialise() -> Result<i32> {
    primitives_cuda_driver::load().map_err(|error| Error::NoGpu { reason: error.to_string() })?;
    cust::init(cust::CudaFlags::empty()).map_err(|error| Error::NoGpu { reason: error.to_string() })?;
    let mut version = 0;
    // SAFETY: the pointer is valid for the call.
    match unsafe { sys::cuDriverGetVersion(&raw mut version) } {
        CUresult::CUDA_SUCCESS => Ok(version),
        code => Err(Error::NoGpu { reason: describe(code) }),
    }
}

/// The number of GPUs, an error without a driver.
pub(crate) fn device_count() -> Result<usize> {
    initialise()?;
    let mut count = 0;
    // SAFETY: the pointer is valid for the call.
    match unsafe { sys::cuDeviceGetCount(&raw mut count) } {
        CUresult::CUDA_SUCCESS => Ok(count as usize),
        code => Err(Error::NoGpu { reason: describe(code) }),
    }
}

impl Context {
    /// Opens a GPU, or returns it if it is open.
    pub(crate) fn open(ordinal: usize) -> Result<Arc<Self>> {
        let version = initialise()?;
        let count = device_count()?;
        if count == 0 {
            return Err(Error::NoGpu { reason: "the driver is there but finds no GPU".into() });
        }
        if ordinal >= count {
            let (asked, available) = (format!("gpu:{ordinal}"), format!("{count} GPU(s)"));
            return Err(Error::NoSuchDevice { asked, available });
        }
        if version < OLDEST_DRIVER {
            let text = |version: i32| format!("{}.{}", version / 1000, version % 1000 / 10);
            let what = "the runtime".into();
            return Err(Error::DriverTooOld { driver: text(version), needed: text(OLDEST_DRIVER), what });
        }
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|(_, context)| context.strong_count() > 0);
        if let Some(context) = open.iter().find(|(at, _)| *at == ordinal).and_then(|(_, context)| context.upgrade()) {
            return Ok(context);
        }
        let context = Arc::new(Self::new(ordinal)?);
        open.push((ordinal, Arc::downgrade(&context)));
        Ok(context)
    }

    fn new(ordinal: usize) -> Result<Self> {
        let fail = |what: &str, error: cust::error::CudaError| Error::NoGpu {
            reason: format!("GPU {ordinal} could not be opened: {what}: {error}"),
        };
        let device = cust::device::Device::get_device(ordinal as u32).map_err(|error| fail("cuDeviceGet", error))?;
        let primary = cust::context::Context::new(device).map_err(|error| fail("cuDevicePrimaryCtxRetain", error))?;
        let name = device.name().map_err(|error| fail("cuDeviceGetName", error))?;
        let memory = device.total_memory().map_err(|error| fail("cuDeviceTotalMem", error))?;
        let raw_device = device.as_raw();
        let get = |attribute| {
            let mut value: c_int = 0;
            // SAFETY: the pointer is valid for the call; an unknown attribute is a result code and leaves 0.
            unsafe { sys::cuDeviceGetAttribute(&raw mut value, attribute, raw_device) };
            value as u32
        };
        let block_threads = get(Attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
        let block = Dim3::new(
            get(Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X),
            get(Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y),
            get(Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z),
        );
        let grid = Dim3::new(
            get(Attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X),
            get(Attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y),
            get(Attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z),
        );
        let shared_bytes = get(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN) as usize;
        let capability = (
            get(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
            get(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR),
        );
        let label = format!("{name} (GPU {ordinal}, sm_{}{})", capability.0, capability.1);
        let properties = DeviceProperties {
            name,
            compute_capability: Some(capability),
            multiprocessors: get(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT),
            max_block_threads: block_threads,
            max_block: block,
            max_grid: grid,
            max_shared_bytes: shared_bytes,
            memory_bytes: Some(memory),
            l2_bytes: get(Attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE) as usize,
        };
        let mut context = Self {
            raw: primary.as_raw(),
            _primary: primary,
            device: raw_device,
            properties,
            limits: Limits { block_threads, block, grid, shared_bytes },
            label,
            tally: Arc::default(),
            faults: FaultPage::unmapped(),
            order: Mutex::new(()),
        };
        context.keep_freed_memory()?;
        context.faults = FaultPage::new(&context)?;
        Ok(context)
    }

    /// Lets the device's memory pool keep what is freed, so that the next allocation is a matter of microseconds. The
    /// driver's default returns it at every synchronisation.
    fn keep_freed_memory(&self) -> Result<()> {
        let mut pool = std::ptr::null_mut();
        let mut threshold = u64::MAX;
        self.make_current()?;
        // SAFETY: the pointers are valid for the calls.
        unsafe {
            call!(self, cuDeviceGetDefaultMemPool(&raw mut pool, self.device))?;
            let attribute = sys::CUmemPool_attribute_enum::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
            call!(self, cuMemPoolSetAttribute(pool, attribute, (&raw mut threshold).cast()))
        }
    }

    pub(crate) fn properties(&self) -> &DeviceProperties {
        &self.properties
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The turn to note a use of buffers and enqueue it.
    pub(crate) fn turn(&self) -> MutexGuard<'_, ()> {
        self.order.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The counts that all handles of this GPU share.
    pub(crate) fn tally(&self) -> &Arc<Tally> {
        &self.tally
    }

    pub(crate) fn label(&self) -> &str {
        &self.label
    }

    /// Compute capability as in `sm_90`.
    pub(super) fn arch(&self) -> u32 {
        self.properties.compute_capability.map_or(0, |(major, minor)| major * 10 + minor)
    }

    /// Makes the context current in this thread. Other code of the program may have made another one current, so every
    /// entry to the driver begins with this; where it is current already the driver does nothing.
    pub(super) fn make_current(&self) -> Result<()> {
        // SAFETY: the context is alive: `_primary` holds it.
        unsafe { call!(self, cuCtxSetCurrent(self.raw)) }
    }

    /// The error for a result code.
    pub(super) fn error(&self, call: &'static str, code: CUresult) -> Error {
        let (device, error) = (self.label.clone(), describe(code));
        if STICKY.contains(&code) {
            Error::ContextLost { device, error }
        } else {
            Error::Driver { call, device, error }
        }
    }
}

/// Page-locked host memory, mapped into the device's address space.
pub(crate) struct HostMemory<T> {
    address: *mut T,
    len: usize,
    context: Option<Arc<Context>>,
}

// SAFETY: owned memory of elements.
unsafe impl<T: Send> Send for HostMemory<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for HostMemory<T> {}

impl<T: Element> HostMemory<T> {
    pub(crate) fn zeroed(context: &Arc<Context>, len: usize) -> Result<Self> {
        let mut memory = Self { context: Some(context.clone()), ..Self::raw(context, len)? };
        bytes_of_mut(memory.as_mut_slice()).fill(0);
        Ok(memory)
    }

    pub(crate) fn as_slice(&self) -> &[T] {
        // SAFETY: `len` elements that were zeroed, owned by this.
        unsafe { std::slice::from_raw_parts(self.address, self.len) }
    }

    pub(crate) fn as_mut_slice(&mut self) -> &mut [T] {
        // SAFETY: as above, borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.address, self.len) }
    }
}

impl<T> HostMemory<T> {
    /// Undefined memory that does not keep its context alive: for what the context owns itself.
    pub(super) fn raw(context: &Context, len: usize) -> Result<Self> {
        let bytes = len as u128 * size_of::<T>() as u128;
        let refuse = |reason: String| Error::Allocation { bytes, device: "page-locked host memory".into(), reason };
        let size = usize::try_from(bytes).map_err(|_| refuse("more than can be addressed".into()))?.max(1);
        context.make_current()?;
        let mut address = std::ptr::null_mut();
        let flags: c_uint = sys::CU_MEMHOSTALLOC_PORTABLE | sys::CU_MEMHOSTALLOC_DEVICEMAP;
        // SAFETY: the pointer is valid for the call.
        match unsafe { sys::cuMemHostAlloc(&raw mut address, size, flags) } {
            CUresult::CUDA_SUCCESS => Ok(Self { address: address.cast(), len, context: None }),
            code => Err(refuse(describe(code))),
        }
    }

    pub(super) fn address(&self) -> *mut T {
        self.address
    }
}

impl<T> Drop for HostMemory<T> {
    fn drop(&mut self) {
        if let Some(context) = &self.context {
            let _ = context.make_current();
        }
        // SAFETY: allocated by cuMemHostAlloc, freed once. Copies with host memory are synchronous, so none is under way.
        unsafe { sys::cuMemFreeHost(self.address.cast()) };
    }
}
