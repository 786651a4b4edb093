//! Tiles under way in slots of shared memory, which the warps of a block hand on to each other: what pipelines of scans share.

use core::marker::PhantomData;

use kernel_primitives::grid::Chain;
use kernel_primitives::input::Source;
use kernel_primitives::prelude::*;
use kernel_primitives::simt::WARP;
use kernel_primitives::view::{Parity, SharedArray, SharedStorage, SplitBarriers};

use super::staged::lead;
use crate::algorithms::scan::kernel::scan_vector;

/// Parts of a tile, for each of which a block has a warp that loads and combines and one that scans and writes.
pub(crate) const PARTS: usize = 8;

/// Vectors of a lane in a part: an odd number, so that lanes which read their own meet in no bank.
pub(crate) const VECTORS: usize = 7;

/// Tiles that a block has under way at most.
pub const SCAN_PIPELINE_SLOTS: usize = 7;

/// Items of a tile of a pipeline, 28 KiB; 0 if the source is not for it: it is for items that are read from memory, a power of two of
/// bytes up to 16 each.
pub const fn scan_pipeline_tile<S: Source>() -> usize {
    let vector = scan_vector::<S>();
    if S::IN_MEMORY && vector * size_of::<S::Item>() == 16 { PARTS * WARP as usize * VECTORS * vector } else { 0 }
}

/// Whether vectors of 16 bytes are of whole items of this type: others have no pipeline.
const fn divides_vectors<T>() -> bool {
    matches!(size_of::<T>(), 1 | 2 | 4 | 8 | 16)
}

/// What the warps of a pipeline tell each other of their tiles besides the items: for each slot what comes before each lane's share in its
/// part, what the parts amount to, and what all tiles before. Of items that have no pipeline one value: they may be so large that no block
/// has room for more.
pub struct ScanPipelineStorage<T>(PhantomData<T>);

/// Its values of a slot.
const VALUES: usize = PARTS * WARP as usize + PARTS + 1;

/// Those of all slots.
pub(crate) const PIPELINE_VALUES: usize = SCAN_PIPELINE_SLOTS * VALUES;

// SAFETY: uninitialised elements.
unsafe impl<T: Element> SharedStorage for ScanPipelineStorage<T> {
    const BYTES: usize = size_of::<T>() * if divides_vectors::<T>() { PIPELINE_VALUES } else { 1 };
    const ALIGN: usize = align_of::<T>();
}

/// Where a slot has what comes before a lane's share of a part.
#[inline(always)]
pub(crate) fn before_share(slot: usize, part: usize, lane: u32) -> usize {
    slot * VALUES + part * WARP as usize + lane as usize
}

/// Where a slot has what a part amounts to.
#[inline(always)]
pub(crate) fn total_of_part(slot: usize, part: usize) -> usize {
    slot * VALUES + PARTS * WARP as usize + part
}

/// Where a slot has what all tiles before amount to.
#[inline(always)]
pub(crate) fn before_tile(slot: usize) -> usize {
    total_of_part(slot, PARTS)
}

/// A slot of the ring, and the parity of its round: a warp's place in the pipeline.
#[derive(Clone, Copy, Default)]
pub(crate) struct RingState {
    pub(crate) slot: usize,
    pub(crate) parity: Parity,
}

/// Slots, to which a block's tiles go one after the other. To each happen as many events as there are `BARRIERS` by
/// [`SCAN_PIPELINE_SLOTS`].
pub(crate) struct Ring<'a, 'k, T, const BARRIERS: usize> {
    pub(crate) cx: Block<'k>,
    pub(crate) chain: &'a Chain<'a, 'k, T>,
    pub(crate) barriers: &'a Shared<'k, SplitBarriers<BARRIERS>>,
    /// The number of each slot's tile.
    pub(crate) tiles: SharedArray<'k, u64>,
    pub(crate) slots: usize,
}

impl<T: Element, const BARRIERS: usize> Ring<'_, '_, T, BARRIERS> {
    const EVENTS: usize = BARRIERS / SCAN_PIPELINE_SLOTS;

