//! What the blocks of a grid do together: tiles in the order of the blocks' beginning, and prefixes over tiles in one pass.
//!
//! A scan over many tiles needs for each what all tiles before it amount to. With a [`Chain`], a block publishes its tile's
//! total as soon as it has it, looks back over the totals of the tiles before it until it finds one that is complete, and
//! publishes its own complete one: each element of memory is read and written once. Source: the decoupled look-back of
//! Merrill and Garland, "Single-pass parallel prefix scan with decoupled look-back" (2016).

use core::marker::PhantomData;
use core::mem::size_of;

use crate::element::Element;
use crate::functor::Reducer;
use crate::simt::{AtomicRef, Block, WARP};
use crate::view::{Atomic, GlobalMut, Shared};
use crate::warp;

/// Nothing is known yet.
const NOTHING: u32 = 0;
/// The total of a tile or of a group.
const TOTAL: u32 = 1;
/// The total of a group and all before it.
const COMPLETE: u32 = 2;

/// Tiles of a group.
const GROUP: usize = WARP as usize;

/// Nanoseconds between two looks at what is not ready.
const WAIT: u32 = 40;

/// The tiles of a grid in a row, and what each amounts to, in global memory.
///
/// The memory is [`Chain::words`]`(tiles)` words, all zero when the launch begins. A word has 32 bits of a value and beside them
/// what kind of value it is, so that a value of any size is whole if all its words agree: no fence is needed.
///
/// Behind the tiles' values come those of groups of 32 of them. A tile looks back over its own group, and then over groups, 32 at a time: two
/// looks suffice while no more than a thousand tiles are on their way, where one tile after the other would take dozens.
pub struct Chain<'a, 'k, T> {
    cx: Block<'k>,
    words: &'a GlobalMut<'k, u64, Atomic>,
    tiles: usize,
    _values: PhantomData<T>,
}

impl<'a, 'k, T: Element> Chain<'a, 'k, T> {
    /// Words of a value.
    const WORDS: usize = size_of::<T>().div_ceil(4);

    /// The words of memory that a chain of `tiles` tiles takes.
    pub const fn words(tiles: usize) -> usize {
        1 + (tiles + tiles.div_ceil(GROUP)) * Self::WORDS
    }

    /// A chain of `tiles` tiles in this memory.
    #[inline(always)]
    pub fn new(cx: Block<'k>, words: &'a GlobalMut<'k, u64, Atomic>, tiles: usize) -> Self {
        Self { cx, words, tiles, _values: PhantomData }
    }

    /// True if it has no memory: for a kernel that is launched without one where there is only one tile.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// The block's tile. All blocks with a tile before are running or have ended, so that waiting for them ends. All threads of the
    /// block call it, once.
    ///
    /// CUDA's devices begin the blocks of a grid in order, which CUDA does not promise, but CUB's scans count on too: asking a
    /// counter instead takes a tenth of a scan's time. The emulator begins them in any order, and there it is the number of blocks that asked
    /// before.
    #[inline(always)]
    #[track_caller]
    pub fn take_tile(&self, shared: &mut Shared<'_, [u64; 1]>) -> usize {
        if cfg!(target_arch = "nvptx64") {
            return self.cx.block_rank();
        }
        if self.cx.thread_rank() == 0 {
            shared.set(0, self.words.at(0).fetch_add(1));
        }
        self.cx.barrier();
        shared.get(0) as usize
    }

    /// What all tiles before `tile` amount to, in order, given what this one does. One warp of the tile's block calls it, once, with
    /// all its lanes; all of them get the result, the identity for the first tile.
    ///
    /// The values of floating-point sums depend on how far the tiles before have come: no two runs need to agree to the last bit.
    #[inline(always)]
    #[track_caller]
    pub fn prefix<R: Reducer<T>>(&self, tile: usize, total: T, op: &R) -> T {
        self.announce(tile, total);
        self.prefix_announced(tile, total, op)
    }

    /// The first half of [`prefix`](Self::prefix): tells the tiles behind what this one amounts to, and waits for nobody. The same
    /// warp then does what can be done before the prefix is known, and calls [`prefix_announced`](Self::prefix_announced).
    #[inline(always)]
    #[track_caller]
    pub fn announce(&self, tile: usize, total: T) {
        self.publish(tile, TOTAL, total);
    }

