//! Fibers: stacks on which lanes run, one after another.
//!
//! A fiber runs a lane to its end and then, without a switch, the block's next lane that has yet to start: a kernel that
//! never waits needs one fiber. A lane that waits keeps its fiber, and the worker takes another one for the next lane.

use std::cell::Cell;
use std::io;
use std::ptr::NonNull;
use std::rc::Rc;

use corosensei::{Coroutine, CoroutineResult, Yielder};

use super::block::BlockState;
use super::stacks::LaneStack;
use super::{panics, stacks};

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
pub(super) type Inbox = Cell<Option<Assignment>>;

/// A lane of a block, by its rank.
#[derive(Clone, Copy)]
pub(super) struct Assignment {
    /// The lifetime is erased, since fibers have a type of their own; see [`Fiber::resume`].
    block: NonNull<BlockState<'static>>,
    rank: u32,
}

impl Assignment {
    pub(super) fn new(block: &BlockState<'_>, rank: u32) -> Self {
        Self { block: NonNull::from(block).cast(), rank }
    }
}

pub(super) struct Fiber(Coroutine<(), Pause, (), LaneStack>);

impl Fiber {
    /// An idle fiber that its worker knows by `number`.
    pub(super) fn new(number: u32, stack_bytes: usize, inbox: Rc<Inbox>) -> io::Result<Self> {
        let stack = stacks::take(stack_bytes)?;
        let main = move |yielder: &LaneYielder, ()| {
            while let Some(Assignment { block, mut rank }) = inbox.take() {
                // SAFETY: who resumes a fiber keeps the block of its assignment alive until the fiber is idle again. The
                // block is seen through shared references only.
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
        Ok(Self(Coroutine::with_stack(stack, main)))
    }

    /// Runs the fiber until its lane waits or it has none; a fiber that ends counts as idle.
    ///
    /// # Safety
    /// From the time when an idle fiber is resumed with an assignment in its inbox until it is idle again, the block of
    /// the assignment stays where it is, and no `&mut` to it is made.
    #[inline(always)]
    pub(super) unsafe fn resume(&mut self) -> Pause {
        panics::set_in_lane(true);
        let result = self.0.resume(());
        panics::set_in_lane(false);
        match result {
            CoroutineResult::Yield(pause) => pause,
            CoroutineResult::Return(()) => Pause::Idle,
        }
    }

    /// The stack of an idle fiber, whose inbox is empty.
    pub(super) fn into_stack(mut self) -> LaneStack {
        // SAFETY: without an assignment.
        unsafe { self.resume() };
        self.0.into_stack()
    }
}
