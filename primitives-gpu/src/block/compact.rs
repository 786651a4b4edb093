//! Compaction of a block's items.

use super::combine::scan::{ScanStorage, block_exclusive_scan};
use crate::element::Element;
use crate::functor::Add;
use crate::simt::Block;
use crate::view::{Shared, TileMut};

/// Writes the items that `keep` marks to the first elements of the tile, in their order, and returns their number in all threads. Thread
/// `t` has the items from `t * N` (the blocked arrangement). Items that a partial tile does not have are not kept, whatever `keep` says.
/// The other elements of the tile do not change.
///
/// Phases: the marks are scanned; each thread writes the items that it keeps, to places that other threads own; barrier. After that, each
/// thread finds its own elements of the tile as the compaction left them. There are the barriers of [`block_exclusive_scan`] and one more,
/// or two in a block of one warp, whose scan has no barrier.
///
/// Each block fills its own tile. To join the tiles, use a second launch. `algorithms::select_if` compacts a whole buffer in one launch.
///
/// Shared memory: that of a scan of `u32`. The next collective on it begins with a barrier.
///
/// CUB has no such collective.
///
/// All threads of the block call it: see [divergence](crate::block#divergence). All bit patterns of an element must be values: `u8` rather
/// than `bool`.
///
/// ```
/// use kernel_primitives::Dims;
/// use kernel_primitives::prelude::*;
///
/// /// Keeps what is not negative, a tile a block.
/// #[kernel(equal_len(x, out))]
/// fn keep_positive(
///     cx: Block,
///     x: Global<i32>,
///     mut out: GlobalMut<i32, Tiles<2>>,
///     mut counts: GlobalMut<u32, PerBlock>,
///     mut shared: Shared<ScanStorage<u32>>,
/// ) {
///     // A block with several tiles would have several counts.
///     cx.require_at_most(x.len(), cx.grid_blocks() * cx.block_threads() as usize * 2);
///     let mut kept = 0;
///     for tile in cx.tiles::<2>(x.len()) {
///         let mut items = init::<i32, 2>(0);
///         read_data(cx, &mut items, x.tile(tile));
///         kept = block_compact(cx, &mut shared, &items, &items.map(|x| x >= 0), out.tile(tile));
///     }
///     counts.store(kept);
/// }
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = kernel_primitives::Device::emulator().stream()?;
/// let x = stream.buffer_from(&[3, -1, 4, -1, -5, 9, 2])?;
/// // Blocks of two threads have tiles of four items.
/// let blocks = x.len().div_ceil(4);
/// let (mut out, mut counts) = (stream.buffer_zeroed::<i32>(7)?, stream.buffer_zeroed::<u32>(blocks)?);
/// keep_positive::launch(&stream, Dims::for_blocks(blocks).block(2), &x, &mut out, &mut counts)?;
/// assert_eq!((out.to_vec()?, counts.to_vec()?), (vec![3, 4, 0, 0, 9, 2, 0], vec![2, 2]));
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn block_compact<T: Element, const N: usize, const THREADS: usize>(
    cx: Block<'_>,
    shared: &mut Shared<'_, ScanStorage<u32, THREADS>>,
    items: &[T; N],
    keep: &[bool; N],
    mut out: TileMut<'_, '_, T, N>,
) -> u32 {
    const {
        assert!(T::ANY_BITS, "the elements of a compaction are such that all bytes are values: `u8` rather than `bool`")
    };
    let first = cx.thread_rank() as usize * N;
    let marks: [u32; N] = core::array::from_fn(|i| u32::from(keep[i] && first + i < out.len()));
    let (places, kept) = block_exclusive_scan(cx, shared, &marks, Add);
    // A thread may have accessed its own elements before this. These accesses must come before the writes of other threads: by the barriers
    // of the scan, or by this one.
    if cx.warps() == 1 {
        cx.barrier();
    }
    for i in 0..N {
        if marks[i] != 0 {
            // SAFETY: each place is that of one kept item. If threads stay away against the rule, two may write one element: its
            // bytes are then of either, which are a value.
            unsafe { out.write_at(places[i] as usize, items[i]) };
        }
    }
    cx.barrier();
    kept
}
