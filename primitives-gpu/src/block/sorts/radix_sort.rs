//! Radix sorts.

use core::marker::PhantomData;
use core::mem::size_of;
use core::ops::Range;
use core::panic::Location;

use crate::element::{Element, SortKey};
use crate::functor::{Add, Direction};
use crate::simt::{Block, FULL_MASK, FaultKind, WARP};
use crate::view::{Shared, SharedArray, SharedStorage};
use crate::warp::{self, SortBits, of_bits, to_bits, unrolled};

use super::radix_rank::{DIGITS, rank_in_warp};

/// The bits of the key that one pass sorts by.
const DIGIT_BITS: u32 = 8;
/// The words of a warp's counters that a lane has: eight digits.
const WORDS: usize = DIGITS / 2 / WARP as usize;

/// The shared memory of [`block_radix_sort`] and its other forms: a key for each item, for pairs also a value, and 512 bytes for each warp.
/// For an example see [`block_radix_sort`].
pub struct RadixSortStorage<const THREADS: usize, const ITEMS: usize, K, V = [u8; 0]>(PhantomData<(K, V)>);

impl<const THREADS: usize, const ITEMS: usize, K: SortKey, V: Element> RadixSortStorage<THREADS, ITEMS, K, V> {
    const TILE: usize = THREADS * ITEMS;
    /// The beginning of the keys, after the counters.
    const KEYS: usize = THREADS / WARP as usize * DIGITS * size_of::<u16>();
    /// The beginning of the values, which is aligned for vector access.
    const VALUES: usize = Self::KEYS + (Self::TILE * size_of::<K::Bits>()).next_multiple_of(16);
}

// SAFETY: uninitialised elements.
unsafe impl<const THREADS: usize, const ITEMS: usize, K: SortKey, V: Element> SharedStorage
    for RadixSortStorage<THREADS, ITEMS, K, V>
{
    const BYTES: usize = Self::VALUES + Self::TILE * size_of::<V>();
    const ALIGN: usize = {
        assert!(align_of::<V>() <= 16, "shared memory is aligned to 16 bytes at most");
        16
    };
}

/// Sorts the keys of the block by their bits from `bits.start` to `bits.end`, which is not included. The sort is stable.
///
/// The arrangement is blocked before and after: thread `t` holds positions `t * ITEMS` to `t * ITEMS + ITEMS`. `ITEMS` is 1 to 16. The
/// block must have exactly `THREADS` threads, a multiple of 32; otherwise it is a fault. Fill the rest of a partial tile with the [last
/// key](Direction::last) of the order. `bits` counts the bits of [`to_sort_bits`](SortKey::to_sort_bits) from the lowest. `0..K::SORT_BITS`
/// is the whole key, in the total order of [`SortKey`]. Bits beyond these are a fault. An empty range leaves the keys as they are. `order`
/// is [`Less`](crate::functor::Less) or [`Greater`](crate::functor::Greater); both keep the order of equal keys.
///
/// Phases, for each digit of eight bits: each warp ranks its keys, item by item, by eight votes that find the lanes with the same digit,
/// and counts the digits in shared memory; barrier; one warp turns the counts of all warps into places; barrier; the keys go to their
/// places in shared memory; barrier; each thread reads its new keys. Cost: about 45 instructions for each item and pass (on sm_90 and later
/// fewer in a warp whose keys have one digit), and three barriers for each pass. Keys of 4 bytes take 4 passes.
///
/// Shared memory: one key for each item, and 16 bytes for each thread. It may be used again after the next barrier, which a second
/// collective on the same `Shared` makes by itself.
///
/// [`block_sort`](crate::block::block_sort) sorts whole keys in blocks of any shape, and partial tiles.
///
/// CUB: `BlockRadixSort::Sort`, `SortDescending`. Differences: an argument gives the direction; `begin_bit` and `end_bit` are a range.
///
/// All threads of the block call it: see [divergence](crate::block#divergence).
///
/// ```
/// use kernel_primitives::block::{RadixSortStorage, block_radix_sort};
/// use kernel_primitives::functor::Less;
/// use kernel_primitives::prelude::*;
///
/// /// Sorts by all but the lowest hexadecimal digit, in tiles of 256.
/// #[kernel]
/// fn by_sixteens(
///     cx: Block,
///     x: Global<u32>,
///     mut out: GlobalMut<u32, Tiles<4>>,
///     mut shared: Shared<RadixSortStorage<64, 4, u32>>,
/// ) {
///     for tile in cx.tiles::<4>(out.len()) {
///         let mut keys = init::<u32, 4>(u32::MAX);
///         read_data(cx, &mut keys, x.tile(tile));
///         block_radix_sort(cx, &mut shared, &mut keys, 4..32, Less);
///         write_data(cx, out.tile(tile), &keys);
///     }
/// }
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = kernel_primitives::Device::emulator().stream()?;
/// let mut out = stream.buffer_zeroed::<u32>(4)?;
/// by_sixteens::launch(&stream, (1, 64), &stream.buffer_from(&[0x23, 0x11, 0x22, 0x10])?, &mut out)?;
/// assert_eq!(out.to_vec()?, [0x11, 0x10, 0x23, 0x22]);
/// # Ok(())
/// # }
/// ```
#[inline(always)]
#[track_caller]
pub fn block_radix_sort<const THREADS: usize, const ITEMS: usize, K: SortKey, O: Direction>(
    cx: Block<'_>,
    shared: &mut Shared<'_, RadixSortStorage<THREADS, ITEMS, K>>,
    keys: &mut [K; ITEMS],
    bits: Range<u32>,
    order: O,
) {
    let _ = order;
    sort::<THREADS, ITEMS, K, _, O, false>(cx, shared, keys, &mut [[]; ITEMS], bits);
}

