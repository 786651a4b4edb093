//! Moves a block's tiles of data between global memory and registers.
//!
//! | | blocked, 1-D | 2-D with strides | broadcast |
//! |---|---|---|---|
//! | read | [`read_data`], [`read_data_lens`], [`read_data_into`] | [`read_data_2d`], [`read_data_reduce`] | [`read_data_bc`], [`read_data_bc_2d`] |
//! | write | [`write_data`], [`write_data_lens`] | [`write_data_2d`] | |
//!
//! Every read is guarded by lengths that are right for any block. An item outside keeps the value that [`init`] gave it.

mod broadcast;
mod divisor;
mod strided;

pub use broadcast::{BroadcastConfig, BroadcastError, MAX_RANK, read_data_bc, read_data_bc_2d};
pub use divisor::{FastDivMod, IndexInt};
pub use strided::{Window, read_data_2d, read_data_reduce, write_data_2d};

use core::panic::Location;

use crate::element::{ConvertTo, Element};
use crate::simt::{Block, FaultKind};
use crate::view::{Global, TileMut};

/// Returns registers filled with one value. Seed: `Init`.
///
/// A guarded read leaves this value in items outside: choose a value that does not disturb the computation.
#[inline(always)]
pub fn init<T: Copy, const N: usize>(value: T) -> [T; N] {
    [value; N]
}

/// Returns registers filled with their own indices, in the blocked arrangement: item `i` of thread `t` is `first + t * NX + i`, converted.
/// Seed: `InitWithDataIndex`.
///
/// ```
/// use kernel_primitives::prelude::*;
/// use kernel_primitives::io::init_with_data_index;
///
/// #[kernel]
/// fn squares(cx: Block, mut out: GlobalMut<f32, Tiles<4>>) {
///     for tile in cx.tiles::<4>(out.len()) {
///         let index: [f32; 4] = init_with_data_index(cx, tile.start());
///         write_data(cx, out.tile(tile), &index.map(|i| i * i));
///     }
/// }
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = kernel_primitives::Device::emulator().stream()?;
/// let mut out = stream.buffer_zeroed::<f32>(6)?;
/// squares::launch(&stream, (1, 32), &mut out)?;
/// assert_eq!(out.to_vec()?, [0.0, 1.0, 4.0, 9.0, 16.0, 25.0]);
/// # Ok(())
/// # }
/// ```
#[inline(always)]
pub fn init_with_data_index<T, const NX: usize>(cx: Block<'_>, first: usize) -> [T; NX]
where
    usize: ConvertTo<T>,
{
    let first = first + cx.thread_rank() as usize * NX;
    core::array::from_fn(|i| (first + i).convert())
}

/// Reads a block's data in the blocked arrangement. Thread `t` gets elements `t * NX` to `t * NX + NX`.
///
/// - `dst`: the registers of the thread; an item outside `src` keeps its value.
/// - `src`: the data of the block, usually [`Global::tile`]. Its length is the guard, so any length is right.
///
/// If all items of a thread are inside, it reads them in accesses of up to 16 bytes if `src` is aligned to these, and one by one otherwise.
/// No shared memory, no barrier. [`Block::thread_rank`] numbers the threads, so any block shape works. Every thread of the block may call
/// it or not.
///
/// Seed: `ReadData<T, NX, 1, IsBoundary>(dst, src, num)`. There, the caller promises with `IsBoundary` that a tile is full, and vector
/// access assumes alignment. Here, comparisons find out both.
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
    src.read_items(cx.thread_rank() as usize * NX, dst);
}

/// Writes a block's data in the blocked arrangement. Thread `t` writes elements `t * NX` to `t * NX + NX`, as far as the tile has them.
///
/// - `dst`: the tile of the block in the output, from [`GlobalMut::tile`](crate::GlobalMut::tile).
/// - `src`: the registers of the thread.
///
/// Width, guard and scope are those of [`read_data`]. Seed: `WriteData<T, NX, 1, IsBoundary>(dst, src, num)`.
#[inline(always)]
#[track_caller]
pub fn write_data<T: Element, const NX: usize>(cx: Block<'_>, dst: TileMut<'_, '_, T, NX>, src: &[T; NX]) {
    let _ = cx;
    dst.write(src);
}

