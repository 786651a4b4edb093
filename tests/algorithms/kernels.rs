//! Instantiations for types and functors of the tests.

pub mod hostile;
#[allow(dead_code, reason = "each test binary uses a part")]
#[path = "kernels/../../suite/kernels/types.rs"]
pub mod types;

use kernel_primitives::element::Segmented;
use kernel_primitives::functor::{
    All, ArgMax, BySegment, Greater, Identity, Less, Max, Mul, OfPair, ReduceBy, Reduction, Square, Sum,
};
use kernel_primitives::grid::{Chain, Known};
use kernel_primitives::input::{self, Constant, Counting, Permutation, Reversed, Span, Strided, Zip};
use kernel_primitives::output::{Discard, SpanMut};
use kernel_primitives::prelude::*;

pub use types::*;

pub type Pairs = Zip<Span<f32>, Span<f32>>;
pub type Products = input::Map<Pairs, OfPair<Mul>>;

/// Multiplies a number by `N`.
#[derive(Clone, Copy, Debug, KernelParam)]
pub struct Times<const N: usize>;

impl<T: Element, const N: usize> UnaryFn<T> for Times<N> {
    type Output = [T; N];
    #[inline(always)]
    fn apply(&self, x: T) -> [T; N] {
        [x; N]
    }
}

/// Adds numbers place by place.
#[derive(Clone, Copy, Debug, KernelParam)]
pub struct AddEach;

impl<T: Number, const N: usize> BinaryFn<[T; N]> for AddEach {
    type Output = [T; N];
    #[inline(always)]
    fn apply(&self, a: [T; N], b: [T; N]) -> [T; N] {
        core::array::from_fn(|i| a[i].add(b[i]))
    }
}

impl<T: Number, const N: usize> Reducer<[T; N]> for AddEach {
    #[inline(always)]
    fn identity(&self) -> [T; N] {
        [T::ZERO; N]
    }
}

/// An order of numbers, or a relation that is not an order. It is one type for all, so that kernels with comparators are compiled once.
#[derive(Clone, Copy, Debug, KernelParam)]
#[repr(C)]
pub struct Order {
    way: u32,
    by: u32,
}

impl Order {
    /// Not an order: its answers look random.
    pub const NONE: Self = Self { way: 1, by: 0 };
    /// Not an order, and its answers change: see [`hostile`].
    pub const COIN: Self = Self { way: 2, by: 0 };
    /// An order by the quotient of 100, from the largest one. The number 0 is a fault.
    pub const BY_QUOTIENT: Self = Self { way: 3, by: 0 };

    pub const fn by_remainder(by: u32) -> Self {
        Self { way: 0, by }
    }
}

impl BinaryFn<u32> for Order {
    type Output = bool;
    #[inline(always)]
    fn apply(&self, a: u32, b: u32) -> bool {
        match self.way {
            0 => a % self.by.max(1) < b % self.by.max(1),
            1 => (a ^ b.rotate_left(7)).wrapping_mul(0x9e37_79b1) >> 31 != 0,
            2 => hostile::toss(a ^ b.rotate_left(7)),
            _ => 100u32.divide(a) > 100u32.divide(b),
        }
    }
}

/// Computes the greatest common divisor.
#[derive(Clone, Copy, Debug, KernelParam)]
pub struct Gcd;

impl BinaryFn<u64> for Gcd {
    type Output = u64;
    #[inline(always)]
    fn apply(&self, mut a: u64, mut b: u64) -> u64 {
        while b != 0 {
            (a, b) = (b, a % b);
        }
        a
    }
}

impl Reducer<u64> for Gcd {
    #[inline(always)]
    fn identity(&self) -> u64 {
        0
    }
}

/// An order by one member.
#[derive(Clone, Copy, Debug, KernelParam)]
pub struct ByB;

impl BinaryFn<Twelve> for ByB {
    type Output = bool;
    #[inline(always)]
    fn apply(&self, x: Twelve, y: Twelve) -> bool {
        x.b < y.b
    }
}

/// An order by the first of several.
#[derive(Clone, Copy, Debug, KernelParam)]
pub struct ByFirst;

impl<const N: usize> BinaryFn<[u64; N]> for ByFirst {
    type Output = bool;
    #[inline(always)]
    fn apply(&self, x: [u64; N], y: [u64; N]) -> bool {
        x[0] < y[0]
    }
}

/// Returns whether a number is even.
#[derive(Clone, Copy, Debug, KernelParam)]
pub struct Even;

