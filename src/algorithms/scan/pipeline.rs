//! The kernel of scans of many items, which is a pipeline of warps. Each warp has a task.

use core::marker::PhantomData;

use kernel_primitives::grid::{Chain, Known};
use kernel_primitives::input::Source;
use kernel_primitives::prelude::*;
use kernel_primitives::simt::WARP;
use kernel_primitives::view::{Parity, SharedArray, SharedSlice, SharedStorage, SplitBarriers};

use crate::algorithms::scan::kernel::{combined_after, in_order, scan_in_order, scan_vector};
use crate::algorithms::tile::staged::lead;

/// The number of parts of a tile. For each part, a block has a warp that loads and combines it, and a warp that scans and writes it.
const PARTS: usize = 8;

/// The number of vectors of a lane in a part. It is odd, so that lanes that read their own vectors never access the same bank.
const VECTORS: usize = 7;

/// The number of threads of a block of [`scan_pipeline`](struct@scan_pipeline).
pub const SCAN_PIPELINE_THREADS: usize = (3 + 2 * PARTS) * WARP as usize;

/// The most tiles that a block has in flight.
pub const SCAN_PIPELINE_SLOTS: usize = 7;

/// Returns the number of items of a tile of [`scan_pipeline`](struct@scan_pipeline), which has 28 KiB. Returns 0 if the pipeline does not
/// support the source. It supports items that are read from memory and whose size is a power of two of bytes, up to 16.
pub const fn scan_pipeline_tile<S: Source>() -> usize {
    let vector = scan_vector::<S>();
    if S::IN_MEMORY && vector * size_of::<S::Item>() == 16 { PARTS * WARP as usize * VECTORS * vector } else { 0 }
}

/// The events of a slot for a tile. Each one has a split barrier.
#[derive(Clone, Copy)]
enum Event {
    /// The slot has the number of a tile.
    Given,
    /// The slot has the tile's items, the values before each share in its part, and the results of the parts.
    Combined,
    /// The slot has the result of all tiles before.
    Known,
    /// All results are written, and the next tile may come.
    Done,
}
const EVENTS: usize = 4;

/// Returns whether vectors of 16 bytes have whole items of this type. Other types have no pipeline.
const fn divides_vectors<T>() -> bool {
    matches!(size_of::<T>(), 1 | 2 | 4 | 8 | 16)
}

/// The values that the warps of [`scan_pipeline`](struct@scan_pipeline) give each other, in addition to the items. For each slot, these are
/// the values before each lane's share in its part, the results of the parts, and the result of all tiles before. For items that have no
/// pipeline, there is one value, because such items may be so large that no block has room for more.
pub struct ScanPipelineStorage<T>(PhantomData<T>);

/// The number of these values of a slot.
const VALUES: usize = PARTS * WARP as usize + PARTS + 1;

// SAFETY: uninitialised elements.
unsafe impl<T: Element> SharedStorage for ScanPipelineStorage<T> {
    const BYTES: usize = size_of::<T>() * if divides_vectors::<T>() { SCAN_PIPELINE_SLOTS * VALUES } else { 1 };
    const ALIGN: usize = align_of::<T>();
}

/// Returns the bytes of a block's shared memory in addition to the slots.
pub const fn scan_pipeline_shared<T: Element>() -> usize {
    let words = SplitBarriers::<{ EVENTS * SCAN_PIPELINE_SLOTS }>::BYTES + SCAN_PIPELINE_SLOTS * size_of::<u64>();
    (words + ScanPipelineStorage::<T>::BYTES).next_multiple_of(16)
}

// PTX: scan_pipeline__Span_f32_Add_false has 7 loads and 7 stores of 16 bytes, staged.
// PTX: scan_pipeline__Span_f64_Add_true has 7 loads and 7 stores of 16 bytes, staged.

