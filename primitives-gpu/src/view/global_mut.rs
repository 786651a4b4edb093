//! Global memory that a launch writes.

use core::marker::PhantomData;

use super::elements::{Elements, opaque};
use super::partition::{
    Atomic, Item, Partition, PerBlock, PerRow, PerThread, PerWarpRow, Row, Rows, Tile, Tiles, WarpRow,
};
use crate::element::Element;
use crate::simt::{AtomicElement, AtomicRef, Block};
use crate::warp::unrolled;

/// Elements in global memory that the threads of a launch write.
///
/// A kernel parameter `out: GlobalMut<f32>` takes a `&mut Buffer<f32>` or a mutable slice of one. `P` says which thread owns which element,
/// see [`partition`](super::partition). Only the owner of an element writes it and reads it back.
pub struct GlobalMut<'k, T, P = PerThread> {
    elements: Elements<'k, T>,
    _partition: PhantomData<P>,
}

impl<'k, T: Element, P: Partition> GlobalMut<'k, T, P> {
    /// The view of `len` elements from `address`.
    ///
    /// # Safety
    /// The elements are valid for `'k`, and only the threads of this launch access them meanwhile, through views of the
    /// same partition, one a thread.
    #[inline(always)]
    pub unsafe fn from_raw(cx: Block<'k>, address: *mut T, len: usize) -> Self {
        // SAFETY: the caller's contract.
        Self { elements: unsafe { Elements::new(cx, address, len) }, _partition: PhantomData }
    }

    /// The elements, whoever owns them.
    #[inline(always)]
    pub(super) fn elements(&mut self) -> Elements<'k, T> {
        self.elements
    }

    /// The number of elements.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.elements.len()
    }

    /// True if the length is 0.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The address of the first element. It is the unsafe level below the view. The emulator does not see accesses through it: from now on
    /// it treats the elements as written.
    #[inline(always)]
    pub fn as_mut_ptr(&mut self) -> *mut T {
        self.elements.expose();
        self.elements.address()
    }

    /// The same memory as elements of another type. The emulator sees accesses through it.
    ///
    /// # Safety
    /// The size of `W` divides that of `T`, and so does its alignment. What is written has in each byte what some `T` has there. Each thread
    /// writes elements that only it accesses.
    #[inline(always)]
    pub unsafe fn reinterpret<W: Element>(&mut self) -> GlobalMut<'k, W> {
        let len = self.len() * const { size_of::<T>() / size_of::<W>() };
        // SAFETY: the same memory; the caller's contract.
        unsafe { GlobalMut::from_raw(self.elements.cx(), self.elements.address().cast(), len) }
    }

    /// Reads any element. An index outside the view is a fault.
    ///
    /// # Safety
    /// No other thread writes the element, or a barrier or a release and an acquire lie between its write and this read.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn read(&self, index: usize) -> T {
        // SAFETY: the caller's contract.
        unsafe { self.elements.read(index) }
    }

    /// Reads the `N` elements from `first`, by vector accesses, without any check.
    ///
    /// # Safety
    /// As for [`read`](Self::read), of each element; all lie inside, and [are aligned](Self::is_aligned).
    #[inline(always)]
    #[track_caller]
    pub unsafe fn read_vector_inside<const N: usize>(&self, first: usize) -> [T; N] {
        // SAFETY: the caller's contract.
        unsafe { self.elements.read_vector_inside(first) }
    }

    /// Works as [`read_vector_inside`](Self::read_vector_inside), for elements that need not be aligned.
    ///
    /// # Safety
    /// As there, but for the alignment.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn read_items_inside<const N: usize>(&self, first: usize) -> [T; N] {
        // SAFETY: the caller's contract.
        unsafe { self.elements.read_items_inside(first) }
    }

    /// Works as [`write_items`](Self::write_items), for elements that are all inside, without a comparison.
    ///
    /// # Safety
    /// As for [`write`](Self::write), of each element; and all lie inside.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn write_items_inside<const N: usize>(&mut self, first: usize, items: &[T; N]) {
        // SAFETY: the caller's contract.
        unsafe { self.elements.write_items_inside(first, items) }
    }

    /// Writes any element. An index outside the view is a fault.
    ///
    /// # Safety
    /// No other thread accesses the element, or a barrier or a release and an acquire lie between its access and this
    /// write.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn write(&mut self, index: usize, value: T) {
        // SAFETY: the caller's contract.
        unsafe { self.elements.write(index, value) }
    }

    /// Writes any element, without the check of [`write`](Self::write). The emulator still makes the check.
    ///
    /// # Safety
    /// As for [`write`](Self::write); and `index` is inside the view.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn write_unchecked(&mut self, index: usize, value: T) {
        // SAFETY: the caller's contract.
        unsafe { self.elements.write_inside(index, value) }
    }

    /// Reads the `N` elements from `first`. An item outside the view keeps its value. It uses vector accesses of up to 16 bytes if all
    /// elements are inside and the address is aligned for these accesses.
    ///
    /// # Safety
    /// As for [`read`](Self::read), of each element.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn read_items<const N: usize>(&self, first: usize, items: &mut [T; N]) {
        // SAFETY: the caller's contract.
        unsafe { self.elements.read_items(first, items) }
    }

    /// Writes the `N` elements from `first`, as far as they are inside the view. Accesses are those of [`read_items`](Self::read_items).
    ///
    /// # Safety
    /// As for [`write`](Self::write), of each element.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn write_items<const N: usize>(&mut self, first: usize, items: &[T; N]) {
        // SAFETY: the caller's contract.
        unsafe { self.elements.write_items(first, items) }
    }

    /// Returns whether [`write_vector_inside`](Self::write_vector_inside) can write `N` elements from `first`, and from each multiple of
    /// `N` after it. It looks only at the addresses.
    #[inline(always)]
    pub fn is_aligned<const N: usize>(&self, first: usize) -> bool {
        self.elements.is_aligned::<N>(first)
    }

    /// Writes the `N` elements from `first`, by accesses of up to 16 bytes, without any check. Use it to write many vectors after one
    /// comparison, without a branch between them.
    ///
    /// # Safety
    /// As for [`write`](Self::write), of each element; all lie inside, and [are aligned](Self::is_aligned).
    #[inline(always)]
    #[track_caller]
    pub unsafe fn write_vector_inside<const N: usize>(&mut self, first: usize, items: &[T; N]) {
        // SAFETY: the caller's contract.
        unsafe { self.elements.write_vector_inside(first, items) }
    }

    /// Writes the `N` elements from `first`, by accesses of up to 16 bytes; see
    /// [`Global::read_vector`](crate::Global::read_vector). An end outside the view is a fault.
    ///
    /// # Safety
    /// As for [`write`](Self::write), of each element; and the first one's address is a multiple of the access' bytes.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn write_vector<const N: usize>(&mut self, first: usize, items: &[T; N]) {
        // SAFETY: the caller's contract.
        unsafe { self.elements.write_vector(first, items) }
    }
}

