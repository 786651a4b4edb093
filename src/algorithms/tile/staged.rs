//! Tiles that a block stages in shared memory. Selections have these items in flight while they wait for the tiles before.

use core::marker::PhantomData;

use kernel_primitives::input::Source;
use kernel_primitives::prelude::*;
use kernel_primitives::simt::WARP;
use kernel_primitives::view::SharedStorage;

use crate::algorithms::tile::warps::{any_item, copy_out, differing};

/// The number of threads of a block of the kernels that select.
pub const STAGE_THREADS: usize = 128;

/// The number of warps of such a block.
pub(crate) const STAGE_WARPS: usize = STAGE_THREADS / WARP as usize;

/// Returns the number of vectors of a thread, by the bytes of a vector. They have some 430 bytes, and four blocks of these fill the shared
/// memory of a multiprocessor. A selection is limited by how long a tile waits for the tiles before, divided by the bytes in flight.
pub(crate) const fn vectors(bytes: usize) -> usize {
    match bytes.div_ceil(16) {
        0 | 1 => 27,
        2 => 12,
        3 | 4 => 6,
        5..=8 => 3,
        _ => 1,
    }
}

/// Returns the number of vectors that a warp moves together. A word counts their items with 10 bits for each vector.
pub(crate) const fn together<S: Source>(bytes: usize) -> usize {
    if vectors(S::VECTOR * bytes).is_multiple_of(3) { 3 } else { 1 }
}

/// Returns the number of items that a warp of a selection moves together, by the bytes of an item. Also returns how often it does this, at
/// most.
const fn batches<S: Source>(bytes: usize) -> (usize, usize) {
    let together = together::<S>(bytes);
    (together * S::VECTOR * WARP as usize, vectors(S::VECTOR * bytes) / together)
}

/// The most batches that a warp of a selection moves, by the bytes of an item.
pub(crate) const fn most_batches<S: Source>(bytes: usize) -> u32 {
    batches::<S>(bytes).1 as u32
}

/// The most items of a tile, by the bytes of an item.
pub(crate) const fn items<S: Source>(bytes: usize) -> usize {
    let (batch, most) = batches::<S>(bytes);
    STAGE_WARPS * batch * most
}

/// The way in which a selection is divided into tiles.
#[derive(Clone, Copy, Debug)]
pub struct StagedTiles {
    /// The number of items of all tiles. The first tile may begin inside a vector of the input, and then this includes the places before
    /// the input.
    pub len: usize,
    /// The number of items of a tile.
    pub tile: usize,
    /// The number of batches of a warp in a tile. A warp moves a batch of vectors together.
    pub batches: u32,
}

