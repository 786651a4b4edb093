//! Ranks by a digit, which a pass of a radix sort gives its keys.

use core::marker::PhantomData;
use core::panic::Location;

use crate::functor::Add;
use crate::simt::{Block, FULL_MASK, FaultKind, WARP};
use crate::view::{Shared, SharedArray, SharedStorage, opaque};
use crate::warp::{self, unrolled};

/// The number of values of a digit of eight bits.
pub(super) const DIGITS: usize = 256;
/// The number of warps whose threads have one digit each.
const DIGIT_WARPS: usize = DIGITS / WARP as usize;

/// The shared memory of [`block_radix_rank`]: 512 bytes for each warp, and 32 more.
pub struct RadixRankStorage<const THREADS: usize>(PhantomData<()>);

impl<const THREADS: usize> RadixRankStorage<THREADS> {
    const WARPS: usize = THREADS / WARP as usize;
    /// The beginning of the totals of warps of digits, after the counters.
    const TOTALS: usize = Self::WARPS * DIGITS * size_of::<u16>();
}

// SAFETY: uninitialised elements.
unsafe impl<const THREADS: usize> SharedStorage for RadixRankStorage<THREADS> {
    const BYTES: usize = Self::TOTALS + DIGIT_WARPS * size_of::<u32>();
    const ALIGN: usize = 16;
}

/// The result of [`block_radix_rank`].
#[derive(Clone, Copy, Debug)]
pub struct RadixRanks<const ITEMS: usize> {
    /// The place of each item of the thread when the items of the block are ordered by digit.
    pub places: [u32; ITEMS],
    /// The number of items whose digit is the rank of the thread; 0 in threads after the 256th.
    pub count: u32,
    /// The place of the first of these items, or the place where it would be; 0 in threads after the 256th.
    pub start: u32,
}

/// Ranks the items of the block by a digit of eight bits: returns the place of each item when they are ordered by the digit. The order is
/// stable.
///
/// - `digits`: the digits of the thread's 1 to 16 items. Each must be below 256; otherwise it is a fault. The arrangement is warp-striped,
///   as [`load_warp_striped`](crate::block::load_warp_striped) reads: warp `w` has positions from `w * 32 * ITEMS`, and item `i` of lane
///   `l` is at position `i * 32 + l` of these. Equal digits keep the order of their positions.
/// - `counted`: a function that is called in the first 256 threads as soon as the counts are known, each with the count of the digit of its
///   rank. It can publish the counts for which other blocks wait.
///
/// The block must have exactly `THREADS` threads, a multiple of 32 from 256 to 1024; otherwise it is a fault.
///
/// Phases: each warp counts its items by digit; eight votes for each item find the lanes with the same digit; barrier; 256 threads add the
/// counts of the warps; barrier; they write where the items of each digit begin for each warp; barrier; the place of an item is that
/// beginning plus its rank in the warp. Cost: about 45 instructions for each item. On sm_90 and later, it is less in a warp whose items all
/// have one digit.
///
/// Shared memory: it may be used again after the next barrier, which the next collective on it makes by itself.
///
/// [`block_radix_sort`](crate::block::block_radix_sort) also moves the items.
///
/// CUB: `BlockRadixRankMatchEarlyCounts`. Differences: digits of eight bits.
///
/// All threads of the block call it: see [divergence](crate::block#divergence).
///
/// ```
/// use kernel_primitives::prelude::*;
///
/// /// Orders a tile by the lowest byte of its items.
/// #[kernel(threads(256))]
/// fn by_low_byte(
///     cx: Block,
///     x: Global<u32>,
///     mut out: GlobalMut<u32>,
///     mut ranks: Shared<RadixRankStorage<256>>,
/// ) {
///     let mut items = [0u32; 4];
///     load_warp_striped(cx, &mut items, x);
///     let digits = items.map(|item| item & 0xff);
///     let ranked = block_radix_rank(cx, &mut ranks, &digits, |_| ());
///     for (item, place) in items.into_iter().zip(ranked.places) {
///         // SAFETY: the places are a permutation.
///         unsafe { out.write(place as usize, item) };
///     }
/// }
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = kernel_primitives::Device::emulator().stream()?;
/// let x: Vec<u32> = (0..1024).map(|i| i * 77).collect();
/// let mut out = stream.buffer_zeroed::<u32>(1024)?;
/// by_low_byte::launch(&stream, (1, 256), &stream.buffer_from(&x)?, &mut out)?;
/// let mut expected = x;
/// expected.sort_by_key(|item| item & 0xff);
/// assert_eq!(out.to_vec()?, expected);
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn block_radix_rank<const THREADS: usize, const ITEMS: usize>(
    cx: Block<'_>,
    shared: &mut Shared<'_, RadixRankStorage<THREADS>>,
    digits: &[u32; ITEMS],
    counted: impl FnOnce(u32),
) -> RadixRanks<ITEMS> {
    const { assert!(THREADS.is_multiple_of(32), "a radix rank takes whole warps") };
    const { assert!(THREADS >= DIGITS && THREADS <= 1024, "a radix rank takes a thread a digit, and at most 1024") };
    const { assert!(ITEMS >= 1 && ITEMS <= 16, "a radix rank takes 1 to 16 items a thread") };
    let threads = cx.block_threads() as usize;
    if threads != THREADS {
        cx.raise(FaultKind::BadShape, [threads as u64, THREADS as u64], Location::caller());
    }
    let mut largest = 0;
    unrolled!(i < ITEMS, largest = digits[i].max(largest));
    cx.require_at_most(largest as usize, DIGITS - 1);
    shared.enter();
    let (rank, warp) = (cx.thread_rank() as usize, cx.warp() as usize);
    let own: SharedArray<u16> = shared.array(warp * DIGITS * size_of::<u16>(), DIGITS);
    let all: SharedArray<u16> = shared.array(0, RadixRankStorage::<THREADS>::WARPS * DIGITS);
    let totals: SharedArray<u32> = shared.array(RadixRankStorage::<THREADS>::TOTALS, DIGIT_WARPS);

    const WORDS: usize = DIGITS / WARP as usize;
    // SAFETY: between the barriers a warp's counters are its own, and `rank_in_warp` begins with what separates its lanes.
    unsafe { own.store_items(cx.lane() as usize * WORDS, &[0; WORDS]) };
    // The place is stored with the digit, which so needs no register of its own until the second access of the counters.
    let mut places = rank_in_warp(cx, own, digits, with_digit);
    cx.barrier();

    let (mut count, mut before) = (0, 0);
    if rank < DIGITS {
        let mut of_warp = 0;
        while of_warp < RadixRankStorage::<THREADS>::WARPS {
            // SAFETY: written before the barrier.
            count += unsafe { all.load(of_warp * DIGITS + rank) } as u32;
            of_warp += 1;
        }
        counted(count);
        let upto = warp::inclusive(cx, FULL_MASK, count, &Add);
        before = upto - count;
        if cx.lane() == WARP - 1 {
            // SAFETY: the element of this warp.
            unsafe { totals.store(warp, upto) };
        }
    }
    cx.barrier();
    let mut start = 0;
    if rank < DIGITS {
        // SAFETY: written before the barrier.
        let totals = unsafe { totals.load_items::<DIGIT_WARPS>(0) };
        start = before;
        unrolled!(
            w < DIGIT_WARPS,
            if w < warp {
                start += totals[w]
            }
        );
        let (mut of_warp, mut begin) = (0, start);
        while of_warp < RadixRankStorage::<THREADS>::WARPS {
            // SAFETY: between two barriers, each of these threads has other counters.
            unsafe {
                let counted = all.load(of_warp * DIGITS + rank) as u32;
                all.store(of_warp * DIGITS + rank, begin as u16);
                begin += counted;
            }
            of_warp += 1;
        }
    }
    cx.barrier();
    unrolled!(i < ITEMS, {
        // SAFETY: written before the barrier.
        let begin = unsafe { own.load((places[i] >> 16) as usize) };
        places[i] = (places[i] & 0xffff) + begin as u32;
    });
    RadixRanks { places, count, start }
}