/// Works as [`scan_tiles`](struct@kernel_primitives::kernels::device::scan_tiles), for many items in memory, at the speed of a copy.
///
/// A block that has a tile waits for all tiles before it. This takes longer than the read of the tile. So each block has several tiles in
/// flight. They are in `slots` slots of shared memory of [`scan_pipeline_tile`] items each, up to [`SCAN_PIPELINE_SLOTS`]. Each warp of the
/// block has a task, and does it for one tile after the other. It does not wait for the tasks of other warps:
///
/// 1. One warp gives each slot a tile as soon as the slot is free.
/// 2. One warp computes the result of all tiles before, from the results that all blocks publish.
/// 3. One warp publishes the result of the tile.
/// 4. Eight warps each load a part of the tile. They load the next tile while they combine this one.
/// 5. Eight warps each scan a part, and write it.
///
/// `chain` has the memory of a [`Chain`] of all tiles of the epoch `epoch`. The launch may have any number of blocks.
#[allow(clippy::too_many_arguments, reason = "a kernel's parameters")]
#[kernel(launch(pub(crate)), threads(SCAN_PIPELINE_THREADS), one_dimensional)]
pub fn scan_pipeline<S, R, const EXCLUSIVE: bool>(
    cx: Block,
    x: Input<S>,
    first: S::Item,
    before: Global<S::Item>,
    mut out: GlobalMut<S::Item>,
    chain: GlobalMut<u64, Atomic>,
    epoch: u32,
    slots: u32,
    op: R,
    barriers: Shared<SplitBarriers<{ EVENTS * SCAN_PIPELINE_SLOTS }>>,
    tiles: Shared<[u64; SCAN_PIPELINE_SLOTS]>,
    values: Shared<ScanPipelineStorage<S::Item>>,
    items: SharedSlice<S::Item>,
) where
    S: Source<Item: Element>,
    R: Reducer<S::Item> + KernelParam,
{
    cx.require_at_most(x.len(), out.len());
    // The compiler follows only one branch of this chain of conditions.
    macro_rules! vectors_of {
        ($($n:literal)*) => {
            $(if const { scan_pipeline_tile::<S>() > 0 && scan_vector::<S>() == $n } {
                let tile = const { scan_pipeline_tile::<S>() };
                let chain = Chain::new(cx, &chain, (x.len() + lead::<S, $n>(x)).div_ceil(tile)).epoch(epoch);
                let values = values.array(0, SCAN_PIPELINE_SLOTS * VALUES);
                let slots = (slots as usize).clamp(1, SCAN_PIPELINE_SLOTS);
                cx.require_at_most(slots * tile, items.len());
                Pipeline::<S, R, $n, EXCLUSIVE> {
                    cx, x, first, before, op, slots,
                    chain: &chain, barriers: &barriers, tiles: tiles.array(0, SCAN_PIPELINE_SLOTS), values, items: items.array(),
                }
                .run(&mut out)
            } else)* {
            }
        };
    }
    vectors_of! { 16 8 4 2 1 }
}

/// The values that the warps of a block have in common.
struct Pipeline<'a, 'k, S: Source, R, const N: usize, const EXCLUSIVE: bool> {
    cx: Block<'k>,
    x: Input<'k, S>,
    first: S::Item,
    before: Global<'k, S::Item>,
    op: R,
    slots: usize,
    chain: &'a Chain<'a, 'k, S::Item>,
    barriers: &'a Shared<'k, SplitBarriers<{ EVENTS * SCAN_PIPELINE_SLOTS }>>,
    tiles: SharedArray<'k, u64>,
    values: SharedArray<'k, S::Item>,
    items: SharedArray<'k, S::Item>,
}

/// The place of a warp in the pipeline: a slot of the ring, and the parity of its round.
#[derive(Clone, Copy, Default)]
struct PipelineState {
    slot: usize,
    parity: Parity,
}

/// A part of a tile in the input, which has contiguous vectors of a warp's lanes.
struct Part {
    /// The place of the first item. If the input begins inside a vector, this may be before the input, by less than a vector.
    start: usize,
    /// Whether the whole part is inside, and its vectors are aligned.
    is_whole: bool,
}

/// The number of items of a round, with a vector for each lane, and the number of items of a part.
const fn round<const N: usize>() -> usize {
    WARP as usize * N
}
const fn part_items<const N: usize>() -> usize {
    VECTORS * round::<N>()
}