impl<'k, T: Element> GlobalMut<'k, T, PerThread> {
    /// Writes an element of this thread. An index outside the view is a fault.
    #[inline(always)]
    #[track_caller]
    pub fn set(&mut self, item: Item, value: T) {
        // SAFETY: the token names an element of this thread alone.
        unsafe { self.write(item.index(), value) }
    }

    /// Reads an element of this thread. An index outside the view is a fault.
    #[inline(always)]
    #[track_caller]
    pub fn get(&self, item: Item) -> T {
        // SAFETY: the token names an element of this thread alone.
        unsafe { self.read(item.index()) }
    }
}

impl<'k, T: Element> GlobalMut<'k, T, PerBlock> {
    /// Writes the element of this block, which is at the block's rank. The value of the first thread is written; those of other threads are
    /// ignored. If there are fewer elements than blocks, that is a fault.
    #[track_caller]
    pub fn store(&mut self, value: T) {
        let cx = self.elements.cx();
        if cx.thread_rank() == 0 {
            // SAFETY: the element of this block, written by its first thread alone.
            unsafe { self.write(cx.block_rank(), value) }
        }
    }
}

impl<T: Element> GlobalMut<'_, T, PerRow> {
    /// Writes the element of a row of this block. The value of the first thread is written; those of other threads are ignored. A row
    /// without an element is a fault.
    #[inline(always)]
    #[track_caller]
    pub fn store_row(&mut self, row: Row, value: T) {
        if self.elements.cx().thread_rank() == 0 {
            // SAFETY: the token names a row of this block alone, whose first thread alone writes.
            unsafe { self.write(row.index(), value) }
        }
    }
}