impl StagedTiles {
    /// Returns the tiles of `len` items of `bytes` bytes. There is one tile if that is enough. Otherwise there are `blocks` tiles, which is
    /// the number of blocks that run at a time, or a multiple of it.
    ///
    /// All tiles take about the same time. So a few tiles at the end would leave most of the device idle.
    pub fn new<S: Source>(bytes: usize, len: usize, blocks: usize) -> Self {
        let (batch, most) = batches::<S>(bytes);
        let len = len + S::VECTOR - 1;
        let blocks = if len <= STAGE_WARPS * batch * most { 1 } else { blocks.max(1) };
        // These are the batches of a warp in all tiles, and the number of rounds in which all blocks have a tile.
        let all = len.div_ceil(STAGE_WARPS * batch);
        let times = all.div_ceil(blocks.saturating_mul(most)).max(1);
        let batches = all.div_ceil(times.saturating_mul(blocks)).clamp(1, most);
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

/// Calls a function with two numbers as its first constants, for items of `bytes` bytes: the number of items in a vector of the source, and
/// the number of vectors of a lane that a warp moves together.
macro_rules! by_vectors {
    ($source:ty, $bytes:expr, $f:ident::<$($t:ty),*; VECTOR, TOGETHER $(, $constant:tt)*>($($arg:expr),* $(,)?)) => {
        if const { $crate::algorithms::tile::staged::together::<$source>($bytes) == 3 } {
            $crate::algorithms::tile::by_vector!($source, $f::<$($t),*; VECTOR, 3 $(, $constant)*>($($arg),*))
        } else {
            $crate::algorithms::tile::by_vector!($source, $f::<$($t),*; VECTOR, 1 $(, $constant)*>($($arg),*))
        }
    };
}
pub(crate) use by_vectors;

/// Returns the number of places before the input at which its tiles begin, so that later vectors are aligned. It is 0 if no vectors can be
/// aligned.
pub(crate) fn lead<S: Source, const N: usize>(x: Input<S>) -> usize {
    let mut lead = 0;
    for skip in 1..N {
        if x.is_aligned::<N>(skip) {
            lead = N - skip;
        }
    }
    if x.is_aligned::<N>(0) { 0 } else { lead }
}

/// A warp's part of a tile: batches of `TOGETHER` vectors of `N` items for each lane. The vectors of the lanes are contiguous.
#[derive(Clone, Copy)]
pub(crate) struct Part<'k, const N: usize, const TOGETHER: usize> {
    cx: Block<'k>,
    /// The part's first item in the input. If the input begins inside a vector, this may be before the input, by less than a vector.
    start: usize,
    /// The part's first item in shared memory.
    place: u32,
    /// The number of batches that have items of the input.
    batches: u32,
    /// The first place in the part that has an item of the input, and the number of such places.
    has: (u32, u32),
    /// Whether all places have an item of the input.
    is_whole: bool,
}

impl<'k, const N: usize, const TOGETHER: usize> Part<'k, N, TOGETHER> {
    const ROUND: u32 = WARP * N as u32;
    const BATCH: u32 = TOGETHER as u32 * Self::ROUND;
    /// The bits of a vector.
    const ALL: u32 = !0 >> (32 - N);

