//! What goes wrong in a block: races after which it goes on, and the end of its lanes.

use std::panic::resume_unwind;
use std::thread::panicking;
use std::time::Instant;

use primitives_gpu::simt::Place;
use primitives_gpu::simt::emulated::{Access, Lane};

use super::{AFTER_RACE, BlockState, LaneState};
use crate::emulator::launch::Found;
use crate::emulator::memory::Earlier;
use crate::emulator::report;
use crate::emulator::watch::DEADLOCK_ROUNDS;

/// What unwinds the lanes of a launch that has failed.
pub(super) struct Abandoned;

impl BlockState<'_> {
    /// What is to be told of a block that has ended: a race, or a read of what nothing has written.
    pub(in crate::emulator) fn untold(&self) -> Option<Found> {
        self.take_race().or_else(|| report::unwritten(self))
    }

    /// The race after which the block went on.
    pub(in crate::emulator) fn take_race(&self) -> Option<Found> {
        self.after_race.set(0);
        self.race.take()
    }

    /// What is to be told of a block that cannot go on, for which `found` is the reason at hand. What a kernel does after a race,
    /// or with a value that nothing has written, is no news; but a barrier that some threads miss is the reason of races.
    #[cold]
    pub(in crate::emulator) fn settle(&self, found: Found) -> Found {
        match self.take_race() {
            Some(race) if report::is_divergence(&found) => report::with_race(found, &race),
            Some(race) => race,
            None if report::is_race(&found) => found,
            None => report::unwritten(self).unwrap_or(found),
        }
    }

    /// Whether the block goes on after a race.
    #[inline(always)]
    pub(super) fn has_race(&self) -> bool {
        self.after_race.get() > 0
    }

    /// Notes a race. One with another block ends the launch.
    #[cold]
    #[inline(never)]
    pub(super) fn raced(&self, state: &LaneState, place: Place, access: Access, earlier: Earlier) {
        let with_itself = earlier.moment.block as u64 == self.ordinal.get();
        let found = report::race(self, state, place, access, earlier);
        if !with_itself {
            self.fail(state, || found);
        }
        self.race.replace(Some(found));
        self.after_race.set(AFTER_RACE);
    }

    /// Counts what the block does after a race, and ends it if that is too much.
    #[cold]
    pub(super) fn go_on_after_race(&self, state: &LaneState, cost: u32) {
        self.after_race.set(self.after_race.get().saturating_sub(cost));
        if self.after_race.get() == 0
            && let Some(race) = self.take_race()
        {
            self.fail(state, || race);
        }
    }

    /// Returns to a destructor's loop while its lane unwinds. No other lane of the worker can run until then, so what the loop waits for
    /// may never come: after as long as a deadlock takes, the process ends.
    #[cold]
    pub(super) fn spin_in_vain(&self, lane: &Lane<'_>, place: Place) {
        let (rounds, since) = self.vain.get().unwrap_or_else(|| (0, Instant::now()));
        self.vain.set(Some((rounds + 1, since)));
        if rounds >= DEADLOCK_ROUNDS && since.elapsed() >= self.launch.options.deadlock_after {
            let (kernel, thread, block) = (self.launch.kernel, lane.thread_idx, lane.block_idx);
            eprintln!(
                "in `{kernel}`, thread {thread} of block {block} waits in {place} while it unwinds from a fault: aborting"
            );
            std::process::abort();
        }
    }

    /// Reports what is wrong, and ends lane `state`. The report is made in here, apart from the paths that lanes take every
    /// time and whose frames are on every stack.
    #[cold]
    #[inline(never)]
    pub(super) fn fail(&self, state: &LaneState, report: impl FnOnce() -> Found) -> ! {
        let found = self.settle(report());
        if panicking() {
            // A second panic, as it were: it can neither return nor unwind.
            eprintln!("{}\nwhile the kernel unwinds from another fault: aborting", found.error);
            std::process::abort();
        }
        self.launch.failure.record(found);
        loop {
            self.suspend(state);
        }
    }
}

/// Unwinds the lane that calls it.
///
/// Its destructors run: skipping them would break safe code that counts on them, such as a scope of threads.
#[cold]
pub(super) fn abandon_lane() -> ! {
    resume_unwind(Box::new(Abandoned))
}
