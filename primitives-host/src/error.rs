//! The one error type of the runtime.

use primitives_gpu::Dim3;
use primitives_gpu::simt::{Fault, FaultKind};

/// What the runtime returns.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Everything that can go wrong between a host program and a kernel: which kernel, which device, what was asked, what the
/// limit is.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A GPU was asked for and there is none.
    #[error("no GPU: {reason}")]
    NoGpu {
        /// Why, and what to do.
        reason: String,
    },
    /// The device list has no such entry.
    #[error("there is no device {asked}: this machine has {available}")]
    NoSuchDevice {
        /// What was asked for.
        asked: String,
        /// What there is.
        available: String,
    },
    /// The driver is older than what the kernels were built for.
    #[error("the NVIDIA driver supports CUDA {driver}, but {what} needs CUDA {needed} or later: update the driver")]
    DriverTooOld {
        /// The driver's CUDA version.
        driver: String,
        /// The version needed.
        needed: String,
        /// What needs it.
        what: String,
    },
    /// The kernel has no code for a GPU.
    #[error("kernel `{kernel}` has no PTX {reason}")]
    NoImage {
        /// The kernel.
        kernel: String,
        /// Why: not built, or not for this architecture.
        reason: String,
    },
    /// A kernel's code takes its parameters in another layout than the host passes them in.
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
    },
    /// A launch asks for more than the device has.
    #[error("kernel `{kernel}` cannot be launched on {device}: {what} is {asked}, the limit is {limit}")]
    LaunchLimit {
        /// The kernel.
        kernel: String,
        /// The device.
        device: String,
        /// Which quantity.
        what: &'static str,
        /// What the launch asks for.
        asked: u64,
        /// What the device allows.
        limit: u64,
    },
    /// A launch asks for blocks without threads. A grid without blocks, in contrast, is a launch of nothing.
    #[error("kernel `{kernel}` cannot be launched on {device}: a block of {block} has no threads")]
    EmptyBlock {
        /// The kernel.
        kernel: String,
        /// The device.
        device: String,
        /// What the launch asks for.
        block: Dim3,
    },
    /// A launch asks for other blocks than those that the kernel is written for.
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
        /// The kernel's.
        threads: Dim3,
    },
    /// Arguments that must have one length have several.
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
    /// A histogram without bins, or of a range that is none.
    #[error("{algorithm}: {reason}")]
    Bins {
        /// The algorithm.
        algorithm: &'static str,
        /// What is wrong.
        reason: String,
    },
    /// A tuning value that no kernel accepts, or a text of such that cannot be read.
    #[error("tuning, {what}: {reason}")]
    Tuning {
        /// The value, or the line of the text.
        what: String,
        /// What is wrong.
        reason: String,
    },
    /// A sort by bits that the key does not have.
    #[error("{algorithm}: {start}..{end} is no range of the {bits} sort bits of {key}")]
    SortBits {
        /// The algorithm.
        algorithm: &'static str,
        /// The key's type.
        key: &'static str,
        /// The first bit.
        start: u32,
        /// The bit behind the last.
        end: u32,
        /// The key's sort bits.
        bits: u32,
    },
    /// The first few of fewer.
    #[error("{algorithm}: the first {wanted} of {len} items were asked for")]
    TooFew {
        /// The algorithm.
        algorithm: &'static str,
        /// How many were asked for.
        wanted: usize,
        /// How many there are.
        len: usize,
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
    /// A range that leaves its buffer.
    #[error("elements {start}..{end} lie outside a buffer of {len}")]
    OutOfRange {
        /// First element.
        start: usize,
        /// One past the last.
        end: usize,
        /// The buffer's length.
        len: usize,
    },
    /// A slice cannot be seen as elements of another type.
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
    /// Bytes from the device that are no value of the element type.
    #[error("element {index} of a buffer of {element} holds {bits:#x}, which is no {element}")]
    InvalidBits {
        /// Element type.
        element: &'static str,
        /// Which element.
        index: usize,
        /// What it holds.
        bits: u64,
    },
    /// Memory could not be had.
    #[error("{bytes} bytes cannot be allocated on {device}: {reason}")]
    Allocation {
        /// What was asked for.
        bytes: u128,
        /// The device.
        device: String,
        /// Why.
        reason: String,
    },
    /// A call that cannot be part of a graph, on a stream that captures or with a buffer of the capture.
    #[error("{call} cannot be captured: {advice}")]
    Capture {
        /// The call.
        call: &'static str,
        /// Why not, and what to do.
        advice: &'static str,
    },
    /// A thread of a kernel faulted. Boxed, since it carries a place.
    #[error(transparent)]
    Fault(#[from] Box<KernelFault>),
    /// An earlier fault that the hardware does not forgive, such as an access outside all memory: the context is lost.
    ///
    /// Every call on the device says so from then on, and what was in the context is gone; dropping it does nothing. The next
    /// [`Device::gpu_at`](crate::Device::gpu_at) tries to make a new context. The driver refuses that (seen with 580.159), and
    /// then it takes another process, which may be a child of this one.
    #[error(
        "{device} is lost after {error}: its buffers and streams are gone, and this process cannot use it any more; start it \
         again, or go on in a child process"
    )]
    ContextLost {
        /// The device.
        device: String,
        /// The driver's first error.
        error: String,
    },
    /// An expression that cannot be computed, or a view of a tensor that there is not. Boxed, since it carries texts.
    #[error(transparent)]
    Expression(#[from] Box<ExpressionError>),
    /// A handle or an address from elsewhere that this library cannot use.
    #[error("{what} made elsewhere cannot be adopted: {reason}")]
    Adoption {
        /// What it is of.
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
        /// The driver's name and words for it.
        error: String,
    },
    /// A setting from the environment that makes no sense.
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

/// What is wrong with an expression, a view of a tensor or a plan of an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpressionError {
    /// Which kind of mistake it is.
    pub kind: ExpressionErrorKind,
    /// What is wrong, with the shapes, strides and types that matter.
    pub reason: String,
    /// The expression, with its tensors as `x0`, `x1` and so on; empty if it is about a view alone.
    pub expression: String,
    /// What these are: `x0: f32[3, 4]`.
    pub operands: Vec<String>,
    /// Source file of the call.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1.
    pub column: u32,
}

