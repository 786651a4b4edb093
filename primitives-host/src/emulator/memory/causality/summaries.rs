//! Summaries: the vector clocks that take the place of a large graph.

use std::cell::Cell;
use std::collections::HashMap;
use std::mem::take;
use std::rc::Weak;

use primitives_gpu::simt::WARP;

use super::{Causality, Moment, NO_BLOCK, NOTHING, Node, NodeId, Variables};

/// Nodes of a graph that is left as it is.
pub(super) const SMALL_GRAPH: usize = 1 << 16;

/// Entries of clocks that there may be for each node in whose place they are.
const CLOCK_ENTRIES_A_NODE: usize = 64;

/// Vector clocks. Each has an entry a column, as far as it is not 0; what happened before the time in it is known.
#[derive(Default)]
pub(super) struct Summaries {
    columns: HashMap<Column, u32>,
    rows: Vec<Vec<u32>>,
}

/// Whose times are in a column: those of a block and of a part of it.
type Column = (u32, Part);

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Part {
    All,
    Warp(u32),
    Lane(u32),
}

impl Summaries {
    /// Columns and times of a node that joins no others.
    fn entries(node: &Node) -> impl Iterator<Item = (Column, u32)> {
        let Node { block, warp, mask, time, barrier, warp_sync, .. } = *node;
        let lanes = crate::emulator::warp::bits(mask).map(move |lane| (Part::Lane(warp * WARP + lane), time));
        let entries = [(Part::All, barrier), (Part::Warp(warp), warp_sync)].into_iter().chain(lanes);
        entries.filter(move |_| block != NO_BLOCK).map(move |(part, time)| ((block, part), time))
    }

    fn add_columns(&mut self, node: &Node) {
        for (column, _) in Self::entries(node).filter(|(_, time)| *time > 0) {
            let next = self.columns.len() as u32;
            self.columns.entry(column).or_insert(next);
        }
    }

    /// Adds to a clock what the lanes of a node did.
    fn add_node(&self, clock: &mut Vec<u32>, node: &Node) {
        for (column, time) in Self::entries(node).filter(|(_, time)| *time > 0) {
            let column = self.columns[&column] as usize;
            if clock.len() <= column {
                clock.resize(column + 1, 0);
            }
            clock[column] = clock[column].max(time);
        }
    }

    pub(super) fn covers(&self, row: u32, past: Moment) -> bool {
        let row = &self.rows[row as usize];
        [Part::All, Part::Warp(past.lane / WARP), Part::Lane(past.lane)].into_iter().any(|part| {
            let column = self.columns.get(&(past.block, part));
            column.and_then(|&column| row.get(column as usize)).is_some_and(|&time| past.time < time)
        })
    }
}

/// Raises the entries of a clock to those of another.
fn raise_by(clock: &mut Vec<u32>, other: &[u32]) {
    if clock.len() < other.len() {
        clock.resize(other.len(), 0);
    }
    clock.iter_mut().zip(other).for_each(|(time, other)| *time = (*time).max(*other));
}

/// As [`raise_by`], by a clock that is of no other use and has more entries.
fn raise(clock: &mut Vec<u32>, mut other: Vec<u32>) {
    raise_by(&mut other, &take(clock));
    *clock = other;
}

impl Causality {
    /// Keeps the graph small. `variables` are the launch's; nobody has borrowed a block's.
    #[inline(always)]
    pub(in crate::emulator) fn make_room(&mut self, variables: &mut Variables) {
        if self.nodes.len() >= self.limit {
            self.summarize(variables);
        }
    }

