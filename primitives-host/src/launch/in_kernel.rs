//! Calls from inside a kernel. On the emulator, a kernel is a function of the host, which may launch and copy. A call that would wait for
//! the kernel that makes it is an error.

use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex};

use crate::memory::allocation::Allocation;
use crate::memory::uses::{Mode, Uses};
use crate::{Error, Result};

thread_local! {
    /// The launch whose lanes the thread runs. If lanes launch other kernels, it is the innermost launch.
    static RUNNING: Cell<Option<Arc<Running>>> = const { Cell::new(None) };
    /// Whether the thread is in a closure for whose time a call keeps something on the thread. Lanes that the thread runs begin outside.
    static IN_CLOSURE: Cell<bool> = const { Cell::new(false) };
}

/// A launch on the emulator, and the locks that it holds until it ends. Streams and allocations are identified by the addresses of their
/// locks.
pub struct Running {
    kernel: Box<str>,
    stream: usize,
    allocations: Box<[(usize, Mode)]>,
    /// The launch from whose lane this one was launched.
    outer: Option<Arc<Running>>,
}

/// What a lane may do with an allocation.
pub(crate) enum Access {
    /// The lane may lock it.
    Lock,
    /// The lane may read it without a lock, because the launch around the call has locked it for reading.
    Covered,
}

/// Notes that the calling thread runs lanes of a launch, until this is dropped.
pub struct Entered {
    before: Option<Arc<Running>>,
    /// The thread that enters is the one that leaves.
    _of_thread: PhantomData<*const ()>,
}

impl Drop for Entered {
    fn drop(&mut self) {
        let before = self.before.take();
        // A thread that is ending may have destroyed the variable.
        let _ = RUNNING.try_with(|running| running.set(before));
    }
}

/// The launch whose lanes the calling thread runs.
pub fn running() -> Option<Arc<Running>> {
    // The value is taken out, and not borrowed: a lane that overflows its stack here would never end a borrow.
    let copy = RUNNING.try_with(|running| {
        let innermost = running.take();
        let copy = innermost.clone();
        running.set(innermost);
        copy
    });
    copy.ok().flatten()
}

/// Notes that the calling thread runs lanes of a launch that another thread has started.
///
/// ```compile_fail
/// // A launch that has ended holds no memory. So this call needs `unsafe`.
/// let _entered = primitives_host::storage::resume(primitives_host::storage::running());
/// ```
///
/// # Safety
/// The launch ends after the returned value is dropped. Of several such values of a thread, the last one is dropped first.
pub unsafe fn resume(launch: Option<Arc<Running>>) -> Entered {
    set_running(launch)
}

fn set_running(launch: Option<Arc<Running>>) -> Entered {
    let before = RUNNING.try_with(|running| running.replace(launch)).ok().flatten();
    Entered { before, _of_thread: PhantomData }
}

/// Notes that the calling thread runs a launch of `kernel`, which holds the locks of its stream and of its allocations. The caller drops
/// what this returns before it gives back the locks.
pub(crate) fn enter(kernel: &str, stream: &Mutex<()>, uses: &Uses) -> Entered {
    enter_on(kernel, std::ptr::from_ref(stream).addr(), uses)
}

/// As [`enter`], for a function of the host that holds no lock of a stream.
pub(crate) fn enter_on_host(call: &str, uses: &Uses) -> Entered {
    enter_on(call, 0, uses)
}

fn enter_on(kernel: &str, stream: usize, uses: &Uses) -> Entered {
    let allocations = uses.iter().map(|(allocation, mode)| (address(allocation), mode)).collect();
    set_running(Some(Arc::new(Running { kernel: kernel.into(), stream, allocations, outer: running() })))
}

fn address(allocation: &Allocation) -> usize {
    std::ptr::from_ref(allocation).addr()
}

/// Notes whether the calling thread is in a closure for whose time a call holds memory or captures, until this is dropped.
///
/// What the call keeps belongs to the thread, and a thread runs many lanes. So a lane must not wait for others in such a closure: they
/// would find memory locked by their own thread, or take the closure's capture for their own.
pub(crate) struct InClosure {
    before: bool,
}

impl InClosure {
    /// The thread enters such a closure.
    pub(crate) fn enter() -> Self {
        Self { before: IN_CLOSURE.replace(true) }
    }

    /// The thread begins to run lanes.
    pub(crate) fn outside() -> Self {
        Self { before: IN_CLOSURE.replace(false) }
    }
}

impl Drop for InClosure {
    fn drop(&mut self) {
        IN_CLOSURE.set(self.before);
    }
}

/// Whether the lane that calls this is in a closure in which it must not wait for others: see [`InClosure`].
#[inline(always)]
pub(crate) fn is_in_closure() -> bool {
    IN_CLOSURE.get()
}

impl Running {
    fn waits_for_itself(&self, what: &'static str) -> Error {
        Error::InKernel { kernel: self.kernel.to_string(), what }
    }
}

/// The launches whose lanes make the call, innermost first.
fn launches() -> impl Iterator<Item = Arc<Running>> {
    std::iter::successors(running(), |launch| launch.outer.clone())
}

/// Refuses to wait for a stream of the emulator if the kernel that makes the call runs on it.
pub(crate) fn check_stream(stream: &Mutex<()>) -> Result<()> {
    let stream = std::ptr::from_ref(stream).addr();
    match launches().find(|launch| launch.stream == stream) {
        Some(launch) => Err(launch.waits_for_itself("the stream that it runs on")),
        None => Ok(()),
    }
}

/// How a lane may access an allocation. Returns an error if it would wait for the kernel that makes the call.
pub(crate) fn access(allocation: &Allocation, mode: Mode) -> Result<Access> {
    let address = address(allocation);
    for launch in launches() {
        match launch.allocations.iter().find(|(held, _)| *held == address) {
            None => {}
            Some((_, Mode::Read)) if mode == Mode::Read => return Ok(Access::Covered),
            Some(_) => return Err(launch.waits_for_itself("a buffer that it uses")),
        }
    }
    Ok(Access::Lock)
}
