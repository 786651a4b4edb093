//! Instantiations for types and functors of the tests.

#[allow(dead_code, reason = "each test binary uses a part")]
#[path = "../suite/kernels/types.rs"]
pub mod types;

use kernel_primitives::functor::{ArgMax, Flagged as ByFlag, Greater, Identity, Less, Max, Mul, OfPair, Square, Sum};
use kernel_primitives::grid::Chain;
use kernel_primitives::input::{self, Constant, Counting, Permutation, Reversed, Segments, Span, Strided, Zip};
use kernel_primitives::kernels::device::{self, EvenBins};
use kernel_primitives::output::{Discard, SpanMut};
use kernel_primitives::prelude::*;

pub use types::*;

pub type Pairs = Zip<Span<f32>, Span<f32>>;
pub type Products = input::Map<Pairs, OfPair<Mul>>;

instantiate!(device::scan_tiles<Span<Map<u32>>, Compose, false>, device::scan_pipeline<Span<Map<u32>>, Compose, false>);
instantiate!(device::scan_tiles<Span<Map<u32>>, Compose, true>, device::scan_pipeline<Span<Map<u32>>, Compose, true>);
instantiate!(device::scan_tiles<Span<u8>, Max, false>, device::scan_pipeline<Span<u8>, Max, false>);
instantiate!(device::scan_tiles<Span<f16>, Max, true>, device::scan_pipeline<Span<f16>, Max, true>);
instantiate!(device::scan_tiles<Span<Map<u64>>, Compose, false>, device::scan_pipeline<Span<Map<u64>>, Compose, false>);
instantiate!(
    device::scan_tiles<Span<Triangular>, Compose, false>,
    device::scan_pipeline<Span<Triangular>, Compose, false>
);
instantiate!(device::scan_tiles<Strided<Span<u8>>, Max, false>, device::scan_pipeline<Strided<Span<u8>>, Max, false>);
instantiate!(device::scan_tiles<Counting<u64>, Add, false>, device::scan_pipeline<Counting<u64>, Add, false>);
instantiate!(
    device::scan_tiles<input::Map<Span<u8>, Times<3>>, AddEach, false>,
    device::scan_pipeline<input::Map<Span<u8>, Times<3>>, AddEach, false>
);
instantiate!(
    device::scan_tiles<input::Map<Span<u8>, Times<5>>, AddEach, false>,
    device::scan_pipeline<input::Map<Span<u8>, Times<5>>, AddEach, false>
);
instantiate!(device::scan_by_key_tiles<Span<u32>, input::Map<Span<u32>, Times<10>>, AddEach, false>);
instantiate!(device::reduce_tiles<Products, Sum>);
instantiate!(device::reduce_tiles<Counting<u64>, Sum>);
instantiate!(device::transform_tiles<Pairs, OfPair<Mul>, SpanMut<f32>>);
instantiate!(device::transform_tiles<Span<u8>, Square, SpanMut<u8>>);

instantiate!(device::sort_tile<bool>, device::count_digits<bool>, device::sort_sweep<bool>);
instantiate!(device::sort_tile_pairs<u32, Sixteen>, device::sort_sweep_pairs<u32, Sixteen>);
instantiate!(device::sort_tile_pairs<u32, Flagged>, device::sort_sweep_pairs<u32, Flagged>);
/// A number so many times.
#[derive(Clone, Copy, Debug, KernelParam)]
pub struct Times<const N: usize>;

impl<T: Element, const N: usize> UnaryFn<T> for Times<N> {
    type Output = [T; N];
    #[inline(always)]
    fn apply(&self, x: T) -> [T; N] {
        [x; N]
    }
}

/// Sums place by place.
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

/// An order of numbers by their remainders.
#[derive(Clone, Copy, Debug, KernelParam)]
#[repr(C)]
pub struct ByRemainder(pub u32);

