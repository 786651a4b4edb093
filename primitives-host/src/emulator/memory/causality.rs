//! What happens before what in a checked launch.
//!
//! # Time
//!
//! A block has a clock that ticks when its lanes synchronise. An access is known by its block, its lane and the time, and
//! what a lane knows to be over is a set of such times. Almost all of it needs two numbers: everything of the block before
//! its last barrier, everything of the warp before its last `sync_warp` of all lanes. The rest is a graph: a [`Node`] is
//! a moment that others can build on, a release or a `sync_warp` of some lanes, with what was known there. A lane keeps
//! the node of what it has learnt; a release, or a fence before a relaxed store, leaves one at the atomic's address, and an
//! acquire of it, or a relaxed load before a fence, learns it.
//!
//! That is a vector clock which is worked out only on demand: a question that the two numbers do not answer walks the
//! graph, newest first, and keeps what it has seen.
//!
//! When the graph has become large, the clocks of all nodes that a lane or an atomic has are worked out. They take the places of
//! all nodes: see `causality/summaries.rs`. So the memory depends on how many lanes have released, and not on how often.
//!
//! # Scopes
//!
//! An atomic's scope always includes who shares its memory: shared memory is the block's, and in global memory the scope is
//! the device at least. So only a fence's scope can be too narrow.

mod atomics;
mod summaries;
#[cfg(test)]
mod tests;
mod walks;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::{Rc, Weak};

use primitives_gpu::simt::WARP;

use crate::emulator::MAX_BLOCK_THREADS;
pub(super) use atomics::Variables;
use summaries::{SMALL_GRAPH, Summaries};
use walks::Walk;

const MAX_WARPS: usize = (MAX_BLOCK_THREADS / WARP) as usize;

/// A node of the graph, or [`NOTHING`].
type NodeId = u32;

/// The node of those who have learnt nothing.
const NOTHING: NodeId = 0;

/// The block of nodes that only join others, and of those in whose places summaries are.
const NO_BLOCK: u32 = u32::MAX;

/// Joins that are remembered.
const KEPT_JOINS: usize = 256;

/// An access, as far as its order is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::emulator) struct Moment {
    pub(in crate::emulator) time: u32,
    /// The number of the block in the order of starts.
    pub(in crate::emulator) block: u32,
    /// Rank of the lane in the block.
    pub(in crate::emulator) lane: u32,
}

/// A moment that others can build on: what lanes `mask` of a warp did before `time`, and what they knew.
#[derive(Clone, Copy)]
struct Node {
    block: u32,
    warp: u32,
    mask: u32,
    time: u32,
    barrier: u32,
    warp_sync: u32,
    before: [NodeId; 2],
    /// The number of its summary, if it is one: see [`Summaries`].
    summary: Option<u32>,
    /// Whether others than the lanes of `mask` may have it.
    shared: bool,
}

impl Node {
    /// Whether it was made from `node`, and so knows all that this knows.
    fn knows(&self, node: NodeId) -> bool {
        self.before.contains(&node)
    }

    fn covers(&self, past: Moment) -> bool {
        self.block == past.block
            && (past.time < self.barrier
                || self.warp == past.lane / WARP
                    && (past.time < self.warp_sync
                        || self.mask >> (past.lane % WARP) & 1 != 0 && past.time < self.time))
    }
}

/// The graph of a launch.
pub(super) struct Causality {
    nodes: Vec<Node>,
    walks: HashMap<NodeId, Walk>,
    /// Nodes that the walks have seen.
    steps: usize,
    summaries: Summaries,
    /// What two nodes were joined to, as far as it is remembered: lanes of a warp mostly learn the same.
    joins: Box<[((NodeId, NodeId), NodeId)]>,
    /// So many nodes are too many.
    limit: usize,
    /// The clocks of the blocks.
    clocks: Vec<Weak<BlockClock>>,
}

/// What a lane knows beyond its block's barrier and its warp's.
#[derive(Default)]
struct LaneClock {
    knows: Cell<NodeId>,
    /// The release it learnt last, so that a loop learns it once.
    learnt: Cell<NodeId>,
    /// What relaxed loads have seen, for a fence of device scope to learn.
    seen_wide: Cell<NodeId>,
    /// As much of it as a fence of block scope can learn.
    seen_narrow: Cell<NodeId>,
    /// The latest fence of any scope.
    fence: Cell<NodeId>,
    /// The latest fence of device scope at least.
    wide_fence: Cell<NodeId>,
}

