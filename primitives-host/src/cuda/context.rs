//! A GPU and its primary context.

use std::ffi::{c_int, c_uint};
use std::mem::ManuallyDrop;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use cust::sys::{self, CUcontext, CUdevice, CUdevice_attribute as Attribute, CUresult};
use primitives_gpu::{Dim3, Element};

use super::fault::Faults;
use super::stream::IdleStreams;
use super::{STICKY, adoption, call, describe};
use crate::counters::Tally;
use crate::device::DeviceProperties;
use crate::kernel::Limits;
use crate::memory::bytes_of_mut;
use crate::{Error, Result};

/// The oldest driver that has what the runtime calls: stream-ordered memory.
const OLDEST_DRIVER: i32 = 11020;

/// An open GPU: its primary context, or one that somebody else has made. One a context and process; buffers, streams and
/// kernels keep it alive.
pub(crate) struct Context {
    pub(super) faults: Faults,
    pub(super) idle_streams: IdleStreams,
    /// Held while a launch or a copy notes its use of buffers and is put in the queue: between the two, another thread's
    /// use of the same buffer would miss it.
    order: Mutex<()>,
    pub(super) raw: CUcontext,
    device: CUdevice,
    ordinal: usize,
    /// Why the driver refuses the context for good. It is left alone then: what belonged to it is gone.
    lost: OnceLock<String>,
    properties: DeviceProperties,
    limits: Limits,
    label: String,
    tally: Arc<Tally>,
    held: Held,
}

/// How a context is kept alive.
enum Held {
    Primary(ManuallyDrop<cust::context::Context>),
    /// Made in place of a primary context that is lost.
    Made,
    /// By whoever made it.
    Borrowed,
}

impl Drop for Context {
    fn drop(&mut self) {
        if self.make_current().is_err() {
            return;
        }
        self.idle_streams.destroy();
        self.faults.free();
        match &mut self.held {
            // SAFETY: dropped here only, and last: what belongs to the context has gone before.
            Held::Primary(primary) => unsafe { ManuallyDrop::drop(primary) },
            // SAFETY: made by `replace`, destroyed once and last.
            Held::Made => drop(unsafe { sys::cuCtxDestroy_v2(self.raw) }),
            Held::Borrowed => {}
        }
    }
}

// SAFETY: a context may be current in any thread and used by several at once; the driver synchronises.
unsafe impl Send for Context {}
// SAFETY: as above; interior state is behind locks.
unsafe impl Sync for Context {}

/// The open contexts.
static OPEN: Mutex<Vec<Weak<Context>>> = Mutex::new(Vec::new());

/// The GPUs whose contexts are lost.
static LOST: Mutex<Vec<Lost>> = Mutex::new(Vec::new());

