//! A pass moves the keys of a tile to their places, by one digit.

use kernel_primitives::prelude::*;

use super::placed::{Packed, Placed};
use super::{
    DIGIT_OF_ALL, DIGITS, Digit, Nothing, OF_BEGINS, OF_ITEMS, OF_TICKET, SORT_THREADS, SortTileStorage, is_large,
    items, list_of, read_keys, scatter, with_items,
};

/// The parameters of one launch of a pass.
#[derive(Clone, Copy, KernelParam)]
#[repr(C)]
pub struct SortPass {
    /// The way in which the keys' bits are [`Turned`](kernel_primitives::functor::Turned).
    pub turned: u64,
    /// The first sort bit of the digit.
    pub begin: u32,
    /// The end of the sort bits.
    pub end: u32,
    /// The number of this launch. It is the index of its ticket, and its lowest bit says which half of the states it uses.
    pub launch: u32,
    /// The number of tiles of this launch, which is also its number of blocks.
    pub tiles: u32,
    /// The number of tiles in a half of the states.
    pub half: u32,
    /// The number of tiles of the other half that this launch clears for the next one.
    pub clear: u32,
    /// The index in the counts of the places where this launch's keys begin. After them come those of the pass's next launch.
    pub begins: u32,
}

/// Sorts the keys of a pass, or a portion of them, by one digit. The sort is stable. Each block sorts one tile.
///
/// - `begins`: from `pass.begins`, it has the places in `out` where the keys of each digit begin. After them, the launch writes the places
///   where they end, for the next launch.
/// - `states`: it has two halves of `pass.half * 256` words. This launch's half is zero, and the launch clears the other one. Before each
///   half are [`SORT_AHEAD`]` * 256` zeros.
/// - `tickets`: `tickets[pass.launch]` is zero, or what [`begin_digits`](struct@super::begin_digits) writes there.
///
/// There must be fewer than [`SORT_PORTION`](super::SORT_PORTION) keys. `out` may have more elements.
#[kernel(launch(pub(crate)), threads(SORT_THREADS), one_dimensional, min_blocks(2))]
pub fn sort_sweep<K: SortKey>(
    cx: Block,
    keys: Global<K>,
    mut out: GlobalMut<K>,
    begins: GlobalMut<u64, Atomic>,
    states: GlobalMut<u32, Atomic>,
    tickets: GlobalMut<u32, Atomic>,
    pass: SortPass,
    mut ranks: Shared<RadixRankStorage<SORT_THREADS>>,
    shared: Shared<SortTileStorage<K, Nothing>>,
) {
    let memory = Memory { begins: &begins, states: &states, tickets: &tickets };
    // All threads wait for the ticket, so the checks come while it is on its way.
    let ticket = memory.take_ticket(cx, pass);
    with_items!(
        items(size_of::<K>(), 0),
        K,
        Nothing,
        sweep(cx, (keys, &mut out), None, memory, (pass, || ticket), &mut ranks, &shared)
    );
}

/// Works as [`sort_sweep`](struct@sort_sweep), with a value for each key. A value goes to the place of its key.
#[kernel(
    launch(pub(crate)),
    threads(SORT_THREADS),
    one_dimensional,
    min_blocks(2),
    equal_len(keys, values),
    equal_len(out, values_out)
)]
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
    shared: Shared<SortTileStorage<K, V>>,
) {
    let memory = Memory { begins: &begins, states: &states, tickets: &tickets };
    let values = Some((values, &mut values_out));
    // Beside values there is no register for an early ticket.
    let ticket = || memory.take_ticket(cx, pass);
    with_items!(
        items(size_of::<K>(), size_of::<V>()),
        K,
        V,
        sweep(cx, (keys, &mut out), values, memory, (pass, ticket), &mut ranks, &shared)
    );
}

/// The memory that the blocks of a launch share.
#[derive(Clone, Copy)]
struct Memory<'v, 'k> {
    begins: &'v GlobalMut<'k, u64, Atomic>,
    states: &'v GlobalMut<'k, u32, Atomic>,
    tickets: &'v GlobalMut<'k, u32, Atomic>,
}

impl Memory<'_, '_> {
    /// Returns the number of blocks that called this before, in the first thread of the block.
    #[inline(always)]
    fn take_ticket(self, cx: Block<'_>, pass: SortPass) -> u32 {
        if cx.thread_rank() == 0 { self.tickets.at(pass.launch as usize).fetch_add(1) } else { 0 }
    }
}

/// The upper two bits of a state say what the other bits count. With this value, they count the keys of this digit in the tile. A cleared
/// state, which is zero, has no count yet.
const OF_TILE: u32 = 1 << 30;
/// The state counts the keys of this digit in all tiles up to this one.
const UPTO_TILE: u32 = 2 << 30;

