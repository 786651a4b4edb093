//! Numbers of segments.

use core::mem::offset_of;

use super::{AsSource, Sealed, Source, each};
use crate::element::{ConvertTo, Element, Integer};
use crate::simt::Block;
use crate::view::Layout;

/// Numbers of segments; from [`segments`].
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Segments<S> {
    #[doc(hidden)]
    pub offsets: S,
    len: usize,
}

/// Turns segment offsets into keys, so that algorithms by key can run by segment. The key of an index below `len` is the number of offsets
/// that are not greater than the index: 0 before the first segment, 1 in the segment `offsets[0]..offsets[1]`, and so on.
///
/// `offsets` are integers of any type, also negative ones, which must not decrease; otherwise the keys are unspecified. Keys of 2^32 and
/// more wrap. An item costs as many reads of offsets as their number has bits, and a vector of items costs hardly more.
pub fn segments<S>(offsets: S, len: usize) -> Segments<S> {
    Segments { offsets, len }
}

impl<S> Segments<S> {
    #[doc(hidden)]
    #[cfg(not(target_arch = "nvptx64"))]
    pub fn items(&self) -> usize {
        self.len
    }
}

impl<S: Source<Item: Integer + ConvertTo<u64>>> Segments<S> {
    /// Returns how many offsets are at most `index`, and the next offset.
    ///
    /// # Safety
    /// As for [`Source::item`], of all offsets.
    #[track_caller]
    unsafe fn upto(&self, cx: Block<'_>, index: u64) -> (usize, u64) {
        let (mut low, mut high, mut next) = (0, self.offsets.len(), u64::MAX);
        while low < high {
            let middle = low + (high - low) / 2;
            // SAFETY: inside, and the caller's contract.
            let offset = unsafe { self.offsets.item(cx, middle) };
            // An offset below 0 is not greater than any index. For unsigned integers, the comparison folds away.
            let offset: u64 = if offset < <S::Item as Element>::ZERO { 0 } else { offset.convert() };
            if offset <= index {
                low = middle + 1;
            } else {
                (high, next) = (middle, offset);
            }
        }
        (low, next)
    }
}

impl<S> Sealed for Segments<S> {}
impl<S: Source<Item: Integer + ConvertTo<u64>>> AsSource for Segments<S> {
    type Source = Self;
}

// SAFETY: `repr(C)`, of a source and a number.
unsafe impl<S: Source<Item: Integer + ConvertTo<u64>>> Source for Segments<S> {
    type Item = u32;
    type Short = Self;
    const LAYOUT: Layout = Layout::of::<Self>("segments").with("offsets", offset_of!(Self, offsets), S::LAYOUT);
    const VECTOR: usize = 4;
    const IN_FLIGHT: usize = 4;

    #[inline(always)]
    fn len(&self) -> usize {
        self.len
    }

    #[inline(always)]
    #[track_caller]
    unsafe fn item(&self, cx: Block<'_>, index: usize) -> u32 {
        // SAFETY: the caller's contract, for the memory.
        unsafe { self.upto(cx, index as u64) }.0 as u32
    }

    #[track_caller]
    unsafe fn items<const N: usize>(&self, cx: Block<'_>, first: usize) -> [u32; N] {
        // SAFETY: as above.
        let (mut count, mut next) = unsafe { self.upto(cx, first as u64) };
        each!(i < N, {
            let index = (first + i) as u64;
            if index >= next {
                // SAFETY: as above.
                (count, next) = unsafe { self.upto(cx, index) };
            }
            count as u32
        })
    }
}
