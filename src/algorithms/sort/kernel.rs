//! The kernels of radix sorts.
//!
//! A sort of many tiles first counts the digits of all passes, and reads the keys once for this. Then each pass moves the keys once, as
//! "Onesweep" does (Adinets and Merrill, 2022). A block ranks its tile by the digit. From the tiles before, it learns where the keys of
//! each digit go. It writes them there, ordered by digit, so that neighbouring threads mostly write neighbouring elements.

use core::marker::PhantomData;

use kernel_primitives::functor::{KeyOrder, Turned};
use kernel_primitives::prelude::*;
use kernel_primitives::view::SharedStorage;
use kernel_primitives::warp::SortBits;

use crate::algorithms::tile::{CONTROL, has_little_shared};

mod count;
mod sweep;

pub use count::{begin_digits, count_digits, count_digits_bytes};
pub use sweep::{SORT_AHEAD, SortPass, sort_sweep, sort_sweep_pairs};

/// The number of threads of a block of the kernels of a sort.
pub const SORT_THREADS: usize = 512;
/// A launch has fewer keys than this, so that a count of keys and its flag fit into a word. A pass of more keys has several launches.
pub const SORT_PORTION: usize = 1 << 30;

/// The number of values of a digit.
const DIGITS: usize = 256;
/// The number of items of a thread of [`sort_tile`](struct@sort_tile) and [`sort_sweep`](struct@sort_sweep), by the sizes of a key and a
/// value. Two blocks on a multiprocessor have registers for this many items. On a multiprocessor of an H200, they also have shared memory
/// for them.
const fn items(key: usize, value: usize) -> usize {
    match (key, value) {
        (..=4, ..=4) => 16,
        (..=8, 0) => 12,
        // With eleven items, values of one byte and their keys take more registers than the oldest architecture has.
        (..=8, 1) => 10,
        // Two blocks fit on an A100, too.
        (..=8, ..=4) => 11,
        (..=8, ..=8) => 10,
        (..=8, ..=16) => 6,
        _ if tile_bytes(key, value, 2) <= 86 << 10 => 2,
        _ => 1,
    }
}

/// Works as [`items`], for devices whose blocks have only 64 KiB of shared memory.
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

/// The number of items of a tile of [`sort_tile`](struct@sort_tile) and [`sort_sweep`](struct@sort_sweep) whose keys and values have these
/// sizes, or size 0 for keys alone. On devices with little shared memory, a tile has fewer items: see [`SortShape`].
pub const fn sort_tile_items(key: usize, value: usize) -> usize {
    SORT_THREADS * items(key, value)
}

/// The tiles of [`sort_tile`](struct@sort_tile) and [`sort_sweep`](struct@sort_sweep), and the shared memory that a launch gives for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SortShape {
    /// The number of items of a tile.
    pub tile: usize,
    /// The bytes of shared memory.
    pub shared_bytes: usize,
}

impl SortShape {
    /// Returns the shape for keys and values of these sizes on a device whose blocks have `shared_bytes` bytes of shared memory.
    pub const fn of(key: usize, value: usize, shared_bytes: usize) -> Self {
        let items = items(key, value);
        let all = RadixRankStorage::<SORT_THREADS>::BYTES + tile_bytes(key, value, items);
        let items = if all + CONTROL <= shared_bytes { items } else { fewer_items(key, value) };
        Self { tile: SORT_THREADS * items, shared_bytes: tile_bytes(key, value, items) }
    }
}

/// Calls a function with the number of items as its last constant, and with their storage as its last argument.
macro_rules! with_items {
    ($items:expr, $k:ty, $v:ty, $f:ident($($arg:expr),* $(,)?), $shared:ident) => {
        match const { $items } {
            16 => $f::<$k, $v, 16>($($arg,)* &$shared.storage()),
            12 => $f::<$k, $v, 12>($($arg,)* &$shared.storage()),
            11 => $f::<$k, $v, 11>($($arg,)* &$shared.storage()),
            10 => $f::<$k, $v, 10>($($arg,)* &$shared.storage()),
            8 => $f::<$k, $v, 8>($($arg,)* &$shared.storage()),
            6 => $f::<$k, $v, 6>($($arg,)* &$shared.storage()),
            4 => $f::<$k, $v, 4>($($arg,)* &$shared.storage()),
            2 => $f::<$k, $v, 2>($($arg,)* &$shared.storage()),
            _ => $f::<$k, $v, 1>($($arg,)* &$shared.storage()),
        }
    };
}
use with_items;

