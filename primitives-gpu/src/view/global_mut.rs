//! Global memory that a launch writes.

use core::marker::PhantomData;
use core::panic::Location;

use super::partition::{Atomic, Item, Partition, PerBlock, PerThread, Tile, Tiles};
use super::raw::{self, Borrowed};
use crate::element::Element;
#[cfg(not(target_arch = "nvptx64"))]
use crate::simt::emulated::{AccessKind, Space};
use crate::simt::{AtomicElement, AtomicRef, Block, FaultKind};

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

    /// The first element's address.
    #[inline(always)]
    pub fn as_mut_ptr(&mut self) -> *mut T {
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
        // SAFETY: elements of this thread, inside the tile.
        unsafe {
            if first + ITEMS <= self.len {
                let address = self.address.add(first);
                #[cfg(not(target_arch = "nvptx64"))]
                raw::report(self.cx, AccessKind::Read, Space::Global, address, ITEMS);
                raw::load_items(address, items);
            } else {
                for (i, item) in items.iter_mut().enumerate() {
                    if first + i < self.len {
                        let address = self.address.add(first + i);
                        #[cfg(not(target_arch = "nvptx64"))]
                        raw::report(self.cx, AccessKind::Read, Space::Global, address, 1);
                        *item = raw::load(address);
                    }
                }
            }
        }
    }

    /// Writes this thread's items, as many as a partial tile has.
    #[inline(always)]
    #[track_caller]
    pub(crate) fn write(self, items: &[T; ITEMS]) {
        let first = self.cx.thread_rank() as usize * ITEMS;
        // SAFETY: elements of this thread, inside the tile.
        unsafe {
            if first + ITEMS <= self.len {
                let address = self.address.add(first);
                #[cfg(not(target_arch = "nvptx64"))]
                raw::report(self.cx, AccessKind::Write, Space::Global, address, ITEMS);
                raw::store_items(address, items);
            } else {
                for (i, &item) in items.iter().enumerate() {
                    if first + i < self.len {
                        let address = self.address.add(first + i);
                        #[cfg(not(target_arch = "nvptx64"))]
                        raw::report(self.cx, AccessKind::Write, Space::Global, address, 1);
                        raw::store(address, item);
                    }
                }
            }
        }
    }
}
