//! Rows of which each warp writes contiguous parts.

use core::marker::PhantomData;
use core::panic::Location;

use super::partition::{Row, Rows};
use super::{Global, GlobalMut, raw};
use crate::element::Element;
#[cfg(not(target_arch = "nvptx64"))]
use crate::simt::emulated::{AccessKind, Space};
use crate::simt::{Block, FaultKind};

/// A block's row of a [`GlobalMut`] in tiles of `block_threads * ITEMS * ROUNDS` elements. Each warp has a contiguous part
/// of a tile, in the order of the warps, and in round `r` lane `l` of its `L` lanes the `ITEMS` elements of that from
/// `(r * L + l) * ITEMS` on, as far as the row has them.
///
/// From [`GlobalMut::row_by_warps`]. A warp reads and writes side by side, and yet what comes before a warp's part is what the warps before it have: the
/// arrangement of [`block_inclusive_scan_rounds`](crate::block::block_inclusive_scan_rounds).
pub struct WarpRowMut<'v, 'k, T, const ITEMS: usize, const ROUNDS: usize> {
    cx: Block<'k>,
    address: *mut T,
    len: usize,
    first: u32,
    stride: u32,
    _view: PhantomData<&'v mut T>,
}

impl<'k, T: Element, const ITEMS: usize> GlobalMut<'k, T, Rows<ITEMS>> {
    /// A row of a matrix with `columns` elements a row, as [`row`](Self::row), whose warps have contiguous parts of it.
    ///
    /// # Safety
    /// As for [`row`](Self::row). All threads of the block call this for the row, with equal `ROUNDS`; after accesses in
    /// another arrangement there is a barrier first.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn row_by_warps<const ROUNDS: usize>(
        &mut self,
        row: Row,
        columns: usize,
    ) -> WarpRowMut<'_, 'k, T, ITEMS, ROUNDS> {
        let (cx, start) = (self.token(), raw::row_start(row.index(), columns));
        let end = start.saturating_add(columns);
        if end > self.len() {
            cx.raise(FaultKind::TileOutOfBounds, [end as u64, self.len() as u64], Location::caller());
        }
        // SAFETY: inside the view.
        let address = unsafe { self.address().add(start) };
        let lane = cx.lane();
        let first = (cx.thread_rank() - lane) * const { (ITEMS * ROUNDS) as u32 } + lane * ITEMS as u32;
        let stride = cx.warp_lanes() * ITEMS as u32;
        // A kernel's loop over rows would otherwise keep every position in a row in registers.
        #[cfg(target_arch = "nvptx64")]
        let (first, stride) = (crate::simt::nvptx::opaque(first), crate::simt::nvptx::opaque(stride));
        WarpRowMut { cx, address, len: columns, first, stride, _view: PhantomData }
    }
}

impl<T: Element, const ITEMS: usize, const ROUNDS: usize> WarpRowMut<'_, '_, T, ITEMS, ROUNDS> {
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

    /// Elements in a tile; the last one of the row may have fewer.
    #[inline(always)]
    pub fn tile(&self) -> usize {
        self.cx.block_threads() as usize * (ITEMS * ROUNDS)
    }

    /// This thread's first element of a tile; it may lie outside.
    #[inline(always)]
    pub fn first(&self, tile: usize) -> usize {
        tile * self.tile() + self.first as usize
    }

    /// Elements from this thread's items of a round to those of the next.
    #[inline(always)]
    pub fn stride(&self) -> usize {
        self.stride as usize
    }

    /// Whether the row starts on the boundary of an access of `ITEMS` elements and has a multiple of `ITEMS`: what
    /// [`set_vectors`](Self::set_vectors) writes.
    #[inline(always)]
    pub fn in_vectors(&self) -> bool {
        raw::in_vectors::<T, ITEMS>(self.address, self.len)
    }

    /// Reads this thread's items of a tile of `row`, which is as long as this one. Items behind its end keep their values.
    /// Accesses and faults are as for [`Global::read_vectors`].
    #[inline(always)]
    #[track_caller]
    pub fn read_vectors_of(&self, row: Global<'_, T>, tile: usize, items: &mut [[T; ITEMS]; ROUNDS]) {
        row.read_vectors(self.first(tile), self.stride(), items);
    }

    /// Writes this thread's items of a tile, as many as the row has. The row is [in vectors](Self::in_vectors): else a fault.
    /// Accesses have up to 16 bytes, and no branch between them.
    #[inline(always)]
    #[track_caller]
    pub fn set_vectors(&mut self, tile: usize, items: &[[T; ITEMS]; ROUNDS]) {
        let (first, stride, place) = (self.first(tile), self.stride(), Location::caller());
        let ahead = raw::vectors_ahead::<T, ITEMS, ROUNDS>(self.cx, self.address, self.len, first, stride, place);
        for (i, items) in items.iter().enumerate() {
            let offset = i as u32 * self.stride;
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
}
