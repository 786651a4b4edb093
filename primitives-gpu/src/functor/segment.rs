//! Reductions of runs.

use super::{BinaryFn, Reducer};
use crate::KernelParam;
use crate::element::{Element, Segmented};

/// The reduction of each run by itself. It combines parts of a sequence of runs, each a [`Segmented`], by a reducer of the items. It is
/// associative if that reducer is, and it is not commutative.
///
/// ```
/// use kernel_primitives::element::Segmented;
/// use kernel_primitives::functor::BySegment;
/// use kernel_primitives::prelude::*;
///
/// let (open, two) = (Segmented { heads: 0, total: 5 }, Segmented { heads: 2, total: 3 });
/// assert_eq!(BySegment(Add).apply(open, two), two);
/// assert_eq!(BySegment(Add).apply(two, open), Segmented { heads: 2, total: 8 });
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, KernelParam)]
#[repr(transparent)]
pub struct BySegment<R>(pub R);

impl<T: Element, R: Reducer<T>> BinaryFn<Segmented<T>> for BySegment<R> {
    type Output = Segmented<T>;
    #[inline(always)]
    #[track_caller]
    fn apply(&self, a: Segmented<T>, b: Segmented<T>) -> Segmented<T> {
        let total = if b.heads > 0 { b.total } else { self.0.apply(a.total, b.total) };
        Segmented { heads: a.heads + b.heads, total }
    }
}

impl<T: Element, R: Reducer<T>> Reducer<Segmented<T>> for BySegment<R> {
    #[inline(always)]
    fn identity(&self) -> Segmented<T> {
        Segmented { heads: 0, total: self.0.identity() }
    }
}
