//! Inputs without memory: one value, and consecutive numbers.

use core::mem::offset_of;

use super::{AsSource, Sealed, Source, vector};
use crate::element::{Arithmetic, ConvertTo, KernelParam};
use crate::simt::Block;
use crate::view::Layout;

/// One value many times; from [`constant`].
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Constant<T> {
    value: T,
    len: usize,
}

/// Returns an input of `len` items, each of which is `value`.
pub fn constant<T: KernelParam>(value: T, len: usize) -> Constant<T> {
    Constant { value, len }
}

impl<T> Constant<T> {
    /// The number of items.
    #[doc(hidden)]
    pub fn items(&self) -> usize {
        self.len
    }
}

impl<T> Sealed for Constant<T> {}
impl<T: KernelParam> AsSource for Constant<T> {
    type Source = Self;
}

// SAFETY: `repr(C)`, of parameters.
unsafe impl<T: KernelParam> Source for Constant<T> {
    type Item = T;
    type Short = Self;
    const LAYOUT: Layout = Layout::of::<Self>("constant").with("value", offset_of!(Self, value), T::LAYOUT);
    const VECTOR: usize = vector::<T>();
    const IN_FLIGHT: usize = 0;

    #[inline(always)]
    fn len(&self) -> usize {
        self.len
    }

    #[inline(always)]
    unsafe fn item(&self, _: Block<'_>, _: usize) -> T {
        self.value
    }
}

/// Consecutive numbers; from [`counting`].
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Counting<T> {
    first: T,
    len: usize,
}

/// Returns an input of the `len` numbers from `first`. An integer wraps.
pub fn counting<T: Arithmetic + KernelParam>(first: T, len: usize) -> Counting<T>
where
    usize: ConvertTo<T>,
{
    Counting { first, len }
}

impl<T> Counting<T> {
    /// The number of items.
    #[doc(hidden)]
    pub fn items(&self) -> usize {
        self.len
    }
}

impl<T> Sealed for Counting<T> {}
impl<T: Arithmetic + KernelParam> AsSource for Counting<T>
where
    usize: ConvertTo<T>,
{
    type Source = Self;
}

// SAFETY: `repr(C)`, of parameters.
unsafe impl<T: Arithmetic + KernelParam> Source for Counting<T>
where
    usize: ConvertTo<T>,
{
    type Item = T;
    type Short = Self;
    const LAYOUT: Layout = Layout::of::<Self>("counting").with("first", offset_of!(Self, first), T::LAYOUT);
    const VECTOR: usize = vector::<T>();
    const IN_FLIGHT: usize = 0;

    #[inline(always)]
    fn len(&self) -> usize {
        self.len
    }

    #[inline(always)]
    unsafe fn item(&self, _: Block<'_>, index: usize) -> T {
        self.first.add(index.convert())
    }
}
