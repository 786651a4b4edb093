//! A worker: one OS thread that runs blocks.
//!
//! A worker starts a block and runs its lanes until none can go on. If lanes wait for memory to change, the block stays
//! resident, and from then on the worker visits its resident blocks in rounds: each visit lets the spinning lanes look
//! once, and runs what that sets free. When rounds finish no block, it starts another one.

use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;

use super::block::{BlockState, Standing};
use super::fiber::stacks;
use super::fiber::{Fibers, Pause};
use super::launch::{Found, LaunchState};
use super::memory::LaunchMemory;
use super::report;
use super::watch::Patience;
use crate::launch::in_kernel::InClosure;

/// Visits of resident blocks before another block starts, if other workers can change what they wait for.
const VISITS_BEFORE_START: usize = 16;

/// How many times as long as other deadlocks those take that only a lack of stacks causes: launches that hold what each
/// other needs.
const SHORTAGE_LIMITS: u32 = 10;

/// Lanes that a claim of several small blocks should reach.
const CLAIM_LANES: u32 = 256;

pub(super) struct Worker<'l> {
    launch: &'l LaunchState<'l>,
    /// Before the blocks, so that lanes are gone before their block if a worker should ever panic.
    fibers: Fibers,
    /// Blocks with spinning lanes, in the order of their start. Counted pointers, because their address must not change
    /// and lanes keep references to them.
    resident: Vec<Rc<BlockState<'l>>>,
    /// Finished blocks, whose allocations the next ones use.
    spare: Vec<Rc<BlockState<'l>>>,
    /// What a checked launch remembers.
    memory: Option<Rc<LaunchMemory<'l>>>,
    /// Order numbers of blocks that this worker has claimed: the next, and one past the last.
    claimed: (u64, u64),
    patience: Patience<'l>,
}

/// What a worker whose blocks all wait can still do.
enum Outlook {
    /// Nothing.
    None,
    /// Start a block.
    Start,
    /// Start a block once another launch gives back its stacks.
    Shortage,
}

/// Why a block's lanes stopped running.
enum Stop {
    Finished,
    Spinning,
    /// The launch has failed.
    Failed,
}

impl<'l> Worker<'l> {
    pub(super) fn new(launch: &'l LaunchState<'l>, number: usize) -> Self {
        Self {
            launch,
            fibers: Fibers::of_thread(launch.options.stack_bytes()),
            resident: Vec::new(),
            spare: Vec::new(),
            memory: launch.options.checked.then(|| Rc::new(LaunchMemory::new(launch))),
            claimed: (0, 0),
            patience: Patience::new(&launch.watch, number, launch.options.deadlock_after),
        }
    }

    /// Runs blocks until there are no more, or the launch has failed.
    pub(super) fn run(mut self) {
        let _outside = InClosure::outside();
        let patience = if self.launch.workers > 1 { VISITS_BEFORE_START } else { 1 };
        // Since a block finished or started.
        let mut visits = 0;
        while !self.launch.failure.is_set() {
            if self.resident.is_empty() || visits >= patience {
                if let Some(ordinal) = self.claim() {
                    visits = 0;
                    self.start(ordinal);
                    continue;
                }
                if self.resident.is_empty() {
                    break;
                }
            }
            let before = self.resident.len();
            self.round();
            visits = if self.resident.len() < before { 0 } else { visits + before };
        }
        self.end();
    }

    /// The order number of a block to start, if there is one and room for it.
    fn claim(&mut self) -> Option<u64> {
        if !matches!(self.outlook(), Outlook::Start) {
            return None;
        }
        if self.claimed.0 == self.claimed.1 {
            // The last blocks are handed out one by one, so that no worker sits on several.
            let many = self.resident.is_empty() && self.launch.unclaimed() > 64 * self.launch.workers as u64;
            let count = if many { (CLAIM_LANES / self.launch.threads).clamp(1, 16) } else { 1 };
            self.claimed = self.launch.claim(count as u64);
            if self.claimed.0 == self.claimed.1 {
                return None;
            }
        }
        let ordinal = self.claimed.0;
        self.claimed.0 += 1;
        Some(ordinal)
    }

    /// Whether this worker can start a block. One without blocks always can: others may wait for what it does.
    fn outlook(&self) -> Outlook {
        let launch = self.launch;
        if self.claimed.0 < self.claimed.1 {
            Outlook::Start
        } else if launch.unclaimed() == 0 {
            Outlook::None
        } else if self.resident.is_empty() {
            Outlook::Start
        } else if launch.resident.load(Relaxed) >= launch.max_resident {
            Outlook::None
        } else if stacks::room(launch.options.stack_bytes()) + self.fibers.idle() < launch.threads as usize {
            Outlook::Shortage
        } else {
            Outlook::Start
        }
    }

