//! Reductions in two passes.

use core::marker::PhantomData;

use super::Reduction;
use crate::KernelParam;
use crate::simt::Block;

/// The first of a reduction's two passes. It reduces a part of the items, and its result is the contribution of that part, which
/// [`LastPass`] combines.
///
/// ```
/// use kernel_primitives::functor::{FirstPass, LastPass, Mean, Reduction};
///
/// let parts = [FirstPass(Mean).of(&[1.0f32, 2.0]), FirstPass(Mean).of(&[6.0f32])];
/// assert_eq!(LastPass::<Mean, f32>::new(Mean, 3).of(&parts), 3.0);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, KernelParam)]
#[repr(transparent)]
pub struct FirstPass<R>(pub R);

impl<T, R: Reduction<T>> Reduction<T> for FirstPass<R> {
    type Accum = R::Accum;
    type Output = R::Accum;
    #[inline(always)]
    fn identity(&self) -> R::Accum {
        self.0.identity()
    }
    #[inline(always)]
    fn pre(&self, item: T, index: u64) -> R::Accum {
        self.0.pre(item, index)
    }
    #[inline(always)]
    fn combine(&self, a: R::Accum, b: R::Accum) -> R::Accum {
        self.0.combine(a, b)
    }
    #[inline(always)]
    fn post(&self, total: R::Accum, _: u64) -> R::Accum {
        total
    }
    #[inline(always)]
    #[track_caller]
    fn warp(&self, cx: Block<'_>, mask: u32, value: R::Accum) -> Option<R::Accum> {
        self.0.warp(cx, mask, value)
    }
}

/// The last of a reduction's two passes. It combines the contributions of parts of the items, which are results of [`FirstPass`], to the
/// result of all items. `T` is the type of the items.
#[derive(Debug, PartialEq, Eq, KernelParam)]
#[repr(C)]
pub struct LastPass<R, T> {
    reduction: R,
    count: u64,
    item: PhantomData<fn(T)>,
}

// This holds for any type of items.
impl<R: Copy, T> Clone for LastPass<R, T> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}
impl<R: Copy, T> Copy for LastPass<R, T> {}

impl<R, T> LastPass<R, T> {
    /// The last pass of `reduction` over `count` items.
    #[inline(always)]
    pub fn new(reduction: R, count: u64) -> Self {
        Self { reduction, count, item: PhantomData }
    }
}

impl<T, R: Reduction<T>> Reduction<R::Accum> for LastPass<R, T> {
    type Accum = R::Accum;
    type Output = R::Output;
    #[inline(always)]
    fn identity(&self) -> R::Accum {
        self.reduction.identity()
    }
    #[inline(always)]
    fn pre(&self, item: R::Accum, _: u64) -> R::Accum {
        item
    }
    #[inline(always)]
    fn combine(&self, a: R::Accum, b: R::Accum) -> R::Accum {
        self.reduction.combine(a, b)
    }
    #[inline(always)]
    #[track_caller]
    fn post(&self, total: R::Accum, _: u64) -> R::Output {
        self.reduction.post(total, self.count)
    }
    #[inline(always)]
    #[track_caller]
    fn warp(&self, cx: Block<'_>, mask: u32, value: R::Accum) -> Option<R::Accum> {
        self.reduction.warp(cx, mask, value)
    }
}
