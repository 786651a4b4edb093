//! The seam on the CPU: every operation goes to the machine that runs the lane.
//!
//! This crate defines what a machine must do ([`Machine`]) and what a lane knows of itself ([`Lane`]); the emulator in
//! `primitives-host` implements it. The token a kernel receives points at its [`Lane`], so no access looks anything up.

use std::cell::{Cell, RefCell};
use std::panic::{Location, resume_unwind};
use std::sync::OnceLock;

use super::{AtomicOrder, BarrierVote, Dim3, Fault, Place, ReduxOp, Scope, ShuffleMode};

/// One thread of an emulated block: its indices, its block's shared memory and the machine that runs it.
pub struct Lane<'m> {
    /// Index of the thread in its block.
    pub thread_idx: Dim3,
    /// Index of the block in the grid.
    pub block_idx: Dim3,
    /// Extents of a block, in threads.
    pub block_dim: Dim3,
    /// Extents of the grid, in blocks.
    pub grid_dim: Dim3,
    /// Linear rank of the thread in its block.
    pub thread_rank: u32,
    /// Threads in a block.
    pub block_threads: u32,
    /// The block's shared memory, aligned to 16 bytes.
    pub shared: *mut u8,
    /// Bytes at `shared`.
    pub shared_len: usize,
    /// The architecture whose choices kernels make where they depend on one: compute capability times 100, 750 and above.
    pub arch: u32,
    /// The copies to shared memory that the lane has begun.
    pub copies: Copies,
    /// Set by an atomic access that changes memory, for the machine to see whether a wait may end.
    pub changed_memory: Cell<bool>,
    /// True if the machine wants to see every access through [`Machine::access`].
    pub checked: bool,
    /// The machine.
    pub machine: &'m dyn Machine,
}

/// Copies from global to shared memory that a lane has begun and not waited for. They are made when the lane waits, as late as
/// hardware may.
#[derive(Default)]
pub struct Copies {
    begun: RefCell<Vec<BegunCopy>>,
    /// How many groups there are: the number of the one to come.
    groups: Cell<u32>,
}

struct BegunCopy {
    to: *mut u8,
    from: *const u8,
    bytes: usize,
    /// The number of its group.
    group: u32,
}

impl BegunCopy {
    fn transfer(&self) -> AsyncCopy {
        AsyncCopy { to: self.to.addr(), from: self.from.addr(), bytes: self.bytes }
    }
}

/// A copy from global to shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AsyncCopy {
    /// The first byte in shared memory.
    pub to: usize,
    /// The first byte in global memory.
    pub from: usize,
    /// 4, 8 or 16, to which both are aligned.
    pub bytes: usize,
}

impl Lane<'_> {
    /// Begins a copy, which the machine has seen as a read and a write.
    ///
    /// # Safety
    /// Both are valid for so many bytes until the lane waits or ends.
    pub(crate) unsafe fn begin_copy(&self, to: *mut u8, from: *const u8, bytes: usize, place: Place) {
        let copy = BegunCopy { to, from, bytes, group: self.copies.groups.get() };
        if self.checked {
            self.machine.begin_copy(self, copy.transfer(), place);
        }
        self.copies.begun.borrow_mut().push(copy);
    }

    /// Makes a group of the copies that are in none.
    pub(crate) fn group_copies(&self) {
        self.copies.groups.set(self.copies.groups.get() + 1);
    }

    /// Makes all copies.
    #[track_caller]
    pub(crate) fn finish_copies(&self) {
        self.finish_copies_of(|_| true);
    }

    /// Makes the copies of all groups but the last.
    #[track_caller]
    pub(crate) fn finish_copies_but_last(&self) {
        let groups = self.copies.groups.get();
        self.finish_copies_of(|group| group + 1 < groups);
    }

    #[track_caller]
    fn finish_copies_of(&self, is_due: impl Fn(u32) -> bool) {
        let due: Vec<_> = self.copies.begun.borrow_mut().extract_if(.., |copy| is_due(copy.group)).collect();
        for copy in due {
            let BegunCopy { to, from, bytes, .. } = copy;
            if self.checked {
                self.machine.finish_copy(self, copy.transfer());
                // Once more: the copy was made at any time up to now.
                for (kind, space, address) in
                    [(AccessKind::Read, Space::Global, from.addr()), (AccessKind::Write, Space::Shared, to.addr())]
                {
                    self.machine.access(self, Access { kind, space, address, len: bytes }, Location::caller());
                }
            }
            // SAFETY: `begin_copy`'s contract.
            unsafe { from.copy_to_nonoverlapping(to, bytes) };
        }
    }
}

