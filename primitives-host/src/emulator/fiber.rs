//! Fibers: stacks on which lanes run, one after another.
//!
//! A fiber runs a lane to its end and then, without a switch, the block's next lane that has yet to start: a kernel that
//! never waits needs one fiber. A lane that waits keeps its fiber, and the worker takes another one for the next lane.

use std::cell::Cell;
use std::io;
use std::ptr::NonNull;
use std::rc::Rc;

use corosensei::{Coroutine, Yielder};

use super::block::BlockState;
use super::stacks::LaneStack;
use super::{DEVICE, MAX_BLOCK_THREADS, panics, stacks};
use crate::error::Error;

/// Why a fiber switches to its worker.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Pause {
    /// Its lane waits.
    Waiting,
    /// It has no lane.
    Idle,
}

/// What a lane suspends itself by.
pub(super) type LaneYielder = Yielder<(), Pause>;

/// The lane that an idle fiber is resumed for; with none in it, the fiber ends. One serves all fibers of a worker, which
/// resumes one at a time.
type Inbox = Cell<Option<Assignment>>;

/// A lane of a block, by its rank.
#[derive(Clone, Copy)]
struct Assignment {
    /// The lifetime is erased, since fibers have a type of their own; see [`Fibers::resume`].
    block: NonNull<BlockState<'static>>,
    rank: u32,
}

type Fiber = Coroutine<(), Pause, (), LaneStack>;

/// An idle fiber that its worker knows by `number`.
fn new_fiber(number: u32, stack_bytes: usize, inbox: Rc<Inbox>) -> io::Result<Fiber> {
    let main = move |yielder: &LaneYielder, ()| {
        while let Some(Assignment { block, mut rank }) = inbox.take() {
            // SAFETY: who resumes a fiber keeps the block of its assignment alive until the fiber is idle again. The block
            // is seen through shared references only.
            let block = unsafe { block.as_ref() };
            loop {
                block.run_lane(rank, number, yielder);
                match block.next_after_finished() {
                    Some(next) => rank = next,
                    None => break,
                }
            }
            yielder.suspend(Pause::Idle);
        }
    };
    Ok(Coroutine::with_stack(stacks::take(stack_bytes)?, main))
}

/// The fibers of a worker.
pub(super) struct Fibers {
    fibers: Vec<Fiber>,
    idle: Vec<u32>,
    inbox: Rc<Inbox>,
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
            _ => Self { fibers: Vec::new(), idle: Vec::new(), inbox: Rc::default(), stack_bytes },
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

    /// Assigns a lane that has not started to an idle fiber, which must be resumed next; returns its number.
    #[inline(always)]
    pub(super) fn assign(&mut self, block: &BlockState<'_>, rank: u32) -> Result<u32, Error> {
        let number = match self.idle.pop() {
            Some(number) => number,
            None => self.add()?,
        };
        self.inbox.set(Some(Assignment { block: NonNull::from(block).cast(), rank }));
        Ok(number)
    }

    #[cold]
    fn add(&mut self) -> Result<u32, Error> {
        let number = self.fibers.len() as u32;
        let fiber = new_fiber(number, self.stack_bytes, Rc::clone(&self.inbox)).map_err(|error| Error::Allocation {
            bytes: self.stack_bytes as u128,
            device: DEVICE.to_owned(),
            reason: format!("no stack for lane {number} of those that wait: {error}"),
        })?;
        self.fibers.push(fiber);
        Ok(number)
    }

    /// Runs a fiber until its lane waits or it has none.
    ///
    /// # Safety
    /// From the time when an idle fiber is resumed with its assignment until it is idle again, the block of the assignment
    /// stays where it is, and no `&mut` to it is made.
    #[inline(always)]
    pub(super) unsafe fn resume(&mut self, number: u32) -> Pause {
        panics::set_in_lane(true);
        let result = self.fibers[number as usize].resume(());
        panics::set_in_lane(false);
        let pause = result.as_yield().unwrap_or(Pause::Idle);
        if pause == Pause::Idle {
            self.idle.push(number);
        }
        pause
    }
}

impl Drop for Fibers {
    fn drop(&mut self) {
        self.inbox.set(None);
        if self.idle.len() == self.fibers.len() {
            let ended = self.fibers.drain(..).map(|mut fiber| {
                // Without an assignment an idle fiber ends.
                fiber.resume(());
                fiber.into_stack()
            });
            stacks::give_back(ended, self.stack_bytes);
        }
        // Else a worker panicked. Fibers that are dropped unwind what is on them.
    }
}
