//! The kernel of scans of few items. Some lanes, a warp or a block scan each segment, and no block waits for another.

use core::ops::Range;

use kernel_primitives::input::Source;
use kernel_primitives::prelude::*;
use kernel_primitives::simt::WARP;

use crate::algorithms::scan::kernel::{in_order, scan_vector};
use crate::algorithms::tile::scan_runs::{scan_runs, since_head};
use crate::algorithms::tile::staged::lead;
use crate::algorithms::tile::warps::{WarpStorage, put_by_warp};

/// The number of threads of a block of [`segment_scan_warps`](struct@segment_scan_warps).
pub const SEGMENT_SCAN_WARPS_THREADS: usize = 256;

/// The number of warps of such a block.
const WARPS: usize = SEGMENT_SCAN_WARPS_THREADS / WARP as usize;

/// The number of results of warps for their shares of a segment. There are two for each warp: a warp writes one while another warp still
/// reads the other.
const TOTALS: usize = 2 * WARPS;

/// The number of places for the beginnings and the ends of a block's segments. A block has at most a segment for each thread.
const BOUNDS: usize = 2 * SEGMENT_SCAN_WARPS_THREADS;

/// The number of offsets that the one launch takes, even for few items. If there are more offsets, they must have at least [`ITEMS`] items
/// each.
const OFFSETS: usize = 8192;
const ITEMS: usize = 4;

/// Returns the number of vectors of a lane in flight, which is the number that 32 registers hold.
const fn rounds<S: Source>() -> usize {
    let words = match size_of::<S::Item>().div_ceil(size_of::<u32>()) {
        0 => 1,
        words => words,
    };
    match scan_vector::<S>() * words {
        0..=4 => 8,
        5..=8 => 4,
        9..=16 => 2,
        _ => 1,
    }
}

/// Returns the number of items that a lane has in flight.
const fn lane_items<S: Source>() -> usize {
    rounds::<S>() * scan_vector::<S>()
}

/// Returns the number of items of the largest segment that a warp of [`segment_scan_warps`](struct@segment_scan_warps) scans. All warps of
/// a block scan longer segments.
pub const fn segment_scan_warp_items<S: Source>() -> usize {
    2 * WARP as usize * lane_items::<S>()
}

/// Returns the number of lanes for a segment, as a power of two, for this many items and offsets. Returns `None` if tiles are better.
///
/// The lanes of a segment of average length hold it in a quarter of their registers, because longer segments are as common as shorter ones.
/// If the lanes of a warp are too few, all threads of a block are the lanes of a segment.
pub fn segment_scan_lane_bits<S: Source>(len: usize, offsets: usize) -> Option<u32> {
    let average = len.div_ceil(offsets.saturating_sub(1).max(1));
    let of_warp = segment_scan_warp_items::<S>();
    if offsets > OFFSETS.max(len / ITEMS) || average > of_warp * WARPS {
        return None;
    }
    let lanes = if average > of_warp {
        SEGMENT_SCAN_WARPS_THREADS
    } else {
        let items = (lane_items::<S>() / 4).max(scan_vector::<S>());
        average.div_ceil(items).max(1).next_power_of_two().min(WARP as usize)
    };
    Some(lanes.ilog2())
}

// PTX: segment_scan_warps__Span_f32_Span_u32_Add has 12 loads and 12 stores of 16 bytes.

