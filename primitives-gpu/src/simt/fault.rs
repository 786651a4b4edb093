//! Faults: what a kernel reports instead of computing a wrong value.
//!
//! A fault ends the thread that raised it, and reaches the host as an error with kernel, block, thread and source line. On the GPU, it is
//! written once into a record in host-mapped memory. In the emulator, it ends the launch.

use core::panic::Location;

use super::Dim3;

/// A source position inside a kernel.
pub type Place = &'static Location<'static>;

/// What went wrong in a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
#[non_exhaustive]
pub enum FaultKind {
    /// A Rust panic: an assertion, an `unwrap`, an index outside a slice.
    Panic = 1,
    /// An access outside a view; the arguments are the index and the length.
    OutOfBounds = 2,
    /// An integer division by zero.
    DivisionByZero = 3,
    /// A view of one shape was used with a tile or a token of another shape. The arguments are the requested end and the length.
    TileOutOfBounds = 4,
    /// A collective was called in a block that it does not support. The arguments are the requested size, and the limit or the only size
    /// that it takes.
    BadShape = 5,
    /// A fault that the kernel's author raised. The first argument is the author's code.
    User = 6,
    /// A vector access at an address that is not aligned for it. The arguments are the address and the vector's bytes.
    Misaligned = 7,
    /// A kernel was called by another kernel, in a launch that its `threads` or `one_dimensional` does not allow. The arguments are an
    /// extent of the blocks or the grid, and what it must be.
    OtherShape = 8,
}

impl FaultKind {
    /// The kind with this number, if there is one.
    pub const fn from_u32(number: u32) -> Option<Self> {
        Some(match number {
            1 => Self::Panic,
            2 => Self::OutOfBounds,
            3 => Self::DivisionByZero,
            4 => Self::TileOutOfBounds,
            5 => Self::BadShape,
            6 => Self::User,
            7 => Self::Misaligned,
            8 => Self::OtherShape,
            _ => return None,
        })
    }
}

/// A fault with its arguments, as both machines report it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What went wrong.
    pub kind: FaultKind,
    /// Numbers that belong to the kind, see [`FaultKind`].
    pub args: [u64; 2],
}

impl core::fmt::Display for Fault {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let [a, b] = self.args;
        match self.kind {
            FaultKind::Panic => write!(f, "the kernel panicked"),
            FaultKind::OutOfBounds => write!(f, "index {a} is out of bounds: the view has {b} elements"),
            FaultKind::DivisionByZero => write!(f, "integer division by zero"),
            FaultKind::TileOutOfBounds => {
                write!(f, "the tile ends at element {a}, but the view has {b} elements")
            }
            // Some collectives take exactly one size.
            FaultKind::BadShape if a > 0 && a <= b => {
                write!(f, "a collective was asked for a size of {a}; it is for {b}")
            }
            FaultKind::BadShape => write!(f, "a collective was asked for a size of {a}; its limit is {b}"),
            FaultKind::OtherShape => {
                write!(
                    f,
                    "a kernel was called in a launch with an extent of {a}; its `threads` or `one_dimensional` says {b}"
                )
            }
            FaultKind::User => write!(f, "the kernel raised fault {a}"),
            FaultKind::Misaligned => {
                let past = a.checked_rem(b).unwrap_or(0);
                write!(f, "a vector access of {b} bytes is misaligned: it begins {past} bytes past a multiple of {b}")
            }
        }
    }
}

/// The places where a launch on a GPU reports faults. They are addresses in device memory; the last parameter of every kernel points to
/// this. The host has the same layout.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct FaultControl {
    /// The address of the flag, a `u32` in device memory. It is not 0 once a thread has faulted. That thread then writes the record, and
    /// threads that wait for each other give up.
    pub faulted: u64,
    /// The address of a [`FaultRecord`] in host memory.
    pub record: u64,
}

/// The number of bytes of a file name in a [`FaultRecord`]. A longer name keeps its end.
pub const FAULT_FILE_BYTES: usize = 192;

/// The record that a GPU thread writes when it faults, in host-mapped memory. The host has the same layout.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct FaultRecord {
    /// Not 0 once the record is complete.
    pub state: u32,
    /// A [`FaultKind`] as a number.
    pub kind: u32,
    /// The number that the host gave the kernel when it loaded it.
    pub kernel: u32,
    /// Line in the source file, from 1.
    pub line: u32,
    /// Column in the source file, from 1.
    pub column: u32,
    /// Numbers that belong to the kind.
    pub args: [u64; 2],
    /// Index of the block in the grid.
    pub block: Dim3,
    /// Index of the thread in the block.
    pub thread: Dim3,
    /// Bytes of `file` in use.
    pub file_len: u32,
    /// The source file's name, not terminated.
    pub file: [u8; FAULT_FILE_BYTES],
}

impl FaultRecord {
    /// A record that holds no fault.
    pub const EMPTY: Self = Self {
        state: 0,
        kind: 0,
        kernel: 0,
        line: 0,
        column: 0,
        args: [0; 2],
        block: Dim3::new(0, 0, 0),
        thread: Dim3::new(0, 0, 0),
        file_len: 0,
        file: [0; FAULT_FILE_BYTES],
    };
}
