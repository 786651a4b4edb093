//! The kernel of histograms.

use core::mem::transmute_copy;

use kernel_primitives::input::Source;
use kernel_primitives::prelude::*;
use kernel_primitives::simt::{AtomicElement, WARP};

use crate::algorithms::tile::{CONTROL, by_vector};

/// The number of threads of a block of [`histogram_tiles`](struct@histogram_tiles).
pub const HISTOGRAM_THREADS: usize = 512;

/// The number of vectors that a thread of [`histogram_tiles`](struct@histogram_tiles) has in flight.
pub const HISTOGRAM_VECTORS: usize = 4;

/// Finds the bin of an item.
pub trait Binning<T: Element>: KernelParam {
    /// Returns the bin of an item, or `None` if it is in no bin.
    fn bin(&self, levels: Global<'_, T>, item: T) -> Option<usize>;
}

/// A number whose range is divided into bins of equal width: the integers and floats.
pub trait Binnable: Ordered {
    /// The type of the ends of the range. For integers, it is a larger type, so that the end after the largest value is also a value of it.
    type Bound: Copy + core::fmt::Display;

    /// The values that say which bin a number is in.
    type Scale: KernelParam;

    /// Returns the scale for `bins` bins, at least one, from `low` to `high`. Returns `None` if there is no such range, if the range is not
    /// one of this type, or if there are more than 2^31 bins of floats.
    fn scale(low: Self::Bound, high: Self::Bound, bins: usize) -> Option<Self::Scale>;