/// Works as [`segment_scan_tiles`](struct@kernel_primitives::kernels::device::segment_scan_tiles), for few items, without a chain.
/// `1 << lane_bits` lanes scan a segment, up to all lanes of a block.
///
/// If a segment has more than twice the items that its lanes have in flight, all lanes of their warp scan it. If it has more than that for
/// a warp ([`segment_scan_warp_items`]), all warps of the block scan it. The items before the first offset are a segment, and so are the
/// items after the last offset. So there is one segment more than there are offsets.
#[allow(clippy::too_many_arguments, reason = "a kernel's parameters")]
#[kernel(launch(pub(crate)), threads(SEGMENT_SCAN_WARPS_THREADS), one_dimensional, min_blocks(if size_of::<S::Item>() < 8 { 2 } else { 1 }))]
pub fn segment_scan_warps<S, O, R>(
    cx: Block,
    x: Input<S>,
    offsets: Input<O>,
    first: S::Item,
    mut out: GlobalMut<S::Item>,
    lane_bits: u32,
    exclusive: bool,
    op: R,
    mut longs: Shared<WarpStorage<u32, WARPS>>,
    bounds: Shared<[u64; BOUNDS]>,
    totals: Shared<WarpStorage<S::Item, TOTALS>>,
) where
    S: Source<Item: Element>,
    O: Source<Item: Integer + ConvertTo<u64>>,
    R: Reducer<S::Item> + KernelParam,
{
    cx.require_at_most(x.len(), out.len());
    let lane_bits = lane_bits.min(const { SEGMENT_SCAN_WARPS_THREADS.ilog2() });
    let (lanes, thread) = (1usize << lane_bits, cx.thread_rank() as usize);
    let (group, rank) = (thread >> lane_bits, thread & (lanes - 1));
    let segment = cx.block_rank() * (SEGMENT_SCAN_WARPS_THREADS >> lane_bits) + group;
    let place = |index: usize| offsets.get(index).map_or(x.len() as u64, ConvertTo::convert);
    let begin: u64 = if segment == 0 { 0 } else { place(segment - 1) };
    let end: u64 = place(segment);
    cx.require_at_most(begin as usize, end as usize);
    cx.require_at_most(end as usize, x.len());
    // All lanes of a group take the values of its first lane, because a computed input may give each lane other values. They are kept
    // inside.
    let width = (lanes as u32).min(WARP);
    let [begin, end] = [begin, end].map(|place| cx.shuffle(FULL_MASK, place, 0, width));
    let end = end.min(x.len() as u64);
    let begin = begin.min(end);

    let items = (end - begin) as usize;
    let is_of_block = items > if lanes > WARP as usize { 0 } else { const { segment_scan_warp_items::<S>() } };
    let is_of_warp = !is_of_block && items > 2 * lanes * const { lane_items::<S>() };
    let is_first = rank == 0;
    let bounds = bounds.array::<u64>(0, BOUNDS);
    if is_of_block && is_first {
        // SAFETY: inside, and the group's own, which others read after a barrier.
        unsafe {
            bounds.store(2 * group, begin);
            bounds.store(2 * group + 1, end);
        }
    }
    let of_block = cx.ballot(FULL_MASK, is_of_block && is_first);
    let segments = BlockSegments {
        lane_bits,
        own: [begin, end],
        of_lanes: !is_of_block && !is_of_warp,
        of_warp: cx.ballot(FULL_MASK, is_of_warp && is_first),
        is_of_block,
        of_block: put_by_warp(cx, &mut longs, of_block),
        bounds,
    };
    let totals = totals.array::<S::Item>(0, TOTALS);
    macro_rules! shapes {
        ($($n:literal x $rounds:literal / $half:literal)*) => {
            const {
                let shape = (scan_vector::<S>(), rounds::<S>());
                assert!(matches!(shape, (1, 1) $(| ($n, $rounds))*), "a shape is missing");
            }
            // The compiler follows only one branch of this chain of conditions.
            $(if const { scan_vector::<S>() == $n && rounds::<S>() == $rounds } {
                let scan = SegmentScan::<S, R, $n>::new(cx, x, (first, exclusive), op, &out);
                scan.segments::<$rounds, $half>(&segments, totals, &mut out)
            } else)* {
                let scan = SegmentScan::<S, R, 1>::new(cx, x, (first, exclusive), op, &out);
                scan.segments::<1, 1>(&segments, totals, &mut out)
            }
        };
    }
    shapes! { 16 x 2 / 1  8 x 4 / 2  4 x 8 / 4  2 x 8 / 4  1 x 8 / 4  1 x 4 / 2  1 x 2 / 1 }
}

