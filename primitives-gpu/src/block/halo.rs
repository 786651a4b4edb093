//! Parts of a tensor in shared memory, with the elements around them.

use core::marker::PhantomData;
use core::mem::size_of;
use core::panic::Location;

use crate::element::Element;
use crate::simt::{Block, FaultKind};
use crate::view::{Global, Shared, SharedArray, SharedStorage};

/// The values that [`block_load_halo`] reads for elements outside the tensor. NumPy's `pad` calls them `edge`, `wrap`, `reflect`,
/// `symmetric` and `constant`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Border<T> {
    /// The nearest element.
    Clamp,
    /// The tensor repeats.
    Periodic,
    /// The tensor is mirrored at its outermost element, which is not repeated.
    Mirror,
    /// The tensor is mirrored beside its outermost element, which is repeated.
    Symmetric,
    /// This value.
    Constant(T),
}

impl<T> Border<T> {
    /// The index that is read instead of `at`, or `None` for the constant. `extent` is at least 1.
    fn index(&self, at: isize, extent: isize) -> Option<isize> {
        if (0..extent).contains(&at) {
            return Some(at);
        }
        // Maps an index of an endless repetition to an index of one period. The second half of a period may run backwards.
        let within = |period: isize| at.checked_rem_euclid(period).unwrap_or(0);
        match self {
            Self::Clamp => Some(if at < 0 { 0 } else { extent - 1 }),
            Self::Periodic => Some(within(extent)),
            Self::Mirror => {
                let period = 2 * (extent - 1);
                let at = within(period);
                Some(at.min(period - at))
            }
            Self::Symmetric => {
                let period = 2 * extent;
                let at = within(period);
                Some(at.min(period - 1 - at))
            }
            Self::Constant(_) => None,
        }
    }
}

/// The shared memory of [`block_load_halo`]: up to `ELEMENTS` elements, including those around a tile.
pub struct HaloStorage<T, const ELEMENTS: usize>(PhantomData<T>);

// SAFETY: uninitialised elements.
unsafe impl<T: Element, const ELEMENTS: usize> SharedStorage for HaloStorage<T, ELEMENTS> {
    const BYTES: usize = ELEMENTS * size_of::<T>();
    const ALIGN: usize = 16;
}

/// A part of a tensor in shared memory. It is complete, and does not change as long as the storage is borrowed.
pub struct Halo<'s, T, const N: usize> {
    cx: Block<'s>,
    elements: SharedArray<'s, T>,
    extents: [usize; N],
}

impl<T, const N: usize> Clone for Halo<'_, T, N> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}
impl<T, const N: usize> Copy for Halo<'_, T, N> {}

impl<T: Element, const N: usize> Halo<'_, T, N> {
    /// The extents, outermost first.
    #[inline(always)]
    pub fn extents(self) -> [usize; N] {
        self.extents
    }

    /// The element at an index, which counts from the first element of the window. An index outside is a fault.
    #[track_caller]
    pub fn at(self, index: [usize; N]) -> T {
        let mut place = 0;
        for (at, extent) in index.into_iter().zip(self.extents) {
            if at >= extent {
                self.cx.raise(FaultKind::OutOfBounds, [at as u64, extent as u64], Location::caller());
            }
            place = place * extent + at;
        }
        // SAFETY: inside; a barrier lies between the writes and this, and the next use of the storage begins with one.
        unsafe { self.elements.load(place) }
    }
}

