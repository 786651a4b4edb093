//! Prefix sums, and other scans, over a block.

use core::marker::PhantomData;
use core::mem::size_of;

use super::each::Each;
use super::partials::{self, MAX_WARPS};
use super::raking;
use crate::element::Element;
use crate::functor::Reducer;
use crate::simt::{Block, WARP};
use crate::view::{Shared, SharedArray, SharedStorage};
use crate::warp;

/// One value for each warp, and the prefix of [`block_inclusive_scan_after`].
pub(super) const SLOTS: usize = MAX_WARPS + 1;

/// The shared memory of the block's scans. It also chooses their algorithm.
///
/// `ScanStorage<T>` is for any block. It has 66 elements, in two halves that are used alternately. Each warp scans the values of its
/// threads.
///
/// `ScanStorage<T, THREADS>` is for blocks of up to `THREADS` threads; more are a fault. It has one element for each thread, and a few
/// more. One warp scans for all. This takes twice the barriers and about half the instructions. It is faster if many blocks share a
/// multiprocessor and do little else.
///
/// The example of [`block_exclusive_scan`] has the second kind.
///
/// CUB: `BLOCK_SCAN_WARP_SCANS` and `BLOCK_SCAN_RAKING`.
pub struct ScanStorage<T, const THREADS: usize = 0>(PhantomData<T>);

// SAFETY: uninitialised elements.
unsafe impl<T: Element, const THREADS: usize> SharedStorage for ScanStorage<T, THREADS> {
    const BYTES: usize = match THREADS {
        0 => 2 * ScanStorage::<T>::HALF,
        _ => raking::slots::<T>(THREADS) * size_of::<T>(),
    };
    const ALIGN: usize = 16;
}

impl<T> ScanStorage<T> {
    pub(super) const HALF: usize = (SLOTS * size_of::<T>()).next_multiple_of(16);
}

/// Combines, for each item, the items of the block up to and including it. Items are in the blocked arrangement: thread `t` has the items
/// from `t * N`. Each thread gets the results of its own items. The second result is the total of all items, in every thread; it costs
/// nothing if it is not used.
///
/// Phases: each thread combines its items; each warp scans the values of its threads by shuffles; one total of each warp goes to shared
/// memory; barrier; every thread combines the totals of the warps before its own, which it reads in vectors, and goes through its items
/// once more. Cost: `2 * N - 1` applications of `op` for the items, five for the warp, and one for each warp before; one barrier, or none
/// in a block of one warp. Items are combined in order, so `op` need not be commutative. Any block shape up to 1024 threads, including
/// partial warps. The missing items of a partial tile do no harm, because they come last.
///
/// With a [`ScanStorage<T, THREADS>`](ScanStorage): each thread combines its items, and writes the result to shared memory; barrier; one
/// warp, which differs between blocks, combines these in order, and writes to the place of each thread the combination before it: each lane
/// combines several values, and then lanes combine by shuffles; barrier; each thread goes through its items once more.
///
/// Shared memory: several scans on the same `Shared` cost only their own barriers. Another collective on it makes the barrier that it needs
/// by itself.
///
/// Seed: [`cumsum`].
///
/// CUB: `BlockScan::InclusiveScan`, `InclusiveSum`. Differences: returns the total, too; works as `BLOCK_SCAN_WARP_SCANS`, or as
/// `BLOCK_SCAN_RAKING` with a `ScanStorage<T, THREADS>`.
///
/// All threads of the block call it: see [divergence](crate::block#divergence).
///
/// ```
/// use kernel_primitives::prelude::*;
///
/// #[kernel]
/// fn running_maxima(cx: Block, x: Global<i32>, mut out: GlobalMut<i32, Tiles<2>>, mut shared: Shared<ScanStorage<i32>>) {
///     for tile in cx.tiles::<2>(x.len()) {
///         let mut items = init::<i32, 2>(0);
///         read_data(cx, &mut items, x.tile(tile));
///         let (maxima, _) = block_inclusive_scan(cx, &mut shared, &items, Max);
///         write_data(cx, out.tile(tile), &maxima);
///     }
/// }
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = kernel_primitives::Device::emulator().stream()?;
/// let x = stream.buffer_from(&[3, 1, 4, 1, 5, 9])?;
/// let mut out = stream.buffer_zeroed::<i32>(6)?;
/// running_maxima::launch(&stream, (1, 3), &x, &mut out)?;
/// assert_eq!(out.to_vec()?, [3, 3, 4, 4, 5, 9]);
/// # Ok(())
/// # }
/// ```
#[inline(always)]
#[track_caller]
pub fn block_inclusive_scan<T: Element, R: Reducer<T>, const N: usize, const THREADS: usize>(
    cx: Block<'_>,
    shared: &mut Shared<'_, ScanStorage<T, THREADS>>,
    items: &[T; N],
    op: R,
) -> ([T; N], T) {
    let (below, total) = threads_below(cx, shared, items, &op);
    (inclusive(below, items, &op), total)
}

