//! Collectives of a grid: tiles in the order in which blocks ask for them, and prefixes over tiles in one pass.
//!
//! A scan over many tiles needs, for each tile, the combination of all tiles before it. With a [`Chain`], a block publishes the total of
//! its tile as soon as it is known, and looks back at the totals of the tiles before it. Each element of memory is read and written once.
//! The method is the decoupled look-back of Merrill and Garland, "Single-pass parallel prefix scan with decoupled look-back" (2016), with a
//! tree of fixed shape instead of a row of tiles.

use core::marker::PhantomData;
use core::mem::size_of;
use core::panic::Location;

use crate::element::{AnyBits, Element};
use crate::functor::Reducer;
use crate::simt::{AtomicRef, Block, FULL_MASK, FaultKind, WARP};
use crate::view::{Atomic, GlobalMut, Shared};
use crate::warp;

/// The number of tiles in a group, and of groups in a section.
const GROUP: usize = WARP as usize;

/// The number of groups that a [look-back after known groups](Chain::prefix_after) reads at once.
const AT_ONCE: usize = 8;

/// The nanoseconds between two looks at values that are not ready.
const WAIT: u32 = 40;

/// The combination of the groups of a [`Chain`] up to some group. A warp keeps it from tile to tile for [`Chain::prefix_after`].
#[derive(Clone, Copy, Debug)]
pub struct Known<T> {
    groups: usize,
    total: T,
}

impl<T: Copy> Known<T> {
    /// Starts without any group.
    #[inline(always)]
    pub fn nothing<R: Reducer<T>>(op: &R) -> Self {
        Self { groups: 0, total: op.identity() }
    }
}

/// The tiles of a grid in order, and the total of each, in global memory.
///
/// The memory has [`Chain::words`]`(tiles)` words. All must be zero when the launch begins, unless the launch has an [epoch](Chain::epoch).
/// A word has 32 bits of a value, and the epoch of the launch that wrote it. So a value of any size is complete if all its words have the
/// epoch, and no fence is needed.
///
/// A group has 32 tiles, and a section has 32 groups. The last tile of a group publishes the total of the group. The last tile of a section
/// publishes the total of all tiles up to there. A tile combines the total up to the previous section, the totals of the groups before it
/// in its section, and the totals of the tiles before it in its group. This takes two look-backs of a warp. Which values are combined in
/// which order depends only on the tile, so results have the same bits on every run.
pub struct Chain<'a, 'k, T> {
    cx: Block<'k>,
    words: &'a GlobalMut<'k, u64, Atomic>,
    tiles: usize,
    epoch: u32,
    _values: PhantomData<T>,
}

impl<'a, 'k, T: Element> Chain<'a, 'k, T> {
    /// The number of words of a value.
    const WORDS: usize = size_of::<T>().div_ceil(4);

    /// The number of words of memory that a chain of `tiles` tiles takes.
    pub const fn words(tiles: usize) -> usize {
        1 + (tiles + tiles.div_ceil(GROUP) + tiles.div_ceil(GROUP * GROUP)) * Self::WORDS
    }

    /// Makes a chain of `tiles` tiles in this memory. A single tile needs no memory. Memory that is too short is a fault.
    #[track_caller]
    pub fn new(cx: Block<'k>, words: &'a GlobalMut<'k, u64, Atomic>, tiles: usize) -> Self {
        if !words.is_empty() {
            // Otherwise the number of words could overflow.
            if Self::WORDS > 0 {
                cx.require_at_most(tiles, words.len());
            }
            cx.require_at_most(Self::words(tiles), words.len());
        }
        Self { cx, words, tiles, epoch: 1, _values: PhantomData }
    }

    /// Makes the chain usable in memory that earlier launches have used, and that no one clears in between. Each launch has a number of its
    /// own, its epoch. It is at least 1, and larger than that of any launch since the memory was all zero.
    #[inline(always)]
    pub fn epoch(self, epoch: u32) -> Self {
        Self { epoch, ..self }
    }

    /// The number of tiles.
    #[inline(always)]
    pub fn tiles(&self) -> usize {
        self.tiles
    }

    /// Returns true if the chain has no memory. A kernel is launched without memory if there is only one tile.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Returns the tile of the block, which is the number of blocks that asked before. So all blocks with earlier tiles are running or have
    /// ended, and a wait for them ends, in whatever order the device starts the blocks of a grid. All threads of the block call it once,
    /// and none of them calls [`arrive`](Self::arrive).
    ///
    /// Without memory, the launch must have one block, which has the only tile; more blocks are a fault.
    ///
    /// This is for a block that has one tile; for several tiles, see [`first_tile`](Self::first_tile).
    #[track_caller]
    pub fn take_tile(&self, shared: &mut Shared<'_, [u64; 1]>) -> usize {
        if self.is_empty() {
            self.cx.require_at_most(self.cx.grid_blocks(), 1);
            return 0;
        }
        self.ticket(shared)
    }