/// Reads a window of a tensor into shared memory, for all threads. Usually this is a block's tile with its halo: the elements around it
/// that a stencil reads.
///
/// - `src`: the tensor, whose elements are contiguous, the last axis fastest.
/// - `extents`: its extents, outermost first.
/// - `first`: the index of the window's first element. It may be outside the tensor, as it is for the halo before the first tile.
/// - `window`: the window's extents.
/// - `border`: the values for elements outside, at any distance.
///
/// Phases: the threads read the elements of the window, neighbouring threads read neighbouring elements, and write them to shared memory;
/// barrier. There is one barrier, and one before it if the storage was used before. Any block shape works. An element of the window is read
/// from global memory once, and from shared memory as often as it is a neighbour. This pays if there are many neighbours. Generated kernels
/// of stencils use registers instead, as far as the outputs of a thread share neighbours.
///
/// These are faults: a window of more than `ELEMENTS` elements, a window that ends after `isize::MAX`, extents with more elements than
/// `src`, and a window with elements of an empty tensor. All arguments must be the same in all threads. If `window` is a constant, the
/// division of the elements among the threads is computed at compile time.
///
/// Shared memory: the elements of the window, the last axis fastest. It may be used again after the next barrier, which the next collective
/// on it makes by itself.
///
/// CUB has no such collective.
///
/// All threads of the block call it: see [divergence](crate::block#divergence).
///
/// ```
/// use kernel_primitives::block::{Border, HaloStorage, block_load_halo};
/// use kernel_primitives::prelude::*;
///
/// /// The sum of each element and those beside it, by blocks of 64 threads, of whose elements `x` has a multiple.
/// #[kernel]
/// fn sums(cx: Block, x: Global<u32>, mut out: GlobalMut<u32>, mut shared: Shared<HaloStorage<u32, 66>>) {
///     for (tile, i) in cx.tiles::<1>(out.len()).zip(cx.items(out.len())) {
///         let first = tile.start() as isize - 1;
///         let window = block_load_halo(cx, &mut shared, x, [x.len()], [first], [66], Border::Periodic);
///         let rank = cx.thread_rank() as usize;
///         out.set(i, window.at([rank]) + window.at([rank + 1]) + window.at([rank + 2]));
///     }
/// }
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = kernel_primitives::Device::emulator().stream()?;
/// let x = stream.buffer_from(&(0..128).collect::<Vec<u32>>())?;
/// let mut out = stream.buffer_zeroed::<u32>(128)?;
/// sums::launch(&stream, (2, 64), &x, &mut out)?;
/// let out = out.to_vec()?;
/// assert_eq!((out[0], out[63], out[64], out[127]), (127 + 0 + 1, 62 + 63 + 64, 63 + 64 + 65, 126 + 127 + 0));
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn block_load_halo<'s, T: Element, const N: usize, const ELEMENTS: usize>(
    cx: Block<'s>,
    shared: &'s mut Shared<'_, HaloStorage<T, ELEMENTS>>,
    src: Global<'_, T>,
    extents: [usize; N],
    first: [isize; N],
    window: [usize; N],
    border: Border<T>,
) -> Halo<'s, T, N> {
    let product = |all: [usize; N]| all.into_iter().fold(1usize, usize::saturating_mul);
    let (elements, count) = (product(extents), product(window));
    if count > ELEMENTS {
        cx.raise(FaultKind::BadShape, [count as u64, ELEMENTS as u64], Location::caller());
    }
    if elements > src.len() || (elements == 0 && count > 0) {
        cx.raise(FaultKind::BadShape, [elements as u64, src.len() as u64], Location::caller());
    }
    for (first, window) in first.into_iter().zip(window) {
        if first.checked_add_unsigned(window).is_none() {
            cx.raise(FaultKind::BadShape, [first as u64, window as u64], Location::caller());
        }
    }
    shared.enter();
    let array = shared.array::<T>(0, ELEMENTS);
    let mut i = cx.thread_rank() as usize;
    while i < count {
        // The elements fit in shared memory, so 32 bits can count them, and divisions are shorter.
        let (mut rest, mut place, mut stride) = (i as u32, 0, 1);
        let mut inside = true;
        for axis in (0..N).rev() {
            // If there is an element, no extent is 0.
            let (extent, along) = (extents[axis] as isize, (window[axis] as u32).max(1));
            let at = first[axis] + (rest % along) as isize;
            rest /= along;
            match border.index(at, extent) {
                Some(at) => place += at as usize * stride,
                None => inside = false,
            }
            stride *= extents[axis];
        }
        let value = match border {
            Border::Constant(value) if !inside => value,
            _ => src[place],
        };
        // SAFETY: inside of the array, and each thread writes its own elements.
        unsafe { array.store(i, value) };
        i += cx.block_threads() as usize;
    }
    cx.barrier();
    Halo { cx, elements: array, extents: window }
}
