//! A GPU and its primary context.

use std::ffi::c_void;
use std::marker::PhantomData;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use primitives_cuda_driver::sys::{
    self, CUcontext, CUdevice, CUdeviceptr, CUmemoryPool, CUresult, CUstream, CUstreamCaptureMode,
};

use self::devices::{device, fail, initialise, label, no_gpu, place, properties};
use self::read_ahead::read_compiler_ahead;
use super::fault::Faults;
use super::marks::SpareMarks;
use super::module::Modules;
use super::stream::IdleStreams;
use super::{adoption, call, describe, is_sticky};
use crate::counters::Tally;
use crate::device::DeviceProperties;
use crate::launch::kernel::Limits;
use crate::memory::allocation::Orphan;
use crate::{DriverError, Error, Result};

mod devices;
mod host_memory;
mod read_ahead;

pub(crate) use devices::{all_properties, device_count};
pub(crate) use host_memory::HostMemory;

/// The oldest driver that has what the runtime calls: stream-ordered memory.
const OLDEST_DRIVER: i32 = 11020;

/// Returns an error if the driver is too old.
fn check_version(driver: i32) -> Result<()> {
    if driver >= OLDEST_DRIVER {
        return Ok(());
    }
    let text = |version: i32| format!("{}.{}", version / 1000, version % 1000 / 10);
    Err(Error::DriverTooOld { driver: text(driver), needed: text(OLDEST_DRIVER), what: "the runtime".into() })
}

/// An open GPU: its primary context, or one that somebody else has made. One a context and process; buffers, streams and
/// kernels keep it alive.
pub(crate) struct Context {
    pub(super) faults: Faults,
    pub(super) idle_streams: IdleStreams,
    pub(super) spare_marks: SpareMarks,
    pub(super) modules: Modules,
    /// Whether a stream was dropped that could not be waited for, so that its kernels may run as long as the process.
    pub(super) has_unfinished: AtomicBool,
    /// Memory whose buffers have gone while others captured a stream that used it.
    pub(crate) orphans: Mutex<Vec<Orphan>>,
    /// Held while a launch or a copy notes its use of buffers and is put in the queue: between the two, another thread's
    /// use of the same buffer would miss it. Nobody waits for the device or loads a kernel meanwhile, and it is the last lock to
    /// be taken but for those inside a buffer or a stream.
    order: Mutex<()>,
    /// Where the memory of buffers is from. The device's default pool is everybody's, and its settings are not ours to change.
    pub(super) pool: CUmemoryPool,
    /// The GPUs that were asked whether they can access the pool.
    pub(super) peers: Mutex<Vec<CUdevice>>,
    /// For work of the library's own that no stream of the caller's is for. The legacy stream would wait for the streams of others,
    /// and cannot be used while one of them is captured.
    pub(super) aside: CUstream,
    pub(super) raw: CUcontext,
    device: CUdevice,
    ordinal: usize,
    /// Why the driver refuses the context for good. It is left alone then: what belonged to it is gone.
    lost: OnceLock<DriverError>,
    properties: DeviceProperties,
    limits: Limits,
    label: String,
    tally: Arc<Tally>,
    held: Held,
}

/// How a context is kept alive.
enum Held {
    /// Retained by `open_whole`.
    Primary,
    /// Made in place of a primary context that is lost.
    Made,
    /// By whoever made it.
    Borrowed,
}

