//! Devices: NVIDIA GPUs and the emulator.

use std::ffi::c_void;
use std::sync::{Arc, MutexGuard};

use crate::counters::{Counters, Tally};
#[cfg(feature = "cuda")]
use crate::cuda;
use crate::emulator::{EmulatedDevice, EmulatorOptions};
use crate::stream::Stream;
use crate::{Error, PinnedBuffer, Result};
use primitives_gpu::{Dim3, Element};

/// The environment variable by which [`Device::auto`] chooses: `auto`, `emulator`, `gpu` or `gpu:N`.
pub const DEVICE_VARIABLE: &str = "KERNEL_PRIMITIVES_DEVICE";

/// The environment variable for the emulator that [`Device::auto`] opens: `checked` or `unchecked`.
pub const EMULATOR_VARIABLE: &str = "KERNEL_PRIMITIVES_EMULATOR";

/// The environment variable that shuffles blocks and lanes in the emulator that [`Device::auto`] opens: a number.
pub const SEED_VARIABLE: &str = "KERNEL_PRIMITIVES_SEED";

/// The environment variable for the architecture that the emulator emulates if [`Device::auto`] opens it: a compute capability times ten,
/// see [`EmulatorOptions::arch`].
pub const EMULATED_ARCH_VARIABLE: &str = "KERNEL_PRIMITIVES_EMULATED_ARCH";

/// The value of an environment variable; empty if it is not set.
pub(crate) fn environment(variable: &'static str) -> Result<String> {
    std::env::var_os(variable).unwrap_or_default().into_string().map_err(|value| Error::Environment {
        variable,
        value: value.to_string_lossy().into_owned(),
        expected: "it is no UTF-8".into(),
    })
}

/// The device that [`DEVICE_VARIABLE`] asks for.
pub(crate) enum AskedDevice {
    Auto,
    Emulator,
    /// The GPU of this number.
    Gpu(usize),
}

/// Parses a value of [`DEVICE_VARIABLE`]. An error says which values are possible.
pub(crate) fn parse(value: &str) -> Result<AskedDevice, String> {
    match value {
        "" | "auto" => Ok(AskedDevice::Auto),
        "emulator" => Ok(AskedDevice::Emulator),
        "gpu" => Ok(AskedDevice::Gpu(0)),
        other => match other.strip_prefix("gpu:").and_then(whole_number) {
            Some(number) => Ok(AskedDevice::Gpu(number)),
            None => Err("it can be `auto`, `emulator`, `gpu` or `gpu:N`".into()),
        },
    }
}

/// Parses a number of digits without a sign.
pub(crate) fn whole_number(text: &str) -> Option<usize> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) { text.parse().ok() } else { None }
}

/// A device that runs kernels: an NVIDIA GPU, or the emulator on the CPU. A clone is cheap.
#[derive(Clone)]
pub struct Device {
    pub(crate) backend: Backend,
    reason: Arc<str>,
    /// A GPU has the tally of its context.
    pub(crate) tally: Arc<Tally>,
}

#[derive(Clone)]
pub(crate) enum Backend {
    Emulator(Arc<EmulatedDevice>),
    #[cfg(feature = "cuda")]
    Cuda(Arc<cuda::Context>),
}

/// A device's name, limits and sizes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeviceProperties {
    /// The product's name.
    pub name: String,
    /// The device's number: among the GPUs of this machine, or among the emulator's devices.
    pub number: usize,
    /// Compute capability, major and minor; `None` for the emulator.
    pub compute_capability: Option<(u32, u32)>,
    /// The architecture: the compute capability times ten. For the emulator, it is the architecture that it emulates.
    pub arch: u32,
    /// The number of streaming multiprocessors, or of cores that the emulator uses.
    pub multiprocessors: u32,
    /// The most threads in a block.
    pub max_block_threads: u32,
    /// The largest block, by dimension.
    pub max_block: Dim3,
    /// The largest grid, by dimension.
    pub max_grid: Dim3,
    /// The most shared memory that a block can have, in bytes. On a GPU, a kernel that can panic needs 16 of these bytes itself.
    pub max_shared_bytes: usize,
    /// Device memory in bytes. `None` for an emulator without a [limit](EmulatorOptions::memory_bytes), which uses the host's memory.
    pub memory_bytes: Option<usize>,
    /// How many operations on `f32` take the time of one operation on `f64`: 2 on a GPU for data centres, 64 on most other GPUs. It is 1
    /// for the emulator, and 0 if it is unknown.
    pub double_precision_ratio: u32,
    /// The size of the second-level cache in bytes; 0 if it is unknown.
    pub l2_bytes: usize,
}

