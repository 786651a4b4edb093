//! Reductions along `y`.

use core::marker::PhantomData;
use core::mem::size_of;
use core::panic::Location;

use crate::element::Element;
use crate::functor::Reducer;
use crate::simt::{Block, FaultKind, WARP};
use crate::view::{Shared, SharedStorage};

/// The shared memory of [`block_y_reduce`]: one element for each thread, for blocks of up to `MAX_THREADS` threads.
pub struct ColumnStorage<T, const MAX_THREADS: usize = 1024>(PhantomData<T>);

// SAFETY: uninitialised elements.
unsafe impl<T: Element, const MAX_THREADS: usize> SharedStorage for ColumnStorage<T, MAX_THREADS> {
    const BYTES: usize = MAX_THREADS * size_of::<T>();
    const ALIGN: usize = 16;
}

/// Combines, for each column of the block (the threads with equal `x` and `z`), the values along `y`, in order. Every thread gets the
/// result of its column.
///
/// Phases: if rows are shorter than a warp, the lanes of a warp in one column combine by shuffles; the results go to shared memory;
/// barrier; every thread combines the results of its column. One barrier, or none in a block of one warp. Each thread reads as many
/// elements as its column has warps.
///
/// Any block shape up to `MAX_THREADS` threads; more are a fault. To reduce several items of each thread, reduce arrays with
/// [`Each`](crate::block::Each).
///
/// Shared memory: one element for each thread. It may be used again as that of [`block_reduce`](crate::block::block_reduce).
///
/// Seed: `BlockYReduce(val, reducer)`, which has no barrier at its start, drops rows if `blockDim.y` is not a power of two, and gives each
/// thread the result of column `threadIdx.x` of the first plane. `Reduce` in `kGlobalMode` without `reduce_last_dim` is this collective for
/// each item.
///
/// CUB has no such collective.
///
/// All threads of the block call it: see [divergence](crate::block#divergence).
///
/// ```
/// use kernel_primitives::prelude::*;
///
/// #[kernel]
/// fn column_sums(cx: Block, x: Global<u32>, mut out: GlobalMut<u32>, mut shared: Shared<ColumnStorage<u32, 64>>) {
///     for tile in cx.tiles::<1>(out.len()) {
///         let mut item = init::<u32, 1>(0);
///         read_data(cx, &mut item, x.tile(tile));
///         write_data(cx, out.tile(tile), &[block_y_reduce(cx, &mut shared, item[0], Add)]);
///     }
/// }
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = kernel_primitives::Device::emulator().stream()?;
/// let x = stream.buffer_from(&[1u32, 2, 3, 10, 20, 30])?;
/// let mut out = stream.buffer_zeroed::<u32>(6)?;
/// column_sums::launch(&stream, (1, (3, 2)), &x, &mut out)?;
/// assert_eq!(out.to_vec()?, [11, 22, 33, 11, 22, 33]);
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn block_y_reduce<T: Element, R: Reducer<T>, const MAX_THREADS: usize>(
    cx: Block<'_>,
    shared: &mut Shared<'_, ColumnStorage<T, MAX_THREADS>>,
    value: T,
    op: R,
) -> T {
    let (dim, at) = (cx.block_dim(), cx.thread_idx());
    let threads = threads::<MAX_THREADS>(cx);
    let (mask, lane, rank) = (cx.warp_mask(), cx.lane(), cx.thread_rank());
    // The lanes of the warp that are in this lane's plane end where the plane or the warp ends.
    let below_in_plane = (dim.y - 1 - at.y) * dim.x + (dim.x - 1 - at.x);
    let last = (lane + below_in_plane).min(cx.warp_lanes() - 1);
    let mut piece = value;
    let mut delta = dim.x;
    while delta < WARP {
        let other = cx.shuffle(mask, piece, (lane + delta).min(last), WARP);
        if lane + delta <= last {
            piece = op.apply(piece, other);
        }
        delta *= 2;
    }
    let top = rank - at.y * dim.x;
    if threads <= WARP {
        return cx.shuffle(mask, piece, top, WARP);
    }

    shared.enter();
    let pieces = shared.array::<T>(0, MAX_THREADS);
    // SAFETY: each thread writes its own element; after the barrier, those that start a warp's part of a column are read.
    unsafe {
        if at.y == 0 || lane < dim.x {
            pieces.store(rank as usize, piece);
        }
        cx.barrier();
        let mut total = pieces.load(top as usize);
        let (mut warp, mut next) = (top / WARP, top);
        let mut y = 1;
        while y < dim.y {
            next += dim.x;
            if next / WARP != warp {
                total = op.apply(total, pieces.load(next as usize));
                warp = next / WARP;
            }
            y += 1;
        }
        total
    }
}

/// The number of threads of the block. More than `MAX_THREADS` are a fault.
#[track_caller]
pub(in crate::block) fn threads<const MAX_THREADS: usize>(cx: Block<'_>) -> u32 {
    let threads = cx.block_threads();
    if threads as usize > MAX_THREADS {
        cx.raise(FaultKind::BadShape, [threads as u64, MAX_THREADS as u64], Location::caller());
    }
    threads
}