fn sweep<K: SortKey, V: Element, const N: usize>(
    cx: Block<'_>,
    (keys, out): (Global<'_, K>, &mut GlobalMut<'_, K>),
    values: Option<(Global<'_, V>, &mut GlobalMut<'_, V>)>,
    memory: Memory<'_, '_>,
    (pass, own_ticket): (SortPass, impl FnOnce() -> u32),
    ranks: &mut Shared<'_, RadixRankStorage<SORT_THREADS>>,
    shared: &Shared<'_, SortTileStorage<K, V>>,
) {
    let tile_items = const { SORT_THREADS * N };
    let starts = shared.array::<u64>(0, DIGITS);
    let digit_begins = shared.array::<u64>(OF_BEGINS, DIGITS);
    let by_key = shared.array::<K>(OF_ITEMS, tile_items);
    let ticket = shared.array::<u32>(OF_TICKET, 3);
    let thread = cx.thread_rank() as usize;
    cx.require_at_most(keys.len(), out.len());
    // Blocks take their tiles in the order in which they run, so no block waits for one that does not run yet.
    let own_ticket = own_ticket();
    if thread == 0 {
        let tile = own_ticket % (1 << DIGIT_OF_ALL);
        let len = keys.len().saturating_sub(tile as usize * tile_items).min(tile_items);
        // SAFETY: written by one thread, before the barrier.
        unsafe {
            ticket.store(0, tile);
            ticket.store(1, len as u32);
            ticket.store(2, own_ticket >> DIGIT_OF_ALL);
        }
    }
    cx.barrier();
    // Returns the tile, the place of its first key in the portion, and the number of its keys. They are read again each time, because
    // registers are few.
    let position = || {
        // SAFETY: written before the barrier, and not again.
        let (tile, len) = unsafe { (ticket.load(0), ticket.load(1)) };
        (tile, tile as usize * tile_items, len as usize)
    };
    let begins = |row: usize| memory.begins.at(pass.begins as usize + row * DIGITS + thread);
    let state = |tile: u32| memory.states.at((pass.half_of(pass.launch) + tile) as usize * DIGITS + thread);
    // It is computed again after the look at other tiles, too.
    let digit = || Digit::of_bits(pass.begin, pass.end, pass.turned);

    let (tile, first, len) = position();
    // If the lower bits of a ticket were changed, they count tiles that do not exist. With other upper bits, the keys go to another place
    // in `out`.
    cx.require_at_most(tile as usize + 1, pass.tiles as usize);
    let clear = || {
        let mut row = tile;
        while row < pass.clear {
            memory.states.at((pass.half_of(pass.launch + 1) + row) as usize * DIGITS + thread).store(0);
            row += pass.tiles;
        }
    };
    // SAFETY: written before the barrier, and not again.
    let of_all = unsafe { ticket.load(2) };
    if const { !is_large(size_of::<V>()) } && of_all > 0 {
        // All keys have one digit, so they stay in their order, and each tile knows where it goes.
        if thread < DIGITS {
            clear();
        }
        let begins = |row: usize| memory.begins.at(pass.begins as usize + row * DIGITS + of_all as usize % DIGITS);
        let begin = begins(0).load().min(out.len() as u64) as usize;
        cx.require_at_most(begin + first + len, out.len());
        let values = values.map(|(values, out)| (values.slice(first..first + len), out));
        let moved = (keys.slice(first..first + len), out);
        move_tile::<K, V, N>(cx, moved, values, begin + first);
        if tile + 1 == pass.tiles && thread == 0 {
            begins(1).store((begin + keys.len()) as u64);
        }
        return;
    }
    let key = read_keys::<K, N>(cx, keys.slice(first..first + len), pass.turned);
    if thread < DIGITS {
        // At most what `out` has, whatever stands there, so that no sum of it overflows.
        // SAFETY: this thread's digit, up to the barrier before the others look at it.
        unsafe { digit_begins.store(thread, begins(0).load().min(out.len() as u64)) };
        clear();
    }
    let digits = digit().hidden(cx);
    let ranked = block_radix_rank(cx, ranks, &key.map(|key| digits.of(key)), |count| {
        let (tile, ..) = position();
        state(tile).store(count | if tile == 0 { UPTO_TILE } else { OF_TILE });
    });
    // SAFETY: ranks are a permutation, and the barrier below is between this and the reads.
    unsafe { scatter(by_key, &ranked.places, &key) };
    if const { is_large(size_of::<V>()) } {
        let own = core::array::from_fn(|i| ((thread / 32 * N + i) * 32 + thread % 32) as u16);
        // SAFETY: as above.
        unsafe {
            scatter(shared.array(const { list_of(size_of::<K>(), size_of::<V>()) }, tile_items), &ranked.places, &own)
        };
    }
    // Until the values follow, the places take half the registers.
    let mut places = Packed::<16, N>::default();
    for (i, &place) in ranked.places.iter().enumerate() {
        places.set(i, place);
    }
    let (tile, ..) = position();
    if thread < DIGITS {
        // The place in the tile is subtracted, so that the sum with a key's place is where the key goes. That is inside of `out`, wherever
        // this digit's keys are to begin. The look at the tiles before ends this thread if there was a fault on the stream.
        // SAFETY: this thread's digit, up to the barrier before the others look at it.
        unsafe { starts.store(thread, (ranked.start as u64).wrapping_neg()) };
        // Others wait for what follows the look at the tiles before: little is left to do then. Beside values no registers are left.
        // SAFETY: as above, and written by this thread.
        let begin = || unsafe { digit_begins.load(thread) };
        let early = if values.is_none() { begin() } else { 0 };
        let half = pass.half_of(pass.launch);
        let before = if values.is_none() {
            count_before::<{ SORT_AHEAD as usize }>(cx, memory.states, half, tile)
        } else {
            // More rows at once take from the caches what the values need.
            count_before::<4>(cx, memory.states, half, tile)
        };
        if tile > 0 {
            state(tile).store(UPTO_TILE | (before + ranked.count));
        }
        let begin = if values.is_none() { early } else { begin() } + before as u64;
        // SAFETY: as above.
        let less_start = unsafe { starts.load(thread) };
        // What is after the end of a partial tile comes last in it, and is not written.
        let (_, _, len) = position();
        let start = less_start.wrapping_neg() as u32;
        let inside = |place: u32| place.min(len as u32);
        let end = begin + (inside(start + ranked.count) - inside(start)) as u64;
        // Keys may have been written since they were counted. After a fault the rest of the block goes on, with a place inside.
        let is_inside = end <= out.len() as u64;
        if is_inside {
            // SAFETY: as above.
            unsafe { starts.store(thread, less_start.wrapping_add(begin)) };
        }
        if tile + 1 == pass.tiles {
            begins(1).store(end);
        }
        if !is_inside {
            cx.require_at_most(end as usize, out.len());
        }
    }
    cx.barrier();

    // Beside values there is no register for it.
    let digit = if values.is_none() { digit().hidden(cx) } else { digit() };
    let (_, first, len) = position();
    let placed = Placed { cx, first, digit, starts, ticket, by_key, shared, places };
    // SAFETY: all of it was written before the barrier. There are as many values as keys, and `out` has all that `starts` leads to.
    unsafe {
        if len == tile_items {
            placed.write::<true>(out, values);
        } else {
            placed.write::<false>(out, values);
        }
    }
}

