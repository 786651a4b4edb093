//! Reductions of rows of any length, by tiles of a merge path.

use core::marker::PhantomData;
use core::mem::size_of;
use core::ops::Range;
use core::panic::Location;

use super::partials::MAX_WARPS;
use super::scan::{ScanStorage, block_exclusive_scan};
use crate::element::{Element, Segmented};
use crate::functor::{BySegment, Reducer};
use crate::simt::{Block, FaultKind};
use crate::thread::merge_path_rows;
use crate::view::{Shared, SharedArray, SharedStorage};

/// A tile of the merge path of rows and items: the rows that end in it, and its items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathTile {
    /// The first row that ends in the tile or after it.
    pub first_row: usize,
    /// The number of rows that end in the tile.
    pub rows: usize,
    /// The first item.
    pub first_item: usize,
    /// The number of items.
    pub items: usize,
}

impl PathTile {
    /// Returns the steps from `first` to `last` of the path of `rows` rows and `items` items. `end(i)` is the end of row `i` among the
    /// items. There are no steps if `last` is before `first`.
    ///
    /// Cost: two [searches](merge_path_rows). If a kernel has many tiles, an earlier launch can make the searches, with one thread for
    /// each. That hides the latency of their probes.
    ///
    /// ```
    /// use kernel_primitives::block::PathTile;
    ///
    /// // Rows of 2, 0 and 3 items.
    /// let ends = [2, 2, 5];
    /// let tile = PathTile::between(2, 6, 3, 5, |row| ends[row]);
    /// assert_eq!(tile, PathTile { first_row: 0, rows: 2, first_item: 2, items: 2 });
    /// ```
    #[inline(always)]
    pub fn between(first: usize, last: usize, rows: usize, items: usize, end: impl Fn(usize) -> usize) -> Self {
        let all = rows.saturating_add(items);
        let (first, last) = (first.min(all), last.min(all));
        let [first_row, last_row] = [first, last].map(|step| merge_path_rows(step, rows, items, &end));
        let count = last_row.saturating_sub(first_row);
        let items = last.saturating_sub(first).saturating_sub(count);
        Self { first_row, rows: count, first_item: first - first_row, items }
    }
}

/// The shared memory of [`block_reduce_path`]: an item and a `u32` for each step of the tile.
pub struct PathStorage<T, const THREADS: usize, const ITEMS: usize>(PhantomData<T>);

// SAFETY: uninitialised elements.
unsafe impl<T: Element, const THREADS: usize, const ITEMS: usize> SharedStorage for PathStorage<T, THREADS, ITEMS> {
    const BYTES: usize = {
        let steps = Self::STAGED + THREADS * ITEMS * size_of::<T>();
        // The totals of the threads are scanned in the same place afterwards.
        let scan = <ScanStorage<Segmented<T>, THREADS> as SharedStorage>::BYTES;
        if steps > scan { steps } else { scan }
    };
    const ALIGN: usize = 16;
}

impl<T: Element, const THREADS: usize, const ITEMS: usize> PathStorage<T, THREADS, ITEMS> {
    /// The place of the items, after the ends of the rows.
    const STAGED: usize = (THREADS * ITEMS * size_of::<u32>()).next_multiple_of(16);
}

