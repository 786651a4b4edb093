//! Functors and types that keep no promise, or that few programs have. The library must not trust them.

#[cfg(not(target_arch = "nvptx64"))]
use core::sync::atomic::{AtomicU32, Ordering};

use kernel_primitives::functor::{Less, ReduceBy, Sum};
use kernel_primitives::input::{self, Counting, Span};
use kernel_primitives::kernels::device::{self, Binning};
use kernel_primitives::prelude::*;

use super::{AddEach, Order, Times};

/// Returns a random answer. On the host, the next answer for the same number may differ.
#[inline(always)]
pub(super) fn toss(number: u32) -> bool {
    #[cfg(not(target_arch = "nvptx64"))]
    let number = {
        static TOSSES: AtomicU32 = AtomicU32::new(0);
        number ^ TOSSES.fetch_add(1, Ordering::Relaxed)
    };
    (number ^ number >> 7).wrapping_mul(0x9e37_79b1) >> 31 != 0
}

/// A predicate and a function of bins with random answers. The comparator is [`Order::COIN`].
#[derive(Clone, Copy, Debug, KernelParam)]
pub struct Coin;

impl UnaryFn<u32> for Coin {
    type Output = bool;
    #[inline(always)]
    fn apply(&self, x: u32) -> bool {
        toss(x)
    }
}

impl Binning<u32> for Coin {
    #[inline(always)]
    fn bin(&self, _: Global<'_, u32>, item: u32) -> Option<usize> {
        if toss(item) { Some(usize::MAX >> (item % 64)) } else { None }
    }
}

/// Returns whether a number is even. On the host, [`CALLS`] counts the calls for other numbers than 0.
#[derive(Clone, Copy, Debug, KernelParam)]
pub struct EvenCounted;

/// The calls of [`EvenCounted`]. Only one test uses it.
#[cfg(not(target_arch = "nvptx64"))]
pub static CALLS: AtomicU32 = AtomicU32::new(0);

impl UnaryFn<u32> for EvenCounted {
    type Output = bool;
    #[inline(always)]
    fn apply(&self, x: u32) -> bool {
        #[cfg(not(target_arch = "nvptx64"))]
        CALLS.fetch_add((x != 0) as u32, Ordering::Relaxed);
        x.is_multiple_of(2)
    }
}

/// Offsets that move, or stay.
#[derive(Clone, Copy, Debug, KernelParam)]
#[repr(C)]
pub struct Drift(u32);

impl Drift {
    pub const NONE: Self = Self(0);
    pub const BY_CHANCE: Self = Self(1);
}

impl UnaryFn<u32> for Drift {
    type Output = u32;
    #[inline(always)]
    fn apply(&self, x: u32) -> u32 {
        if self.0 != 0 && toss(x) && toss(!x) && toss(x >> 3) { x.wrapping_mul(0x9e37_79b1) } else { x }
    }
}

/// A number that is equal to others at random.
#[derive(Clone, Copy, Debug, Element)]
#[repr(transparent)]
pub struct Fickle(pub u32);

impl PartialEq for Fickle {
    #[inline(always)]
    fn eq(&self, other: &Self) -> bool {
        toss(self.0 ^ other.0)
    }
}

/// A `bool` whose sort bits are 0 and 1. There are no others.
#[derive(Clone, Copy, Debug, PartialEq, Element)]
#[repr(transparent)]
pub struct Lit(pub bool);

// SAFETY: 0 or 1.
unsafe impl SortKey for Lit {
    type Bits = u8;
    const SORT_BITS: u32 = 1;
    #[inline(always)]
    fn to_sort_bits(self) -> u8 {
        self.0 as u8
    }
    #[inline(always)]
    fn from_sort_bits(bits: u8) -> Self {
        assert!(bits <= 1, "no key has these bits");
        Self(bits == 1)
    }
}

/// Adds numbers. A sum that has more than 32 bits is a fault.
#[derive(Clone, Copy, Debug, KernelParam)]
pub struct AddExactly;

impl BinaryFn<u32> for AddExactly {
    type Output = u32;
    #[inline(always)]
    fn apply(&self, a: u32, b: u32) -> u32 {
        a.checked_add(b).expect("a sum of 32 bits")
    }
}

impl Reducer<u32> for AddExactly {
    #[inline(always)]
    fn identity(&self) -> u32 {
        0
    }
}

type Numbers = Span<u32>;
type Drifting = input::Map<Numbers, Drift>;

instantiate!(
    kernel_primitives::algorithms::sort_keys<Lit>,
    kernel_primitives::algorithms::sort_by<Lit, Less>,
    kernel_primitives::algorithms::top_k<Lit, Less>,
    kernel_primitives::algorithms::segmented_sort<u32, Drifting, Order>,
    kernel_primitives::algorithms::select_if<u32, Coin>,
    kernel_primitives::algorithms::partition<u32, Coin>,
    kernel_primitives::algorithms::select_if<u32, EvenCounted>,
    kernel_primitives::algorithms::partition<u32, EvenCounted>,
    kernel_primitives::algorithms::unique_by_key<Fickle, u32>,
    kernel_primitives::algorithms::run_length_encode<Fickle, u32>,
    kernel_primitives::algorithms::reduce_by_key<Fickle, Counting<u32>, Add>,
    kernel_primitives::algorithms::inclusive_scan_by_key<Fickle, u32, Add>,
    kernel_primitives::algorithms::segmented_reduce<u32, Drifting, Sum>,
    kernel_primitives::algorithms::segmented_inclusive_scan<u32, Drifting, Add>,
    kernel_primitives::algorithms::segmented_inclusive_scan<u32, u32, AddExactly>,
    kernel_primitives::algorithms::segmented_exclusive_scan<u32, u32, AddExactly>,
    kernel_primitives::algorithms::segmented_reduce<[u64; 3], u32, ReduceBy<AddEach>>,
    kernel_primitives::algorithms::segmented_reduce<[u64; 32], u32, ReduceBy<AddEach>>,
    kernel_primitives::algorithms::reduce_by_key<u8, [u64; 32], AddEach>,
    kernel_primitives::algorithms::run_length_encode<input::Map<Span<u8>, Times<128>>, u32>
);
instantiate!(device::histogram_tiles<Numbers, Coin, u32>);

/// Keys of no bytes are all equal.
impl BinaryFn<[u32; 0]> for Order {
    type Output = bool;
    #[inline(always)]
    fn apply(&self, _: [u32; 0], _: [u32; 0]) -> bool {
        false
    }
}