#[derive(Clone)]
struct Lost {
    ordinal: usize,
    device: CUdevice,
    label: String,
    cause: String,
}

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
    ///
    /// After the loss of its context it tries to make another one.
    pub(crate) fn open(ordinal: usize) -> Result<Arc<Self>> {
        let is_lost = |at: &&Lost| at.ordinal == ordinal;
        let lost = lost_contexts().iter().find(is_lost).cloned();
        let Some(Lost { device, label, cause, .. }) = lost else { return Self::open_whole(ordinal) };
        Self::find_or(|context| context.is_of(ordinal), || Self::replace(ordinal, device)).map_err(|again| {
            let error = match again {
                // It says the same.
                Error::ContextLost { .. } => cause,
                other => format!("{cause} (and a new context fails: {other})"),
            };
            Error::ContextLost { device: label, error }
        })
    }

    /// A context in place of the primary one, which is lost. Resetting that would free host memory that is still in use.
    fn replace(ordinal: usize, device: CUdevice) -> Result<Self> {
        let known = cust::device::Device::get_device(ordinal as u32).map_err(|e| fail(ordinal, "cuDeviceGet", e))?;
        let mut raw = std::ptr::null_mut();
        // SAFETY: the pointer is valid for the call.
        match unsafe { sys::cuCtxCreate_v2(&raw mut raw, 0, device) } {
            CUresult::CUDA_SUCCESS => Self::new(ordinal, known, raw, Held::Made),
            code => Err(Error::NoGpu { reason: describe(code) }),
        }
    }

    /// Whether it is what a GPU is opened as.
    fn is_of(&self, ordinal: usize) -> bool {
        self.ordinal == ordinal && !matches!(self.held, Held::Borrowed)
    }

    fn open_whole(ordinal: usize) -> Result<Arc<Self>> {
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
        Self::find_or(
            |context| context.is_of(ordinal),
            || {
                let device =
                    cust::device::Device::get_device(ordinal as u32).map_err(|e| fail(ordinal, "cuDeviceGet", e))?;
                let primary =
                    cust::context::Context::new(device).map_err(|e| fail(ordinal, "cuDevicePrimaryCtxRetain", e))?;
                Self::new(ordinal, device, primary.as_raw(), Held::Primary(ManuallyDrop::new(primary)))
            },
        )
    }

    /// The context that is open already, or a new one.
    fn find_or(is_it: impl Fn(&Self) -> bool, new: impl FnOnce() -> Result<Self>) -> Result<Arc<Self>> {
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|context| context.strong_count() > 0);
        let mut whole = open.iter().filter_map(Weak::upgrade).filter(|context| context.lost.get().is_none());
        if let Some(context) = whole.find(|context| is_it(context)) {
            return Ok(context);
        }
        let context = Arc::new(new()?);
        open.push(Arc::downgrade(&context));
        Ok(context)
    }

    /// The context of a handle: a primary context is opened as ever, another one is used as it is.
    ///
    /// # Safety
    /// The handle is that of a context, which is alive as long as what this returns.
    pub(crate) unsafe fn adopt(raw: CUcontext) -> Result<Arc<Self>> {
        initialise()?;
        let refuse = |code| adoption("a context", describe(code));
        if raw.is_null() {
            return Err(adoption("a context", "the handle is null".into()));
        }
        let check = |code| if code == CUresult::CUDA_SUCCESS { Ok(()) } else { Err(refuse(code)) };
        let (mut device, mut flags, mut active) = (0, 0, 0);
        let mut primary = std::ptr::null_mut();
        // SAFETY: the pointers are valid for the calls; the context is alive. A primary context that was retained to compare
        // is released.
        unsafe {
            check(sys::cuCtxSetCurrent(raw))?;
            check(sys::cuCtxGetDevice(&raw mut device))?;
            check(sys::cuDevicePrimaryCtxGetState(device, &raw mut flags, &raw mut active))?;
            if active != 0 {
                check(sys::cuDevicePrimaryCtxRetain(&raw mut primary, device))?;
                check(sys::cuDevicePrimaryCtxRelease_v2(device))?;
            }
        }
        let handle = |ordinal| {
            let device =
                cust::device::Device::get_device(ordinal as u32).map_err(|e| fail(ordinal, "cuDeviceGet", e))?;
            Ok::<_, Error>((ordinal, device))
        };
        let devices = (0..device_count()?).map(handle).collect::<Result<Vec<_>>>()?;
        let known = devices.into_iter().find(|(_, known)| known.as_raw() == device);
        let (ordinal, device) = known.ok_or_else(|| refuse(CUresult::CUDA_ERROR_INVALID_DEVICE))?;
        if raw == primary {
            return Self::open(ordinal);
        }
        Self::find_or(|context| context.raw == raw, || Self::new(ordinal, device, raw, Held::Borrowed))
    }

    fn new(ordinal: usize, device: cust::device::Device, raw: CUcontext, held: Held) -> Result<Self> {
        let fail = |what: &str, error| fail(ordinal, what, error);
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
        let context = Self {
            raw,
            held,
            device: raw_device,
            ordinal,
            lost: OnceLock::new(),
            properties,
            limits: Limits { block_threads, block, grid, shared_bytes },
            label,
            tally: Arc::default(),
            faults: Faults::default(),
            idle_streams: IdleStreams::default(),
            order: Mutex::new(()),
        };
        if !matches!(context.held, Held::Borrowed) {
            context.keep_freed_memory()?;
        }
        // The first memory: it shows whether the context works.
        context.faults.give_back(context.faults.control(&context)?);
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
    ///
    /// An error if the context is lost: nothing is asked of the driver then, neither to use nor to free what was in it.
    pub(super) fn make_current(&self) -> Result<()> {
        if let Some(cause) = self.lost.get() {
            return Err(Error::ContextLost { device: self.label.clone(), error: cause.clone() });
        }
        // SAFETY: the context is alive: this holds it, or whoever gave it has promised to.
        unsafe { call!(self, cuCtxSetCurrent(self.raw)) }
    }

    /// The error for a result code.
    pub(super) fn error(&self, call: &'static str, code: CUresult) -> Error {
        self.error_or(code, |error| Error::Driver { call, device: self.label.clone(), error })
    }

    /// The error for a result code: `otherwise`, given the driver's words, unless the context is lost.
    pub(super) fn error_or(&self, code: CUresult, otherwise: impl FnOnce(String) -> Error) -> Error {
        if STICKY.contains(&code) {
            let cause = self.lost.get_or_init(|| {
                let (label, cause) = (self.label.clone(), describe(code));
                let (ordinal, device) = (self.ordinal, self.device);
                let mut lost = lost_contexts();
                // The first cause is the one to look for.
                if self.is_of(ordinal) && !lost.iter().any(|at| at.ordinal == ordinal) {
                    lost.push(Lost { ordinal, device, label, cause: cause.clone() });
                }
                cause
            });
            return Error::ContextLost { device: self.label.clone(), error: cause.clone() };
        }
        otherwise(describe(code))
    }

    pub(crate) fn as_raw(&self) -> CUcontext {
        self.raw
    }
}

fn lost_contexts() -> MutexGuard<'static, Vec<Lost>> {
    LOST.lock().unwrap_or_else(PoisonError::into_inner)
}

fn fail(ordinal: usize, what: &str, error: cust::error::CudaError) -> Error {
    Error::NoGpu { reason: format!("GPU {ordinal} could not be opened: {what}: {error}") }
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
            code => Err(context.error_or(code, refuse)),
        }
    }

    pub(super) fn address(&self) -> *mut T {
        self.address
    }
}

impl<T> Drop for HostMemory<T> {
    fn drop(&mut self) {
        if self.context.as_ref().is_some_and(|context| context.make_current().is_err()) {
            return;
        }
        // SAFETY: allocated by cuMemHostAlloc, freed once. Copies with host memory are synchronous, so none is under way.
        unsafe { sys::cuMemFreeHost(self.address.cast()) };
    }
}
