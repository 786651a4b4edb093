//! Instantiations for operators and types of the tests.

#[allow(dead_code, reason = "each test binary uses a part")]
#[path = "../suite/kernels/types.rs"]
pub mod types;

use kernel_primitives::functor::{
    Axpby, Conjugate, LogicalAnd, LogicalOr, OfEntry, Overwrite, PlusTimes, Reduction, Semiring,
};
use kernel_primitives::input::{Counting, Span, Zip};
use kernel_primitives::prelude::*;

pub use types::*;

/// The shortest way with one more edge.
pub type MinPlus = Semiring<Min, Add>;

/// Whether there is a way with one more edge.
pub type OrAnd = Semiring<LogicalOr, LogicalAnd>;

/// Finds the first column whose item is true, or `u64::MAX`.
#[derive(Clone, Copy, Debug, KernelParam)]
pub struct FirstColumn;

impl Reduction<(bool, bool)> for FirstColumn {
    type Accum = u64;
    type Output = u64;
    fn identity(&self) -> u64 {
        u64::MAX
    }
    fn pre(&self, (entry, item): (bool, bool), column: u64) -> u64 {
        if entry & item { column } else { u64::MAX }
    }
    fn combine(&self, a: u64, b: u64) -> u64 {
        a.min(b)
    }
    fn post(&self, total: u64, _: u64) -> u64 {
        total
    }
}

/// Computes the sums of a row's products and of their powers, up to the `N`th.
#[derive(Clone, Copy, Debug, KernelParam)]
pub struct Powers<const N: usize>;

impl<const N: usize> Reduction<(f64, f64)> for Powers<N> {
    type Accum = [f64; N];
    type Output = [f64; N];
    fn identity(&self) -> [f64; N] {
        [0.0; N]
    }
    fn pre(&self, (entry, item): (f64, f64), _: u64) -> [f64; N] {
        let mut power = 1.0;
        core::array::from_fn(|_| {
            power *= entry * item;
            power
        })
    }
    fn combine(&self, a: [f64; N], b: [f64; N]) -> [f64; N] {
        core::array::from_fn(|i| a[i] + b[i])
    }
    fn post(&self, total: [f64; N], _: u64) -> [f64; N] {
        total
    }
}

/// Computes the mean of a row's products, or zero.
#[derive(Clone, Copy, Debug, KernelParam)]
pub struct MeanProduct;

impl Reduction<(f64, f64)> for MeanProduct {
    type Accum = f64;
    type Output = f64;
    fn identity(&self) -> f64 {
        0.0
    }
    fn pre(&self, (entry, item): (f64, f64), _: u64) -> f64 {
        entry * item
    }
    fn combine(&self, a: f64, b: f64) -> f64 {
        a + b
    }
    fn post(&self, total: f64, count: u64) -> f64 {
        total / count.max(1) as f64
    }
}

/// Computes the sum of a row's products, each combined once. A sum that is larger than that of a row is a fault.
#[derive(Clone, Copy, Debug, KernelParam)]
pub struct CheckedSum;

impl Reduction<(u32, u32)> for CheckedSum {
    type Accum = u32;
    type Output = u32;
    fn identity(&self) -> u32 {
        0
    }
    fn pre(&self, (entry, item): (u32, u32), _: u64) -> u32 {
        entry * item
    }
    fn combine(&self, a: u32, b: u32) -> u32 {
        let (sum, overflows) = a.overflowing_add(b);
        assert!(!overflows, "a sum that no row has");
        sum
    }
    fn post(&self, total: u32, _: u64) -> u32 {
        total
    }
}

/// Computes the sum of a row's products with the marked items. Items are pairs, which are not elements.
#[derive(Clone, Copy, Debug, KernelParam)]
pub struct MarkedSum;

impl Reduction<(f64, (f64, bool))> for MarkedSum {
    type Accum = f64;
    type Output = f64;
    fn identity(&self) -> f64 {
        0.0
    }
    fn pre(&self, (entry, (item, marked)): (f64, (f64, bool)), _: u64) -> f64 {
        if marked { entry * item } else { 0.0 }
    }
    fn combine(&self, a: f64, b: f64) -> f64 {
        a + b
    }
    fn post(&self, total: f64, _: u64) -> f64 {
        total
    }
}

instantiate!(
    kernel_primitives::algorithms::spmv<f64, Zip<Span<f64>, Span<bool>>, u32, MarkedSum, Overwrite>,
    kernel_primitives::algorithms::spmv<f64, f64, u32, MeanProduct, Overwrite>,
    kernel_primitives::algorithms::spmv<u32, u32, u32, CheckedSum, Overwrite>,
    kernel_primitives::algorithms::gather<f16, u64, f16>,
    kernel_primitives::algorithms::spmv<f32, f32, u32, MinPlus, Overwrite>,
    kernel_primitives::algorithms::spmv<bool, bool, u32, OrAnd, Overwrite>,
    kernel_primitives::algorithms::spmv<bool, bool, u32, FirstColumn, Overwrite>,
    kernel_primitives::algorithms::spmv<f64, f64, u32, Powers<3>, Overwrite>,
    kernel_primitives::algorithms::spmv<f64, f64, u32, Powers<5>, Overwrite>,
    kernel_primitives::algorithms::spmv<f64, f64, u32, Powers<33>, Overwrite>,
    kernel_primitives::algorithms::spmm<f32, f32, u32, MinPlus, Overwrite>,
    kernel_primitives::algorithms::spmm<u32, u32, u32, CheckedSum, Overwrite>,
    kernel_primitives::algorithms::spmm<f16, Counting<f32>, u64, PlusTimes, Axpby<f32>>,
    kernel_primitives::algorithms::spmm<Complex<f32>, Complex<f32>, u32, OfEntry<Conjugate, PlusTimes>, Overwrite>,
    kernel_primitives::algorithms::spmv<f16, Counting<f32>, u64, PlusTimes, Axpby<f32>>,
    kernel_primitives::algorithms::spmv<Complex<f64>, Complex<f64>, u32, PlusTimes, Axpby<Complex<f64>>>,
);
