//! The emulator: runs kernels on the CPU as a GPU does, with blocks, warps, lanes, barriers and shared memory.
//!
//! Each lane is a fiber with a stack of its own. The lanes of a block run one after another on one OS thread and are
//! switched where they wait: at barriers, in shuffles and votes, in spin loops. A block whose lanes wait for memory to
//! change stays resident while other blocks start, so that blocks may wait for each other.
//!
//! | file | |
//! |---|---|
//! | `device.rs`, `allocations.rs` | one of several devices, and where their memory lies |
//! | `launch.rs` | what the workers of a launch share |
//! | `worker.rs` | an OS thread that runs blocks: which block, which lane |
//! | `block.rs` | a resident block, and the operations that its lanes call |
//! | `fiber/` | what lanes run on, how they switch, and the end of a lane that uses up its stack |
//! | `warp.rs` | shuffles, votes, matches, warp reductions |
//! | `order.rs` | the order of blocks and the random choices of a seed |
//! | `memory/` | checked launches: each access, what is remembered of each byte, copies that are under way, what happens before what |
//! | `watch.rs` | when a launch is dead |
//! | `panics.rs`, `report.rs` | what went wrong, as errors |
//!
//! # What a checked launch remembers
//!
//! Who wrote each granule of memory last, and who has accessed it since: 28 bytes a granule, which is as large as a page's
//! accesses allow, 1 to 16 bytes; until the launch ends, or for shared memory the block. Measured
//! (`cargo bench --bench emulator`, `benches/results/emulator.json`), a copy of floats takes 13 times as long as unchecked on
//! one core, a reduction, which only reads, 1.3 times, and an exchange at barriers 1.8 times.
//!
//! # When a launch fails
//!
//! The first fault ends a launch: no lane goes on. Lanes that wait are unwound, so that what they own is dropped, as after
//! a panic, except a lane that has used up its stack. A program built with `panic=abort` cannot unwind, and ends.

pub(crate) mod allocations;
mod block;
mod device;
mod fiber;
mod launch;
mod memory;
mod order;
mod panics;
mod report;
mod warp;
mod watch;
mod worker;

// Thousands of lanes, each a thread in Miri, are too many for it. It runs the tests of the suite that are for such tools.
#[cfg(all(test, not(miri)))]
mod tests;

use std::num::NonZeroUsize;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use primitives_gpu::simt::Place;
use primitives_gpu::view::SharedParam;
use primitives_gpu::{Block, Dim3};

use crate::error::Error;
use crate::launch::in_kernel;
use crate::launch::kernel::EMULATOR_LIMITS;
use crate::memory::written::Written;
pub(crate) use device::EmulatedDevice;
use launch::LaunchState;
use worker::Worker;

/// Threads in the largest block, as on a GPU.
pub(crate) const MAX_BLOCK_THREADS: u32 = 1024;

/// How errors call the emulator.
const DEVICE: &str = "the emulator";

/// What to run.
pub(crate) struct Launch<'a> {
    /// The kernel's name, for errors.
    pub(crate) kernel: &'a str,
    /// Where the kernel begins, for errors without a place.
    pub(crate) place: Place,
    /// Extents of the grid, in blocks.
    pub(crate) grid: Dim3,
    /// Extents of a block, in threads.
    pub(crate) block: Dim3,
    /// The number of the device that it runs on.
    pub(crate) device: usize,
    /// Bytes of shared memory a block.
    pub(crate) shared_bytes: usize,
    /// The kernel's parameters there, for errors.
    pub(crate) shared_params: &'static [SharedParam],
    /// The allocations that the kernel uses, by ascending address.
    pub(crate) regions: Vec<Region>,
    /// The kernel's arguments in them, for errors.
    pub(crate) arguments: Vec<Argument>,
}

