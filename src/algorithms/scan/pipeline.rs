//! The kernel of scans of many items: a pipeline of warps with a task each.

use kernel_primitives::grid::{Chain, Known};
use kernel_primitives::input::Source;
use kernel_primitives::prelude::*;
use kernel_primitives::simt::WARP;
use kernel_primitives::view::{SharedArray, SharedSlice, SharedStorage, SplitBarriers};

use crate::algorithms::scan::kernel::{in_order, scan_in_order, scan_vector};
use crate::algorithms::tile::ring::{
    PARTS, PIPELINE_VALUES, Ring, RingParts, RingState, SCAN_PIPELINE_SLOTS, ScanPipelineStorage, VECTORS,
    before_share, before_tile, scan_pipeline_tile, total_of_part,
};
use crate::algorithms::tile::staged::lead;

/// Threads of a block of [`scan_pipeline`](struct@scan_pipeline).
pub const SCAN_PIPELINE_THREADS: usize = (3 + 2 * PARTS) * WARP as usize;

/// What happens to a slot of a tile, each with a split barrier.
#[derive(Clone, Copy)]
enum Event {
    /// It has the number of a tile.
    Given,
    /// The tile's items are there, and what comes before each share in its part, and what the parts amount to.
    Combined,
    /// What all tiles before amount to is there.
    Known,
    /// All is written, and the next tile may come.
    Done,
}
const BARRIERS: usize = 4 * SCAN_PIPELINE_SLOTS;

/// How many warps arrive for each event: of the last one those that scan, and the one that publishes.
const ARRIVALS: [usize; 4] = [1, PARTS, 1, PARTS + 1];

/// Bytes of a block's shared memory besides the slots.
pub const fn scan_pipeline_shared<T: Element>() -> usize {
    let words = SplitBarriers::<BARRIERS>::BYTES + SCAN_PIPELINE_SLOTS * size_of::<u64>();
    (words + ScanPipelineStorage::<T>::BYTES).next_multiple_of(16)
}

/// As [`scan_tiles`](struct@kernel_primitives::kernels::device::scan_tiles), of many items in memory: at the speed of a copy.
///
/// A block that has a tile waits for all tiles before it, for longer than it takes to read it. So each block has several tiles under
/// way, in as many `slots` of [`scan_pipeline_tile`] items of shared memory, up to [`SCAN_PIPELINE_SLOTS`], and each of its warps
/// has a task, which it does for one tile after the other without waiting for the others' tasks:
///
/// 1. one gives each slot a tile once it is free,
/// 2. one learns what all tiles before amount to, from what all blocks publish,
/// 3. one publishes what the tile amounts to,
/// 4. eight load a part of the tile each, the next tile's while they combine this one's,
/// 5. eight scan a part each, and write it.
///
/// `chain` has the memory of a [`Chain`] of all tiles of the epoch `epoch`. Any number of blocks.
#[allow(clippy::too_many_arguments, reason = "a kernel's parameters")]
#[kernel(launch(pub(crate)), threads(SCAN_PIPELINE_THREADS))]
pub fn scan_pipeline<S, R, const EXCLUSIVE: bool>(
    cx: Block,
    x: Input<S>,
    first: S::Item,
    mut out: GlobalMut<S::Item>,
    chain: GlobalMut<u64, Atomic>,
    epoch: u32,
    slots: u32,
    op: R,
    barriers: Shared<SplitBarriers<BARRIERS>>,
    tiles: Shared<[u64; SCAN_PIPELINE_SLOTS]>,
    values: Shared<ScanPipelineStorage<S::Item>>,
    items: SharedSlice<S::Item>,
) where
    S: Source<Item: Element>,
    R: Reducer<S::Item> + KernelParam,
{
    cx.require_at_most(x.len(), out.len());
    // A chain of conditions, of which the compiler follows one alone.
    macro_rules! vectors_of {
        ($($n:literal)*) => {
            $(if const { scan_pipeline_tile::<S>() > 0 && scan_vector::<S>() == $n } {
                let tile = const { scan_pipeline_tile::<S>() };
                let chain = Chain::new(cx, &chain, (x.len() + lead::<S, $n>(x)).div_ceil(tile)).epoch(epoch);
                let slots = (slots as usize).clamp(1, SCAN_PIPELINE_SLOTS);
                cx.require_at_most(slots * tile, items.len());
                let tiles = tiles.array(0, SCAN_PIPELINE_SLOTS);
                Pipeline::<S, R, $n, EXCLUSIVE> {
                    ring: Ring { cx, chain: &chain, barriers: &barriers, tiles, slots },
                    parts: RingParts { cx, x, items: items.array(), nothing: op.identity() },
                    values: values.array(0, PIPELINE_VALUES),
                    first,
                    op,
                }
                .run(&mut out)
            } else)* {
            }
        };
    }
    vectors_of! { 16 8 4 2 1 }
}

/// What the warps of a block have in common.
struct Pipeline<'a, 'k, S: Source, R, const N: usize, const EXCLUSIVE: bool> {
    ring: Ring<'a, 'k, S::Item, BARRIERS>,
    parts: RingParts<'k, S, N>,
    values: SharedArray<'k, S::Item>,
    first: S::Item,
    op: R,
}

