//! Barriers at which some threads of a block arrive and for which others wait.

use core::panic::Location;

use super::shared::StorageAccess;
use super::{Shared, SharedArray, SharedStorage};
#[cfg(target_arch = "nvptx64")]
use crate::simt::nvptx;
use crate::simt::{AtomicOrder, AtomicRef, Block, FULL_MASK, FaultKind, WARP};

#[cfg(not(target_arch = "nvptx64"))]
mod emulated;

/// Nanoseconds between two looks at a barrier, where a look takes no time itself.
const WAIT: u32 = 20;

/// `N` split barriers between the warps of a block: the storage of a kernel whose warps have a task each and hand memory on to each
/// other.
///
/// A barrier goes through phases, and a phase is over once as many warps have [arrived](Shared::arrive) as the barrier
/// [takes](Shared::begin). Who arrives goes on; who [waits](Shared::wait) for the phase sees what was in memory for those
/// that arrived. So the threads of a block need not be all in one place, as they must for
/// [`Block::barrier`](crate::Block::barrier). The block is one of whole warps.
///
/// Lanes of one warp are not ordered where they arrive, nor where they wait: what they exchange takes a
/// [`Block::sync_warp`](crate::Block::sync_warp).
///
/// PTX's `mbarrier`, CUDA C++'s `cuda::barrier`: in hardware from sm_80, by atomics before. The emulator does both, by the architecture
/// that it stands for.
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

/// Which of a barrier's phases is meant, of those with even and those with odd numbers: even by default, as the first one is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parity(u32);

impl Parity {
    /// The parity of the phase before and of the one after.
    #[inline(always)]
    pub fn other(self) -> Self {
        Self(self.0 ^ 1)
    }
}

impl<'k, const N: usize> Shared<'k, SplitBarriers<N>> {
    /// Begins the barrier `index`, each of whose phases takes the arrivals of `warps` warps. One thread does, once a kernel, and a barrier
    /// of the block follows before any warp uses it. An index outside is a fault, and so are more warps than the block has, none, or a
    /// block that is not of whole warps.
    #[track_caller]
    pub fn begin(&self, index: usize, warps: u32) {
        let (cx, barrier) = (self.cx(), self.barrier(index));
        let threads = cx.block_threads();
        if warps == 0 || warps > threads / WARP || !threads.is_multiple_of(WARP) {
            cx.raise(FaultKind::BadShape, [warps as u64, (threads / WARP) as u64], Location::caller());
        }
        #[cfg(target_arch = "nvptx64")]
        match in_hardware(cx) {
            // SAFETY: inside; the storage is the barriers' alone.
            true => unsafe { nvptx::split_barrier_begin(barrier.as_mut_ptr(), warps * WARP) },
            false => word(barrier).store(warps as u64),
        }
        // No atomic, so that the emulator reports a warp that uses the barrier although nothing lies in between.
        #[cfg(not(target_arch = "nvptx64"))]
        // SAFETY: any bits are a barrier's, and they are written at once.
        unsafe {
            barrier.set(0, if in_hardware(cx) { warps * WARP } else { warps } as u64);
        }
    }

    /// Arrives and goes on: what a lane did before happens before what those do that wait for the phase. All lanes of the warp call it.
    #[track_caller]
    pub fn arrive(&self, index: usize) {
        let (cx, barrier) = (self.cx(), self.barrier(index));
        // Each lane by itself, not one for all after they have met: so do tools understand it that look for races.
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

    /// Waits until the barrier's phase of this parity is over: the one that is on, or else the one before it. Before the first
    /// phase one of odd parity counts as over. All lanes of the warp call it.
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
                    // Whether a thread has faulted, all threads learn in one place: who asks there often, waits there.
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
        // Each lane looks itself. Once the launch has faulted, `spin` ends who calls it: if that were the first lane alone, the others
        // would go on without an end, since nothing would hold them any more.
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

/// Whether the architecture has such barriers; else a word counts the warps that arrived by [`ARRIVAL`], with how many a phase takes below.
#[inline(always)]
fn in_hardware(cx: Block<'_>) -> bool {
    cx.arch() >= 800
}

/// An arrival in the word of a barrier. A phase takes fewer warps than this, and the count above them is not full in the life of a kernel.
const ARRIVAL: u64 = 1 << 8;

/// Whether a barrier with this word is past a phase of this parity, which is the one before the phase that is on.
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

    /// The word of a barrier whose phases take so many warps, after so many arrivals.
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
