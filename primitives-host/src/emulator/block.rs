//! A block while it is resident: its lanes' states, its shared memory, and the machine that its lanes call.
//!
//! A block belongs to one OS thread. Its lanes and the worker that runs them see it through shared references, so all that
//! changes is in cells. Which lanes can run, wait or have finished is kept in one bit a lane.

use std::cell::{Cell, RefCell, UnsafeCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::time::Instant;

use primitives_gpu::simt::emulated::{Copies, Lane, Raised, WarpOp};
use primitives_gpu::simt::{BarrierVote, Block, Dim3, Place, WARP};

use super::fiber::{DIRECT, Exit, FiberContext};
use super::launch::{Found, LaunchState};
use super::memory::{BlockMemory, LaunchMemory};
use super::order::Random;
use super::warp::{self, Exchange};
use super::{MAX_BLOCK_THREADS, panics, report};
use crate::fault::Diagnosis;
use crate::launch::in_kernel;
use faults::{Abandoned, abandon_lane};

mod faults;
mod machine;

const MAX_WARPS: usize = (MAX_BLOCK_THREADS / WARP) as usize;

/// What shared memory holds when a checked block starts. Not 0, so that a kernel that relies on zeros is noticed; the bytes
/// are a value of every element type, `bool` too.
const FRESH_SHARED: u8 = 1;

/// How many accesses and warp operations a block goes on for after a race between two of its threads, see
/// [`BlockState::race`].
const AFTER_RACE: u32 = 1 << 20;

/// How many changes of the places where its lanes wait show that a block gets on, unless something else shows it. A loop can
/// wait in several places in turn.
const MOVES: u32 = 64;

/// Sixteen bytes of shared memory.
#[repr(align(16))]
struct SharedLine(UnsafeCell<[u8; 16]>);

/// A lane's state. What a lane does not set before it is read keeps a value of an earlier lane.
pub(super) struct LaneState {
    pub(super) thread: Dim3,
    context: FiberContext,
    /// Where the lane waits, or last waited, or the kernel begins.
    pub(super) place: Cell<Place>,
    /// Where the lane last waited in a spin loop.
    spun: Cell<Option<Place>>,
    /// The mask of the warp operation that the lane waits in.
    pub(super) mask: Cell<u32>,
    /// In the first lane that came to a warp operation: the lanes that have come.
    pub(super) arrived: Cell<u32>,
    pub(super) exchange: Exchange,
}

/// The lanes of a warp, one bit each. A lane that has started is running, or in exactly one of the other sets.
#[derive(Default)]
pub(super) struct WarpState {
    /// The lanes there are.
    pub(super) existing: Cell<u32>,
    /// Can run: resumed, or started if not in `started`.
    ready: Cell<u32>,
    started: Cell<u32>,
    pub(super) finished: Cell<u32>,
    /// Wait at the block's barrier.
    pub(super) at_barrier: Cell<u32>,
    /// Wait in a warp operation.
    pub(super) in_operation: Cell<u32>,
    /// Those of them that came first to theirs.
    leaders: Cell<u32>,
    /// Wait for the next round.
    pub(super) spinning: Cell<u32>,
}

/// The barrier that lanes are coming to.
struct BarrierState {
    arrived: Cell<u32>,
    /// How many of them have a true predicate.
    votes: Cell<u32>,
    /// What the first one called, and where.
    first: Cell<(BarrierVote, Place)>,
    /// Whether a later one differs.
    mixed: Cell<bool>,
    /// The result of the barrier before. It stands until all lanes come again, and so until all have taken it.
    result: Cell<u32>,
}

/// A resident block.
pub(super) struct BlockState<'l> {
    pub(super) launch: &'l LaunchState<'l>,
    /// Its number in the order of starts.
    pub(super) ordinal: Cell<u64>,
    pub(super) rank: Cell<u64>,
    pub(super) index: Cell<Dim3>,
    shared: Box<[SharedLine]>,
    pub(super) lanes: Box<[LaneState]>,
    pub(super) warps: [WarpState; MAX_WARPS],
    /// The warps that have ready lanes.
    ready_warps: Cell<u32>,
    finished: Cell<u32>,
    barrier: BarrierState,
    /// What a checked launch remembers of global memory, and of the block's.
    pub(super) memory: Option<(Rc<LaunchMemory<'l>>, BlockMemory)>,
    /// A race between two threads of the block. The block goes on, to its next barrier or its end, since threads that miss a barrier
    /// race with those that wait there: then the barrier is what is wrong.
    race: RefCell<Option<Found>>,
    /// How much further it may go on.
    after_race: Cell<u32>,
    /// Set by whatever shows that the block gets on, see [`Watch`](super::watch::Watch).
    changed: Cell<bool>,
    /// The changes of the places where lanes wait, since something else has shown that the block gets on.
    moves: Cell<u32>,
    /// The launch has failed: lanes that are resumed unwind.
    abandoned: Cell<bool>,
    /// The waits of destructors while lanes unwind, and when they began.
    vain: Cell<Option<(u64, Instant)>>,
    /// Chooses among the ready lanes of a seeded launch.
    random: Option<Random>,
    /// The lane that is next, chosen by one that left it to the worker.
    pub(super) handed_over: Cell<Option<u32>>,
}

/// How a block stands when none of its lanes can run.
pub(super) enum Standing {
    /// All lanes have finished.
    Finished,
    /// Lanes wait for memory to change.
    Spinning,
    /// Lanes wait for lanes that never come.
    Stuck,
}

/// Whether two places are the same. One place can have several addresses, one for each instance of a generic function.
#[inline]
pub(super) fn same_place(a: Place, b: Place) -> bool {
    std::ptr::eq(a, b) || a == b
}

impl<'l> BlockState<'l> {
    pub(super) fn new(launch: &'l LaunchState<'l>, memory: Option<Rc<LaunchMemory<'l>>>) -> Self {
        let mut thread = Dim3::new(0, 0, 0);
        let lanes = (0..launch.threads).map(|_| {
            let lane = LaneState {
                thread,
                context: FiberContext::new(),
                place: Cell::new(launch.place),
                spun: Cell::new(None),
                mask: Cell::new(0),
                arrived: Cell::new(0),
                exchange: Exchange { op: Cell::new(WarpOp::Sync), value: Cell::new(0), result: Cell::new(0) },
            };
            thread.x += 1;
            if thread.x == launch.block.x {
                (thread.x, thread.y) = (0, thread.y + 1);
            }
            if thread.y == launch.block.y {
                (thread.y, thread.z) = (0, thread.z + 1);
            }
            lane
        });
        // One line at least: a kernel may ask for the address of an empty arena.
        let shared: Box<[_]> =
            (0..launch.shared_bytes.div_ceil(16).max(1)).map(|_| SharedLine(UnsafeCell::new([0; 16]))).collect();
        let (address, bytes) = (shared.as_ptr().addr(), 16 * shared.len());
        let block = Self {
            launch,
            ordinal: Cell::new(0),
            rank: Cell::new(0),
            index: Cell::new(Dim3::new(0, 0, 0)),
            shared,
            lanes: lanes.collect(),
            warps: std::array::from_fn(|_| WarpState::default()),
            ready_warps: Cell::new(0),
            finished: Cell::new(0),
            barrier: BarrierState {
                arrived: Cell::new(0),
                votes: Cell::new(0),
                first: Cell::new((BarrierVote::None, launch.place)),
                mixed: Cell::new(false),
                result: Cell::new(0),
            },
            memory: memory.map(|memory| {
                let block = memory.block(launch.threads, address, bytes);
                (memory, block)
            }),
            race: RefCell::new(None),
            after_race: Cell::new(0),
            changed: Cell::new(false),
            moves: Cell::new(0),
            abandoned: Cell::new(false),
            vain: Cell::new(None),
            random: None,
            handed_over: Cell::new(None),
        };
        for (number, warp) in block.warps().iter().enumerate() {
            let lanes = (launch.threads - number as u32 * WARP).min(WARP);
            warp.existing.set(!0 >> (WARP - lanes));
        }
        block
    }

    /// Where its shared memory begins.
    pub(super) fn shared_address(&self) -> usize {
        self.shared.as_ptr().addr()
    }

    /// Which byte of its shared memory an address is, if it is one, or the end.
    pub(super) fn shared_byte(&self, address: usize) -> Option<usize> {
        address.checked_sub(self.shared_address()).filter(|&byte| byte <= self.launch.shared_bytes)
    }

    /// The warps that the block has.
    #[inline]
    pub(super) fn warps(&self) -> &[WarpState] {
        &self.warps[..self.lanes.len().div_ceil(WARP as usize)]
    }

    /// Makes this the block that starts as number `ordinal`, none of whose lanes has started.
    pub(super) fn start(&mut self, ordinal: u64) {
        let rank = self.launch.order.rank(ordinal);
        self.ordinal.set(ordinal);
        self.rank.set(rank);
        self.index.set(self.launch.grid.at(rank));
        for warp in self.warps() {
            warp.ready.set(warp.existing.get());
            warp.started.set(0);
            warp.finished.set(0);
        }
        self.ready_warps.set(!0 >> (MAX_WARPS - self.warps().len()));
        self.finished.set(0);
        self.after_race.set(0);
        self.moves.set(0);
        if let Some((_, memory)) = &mut self.memory {
            memory.start(ordinal);
            for line in &mut self.shared {
                *line.0.get_mut() = [FRESH_SHARED; 16];
            }
        }
        // The choices depend on the block and not on what its worker ran before.
        self.random = self.launch.options.seed.map(|seed| Random::new(seed, rank.wrapping_add(1)));
    }

    /// Makes the lanes ready that wait for memory to change.
    pub(super) fn wake_spinning(&self) {
        for (number, warp) in self.warps().iter().enumerate() {
            let spinning = warp.spinning.take();
            if spinning != 0 {
                self.make_ready(number, spinning);
            }
        }
    }

    /// Whether the block got on since this was asked last.
    pub(super) fn take_changed(&self) -> bool {
        self.changed.take()
    }

    #[inline(always)]
    fn make_ready(&self, warp: usize, lanes: u32) {
        let ready = &self.warps[warp].ready;
        ready.set(ready.get() | lanes);
        self.ready_warps.set(self.ready_warps.get() | 1 << warp);
    }

    /// Takes a lane that can run: the first one of the first warp, so that a warp goes on while it can and its lanes keep
    /// their order; with a seed, any lane.
    #[inline(always)]
    pub(super) fn next_ready(&self) -> Option<u32> {
        let warps = self.ready_warps.get();
        if warps == 0 {
            return None;
        }
        let choose = |mask: u32| match &self.random {
            None => mask.trailing_zeros(),
            Some(random) => random.bit(mask),
        };
        let number = choose(warps);
        let warp = &self.warps[number as usize];
        let ready = warp.ready.get();
        let bit = choose(ready);
        let rest = ready & !(1 << bit);
        warp.ready.set(rest);
        if rest == 0 {
            self.ready_warps.set(warps & !(1 << number));
        }
        Some(number * WARP + bit)
    }

    /// Where a lane waits that can go on, unless it has yet to start.
    #[inline(always)]
    pub(super) fn context_of(&self, rank: u32) -> Option<&FiberContext> {
        let started = self.warps[(rank / WARP) as usize].started.get();
        (started >> (rank % WARP) & 1 != 0).then(|| &self.lanes[rank as usize].context)
    }

    /// Runs a lane that has not started yet, to its end, on the fiber that calls this.
    #[inline(always)]
    pub(super) fn run_lane(&self, rank: u32, exit: &Exit<'_>) {
        let state = &self.lanes[rank as usize];
        state.context.take(exit);
        state.place.set(self.launch.place);
        state.spun.set(None);
        let (warp, bit) = (&self.warps[(rank / WARP) as usize], 1 << (rank % WARP));
        warp.started.set(warp.started.get() | bit);

        let lane = Lane {
            thread_idx: state.thread,
            block_idx: self.index.get(),
            block_dim: self.launch.block,
            grid_dim: self.launch.grid,
            thread_rank: rank,
            block_threads: self.launch.threads,
            // The cells of all lines are written through this pointer; it keeps the provenance of the whole slice.
            shared: self.shared.as_ptr().cast_mut().cast(),
            shared_len: self.launch.shared_bytes,
            arch: self.launch.arch,
            copies: Copies::default(),
            changed_memory: Cell::new(false),
            checked: self.launch.options.checked,
            machine: self,
        };
        // SAFETY: this is the lane's own stack, `lane` describes it, and the token cannot leave the call: `body` takes a
        // token of any lifetime and so has nowhere to keep it.
        let run = || (self.launch.body)(unsafe { Block::new(&lane) });
        if let Err(payload) = catch_unwind(AssertUnwindSafe(run))
            && !payload.is::<Abandoned>()
        {
            let found = match payload.downcast::<Raised>() {
                Ok(raised) => report::fault(self, state, raised.place, Diagnosis::from(raised.fault)),
                Err(payload) => report::panicked(self, state, panics::message(payload)),
            };
            // What a lane makes of its end hides no fault.
            if !self.abandoned.get() {
                self.launch.failure.record(self.settle(found));
            }
        }

        warp.finished.set(warp.finished.get() | bit);
        self.finished.set(self.finished.get() + 1);
        self.note_progress();
    }

    /// The lane that a fiber runs after its own has finished, if that is one that has yet to start; another lane is left to
    /// the worker.
    #[inline(always)]
    pub(super) fn next_after_finished(&self) -> Option<u32> {
        if self.abandoned.get() || self.launch.failure.is_set() {
            return None;
        }
        let next = self.next_ready()?;
        if self.context_of(next).is_none() {
            return Some(next);
        }
        self.handed_over.set(Some(next));
        None
    }

    /// How the block stands, none of its lanes being ready.
    pub(super) fn standing(&self) -> Standing {
        if self.finished.get() == self.launch.threads {
            return Standing::Finished;
        }
        let any = |set: fn(&WarpState) -> u32| self.warps().iter().any(|warp| set(warp) != 0);
        let barrier_broken = self.finished.get() > 0 && any(|warp| warp.at_barrier.get());
        if barrier_broken || self.lanes_wait_for_finished() || !any(|warp| warp.spinning.get()) {
            return Standing::Stuck;
        }
        Standing::Spinning
    }

    /// Whether a lane waits in a warp operation for one that has finished.
    fn lanes_wait_for_finished(&self) -> bool {
        self.warps().iter().enumerate().any(|(number, warp)| {
            let finished = warp.finished.get();
            finished != 0
                && warp::bits(warp.leaders.get())
                    .any(|lane| self.lanes[number * WARP as usize + lane as usize].mask.get() & finished != 0)
        })
    }

    /// The first lane, of those in the same warp as `rank`, that came to the operation in which lane `rank` waits.
    pub(super) fn leader_of(&self, rank: u32) -> Option<&LaneState> {
        let first = rank / WARP * WARP;
        let leaders = self.warps[(rank / WARP) as usize].leaders.get();
        warp::bits(leaders)
            .map(|lane| &self.lanes[(first + lane) as usize])
            .find(|leader| leader.arrived.get() >> (rank % WARP) & 1 != 0)
    }

    /// Takes the lane that runs on a fiber out of the block: it is never resumed.
    pub(super) fn remove_lane_on(&self, fiber: u32) -> &LaneState {
        let rank = self.unfinished().find(|&rank| self.lanes[rank as usize].context.fiber() == fiber);
        let rank = rank.expect("a lane runs on the fiber");
        let finished = &self.warps[(rank / WARP) as usize].finished;
        finished.set(finished.get() | 1 << (rank % WARP));
        &self.lanes[rank as usize]
    }

    /// Begins the end of a failed launch: lanes that are resumed from now on unwind.
    pub(super) fn abandon(&self) {
        self.abandoned.set(true);
    }

    /// The lanes that have started and not finished.
    pub(super) fn unfinished(&self) -> impl Iterator<Item = u32> {
        self.warps().iter().enumerate().flat_map(|(number, warp)| {
            warp::bits(warp.started.get() & !warp.finished.get()).map(move |lane| number as u32 * WARP + lane)
        })
    }

    /// Lets the next lane go on, until some lane or the worker resumes lane `state`, which calls this.
    #[inline(always)]
    fn suspend(&self, state: &LaneState) {
        let next = if self.launch.failure.is_set() {
            None
        } else if in_kernel::is_in_closure() {
            self.fail(state, || report::waits_in_closure(self, state))
        } else {
            self.next_ready()
        };
        let context = if DIRECT { next.and_then(|next| self.context_of(next)) } else { None };
        match context {
            // A seeded launch chose this very lane.
            Some(context) if std::ptr::eq(context, &state.context) => return,
            Some(_) => {}
            None => self.handed_over.set(next),
        }
        // SAFETY: `state` is the caller's. A lane that has started and is ready waits.
        unsafe { state.context.suspend(context) };
        if self.abandoned.get() {
            abandon_lane();
        }
    }

    /// Takes it for a sign that the block gets on if the lane, which waits, has changed memory by atomics since it waited last.
    #[inline(always)]
    fn note_changes(&self, lane: &Lane<'_>) {
        if lane.changed_memory.take() {
            self.note_progress();
        }
    }

    /// Notes what shows that the block gets on, other than a lane that waits in another place.
    #[inline(always)]
    fn note_progress(&self) {
        self.changed.set(true);
        self.moves.set(0);
    }
}
