//! A pass: the keys of a tile to their places by one digit.

use kernel_primitives::prelude::*;

use super::{
    DIGITS, Digit, KEYS, Nothing, SORT_THREADS, SortTileStorage, TICKET, by_shared, fewer_items, has_less, items,
    read_keys, scatter, with_items,
};

/// What one launch of a pass is told.
#[derive(Clone, Copy, KernelParam)]
#[repr(C)]
pub struct SortPass {
    /// How the keys' bits are [`Turned`](kernel_primitives::functor::Turned).
    pub turned: u64,
    /// The first sort bit of the digit, and the end of all.
    pub begin: u32,
    /// The end of the sort bits.
    pub end: u32,
    /// The number of this launch: of its ticket, and, by its lowest bit, of its half of the states.
    pub launch: u32,
    /// The tiles of this launch, and its blocks.
    pub tiles: u32,
    /// Tiles that a half of the states has.
    pub half: u32,
    /// Tiles of the other half to clear for the next launch.
    pub clear: u32,
    /// Where in the counts those are at which this launch's keys begin. Behind them come those of the pass's next.
    pub begins: u32,
}

/// Sorts a pass's keys, or a portion of them, by one digit; stable. A tile a block.
///
/// - `begins`: from `pass.begins`, where in `out` the keys of each digit begin; after that, where they end, written for the
///   next launch.
/// - `states`: two halves of `pass.half * 256` words, of which this launch's is zero, and the other is cleared; before each lie
///   [`SORT_AHEAD`]` * 256` zeros.
/// - `tickets`: `tickets[pass.launch]` is zero.
///
/// There are at most [`SORT_PORTION`](super::SORT_PORTION) keys, less one; `out` may have more.
#[kernel(launch(pub(crate)), threads(SORT_THREADS), min_blocks(2))]
pub fn sort_sweep<K: SortKey>(
    cx: Block,
    keys: Global<K>,
    mut out: GlobalMut<K>,
    begins: GlobalMut<u64, Atomic>,
    states: GlobalMut<u32, Atomic>,
    tickets: GlobalMut<u32, Atomic>,
    pass: SortPass,
    mut ranks: Shared<RadixRankStorage<SORT_THREADS>>,
    shared: SharedSlice<u64>,
) {
    let memory = Memory { begins: &begins, states: &states, tickets: &tickets };
    by_shared!(cx, K, Nothing, sweep(cx, (keys, &mut out), None, memory, pass, &mut ranks), shared);
}

/// As [`sort_sweep`](struct@sort_sweep), with a value a key that goes where its key goes.
#[kernel(launch(pub(crate)), threads(SORT_THREADS), min_blocks(2), equal_len(keys, values), equal_len(out, values_out))]
pub fn sort_sweep_pairs<K: SortKey, V: Element>(
    cx: Block,
    keys: Global<K>,
    mut out: GlobalMut<K>,
    values: Global<V>,
    mut values_out: GlobalMut<V>,
    begins: GlobalMut<u64, Atomic>,
    states: GlobalMut<u32, Atomic>,
    tickets: GlobalMut<u32, Atomic>,
    pass: SortPass,
    mut ranks: Shared<RadixRankStorage<SORT_THREADS>>,
    shared: SharedSlice<u64>,
) {
    let memory = Memory { begins: &begins, states: &states, tickets: &tickets };
    let values = Some((values, &mut values_out));
    by_shared!(cx, K, V, sweep(cx, (keys, &mut out), values, memory, pass, &mut ranks), shared);
}

/// What the blocks of a launch share.
#[derive(Clone, Copy)]
struct Memory<'v, 'k> {
    begins: &'v GlobalMut<'k, u64, Atomic>,
    states: &'v GlobalMut<'k, u32, Atomic>,
    tickets: &'v GlobalMut<'k, u32, Atomic>,
}

/// A state's upper two bits: what the others count. Zero, as it is cleared: nothing yet.
const OF_TILE: u32 = 1 << 30;
/// As [`OF_TILE`]: the keys of this digit in all tiles up to this one.
const UPTO_TILE: u32 = 2 << 30;

