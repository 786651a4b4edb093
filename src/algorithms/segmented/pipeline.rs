//! The kernel of scans of many segments' items: a pipeline of warps with a task each.

use core::marker::PhantomData;

use kernel_primitives::element::Segmented;
use kernel_primitives::functor::BySegment;
use kernel_primitives::grid::Chain;
use kernel_primitives::input::Source;
use kernel_primitives::prelude::*;
use kernel_primitives::simt::WARP;
use kernel_primitives::view::{SharedArray, SharedSlice, SharedStorage, SplitBarriers};

use super::marks::{MarkWords, Offsets};
use crate::algorithms::scan::kernel::{SCAN_THREADS, in_order, scan_vector};
use crate::algorithms::tile::ring::{
    PARTS, PIPELINE_VALUES, Ring, RingParts, RingState, SCAN_PIPELINE_SLOTS, ScanPipelineStorage, VECTORS,
    before_share, before_tile, scan_pipeline_tile, total_of_part,
};
use crate::algorithms::tile::scan_runs::{scan_runs, since_head};
use crate::algorithms::tile::staged::lead;

/// Warps that mark a tile, a share each.
const MARKERS: usize = SCAN_THREADS / WARP as usize;

/// Tiles that are marked at a time. What a tile's marks take is the wait for two reads of offsets, or some more, one after the other: more
/// than it takes to read and write a tile.
const AT_A_TIME: usize = 2;

/// Threads of a block of [`segment_scan_pipeline`](struct@segment_scan_pipeline).
pub const SEGMENT_PIPELINE_THREADS: usize = (3 + 2 * PARTS + AT_A_TIME * MARKERS) * WARP as usize;

/// What happens to a slot of a tile, each with a split barrier.
#[derive(Clone, Copy)]
enum Event {
    /// It has the number of a tile.
    Given,
    /// Of each item of the tile it says whether it begins a segment.
    Marked,
    /// The tile's items are there, and what comes before each share in its part, and what the parts amount to.
    Combined,
    /// What the tiles before amount to is there.
    Known,
    /// All is written, and the next tile may come.
    Done,
}
const BARRIERS: usize = 5 * SCAN_PIPELINE_SLOTS;

/// How many warps arrive for each event. All markers do for each tile: one that passed over a tile could otherwise come so late that the
/// barrier is two phases ahead. Of the last event those that scan, and the one that publishes.
const ARRIVALS: [usize; 5] = [1, AT_A_TIME * MARKERS, PARTS, 1, PARTS + 1];

/// A word for each part of the slots' tiles: which lanes' shares have an item that begins a segment.
const HEADS: usize = SCAN_PIPELINE_SLOTS * PARTS;

/// A bit for each item of the slots' tiles of [`segment_scan_pipeline`](struct@segment_scan_pipeline): whether it begins a segment.
pub struct SegmentPipelineMarks<S>(PhantomData<S>);

impl<S: Source> SegmentPipelineMarks<S> {
    /// One at least, for sources that the pipeline is not for.
    const WORDS: usize = (SCAN_PIPELINE_SLOTS * scan_pipeline_tile::<S>()).div_ceil(u32::BITS as usize) + 1;
}

// SAFETY: uninitialised words.
unsafe impl<S: Source> SharedStorage for SegmentPipelineMarks<S> {
    const BYTES: usize = Self::WORDS * size_of::<u32>();
    const ALIGN: usize = 16;
}

/// Bytes of a block's shared memory besides the slots.
pub const fn segment_pipeline_shared<S: Source<Item: Element>>() -> usize {
    let of_words = (SplitBarriers::<BARRIERS>::BYTES + SCAN_PIPELINE_SLOTS * size_of::<u64>()).next_multiple_of(16);
    let of_heads = (HEADS * size_of::<u32>()).next_multiple_of(16);
    let of_marks = SegmentPipelineMarks::<S>::BYTES.next_multiple_of(16);
    of_words + of_heads + of_marks + ScanPipelineStorage::<S::Item>::BYTES.next_multiple_of(16)
}