/// A function with a name, so that [`rank_in_warp`] is compiled once for all kernels that rank as many items.
#[inline(always)]
fn with_digit(digit: u32, place: u32) -> u32 {
    opaque(digit << 16 | place)
}

/// Ranks the items of a warp, item by item across its lanes, among those with the same digit, and adds them to the counters `own` of the
/// warp. These must be set before, and may be the last values that the lanes have written. Returns what `keep` makes of the digit and the
/// rank of each item.
///
/// No one else may use the counters until the next barrier.
#[track_caller]
pub(super) fn rank_in_warp<const ITEMS: usize>(
    cx: Block<'_>,
    own: SharedArray<'_, u16>,
    digits: &[u32; ITEMS],
    keep: impl Fn(u32, u32) -> u32,
) -> [u32; ITEMS] {
    let lane = cx.lane();
    cx.sync_warp(FULL_MASK);
    let mut kept = [0u32; ITEMS];
    let first = cx.match_byte(digits[0]);
    // Handles items of one digit at once. Before sm_90, ptxas keeps all digits for this, and runs out of registers.
    if cx.arch() >= 900 && first == FULL_MASK {
        let mut differs = 0;
        unrolled!(i < ITEMS, differs |= digits[i] ^ digits[0]);
        if cx.all(FULL_MASK, differs == 0) {
            // Items of one digit are in order already.
            // SAFETY: the counters are this warp's, and its lanes meet before and after.
            let before = unsafe { own.load(digits[0] as usize) } as u32;
            unrolled!(i < ITEMS, kept[i] = keep(digits[i], before + i as u32 * WARP + lane));
            cx.sync_warp(FULL_MASK);
            if lane == WARP - 1 {
                // SAFETY: as above; one lane writes what all have read.
                unsafe { own.store(digits[0] as usize, (before + ITEMS as u32 * WARP) as u16) };
            }
            cx.sync_warp(FULL_MASK);
            return kept;
        }
    }
    unrolled!(i < ITEMS, {
        let same = if i == 0 { first } else { cx.match_byte(digits[i]) };
        // SAFETY: the counters are this warp's, and `sync_warp` stands between accesses of its lanes.
        let before = unsafe { own.load(digits[i] as usize) } as u32;
        let place = before + (same & ((1 << lane) - 1)).count_ones();
        cx.sync_warp(FULL_MASK);
        if same >> lane == 1 {
            // SAFETY: as above; the last lane with the digit is the one that writes.
            unsafe { own.store(digits[i] as usize, place as u16 + 1) };
        }
        cx.sync_warp(FULL_MASK);
        kept[i] = keep(digits[i], place);
    });
    kept
}