/// Moves the keys of a tile, and the values, to places from `to`, which are in the outputs.
fn move_tile<K: SortKey, V: Element, const N: usize>(
    cx: Block<'_>,
    (keys, out): (Global<'_, K>, &mut GlobalMut<'_, K>),
    mut values: Option<(Global<'_, V>, &mut GlobalMut<'_, V>)>,
    to: usize,
) {
    // More at once would take registers from the rest of the kernel.
    const AT_ONCE: usize = 4;
    for first in (0..N).step_by(AT_ONCE) {
        let place = |i: usize| (first + i) * SORT_THREADS + cx.thread_rank() as usize;
        let (mut key, mut value) = ([K::ZERO; AT_ONCE], [V::ZERO; AT_ONCE]);
        for (i, (key, value)) in key.iter_mut().zip(&mut value).enumerate() {
            if place(i) < keys.len() {
                *key = keys[place(i)];
                if let Some((values, _)) = &values {
                    *value = values[place(i)];
                }
            }
        }
        for (i, (&key, &value)) in key.iter().zip(&value).enumerate() {
            if place(i) < keys.len() {
                // SAFETY: each place goes to elements of its own.
                unsafe {
                    out.write(to + place(i), key);
                    if let Some((_, out)) = &mut values {
                        out.write(to + place(i), value);
                    }
                }
            }
        }
    }
}

/// The number of rows of states that the look-back reads at once, because each read takes the time of a way to the second-level cache and
/// back. Before each half of the states, there are as many rows that are never written.
pub const SORT_AHEAD: u32 = 8;

impl SortPass {
    /// The first row of a launch's half of the states.
    #[inline(always)]
    fn half_of(self, launch: u32) -> u32 {
        SORT_AHEAD + (launch & 1) * (self.half + SORT_AHEAD)
    }
}

/// Returns the count of this thread's digit in the first `tiles` tiles, whose states are the rows from `first`. It adds the known counts,
/// from the last tile, `ROWS` tiles at a time, until a tile has the count of all tiles before it.
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
        // All rows are tested at once. Tests one after the other would be a chain of comparisons, and all later tiles wait for it. The
        // flags of the first row are on top. A pair of zeros is a count of one tile. After the last row stands the value for a count that
        // is not known yet.
        let mut flags = 0u32;
        let mut i = 0;
        while i < ROWS {
            flags = flags << 2 | (known[i] ^ OF_TILE) >> 30;
            i += 1;
        }
        let zeros = (flags << (32 - 2 * ROWS) | 1 << (30 - 2 * ROWS)).leading_zeros();
        // The state does not count its own tile only, and its upper flag is set.
        let is_last = zeros.is_multiple_of(2);
        let walked = zeros / 2 + is_last as u32;
        let mut i = 0;
        while i < ROWS {
            // The sum includes the flags, which are removed in the end.
            before = if (i as u32) < walked { known[i].wrapping_add(before) } else { before };
            i += 1;
        }
        left = if is_last { 0 } else { left.saturating_sub(walked) };
        if left > 0 {
            // This read comes before the wait, which takes as long as the way to the cache and back.
            known = read(left);
            if walked < ROWS as u32 {
                cx.spin(20);
            }
        }
    }
    before % OF_TILE
}