impl BinaryFn<u32> for ByRemainder {
    type Output = bool;
    #[inline(always)]
    fn apply(&self, a: u32, b: u32) -> bool {
        a % self.0.max(1) < b % self.0.max(1)
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

impl BinaryFn<[u64; 5]> for ByFirst {
    type Output = bool;
    #[inline(always)]
    fn apply(&self, x: [u64; 5], y: [u64; 5]) -> bool {
        x[0] < y[0]
    }
}

type Fives = Span<[u64; 5]>;
instantiate!(device::merge_sort_tiles<Fives, ByFirst>, device::merge_splits<Fives, Fives, ByFirst>, device::merge_tiles<Fives, Fives, ByFirst>);

/// A comparator that is no order: it answers by what seems chance.
#[derive(Clone, Copy, Debug, KernelParam)]
pub struct NoOrder;

impl BinaryFn<u32> for NoOrder {
    type Output = bool;
    #[inline(always)]
    fn apply(&self, a: u32, b: u32) -> bool {
        (a ^ b.rotate_left(7)).wrapping_mul(0x9e37_79b1) >> 31 != 0
    }
}

instantiate!(
    device::merge_sort_tiles<Span<u32>, ByRemainder>,
    device::merge_sort_tiles_pairs<Span<u32>, Counting<u32>, ByRemainder>
);
instantiate!(
    device::merge_splits<Span<u32>, Span<u32>, ByRemainder>,
    device::merge_tiles<Span<u32>, Span<u32>, ByRemainder>
);
instantiate!(device::merge_tiles_pairs<Span<u32>, Span<u32>, Span<u32>, Span<u32>, ByRemainder>);
instantiate!(device::merge_tiles_pairs<Span<u32>, Span<u32>, Counting<u32>, Counting<u32>, ByRemainder>);
instantiate!(
    device::merge_sort_tiles<Span<u32>, NoOrder>,
    device::merge_sort_tiles_pairs<Span<u32>, Span<u32>, NoOrder>
);
instantiate!(device::merge_splits<Span<u32>, Span<u32>, NoOrder>, device::merge_tiles<Span<u32>, Span<u32>, NoOrder>);
instantiate!(device::merge_tiles_pairs<Span<u32>, Span<u32>, Span<u32>, Span<u32>, NoOrder>);
instantiate!(
    device::merge_sort_tiles<Span<u8>, Less>,
    device::merge_splits<Span<u8>, Span<u8>, Less>,
    device::merge_tiles<Span<u8>, Span<u8>, Less>
);
instantiate!(
    device::merge_sort_tiles<Span<u64>, Less>,
    device::merge_splits<Span<u64>, Span<u64>, Less>,
    device::merge_tiles<Span<u64>, Span<u64>, Less>
);
instantiate!(
    device::merge_sort_tiles<Span<Twelve>, ByB>,
    device::merge_splits<Span<Twelve>, Span<Twelve>, ByB>,
    device::merge_tiles<Span<Twelve>, Span<Twelve>, ByB>
);
instantiate!(
    device::merge_sort_tiles<Reversed<Span<f16>>, Less>,
    device::merge_splits<Span<f16>, Span<f16>, Less>,
    device::merge_tiles<Span<f16>, Span<f16>, Less>
);
instantiate!(
    device::merge_sort_tiles_pairs<Span<u32>, Span<Sixteen>, Less>,
    device::merge_tiles_pairs<Span<u32>, Span<u32>, Span<Sixteen>, Span<Sixteen>, Less>
);
instantiate!(
    device::merge_sort_tiles_pairs<Span<u32>, Span<Flagged>, Less>,
    device::merge_tiles_pairs<Span<u32>, Span<u32>, Span<Flagged>, Span<Flagged>, Less>
);
instantiate!(
    device::merge_sort_tiles_pairs<Span<u32>, Span<u8>, Less>,
    device::merge_tiles_pairs<Span<u32>, Span<u32>, Span<u8>, Span<u8>, Less>
);

instantiate!(device::top_k_tiles<Reversed<Span<u64>>, Less>, device::top_k_last<u64, Less>, device::merge_sort_tiles<Reversed<Span<u64>>, Less>);
instantiate!(device::top_k_tiles<Span<u8>, Greater>, device::top_k_last_pairs<u8, Span<Sixteen>, Greater>);
instantiate!(
    device::merge_sort_tiles_pairs<Span<u8>, Span<Sixteen>, Greater>,
    device::merge_splits<Span<u8>, Span<u8>, Greater>
);
instantiate!(device::merge_tiles_pairs<Span<u8>, Span<u8>, Span<Sixteen>, Span<Sixteen>, Greater>);

instantiate!(device::segment_sort_tiles_pairs<Span<u32>, Counting<u32>, Span<u32>, ByRemainder>, device::segment_merge_tiles_pairs<u32, u32, ByRemainder>);
instantiate!(device::segment_merge_ranks_pairs<u32, u32, ByRemainder>);
instantiate!(
    device::segment_sort_tiles<Span<u32>, Span<u32>, NoOrder>,
    device::segment_merge_ranks<u32, NoOrder>,
    device::segment_merge_tiles<u32, NoOrder>
);
instantiate!(
    device::segment_sort_tiles<Span<u8>, Span<u32>, Less>,
    device::segment_merge_ranks<u8, Less>,
    device::segment_merge_tiles<u8, Less>,
    device::segment_sort_last<u8>
);
instantiate!(
    device::segment_sort_tiles<Fives, Span<u32>, ByFirst>,
    device::segment_merge_ranks<[u64; 5], ByFirst>,
    device::segment_merge_tiles<[u64; 5], ByFirst>,
    device::segment_sort_last<[u64; 5]>
);
instantiate!(
    device::segment_sort_tiles_pairs<Span<f16>, Span<Flagged>, Span<u32>, Less>,
    device::segment_merge_ranks_pairs<f16, Flagged, Less>,
    device::segment_merge_tiles_pairs<f16, Flagged, Less>,
    device::segment_sort_last<f16>,
    device::segment_sort_last<Flagged>
);
instantiate!(
    device::segment_sort_tiles_pairs<Span<f64>, Span<Sixteen>, Span<u32>, Less>,
    device::segment_merge_ranks_pairs<f64, Sixteen, Less>,
    device::segment_merge_tiles_pairs<f64, Sixteen, Less>,
    device::segment_sort_last<f64>,
    device::segment_sort_last<Sixteen>
);

/// Whether a number is even.
#[derive(Clone, Copy, Debug, KernelParam)]
pub struct Even;

macro_rules! even {
    ($($t:ty: |$x:ident| $number:expr;)*) => {$(
        impl UnaryFn<$t> for Even {
            type Output = bool;
            #[inline(always)]
            fn apply(&self, $x: $t) -> bool {
                $number % 2 == 0
            }
        }
    )*};
}
even! { u8: |x| x; u16: |x| x; u64: |x| x; Twelve: |x| x.b; }

instantiate!(device::select_tiles<Span<u8>, Constant<()>, Even, false>);
instantiate!(device::select_tiles<Span<u16>, Constant<()>, Even, false>);
instantiate!(device::select_tiles<Span<u64>, Constant<()>, Even, false>);
instantiate!(device::select_tiles<Span<Twelve>, Constant<()>, Even, false>);
instantiate!(device::select_tiles<Span<u32>, Span<i32>, ByFlag, false>);
instantiate!(device::select_tiles<Counting<u64>, Span<bool>, ByFlag, false>);

instantiate!(device::unique_tiles<Span<u8>, Constant<u8>, false>);
instantiate!(device::unique_tiles<Span<f16>, Constant<u8>, false>);
instantiate!(device::unique_tiles<Span<bf16>, Constant<u8>, false>);
instantiate!(device::unique_tiles<Span<u64>, Counting<u64>, true>);
instantiate!(device::reduce_by_key_tiles<Span<u32>, Span<Map<u32>>, Compose>);
instantiate!(device::reduce_by_key_tiles<Span<u8>, Span<f64>, Add>);
instantiate!(device::reduce_by_key_tiles<Span<u64>, Span<f64>, Add>);
instantiate!(device::reduce_by_key_tiles<Span<u64>, Span<u8>, Max>);
instantiate!(device::run_length_tiles<Span<u8>, u8>, device::run_length_tiles<Span<f16>, f32>);
instantiate!(device::scan_by_key_tiles<Span<u32>, Span<Map<u32>>, Compose, false>);
instantiate!(device::scan_by_key_tiles<Span<u32>, Span<Map<u32>>, Compose, true>);

instantiate!(device::histogram_tiles<Span<i8>, EvenBins<i8>, u64>);
instantiate!(device::histogram_tiles<Span<u64>, EvenBins<u64>, u64>);
instantiate!(device::histogram_tiles<Span<i64>, EvenBins<i64>, u32>);
instantiate!(device::histogram_tiles<Span<f16>, EvenBins<f16>, u64>);
instantiate!(device::histogram_tiles<Span<bf16>, EvenBins<bf16>, u64>);
instantiate!(device::histogram_tiles<Strided<Span<u16>>, EvenBins<u16>, u32>);
instantiate!(device::search_tiles<Span<u64>, Counting<u64>, false>);
instantiate!(device::difference_tiles<Span<u8>, Mul>);
instantiate!(device::segment_warps<Counting<u64>, Span<u32>, Sum>);
instantiate!(device::segment_tiles<Counting<u64>, Span<u32>, Sum>, device::segment_ends<u64, Span<u32>, Sum>);
instantiate!(device::segment_warps<Span<u8>, Span<u32>, ArgMax>);
instantiate!(device::segment_tiles<Span<u8>, Span<u32>, ArgMax>, device::segment_ends<u8, Span<u32>, ArgMax>);

/// The quotient and the remainder by ten.
#[derive(Clone, Copy, Debug, KernelParam)]
pub struct ByTen;

impl UnaryFn<u32> for ByTen {
    type Output = (u32, u8);
    #[inline(always)]
    fn apply(&self, x: u32) -> (u32, u8) {
        (x / 10, (x % 10) as u8)
    }
}

instantiate!(device::transform_tiles<Span<u32>, ByTen, Zip<SpanMut<u32>, SpanMut<u8>>>);

/// Three numbers of one, and whether it is odd.
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

/// A number and ten times it.
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

/// Places in any order, backwards, every third, and none.
type Places =
    Zip<Permutation<SpanMut<u32>, Span<u32>>, Zip<Reversed<SpanMut<u8>>, Zip<Strided<SpanMut<u64>>, Discard<bool>>>>;
instantiate!(device::transform_tiles<Span<u32>, Spread, Places>);
instantiate!(device::transform_tiles<Counting<u64>, Digits, Zip<Discard<u64>, Reversed<SpanMut<u32>>>>);
instantiate!(device::transform_tiles<Span<f32>, Identity, Permutation<SpanMut<f32>, Span<u32>>>);
instantiate!(device::transform_tiles<Permutation<Span<u16>, Reversed<Counting<i64>>>, Identity, SpanMut<u16>>);
instantiate!(device::scatter_tiles<Span<u8>, Reversed<Counting<i64>>>);
instantiate!(device::scan_by_key_tiles<Segments<Span<u64>>, Span<Map<u32>>, Compose, false>);
instantiate!(device::scan_by_key_tiles<Segments<Span<u64>>, Span<Map<u32>>, Compose, true>);

/// What the tiles before each amount to: a tile a block.
#[kernel]
pub fn prefixes_of_tiles(
    cx: Block,
    x: Global<Map<u32>>,
    mut out: GlobalMut<Map<u32>, PerBlock>,
    chain: GlobalMut<u64, Atomic>,
    launch: u32,
    mut word: Shared<[u64; 1]>,
) {
    let chain = Chain::new(cx, &chain, x.len()).of_launch(launch);
    let tile = chain.take_tile(&mut word);
    if cx.warp() == 0 {
        let before = chain.prefix(tile, x[tile], &Compose);
        if cx.lane() == 0 {
            // SAFETY: of all blocks only this one has the tile.
            unsafe { out.write(tile, before) };
        }
    }
}

/// The sum of all, of which each block has one item.
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
    let tile = chain.take_tile(&mut word);
    if cx.warp() == 0 {
        chain.announce(tile, x[tile]);
    }
    if tile + 1 == chain.tiles()
        && let Some(total) = block_reduce_to_first(cx, &mut shared, chain.thread_total(&Add), Add)
    {
        // SAFETY: one thread of one block.
        unsafe { out.write(0, total) };
    }
}