fn sweep<K: SortKey, V: Element, const ITEMS: usize>(
    cx: Block<'_>,
    (keys, out): (Global<'_, K>, &mut GlobalMut<'_, K>),
    values: Option<(Global<'_, V>, &mut GlobalMut<'_, V>)>,
    memory: Memory<'_, '_>,
    pass: SortPass,
    ranks: &mut Shared<'_, RadixRankStorage<SORT_THREADS>>,
    shared: &Shared<'_, SortTileStorage<K, V, ITEMS>>,
) {
    let starts = shared.array::<u64>(0, DIGITS);
    let by_key = shared.array::<K>(KEYS, SORT_THREADS * ITEMS);
    let by_value = shared.array::<V>(SortTileStorage::<K, V, ITEMS>::VALUES, SORT_THREADS * ITEMS);
    let ticket = shared.array::<u32>(TICKET, 1);
    let thread = cx.thread_rank() as usize;
    cx.require_at_most(keys.len(), out.len());
    // Blocks take their tiles in the order in which they run, so that nobody waits for one that does not run yet.
    if thread == 0 {
        // SAFETY: written by one thread, before the barrier.
        unsafe { ticket.store(0, memory.tickets.at(pass.launch as usize).fetch_add(1)) };
    }
    cx.barrier();
    // The tile, and its keys in the portion. Asked for anew rather than kept in registers meanwhile.
    let position = || {
        // SAFETY: written before the barrier, and not again.
        let tile = unsafe { ticket.load(0) };
        let first = tile as usize * SORT_THREADS * ITEMS;
        (tile, first, keys.len().saturating_sub(first).min(SORT_THREADS * ITEMS))
    };
    let begins = |row: usize| memory.begins.at(pass.begins as usize + row * DIGITS + thread);
    let state = |tile: u32| memory.states.at((pass.half_of(pass.launch) + tile) as usize * DIGITS + thread);
    let digit = Digit::of_bits(pass.begin, pass.end, pass.turned);

    let (tile, first, len) = position();
    // What is not as it was left counts tiles that there are not.
    cx.require_at_most(tile as usize + 1, pass.tiles as usize);
    let key = read_keys::<K, ITEMS>(cx, keys.slice(first..first + len), pass.turned);
    if thread < DIGITS {
        // At most what `out` has, whatever stands there, so that no sum of it overflows.
        // SAFETY: this thread's digit, up to the barrier before the others look at it.
        unsafe { starts.store(thread, begins(0).load().min(out.len() as u64)) };
        let mut row = tile;
        while row < pass.clear {
            memory.states.at((pass.half_of(pass.launch + 1) + row) as usize * DIGITS + thread).store(0);
            row += pass.tiles;
        }
    }
    let ranked = block_radix_rank(cx, ranks, &key.map(|key| digit.of(key)), |count| {
        let (tile, ..) = position();
        state(tile).store(count | if tile == 0 { UPTO_TILE } else { OF_TILE });
    });
    // SAFETY: ranks are a permutation, and the barrier below is between this and the reads.
    unsafe { scatter(by_key, &ranked.places, &key) };
    let (tile, first, len) = position();
    let mut value = [V::ZERO; ITEMS];
    if let Some((values, _)) = &values {
        load_warp_striped(cx, &mut value, values.slice(first..first + len));
    }
    let store_values = || {
        if values.is_some() {
            // SAFETY: as for the keys.
            unsafe { scatter(by_value, &ranked.places, &value) };
        }
    };
    // The loads of values are waited for behind the look at other tiles if there are registers for both.
    let is_wide = const { size_of::<V>() > 4 };
    if is_wide {
        store_values();
    }
    if thread < DIGITS {
        // Others wait for what follows the look at the tiles before: little is left to do then. Beside values there are no registers for that.
        // SAFETY: as above, and written by this thread.
        let begin = || unsafe { starts.load(thread) };
        let early = if values.is_none() { begin() } else { 0 };
        let before = if values.is_none() || is_wide {
            count_before::<{ SORT_AHEAD as usize }>(cx, memory.states, pass.half_of(pass.launch), tile)
        } else {
            // Beside values in registers.
            count_before::<5>(cx, memory.states, pass.half_of(pass.launch), tile)
        };
        if tile > 0 {
            state(tile).store(UPTO_TILE | (before + ranked.count));
        }
        let begin = if values.is_none() { early } else { begin() } + before as u64;
        let end = begin + ranked.count as u64;
        // Keys may have been written since they were counted. After a fault the rest of the block goes on, with a place inside. What
        // is after the end of a partial tile counts too, and is not written: each write has its own check there.
        let is_inside = end <= out.len() as u64 || position().2 < SORT_THREADS * ITEMS;
        let begin = if is_inside { begin } else { 0 };
        // Less the place in the tile, so that adding a key's place gives where it goes.
        // SAFETY: as above.
        unsafe { starts.store(thread, begin.wrapping_sub(ranked.start as u64)) };
        if tile + 1 == pass.tiles {
            begins(1).store(end);
        }
        if !is_inside {
            cx.require_at_most(end as usize, out.len());
        }
    }
    if !is_wide {
        store_values();
    }
    cx.barrier();

    let (_, _, len) = position();
    let place = |i: usize| i * SORT_THREADS + thread;
    // SAFETY: written before the barrier. What has the same digit, in this tile and all others, goes to its own part of `out`, in
    // the order of the keys that were counted; whatever was counted, of a whole tile each digit's first and last are inside.
    unsafe {
        if len == SORT_THREADS * ITEMS {
            let key: [K; ITEMS] = core::array::from_fn(|i| by_key.load(place(i)));
            let to: [usize; ITEMS] =
                core::array::from_fn(|i| starts.load(digit.of(key[i]) as usize).wrapping_add(place(i) as u64) as usize);
            for i in 0..ITEMS {
                out.write_unchecked(to[i], key[i]);
            }
            if let Some((_, out)) = values {
                let value: [V; ITEMS] = core::array::from_fn(|i| by_value.load(place(i)));
                for i in 0..ITEMS {
                    out.write_unchecked(to[i], value[i]);
                }
            }
        } else {
            let mut place = thread;
            let mut values = values;
            while place < len {
                let key = by_key.load(place);
                let to = starts.load(digit.of(key) as usize).wrapping_add(place as u64) as usize;
                out.write(to, key);
                if let Some((_, out)) = &mut values {
                    out.write(to, by_value.load(place));
                }
                place += SORT_THREADS;
            }
        }
    }
}

