//! The one error type of the runtime.

use primitives_gpu::Dim3;

use crate::fault::KernelFault;

mod expression;

pub use expression::{ExpressionError, ExpressionErrorKind};

/// The result type of the runtime.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of a host program's call or of a kernel. It names the kernel, the device, the request and the limit, if there are such.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The program asked for a GPU, and there is none.
    #[error("no GPU: {reason}")]
    NoGpu {
        /// Why, and what to do.
        reason: String,
        /// What the driver said, if it was asked.
        driver: Option<DriverError>,
    },
    /// The device does not exist.
    #[error("there is no device {asked}: this machine has {available}")]
    NoSuchDevice {
        /// What was asked for.
        asked: String,
        /// The devices that exist.
        available: String,
    },
    /// An invalid list of devices.
    #[error("{call}: {reason}")]
    Devices {
        /// The call.
        call: &'static str,
        /// What is wrong, and with which device.
        reason: String,
    },
    /// An invalid split over devices, or two splits that differ.
    #[error("{call}: {reason}")]
    Split {
        /// The call.
        call: &'static str,
        /// The mistake: which weight is invalid, or which two splits differ.
        reason: String,
    },
    /// A group cannot be created, or it has failed.
    #[error("{call}: {reason}")]
    Group {
        /// The call.
        call: &'static str,
        /// The rank of the member that caused the failure, if it is a single one: it did not come, it is gone, or it makes another call.
        member: Option<usize>,
        /// What is wrong.
        reason: String,
    },
    /// The driver is too old for the kernels.
    #[error("the NVIDIA driver supports CUDA {driver}, but {what} needs CUDA {needed} or later: update the driver")]
    DriverTooOld {
        /// The driver's CUDA version.
        driver: String,
        /// The CUDA version that is needed.
        needed: String,
        /// What needs it.
        what: String,
    },
    /// The kernel has no code for a GPU.
    #[error("kernel `{kernel}` has no PTX {reason}")]
    NoImage {
        /// The kernel.
        kernel: String,
        /// The reason: the kernel was not built, or not for this architecture.
        reason: String,
    },
    /// A kernel's code and the host use different layouts for its parameters.
    #[error(
        "kernel `{kernel}` was compiled for the GPU with other parameters or shared memory than for the host (layout \
         {device:#018x} there, {host:#018x} here): its file or a parameter's type depends on a feature or another `cfg` that \
         differs between the two builds, or one of them is stale; make them the same and rebuild"
    )]
    LayoutMismatch {
        /// The kernel.
        kernel: String,
        /// The hash of the layout on the host.
        host: u64,
        /// The hash of the layout in the code; 0 if the code has none.
        device: u64,
    },
    /// The driver refused to load a kernel's code.
    #[error("kernel `{kernel}` could not be loaded on {device}: {reason}")]
    Load {
        /// The kernel.
        kernel: String,
        /// The device.
        device: String,
        /// The driver's words.
        reason: String,
        /// The driver's error.
        driver: DriverError,
    },
    /// A launch asks for more than the device has, or than its kernel allows.
    #[error("kernel `{kernel}` cannot be launched on {device}: {what} is {asked}, the limit is {limit}")]
    LaunchLimit {
        /// The kernel.
        kernel: String,
        /// The device.
        device: String,
        /// The quantity that exceeds its limit.
        what: &'static str,
        /// What the launch asks for.
        asked: u64,
        /// What the device allows.
        limit: u64,
    },
    /// A launch asks for blocks without threads. In contrast, a launch with no blocks does nothing and is no error.
    #[error("kernel `{kernel}` cannot be launched on {device}: a block of {block} has no threads")]
    EmptyBlock {
        /// The kernel.
        kernel: String,
        /// The device.
        device: String,
        /// What the launch asks for.
        block: Dim3,
    },
    /// A launch asks for another block than the one that the kernel is written for.
    #[error(
        "kernel `{kernel}` cannot be launched on {device} with blocks of {asked}: its `threads` says that a block has {threads}"
    )]
    OtherBlock {
        /// The kernel.
        kernel: String,
        /// The device.
        device: String,
        /// What the launch asks for.
        asked: Dim3,
        /// The block of the kernel.
        threads: Dim3,
    },
    /// Two arguments must have the same length, and do not.
    #[error("kernel `{kernel}`: {first} has {first_len} elements, but {second} has {second_len}")]
    LengthMismatch {
        /// The kernel or operation.
        kernel: String,
        /// One argument.
        first: String,
        /// Its length.
        first_len: usize,
        /// The other argument.
        second: String,
        /// Its length.
        second_len: usize,
    },
    /// A histogram without bins, or with an invalid range.
    #[error("{algorithm}: {reason}")]
    Bins {
        /// The algorithm.
        algorithm: &'static str,
        /// What is wrong.
        reason: String,
    },
    /// Arrays or a file that do not describe a valid sparse matrix, or a method that does not exist.
    #[error("{call}: {reason}")]
    SparseMatrix {
        /// The call.
        call: &'static str,
        /// What is wrong, and where.
        reason: String,
    },
    /// A NumPy file that cannot be read or written.
    #[error("{file}, byte {at}, {field}: {reason}")]
    Npy {
        /// The file's name, or what is known of it.
        file: String,
        /// The byte at which the mistake is.
        at: u64,
        /// The part: `magic`, `version`, `header length`, `header`, an entry of the header, `data` or `end`; `file` if the file cannot be
        /// opened.
        field: &'static str,
        /// What is wrong, and what to do.
        reason: String,
    },
    /// A plan of Fourier transforms that cannot be created, or a chain of transforms that cannot be computed.
    #[error("{call}: {reason}")]
    Fft {
        /// The call.
        call: &'static str,
        /// What is wrong. For a plan, this says with which axis.
        reason: String,
    },
    /// A tuning value that no kernel accepts, or a text of tuning values that cannot be read.
    #[error("tuning, {what}: {reason}")]
    Tuning {
        /// The value, or the line of the text.
        what: String,
        /// What is wrong.
        reason: String,
    },
    /// A sort by bits that the key type does not have.
    #[error("{algorithm}: {start}..{end} is no range of the {bits} sort bits of {key}")]
    SortBits {
        /// The algorithm.
        algorithm: &'static str,
        /// The key's type.
        key: &'static str,
        /// The first bit.
        start: u32,
        /// One past the last bit.
        end: u32,
        /// The key's sort bits.
        bits: u32,
    },
    /// A call asks for the first `wanted` of fewer items.
    #[error("{algorithm}: the first {wanted} of {len} items were asked for")]
    TooFew {
        /// The algorithm.
        algorithm: &'static str,
        /// How many were asked for.
        wanted: usize,
        /// How many there are.
        len: usize,
    },
    /// A call from inside a kernel on the emulator that waits for the end of that kernel. Such a call would never return.
    #[error(
        "a call in kernel `{kernel}` waits for {what}, which is held until the kernel ends: use another, or call it after the launch"
    )]
    InKernel {
        /// The kernel.
        kernel: String,
        /// What the call waits for: the stream that the kernel runs on, or a buffer that it uses.
        what: &'static str,
    },
    /// An argument lies on another device than the stream.
    #[error("kernel `{kernel}` runs on {stream}, but its argument {argument} is on {buffer}")]
    WrongDevice {
        /// The kernel or operation.
        kernel: String,
        /// The argument.
        argument: String,
        /// The stream's device.
        stream: String,
        /// The argument's device.
        buffer: String,
    },
    /// Work would write memory that was imported as read-only.
    #[error("kernel `{kernel}` writes {argument}, which is read-only, as it was imported so: write to a copy of it")]
    ReadOnly {
        /// The kernel or operation.
        kernel: String,
        /// What it writes.
        argument: String,
    },
    /// A DLPack tensor that cannot be imported or exported.
    #[error("{call}: {reason}")]
    Dlpack {
        /// The call.
        call: &'static str,
        /// What is wrong with which field, and what to do.
        reason: String,
    },
    /// The host cannot access the memory of a GPU.
    #[error("{call}: the memory is on {device}, where the host cannot access it: {advice}")]
    NotOnHost {
        /// The call.
        call: &'static str,
        /// The device.
        device: String,
        /// What to do.
        advice: &'static str,
    },
    /// A range that is not inside its buffer.
    #[error("elements {start}..{end} lie outside a buffer of {len}")]
    OutOfRange {
        /// First element.
        start: usize,
        /// One past the last.
        end: usize,
        /// The buffer's length.
        len: usize,
    },
    /// A slice cannot be reinterpreted as elements of another type.
    #[error("a slice of {len} × {from} at address {address:#x} cannot be seen as {to}: {reason}")]
    Reinterpret {
        /// Element type.
        from: &'static str,
        /// Element type asked for.
        to: &'static str,
        /// Elements.
        len: usize,
        /// First byte.
        address: u64,
        /// Alignment, size or contents.
        reason: String,
    },
    /// Bytes from the device that are not a valid value of the element type.
    #[error("element {index} of a buffer of {element} holds {bits:#x}, which is no {element}")]
    InvalidBits {
        /// Element type.
        element: &'static str,
        /// Which element.
        index: usize,
        /// What it holds.
        bits: u64,
    },
    /// Memory could not be allocated.
    #[error("{bytes} bytes cannot be allocated on {device}: {reason}")]
    Allocation {
        /// What was asked for.
        bytes: u128,
        /// The device.
        device: String,
        /// Why.
        reason: String,
        /// What the driver said, if it was asked.
        driver: Option<DriverError>,
    },
    /// A call on a stream that captures, or with a buffer of the capture, that cannot be part of a graph.
    #[error("{call} cannot be captured: {advice}")]
    Capture {
        /// The call.
        call: &'static str,
        /// Why not, and what to do.
        advice: &'static str,
    },
    /// A thread of a kernel faulted. The fault is boxed, because it is large.
    #[error(transparent)]
    Fault(#[from] Box<KernelFault>),
    /// The context is lost after an earlier fault from which the hardware cannot recover, such as an access outside all memory.
    ///
    /// After that, every call on the device returns this error. All memory and streams of the context are gone; dropping them does nothing.
    /// The next [`Device::gpu_at`](crate::Device::gpu_at) tries to create a new context. The driver refuses that (seen with 580.159), and
    /// then only another process can use the GPU, which may be a child of this one.
    #[error(
        "{device} is lost after {error}{again}: its buffers and streams are gone, and this process cannot use it any more; start it \
         again, or go on in a child process"
    )]
    ContextLost {
        /// The device.
        device: String,
        /// The driver's first error.
        error: DriverError,
        /// Empty, or the reason in parentheses why a new context cannot be created.
        again: String,
    },
    /// An expression that cannot be computed, or an invalid view of a tensor. The error is boxed, because it is large.
    #[error(transparent)]
    Expression(#[from] Box<ExpressionError>),
    /// A handle or an address of other code that this library cannot use.
    #[error("{what} made elsewhere cannot be adopted: {reason}")]
    Adoption {
        /// The kind of the handle or address.
        what: &'static str,
        /// Why, and what to do.
        reason: String,
    },
    /// The driver failed in a way that has no variant of its own.
    #[error("{call} failed on {device}: {error}")]
    Driver {
        /// The call.
        call: &'static str,
        /// The device.
        device: String,
        /// The driver's error.
        error: DriverError,
    },
    /// An invalid value of an environment variable.
    #[error("the environment variable {variable} is `{value}`: {expected}")]
    Environment {
        /// The variable.
        variable: &'static str,
        /// Its value.
        value: String,
        /// What it can be.
        expected: String,
    },
}