    /// Returns this warp's part, of `batches` batches, of a tile of an input of `len` items. The tiles begin `lead` places before the
    /// input.
    pub(crate) fn of(cx: Block<'k>, tile: usize, batches: u32, len: usize, lead: usize) -> Self {
        const { assert!(TOGETHER <= 3 && Self::ROUND < 1 << COUNT_BITS, "counts fit in a word") };
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

    /// Returns the part's place in shared memory.
    #[inline(always)]
    pub(crate) fn place(&self) -> u32 {
        self.place
    }

    /// Returns the index in the input of the item at a place of the part.
    #[inline(always)]
    pub(crate) fn index(&self, at: u32) -> usize {
        self.start.wrapping_add(at as usize)
    }

    /// Returns the index in the input of the part's first item.
    #[inline(always)]
    pub(crate) fn first(&self) -> usize {
        self.index(self.has.0)
    }

    /// Returns the bits of a vector's places, from `at`, that have an item of the input.
    fn has(&self, at: u32) -> u32 {
        if self.is_whole {
            return Self::ALL;
        }
        let mut has = 0;
        for i in 0..N as u32 {
            has |= (((at + i).wrapping_sub(self.has.0) < self.has.1) as u32) << i;
        }
        has
    }

    /// Begins to copy the part to shared memory, with [any item](any_item) where the input has none.
    ///
    /// # Safety
    /// The array has a place for each item of the tile; nobody else accesses the part until the warp has [waited](Self::wait).
    pub(crate) unsafe fn stage<S: Source<Item: Element>>(&self, x: Input<S>, to: SharedArray<'_, S::Item>) {
        let vectors = self.batches * TOGETHER as u32;
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
                            let item = x.get(self.index(at + i)).unwrap_or_else(|| any_item(x));
                            to.store((self.place + at + i) as usize, item);
                        }
                    }
                }
            }
        }
    }

    /// Waits for the [copies](Self::stage) of the warp's lanes.
    #[inline(always)]
    pub(crate) fn wait<S: Source>(&self, x: Input<S>) {
        x.wait_for_copies();
        self.cx.sync_warp(FULL_MASK);
    }

    /// Returns the part's vector from a place.
    ///
    /// # Safety
    /// The part was staged, and nobody writes it meanwhile.
    #[inline(always)]
    pub(crate) unsafe fn vector<T: Element>(&self, items: SharedArray<'_, T>, at: u32) -> [T; N] {
        // SAFETY: the caller's contract.
        unsafe { items.load_items((self.place + at) as usize) }
    }

    /// Returns the number of items in the warp's part that are kept. All lanes call `keeps` together, round by round, each with a vector
    /// and the place of its first item. A place without an item of the input has [any item](any_item). `keeps` returns bits, and the first
    /// item has the lowest one.
    ///
    /// # Safety
    /// The part was staged, and nobody writes it meanwhile.
    pub(crate) unsafe fn count<T: Element>(
        &self,
        items: SharedArray<'_, T>,
        mut keeps: impl FnMut(&[T; N], u32) -> u32,
    ) -> u32 {
        let mut count = 0;
        for v in 0..self.batches * TOGETHER as u32 {
            let at = v * Self::ROUND + self.cx.lane() * N as u32;
            // SAFETY: the caller's contract.
            let kept = keeps(&unsafe { self.vector(items, at) }, at) & self.has(at);
            count += kept.count_ones();
        }
        warp_reduce(self.cx, count, Add)
    }

    /// Moves the items that are kept to the front of the part, in order. All lanes call `keeps` as for [`count`](Self::count).
    ///
    /// # Safety
    /// As for [`count`](Self::count); and nobody else reads the part meanwhile.
    pub(crate) unsafe fn compact<T: Element>(
        &self,
        items: SharedArray<'_, T>,
        mut keeps: impl FnMut(&[T; N], u32) -> u32,
    ) {
        let mut to = self.place;
        for number in 0..self.batches {
            // SAFETY: the caller's contract. Items go no further than to their batch's end: all that is written was
            // read before the wait, and each place is that of one item.
            unsafe {
                let batch = self.batch(items, number, &mut keeps);
                for v in 0..TOGETHER {
                    let mut place = to + of_vector(batch.before, v);
                    for i in 0..N {
                        if batch.kept[v] >> i & 1 != 0 {
                            items.store(place as usize, batch.items[v][i]);
                            place += 1;
                        }
                    }
                    to += of_vector(batch.all, v);
                }
            }
        }
        self.cx.sync_warp(FULL_MASK);
    }

    /// Moves the items that are kept to the front of each batch, in order. The other items follow, in order, or the last one first if
    /// `reversed`. Returns the numbers of kept items for [`copy_partition`](Self::copy_partition): each lane has the number of the batch
    /// with the lane's number.
    ///
    /// # Safety
    /// As for [`compact`](Self::compact).
    pub(crate) unsafe fn partition<T: Element>(
        &self,
        items: SharedArray<'_, T>,
        reversed: bool,
        mut keeps: impl FnMut(&[T; N], u32) -> u32,
    ) -> u32 {
        let mut kept_of_batch = 0;
        for number in 0..self.batches {
            let (first, len) = self.batch_places(number);
            // SAFETY: the caller's contract. Items stay in their batch: all that is written was read before the wait, and
            // each place is that of one item.
            unsafe {
                let batch = self.batch(items, number, &mut keeps);
                let mut kept = 0;
                for v in 0..TOGETHER {
                    kept += of_vector(batch.all, v);
                }
                if self.is_whole {
                    // A constant avoids tests of the bits.
                    self.spread(items, &Batch { has: [Self::ALL; TOGETHER], ..batch }, (first, len, kept), reversed);
                } else {
                    self.spread(items, &batch, (first, len, kept), reversed);
                }
                if self.cx.lane() == number {
                    kept_of_batch = kept;
                }
            }
        }
        self.cx.sync_warp(FULL_MASK);
        kept_of_batch
    }

    /// Writes the lane's items of a batch to their places in a [partition](Self::partition).
    ///
    /// # Safety
    /// As for [`partition`](Self::partition).
    unsafe fn spread<T: Element>(
        &self,
        items: SharedArray<'_, T>,
        batch: &Batch<T, N, TOGETHER>,
        (first, len, kept): (u32, u32, u32),
        reversed: bool,
    ) {
        let step = if reversed { u32::MAX } else { 1 };
        let mut before = 0;
        for v in 0..TOGETHER {
            let at = (batch.at + v as u32 * Self::ROUND).max(first);
            // These are the places of the lane's next item: if it is kept, and if it is not.
            let mut kept_at = before + of_vector(batch.before, v);
            let others = at.wrapping_sub(first + kept_at);
            let from = if reversed { len.wrapping_sub(1) } else { kept };
            let mut other_at = from.wrapping_add(others.wrapping_mul(step));
            for i in 0..N {
                if batch.has[v] >> i & 1 != 0 {
                    let is_kept = batch.kept[v] >> i & 1 != 0;
                    let to = if is_kept { kept_at } else { other_at };
                    // SAFETY: the caller's contract.
                    unsafe { items.store((self.place + first + to) as usize, batch.items[v][i]) };
                    kept_at += is_kept as u32;
                    other_at = other_at.wrapping_add(if is_kept { 0 } else { step });
                }
            }
            before += of_vector(batch.all, v);
        }
    }

    /// Writes the items of a [partition](Self::partition) to `out`. The kept items go to the places from `first`. The other items go to the
    /// places that end at `others` if the partition is reversed, and otherwise to the places from `others`.
    ///
    /// # Safety
    /// As for [`count`](Self::count), and for [`copy_out`]; the counts and the order are the partition's.
    #[track_caller]
    pub(crate) unsafe fn copy_partition<T: Element>(
        &self,
        items: SharedArray<'_, T>,
        (kept_of_batch, reversed): (u32, bool),
        out: &mut GlobalMut<T>,
        (mut first, mut others): (usize, usize),
    ) {
        let threads = (self.cx.lane(), WARP);
        for number in 0..self.batches {
            let kept = self.cx.shuffle(FULL_MASK, kept_of_batch, number, WARP);
            let (place, len) = self.batch_places(number);
            let (place, behind) = (self.place + place, len - kept);
            let to = if reversed { others.wrapping_sub(behind as usize) } else { others };
            let has_room =
                |first: usize, count: u32| count as usize <= out.len() && first <= out.len() - count as usize;
            // SAFETY: the caller's contract; inside, if there is room.
            unsafe {
                if len == Self::BATCH && has_room(first, kept) && has_room(to, behind) {
                    self.copy_batch(items, (place, kept), out, (first, to));
                } else {
                    copy_out::<_, 4>(threads, items, place, kept, out, first);
                    copy_out::<_, 4>(threads, items, place + kept, behind, out, to);
                }
            }
            first += kept as usize;
            others = if reversed { to } else { others + behind as usize };
        }
    }

    /// Writes a whole batch of a [partition](Self::partition). All items are read before one is written. The kept items go to the places
    /// from `first`, and the other items to those from `others`.
    ///
    /// # Safety
    /// As for [`copy_partition`](Self::copy_partition); and all places are inside.
    unsafe fn copy_batch<T: Element>(
        &self,
        items: SharedArray<'_, T>,
        (place, kept): (u32, u32),
        out: &mut GlobalMut<T>,
        (first, others): (usize, usize),
    ) {
        let lane = self.cx.lane();
        // SAFETY: the caller's contract.
        let item = |round: usize| unsafe { items.load((place + lane) as usize + round * WARP as usize) };
        let values: [[T; N]; TOGETHER] = core::array::from_fn(|v| core::array::from_fn(|i| item(v * N + i)));
        // These are the places of the lane's first item, if it is kept and if it is not; and the end of its kept items.
        let (first, others) = (first + lane as usize, others.wrapping_sub(kept as usize).wrapping_add(lane as usize));
        let end = kept.saturating_sub(lane) as usize;
        for (v, values) in values.iter().enumerate() {
            for (i, &value) in values.iter().enumerate() {
                let at = (v * N + i) * WARP as usize;
                let to = if at < end { first } else { others };
                // SAFETY: the caller's contract.
                unsafe { out.write_unchecked(to.wrapping_add(at), value) };
            }
        }
    }

    /// Returns the first place of a batch that has an item of the input, and the number of such places.
    #[inline(always)]
    fn batch_places(&self, number: u32) -> (u32, u32) {
        let first = (number * Self::BATCH).max(self.has.0);
        let end = (number * Self::BATCH + Self::BATCH).min(self.has.0 + self.has.1);
        (first, end.saturating_sub(first))
    }

    /// Returns a lane's values of a batch. The warp has then read the whole batch.
    ///
    /// # Safety
    /// As for [`count`](Self::count).
    unsafe fn batch<T: Element>(
        &self,
        items: SharedArray<'_, T>,
        number: u32,
        keeps: &mut impl FnMut(&[T; N], u32) -> u32,
    ) -> Batch<T, N, TOGETHER> {
        let at = number * Self::BATCH + self.cx.lane() * N as u32;
        let mut batch =
            Batch { at, items: [[T::ZERO; N]; TOGETHER], has: [0; TOGETHER], kept: [0; TOGETHER], before: 0, all: 0 };
        for v in 0..TOGETHER {
            // SAFETY: the caller's contract.
            batch.items[v] = unsafe { self.vector(items, at + v as u32 * Self::ROUND) };
        }
        let mut counts = 0;
        for v in 0..TOGETHER {
            let at = at + v as u32 * Self::ROUND;
            batch.has[v] = self.has(at);
            batch.kept[v] = keeps(&batch.items[v], at) & batch.has[v];
            counts |= batch.kept[v].count_ones() << (COUNT_BITS * v as u32);
        }
        (batch.before, batch.all) = warp_exclusive_scan(self.cx, counts, Add);
        self.cx.sync_warp(FULL_MASK);
        batch
    }

    /// Returns the place of the input's first item, if the part has it.
    #[inline(always)]
    fn beginning(&self) -> u32 {
        if self.index(self.has.0) == 0 { self.has.0 } else { u32::MAX }
    }

    /// Returns which items of a vector differ from the item before or are the input's first item, for [`count`](Self::count) and
    /// [`compact`](Self::compact).
    pub(crate) fn heads<S: Source<Item: Element + PartialEq>>(
        &self,
        x: Input<S>,
    ) -> impl FnMut(&[S::Item; N], u32) -> u32 + use<'k, S, N, TOGETHER> {
        let (cx, beginning) = (self.cx, self.beginning());
        // This is the last lane's item of the round before. In the first round, it is the item before the part.
        let mut earlier = x.get(self.start.wrapping_sub(1)).unwrap_or_else(|| any_item(x));
        move |items, at| {
            let mut heads = differing(cx, &mut earlier, items);
            for i in 0..N as u32 {
                heads |= ((at + i == beginning) as u32) << i;
            }
            heads
        }
    }
}

/// The values that a lane has of a batch.
struct Batch<T, const N: usize, const TOGETHER: usize> {
    /// The place of the batch's first vector of the lane in the part.
    at: u32,
    items: [[T; N]; TOGETHER],
    /// The bits of the items that the input has, and of the items that are kept.
    has: [u32; TOGETHER],
    kept: [u32; TOGETHER],
    /// For each vector, the number of items that the lanes before keep, and that all lanes keep. Each number has [`COUNT_BITS`] bits.
    before: u32,
    all: u32,
}

/// The bits of a word that count the kept items of a warp, with one vector for each lane.
const COUNT_BITS: u32 = 10;

/// Returns the count of a vector in such a word.
#[inline(always)]
fn of_vector(counts: u32, v: usize) -> u32 {
    counts >> (COUNT_BITS * v as u32) & const { !(!0 << COUNT_BITS) }
}
