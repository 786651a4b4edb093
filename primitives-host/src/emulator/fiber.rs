//! Fibers: stacks on which lanes run, one after another.
//!
//! A fiber runs a lane to its end and then, without a switch, the block's next lane that has yet to start: a kernel that
//! never waits needs one fiber. A lane that waits keeps its fiber. It switches to another lane that can go on if there is
//! one, and else to the worker, which takes another fiber for a lane that has yet to start.

use std::cell::Cell;
use std::io;
use std::ptr::NonNull;
use std::rc::Rc;

use super::block::BlockState;
use super::{DEVICE, MAX_BLOCK_THREADS, panics, stacks};
use crate::error::Error;

#[cfg(any(not(all(target_arch = "x86_64", target_pointer_width = "64", unix)), emulator_portable_fibers))]
#[path = "fiber/portable.rs"]
mod switches;
#[cfg(all(target_arch = "x86_64", target_pointer_width = "64", unix, not(emulator_portable_fibers)))]
#[path = "fiber/x86_64.rs"]
mod switches;

pub(super) use switches::{DIRECT, Exit, Seat};
use switches::{Fiber, Home};

/// Why a worker goes on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Pause {
    /// A lane waits.
    Waiting,
    /// A fiber has no lane.
    Idle,
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
    home: Rc<Home>,
    stack_bytes: usize,
}

/// Fibers that a thread keeps from launch to launch: those of one block.
const KEPT: usize = MAX_BLOCK_THREADS as usize;

thread_local! {
    static KEPT_FIBERS: Cell<Option<Fibers>> = const { Cell::new(None) };
}

impl Fibers {
    /// The fibers that the thread has kept, or none yet.
    pub(super) fn of_thread(stack_bytes: usize) -> Self {
        // A thread that is being torn down keeps none.
        match KEPT_FIBERS.try_with(Cell::take) {
            Ok(Some(kept)) if kept.stack_bytes == stack_bytes => kept,
            _ => Self { fibers: Vec::new(), idle: Vec::new(), home: Rc::default(), stack_bytes },
        }
    }

    /// Leaves idle fibers to the thread's next launch.
    pub(super) fn keep_for_thread(self) {
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
        panics::set_in_lane(true);
        // SAFETY: the caller's promise. The home stays, as the fibers do that are not idle.
        let idle = unsafe { self.fibers[number as usize].start(&self.home, assignment) };
        Ok(self.paused(idle))
    }

    #[cold]
    fn add(&mut self) -> Result<u32, Error> {
        let number = self.fibers.len() as u32;
        let fiber = stacks::take(self.stack_bytes).and_then(|stack| Fiber::new(number, stack, &self.home));
        self.fibers.push(fiber.map_err(|error: io::Error| Error::Allocation {
            bytes: self.stack_bytes as u128,
            device: DEVICE.to_owned(),
            reason: format!("no stack for lane {number} of those that wait: {error}"),
        })?);
        Ok(number)
    }

    /// Resumes a lane that waits, and runs lanes of its block until the worker is needed.
    ///
    /// # Safety
    /// `seat` is that of a lane that waits, started by these fibers.
    #[inline(always)]
    pub(super) unsafe fn resume(&mut self, seat: &Seat) -> Pause {
        panics::set_in_lane(true);
        // SAFETY: the caller's promise.
        let idle = unsafe { Fiber::resume(&mut self.fibers, &self.home, seat) };
        self.paused(idle)
    }

    #[inline(always)]
    fn paused(&mut self, idle: Option<u32>) -> Pause {
        panics::set_in_lane(false);
        match idle {
            None => Pause::Waiting,
            Some(number) => {
                self.idle.push(number);
                Pause::Idle
            }
        }
    }
}

impl Drop for Fibers {
    fn drop(&mut self) {
        if self.idle.len() < self.fibers.len() {
            // A worker panicked. What waits on the stacks may count on its destructors.
            eprintln!("the emulator failed while lanes wait: aborting");
            std::process::abort();
        }
        let home = &self.home;
        stacks::give_back(self.fibers.drain(..).map(|fiber| fiber.end(home)), self.stack_bytes);
    }
}
