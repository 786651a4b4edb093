//! What the workers of a launch share.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use primitives_gpu::simt::Place;
use primitives_gpu::view::SharedParam;
use primitives_gpu::{Block, Dim3};

use super::watch::Watch;
use super::{Argument, EmulatorOptions, Launch, Region, fiber, order};
use crate::error::Error;

/// Lanes of one launch that can be resident together: each keeps a stack.
const RESIDENT_LANES: u32 = 8 * 1024;

/// Blocks of one launch that can be resident together.
const RESIDENT_BLOCKS: u32 = 1024;

/// How many blocks of `threads` threads, 1 to 1024, can be resident together: the largest grid whose blocks may all wait for
/// each other.
pub(super) fn max_resident_blocks(threads: u32) -> u32 {
    (RESIDENT_LANES / threads).min(RESIDENT_BLOCKS)
}

/// A launch in progress.
pub(super) struct LaunchState<'l> {
    pub(super) kernel: &'l str,
    /// Where the kernel begins.
    pub(super) place: Place,
    pub(super) grid: Dim3,
    pub(super) block: Dim3,
    /// Threads in a block, 1 to 1024.
    pub(super) threads: u32,
    /// Blocks in the grid.
    pub(super) blocks: u64,
    /// The order in which they start.
    pub(super) order: order::Order,
    /// The number of the device.
    pub(super) device: usize,
    pub(super) shared_bytes: usize,
    pub(super) shared_params: &'static [SharedParam],
    pub(super) regions: &'l [Region],
    pub(super) arguments: &'l [Argument],
    pub(super) options: &'l EmulatorOptions,
    /// The architecture that the lanes take the place of.
    pub(super) arch: u32,
    pub(super) body: &'l (dyn Fn(Block<'_>) + Sync),
    /// OS threads that run blocks.
    pub(super) workers: usize,
    /// Blocks that may wait for memory to change while others start.
    pub(super) max_resident: u32,
    /// The blocks that do.
    pub(super) resident: AtomicU32,
    /// How many blocks the workers have claimed.
    claimed: AtomicU64,
    pub(super) failure: Failure,
    pub(super) watch: Watch,
}

impl<'l> LaunchState<'l> {
    /// A launch of at least one block of 1 to 1024 threads.
    pub(super) fn new(
        launch: &'l Launch<'l>,
        options: &'l EmulatorOptions,
        body: &'l (dyn Fn(Block<'_>) + Sync),
    ) -> Self {
        let threads = launch.block.count() as u32;
        let blocks = launch.grid.count();
        let workers = if options.checked { 1 } else { options.threads.clamp(1, 1024).min(blocks as usize) };
        Self {
            kernel: launch.kernel,
            place: launch.place,
            grid: launch.grid,
            block: launch.block,
            threads,
            blocks,
            order: order::Order::new(options.seed, blocks),
            device: launch.device,
            shared_bytes: launch.shared_bytes,
            shared_params: launch.shared_params,
            regions: &launch.regions,
            arguments: &launch.arguments,
            options,
            arch: order::arch(options),
            body,
            workers,
            max_resident: max_resident_blocks(threads),
            resident: AtomicU32::new(0),
            claimed: AtomicU64::new(0),
            failure: Failure::default(),
            watch: Watch::new(workers),
        }
    }

    /// Claims up to `count` blocks: the order numbers of the first, and one past the last.
    pub(super) fn claim(&self, count: u64) -> (u64, u64) {
        // Read first, so that the count cannot pass the end by more than the workers' last claims.
        if self.claimed.load(Ordering::Relaxed) >= self.blocks {
            return (self.blocks, self.blocks);
        }
        let first = self.claimed.fetch_add(count, Ordering::Relaxed).min(self.blocks);
        (first, first.saturating_add(count).min(self.blocks))
    }

    /// The index of the block that starts as number `ordinal`.
    pub(super) fn index_of(&self, ordinal: u64) -> Dim3 {
        self.grid.at(self.order.rank(ordinal))
    }

    /// How many blocks no worker has claimed.
    pub(super) fn unclaimed(&self) -> u64 {
        self.blocks.saturating_sub(self.claimed.load(Ordering::Relaxed))
    }
}

/// An error, with the rank of its block.
pub(super) struct Found {
    pub(super) rank: u64,
    pub(super) error: Error,
}

/// The first error of a launch.
#[derive(Default)]
pub(super) struct Failure {
    set: AtomicBool,
    found: Mutex<Option<Found>>,
}

impl Failure {
    /// Whether the launch has failed.
    #[inline(always)]
    pub(super) fn is_set(&self) -> bool {
        self.set.load(Ordering::Relaxed)
    }

    /// Lets the launch fail. Of several errors, the one of the block of lowest rank counts, and in a block the first.
    pub(super) fn record(&self, found: Found) {
        fiber::to_the_end(|| {
            let mut first = self.found.lock().unwrap_or_else(PoisonError::into_inner);
            if first.as_ref().is_none_or(|first| found.rank < first.rank) {
                *first = Some(found);
            }
        });
        self.set.store(true, Ordering::Relaxed);
    }

    /// The error, if there was one.
    pub(super) fn into_error(self) -> Option<Error> {
        self.found.into_inner().unwrap_or_else(PoisonError::into_inner).map(|found| found.error)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.found.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(found) => found.error.fmt(f),
            None => Ok(()),
        }
    }
}
