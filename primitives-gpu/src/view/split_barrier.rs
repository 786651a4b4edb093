//! Barriers at which some threads of a block arrive, and for which others wait.

use core::panic::Location;

use super::shared::StorageAccess;
use super::{Shared, SharedArray, SharedStorage};
#[cfg(target_arch = "nvptx64")]
use crate::simt::nvptx;
use crate::simt::{AtomicOrder, AtomicRef, Block, FULL_MASK, FaultKind, WARP};

#[cfg(not(target_arch = "nvptx64"))]
mod emulated;

/// The nanoseconds between two looks at a barrier, if a look itself takes no time.
const WAIT: u32 = 20;

/// `N` split barriers between the warps of a block. They are the storage of a kernel whose warps have different tasks and pass memory to
/// each other.
///
/// A barrier goes through phases. A phase ends when as many warps have [arrived](Shared::arrive) as the barrier [takes](Shared::begin). A
/// warp that arrives goes on. A warp that [waits](Shared::wait) for the phase then sees the memory accesses of those that arrived. So the
/// threads of a block need not all be in one place, as [`Block::barrier`](crate::Block::barrier) requires. The block must have whole warps.
///
/// The barrier does not order the lanes of one warp, neither where they arrive nor where they wait. To exchange data, they need a
/// [`Block::sync_warp`](crate::Block::sync_warp).
///
/// In PTX, this is `mbarrier`, and in CUDA C++ `cuda::barrier`. It uses the hardware from sm_80 on, and atomics on earlier architectures.
/// The emulator does both, depending on the architecture that it emulates.
///
/// ```
/// use kernel_primitives::prelude::*;
/// use kernel_primitives::view::{Parity, SplitBarriers};
///
/// /// The first warp reads, by one slot of shared memory after the other, and the second writes.
/// #[kernel(threads(64))]
/// fn doubled(
///     cx: Block,
///     x: Global<u32>,
///     mut out: GlobalMut<u32, Atomic>,
///     barriers: Shared<SplitBarriers<2>>,
///     mut slot: Shared<[u32; 32]>,
/// ) {
///     const FULL: usize = 0;
///     const EMPTY: usize = 1;
///     if cx.thread_rank() == 0 {
///         barriers.begin(FULL, 1);
///         barriers.begin(EMPTY, 1);
///     }
///     cx.barrier();
///     let lane = cx.lane() as usize;
///     let mut parity = Parity::default();
///     for first in (0..x.len()).step_by(32) {
///         if cx.warp() == 0 {
///             // Before the first phase is over, the one before counts as over.
///             barriers.wait(EMPTY, parity.other());
///             slot.set(lane, x.get(first + lane).unwrap_or(0));
///             barriers.arrive(FULL);
///         } else {
///             barriers.wait(FULL, parity);
///             if first + lane < x.len() {
///                 out.at(first + lane).store(2 * slot.get(lane));
///             }
///             barriers.arrive(EMPTY);
///         }
///         parity = parity.other();
///     }
/// }
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = kernel_primitives::Device::emulator().stream()?;
/// let x = stream.buffer_from(&(0..100).collect::<Vec<u32>>())?;
/// let mut out = stream.buffer_zeroed::<u32>(100)?;
/// doubled::launch(&stream, (1, 64), &x, &mut out)?;
/// assert!(out.to_vec()?.into_iter().eq((0..100).map(|i| 2 * i)));
/// # Ok(())
/// # }
/// ```
pub struct SplitBarriers<const N: usize>(());

// SAFETY: uninitialised words.
unsafe impl<const N: usize> SharedStorage for SplitBarriers<N> {
    const BYTES: usize = N * size_of::<u64>();
    const ALIGN: usize = align_of::<u64>();
    const ACCESS: StorageAccess = StorageAccess::Alone;
}

/// Whether a phase has an even or an odd number. The default is even, as the first phase is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parity(u32);

impl Parity {
    /// The parity of the previous phase and of the next one.
    #[inline(always)]
    pub fn other(self) -> Self {
        Self(self.0 ^ 1)
    }
}

impl<'k, const N: usize> Shared<'k, SplitBarriers<N>> {
    /// Initialises the barrier `index`. Each of its phases takes the arrivals of `warps` warps. One thread calls this once in a kernel, and
    /// a barrier of the block must follow before any warp uses the barrier. These are faults: an index outside, no warps, more warps than
    /// the block has, and a block without whole warps.
    #[track_caller]
    pub fn begin(&self, index: usize, warps: u32) {
        let (cx, barrier) = (self.cx(), self.barrier(index));
        let threads = cx.block_threads();
        if !threads.is_multiple_of(WARP) {
            // The second number is that of a block whose last warp is whole.
            let args = [threads as u64, threads.next_multiple_of(WARP) as u64];
            cx.raise(FaultKind::BadShape, args, Location::caller());
        }
        if warps == 0 || warps > threads / WARP {
            cx.raise(FaultKind::BadShape, [warps as u64, (threads / WARP) as u64], Location::caller());
        }
        #[cfg(target_arch = "nvptx64")]
        match in_hardware(cx) {
            // SAFETY: inside; the storage is the barriers' alone.
            true => unsafe { nvptx::split_barrier_begin(barrier.as_mut_ptr(), warps * WARP) },
            false => word(barrier).store(warps as u64),
        }
        // This is no atomic, so the emulator reports a warp that uses the barrier although there was no barrier of the block in between.
        #[cfg(not(target_arch = "nvptx64"))]
        // SAFETY: any bits are a barrier's, and they are written at once.
        unsafe {
            barrier.set(0, if in_hardware(cx) { warps * WARP } else { warps } as u64);
        }
    }

