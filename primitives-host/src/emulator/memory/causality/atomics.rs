//! Atomics: what their releases leave for others, and what fences and accesses make lanes know.

use std::collections::HashMap;

use primitives_gpu::simt::emulated::{AccessKind, Space};
use primitives_gpu::simt::{AtomicOrder, Scope};

use super::{BlockClock, Causality, NO_BLOCK, NOTHING, NodeId};

/// Blocks whose narrow releases an atomic remembers.
const NARROW_RELEASES: usize = 64;

/// The atomics that have been released, by address.
pub(in crate::emulator) type Variables = HashMap<usize, Variable>;

/// What the releases of an atomic have left there.
#[derive(Default)]
pub(in crate::emulator) struct Variable {
    /// For everybody.
    pub(super) wide: NodeId,
    /// The block of those releases, or [`NO_BLOCK`] if they are of several.
    releaser: u32,
    /// By fences of block scope: for that block only.
    pub(super) narrow: Vec<(u32, NodeId)>,
}

impl Variable {
    pub(super) fn nodes(&self) -> impl Iterator<Item = NodeId> {
        self.narrow.iter().map(|&(_, node)| node).chain([self.wide])
    }
}

impl Causality {
    /// A lane's fence.
    pub(in crate::emulator) fn fence(&mut self, clock: &BlockClock, lane: u32, scope: Scope) {
        let state = &clock.lanes[lane as usize];
        let seen = state.seen_narrow.take();
        self.learn(clock, lane, seen);
        if scope != Scope::Block {
            let seen = state.seen_wide.take();
            self.learn(clock, lane, seen);
        }
        let node = self.release(clock, lane);
        state.fence.set(node);
        if scope != Scope::Block {
            state.wide_fence.set(node);
        }
    }

    /// What an atomic access makes its lane know, and leaves for others.
    /// `variables` are those of its memory: the launch's, or the block's.
    pub(in crate::emulator) fn atomic(
        &mut self,
        variables: &mut Variables,
        clock: &BlockClock,
        lane: u32,
        kind: AccessKind,
        space: Space,
        address: usize,
    ) {
        let (order, reads, writes) = match kind {
            AccessKind::AtomicRead(order, _) => (order, true, false),
            AccessKind::AtomicWrite(order, _) => (order, false, true),
            AccessKind::AtomicUpdate(order, _) => (order, true, true),
            AccessKind::Read | AccessKind::Write => return,
        };
        let state = &clock.lanes[lane as usize];
        let block = clock.block.get();
        if reads && let Some(variable) = variables.get(&address) {
            clock.touched.set(true);
            let own = variable.narrow.iter().find(|(releaser, _)| *releaser == block).map_or(NOTHING, |own| own.1);
            if matches!(order, AtomicOrder::Acquire | AtomicOrder::AcqRel) {
                self.learn(clock, lane, own);
                self.learn(clock, lane, variable.wide);
            } else {
                state.seen_narrow.set(self.join(state.seen_narrow.get(), own));
                if state.seen_wide.get() != variable.wide {
                    state.seen_wide.set(self.join(state.seen_wide.get(), variable.wide));
                }
                if space == Space::Shared || variable.releaser == block || variable.releaser == NO_BLOCK {
                    // Where several blocks have released, a fence of block scope gets more than it should.
                    state.seen_narrow.set(self.join(state.seen_narrow.get(), variable.wide));
                }
            }
        }
        if writes {
            let (wide, narrow) = if matches!(order, AtomicOrder::Release | AtomicOrder::AcqRel) {
                (self.release(clock, lane), NOTHING)
            } else if space == Space::Shared || state.wide_fence.get() == state.fence.get() {
                (state.fence.get(), NOTHING)
            } else {
                (state.wide_fence.get(), state.fence.get())
            };
            // A plain store ends what was released there, a read-modify-write adds to it.
            if !reads {
                variables.remove(&address);
            }
            if wide != NOTHING || narrow != NOTHING {
                let variable =
                    variables.entry(address).or_insert_with(|| Variable { releaser: block, ..Variable::default() });
                // A lane that has acquired what was there knows it where it releases.
                let acquired = reads && order == AtomicOrder::AcqRel;
                variable.wide = if acquired { wide } else { self.join(variable.wide, wide) };
                if variable.releaser != block && wide != NOTHING {
                    variable.releaser = NO_BLOCK;
                }
                if narrow != NOTHING {
                    variable.narrow.retain(|(releaser, _)| *releaser != block);
                    if variable.narrow.len() == NARROW_RELEASES {
                        variable.narrow.remove(0);
                    }
                    variable.narrow.push((block, narrow));
                }
            }
        }
    }
}
