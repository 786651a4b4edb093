//! Parts of a storage for collectives, and asynchronous copies into them.

use core::mem::size_of;
#[cfg(not(target_arch = "nvptx64"))]
use core::panic::Location;

use super::elements::shared_set;
use crate::element::{AnyBits, Element};
#[cfg(not(target_arch = "nvptx64"))]
use crate::simt::FaultKind;
#[cfg(not(target_arch = "nvptx64"))]
use crate::simt::emulated::{AccessKind, Space};
use crate::simt::{AtomicElement, AtomicRef, Block};
use crate::view::raw::{self, Borrowed};

/// Elements in a part of a storage, for collectives. They are uninitialised. Accesses are not checked on the GPU. The emulator sees them,
/// and checks limits and alignment.
///
/// The accesses are plain loads and stores, which the compiler may combine and reorder between barriers.
pub struct SharedArray<'k, T> {
    pub(super) cx: Block<'k>,
    pub(super) address: *mut T,
    pub(super) len: usize,
    pub(super) _borrowed: Borrowed<'k, T>,
}

impl<T> Clone for SharedArray<'_, T> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for SharedArray<'_, T> {}

impl<'k, T: Element> SharedArray<'k, T> {
    /// Reads an element.
    ///
    /// # Safety
    /// `index` is inside. A thread of the block has written a `T` there, the same thread or one that a barrier lies
    /// between, and no thread writes it until the next barrier. For the lanes of one warp,
    /// [`Block::sync_warp`] is as good as a barrier.
    #[track_caller]
    pub unsafe fn load(self, index: usize) -> T {
        // SAFETY: the caller's contract.
        unsafe {
            let address = self.element(index, 1);
            #[cfg(not(target_arch = "nvptx64"))]
            raw::report(self.cx, AccessKind::Read, Space::Shared, address, 1);
            load_checked(address)
        }
    }

    /// The distance of successive elements for [`load_at`](Self::load_at): the bytes of an element, or 1 if it has none.
    #[doc(hidden)]
    pub const STEP: u32 = if size_of::<T>() > 0 { size_of::<T>() as u32 } else { 1 };

    /// Reads the element at `offset / STEP`. So an index can step by elements without a multiplication.
    ///
    /// # Safety
    /// As for [`load`](Self::load); and `offset` is a multiple of [`STEP`](Self::STEP).
    #[doc(hidden)]
    #[track_caller]
    pub unsafe fn load_at(self, offset: usize) -> T {
        // SAFETY: the caller's contract. An element of no bytes is anywhere.
        unsafe {
            #[cfg(not(target_arch = "nvptx64"))]
            return self.load(offset / const { Self::STEP as usize });
            #[cfg(target_arch = "nvptx64")]
            load_checked(self.address.byte_add(if const { size_of::<T>() > 0 } { offset } else { 0 }))
        }
    }

    /// Writes an element.
    ///
    /// # Safety
    /// `index` is inside, and no other thread accesses the element without a barrier in between.
    #[track_caller]
    pub unsafe fn store(self, index: usize, value: T) {
        // SAFETY: the caller's contract.
        unsafe {
            let address = self.element(index, 1);
            #[cfg(not(target_arch = "nvptx64"))]
            raw::report(self.cx, AccessKind::Write, Space::Shared, address, 1);
            raw::store(address, value);
        }
    }

    /// Writes an element whose index is data. An index outside is a fault. If several threads write the element, it keeps the value of one
    /// of them, and the emulator reports the race.
    ///
    /// # Safety
    /// No other thread reads the element without a barrier in between, and none takes it for a value that it may not be after
    /// a race: parts of it may be of several values.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn set(self, index: usize, value: T) {
        shared_set(self.cx, self.address, self.len, index, value);
    }

    /// Reads `N` elements from `index`, by accesses of up to 16 bytes. An access has the largest number of elements that divides `N` and
    /// whose bytes are a power of two.
    ///
    /// # Safety
    /// As for [`load`](Self::load), for each element; and the first lies at a multiple of the access' bytes.
    #[track_caller]
    pub unsafe fn load_items<const N: usize>(self, index: usize) -> [T; N] {
        // SAFETY: the caller's contract.
        unsafe {
            let address = self.vector::<N>(index);
            #[cfg(not(target_arch = "nvptx64"))]
            raw::report(self.cx, AccessKind::Read, Space::Shared, address, N);
            let mut items = [T::ZERO; N];
            if T::ANY_BITS {
                raw::load_aligned(address, &mut items);
            } else {
                let mut bits = [AnyBits::of(T::ZERO); N];
                raw::load_aligned(address.cast(), &mut bits);
                items = core::array::from_fn(|i| bits[i].or_zero());
            }
            items
        }
    }

    /// Begins to copy `N` elements, which have 4, 8 or 16 bytes together, from global memory to the elements from `index`. This thread can
    /// read them after [`wait_for_copies`].
    ///
    /// # Safety
    /// As for [`store_items`](Self::store_items), and as for reading `from`; and that is aligned to as many bytes.
    #[track_caller]
    pub(crate) unsafe fn copy_from<const N: usize>(self, index: usize, from: *const T) {
        // SAFETY: the caller's contract.
        unsafe {
            let address = self.vector::<N>(index);
            #[cfg(target_arch = "nvptx64")]
            crate::simt::nvptx::copy_async(address.cast(), from.cast(), N * size_of::<T>());
            #[cfg(not(target_arch = "nvptx64"))]
            {
                raw::report(self.cx, AccessKind::Write, Space::Shared, address, N);
                if self.cx.arch() >= 800 {
                    let bytes = N * size_of::<T>();
                    self.cx.lane_state().begin_copy(address.cast(), from.cast(), bytes, Location::caller());
                } else {
                    from.copy_to_nonoverlapping(address, N);
                }
            }
        }
    }

    /// Writes `N` elements from `index`, by accesses of up to 16 bytes; see [`load_items`](Self::load_items).
    ///
    /// # Safety
    /// As for [`store`](Self::store), for each element; and the first lies at a multiple of the access' bytes.
    #[track_caller]
    pub unsafe fn store_items<const N: usize>(self, index: usize, items: &[T; N]) {
        // SAFETY: the caller's contract.
        unsafe {
            let address = self.vector::<N>(index);
            #[cfg(not(target_arch = "nvptx64"))]
            raw::report(self.cx, AccessKind::Write, Space::Shared, address, N);
            raw::store_aligned(address, items);
        }
    }

    /// An element for atomic accesses, at block scope unless set otherwise.
    ///
    /// # Safety
    /// `index` is inside, and other accesses than atomic ones have a barrier in between.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn at(self, index: usize) -> AtomicRef<'k, T>
    where
        T: AtomicElement,
    {
        // SAFETY: the caller's contract.
        unsafe { AtomicRef::new(self.cx, self.element(index, 1), true) }
    }

    /// The token of the kernel.
    #[cfg(not(target_arch = "nvptx64"))]
    #[inline(always)]
    pub(in crate::view) fn cx(self) -> Block<'k> {
        self.cx
    }

    /// The address of the first element, for the hardware.
    #[inline(always)]
    pub(in crate::view) fn as_mut_ptr(self) -> *mut T {
        self.address
    }

    /// # Safety
    /// `index` to `index + N` are inside.
    #[track_caller]
    unsafe fn vector<const N: usize>(self, index: usize) -> *mut T {
        // SAFETY: the caller's contract.
        let address = unsafe { self.element(index, N) };
        #[cfg(not(target_arch = "nvptx64"))]
        raw::check_aligned::<T, N>(self.cx, address);
        address
    }
}