    /// Arrives, and goes on. The earlier accesses of a lane happen before the later accesses of the lanes that wait for the phase. All
    /// lanes of the warp call it.
    #[track_caller]
    pub fn arrive(&self, index: usize) {
        let (cx, barrier) = (self.cx(), self.barrier(index));
        // Each lane arrives by itself, not one for all after they have met. Tools that look for races understand it that way.
        if in_hardware(cx) {
            #[cfg(target_arch = "nvptx64")]
            // SAFETY: inside; of a barrier that has not begun it changes no more than its word.
            unsafe {
                nvptx::split_barrier_arrive(barrier.as_mut_ptr());
            }
            #[cfg(not(target_arch = "nvptx64"))]
            emulated::arrive(barrier);
            return;
        }
        cx.sync_warp(FULL_MASK);
        if cx.lane() == 0 {
            word(barrier).order(AtomicOrder::AcqRel).fetch_add(ARRIVAL);
        }
    }

    /// Waits until the barrier's phase of this parity is over. That is the current phase, or otherwise the phase before it. Before the
    /// first phase, a phase of odd parity counts as over. All lanes of the warp call it.
    #[track_caller]
    pub fn wait(&self, index: usize, parity: Parity) {
        let (cx, barrier) = (self.cx(), self.barrier(index));
        if in_hardware(cx) {
            #[cfg(target_arch = "nvptx64")]
            {
                let mut turns = 0u32;
                // SAFETY: inside; of a barrier that has not begun it changes no more than its word.
                while !unsafe { nvptx::split_barrier_try(barrier.as_mut_ptr(), parity.0) } {
                    turns = turns.wrapping_add(1);
                    // All threads learn of a fault at one place in memory. A thread that asks often waits there.
                    if turns.is_multiple_of(32) {
                        cx.spin(WAIT);
                    } else if nvptx::arch() < 900 {
                        cx.pause(WAIT);
                    }
                }
            }
            #[cfg(not(target_arch = "nvptx64"))]
            while !emulated::is_over(barrier, parity) {
                cx.spin(WAIT);
            }
            return;
        }
        // Each lane looks by itself. After a fault of the launch, `spin` ends the lane that calls it. If that were the first lane alone,
        // the others would go on without an end, because nothing would hold them any more.
        while !is_over(word(barrier).order(AtomicOrder::Acquire).load(), parity) {
            cx.spin(WAIT);
        }
        cx.sync_warp(FULL_MASK);
    }

    #[track_caller]
    fn barrier(&self, index: usize) -> SharedArray<'k, u64> {
        if index >= N {
            self.cx().raise(FaultKind::OutOfBounds, [index as u64, N as u64], Location::caller());
        }
        self.array(index * size_of::<u64>(), 1)
    }
}

/// Returns whether the architecture has such barriers. If not, a word counts the warps that arrived by [`ARRIVAL`], and has the number of
/// warps of a phase below that.
#[inline(always)]
fn in_hardware(cx: Block<'_>) -> bool {
    cx.arch() >= 800
}

/// An arrival in the word of a barrier. A phase takes fewer warps than this, and the count above them does not overflow while a kernel
/// runs.
const ARRIVAL: u64 = 1 << 8;

/// Returns whether a barrier with this word is past a phase of this parity, which is the phase before the current one.
#[inline(always)]
fn is_over(word: u64, parity: Parity) -> bool {
    let (arrived, takes) = (word / ARRIVAL, word % ARRIVAL);
    (arrived / takes.max(1) % 2) as u32 != parity.0
}

#[inline(always)]
fn word(barrier: SharedArray<'_, u64>) -> AtomicRef<'_, u64> {
    // SAFETY: it has one word, which others access by these, and `begin` at once.
    unsafe { barrier.at(0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The word of a barrier after `arrivals` arrivals, if its phases take `takes` warps.
    fn word_after(arrivals: u64, takes: u64) -> u64 {
        (0..64).filter(|bit| arrivals >> bit & 1 != 0).fold(takes, |word, bit| word + (ARRIVAL << bit))
    }

    #[test]
    fn phases_go_on_past_two_to_the_32_arrivals() {
        for takes in [1, 2, 3, 31, 32] {
            for around in [0, 1 << 31, 1 << 32, 1 << 33, 3 << 40] {
                for arrivals in around..around + 70 {
                    let phase = arrivals / takes;
                    let word = word_after(arrivals, takes);
                    let parities = [Parity::default(), Parity::default().other()];
                    let over = parities.map(|parity| is_over(word, parity));
                    assert_eq!(over, [phase % 2 == 1, phase % 2 == 0], "{arrivals} arrivals, {takes} a phase");
                }
            }
        }
    }
}
