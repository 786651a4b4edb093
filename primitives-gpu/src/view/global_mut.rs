//! Global memory that a launch writes.

use core::marker::PhantomData;
use core::panic::Location;

use super::partition::{Atomic, Item, Partition, PerBlock, PerThread, Row, Rows, Tile, Tiles};
use super::raw::{self, Borrowed};
use crate::element::Element;
#[cfg(not(target_arch = "nvptx64"))]
use crate::simt::emulated::{AccessKind, Space};
use crate::simt::{AtomicElement, AtomicRef, Block, FaultKind};
use crate::warp::unrolled;

/// Elements in global memory that the threads of a launch write.
///
/// A kernel parameter `out: GlobalMut<f32>` takes a `&mut Buffer<f32>` or a mutable slice of one. `P` says which thread
/// owns which element, see [`partition`](super::partition); an owned element is written, and read back, by its owner only.
pub struct GlobalMut<'k, T, P = PerThread> {
    cx: Block<'k>,
    address: *mut T,
    len: usize,
    _borrowed: Borrowed<'k, T>,
    _partition: PhantomData<P>,
}

impl<'k, T: Element, P: Partition> GlobalMut<'k, T, P> {
    /// The view of `len` elements from `address` on.
    ///
    /// # Safety
    /// The elements are valid for `'k`, and only the threads of this launch access them meanwhile, through views of the
    /// same partition, one a thread.
    #[inline(always)]
    pub unsafe fn from_raw(cx: Block<'k>, address: *mut T, len: usize) -> Self {
        Self { cx, address, len, _borrowed: PhantomData, _partition: PhantomData }
    }

    /// The token that the view was made with.
    #[inline(always)]
    pub(crate) fn token(&self) -> Block<'k> {
        self.cx
    }

    /// The first element's address, for accesses that the emulator is shown.
    #[inline(always)]
    pub(super) fn address(&self) -> *mut T {
        self.address
    }

    /// The number of elements.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.len
    }

    /// True if there are none.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The first element's address: the unsafe floor. The emulator does not see what goes through it: it takes the elements
    /// for written from now on.
    #[inline(always)]
    pub fn as_mut_ptr(&mut self) -> *mut T {
        #[cfg(not(target_arch = "nvptx64"))]
        raw::expose(self.cx, Space::Global, self.address, self.len);
        self.address
    }

    /// Reads any element. An index outside the view is a fault.
    ///
    /// # Safety
    /// No other thread writes the element, or a barrier or a release and an acquire lie between its write and this read.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn read(&self, index: usize) -> T {
        self.check(index, Location::caller());
        // SAFETY: inside the view; the caller orders the access.
        unsafe {
            let address = self.address.add(index);
            #[cfg(not(target_arch = "nvptx64"))]
            raw::report(self.cx, AccessKind::Read, Space::Global, address, 1);
            raw::load(address)
        }
    }

    /// Writes any element. An index outside the view is a fault.
    ///
    /// # Safety
    /// No other thread accesses the element, or a barrier or a release and an acquire lie between its access and this
    /// write.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn write(&mut self, index: usize, value: T) {
        self.check(index, Location::caller());
        // SAFETY: inside the view; the caller orders the access.
        unsafe {
            let address = self.address.add(index);
            #[cfg(not(target_arch = "nvptx64"))]
            raw::report(self.cx, AccessKind::Write, Space::Global, address, 1);
            raw::store(address, value);
        }
    }

    /// Reads the `N` elements from `first` on; an item outside the view keeps its value. Vector accesses of up to 16 bytes
    /// where all of them lie inside and the address is aligned for them.
    ///
    /// # Safety
    /// As for [`read`](Self::read), of each element.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn read_items<const N: usize>(&self, first: usize, items: &mut [T; N]) {
        // SAFETY: the view's memory; the caller's contract.
        unsafe { read_guarded(self.cx, self.address, self.len, first, items) }
    }

    /// Writes the `N` elements from `first` on, as many as lie inside the view; accesses are as for
    /// [`read_items`](Self::read_items).
    ///
    /// # Safety
    /// As for [`write`](Self::write), of each element.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn write_items<const N: usize>(&mut self, first: usize, items: &[T; N]) {
        // SAFETY: the view's memory; the caller's contract.
        unsafe { write_guarded(self.cx, self.address, self.len, first, items) }
    }

    /// Writes the `N` elements from `first` on, by accesses of up to 16 bytes; see
    /// [`Global::read_vector`](crate::Global::read_vector). An end outside the view is a fault.
    ///
    /// # Safety
    /// As for [`write`](Self::write), of each element; and the first one's address is a multiple of the access' bytes.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn write_vector<const N: usize>(&mut self, first: usize, items: &[T; N]) {
        if first > self.len || N > self.len - first {
            let args = [first.saturating_add(N) as u64, self.len as u64];
            self.cx.raise(FaultKind::TileOutOfBounds, args, Location::caller());
        }
        // SAFETY: inside the view, and aligned and ordered by the caller's contract.
        unsafe {
            let address = self.address.add(first);
            #[cfg(not(target_arch = "nvptx64"))]
            {
                raw::check_aligned::<T, N>(self.cx, address);
                raw::report(self.cx, AccessKind::Write, Space::Global, address, N);
            }
            raw::store_aligned(address, items);
        }
    }

    #[inline(always)]
    fn check(&self, index: usize, place: &'static Location<'static>) {
        if index >= self.len {
            self.cx.raise(FaultKind::OutOfBounds, [index as u64, self.len as u64], place);
        }
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
    /// Writes this block's element, the one at the block's rank: the first thread's value, the others' are ignored. Fewer
    /// elements than blocks is a fault.
    #[inline(always)]
    #[track_caller]
    pub fn store(&mut self, value: T) {
        if self.cx.thread_rank() == 0 {
            // SAFETY: the element of this block, written by its first thread alone.
            unsafe { self.write(self.cx.block_rank(), value) }
        }
    }
}