impl Error {
    /// The number of the driver's error (`CUresult`), if there is one: 2 if a GPU is out of memory, 700 after an illegal address.
    ///
    /// ```
    /// use kernel_primitives::{Device, Error};
    ///
    /// # fn main() -> Result<(), Error> {
    /// match Device::emulator().stream()?.buffer_zeroed::<f32>(1000) {
    ///     Ok(buffer) => println!("{buffer:?}"),
    ///     Err(error) => println!("{error} (CUDA error {:?})", error.driver_code()),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn driver_code(&self) -> Option<u32> {
        self.driver_error().map(DriverError::code)
    }

    /// The driver's error, if there is one: its number, its name and its description.
    pub fn driver_error(&self) -> Option<&DriverError> {
        match self {
            Self::Driver { error, .. } | Self::ContextLost { error, .. } | Self::Load { driver: error, .. } => {
                Some(error)
            }
            Self::NoGpu { driver, .. } | Self::Allocation { driver, .. } => driver.as_ref(),
            _ => None,
        }
    }
}

/// The error that the CUDA driver returned from a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriverError {
    code: u32,
    text: String,
}

impl DriverError {
    /// An error with that number. The text is its name, followed by `: ` and the driver's description, if there is one.
    #[cfg(any(feature = "cuda", test))]
    pub(crate) fn new(code: u32, text: String) -> Self {
        Self { code, text }
    }

