//! Switches of our own, for x86-64 and the System V ABI: straight from lane to lane, and by jumps, since a processor
//! foretells a jump by where it stands, and a return by the last call, which another lane made.
//!
//! An idle fiber has nothing on its stack. It is started anew for each assignment.

use std::arch::{asm, naked_asm};
use std::cell::Cell;
use std::io;
use std::ops::Range;
use std::ptr::{null, null_mut, with_exposed_provenance_mut};
use std::rc::Rc;

use corosensei::stack::Stack;

use super::{Assignment, Pause};
use crate::emulator::fiber::overflow::Registers;
use crate::emulator::fiber::stacks::LaneStack;

/// Lanes switch to each other.
pub(in crate::emulator) const DIRECT: bool = true;

/// The lowest address in use on a suspended stack. What is there is told at [`switch`].
type Top = *mut usize;

/// Suspends the caller, which notes its stack at `from`, and goes on with what is suspended on the stack `to`. Returns when
/// something switches to the stack at `from`.
///
/// A suspended stack holds, from its lowest address: where to go on, `rbx`, `rbp`. All other registers that a function
/// keeps are declared as overwritten, so the compiler saves those that it uses. The control bits of `mxcsr` and of the x87
/// are not switched: they are the same everywhere, since Rust code must leave them as they are.
///
/// # Safety
/// `from` can be written. `to` is the stack of something suspended on this thread, by this function or by
/// [`Fiber::start`], that has not gone on since.
#[inline(always)]
unsafe fn switch(from: *const Cell<Top>, to: Top) {
    // SAFETY: pushes are allowed, as the block has no option `nostack`. At label 2 the stack pointer is what it was there
    // when this stack was suspended, so all that lies above is unchanged. `rbx`, `rbp` and the stack pointer are restored;
    // all other registers are outputs. Nothing unwinds out of the block.
    unsafe {
        asm!(
            "push rbp",
            "push rbx",
            "lea rax, [rip + 2f]",
            "push rax",
            "mov [rdi], rsp",
            "mov rsp, rsi",
            "pop rax",
            "jmp rax",
            "2:",
            "pop rbx",
            "pop rbp",
            in("rdi") from,
            in("rsi") to,
            lateout("r12") _, lateout("r13") _, lateout("r14") _, lateout("r15") _,
            clobber_abi("sysv64"),
        );
    }
}

/// Where a fiber begins, with the worker's home on its stack and then 0. As the return address of `main`, 0 ends
/// backtraces, by frame pointers too.
///
/// # Safety
/// For [`switch`] to go on with, on a stack that holds these words.
// SAFETY: the assembly neither returns nor uses what it was not given.
#[unsafe(naked)]
unsafe extern "sysv64" fn enter() {
    naked_asm!("pop rdi", "xor ebp, ebp", "jmp {main}", main = sym main)
}

/// Runs what the worker assigned, and leaves the fiber for good. A panic that gets here aborts.
///
/// # Safety
/// `home` is that of the fibers, and the thread is on the one that is assigned.
unsafe extern "sysv64" fn main(home: *const Home) -> ! {
    // SAFETY: the worker's, which outlives what runs on its fibers; it is seen through shared references only.
    let home = unsafe { &*home };
    if let Some((assignment, number)) = home.assigned.take() {
        // SAFETY: who calls `Fiber::start` sees to it.
        unsafe { assignment.run(Exit { home, number }) };
        home.pause.set(Pause::Idle(number));
    }
    let ended = Cell::new(null_mut());
    // SAFETY: while a fiber runs, its worker is suspended. Nothing on this stack has a destructor.
    unsafe { switch(&ended, home.top.get()) };
    unreachable!("an idle fiber is not resumed");
}

/// What a worker shares with its fibers.
pub(super) struct Home {
    /// The worker's stack, while a fiber runs.
    top: Cell<Top>,
    /// What a fiber that is being started runs, and its number.
    assigned: Cell<Option<(Assignment, u32)>>,
    /// Why the worker goes on.
    pause: Cell<Pause>,
}

impl Default for Home {
    fn default() -> Self {
        Self { top: Cell::new(null_mut()), assigned: Cell::new(None), pause: Cell::new(Pause::Waiting) }
    }
}