impl<T: Element> GlobalMut<'_, T, PerWarpRow> {
    /// Writes the element of a row of this warp. The value of the first lane is written; those of other lanes are ignored. A row without an
    /// element is a fault.
    #[inline(always)]
    #[track_caller]
    pub fn store_row(&mut self, row: WarpRow, value: T) {
        if self.elements.cx().lane() == 0 {
            // SAFETY: the token names a row of this warp alone, whose first lane alone writes.
            unsafe { self.write(row.index(), value) }
        }
    }
}

impl<'k, T: AtomicElement> GlobalMut<'k, T, Atomic> {
    /// The element at `index`, for atomic accesses. An index outside the view is a fault.
    #[inline(always)]
    #[track_caller]
    pub fn at(&self, index: usize) -> AtomicRef<'k, T> {
        let address = self.elements.at(index);
        // SAFETY: inside the view; through this partition every access is atomic.
        unsafe { AtomicRef::new(self.elements.cx(), address, false) }
    }

    /// Works as [`at`](Self::at), without the check. The emulator still makes the check.
    ///
    /// # Safety
    /// `index` is inside the view.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn at_unchecked(&self, index: usize) -> AtomicRef<'k, T> {
        // SAFETY: inside the view by the caller's contract; through this partition every access is atomic.
        unsafe { AtomicRef::new(self.elements.cx(), self.elements.at_inside(index), false) }
    }
}

impl<'k, T: Element, const ITEMS: usize> GlobalMut<'k, T, Tiles<ITEMS>> {
    /// A block's tile, for [`write_data`](crate::io::write_data). It must be inside the view; otherwise it is a fault.
    #[inline(always)]
    #[track_caller]
    pub fn tile(&mut self, tile: Tile<ITEMS>) -> TileMut<'_, 'k, T, ITEMS> {
        TileMut { elements: self.elements.slice(tile.start(), tile.start() + tile.len()), _view: PhantomData }
    }
}

impl<'k, T: Element, const ITEMS: usize> GlobalMut<'k, T, Rows<ITEMS>> {
    /// A row of a matrix with `columns` elements in each row. It must be inside the view; otherwise it is a fault.
    ///
    /// # Safety
    /// All threads of the launch give the same `columns` in every call, so that no two rows overlap: a parameter of the
    /// kernel, or a number made from such.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn row(&mut self, row: Row, columns: usize) -> RowMut<'_, 'k, T, ITEMS> {
        let (elements, cx) = (self.elements.row(row.index(), columns), self.elements.cx());
        let (rank, threads) = (opaque(cx.thread_rank()), opaque(cx.block_threads()));
        RowMut { elements, rank, threads, _view: PhantomData }
    }
}

/// The last step of a block that has places, such as a round of a row, if each thread has `items` elements in a step:
/// `(step + 1) * items * block_threads` does not overflow. The steps before it have more than 2^53 elements, so no memory has this step.
pub(super) const fn last_step(items: usize) -> usize {
    const BLOCK_THREADS: usize = 1024;
    usize::MAX / BLOCK_THREADS / items - 1
}

/// A block's row of a [`GlobalMut`], which its threads read and write in rounds. In round `r`, thread `t` of `T` has the `ITEMS` elements
/// from `(r * T + t) * ITEMS`, as far as the row has them.
pub struct RowMut<'v, 'k, T, const ITEMS: usize> {
    elements: Elements<'k, T>,
    rank: u32,
    threads: u32,
    _view: PhantomData<&'v mut T>,
}

