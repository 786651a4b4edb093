//! Reads and writes tiles of global memory in the striped arrangements, in which neighbouring threads have neighbouring items.

use crate::element::Element;
use crate::simt::Block;
use crate::view::{Global, StripedMut, stripe, warp_stripe};

/// Reads a block's tile in the striped arrangement: item `i` of thread `t` is the tile's element `i * threads + t`.
///
/// - `dst`: the registers of the thread; an item outside `src` keeps its value.
/// - `src`: the tile, usually [`Global::tile`]. Its length is the guard, so any length is right.
///
/// Each access of a warp is coalesced, whatever the number of items. If the blocked arrangement can be read in vectors,
/// [`read_data`](crate::io::read_data) makes fewer accesses. No shared memory, no barrier.
///
/// CUB: `BLOCK_LOAD_STRIPED`, `LoadDirectStriped`.
///
/// No thread waits for another here: any may call it or not.
///
/// ```
/// use kernel_primitives::prelude::*;
///
/// #[kernel]
/// fn copy(cx: Block, x: Global<f32>, mut out: GlobalMut<f32, Striped<5>>) {
///     for tile in cx.tiles::<5>(out.len()) {
///         let mut items = init::<f32, 5>(0.0);
///         load_striped(cx, &mut items, x.tile(tile));
///         store_striped(cx, out.tile(tile), &items);
///     }
/// }
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = kernel_primitives::Device::emulator().stream()?;
/// let x = stream.buffer_from(&[1.0f32, 2.0, 3.0])?;
/// let mut out = stream.buffer_zeroed::<f32>(3)?;
/// copy::launch(&stream, (1, 32), &x, &mut out)?;
/// assert_eq!(out.to_vec()?, [1.0, 2.0, 3.0]);
/// # Ok(())
/// # }
/// ```
#[inline(always)]
#[track_caller]
pub fn load_striped<T: Element, const ITEMS: usize>(cx: Block<'_>, dst: &mut [T; ITEMS], src: Global<'_, T>) {
    let (first, step) = stripe(cx);
    load(dst, src, first, step);
}

/// Reads a block's tile in the warp-striped arrangement. Each warp has `32 * ITEMS` consecutive elements, and lane `l` gets `l`, `l + 32`
/// and so on. In a partial warp, the step is the number of its lanes. Guard and cost are those of [`load_striped`].
///
/// CUB: `LoadDirectWarpStriped`, `WarpLoad`. Differences: reads the warp's part of the block's tile.
///
/// No thread waits for another here: any may call it or not.
///
/// ```
/// use kernel_primitives::prelude::*;
///
/// #[kernel]
/// fn copy(cx: Block, x: Global<f32>, mut out: GlobalMut<f32, WarpStriped<5>>) {
///     for tile in cx.tiles::<5>(out.len()) {
///         let mut items = init::<f32, 5>(0.0);
///         load_warp_striped(cx, &mut items, x.tile(tile));
///         store_striped(cx, out.tile(tile), &items);
///     }
/// }
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = kernel_primitives::Device::emulator().stream()?;
/// let x = stream.buffer_from(&[1.0f32, 2.0, 3.0])?;
/// let mut out = stream.buffer_zeroed::<f32>(3)?;
/// copy::launch(&stream, (1, 64), &x, &mut out)?;
/// assert_eq!(out.to_vec()?, [1.0, 2.0, 3.0]);
/// # Ok(())
/// # }
/// ```
#[inline(always)]
#[track_caller]
pub fn load_warp_striped<T: Element, const ITEMS: usize>(cx: Block<'_>, dst: &mut [T; ITEMS], src: Global<'_, T>) {
    let (first, step) = warp_stripe::<ITEMS>(cx);
    load(dst, src, first, step);
}

/// Writes a block's tile in the arrangement of the output's partition: [`Striped`](crate::view::Striped), as [`load_striped`] reads, or
/// [`WarpStriped`](crate::view::WarpStriped), as [`load_warp_striped`] reads. It writes only the items that the tile has. The cost is that
/// of [`load_striped`].
///
/// CUB: `StoreDirectStriped`, `StoreDirectWarpStriped`, `WarpStore`. Differences: the output's partition says which arrangement it is.
///
/// No thread waits for another here: any may call it or not.
#[inline(always)]
#[track_caller]
pub fn store_striped<T: Element, const ITEMS: usize>(
    cx: Block<'_>,
    dst: StripedMut<'_, '_, T, ITEMS>,
    src: &[T; ITEMS],
) {
    let _ = cx;
    dst.write(src);
}

#[track_caller]
fn load<T: Element, const ITEMS: usize>(dst: &mut [T; ITEMS], src: Global<'_, T>, first: usize, step: usize) {
    const { assert!(ITEMS > 0, "a collective has at least one item a thread") };
    let mut i = 0;
    // A full tile needs one comparison. Its loads are then together.
    if first + (ITEMS - 1) * step < src.len() {
        while i < ITEMS {
            dst[i] = src[first + i * step];
            i += 1;
        }
    } else {
        while i < ITEMS {
            if first + i * step < src.len() {
                dst[i] = src[first + i * step];
            }
            i += 1;
        }
    }
}