/// The segments of a block, and the lanes that scan each of them.
struct BlockSegments<'k> {
    lane_bits: u32,
    /// The beginning and the end of the segment of this lane's group, and whether the group alone scans it.
    own: [u64; 2],
    of_lanes: bool,
    /// The first lanes of the groups of the warp whose segments the warp scans.
    of_warp: u32,
    /// Whether the block scans the segment of this lane's group; and, for each warp, the first lanes of the groups whose segments it scans.
    is_of_block: bool,
    of_block: SharedArray<'k, u32>,
    /// The beginnings and the ends of the segments that the block scans.
    bounds: SharedArray<'k, u64>,
}

/// A scan of segments of an input by vectors of `N` items. The places of items include the items that the first vector lacks, so that
/// vectors begin at multiples of `N`.
struct SegmentScan<'k, S: Source, R, const N: usize> {
    cx: Block<'k>,
    x: Input<'k, S>,
    lead: usize,
    reads_vectors: bool,
    writes_vectors: bool,
    first: S::Item,
    exclusive: bool,
    op: R,
}

/// The vectors of a lane: the place of the first one, the distance between two, and the beginning and the end of their range.
#[derive(Clone, Copy)]
struct LaneVectors {
    own: usize,
    apart: usize,
    begin: usize,
    end: usize,
}