/// Combines the items of each row. Rows may have any length. The block has a tile of the [merge path](merge_path_rows), and each thread
/// takes `ITEMS` steps of it.
///
/// `items` are those of the tile, in the striped arrangement: thread `t` has the items `t`, `t + THREADS` and so on. Its values after
/// `tile.items` do not matter. `end(i)` is the end of row `i` among all items, for the rows that end in the tile. `tile` and `end` must be
/// the same in all threads.
///
/// `done(row, items, total)` is called once, by one thread, for each row that ends in the tile. It gets the numbers of the row's items that
/// are in the tile, and their combination. Without items, that is the identity, which is −0 for sums of floats. `done` must make no
/// barriers. The first row may have begun in an earlier tile, and a row may continue in the next tile. The function returns, in every
/// thread, the combination of the items after the last end of a row.
///
/// Phases: ends and items go to shared memory; barrier; each thread searches for its first step, and takes its steps; the totals of the
/// threads are scanned, and each thread adds the total before it to its first row. At most five barriers. The items of a row are combined
/// in order, except if no row ends in the tile: then each thread combines the items that it has, so `op` must be commutative.
///
/// `THREADS` must be the number of threads of the block; another number is a fault. So are more rows and items than `THREADS * ITEMS`. An
/// odd number of `ITEMS` gives the fewest bank conflicts. The next collective on the storage begins with a barrier.
///
/// Source: Merrill and Garland, *Merge-based parallel sparse matrix-vector multiplication*, 2016.
///
/// CUB: `AgentSpmv`, `AgentSegmentFixup`. Differences: rows of any lengths, by any [`Reducer`]; a closure gets each row that ends.
///
/// All threads of the block call it: see [divergence](crate::block#divergence).
///
/// ```
/// use kernel_primitives::functor::Square;
/// use kernel_primitives::prelude::*;
///
/// /// Adds the squares of each row's items to `totals`. Rows over several tiles get a share of each.
/// #[kernel(threads(64))]
/// fn squares(
///     cx: Block,
///     ends: Global<u32>,
///     x: Global<f32>,
///     totals: GlobalMut<f32, Atomic>,
///     mut shared: Shared<PathStorage<f32, 64, 3>>,
/// ) {
///     let end = |row: usize| ends[row] as usize;
///     let first = cx.block_rank() * 64 * 3;
///     let tile = PathTile::between(first, first + 64 * 3, ends.len(), x.len(), end);
///     let mut items = init::<f32, 3>(0.0);
///     load_striped(cx, &mut items, x.slice(tile.first_item..tile.first_item + tile.items));
///     let items = elementwise_unary(&items, Square);
///     let open = block_reduce_path(cx, &mut shared, tile, &items, end, Add, |row, _, total| {
///         totals.at(row).fetch_add(total);
///     });
///     // The row that goes on after the tile.
///     if cx.thread_rank() == 0 && tile.first_row + tile.rows < ends.len() {
///         totals.at(tile.first_row + tile.rows).fetch_add(open);
///     }
/// }
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = kernel_primitives::Device::emulator().stream()?;
/// // A row of three items, an empty one, a long one and a short one.
/// let ends = stream.buffer_from(&[3u32, 3, 503, 505])?;
/// let x = stream.buffer_from(&[2.0f32; 505])?;
/// let mut totals = stream.buffer_zeroed::<f32>(4)?;
/// squares::launch(&stream, (509usize.div_ceil(64 * 3) as u32, 64), &ends, &x, &mut totals)?;
/// assert_eq!(totals.to_vec()?, [12.0, 0.0, 2000.0, 8.0]);
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn block_reduce_path<T: Element, R: Reducer<T> + Copy, const THREADS: usize, const ITEMS: usize>(
    cx: Block<'_>,
    shared: &mut Shared<'_, PathStorage<T, THREADS, ITEMS>>,
    tile: PathTile,
    items: &[T; ITEMS],
    end: impl Fn(usize) -> usize,
    op: R,
    mut done: impl FnMut(usize, Range<usize>, T),
) -> T {
    const { assert!(THREADS > 0 && THREADS <= MAX_WARPS * 32, "a block has 1 to 1024 threads") };
    const { assert!(ITEMS > 0, "a collective has at least one item a thread") };
    let steps = const { THREADS * ITEMS };
    if cx.block_threads() as usize != THREADS {
        cx.raise(FaultKind::BadShape, [cx.block_threads() as u64, THREADS as u64], Location::caller());
    }
    let all = tile.rows.saturating_add(tile.items);
    if all > steps {
        cx.raise(FaultKind::BadShape, [all as u64, steps as u64], Location::caller());
    }
    shared.enter();
    let places = PathPlaces {
        ends: shared.array(0, steps),
        items: shared.array(PathStorage::<T, THREADS, ITEMS>::STAGED, steps),
    };
    let end_in_tile = |row: usize| end(tile.first_row + row).saturating_sub(tile.first_item).min(tile.items);
    let in_all = |items: Range<usize>| tile.first_item + items.start..tile.first_item + items.end;
    // If no row ends, all items of a thread are combined.
    let own = |k: usize| k * THREADS + (cx.thread_rank() as usize) < tile.items;
    let items: [T; ITEMS] = core::array::from_fn(|k| if own(k) { items[k] } else { op.identity() });
    let done_in_tile = |row: usize, items: Range<usize>, total: T| done(tile.first_row + row, in_all(items), total);
    // SAFETY: both places have room for `ITEMS` steps a thread, and the tile has no more rows and items: both was checked. The storage is this
    // collective's alone.
    let share =
        unsafe { path_share(cx, places, (tile.rows, tile.items), (&items, ITEMS), end_in_tile, &op, done_in_tile) };
    let scans = shared.phase::<ScanStorage<Segmented<T>, THREADS>>();
    let ([before], all) = block_exclusive_scan(cx, scans, &[share.own()], BySegment(op));
    if let Some((row, items, total)) = share.first(before, &op) {
        done(tile.first_row + row, in_all(items), total);
    }
    all.total
}

