//! The kernels of radix sorts.
//!
//! A sort of many tiles counts the digits of all passes first, by one read of the keys. Each pass then moves the keys once, as
//! "Onesweep" does (Adinets and Merrill, 2022): a block ranks its tile by the digit, learns from the tiles before it where each
//! digit's keys go, and writes them there, ordered by digit, so that neighbouring threads mostly write neighbouring elements.

use core::marker::PhantomData;

use kernel_primitives::functor::{KeyOrder, Turned};
use kernel_primitives::prelude::*;
use kernel_primitives::view::SharedStorage;
use kernel_primitives::warp::SortBits;

use crate::algorithms::tile::{CONTROL, has_little_shared};

/// Threads of a block of the kernels of a sort.
pub const SORT_THREADS: usize = 512;
/// The most keys that the launches of one pass have between them what others wait for: a count of so many has a flag beside it
/// in a word.
pub const SORT_PORTION: usize = 1 << 30;

/// Values of a digit.
const DIGITS: usize = 256;
/// Items of a thread of [`sort_tile`](struct@sort_tile) and [`sort_sweep`](struct@sort_sweep) by the sizes of a key and
/// a value: as many as two blocks on a multiprocessor have registers for and, on one of an H200, shared memory.
const fn items(key: usize, value: usize) -> usize {
    match (key, value) {
        (..=4, ..=4) => 16,
        (..=8, 0) => 12,
        (..=8, ..=8) => 10,
        (..=8, ..=16) => 6,
        _ if tile_bytes(key, value, 2) <= 86 << 10 => 2,
        _ => 1,
    }
}

/// As [`items`], on devices whose blocks have 64 KiB of shared memory and no more.
const fn fewer_items(key: usize, value: usize) -> usize {
    let mut items = items(key, value);
    while items > 1 && tile_bytes(key, value, items) > 52 << 10 {
        items = match items {
            16 => 12,
            12 => 10,
            items => (items - 1) & !1,
        };
    }
    if items > 0 { items } else { 1 }
}

/// Items of a tile of [`sort_tile`](struct@sort_tile) and [`sort_sweep`](struct@sort_sweep) whose keys and values have
/// these sizes; 0 for keys alone. On devices with little shared memory there are fewer: see [`SortShape`].
pub const fn sort_tile_items(key: usize, value: usize) -> usize {
    SORT_THREADS * items(key, value)
}

/// The tiles of [`sort_tile`](struct@sort_tile) and [`sort_sweep`](struct@sort_sweep), and how much shared memory a launch says
/// they take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SortShape {
    /// Items of a tile.
    pub tile: usize,
    /// Bytes of shared memory.
    pub shared_bytes: usize,
}

impl SortShape {
    /// That of keys and values of these sizes on a device whose blocks have so much shared memory.
    pub const fn of(key: usize, value: usize, shared_bytes: usize) -> Self {
        let items = items(key, value);
        let all = RadixRankStorage::<SORT_THREADS>::BYTES + tile_bytes(key, value, items);
        let items = if all + CONTROL <= shared_bytes { items } else { fewer_items(key, value) };
        Self { tile: SORT_THREADS * items, shared_bytes: tile_bytes(key, value, items) }
    }
}

/// Calls a function with the number of items as its last constant, and as its last argument the storage that they take.
macro_rules! with_items {
    ($items:expr, $k:ty, $v:ty, $f:ident($($arg:expr),* $(,)?), $shared:ident) => {
        match const { $items } {
            16 => $f::<$k, $v, 16>($($arg,)* &$shared.storage()),
            12 => $f::<$k, $v, 12>($($arg,)* &$shared.storage()),
            10 => $f::<$k, $v, 10>($($arg,)* &$shared.storage()),
            8 => $f::<$k, $v, 8>($($arg,)* &$shared.storage()),
            6 => $f::<$k, $v, 6>($($arg,)* &$shared.storage()),
            4 => $f::<$k, $v, 4>($($arg,)* &$shared.storage()),
            2 => $f::<$k, $v, 2>($($arg,)* &$shared.storage()),
            _ => $f::<$k, $v, 1>($($arg,)* &$shared.storage()),
        }
    };
}

