//! Tiles that a block stages in shared memory: what selections have under way while they wait for the tiles before.

use core::marker::PhantomData;

use kernel_primitives::input::Source;
use kernel_primitives::prelude::*;
use kernel_primitives::simt::WARP;
use kernel_primitives::view::SharedStorage;

/// Threads of a block of the kernels that select.
pub const STAGE_THREADS: usize = 128;

/// Their warps.
pub(super) const STAGE_WARPS: usize = STAGE_THREADS / WARP as usize;

/// Vectors of a thread, of so many bytes each: some 430 bytes, of which four blocks fill a multiprocessor's shared memory. The time of a
/// selection is its wait for the tiles before by the bytes under way.
pub(super) const fn vectors(bytes: usize) -> usize {
    match bytes.div_ceil(16) {
        0 | 1 => 27,
        2 => 12,
        3 | 4 => 6,
        5..=8 => 3,
        _ => 1,
    }
}

/// Rounds of a warp, of an item a lane, that are looked at together, of so many vectors of so many items: whole vectors.
pub(super) const fn together(vector: usize, vectors: usize) -> usize {
    match (vector, vectors) {
        (16 | 8, _) => vector,
        (4, 1) => 4,
        (4, _) => 12,
        (2, 27) => 18,
        (2, 12 | 6) => 12,
        (1, 27) => 9,
        _ => vector * vectors,
    }
}

/// What a warp of a selection looks at together, of items of so many bytes; and how many times, at most.
const fn batches<S: Source>(bytes: usize) -> (usize, usize) {
    let vectors = vectors(S::VECTOR * bytes);
    let together = together(S::VECTOR, vectors);
    (together * WARP as usize, vectors * S::VECTOR / together)
}

/// The most items of a tile, of so many bytes.
pub(super) const fn items<S: Source>(bytes: usize) -> usize {
    let (batch, most) = batches::<S>(bytes);
    STAGE_WARPS * batch * most
}

/// How a selection is cut into tiles.
#[derive(Clone, Copy, Debug)]
pub struct StagedTiles {
    /// The items of all tiles, of which the input's first ones may begin inside a vector.
    pub len: usize,
    /// Items of a tile.
    pub tile: usize,
    /// How many times a warp looks at some rounds of its part of a tile together.
    pub batches: u32,
}

impl StagedTiles {
    /// The tiles of `len` items of so many bytes: large ones, but as many as there can be `blocks`; and one if that is enough.
    pub fn new<S: Source>(bytes: usize, len: usize, blocks: usize) -> Self {
        let (batch, most) = batches::<S>(bytes);
        let len = len + S::VECTOR - 1;
        let blocks = if len <= STAGE_WARPS * batch * most { 1 } else { blocks.max(1) };
        let batches = len.div_ceil(blocks * STAGE_WARPS * batch).clamp(1, most);
        Self { len, tile: STAGE_WARPS * batch * batches, batches: batches as u32 }
    }
}

/// The items of a tile of a selection, in shared memory.
pub struct StagedStorage<S>(PhantomData<S>);

// SAFETY: uninitialised elements.
unsafe impl<S: Source> SharedStorage for StagedStorage<S> {
    const BYTES: usize = items::<S>(size_of::<S::Item>()) * size_of::<S::Item>();
    const ALIGN: usize = 16;
}

/// Calls a function with the number of items in a vector of the source, and how many of a warp's rounds of an item a lane it looks at
/// together, for items of so many bytes, as its first constants.
macro_rules! by_vectors {
    ($source:ty, $bytes:expr, $f:ident::<$($t:ty),*; VECTOR, TOGETHER $(, $constant:tt)*>($($arg:expr),* $(,)?)) => {
        super::staged::by_vectors!(
            @ $source, $bytes, $f, [$($t),*], [$($constant),*], [$($arg),*];
            16 27 16, 16 12 16, 16 6 16, 16 3 16, 16 1 16,
            8 27 8, 8 12 8, 8 6 8, 8 3 8, 8 1 8,
            4 27 12, 4 12 12, 4 6 12, 4 3 12, 4 1 4,
            2 27 18, 2 12 12, 2 6 12, 2 3 6, 2 1 2,
            1 27 9, 1 12 12, 1 6 6, 1 3 3
        )
    };
    (@ $source:ty, $bytes:expr, $f:ident, $types:tt, $constants:tt, $args:tt; $($n:literal $staged:literal $together:literal),*) => {
        // A chain of conditions, of which the compiler follows one alone.
        $(if const {
            let vector = <$source as kernel_primitives::input::Source>::VECTOR;
            vector == $n && super::staged::vectors(vector * $bytes) == $staged
        } {
            super::staged::by_vectors!(@call $f, $types, $n, $together, $constants, $args)
        } else)* {
            super::staged::by_vectors!(@call $f, $types, 1, 1, $constants, $args)
        }
    };
    (@call $f:ident, [$($t:ty),*], $n:literal, $together:literal, [$($constant:tt),*], [$($arg:expr),*]) => {
        $f::<$($t,)* $n, $together $(, $constant)*>($($arg),*)
    };
}
pub(super) use by_vectors;