/// An allocation that a launch uses.
#[derive(Clone)]
pub(crate) struct Region {
    pub(crate) address: usize,
    /// In bytes.
    pub(crate) len: usize,
    pub(crate) written: Arc<Written>,
    /// Whether the launch may write it.
    pub(crate) writable: bool,
}

impl Region {
    #[inline(always)]
    fn contains(&self, address: usize) -> bool {
        address.wrapping_sub(self.address) < self.len
    }
}

/// A kernel's argument that is a view.
#[derive(Clone)]
pub(crate) struct Argument {
    pub(crate) name: &'static str,
    pub(crate) address: usize,
    /// Elements.
    pub(crate) len: usize,
    /// Bytes of an element.
    pub(crate) size: usize,
}

/// How the emulator runs kernels.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct EmulatorOptions {
    /// Whether launches run their blocks on one OS thread, in a repeatable order, and watch each access. It is the default in builds with
    /// debug assertions. Otherwise, blocks run in parallel.
    pub checked: bool,
    /// The size of a lane's stack in bytes: 256 KiB by default, at least 16 KiB, and at most 16 MiB. Only the part that a lane touches
    /// takes memory. Inlined without optimisation, sorts of many items in each thread need more than 64 KiB.
    ///
    /// On Linux with glibc, on x86-64 and AArch64, a lane that needs more ends its launch with
    /// [`Diagnosis::StackOverflow`](crate::Diagnosis::StackOverflow). The thread must have a stack for signals, as threads of the standard
    /// library do. The lane cannot be unwound: all that it owns is leaked, and its locks stay locked. On other systems the process ends at
    /// a guard page. It also ends, on all systems, if the lane is in the C library or unwinds, and 64 KiB more are not enough. It ends with
    /// a message if the program has its own allocator, such as mimalloc, because the lane might be inside it.
    pub stack_bytes: usize,
    /// Shuffles the order in which blocks start and lanes run. A kernel whose result depends on this order has a bug. In a checked launch,
    /// the order is the same for the same seed. Without a seed, blocks start in the order of their ranks.
    ///
    /// CUDA promises no order of blocks. So a block may wait for another block only if that block has surely started, for example because
    /// it has taken a ticket. If a grid has more blocks than can be resident together, a wait for a block of lower rank is a deadlock in
    /// some orders.
    pub seed: Option<u64>,
    /// The architecture that the emulator emulates: its compute capability times ten. Kernels choose a method by the architecture: for
    /// example, copies to shared memory are asynchronous from 80, and immediate before. If it is not set, a seed chooses 75, 80 or 90;
    /// without a seed it is 90.
    pub arch: Option<u32>,
    /// The number of OS threads that run blocks, unless `checked`. By default, it is the number of the machine's cores.
    pub threads: usize,
    /// How long all lanes of a launch may wait in spin loops without any change before the launch ends as a deadlock. The default is 2 s. A
    /// loop that waits for the host needs more. Each lane also looks at least 10 000 times. If a loop has a barrier of the block in it, only a checked launch ends: in an unchecked
    /// launch, each barrier counts as a change.
    pub deadlock_after: Duration,
    /// The most shared memory that a block can have, in bytes. The default and the maximum are 227 KiB, as on the largest GPUs. With 64
    /// KiB, the emulator refuses the same launches as sm_75, and algorithms choose kernels that fit there.
    pub max_shared_bytes: usize,
    /// The most bytes that the buffers of a device can have together. By default, only the host's memory limits them. An allocation that
    /// does not fit returns [`Error::Allocation`](crate::Error::Allocation), as on a GPU whose memory is full. The limit counts the buffers
    /// of a device and of its clones. A device with the same number from another call has the limit of its own options.
    pub memory_bytes: Option<usize>,
}

impl Default for EmulatorOptions {
    fn default() -> Self {
        Self {
            checked: cfg!(debug_assertions),
            stack_bytes: 256 << 10,
            seed: None,
            arch: None,
            threads: thread::available_parallelism().map_or(1, NonZeroUsize::get),
            deadlock_after: Duration::from_secs(2),
            max_shared_bytes: EMULATOR_LIMITS.shared_bytes,
            memory_bytes: None,
        }
    }
}