impl<S, R, const N: usize, const EXCLUSIVE: bool> Pipeline<'_, '_, S, R, N, EXCLUSIVE>
where
    S: Source<Item: Element>,
    R: Reducer<S::Item> + Copy,
{
    /// Does the warp's task for all tiles of the block.
    fn run(&self, out: &mut GlobalMut<S::Item>) {
        self.ring.begin(&ARRIVALS);
        match self.ring.cx.warp() as usize {
            0 => self.ring.give(Event::Given as usize, Event::Done as usize),
            1 => self.learn(),
            2 => self.publish(),
            warp if warp < 3 + PARTS => self.combine(warp - 3),
            warp => self.scan(warp - 3 - PARTS, out),
        }
    }

    #[inline(always)]
    #[track_caller]
    fn wait(&self, event: Event, state: RingState) {
        self.ring.wait(event as usize, state);
    }

    #[inline(always)]
    #[track_caller]
    fn arrive(&self, event: Event, state: RingState) {
        self.ring.arrive(event as usize, state);
    }

    /// Learns what all tiles before amount to.
    fn learn(&self) {
        let (mut state, mut known) = (RingState::default(), Known::nothing(&self.op));
        loop {
            self.wait(Event::Given, state);
            let Some(tile) = self.ring.tile(state) else { return };
            let before = self.op.apply(self.first, self.ring.chain.prefix_after(&mut known, tile, &self.op));
            if self.ring.cx.lane() == 0 {
                // SAFETY: inside; others read it once it is known.
                unsafe { self.values.store(before_tile(state.slot), before) };
            }
            self.arrive(Event::Known, state);
            state = self.ring.next(state);
        }
    }

    /// Publishes what each tile amounts to.
    fn publish(&self) {
        let mut state = RingState::default();
        loop {
            self.wait(Event::Combined, state);
            let Some(tile) = self.ring.tile(state) else { return };
            let mut totals = [self.op.identity(); PARTS];
            for (part, total) in totals.iter_mut().enumerate() {
                // SAFETY: inside; written before it was combined.
                *total = unsafe { self.values.load(total_of_part(state.slot, part)) };
            }
            self.ring.chain.announce(tile, in_order(&totals, &self.op));
            self.arrive(Event::Done, state);
            state = self.ring.next(state);
        }
    }

    /// What a vector in shared memory amounts to.
    #[inline(always)]
    fn combined(&self, at: usize) -> S::Item {
        // SAFETY: inside; the warp has loaded it.
        in_order(&unsafe { self.parts.items.load_items::<N>(at) }, &self.op)
    }

    /// Loads a part of each tile, and combines each lane's share of it.
    fn combine(&self, part: usize) {
        let (cx, op) = (self.ring.cx, self.op);
        self.parts.load_each(
            &self.ring,
            (Event::Given as usize, Event::Combined as usize),
            part,
            |RingState { slot, .. }| {
                let own = self.parts.share(slot, part);
                let mut share = self.combined(own);
                for v in 1..VECTORS {
                    share = op.apply(share, self.combined(own + v * N));
                }
                let (before, total) = warp_exclusive_scan(cx, share, op);
                // What comes before all lanes' shares is combined with more, and must not change it: no sum of nothing.
                let before = if cx.lane() == 0 { op.identity() } else { before };
                // SAFETY: inside; others read it once it is combined.
                unsafe {
                    self.values.store(before_share(slot, part, cx.lane()), before);
                    if cx.lane() == 0 {
                        self.values.store(total_of_part(slot, part), total);
                    }
                }
            },
        );
    }

    /// Scans a part of each tile, and writes it.
    fn scan(&self, part: usize, out: &mut GlobalMut<S::Item>) {
        let (cx, op) = (self.ring.cx, self.op);
        let mut state = RingState::default();
        loop {
            self.wait(Event::Combined, state);
            let Some(tile) = self.ring.tile(state) else { return };
            self.wait(Event::Known, state);
            // SAFETY: inside; written before it was combined and known.
            let value = |at: usize| unsafe { self.values.load(at) };
            let mut before = value(before_tile(state.slot));
            for other in 0..PARTS {
                let total = value(total_of_part(state.slot, other));
                if other < part {
                    before = op.apply(before, total);
                }
            }
            before = op.apply(before, value(before_share(state.slot, part, cx.lane())));
            let own = self.parts.share(state.slot, part);
            for v in 0..VECTORS {
                // SAFETY: the lane's share, which was loaded before it was combined; the warp's lanes read it after the next wait.
                unsafe {
                    let mut results = self.parts.items.load_items::<N>(own + v * N);
                    scan_in_order::<_, _, N, EXCLUSIVE>(&mut before, &mut results, &op);
                    self.parts.items.store_items(own + v * N, &results);
                }
            }
            // SAFETY: written above; of all warps of the grid only this one has the part.
            unsafe { self.parts.write(state.slot, tile, part, out) };
            self.arrive(Event::Done, state);
            state = self.ring.next(state);
        }
    }
}