impl UnaryFn<Twelve> for Even {
    type Output = bool;
    #[inline(always)]
    fn apply(&self, x: Twelve) -> bool {
        x.b.is_multiple_of(2)
    }
}

/// A number that is compared by a quotient. A comparison with 0 is a fault.
#[derive(Clone, Copy, Debug, Element)]
#[repr(transparent)]
pub struct Divisor(pub u32);

impl PartialEq for Divisor {
    #[inline(always)]
    fn eq(&self, other: &Self) -> bool {
        100u32.divide(self.0) == 100u32.divide(other.0)
    }
}

/// Returns whether 100 divided by a number is more than 15. The number 0 is a fault.
#[derive(Clone, Copy, Debug, KernelParam)]
pub struct FewTimes;

impl UnaryFn<u32> for FewTimes {
    type Output = bool;
    #[inline(always)]
    fn apply(&self, x: u32) -> bool {
        100u32.divide(x) > 15
    }
}

/// Returns the quotient and the remainder by ten.
#[derive(Clone, Copy, Debug, KernelParam)]
pub struct ByTen;

impl UnaryFn<u32> for ByTen {
    type Output = (u32, u8);
    #[inline(always)]
    fn apply(&self, x: u32) -> (u32, u8) {
        (x / 10, (x % 10) as u8)
    }
}

/// Makes three numbers from one, and says whether it is odd.
#[derive(Clone, Copy, Debug, KernelParam)]
#[repr(C)]
pub struct Spread;

impl UnaryFn<u32> for Spread {
    type Output = (u32, (u8, (u64, bool)));
    #[inline(always)]
    fn apply(&self, x: u32) -> Self::Output {
        (!x, ((x % 251) as u8, ((x as u64) << 20, x % 2 == 1)))
    }
}

/// Makes a number and ten times this number.
#[derive(Clone, Copy, Debug, KernelParam)]
#[repr(C)]
pub struct Digits;

impl UnaryFn<u64> for Digits {
    type Output = (u64, u32);
    #[inline(always)]
    fn apply(&self, x: u64) -> Self::Output {
        (x, 10 * x as u32)
    }
}

/// Makes the offset 0, then a number of times the offset 1, and then the number of items.
#[derive(Clone, Copy, Debug, KernelParam)]
#[repr(C)]
pub struct ManyEmpty {
    pub times: u64,
    pub items: u64,
}

impl UnaryFn<u64> for ManyEmpty {
    type Output = u64;

    #[inline(always)]
    fn apply(&self, i: u64) -> u64 {
        if i <= self.times { i.min(1) } else { self.items }
    }
}

/// Places in any order, backwards, every third place, and no places.
type Places =
    Zip<Permutation<SpanMut<u32>, Span<u32>>, Zip<Reversed<SpanMut<u8>>, Zip<Strided<SpanMut<u64>>, Discard<bool>>>>;

/// Writes the totals of the tiles before each tile. Each block has a tile, in the order in which blocks ask, or by their ranks.
#[kernel]
pub fn prefixes_of_tiles(
    cx: Block,
    x: Global<Map<u32>>,
    mut out: GlobalMut<Map<u32>, PerBlock>,
    chain: GlobalMut<u64, Atomic>,
    epoch: u32,
    by_rank: bool,
    mut word: Shared<[u64; 1]>,
) {
    let chain = Chain::new(cx, &chain, x.len()).epoch(epoch);
    let tile = if by_rank { cx.block_rank() } else { chain.take_tile(&mut word) };
    if cx.warp() == 0 {
        let before = chain.prefix(tile, x[tile], &Compose);
        if cx.lane() == 0 {
            // SAFETY: only this block has the tile.
            unsafe { out.write(tile, before) };
        }
    }
}

/// Writes the totals of the tiles before each tile. Warps ask for every `step`th tile up to their own tile, and carry what they know from
/// one tile to the next.
#[kernel]
pub fn prefixes_after_others(
    cx: Block,
    x: Global<Map<u32>>,
    mut out: GlobalMut<Map<u32>, PerBlock>,
    chain: GlobalMut<u64, Atomic>,
    step: u32,
    mut word: Shared<[u64; 1]>,
) {
    let (chain, step) = (Chain::new(cx, &chain, x.len()), step as usize);
    let tile = chain.take_tile(&mut word);
    chain.announce(tile, x[tile]);
    let (mut known, mut at) = (Known::nothing(&Compose), tile % step);
    let mut before = chain.prefix_after(&mut known, at, &Compose);
    while at < tile {
        at += step;
        before = chain.prefix_after(&mut known, at, &Compose);
    }
    if cx.lane() == 0 {
        // SAFETY: only this block has the tile.
        unsafe { out.write(tile, before) };
    }
}