    /// Returns whether this block is the last block of the grid that calls this. That block can do the work that needs all announced tiles,
    /// without a wait. All threads of each block call it once, after the first warp of the block has [announced](Self::announce) its tile.
    /// The tile may be any that no other block has, such as the block's rank.
    ///
    /// Without memory, the launch must have one block; more blocks are a fault.
    #[track_caller]
    pub fn arrive(&self, shared: &mut Shared<'_, [u64; 1]>) -> bool {
        if self.is_empty() {
            self.cx.require_at_most(self.cx.grid_blocks(), 1);
            return true;
        }
        self.ticket(shared) + 1 == self.cx.grid_blocks()
    }

    /// Returns how many blocks have called this before, in all threads of the block.
    #[track_caller]
    fn ticket(&self, shared: &mut Shared<'_, [u64; 1]>) -> usize {
        if self.cx.thread_rank() == 0 {
            shared.set(0, self.first_tile() as u64);
        }
        self.cx.barrier();
        shared.get(0) as usize
    }

    /// Returns the first tile of a block that asks for the [next tile](Self::next_tile) whenever it has finished one. It works as
    /// [`next_tile`](Self::next_tile). The thread of the block that asks for tiles calls it once, before all other calls.
    #[inline(always)]
    #[track_caller]
    pub fn first_tile(&self) -> usize {
        // Later launches have larger numbers, and each launch counts from zero in the lower half.
        self.words.at(0).fetch_max((self.epoch as u64) << 32);
        self.next_tile()
    }

    /// Returns the next tile of a block that had its [first tile](Self::first_tile). If there are no more tiles, the result is no tile of
    /// the chain. All blocks of the grid together ask fewer than 2^32 times, of which each block asks once in vain. Blocks that are running
    /// have all earlier tiles, so a wait for them ends, however few blocks of the grid run at a time.
    #[inline(always)]
    #[track_caller]
    pub fn next_tile(&self) -> usize {
        self.words.at(0).fetch_add(1) as u32 as usize
    }

    /// Combines all tiles before `tile`, in order. `total` is the total of this tile. One warp of the tile's block calls it once, with all
    /// its lanes. All lanes get the result, which is the identity for the first tile.
    #[inline(always)]
    #[track_caller]
    pub fn prefix<R: Reducer<T>>(&self, tile: usize, total: T, op: &R) -> T {
        self.announce(tile, total);
        self.prefix_announced(tile, total, op)
    }

    /// Does the first half of [`prefix`](Self::prefix): it publishes the total of this tile, and does not wait. The same warp can then do
    /// work that does not need the prefix, and calls [`prefix_announced`](Self::prefix_announced).
    #[inline(always)]
    #[track_caller]
    pub fn announce(&self, tile: usize, total: T) {
        self.require(tile);
        self.publish(tile, total);
    }

    /// Does the second half of [`prefix`](Self::prefix), with the same arguments as [`announce`](Self::announce).
    #[inline(always)]
    #[track_caller]
    pub fn prefix_announced<R: Reducer<T>>(&self, tile: usize, total: T, op: &R) -> T {
        self.prefix_from(tile, total, op, |_| false)
    }

    /// Works as [`prefix`](Self::prefix), for values some of which are starts. A start makes all values before it irrelevant: `op` of any
    /// value and a start is the start. A tile does not wait for tiles before the last start.
    ///
    /// Which values are combined in which order depends only on the tile and on which tiles are starts.
    #[track_caller]
    pub fn prefix_since<R: Reducer<T>>(&self, tile: usize, total: T, op: &R, is_start: impl Fn(&T) -> bool) -> T {
        if is_start(&total) {
            self.announce_start(tile, total);
        } else {
            self.announce(tile, total);
        }
        self.prefix_from(tile, total, op, is_start)
    }

    /// Works as [`prefix_since`](Self::prefix_since) for a value that is a start, in a tile that does not need the values before it. It
    /// does not wait.
    #[track_caller]
    pub fn announce_start(&self, tile: usize, total: T) {
        self.announce(tile, total);
        // A group or section that a start closes has the start's total, whatever comes before.
        if let Some(group) = Self::closed(tile, GROUP) {
            self.publish(self.tiles + group, total);
        }
        if let Some(section) = Self::closed(tile, GROUP * GROUP) {
            self.publish(self.tiles + self.tiles.div_ceil(GROUP) + section, total);
        }
    }