impl<'k, S, R, const N: usize> SegmentScan<'k, S, R, N>
where
    S: Source<Item: Element>,
    R: Reducer<S::Item> + Copy,
{
    fn new(
        cx: Block<'k>,
        x: Input<'k, S>,
        (first, exclusive): (S::Item, bool),
        op: R,
        out: &GlobalMut<S::Item>,
    ) -> Self {
        let lead = lead::<S, N>(x);
        let inside = if lead == 0 { 0 } else { N - lead };
        let (reads_vectors, writes_vectors) = (x.is_aligned::<N>(inside), out.is_aligned::<N>(inside));
        Self { cx, x, lead, reads_vectors, writes_vectors, first, exclusive, op }
    }

    /// Scans the segments of the block. A lane has `ROUNDS` vectors in flight, or `HALF` of them if no segment of the warp needs more.
    fn segments<const ROUNDS: usize, const HALF: usize>(
        &self,
        segments: &BlockSegments,
        totals: SharedArray<S::Item>,
        out: &mut GlobalMut<S::Item>,
    ) {
        let cx = self.cx;
        let &BlockSegments { lane_bits, own, of_lanes, mut of_warp, is_of_block, of_block, bounds } = segments;
        let mut lanes = if lane_bits < WARP.ilog2() { 1 << lane_bits } else { WARP };
        let mut turn = if of_lanes { own } else { [0, 0] };
        loop {
            self.by_lanes::<ROUNDS, HALF>(lanes, turn[0] as usize..turn[1] as usize, out);
            if of_warp == 0 {
                break;
            }
            let lane = of_warp.trailing_zeros();
            of_warp &= of_warp - 1;
            (lanes, turn) = (WARP, own.map(|place| warp_broadcast(cx, place, lane)));
        }

        if !cx.barrier_any(is_of_block) {
            return;
        }
        let (mut warp, mut half) = (0, 0);
        while warp < WARPS {
            // SAFETY: inside; all warps wrote theirs before the barrier.
            let mut left = unsafe { of_block.load(warp) };
            while left != 0 {
                let group = (warp * WARP as usize + left.trailing_zeros() as usize) >> lane_bits;
                left &= left - 1;
                // SAFETY: inside; the group's first lane wrote them before the barrier.
                let [begin, end] = [0, 1].map(|at| unsafe { bounds.load(2 * group + at) } as usize);
                // This keeps the range inside. If a lane has found a wrong offset and has left, the values may be anything.
                let end = end.min(self.x.len());
                half = self.by_block::<ROUNDS>(begin.min(end)..end, totals, half, out);
            }
            warp += 1;
        }
    }

    /// Scans the range of each group of `lanes` lanes. All lanes of the warp call it.
    fn by_lanes<const ROUNDS: usize, const HALF: usize>(
        &self,
        lanes: u32,
        range: Range<usize>,
        out: &mut GlobalMut<S::Item>,
    ) {
        let cx = self.cx;
        let (begin, end) = (range.start + self.lead, range.end + self.lead);
        let (rank, apart) = (cx.lane() & (lanes - 1), lanes as usize * N);
        let mut start = if begin < end { begin & !(N - 1) } else { end };
        let mut before = None;
        while cx.any(FULL_MASK, start < end) {
            let share = LaneVectors { own: start + rank as usize * N, apart, begin, end };
            let needs_all = HALF < ROUNDS && cx.any(FULL_MASK, start + HALF * apart < end);
            let total = if needs_all {
                self.part::<ROUNDS>((lanes, rank), share, before, out)
            } else {
                self.part::<HALF>((lanes, rank), share, before, out)
            };
            before = Some(total);
            start += ROUNDS * apart;
        }
    }

    /// Scans a part of the range of each group, given the result of the parts before. Returns the result of all parts so far.
    fn part<const ROUNDS: usize>(
        &self,
        group: (u32, u32),
        share: LaneVectors,
        before: Option<S::Item>,
        out: &mut GlobalMut<S::Item>,
    ) -> S::Item {
        let vectors = self.load::<ROUNDS>(share);
        let upto = self.upto(&vectors, share, group.0);
        self.finish(vectors, upto, group, share, before, out)
    }

    /// Scans a range with all warps. Each warp has a share of a part. Returns the half of the totals that comes next.
    fn by_block<const ROUNDS: usize>(
        &self,
        range: Range<usize>,
        totals: SharedArray<S::Item>,
        mut half: usize,
        out: &mut GlobalMut<S::Item>,
    ) -> usize {
        let (cx, op) = (self.cx, self.op);
        let (lane, own_warp) = (cx.lane(), cx.warp() as usize);
        let (begin, end) = (range.start + self.lead, range.end + self.lead);
        let apart = WARP as usize * N;
        let mut start = begin & !(N - 1);
        let mut before: Option<S::Item> = None;
        while start < end {
            let rounds = (end - start).div_ceil(WARPS * apart).min(ROUNDS);
            let own = start + own_warp * (rounds * apart);
            // The share ends before the share of the next warp.
            let share = LaneVectors { own: own + lane as usize * N, apart, begin, end: end.min(own + rounds * apart) };
            let vectors = self.load::<ROUNDS>(share);
            let upto = self.upto(&vectors, share, WARP);
            let mut total = upto[0];
            for (round, &upto) in upto.iter().enumerate().skip(1) {
                if round < rounds {
                    total = op.apply(total, upto);
                }
            }
            let first_total = half * WARPS;
            if lane == WARP - 1 {
                // SAFETY: inside, and the warp's own. Others have read what was there before the last barrier.
                unsafe { totals.store(first_total + own_warp, total) };
            }
            cx.barrier();
            let mut before_own = before;
            for warp in 0..WARPS {
                if warp == own_warp {
                    before_own = before;
                }
                // SAFETY: inside; written before the barrier.
                let total = unsafe { totals.load(first_total + warp) };
                before = Some(before.map_or(total, |before| op.apply(before, total)));
            }
            self.finish(vectors, upto, (WARP, lane), share, before_own, out);
            half ^= 1;
            start += WARPS * ROUNDS * apart;
        }
        half
    }

    /// Loads the vectors of a lane that have items of the range. In place of items outside of the range come identities, because the
    /// operator is called with items of one segment only.
    fn load<const ROUNDS: usize>(&self, share: LaneVectors) -> [[S::Item; N]; ROUNDS] {
        let LaneVectors { own, apart, begin, end } = share;
        let (x, lead) = (self.x, self.lead);
        let mut vectors = [[self.op.identity(); N]; ROUNDS];
        let (least, most) = (begin & !(N - 1), (end + N - 1) & !(N - 1));
        if self.reads_vectors && least >= lead && most <= x.len() + lead {
            for (round, vector) in vectors.iter_mut().enumerate() {
                let at = own + round * apart;
                if at < end {
                    // SAFETY: inside, as the first vector and the last one of the range are; and aligned.
                    *vector = unsafe { x.vector_inside(at - lead) };
                    if at < begin || at + N > end {
                        for (i, item) in vector.iter_mut().enumerate() {
                            if at + i < begin || at + i >= end {
                                *item = self.op.identity();
                            }
                        }
                    }
                }
            }
        } else {
            for (round, vector) in vectors.iter_mut().enumerate() {
                for (i, item) in vector.iter_mut().enumerate() {
                    let at = own + round * apart + i;
                    if at >= begin
                        && at < end
                        && let Some(value) = x.get(at - lead)
                    {
                        *item = value;
                    }
                }
            }
        }
        vectors
    }

    /// Returns a bit for the item of a lane's first vector that begins the range, or 0 if the vector does not have it.
    fn head(&self, share: LaneVectors) -> u32 {
        let LaneVectors { own, begin, .. } = share;
        if own <= begin && begin < own + N { 1 << (begin - own) } else { 0 }
    }

    /// Returns, for each round, the items from the beginning of the range or of the round up to and including this lane's vector, combined.
    fn upto<const ROUNDS: usize>(
        &self,
        vectors: &[[S::Item; N]; ROUNDS],
        share: LaneVectors,
        lanes: u32,
    ) -> [S::Item; ROUNDS] {
        let (cx, op) = (self.cx, self.op);
        let mut upto = [op.identity(); ROUNDS];
        for (round, vector) in vectors.iter().enumerate() {
            upto[round] = if round == 0 { since_head(vector, self.head(share), &op) } else { in_order(vector, &op) };
        }
        let mut apart = 1;
        while apart < lanes {
            for upto in &mut upto {
                if let Some(below) = cx.try_shuffle_up(FULL_MASK, *upto, apart, lanes) {
                    *upto = op.apply(below, *upto);
                }
            }
            apart *= 2;
        }
        upto
    }

    /// Scans the vectors of the lanes of each group, given the result of the range's items before them, if there are any. Writes the items
    /// of the range. Returns the result of all these items.
    fn finish<const ROUNDS: usize>(
        &self,
        mut vectors: [[S::Item; N]; ROUNDS],
        upto: [S::Item; ROUNDS],
        (lanes, rank): (u32, u32),
        share: LaneVectors,
        mut before: Option<S::Item>,
        out: &mut GlobalMut<S::Item>,
    ) -> S::Item {
        let Self { cx, lead, writes_vectors, first, exclusive, op, .. } = *self;
        let LaneVectors { own, apart, begin, end } = share;
        let mut total = upto[0];
        for (round, vector) in vectors.iter_mut().enumerate() {
            let upto = upto[round];
            let before_lane = cx.shuffle_up(FULL_MASK, upto, 1, lanes);
            let of_round = cx.shuffle(FULL_MASK, upto, lanes - 1, lanes);
            let mut sum = match before {
                // In the first lane, this may be anything, because the range begins in its vector.
                None => before_lane,
                Some(before) if rank == 0 => before,
                Some(before) => op.apply(before, before_lane),
            };
            let head = if round == 0 { self.head(share) } else { 0 };
            if exclusive {
                scan_runs(vector, head, &mut sum, op, |sum, _| sum.map_or(first, |sum| op.apply(first, sum)));
            } else {
                scan_runs(vector, head, &mut sum, op, |_, upto| upto);
            }
            total = before.map_or(of_round, |before| op.apply(before, of_round));
            before = Some(total);
            let at = own + round * apart;
            if writes_vectors && at >= begin && at + N <= end {
                // SAFETY: inside, since the range is, and aligned; of all lanes of the grid only this one has these items.
                unsafe { out.write_vector_inside(at - lead, vector) };
            } else {
                for (i, &item) in vector.iter().enumerate() {
                    if at + i >= begin && at + i < end {
                        // SAFETY: inside, since the range is; of all lanes of the grid only this one has the item.
                        unsafe { out.write_unchecked(at + i - lead, item) };
                    }
                }
            }
        }
        total
    }
}

#[cfg(test)]
mod tests;
