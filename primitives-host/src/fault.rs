//! Faults of kernels, and their reports.

use primitives_gpu::Dim3;
use primitives_gpu::simt::{Fault, FaultKind};

/// A fault of one thread of a kernel, on a GPU or in the emulator.
///
/// Its text is a report of several lines. `{:?}` also gives this report: a test that returns the error prints it.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
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
    /// Emulator: the view whose bounds an access has exceeded.
    pub view: Option<OutsideView>,
    /// What to do about the fault, if this is known.
    pub help: Option<String>,
    /// Emulator: the seed that shuffled blocks and lanes, if the same seed gives the same order again. This is so if the launch ran on one
    /// OS thread, as checked launches do.
    pub seed: Option<u64>,
}

/// What a kernel's thread did wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Diagnosis {
    /// A fault that a thread raised, on a GPU or in the emulator.
    Raised(Fault),
    /// A panic, with its message. A GPU knows only the place.
    Panicked {
        /// The message. It is empty if it is unknown.
        message: String,
    },
    /// Emulator: lanes wait for lanes that never come. The text names the lanes, and where each group of lanes is.
    Divergence {
        /// The operation, the lanes that wait for it, and where the other lanes are.
        message: String,
    },
    /// Emulator: all remaining lanes wait in spin loops, and nothing changes.
    Deadlock {
        /// The lanes that wait, and where.
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
    /// Emulator: an access of shared memory while an asynchronous copy writes it, or a write of memory while such a copy reads it. The
    /// thread that started the copy has not waited for it.
    CopyUnderWay {
        /// What the copy does there, a write or a read, and where it was started.
        copy: Accessor,
        /// What the access does.
        action: MemoryAction,
        /// The bytes.
        memory: MemoryPlace,
    },
    /// Emulator: a read of bytes that nothing has written, in shared memory or in a buffer without contents.
    Unwritten {
        /// The bytes.
        memory: MemoryPlace,
    },
    /// Emulator: an access of memory of another emulated device. On GPUs, it needs peer access. With peer access it is slow, and without it
    /// the context is lost.
    OtherDevice {
        /// What the access does.
        action: MemoryAction,
        /// The bytes.
        memory: MemoryPlace,
        /// The number of the device that the kernel runs on.
        device: usize,
        /// The number of the device that has the memory.
        owner: usize,
    },
    /// Emulator: a lane used more than its stack. The place is where the lane last waited, or where the kernel begins.
    StackOverflow {
        /// The limit, in bytes.
        limit: usize,
    },
}

/// What a thread does to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[allow(missing_docs, reason = "named by its words")]
#[non_exhaustive]
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

/// One of the two accesses of a [race](Diagnosis::DataRace), or a [copy under way](Diagnosis::CopyUnderWay).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Accessor {
    /// What the access does.
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
#[non_exhaustive]
pub enum MemoryPlace {
    /// In the block's shared memory.
    Shared {
        /// The name of the kernel's parameter, if one is there.
        name: Option<&'static str>,
        /// The element, if the parameter is an array or a slice.
        element: Option<usize>,
        /// The byte in the element. It counts in the parameter if there is no element, and in the block's shared memory if there is no
        /// name.
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
            Self::Shared { name: Some(name), element: Some(element), byte }
            | Self::Argument { name, element, byte } => {
                if *byte > 0 {
                    write!(f, "byte {byte} of ")?;
                }
                write!(f, "element {element} of `{name}`")
            }
            Self::Shared { name: Some(name), element: None, byte } => write!(f, "byte {byte} of the storage `{name}`"),
            Self::Shared { name: None, byte, .. } => write!(f, "byte {byte} of the block's shared memory"),
            Self::Global { address } => write!(f, "global address {address:#x}, which is in no argument"),
        }
    }
}

/// The view whose [bounds](FaultKind::OutOfBounds) an access has exceeded: a kernel's parameter, or a part of one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OutsideView {
    /// The parameter's name.
    pub name: &'static str,
    /// Where the view starts, if it is a part of the parameter.
    pub start: Option<MemoryPlace>,
}

/// The subject of "has 10 elements".
impl std::fmt::Display for OutsideView {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.start {
            None => write!(f, "`{}`", self.name),
            Some(start) => write!(f, "the view from {start} on"),
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
            Self::CopyUnderWay { copy, action, memory } => {
                let towards = if copy.action == MemoryAction::Write { "to" } else { "from" };
                write!(f, "{action} of {} memory {towards} which a copy is under way", memory.space())
            }
            Self::Unwritten { memory } => write!(f, "read of {} memory that nothing has written", memory.space()),
            Self::OtherDevice { action, device, owner, .. } => {
                write!(f, "{action} on device {device} of memory that is device {owner}'s")
            }
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
        let Self { kernel, block, thread, file, line, column, diagnosis, view, help, seed } = self;
        match diagnosis {
            Diagnosis::DataRace { earlier, action, memory }
            | Diagnosis::CopyUnderWay { copy: earlier, action, memory } => {
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
                    let is_copy = std::ptr::eq(accessor, earlier) && !matches!(diagnosis, Diagnosis::DataRace { .. });
                    let action = if is_copy { "copy".to_owned() } else { action.to_string() };
                    (action, format!("by thread {thread} of block {block}"), accessor)
                });
                let width = |part: fn(&(String, String, &Accessor)) -> usize| lines.iter().map(part).max().unwrap_or(0);
                let (first, second) = (width(|line| line.0.len()), width(|line| line.1.len()));
                for (action, who, Accessor { file, line, column, .. }) in &lines {
                    writeln!(f, "  {action:first$} {who:second$} --> {file}:{line}:{column}")?;
                }
                write!(f, "  memory: {memory}")?;
            }
            Diagnosis::Unwritten { memory } | Diagnosis::OtherDevice { memory, .. } => {
                writeln!(f, "{diagnosis} in `{kernel}`\n  --> {file}:{line}:{column}")?;
                write!(f, "  by thread {thread} of block {block}\n  memory: {memory}")?;
            }
            _ => {
                match (diagnosis, view) {
                    (Diagnosis::Raised(Fault { kind: FaultKind::OutOfBounds, args: [index, len] }), Some(view)) => {
                        write!(f, "index {index} is out of bounds: {view} has {len} elements")?;
                    }
                    (Diagnosis::Raised(Fault { kind: FaultKind::TileOutOfBounds, args: [end, len] }), Some(view)) => {
                        write!(f, "the tile ends at element {end}, but {view} has {len} elements")?;
                    }
                    _ => write!(f, "{diagnosis}")?,
                }
                writeln!(f, "\n  --> {file}:{line}:{column}")?;
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

/// The report, which starts on a new line.
impl std::fmt::Debug for KernelFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "\nerror: {self}\n")
    }
}

impl std::error::Error for KernelFault {}