impl Device {
    /// Opens the device that the environment variable `KERNEL_PRIMITIVES_DEVICE` names: `emulator`, `gpu` (which fails if there is no GPU),
    /// `gpu:1`, or `auto`. The default is `auto`: the first GPU if there is one, and the emulator otherwise. If that GPU cannot be opened
    /// now, for example because other processes have its memory, or if this process has [lost](Error::ContextLost) it, the call returns an
    /// error, and does not choose the emulator. [`Device::reason`] says in one line why the device was chosen.
    /// `KERNEL_PRIMITIVES_EMULATOR`, `KERNEL_PRIMITIVES_SEED` and `KERNEL_PRIMITIVES_EMULATED_ARCH` set the emulator's options.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Environment`] if a variable has any other value, and the errors of [`gpu_at`](Self::gpu_at). If the variable lets
    /// the call choose, and there is no GPU, the call opens the emulator and does not return [`Error::NoGpu`].
    pub fn auto() -> Result<Self> {
        let value = environment(DEVICE_VARIABLE)?;
        match parse(&value).map_err(|expected| Error::Environment { variable: DEVICE_VARIABLE, value, expected })? {
            AskedDevice::Auto => match Self::gpu() {
                Ok(gpu) => Ok(gpu),
                Err(Error::NoGpu { reason, .. }) => Self::emulator_because(&reason),
                Err(other) => Err(other),
            },
            AskedDevice::Emulator => Self::emulator_because(&format!("{DEVICE_VARIABLE} asks for it")),
            AskedDevice::Gpu(ordinal) => Self::gpu_at(ordinal),
        }
    }

    /// Opens the first GPU. If there is none, an error says why.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`gpu_at`](Self::gpu_at).
    pub fn gpu() -> Result<Self> {
        Self::gpu_at(0)
    }

    /// Opens the GPU with this number. If there is none, an error says why. If this process has lost the GPU's context, the call tries to
    /// create a new one, and returns [`Error::ContextLost`] if that fails.
    ///
    /// # Errors
    ///
    /// Returns [`Error::NoGpu`] if there is no GPU, no driver or no feature `cuda`, [`Error::NoSuchDevice`] if the number is too large,
    /// [`Error::DriverTooOld`] if the driver is, [`Error::ContextLost`] if this process cannot use the GPU any more, and the errors of the
    /// driver.
    pub fn gpu_at(ordinal: usize) -> Result<Self> {
        #[cfg(feature = "cuda")]
        {
            let context = cuda::Context::open(ordinal)?;
            let (tally, reason) = (context.tally().clone(), format!("GPU {ordinal} was found").into());
            Ok(Self { backend: Backend::Cuda(context), reason, tally })
        }
        #[cfg(not(feature = "cuda"))]
        {
            let _ = ordinal;
            Err(Error::NoGpu { reason: "this program was built without the feature `cuda`".into(), driver: None })
        }
    }