/// Works as [`block_radix_sort`], but the result is striped: item `i` of thread `t` is at position `i * THREADS + t`. So neighbouring
/// threads hold neighbouring positions, which suits coalesced writes.
///
/// CUB: `BlockRadixSort::SortBlockedToStriped`, `SortDescendingBlockedToStriped`.
///
/// All threads of the block call it: see [divergence](crate::block#divergence).
///
/// ```
/// use kernel_primitives::functor::Greater;
/// use kernel_primitives::prelude::*;
///
/// #[kernel]
/// fn descending(
///     cx: Block,
///     x: Global<f32>,
///     mut out: GlobalMut<f32, Striped<2>>,
///     mut shared: Shared<RadixSortStorage<32, 2, f32>>,
/// ) {
///     for tile in cx.tiles::<2>(out.len()) {
///         let mut keys = init::<f32, 2>(f32::NEG_INFINITY);
///         read_data(cx, &mut keys, x.tile(tile));
///         block_radix_sort_to_striped(cx, &mut shared, &mut keys, 0..f32::SORT_BITS, Greater);
///         store_striped(cx, out.tile(tile), &keys);
///     }
/// }
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = kernel_primitives::Device::emulator().stream()?;
/// let mut out = stream.buffer_zeroed::<f32>(4)?;
/// descending::launch(&stream, (1, 32), &stream.buffer_from(&[2.0f32, -1.0, 7.0, 2.5])?, &mut out)?;
/// assert_eq!(out.to_vec()?, [7.0, 2.5, 2.0, -1.0]);
/// # Ok(())
/// # }
/// ```
#[inline(always)]
#[track_caller]
pub fn block_radix_sort_to_striped<const THREADS: usize, const ITEMS: usize, K: SortKey, O: Direction>(
    cx: Block<'_>,
    shared: &mut Shared<'_, RadixSortStorage<THREADS, ITEMS, K>>,
    keys: &mut [K; ITEMS],
    bits: Range<u32>,
    order: O,
) {
    let _ = order;
    sort::<THREADS, ITEMS, K, _, O, true>(cx, shared, keys, &mut [[]; ITEMS], bits);
}

/// Sorts pairs of a key and a value by bits of the keys. The sort is stable. Otherwise this works as [`block_radix_sort`]. The values
/// follow the keys in each pass, through shared memory of their own.
///
/// CUB: `BlockRadixSort::Sort`, `SortDescending`.
///
/// All threads of the block call it: see [divergence](crate::block#divergence).
///
/// ```
/// use kernel_primitives::functor::Less;
/// use kernel_primitives::prelude::*;
///
/// /// The places of a tile's elements in ascending order.
/// #[kernel]
/// fn argsort(
///     cx: Block,
///     x: Global<i16>,
///     mut out: GlobalMut<u32, Tiles<2>>,
///     mut shared: Shared<RadixSortStorage<32, 2, i16, u32>>,
/// ) {
///     for tile in cx.tiles::<2>(out.len()) {
///         let mut keys = init::<i16, 2>(i16::MAX);
///         read_data(cx, &mut keys, x.tile(tile));
///         let mut places = core::array::from_fn(|i| cx.thread_rank() * 2 + i as u32);
///         block_radix_sort_pairs(cx, &mut shared, &mut keys, &mut places, 0..i16::SORT_BITS, Less);
///         write_data(cx, out.tile(tile), &places);
///     }
/// }
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = kernel_primitives::Device::emulator().stream()?;
/// let mut out = stream.buffer_zeroed::<u32>(5)?;
/// argsort::launch(&stream, (1, 32), &stream.buffer_from(&[30i16, -10, 20, -10, 0])?, &mut out)?;
/// assert_eq!(out.to_vec()?, [1, 3, 4, 2, 0]);
/// # Ok(())
/// # }
/// ```
#[inline(always)]
#[track_caller]
pub fn block_radix_sort_pairs<const THREADS: usize, const ITEMS: usize, K: SortKey, V: Element, O: Direction>(
    cx: Block<'_>,
    shared: &mut Shared<'_, RadixSortStorage<THREADS, ITEMS, K, V>>,
    keys: &mut [K; ITEMS],
    values: &mut [V; ITEMS],
    bits: Range<u32>,
    order: O,
) {
    let _ = order;
    sort::<THREADS, ITEMS, K, V, O, false>(cx, shared, keys, values, bits);
}

