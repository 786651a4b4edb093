//! The kernels of radix sorts.
//!
//! A sort of many tiles first counts the digits of all passes, and reads the keys once for this. Then each pass moves the keys once, as
//! "Onesweep" does (Adinets and Merrill, 2022). A block ranks its tile by the digit. From the tiles before, it learns where the keys of
//! each digit go. It writes them there, ordered by digit, so that neighbouring threads mostly write neighbouring elements.

use core::marker::PhantomData;

use kernel_primitives::prelude::*;
use kernel_primitives::view::SharedStorage;
use kernel_primitives::warp::SortBits;

mod count;
mod placed;
mod sweep;

pub use count::{begin_digits, count_digits, count_digits_bytes};
pub use sweep::{SORT_AHEAD, SortPass, sort_sweep, sort_sweep_pairs};

/// The number of threads of a block of the kernels of a sort.
pub const SORT_THREADS: usize = 512;
/// A launch has fewer keys than this, so that a count of keys and its flag fit into a word. A pass of more keys has several launches.
pub const SORT_PORTION: usize = 1 << 30;

/// The number of values of a digit.
const DIGITS: usize = 256;

/// The upper bits of a launch's tickets: nothing, or that all keys of the pass have one digit, and this digit. The lower bits count tiles.
const DIGIT_OF_ALL: u32 = 23;

/// Returns the first ticket of a launch of a pass whose keys all have this digit.
const fn first_ticket_of(digit: u32) -> u32 {
    (DIGITS as u32 | digit) << DIGIT_OF_ALL
}

/// The number of items of a thread of [`sort_tile`](struct@sort_tile) and [`sort_sweep`](struct@sort_sweep), by the sizes of a key and a
/// value. Two blocks on a multiprocessor have registers for this many items. Every device has shared memory for a block, and most have it
/// for two.
const fn items(key: usize, value: usize) -> usize {
    match larger(key, value) {
        0..=4 => 16,
        5..=8 => 12,
        _ => 6,
    }
}

/// The number of bytes of an item in shared memory: those of a key or of a value, whichever are more, because the values take the place of the
/// keys. [Large](is_large) values stay where they are until it is known where they go. Instead, a tile has a [list](list_of) of two bytes an
/// item beside the keys, or, if the tile is all of the input, of four bytes an item in the place of the keys.
const fn larger(key: usize, value: usize) -> usize {
    let (key, value) = if is_large(value) { (key + size_of::<u16>(), size_of::<u32>()) } else { (key, value) };
    if key > value { key } else { value }
}

/// Whether values of this size are read and written once, by several threads each.
const fn is_large(value: usize) -> bool {
    value > 16
}

/// Where a tile with large values lists, for each place, which of its keys came there.
const fn list_of(key: usize, value: usize) -> usize {
    OF_ITEMS + sort_tile_items(key, value) * key
}

/// The number of items of a tile of [`sort_tile`](struct@sort_tile) and [`sort_sweep`](struct@sort_sweep) whose keys and values have these
/// sizes, or size 0 for keys alone.
pub const fn sort_tile_items(key: usize, value: usize) -> usize {
    SORT_THREADS * items(key, value)
}

/// Calls a function with the number of items as its last constant.
macro_rules! with_items {
    ($items:expr, $k:ty, $v:ty, $f:ident($($arg:expr),* $(,)?)) => {
        match const { $items } {
            16 => $f::<$k, $v, 16>($($arg),*),
            12 => $f::<$k, $v, 12>($($arg),*),
            8 => $f::<$k, $v, 8>($($arg),*),
            6 => $f::<$k, $v, 6>($($arg),*),
            _ => $f::<$k, $v, 2>($($arg),*),
        }
    };
}
use with_items;

/// Works as `with_items`, or for fewer items if they are enough for `len` keys.
macro_rules! by_len {
    ($len:expr, $items:expr, $k:ty, $v:ty, $f:ident $args:tt) => {
        if $len <= SORT_THREADS * 2 {
            with_items!(2, $k, $v, $f $args)
        } else if const { $items > 8 } && $len <= SORT_THREADS * 8 {
            with_items!(8, $k, $v, $f $args)
        } else {
            with_items!($items, $k, $v, $f $args)
        }
    };
}

/// No value.
type Nothing = [u8; 0];

/// The places of what a tile has in shared memory: for each digit where its keys go, and where those of all tiles begin; the number of the
/// tile; its items.
const OF_BEGINS: usize = DIGITS * size_of::<u64>();
const OF_TICKET: usize = 2 * OF_BEGINS;
const OF_ITEMS: usize = OF_TICKET + 16;

/// The shared memory of a tile. The values come to the place of the keys, after them.
pub struct SortTileStorage<K, V>(PhantomData<(K, V)>);