impl<'k, T: AtomicElement> GlobalMut<'k, T, Atomic> {
    /// The element at `index`, to access atomically. An index outside the view is a fault.
    #[inline(always)]
    #[track_caller]
    pub fn at(&self, index: usize) -> AtomicRef<'k, T> {
        self.check(index, Location::caller());
        // SAFETY: inside the view; through this partition every access is atomic.
        unsafe { AtomicRef::new(self.cx, self.address.add(index), false) }
    }
}

impl<'k, T: Element, const ITEMS: usize> GlobalMut<'k, T, Tiles<ITEMS>> {
    /// A block's tile, which must lie inside the view: else a fault. What [`write_data`](crate::io::write_data) writes.
    #[inline(always)]
    #[track_caller]
    pub fn tile(&mut self, tile: Tile<ITEMS>) -> TileMut<'_, 'k, T, ITEMS> {
        let end = tile.start() + tile.len();
        if end > self.len {
            self.cx.raise(FaultKind::TileOutOfBounds, [end as u64, self.len as u64], Location::caller());
        }
        // SAFETY: inside the view.
        let address = unsafe { self.address.add(tile.start()) };
        TileMut { cx: self.cx, address, len: tile.len(), _view: PhantomData }
    }
}

impl<'k, T: Element, const ITEMS: usize> GlobalMut<'k, T, Rows<ITEMS>> {
    /// A row of a matrix with `columns` elements a row, which must lie inside the view: else a fault.
    ///
    /// # Safety
    /// All threads of the launch give the same `columns` in every call, so that no two rows overlap: a parameter of the
    /// kernel, or a number made from such.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn row(&mut self, row: Row, columns: usize) -> RowMut<'_, 'k, T, ITEMS> {
        let start = raw::row_start(row.index(), columns);
        let end = start.saturating_add(columns);
        if end > self.len {
            self.cx.raise(FaultKind::TileOutOfBounds, [end as u64, self.len as u64], Location::caller());
        }
        // SAFETY: inside the view.
        let address = unsafe { self.address.add(start) };
        let (rank, threads) = (self.cx.thread_rank(), self.cx.block_threads());
        // A kernel's loop over rows would otherwise keep every position in a row in registers.
        #[cfg(target_arch = "nvptx64")]
        let (rank, threads) = (crate::simt::nvptx::opaque(rank), crate::simt::nvptx::opaque(threads));
        RowMut { cx: self.cx, address, len: columns, rank, threads, _view: PhantomData }
    }
}