/// The kinds of [`ExpressionError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExpressionErrorKind {
    /// Shapes that do not broadcast, extents that do not fit, too many axes.
    BadShape,
    /// Strides that leave the memory, or that repeat elements which are written.
    BadStrides,
    /// Element types that there is no rule for.
    BadDtype,
    /// An index, an axis or a range outside of what there is.
    OutOfRange,
    /// An output that overlaps an input, but not element by element.
    Overlap,
    /// Less workspace than a plan needs.
    InsufficientWorkspace,
    /// Another number of operands than the operator has.
    BadCount,
    /// A name that no operator has.
    UnknownName,
}

impl std::fmt::Display for ExpressionError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.reason)?;
        if !self.expression.is_empty() {
            write!(f, "\n  in `{}`", self.expression)?;
        }
        if !self.operands.is_empty() {
            write!(f, "\n  where {}", self.operands.join(", "))?;
        }
        write!(f, "\n  at {}:{}:{}", self.file, self.line, self.column)
    }
}

impl std::error::Error for ExpressionError {}

/// A fault of one thread of a kernel, on the GPU or in the emulator.
///
/// Its text is a report of several lines. So is what `{:?}` gives, which a test prints that returns the error.
#[derive(Clone, PartialEq, Eq)]
pub struct KernelFault {
    /// The kernel, with its instantiation.
    pub kernel: String,
    /// Index of the block in the grid.
    pub block: Dim3,
    /// Index of the thread in the block.
    pub thread: Dim3,
    /// Source file, as the compiler knows it.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1.
    pub column: u32,
    /// What happened.
    pub diagnosis: Diagnosis,
    /// What to do about it, if that is known.
    pub help: Option<String>,
    /// Emulator: the seed that shuffled blocks and lanes. With the same one a checked launch does the same again.
    pub seed: Option<u64>,
}

/// What a kernel's thread did wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Diagnosis {
    /// A fault that a thread raised, on either machine.
    Raised(Fault),
    /// A panic, with its message; the GPU knows only the place.
    Panicked {
        /// The message, empty if unknown.
        message: String,
    },
    /// Emulator: lanes wait for lanes that never come. The text names the lanes and where each group is.
    Divergence {
        /// What was waited for, who waits and where the others are.
        message: String,
    },
    /// Emulator: all that is left waits in spin loops, and nothing changes.
    Deadlock {
        /// Who waits and where.
        message: String,
    },
    /// Emulator: two threads access the same bytes, at least one of them writes, and nothing orders the two. The fault's
    /// thread and place are those of the later access.
    DataRace {
        /// The earlier access.
        earlier: Accessor,
        /// What the later access does.
        action: MemoryAction,
        /// The bytes.
        memory: MemoryPlace,
    },
    /// Emulator: a read of bytes that nothing has written: shared memory, or a buffer without contents.
    Unwritten {
        /// The bytes.
        memory: MemoryPlace,
    },
    /// Emulator: a lane used up its stack. The place is where the lane last waited, or else where the kernel begins.
    StackOverflow {
        /// The limit, in bytes.
        limit: usize,
    },
}

/// What a thread does to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[allow(missing_docs, reason = "named by its words")]
pub enum MemoryAction {
    Read,
    Write,
    AtomicRead,
    AtomicWrite,
    AtomicUpdate,
}