/// The clock of a resident block.
pub(super) struct BlockClock {
    block: Cell<u32>,
    time: Cell<u32>,
    barrier: Cell<u32>,
    warp_syncs: [Cell<u32>; MAX_WARPS],
    lanes: Box<[LaneClock]>,
    /// Whether lanes may differ in what they know.
    uneven: Cell<bool>,
    /// Whether lanes may have more than nothing.
    touched: Cell<bool>,
    /// The atomics in the block's shared memory that have been released.
    pub(super) variables: RefCell<Variables>,
}

impl LaneClock {
    /// Where it has nodes that others must not lose.
    fn nodes(&self) -> [&Cell<NodeId>; 5] {
        [&self.knows, &self.seen_wide, &self.seen_narrow, &self.fence, &self.wide_fence]
    }
}

impl BlockClock {
    fn new(threads: u32) -> Self {
        Self {
            block: Cell::new(0),
            time: Cell::new(1),
            barrier: Cell::new(0),
            warp_syncs: [const { Cell::new(0) }; MAX_WARPS],
            lanes: (0..threads).map(|_| LaneClock::default()).collect(),
            uneven: Cell::new(false),
            touched: Cell::new(false),
            variables: Default::default(),
        }
    }

    /// Begins the block of that number in the order of starts.
    pub(super) fn start(&self, ordinal: u32) {
        if self.touched.take() {
            for lane in &self.lanes {
                lane.nodes().into_iter().chain([&lane.learnt]).for_each(|node| node.set(NOTHING));
            }
        }
        self.block.set(ordinal);
        self.time.set(1);
        self.barrier.set(0);
        self.warp_syncs.iter().for_each(|time| time.set(0));
        self.uneven.set(false);
        self.variables.borrow_mut().clear();
    }

    /// Now, for a lane.
    #[inline(always)]
    pub(super) fn now(&self, lane: u32) -> Moment {
        Moment { time: self.time.get(), block: self.block.get(), lane }
    }

    #[inline]
    fn tick(&self) -> u32 {
        self.time.set(self.time.get() + 1);
        self.time.get()
    }

    /// Whether an access is over for a lane by the barriers alone, or its own.
    #[inline(always)]
    pub(super) fn is_plainly_before(&self, past: Moment, lane: u32) -> bool {
        past.block == self.block.get()
            && (past.time < self.barrier.get()
                || past.lane == lane
                || past.lane / WARP == lane / WARP && past.time < self.warp_syncs[(lane / WARP) as usize].get())
    }
}

impl Default for Causality {
    fn default() -> Self {
        let nothing = Node {
            block: NO_BLOCK,
            warp: 0,
            mask: 0,
            time: 0,
            barrier: 0,
            warp_sync: 0,
            before: [NOTHING; 2],
            summary: None,
            shared: true,
        };
        Self {
            nodes: vec![nothing],
            walks: HashMap::new(),
            steps: 0,
            summaries: Summaries::default(),
            joins: Box::new([((NOTHING, NOTHING), NOTHING); KEPT_JOINS]),
            limit: SMALL_GRAPH,
            clocks: Vec::new(),
        }
    }
}

impl Causality {
    fn add(&mut self, node: Node) -> NodeId {
        for before in node.before {
            self.nodes[before as usize].shared = true;
        }
        self.nodes.push(node);
        self.nodes.len() as NodeId - 1
    }

    fn join(&mut self, a: NodeId, b: NodeId) -> NodeId {
        let all = match (a, b) {
            (NOTHING, one) | (one, NOTHING) => one,
            _ if a == b || self.nodes[a as usize].knows(b) => a,
            _ if self.nodes[b as usize].knows(a) => b,
            _ => {
                let slot = (a as usize).wrapping_mul(31).wrapping_add(b as usize) % KEPT_JOINS;
                if self.joins[slot].0 != (a, b) {
                    self.joins[slot] = ((a, b), self.add(Node { before: [a, b], ..self.nodes[NOTHING as usize] }));
                }
                return self.joins[slot].1;
            }
        };
        // Whoever gets it may not have been there.
        self.nodes[all as usize].shared = true;
        all
    }