/// Calls a function with the number of items for which there is shared memory.
macro_rules! by_shared {
    ($cx:ident, $k:ty, $v:ty, $f:ident $args:tt, $shared:ident) => {
        if has_less::<$k, $v>($cx, &$shared) {
            with_items!(fewer_items(size_of::<$k>(), size_of::<$v>()), $k, $v, $f $args, $shared)
        } else {
            with_items!(items(size_of::<$k>(), size_of::<$v>()), $k, $v, $f $args, $shared)
        }
    };
}
use by_shared;

/// Works as `by_shared`, with fewer items if they are enough for `len` keys.
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

/// Returns whether a launch has shared memory only for the tiles of devices with little of it. Code for other devices always returns false.
fn has_less<K, V>(cx: Block<'_>, shared: &SharedSlice<'_, u64>) -> bool {
    let [less, most] = const {
        let (key, value) = (size_of::<K>(), size_of::<V>());
        [tile_bytes(key, value, fewer_items(key, value)), tile_bytes(key, value, items(key, value))]
    };
    less < most && has_little_shared(cx) && shared.len() * size_of::<u64>() < most
}

/// No value.
type Nothing = [u8; 0];

/// Returns the bytes of shared memory of a tile with this many items for each thread.
const fn tile_bytes(key: usize, value: usize, items: usize) -> usize {
    let tile = SORT_THREADS * items;
    (KEYS + (tile * key).next_multiple_of(16) + tile * value).next_multiple_of(16)
}

/// The places of a tile's number and of its keys in the shared memory of the tile.
const TICKET: usize = DIGITS * size_of::<u64>();
const KEYS: usize = TICKET + 16;

/// The shared memory of a tile: a word for each digit, the number of the tile, the keys, and the values.
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
    /// Returns the digit of the first eight bits of `begin..end`, or of fewer bits, for keys that are [`Turned`] in this way.
    #[inline(always)]
    fn of_bits(begin: u32, end: u32, turned: u64) -> Self {
        let bits = end.saturating_sub(begin).min(8);
        // If there are no bits, all keys have the digit 0. A shift by all bits of a key is not possible.
        let begin = if bits == 0 { 0 } else { begin };
        // The mask has a byte. This tells the compiler that a digit is a byte.
        Self { begin, mask: ((1 << bits) - 1) & 0xff, flip: (turned >> (begin & 63)) as u32 }
    }

    /// Hides from the compiler where the flip comes from. Otherwise the compiler turns whole keys before their shifts, which takes more
    /// instructions than to turn digits, unless a key has many digits.
    #[inline(always)]
    fn hidden(self, cx: Block<'_>) -> Self {
        Self { flip: cx.opaque(self.flip), ..self }
    }

    #[inline(always)]
    fn of<K: SortKey>(self, key: K) -> u32 {
        (key.to_plain_bits().bits_from(self.begin) ^ self.flip) & self.mask
    }
}

/// Reads the keys of a tile, warp-striped. After the end, it returns keys that come last.
#[inline(always)]
fn read_keys<K: SortKey, const ITEMS: usize>(cx: Block<'_>, tile: Global<'_, K>, turned: u64) -> [K; ITEMS] {
    let mut keys = [Turned(turned).of_bits(K::Bits::ALL); ITEMS];
    load_warp_striped(cx, &mut keys, tile);
    keys
}

/// Puts the items of a thread at their places in shared memory.
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

/// Sorts at most one tile of keys. The sort is stable. The launch has one block.
///
/// `out` is as long as `keys`, which has at most a tile of the launch's [`SortShape`]: more keys are a fault. `begin..end` are the sort
/// bits, and `turned` is the result of [`Turned::of`] for the keys and the direction.
///
/// Anyone may launch it: its result is right for any arguments.
#[kernel(threads(SORT_THREADS), one_dimensional, min_blocks(1), equal_len(keys, out))]
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

/// Works as [`sort_tile`](struct@sort_tile), with a value for each key. A value goes to the place of its key.
///
/// Anyone may launch it: its result is right for any arguments.
#[kernel(threads(SORT_THREADS), one_dimensional, min_blocks(1), equal_len(keys, out, values, values_out))]
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

    let mut digit = Digit::of_bits(begin, end, turned).hidden(cx);
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
        digit = Digit::of_bits(begin, end, turned).hidden(cx);
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
