//! Rows that the warps of a block write together. Each warp has a contiguous part.

use core::marker::PhantomData;

use super::elements::{Elements, opaque};
use super::global_mut::last_step;
use super::partition::{Row, Rows};
use super::{Global, GlobalMut};
use crate::element::Element;

/// A block's row of a [`GlobalMut`] in tiles of `block_threads * ITEMS * ROUNDS` elements. Each warp has a contiguous part of a tile, in
/// the order of the warps. In round `r`, lane `l` of its `L` lanes has the `ITEMS` elements of that part from `(r * L + l) * ITEMS`, as far
/// as the row has them.
///
/// It comes from [`GlobalMut::row_by_warps`]. The accesses of a warp are coalesced, and still the elements before a warp's part are those
/// of earlier warps. This is the arrangement of [`block_inclusive_scan_rounds`](crate::block::block_inclusive_scan_rounds).
pub struct WarpRowMut<'v, 'k, T, const ITEMS: usize, const ROUNDS: usize> {
    elements: Elements<'k, T>,
    first: u32,
    stride: u32,
    _view: PhantomData<&'v mut T>,
}

impl<'k, T: Element, const ITEMS: usize> GlobalMut<'k, T, Rows<ITEMS>> {
    /// A row of a matrix with `columns` elements in each row, as [`row`](Self::row), whose warps have contiguous parts of it.
    ///
    /// # Safety
    /// As for [`row`](Self::row). All threads of the block call this for the row, with equal `ROUNDS`; after accesses in
    /// another arrangement there is a barrier first.
    #[track_caller]
    pub unsafe fn row_by_warps<const ROUNDS: usize>(
        &mut self,
        row: Row,
        columns: usize,
    ) -> WarpRowMut<'_, 'k, T, ITEMS, ROUNDS> {
        let elements = self.elements().row(row.index(), columns);
        let cx = elements.cx();
        let lane = cx.lane();
        let first = (cx.thread_rank() - lane) * const { (ITEMS * ROUNDS) as u32 } + lane * ITEMS as u32;
        let stride = cx.warp_lanes() * ITEMS as u32;
        WarpRowMut { elements, first: opaque(first), stride: opaque(stride), _view: PhantomData }
    }
}

impl<T: Element, const ITEMS: usize, const ROUNDS: usize> WarpRowMut<'_, '_, T, ITEMS, ROUNDS> {
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

    /// The number of elements in a tile. The last tile of the row may have fewer.
    #[inline(always)]
    pub fn tile(&self) -> usize {
        self.elements.cx().block_threads() as usize * (ITEMS * ROUNDS)
    }

    /// The first element of this thread in a tile, which may be outside. For a tile that no row can have, it is some element outside.
    #[inline(always)]
    pub fn first(&self, tile: usize) -> usize {
        let tile = tile.min(const { last_step(ITEMS * ROUNDS) });
        tile * self.tile() + self.first as usize
    }

    /// The number of elements from this thread's items of a round to those of the next round.
    #[inline(always)]
    pub fn stride(&self) -> usize {
        self.stride as usize
    }

    /// Returns whether the row is aligned for accesses of `ITEMS` elements and its length is a multiple of `ITEMS`.
    /// [`set_vectors`](Self::set_vectors) needs this.
    #[inline(always)]
    pub fn in_vectors(&self) -> bool {
        self.elements.in_vectors::<ITEMS>()
    }

    /// Reads this thread's items of a tile of `row`, which must be as long as this row. Items after its end keep their values. Accesses and
    /// faults are those of [`Global::read_vectors`].
    #[inline(always)]
    #[track_caller]
    pub fn read_vectors_of(&self, row: Global<'_, T>, tile: usize, items: &mut [[T; ITEMS]; ROUNDS]) {
        row.read_vectors(self.first(tile), self.stride(), items);
    }

    /// Writes this thread's items of a tile, as far as the row has them. The row must be [in vectors](Self::in_vectors); otherwise it is a
    /// fault. Accesses have up to 16 bytes, without a branch between them.
    #[inline(always)]
    #[track_caller]
    pub fn set_vectors(&mut self, tile: usize, items: &[[T; ITEMS]; ROUNDS]) {
        // SAFETY: elements of this thread.
        unsafe { self.elements.write_vectors(self.first(tile), self.stride(), items) }
    }
}
