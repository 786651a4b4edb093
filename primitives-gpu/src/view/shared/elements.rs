//! Element access without a collective: arrays, and the rest of the block's shared memory.

use core::marker::PhantomData;
use core::mem::{align_of, size_of};

use super::array::SharedArray;
use super::{Shared, SharedStorage, StorageAccess, USED, arena};
use crate::element::Element;
#[cfg(not(target_arch = "nvptx64"))]
use crate::simt::emulated::{AccessKind, Space};
use crate::simt::{AtomicElement, AtomicRef, Block};
use crate::view::raw::{self, Borrowed};

/// Element access. Reads and writes by different threads need a [barrier](Block::barrier) between them. Without one, a read returns an old
/// or a new value, and the emulator reports a race.
impl<'k, T: Element, const N: usize> Shared<'k, [T; N]> {
    /// The number of elements.
    #[inline(always)]
    #[allow(clippy::len_without_is_empty, reason = "the length is in the type")]
    pub fn len(&self) -> usize {
        N
    }

    /// Reads an element. An index outside is a fault.
    ///
    /// Shared memory starts undefined, so `T` must be an element whose bit patterns are all values: `u8` rather than `bool`.
    #[inline(always)]
    #[track_caller]
    pub fn get(&self, index: usize) -> T {
        const { assert!(T::ANY_BITS, "shared memory starts undefined, and not all bytes are values of this element") };
        // SAFETY: any bytes are a value.
        unsafe { self.get_written(index) }
    }

    /// Reads an element of any type. An index outside is a fault.
    ///
    /// # Safety
    /// A thread of the block has written the element, and a barrier lies in between.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn get_written(&self, index: usize) -> T {
        // SAFETY: the caller's contract.
        unsafe { shared_get(self.cx, self.address.cast(), N, index) }
    }

    /// Writes an element. An index outside is a fault.
    #[inline(always)]
    #[track_caller]
    pub fn set(&mut self, index: usize, value: T) {
        shared_set(self.cx, self.address.cast(), N, index, value);
    }

    /// An element for atomic accesses, at block scope unless set otherwise. An index outside is a fault. It borrows the memory. So the
    /// memory can be used for another phase, or be written in another way, only after the last use.
    #[inline(always)]
    #[track_caller]
    pub fn at(&self, index: usize) -> AtomicRef<'_, T>
    where
        T: AtomicElement,
    {
        shared_at(self.cx, self.address.cast(), N, index)
    }
}

/// The rest of the block's shared memory: the bytes that the launch asked for in addition to the kernel's [`Shared`] parameters.
///
/// A kernel has at most one. Its length in bytes is `Dims::shared_bytes` of the launch. Access is as for [`Shared`].
pub struct SharedSlice<'k, T> {
    cx: Block<'k>,
    address: *mut T,
    len: usize,
    _borrowed: Borrowed<'k, T>,
}

impl<'k, T: Element> SharedSlice<'k, T> {
    /// The elements from `offset` bytes into the block's arena to its end.
    ///
    /// # Safety
    /// `offset` is a multiple of 16, and no other view overlaps.
    pub unsafe fn from_arena(cx: Block<'k>, offset: usize) -> Self {
        const { assert!(align_of::<T>() <= 16, "shared memory is aligned to 16 bytes at most") };
        const { assert!(size_of::<T>() > 0, "elements of shared memory have a size") };
        // In 32 bits, so that no register has an upper half of zeros.
        #[cfg(target_arch = "nvptx64")]
        let bytes = crate::simt::nvptx::dynamic_shared_len().saturating_sub(offset as u32) as usize;
        #[cfg(not(target_arch = "nvptx64"))]
        let bytes = cx.lane_state().shared_len.saturating_sub(offset);
        // SAFETY: the caller's contract; the arena has `bytes` bytes from there.
        let address = unsafe { arena(cx).add(offset).cast() };
        Self { cx, address, len: bytes / size_of::<T>(), _borrowed: PhantomData }
    }

