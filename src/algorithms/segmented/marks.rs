//! Which items begin a segment, as bits in shared memory: what scans of segments share.

use kernel_primitives::input::Source;
use kernel_primitives::prelude::*;
use kernel_primitives::simt::WARP;

use super::kernel::offsets_before;
use crate::algorithms::scan::kernel::SCAN_THREADS;
use crate::algorithms::search::kernel::warp_bound;

#[cfg(test)]
mod tests;

/// Offsets of a lane that are on their way at a time.
const AHEAD: usize = 8;

/// Offsets that [`SCAN_THREADS`] threads check at most for one tile of a scan: a launch has enough tiles for all.
pub const SEGMENT_SCAN_OFFSETS: usize = 128 * SCAN_THREADS;

/// The segments of an input of so many items. Items between two offsets are one, and so are those before the first offset, and after the
/// last.
#[derive(Clone, Copy)]
pub(crate) struct Offsets<'k, O: Source> {
    pub(crate) offsets: Input<'k, O>,
    pub(crate) items: usize,
}

/// Where a warp marks the items that begin a segment: a byte for each `N` items, four of them a word.
#[derive(Clone, Copy)]
pub(crate) struct MarkWords<'k> {
    pub(crate) cx: Block<'k>,
    pub(crate) words: SharedArray<'k, u32>,
    /// The word of the first items.
    pub(crate) first_word: usize,
    /// The place of the first item, and how many there are.
    pub(crate) first: usize,
    pub(crate) len: usize,
    /// The place of the input's first item: less than a vector, where tiles begin before the input.
    pub(crate) lead: usize,
}

impl MarkWords<'_> {
    /// Marks no item but the input's first one, which begins a segment. Before the warp marks more, it waits.
    pub(crate) fn clear<const N: usize>(self) {
        let words = self.len / (VECTORS * N);
        for word in (self.cx.lane() as usize..words).step_by(WARP as usize) {
            let marks = if self.first + word == 0 { 1 << self.lead } else { 0 };
            // SAFETY: the warp's own words, of which each lane writes some; the others wait.
            unsafe { self.words.store(self.first_word + word, marks) };
        }
    }
}

impl<O: Source<Item: Integer + ConvertTo<u64>>> Offsets<'_, O> {
    /// Marks the items that an offset is at, beside the marks that there are.
    pub(crate) fn put<const N: usize>(self, to: MarkWords) {
        let Self { offsets, items } = self;
        let MarkWords { cx, first, len, lead, .. } = to;
        let lane = cx.lane() as usize;
        let end = (first + len) as u64;
        // After the last offset there are none.
        let at = |index: usize| {
            let place = |offset: O::Item| ConvertTo::<u64>::convert(offset).saturating_add(lead as u64);
            offsets.get(index).map_or(u64::MAX, place)
        };
        let mut next = offsets_before(cx, offsets, offsets.len(), (first.saturating_sub(lead) as u64, items as u64));
        loop {
            let mut begins = [u64::MAX; AHEAD];
            for (k, begin) in begins.iter_mut().enumerate() {
                *begin = at(next + k * WARP as usize + lane);
            }
            for &begin in &begins {
                put::<N>(to, begin, end);
            }
            let [least, greatest] =
                [(begins[0], 0), (begins[AHEAD - 1], WARP - 1)].map(|(begin, lane)| warp_broadcast(cx, begin, lane));
            // By a vote: a lane that found a wrong offset has left, and what is shuffled out of it is anything.
            if cx.any(FULL_MASK, begins[AHEAD - 1] >= end) {
                return;
            }
            next += AHEAD * WARP as usize;
            if least == greatest {
                // Empty segments, any number of them.
                next += warp_bound(cx, offsets.len().saturating_sub(next), |index| at(next + index) <= greatest);
            }
        }
    }

    /// Faults unless one share of so many of all offsets is in order and inside. [`SCAN_THREADS`] threads have a share, each with its rank.
    #[track_caller]
    pub(crate) fn check_share(self, cx: Block, (share, shares): (usize, usize), rank: usize) {
        let Self { offsets, items } = self;
        let at = |index: usize| offsets.get(index).map_or(0, ConvertTo::convert);
        // At least one, or a division by zero would make the kernel prepare for a panic.
        let len = offsets.len().div_ceil(shares.max(1));
        let first = share * len;
        let end = (first + len).min(offsets.len());
        let mut next = first + rank;
        while next < end {
            let mut segments = [(0u64, 0u64); AHEAD];
            for (k, segment) in segments.iter_mut().enumerate() {
                let index = next + k * SCAN_THREADS;
                if index < end {
                    *segment = (at(index.wrapping_sub(1)), at(index));
                }
            }
            for &(begin, end) in &segments {
                cx.require_at_most(begin as usize, end as usize);
                cx.require_at_most(end as usize, items);
            }
            next += AHEAD * SCAN_THREADS;
        }
    }
}

/// Bytes of a word, with the marks of so many items each.
const VECTORS: usize = size_of::<u32>();

/// Marks the item at `begin`, of each lane of a warp, if it is among those of the words, which end before `end`. The lanes' items do not
/// decrease.
fn put<const N: usize>(to: MarkWords, begin: u64, end: u64) {
    let MarkWords { cx, words, first_word, first, .. } = to;
    let is_inside = begin >= first as u64 && begin < end;
    if !cx.any(FULL_MASK, is_inside) {
        return;
    }
    let place = begin.wrapping_sub(first as u64) as u32;
    let (vector, item) = (place / N as u32, place % N as u32);
    let word = if is_inside { vector / VECTORS as u32 } else { u32::MAX };
    let mut marks = if is_inside { 1u32 << (vector % VECTORS as u32 * u8::BITS + item) } else { 0 };
    // Lanes of one word are neighbours: the last of them has the marks of all, and the word to itself.
    let lane = cx.lane();
    let is_shared = word == cx.shuffle_down(FULL_MASK, word, 1, WARP) && lane < WARP - 1;
    if cx.any(FULL_MASK, is_shared && is_inside) {
        let mut apart = 1;
        while apart < WARP {
            let [other, others] = [word, marks].map(|value| cx.shuffle_up(FULL_MASK, value, apart, WARP));
            // A lane with none so far below gets its own.
            marks |= if other == word { others } else { 0 };
            apart *= 2;
        }
    }
    if is_inside && !is_shared {
        // SAFETY: inside the words; atomic between the waits of the warp.
        unsafe { words.at(first_word + word as usize).fetch_or(marks) };
    }
}
