//! Fibers: stacks on which lanes run, one after another.
//!
//! A fiber runs a lane to its end and then, without a switch, the block's next lane that has yet to start: a kernel that
//! never waits needs one fiber. A lane that waits keeps its fiber. It switches to another lane that can go on if there is
//! one, and else to the worker, which takes another fiber for a lane that has yet to start.

use std::cell::Cell;
use std::io;
use std::ptr::{NonNull, from_ref, null};
use std::rc::Rc;

use super::block::BlockState;
use super::{DEVICE, MAX_BLOCK_THREADS};
use crate::error::Error;

pub(super) mod overflow;
#[cfg_attr(any(miri, emulator_thread_fibers), path = "stacks_of_threads.rs")]
pub(super) mod stacks;
#[cfg_attr(
    all(target_arch = "x86_64", target_pointer_width = "64", unix, not(emulator_portable_fibers)),
    path = "x86_64.rs"
)]
#[cfg_attr(
    not(all(target_arch = "x86_64", target_pointer_width = "64", unix, not(emulator_portable_fibers))),
    path = "portable.rs"
)]
#[cfg(not(any(miri, emulator_thread_fibers)))]
mod switches;
#[cfg(any(miri, emulator_thread_fibers))]
#[path = "threads.rs"]
mod switches;

use overflow::Registers;
pub(super) use switches::{DIRECT, Exit, FiberContext};
use switches::{Fiber, Home};

/// Why a worker goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pause {
    /// A lane waits.
    Waiting,
    /// The fiber of this number has no lane.
    Idle(u32),
    /// The lane on the fiber of this number has used up its stack. Neither is ever resumed.
    #[cfg_attr(any(miri, emulator_thread_fibers), allow(dead_code, reason = "threads end the process"))]
    Overflowed(u32),
}

/// What a fault turned out to be.
#[allow(dead_code, reason = "some systems have no handler that asks")]
pub(super) enum Overflow {
    /// None of a lane's stack.
    None,
    /// One after which the thread goes on.
    Handled,
    /// One of a lane that can neither go on nor stop.
    Fatal,
}

/// A lane of a block, by its rank.
#[derive(Clone, Copy)]
struct Assignment {
    /// The lifetime is erased, since fibers have a type of their own; see [`Fibers::start`].
    block: NonNull<BlockState<'static>>,
    rank: u32,
}

impl Assignment {
    /// Runs the lane on the fiber that calls this, and lanes after it.
    ///
    /// # Safety
    /// Until this returns, the block stays where it is, and no `&mut` to it is made.
    #[inline(always)]
    unsafe fn run(self, exit: Exit<'_>) {
        let Self { block, mut rank } = self;
        // SAFETY: the caller keeps it alive. It is seen through shared references only.
        let block = unsafe { block.as_ref() };
        loop {
            block.run_lane(rank, &exit);
            match block.next_after_finished() {
                Some(next) => rank = next,
                None => break,
            }
        }
    }
}

/// The fibers of a worker.
pub(super) struct Fibers {
    fibers: Vec<Fiber>,
    idle: Vec<u32>,
    /// Those whose stacks are lost: lanes have used them up.
    lost: Vec<u32>,
    /// Whether reserves of stacks have been opened.
    reserves_open: Cell<bool>,
    home: Rc<Home>,
    stack_bytes: usize,
}

/// Fibers that a thread keeps from launch to launch: those of one block, unless they are threads themselves, which Miri
/// wants to have ended before the program.
const KEPT: usize = if cfg!(any(miri, emulator_thread_fibers)) { 0 } else { MAX_BLOCK_THREADS as usize };

thread_local! {
    static KEPT_FIBERS: Cell<Option<Fibers>> = const { Cell::new(None) };
    /// The fibers on one of which the thread runs, or null. It needs neither initialisation nor a destructor, since a
    /// signal handler reads it.
    static RUNNING: Cell<*const Fibers> = const { Cell::new(null()) };
}

/// Whether the calling thread is on a lane's stack.
#[inline(always)]
pub(super) fn in_lane() -> bool {
    !RUNNING.get().is_null()
}

/// Makes the calling thread one that is always on a lane's stack.
#[cfg(any(miri, emulator_thread_fibers))]
fn be_lane() {
    RUNNING.set(NonNull::dangling().as_ptr());
}

/// Calls `f`, on a lane's stack, such that the process ends if that overflows: for what must not be left for good.
pub(super) fn to_the_end<R>(f: impl FnOnce() -> R) -> R {
    struct Restore(*const Fibers);
    impl Drop for Restore {
        fn drop(&mut self) {
            RUNNING.set(self.0);
        }
    }
    let _restore = Restore(RUNNING.replace(null()));
    f()
}

impl Fibers {
    /// The fibers that the thread has kept, or none yet.
    pub(super) fn of_thread(stack_bytes: usize) -> Self {
        // A thread that is being torn down keeps none.
        match KEPT_FIBERS.try_with(Cell::take) {
            Ok(Some(kept)) if kept.stack_bytes == stack_bytes => kept,
            _ => {
                let (fibers, idle, lost) = (Vec::new(), Vec::new(), Vec::new());
                Self { fibers, idle, lost, reserves_open: Cell::new(false), home: Rc::default(), stack_bytes }
            }
        }
    }