    /// Opens the GPU of a CUDA context that other code has created, given as a `CUcontext`. Use it to share memory and streams with other
    /// code.
    ///
    /// This library adopts contexts, streams and memory of any other library by their raw handles. A process has one CUDA driver, so the
    /// handles of `cudarc`, `cust` or a library in C are valid here: `CudaContext::cu_ctx` and `CudaStream::cu_stream` of `cudarc` return
    /// them, and so do `Context::as_raw` and `Stream::as_inner` of `cust`. The owner of a stream or of memory can be passed along:
    /// [`Stream::from_raw_owned`], [`Buffer::from_raw_owned`](crate::Buffer::from_raw_owned).
    ///
    /// The primary context of a GPU, which the CUDA runtime and most libraries use, gives the same device as [`gpu_at`](Self::gpu_at), and
    /// the device holds this context. Any other context is borrowed: this library uses it and never destroys it. The same handle gives the
    /// same device as long as the program has a clone of that device. The context becomes current in the calling thread, as in every thread
    /// that calls this library.
    ///
    /// ```no_run
    /// use std::ffi::c_void;
    /// use kernel_primitives::prelude::*;
    /// use kernel_primitives::{Buffer, Device, Dims, Stream, kernels::map_binary};
    ///
    /// /// Doubles what another library has on its stream.
    /// ///
    /// /// # Safety
    /// /// The handles are of one context, and `address` is that of `len` floats that the stream's work may read and write.
    /// unsafe fn double(context: *mut c_void, stream: *mut c_void, address: u64, len: usize) -> kernel_primitives::Result<()> {
    ///     // SAFETY: the caller's; all that is adopted is gone when this returns, and dropping the stream waits for its work.
    ///     let (stream, mut data) = unsafe {
    ///         let stream = Stream::from_raw_borrowed(&Device::from_raw_context(context)?, stream)?;
    ///         let data = Buffer::<f32>::from_raw_borrowed(&stream, address, len)?;
    ///         (stream, data)
    ///     };
    ///     let x = stream.buffer_from(&data.to_vec()?)?;
    ///     map_binary::<f32, f32, Add, 4>::launch(&stream, Dims::for_items(len), &x, &x, &mut data, Add)?;
    ///     stream.synchronize()
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// Returns [`Error::NoGpu`] if there is no driver or no feature `cuda`, [`Error::DriverTooOld`], [`Error::Adoption`] if the driver does not
    /// know the handle, [`Error::ContextLost`], and the errors of the driver.
    ///
    /// # Safety
    ///
    /// `context` is a `CUcontext`, and is not destroyed before the device, all its clones, and what was made on it.
    pub unsafe fn from_raw_context(context: *mut c_void) -> Result<Self> {
        #[cfg(feature = "cuda")]
        {
            // SAFETY: the caller's contract.
            let context = unsafe { cuda::Context::adopt(context.cast())? };
            let tally = context.tally().clone();
            Ok(Self { backend: Backend::Cuda(context), reason: "its context was adopted".into(), tally })
        }
        #[cfg(not(feature = "cuda"))]
        {
            let _ = context;
            Err(Error::NoGpu { reason: "this program was built without the feature `cuda`".into(), driver: None })
        }
    }

    /// The `CUcontext`, for code outside this library; null for the emulator. It is valid as long as this device.
    pub fn as_raw_context(&self) -> *mut c_void {
        match &self.backend {
            Backend::Emulator(_) => std::ptr::null_mut(),
            #[cfg(feature = "cuda")]
            Backend::Cuda(context) => context.as_raw().cast(),
        }
    }

    /// The number of GPUs of this machine: 0 if the build has no GPU support, or if the machine has no driver.
    pub fn gpu_count() -> usize {
        #[cfg(feature = "cuda")]
        return cuda::device_count().unwrap_or(0);
        #[cfg(not(feature = "cuda"))]
        0
    }

    /// Opens the emulator with default options. It reads no environment variable: see [`auto`](Self::auto).
    pub fn emulator() -> Self {
        Self::emulator_with(EmulatorOptions::default())
    }

    /// Opens the emulator with these options.
    pub fn emulator_with(options: EmulatorOptions) -> Self {
        Self::emulator_for(options, "the program asks for it")
    }

    fn emulator_for(options: EmulatorOptions, reason: &str) -> Self {
        Self::emulated(EmulatedDevice::only(options), reason)
    }

    /// A device of the emulator.
    pub(crate) fn emulated(device: EmulatedDevice, reason: &str) -> Self {
        Self { backend: Backend::Emulator(Arc::new(device)), reason: reason.into(), tally: Arc::default() }
    }

    /// The emulator with the options that the environment asks for.
    fn emulator_because(reason: &str) -> Result<Self> {
        Ok(Self::emulator_for(Self::emulator_options()?, reason))
    }

    /// The emulator's options as the environment asks for them.
    pub(crate) fn emulator_options() -> Result<EmulatorOptions> {
        let mut options = EmulatorOptions::default();
        let refuse = |variable, value: &str, expected: &str| {
            Err(Error::Environment { variable, value: value.into(), expected: expected.into() })
        };
        match environment(EMULATOR_VARIABLE)?.as_str() {
            "" => {}
            "checked" => options.checked = true,
            "unchecked" => options.checked = false,
            other => return refuse(EMULATOR_VARIABLE, other, "it can be `checked` or `unchecked`"),
        }
        match environment(SEED_VARIABLE)?.as_str() {
            "" => {}
            value => match value.parse() {
                Ok(seed) => options.seed = Some(seed),
                Err(_) => return refuse(SEED_VARIABLE, value, "it is a number from 0 to 2^64 - 1"),
            },
        }
        match environment(EMULATED_ARCH_VARIABLE)?.as_str() {
            "" => {}
            value => match value.parse() {
                Ok(arch) => options.arch = Some(arch),
                Err(_) => return refuse(EMULATED_ARCH_VARIABLE, value, "it is a number such as 75 or 90"),
            },
        }
        Ok(options)
    }