impl EmulatorOptions {
    /// The most shared memory of a block.
    pub(crate) fn shared_bytes(&self) -> usize {
        self.max_shared_bytes.min(EMULATOR_LIMITS.shared_bytes)
    }

    /// The size of stacks, inside its limits.
    fn stack_bytes(&self) -> usize {
        self.stack_bytes.clamp(16 << 10, 16 << 20)
    }
}

/// How many blocks of `threads` threads can be resident together: the largest grid whose blocks may all wait for each other,
/// as at a barrier of the grid. Zero if a block cannot have as many threads.
#[cfg(all(test, not(miri)))]
pub(crate) fn max_resident_blocks(threads: u32) -> u32 {
    if (1..=MAX_BLOCK_THREADS).contains(&threads) { launch::max_resident_blocks(threads) } else { 0 }
}

/// Runs a kernel: `body` once a thread of the grid. Returns when all threads have finished, or with the first error.
///
/// Launches from several host threads are independent of each other, and a lane may launch a kernel.
pub(crate) fn run(
    launch: &Launch<'_>,
    options: &EmulatorOptions,
    body: &(dyn Fn(Block<'_>) + Sync),
) -> Result<(), Error> {
    let (threads, blocks) = (launch.block.count(), launch.grid.count());
    if threads > MAX_BLOCK_THREADS as u64 {
        return Err(Error::LaunchLimit {
            kernel: launch.kernel.to_owned(),
            device: DEVICE.to_owned(),
            what: "the number of threads in a block",
            asked: threads,
            limit: MAX_BLOCK_THREADS as u64,
        });
    }
    if threads == 0 || blocks == 0 {
        return Ok(());
    }
    if fiber::in_lane() || thread::panicking() {
        // Lanes take a thread that unwinds for a sign that they do themselves.
        return on_new_thread(|| run(launch, options, body));
    }
    let running = in_kernel::running();
    panics::install_hook();
    fiber::overflow::install_handler();

    if !options.checked {
        // What is written is not seen, so that all may be.
        launch.regions.iter().filter(|region| region.writable).for_each(|region| region.written.mark_all());
    }
    let state = LaunchState::new(launch, options, body);
    state.watch.enter(0);
    thread::scope(|scope| {
        for number in 1..state.workers {
            state.watch.enter(number);
            let (state, running) = (&state, running.clone());
            let helper = thread::Builder::new().name("emulator".to_owned());
            // Without a helper, the others do its work.
            let work = move || {
                // SAFETY: the launch ends after the threads of the scope.
                let _running = unsafe { in_kernel::resume(running) };
                Worker::new(state, number).run();
            };
            if helper.spawn_scoped(scope, work).is_err() {
                state.watch.leave(number);
            }
        }
        Worker::new(&state, 0).run();
    });
    state.failure.into_error().map_or(Ok(()), Err)
}

/// Calls `f` outside of lanes: a lane waits for a new thread that calls it. A lane's stack is small. A lane that uses it up is left where
/// it is, and so must not lend what is on its stack to other threads.
pub(crate) fn off_the_lane<R: Send>(f: impl FnOnce() -> R + Send) -> R {
    if fiber::in_lane() { on_new_thread(f) } else { f() }
}

fn on_new_thread<R: Send>(f: impl FnOnce() -> R + Send) -> R {
    let running = in_kernel::running();
    let call = move || {
        // SAFETY: the caller, which the launch runs, waits for this thread.
        let _running = unsafe { in_kernel::resume(running) };
        f()
    };
    fiber::to_the_end(|| thread::scope(|scope| scope.spawn(call).join().unwrap_or_else(|p| resume_unwind(p))))
}
