//! Global memory that a launch reads.

use core::ops::{Bound, Index, RangeBounds};

use super::elements::Elements;
use super::partition::{Item, Tile};
use crate::element::Element;
use crate::simt::Block;

/// Elements in global memory that no one writes during the launch.
///
/// A kernel parameter `x: Global<f32>` takes a `&Buffer<f32>` or a slice of one. Indexing checks the limits: an index outside is a fault.
pub struct Global<'k, T> {
    /// No one writes the elements, so every thread may read each of them.
    elements: Elements<'k, T>,
}

impl<T> Clone for Global<'_, T> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Global<'_, T> {}

impl<'k, T: Element> Global<'k, T> {
    /// The view of `len` elements from `address`.
    ///
    /// # Safety
    /// The elements are valid for `'k` and nobody writes them meanwhile.
    #[inline(always)]
    pub unsafe fn from_raw(cx: Block<'k>, address: *const T, len: usize) -> Self {
        // SAFETY: the caller's contract.
        Self { elements: unsafe { Elements::new(cx, address.cast_mut(), len) } }
    }

    /// The number of elements.
    #[inline(always)]
    pub fn len(self) -> usize {
        self.elements.len()
    }

    /// True if the length is 0.
    #[inline(always)]
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The first element's address.
    #[inline(always)]
    pub fn as_ptr(self) -> *const T {
        self.elements.address()
    }

    /// The element at `index`, or `None` outside the view.
    #[inline(always)]
    #[track_caller]
    pub fn get(self, index: usize) -> Option<T> {
        // Not `bool::then`: a closure would hide the caller's place.
        if index < self.len() { Some(self[index]) } else { None }
    }

    /// The elements of `range`. They must be inside the view; otherwise it is a fault.
    #[track_caller]
    pub fn slice(self, range: impl RangeBounds<usize>) -> Self {
        let start = match range.start_bound() {
            Bound::Included(&start) => start,
            Bound::Excluded(&before) => before.saturating_add(1),
            Bound::Unbounded => 0,
        };
        let end = match range.end_bound() {
            Bound::Included(&last) => last.saturating_add(1),
            Bound::Excluded(&end) => end,
            Bound::Unbounded => self.len(),
        };
        Self { elements: self.elements.slice(start, end) }
    }

    /// The elements of a block's tile, for [`read_data`](crate::io::read_data). They must be inside the view; otherwise it is a fault.
    #[inline(always)]
    #[track_caller]
    pub fn tile<const ITEMS: usize>(self, tile: Tile<ITEMS>) -> Self {
        let (start, len) = (tile.start(), tile.len());
        self.slice(start..start + len)
    }

    /// Row `row` of a matrix with `columns` elements in each row. It must be inside the view; otherwise it is a fault.
    #[inline(always)]
    #[track_caller]
    pub fn row(self, row: usize, columns: usize) -> Self {
        Self { elements: self.elements.row(row, columns) }
    }

    /// Reads the `N` elements from `first`. An item outside the view keeps its value. It uses vector accesses of up to 16 bytes if all
    /// elements are inside and the address is aligned for these accesses.
    ///
    /// ```
    /// use kernel_primitives::prelude::*;
    ///
    /// /// The sum of each thread's three elements, as far as there are any.
    /// #[kernel]
    /// fn triples(cx: Block, x: Global<u32>, mut out: GlobalMut<u32>) {
    ///     for i in cx.items(out.len()) {
    ///         let mut items = init::<u32, 3>(0);
    ///         x.read_items(i.index() * 3, &mut items);
    ///         out.set(i, items[0] + items[1] + items[2]);
    ///     }
    /// }
    ///
    /// # fn main() -> kernel_primitives::Result<()> {
    /// let stream = kernel_primitives::Device::emulator().stream()?;
    /// let x = stream.buffer_from(&[1u32, 2, 3, 4])?;
    /// let mut out = stream.buffer_zeroed::<u32>(2)?;
    /// triples::launch(&stream, (1, 32), &x, &mut out)?;
    /// assert_eq!(out.to_vec()?, [6, 4]);
    /// # Ok(())
    /// # }
    /// ```
    #[inline(always)]
    #[track_caller]
    pub fn read_items<const N: usize>(self, first: usize, items: &mut [T; N]) {
        // SAFETY: nobody writes the elements.
        unsafe { self.elements.read_items(first, items) }
    }