    /// The number: a `CUresult`.
    pub fn code(&self) -> u32 {
        self.code
    }

    /// The name, such as `CUDA_ERROR_OUT_OF_MEMORY`. A number without a name is `CUDA error 5000`, for example.
    pub fn name(&self) -> &str {
        self.text.split_once(": ").map_or(&self.text, |(name, _)| name)
    }
}

/// The name, and the driver's description.
impl std::fmt::Display for DriverError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for DriverError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_the_driver_keep_its_code() {
        let out_of_memory = || DriverError::new(2, "CUDA_ERROR_OUT_OF_MEMORY: out of memory".into());
        let device = || "GPU 0".to_owned();
        let errors = [
            Error::Driver { call: "cuMemAlloc", device: device(), error: out_of_memory() },
            Error::ContextLost { device: device(), error: out_of_memory(), again: String::new() },
            Error::NoGpu { reason: "none".into(), driver: Some(out_of_memory()) },
            Error::Load { kernel: "k".into(), device: device(), reason: "none".into(), driver: out_of_memory() },
            Error::Allocation { bytes: 1, device: device(), reason: "none".into(), driver: Some(out_of_memory()) },
        ];
        for error in errors {
            assert_eq!(error.driver_code(), Some(2), "{error}");
            let driver = error.driver_error().expect("there is one");
            assert_eq!(
                (driver.name(), &*driver.to_string()),
                ("CUDA_ERROR_OUT_OF_MEMORY", "CUDA_ERROR_OUT_OF_MEMORY: out of memory")
            );
        }
        assert_eq!(DriverError::new(5000, "CUDA error 5000".into()).name(), "CUDA error 5000");
        let of_the_host = Error::Allocation { bytes: 1, device: device(), reason: "none".into(), driver: None };
        assert_eq!(of_the_host.driver_code(), None);
        assert_eq!(Error::OutOfRange { start: 0, end: 2, len: 1 }.driver_code(), None);
    }
}