    /// Leaves idle fibers to the thread's next launch.
    pub(super) fn keep_for_thread(self) {
        if self.reserves_open.take() {
            for (fiber, number) in self.fibers.iter().zip(0..) {
                if !self.lost.contains(&number) {
                    // If it fails, the next lanes have more stack than they asked for.
                    let _ = overflow::close_reserve(fiber.stack_range().start);
                }
            }
        }
        if self.fibers.len() <= KEPT {
            let _ = KEPT_FIBERS.try_with(|kept| kept.set(Some(self)));
        }
    }

    /// How many fibers are idle.
    pub(super) fn idle(&self) -> usize {
        self.idle.len()
    }

    /// Starts a lane of a block, and runs lanes of the block until the worker is needed.
    ///
    /// # Safety
    /// The block stays where it is, and no `&mut` to it is made, until as many fibers are idle as before.
    #[inline(always)]
    pub(super) unsafe fn start(&mut self, block: &BlockState<'_>, rank: u32) -> Result<Pause, Error> {
        let number = match self.idle.pop() {
            Some(number) => number,
            None => self.add()?,
        };
        let assignment = Assignment { block: NonNull::from(block).cast(), rank };
        let this = self.enter();
        // SAFETY: the caller's promise. The home stays, as the fibers do that are not idle.
        let pause = unsafe { this.fibers[number as usize].start(&this.home, assignment) };
        Ok(self.leave(pause))
    }

    #[cold]
    fn add(&mut self) -> Result<u32, Error> {
        let number = self.fibers.len() as u32;
        let fiber = stacks::take(self.stack_bytes).and_then(|stack| Fiber::new(number, stack, &self.home));
        self.fibers.push(fiber.map_err(|error: io::Error| Error::Allocation {
            driver: None,
            bytes: self.stack_bytes as u128,
            device: DEVICE.to_owned(),
            reason: format!("no stack for lane {number} of those that wait: {error}"),
        })?);
        Ok(number)
    }

    /// Resumes a lane that waits, and runs lanes of its block until the worker is needed.
    ///
    /// # Safety
    /// `context` is that of a lane that waits, started by these fibers.
    #[inline(always)]
    pub(super) unsafe fn resume(&mut self, context: &FiberContext) -> Pause {
        let this = self.enter();
        // SAFETY: the caller's promise.
        let pause = unsafe { Fiber::resume(&this.fibers, &this.home, context) };
        self.leave(pause)
    }

    /// Notes that the thread enters a lane's stack. While it is there, these fibers are seen through shared references
    /// only, since the handler of faults may look at them.
    #[inline(always)]
    fn enter(&self) -> &Self {
        RUNNING.set(from_ref(self));
        self
    }

    #[inline(always)]
    fn leave(&mut self, pause: Pause) -> Pause {
        RUNNING.set(null());
        match pause {
            Pause::Waiting => {}
            Pause::Idle(number) => self.idle.push(number),
            Pause::Overflowed(number) => {
                stacks::lose();
                self.lost.push(number);
            }
        }
        pause
    }

    /// In a signal handler: deals with a fault at the end of the stack of a lane that the thread runs.
    ///
    /// With `stop`, the thread goes on with its worker, which is told of the [overflow](Pause::Overflowed). Without, the
    /// lane goes on with more stack, once.
    ///
    /// # Safety
    /// `registers` are the thread's at the fault. If this returns [`Overflow::Handled`], the thread goes on with them as they then are;
    /// and with `stop`, what the lane does is something that may stop there for good.
    #[allow(dead_code, reason = "some systems have no handler that calls it")]
    pub(super) unsafe fn handle_overflow(fault: usize, registers: &mut Registers, stop: bool) -> Overflow {
        // SAFETY: whoever set it keeps the fibers, and changes nothing in them before it sets null.
        let Some(this) = (unsafe { RUNNING.get().as_ref() }) else { return Overflow::None };
        let stack_pointer = registers.stack_pointer();
        let Some(fiber) = this.fibers.iter().find(|fiber| fiber.stack_range().contains(&stack_pointer)) else {
            return Overflow::None;
        };
        let end = fiber.stack_range().start;
        if !overflow::is_beyond_limit(end, fault) {
            return Overflow::None;
        }
        if !stop {
            this.reserves_open.set(true);
            return if overflow::open_reserve(end, fault) { Overflow::Handled } else { Overflow::Fatal };
        }
        // SAFETY: the thread runs on this fiber; the rest is the caller's promise.
        unsafe { fiber.abandon(&this.home, registers) };
        Overflow::Handled
    }
}

impl Drop for Fibers {
    fn drop(&mut self) {
        if self.idle.len() + self.lost.len() < self.fibers.len() {
            // A worker panicked. What waits on the stacks may count on its destructors.
            eprintln!("the emulator failed while lanes wait: aborting");
            std::process::abort();
        }
        let Self { fibers, lost, home, .. } = self;
        let whole = fibers.drain(..).zip(0..).filter_map(|(fiber, number)| {
            if lost.contains(&number) {
                // What is on the stack was never dropped, so references to it may be anywhere.
                std::mem::forget(fiber);
                return None;
            }
            Some(fiber.end(home))
        });
        stacks::give_back(whole, self.stack_bytes);
    }
}