/// Calls a function with the number of items that there is shared memory for.
macro_rules! by_shared {
    ($cx:ident, $k:ty, $v:ty, $f:ident $args:tt, $shared:ident) => {
        if has_less::<$k, $v>($cx, &$shared) {
            with_items!(fewer_items(size_of::<$k>(), size_of::<$v>()), $k, $v, $f $args, $shared)
        } else {
            with_items!(items(size_of::<$k>(), size_of::<$v>()), $k, $v, $f $args, $shared)
        }
    };
}

/// As `by_shared`, with fewer items where they do for so many keys.
macro_rules! by_len {
    ($cx:ident, $len:expr, $k:ty, $v:ty, $f:ident $args:tt, $shared:ident) => {
        if const { fewer_items(size_of::<$k>(), size_of::<$v>()) >= 2 } && $len <= SORT_THREADS * 2 {
            with_items!(2, $k, $v, $f $args, $shared)
        } else if const { items(size_of::<$k>(), size_of::<$v>()) >= 8 }
            && $len <= SORT_THREADS * 8
            && (const { fewer_items(size_of::<$k>(), size_of::<$v>()) >= 8 } || !has_less::<$k, $v>($cx, &$shared))
        {
            with_items!(8, $k, $v, $f $args, $shared)
        } else {
            by_shared!($cx, $k, $v, $f $args, $shared)
        }
    };
}

/// Whether a launch has shared memory for the tiles of devices with little of it alone; never where code is for others.
#[inline(always)]
fn has_less<K, V>(cx: Block<'_>, shared: &SharedSlice<'_, u64>) -> bool {
    let [less, most] = const {
        let (key, value) = (size_of::<K>(), size_of::<V>());
        [tile_bytes(key, value, fewer_items(key, value)), tile_bytes(key, value, items(key, value))]
    };
    less < most && has_little_shared(cx) && shared.len() * size_of::<u64>() < most
}

/// No value.
type Nothing = [u8; 0];

/// Bytes of the shared memory of a tile with so many items a thread.
const fn tile_bytes(key: usize, value: usize, items: usize) -> usize {
    let tile = SORT_THREADS * items;
    (KEYS + (tile * key).next_multiple_of(16) + tile * value).next_multiple_of(16)
}

/// Where a tile's shared memory has its number, and where its keys begin.
const TICKET: usize = DIGITS * size_of::<u64>();
const KEYS: usize = TICKET + 16;

/// The shared memory of a tile: a word a digit, the tile's number, the keys, the values.
struct SortTileStorage<K, V, const ITEMS: usize>(PhantomData<(K, V)>);

impl<K: SortKey, V: Element, const ITEMS: usize> SortTileStorage<K, V, ITEMS> {
    const TILE: usize = SORT_THREADS * ITEMS;
    const VALUES: usize = KEYS + (Self::TILE * size_of::<K>()).next_multiple_of(16);
}

// SAFETY: uninitialised elements.
unsafe impl<K: SortKey, V: Element, const ITEMS: usize> SharedStorage for SortTileStorage<K, V, ITEMS> {
    const BYTES: usize = tile_bytes(size_of::<K>(), size_of::<V>(), ITEMS);
    const ALIGN: usize = 16;
}

/// The digit that a pass sorts by.
#[derive(Clone, Copy)]
struct Digit {
    begin: u32,
    mask: u32,
    flip: u32,
}

