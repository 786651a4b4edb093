//! Pointers and lengths, and element access that is defined even when lanes race.

use core::marker::PhantomData;
use core::mem::size_of;
#[cfg(not(target_arch = "nvptx64"))]
use core::mem::{MaybeUninit, align_of};
use core::panic::Location;

use super::partition::Partition;
use super::{Global, GlobalMut};
use crate::element::Element;
#[cfg(not(target_arch = "nvptx64"))]
use crate::simt::emulated::{Access, AccessKind, Space};
#[cfg(target_arch = "nvptx64")]
use crate::simt::nvptx;
use crate::simt::{Block, FaultKind};

/// An address and a length in elements, as a launch passes them: the unsafe floor under the views.
#[derive(Debug)]
pub struct RawView<T> {
    address: *mut T,
    len: usize,
}

impl<T> Clone for RawView<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for RawView<T> {}

// SAFETY: a number and a length; what is done with them is up to the unsafe functions below.
unsafe impl<T> Send for RawView<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for RawView<T> {}

impl<T> RawView<T> {
    /// `len` elements from `address`.
    #[inline(always)]
    pub fn new(address: *mut T, len: usize) -> Self {
        Self { address, len }
    }

    /// The first element's address.
    #[inline(always)]
    pub fn address(self) -> *mut T {
        self.address
    }

    /// The number of elements.
    #[inline(always)]
    #[allow(clippy::len_without_is_empty, reason = "a pair of numbers, not a collection")]
    pub fn len(self) -> usize {
        self.len
    }
}

impl<T: Element> RawView<T> {
    /// The view that a kernel reads.
    ///
    /// # Safety
    /// The elements are valid for `'k` and nobody writes them meanwhile.
    #[inline(always)]
    pub unsafe fn global<'k>(self, cx: Block<'k>) -> Global<'k, T> {
        // SAFETY: the caller's contract.
        unsafe { Global::from_raw(cx, self.address, self.len) }
    }

    /// The view that a kernel writes.
    ///
    /// # Safety
    /// The elements are valid for `'k`, and only the threads of this launch access them meanwhile, through views of the
    /// same partition, one a thread.
    #[inline(always)]
    pub unsafe fn global_mut<'k, P: Partition>(self, cx: Block<'k>) -> GlobalMut<'k, T, P> {
        // SAFETY: the caller's contract.
        unsafe { GlobalMut::from_raw(cx, self.address, self.len) }
    }
}

/// The address of the element `index` of `len`; a fault outside.
#[track_caller]
pub(crate) fn element<T>(cx: Block<'_>, address: *mut T, len: usize, index: usize) -> *mut T {
    if index >= len {
        cx.raise_outside(FaultKind::OutOfBounds, [index as u64, len as u64], address, Location::caller());
    }
    // An element of the view, so no address wraps.
    address.wrapping_add(index)
}

/// Shows a plain access to the emulator.
#[cfg(not(target_arch = "nvptx64"))]
#[track_caller]
pub(crate) fn report<T>(cx: Block<'_>, kind: AccessKind, space: Space, address: *const T, count: usize) {
    let lane = cx.lane_state();
    if lane.checked {
        let access = Access { kind, space, address: address.addr(), len: count * size_of::<T>() };
        lane.machine.access(lane, access, Location::caller());
    }
}

/// Raises a fault if `N` elements at an address cannot be accessed by vectors.
#[cfg(not(target_arch = "nvptx64"))]
#[track_caller]
pub(crate) fn check_aligned<T, const N: usize>(cx: Block<'_>, address: *const T) {
    let bytes = const { vector_align::<T>(N) };
    if const { has_vectors::<T>(N) } && !address.addr().is_multiple_of(bytes) {
        cx.raise(FaultKind::Misaligned, [address.addr() as u64, bytes as u64], Location::caller());
    }
}

/// Tells the emulator that raw pointers may write elements.
#[cfg(not(target_arch = "nvptx64"))]
pub(crate) fn expose<T>(cx: Block<'_>, space: Space, address: *const T, count: usize) {
    let lane = cx.lane_state();
    if lane.checked {
        lane.machine.expose(lane, space, address.addr(), count * size_of::<T>());
    }
}

