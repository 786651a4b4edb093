//! Switches by corosensei, which knows many processors and systems: between a lane and its worker.

use std::cell::Cell;
use std::io;
use std::ptr::null;
use std::rc::Rc;

use corosensei::{Coroutine, Yielder};

use super::{Assignment, Pause};
use crate::emulator::stacks::LaneStack;

/// Lanes switch to their worker, which resumes the next.
pub(in crate::emulator) const DIRECT: bool = false;

type LaneYielder = Yielder<(), Pause>;

/// What the fiber that is resumed next is to run, if it is idle; with nothing in it, the fiber ends.
pub(super) type Home = Cell<Option<Assignment>>;

/// What a lane needs to get off its fiber.
pub(in crate::emulator) struct Exit<'f> {
    number: u32,
    yielder: &'f LaneYielder,
}

/// Where a lane waits.
pub(in crate::emulator) struct Seat {
    /// The fiber.
    number: Cell<u32>,
    yielder: Cell<*const LaneYielder>,
}

impl Seat {
    pub(in crate::emulator) fn new() -> Self {
        Self { number: Cell::new(0), yielder: Cell::new(null()) }
    }

    /// Makes this the seat of a lane that starts.
    #[inline(always)]
    pub(in crate::emulator) fn take(&self, exit: &Exit<'_>) {
        self.number.set(exit.number);
        self.yielder.set(exit.yielder);
    }

    /// Suspends the lane that calls this, which has this seat, and goes on with the worker; `next` is `None`.
    ///
    /// # Safety
    /// None, but with other switches.
    #[inline(always)]
    pub(in crate::emulator) unsafe fn suspend(&self, next: Option<&Seat>) {
        debug_assert!(next.is_none());
        // SAFETY: `take`, further up on this very stack, set it to a reference that is valid while the lane runs.
        let yielder = unsafe { &*self.yielder.get() };
        yielder.suspend(Pause::Waiting);
    }
}

pub(super) struct Fiber {
    coroutine: Coroutine<(), Pause, (), LaneStack>,
    number: u32,
}

impl Fiber {
    pub(super) fn new(number: u32, stack: LaneStack, home: &Rc<Home>) -> io::Result<Self> {
        let home = Rc::clone(home);
        let main = move |yielder: &LaneYielder, ()| {
            while let Some(assignment) = home.take() {
                // SAFETY: who calls `Fiber::start` sees to it.
                unsafe { assignment.run(Exit { number, yielder }) };
                yielder.suspend(Pause::Idle);
            }
        };
        Ok(Self { coroutine: Coroutine::with_stack(stack, main), number })
    }

    /// Runs a lane on this fiber, which is idle, until it waits or the fiber has none; then the fiber's number is returned.
    ///
    /// # Safety
    /// As [`Assignment::run`].
    #[inline(always)]
    pub(super) unsafe fn start(&mut self, home: &Home, assignment: Assignment) -> Option<u32> {
        home.set(Some(assignment));
        self.go_on()
    }

    /// Resumes the lane on `seat`; else as [`start`](Self::start).
    ///
    /// # Safety
    /// None, but with other switches.
    #[inline(always)]
    pub(super) unsafe fn resume(fibers: &mut [Self], _home: &Home, seat: &Seat) -> Option<u32> {
        fibers[seat.number.get() as usize].go_on()
    }

    #[inline(always)]
    fn go_on(&mut self) -> Option<u32> {
        (self.coroutine.resume(()).as_yield() == Some(Pause::Idle)).then_some(self.number)
    }

    /// The stack of this fiber, which is idle.
    pub(super) fn end(mut self, home: &Home) -> LaneStack {
        home.set(None);
        self.coroutine.resume(());
        self.coroutine.into_stack()
    }
}