    /// Why this device was chosen, in one line.
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// True for a GPU.
    pub fn is_gpu(&self) -> bool {
        !matches!(self.backend, Backend::Emulator(_))
    }

    /// The device's name, limits and sizes.
    pub fn properties(&self) -> DeviceProperties {
        match &self.backend {
            Backend::Emulator(device) => device.properties(),
            #[cfg(feature = "cuda")]
            Backend::Cuda(context) => context.properties().clone(),
        }
    }

    /// Compute capability, major and minor; `None` for the emulator. This is one of the [properties](Self::properties), without a copy of
    /// all of them.
    pub fn compute_capability(&self) -> Option<(u32, u32)> {
        match &self.backend {
            Backend::Emulator(_) => None,
            #[cfg(feature = "cuda")]
            Backend::Cuda(context) => context.properties().compute_capability,
        }
    }

    /// The GPU's number, as [`gpu_at`](Self::gpu_at) takes it; `None` for the emulator.
    pub fn ordinal(&self) -> Option<usize> {
        match &self.backend {
            Backend::Emulator(_) => None,
            #[cfg(feature = "cuda")]
            Backend::Cuda(context) => Some(context.ordinal()),
        }
    }

    /// Counts of the work of the device so far: launches, copies, allocations and waits. All handles of a GPU in the process share their
    /// counts. For an emulator, this handle and its clones share them.
    pub fn counters(&self) -> Counters {
        self.tally.snapshot()
    }

    /// Creates a stream. Launches and copies on it run in order.
    ///
    /// # Errors
    ///
    /// Returns the errors of the driver. The emulator has none.
    pub fn stream(&self) -> Result<Stream> {
        Stream::new(self)
    }

    /// Allocates page-locked host memory for `len` elements, all zero. Copies between it and a GPU run at the full speed of the bus. On the
    /// emulator, it is ordinary memory. Elements have an alignment of at most 256 bytes, as in a buffer.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Allocation`] if the host does not have the memory, and the errors of the driver.
    pub fn pinned<T: Element>(&self, len: usize) -> Result<PinnedBuffer<T>> {
        PinnedBuffer::zeroed(self, len)
    }

    /// Takes the device's turn, in which a thread records a use of buffers and enqueues the work. The emulator needs no turn, because it
    /// works at once. No thread waits for the device while it holds the turn.
    pub(crate) fn turn(&self) -> Option<MutexGuard<'_, ()>> {
        match &self.backend {
            Backend::Emulator(_) => None,
            #[cfg(feature = "cuda")]
            Backend::Cuda(context) => Some(context.turn()),
        }
    }

    /// The device of the emulator, if it is one.
    pub(crate) fn as_emulated(&self) -> Option<&EmulatedDevice> {
        match &self.backend {
            Backend::Emulator(device) => Some(device),
            #[cfg(feature = "cuda")]
            Backend::Cuda(_) => None,
        }
    }

    /// The context of a GPU.
    #[cfg(feature = "cuda")]
    pub(crate) fn context(&self) -> Option<&Arc<cuda::Context>> {
        match &self.backend {
            Backend::Emulator(_) => None,
            Backend::Cuda(context) => Some(context),
        }
    }

    /// True if both are the same GPU, or the emulator's device of the same number.
    #[doc(hidden)]
    pub fn same_as(&self, other: &Self) -> bool {
        match (&self.backend, &other.backend) {
            (Backend::Emulator(a), Backend::Emulator(b)) => a.number() == b.number(),
            #[cfg(feature = "cuda")]
            (Backend::Cuda(a), Backend::Cuda(b)) => Arc::ptr_eq(a, b),
            #[cfg(feature = "cuda")]
            _ => false,
        }
    }
}

/// `NVIDIA H200 (GPU 0, sm_90)`, `the emulator`, or `device 1 of the emulator`.
impl std::fmt::Display for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.backend {
            Backend::Emulator(device) => f.write_str(device.label()),
            #[cfg(feature = "cuda")]
            Backend::Cuda(context) => f.write_str(context.label()),
        }
    }
}

impl std::fmt::Debug for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Device({self}: {})", self.reason)
    }
}