impl std::fmt::Display for MemoryAction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::AtomicRead => "atomic read",
            Self::AtomicWrite => "atomic write",
            Self::AtomicUpdate => "atomic update",
        })
    }
}

/// One of the two accesses of a [race](Diagnosis::DataRace).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accessor {
    /// What it does.
    pub action: MemoryAction,
    /// Index of the block in the grid.
    pub block: Dim3,
    /// Index of the thread in the block.
    pub thread: Dim3,
    /// Source file, as the compiler knows it.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1.
    pub column: u32,
}

/// Bytes in memory, as a report names them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemoryPlace {
    /// In the block's shared memory.
    Shared {
        /// Bytes from its start.
        byte: usize,
    },
    /// In a kernel's argument.
    Argument {
        /// The parameter's name.
        name: &'static str,
        /// The element.
        element: usize,
        /// The byte in the element.
        byte: usize,
    },
    /// Elsewhere in global memory.
    Global {
        /// The address.
        address: usize,
    },
}

impl std::fmt::Display for MemoryPlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Shared { byte } if byte.is_multiple_of(4) => {
                write!(f, "word {} of the block's shared memory (byte {byte})", byte / 4)
            }
            Self::Shared { byte } => write!(f, "byte {byte} of the block's shared memory"),
            Self::Argument { name, element, byte: 0 } => write!(f, "element {element} of `{name}`"),
            Self::Argument { name, element, byte } => write!(f, "byte {byte} of element {element} of `{name}`"),
            Self::Global { address } => write!(f, "global address {address:#x}, which is in no argument"),
        }
    }
}

impl MemoryPlace {
    fn space(&self) -> &'static str {
        match self {
            Self::Shared { .. } => "shared",
            Self::Argument { .. } | Self::Global { .. } => "global",
        }
    }
}

impl std::fmt::Display for Diagnosis {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Raised(fault) => fault.fmt(f),
            Self::Panicked { message } if message.is_empty() => write!(f, "the kernel panicked"),
            Self::Panicked { message } => write!(f, "the kernel panicked: {message}"),
            Self::Divergence { message } | Self::Deadlock { message } => f.write_str(message),
            Self::DataRace { memory, .. } => write!(f, "data race in {} memory", memory.space()),
            Self::Unwritten { memory } => write!(f, "read of {} memory that nothing has written", memory.space()),
            Self::StackOverflow { limit } => {
                write!(f, "the lane used up its stack of {limit} bytes after it last waited, or began, here")
            }
        }
    }
}

impl From<Fault> for Diagnosis {
    fn from(fault: Fault) -> Self {
        match fault.kind {
            FaultKind::Panic => Self::Panicked { message: String::new() },
            _ => Self::Raised(fault),
        }
    }
}

impl std::fmt::Display for KernelFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { kernel, block, thread, file, line, column, diagnosis, help, seed } = self;
        match diagnosis {
            Diagnosis::DataRace { earlier, action, memory } => {
                writeln!(f, "{diagnosis} in `{kernel}`")?;
                let later = Accessor {
                    action: *action,
                    block: *block,
                    thread: *thread,
                    file: file.clone(),
                    line: *line,
                    column: *column,
                };
                let lines = [earlier, &later].map(|accessor| {
                    let Accessor { action, block, thread, .. } = accessor;
                    (action.to_string(), format!("by thread {thread} of block {block}"), accessor)
                });
                let width = |part: fn(&(String, String, &Accessor)) -> usize| lines.iter().map(part).max().unwrap_or(0);
                let (first, second) = (width(|line| line.0.len()), width(|line| line.1.len()));
                for (action, who, Accessor { file, line, column, .. }) in &lines {
                    writeln!(f, "  {action:first$} {who:second$} --> {file}:{line}:{column}")?;
                }
                write!(f, "  memory: {memory}")?;
            }
            Diagnosis::Unwritten { memory } => {
                writeln!(f, "{diagnosis} in `{kernel}`\n  --> {file}:{line}:{column}")?;
                write!(f, "  by thread {thread} of block {block}\n  memory: {memory}")?;
            }
            _ => {
                writeln!(f, "{diagnosis}\n  --> {file}:{line}:{column}")?;
                write!(f, "  in `{kernel}` by thread {thread} of block {block}")?;
            }
        }
        if let Some(help) = help {
            write!(f, "\n  help: {help}")?;
        }
        if let Some(seed) = seed {
            let variable = crate::SEED_VARIABLE;
            write!(f, "\n  note: blocks and lanes in the order of seed {seed}: {variable}={seed} shows it again")?;
        }
        Ok(())
    }
}

/// The report, on lines of its own.
impl std::fmt::Debug for KernelFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "\nerror: {self}\n")
    }
}

impl std::error::Error for KernelFault {}