    /// Reads the element at `index`, which is known to be inside. Use it to read several elements after one comparison, without a branch
    /// between their loads.
    ///
    /// # Safety
    /// `index` is below the length. The emulator raises a fault otherwise.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn read_inside(self, index: usize) -> T {
        // SAFETY: the caller's contract; nobody writes the elements.
        unsafe { self.elements.read_inside(index) }
    }

    /// Returns whether [`read_vector_inside`](Self::read_vector_inside) can read `N` elements from `first`, and from each multiple of `N`
    /// after it. It looks only at the addresses.
    #[inline(always)]
    pub fn is_aligned<const N: usize>(self, first: usize) -> bool {
        self.elements.is_aligned::<N>(first)
    }

    /// Reads the `N` elements from `first`, by accesses of up to 16 bytes, without any check. Use it to read many vectors after one
    /// comparison, without a branch between their loads.
    ///
    /// # Safety
    /// All `N` elements from `first` lie inside, and [are aligned](Self::is_aligned). The emulator raises a fault otherwise.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn read_vector_inside<const N: usize>(self, first: usize) -> [T; N] {
        // SAFETY: the caller's contract; nobody writes the elements.
        unsafe { self.elements.read_vector_inside(first) }
    }

    /// Works as [`read_vector_inside`](Self::read_vector_inside), for elements that need not be aligned.
    ///
    /// # Safety
    /// As there, but for the alignment.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn read_items_inside<const N: usize>(self, first: usize) -> [T; N] {
        // SAFETY: the caller's contract; nobody writes the elements.
        unsafe { self.elements.read_items_inside(first) }
    }

    /// Returns whether the view is aligned for accesses of `N` elements and its length is a multiple of `N`.
    /// [`read_vectors`](Self::read_vectors) needs this.
    #[inline(always)]
    pub fn in_vectors<const N: usize>(self) -> bool {
        self.elements.in_vectors::<N>()
    }

    /// Reads `M` vectors of `N` elements. The first one begins at `first`, and each further one `stride` elements later. A vector after the
    /// end of the view keeps its value.
    ///
    /// The view must be [in vectors](Self::in_vectors), and `first` and `stride` must be multiples of `N`, so each vector is entirely
    /// inside or entirely outside; otherwise it is a fault. Accesses have up to 16 bytes, without a branch between them.
    #[inline(always)]
    #[track_caller]
    pub fn read_vectors<const N: usize, const M: usize>(self, first: usize, stride: usize, vectors: &mut [[T; N]; M]) {
        // SAFETY: nobody writes the elements.
        unsafe { self.elements.read_vectors(first, stride, vectors) }
    }

    /// Reads the `N` elements from `first`, by accesses of up to 16 bytes. An access has the largest number of elements that divides `N`
    /// and whose bytes are a power of two. An end outside the view is a fault.
    ///
    /// [`read_items`](Self::read_items) checks the alignment itself, and needs no contract. This function saves the check.
    ///
    /// # Safety
    /// The first element's address is a multiple of the access' bytes. The emulator checks it; on a GPU the launch fails
    /// otherwise, and the context is lost.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn read_vector<const N: usize>(self, first: usize) -> [T; N] {
        // SAFETY: nobody writes the elements; aligned by the caller's contract.
        unsafe { self.elements.read_vector(first) }
    }
}

impl<T: Element> Index<usize> for Global<'_, T> {
    type Output = T;

    #[inline(always)]
    #[track_caller]
    fn index(&self, index: usize) -> &T {
        let address = self.elements.at(index);
        self.elements.show_read(address, 1);
        // SAFETY: inside the view, whose elements nobody writes during 'k.
        unsafe { &*address }
    }
}

impl<T: Element> Index<Item> for Global<'_, T> {
    type Output = T;

    #[inline(always)]
    #[track_caller]
    fn index(&self, item: Item) -> &T {
        &self[item.index()]
    }
}
