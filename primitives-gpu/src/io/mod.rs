//! Moving data between global memory and registers, a block's tile at a time.

use crate::element::Element;
use crate::simt::Block;
use crate::view::{Global, TileMut};

/// Registers filled with one value. Seed: `Init`.
///
/// What a guarded read leaves in the items that lie outside: pick a value that the computation can bear.
#[inline(always)]
pub fn init<T: Copy, const N: usize>(value: T) -> [T; N] {
    [value; N]
}

/// Reads a block's data in the blocked arrangement: thread `t` gets elements `t * NX` to `t * NX + NX`.
///
/// - `dst`: the thread's registers; an item outside `src` keeps its value.
/// - `src`: the block's data, usually [`Global::tile`]; its length is the guard, so any length is right.
///
/// A thread whose items all lie inside reads them in accesses of up to 16 bytes if `src` starts on such a boundary, and one
/// by one otherwise. No shared memory, no barrier; threads are counted by [`Block::thread_rank`], so any block shape works.
/// Every thread of the block may call it or not.
///
/// Seed: `ReadData<T, NX, 1, IsBoundary>(dst, src, num)`. There the caller promises with `IsBoundary` that a tile is full,
/// and vector access assumes alignment; here both are found out, at the cost of a compare.
///
/// ```
/// use kernel_primitives::prelude::*;
///
/// #[kernel]
/// fn copy(cx: Block, x: Global<f32>, mut out: GlobalMut<f32, Tiles<4>>) {
///     for tile in cx.tiles::<4>(out.len()) {
///         let mut items = init::<f32, 4>(0.0);
///         read_data(cx, &mut items, x.tile(tile));
///         write_data(cx, out.tile(tile), &items);
///     }
/// }
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let device = kernel_primitives::Device::emulator();
/// let stream = device.stream()?;
/// let x = stream.buffer_from(&[1.0f32, 2.0, 3.0])?;
/// let mut out = stream.buffer_zeroed::<f32>(3)?;
/// copy::launch(&stream, kernel_primitives::Dims::for_items(3).items_per_thread(4), &x, &mut out)?;
/// assert_eq!(out.to_vec()?, [1.0, 2.0, 3.0]);
/// # Ok(())
/// # }
/// ```
#[inline(always)]
#[track_caller]
pub fn read_data<T: Element, const NX: usize>(cx: Block<'_>, dst: &mut [T; NX], src: Global<'_, T>) {
    let first = cx.thread_rank() as usize * NX;
    if first + NX <= src.len() {
        src.load_items(first, dst);
    } else {
        for (i, item) in dst.iter_mut().enumerate() {
            if first + i < src.len() {
                *item = src[first + i];
            }
        }
    }
}

/// Writes a block's data in the blocked arrangement: thread `t` writes elements `t * NX` to `t * NX + NX`, as many of them as
/// the tile has.
///
/// - `dst`: the block's tile of the output, from [`GlobalMut::tile`](crate::GlobalMut::tile).
/// - `src`: the thread's registers.
///
/// Width, guard and scope are as for [`read_data`]. Seed: `WriteData<T, NX, 1, IsBoundary>(dst, src, num)`.
#[inline(always)]
#[track_caller]
pub fn write_data<T: Element, const NX: usize>(cx: Block<'_>, dst: TileMut<'_, '_, T, NX>, src: &[T; NX]) {
    let _ = cx;
    dst.write(src);
}
