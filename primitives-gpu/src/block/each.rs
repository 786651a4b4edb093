//! One operation on each item of an array.

use crate::element::KernelParam;
use crate::functor::{BinaryFn, Reducer};
use crate::thread::binary;
use crate::view::Layout;

/// The reduction of arrays item by item: what makes of a collective of one value a collective of `N` independent ones that
/// share their barriers.
///
/// ```
/// use kernel_primitives::block::Each;
/// use kernel_primitives::prelude::*;
/// assert_eq!(Each(Max).apply([1, 5], [3, 4]), [3, 5]);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct Each<R>(pub R);

// SAFETY: transparent over a parameter.
unsafe impl<R: KernelParam> KernelParam for Each<R> {
    const LAYOUT: Layout = R::LAYOUT;
}

impl<T: Copy, R: Reducer<T>, const N: usize> BinaryFn<[T; N]> for Each<R> {
    type Output = [T; N];
    #[inline(always)]
    fn apply(&self, a: [T; N], b: [T; N]) -> [T; N] {
        binary(&a, &b, &self.0)
    }
}

impl<T: Copy, R: Reducer<T>, const N: usize> Reducer<[T; N]> for Each<R> {
    #[inline(always)]
    fn identity(&self) -> [T; N] {
        [self.0.identity(); N]
    }
}
