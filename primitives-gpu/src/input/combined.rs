//! Inputs that are computed from items: mapped and zipped ones.

use core::mem::offset_of;

use super::{AsSource, Sealed, Source, at_most, each};
use crate::element::KernelParam;
use crate::functor::UnaryFn;
use crate::simt::Block;
use crate::view::Layout;

/// The results of a function of items; from [`map`].
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Map<S, F> {
    #[doc(hidden)]
    pub source: S,
    #[doc(hidden)]
    pub f: F,
}

/// Returns the input `f` of each item.
pub fn map<S, F>(source: S, f: F) -> Map<S, F> {
    Map { source, f }
}

impl<S, F> Sealed for Map<S, F> {}
impl<S: Source, F: UnaryFn<S::Item, Output: Copy> + KernelParam> AsSource for Map<S, F> {
    type Source = Self;
}

// SAFETY: `repr(C)`, of a source and a parameter.
unsafe impl<S: Source, F: UnaryFn<S::Item, Output: Copy> + KernelParam> Source for Map<S, F> {
    type Item = F::Output;
    type Short = Self;
    const LAYOUT: Layout = Layout::of::<Self>("map").with("source", offset_of!(Self, source), S::LAYOUT).with(
        "f",
        offset_of!(Self, f),
        F::LAYOUT,
    );
    const VECTOR: usize = at_most(S::VECTOR, size_of::<F::Output>());
    const IN_FLIGHT: usize = S::IN_FLIGHT;

    #[inline(always)]
    fn len(&self) -> usize {
        self.source.len()
    }

    #[inline(always)]
    #[track_caller]
    unsafe fn item(&self, cx: Block<'_>, index: usize) -> F::Output {
        // SAFETY: the caller's contract.
        self.f.apply(unsafe { self.source.item(cx, index) })
    }

    #[inline(always)]
    #[track_caller]
    unsafe fn items<const N: usize>(&self, cx: Block<'_>, first: usize) -> [F::Output; N] {
        // SAFETY: the caller's contract.
        let items: [S::Item; N] = unsafe { self.source.items(cx, first) };
        each!(i < N, self.f.apply(items[i]))
    }

    #[inline(always)]
    fn is_aligned<const N: usize>(&self, cx: Block<'_>, first: usize) -> bool {
        self.source.is_aligned::<N>(cx, first)
    }

    #[inline(always)]
    #[track_caller]
    unsafe fn vector<const N: usize>(&self, cx: Block<'_>, first: usize) -> [F::Output; N] {
        // SAFETY: the caller's contract.
        let items: [S::Item; N] = unsafe { self.source.vector(cx, first) };
        each!(i < N, self.f.apply(items[i]))
    }
}

/// Pairs of items; from [`zip`].
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Zip<S, R> {
    #[doc(hidden)]
    pub first: S,
    #[doc(hidden)]
    pub second: R,
}

/// Returns the pairs of the items of both, as many as both have; or the pairs of the places, for an [`output`](crate::output).
pub fn zip<S, R>(first: S, second: R) -> Zip<S, R> {
    Zip { first, second }
}

impl<S, R> Sealed for Zip<S, R> {}
impl<S: Source, R: Source> AsSource for Zip<S, R> {
    type Source = Self;
}

// SAFETY: `repr(C)`, of sources.
unsafe impl<S: Source, R: Source> Source for Zip<S, R> {
    type Item = (S::Item, R::Item);
    type Short = Self;
    const LAYOUT: Layout = Layout::of::<Self>("zip").with("first", offset_of!(Self, first), S::LAYOUT).with(
        "second",
        offset_of!(Self, second),
        R::LAYOUT,
    );
    const VECTOR: usize = at_most(if S::VECTOR < R::VECTOR { S::VECTOR } else { R::VECTOR }, size_of::<Self::Item>());
    const IN_FLIGHT: usize = if S::IN_FLIGHT > R::IN_FLIGHT { S::IN_FLIGHT } else { R::IN_FLIGHT };

    #[inline(always)]
    fn len(&self) -> usize {
        self.first.len().min(self.second.len())
    }

    #[inline(always)]
    #[track_caller]
    unsafe fn item(&self, cx: Block<'_>, index: usize) -> Self::Item {
        // SAFETY: the caller's contract.
        unsafe { (self.first.item(cx, index), self.second.item(cx, index)) }
    }

    #[inline(always)]
    #[track_caller]
    unsafe fn items<const N: usize>(&self, cx: Block<'_>, first: usize) -> [Self::Item; N] {
        // SAFETY: the caller's contract.
        let (a, b): ([S::Item; N], [R::Item; N]) =
            unsafe { (self.first.items(cx, first), self.second.items(cx, first)) };
        each!(i < N, (a[i], b[i]))
    }

    #[inline(always)]
    fn is_aligned<const N: usize>(&self, cx: Block<'_>, first: usize) -> bool {
        self.first.is_aligned::<N>(cx, first) && self.second.is_aligned::<N>(cx, first)
    }

    #[inline(always)]
    #[track_caller]
    unsafe fn vector<const N: usize>(&self, cx: Block<'_>, first: usize) -> [Self::Item; N] {
        // SAFETY: the caller's contract.
        let (a, b): ([S::Item; N], [R::Item; N]) =
            unsafe { (self.first.vector(cx, first), self.second.vector(cx, first)) };
        each!(i < N, (a[i], b[i]))
    }
}