/// What a lane needs to get off its fiber.
pub(in crate::emulator) struct Exit<'f> {
    home: &'f Home,
    number: u32,
}

/// What a lane needs to go on: its fiber, and where that was suspended.
pub(in crate::emulator) struct FiberContext {
    top: Cell<Top>,
    home: Cell<*const Home>,
    /// The fiber.
    number: Cell<u32>,
}

impl FiberContext {
    pub(in crate::emulator) fn new() -> Self {
        Self { top: Cell::new(null_mut()), home: Cell::new(null()), number: Cell::new(0) }
    }

    /// The number of the lane's fiber.
    pub(in crate::emulator) fn fiber(&self) -> u32 {
        self.number.get()
    }

    /// Makes this the context of a lane that starts.
    #[inline(always)]
    pub(in crate::emulator) fn take(&self, exit: &Exit<'_>) {
        self.home.set(exit.home);
        self.number.set(exit.number);
    }

    /// Suspends the lane that calls this, whose context this is, and goes on with the lane of `next`, or with the worker.
    ///
    /// # Safety
    /// The lane of `next` is another one, of the same block, and waits.
    #[inline(always)]
    pub(in crate::emulator) unsafe fn suspend(&self, next: Option<&FiberContext>) {
        let to = match next {
            Some(next) => next.top.get(),
            // SAFETY: the home of the worker on whose fibers the lane runs, which outlives what runs on them.
            None => unsafe { (*self.home.get()).top.get() },
        };
        // SAFETY: a lane that waits, or the worker, which is suspended while a lane runs.
        unsafe { switch(&self.top, to) }
    }
}

pub(super) struct Fiber {
    stack: LaneStack,
    number: u32,
}

impl Fiber {
    pub(super) fn new(number: u32, stack: LaneStack, _home: &Rc<Home>) -> io::Result<Self> {
        Ok(Self { stack, number })
    }

    /// Runs a lane on this fiber, which is idle, until the worker is needed.
    ///
    /// # Safety
    /// As [`Assignment::run`]; and `home` stays until the fiber is idle again.
    #[inline(always)]
    pub(super) unsafe fn start(&self, home: &Home, assignment: Assignment) -> Pause {
        home.assigned.set(Some((assignment, self.number)));
        let enter = enter as unsafe extern "sysv64" fn() as usize;
        let words = [enter, std::ptr::from_ref(home).expose_provenance(), 0];
        // The base is aligned to 16 bytes, and so `main` finds its stack as after a call.
        let top: Top = with_exposed_provenance_mut(self.stack.base().get() - size_of_val(&words));
        // SAFETY: the upper end of a stack on which there is nothing.
        unsafe { top.cast::<[usize; 3]>().write(words) };
        // SAFETY: a stack as `switch` and then `enter` find it.
        unsafe { switch(&home.top, top) };
        home.pause.replace(Pause::Waiting)
    }

    /// Resumes the lane of `context`; else as [`start`](Self::start).
    ///
    /// # Safety
    /// The lane waits, on a fiber that was started with this home.
    #[inline(always)]
    pub(super) unsafe fn resume(_fibers: &[Self], home: &Home, context: &FiberContext) -> Pause {
        // SAFETY: the lane waits.
        unsafe { switch(&home.top, context.top.get()) };
        home.pause.replace(Pause::Waiting)
    }

    /// The addresses of the stack, with its guard page.
    pub(super) fn stack_range(&self) -> Range<usize> {
        self.stack.limit().get()..self.stack.base().get()
    }

    /// In a signal handler: lets the thread leave this fiber, on which it runs, for its worker.
    ///
    /// # Safety
    /// `registers` are what the thread goes on with, and what it did on the fiber may stop there for good.
    pub(super) unsafe fn abandon(&self, home: &Home, registers: &mut Registers) {
        home.pause.set(Pause::Overflowed(self.number));
        let top = home.top.get();
        // SAFETY: while a fiber runs, its worker is suspended, with the address to go on at on top of its stack. This does
        // what the end of `switch` does.
        registers.jump(unsafe { top.read() }, top.wrapping_add(1).addr());
    }

    /// The stack of this fiber, which is idle.
    pub(super) fn end(self, _home: &Home) -> LaneStack {
        self.stack
    }
}
