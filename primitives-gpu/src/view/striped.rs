//! Tiles in which neighbouring threads write neighbouring elements.

use core::marker::PhantomData;

use super::GlobalMut;
use super::elements::Elements;
use super::partition::{Striped, Tile, WarpStriped};
use crate::element::Element;
use crate::simt::Block;

/// A block's tile of a [`GlobalMut`] whose partition is [`Striped`] or [`WarpStriped`]. A thread owns `ITEMS` elements that are one step
/// apart, as far as the tile has them.
pub struct StripedMut<'v, 'k, T, const ITEMS: usize> {
    elements: Elements<'k, T>,
    first: usize,
    step: usize,
    _view: PhantomData<&'v mut T>,
}

/// The first element of a thread in the striped arrangement of a tile, and the distance of its elements.
#[inline(always)]
pub(crate) fn stripe(cx: Block<'_>) -> (usize, usize) {
    (cx.thread_rank() as usize, cx.block_threads() as usize)
}

/// Works as [`stripe`], in the warp-striped arrangement.
#[inline(always)]
pub(crate) fn warp_stripe<const ITEMS: usize>(cx: Block<'_>) -> (usize, usize) {
    let before = cx.thread_rank() as usize - cx.lane() as usize;
    (before * ITEMS + cx.lane() as usize, cx.warp_lanes() as usize)
}

impl<'k, T: Element, const ITEMS: usize> GlobalMut<'k, T, Striped<ITEMS>> {
    /// A block's tile, for [`store_striped`](crate::block::store_striped). It must be inside the view; otherwise it is a fault.
    #[inline(always)]
    #[track_caller]
    pub fn tile(&mut self, tile: Tile<ITEMS>) -> StripedMut<'_, 'k, T, ITEMS> {
        StripedMut::new(self.elements(), tile, stripe)
    }
}

impl<'k, T: Element, const ITEMS: usize> GlobalMut<'k, T, WarpStriped<ITEMS>> {
    /// A block's tile, for [`store_striped`](crate::block::store_striped). It must be inside the view; otherwise it is a fault.
    #[inline(always)]
    #[track_caller]
    pub fn tile(&mut self, tile: Tile<ITEMS>) -> StripedMut<'_, 'k, T, ITEMS> {
        StripedMut::new(self.elements(), tile, warp_stripe::<ITEMS>)
    }
}

impl<'k, T: Element, const ITEMS: usize> StripedMut<'_, 'k, T, ITEMS> {
    #[inline(always)]
    #[track_caller]
    fn new(elements: Elements<'k, T>, tile: Tile<ITEMS>, stripe: impl FnOnce(Block<'k>) -> (usize, usize)) -> Self {
        let (first, step) = stripe(elements.cx());
        let elements = elements.slice(tile.start(), tile.start() + tile.len());
        Self { elements, first, step, _view: PhantomData }
    }

    /// The number of elements in the tile.
    #[inline(always)]
    #[allow(clippy::len_without_is_empty, reason = "a tile is never empty")]
    pub fn len(&self) -> usize {
        self.elements.len()
    }

    /// Writes this thread's items, as far as a partial tile has them.
    #[track_caller]
    pub(crate) fn write(self, items: &[T; ITEMS]) {
        // A full tile needs one comparison.
        let full = self.first + (ITEMS - 1) * self.step < self.len();
        let mut i = 0;
        while i < ITEMS {
            let index = self.first + i * self.step;
            if full || index < self.len() {
                // SAFETY: an element of this thread, inside the tile.
                unsafe { self.elements.write_inside(index, items[i]) };
            }
            i += 1;
        }
    }
}