/// Works as [`block_inclusive_scan`], with `initial` before the first item. The total is that of the items alone.
///
/// CUB: `BlockScan::InclusiveScan` with `initial_value`.
///
/// All threads of the block call it: see [divergence](crate::block#divergence).
///
/// ```
/// use kernel_primitives::prelude::*;
///
/// #[kernel]
/// fn running_sums(cx: Block, x: Global<u32>, mut out: GlobalMut<u32, Tiles<4>>, mut shared: Shared<ScanStorage<u32>>) {
///     let mut carry = 0;
///     for tile in cx.tiles::<4>(x.len()) {
///         let mut items = init::<u32, 4>(0);
///         read_data(cx, &mut items, x.tile(tile));
///         let (sums, total) = block_inclusive_scan_from(cx, &mut shared, &items, carry, Add);
///         write_data(cx, out.tile(tile), &sums);
///         carry += total;
///     }
/// }
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = kernel_primitives::Device::emulator().stream()?;
/// let x = stream.buffer_from(&[1u32; 1000])?;
/// let mut out = stream.buffer_zeroed::<u32>(1000)?;
/// running_sums::launch(&stream, (1, 96), &x, &mut out)?;
/// assert_eq!(out.to_vec()?, (1..=1000).collect::<Vec<u32>>());
/// # Ok(())
/// # }
/// ```
#[inline(always)]
#[track_caller]
pub fn block_inclusive_scan_from<T: Element, R: Reducer<T>, const N: usize, const THREADS: usize>(
    cx: Block<'_>,
    shared: &mut Shared<'_, ScanStorage<T, THREADS>>,
    items: &[T; N],
    initial: T,
    op: R,
) -> ([T; N], T) {
    let (below, total) = threads_below(cx, shared, items, &op);
    (inclusive(Some(after(initial, below, &op)), items, &op), total)
}

/// Works as [`block_inclusive_scan`], after a prefix that depends on the total. A scan over many blocks needs this.
///
/// All lanes of the first warp call `prefix` together, with the total of the block's items. The result of the first lane is combined before
/// every item of the block. One more barrier distributes it; there is none in a block of one warp, and none with a
/// [`ScanStorage<T, THREADS>`](ScanStorage).
///
/// CUB: `BlockScan::InclusiveScan` with `block_prefix_callback_op`. Differences: the first warp calls a closure with the total, and its
/// first lane's result counts.
///
/// All threads of the block call it: see [divergence](crate::block#divergence).
///
/// ```
/// use kernel_primitives::prelude::*;
///
/// #[kernel]
/// fn running_sums(cx: Block, x: Global<u32>, mut out: GlobalMut<u32, Tiles<4>>, mut shared: Shared<ScanStorage<u32>>) {
///     // In the first warp; the others need not know it.
///     let mut carry = 0;
///     for tile in cx.tiles::<4>(x.len()) {
///         let mut items = init::<u32, 4>(0);
///         read_data(cx, &mut items, x.tile(tile));
///         let sums = block_inclusive_scan_after(cx, &mut shared, &items, Add, |total| {
///             let before = carry;
///             carry += total;
///             before
///         });
///         write_data(cx, out.tile(tile), &sums);
///     }
/// }
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = kernel_primitives::Device::emulator().stream()?;
/// let x = stream.buffer_from(&[1u32; 1000])?;
/// let mut out = stream.buffer_zeroed::<u32>(1000)?;
/// running_sums::launch(&stream, (1, 96), &x, &mut out)?;
/// assert_eq!(out.to_vec()?, (1..=1000).collect::<Vec<u32>>());
/// # Ok(())
/// # }
/// ```
#[inline(always)]
#[track_caller]
pub fn block_inclusive_scan_after<T: Element, R: Reducer<T>, const N: usize, const THREADS: usize>(
    cx: Block<'_>,
    shared: &mut Shared<'_, ScanStorage<T, THREADS>>,
    items: &[T; N],
    op: R,
    prefix: impl FnOnce(T) -> T,
) -> [T; N] {
    let below = threads_below_after(cx, shared, items, &op, prefix);
    inclusive(Some(below), items, &op)
}

