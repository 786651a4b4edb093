//! A sort by digits.

use core::marker::PhantomData;
use core::mem::size_of;
use core::ops::Range;
use core::panic::Location;

use crate::element::{Element, SortKey};
use crate::functor::Direction;
use crate::simt::{Block, FULL_MASK, FaultKind, WARP};
use crate::view::{Shared, SharedArray, SharedStorage};
use crate::warp::{SortBits, of_bits, to_bits, unrolled};

/// Bits of the key that one pass sorts by: two counters a lane.
const DIGIT_BITS: u32 = 6;

/// The shared memory of [`block_radix_sort`] and the functions beside it: a key an item, for pairs a value, and 128 bytes a
/// warp.
pub struct RadixSortStorage<const THREADS: usize, const ITEMS: usize, K, V = [u8; 0]>(PhantomData<(K, V)>);

impl<const THREADS: usize, const ITEMS: usize, K: SortKey, V: Element> RadixSortStorage<THREADS, ITEMS, K, V> {
    const TILE: usize = THREADS * ITEMS;
    /// Where the keys start, behind the counters.
    const KEYS: usize = THREADS * size_of::<u32>();
    /// Where the values start: on a boundary for vector access.
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

/// Sorts the block's keys by their bits from `bits.start` to `bits.end`; stable.
///
/// The arrangement is blocked, before and after: thread `t` holds positions `t * ITEMS` to `t * ITEMS + ITEMS`, and `ITEMS` is 1
/// to 16. The block has exactly `THREADS` threads, a multiple of 32; otherwise it is a fault. The rest of a partial tile is
/// filled with the order's [last key](Direction::last). `bits` counts in [`to_sort_bits`](SortKey::to_sort_bits), from the lowest; `0..K::SORT_BITS` is the whole
/// key, in the total order of [`SortKey`]. `order` is [`Less`](crate::functor::Less) or [`Greater`](crate::functor::Greater), which
/// leaves equal keys in their order too.
///
/// Phases, for each digit of six bits: each warp ranks its keys, item by item, by six votes that find the lanes with the same
/// digit; the lanes hold the counts of the digits, two each; one word a lane goes to shared memory; barrier; every
/// warp adds up the counts of the digits before and of the warps before; the keys go to their places in shared memory;
/// barrier; each thread reads its new ones. Cost: about 40 instructions an item and pass, two barriers a pass, 6 passes for
/// 4 bytes.
///
/// Shared memory: one key an item, and a word a thread. It may be reused after the next barrier, which a second collective
/// on the same `Shared` makes by itself.
///
/// CUB: `BlockRadixSort`. [`block_sort`](super::block_sort) sorts whole keys, of any block shape, and partial tiles.
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

/// As [`block_radix_sort`], but the result is striped: item `i` of thread `t` is at position `i * THREADS + t`. Neighbouring
/// threads then hold neighbouring positions, as coalesced writes want it. CUB: `SortBlockedToStriped`.
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

/// Sorts pairs of a key and a value by the keys' bits; stable. As [`block_radix_sort`]; the values follow the keys in each
/// pass, through shared memory of their own.
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

/// As [`block_radix_sort_pairs`], but the result is striped: item `i` of thread `t` is at position `i * THREADS + t`.
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

/// The passes. Between them the items lie in shared memory by position; a warp takes its positions item by item across its
/// lanes (warp-striped), so that the lanes of one vote are neighbours in position.
#[inline(always)]
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
    shared.enter();
    let tile = RadixSortStorage::<THREADS, ITEMS, K, V>::TILE;
    let counters: SharedArray<u32> = shared.array(0, THREADS);
    let by_key: SharedArray<K::Bits> = shared.array(RadixSortStorage::<THREADS, ITEMS, K, V>::KEYS, tile);
    let by_value: SharedArray<V> = shared.array(RadixSortStorage::<THREADS, ITEMS, K, V>::VALUES, tile);

    let rank = cx.thread_rank() as usize;
    let (lane, warp) = (cx.lane() as usize, rank / WARP as usize);
    let mut items = [to_bits::<K, O>(keys[0]); ITEMS];
    unrolled!(i < ITEMS, items[i] = to_bits::<K, O>(keys[i]));
    // SAFETY: this thread's places.
    unsafe {
        by_key.store_items(rank * ITEMS, &items);
        by_value.store_items(rank * ITEMS, values);
    }
    // The first pass reads what the warp itself has written.
    cx.sync_warp(FULL_MASK);

