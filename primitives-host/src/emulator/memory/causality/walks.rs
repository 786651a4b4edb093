//! Walks through the graph: what a node knows.

use std::collections::{HashMap, HashSet, VecDeque};

use primitives_gpu::simt::WARP;

use super::{Causality, Moment, NO_BLOCK, NOTHING, Node, NodeId};
use crate::emulator::warp::bits;

/// Walks through the graph that are kept, and nodes that these have seen.
const KEPT_WALKS: usize = 64;
const KEPT_STEPS: usize = 1 << 18;

/// What is known of a node: the nodes behind it by block, as far as the walk got.
pub(super) struct Walk {
    ahead: VecDeque<NodeId>,
    seen: HashSet<NodeId>,
    /// The latest barrier of each block.
    barriers: HashMap<u32, u32>,
    /// What is known of each warp, by its block and its number.
    warps: HashMap<(u32, u32), WarpSeen>,
    summaries: Vec<u32>,
}

/// Before which times all that lanes of a warp did is known.
#[derive(Default)]
struct WarpSeen {
    all: u32,
    lanes: [u32; WARP as usize],
}

impl Walk {
    fn add(&mut self, node: &Node) {
        let barrier = self.barriers.entry(node.block).or_default();
        *barrier = node.barrier.max(*barrier);
        let warp = self.warps.entry((node.block, node.warp)).or_default();
        warp.all = node.warp_sync.max(warp.all);
        for lane in bits(node.mask) {
            let time = &mut warp.lanes[lane as usize];
            *time = node.time.max(*time);
        }
    }

    /// Whether a node that was seen covers an access.
    fn covers(&self, past: Moment) -> bool {
        self.barriers.get(&past.block).is_some_and(|&barrier| past.time < barrier)
            || self
                .warps
                .get(&(past.block, past.lane / WARP))
                .is_some_and(|warp| past.time < warp.all || past.time < warp.lanes[(past.lane % WARP) as usize])
    }
}

impl Causality {
    #[cold]
    pub(super) fn is_known(&mut self, past: Moment, node: NodeId) -> bool {
        if node == NOTHING {
            return false;
        }
        let is_new = self.walks.len() >= KEPT_WALKS && !self.walks.contains_key(&node);
        if is_new || self.steps > KEPT_STEPS {
            self.walks.clear();
            self.steps = 0;
        }
        let walk = self.walks.entry(node).or_insert_with(|| Walk {
            ahead: VecDeque::from([node]),
            seen: HashSet::new(),
            barriers: HashMap::new(),
            warps: HashMap::new(),
            summaries: Vec::new(),
        });
        let (nodes, summaries) = (&self.nodes, &self.summaries);
        if walk.covers(past) || walk.summaries.iter().any(|&summary| summaries.covers(summary, past)) {
            return true;
        }
        while let Some(id) = walk.ahead.pop_front() {
            if id == NOTHING || !walk.seen.insert(id) {
                continue;
            }
            self.steps += 1;
            let node = &nodes[id as usize];
            walk.ahead.extend(node.before);
            if node.block != NO_BLOCK {
                walk.add(node);
            }
            walk.summaries.extend(node.summary);
            if node.covers(past) || node.summary.is_some_and(|summary| summaries.covers(summary, past)) {
                return true;
            }
        }
        false
    }
}