impl Digit {
    /// The digit of the next of the bits `begin..end` of keys that are [`Turned`] so, eight at most.
    #[inline(always)]
    fn of_bits(begin: u32, end: u32, turned: u64) -> Self {
        let bits = end.saturating_sub(begin).min(8);
        // No bits: all have the digit 0, and a shift by all of a key's bits is none.
        let begin = if bits == 0 { 0 } else { begin };
        // Of a byte, which tells the compiler that a digit is one.
        Self { begin, mask: ((1 << bits) - 1) & 0xff, flip: (turned >> (begin & 63)) as u32 }
    }

    #[inline(always)]
    fn of<K: SortKey>(self, key: K) -> u32 {
        (key.to_plain_bits().bits_from(self.begin) ^ self.flip) & self.mask
    }
}

/// A tile's keys, warp-striped; behind the end those that come last.
#[inline(always)]
fn read_keys<K: SortKey, const ITEMS: usize>(cx: Block<'_>, tile: Global<'_, K>, turned: u64) -> [K; ITEMS] {
    let mut keys = [Turned(turned).of_bits(K::Bits::ALL); ITEMS];
    load_warp_striped(cx, &mut keys, tile);
    keys
}

/// Puts a thread's items at their places in shared memory.
///
/// # Safety
/// The places of the block's threads are a permutation of `to`'s, and nobody else accesses them between two barriers.
#[inline(always)]
unsafe fn scatter<T: Element, const ITEMS: usize>(to: SharedArray<'_, T>, places: &[u32; ITEMS], items: &[T; ITEMS]) {
    for (&place, &item) in places.iter().zip(items) {
        // SAFETY: the caller's contract.
        unsafe { to.store(place as usize, item) };
    }
}

/// Sorts up to one tile of keys; stable. The launch has one block.
///
/// `out` is as long as `keys`, a tile of the launch's [`SortShape`] at most: more are a fault. `begin..end` are the sort bits, and `turned` is
/// that of [`Turned::of`] for the keys and the direction.
#[kernel(threads(SORT_THREADS), min_blocks(1), equal_len(keys, out))]
pub fn sort_tile<K: SortKey>(
    cx: Block,
    keys: Global<K>,
    mut out: GlobalMut<K>,
    begin: u32,
    end: u32,
    turned: u64,
    mut ranks: Shared<RadixRankStorage<SORT_THREADS>>,
    shared: SharedSlice<u64>,
) {
    let bits = (begin.min(K::SORT_BITS), end.min(K::SORT_BITS), turned);
    by_len!(cx, keys.len(), K, Nothing, tile(cx, (keys, &mut out), None, bits, &mut ranks), shared);
}

/// As [`sort_tile`](struct@sort_tile), with a value a key that goes where its key goes.
#[kernel(threads(SORT_THREADS), min_blocks(1), equal_len(keys, out, values, values_out))]
pub fn sort_tile_pairs<K: SortKey, V: Element>(
    cx: Block,
    keys: Global<K>,
    mut out: GlobalMut<K>,
    values: Global<V>,
    mut values_out: GlobalMut<V>,
    begin: u32,
    end: u32,
    turned: u64,
    mut ranks: Shared<RadixRankStorage<SORT_THREADS>>,
    shared: SharedSlice<u64>,
) {
    let values = Some((values, &mut values_out));
    let bits = (begin.min(K::SORT_BITS), end.min(K::SORT_BITS), turned);
    by_len!(cx, keys.len(), K, V, tile(cx, (keys, &mut out), values, bits, &mut ranks), shared);
}

