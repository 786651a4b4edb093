//! Switches by threads, for Miri, which runs no assembly: each fiber is a thread, and one at a time goes on.
//!
//! `--cfg emulator_thread_fibers` tests them without Miri.

use std::cell::Cell;
use std::io;
use std::ops::Range;
use std::ptr::null;
use std::rc::Rc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Builder, JoinHandle};

use super::{Assignment, Pause};
use crate::emulator::fiber::overflow::Registers;
use crate::emulator::fiber::stacks::LaneStack;
use crate::launch::in_kernel;

/// Lanes switch to their worker, which resumes the next.
pub(in crate::emulator) const DIRECT: bool = false;

/// Fibers and workers tell each other all there is.
pub(super) type Home = ();

/// What a worker tells a fiber that it lets go on.
enum Order {
    /// To one that is idle.
    Run(Assignment),
    /// To one whose lane waits.
    GoOn,
}

// SAFETY: the worker waits while the fiber goes on, and the other way round; a message orders what the one did before what
// the other does. So it is as if one thread did it all, apart from thread-local values, which lanes do not rely on.
unsafe impl Send for Order {}

/// A fiber's end of its channels.
struct Link {
    orders: Receiver<Order>,
    pauses: Sender<Pause>,
}

/// What a lane needs to get off its fiber.
pub(in crate::emulator) struct Exit<'f> {
    number: u32,
    link: &'f Link,
}

/// What a lane needs to go on: its fiber, and where that was suspended.
pub(in crate::emulator) struct FiberContext {
    /// The fiber.
    number: Cell<u32>,
    link: Cell<*const Link>,
}

impl FiberContext {
    pub(in crate::emulator) fn new() -> Self {
        Self { number: Cell::new(0), link: Cell::new(null()) }
    }

    /// The number of the lane's fiber.
    pub(in crate::emulator) fn fiber(&self) -> u32 {
        self.number.get()
    }

    /// Makes this the context of a lane that starts.
    pub(in crate::emulator) fn take(&self, exit: &Exit<'_>) {
        self.number.set(exit.number);
        self.link.set(exit.link);
    }

    /// Suspends the lane that calls this, whose context this is, and goes on with the worker; `next` is `None`.
    ///
    /// # Safety
    /// None, but with other switches.
    pub(in crate::emulator) unsafe fn suspend(&self, next: Option<&FiberContext>) {
        debug_assert!(next.is_none());
        // SAFETY: `take`, further up on this very stack, set it to a reference that is valid while the lane runs.
        let link = unsafe { &*self.link.get() };
        link.pauses.send(Pause::Waiting).expect("the worker waits");
        link.orders.recv().expect("the worker keeps fibers whose lanes wait");
    }
}

pub(super) struct Fiber {
    stack: LaneStack,
    orders: Sender<Order>,
    pauses: Receiver<Pause>,
    thread: JoinHandle<()>,
}

impl Fiber {
    pub(super) fn new(number: u32, stack: LaneStack, _home: &Rc<Home>) -> io::Result<Self> {
        let (orders, fiber_orders) = channel();
        let (fiber_pauses, pauses) = channel();
        let link = Link { orders: fiber_orders, pauses: fiber_pauses };
        let running = in_kernel::running();
        let thread = Builder::new().stack_size(stack.bytes()).spawn(move || {
            super::be_lane();
            // SAFETY: fibers are of one launch, whose worker waits for the ends of their threads.
            let _running = unsafe { in_kernel::resume(running) };
            while let Ok(Order::Run(assignment)) = link.orders.recv() {
                // SAFETY: who calls `Fiber::start` sees to it.
                unsafe { assignment.run(Exit { number, link: &link }) };
                link.pauses.send(Pause::Idle(number)).expect("the worker waits");
            }
        })?;
        Ok(Self { stack, orders, pauses, thread })
    }

    /// Runs a lane on this fiber, which is idle, until it waits or the fiber has none.
    ///
    /// # Safety
    /// As [`Assignment::run`].
    pub(super) unsafe fn start(&self, _home: &Home, assignment: Assignment) -> Pause {
        self.go_on(Order::Run(assignment))
    }

    /// Resumes the lane of `context`; else as [`start`](Self::start).
    ///
    /// # Safety
    /// None, but with other switches.
    pub(super) unsafe fn resume(fibers: &[Self], _home: &Home, context: &FiberContext) -> Pause {
        fibers[context.number.get() as usize].go_on(Order::GoOn)
    }

    fn go_on(&self, order: Order) -> Pause {
        self.orders.send(order).expect("a fiber ends after its worker");
        self.pauses.recv().expect("a fiber ends after its worker")
    }

    /// None that a handler of faults may look at.
    pub(super) fn stack_range(&self) -> Range<usize> {
        0..0
    }

    /// Never called.
    ///
    /// # Safety
    /// None, but with other switches.
    pub(super) unsafe fn abandon(&self, _home: &Home, registers: &mut Registers) {
        registers.jump(0, 0);
    }

    /// The stack of this fiber, which is idle.
    pub(super) fn end(self, _home: &Home) -> LaneStack {
        drop(self.orders);
        self.thread.join().expect("lanes catch their panics");
        self.stack
    }
}