    /// Begins the barriers, given how many warps each event takes. All threads of the block call it, once.
    pub(crate) fn begin(&self, warps: &[usize]) {
        if self.cx.thread_rank() == 0 {
            for slot in 0..self.slots {
                for (event, &warps) in warps.iter().enumerate() {
                    self.barriers.begin(slot * Self::EVENTS + event, warps as u32);
                }
            }
        }
        self.cx.barrier();
    }

    #[inline(always)]
    #[track_caller]
    pub(crate) fn wait(&self, event: usize, state: RingState) {
        self.barriers.wait(state.slot * Self::EVENTS + event, state.parity);
    }

    #[inline(always)]
    #[track_caller]
    pub(crate) fn arrive(&self, event: usize, state: RingState) {
        self.barriers.arrive(state.slot * Self::EVENTS + event);
    }

    #[inline(always)]
    pub(crate) fn next(&self, RingState { slot, parity }: RingState) -> RingState {
        if slot + 1 < self.slots {
            RingState { slot: slot + 1, parity }
        } else {
            RingState { slot: 0, parity: parity.other() }
        }
    }

    /// The slot's tile; none if there are no more.
    #[inline(always)]
    #[track_caller]
    pub(crate) fn tile(&self, state: RingState) -> Option<usize> {
        // SAFETY: inside; it was written before the slot was given, for which the caller has waited.
        let tile = unsafe { self.tiles.load(state.slot) } as usize;
        if tile < self.chain.tiles() { Some(tile) } else { None }
    }

    /// Gives each slot a tile once it is free, and at last none: the task of one warp. The events are that a slot has a tile, and that
    /// all is done with it.
    pub(crate) fn give(&self, given: usize, done: usize) {
        let (cx, mut state) = (self.cx, RingState::default());
        // The first lane's; the others only wait and arrive.
        let mut tile = if cx.lane() == 0 { self.chain.first_tile() } else { 0 };
        loop {
            // The number of the next one is on its way meanwhile.
            let next = if cx.lane() == 0 && tile < self.chain.tiles() { self.chain.next_tile() } else { tile };
            self.wait(done, RingState { parity: state.parity.other(), ..state });
            if cx.lane() == 0 {
                // SAFETY: inside; those who had the slot are done with it, and others read it once it is given.
                unsafe { self.tiles.store(state.slot, tile as u64) };
            }
            self.arrive(given, state);
            if cx.any(FULL_MASK, tile >= self.chain.tiles()) {
                return;
            }
            (state, tile) = (self.next(state), next);
        }
    }
}

/// A part of a tile in the input: whole vectors of a warp's lanes side by side.
struct Part {
    /// The first item's place: before the input, by less than a vector, if that begins inside one.
    start: usize,
    /// Whether all of it is inside, and its vectors are aligned.
    is_whole: bool,
}

/// The parts of tiles of vectors of `N` items, in slots of shared memory.
pub(crate) struct RingParts<'k, S: Source, const N: usize> {
    pub(crate) cx: Block<'k>,
    pub(crate) x: Input<'k, S>,
    pub(crate) items: SharedArray<'k, S::Item>,
    /// What stands for an item that the input does not have.
    pub(crate) nothing: S::Item,
}