/// Items before the first vector of an input that its tiles begin with, so that all further ones are aligned: 0 if none are.
#[inline(always)]
pub(super) fn lead<S: Source, const N: usize>(x: Input<S>) -> usize {
    let mut lead = 0;
    for skip in 1..N {
        if x.is_aligned::<N>(skip) {
            lead = N - skip;
        }
    }
    if x.is_aligned::<N>(0) { 0 } else { lead }
}

/// A warp's part of a tile: batches of `TOGETHER` rounds of an item a lane, by vectors of `N`.
#[derive(Clone, Copy)]
pub(super) struct Part<'k, const N: usize, const TOGETHER: usize> {
    cx: Block<'k>,
    /// Its first item in the input; before that by less than a vector, if the input begins inside a vector.
    start: usize,
    /// Its first item in shared memory.
    place: u32,
    /// How many batches have items of the input.
    batches: u32,
    /// The first place in it that has an item of the input, and how many have.
    has: (u32, u32),
    /// Whether all places have.
    is_whole: bool,
}

impl<'k, const N: usize, const TOGETHER: usize> Part<'k, N, TOGETHER> {
    const ROUND: u32 = WARP * N as u32;
    const BATCH: u32 = TOGETHER as u32 * WARP;

    /// This warp's part, of so many batches, of a tile of an input of `len` items, whose tiles begin `lead` items before it.
    #[inline(always)]
    pub(super) fn of(cx: Block<'k>, tile: usize, batches: u32, len: usize, lead: usize) -> Self {
        const { assert!(TOGETHER.is_multiple_of(N), "whole vectors") };
        let items = batches * Self::BATCH;
        let first = (tile * STAGE_WARPS + cx.warp() as usize) * items as usize;
        let here = (len + lead).saturating_sub(first).min(items as usize) as u32;
        let skipped = (lead.saturating_sub(first) as u32).min(here);
        Self {
            cx,
            start: first.wrapping_sub(lead),
            place: cx.warp() * items,
            batches: here.div_ceil(Self::BATCH),
            has: (skipped, here - skipped),
            is_whole: here - skipped == items,
        }
    }

    /// The part's place in shared memory.
    #[inline(always)]
    pub(super) fn place(&self) -> u32 {
        self.place
    }

    /// The index in the input of what is at a place of the part.
    #[inline(always)]
    pub(super) fn index(&self, at: u32) -> usize {
        self.start.wrapping_add(at as usize)
    }

    /// Whether a place has an item of the input.
    #[inline(always)]
    fn has(&self, at: u32) -> bool {
        at.wrapping_sub(self.has.0) < self.has.1
    }

    /// Begins to copy the part to shared memory, with zeros where the input has no items.
    ///
    /// # Safety
    /// The array has a place for each item of the tile; nobody else accesses the part until the warp has [waited](Self::wait).
    #[inline(always)]
    pub(super) unsafe fn stage<S: Source<Item: Element>>(&self, x: Input<S>, to: SharedArray<'_, S::Item>) {
        let vectors = self.batches * const { (TOGETHER / N) as u32 };
        let own = self.cx.lane() * N as u32;
        // SAFETY: the caller's contract; each lane writes its own vectors, and reads what is known to be inside.
        unsafe {
            if self.is_whole && x.is_aligned::<N>(self.start) {
                for v in 0..vectors {
                    let at = v * Self::ROUND + own;
                    x.copy_vector_inside::<N>(self.index(at), to, (self.place + at) as usize);
                }
            } else {
                for v in 0..vectors {
                    let at = v * Self::ROUND + own;
                    if !x.copy::<N>(self.index(at), to, (self.place + at) as usize) {
                        for i in 0..N as u32 {
                            let item = x.get(self.index(at + i)).unwrap_or(S::Item::ZERO);
                            to.store((self.place + at + i) as usize, item);
                        }
                    }
                }
            }
        }
    }

    /// Waits for what the warp's lanes [copy](Self::stage).
    #[inline(always)]
    pub(super) fn wait<S: Source>(&self, x: Input<S>) {
        x.wait_for_copies();
        self.cx.sync_warp(FULL_MASK);
    }

    /// The part's item at a place.
    ///
    /// # Safety
    /// The part was staged, and nobody writes it meanwhile.
    #[inline(always)]
    pub(super) unsafe fn item<T: Element>(&self, items: SharedArray<'_, T>, at: u32) -> T {
        // SAFETY: the caller's contract.
        unsafe { items.load((self.place + at) as usize) }
    }