/// A block's row of a [`GlobalMut`], which its threads read and write in rounds: in round `r`, thread `t` of `T` has the
/// `ITEMS` elements from `(r * T + t) * ITEMS` on, as far as the row has them.
pub struct RowMut<'v, 'k, T, const ITEMS: usize> {
    cx: Block<'k>,
    address: *mut T,
    len: usize,
    rank: u32,
    threads: u32,
    _view: PhantomData<&'v mut T>,
}

impl<T: Element, const ITEMS: usize> RowMut<'_, '_, T, ITEMS> {
    /// Elements in the row.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.len
    }

    /// True if the row has no elements.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether the row starts on the boundary of an access of `ITEMS` elements and has a multiple of `ITEMS`: what
    /// [`set_vectors`](Self::set_vectors) writes.
    #[inline(always)]
    pub fn in_vectors(&self) -> bool {
        raw::in_vectors::<T, ITEMS>(self.address, self.len)
    }

    /// The first element of this thread in a round; it may lie outside.
    #[inline(always)]
    pub fn first(&self, round: usize) -> usize {
        round * self.stride() + self.rank as usize * ITEMS
    }

    /// Writes this thread's items of a round, as many as the row has.
    #[inline(always)]
    #[track_caller]
    pub fn set_items(&mut self, round: usize, items: &[T; ITEMS]) {
        // SAFETY: elements of this thread, which the function keeps inside the row.
        unsafe { write_guarded(self.cx, self.address, self.len, self.first(round), items) }
    }

    /// Writes this thread's items of `M` rounds from `round` on, as many as the row has. The row is
    /// [in vectors](Self::in_vectors): else a fault. Accesses have up to 16 bytes, and no branch between them.
    #[inline(always)]
    #[track_caller]
    pub fn set_vectors<const M: usize>(&mut self, round: usize, rounds: &[[T; ITEMS]; M]) {
        let (first, stride) = (self.first(round), self.stride());
        let ahead =
            raw::vectors_ahead::<T, ITEMS, M>(self.cx, self.address, self.len, first, stride, Location::caller());
        for (i, items) in rounds.iter().enumerate() {
            let offset = i as u32 * stride as u32;
            if offset < ahead {
                // SAFETY: elements of this thread, inside the row, which ends with a vector, and aligned.
                unsafe {
                    let address = self.address.add(first + offset as usize);
                    #[cfg(not(target_arch = "nvptx64"))]
                    raw::report(self.cx, AccessKind::Write, Space::Global, address, ITEMS);
                    raw::store_vectors(address, items);
                }
            }
        }
    }

    /// Elements from this thread's items of a round to those of the next.
    #[inline(always)]
    pub fn stride(&self) -> usize {
        self.threads as usize * ITEMS
    }

    /// Reads back this thread's items of a round; those that the row does not have keep their values.
    #[inline(always)]
    #[track_caller]
    pub fn get_items(&self, round: usize, items: &mut [T; ITEMS]) {
        // SAFETY: elements of this thread, which the function keeps inside the row.
        unsafe { read_guarded(self.cx, self.address, self.len, self.first(round), items) }
    }
}

impl<T: Element> RowMut<'_, '_, T, 1> {
    /// Writes this thread's items of the first `N` rounds, up to 16, as many as the row has: item `i` in round `i`, which is
    /// the striped arrangement.
    #[inline(always)]
    #[track_caller]
    pub fn set_striped<const N: usize>(&mut self, items: &[T; N]) {
        const { assert!(N <= 16, "at most 16 items at a time") };
        unrolled!(i < N, self.set_items(i, &[items[i]]));
    }
}