/// Works as [`block_radix_sort_pairs`], but the result is striped: item `i` of thread `t` is at position `i * THREADS + t`. Write keys and
/// values to global memory as in the example of [`block_radix_sort_to_striped`].
///
/// CUB: `BlockRadixSort::SortBlockedToStriped`, `SortDescendingBlockedToStriped`.
///
/// All threads of the block call it: see [divergence](crate::block#divergence).
#[inline(always)]
#[track_caller]
pub fn block_radix_sort_pairs_to_striped<
    const THREADS: usize,
    const ITEMS: usize,
    K: SortKey,
    V: Element,
    O: Direction,
>(
    cx: Block<'_>,
    shared: &mut Shared<'_, RadixSortStorage<THREADS, ITEMS, K, V>>,
    keys: &mut [K; ITEMS],
    values: &mut [V; ITEMS],
    bits: Range<u32>,
    order: O,
) {
    let _ = order;
    sort::<THREADS, ITEMS, K, V, O, true>(cx, shared, keys, values, bits);
}

/// Runs the passes. Between them, the items are in shared memory by position. A warp takes its positions item by item across its lanes
/// (warp-striped), so the lanes of one vote have neighbouring positions.
#[track_caller]
fn sort<const THREADS: usize, const ITEMS: usize, K: SortKey, V: Element, O: Direction, const STRIPED: bool>(
    cx: Block<'_>,
    shared: &mut Shared<'_, RadixSortStorage<THREADS, ITEMS, K, V>>,
    keys: &mut [K; ITEMS],
    values: &mut [V; ITEMS],
    bits: Range<u32>,
) {
    const { assert!(THREADS.is_multiple_of(32) && THREADS <= 1024, "a radix sort takes whole warps, at most 32") };
    const { assert!(ITEMS >= 1 && ITEMS <= 16, "a radix sort takes 1 to 16 items a thread") };
    let threads = cx.block_threads() as usize;
    if threads != THREADS {
        cx.raise(FaultKind::BadShape, [threads as u64, THREADS as u64], Location::caller());
    }
    cx.require_at_most(bits.end as usize, K::SORT_BITS as usize);
    shared.enter();
    let tile = RadixSortStorage::<THREADS, ITEMS, K, V>::TILE;
    let counters = Counters::<THREADS>::of(cx, shared);
    let by_key: SharedArray<K::Bits> = shared.array(RadixSortStorage::<THREADS, ITEMS, K, V>::KEYS, tile);
    let by_value: SharedArray<V> = shared.array(RadixSortStorage::<THREADS, ITEMS, K, V>::VALUES, tile);

    let rank = cx.thread_rank() as usize;
    let mut items = [to_bits::<K, O>(keys[0]); ITEMS];
    unrolled!(i < ITEMS, items[i] = to_bits::<K, O>(keys[i]));
    // SAFETY: this thread's places.
    unsafe {
        by_key.store_items(rank * ITEMS, &items);
        by_value.store_items(rank * ITEMS, values);
    }
    // The first pass reads what the warp itself has written.
    cx.sync_warp(FULL_MASK);

    let lane = cx.lane() as usize;
    let first = (rank - lane) * ITEMS + lane;
    let mut left = bits.len() as u32;
    // There is one copy of the code of the passes, to save instruction cache.
    #[cfg(target_arch = "nvptx64")]
    {
        left = crate::simt::nvptx::opaque(left);
    }
    while left > 0 {
        unrolled!(i < ITEMS, {
            // SAFETY: written before the barrier (`sync_warp` in the first pass), and next written after those of `counters`.
            unsafe {
                items[i] = by_key.load(first + i * WARP as usize);
                values[i] = by_value.load(first + i * WARP as usize);
            }
        });
        let digit_bits = left.min(DIGIT_BITS);
        let mut digits = [0u32; ITEMS];
        unrolled!(i < ITEMS, digits[i] = items[i].bits_from(bits.end - left) & ((1 << digit_bits) - 1));
        let places = counters.places(&digits);
        unrolled!(i < ITEMS, {
            // SAFETY: the places are a permutation of the tile's; all threads have read before the barriers of `counters`.
            unsafe {
                by_key.store(places[i] as usize, items[i]);
                by_value.store(places[i] as usize, values[i]);
            }
        });
        cx.barrier();
        left -= digit_bits;
    }
    if STRIPED && bits.is_empty() {
        // There was no pass, and so no barrier.
        cx.barrier();
    }
    // SAFETY: written before the last barrier.
    unsafe {
        if STRIPED {
            unrolled!(i < ITEMS, {
                items[i] = by_key.load(i * THREADS + rank);
                values[i] = by_value.load(i * THREADS + rank);
            });
        } else {
            items = by_key.load_items(rank * ITEMS);
            *values = by_value.load_items(rank * ITEMS);
        }
    }
    unrolled!(i < ITEMS, keys[i] = of_bits::<K, O>(items[i]));
}