/// Writes the totals of the tiles before each tile, from the last head, which the tile `first` has. The tiles before that tile publish
/// nothing.
#[kernel]
pub fn prefixes_since_a_head(
    cx: Block,
    heads: Global<u32>,
    x: Global<Map<u32>>,
    mut out: GlobalMut<Map<u32>, PerBlock>,
    chain: GlobalMut<u64, Atomic>,
    first: u32,
    mut word: Shared<[u64; 1]>,
) {
    let (chain, first) = (Chain::new(cx, &chain, x.len()), first as usize);
    let tile = chain.take_tile(&mut word);
    let total = Segmented { heads: heads[tile] as u64, total: x[tile] };
    if cx.warp() > 0 || tile < first {
        return;
    }
    if tile == first {
        return chain.announce_start(tile, total);
    }
    let before = chain.prefix_since(tile, total, &BySegment(Compose), |total| total.heads > 0);
    if cx.lane() == 0 {
        // SAFETY: only this block has the tile.
        unsafe { out.write(tile, before.total) };
    }
}

/// Returns the first of two values that is not all false.
#[derive(Clone, Copy, Debug, KernelParam)]
pub struct FirstTruth;

impl BinaryFn<[bool; 4]> for FirstTruth {
    type Output = [bool; 4];
    #[inline(always)]
    fn apply(&self, a: [bool; 4], b: [bool; 4]) -> [bool; 4] {
        if a[0] { a } else { b }
    }
}

impl Reducer<[bool; 4]> for FirstTruth {
    #[inline(always)]
    fn identity(&self) -> [bool; 4] {
        [false; 4]
    }
}

/// Writes the chain's value of tile 0. One thread takes tile 1 as its own.
#[kernel]
pub fn truths_of_a_tile(cx: Block, mut out: GlobalMut<[bool; 4], PerBlock>, chain: GlobalMut<u64, Atomic>) {
    out.store(Chain::new(cx, &chain, 2).prefix(1, [true; 4], &FirstTruth));
}

/// Announces values without a size. Each block has a tile, and writes the tile's number plus one.
#[kernel]
pub fn tiles_of_nothing(
    cx: Block,
    mut out: GlobalMut<u32, PerBlock>,
    chain: GlobalMut<u64, Atomic>,
    mut word: Shared<[u64; 1]>,
) {
    let chain = Chain::<[u32; 0]>::new(cx, &chain, cx.grid_blocks());
    let tile = chain.take_tile(&mut word);
    if cx.warp() == 0 {
        chain.announce(tile, []);
        if cx.lane() == 0 {
            // SAFETY: only this block has the tile.
            unsafe { out.write(tile, tile as u32 + 1) };
        }
    }
}

/// Computes the sum of all items. Each block has one item.
#[kernel]
pub fn total_of_tiles(
    cx: Block,
    x: Global<u64>,
    mut out: GlobalMut<u64>,
    chain: GlobalMut<u64, Atomic>,
    mut word: Shared<[u64; 1]>,
    mut shared: Shared<ReduceStorage<u64>>,
) {
    let chain = Chain::new(cx, &chain, x.len());
    let tile = cx.block_rank();
    if cx.warp() == 0 {
        chain.announce(tile, x[tile]);
    }
    if chain.arrive(&mut word)
        && let Some(total) = block_reduce_to_first(cx, &mut shared, chain.thread_total(&Add), Add)
    {
        // SAFETY: only one thread of one block writes.
        unsafe { out.write(0, total) };
    }
}

/// Adds a number, its square and one, place by place. It accumulates in three bytes, or in twelve.
#[derive(Clone, Copy, Debug, KernelParam)]
pub struct Moments<const WIDE: bool>;

macro_rules! moments {
    ($($wide:literal $t:ty;)*) => {$(
        impl Reduction<u8> for Moments<$wide> {
            type Accum = [$t; 3];
            type Output = [$t; 3];
            #[inline(always)]
            fn identity(&self) -> [$t; 3] {
                [0; 3]
            }
            #[inline(always)]
            fn pre(&self, item: u8, _: u64) -> [$t; 3] {
                [item as $t, (item as $t).wrapping_mul(item as $t), 1]
            }
            #[inline(always)]
            fn combine(&self, a: [$t; 3], b: [$t; 3]) -> [$t; 3] {
                core::array::from_fn(|i| a[i].wrapping_add(b[i]))
            }
            #[inline(always)]
            fn post(&self, total: [$t; 3], _: u64) -> [$t; 3] {
                total
            }
        }
    )*};
}
moments! { false u8; true u32; }