/// Reads the items from `first` on, the ones outside left as they are.
///
/// # Safety
/// `address` is valid for reads of `len` elements, and no other thread writes those that are read.
#[inline(always)]
#[track_caller]
unsafe fn read_guarded<T: Element, const ITEMS: usize>(
    cx: Block<'_>,
    address: *const T,
    len: usize,
    first: usize,
    items: &mut [T; ITEMS],
) {
    // SAFETY: inside the memory, by the comparisons; the caller's contract.
    unsafe {
        if len >= ITEMS && first <= len - ITEMS {
            let address = address.add(first);
            #[cfg(not(target_arch = "nvptx64"))]
            raw::report(cx, AccessKind::Read, Space::Global, address, ITEMS);
            raw::load_items(address, items);
        } else {
            raw::load_some(cx, address.wrapping_add(first), len.saturating_sub(first), items);
        }
    }
}

/// Writes the items from `first` on, as many as lie inside.
///
/// # Safety
/// `address` is valid for writes of `len` elements, and no other thread accesses those that are written.
#[inline(always)]
#[track_caller]
unsafe fn write_guarded<T: Element, const ITEMS: usize>(
    cx: Block<'_>,
    address: *mut T,
    len: usize,
    first: usize,
    items: &[T; ITEMS],
) {
    // SAFETY: inside the memory, by the comparisons; the caller's contract.
    unsafe {
        if len >= ITEMS && first <= len - ITEMS {
            let address = address.add(first);
            #[cfg(not(target_arch = "nvptx64"))]
            raw::report(cx, AccessKind::Write, Space::Global, address, ITEMS);
            raw::store_items(address, items);
        } else {
            raw::store_some(cx, address.wrapping_add(first), len.saturating_sub(first), items);
        }
    }
}

/// A block's tile of a [`GlobalMut`]: thread `t` owns elements `t * ITEMS` to `t * ITEMS + ITEMS`, as far as the tile has
/// them.
pub struct TileMut<'v, 'k, T, const ITEMS: usize> {
    cx: Block<'k>,
    address: *mut T,
    len: usize,
    _view: PhantomData<&'v mut T>,
}

impl<T: Element, const ITEMS: usize> TileMut<'_, '_, T, ITEMS> {
    /// Elements in the tile.
    #[inline(always)]
    #[allow(clippy::len_without_is_empty, reason = "a tile is never empty")]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Reads this thread's items, the missing ones of a partial tile left as they are.
    #[inline(always)]
    #[track_caller]
    pub fn read(&self, items: &mut [T; ITEMS]) {
        let first = self.cx.thread_rank() as usize * ITEMS;
        // SAFETY: elements of this thread, which the function keeps inside the tile.
        unsafe { read_guarded(self.cx, self.address, self.len, first, items) }
    }

    /// Writes this thread's items, as many as a partial tile has.
    #[inline(always)]
    #[track_caller]
    pub(crate) fn write(self, items: &[T; ITEMS]) {
        let first = self.cx.thread_rank() as usize * ITEMS;
        // SAFETY: elements of this thread, which the function keeps inside the tile.
        unsafe { write_guarded(self.cx, self.address, self.len, first, items) }
    }

    /// Writes the first `lens` of this thread's items to the elements from its rank times `lens` on, as many as the tile has.
    /// `lens` is at most `ITEMS`.
    #[inline(always)]
    #[track_caller]
    pub(crate) fn write_lens(self, items: &[T; ITEMS], lens: usize) {
        let first = self.cx.thread_rank() as usize * lens;
        for (i, &item) in items.iter().enumerate() {
            if i < lens && first + i < self.len {
                // SAFETY: inside the tile.
                let address = unsafe { self.address.add(first + i) };
                #[cfg(not(target_arch = "nvptx64"))]
                raw::report(self.cx, AccessKind::Write, Space::Global, address, 1);
                // SAFETY: inside the tile.
                unsafe { raw::store(address, item) };
            }
        }
    }
}