    /// How many items the warp's part has that are kept. All lanes call `keeps` together, round by round, each with a vector and the place of its
    /// first item, also of items that the input does not have: it says so by bits, the first item's lowest.
    ///
    /// # Safety
    /// The part was staged, and nobody writes it meanwhile.
    #[inline(always)]
    pub(super) unsafe fn count<T: Element>(
        &self,
        items: SharedArray<'_, T>,
        mut keeps: impl FnMut(&[T; N], u32) -> u32,
    ) -> u32 {
        let mut count = 0;
        for v in 0..self.batches * const { (TOGETHER / N) as u32 } {
            let at = v * Self::ROUND + self.cx.lane() * N as u32;
            // SAFETY: the caller's contract.
            let mut bits = keeps(&unsafe { items.load_items((self.place + at) as usize) }, at);
            if !self.is_whole {
                for i in 0..N as u32 {
                    bits &= !((!self.has(at + i) as u32) << i);
                }
            }
            count += bits.count_ones();
        }
        warp_reduce(self.cx, count, Add)
    }

    /// Moves the items that are kept to the front of the part, in order. All lanes ask `keeps` together, round by round, each with an item and its
    /// place, also of items that the input does not have. Calls `others` with each item that is not kept, how many before it in the part
    /// are, and its place.
    ///
    /// # Safety
    /// As for [`count`](Self::count); and nobody else reads the part meanwhile.
    #[inline(always)]
    pub(super) unsafe fn compact<T: Element>(
        &self,
        items: SharedArray<'_, T>,
        mut keeps: impl FnMut(T, u32) -> bool,
        mut others: impl FnMut(T, u32, u32),
    ) {
        let (cx, lane) = (self.cx, self.cx.lane());
        let below = !(!0 << lane);
        let mut to = self.place;
        for batch in 0..self.batches {
            let first = batch * Self::BATCH + lane;
            let mut rounds = [T::ZERO; TOGETHER];
            for (k, item) in rounds.iter_mut().enumerate() {
                // SAFETY: the caller's contract. Items go no further than to their batch's end: all that is written was read before the wait.
                *item = unsafe { self.item(items, first + k as u32 * WARP) };
            }
            let mut votes = [0; TOGETHER];
            for (k, votes) in votes.iter_mut().enumerate() {
                let at = first + k as u32 * WARP;
                *votes = cx.ballot(FULL_MASK, keeps(rounds[k], at) & self.has(at));
            }
            cx.sync_warp(FULL_MASK);
            for (k, &votes) in votes.iter().enumerate() {
                let place = to + (votes & below).count_ones();
                if votes >> lane & 1 != 0 {
                    // SAFETY: as above; of all lanes only this one has the place.
                    unsafe { items.store(place as usize, rounds[k]) };
                } else {
                    let at = first + k as u32 * WARP;
                    if self.has(at) {
                        others(rounds[k], place - self.place, at);
                    }
                }
                to += votes.count_ones();
            }
        }
        cx.sync_warp(FULL_MASK);
    }

    /// The place of the input's first item, if the part has it.
    #[inline(always)]
    fn beginning(&self) -> u32 {
        if self.index(self.has.0) == 0 { self.has.0 } else { u32::MAX }
    }

    /// What gives each lane the item before its own, of a round's last items of the lanes.
    #[inline(always)]
    fn before<S: Source<Item: Element>>(
        &self,
        x: Input<S>,
    ) -> impl FnMut(S::Item) -> S::Item + use<'k, S, N, TOGETHER> {
        let (cx, lane) = (self.cx, self.cx.lane());
        // The last lane's item of the round before; to begin with, the one before the part.
        let mut earlier = x.get(self.start.wrapping_sub(1)).unwrap_or(S::Item::ZERO);
        move |item| {
            let given = if lane == WARP - 1 { earlier } else { item };
            earlier = item;
            cx.shuffle(FULL_MASK, given, (lane + WARP - 1) % WARP, WARP)
        }
    }

    /// How many items differ from the one before, or are the input's first.
    ///
    /// # Safety
    /// As for [`count`](Self::count).
    #[inline(always)]
    pub(super) unsafe fn count_heads<S: Source<Item: Element + PartialEq>>(
        &self,
        x: Input<S>,
        items: SharedArray<'_, S::Item>,
    ) -> u32 {
        let (mut before, beginning) = (self.before(x), self.beginning());
        let heads = |items: &[S::Item; N], at| {
            let mut last = before(items[N - 1]);
            let mut heads = 0;
            for (i, &item) in items.iter().enumerate() {
                heads |= ((last != item || at + i as u32 == beginning) as u32) << i;
                last = item;
            }
            heads
        };
        // SAFETY: the caller's contract.
        unsafe { self.count(items, heads) }
    }

    /// As [`count_heads`](Self::count_heads), which item does, for [`compact`](Self::compact).
    #[inline(always)]
    pub(super) fn heads<S: Source<Item: Element + PartialEq>>(
        &self,
        x: Input<S>,
    ) -> impl FnMut(S::Item, u32) -> bool + use<'k, S, N, TOGETHER> {
        let (mut before, beginning) = (self.before(x), self.beginning());
        move |item, at| before(item) != item || at == beginning
    }
}