instantiate!(
    kernel_primitives::algorithms::inclusive_scan<Map<u32>, Compose>,
    kernel_primitives::algorithms::inclusive_scan<Strided<Span<u8>>, Max>,
    kernel_primitives::algorithms::inclusive_scan<input::Map<Span<u8>, Times<3>>, AddEach>,
    kernel_primitives::algorithms::inclusive_scan<input::Map<Span<u8>, Times<5>>, AddEach>,
    kernel_primitives::algorithms::exclusive_scan<Map<u32>, Compose>,
    kernel_primitives::algorithms::inclusive_scan_by_key<u32, input::Map<Span<u32>, Times<10>>, AddEach>,
    kernel_primitives::algorithms::inclusive_scan_by_key<u32, Map<u32>, Compose>,
    kernel_primitives::algorithms::inclusive_scan_by_key<Divisor, u32, Add>,
    kernel_primitives::algorithms::exclusive_scan_by_key<u32, Map<u32>, Compose>,
    kernel_primitives::algorithms::segmented_inclusive_scan<Map<u32>, u64, Compose>,
    kernel_primitives::algorithms::segmented_exclusive_scan<Map<u32>, u64, Compose>,
    kernel_primitives::algorithms::segmented_inclusive_scan<u32, input::Map<Counting<u64>, ManyEmpty>, Add>,
    kernel_primitives::algorithms::segmented_inclusive_scan<u32, u64, Add>,
    kernel_primitives::algorithms::segmented_inclusive_scan<u32, i32, Add>,
    kernel_primitives::algorithms::segmented_inclusive_scan<u32, i64, Add>,
    kernel_primitives::algorithms::segmented_inclusive_scan<[u64; 2], u32, AddEach>,
    kernel_primitives::algorithms::segmented_exclusive_scan<[u64; 2], u32, AddEach>,
    kernel_primitives::algorithms::segmented_inclusive_scan<[u64; 4], u32, AddEach>,
    kernel_primitives::algorithms::segmented_inclusive_scan<[u64; 8], u32, AddEach>,
    kernel_primitives::algorithms::segmented_inclusive_scan<[u64; 16], u32, AddEach>,
    kernel_primitives::algorithms::segmented_inclusive_scan<Counting<u64>, u32, Add>,
    kernel_primitives::algorithms::inclusive_scan<[u64; 16], AddEach>
);
instantiate!(
    kernel_primitives::algorithms::reduce<Products, Sum>,
    kernel_primitives::algorithms::reduce<Counting<u64>, Sum>,
    kernel_primitives::algorithms::reduce<u64, ReduceBy<Gcd>>,
    kernel_primitives::algorithms::inclusive_scan<u64, Gcd>,
    kernel_primitives::algorithms::reduce<u8, Moments<false>>,
    kernel_primitives::algorithms::reduce<[u8; 3], ReduceBy<AddEach>>,
    kernel_primitives::algorithms::segmented_reduce<Counting<u64>, u32, Sum>,
    kernel_primitives::algorithms::segmented_reduce<u8, u32, ArgMax>,
    kernel_primitives::algorithms::segmented_reduce<bool, u32, All>,
    kernel_primitives::algorithms::segmented_reduce<u8, u32, Moments<false>>,
    kernel_primitives::algorithms::segmented_reduce<u8, u32, Moments<true>>,
    kernel_primitives::algorithms::reduce_by_key<u32, Map<u32>, Compose>,
    kernel_primitives::algorithms::reduce_by_key<[u64; 5], u32, Add>,
    kernel_primitives::algorithms::reduce_by_key<Divisor, u32, Add>,
    kernel_primitives::algorithms::run_length_encode<Divisor, u32>,
    kernel_primitives::algorithms::run_length_encode<u8, u8>,
    kernel_primitives::algorithms::run_length_encode<f16, f32>
);
instantiate!(
    kernel_primitives::algorithms::sort_pairs<u32, Sixteen>, kernel_primitives::algorithms::sort_pairs<u32, Flagged>,
    kernel_primitives::algorithms::sort_pairs<u32, [u32; 5]>,
    kernel_primitives::algorithms::sort_pairs<u32, [u16; 9]>, kernel_primitives::algorithms::sort_pairs<u32, [u8; 21]>,
    kernel_primitives::algorithms::sort_pairs<u64, [u64; 64]>,
    kernel_primitives::algorithms::sort_pairs<u64, Sixteen>,
    kernel_primitives::algorithms::sort_by<[u64; 4], ByFirst>,
    kernel_primitives::algorithms::sort_by<[u64; 5], ByFirst>,
    kernel_primitives::algorithms::sort_by<u32, Order>,
    kernel_primitives::algorithms::sort_by<Twelve, ByB>,
    kernel_primitives::algorithms::sort_by<Reversed<Span<f16>>, Less>,
    kernel_primitives::algorithms::sort_pairs_by<u32, Counting<u32>, Order>,
    kernel_primitives::algorithms::merge<u32, u32, Order>,
    kernel_primitives::algorithms::merge<[u32; 0], [u32; 0], Order>,
    kernel_primitives::algorithms::merge_pairs<[u32; 0], [u32; 0], Counting<u32>, Counting<u32>, Order>,
    kernel_primitives::algorithms::merge<Counting<u64>, Counting<u64>, Less>,
    kernel_primitives::algorithms::merge<Counting<u32>, u32, Less>,
    kernel_primitives::algorithms::merge<bool, bool, Less>,
    kernel_primitives::algorithms::merge<bool, bool, Greater>,
    kernel_primitives::algorithms::merge_pairs<u32, u32, Counting<u32>, Counting<u32>, Order>,
    kernel_primitives::algorithms::merge_pairs<Counting<u64>, Counting<u64>, Counting<u64>, Counting<u64>, Less>,
    kernel_primitives::algorithms::sort_pairs_by<u32, Counting<u64>, Less>, kernel_primitives::algorithms::sort_pairs_by<u32, u64, Less>,
    kernel_primitives::algorithms::sort_pairs_by<u64, u64, Less>, kernel_primitives::algorithms::sort_pairs_by<u32, Sixteen, Less>,
    kernel_primitives::algorithms::sort_pairs_by<u32, Flagged, Less>,
    kernel_primitives::algorithms::sort_pairs_by<u32, u8, Less>, kernel_primitives::algorithms::sort_pairs_by<u32, u16, Less>,
    kernel_primitives::algorithms::top_k<Reversed<Span<u64>>, Less>,
    kernel_primitives::algorithms::top_k<bool, Greater>,
    kernel_primitives::algorithms::top_k_pairs<u8, Sixteen, Greater>,
    kernel_primitives::algorithms::segmented_sort<[u64; 5], u32, ByFirst>,
    kernel_primitives::algorithms::segmented_sort_pairs<u32, Counting<u32>, u32, Order>,
    kernel_primitives::algorithms::segmented_sort_pairs<u32, Flagged, u32, Less>,
    kernel_primitives::algorithms::segmented_sort_pairs<f64, Sixteen, u32, Less>
);
instantiate!(
    kernel_primitives::algorithms::select_if<Twelve, Even>,
    kernel_primitives::algorithms::select_if<u32, FewTimes>,
    kernel_primitives::algorithms::partition<u32, FewTimes>,
    kernel_primitives::algorithms::select_flagged<u32, i32>,
    kernel_primitives::algorithms::select_flagged<Counting<u64>, bool>,
    kernel_primitives::algorithms::unique<Divisor>,
    kernel_primitives::algorithms::unique_by_key<u64, Counting<u64>>,
    kernel_primitives::algorithms::histogram_even<i8, u64>,
    kernel_primitives::algorithms::histogram_even<Strided<Span<u16>>, u32>,
    kernel_primitives::algorithms::histogram_even<Constant<u32>, u64>,
    kernel_primitives::algorithms::lower_bound<u64, Counting<u64>>,
    kernel_primitives::algorithms::transform<u8, Square, u8>,
    kernel_primitives::algorithms::transform<u32, ByTen, Zip<SpanMut<u32>, SpanMut<u8>>>,
    kernel_primitives::algorithms::transform<u32, Spread, Places>,
    kernel_primitives::algorithms::transform<Counting<u64>, Identity, Discard<u64>>,
    kernel_primitives::algorithms::transform<f32, Identity, Permutation<SpanMut<f32>, Span<u32>>>,
    kernel_primitives::algorithms::generate<Digits, Zip<Discard<u64>, Reversed<SpanMut<u32>>>>,
    kernel_primitives::algorithms::gather<u16, Reversed<Counting<i64>>, u16>,
    kernel_primitives::algorithms::scatter<u8, Reversed<Counting<i64>>>,
    kernel_primitives::algorithms::gather<u16, i64, u16>,
    kernel_primitives::algorithms::scatter<u16, i64>,
    kernel_primitives::algorithms::scatter<Twelve, u32>
);