impl<'k, S, R, const N: usize, const EXCLUSIVE: bool> Pipeline<'_, 'k, S, R, N, EXCLUSIVE>
where
    S: Source<Item: Element>,
    R: Reducer<S::Item> + Copy,
{
    /// Does the task of the warp for all tiles of the block.
    fn run(&self, out: &mut GlobalMut<S::Item>) {
        let Self { cx, barriers, .. } = *self;
        if cx.thread_rank() == 0 {
            for slot in 0..self.slots {
                let begin = |event: Event, warps: usize| barriers.begin(slot * EVENTS + event as usize, warps as u32);
                begin(Event::Given, 1);
                begin(Event::Combined, PARTS);
                begin(Event::Known, 1);
                // These are the warps that scan, and the warp that publishes.
                begin(Event::Done, PARTS + 1);
            }
        }
        cx.barrier();
        match cx.warp() as usize {
            0 => self.give(),
            1 => self.learn(),
            2 => self.publish(),
            warp if warp < 3 + PARTS => self.combine(warp - 3),
            warp => self.scan(warp - 3 - PARTS, out),
        }
    }

    #[inline(always)]
    #[track_caller]
    fn wait(&self, event: Event, state: PipelineState) {
        self.barriers.wait(state.slot * EVENTS + event as usize, state.parity);
    }

    #[inline(always)]
    #[track_caller]
    fn arrive(&self, event: Event, state: PipelineState) {
        self.barriers.arrive(state.slot * EVENTS + event as usize);
    }

    #[inline(always)]
    fn next(&self, PipelineState { slot, parity }: PipelineState) -> PipelineState {
        if slot + 1 < self.slots {
            PipelineState { slot: slot + 1, parity }
        } else {
            PipelineState { slot: 0, parity: parity.other() }
        }
    }

    /// Returns the tile of the slot, or `None` if there are no more tiles.
    #[inline(always)]
    #[track_caller]
    fn tile(&self, state: PipelineState) -> Option<usize> {
        // SAFETY: inside; it was written before the slot was given, for which the caller has waited.
        let tile = unsafe { self.tiles.load(state.slot) } as usize;
        if tile < self.chain.tiles() { Some(tile) } else { None }
    }

    /// Returns the places in the slot of the value before the lane's share of a part, of the result of a part, and of the result of all
    /// tiles before.
    #[inline(always)]
    fn before_share(&self, state: PipelineState, part: usize) -> usize {
        state.slot * VALUES + part * WARP as usize + self.cx.lane() as usize
    }
    #[inline(always)]
    fn total(&self, state: PipelineState, part: usize) -> usize {
        state.slot * VALUES + PARTS * WARP as usize + part
    }
    #[inline(always)]
    fn before_tile(&self, state: PipelineState) -> usize {
        self.total(state, PARTS)
    }

    /// Gives each slot a tile as soon as the slot is free. At the end, it gives no tile.
    fn give(&self) {
        let (cx, mut state) = (self.cx, PipelineState::default());
        // The first lane has this number. The other lanes only wait and arrive.
        let mut tile = if cx.lane() == 0 { self.chain.first_tile() } else { 0 };
        loop {
            // The number of the next tile is in flight meanwhile.
            let next = if cx.lane() == 0 && tile < self.chain.tiles() { self.chain.next_tile() } else { tile };
            self.wait(Event::Done, PipelineState { parity: state.parity.other(), ..state });
            if cx.lane() == 0 {
                // SAFETY: inside; those who had the slot are done with it, and others read it once it is given.
                unsafe { self.tiles.store(state.slot, tile as u64) };
            }
            self.arrive(Event::Given, state);
            if cx.any(FULL_MASK, tile >= self.chain.tiles()) {
                return;
            }
            (state, tile) = (self.next(state), next);
        }
    }

    /// Computes the result of all tiles before each tile.
    fn learn(&self) {
        let (mut state, mut known) = (PipelineState::default(), Known::nothing(&self.op));
        let first = combined_after(self.first, self.before, &self.op);
        loop {
            self.wait(Event::Given, state);
            let Some(tile) = self.tile(state) else { return };
            let before = self.op.apply(first, self.chain.prefix_after(&mut known, tile, &self.op));
            if self.cx.lane() == 0 {
                // SAFETY: inside; others read it once it is known.
                unsafe { self.values.store(self.before_tile(state), before) };
            }
            self.arrive(Event::Known, state);
            state = self.next(state);
        }
    }

    /// Publishes the result of each tile.
    fn publish(&self) {
        let mut state = PipelineState::default();
        loop {
            self.wait(Event::Combined, state);
            let Some(tile) = self.tile(state) else { return };
            let mut totals = [self.op.identity(); PARTS];
            for (part, total) in totals.iter_mut().enumerate() {
                // SAFETY: inside; written before it was combined.
                *total = unsafe { self.values.load(self.total(state, part)) };
            }
            self.chain.announce(tile, in_order(&totals, &self.op));
            self.arrive(Event::Done, state);
            state = self.next(state);
        }
    }

    fn part(&self, tile: usize, part: usize) -> Part {
        let lead = lead::<S, N>(self.x);
        let first = (tile * PARTS + part) * part_items::<N>();
        let start = first.wrapping_sub(lead);
        let is_inside = first >= lead && first + part_items::<N>() <= self.x.len() + lead;
        Part { start, is_whole: is_inside && self.x.is_aligned::<N>(start) }
    }

    /// Returns the place of the part in shared memory.
    #[inline(always)]
    fn first_item(&self, state: PipelineState, part: usize) -> usize {
        (state.slot * PARTS + part) * part_items::<N>()
    }

    /// Begins to load a part of a tile.
    fn load(&self, state: PipelineState, tile: usize, part: usize) {
        let lane = self.cx.lane() as usize;
        let (Part { start, is_whole }, staged) = (self.part(tile, part), self.first_item(state, part));
        for v in 0..VECTORS {
            let beside = v * round::<N>() + lane * N;
            let (from, at) = (start.wrapping_add(beside), staged + beside);
            // SAFETY: those who had the slot are done with it; each lane of the part's warp writes its own vectors, and others read them
            // once they are combined. Of the input what is known to be inside.
            unsafe {
                if is_whole {
                    self.x.copy_vector_inside::<N>(from, self.items, at);
                } else if !self.x.copy::<N>(from, self.items, at) {
                    // The items before the beginning and after the end are the identity, which changes nothing.
                    for i in 0..N {
                        let item = self.x.get(from.wrapping_add(i)).unwrap_or(self.op.identity());
                        self.items.store(at + i, item);
                    }
                }
            }
        }
    }

    /// Begins to load a part of the slot's tile, if there is a tile. Returns whether there is one. The copies are a group.
    fn load_next(&self, state: &mut PipelineState, part: usize) -> bool {
        self.wait(Event::Given, *state);
        let tile = self.tile(*state);
        if let Some(tile) = tile {
            self.load(*state, tile, part);
        }
        self.x.group_copies();
        *state = self.next(*state);
        tile.is_some()
    }

    /// Combines the items of a vector in shared memory.
    #[inline(always)]
    fn combined(&self, at: usize) -> S::Item {
        // SAFETY: inside; the warp has loaded it.
        in_order(&unsafe { self.items.load_items::<N>(at) }, &self.op)
    }

    /// Loads a part of each tile, and combines each lane's share of it. A share is an odd number of successive vectors.
    fn combine(&self, part: usize) {
        let (cx, lane) = (self.cx, self.cx.lane() as usize);
        // If there is one slot, a tile is loaded after the tile before is done.
        let is_ahead = self.slots > 1;
        let (mut state, mut loading) = (PipelineState::default(), PipelineState::default());
        let mut are_more = !is_ahead || self.load_next(&mut loading, part);
        loop {
            if are_more {
                are_more = self.load_next(&mut loading, part);
            } else {
                self.x.group_copies();
            }
            if self.tile(state).is_none() {
                return self.arrive(Event::Combined, state);
            }
            if is_ahead {
                self.x.wait_for_copies_but_last()
            } else {
                self.x.wait_for_copies()
            }
            cx.sync_warp(FULL_MASK);
            let own = self.first_item(state, part) + lane * (VECTORS * N);
            let mut share = self.combined(own);
            for v in 1..VECTORS {
                share = self.op.apply(share, self.combined(own + v * N));
            }
            let (before, total) = warp_exclusive_scan(cx, share, self.op);
            // The value before all shares of lanes is combined with other values, and must not change them, so it is the identity.
            let before = if lane == 0 { self.op.identity() } else { before };
            // SAFETY: inside; others read it once it is combined.
            unsafe {
                self.values.store(self.before_share(state, part), before);
                if lane == 0 {
                    self.values.store(self.total(state, part), total);
                }
            }
            self.arrive(Event::Combined, state);
            state = self.next(state);
        }
    }

    /// Scans a part of each tile, and writes it.
    fn scan(&self, part: usize, out: &mut GlobalMut<S::Item>) {
        let (cx, op, lane) = (self.cx, self.op, self.cx.lane() as usize);
        let mut state = PipelineState::default();
        loop {
            self.wait(Event::Combined, state);
            let Some(tile) = self.tile(state) else { return };
            self.wait(Event::Known, state);
            // SAFETY: inside; written before it was combined and known.
            let value = |at: usize| unsafe { self.values.load(at) };
            let mut before = value(self.before_tile(state));
            for other in 0..PARTS {
                let total = value(self.total(state, other));
                if other < part {
                    before = op.apply(before, total);
                }
            }
            before = op.apply(before, value(self.before_share(state, part)));
            let staged = self.first_item(state, part);
            let own = staged + lane * (VECTORS * N);
            for v in 0..VECTORS {
                // SAFETY: the lane's share, which was loaded before it was combined; the warp's lanes read it after the next wait.
                unsafe {
                    let mut results = self.items.load_items::<N>(own + v * N);
                    scan_in_order::<_, _, N, EXCLUSIVE>(&mut before, &mut results, &op);
                    self.items.store_items(own + v * N, &results);
                }
            }
            cx.sync_warp(FULL_MASK);
            let Part { start, is_whole } = self.part(tile, part);
            if is_whole && out.is_aligned::<N>(start) {
                for v in 0..VECTORS {
                    let at = v * round::<N>() + lane * N;
                    // SAFETY: inside both; of all threads of the grid only this one has these places of the result.
                    unsafe { out.write_vector_inside(start + at, &self.items.load_items::<N>(staged + at)) };
                }
            } else {
                for at in (lane..part_items::<N>()).step_by(WARP as usize) {
                    let to = start.wrapping_add(at);
                    if to < self.x.len() {
                        // SAFETY: as above.
                        unsafe { out.write(to, self.items.load(staged + at)) };
                    }
                }
            }
            self.arrive(Event::Done, state);
            state = self.next(state);
        }
    }
}