/// Rows of states that are read at once on the way back, since each takes a way to the second-level cache and back. As many lie,
/// never written, before each half of the states.
pub const SORT_AHEAD: u32 = 8;

impl SortPass {
    /// The first row of a launch's half of the states.
    #[inline(always)]
    fn half_of(self, launch: u32) -> u32 {
        SORT_AHEAD + (launch & 1) * (self.half + SORT_AHEAD)
    }
}

/// The count of this thread's digit in the first `tiles` tiles, whose states are the rows from `first`: adds up what is known of
/// them, the last first, `ROWS` at once, until one knows of all before it.
fn count_before<const ROWS: usize>(cx: Block<'_>, states: &GlobalMut<'_, u32, Atomic>, first: u32, tiles: u32) -> u32 {
    let thread = cx.thread_rank() as usize;
    let (mut before, mut left) = (0u32, tiles);
    let read = |left: u32| -> [u32; ROWS] {
        // SAFETY: there are as many rows before the first tile's, whose state ends the walk.
        core::array::from_fn(|i| unsafe {
            states.at_unchecked(((first + left) as usize - 1 - i) * DIGITS + thread).load()
        })
    };
    const { assert!(ROWS <= SORT_AHEAD as usize && ROWS < 16, "the flags of all rows and one bit more are a word") };
    let mut known = read(left);
    while left > 0 {
        // All are judged at once, as one after the other would be a chain of comparisons that all later tiles wait for. The flags of
        // the first row are on top: pairs of zeros are of a tile alone. After the last stands what is not known yet.
        let mut flags = 0u32;
        let mut i = 0;
        while i < ROWS {
            flags = flags << 2 | (known[i] ^ OF_TILE) >> 30;
            i += 1;
        }
        let zeros = (flags << (32 - 2 * ROWS) | 1 << (30 - 2 * ROWS)).leading_zeros();
        // Not a tile's own, and the upper flag is set.
        let is_last = zeros.is_multiple_of(2);
        let walked = zeros / 2 + is_last as u32;
        let mut i = 0;
        while i < ROWS {
            // With the flags, which are taken off the sum.
            before = if (i as u32) < walked { known[i].wrapping_add(before) } else { before };
            i += 1;
        }
        left = if is_last { 0 } else { left.saturating_sub(walked) };
        if left > 0 {
            // Before the wait, which takes as long as the way to the cache and back.
            known = read(left);
            if walked < ROWS as u32 {
                cx.spin(20);
            }
        }
    }
    before % OF_TILE
}