/// As [`segment_scan_tiles`](struct@kernel_primitives::kernels::device::segment_scan_tiles), of many items in memory: a block reads and
/// writes tiles while others of its tiles wait.
///
/// It is the pipeline of [`scan_pipeline`](struct@kernel_primitives::kernels::device::scan_pipeline) with one task more. Tiles are of
/// items, whatever segments they have. Four warps look for the first segment that begins in their share of a tile, and mark the items that
/// begin one; four more do so for the next tile. What tiles, parts and shares amount to is what they do since the last such item, and a
/// tile waits for those before it back to the last one that has such an item.
///
/// `chain` has the memory of a [`Chain`] of all tiles of the epoch `epoch`. Any number of blocks.
#[allow(clippy::too_many_arguments, reason = "a kernel's parameters")]
#[kernel(launch(pub(crate)), threads(SEGMENT_PIPELINE_THREADS))]
pub fn segment_scan_pipeline<S, O, R>(
    cx: Block,
    x: Input<S>,
    offsets: Input<O>,
    first: S::Item,
    mut out: GlobalMut<S::Item>,
    chain: GlobalMut<u64, Atomic>,
    epoch: u32,
    slots: u32,
    exclusive: bool,
    op: R,
    barriers: Shared<SplitBarriers<BARRIERS>>,
    tiles: Shared<[u64; SCAN_PIPELINE_SLOTS]>,
    heads: Shared<[u32; HEADS]>,
    marks: Shared<SegmentPipelineMarks<S>>,
    values: Shared<ScanPipelineStorage<S::Item>>,
    items: SharedSlice<S::Item>,
) where
    S: Source<Item: Element>,
    O: Source<Item: Integer + ConvertTo<u64>>,
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
                SegmentPipeline::<S, O, R, $n> {
                    ring: Ring { cx, chain: &chain, barriers: &barriers, tiles, slots },
                    parts: RingParts { cx, x, items: items.array(), nothing: op.identity() },
                    offsets: Offsets { offsets, items: x.len() },
                    heads: heads.array(0, HEADS),
                    marks: marks.array(0, const { SegmentPipelineMarks::<S>::WORDS }),
                    values: values.array(0, PIPELINE_VALUES),
                    first,
                    exclusive,
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
struct SegmentPipeline<'a, 'k, S: Source, O: Source, R, const N: usize> {
    ring: Ring<'a, 'k, Segmented<S::Item>, BARRIERS>,
    parts: RingParts<'k, S, N>,
    offsets: Offsets<'k, O>,
    heads: SharedArray<'k, u32>,
    marks: SharedArray<'k, u32>,
    values: SharedArray<'k, S::Item>,
    first: S::Item,
    exclusive: bool,
    op: R,
}

impl<S, O, R, const N: usize> SegmentPipeline<'_, '_, S, O, R, N>
where
    S: Source<Item: Element>,
    O: Source<Item: Integer + ConvertTo<u64>>,
    R: Reducer<S::Item> + Copy,
{
    /// Items of a tile, and of a marker's share of it: whole words of marks.
    const TILE: usize = PARTS * VECTORS * WARP as usize * N;
    const SHARE: usize = Self::TILE / MARKERS;

    /// Does the warp's task for all tiles of the block.
    fn run(&self, out: &mut GlobalMut<S::Item>) {
        const { assert!(PARTS.is_multiple_of(MARKERS), "a share is of whole parts, and so of whole words") };
        self.ring.begin(&ARRIVALS);
        match self.ring.cx.warp() as usize {
            0 => self.ring.give(Event::Given as usize, Event::Done as usize),
            1 => self.learn(),
            2 => self.publish(),
            warp if warp < 3 + PARTS => self.combine(warp - 3),
            warp if warp < 3 + 2 * PARTS => self.scan(warp - 3 - PARTS, out),
            warp => self.mark(warp - 3 - 2 * PARTS),
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

    /// Marks a share of each tile whose turn is the marker's, and passes over the rest.
    fn mark(&self, marker: usize) {
        let (turn, share) = (marker / MARKERS, marker % MARKERS);
        let (mut state, mut of) = (RingState::default(), 0);
        loop {
            self.wait(Event::Given, state);
            let Some(tile) = self.ring.tile(state) else { return };
            if of == turn {
                self.mark_share(state.slot, tile, share);
            }
            self.arrive(Event::Marked, state);
            (state, of) = (self.ring.next(state), (of + 1) % AT_A_TIME);
        }
    }

    fn mark_share(&self, slot: usize, tile: usize, share: usize) {
        let (cx, offsets) = (self.ring.cx, self.offsets);
        let to = MarkWords {
            cx,
            words: self.marks,
            first_word: (slot * Self::TILE + share * Self::SHARE) / u32::BITS as usize,
            first: tile * Self::TILE + share * Self::SHARE,
            len: Self::SHARE,
            lead: lead::<S, N>(self.parts.x),
        };
        to.clear::<8>();
        offsets.check_share(cx, (tile, self.ring.chain.tiles()), share * WARP as usize + cx.lane() as usize);
        cx.sync_warp(FULL_MASK);
        offsets.put::<8>(to);
    }

    /// Which items of the vector at a place of the slots begin a segment.
    #[inline(always)]
    fn bits(&self, at: usize) -> u32 {
        let bits = u32::BITS as usize;
        // SAFETY: inside; the tile was marked. A vector has its bits in one word.
        let word = unsafe { self.marks.load(at / bits) };
        word >> (at % bits) & const { !0u32 >> (32 - N) }
    }

    /// Learns what the tiles before amount to, back to the last one in which a segment begins.
    fn learn(&self) {
        let op = BySegment(self.op);
        let mut state = RingState::default();
        loop {
            self.wait(Event::Combined, state);
            let Some(tile) = self.ring.tile(state) else { return };
            // Before a segment that begins with the tile there is nothing.
            let before = if self.bits(state.slot * Self::TILE) & 1 != 0 {
                op.identity()
            } else {
                // SAFETY: it was combined.
                let total = unsafe { self.total_of_tile(state.slot) };
                self.ring.chain.prefix_since_announced(tile, total, &op, |total| total.heads > 0)
            };
            if self.ring.cx.lane() == 0 {
                // SAFETY: inside; others read it once it is known.
                unsafe { self.values.store(before_tile(state.slot), before.total) };
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
            // SAFETY: it was combined.
            let total = unsafe { self.total_of_tile(state.slot) };
            if total.heads > 0 {
                self.ring.chain.announce_start(tile, total);
            } else {
                self.ring.chain.announce(tile, total);
            }
            self.arrive(Event::Done, state);
            state = self.ring.next(state);
        }
    }

    /// What the slot's tile amounts to.
    ///
    /// # Safety
    /// It was combined, and the slot has no other yet.
    #[inline(always)]
    unsafe fn total_of_tile(&self, slot: usize) -> Segmented<S::Item> {
        let op = BySegment(self.op);
        let mut totals: [Segmented<S::Item>; PARTS] = [op.identity(); PARTS];
        for (part, total) in totals.iter_mut().enumerate() {
            // SAFETY: the caller's contract.
            let (heads, of_part) = unsafe { (self.heads(slot, part), self.total(slot, part)) };
            *total = Segmented { heads: (heads != 0) as u64, total: of_part };
        }
        in_order(&totals, &op)
    }

    /// Which lanes' shares of a part have an item that begins a segment.
    ///
    /// # Safety
    /// The slot's tile was combined, and the slot has no other yet.
    #[inline(always)]
    unsafe fn heads(&self, slot: usize, part: usize) -> u32 {
        // SAFETY: inside, and the caller's contract.
        unsafe { self.heads.load(slot * PARTS + part) }
    }

    /// What a part amounts to since the last such item.
    ///
    /// # Safety
    /// As for [`heads`](Self::heads).
    #[inline(always)]
    unsafe fn total(&self, slot: usize, part: usize) -> S::Item {
        // SAFETY: inside, and the caller's contract.
        unsafe { self.values.load(total_of_part(slot, part)) }
    }

    /// Loads a part of each tile, and combines each lane's share of it.
    fn combine(&self, part: usize) {
        let (cx, op) = (self.ring.cx, self.op);
        let events = (Event::Given as usize, Event::Combined as usize);
        self.parts.load_each(&self.ring, events, part, |state| {
            self.wait(Event::Marked, state);
            let own = self.parts.share(state.slot, part);
            let (mut has_head, mut total) = (false, op.identity());
            for v in 0..VECTORS {
                // SAFETY: inside; the warp has loaded it.
                let items = unsafe { self.parts.items.load_items::<N>(own + v * N) };
                let bits = self.bits(own + v * N);
                let since = since_head(&items, bits, &op);
                total = if v == 0 || bits != 0 { since } else { op.apply(total, since) };
                has_head |= bits != 0;
            }
            let heads = cx.ballot(FULL_MASK, has_head);
            let share = Segmented { heads: has_head as u64, total };
            let (before, all) = warp_exclusive_scan(cx, share, BySegment(op));
            // What comes before all lanes' shares is combined with more, and must not change it: no sum of nothing.
            let before = if cx.lane() == 0 { op.identity() } else { before.total };
            // SAFETY: inside; others read it once it is combined.
            unsafe {
                self.values.store(before_share(state.slot, part, cx.lane()), before);
                if cx.lane() == 0 {
                    self.values.store(total_of_part(state.slot, part), all.total);
                    self.heads.store(state.slot * PARTS + part, heads);
                }
            }
        });
    }

    /// Scans a part of each tile, and writes it.
    fn scan(&self, part: usize, out: &mut GlobalMut<S::Item>) {
        let (cx, op, first) = (self.ring.cx, self.op, self.first);
        let mut state = RingState::default();
        loop {
            self.wait(Event::Combined, state);
            let Some(tile) = self.ring.tile(state) else { return };
            self.wait(Event::Known, state);
            // SAFETY: inside; written before it was combined and known.
            let value = |at: usize| unsafe { self.values.load(at) };
            let mut sum = value(before_tile(state.slot));
            let mut heads = 0u32;
            for other in 0..PARTS {
                // SAFETY: it was combined.
                let (of_part, total) = unsafe { (self.heads(state.slot, other), self.total(state.slot, other)) };
                if other < part {
                    sum = if of_part != 0 { total } else { op.apply(sum, total) };
                } else if other == part {
                    heads = of_part;
                }
            }
            let before = value(before_share(state.slot, part, cx.lane()));
            let is_head_before = heads & !(!0u32 << cx.lane()) != 0;
            sum = if is_head_before { before } else { op.apply(sum, before) };
            let own = self.parts.share(state.slot, part);
            for v in 0..VECTORS {
                let bits = self.bits(own + v * N);
                // SAFETY: the lane's share, which was loaded before it was combined; the warp's lanes read it after the next wait.
                unsafe {
                    let mut results = self.parts.items.load_items::<N>(own + v * N);
                    if self.exclusive {
                        scan_runs(&mut results, bits, &mut sum, op, |sum, _| {
                            sum.map_or(first, |sum| op.apply(first, sum))
                        });
                    } else {
                        scan_runs(&mut results, bits, &mut sum, op, |_, upto| upto);
                    }
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