/// Combines, for each item, the items of the block before it. The first item gets the identity, as [`Reducer::of_none`] gives it.
/// Arrangement, total, cost and shared memory are those of [`block_inclusive_scan`].
///
/// CUB: `BlockScan::ExclusiveScan`, `ExclusiveSum`. Differences: the first item gets the identity; returns the total, too.
///
/// All threads of the block call it: see [divergence](crate::block#divergence).
///
/// ```
/// use kernel_primitives::prelude::*;
///
/// /// Where each of some parts begins, by their lengths.
/// #[kernel]
/// fn begins(cx: Block, lengths: Global<u32>, mut out: GlobalMut<u32, Tiles<2>>, mut shared: Shared<ScanStorage<u32, 64>>) {
///     for tile in cx.tiles::<2>(lengths.len()) {
///         let mut items = init::<u32, 2>(0);
///         read_data(cx, &mut items, lengths.tile(tile));
///         let (begins, _) = block_exclusive_scan(cx, &mut shared, &items, Add);
///         write_data(cx, out.tile(tile), &begins);
///     }
/// }
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = kernel_primitives::Device::emulator().stream()?;
/// let lengths = stream.buffer_from(&[2u32, 0, 3, 1, 4])?;
/// let mut out = stream.buffer_zeroed::<u32>(5)?;
/// begins::launch(&stream, (1, 64), &lengths, &mut out)?;
/// assert_eq!(out.to_vec()?, [0, 2, 2, 5, 6]);
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn block_exclusive_scan<T: Element, R: Reducer<T>, const N: usize, const THREADS: usize>(
    cx: Block<'_>,
    shared: &mut Shared<'_, ScanStorage<T, THREADS>>,
    items: &[T; N],
    op: R,
) -> ([T; N], T) {
    let (below, total) = threads_below(cx, shared, items, &op);
    let mut out = exclusive(below.unwrap_or(op.identity()), items, &op);
    if below.is_none() {
        out[0] = op.of_none();
    }
    (out, total)
}

/// Works as [`block_exclusive_scan`], with `initial` before the first item, which gets `initial` itself. The total is that of the items
/// alone. The example of [`block_inclusive_scan_from`] also shows this form.
///
/// CUB: `BlockScan::ExclusiveScan` with `initial_value`.
///
/// All threads of the block call it: see [divergence](crate::block#divergence).
#[inline(always)]
#[track_caller]
pub fn block_exclusive_scan_from<T: Element, R: Reducer<T>, const N: usize, const THREADS: usize>(
    cx: Block<'_>,
    shared: &mut Shared<'_, ScanStorage<T, THREADS>>,
    items: &[T; N],
    initial: T,
    op: R,
) -> ([T; N], T) {
    let (below, total) = threads_below(cx, shared, items, &op);
    (exclusive(after(initial, below, &op), items, &op), total)
}

/// Works as [`block_exclusive_scan`], after a prefix that depends on the total; see [`block_inclusive_scan_after`] and its example.
///
/// CUB: `BlockScan::ExclusiveScan` with `block_prefix_callback_op`. Differences: the first warp calls a closure with the total, and its
/// first lane's result counts.
///
/// All threads of the block call it: see [divergence](crate::block#divergence).
#[inline(always)]
#[track_caller]
pub fn block_exclusive_scan_after<T: Element, R: Reducer<T>, const N: usize, const THREADS: usize>(
    cx: Block<'_>,
    shared: &mut Shared<'_, ScanStorage<T, THREADS>>,
    items: &[T; N],
    op: R,
    prefix: impl FnOnce(T) -> T,
) -> [T; N] {
    let below = threads_below_after(cx, shared, items, &op, prefix);
    exclusive(below, items, &op)
}

