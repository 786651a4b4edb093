//! Switches by corosensei, which knows many processors and systems: between a lane and its worker.

use std::cell::{Cell, RefCell};
use std::hint::black_box;
use std::io;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::ptr::null;
use std::rc::Rc;

use corosensei::stack::Stack;
use corosensei::trap::CoroutineTrapHandler;
use corosensei::{Coroutine, CoroutineResult, Yielder};

use super::{Assignment, Pause};
use crate::emulator::fiber::overflow::Registers;
use crate::emulator::fiber::stacks::LaneStack;

/// Lanes switch to their worker, which resumes the next.
pub(in crate::emulator) const DIRECT: bool = false;

type LaneYielder = Yielder<(), Pause>;

/// Bytes at a stack's upper end that lanes leave alone, for [`Fiber::abandon`].
const MARGIN: usize = 2048;

/// What the fiber that is resumed next is to run, if it is idle; with nothing in it, the fiber ends.
pub(super) type Home = Cell<Option<Assignment>>;

/// What a lane needs to get off its fiber.
pub(in crate::emulator) struct Exit<'f> {
    number: u32,
    yielder: &'f LaneYielder,
}

/// What a lane needs to go on: its fiber, and where that was suspended.
pub(in crate::emulator) struct FiberContext {
    /// The fiber.
    number: Cell<u32>,
    yielder: Cell<*const LaneYielder>,
}

impl FiberContext {
    pub(in crate::emulator) fn new() -> Self {
        Self { number: Cell::new(0), yielder: Cell::new(null()) }
    }

    /// The number of the lane's fiber.
    pub(in crate::emulator) fn fiber(&self) -> u32 {
        self.number.get()
    }

    /// Makes this the context of a lane that starts.
    #[inline(always)]
    pub(in crate::emulator) fn take(&self, exit: &Exit<'_>) {
        self.number.set(exit.number);
        self.yielder.set(exit.yielder);
    }

    /// Suspends the lane that calls this, whose context this is, and goes on with the worker; `next` is `None`.
    ///
    /// # Safety
    /// None, but with other switches.
    #[inline(always)]
    pub(in crate::emulator) unsafe fn suspend(&self, next: Option<&FiberContext>) {
        debug_assert!(next.is_none());
        // SAFETY: `take`, further up on this very stack, set it to a reference that is valid while the lane runs.
        let yielder = unsafe { &*self.yielder.get() };
        yielder.suspend(Pause::Waiting);
    }
}

/// Runs what is assigned, with a margin above.
#[inline(never)]
fn run_below_margin(home: &Home, number: u32, yielder: &LaneYielder) {
    let margin = MaybeUninit::<[u8; MARGIN]>::uninit();
    while let Some(assignment) = home.take() {
        // SAFETY: who calls `Fiber::start` sees to it.
        unsafe { assignment.run(Exit { number, yielder }) };
        yielder.suspend(Pause::Idle(number));
    }
    black_box(&margin);
}

pub(super) struct Fiber {
    coroutine: RefCell<Coroutine<(), Pause, Pause, LaneStack>>,
    number: u32,
    stack_range: Range<usize>,
    trap_handler: CoroutineTrapHandler<Pause>,
}

impl Fiber {
    pub(super) fn new(number: u32, stack: LaneStack, home: &Rc<Home>) -> io::Result<Self> {
        let home = Rc::clone(home);
        let stack_range = stack.limit().get()..stack.base().get();
        let coroutine = Coroutine::with_stack(stack, move |yielder: &LaneYielder, ()| {
            run_below_margin(&home, number, yielder);
            Pause::Idle(number)
        });
        let trap_handler = coroutine.trap_handler();
        Ok(Self { coroutine: RefCell::new(coroutine), number, stack_range, trap_handler })
    }

    /// Runs a lane on this fiber, which is idle, until it waits or the fiber has none.
    ///
    /// # Safety
    /// As [`Assignment::run`].
    #[inline(always)]
    pub(super) unsafe fn start(&self, home: &Home, assignment: Assignment) -> Pause {
        home.set(Some(assignment));
        self.go_on()
    }

    /// Resumes the lane of `context`; else as [`start`](Self::start).
    ///
    /// # Safety
    /// None, but with other switches.
    #[inline(always)]
    pub(super) unsafe fn resume(fibers: &[Self], _home: &Home, context: &FiberContext) -> Pause {
        fibers[context.number.get() as usize].go_on()
    }

    #[inline(always)]
    fn go_on(&self) -> Pause {
        match self.coroutine.borrow_mut().resume(()) {
            CoroutineResult::Yield(pause) | CoroutineResult::Return(pause) => pause,
        }
    }

    /// The addresses of the stack, with its guard page.
    pub(super) fn stack_range(&self) -> Range<usize> {
        self.stack_range.clone()
    }

    /// In a signal handler: lets the thread leave this fiber, on which it runs, for its worker.
    ///
    /// # Safety
    /// `registers` are what the thread goes on with, and what it did on the fiber may stop there for good.
    pub(super) unsafe fn abandon(&self, _home: &Home, registers: &mut Registers) {
        let number = self.number;
        // SAFETY: the coroutine runs. The function and its frames, which switch to the worker and no more, overwrite the
        // stack's upper end: there is what never goes on, and the margin, below which is all that somebody may refer to.
        registers.call(unsafe { self.trap_handler.setup_trap_handler(move || Pause::Overflowed(number)) });
    }

    /// The stack of this fiber, which is idle.
    pub(super) fn end(self, home: &Home) -> LaneStack {
        home.set(None);
        let mut coroutine = self.coroutine.into_inner();
        coroutine.resume(());
        coroutine.into_stack()
    }
}