    /// Returns the bin of a number, or `None` if it is outside.
    fn bin(self, scale: &Self::Scale) -> Option<usize>;
}

/// The scale of an integer of up to 32 bits: `bins / range` in binary, rounded up. It has the whole part and the first 64 digits. The
/// rounding adds less than `1 / range` to the product with a distance. The next whole number is at least `1 / range` away.
#[derive(Clone, Copy, Debug, KernelParam)]
#[repr(C)]
pub struct Ratio {
    digits: u64,
    whole: u64,
    low: u32,
    /// The distance from the lowest number to the highest.
    extent: u32,
}

/// The scale of an integer of 64 bits. It is like [`Ratio`], with 128 digits.
#[derive(Clone, Copy, Debug, KernelParam)]
#[repr(C)]
pub struct LongRatio {
    high_digits: u64,
    low_digits: u64,
    whole: u64,
    low: u64,
    extent: u64,
}

/// Returns the length of the range between the ends, if it is a range that has only values between `least` and `greatest`.
fn range(low: i128, high: i128, least: i128, greatest: i128) -> Option<u128> {
    (least <= low && low < high && high <= greatest + 1).then(|| (high - low) as u128)
}

macro_rules! integers {
    ($($t:ty),*) => {$(
        impl Binnable for $t {
            type Bound = i64;
            type Scale = Ratio;

            fn scale(low: i64, high: i64, bins: usize) -> Option<Ratio> {
                let range = range(low.into(), high.into(), <$t>::MIN.into(), <$t>::MAX.into())?;
                let bins = bins as u128;
                let digits = ((bins % range) << 64).div_ceil(range) as u64;
                Some(Ratio { digits, whole: (bins / range) as u64, low: low as u32, extent: (range - 1) as u32 })
            }

            fn bin(self, scale: &Ratio) -> Option<usize> {
                let distance = (self as u32).wrapping_sub(scale.low);
                if distance > scale.extent {
                    return None;
                }
                let part = |digits: u32| distance as u64 * digits as u64;
                let fraction = (part((scale.digits >> 32) as u32) + (part(scale.digits as u32) >> 32)) >> 32;
                Some((distance as u64).wrapping_mul(scale.whole).wrapping_add(fraction) as usize)
            }
        }
    )*};
}
integers!(u8, i8, u16, i16, u32, i32);

macro_rules! long_integers {
    ($($t:ty),*) => {$(
        impl Binnable for $t {
            type Bound = i128;
            type Scale = LongRatio;

            fn scale(low: i128, high: i128, bins: usize) -> Option<LongRatio> {
                let range = range(low, high, <$t>::MIN as i128, <$t>::MAX as i128)?;
                let bins = bins as u128;
                // The digits are computed in halves, because a remainder has up to 64 bits.
                let rest = (bins % range) << 64;
                let digits = ((rest / range) << 64) + ((rest % range) << 64).div_ceil(range);
                Some(LongRatio {
                    high_digits: (digits >> 64) as u64,
                    low_digits: digits as u64,
                    whole: (bins / range) as u64,
                    low: low as u64,
                    extent: (range - 1) as u64,
                })
            }

            fn bin(self, scale: &LongRatio) -> Option<usize> {
                let distance = (self as u64).wrapping_sub(scale.low);
                if distance > scale.extent {
                    return None;
                }
                let high = |digits: u64| ((distance as u128 * digits as u128) >> 64) as u64;
                let (_, carry) = distance.wrapping_mul(scale.high_digits).overflowing_add(high(scale.low_digits));
                let fraction = high(scale.high_digits) + carry as u64;
                Some(distance.wrapping_mul(scale.whole).wrapping_add(fraction) as usize)
            }
        }
    )*};
}
long_integers!(u64, i64, usize, isize);

/// The scale of a float.
#[derive(Clone, Copy, Debug, KernelParam)]
#[repr(C)]
pub struct FloatScale<T> {
    last: u32,
    low: T,
    high: T,
    factor: T,
}

macro_rules! floats {
    ($($t:ty => $wide:ty),*) => {$(
        impl Binnable for $t {
            type Bound = $t;
            type Scale = FloatScale<$wide>;

            fn scale(low: $t, high: $t, bins: usize) -> Option<FloatScale<$wide>> {
                let [low, high]: [$wide; 2] = [low.convert(), high.convert()];
                let factor = bins as $wide / (high - low);
                let last = i32::try_from(bins.checked_sub(1)?).ok()? as u32;
                (low < high && (high - low).is_finite() && factor.is_finite())
                    .then_some(FloatScale { last, low, high, factor })
            }

            fn bin(self, scale: &FloatScale<$wide>) -> Option<usize> {
                let x: $wide = self.convert();
                if !(scale.low <= x && x < scale.high) {
                    return None;
                }
                // SAFETY: not below zero, and at most the number of bins, 2^31, but for its rounding.
                let bin: u32 = unsafe { ((x - scale.low) * scale.factor).to_int_unchecked() };
                // After the rounding, it may be equal to the number of bins.
                Some(bin.min(scale.last) as usize)
            }
        }
    )*};
}
floats!(f16 => f32, bf16 => f32, f32 => f32, f64 => f64);

/// Bins of equal width.
#[derive(Clone, Copy, Debug, KernelParam)]
#[repr(transparent)]
pub struct EvenBins<T: Binnable>(T::Scale);

impl<T: Binnable> EvenBins<T> {
    /// Returns `bins` bins, at least one, from `low` to `high`. Returns `None` if there is no such range, or not for this type.
    pub fn new(low: T::Bound, high: T::Bound, bins: usize) -> Option<Self> {
        T::scale(low, high, bins).map(Self)
    }
}

impl<T: Binnable> Binning<T> for EvenBins<T> {
    #[inline(always)]
    fn bin(&self, _: Global<'_, T>, item: T) -> Option<usize> {
        item.bin(&self.0)
    }
}

/// Bins between ascending levels. Each bin goes from its level to the next level.
#[derive(Clone, Copy, Debug, KernelParam)]
pub struct LevelBins;

impl<T: Ordered> Binning<T> for LevelBins {
    fn bin(&self, levels: Global<'_, T>, item: T) -> Option<usize> {
        let inside = |at: usize| levels.get(at).is_some_and(|level| level.less_or_equal(item));
        if !inside(0) {
            return None;
        }
        // This finds the last level that is not above the item. An item that is not below the last of all levels is in no bin.
        let (mut at, mut count) = (0, levels.len());
        while count > 1 {
            let half = count >> 1;
            at += if inside(at + half) { half } else { 0 };
            count -= half;
        }
        Some(at)
    }
}

/// Returns whether items of this type are counted by value, and these counts are added by bin at the end. This is so for items of one byte.
const fn by_value<T: Element>() -> bool {
    size_of::<T>() == 1 && T::ANY_BITS
}

/// The number of values of a byte.
const VALUES: usize = 256;

/// Returns the number of counters in the shared memory of a block of [`histogram_tiles`](struct@histogram_tiles), on a device whose blocks
/// have `shared_bytes` bytes.
pub const fn histogram_counters<T: Element>(shared_bytes: usize) -> usize {
    let most = shared_bytes.saturating_sub(CONTROL) / size_of::<u32>();
    if by_value::<T>() {
        VALUES * WARP as usize
    } else if most < 1 << 14 {
        most
    } else {
        1 << 14
    }
}

// PTX: histogram_tiles__Span_u8_EvenBins_u8_u32 has 4 loads and 0 stores of 16 bytes.
// PTX: histogram_tiles__Span_f32_EvenBins_f32_u32 has 8 loads and 0 stores of 16 bytes.

/// The kernel of [`algorithms::histogram_even`](kernel_primitives::algorithms::histogram_even) and
/// [`algorithms::histogram_ranges`](kernel_primitives::algorithms::histogram_ranges). It adds the number of items in each bin to `counts`.
///
/// A block counts in shared memory, for which the launch gives the bytes of [`histogram_counters`]. There are `1 << copies` copies of a
/// counter next to each other, at most 32, so lanes with copies of their own never access the same bank. If the copies have no room, blocks
/// count in `counts` itself. The launch may have any number of blocks, and no block may have 2^32 items.
///
/// Anyone may launch it: its result is right for any arguments.
#[kernel(threads(HISTOGRAM_THREADS), one_dimensional, min_blocks(2))]
pub fn histogram_tiles<S, B, C>(
    cx: Block,
    x: Input<S>,
    levels: Global<S::Item>,
    counts: GlobalMut<C, Atomic>,
    binning: B,
    copies: u32,
    shared: SharedSlice<u32>,
) where
    S: Source<Item: Element>,
    B: Binning<S::Item>,
    C: AtomicElement,
    u32: ConvertTo<C>,
{
    let bins = counts.len();
    let (own, capacity, copies) = (shared.array(), shared.len(), copies.min(WARP.ilog2()));
    let bin = |item| binning.bin(levels, item).unwrap_or(bins);
    if const { by_value::<S::Item>() } {
        let counters = const { VALUES * WARP as usize };
        cx.require_at_most(counters, capacity);
        clear(cx, own, counters);
        let lane = cx.lane();
        by_vector!(S, for_each::<S; VECTOR>(cx, x, |item: S::Item| {
            // SAFETY: a byte, of which any bits are a value; a counter each, atomic between the barriers.
            unsafe { own.at(((transmute_copy::<S::Item, u8>(&item) as u32) << WARP.ilog2() | lane) as usize).fetch_add(1) };
        }));
        cx.barrier();
        let value = cx.thread_rank();
        // These are whole warps.
        if value < VALUES as u32 {
            let total = total_of(cx, own, value as usize, WARP.ilog2());
            // SAFETY: as above.
            let bin = bin(unsafe { transmute_copy::<u8, S::Item>(&(value as u8)) });
            // Neighbouring values are often in one bin, so one lane adds for all of them.
            let before = cx.shuffle_up(FULL_MASK, bin as u64, 1, WARP);
            let head = cx.lane() == 0 || before != bin as u64;
            let total = warp_reduce_by_heads(cx, total, head, Add);
            if head && bin < bins && total > 0 {
                counts.at(bin).fetch_add(total.convert());
            }
        }
    } else if bins << copies <= capacity {
        clear(cx, own, bins << copies);
        let copy = cx.lane() & ((1 << copies) - 1);
        by_vector!(S, for_each::<S; VECTOR>(cx, x, |item: S::Item| {
            // 32 bits are enough, because there are no more bins than counters.
            if let Some(bin) = binning.bin(levels, item).map(|bin| bin.min(u32::MAX as usize) as u32)
                && bin < bins as u32
            {
                // SAFETY: inside, since the bins are; atomic between the barriers.
                unsafe { own.at(((bin << copies) + copy) as usize).fetch_add(1) };
            }
        }));
        cx.barrier();
        let mut bin = cx.thread_rank() as usize;
        while bin < bins {
            let total = total_of(cx, own, bin, copies);
            if total > 0 {
                counts.at(bin).fetch_add(total.convert());
            }
            bin += HISTOGRAM_THREADS;
        }
    } else {
        by_vector!(S, for_each::<S; VECTOR>(cx, x, |item: S::Item| {
            let bin = bin(item);
            if bin < bins {
                counts.at(bin).fetch_add(1u32.convert());
            }
        }));
    }
}

/// Clears the first counters. It ends with a barrier.
fn clear(cx: Block, counters: SharedArray<'_, u32>, count: usize) {
    let mut at = cx.thread_rank() as usize;
    while at < count {
        // SAFETY: inside; of this thread.
        unsafe { counters.store(at, 0) };
        at += HISTOGRAM_THREADS;
    }
    cx.barrier();
}

/// Returns the sum of the copies of a counter. A barrier comes after the counting, and before this. Lanes begin at different copies, which
/// are in different banks.
fn total_of(cx: Block, counters: SharedArray<'_, u32>, counter: usize, copies: u32) -> u32 {
    let mut total = 0u32;
    for turn in 0..1u32 << copies {
        let copy = (turn + cx.lane()) & ((1 << copies) - 1);
        // SAFETY: inside; written before the barrier.
        total += unsafe { counters.load((counter << copies) + copy as usize) };
    }
    total
}

/// Calls a function with each item of the thread. The thread has `HISTOGRAM_VECTORS` vectors of `N` items of each tile of the block.
fn for_each<S: Source<Item: Element>, const N: usize>(cx: Block, x: Input<S>, f: impl Fn(S::Item)) {
    let stride = HISTOGRAM_THREADS * N;
    let tile = stride * HISTOGRAM_VECTORS;
    let own = cx.thread_rank() as usize * N;
    let mut start = cx.block_rank() * tile;
    while start < x.len() {
        let at = |v: usize| start + own + v * stride;
        if start + tile <= x.len() {
            let mut vectors = [[S::Item::ZERO; N]; HISTOGRAM_VECTORS];
            for (v, items) in vectors.iter_mut().enumerate() {
                // SAFETY: the whole tile is inside.
                *items = unsafe { x.items_inside(at(v)) };
            }
            for items in &vectors {
                items.iter().for_each(|&item| f(item));
            }
        } else {
            let mut at = start + cx.thread_rank() as usize;
            while let Some(item) = x.get(at) {
                f(item);
                at += HISTOGRAM_THREADS;
            }
        }
        start += cx.grid_blocks() * tile;
    }
}