    let first = warp * WARP as usize * ITEMS + lane;
    let mut begin = bits.start;
    while begin < bits.end {
        unrolled!(i < ITEMS, {
            // SAFETY: written before the barrier (`sync_warp` in the first pass), and next written after the one in `rank`.
            unsafe {
                items[i] = by_key.load(first + i * WARP as usize);
                values[i] = by_value.load(first + i * WARP as usize);
            }
        });
        let digit_bits = (bits.end - begin).min(DIGIT_BITS);
        let places = rank_digits::<THREADS, ITEMS, _>(cx, counters, &items, begin, (1 << digit_bits) - 1);
        unrolled!(i < ITEMS, {
            // SAFETY: the places are a permutation of the tile's; all threads have read before the barrier in `rank`.
            unsafe {
                by_key.store(places[i] as usize, items[i]);
                by_value.store(places[i] as usize, values[i]);
            }
        });
        cx.barrier();
        begin += DIGIT_BITS;
    }
    if STRIPED && bits.start >= bits.end {
        // No pass has been, so no barrier either.
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

/// The places of a block's items, warp-striped, when they are ordered by one digit. Has one barrier.
#[inline(always)]
#[track_caller]
fn rank_digits<const THREADS: usize, const ITEMS: usize, B: SortBits>(
    cx: Block<'_>,
    counters: SharedArray<'_, u32>,
    items: &[B; ITEMS],
    begin: u32,
    digit_mask: u32,
) -> [u32; ITEMS] {
    let lane = cx.lane();
    let warp = cx.thread_rank() / WARP;
    // All bits set where the lane's number has the bit: turns a vote round for lanes whose digits have a 0 there.
    let mut flip = [0u32; 5];
    unrolled!(b < 5, flip[b] = ((lane >> b) & 1).wrapping_sub(1));

    // Lane `l` counts digits `l` and `l + 32` of its warp, in two halves of a word.
    let mut counts = 0u32;
    // The counts before an item's row; and its digit, above the number of items that are known to come before it.
    let mut before = [0u32; ITEMS];
    let mut below = [0u32; ITEMS];
    unrolled!(i < ITEMS, {
        let digit = items[i].bits_from(begin) & digit_mask;
        // The lanes with this item's digit, and those with this lane's.
        let (mut same, mut own) = (FULL_MASK, FULL_MASK);
        let mut votes = 0;
        unrolled!(b < 6, {
            let set = digit & (1 << b) != 0;
            votes = cx.ballot(FULL_MASK, set);
            same &= votes ^ if set { 0 } else { FULL_MASK };
            if b < 5 {
                own &= votes ^ flip[b];
            }
        });
        below[i] = digit << 16 | (same & ((1 << lane) - 1)).count_ones();
        if const { early(ITEMS) } {
            below[i] += half(cx.shuffle(FULL_MASK, counts, digit & 31, WARP), digit);
        } else {
            before[i] = counts;
        }
        counts += (own & !votes).count_ones() | (own & votes).count_ones() << 16;
    });

    // SAFETY: this thread's place, which others have read before the last barrier.
    unsafe { counters.store((warp * WARP + lane) as usize, counts) };
    cx.barrier();
    // The digit's counts in all warps, and in those before this one.
    let (mut total, mut earlier) = (0u32, 0u32);
    let mut other = 0;
    while other < THREADS as u32 / WARP {
        // SAFETY: written before the barrier, and next written after another.
        let counts = unsafe { counters.load((other * WARP + lane) as usize) };
        total += counts;
        earlier += if other < warp { counts } else { 0 };
        other += 1;
    }
    // Those of all digits below; then the lower 32 digits come before the upper ones.
    let mut sum = total;
    let mut delta = 1;
    while delta < WARP {
        let lower = cx.shuffle_up(FULL_MASK, sum, delta, WARP);
        sum += if lane >= delta { lower } else { 0 };
        delta *= 2;
    }
    let lower_half = cx.shuffle(FULL_MASK, sum, WARP - 1, WARP) & 0xffff;
    let start = sum - total + earlier + (lower_half << 16);

    let mut places = [0u32; ITEMS];
    unrolled!(i < ITEMS, {
        let digit = below[i] >> 16;
        places[i] = half(cx.shuffle(FULL_MASK, start + before[i], digit & 31, WARP), digit) + (below[i] & 0xffff);
    });
    places
}

/// Whether a lane fetches the counts before an item's row at once: one shuffle an item more, and one register less, which
/// many items need.
const fn early(items: usize) -> bool {
    items > 8
}

/// The half of a lane's counts that belongs to a digit.
#[inline(always)]
fn half(counts: u32, digit: u32) -> u32 {
    counts >> (digit >> 5 << 4) & 0xffff
}