/// How often each digit occurs in each warp, by warps.
struct Counters<'k, const THREADS: usize> {
    cx: Block<'k>,
    /// The counters of this thread's warp.
    own: SharedArray<'k, u16>,
    /// All counters, two in each word.
    words: SharedArray<'k, u32>,
}

impl<'k, const THREADS: usize> Counters<'k, THREADS> {
    const WARPS: usize = THREADS / WARP as usize;

    #[inline(always)]
    #[track_caller]
    fn of<const ITEMS: usize, K: SortKey, V: Element>(
        cx: Block<'k>,
        shared: &Shared<'k, RadixSortStorage<THREADS, ITEMS, K, V>>,
    ) -> Self {
        let warp = (cx.thread_rank() / WARP) as usize;
        let own = shared.array(warp * DIGITS * size_of::<u16>(), DIGITS);
        Self { cx, own, words: shared.array(0, Self::WARPS * DIGITS / 2) }
    }

    /// The place of the words of this lane's digits in the first warp.
    fn at(&self) -> usize {
        let lane = self.cx.lane();
        // Values that were read are read again instead of being kept in registers.
        #[cfg(target_arch = "nvptx64")]
        let lane = crate::simt::nvptx::opaque(lane);
        lane as usize * WORDS
    }

    /// Returns the places of a block's items, warp-striped, when they are ordered by their digits. It has two barriers. The next use needs
    /// one before it.
    #[track_caller]
    fn places<const ITEMS: usize>(&self, digits: &[u32; ITEMS]) -> [u32; ITEMS] {
        let cx = self.cx;
        // SAFETY: between the barriers a warp's counters are its own, and `rank_in_warp` begins with what separates its lanes.
        unsafe { self.words.store_items(self.at() + (cx.thread_rank() / WARP) as usize * DIGITS / 2, &[0; WORDS]) };
        let mut places = rank_in_warp(cx, self.own, digits, |_, place| place);
        cx.barrier();
        if cx.thread_rank() < WARP {
            self.scan();
        }
        cx.barrier();
        // SAFETY: written before the barrier, and next written by this warp.
        unrolled!(i < ITEMS, places[i] += unsafe { self.own.load(digits[i] as usize) } as u32);
        places
    }

    /// Turns the counts into the places where each warp's items of each digit begin: after those of lower digits, and after those of
    /// earlier warps.
    #[track_caller]
    fn scan(&self) {
        let mut totals = [0u32; WORDS];
        let (mut warp, at) = (0, self.at());
        while warp < Self::WARPS {
            // SAFETY: one warp has the counters between two barriers, and each of its lanes other words.
            let counts = unsafe { self.words.load_items::<WORDS>(at + warp * DIGITS / 2) };
            unrolled!(w < WORDS, totals[w] += counts[w]);
            warp += 1;
        }
        // Each half of a word is a sum of at most the tile's 16384 items.
        let mut begins = [0u32; WORDS];
        let mut sum = 0;
        unrolled!(w < WORDS, {
            begins[w] = both(sum) + (totals[w] << 16);
            sum += (totals[w] & 0xffff) + (totals[w] >> 16);
        });
        let below = warp::inclusive(self.cx, FULL_MASK, sum, &Add) - sum;
        unrolled!(w < WORDS, begins[w] += both(below));
        let (mut warp, at) = (0, self.at());
        while warp < Self::WARPS {
            // SAFETY: as above.
            unsafe {
                let counts = self.words.load_items::<WORDS>(at + warp * DIGITS / 2);
                self.words.store_items(at + warp * DIGITS / 2, &begins);
                unrolled!(w < WORDS, begins[w] += counts[w]);
            }
            warp += 1;
        }
    }
}

/// Puts a number in both halves of a word.
#[inline(always)]
fn both(half: u32) -> u32 {
    half << 16 | half
}