#[inline(always)]
fn tile<K: SortKey, V: Element, const ITEMS: usize>(
    cx: Block<'_>,
    (keys, out): (Global<'_, K>, &mut GlobalMut<'_, K>),
    values: Option<(Global<'_, V>, &mut GlobalMut<'_, V>)>,
    (mut begin, end, turned): (u32, u32, u64),
    ranks: &mut Shared<'_, RadixRankStorage<SORT_THREADS>>,
    shared: &Shared<'_, SortTileStorage<K, V, ITEMS>>,
) {
    cx.require_at_most(keys.len(), SORT_THREADS * ITEMS);
    let by_key = shared.array::<K>(KEYS, SORT_THREADS * ITEMS);
    let by_value = shared.array::<V>(SortTileStorage::<K, V, ITEMS>::VALUES, SORT_THREADS * ITEMS);
    let (thread, lane) = (cx.thread_rank() as usize, cx.lane() as usize);
    let first = (thread - lane) * ITEMS + lane;

    let mut digit = Digit::of_bits(begin, end, turned);
    let mut key = read_keys::<K, ITEMS>(cx, keys, turned);
    let mut value = [V::ZERO; ITEMS];
    if let Some((values, _)) = &values {
        load_warp_striped(cx, &mut value, *values);
    }
    loop {
        let places = block_radix_rank(cx, ranks, &key.map(|key| digit.of(key)), |_| ()).places;
        // SAFETY: ranks are a permutation; all threads have read before the barriers of the ranks.
        unsafe {
            scatter(by_key, &places, &key);
            scatter(by_value, &places, &value);
        }
        cx.barrier();
        begin += 8;
        if begin >= end {
            break;
        }
        digit = Digit::of_bits(begin, end, turned);
        // SAFETY: written before the barrier.
        unsafe {
            key = core::array::from_fn(|i| by_key.load(first + i * 32));
            value = core::array::from_fn(|i| by_value.load(first + i * 32));
        }
    }
    for i in 0..ITEMS {
        let at = i * SORT_THREADS + thread;
        if at < keys.len() {
            // SAFETY: written before the barrier; elements of this thread.
            unsafe { out.write(at, by_key.load(at)) };
        }
    }
    if let Some((_, out)) = values {
        for i in 0..ITEMS {
            let at = i * SORT_THREADS + thread;
            if at < keys.len() {
                // SAFETY: as above.
                unsafe { out.write(at, by_value.load(at)) };
            }
        }
    }
}

/// Counts how often each digit of each pass occurs: adds to `counts[pass * stride + digit]`, where pass `p` sorts by the eight
/// bits of `begin..end` from `begin + 8 * p` on. Any number of blocks.
#[kernel(launch(pub(crate)), threads(SORT_THREADS), min_blocks(2))]
pub fn count_digits<K: SortKey>(
    cx: Block,
    keys: Global<K>,
    counts: GlobalMut<u64, Atomic>,
    stride: usize,
    begin: u32,
    end: u32,
    turned: u64,
    shared: SharedSlice<u64>,
) {
    const { assert!(size_of::<K>() <= 8, "a key has up to 8 digits") };
    let bits = (begin, end, turned);
    let all = const { counters_bytes(size_of::<K>(), counter_copies(size_of::<K>())) };
    if has_little_shared(cx) && shared.len() * size_of::<u64>() < all {
        match const { counter_copies(size_of::<K>()) } {
            16 => count::<K, 8>(cx, keys, counts, stride, bits, &shared.storage()),
            _ => count::<K, 4>(cx, keys, counts, stride, bits, &shared.storage()),
        }
    } else {
        match const { counter_copies(size_of::<K>()) } {
            16 => count::<K, 16>(cx, keys, counts, stride, bits, &shared.storage()),
            _ => count::<K, 8>(cx, keys, counts, stride, bits, &shared.storage()),
        }
    }
}

