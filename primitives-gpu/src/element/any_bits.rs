//! Elements whose bits have not been checked.

use core::mem::{MaybeUninit, size_of};
use core::slice;

use super::{Element, KernelParam};

/// The bits of an element `T`, whether they are a value or not. They are read from memory that perhaps no one has written.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct AnyBits<T: Element>(MaybeUninit<T>);

// SAFETY: transparent over a parameter.
unsafe impl<T: Element> KernelParam for AnyBits<T> {}
// SAFETY: transparent over an element, and any bits are one.
unsafe impl<T: Element> Element for AnyBits<T> {
    const ZERO: Self = Self(MaybeUninit::new(T::ZERO));
}

impl<T: Element> AnyBits<T> {
    /// The bits of a value.
    #[inline(always)]
    pub(crate) fn of(value: T) -> Self {
        Self(MaybeUninit::new(value))
    }

    /// Returns the value, or zero if the bits are no value.
    pub(crate) fn or_zero(self) -> T {
        // SAFETY: the bits are a value's, or were read from device memory, where all are initialised; an element has no
        // padding. They are taken for a value only if they are one.
        unsafe {
            let bytes = slice::from_raw_parts((&raw const self.0).cast::<u8>(), size_of::<T>());
            if T::ANY_BITS || T::valid_bits(bytes) { self.0.assume_init() } else { T::ZERO }
        }
    }
}
