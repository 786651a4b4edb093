//! A functor for each item of an array.

use crate::element::KernelParam;
use crate::functor::{BinaryFn, NaryFn, Reducer, TernaryFn, UnaryFn};
use crate::thread::{any, binary, ternary, unary};
use crate::view::Layout;

/// A functor of arrays that applies a functor of items to each item. With it, the elementwise primitives compute rows of items,
/// `[[T; NX]; NY]`, and a collective of one value becomes `N` independent collectives that share their barriers.
///
/// ```
/// use kernel_primitives::block::Each;
/// use kernel_primitives::prelude::*;
/// assert_eq!(Each(Max).apply([1, 5], [3, 4]), [3, 5]);
/// assert_eq!(elementwise_unary(&[[1, 2], [3, 4]], Each(|x: i32| x * x)), [[1, 4], [9, 16]]);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct Each<F>(pub F);

// SAFETY: transparent over a parameter.
unsafe impl<F: KernelParam> KernelParam for Each<F> {
    const LAYOUT: Layout = F::LAYOUT;
}

impl<A: Copy, F: UnaryFn<A>, const N: usize> UnaryFn<[A; N]> for Each<F> {
    type Output = [F::Output; N];
    #[inline(always)]
    #[track_caller]
    fn apply(&self, a: [A; N]) -> [F::Output; N] {
        unary(&a, &self.0)
    }
}

impl<A: Copy, B: Copy, F: BinaryFn<A, B>, const N: usize> BinaryFn<[A; N], [B; N]> for Each<F> {
    type Output = [F::Output; N];
    #[inline(always)]
    #[track_caller]
    fn apply(&self, a: [A; N], b: [B; N]) -> [F::Output; N] {
        binary(&a, &b, &self.0)
    }
}

impl<A: Copy, B: Copy, C: Copy, F: TernaryFn<A, B, C>, const N: usize> TernaryFn<[A; N], [B; N], [C; N]> for Each<F> {
    type Output = [F::Output; N];
    #[inline(always)]
    #[track_caller]
    fn apply(&self, a: [A; N], b: [B; N], c: [C; N]) -> [F::Output; N] {
        ternary(&a, &b, &c, &self.0)
    }
}

impl<T: Copy, F: NaryFn<T, ARITY>, const N: usize, const ARITY: usize> NaryFn<[T; N], ARITY> for Each<F> {
    type Output = [F::Output; N];
    #[inline(always)]
    #[track_caller]
    fn apply(&self, arguments: [[T; N]; ARITY]) -> [F::Output; N] {
        any(&arguments, &self.0)
    }
}

impl<T: Copy, R: Reducer<T>, const N: usize> Reducer<[T; N]> for Each<R> {
    #[inline(always)]
    fn identity(&self) -> [T; N] {
        [self.0.identity(); N]
    }
    #[inline(always)]
    fn of_none(&self) -> [T; N] {
        [self.0.of_none(); N]
    }
}