/// As [`count_digits`](struct@count_digits), with so many copies of a counter, next to each other, for as many lanes.
#[inline(always)]
fn count<K: SortKey, const COPIES: usize>(
    cx: Block<'_>,
    keys: Global<'_, K>,
    counts: GlobalMut<'_, u64, Atomic>,
    stride: usize,
    (begin, end, turned): (u32, u32, u64),
    shared: &Shared<'_, DigitCounts<K, COPIES>>,
) {
    let copies = COPIES;
    let digits = const { size_of::<K>() as u32 };
    let counters = shared.array::<u32>(0, size_of::<K>() * DIGITS * copies);
    let passes = end.saturating_sub(begin).div_ceil(8).clamp(1, digits);
    let thread = cx.thread_rank() as usize;

    let mut at = thread * 4;
    while at < passes as usize * DIGITS * copies {
        // SAFETY: inside; an element of this thread.
        unsafe { counters.store_items(at, &[0; 4]) };
        at += SORT_THREADS * 4;
    }
    cx.barrier();
    // Lanes with different copies never meet in a bank, unless their digits are an odd number apart.
    let copy = cx.lane() as usize % copies;
    let own = shared.array::<u32>(copy * size_of::<u32>(), size_of::<K>() * DIGITS * copies - copy);
    let count = |key: K, passes: u32| {
        for pass in 0..digits {
            if pass < passes {
                let digit = Digit::of_bits(begin + 8 * pass, end, turned).of(key);
                // SAFETY: inside; atomic between the barriers.
                unsafe { own.at((pass as usize * DIGITS + digit as usize) * copies).fetch_add(1) };
            }
        }
    };
    if passes == digits {
        for_each_key(cx, keys, |key| count(key, digits));
    } else {
        for_each_key(cx, keys, |key| count(key, passes));
    }
    cx.barrier();
    let mut at = thread;
    while at < passes as usize * DIGITS {
        let mut total = 0u32;
        for copy in 0..copies / 4 {
            // SAFETY: written before the barrier.
            let some = unsafe { counters.load_items::<4>(at * copies + copy * 4) };
            total += some[0] + some[1] + some[2] + some[3];
        }
        if total > 0 {
            counts.at(at / DIGITS * stride + at % DIGITS).fetch_add(total as u64);
        }
        at += SORT_THREADS;
    }
}

/// Calls a function with each of the keys that the thread has of all, about 64 bytes of them at once.
#[inline(always)]
fn for_each_key<K: SortKey>(cx: Block<'_>, keys: Global<'_, K>, f: impl Fn(K)) {
    if const { size_of::<K>() > 4 } {
        for_each_of_tiles::<K, 8>(cx, keys, f);
    } else {
        for_each_of_tiles::<K, 12>(cx, keys, f);
    }
}

#[inline(always)]
fn for_each_of_tiles<K: SortKey, const ITEMS: usize>(cx: Block<'_>, keys: Global<'_, K>, f: impl Fn(K)) {
    for tile in cx.tiles::<ITEMS>(keys.len()) {
        let mut items = [K::ZERO; ITEMS];
        load_striped(cx, &mut items, keys.tile(tile));
        let thread = cx.thread_rank() as usize;
        if tile.len() == SORT_THREADS * ITEMS {
            items.iter().for_each(|&item| f(item));
        } else {
            for (i, &item) in items.iter().enumerate() {
                if i * SORT_THREADS + thread < tile.len() {
                    f(item);
                }
            }
        }
    }
}

/// The shared memory of [`count_digits`](struct@count_digits): counters of all digits, in copies.
pub(crate) struct DigitCounts<K, const COPIES: usize>(PhantomData<K>);

// SAFETY: uninitialised elements.
unsafe impl<K: Element, const COPIES: usize> SharedStorage for DigitCounts<K, COPIES> {
    const BYTES: usize = counters_bytes(size_of::<K>(), COPIES);
    const ALIGN: usize = 16;
}

/// Copies of a counter: up to 64 KiB of counters.
const fn counter_copies(key: usize) -> usize {
    if key > 4 { 8 } else { 16 }
}

const fn counters_bytes(key: usize, copies: usize) -> usize {
    key * DIGITS * copies * size_of::<u32>()
}

/// Bytes of shared memory that a launch of [`count_digits`](struct@count_digits) of keys of this size has, on a device whose blocks have
/// so much: for half the copies if there is too little.
pub const fn count_digits_bytes(key: usize, shared_bytes: usize) -> usize {
    let bytes = counters_bytes(key, counter_copies(key));
    if bytes + CONTROL <= shared_bytes { bytes } else { bytes / 2 }
}

