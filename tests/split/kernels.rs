//! Instantiations for operators of the tests.

#[allow(dead_code, reason = "each test binary uses a part")]
#[path = "../suite/kernels/types.rs"]
pub mod types;

use kernel_primitives::functor::{Add, Axpby, Less, Overwrite, PlusTimes, Semiring};
use kernel_primitives::prelude::*;

pub use types::*;

/// Computes twice the number, in 64 bits.
#[derive(Clone, Copy, Debug, KernelParam)]
pub struct ByTwo;

impl UnaryFn<u32> for ByTwo {
    type Output = u64;
    #[inline(always)]
    fn apply(&self, x: u32) -> u64 {
        2 * u64::from(x)
    }
}

/// Compares by the remainder of a division.
#[derive(Clone, Copy, Debug, KernelParam)]
#[repr(transparent)]
pub struct ByRemainder(pub u32);

impl BinaryFn<u32> for ByRemainder {
    type Output = bool;
    #[inline(always)]
    fn apply(&self, a: u32, b: u32) -> bool {
        a % self.0 < b % self.0
    }
}

/// An ascending order in which two large numbers are never compared.
#[derive(Clone, Copy, Debug, KernelParam)]
pub struct FewLarge;

impl BinaryFn<u32> for FewLarge {
    type Output = bool;
    #[inline(always)]
    fn apply(&self, a: u32, b: u32) -> bool {
        assert!(a == b || a < 100 || b < 100, "two large ones");
        a < b
    }
}

/// A relation that is not an order, because it goes round.
#[derive(Clone, Copy, Debug, KernelParam)]
pub struct Round;

impl BinaryFn<u32> for Round {
    type Output = bool;
    #[inline(always)]
    fn apply(&self, a: u32, b: u32) -> bool {
        a.wrapping_sub(b) > 1 << 30
    }
}

/// The shortest way with one more edge.
pub type MinPlus = Semiring<Min, Add>;

/// A sum that must not be large.
#[derive(Clone, Copy, Debug, KernelParam)]
pub struct SmallSum;

impl BinaryFn<u32> for SmallSum {
    type Output = u32;
    #[inline(always)]
    fn apply(&self, a: u32, b: u32) -> u32 {
        assert!(a.wrapping_add(b) <= 10, "too much");
        a.wrapping_add(b)
    }
}

impl Reducer<u32> for SmallSum {
    #[inline(always)]
    fn identity(&self) -> u32 {
        0
    }
}

instantiate!(
    kernel_primitives::algorithms::inclusive_scan<Map<u32>, Compose>,
    kernel_primitives::algorithms::exclusive_scan<Map<u32>, Compose>,
    kernel_primitives::algorithms::reduce_by_key<u32, Map<u32>, Compose>,
    kernel_primitives::algorithms::reduce_by_key<f32, f32, Add>,
    kernel_primitives::algorithms::transform<u32, ByTwo, u64>,
    kernel_primitives::algorithms::sort_keys<bool>,
    kernel_primitives::algorithms::gather<bool, u32, bool>,
    kernel_primitives::algorithms::merge<bool, bool, Less>,
    kernel_primitives::algorithms::sort_pairs<u32, Flagged>,
    kernel_primitives::algorithms::gather<Flagged, u32, Flagged>,
    kernel_primitives::algorithms::sort_by<u32, ByRemainder>,
    kernel_primitives::algorithms::merge<u32, u32, ByRemainder>,
    kernel_primitives::algorithms::sort_pairs_by<u32, Twelve, ByRemainder>,
    kernel_primitives::algorithms::gather<Twelve, u32, Twelve>,
    kernel_primitives::algorithms::scatter<Twelve, u32>,
    kernel_primitives::algorithms::gather<i32, u64, i32>,
    kernel_primitives::algorithms::gather<i32, i64, i32>,
    kernel_primitives::algorithms::merge_pairs<u32, u32, u32, u32, ByRemainder>,
    kernel_primitives::algorithms::sort_by<u32, FewLarge>,
    kernel_primitives::algorithms::merge<u32, u32, FewLarge>,
    kernel_primitives::algorithms::sort_pairs_by<u32, Twelve, Round>,
    kernel_primitives::algorithms::merge_pairs<u32, u32, u32, u32, Round>,
    kernel_primitives::algorithms::reduce_by_key<u32, u32, SmallSum>,
    kernel_primitives::algorithms::exclusive_scan<u32, SmallSum>,
    kernel_primitives::algorithms::spmv<f32, f32, u32, MinPlus, Overwrite>,
    kernel_primitives::algorithms::spmv<i32, i32, u64, PlusTimes, Axpby<i32>>,
    kernel_primitives::algorithms::spmv<f32, f16, u32, PlusTimes, Axpby<f32>>,
);
