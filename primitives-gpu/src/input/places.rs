//! Items at other indices: permuted, strided, reversed.

use core::mem::offset_of;

use super::{AsSource, Input, Sealed, Source, each};
use crate::element::{ConvertTo, Integer};
use crate::simt::Block;
use crate::view::Layout;

/// Items in the order of indices; from [`permutation`].
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Permutation<S, I> {
    #[doc(hidden)]
    pub source: S,
    #[doc(hidden)]
    pub at: I,
}

/// Returns the items of `source` at the indices `at`, which are integers of any type; or its places, for an [`output`](crate::output). An
/// index out of bounds is a fault.
pub fn permutation<S, I>(source: S, at: I) -> Permutation<S, I> {
    Permutation { source, at }
}

impl<S, I> Sealed for Permutation<S, I> {}
impl<S: Source, I: Source<Item: Integer + ConvertTo<usize>>> AsSource for Permutation<S, I> {
    type Source = Self;
}

// SAFETY: `repr(C)`, of sources.
unsafe impl<S: Source, I: Source<Item: Integer + ConvertTo<usize>>> Source for Permutation<S, I> {
    type Item = S::Item;
    type Short = Self;
    const LAYOUT: Layout = Layout::of::<Self>("permutation").with("source", offset_of!(Self, source), S::LAYOUT).with(
        "at",
        offset_of!(Self, at),
        I::LAYOUT,
    );
    const VECTOR: usize = if S::VECTOR < I::VECTOR { S::VECTOR } else { I::VECTOR };
    // Each item is a read of its own. Two vectors of four are enough reads in flight, and leave enough warps for short inputs.
    const IN_FLIGHT: usize = if Self::VECTOR >= 4 { 2 } else { 4 };

    #[inline(always)]
    fn len(&self) -> usize {
        self.at.len()
    }

    #[inline(always)]
    #[track_caller]
    unsafe fn item(&self, cx: Block<'_>, index: usize) -> S::Item {
        // SAFETY: the caller's contract, for the memory.
        unsafe { Input::from_raw(cx, self.source).at(self.at.item(cx, index).convert()) }
    }

    #[inline(always)]
    #[track_caller]
    unsafe fn items<const N: usize>(&self, cx: Block<'_>, first: usize) -> [S::Item; N] {
        // SAFETY: the caller's contract.
        let at: [I::Item; N] = unsafe { self.at.items(cx, first) };
        // SAFETY: the caller's contract, for the memory.
        let source = unsafe { Input::from_raw(cx, self.source) };
        each!(i < N, source.at(at[i].convert()))
    }

    /// All indices are read before the first of them is compared with the length, which reads cannot pass.
    #[inline(always)]
    #[track_caller]
    unsafe fn vectors<const N: usize, const M: usize>(
        &self,
        cx: Block<'_>,
        first: usize,
        stride: usize,
    ) -> [[S::Item; N]; M] {
        // SAFETY: the caller's contract.
        let at: [[I::Item; N]; M] = unsafe { self.at.vectors(cx, first, stride) };
        // SAFETY: the caller's contract, for the memory.
        let source = unsafe { Input::from_raw(cx, self.source) };
        each!(m < M, each!(i < N, source.at(at[m][i].convert())))
    }
}

/// Every `step`th item; from [`strided`].
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Strided<S> {
    #[doc(hidden)]
    pub source: S,
    #[doc(hidden)]
    pub step: usize,
    // The launch knows this number, so no thread divides.
    #[doc(hidden)]
    pub len: usize,
}

/// Returns the items at 0, `step`, `2 * step` and so on, or all items if the step is 0 or 1; or the places, for an
/// [`output`](crate::output).
pub fn strided<S>(source: S, step: usize) -> Strided<S> {
    Strided { source, step: step.max(1), len: 0 }
}

impl<S> Sealed for Strided<S> {}
impl<S: Source> AsSource for Strided<S> {
    type Source = Self;
}

// SAFETY: `repr(C)`, of a source and numbers.
unsafe impl<S: Source> Source for Strided<S> {
    type Item = S::Item;
    type Short = Self;
    const LAYOUT: Layout = Layout::of::<Self>("strided").with("source", offset_of!(Self, source), S::LAYOUT);
    const VECTOR: usize = 1;
    const IN_FLIGHT: usize = 4;

    #[inline(always)]
    fn len(&self) -> usize {
        self.len
    }

    #[inline(always)]
    #[track_caller]
    unsafe fn item(&self, cx: Block<'_>, index: usize) -> S::Item {
        // SAFETY: the caller's contract.
        unsafe { self.source.item(cx, index * self.step) }
    }
}

/// Items from the last to the first; from [`reversed`].
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Reversed<S> {
    #[doc(hidden)]
    pub source: S,
}

/// Returns the items in reverse order; or the places, for an [`output`](crate::output).
pub fn reversed<S>(source: S) -> Reversed<S> {
    Reversed { source }
}

impl<S> Sealed for Reversed<S> {}
impl<S: Source> AsSource for Reversed<S> {
    type Source = Self;
}

// SAFETY: `repr(C)`, of a source.
unsafe impl<S: Source> Source for Reversed<S> {
    type Item = S::Item;
    type Short = Self;
    const LAYOUT: Layout = Layout::of::<Self>("reversed").with("source", offset_of!(Self, source), S::LAYOUT);
    const VECTOR: usize = S::VECTOR;
    const IN_FLIGHT: usize = S::IN_FLIGHT;

    #[inline(always)]
    fn len(&self) -> usize {
        self.source.len()
    }

    #[inline(always)]
    #[track_caller]
    unsafe fn item(&self, cx: Block<'_>, index: usize) -> S::Item {
        // SAFETY: the caller's contract.
        unsafe { self.source.item(cx, self.source.len() - 1 - index) }
    }

    #[inline(always)]
    #[track_caller]
    unsafe fn items<const N: usize>(&self, cx: Block<'_>, first: usize) -> [S::Item; N] {
        // SAFETY: the caller's contract: the last of them is at the lowest place.
        let items: [S::Item; N] = unsafe { self.source.items(cx, self.source.len() - N - first) };
        each!(i < N, items[N - 1 - i])
    }
}