impl Drop for Context {
    fn drop(&mut self) {
        let Ok(_relaxed) = self.relaxed() else { return };
        // Streams that were dropped may still run, and report faults. If they cannot be waited for, the context is lost, and what
        // was in it.
        let mut idle = std::mem::take(&mut self.idle_streams);
        if idle.finish(self).is_err() {
            return;
        }
        self.spare_marks.destroy();
        self.faults.free();
        if !*self.has_unfinished.get_mut() {
            // Whoever made the context may have it for long, and a primary context may be somebody else's too.
            // SAFETY: all streams have been waited for, and none is left that a kernel could be launched on.
            unsafe { self.modules.unload() };
        }
        // SAFETY: made by `new` or null, destroyed once. Memory that is still being freed keeps its pool.
        unsafe {
            if !self.aside.is_null() {
                sys::cuStreamDestroy_v2(self.aside);
            }
            if !self.pool.is_null() {
                sys::cuMemPoolDestroy(self.pool);
            }
        }
        // SAFETY: retained by `open_whole` or made by `replace`, released or destroyed once and last: what belongs to the context
        // has gone before.
        unsafe {
            match self.held {
                Held::Primary => _ = sys::cuDevicePrimaryCtxRelease_v2(self.device),
                Held::Made => _ = sys::cuCtxDestroy_v2(self.raw),
                Held::Borrowed => {}
            }
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
    cause: DriverError,
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
            let again = match again {
                // It says the same.
                Error::ContextLost { .. } => String::new(),
                other => format!(" (and a new context fails: {other})"),
            };
            Error::ContextLost { device: label, error: cause, again }
        })
    }

    /// A context in place of the primary one, which is lost. Resetting that would free host memory that is still in use.
    fn replace(ordinal: usize, device: CUdevice) -> Result<Self> {
        Self::new(ordinal, device, || {
            let (mut raw, mut popped) = (std::ptr::null_mut(), std::ptr::null_mut());
            // SAFETY: the pointers are valid for the calls. The new context is on top of the thread's stack, from where it is taken: this
            // library sets the current one, and leaves the stack as it is.
            unsafe {
                match sys::cuCtxCreate_v2(&raw mut raw, 0, device) {
                    CUresult::CUDA_SUCCESS => _ = sys::cuCtxPopCurrent_v2(&raw mut popped),
                    code => return Err(no_gpu(describe(code))),
                }
            }
            Ok((raw, Held::Made))
        })
    }

    /// Whether it is what a GPU is opened as.
    fn is_of(&self, ordinal: usize) -> bool {
        self.ordinal == ordinal && !matches!(self.held, Held::Borrowed)
    }

    fn open_whole(ordinal: usize) -> Result<Arc<Self>> {
        let version = initialise()?;
        let count = device_count()?;
        if count == 0 {
            return Err(Error::NoGpu { reason: "the driver is there but finds no GPU".into(), driver: None });
        }
        if ordinal >= count {
            let (asked, available) = (format!("gpu:{ordinal}"), format!("{count} GPU(s)"));
            return Err(Error::NoSuchDevice { asked, available });
        }
        check_version(version)?;
        Self::find_or(
            |context| context.is_of(ordinal),
            || {
                let device = device(ordinal)?;
                Self::new(ordinal, device, || {
                    let mut raw = std::ptr::null_mut();
                    // SAFETY: the pointer is valid for the call.
                    match unsafe { sys::cuDevicePrimaryCtxRetain(&raw mut raw, device) } {
                        CUresult::CUDA_SUCCESS => Ok((raw, Held::Primary)),
                        code => Err(fail(ordinal, "cuDevicePrimaryCtxRetain", code)),
                    }
                })
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
        check_version(initialise()?)?;
        let refuse = |code| adoption("a context", describe(code).to_string());
        if raw.is_null() {
            return Err(adoption("a context", "the handle is null".into()));
        }
        let check = |code| if code == CUresult::CUDA_SUCCESS { Ok(()) } else { Err(refuse(code)) };
        let (mut of, mut flags, mut active) = (0, 0, 0);
        let mut primary = std::ptr::null_mut();
        // SAFETY: the pointers are valid for the calls; the context is alive. A primary context that was retained to compare
        // is released.
        unsafe {
            check(sys::cuCtxSetCurrent(raw))?;
            check(sys::cuCtxGetDevice(&raw mut of))?;
            check(sys::cuDevicePrimaryCtxGetState(of, &raw mut flags, &raw mut active))?;
            if active != 0 {
                check(sys::cuDevicePrimaryCtxRetain(&raw mut primary, of))?;
                check(sys::cuDevicePrimaryCtxRelease_v2(of))?;
            }
        }
        let handle = |ordinal| Ok::<_, Error>((ordinal, device(ordinal)?));
        let devices = (0..device_count()?).map(handle).collect::<Result<Vec<_>>>()?;
        let known = devices.into_iter().find(|&(_, known)| known == of);
        let (ordinal, device) = known.ok_or_else(|| refuse(CUresult::CUDA_ERROR_INVALID_DEVICE))?;
        if raw == primary {
            let context = Self::open(ordinal)?;
            if context.raw == raw {
                return Ok(context);
            }
            // A primary context was lost, and there is another one in its place.
        }
        Self::find_or(|context| context.raw == raw, || Self::new(ordinal, device, || Ok((raw, Held::Borrowed))))
    }

    /// A context that `handle` gives. That is called last of what may fail while there is none to give it back.
    fn new(ordinal: usize, device: CUdevice, handle: impl FnOnce() -> Result<(CUcontext, Held)>) -> Result<Self> {
        let properties = properties(ordinal, device)?;
        let limits = Limits {
            block_threads: properties.max_block_threads,
            block: properties.max_block,
            grid: properties.max_grid,
            shared_bytes: properties.max_shared_bytes,
        };
        let label = label(&properties);
        read_compiler_ahead();
        let (raw, held) = handle()?;
        let mut context = Self {
            raw,
            held,
            device,
            ordinal,
            lost: OnceLock::new(),
            properties,
            limits,
            label,
            tally: Arc::default(),
            faults: Faults::default(),
            idle_streams: IdleStreams::default(),
            spare_marks: SpareMarks::default(),
            modules: Modules::default(),
            has_unfinished: AtomicBool::new(false),
            orphans: Mutex::default(),
            order: Mutex::new(()),
            pool: std::ptr::null_mut(),
            peers: Mutex::default(),
            aside: std::ptr::null_mut(),
        };
        context.make_pool()?;
        let flags = sys::CU_STREAM_NON_BLOCKING;
        // SAFETY: the pointer is valid for the call; the context is current.
        unsafe { call!(context, cuStreamCreate(&raw mut context.aside, flags))? };
        // The first memory: it shows whether the context works.
        context.faults.give_back(context.faults.control(&context)?);
        Ok(context)
    }

    /// Makes the pool. It keeps what is freed, so that the next allocation is a matter of microseconds: a pool returns it at every
    /// synchronisation unless told otherwise.
    fn make_pool(&mut self) -> Result<()> {
        let _relaxed = self.relaxed()?;
        let props = sys::CUmemPoolProps {
            allocType: sys::CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
            handleTypes: sys::CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_NONE,
            location: sys::CUmemLocation {
                type_: sys::CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE,
                id: self.device,
            },
            win32SecurityAttributes: std::ptr::null_mut(),
            maxSize: 0,
            usage: 0,
            gpuDirectRDMACapable: 0,
            reserved: [0; 53],
        };
        let mut threshold = u64::MAX;
        // SAFETY: the pointers are valid for the calls.
        unsafe {
            call!(self, cuMemPoolCreate(&raw mut self.pool, &raw const props))?;
            let attribute = sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
            call!(self, cuMemPoolSetAttribute(self.pool, attribute, (&raw mut threshold).cast()))
        }
    }

    /// Copies from the host to the device; returns when that is done.
    ///
    /// # Safety
    /// So many bytes on both sides, which nobody else uses.
    pub(super) unsafe fn copy_aside(&self, to: CUdeviceptr, from: *const c_void, bytes: usize) -> Result<()> {
        let _relaxed = self.relaxed()?;
        // SAFETY: the caller's contract; the copy is over when this returns, or the device is lost.
        unsafe {
            call!(self, cuMemcpyHtoDAsync_v2(to, from, bytes, self.aside))?;
            call!(self, cuStreamSynchronize(self.aside))
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

    /// Whether it is the context that CUDA's runtime works in, and what is built on that.
    pub(crate) fn is_primary(&self) -> bool {
        matches!(self.held, Held::Primary)
    }

    /// The contexts that are open in this process.
    pub(super) fn all() -> Vec<Arc<Self>> {
        let open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        open.iter().filter_map(Weak::upgrade).collect()
    }

    /// The device's number.
    pub(crate) fn ordinal(&self) -> usize {
        self.ordinal
    }

    /// Where it is in its host, if the driver says so.
    pub(crate) fn place(&self) -> Option<u64> {
        place(self.device)
    }

    pub(crate) fn label(&self) -> &str {
        &self.label
    }

    /// Compute capability as in `sm_90`.
    pub(super) fn arch(&self) -> u32 {
        self.properties.compute_capability.map_or(0, |(major, minor)| major * 10 + minor)
    }

    /// An error if the context is known to be lost.
    pub(super) fn check_lost(&self) -> Result<()> {
        self.lost.get().map_or(Ok(()), |cause| Err(self.is_lost_after(cause)))
    }

    /// An error if the context is lost, whether that is known or not: the driver is asked.
    fn ask_lost(&self) -> Result<()> {
        let _relaxed = self.relaxed()?;
        // SAFETY: the stream is alive.
        match unsafe { sys::cuStreamQuery(self.aside) } {
            CUresult::CUDA_SUCCESS | CUresult::CUDA_ERROR_NOT_READY => Ok(()),
            code => Err(self.error("cuStreamQuery", code)),
        }
    }

    /// The error for a result code of a call that names another context, too. If that one is lost, the call fails, and this one is not lost.
    pub(super) fn error_with(&self, other: &Context, call: &'static str, code: CUresult) -> Error {
        match is_sticky(code).then(|| other.ask_lost()) {
            Some(Err(lost @ Error::ContextLost { .. })) => lost,
            _ => self.error(call, code),
        }
    }

    /// Makes the context current in this thread. Other code of the program may have made another one current, so every
    /// entry to the driver begins with this; where it is current already the driver does nothing.
    ///
    /// An error if the context is lost: nothing is asked of the driver then, neither to use nor to free what was in it.
    pub(super) fn make_current(&self) -> Result<()> {
        self.check_lost()?;
        // SAFETY: the context is alive: this holds it, or whoever gave it has promised to.
        unsafe { call!(self, cuCtxSetCurrent(self.raw)) }
    }

    /// Makes the context current, for calls that the driver takes for unsafe while any thread captures a stream: those that
    /// allocate, free, load and wait. It refuses them, and spoils the capture, unless the thread says that it knows what it does. These
    /// calls touch no stream that is captured, which [`RawStream::is_captured`](super::RawStream::is_captured) tells.
    pub(super) fn relaxed(&self) -> Result<Relaxed> {
        self.make_current()?;
        let mut mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        // SAFETY: the pointer is valid for the call, which stores the mode before.
        unsafe { call!(self, cuThreadExchangeStreamCaptureMode(&raw mut mode))? };
        Ok(Relaxed { before: mode, _of_this_thread: PhantomData })
    }

    /// The error for a result code.
    pub(super) fn error(&self, call: &'static str, code: CUresult) -> Error {
        self.error_or(code, |error| Error::Driver { call, device: self.label.clone(), error })
    }

    /// The error for a result code: `otherwise`, given the driver's words, unless the context is lost.
    pub(super) fn error_or(&self, code: CUresult, otherwise: impl FnOnce(DriverError) -> Error) -> Error {
        if is_sticky(code) {
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
            return self.is_lost_after(cause);
        }
        otherwise(describe(code))
    }

    fn is_lost_after(&self, cause: &DriverError) -> Error {
        Error::ContextLost { device: self.label.clone(), error: cause.clone(), again: String::new() }
    }

    /// The driver's number of the device.
    pub(super) fn device(&self) -> CUdevice {
        self.device
    }

    pub(crate) fn as_raw(&self) -> CUcontext {
        self.raw
    }
}

/// A thread's leave to do beside captures what does not touch them, until this is dropped.
pub(super) struct Relaxed {
    before: CUstreamCaptureMode,
    _of_this_thread: PhantomData<*mut ()>,
}

impl Drop for Relaxed {
    fn drop(&mut self) {
        // SAFETY: the pointer is valid for the call.
        unsafe { sys::cuThreadExchangeStreamCaptureMode(&raw mut self.before) };
    }
}

fn lost_contexts() -> MutexGuard<'static, Vec<Lost>> {
    LOST.lock().unwrap_or_else(PoisonError::into_inner)
}