    /// The number of the group or section of `size` tiles that the tile closes, if it closes one.
    #[inline(always)]
    fn closed(tile: usize, size: usize) -> Option<usize> {
        if tile % size == size - 1 { Some(tile / size) } else { None }
    }

    #[track_caller]
    fn prefix_from<R: Reducer<T>>(&self, tile: usize, total: T, op: &R, is_start: impl Fn(&T) -> bool) -> T {
        self.require(tile);
        let (groups, sections) = (self.tiles, self.tiles + self.tiles.div_ceil(GROUP));
        let (group, section) = (tile / GROUP, tile / (GROUP * GROUP));
        // A start has announced the groups that it closes.
        let is_open = !is_start(&total);
        let (in_group, is_known) = self.fold(tile % GROUP, |i| group * GROUP + i, op, &is_start);
        if is_open && let Some(group) = Self::closed(tile, GROUP) {
            self.publish(groups + group, op.apply(in_group, total));
        }
        let before = if is_known {
            in_group
        } else {
            // The section before, and the groups of this section before the tile: no more than a warp has lanes.
            let upto = (section > 0) as usize;
            let place = |i: usize| if i < upto { sections + section - 1 } else { groups + section * GROUP + i - upto };
            op.apply(self.fold(upto + group % GROUP, place, op, &is_start).0, in_group)
        };
        if is_open && let Some(section) = Self::closed(tile, GROUP * GROUP) {
            self.publish(sections + section, op.apply(before, total));
        }
        before
    }

    /// Combines all tiles before `tile`, in order. `known` has the combination up to some group. This is for a warp that asks for one tile
    /// after another, in their order and with one `op`, and so reads each group once. All 32 lanes of the warp call it, and get the result.
    /// A tile of a group before those in `known` is a fault.
    ///
    /// All tiles before must be [announced](Self::announce) by blocks that are running. None of them may be announced by
    /// [`prefix`](Self::prefix), which has another order: here groups are combined one by one, whichever tiles a warp asks for.
    #[track_caller]
    pub fn prefix_after<R: Reducer<T>>(&self, known: &mut Known<T>, tile: usize, op: &R) -> T {
        self.require(tile);
        if tile == 0 {
            return op.identity();
        }
        let (cx, lane, group) = (self.cx, self.cx.lane() as usize, tile / GROUP);
        cx.require_at_most(known.groups, group);
        loop {
            let first = known.groups;
            let at = |i: usize| (first + i) * GROUP + lane;
            let mut values = [op.identity(); AT_ONCE];
            let mut turns = 0;
            // A lane without a tile looks at the last one, for which the other lanes wait anyway.
            while !cx.all(FULL_MASK, self.look_at(&mut values, |i| at(i).min(tile - 1))) {
                self.pause(&mut turns);
            }
            for (i, value) in values.iter_mut().enumerate() {
                *value = warp::reduce(cx, if at(i) < tile { *value } else { op.identity() }, op);
            }
            for (i, &total) in values.iter().enumerate() {
                if first + i == group {
                    return op.apply(known.total, total);
                }
                known.total = op.apply(known.total, total);
                known.groups = first + i + 1;
            }
        }
    }

    /// Returns a thread's part of the total of all tiles. Of the `n` threads of its block, thread `i` combines what tiles `i`, `i + n` and
    /// so on [announce](Self::announce). The block that [arrives](Self::arrive) last calls it with all its threads. A reduction of the
    /// parts over the block is the total, if `op` is commutative. If an announced total has not arrived yet, the call waits for it.
    #[track_caller]
    pub fn thread_total<R: Reducer<T>>(&self, op: &R) -> T {
        let tiles = self.tiles;
        self.require(tiles.wrapping_sub(1));
        let (mut tile, threads) = (self.cx.thread_rank() as usize, self.cx.block_threads() as usize);
        let mut total = op.identity();
        while tile < tiles {
            let mut values = [op.identity(); 2];
            let mut turns = 0;
            while !self.look_at(&mut values, |i| (tile + i * threads).min(tiles - 1)) {
                self.pause(&mut turns);
            }
            total = op.apply(total, values[0]);
            if tile + threads < tiles {
                total = op.apply(total, values[1]);
            }
            tile += 2 * threads;
        }
        total
    }

