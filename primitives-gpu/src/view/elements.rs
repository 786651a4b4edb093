//! What all views of global memory share: an address, a length, and accesses that are checked and shown to the emulator.

use core::marker::PhantomData;
use core::panic::Location;

use super::raw::{self, Borrowed};
use super::shared::SharedArray;
use crate::element::Element;
#[cfg(not(target_arch = "nvptx64"))]
use crate::simt::emulated::{AccessKind, Space};
use crate::simt::{Block, FaultKind};

/// Elements in global memory. A view adds which of them its thread may access, and so makes the accesses safe.
pub(crate) struct Elements<'k, T> {
    cx: Block<'k>,
    address: *mut T,
    len: usize,
    _borrowed: Borrowed<'k, T>,
}

impl<T> Clone for Elements<'_, T> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Elements<'_, T> {}

impl<'k, T: Element> Elements<'k, T> {
    /// `len` elements from `address`.
    ///
    /// # Safety
    /// They are valid for `'k`.
    #[inline(always)]
    pub(crate) unsafe fn new(cx: Block<'k>, address: *mut T, len: usize) -> Self {
        Self { cx, address, len, _borrowed: PhantomData }
    }

    /// As [`new`](Self::new), by an address in global memory that came as a number: a pointer in a parameter by value would lose that it
    /// points there.
    ///
    /// # Safety
    /// As there; the address is an exposed one.
    pub(crate) unsafe fn at_address(cx: Block<'k>, address: u64, len: usize) -> Self {
        #[cfg(target_arch = "nvptx64")]
        let address = crate::simt::nvptx::global(address);
        #[cfg(not(target_arch = "nvptx64"))]
        let address = core::ptr::with_exposed_provenance_mut(address as usize);
        // SAFETY: the caller's contract.
        unsafe { Self::new(cx, address, len) }
    }

