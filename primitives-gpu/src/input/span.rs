//! Elements of a buffer.

use core::marker::PhantomData;
use core::mem::size_of;

use super::{AsSource, Sealed, Source, vector};
use crate::element::Element;
use crate::simt::Block;
#[cfg(not(target_arch = "nvptx64"))]
use crate::view::RawView;
use crate::view::{Elements, Layout, SharedArray};

/// Elements of a buffer.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Span<T> {
    // A pointer in a parameter by value would lose the information that it points to global memory.
    address: u64,
    len: usize,
    _elements: PhantomData<fn() -> T>,
}

impl<T: Element> Span<T> {
    /// The elements of a view.
    #[doc(hidden)]
    #[cfg(not(target_arch = "nvptx64"))]
    pub fn new(view: RawView<T>) -> Self {
        Self { address: view.address().expose_provenance() as u64, len: view.len(), _elements: PhantomData }
    }

    /// # Safety
    /// The memory is valid for `'k`.
    #[inline(always)]
    unsafe fn elements<'k>(&self, cx: Block<'k>) -> Elements<'k, T> {
        // SAFETY: the caller's contract.
        unsafe { Elements::at_address(cx, self.address, self.len) }
    }
}

impl<T> Sealed for Span<T> {}
impl<T: Element> AsSource for Span<T> {
    type Source = Self;
}

// SAFETY: an address and a length.
unsafe impl<T: Element> Source for Span<T> {
    type Item = T;
    type Short = T;
    const LAYOUT: Layout = crate::view::view_layout::<T>();
    const IN_MEMORY: bool = true;
    const VECTOR: usize = vector::<T>();
    const IN_FLIGHT: usize = if vector::<T>() * size_of::<T>() >= 16 { 1 } else { 4 };

    #[inline(always)]
    fn len(&self) -> usize {
        self.len
    }

    #[inline(always)]
    fn address(&self) -> *const () {
        core::ptr::without_provenance(self.address as usize)
    }

    #[inline(always)]
    #[track_caller]
    unsafe fn item(&self, cx: Block<'_>, index: usize) -> T {
        // SAFETY: the caller's contract.
        unsafe { self.elements(cx).read_inside(index) }
    }

    #[inline(always)]
    #[track_caller]
    unsafe fn items<const N: usize>(&self, cx: Block<'_>, first: usize) -> [T; N] {
        // SAFETY: the caller's contract.
        unsafe { self.elements(cx).read_items_inside(first) }
    }

    #[inline(always)]
    #[track_caller]
    unsafe fn copy<const N: usize>(&self, cx: Block<'_>, first: usize, to: SharedArray<'_, T>, at: usize) {
        // SAFETY: the caller's contract.
        unsafe { self.elements(cx).copy_inside::<N>(first, to, at) };
    }

    #[inline(always)]
    fn is_aligned<const N: usize>(&self, cx: Block<'_>, first: usize) -> bool {
        // SAFETY: only the address is looked at.
        unsafe { self.elements(cx) }.is_aligned::<N>(first)
    }

    #[inline(always)]
    #[track_caller]
    unsafe fn vector<const N: usize>(&self, cx: Block<'_>, first: usize) -> [T; N] {
        // SAFETY: the caller's contract.
        unsafe { self.elements(cx).read_vector_inside(first) }
    }

    #[inline(always)]
    #[track_caller]
    unsafe fn copy_vector<const N: usize>(&self, cx: Block<'_>, first: usize, to: SharedArray<'_, T>, at: usize) {
        // SAFETY: the caller's contract.
        unsafe { self.elements(cx).copy_vector_inside::<N>(first, to, at) };
    }

    #[inline(always)]
    #[track_caller]
    unsafe fn copy_any<const N: usize>(&self, cx: Block<'_>, first: usize, to: SharedArray<'_, T>, at: usize) {
        // SAFETY: the caller's contract.
        unsafe { self.elements(cx).copy_inside::<N>(first, to, at) };
    }
}