    /// Waits for `count` values in order, starting with the last ones, back to the last start. Returns their combination, and whether there
    /// is a start. All lanes of the warp get the result.
    #[track_caller]
    fn fold<R: Reducer<T>>(
        &self,
        count: usize,
        place: impl Fn(usize) -> usize,
        op: &R,
        is_start: &impl Fn(&T) -> bool,
    ) -> (T, bool) {
        let cx = self.cx;
        let (lane, lanes, mask) = (cx.lane() as usize, cx.warp_lanes() as usize, cx.warp_mask());
        let (mut result, mut end) = (op.identity(), count);
        while end > 0 {
            let at = (end + lane).wrapping_sub(lanes);
            let mut turns = 0;
            let (value, starts) = loop {
                let value = if at < end { self.look(place(at)) } else { Some(op.identity()) };
                let starts = cx.ballot(mask, at < end && value.as_ref().is_some_and(is_start));
                // The last missing value, if there is one, is before the last start.
                if cx.ballot(mask, value.is_none()) <= starts {
                    break (value.unwrap_or(op.identity()), starts);
                }
                self.pause(&mut turns);
            };
            // The values before the last start change nothing, whether they are there or not.
            let counts = starts >> lane <= 1;
            result = op.apply(warp::reduce(cx, if counts { value } else { op.identity() }, op), result);
            if starts != 0 {
                return (result, true);
            }
            end = end.saturating_sub(lanes);
        }
        (result, false)
    }

    /// Raises a fault unless the tile is one of the chain's, and so has memory.
    #[track_caller]
    fn require(&self, tile: usize) {
        let tiles = if self.is_empty() { 0 } else { self.tiles };
        if tile >= tiles {
            self.cx.raise(FaultKind::OutOfBounds, [tile as u64, tiles as u64], Location::caller());
        }
    }

    /// One turn of a wait.
    #[track_caller]
    fn pause(&self, turns: &mut u32) {
        *turns += 1;
        // All threads learn of a fault at one place in memory. A thread that asks often waits there.
        if turns.is_multiple_of(32) {
            self.cx.spin(WAIT);
        } else {
            self.cx.pause(WAIT);
        }
    }

    /// A word of a value. The values of tiles come first, then those of groups, then those of sections.
    #[inline(always)]
    fn at(&self, value: usize, word: usize) -> AtomicRef<'k, u64> {
        // SAFETY: there are as many words as the chain takes, and of tiles that it has, it asks for no others.
        unsafe { self.words.at_unchecked(1 + value * Self::WORDS + word) }
    }

    /// Writes a value, from the first lane.
    #[track_caller]
    fn publish(&self, at: usize, value: T) {
        const { _ = T::ANY_BITS };
        if self.cx.lane() != 0 {
            return;
        }
        let mut word = 0;
        while word < Self::WORDS {
            let mut bits = 0u32;
            // SAFETY: inside both; an element has no padding, so that its bytes are initialised.
            unsafe {
                let from = (&raw const value).cast::<u8>().add(word * 4);
                core::ptr::copy_nonoverlapping(from, (&raw mut bits).cast(), Self::bytes(word));
            }
            self.at(at, word).store((self.epoch as u64) << 32 | bits as u64);
            word += 1;
        }
    }

    /// Returns a value if it is complete.
    #[track_caller]
    fn look(&self, at: usize) -> Option<T> {
        let mut value = AnyBits::of(T::ZERO);
        let mut is_present = true;
        let mut word = 0;
        while word < Self::WORDS {
            let bits = self.at(at, word).load();
            is_present &= (bits >> 32) as u32 == self.epoch;
            // SAFETY: inside both. The bytes may be those of no value, since the memory is the kernel's author's.
            unsafe {
                let to = (&raw mut value).cast::<u8>().add(word * 4);
                core::ptr::copy_nonoverlapping((&raw const bits).cast(), to, Self::bytes(word));
            }
            word += 1;
        }
        if is_present { Some(value.or_zero()) } else { None }
    }

    /// Looks at several values at once. Returns the complete ones, and whether all are complete.
    #[track_caller]
    fn look_at<const N: usize>(&self, values: &mut [T; N], place: impl Fn(usize) -> usize) -> bool {
        let mut are_there = true;
        for (i, value) in values.iter_mut().enumerate() {
            match self.look(place(i)) {
                Some(looked) => *value = looked,
                None => are_there = false,
            }
        }
        are_there
    }

    /// The number of bytes of a value in a word.
    const fn bytes(word: usize) -> usize {
        if size_of::<T>() - word * 4 < 4 { size_of::<T>() - word * 4 } else { 4 }
    }
}