impl<S: Source<Item: Element>, const N: usize> RingParts<'_, S, N> {
    /// Items of a round of a vector a lane, and of a part.
    const ROUND: usize = WARP as usize * N;
    const ITEMS: usize = VECTORS * Self::ROUND;

    fn part(&self, tile: usize, part: usize) -> Part {
        let lead = lead::<S, N>(self.x);
        let first = (tile * PARTS + part) * Self::ITEMS;
        let start = first.wrapping_sub(lead);
        let is_inside = first >= lead && first + Self::ITEMS <= self.x.len() + lead;
        Part { start, is_whole: is_inside && self.x.is_aligned::<N>(start) }
    }

    /// Where a part is in shared memory.
    #[inline(always)]
    fn place(&self, slot: usize, part: usize) -> usize {
        (slot * PARTS + part) * Self::ITEMS
    }

    /// Where the lane's share of it is: the vectors that lie one after the other, an odd number.
    #[inline(always)]
    pub(crate) fn share(&self, slot: usize, part: usize) -> usize {
        self.place(slot, part) + self.cx.lane() as usize * (VECTORS * N)
    }

    /// Begins to load a part of a tile.
    fn load(&self, slot: usize, tile: usize, part: usize) {
        let lane = self.cx.lane() as usize;
        let (Part { start, is_whole }, staged) = (self.part(tile, part), self.place(slot, part));
        for v in 0..VECTORS {
            let beside = v * Self::ROUND + lane * N;
            let (from, at) = (start.wrapping_add(beside), staged + beside);
            // SAFETY: those who had the slot are done with it; each lane of the part's warp writes its own vectors, and others read them
            // once they are combined. Of the input what is known to be inside.
            unsafe {
                if is_whole {
                    self.x.copy_vector_inside::<N>(from, self.items, at);
                } else if !self.x.copy::<N>(from, self.items, at) {
                    // What lies before the beginning or after the end changes nothing.
                    for i in 0..N {
                        let item = self.x.get(from.wrapping_add(i)).unwrap_or(self.nothing);
                        self.items.store(at + i, item);
                    }
                }
            }
        }
    }

    /// Begins to load a part of the slot's tile, if there is one, and says whether there was; what it loads is a group of copies.
    fn load_next<T: Element, const BARRIERS: usize>(
        &self,
        ring: &Ring<'_, '_, T, BARRIERS>,
        given: usize,
        state: &mut RingState,
        part: usize,
    ) -> bool {
        ring.wait(given, *state);
        let tile = ring.tile(*state);
        if let Some(tile) = tile {
            self.load(state.slot, tile, part);
        }
        self.x.group_copies();
        *state = ring.next(*state);
        tile.is_some()
    }

    /// Loads a part of each tile, and calls `combine` once a slot has it, while the next tile's is on its way: the task of one warp. The
    /// events are that a slot has a tile, and that `combine` has returned.
    pub(crate) fn load_each<T: Element, const BARRIERS: usize>(
        &self,
        ring: &Ring<'_, '_, T, BARRIERS>,
        (given, combined): (usize, usize),
        part: usize,
        mut combine: impl FnMut(RingState),
    ) {
        // With one slot a tile is loaded when the one before is done.
        let is_ahead = ring.slots > 1;
        let (mut state, mut loading) = (RingState::default(), RingState::default());
        let mut are_more = !is_ahead || self.load_next(ring, given, &mut loading, part);
        loop {
            if are_more {
                are_more = self.load_next(ring, given, &mut loading, part);
            } else {
                self.x.group_copies();
            }
            if ring.tile(state).is_none() {
                return ring.arrive(combined, state);
            }
            if is_ahead {
                self.x.wait_for_copies_but_last()
            } else {
                self.x.wait_for_copies()
            }
            self.cx.sync_warp(FULL_MASK);
            combine(state);
            ring.arrive(combined, state);
            state = ring.next(state);
        }
    }

    /// Writes a part of a tile from the slot, which the lanes of one warp have results of, a share each.
    ///
    /// # Safety
    /// The warp has written the part before, and of all threads of the grid only its lanes have these places of the result.
    pub(crate) unsafe fn write(&self, slot: usize, tile: usize, part: usize, out: &mut GlobalMut<S::Item>) {
        let (lane, staged) = (self.cx.lane() as usize, self.place(slot, part));
        self.cx.sync_warp(FULL_MASK);
        let Part { start, is_whole } = self.part(tile, part);
        if is_whole && out.is_aligned::<N>(start) {
            for v in 0..VECTORS {
                let at = v * Self::ROUND + lane * N;
                // SAFETY: inside both; the caller's contract.
                unsafe { out.write_vector_inside(start + at, &self.items.load_items::<N>(staged + at)) };
            }
        } else {
            for at in (lane..Self::ITEMS).step_by(WARP as usize) {
                let to = start.wrapping_add(at);
                if to < self.x.len() {
                    // SAFETY: as above.
                    unsafe { out.write(to, self.items.load(staged + at)) };
                }
            }
        }
    }
}