// SAFETY: uninitialised elements.
unsafe impl<K: SortKey, V: Element> SharedStorage for SortTileStorage<K, V> {
    const BYTES: usize = {
        let (key, value) = (size_of::<K>(), size_of::<V>());
        (OF_ITEMS + sort_tile_items(key, value) * larger(key, value)).next_multiple_of(16)
    };
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
    /// Returns the digit of the first eight bits of `begin..end`, or of fewer bits, for keys that are
    /// [`Turned`](kernel_primitives::functor::Turned) in this way.
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
fn read_keys<K: SortKey, const N: usize>(cx: Block<'_>, tile: Global<'_, K>, turned: u64) -> [K; N] {
    // After the turn, all bits of a digit are set. Bits that no key has are 0, because `from_sort_bits` need not know them.
    let last = K::Bits::ALL.xor(SortBits::of_word(turned)).and(K::greatest_bits());
    let mut keys = [K::from_plain_bits(last); N];
    load_warp_striped(cx, &mut keys, tile);
    keys
}

/// Puts the items of a thread at their places in shared memory.
///
/// # Safety
/// The places of the block's threads are a permutation of `to`'s, and nobody else accesses them between two barriers.
#[inline(always)]
unsafe fn scatter<T: Element, const N: usize>(to: SharedArray<'_, T>, places: &[u32; N], items: &[T; N]) {
    for (&place, &item) in places.iter().zip(items) {
        // SAFETY: the caller's contract.
        unsafe { to.store(place as usize, item) };
    }
}

/// Sorts at most one tile of keys. The sort is stable. The first block of a launch sorts, and others do nothing.
///
/// `out` is as long as `keys`, which has at most [`sort_tile_items`] keys: more keys are a fault. `begin..end` are the sort bits, and
/// `turned` is the result of [`Turned::of`](kernel_primitives::functor::Turned::of) for the keys and the direction.
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
    shared: Shared<SortTileStorage<K, Nothing>>,
) {
    let bits = (begin.min(K::SORT_BITS), end.min(K::SORT_BITS), turned);
    let none = None::<(fn(usize) -> Nothing, fn(usize, Nothing))>;
    by_len!(
        keys.len(),
        items(size_of::<K>(), 0),
        K,
        Nothing,
        tile(cx, (keys, &mut out), none, bits, &mut ranks, &shared)
    );
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
    shared: Shared<SortTileStorage<K, V>>,
) {
    let bits = (begin.min(K::SORT_BITS), end.min(K::SORT_BITS), turned);
    if const { is_large(size_of::<V>()) } {
        // SAFETY: only one block writes. Each of its threads writes elements of its own, here and below.
        let write = |at: usize, place: u32| unsafe { values_out.write(at, values[place as usize]) };
        let ends = Some((|at: usize| at as u32, write));
        by_len!(
            keys.len(),
            items(size_of::<K>(), size_of::<V>()),
            K,
            u32,
            tile(cx, (keys, &mut out), ends, bits, &mut ranks, &shared)
        );
    } else {
        // SAFETY: as above.
        let ends = Some((|at: usize| values[at], |at: usize, value: V| unsafe { values_out.write(at, value) }));
        by_len!(
            keys.len(),
            items(size_of::<K>(), size_of::<V>()),
            K,
            V,
            tile(cx, (keys, &mut out), ends, bits, &mut ranks, &shared)
        );
    }
}

/// Sorts a tile of keys with the values that the first function of `ends` returns for a position. The second function gets the values, each
/// with its position in the end, from one thread each. Only the first block does anything.
fn tile<K: SortKey, V: Element, const N: usize>(
    cx: Block<'_>,
    (keys, out): (Global<'_, K>, &mut GlobalMut<'_, K>),
    mut ends: Option<(impl Fn(usize) -> V, impl FnMut(usize, V))>,
    (mut begin, end, turned): (u32, u32, u64),
    ranks: &mut Shared<'_, RadixRankStorage<SORT_THREADS>>,
    shared: &Shared<'_, impl SharedStorage>,
) {
    if cx.block_rank() > 0 {
        return;
    }
    cx.require_at_most(keys.len(), SORT_THREADS * N);
    let by_key = shared.array::<K>(OF_ITEMS, SORT_THREADS * N);
    let by_value = shared.array::<V>(OF_ITEMS, SORT_THREADS * N);
    let thread = cx.thread_rank() as usize;
    let warp_striped = thread / 32 * 32 * N + thread % 32;

    let mut key = read_keys::<K, N>(cx, keys, turned);
    let mut value = [V::ZERO; N];
    if let Some((read, _)) = &ends {
        for (i, value) in value.iter_mut().enumerate() {
            let at = warp_striped + i * 32;
            if at < keys.len() {
                *value = read(at);
            }
        }
    }
    loop {
        let digit = Digit::of_bits(begin, end, turned).hidden(cx);
        let places = block_radix_rank(cx, ranks, &key.map(|key| digit.of(key)), |_| ()).places;
        begin += 8;
        // In the end, neighbouring threads have neighbouring items.
        let (first, step) = if begin < end { (warp_striped, 32) } else { (thread, SORT_THREADS) };
        // SAFETY: ranks are a permutation, and the positions that all threads read are one, too. All have read before the barriers of the
        // ranks, and before the one between keys and values.
        unsafe {
            scatter(by_key, &places, &key);
            cx.barrier();
            key = core::array::from_fn(|i| by_key.load(first + i * step));
            if ends.is_some() {
                cx.barrier();
                scatter(by_value, &places, &value);
                cx.barrier();
                value = core::array::from_fn(|i| by_value.load(first + i * step));
            }
        }
        if begin >= end {
            break;
        }
    }
    for (i, (&key, &value)) in key.iter().zip(&value).enumerate() {
        let at = i * SORT_THREADS + thread;
        if at < keys.len() {
            // SAFETY: elements of this thread. Only the first block comes here.
            unsafe { out.write(at, key) };
            if let Some((_, write)) = &mut ends {
                write(at, value);
            }
        }
    }
}