/// Makes of the counts of each pass where the keys of each digit begin. A block a pass, of 256 threads.
#[kernel(launch(pub(crate)), threads(DIGITS))]
pub fn begin_digits(cx: Block, counts: GlobalMut<u64, Atomic>, stride: usize, mut shared: Shared<ScanStorage<u64>>) {
    let at = counts.at(cx.block_rank() * stride + cx.thread_rank() as usize);
    let ([begin], _) = block_exclusive_scan(cx, &mut shared, &[at.load()], Add);
    at.store(begin);
}

/// What one launch of a pass is told.
#[derive(Clone, Copy, KernelParam)]
#[repr(C)]
pub struct SortPass {
    /// How the keys' bits are [`Turned`].
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
/// - `begins`: from `pass.begins` on, where in `out` the keys of each digit begin; behind that, where they end, written for the
///   next launch.
/// - `states`: two halves of `pass.half * 256` words, of which this launch's is zero, and the other is cleared; before each lie
///   [`SORT_AHEAD`]` * 256` zeros.
/// - `tickets`: `tickets[pass.launch]` is zero.
///
/// There are at most [`SORT_PORTION`] keys, less one; `out` may have more.
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

#[inline(always)]
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
        // SAFETY: this thread's digit, up to the barrier before the others look at it.
        unsafe { starts.store(thread, begins(0).load()) };
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
        let before = count_before(cx, memory.states, pass.half_of(pass.launch), tile);
        if tile > 0 {
            state(tile).store(UPTO_TILE | (before + ranked.count));
        }
        // SAFETY: as above, and written by this thread.
        let begin = unsafe { starts.load(thread) }.saturating_add(before as u64);
        let end = begin.saturating_add(ranked.count as u64);
        if tile + 1 == pass.tiles {
            begins(1).store(end);
        }
        // Keys may have been written since they were counted. After a fault the rest of the block goes on, with a place inside. What
        // is behind the end of a partial tile counts too, and is not written: each write has its own check there.
        let (_, _, len) = position();
        let is_inside = end <= out.len() as u64 || len < SORT_THREADS * ITEMS;
        let begin = if is_inside { begin } else { 0 };
        // Less the place in the tile, so that adding a key's place gives where it goes.
        // SAFETY: as above.
        unsafe { starts.store(thread, begin.wrapping_sub(ranked.start as u64)) };
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

/// The count of this thread's digit in the first `tiles` tiles, whose states are the rows from `first` on: adds up what is known of
/// them, the last first, until one knows of all before it.
#[inline(always)]
fn count_before(cx: Block<'_>, states: &GlobalMut<'_, u32, Atomic>, first: u32, tiles: u32) -> u32 {
    let thread = cx.thread_rank() as usize;
    let (mut before, mut left) = (0, tiles);
    let read = |left: u32| -> [u32; SORT_AHEAD as usize] {
        // SAFETY: there are as many rows before the first tile's, whose state ends the walk.
        core::array::from_fn(|i| unsafe {
            states.at_unchecked(((first + left) as usize - 1 - i) * DIGITS + thread).load()
        })
    };
    let mut known = read(left);
    while left > 0 {
        let mut walking = true;
        let mut i = 0;
        while i < SORT_AHEAD as usize {
            let state = known[i];
            walking &= left > 0 && state >= OF_TILE;
            if walking {
                before += state % OF_TILE;
                left -= 1;
                if state >= UPTO_TILE {
                    (left, walking) = (0, false);
                }
            }
            i += 1;
        }
        if left > 0 {
            // Before the wait, which takes as long as the way to the cache and back.
            known = read(left);
            if !walking {
                cx.spin(20);
            }
        }
    }
    before
}