    /// The second half of [`prefix`](Self::prefix), with the same arguments as [`announce`](Self::announce).
    #[inline(always)]
    #[track_caller]
    pub fn prefix_announced<R: Reducer<T>>(&self, tile: usize, total: T, op: &R) -> T {
        let (group, place) = (tile / GROUP, tile % GROUP);
        let closes = place == GROUP - 1;
        let in_group = self.fold(tile - place, tile, op);
        if closes {
            self.publish(self.tiles + group, if group > 0 { TOTAL } else { COMPLETE }, op.apply(in_group, total));
        }
        if group == 0 {
            return in_group;
        }
        let before = op.apply(self.fold(self.tiles, self.tiles + group, op), in_group);
        if closes {
            self.publish(self.tiles + group, COMPLETE, op.apply(before, total));
        }
        before
    }

    /// The values from `begin` to `end` in order, waited for: from the last complete one on, if one is. All lanes of the warp get the result.
    #[inline(always)]
    #[track_caller]
    fn fold<R: Reducer<T>>(&self, begin: usize, mut end: usize, op: &R) -> T {
        let cx = self.cx;
        let (lane, lanes, mask) = (cx.lane(), cx.warp_lanes(), cx.warp_mask());
        let mut result = op.identity();
        while end > begin {
            let at = (end + lane as usize).wrapping_sub(lanes as usize);
            let mut turns = 0u32;
            let (value, complete) = loop {
                // Before the first one there is nothing, all of it.
                let (kind, value) = if at >= begin && at < end { self.look(at) } else { (COMPLETE, op.identity()) };
                let complete = cx.ballot(mask, kind == COMPLETE);
                let missing = cx.ballot(mask, kind == NOTHING);
                // What comes before the last complete one is in it.
                let first = WARP - 1 - (complete | 1).leading_zeros();
                if missing >> first == 0 {
                    break (if lane >= first { value } else { op.identity() }, complete);
                }
                turns += 1;
                // Whether a thread has faulted, all threads learn in one place: who asks there often, waits there.
                if cfg!(not(target_arch = "nvptx64")) || turns.is_multiple_of(32) {
                    cx.spin(WAIT);
                } else {
                    cx.pause(WAIT);
                }
            };
            result = op.apply(warp::reduce(cx, value, op), result);
            if complete != 0 {
                break;
            }
            end -= lanes as usize;
        }
        result
    }

    /// A word of a tile's value, or of a group's, which come behind those of all tiles.
    #[inline(always)]
    fn at(&self, tile: usize, word: usize) -> AtomicRef<'k, u64> {
        self.words.at(1 + tile * Self::WORDS + word)
    }

    /// Writes what a tile or a group amounts to; the first lane does.
    #[inline(always)]
    #[track_caller]
    fn publish(&self, tile: usize, kind: u32, value: T) {
        const { _ = T::ANY_BITS };
        if self.cx.lane() != 0 {
            return;
        }
        let mut word = 0;
        while word < Self::WORDS {
            let mut bits = 0u32;
            let len = if size_of::<T>() - word * 4 < 4 { size_of::<T>() - word * 4 } else { 4 };
            // SAFETY: inside both; an element has no padding, so that its bytes are initialised.
            unsafe {
                let from = (&raw const value).cast::<u8>().add(word * 4);
                core::ptr::copy_nonoverlapping(from, (&raw mut bits).cast(), len);
            }
            self.at(tile, word).store((kind as u64) << 32 | bits as u64);
            word += 1;
        }
    }

    /// What is known of a tile or a group.
    #[inline(always)]
    #[track_caller]
    fn look(&self, tile: usize) -> (u32, T) {
        let mut value = T::ZERO;
        let mut kind = None;
        let mut word = 0;
        while word < Self::WORDS {
            let bits = self.at(tile, word).load();
            let (this, bits) = ((bits >> 32) as u32, bits as u32);
            kind = match kind {
                Some(kind) if kind != this => Some(NOTHING),
                _ => Some(this),
            };
            let len = if size_of::<T>() - word * 4 < 4 { size_of::<T>() - word * 4 } else { 4 };
            // SAFETY: inside both. If the words are of one kind, the bytes are those of a value; else nobody looks at it.
            unsafe {
                let to = (&raw mut value).cast::<u8>().add(word * 4);
                core::ptr::copy_nonoverlapping((&raw const bits).cast(), to, len);
            }
            word += 1;
        }
        (kind.unwrap_or(COMPLETE), value)
    }
}