    /// The moment of lanes that know `before`.
    fn moment(&mut self, clock: &BlockClock, warp: u32, mask: u32, before: NodeId, shared: bool) -> NodeId {
        clock.touched.set(true);
        self.add(Node {
            block: clock.block.get(),
            warp,
            mask,
            time: clock.tick(),
            barrier: clock.barrier.get(),
            warp_sync: clock.warp_syncs[warp as usize].get(),
            before: [before, NOTHING],
            summary: None,
            shared,
        })
    }

    fn release(&mut self, clock: &BlockClock, lane: u32) -> NodeId {
        let knows = clock.lanes[lane as usize].knows.get();
        self.moment(clock, lane / WARP, 1 << (lane % WARP), knows, true)
    }

    fn learn(&mut self, clock: &BlockClock, lane: u32, node: NodeId) {
        let state = &clock.lanes[lane as usize];
        if node == NOTHING || node == state.learnt.get() {
            return;
        }
        self.nodes[node as usize].shared = true;
        state.learnt.set(node);
        state.knows.set(self.join(state.knows.get(), node));
        clock.uneven.set(true);
    }

    /// All lanes of the block have come together.
    #[inline(always)]
    pub(super) fn barrier(&mut self, clock: &BlockClock) {
        clock.barrier.set(clock.tick());
        if clock.uneven.get() {
            self.even_out(clock);
        }
    }

    #[cold]
    fn even_out(&mut self, clock: &BlockClock) {
        let (mut all, mut last) = (NOTHING, NOTHING);
        for lane in &clock.lanes {
            let knows = lane.knows.get();
            if knows != last {
                last = knows;
                all = self.join(all, knows);
            }
        }
        clock.lanes.iter().for_each(|lane| lane.knows.set(all));
        clock.uneven.set(false);
    }

    /// The lanes of `mask` have come together; `existing` are those of the warp.
    pub(super) fn sync_warp(&mut self, clock: &BlockClock, warp: u32, mask: u32, existing: u32) {
        if mask.is_power_of_two() {
            return;
        }
        let lanes = &clock.lanes[(warp * WARP) as usize..];
        let of_mask = || crate::emulator::warp::bits(mask).map(|lane| &lanes[lane as usize]);
        let first = lanes[mask.trailing_zeros() as usize].knows.get();
        let even = of_mask().all(|lane| lane.knows.get() == first);
        let mut all = first;
        if !even {
            let mut last = first;
            for knows in of_mask().map(|lane| lane.knows.get()) {
                if knows != last {
                    last = knows;
                    all = self.join(all, knows);
                }
            }
        }
        if mask == existing {
            clock.warp_syncs[warp as usize].set(clock.tick());
            if even {
                return;
            }
        } else {
            let node = self.nodes[first as usize];
            let same = (node.block, node.warp, node.mask) == (clock.block.get(), warp, mask);
            if even && same && !node.shared {
                // The same lanes again, and nobody else has built on their last meeting: it is now.
                let node = &mut self.nodes[first as usize];
                (node.time, node.barrier) = (clock.tick(), clock.barrier.get());
                node.warp_sync = clock.warp_syncs[warp as usize].get();
                self.walks.remove(&first);
                return;
            }
            all = self.moment(clock, warp, mask, all, false);
            clock.uneven.set(true);
        }
        of_mask().for_each(|lane| lane.knows.set(all));
    }

    /// Whether an access is over for a lane.
    #[inline(always)]
    pub(super) fn is_before(&mut self, past: Moment, clock: &BlockClock, lane: u32) -> bool {
        clock.is_plainly_before(past, lane) || self.is_known(past, clock.lanes[lane as usize].knows.get())
    }

    /// The clock of a block, which has no number yet.
    pub(super) fn clock(&mut self, threads: u32) -> Rc<BlockClock> {
        let clock = Rc::new(BlockClock::new(threads));
        self.clocks.push(Rc::downgrade(&clock));
        clock
    }
}
