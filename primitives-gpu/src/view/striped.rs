//! Tiles that neighbouring threads write neighbouring elements of.

use core::marker::PhantomData;
use core::panic::Location;

use super::partition::{Striped, Tile, WarpStriped};
use super::{GlobalMut, raw};
use crate::element::Element;
#[cfg(not(target_arch = "nvptx64"))]
use crate::simt::emulated::{AccessKind, Space};
use crate::simt::{Block, FaultKind};

/// A block's tile of a [`GlobalMut`] whose partition is [`Striped`] or [`WarpStriped`]: a thread owns `ITEMS` elements that
/// are a step apart, as far as the tile has them.
pub struct StripedMut<'v, 'k, T, const ITEMS: usize> {
    #[cfg_attr(target_arch = "nvptx64", allow(dead_code, reason = "for the emulator's reports"))]
    cx: Block<'k>,
    address: *mut T,
    len: usize,
    first: usize,
    step: usize,
    _view: PhantomData<&'v mut T>,
}

/// A thread's first element in the striped arrangement of a tile, and how far its elements are apart.
#[inline(always)]
pub(crate) fn stripe(cx: Block<'_>) -> (usize, usize) {
    (cx.thread_rank() as usize, cx.block_threads() as usize)
}

/// As [`stripe`], in the warp-striped arrangement.
#[inline(always)]
pub(crate) fn warp_stripe<const ITEMS: usize>(cx: Block<'_>) -> (usize, usize) {
    let before = cx.thread_rank() as usize - cx.lane() as usize;
    (before * ITEMS + cx.lane() as usize, cx.warp_lanes() as usize)
}

impl<'k, T: Element, const ITEMS: usize> GlobalMut<'k, T, Striped<ITEMS>> {
    /// A block's tile, which must lie inside the view: else a fault. What
    /// [`store_striped`](crate::block::store_striped) writes.
    #[inline(always)]
    #[track_caller]
    pub fn tile(&mut self, tile: Tile<ITEMS>) -> StripedMut<'_, 'k, T, ITEMS> {
        StripedMut::new(self.token(), self.as_mut_ptr(), self.len(), tile, stripe(self.token()))
    }
}

impl<'k, T: Element, const ITEMS: usize> GlobalMut<'k, T, WarpStriped<ITEMS>> {
    /// A block's tile, which must lie inside the view: else a fault. What
    /// [`store_striped`](crate::block::store_striped) writes.
    #[inline(always)]
    #[track_caller]
    pub fn tile(&mut self, tile: Tile<ITEMS>) -> StripedMut<'_, 'k, T, ITEMS> {
        StripedMut::new(self.token(), self.as_mut_ptr(), self.len(), tile, warp_stripe::<ITEMS>(self.token()))
    }
}

impl<'k, T: Element, const ITEMS: usize> StripedMut<'_, 'k, T, ITEMS> {
    #[inline(always)]
    #[track_caller]
    fn new(cx: Block<'k>, address: *mut T, len: usize, tile: Tile<ITEMS>, (first, step): (usize, usize)) -> Self {
        let end = tile.start() + tile.len();
        if end > len {
            cx.raise(FaultKind::TileOutOfBounds, [end as u64, len as u64], Location::caller());
        }
        // SAFETY: inside the view.
        let address = unsafe { address.add(tile.start()) };
        Self { cx, address, len: tile.len(), first, step, _view: PhantomData }
    }

    /// Elements in the tile.
    #[inline(always)]
    #[allow(clippy::len_without_is_empty, reason = "a tile is never empty")]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Writes this thread's items, as many as a partial tile has.
    #[inline(always)]
    #[track_caller]
    pub(crate) fn write(self, items: &[T; ITEMS]) {
        // One compare for a full tile.
        let full = self.first + (ITEMS - 1) * self.step < self.len;
        let mut i = 0;
        while i < ITEMS {
            let index = self.first + i * self.step;
            if full || index < self.len {
                // SAFETY: inside the tile, and this thread's own.
                unsafe {
                    let address = self.address.add(index);
                    #[cfg(not(target_arch = "nvptx64"))]
                    raw::report(self.cx, AccessKind::Write, Space::Global, address, 1);
                    raw::store(address, items[i]);
                }
            }
            i += 1;
        }
    }
}