    /// Starts a block and runs it as far as it gets.
    fn start(&mut self, ordinal: u64) {
        let mut block = self.spare.pop().unwrap_or_else(|| Rc::new(BlockState::new(self.launch, self.memory.clone())));
        Rc::get_mut(&mut block).expect("a spare block has one owner").start(ordinal);
        match self.run_ready(&block) {
            Stop::Finished => self.spare.push(block),
            Stop::Spinning | Stop::Failed => {
                self.launch.resident.fetch_add(1, Relaxed);
                self.resident.push(block);
            }
        }
        self.patience.progress();
    }

    /// Visits every resident block once.
    fn round(&mut self) {
        let mut changed = false;
        let mut at = 0;
        while at < self.resident.len() {
            let block = Rc::clone(&self.resident[at]);
            block.wake_spinning();
            match self.run_ready(&block) {
                Stop::Finished => {
                    drop(block);
                    let block = self.resident.remove(at);
                    self.launch.resident.fetch_sub(1, Relaxed);
                    self.spare.push(block);
                    changed = true;
                }
                Stop::Spinning => {
                    changed |= block.take_changed();
                    at += 1;
                }
                Stop::Failed => return,
            }
        }
        if changed {
            return self.patience.progress();
        }
        let limits = self.patience.fruitless_round();
        if limits == 0 {
            return;
        }
        let hopeless = match self.outlook() {
            Outlook::Start => false,
            Outlook::Shortage => limits >= SHORTAGE_LIMITS,
            Outlook::None => true,
        };
        if hopeless && self.patience.give_up() {
            let unwritten = self.resident.iter().find_map(|block| report::unwritten(block));
            let found = unwritten.unwrap_or_else(|| report::deadlock(self.launch, &self.resident));
            self.launch.failure.record(found);
        }
    }

    /// Runs the lanes of a block until none is ready.
    fn run_ready(&mut self, block: &Rc<BlockState<'l>>) -> Stop {
        let failure = &self.launch.failure;
        let mut next = block.next_ready();
        while let Some(rank) = next {
            if failure.is_set() {
                return Stop::Failed;
            }
            let paused = match block.context_of(rank) {
                // SAFETY: a lane that has started and is ready waits.
                Some(context) => Ok(unsafe { self.fibers.resume(context) }),
                // SAFETY: the block stays in its allocation until its lanes have finished or `end` has unwound them; until
                // then its owner is in `resident`, or with the caller, and nobody asks for a `&mut` to it.
                None => unsafe { self.fibers.start(block, rank) },
            };
            match paused {
                Ok(Pause::Waiting | Pause::Idle(_)) => {}
                Ok(Pause::Overflowed(fiber)) => {
                    let overflow = report::overflowed(block, block.remove_lane_on(fiber));
                    failure.record(block.settle(overflow));
                    return Stop::Failed;
                }
                Err(error) => {
                    failure.record(block.settle(Found { rank: block.rank.get(), error }));
                    return Stop::Failed;
                }
            }
            next = block.handed_over.take();
        }
        if failure.is_set() {
            return Stop::Failed;
        }
        match block.standing() {
            Standing::Finished => match block.untold() {
                None => Stop::Finished,
                Some(found) => {
                    failure.record(found);
                    Stop::Failed
                }
            },
            Standing::Spinning => match block.take_race() {
                None => Stop::Spinning,
                Some(race) => {
                    failure.record(race);
                    Stop::Failed
                }
            },
            Standing::Stuck => {
                failure.record(block.settle(report::stuck(block)));
                Stop::Failed
            }
        }
    }

    /// Unwinds the lanes of a failed launch.
    fn end(mut self) {
        if !self.resident.is_empty() && cfg!(panic = "abort") {
            eprintln!("{}\nthis program is built with panic=abort, and ends with the kernel", self.launch.failure);
            std::process::abort();
        }
        for block in &self.resident {
            block.abandon();
            for context in block.unfinished().filter_map(|rank| block.context_of(rank)) {
                // SAFETY: a lane that has started and not finished waits, and in a failed launch none but this runs it.
                // A lane that catches the unwinding goes on to its next wait, and is unwound from there.
                while unsafe { self.fibers.resume(context) } == Pause::Waiting {}
            }
        }
        self.fibers.keep_for_thread();
    }
}