    #[cold]
    pub(super) fn summarize(&mut self, variables: &mut Variables) {
        self.limit *= 2;
        self.clocks.retain(|clock| clock.strong_count() > 0);
        let clocks: Vec<_> = self.clocks.iter().filter_map(Weak::upgrade).collect();
        // A lane that has overflowed its stack may have left some borrowed: then the launch has failed.
        let own: Result<Vec<_>, _> = clocks.iter().map(|clock| clock.variables.try_borrow_mut()).collect();
        let Ok(mut own) = own else { return };

        let mut holders = Vec::new();
        let lanes = || clocks.iter().flat_map(|clock| &clock.lanes);
        lanes().for_each(|lane| holders.extend(lane.nodes().map(Cell::get)));
        let all_variables = || own.iter().flat_map(|own| own.values()).chain(variables.values());
        all_variables().for_each(|variable| holders.extend(variable.nodes()));
        let Some(kept) = self.keep(&holders) else { return };

        let now = |node: NodeId| kept.get(&node).copied().unwrap_or(NOTHING);
        for lane in lanes() {
            // Learning what was learnt changes nothing.
            lane.nodes().into_iter().chain([&lane.learnt]).for_each(|node| node.set(now(node.get())));
        }
        for variable in own.iter_mut().flat_map(|own| own.values_mut()).chain(variables.values_mut()) {
            variable.wide = now(variable.wide);
            variable.narrow.iter_mut().for_each(|(_, node)| *node = now(*node));
        }
        self.limit = SMALL_GRAPH.max(4 * self.nodes.len());
    }

    /// Makes summaries of the nodes that there are holders of, and drops all others. Returns where each is now; nothing, and leaves
    /// the graph as it is, if summaries took more memory.
    fn keep(&mut self, holders: &[NodeId]) -> Option<HashMap<NodeId, NodeId>> {
        // How many need a node's clock: holders and nodes that others hold.
        let mut needed = vec![0u32; self.nodes.len()];
        let mut kept: Vec<_> = holders.iter().copied().filter(|&node| node != NOTHING).collect();
        kept.sort_unstable();
        kept.dedup();
        let mut ahead = kept.clone();
        while let Some(id) = ahead.pop() {
            needed[id as usize] += 1;
            if needed[id as usize] == 1 {
                let node = &self.nodes[id as usize];
                self.summaries.add_columns(node);
                ahead.extend(node.before.into_iter().filter(|&before| before != NOTHING));
            }
        }
        let room = CLOCK_ENTRIES_A_NODE * self.nodes.len().max(SMALL_GRAPH);
        let columns = self.summaries.columns.len();
        if kept.len() * columns > room {
            return None;
        }

        // What a node was made from has a lower number.
        let mut clocks: HashMap<NodeId, Vec<u32>> = HashMap::new();
        let mut rows = Vec::with_capacity(kept.len());
        let mut held = kept.iter().copied().peekable();
        for id in 1..self.nodes.len() as NodeId {
            if needed[id as usize] == 0 {
                continue;
            }
            let node = &self.nodes[id as usize];
            let mut clock = node.summary.map_or_else(Vec::new, |row| self.summaries.rows[row as usize].clone());
            for before in node.before.into_iter().filter(|&before| before != NOTHING) {
                needed[before as usize] -= 1;
                let last = if needed[before as usize] == 0 { clocks.remove(&before) } else { None };
                match last {
                    Some(last) if clock.len() < last.len() => raise(&mut clock, last),
                    Some(last) => raise_by(&mut clock, &last),
                    None => raise_by(&mut clock, &clocks[&before]),
                }
            }
            self.summaries.add_node(&mut clock, node);
            if held.next_if_eq(&id).is_some() {
                rows.push(clock.clone());
                needed[id as usize] -= 1;
            }
            if needed[id as usize] > 0 {
                clocks.insert(id, clock);
            }
            if clocks.len() * columns > room {
                return None;
            }
        }

        self.summaries.rows = rows;
        self.nodes.truncate(1);
        self.walks.clear();
        self.joins.fill(((NOTHING, NOTHING), NOTHING));
        self.steps = 0;
        let summary = |row| Node { summary: Some(row), ..self.nodes[NOTHING as usize] };
        let summaries: Vec<_> = (0..kept.len() as u32).map(summary).collect();
        self.nodes.extend(summaries);
        Some(kept.into_iter().zip(1..).collect())
    }
}