/// Combines, for each item, the items of the block up to and including it, in the striped arrangement: item `i` of thread `t` is the
/// block's item `i * threads + t`. Each thread gets the results of its own items.
///
/// Phases: those of [`block_inclusive_scan`] for `N` rows of items at once, with one barrier. Then each row is combined with the rows
/// before it. Shared memory is the same, for arrays of `N`.
///
/// Seed: `Cumsum(out, in, compute)`, which has two items for each thread, powers of two up to 512 threads, and as many barriers as the tree
/// has levels, up and down.
///
/// CUB has no such collective.
///
/// All threads of the block call it: see [divergence](crate::block#divergence).
///
/// ```
/// use kernel_primitives::prelude::*;
///
/// #[kernel]
/// fn running_sums(cx: Block, x: Global<u32>, out: GlobalMut<u32, Atomic>, mut shared: Shared<ScanStorage<[u32; 2]>>) {
///     let (rank, threads) = (cx.thread_rank() as usize, cx.block_threads() as usize);
///     let sums = cumsum(cx, &mut shared, [x[rank], x[threads + rank]], Add);
///     out.at(rank).store(sums[0]);
///     out.at(threads + rank).store(sums[1]);
/// }
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = kernel_primitives::Device::emulator().stream()?;
/// let x = stream.buffer_from(&[1u32; 100])?;
/// let mut out = stream.buffer_zeroed::<u32>(100)?;
/// running_sums::launch(&stream, (1, 50), &x, &mut out)?;
/// assert_eq!(out.to_vec()?, (1..=100).collect::<Vec<u32>>());
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn cumsum<T: Element, R: Reducer<T> + Copy, const N: usize>(
    cx: Block<'_>,
    shared: &mut Shared<'_, ScanStorage<[T; N]>>,
    items: [T; N],
    op: R,
) -> [T; N] {
    const { assert!(N > 0, "a collective has at least one item a thread") };
    let ([mut rows], totals) = block_inclusive_scan(cx, shared, &[items], Each(op));
    let mut i = 1;
    let mut before = totals[0];
    while i < N {
        rows[i] = op.apply(before, rows[i]);
        before = op.apply(before, totals[i]);
        i += 1;
    }
    rows
}

/// Scans the items of a thread after `below`. If `op` combines three values at once, each result is made from the last but one. So the
/// chain has half the length, and two kinds of units share the additions.
pub(super) fn inclusive<T: Element, R: Reducer<T>, const N: usize>(below: Option<T>, items: &[T; N], op: &R) -> [T; N] {
    let mut out = *items;
    if let Some(below) = below {
        out[0] = op.apply(below, items[0]);
    }
    let mut i = 1;
    while i < N {
        out[i] = op.apply(out[i - 1], items[i]);
        i += 1;
    }
    let mut i = 2;
    while i < N {
        if let Some(combined) = op.of_three(out[i - 2], items[i - 1], items[i]) {
            out[i] = combined;
        }
        i += 1;
    }
    out
}

/// Works as [`inclusive`], but leaves each item out of its own result.
pub(super) fn exclusive<T: Element, R: Reducer<T>, const N: usize>(below: T, items: &[T; N], op: &R) -> [T; N] {
    let mut out = [below; N];
    let mut i = 1;
    while i < N {
        out[i] = op.apply(out[i - 1], items[i - 1]);
        i += 1;
    }
    let mut i = 2;
    while i < N {
        if let Some(combined) = op.of_three(out[i - 2], items[i - 2], items[i - 1]) {
            out[i] = combined;
        }
        i += 1;
    }
    out
}

/// Combines `first` and the value after it, if there is one.
pub(super) fn after<T: Element, R: Reducer<T>>(first: T, then: Option<T>, op: &R) -> T {
    match then {
        Some(then) => op.apply(first, then),
        None => first,
    }
}

