//! The end of a lane that uses up its stack: an error of its launch.
//!
//! Such a lane meets the guard page at the end of its stack. On Linux with glibc, on x86-64 and AArch64, a handler of that
//! fault gives the thread back to the worker, which reports the lane; all other faults are left to the handler that was
//! there before, as the one of the standard library, which reports overflows of threads. Elsewhere the process ends with
//! the fault.
//!
//! # What becomes of the lane
//!
//! It stops where it is, as a lane does that waits, and is never resumed. It cannot be unwound as other lanes are, since
//! the compiler counts on unwinding at calls only. So what its frames own is leaked, as by `mem::forget`, and what they
//! hold stays held, such as a mutex that it has locked. Its stack is lost too, and neither unmapped nor used again:
//! references to what is on it, wherever they are, stay valid.
//!
//! Some frames must not be left for good:
//! - those outside the program's own code, as of the C library: the allocator may be in the midst of changing its heap;
//! - those of a lane that unwinds, which its thread counts as panicking;
//! - those of the emulator that others wait for, see [`to_the_end`](super::to_the_end).
//!
//! An allocator that is linked into the program, as mimalloc or jemalloc, cannot be told from the program's own code. If there is
//! one, which a probe finds out, all frames may be its, and none is left. One that takes its memory from the C library block by
//! block is not found: what it holds stays held.
//!
//! For these, but for the emulator's, a stack has a reserve, between its guard page and its limit, that is closed until they need it. The
//! lanes of a failed launch need it too, to unwind from wherever they wait. If the reserve does not do, the process ends.
//!
//! One kind of frame cannot be told: a function of the lane that lends to others what does not outlive the launch, and
//! takes it back when it returns, as `thread::scope` does with its threads. A kernel that is also compiled for a GPU has
//! none.

#[cfg(all(
    target_os = "linux",
    target_env = "gnu",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    not(any(miri, emulator_thread_fibers))
))]
#[path = "overflow/linux.rs"]
mod system;

#[cfg(not(all(
    target_os = "linux",
    target_env = "gnu",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    not(any(miri, emulator_thread_fibers))
)))]
mod system {
    /// None are seen without a handler.
    pub(in crate::emulator) enum Registers {}

    impl Registers {
        pub(in crate::emulator) fn stack_pointer(&self) -> usize {
            match *self {}
        }

        #[allow(dead_code, reason = "not for switches by corosensei")]
        pub(in crate::emulator) fn jump(&mut self, _instruction: usize, _stack_pointer: usize) {
            match *self {}
        }

        #[allow(dead_code, reason = "for switches by corosensei alone")]
        pub(in crate::emulator) fn call(&mut self, _to: corosensei::trap::TrapHandlerRegs) {
            match *self {}
        }
    }

    #[cfg_attr(any(miri, emulator_thread_fibers), allow(dead_code, reason = "threads have stacks of their own"))]
    pub(in crate::emulator) const RESERVE: usize = 0;

    pub(in crate::emulator) fn close_reserve(_end: usize) -> std::io::Result<()> {
        Ok(())
    }

    pub(in crate::emulator) fn open_reserve(_end: usize, _fault: usize) -> bool {
        false
    }

    pub(in crate::emulator) fn is_beyond_limit(_end: usize, _address: usize) -> bool {
        false
    }

    pub(in crate::emulator) fn install_handler() {}
}

#[cfg_attr(any(miri, emulator_thread_fibers), allow(unused_imports, reason = "threads have stacks of their own"))]
pub(in crate::emulator) use system::RESERVE;
pub(in crate::emulator) use system::{Registers, close_reserve, install_handler, is_beyond_limit, open_reserve};
