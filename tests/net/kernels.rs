//! Instantiations for the net. For each algorithm, there are one or two beside the shipped ones, and together they have all element types.

#[allow(dead_code, reason = "each test binary uses a part")]
#[path = "../suite/kernels/types.rs"]
pub mod types;

use kernel_primitives::functor::{
    All, Any, Axpby, Conjugate, Greater, Identity, Less, Mul, OfPair, Overwrite, PlusTimes, RealPart, Semiring, Sum,
};
use kernel_primitives::input::{self, Counting, Permutation, Reversed, Span, Strided, Zip};
use kernel_primitives::output::{Discard, SpanMut};
use kernel_primitives::prelude::*;

pub use types::*;

/// Three bytes. The first one is the key.
#[derive(Clone, Copy, Debug, PartialEq, Element)]
#[repr(C)]
pub struct Three {
    pub key: u8,
    pub rest: [u8; 2],
}

/// Returns the last value that is not zero. This is associative, and not commutative.
#[derive(Clone, Copy, Debug, KernelParam)]
pub struct Latest;

impl BinaryFn<Three> for Latest {
    type Output = Three;
    #[inline(always)]
    fn apply(&self, a: Three, b: Three) -> Three {
        if b == Three::ZERO { a } else { b }
    }
}

impl Reducer<Three> for Latest {
    #[inline(always)]
    fn identity(&self) -> Three {
        Three::ZERO
    }
}

/// An order by the key.
#[derive(Clone, Copy, Debug, KernelParam)]
pub struct ByKey;

impl BinaryFn<Three> for ByKey {
    type Output = bool;
    #[inline(always)]
    fn apply(&self, a: Three, b: Three) -> bool {
        a.key < b.key
    }
}

/// Returns whether the key is odd.
#[derive(Clone, Copy, Debug, KernelParam)]
pub struct OddKey;

impl UnaryFn<Three> for OddKey {
    type Output = bool;
    #[inline(always)]
    fn apply(&self, x: Three) -> bool {
        x.key % 2 == 1
    }
}

/// Returns a sum and a difference.
#[derive(Clone, Copy, Debug, KernelParam)]
pub struct Both;

impl UnaryFn<(u32, u32)> for Both {
    type Output = (u32, (u32, u32));
    #[inline(always)]
    fn apply(&self, (a, b): (u32, u32)) -> Self::Output {
        (a.wrapping_add(b), (a.wrapping_sub(b), a))
    }
}

pub type Products = input::Map<Zip<Span<f32>, Span<f32>>, OfPair<Mul>>;

/// The shortest way with one more edge.
pub type MinPlus = Semiring<Min, Add>;

pub const MIN_PLUS: MinPlus = Semiring { plus: Min, times: Add };

/// A place in order, one backwards, and none.
pub type Places = Zip<SpanMut<u32>, Zip<Reversed<SpanMut<u32>>, Discard<u32>>>;

instantiate!(
    kernel_primitives::algorithms::reduce<bool, All>,
    kernel_primitives::algorithms::reduce<bool, Any>,
    kernel_primitives::algorithms::reduce<Complex<f32>, Sum>,
    kernel_primitives::algorithms::reduce<Products, Sum>,
    kernel_primitives::algorithms::inclusive_scan<Triangular, Compose>,
    kernel_primitives::algorithms::inclusive_scan<Reversed<Span<i32>>, Add>,
    kernel_primitives::algorithms::exclusive_scan<Map<u64>, Compose>,
    kernel_primitives::algorithms::exclusive_scan<Three, Latest>,
    kernel_primitives::algorithms::adjacent_difference<u8, Mul>,
    kernel_primitives::algorithms::segmented_reduce<bool, u32, Any>,
    kernel_primitives::algorithms::segmented_inclusive_scan<Triangular, u64, Compose>,
    kernel_primitives::algorithms::spmv<bf16, bf16, u64, PlusTimes, Axpby<f32>>,
    kernel_primitives::algorithms::spmv<Complex<f32>, Complex<f32>, u32, PlusTimes, Axpby<Complex<f32>>>,
    kernel_primitives::algorithms::spmv<i32, i32, u32, MinPlus, Overwrite>,
    kernel_primitives::algorithms::fft<f32, f32, Conjugate, Complex<f32>>,
    kernel_primitives::algorithms::fft<f32, f32, RealPart, f32>,
    kernel_primitives::algorithms::histogram_even<i8, u64>,
    kernel_primitives::algorithms::sort_keys<bool>,
    kernel_primitives::algorithms::sort_pairs<u32, Twelve>,
    kernel_primitives::algorithms::sort_pairs<u32, Flagged>,
    kernel_primitives::algorithms::sort_by<Three, ByKey>,
    kernel_primitives::algorithms::merge<Three, Three, ByKey>,
    kernel_primitives::algorithms::merge_pairs<Three, Three, u32, u32, ByKey>,
    kernel_primitives::algorithms::sort_pairs_by<Three, Counting<u32>, ByKey>,
    kernel_primitives::algorithms::sort_pairs_by<u32, Flagged, Less>,
    kernel_primitives::algorithms::segmented_sort_pairs<u32, Flagged, u32, Less>,
    kernel_primitives::algorithms::top_k<bool, Greater>,
    kernel_primitives::algorithms::select_if<Three, OddKey>,
    kernel_primitives::algorithms::partition<bool, Identity>,
    kernel_primitives::algorithms::select_flagged<u64, u8>,
    kernel_primitives::algorithms::unique<Three>,
    kernel_primitives::algorithms::unique_by_key<u8, f64>,
    kernel_primitives::algorithms::reduce_by_key<u8, Triangular, Compose>,
    kernel_primitives::algorithms::reduce_by_key<Three, u64, Add>,
    kernel_primitives::algorithms::run_length_encode<bool, u64>,
    kernel_primitives::algorithms::inclusive_scan_by_key<u64, Map<u32>, Compose>,
    kernel_primitives::algorithms::transform<Zip<Span<u32>, Span<u32>>, Both, Places>,
    kernel_primitives::algorithms::transform<Strided<Span<u16>>, Identity, Strided<SpanMut<u16>>>,
    kernel_primitives::algorithms::transform<u32, Identity, Permutation<SpanMut<u32>, Span<u32>>>,
    kernel_primitives::algorithms::gather<Twelve, Reversed<Counting<i64>>, Twelve>,
    kernel_primitives::algorithms::scatter<Three, u64>
);
