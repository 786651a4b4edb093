//! The emulator's split barriers for the architectures that have them in hardware: each lane arrives and waits by itself, and
//! nothing orders the lanes of a warp.

use super::Parity;
use crate::simt::AtomicOrder::{Acquire, Release};
use crate::simt::Scope;
use crate::simt::emulated::{AccessKind, Space};
use crate::view::{SharedArray, raw};

/// A lane's arrival in the word of a barrier. Below it is how many lanes a phase takes, at most 1024.
const ARRIVAL: u64 = 1 << 11;

/// The number of the phase that is on.
fn phase(word: u64) -> u64 {
    let (arrived, takes) = (word / ARRIVAL, word % ARRIVAL);
    arrived / takes.max(1)
}

/// Reports an atomic access of the half of the word that stands for the phases of a parity. So a lane that waits for a phase learns
/// what came before the arrivals at this one, and not what came before the arrivals at the next.
#[inline(always)]
#[track_caller]
fn report(barrier: SharedArray<'_, u64>, kind: AccessKind, parity: u64) {
    let half = barrier.as_mut_ptr().cast::<u32>().wrapping_add(parity as usize);
    raw::report(barrier.cx(), kind, Space::Shared, half, 1);
}

/// The barrier's word.
fn word(barrier: SharedArray<'_, u64>) -> u64 {
    // SAFETY: it has one word of any bits, and the lanes of a block run one at a time.
    unsafe { barrier.as_mut_ptr().read() }
}

/// Arrives for the lane: what it did before happens before what those do that wait for the phase, but it learns nothing of others.
#[inline(always)]
#[track_caller]
pub(super) fn arrive(barrier: SharedArray<'_, u64>) {
    report(barrier, AccessKind::AtomicUpdate(Release, Scope::Block), phase(word(barrier)) % 2);
    // SAFETY: as in `word`.
    unsafe { barrier.as_mut_ptr().write(word(barrier).wrapping_add(ARRIVAL)) };
    barrier.cx().lane_state().changed_memory.set(true);
}

/// Whether the phase of this parity is over, for the lane.
#[track_caller]
pub(super) fn is_over(barrier: SharedArray<'_, u64>, parity: Parity) -> bool {
    let is_over = phase(word(barrier)) % 2 != parity.0 as u64;
    // A lane that is told to wait learns nothing: not all have arrived.
    let order = if is_over { Acquire } else { crate::simt::AtomicOrder::Relaxed };
    report(barrier, AccessKind::AtomicRead(order, Scope::Block), parity.0 as u64);
    is_over
}
