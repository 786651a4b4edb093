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

/// The environment variable for the architecture that the emulator which [`Device::auto`] opens takes the place of: a compute capability
/// times ten, see [`EmulatorOptions::arch`].
pub const EMULATED_ARCH_VARIABLE: &str = "KERNEL_PRIMITIVES_EMULATED_ARCH";

/// The value of an environment variable; empty if it is not set.
pub(crate) fn environment(variable: &'static str) -> Result<String> {
    std::env::var_os(variable).unwrap_or_default().into_string().map_err(|value| Error::Environment {
        variable,
        value: value.to_string_lossy().into_owned(),
        expected: "it is no UTF-8".into(),
    })
}

/// What [`DEVICE_VARIABLE`] asks for.
pub(crate) enum AskedDevice {
    Auto,
    Emulator,
    /// The GPU of this number.
    Gpu(usize),
}

/// What a value of [`DEVICE_VARIABLE`] asks for; an error says what it can be.
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

/// The number that a text of digits is, without a sign.
pub(crate) fn whole_number(text: &str) -> Option<usize> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) { text.parse().ok() } else { None }
}

/// What runs kernels: an NVIDIA GPU, or the emulator on the CPU. Cheap to clone.
#[derive(Clone)]
pub struct Device {
    pub(crate) backend: Backend,
    reason: Arc<str>,
    /// A GPU's is that of its context.
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
    /// The architecture: the compute capability times ten. The emulator's is the one that it takes the place of.
    pub arch: u32,
    /// Streaming multiprocessors, or the cores that the emulator uses.
    pub multiprocessors: u32,
    /// Most threads in a block.
    pub max_block_threads: u32,
    /// Largest block, by dimension.
    pub max_block: Dim3,
    /// Largest grid, by dimension.
    pub max_grid: Dim3,
    /// Most shared memory a block can have, in bytes; on a GPU, a kernel that can panic needs 16 of them itself.
    pub max_shared_bytes: usize,
    /// Device memory, in bytes; `None` for an emulator that has no [limit](EmulatorOptions::memory_bytes) and uses the host's.
    pub memory_bytes: Option<usize>,
    /// How many operations on `f32` take the time of one on `f64`: 2 on a GPU for computing centres, 64 on most others. 1 for the
    /// emulator, 0 if unknown.
    pub double_precision_ratio: u32,
    /// Second-level cache, in bytes; 0 if unknown.
    pub l2_bytes: usize,
}

impl Device {
    /// The device that the environment variable `KERNEL_PRIMITIVES_DEVICE` names: `emulator`, `gpu` (fails without one),
    /// `gpu:1`, or `auto`, which is also the default: the first GPU if there is one, else the emulator. A GPU that this
    /// process has [lost](Error::ContextLost) is there, and an error.
    /// [`Device::reason`] says in one line why. `KERNEL_PRIMITIVES_EMULATOR`, `KERNEL_PRIMITIVES_SEED` and
    /// `KERNEL_PRIMITIVES_EMULATED_ARCH` set the emulator's options.
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

    /// The first GPU; if there is none, an error that says why.
    pub fn gpu() -> Result<Self> {
        Self::gpu_at(0)
    }

    /// The GPU with this number; if there is none, an error that says why. If this process has lost its context, a new one is tried, and
    /// [`Error::ContextLost`] if that fails.
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

    /// The GPU of a CUDA context that was made elsewhere, by a `CUcontext`: to share its memory and streams with other code.
    ///
    /// Contexts, streams and memory are adopted by their raw handles, whatever library made them. A process has one CUDA driver, so
    /// the handles of `cudarc`, `cust` or a library in C mean the same here: `CudaContext::cu_ctx` and `CudaStream::cu_stream` of
    /// `cudarc` return them, and so do `Context::as_raw` and `Stream::as_inner` of `cust`. What owns a stream or memory may go along:
    /// [`Stream::from_raw_owned`], [`Buffer::from_raw_owned`](crate::Buffer::from_raw_owned).
    ///
    /// A device's primary context, which the CUDA runtime and most libraries use, gives the device that
    /// [`gpu_at`](Self::gpu_at) gives, and is held by it. Any other context is borrowed: it is used and never destroyed. The
    /// same handle gives the same device while handles of that are there. The context becomes current in the calling thread,
    /// as in every thread that calls this library.
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
    /// Returns [`Error::NoGpu`] if there is no driver or no feature `cuda`, and [`Error::Adoption`] if the driver does not know the handle.
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

    /// The `CUcontext`, for code that is not of this library; null for the emulator. It is valid as long as this device.
    pub fn as_raw_context(&self) -> *mut c_void {
        match &self.backend {
            Backend::Emulator(_) => std::ptr::null_mut(),
            #[cfg(feature = "cuda")]
            Backend::Cuda(context) => context.as_raw().cast(),
        }
    }

    /// The GPUs of this machine. None if the build has no GPU support or the machine has no driver.
    pub fn gpu_count() -> usize {
        #[cfg(feature = "cuda")]
        return cuda::device_count().unwrap_or(0);
        #[cfg(not(feature = "cuda"))]
        0
    }

    /// The emulator with default options.
    pub fn emulator() -> Self {
        Self::emulator_with(EmulatorOptions::default())
    }

    /// The emulator with these options.
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

    /// Name, limits and sizes.
    pub fn properties(&self) -> DeviceProperties {
        match &self.backend {
            Backend::Emulator(device) => device.properties(),
            #[cfg(feature = "cuda")]
            Backend::Cuda(context) => context.properties().clone(),
        }
    }

    /// Compute capability, major and minor; `None` for the emulator. One of the [properties](Self::properties), without a copy of all.
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

    /// What the device was asked to do so far: launches, copies, allocations, waits. A GPU's counts are the same for all
    /// handles in the process; an emulator's are those of this handle and its clones.
    pub fn counters(&self) -> Counters {
        self.tally.snapshot()
    }

    /// A new stream: launches and copies on it run in order.
    pub fn stream(&self) -> Result<Stream> {
        Stream::new(self)
    }

    /// Page-locked host memory of `len` zeroes: copies to and from a GPU run at the bus's full speed. On the emulator it is
    /// ordinary memory.
    pub fn pinned<T: Element>(&self, len: usize) -> Result<PinnedBuffer<T>> {
        PinnedBuffer::zeroed(self, len)
    }

    /// The turn to note a use of buffers and enqueue it; the emulator, which does it at once, needs none. Nobody waits for the device
    /// while he has it.
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
