//! Scans of items that a warp reads with coalesced accesses.

use super::each::Each;
use super::partials::{self, MAX_WARPS};
use super::scan::{SLOTS, ScanStorage, after, exclusive, inclusive};
use crate::element::Element;
use crate::functor::Reducer;
use crate::simt::{Block, WARP};
use crate::view::Shared;
use crate::warp;

/// Combines `initial` and, for each item, the items of the block up to and including it. The second result is the total of the items alone,
/// in every thread.
///
/// Items are in the arrangement of [`WarpRowMut`](crate::view::WarpRowMut): each warp has a contiguous part of the block's items, in the
/// order of the warps. In round `r`, lane `l` of its `L` lanes has the `N` items of that part from `(r * L + l) * N`. So lanes read
/// neighbouring items from global memory, without an exchange through shared memory.
///
/// Phases: each thread combines the items of each of its rounds; each warp scans all its rounds at once by shuffles, which takes no longer
/// to wait than one round, and goes along the rounds; one total of each warp goes to shared memory; barrier; every thread combines the
/// totals of the warps before its own, and goes through its items once more. Cost: seven shuffles for each round; one barrier, or none in a
/// block of one warp. Items are combined in order, so `op` need not be commutative. Any block shape up to 1024 threads, including partial
/// warps. The missing items of a partial tile do no harm, because they come last.
///
/// Shared memory: that of [`block_inclusive_scan`](crate::block::block_inclusive_scan), and used alternately with it.
///
/// CUB has no such collective.
///
/// All threads of the block call it: see [divergence](crate::block#divergence).
///
/// ```
/// use kernel_primitives::prelude::*;
/// use kernel_primitives::view::Rows;
///
/// #[kernel]
/// fn running_sums(
///     cx: Block,
///     x: Global<u32>,
///     mut out: GlobalMut<u32, Rows<4>>,
///     mut shared: Shared<ScanStorage<u32>>,
/// ) {
///     let columns = x.len();
///     for row in cx.rows(1) {
///         // SAFETY: the number of columns is the launch's, and the row's only arrangement is this.
///         let mut to = unsafe { out.row_by_warps::<2>(row, columns) };
///         let (mut tile, mut carry) = (0, 0);
///         while tile * to.tile() < columns {
///             let mut items = [[0; 4]; 2];
///             to.read_vectors_of(x, tile, &mut items);
///             let (sums, total) = block_inclusive_scan_rounds(cx, &mut shared, &items, carry, Add);
///             to.set_vectors(tile, &sums);
///             carry += total;
///             tile += 1;
///         }
///     }
/// }
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = kernel_primitives::Device::emulator().stream()?;
/// let x = stream.buffer_from(&[1u32; 1000])?;
/// let mut out = stream.buffer_zeroed::<u32>(1000)?;
/// running_sums::launch(&stream, (1, 48), &x, &mut out)?;
/// assert_eq!(out.to_vec()?, (1..=1000).collect::<Vec<u32>>());
/// # Ok(())
/// # }
/// ```
#[inline(always)]
#[track_caller]
pub fn block_inclusive_scan_rounds<T: Element, R: Reducer<T>, const N: usize, const ROUNDS: usize>(
    cx: Block<'_>,
    shared: &mut Shared<'_, ScanStorage<T>>,
    items: &[[T; N]; ROUNDS],
    initial: T,
    op: R,
) -> ([[T; N]; ROUNDS], T) {
    scan_rounds(cx, shared, items, initial, op, |below, items, op| inclusive(Some(below), items, op))
}

/// Works as [`block_inclusive_scan_rounds`], but leaves each item out of its own result: the first item of the block gets `initial`.
///
/// CUB has no such collective.
///
/// All threads of the block call it: see [divergence](crate::block#divergence).
///
/// ```
/// use kernel_primitives::prelude::*;
/// use kernel_primitives::view::Rows;
///
/// /// The sum of what comes before each element of one tile.
/// #[kernel]
/// fn sums_before(
///     cx: Block,
///     x: Global<u32>,
///     mut out: GlobalMut<u32, Rows<4>>,
///     mut shared: Shared<ScanStorage<u32>>,
/// ) {
///     for row in cx.rows(1) {
///         // SAFETY: the number of columns is the launch's, and the row's only arrangement is this.
///         let mut to = unsafe { out.row_by_warps::<2>(row, x.len()) };
///         let mut items = [[0; 4]; 2];
///         to.read_vectors_of(x, 0, &mut items);
///         let (sums, _total) = block_exclusive_scan_rounds(cx, &mut shared, &items, 100, Add);
///         to.set_vectors(0, &sums);
///     }
/// }
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = kernel_primitives::Device::emulator().stream()?;
/// let x = stream.buffer_from(&[1u32; 384])?;
/// let mut out = stream.buffer_zeroed::<u32>(384)?;
/// sums_before::launch(&stream, (1, 48), &x, &mut out)?;
/// assert_eq!(out.to_vec()?, (100..484).collect::<Vec<u32>>());
/// # Ok(())
/// # }
/// ```
#[inline(always)]
#[track_caller]
pub fn block_exclusive_scan_rounds<T: Element, R: Reducer<T>, const N: usize, const ROUNDS: usize>(
    cx: Block<'_>,
    shared: &mut Shared<'_, ScanStorage<T>>,
    items: &[[T; N]; ROUNDS],
    initial: T,
    op: R,
) -> ([[T; N]; ROUNDS], T) {
    scan_rounds(cx, shared, items, initial, op, exclusive)
}