    #[inline(always)]
    pub(crate) fn cx(self) -> Block<'k> {
        self.cx
    }

    #[inline(always)]
    pub(crate) fn address(self) -> *mut T {
        self.address
    }

    #[inline(always)]
    pub(crate) fn len(self) -> usize {
        self.len
    }

    /// The elements from `start` to `end`; a fault unless they lie inside.
    #[track_caller]
    pub(crate) fn slice(self, start: usize, end: usize) -> Self {
        if start > end || end > self.len {
            let args = [start.max(end) as u64, self.len as u64];
            self.cx.raise_outside(FaultKind::TileOutOfBounds, args, self.address, Location::caller());
        }
        // SAFETY: inside.
        unsafe { Self::new(self.cx, self.address.add(start), end - start) }
    }

    /// A row of a matrix; a fault unless it lies inside.
    #[inline(always)]
    #[track_caller]
    pub(crate) fn row(self, row: usize, columns: usize) -> Self {
        let start = row_start(row, columns);
        self.slice(start, start.saturating_add(columns))
    }

    /// The address of an element; a fault outside.
    #[inline(always)]
    #[track_caller]
    pub(crate) fn at(self, index: usize) -> *mut T {
        raw::element(self.cx, self.address, self.len, index)
    }

    /// The address of an element. The emulator raises a fault outside.
    ///
    /// # Safety
    /// It is inside.
    #[track_caller]
    pub(crate) unsafe fn at_inside(self, index: usize) -> *mut T {
        #[cfg(not(target_arch = "nvptx64"))]
        return self.at(index);
        // SAFETY: the caller's contract.
        #[cfg(target_arch = "nvptx64")]
        unsafe {
            self.address.add(index)
        }
    }

    /// A fault in the emulator unless `N` elements from `first` are inside, whatever their user says.
    #[track_caller]
    #[cfg_attr(target_arch = "nvptx64", allow(unused_variables, reason = "nobody looks"))]
    fn expect_inside<const N: usize>(self, first: usize) {
        #[cfg(not(target_arch = "nvptx64"))]
        if !self.has::<N>(first) {
            let args = [first.max(self.len) as u64, self.len as u64];
            self.cx.raise_outside(FaultKind::OutOfBounds, args, self.address, Location::caller());
        }
    }

    /// As [`expect_inside`](Self::expect_inside), and for vectors that are not aligned.
    #[inline(always)]
    #[track_caller]
    fn expect_vector_inside<const N: usize>(self, first: usize) {
        self.expect_inside::<N>(first);
        #[cfg(not(target_arch = "nvptx64"))]
        raw::check_aligned::<T, N>(self.cx, self.address.wrapping_add(first));
    }

    /// The element at `index`; a fault outside.
    ///
    /// # Safety
    /// No other thread writes it meanwhile.
    #[inline(always)]
    #[track_caller]
    pub(crate) unsafe fn read(self, index: usize) -> T {
        self.at(index);
        // SAFETY: inside; the caller orders the access.
        unsafe { self.read_inside(index) }
    }

    /// The element at `index`.
    ///
    /// # Safety
    /// As for [`read`](Self::read); and `index` is inside.
    #[track_caller]
    pub(crate) unsafe fn read_inside(self, index: usize) -> T {
        self.expect_inside::<1>(index);
        let address = self.address.wrapping_add(index);
        self.show_read(address, 1);
        // SAFETY: the caller's contract.
        unsafe { raw::load(address) }
    }

    /// The `N` elements from `first`, by vector accesses where the address is aligned for them.
    ///
    /// # Safety
    /// As for [`read`](Self::read), for each element; and all are inside.
    #[track_caller]
    pub(crate) unsafe fn read_items_inside<const N: usize>(self, first: usize) -> [T; N] {
        self.expect_inside::<N>(first);
        let address = self.address.wrapping_add(first);
        self.show_read(address, N);
        let mut items = [T::ZERO; N];
        // SAFETY: the caller's contract.
        unsafe { raw::load_items(address, &mut items) };
        items
    }

    /// Whether vectors of `N` elements, from `first` or any multiple of `N` further, are aligned for their accesses.
    #[inline(always)]
    pub(crate) fn is_aligned<const N: usize>(self, first: usize) -> bool {
        self.address.wrapping_add(first).addr().is_multiple_of(const { raw::vector_align::<T>(N) })
    }

    /// The `N` elements from `first`, by vector accesses.
    ///
    /// # Safety
    /// As for [`read_items_inside`](Self::read_items_inside); and they [are aligned](Self::is_aligned).
    #[track_caller]
    pub(crate) unsafe fn read_vector_inside<const N: usize>(self, first: usize) -> [T; N] {
        self.expect_vector_inside::<N>(first);
        let address = self.address.wrapping_add(first);
        self.show_read(address, N);
        let mut items = [T::ZERO; N];
        // SAFETY: the caller's contract.
        unsafe { raw::load_aligned(address, &mut items) };
        items
    }

    /// Writes the `N` elements from `first`, by vector accesses.
    ///
    /// # Safety
    /// As for [`write_inside`](Self::write_inside), for each; and they [are aligned](Self::is_aligned).
    #[track_caller]
    pub(crate) unsafe fn write_vector_inside<const N: usize>(self, first: usize, items: &[T; N]) {
        self.expect_vector_inside::<N>(first);
        let address = self.address.wrapping_add(first);
        self.show_write(address, N);
        // SAFETY: the caller's contract.
        unsafe { raw::store_aligned(address, items) };
    }

    /// Begins to copy the `N` elements from `first` to shared memory, or does it at once if there are no such copies of their size.
    ///
    /// # Safety
    /// As for [`read_items_inside`](Self::read_items_inside), and as for [`SharedArray::store_items`] from `at`.
    #[track_caller]
    pub(crate) unsafe fn copy_inside<const N: usize>(self, first: usize, to: SharedArray<'_, T>, at: usize) {
        self.expect_inside::<N>(first);
        // SAFETY: the caller's contract; elements of 4 and 8 bytes are aligned for copies of as many.
        unsafe {
            if self.is_aligned::<N>(first) {
                self.copy_vector_inside::<N>(first, to, at);
            } else if const { matches!(size_of::<T>(), 4 | 8) && align_of::<T>() == size_of::<T>() } {
                for i in 0..N {
                    let address = self.address.wrapping_add(first + i);
                    self.show_read(address, 1);
                    to.copy_from::<1>(at + i, address);
                }
            } else {
                to.store_items(at, &self.read_items_inside::<N>(first));
            }
        }
    }

    /// As [`copy_inside`](Self::copy_inside), by vectors.
    ///
    /// # Safety
    /// As there; and the elements [are aligned](Self::is_aligned).
    #[track_caller]
    pub(crate) unsafe fn copy_vector_inside<const N: usize>(self, first: usize, to: SharedArray<'_, T>, at: usize) {
        self.expect_vector_inside::<N>(first);
        // SAFETY: the caller's contract.
        unsafe {
            if const { N * size_of::<T>() == 16 && raw::vector_align::<T>(N) == 16 } {
                let address = self.address.wrapping_add(first);
                self.show_read(address, N);
                to.copy_from::<N>(at, address);
            } else {
                to.store_items(at, &self.read_vector_inside::<N>(first));
            }
        }
    }

    /// Writes the element at `index`; a fault outside.
    ///
    /// # Safety
    /// No other thread accesses it meanwhile.
    #[inline(always)]
    #[track_caller]
    pub(crate) unsafe fn write(self, index: usize, value: T) {
        self.at(index);
        // SAFETY: inside; the caller orders the access.
        unsafe { self.write_inside(index, value) }
    }

    /// Writes the element at `index`.
    ///
    /// # Safety
    /// As for [`write`](Self::write); and `index` is inside.
    #[track_caller]
    pub(crate) unsafe fn write_inside(self, index: usize, value: T) {
        self.expect_inside::<1>(index);
        let address = self.address.wrapping_add(index);
        self.show_write(address, 1);
        // SAFETY: the caller's contract.
        unsafe { raw::store(address, value) }
    }

    /// Whether all of `N` elements from `first` lie inside.
    #[inline(always)]
    fn has<const N: usize>(self, first: usize) -> bool {
        self.len >= N && first <= self.len - N
    }

    /// How many elements from `first` lie inside, `N` at most: few bits, so that a loop over constant offsets is unrolled
    /// to a comparison and an access an item.
    #[inline(always)]
    fn valid<const N: usize>(self, first: usize) -> u32 {
        self.len.saturating_sub(first).min(N) as u32
    }

    /// Reads the `N` elements from `first`; an item outside keeps its value. Vector accesses where all lie inside and the
    /// address is aligned for them.
    ///
    /// # Safety
    /// As for [`read`](Self::read), for each element.
    #[track_caller]
    pub(crate) unsafe fn read_items<const N: usize>(self, first: usize, items: &mut [T; N]) {
        let address = self.address.wrapping_add(first);
        if self.has::<N>(first) {
            self.show_read(address, N);
            // SAFETY: inside; the caller orders the accesses.
            unsafe { raw::load_items(address, items) };
        } else {
            let valid = self.valid::<N>(first);
            for (i, item) in items.iter_mut().enumerate() {
                if (i as u32) < valid {
                    self.show_read(address.wrapping_add(i), 1);
                    // SAFETY: as above.
                    *item = unsafe { raw::load(address.wrapping_add(i)) };
                }
            }
        }
    }

    /// Writes the `N` elements from `first`, as many as lie inside; accesses are as for [`read_items`](Self::read_items).
    ///
    /// # Safety
    /// As for [`write`](Self::write), for each element.
    #[track_caller]
    pub(crate) unsafe fn write_items<const N: usize>(self, first: usize, items: &[T; N]) {
        if self.has::<N>(first) {
            // SAFETY: inside, and the caller's contract.
            unsafe { self.write_items_inside(first, items) };
        } else {
            let valid = self.valid::<N>(first);
            for (i, &item) in items.iter().enumerate() {
                if (i as u32) < valid {
                    // SAFETY: as above.
                    unsafe { self.write_inside(first + i, item) };
                }
            }
        }
    }

    /// As [`write_items`](Self::write_items), of elements that all lie inside.
    ///
    /// # Safety
    /// As for [`write_inside`](Self::write_inside), for each element.
    #[track_caller]
    pub(crate) unsafe fn write_items_inside<const N: usize>(self, first: usize, items: &[T; N]) {
        self.expect_inside::<N>(first);
        let address = self.address.wrapping_add(first);
        self.show_write(address, N);
        // SAFETY: inside; the caller orders the accesses.
        unsafe { raw::store_items(address, items) };
    }

    /// The address of the `N` elements from `first`; a fault unless they lie inside, and in the emulator unless they are
    /// aligned for vector access.
    #[track_caller]
    fn vector<const N: usize>(self, first: usize) -> *mut T {
        let Self { address, .. } = self.slice(first, first.saturating_add(N));
        #[cfg(not(target_arch = "nvptx64"))]
        raw::check_aligned::<T, N>(self.cx, address);
        address
    }

    /// Reads the `N` elements from `first` by vector accesses; a fault unless they lie inside.
    ///
    /// # Safety
    /// As for [`read`](Self::read), for each element; and the first is aligned for the access.
    #[track_caller]
    pub(crate) unsafe fn read_vector<const N: usize>(self, first: usize) -> [T; N] {
        let address = self.vector::<N>(first);
        self.show_read(address, N);
        let mut items = [T::ZERO; N];
        // SAFETY: inside; aligned and ordered by the caller.
        unsafe { raw::load_aligned(address, &mut items) };
        items
    }

    /// Writes the `N` elements from `first` by vector accesses; a fault unless they lie inside.
    ///
    /// # Safety
    /// As for [`write`](Self::write), for each element; and the first is aligned for the access.
    #[inline(always)]
    #[track_caller]
    pub(crate) unsafe fn write_vector<const N: usize>(self, first: usize, items: &[T; N]) {
        let address = self.vector::<N>(first);
        self.show_write(address, N);
        // SAFETY: inside; aligned and ordered by the caller.
        unsafe { raw::store_aligned(address, items) };
    }

    /// Whether each vector of `N` elements from a multiple of `N` on lies inside or outside, as a whole, and is aligned.
    #[inline(always)]
    pub(crate) fn in_vectors<const N: usize>(self) -> bool {
        self.address.addr().is_multiple_of(const { raw::vector_align::<T>(N) }) && self.len.is_multiple_of(N)
    }

    /// How many elements there are from `first`, as far as `M` vectors of `N` elements, `stride` apart, can reach. A fault if
    /// a vector could lie across the end or be unaligned.
    #[track_caller]
    fn vectors_ahead<const N: usize, const M: usize>(self, first: usize, stride: usize) -> u32 {
        let reach = (u32::MAX as usize).checked_div(M).unwrap_or(0);
        let regular = self.in_vectors::<N>() && first.is_multiple_of(N) && stride.is_multiple_of(N);
        if !regular || stride > reach {
            self.cx.raise(FaultKind::BadShape, [stride as u64, reach as u64], Location::caller());
        }
        // Few bits, so that each vector costs one comparison.
        self.len.saturating_sub(first).min(u32::MAX as usize) as u32
    }

    /// Reads `M` vectors of `N` elements, the first from `first`, the others each `stride` elements further; a vector after
    /// the end keeps its value. A fault unless the elements are [in vectors](Self::in_vectors) and `first` and `stride` are
    /// multiples of `N`.
    ///
    /// # Safety
    /// As for [`read`](Self::read), for each element.
    #[track_caller]
    pub(crate) unsafe fn read_vectors<const N: usize, const M: usize>(
        self,
        first: usize,
        stride: usize,
        vectors: &mut [[T; N]; M],
    ) {
        let ahead = self.vectors_ahead::<N, M>(first, stride);
        for (i, items) in vectors.iter_mut().enumerate() {
            let offset = i as u32 * stride as u32;
            if offset < ahead {
                let address = self.address.wrapping_add(first + offset as usize);
                self.show_read(address, N);
                // SAFETY: inside, for the end is one of a vector, and aligned; the caller orders the accesses.
                unsafe { raw::load_aligned(address, items) };
            }
        }
    }

    /// Writes `M` vectors of `N` elements, as many as lie inside; see [`read_vectors`](Self::read_vectors).
    ///
    /// # Safety
    /// As for [`write`](Self::write), for each element.
    #[track_caller]
    pub(crate) unsafe fn write_vectors<const N: usize, const M: usize>(
        self,
        first: usize,
        stride: usize,
        vectors: &[[T; N]; M],
    ) {
        let ahead = self.vectors_ahead::<N, M>(first, stride);
        for (i, items) in vectors.iter().enumerate() {
            let offset = i as u32 * stride as u32;
            if offset < ahead {
                let address = self.address.wrapping_add(first + offset as usize);
                self.show_write(address, N);
                // SAFETY: inside, for the end is one of a vector, and aligned; the caller orders the accesses.
                unsafe { raw::store_aligned(address, items) };
            }
        }
    }

    /// Shows the emulator a read.
    #[inline(always)]
    #[track_caller]
    #[cfg_attr(target_arch = "nvptx64", allow(unused_variables, reason = "nobody watches"))]
    pub(crate) fn show_read(self, address: *const T, count: usize) {
        #[cfg(not(target_arch = "nvptx64"))]
        raw::report(self.cx, AccessKind::Read, Space::Global, address, count);
    }

    /// Shows the emulator a write.
    #[inline(always)]
    #[track_caller]
    #[cfg_attr(target_arch = "nvptx64", allow(unused_variables, reason = "nobody watches"))]
    fn show_write(self, address: *const T, count: usize) {
        #[cfg(not(target_arch = "nvptx64"))]
        raw::report(self.cx, AccessKind::Write, Space::Global, address, count);
    }

    /// Tells the emulator that raw pointers may write the elements.
    #[inline(always)]
    pub(crate) fn expose(self) {
        #[cfg(not(target_arch = "nvptx64"))]
        raw::expose(self.cx, Space::Global, self.address, self.len);
    }
}

/// `row * columns`, or the largest number if that has too many bits: one multiplication where the factors have 32 bits.
fn row_start(row: usize, columns: usize) -> usize {
    if (row | columns) >> 32 == 0 {
        (row as u32 as u64 * columns as u32 as u64) as usize
    } else {
        row.saturating_mul(columns)
    }
}

/// A number that the compiler cannot see through: a kernel's loop over rows would otherwise keep every position in a row in
/// registers.
pub(crate) fn opaque(number: u32) -> u32 {
    #[cfg(target_arch = "nvptx64")]
    return crate::simt::nvptx::opaque(number);
    #[cfg(not(target_arch = "nvptx64"))]
    number
}