    /// All of it as one storage, for a kernel whose launch says how much it needs. If there is less memory than that, it is a fault.
    /// Threads may have used the elements before. So the first collective on the storage begins with a barrier.
    #[inline(always)]
    #[track_caller]
    pub fn storage<S: SharedStorage>(self) -> Shared<'k, S> {
        // SAFETY: the first collective begins with a barrier.
        Shared { last: USED, ..unsafe { self.unused_storage() } }
    }

    /// Works as [`storage`](Self::storage), but the first collective begins without a barrier.
    ///
    /// # Safety
    /// No thread has used the elements.
    #[doc(hidden)]
    #[inline(always)]
    #[track_caller]
    pub unsafe fn unused_storage<S: SharedStorage>(self) -> Shared<'k, S> {
        const { assert!(S::ALIGN <= 16, "shared memory is aligned to 16 bytes at most") };
        const { assert!(!matches!(S::ACCESS, StorageAccess::Alone), "this storage shares its memory with no other use") };
        self.cx.require_at_most(S::BYTES, self.len * size_of::<T>());
        // SAFETY: so many bytes, aligned to 16, which are this view's.
        unsafe { Shared::at_address(self.cx, self.address.cast()) }
    }

    /// All of it as an array, for collectives.
    #[inline(always)]
    pub fn array(&self) -> SharedArray<'k, T> {
        SharedArray { cx: self.cx, address: self.address, len: self.len, _borrowed: PhantomData }
    }

    /// The number of elements.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if the launch asked for none.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Reads an element whose bit patterns are all values. An index outside is a fault.
    #[inline(always)]
    #[track_caller]
    pub fn get(&self, index: usize) -> T {
        const { assert!(T::ANY_BITS, "shared memory starts undefined, and not all bytes are values of this element") };
        // SAFETY: any bytes are a value.
        unsafe { shared_get(self.cx, self.address, self.len, index) }
    }

    /// Writes an element. An index outside is a fault.
    #[inline(always)]
    #[track_caller]
    pub fn set(&mut self, index: usize, value: T) {
        shared_set(self.cx, self.address, self.len, index, value);
    }

    /// An element for atomic accesses, at block scope unless set otherwise. An index outside is a fault. It borrows the memory. So the
    /// memory can be used for another phase, or be written in another way, only after the last use.
    #[inline(always)]
    #[track_caller]
    pub fn at(&self, index: usize) -> AtomicRef<'_, T>
    where
        T: AtomicElement,
    {
        shared_at(self.cx, self.address, self.len, index)
    }
}

/// # Safety
/// The element's bytes are a value of `T`.
#[track_caller]
unsafe fn shared_get<T: Element>(cx: Block<'_>, address: *mut T, len: usize, index: usize) -> T {
    let address = raw::element(cx, address, len, index);
    #[cfg(not(target_arch = "nvptx64"))]
    {
        raw::report(cx, AccessKind::Read, Space::Shared, address, 1);
        // SAFETY: inside the storage; the caller's contract.
        unsafe { raw::load(address) }
    }
    // SAFETY: inside the storage; the caller's contract. Volatile, so that a kernel that lacks a barrier reads an old or a
    // new value and no optimiser concludes anything from the race.
    #[cfg(target_arch = "nvptx64")]
    unsafe {
        address.read_volatile()
    }
}

#[track_caller]
pub(super) fn shared_set<T: Element>(cx: Block<'_>, address: *mut T, len: usize, index: usize, value: T) {
    // Evaluates what a generic element asserts about its padding.
    const { _ = T::ANY_BITS };
    let address = raw::element(cx, address, len, index);
    #[cfg(not(target_arch = "nvptx64"))]
    {
        raw::report(cx, AccessKind::Write, Space::Shared, address, 1);
        // SAFETY: inside the storage.
        unsafe { raw::store(address, value) }
    }
    // SAFETY: inside the storage; volatile as in `shared_get`.
    #[cfg(target_arch = "nvptx64")]
    unsafe {
        address.write_volatile(value)
    }
}

#[inline(always)]
#[track_caller]
fn shared_at<'k, T: AtomicElement>(cx: Block<'k>, address: *mut T, len: usize, index: usize) -> AtomicRef<'k, T> {
    let address = raw::element(cx, address, len, index);
    // SAFETY: inside the storage.
    unsafe { AtomicRef::new(cx, address, true) }
}