/// Reads a block's data in the blocked arrangement, with a number of items for each thread that is known at run time. Thread `t` gets
/// elements `t * lens` to `t * lens + lens` in the first `lens` of its `NX` registers.
///
/// `lens` must be the same in all threads; more than `NX` is a fault. An item outside `src` keeps its value. Each item is one access. If
/// the number of items is known at compile time, use [`read_data`].
///
/// Seed: `ReadData(dst, src, num, read_lens)`.
#[track_caller]
pub fn read_data_lens<T: Element, const NX: usize>(cx: Block<'_>, dst: &mut [T; NX], src: Global<'_, T>, lens: usize) {
    check_lens::<NX>(cx, lens, Location::caller());
    let first = cx.thread_rank() as usize * lens;
    for (i, item) in dst.iter_mut().enumerate() {
        if i < lens && first + i < src.len() {
            *item = src[first + i];
        }
    }
}

/// Writes data in the arrangement of [`read_data_lens`]: the first `lens` registers of the thread become elements `t * lens` to
/// `t * lens + lens` of the tile, as far as it has them.
///
/// Seed: `WriteData(dst, src, num, read_lens)`.
///
/// ```
/// use kernel_primitives::prelude::*;
/// use kernel_primitives::io::{read_data_lens, write_data_lens};
///
/// /// Copies with a number of items a thread that the host chooses.
/// #[kernel]
/// fn copy(cx: Block, lens: u32, x: Global<u32>, mut out: GlobalMut<u32, Tiles<8>>) {
///     for tile in cx.tiles::<8>(out.len()) {
///         let mut items = init::<u32, 8>(0);
///         read_data_lens(cx, &mut items, x.tile(tile), lens as usize);
///         // SAFETY: the number is the launch's.
///         unsafe { write_data_lens(cx, out.tile(tile), &items, lens as usize) };
///     }
/// }
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = kernel_primitives::Device::emulator().stream()?;
/// let x = stream.buffer_from(&[1u32, 2, 3, 4, 5, 6, 7, 8])?;
/// let mut out = stream.buffer_zeroed::<u32>(8)?;
/// copy::launch(&stream, (1, 2), 3, &x, &mut out)?;
/// assert_eq!(out.to_vec()?, [1, 2, 3, 4, 5, 6, 0, 0]);
/// # Ok(())
/// # }
/// ```
///
/// # Safety
/// All threads of the block give the same `lens`, so that no two write the same element; and a tile that is accessed with
/// different numbers of items has a barrier in between.
#[inline(always)]
#[track_caller]
pub unsafe fn write_data_lens<T: Element, const NX: usize>(
    cx: Block<'_>,
    dst: TileMut<'_, '_, T, NX>,
    src: &[T; NX],
    lens: usize,
) {
    check_lens::<NX>(cx, lens, Location::caller());
    dst.write_lens(src, lens);
}

#[inline(always)]
fn check_lens<const NX: usize>(cx: Block<'_>, lens: usize, place: &'static Location<'static>) {
    if lens > NX {
        cx.raise(FaultKind::BadShape, [lens as u64, NX as u64], place);
    }
}

/// Reads a block's data, in the blocked arrangement of [`read_data`], into a part of each register of the thread. `part` names that part,
/// such as a field of a tuple. So functors of several inputs can take one argument.
///
/// Width and guard are those of [`read_data`]. Seed: `ReadData<T, NX, NY, ArgsT, Index, IsBoundary>`.
///
/// ```
/// use kernel_primitives::prelude::*;
/// use kernel_primitives::io::read_data_into;
///
/// #[kernel]
/// fn scale(cx: Block, x: Global<f32>, shift: Global<i32>, mut out: GlobalMut<f32, Tiles<4>>) {
///     for tile in cx.tiles::<4>(out.len()) {
///         let mut pairs = init::<(f32, i32), 4>((0.0, 0));
///         read_data_into(cx, &mut pairs, x.tile(tile), |pair| &mut pair.0);
///         read_data_into(cx, &mut pairs, shift.tile(tile), |pair| &mut pair.1);
///         write_data(cx, out.tile(tile), &pairs.map(|(x, shift)| x * (1 << shift) as f32));
///     }
/// }
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = kernel_primitives::Device::emulator().stream()?;
/// let (x, shift) = (stream.buffer_from(&[1.0f32, 3.0])?, stream.buffer_from(&[2, 4])?);
/// let mut out = stream.buffer_zeroed::<f32>(2)?;
/// scale::launch(&stream, (1, 32), &x, &shift, &mut out)?;
/// assert_eq!(out.to_vec()?, [4.0, 48.0]);
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn read_data_into<T: Element, A, const NX: usize>(
    cx: Block<'_>,
    dst: &mut [A; NX],
    src: Global<'_, T>,
    part: impl Fn(&mut A) -> &mut T,
) {
    let mut items: [T; NX] = core::array::from_fn(|i| *part(&mut dst[i]));
    read_data(cx, &mut items, src);
    for (register, item) in dst.iter_mut().zip(items) {
        *part(register) = item;
    }
}