impl<T: Copy> SharedArray<'_, T> {
    /// Works as [`load`](Self::load), for types that need not be elements.
    ///
    /// # Safety
    /// As for [`load`](Self::load).
    #[doc(hidden)]
    #[track_caller]
    pub unsafe fn load_any(self, index: usize) -> T {
        // SAFETY: the caller's contract.
        unsafe {
            let address = self.element(index, 1);
            #[cfg(not(target_arch = "nvptx64"))]
            raw::report(self.cx, AccessKind::Read, Space::Shared, address, 1);
            address.read()
        }
    }

    /// Works as [`store`](Self::store), for types that need not be elements.
    ///
    /// # Safety
    /// As for [`store`](Self::store).
    #[doc(hidden)]
    #[track_caller]
    pub unsafe fn store_any(self, index: usize, value: T) {
        // SAFETY: the caller's contract.
        unsafe {
            let address = self.element(index, 1);
            #[cfg(not(target_arch = "nvptx64"))]
            raw::report(self.cx, AccessKind::Write, Space::Shared, address, 1);
            address.write(value);
        }
    }

    /// # Safety
    /// `index` to `index + count` are inside.
    #[track_caller]
    unsafe fn element(self, index: usize, count: usize) -> *mut T {
        #[cfg(not(target_arch = "nvptx64"))]
        if index + count > self.len {
            let args = [(index + count - 1) as u64, self.len as u64];
            self.cx.raise_outside(FaultKind::OutOfBounds, args, self.address, Location::caller());
        }
        #[cfg(target_arch = "nvptx64")]
        let _ = count;
        // SAFETY: the caller's contract.
        unsafe { self.address.add(index) }
    }
}

/// Waits for all copies to shared memory that this thread has begun.
#[track_caller]
pub(crate) fn wait_for_copies(cx: Block<'_>) {
    #[cfg(target_arch = "nvptx64")]
    {
        let _ = cx;
        crate::simt::nvptx::copy_async_wait();
    }
    #[cfg(not(target_arch = "nvptx64"))]
    cx.lane_state().finish_copies();
}

/// Makes a group of the copies to shared memory that this thread has begun and that are in no group yet.
pub(crate) fn group_copies(cx: Block<'_>) {
    #[cfg(target_arch = "nvptx64")]
    {
        let _ = cx;
        crate::simt::nvptx::copy_async_commit();
    }
    #[cfg(not(target_arch = "nvptx64"))]
    cx.lane_state().group_copies();
}

/// Waits for this thread's [groups](group_copies) of copies except the last one. It does not wait for copies that are in no group.
#[track_caller]
pub(crate) fn wait_for_copies_but_last(cx: Block<'_>) {
    #[cfg(target_arch = "nvptx64")]
    {
        let _ = cx;
        crate::simt::nvptx::copy_async_wait_but_last();
    }
    #[cfg(not(target_arch = "nvptx64"))]
    cx.lane_state().finish_copies_but_last();
}

/// Reads an element. If its bits are no value, the result is zero: on a GPU whose threads have diverged, other threads may have written
/// other data there, or nothing.
///
/// # Safety
/// The address is inside.
#[inline(always)]
unsafe fn load_checked<T: Element>(address: *const T) -> T {
    // SAFETY: the caller's contract; any bits are taken.
    unsafe { if T::ANY_BITS { raw::load(address) } else { raw::load(address.cast::<AnyBits<T>>()).or_zero() } }
}