/// Works as [`block_exclusive_scan_rounds`], after a prefix that depends on the total. A scan over many blocks needs this.
///
/// All lanes of the first warp call `prefix` together, with the total of the block's items. The result of the first lane counts. It costs
/// one more barrier. See [`block_exclusive_scan_after`](crate::block::block_exclusive_scan_after) and its example.
///
/// CUB has no such collective.
///
/// All threads of the block call it: see [divergence](crate::block#divergence).
#[inline(always)]
#[track_caller]
pub fn block_exclusive_scan_rounds_after<T: Element, R: Reducer<T>, const N: usize, const ROUNDS: usize>(
    cx: Block<'_>,
    shared: &mut Shared<'_, ScanStorage<T>>,
    items: &[[T; N]; ROUNDS],
    op: R,
    prefix: impl FnOnce(T) -> T,
) -> [[T; N]; ROUNDS] {
    scan_rounds_after(cx, shared, items, op, prefix, exclusive)
}

#[track_caller]
fn scan_rounds<T: Element, R: Reducer<T>, const N: usize, const ROUNDS: usize>(
    cx: Block<'_>,
    shared: &mut Shared<'_, ScanStorage<T>>,
    items: &[[T; N]; ROUNDS],
    initial: T,
    op: R,
    own: impl Fn(T, &[T; N], &R) -> [T; N],
) -> ([[T; N]; ROUNDS], T) {
    let warps = partials::warps(cx);
    let each = Each(op);
    let (before, mut total) = in_warp(cx, items, &each);
    let op = &each.0;
    let mut start = initial;
    if warps > 1 {
        let half = shared.enter_double_buffered(ScanStorage::<T>::HALF);
        let totals = shared.array::<T>(half, SLOTS);
        // SAFETY: the half is not in use until the barrier, and written again two barriers later.
        let (warps_below, all) = unsafe {
            partials::put(cx, totals, warps, 0, total, op);
            cx.barrier();
            partials::scan(totals, warps, cx.warp() as usize, op)
        };
        start = after(initial, warps_below, op);
        total = all;
    }
    (results(items, &before, start, op, own), total)
}

#[track_caller]
fn scan_rounds_after<T: Element, R: Reducer<T>, const N: usize, const ROUNDS: usize>(
    cx: Block<'_>,
    shared: &mut Shared<'_, ScanStorage<T>>,
    items: &[[T; N]; ROUNDS],
    op: R,
    prefix: impl FnOnce(T) -> T,
    own: impl Fn(T, &[T; N], &R) -> [T; N],
) -> [[T; N]; ROUNDS] {
    let warps = partials::warps(cx);
    let each = Each(op);
    let (before, total) = in_warp(cx, items, &each);
    let op = &each.0;
    if warps == 1 {
        let start = cx.shuffle(cx.warp_mask(), prefix(total), 0, WARP);
        return results(items, &before, start, op, own);
    }
    let half = shared.enter_double_buffered(ScanStorage::<T>::HALF);
    let totals = shared.array::<T>(half, SLOTS);
    // SAFETY: the half is not in use until the barrier; the first thread writes the prefix, which is read after the second
    // one, and all of it is written again two barriers later.
    let start = unsafe {
        partials::put(cx, totals, warps, 0, total, op);
        cx.barrier();
        let (warps_below, total) = partials::scan(totals, warps, cx.warp() as usize, op);
        if cx.warp() == 0 {
            let prefix = prefix(total);
            if cx.lane() == 0 {
                totals.store(MAX_WARPS, prefix);
            }
        }
        cx.barrier();
        after(totals.load(MAX_WARPS), warps_below, op)
    };
    results(items, &before, start, op, own)
}

/// Returns, for each round, the combination before a lane's items in its warp, and the total of the warp. These are the only values that
/// are kept over the barrier.
#[track_caller]
fn in_warp<T: Element, R: Reducer<T>, const N: usize, const ROUNDS: usize>(
    cx: Block<'_>,
    items: &[[T; N]; ROUNDS],
    each: &Each<R>,
) -> ([T; ROUNDS], T) {
    const { assert!(ROUNDS > 0, "a scan has at least one round") };
    let (mask, last) = (cx.warp_mask(), cx.warp_lanes() - 1);
    let op = &each.0;
    let sums: [T; ROUNDS] = core::array::from_fn(|round| partials::tree(&items[round], op));
    let scanned = warp::inclusive(cx, mask, sums, each);
    // This goes round by round, so that each combination replaces its sum.
    let mut before = scanned;
    let mut total = op.identity();
    let mut round = 0;
    while round < ROUNDS {
        let below = cx.try_shuffle_up(mask, scanned[round], 1, WARP);
        let sum = cx.shuffle(mask, scanned[round], last, WARP);
        (before[round], total) =
            if round == 0 { (below.unwrap_or(total), sum) } else { (after(total, below, op), op.apply(total, sum)) };
        round += 1;
    }
    (before, total)
}

/// Computes the result of each item from the combination before its warp.
fn results<T: Element, R: Reducer<T>, const N: usize, const ROUNDS: usize>(
    items: &[[T; N]; ROUNDS],
    before: &[T; ROUNDS],
    start: T,
    op: &R,
    own: impl Fn(T, &[T; N], &R) -> [T; N],
) -> [[T; N]; ROUNDS] {
    let mut out = *items;
    let mut round = 0;
    while round < ROUNDS {
        out[round] = own(op.apply(start, before[round]), &items[round], op);
        round += 1;
    }
    out
}