impl<T: Element, const ITEMS: usize> RowMut<'_, '_, T, ITEMS> {
    /// The number of elements in the row.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.elements.len()
    }

    /// True if the row has no elements.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns whether the row is aligned for accesses of `ITEMS` elements and its length is a multiple of `ITEMS`.
    /// [`set_vectors`](Self::set_vectors) needs this.
    #[inline(always)]
    pub fn in_vectors(&self) -> bool {
        self.elements.in_vectors::<ITEMS>()
    }

    /// The first element of this thread in a round, which may be outside. For a round that no row can have, it is some element outside.
    #[inline(always)]
    pub fn first(&self, round: usize) -> usize {
        let round = round.min(const { last_step(ITEMS) });
        round * self.stride() + self.rank as usize * ITEMS
    }

    /// Writes this thread's items of a round, as far as the row has them.
    #[inline(always)]
    #[track_caller]
    pub fn set_items(&mut self, round: usize, items: &[T; ITEMS]) {
        // SAFETY: elements of this thread.
        unsafe { self.elements.write_items(self.first(round), items) }
    }

    /// Writes this thread's items of `M` rounds from `round`, as far as the row has them. The row must be [in vectors](Self::in_vectors);
    /// otherwise it is a fault. Accesses have up to 16 bytes, without a branch between them.
    #[inline(always)]
    #[track_caller]
    pub fn set_vectors<const M: usize>(&mut self, round: usize, rounds: &[[T; ITEMS]; M]) {
        // SAFETY: elements of this thread.
        unsafe { self.elements.write_vectors(self.first(round), self.stride(), rounds) }
    }

    /// The number of elements from this thread's items of a round to those of the next round.
    #[inline(always)]
    pub fn stride(&self) -> usize {
        self.threads as usize * ITEMS
    }

    /// Reads back this thread's items of a round. Items that the row does not have keep their values.
    #[inline(always)]
    #[track_caller]
    pub fn get_items(&self, round: usize, items: &mut [T; ITEMS]) {
        // SAFETY: elements of this thread.
        unsafe { self.elements.read_items(self.first(round), items) }
    }
}

impl<T: Element> RowMut<'_, '_, T, 1> {
    /// Writes this thread's items of the first `N` rounds, up to 16, as far as the row has them. Item `i` is in round `i`, which is the
    /// striped arrangement.
    #[inline(always)]
    #[track_caller]
    pub fn set_striped<const N: usize>(&mut self, items: &[T; N]) {
        const { assert!(N <= 16, "at most 16 items at a time") };
        unrolled!(i < N, self.set_items(i, &[items[i]]));
    }
}

/// A block's tile of a [`GlobalMut`]. Thread `t` owns elements `t * ITEMS` to `t * ITEMS + ITEMS`, as far as the tile has them.
pub struct TileMut<'v, 'k, T, const ITEMS: usize> {
    elements: Elements<'k, T>,
    _view: PhantomData<&'v mut T>,
}

impl<T: Element, const ITEMS: usize> TileMut<'_, '_, T, ITEMS> {
    /// The number of elements in the tile.
    #[inline(always)]
    #[allow(clippy::len_without_is_empty, reason = "a tile is never empty")]
    pub fn len(&self) -> usize {
        self.elements.len()
    }

    /// Reads this thread's items. Items that a partial tile does not have keep their values.
    #[inline(always)]
    #[track_caller]
    pub fn read(&self, items: &mut [T; ITEMS]) {
        // SAFETY: elements of this thread.
        unsafe { self.elements.read_items(self.first(ITEMS), items) }
    }

    /// Writes this thread's items, as far as a partial tile has them.
    #[inline(always)]
    #[track_caller]
    pub(crate) fn write(self, items: &[T; ITEMS]) {
        // SAFETY: elements of this thread.
        unsafe { self.elements.write_items(self.first(ITEMS), items) }
    }

    /// Writes the first `lens` of this thread's items to the elements from its rank times `lens`, as far as the tile has them. `lens` is at
    /// most `ITEMS`.
    #[track_caller]
    pub(crate) fn write_lens(self, items: &[T; ITEMS], lens: usize) {
        let first = self.first(lens);
        for (i, &item) in items.iter().enumerate() {
            if i < lens && first + i < self.len() {
                // SAFETY: elements of this thread.
                unsafe { self.elements.write(first + i, item) };
            }
        }
    }

    /// Writes an element of the tile. An index outside is a fault.
    ///
    /// # Safety
    /// No other thread writes the element.
    #[inline(always)]
    #[track_caller]
    pub(crate) unsafe fn write_at(&mut self, index: usize, item: T) {
        // SAFETY: the caller's contract.
        unsafe { self.elements.write(index, item) }
    }

    /// The first element of this thread, if each thread has `lens` elements.
    #[inline(always)]
    fn first(&self, lens: usize) -> usize {
        self.elements.cx().thread_rank() as usize * lens
    }
}
