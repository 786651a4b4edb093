//! Deadlock detection: noticing that all that is left of a launch waits in spin loops.
//!
//! No machine can know whether a loop ends. What counts as getting on is a lane that finishes, one that waits in a spin
//! loop in another place than the last time, one that has changed memory by an atomic access, and, in a checked launch, a
//! lane that stores to memory; in an unchecked one, where such stores are not seen, a barrier that completes. Another place
//! counts a limited number of times until something else counts, because one loop can wait in several places. An atomic that
//! leaves what was there does not count: a lock that is never released is polled by such. A launch whose resident blocks, all
//! of them, do nothing of the kind for many rounds and a noticeable time, while no block can start, is taken for dead.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Rounds without progress after which a worker looks at the clock and at the others.
const IDLE_ROUNDS: u64 = 256;

/// Rounds without progress that a deadlock takes, besides the time.
pub(super) const DEADLOCK_ROUNDS: u64 = 10_000;

const RUNNING: u64 = u64::MAX;
const ABSENT: u64 = u64::MAX - 1;

/// What the workers of a launch know of each other's progress.
pub(super) struct Watch {
    /// Counts the steps of workers while some worker is idle.
    epoch: AtomicU64,
    /// Workers that have made no progress for a while.
    idle: AtomicU32,
    /// For each worker: the epoch in which it is stuck, [`RUNNING`], or [`ABSENT`].
    workers: Box<[AtomicU64]>,
}

impl Watch {
    pub(super) fn new(workers: usize) -> Self {
        Self {
            epoch: AtomicU64::new(0),
            idle: AtomicU32::new(0),
            workers: (0..workers).map(|_| AtomicU64::new(ABSENT)).collect(),
        }
    }

    /// Says that a worker will run: from now on there is no deadlock without it.
    pub(super) fn enter(&self, worker: usize) {
        self.workers[worker].store(RUNNING, Ordering::SeqCst);
    }

    /// Says that a worker has nothing left to run, or could not be started. The others may have yet to see what it did last: a new
    /// epoch lets them look once more.
    pub(super) fn leave(&self, worker: usize) {
        self.epoch.fetch_add(1, Ordering::SeqCst);
        self.workers[worker].store(ABSENT, Ordering::SeqCst);
    }
}

/// One worker's view of its own progress.
pub(super) struct Patience<'l> {
    watch: &'l Watch,
    worker: usize,
    limit: Duration,
    /// Rounds since the last progress.
    rounds: u64,
    /// Since when this worker is idle, and the epoch it saw then.
    idle: Option<(Instant, u64)>,
}

impl<'l> Patience<'l> {
    pub(super) fn new(watch: &'l Watch, worker: usize, limit: Duration) -> Self {
        Self { watch, worker, limit, rounds: 0, idle: None }
    }

    /// Notes progress of the worker.
    #[inline(always)]
    pub(super) fn progress(&mut self) {
        self.rounds = 0;
        if self.idle.is_some() {
            self.leave_idle();
        }
        if self.watch.idle.load(Ordering::Relaxed) > 0 {
            self.watch.epoch.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[cold]
    fn leave_idle(&mut self) {
        self.idle = None;
        self.watch.idle.fetch_sub(1, Ordering::SeqCst);
        self.watch.enter(self.worker);
    }

    /// Notes a round without progress. Returns whether there were so many, for `n` times the launch's limit, that the
    /// launch is dead unless a block can start or another worker gets on; `n` is 0 if not.
    pub(super) fn fruitless_round(&mut self) -> u32 {
        self.rounds += 1;
        if self.watch.workers.len() > 1 {
            // What this worker waits for may be another one's work on the same core.
            match self.rounds {
                ..IDLE_ROUNDS => std::thread::yield_now(),
                _ => std::thread::sleep(Duration::from_micros(20)),
            }
        }
        if !self.rounds.is_multiple_of(IDLE_ROUNDS) {
            return 0;
        }
        let epoch = self.watch.epoch.load(Ordering::SeqCst);
        match self.idle {
            Some((since, seen)) if seen == epoch => {
                let limits = since.elapsed().as_nanos() / self.limit.as_nanos().max(1);
                if self.rounds < DEADLOCK_ROUNDS { 0 } else { limits.min(u32::MAX as u128) as u32 }
            }
            Some(_) => {
                self.rounds = IDLE_ROUNDS;
                self.idle = Some((Instant::now(), epoch));
                0
            }
            None => {
                self.watch.idle.fetch_add(1, Ordering::SeqCst);
                self.idle = Some((Instant::now(), epoch));
                0
            }
        }
    }

    /// Says that this worker gives up, and returns whether all that run have done so since the last progress.
    pub(super) fn give_up(&self) -> bool {
        let Some((_, epoch)) = self.idle else {
            return false;
        };
        self.watch.workers[self.worker].store(epoch, Ordering::SeqCst);
        // Those that are stuck in this same epoch have not got on since they got stuck, nor has this worker.
        let mut states = self.watch.workers.iter().map(|state| state.load(Ordering::SeqCst));
        // One that went, or got on, while the states of others were looked at has begun another epoch before.
        states.all(|state| state == epoch || state == ABSENT) && self.watch.epoch.load(Ordering::SeqCst) == epoch
    }
}

impl Drop for Patience<'_> {
    fn drop(&mut self) {
        if self.idle.is_some() {
            self.leave_idle();
        }
        self.watch.leave(self.worker);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lets a worker wait in vain until it would give up.
    fn wait(patience: &mut Patience<'_>) {
        while patience.fruitless_round() == 0 {}
    }

    #[test]
    fn a_worker_that_goes_lets_the_others_look_once_more() {
        let watch = Watch::new(2);
        watch.enter(0);
        watch.enter(1);
        let mut waits = Patience::new(&watch, 0, Duration::ZERO);
        let mut runs = Patience::new(&watch, 1, Duration::ZERO);
        wait(&mut waits);
        assert!(!waits.give_up(), "the other one runs");
        // What it does last is what the first one waits for.
        runs.progress();
        drop(runs);
        assert!(!waits.give_up(), "the other one has got on since");
        wait(&mut waits);
        assert!(waits.give_up(), "nobody is left");
    }

    #[test]
    fn workers_that_all_wait_in_vain_give_up() {
        let watch = Watch::new(3);
        (0..3).for_each(|worker| watch.enter(worker));
        let mut waiting = [0, 1].map(|worker| Patience::new(&watch, worker, Duration::ZERO));
        drop(Patience::new(&watch, 2, Duration::ZERO));
        waiting.iter_mut().for_each(wait);
        assert!(!waiting[0].give_up() && waiting[1].give_up());
    }
}