/// Reads an element. On the host as relaxed atomics, so that racing lanes on several cores stay defined.
///
/// # Safety
/// `address` is valid for reads and aligned, and holds a value of `T`.
pub(crate) unsafe fn load<T: Element>(address: *const T) -> T {
    #[cfg(target_arch = "nvptx64")]
    // SAFETY: the caller's contract.
    return unsafe { address.read() };
    #[cfg(not(target_arch = "nvptx64"))]
    {
        let mut value = MaybeUninit::<T>::uninit();
        // SAFETY: the caller's contract; both sides have the size of T.
        unsafe {
            relaxed_copy(
                address.cast::<u8>().cast_mut(),
                value.as_mut_ptr().cast(),
                size_of::<T>(),
                align_of::<T>(),
                true,
            );
            value.assume_init()
        }
    }
}

/// Writes an element; see [`load`].
///
/// # Safety
/// `address` is valid for writes and aligned.
pub(crate) unsafe fn store<T: Element>(address: *mut T, value: T) {
    // Evaluates what a generic element asserts about its padding.
    const { _ = T::ANY_BITS };
    #[cfg(target_arch = "nvptx64")]
    // SAFETY: the caller's contract.
    unsafe {
        address.write(value)
    };
    #[cfg(not(target_arch = "nvptx64"))]
    // SAFETY: the caller's contract; both sides have the size of T.
    unsafe {
        let mut value = value;
        relaxed_copy(address.cast(), (&raw mut value).cast(), size_of::<T>(), align_of::<T>(), false);
    }
}

/// Copies between device memory, by relaxed atomics as wide as the alignment allows, and private memory.
///
/// # Safety
/// `device` is valid for `len` bytes and aligned to `align`; `private` is valid for `len` bytes and not shared.
#[cfg(not(target_arch = "nvptx64"))]
#[cfg_attr(not(debug_assertions), inline)]
unsafe fn relaxed_copy(device: *mut u8, private: *mut u8, len: usize, align: usize, from_device: bool) {
    // It is a function of this crate where programs are not optimised, so that this crate alone can be.
    use core::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering::Relaxed};
    macro_rules! words {
        ($atomic:ty, $word:ty) => {{
            let mut at = 0;
            while at < len {
                // SAFETY: the caller's contract; `len` is a multiple of the alignment.
                unsafe {
                    let cell = <$atomic>::from_ptr(device.add(at).cast());
                    let private = private.add(at).cast::<$word>();
                    if from_device {
                        private.write_unaligned(cell.load(Relaxed));
                    } else {
                        cell.store(private.read_unaligned(), Relaxed);
                    }
                }
                at += size_of::<$word>();
            }
        }};
    }
    match align {
        1 => words!(AtomicU8, u8),
        2 => words!(AtomicU16, u16),
        4 => words!(AtomicU32, u32),
        _ => words!(AtomicU64, u64),
    }
}

/// The elements of type `T` that one access moves: the largest power of two that divides `items` and fits in 16 bytes.
pub(crate) const fn vector_items<T>(items: usize) -> usize {
    let mut n = 1;
    while n * 2 * size_of::<T>() <= 16 && items.is_multiple_of(n * 2) && (n * 2 * size_of::<T>()).is_power_of_two() {
        n *= 2;
    }
    n
}

/// Whether an access of one element is wider than the element's alignment: that of a complex number.
const fn is_wide<T>() -> bool {
    matches!(size_of::<T>(), 8 | 16) && core::mem::align_of::<T>() < size_of::<T>()
}

/// Whether `items` elements are moved by accesses that are wider than an element's alignment.
const fn has_vectors<T>(items: usize) -> bool {
    vector_items::<T>(items) > 1 || is_wide::<T>()
}

/// The boundary that an access of [`vector_items`] starts on.
pub(crate) const fn vector_align<T>(items: usize) -> usize {
    if has_vectors::<T>(items) { vector_items::<T>(items) * size_of::<T>() } else { core::mem::align_of::<T>() }
}

/// Whether an access of `N` items at `address` can be made by vectors. On the host none is, so that the elements of racing lanes
/// stay whole; the emulator sees one access of all items.
#[inline(always)]
fn is_vector<T, const N: usize>(address: *const T) -> bool {
    cfg!(target_arch = "nvptx64")
        && const { has_vectors::<T>(N) }
        && address.addr().is_multiple_of(const { vector_align::<T>(N) })
}