/// The places of a tile's row ends and items in shared memory. There is room for each of its steps.
#[doc(hidden)]
#[derive(Clone, Copy)]
pub struct PathPlaces<'s, T> {
    pub ends: SharedArray<'s, u32>,
    pub items: SharedArray<'s, T>,
}

/// A thread's part of a tile's rows, without the items of earlier threads.
#[doc(hidden)]
pub struct PathShare<T: Element> {
    /// The first row that ends in the thread's steps.
    row: usize,
    /// The numbers of that row's items in the tile.
    items: Range<usize>,
    /// The thread's part of that row.
    head: T,
    /// The number of rows that end in the thread's steps.
    ended: u64,
    /// The combination of the items after the last end.
    total: T,
}

impl<T: Element> PathShare<T> {
    /// The value that is scanned over the threads.
    #[inline(always)]
    pub fn own(&self) -> Segmented<T> {
        Segmented { heads: self.ended, total: self.total }
    }

    /// Returns the thread's first row, the numbers of its items in the tile, and their combination, which includes that of earlier threads.
    #[inline(always)]
    #[track_caller]
    pub fn first<R: Reducer<T>>(self, before: Segmented<T>, op: &R) -> Option<(usize, Range<usize>, T)> {
        (self.ended > 0).then(|| (self.row, self.items, op.apply(before.total, self.head)))
    }
}

/// Takes the steps of each thread, `most` of them, up to `N`. This is for kernels that scan the result by themselves. `done` gets the rows
/// that begin and end in the thread's steps. `end` is the end of a row of the tile among the tile's items. If no row ends, the values after
/// the tile's items are combined, too: they must be the identity.
///
/// All threads of the block call it: see [divergence](crate::block#divergence).
///
/// # Safety
/// `rows`, `count` and `most` are the same in all threads. `most` is `N` at most. `places.items` has room for `most` items a thread, and
/// `count` is no more than these. `places.ends` has room for `rows`. Nothing else accesses either until the first barrier after the call.
#[doc(hidden)]
#[inline(always)]
#[track_caller]
pub unsafe fn path_share<T: Element, R: Reducer<T>, const N: usize>(
    cx: Block<'_>,
    places: PathPlaces<'_, T>,
    (rows, count): (usize, usize),
    (found, most): (&[T; N], usize),
    end: impl Fn(usize) -> usize,
    op: &R,
    mut done: impl FnMut(usize, Range<usize>, T),
) -> PathShare<T> {
    let (thread, threads) = (cx.thread_rank() as usize, cx.block_threads() as usize);
    let mut share = PathShare { row: 0, items: 0..0, head: op.identity(), ended: 0, total: op.identity() };
    if rows == 0 {
        for (k, &item) in found.iter().enumerate() {
            if k < most {
                share.total = op.apply(share.total, item);
            }
        }
        return share;
    }
    for (k, &item) in found.iter().enumerate() {
        if k < most {
            // SAFETY: there is room for `most` items a thread; the thread's own element until the barrier.
            unsafe { places.items.store(k * threads + thread, item) };
        }
    }
    let mut at = thread;
    while at < rows {
        // SAFETY: there is room for `rows`; the thread's own element until the barrier.
        unsafe { places.ends.store(at, end(at).min(count) as u32) };
        at += threads;
    }
    cx.barrier();

    // SAFETY: all were written before the barrier, and nobody writes them after it; `row` is below `rows`.
    let end = |row: usize| unsafe { places.ends.load(row) } as usize;
    let path = (thread * most).min(rows + count);
    let mut row = merge_path_rows(path, rows, count, end);
    let mut item = path - row;
    share.row = row;
    let mut row_end = if row < rows { end(row) } else { count };
    for k in 0..N {
        if k == most || row + item == rows + count {
            break;
        }
        if item < row_end {
            // SAFETY: all were written before the barrier, and `item` is below `count`.
            share.total = op.apply(share.total, unsafe { places.items.load(item) });
            item += 1;
            continue;
        }
        let begin = if row > 0 { end(row - 1).min(row_end) } else { 0 };
        if share.ended == 0 {
            (share.head, share.items) = (share.total, begin..row_end);
        } else {
            done(row, begin..row_end, share.total);
        }
        (share.total, share.ended, row) = (op.identity(), share.ended + 1, row + 1);
        row_end = if row < rows { end(row) } else { count };
    }
    share
}