/// The memory an access goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    /// Global memory: visible to the grid.
    Global,
    /// Shared memory: visible to the block.
    Shared,
}

/// How memory is accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessKind {
    /// A plain read.
    Read,
    /// A plain write.
    Write,
    /// An atomic read.
    AtomicRead(AtomicOrder, Scope),
    /// An atomic write.
    AtomicWrite(AtomicOrder, Scope),
    /// An atomic read-modify-write.
    AtomicUpdate(AtomicOrder, Scope),
}

/// One access of a lane, reported before it is made and after its bounds were checked.
#[derive(Clone, Copy, Debug)]
pub struct Access {
    /// Read, write or atomic.
    pub kind: AccessKind,
    /// Global or shared.
    pub space: Space,
    /// First byte.
    pub address: usize,
    /// Bytes.
    pub len: usize,
}

/// An operation that the lanes of a mask perform together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WarpOp {
    /// Wait for each other; orders memory among the lanes.
    Sync,
    /// Exchange values; `width` is the segment's length, a power of two up to 32.
    Shuffle {
        /// Addressing mode.
        mode: ShuffleMode,
        /// Source lane, delta or bits, by the mode.
        operand: u32,
        /// Segment length.
        width: u32,
    },
    /// The mask of lanes whose value is not zero.
    Ballot,
    /// The mask of lanes whose value equals this lane's.
    MatchAny,
    /// The whole mask if all values are equal, else 0.
    MatchAll,
    /// An integer reduction of the low 32 bits, the same in all lanes.
    Redux(ReduxOp),
}

/// What runs emulated lanes.
///
/// Every method is called by the lane itself, on its own stack, and may suspend it.
pub trait Machine {
    /// Waits until all threads of the block are here. Returns the vote over `predicate`: a count, or 0 and 1.
    fn barrier(&self, lane: &Lane<'_>, vote: BarrierVote, predicate: bool, place: Place) -> u32;

    /// Performs `op` together with the other lanes of `mask`; `value` holds up to 16 bytes, low bytes first.
    fn warp_op(&self, lane: &Lane<'_>, mask: u32, op: WarpOp, value: u128, place: Place) -> u128;

    /// The lanes of this lane's warp that are at the same operation; at least this lane.
    fn active_mask(&self, lane: &Lane<'_>) -> u32;

    /// Lets other lanes and blocks run while this lane waits for memory to change.
    fn spin(&self, lane: &Lane<'_>, place: Place);

    /// Orders this lane's earlier accesses before its later ones at `scope`.
    fn fence(&self, lane: &Lane<'_>, scope: Scope, place: Place);

    /// Sees an access; called only if [`Lane::checked`].
    fn access(&self, lane: &Lane<'_>, access: Access, place: Place);

    /// Learns that the lane has begun a copy, which it shows as a read and a write before; called only if [`Lane::checked`].
    fn begin_copy(&self, lane: &Lane<'_>, copy: AsyncCopy, place: Place);

    /// Learns that the lane has waited for a copy; called only if [`Lane::checked`].
    fn finish_copy(&self, lane: &Lane<'_>, copy: AsyncCopy);

    /// Learns that raw pointers may write `len` bytes from `address`, unseen, from now on; called only if
    /// [`Lane::checked`].
    fn expose(&self, lane: &Lane<'_>, space: Space, address: usize, len: usize);

    /// Writes a line, which comes without its end, to the standard output.
    fn print(&self, lane: &Lane<'_>, line: &str);

    /// Ends the lane and its launch with a fault; `view` is the address of the view that an access was outside of.
    fn fault(&self, lane: &Lane<'_>, fault: Fault, view: Option<usize>, place: Place) -> !;
}

/// A fault on its way out of a lane that raised it without its token: what the lane unwinds with.
pub struct Raised {
    /// The fault.
    pub fault: Fault,
    /// Where it was raised.
    pub place: Place,
}

/// Whether the calling thread runs a lane.
static ON_LANE: OnceLock<fn() -> bool> = OnceLock::new();

/// Tells how to find out whether the calling thread runs a lane, whose machine then gets what it unwinds with as a
/// [`Raised`]. The first answer counts.
pub fn set_on_lane(on_lane: fn() -> bool) {
    // A second machine asks the same threads.
    let _ = ON_LANE.set(on_lane);
}

/// Ends the lane that calls this with a fault; a thread that runs none panics, as does a program that cannot unwind.
#[cold]
#[track_caller]
pub(crate) fn raise(fault: Fault, place: Place) -> ! {
    if cfg!(panic = "unwind") && ON_LANE.get().is_some_and(|on_lane| on_lane()) {
        resume_unwind(Box::new(Raised { fault, place }));
    }
    panic!("{fault}")
}