/// Reads `items` by vector accesses if `address` is aligned for them, else one by one.
///
/// # Safety
/// `address` is valid for reads of `N` elements.
pub(crate) unsafe fn load_items<T: Element, const N: usize>(address: *const T, items: &mut [T; N]) {
    if is_vector::<T, N>(address) {
        // SAFETY: the caller's contract, and aligned.
        unsafe { load_aligned(address, items) };
        // Bytes are wanted in the end: of both sides the compiler would make the same loads, which are as narrow as these.
        #[cfg(target_arch = "nvptx64")]
        if const { size_of::<T>() == 1 && N == 16 } {
            let words = items.as_mut_ptr().cast::<[u32; 4]>();
            // SAFETY: bytes that were just written, and stay what they are.
            unsafe { words.write_unaligned(words.read_unaligned().map(nvptx::opaque)) };
        }
    } else {
        for (i, item) in items.iter_mut().enumerate() {
            // By the same means as vectors: of plain loads on one side the compiler makes one of a pointer to either side's
            // memory, which keeps the items in local memory.
            #[cfg(target_arch = "nvptx64")]
            if const { matches!(size_of::<T>(), 2 | 4 | 8) && align_of::<T>() == size_of::<T>() } {
                // SAFETY: the caller's contract; an element is aligned for an access of its size.
                unsafe { nvptx::load_vector((&raw mut *item).cast(), address.add(i).cast(), size_of::<T>()) };
                continue;
            }
            // SAFETY: the caller's contract.
            *item = unsafe { load(address.add(i)) };
        }
    }
}

/// Writes `items`; see [`load_items`].
///
/// # Safety
/// `address` is valid for writes of `N` elements.
pub(crate) unsafe fn store_items<T: Element, const N: usize>(address: *mut T, items: &[T; N]) {
    if is_vector::<T, N>(address) {
        // SAFETY: the caller's contract, and aligned.
        unsafe { store_aligned(address, items) };
    } else {
        for (i, &item) in items.iter().enumerate() {
            // SAFETY: the caller's contract.
            unsafe { store(address.add(i), item) };
        }
    }
}

/// Reads `N` items by accesses of [`vector_items`] each.
///
/// # Safety
/// `address` is valid for reads of `N` elements and aligned for the access.
pub(crate) unsafe fn load_aligned<T: Element, const N: usize>(address: *const T, items: &mut [T; N]) {
    debug_assert!(
        address.addr().is_multiple_of(const { vector_align::<T>(N) }),
        "a vector is aligned for its accesses"
    );
    #[cfg(target_arch = "nvptx64")]
    if const { has_vectors::<T>(N) } {
        let width = const { vector_items::<T>(N) };
        let mut i = 0;
        while i < N {
            // SAFETY: the caller's contract.
            unsafe {
                nvptx::load_vector(items.as_mut_ptr().add(i).cast(), address.add(i).cast(), width * size_of::<T>());
            }
            i += width;
        }
        return;
    }
    for (i, item) in items.iter_mut().enumerate() {
        // SAFETY: the caller's contract.
        *item = unsafe { load(address.add(i)) };
    }
}

/// Writes `N` items by accesses of [`vector_items`] each.
///
/// # Safety
/// `address` is valid for writes of `N` elements and aligned for the access.
pub(crate) unsafe fn store_aligned<T: Element, const N: usize>(address: *mut T, items: &[T; N]) {
    debug_assert!(
        address.addr().is_multiple_of(const { vector_align::<T>(N) }),
        "a vector is aligned for its accesses"
    );
    #[cfg(target_arch = "nvptx64")]
    if const { has_vectors::<T>(N) } {
        let width = const { vector_items::<T>(N) };
        let mut i = 0;
        while i < N {
            // SAFETY: the caller's contract.
            unsafe {
                nvptx::store_vector(address.add(i).cast(), items.as_ptr().add(i).cast(), width * size_of::<T>());
            }
            i += width;
        }
        return;
    }
    for (i, &item) in items.iter().enumerate() {
        // SAFETY: the caller's contract.
        unsafe { store(address.add(i), item) };
    }
}

/// Ties a view to its kernel without owning anything.
pub(crate) type Borrowed<'k, T> = PhantomData<(&'k T, *const T)>;