/// Returns the combination of the items of earlier threads, or `None` in the first thread, and the total.
#[track_caller]
fn threads_below<T: Element, R: Reducer<T>, const N: usize, const THREADS: usize>(
    cx: Block<'_>,
    shared: &mut Shared<'_, ScanStorage<T, THREADS>>,
    items: &[T; N],
    op: &R,
) -> (Option<T>, T) {
    let (warps, mask) = (partials::warps(cx), cx.warp_mask());
    if THREADS > 0 {
        raking::check::<THREADS>(cx);
        if warps > 1 {
            let slots =
                rake::<_, _, THREADS>(cx, shared, partials::tree(items, op), op, raking::raker(cx), None::<fn(T) -> T>);
            // SAFETY: left there.
            let (below, total) = unsafe { (raking::take(cx, slots), raking::total(slots)) };
            // If there are no items before, the result may differ from the identity. For integers it does not, so they need not tell the
            // first thread from the others.
            return (if op.has_instruction() || cx.thread_rank() > 0 { Some(below) } else { None }, total);
        }
    }
    let own = partials::tree(items, op);
    let scanned = warp::inclusive(cx, mask, own, op);
    let lanes_below = warp::below(cx, mask, scanned, own, op);
    let last = cx.warp_lanes() - 1;
    if warps == 1 {
        return (lanes_below, cx.shuffle(mask, scanned, last, WARP));
    }
    let half = shared.enter_double_buffered(ScanStorage::<T>::HALF);
    let totals = shared.array::<T>(half, SLOTS);
    // SAFETY: the half is not in use until the barrier, and written again two barriers later.
    unsafe {
        partials::put(cx, totals, warps, last, scanned, op);
        cx.barrier();
        let (warps_below, total) = partials::scan(totals, warps, cx.warp() as usize, op);
        let below = match warps_below {
            Some(warps_below) => Some(after(warps_below, lanes_below, op)),
            None => lanes_below,
        };
        (below, total)
    }
}

/// Returns the combination of the prefix and the items of earlier threads.
#[track_caller]
fn threads_below_after<T: Element, R: Reducer<T>, const N: usize, const THREADS: usize>(
    cx: Block<'_>,
    shared: &mut Shared<'_, ScanStorage<T, THREADS>>,
    items: &[T; N],
    op: &R,
    prefix: impl FnOnce(T) -> T,
) -> T {
    let (warps, mask) = (partials::warps(cx), cx.warp_mask());
    if THREADS > 0 {
        raking::check::<THREADS>(cx);
        if warps > 1 {
            let slots = rake::<_, _, THREADS>(cx, shared, partials::tree(items, op), op, 0, Some(prefix));
            // SAFETY: left there.
            return unsafe { raking::take(cx, slots) };
        }
    }
    let own = partials::tree(items, op);
    let scanned = warp::inclusive(cx, mask, own, op);
    let lanes_below = warp::below(cx, mask, scanned, own, op);
    let last = cx.warp_lanes() - 1;
    if warps == 1 {
        let prefix = prefix(cx.shuffle(mask, scanned, last, WARP));
        return after(cx.shuffle(mask, prefix, 0, WARP), lanes_below, op);
    }
    let half = shared.enter_double_buffered(ScanStorage::<T>::HALF);
    let totals = shared.array::<T>(half, SLOTS);
    let warp = cx.warp() as usize;
    // SAFETY: the half is not in use until the barrier; the first thread writes the prefix, which is read after the second
    // barrier; the half is written again two barriers later.
    unsafe {
        partials::put(cx, totals, warps, last, scanned, op);
        cx.barrier();
        let (warps_below, total) = partials::scan(totals, warps, warp, op);
        if warp == 0 {
            let prefix = prefix(total);
            if cx.lane() == 0 {
                totals.store(MAX_WARPS, prefix);
            }
        }
        cx.barrier();
        let prefix = totals.load(MAX_WARPS);
        after(after(prefix, warps_below, op), lanes_below, op)
    }
}

/// Scans the values of the threads in the warp `raker`, after `first` of the total, and leaves the combination before each thread, and the
/// total.
#[track_caller]
fn rake<'k, T: Element, R: Reducer<T>, const THREADS: usize>(
    cx: Block<'_>,
    shared: &mut Shared<'k, ScanStorage<T, THREADS>>,
    value: T,
    op: &R,
    raker: u32,
    first: Option<impl FnOnce(T) -> T>,
) -> SharedArray<'k, T> {
    shared.enter_by_owners(size_of::<T>());
    let slots = shared.array::<T>(0, raking::slots::<T>(THREADS));
    // SAFETY: a thread's slot is its own until the first barrier, all slots are the raking warp's until the second, and from
    // there they are only read, each by its thread.
    unsafe {
        raking::put(cx, slots, value);
        cx.barrier();
        if cx.warp() == raker {
            raking::rake_scan::<_, _, THREADS>(cx, slots, op, first);
        }
        cx.barrier();
    }
    slots
}
