//! Prefix sums, and other scans, over a warp and over groups of its lanes.

use crate::element::Element;
use crate::functor::Reducer;
use crate::simt::{Block, WARP};

use super::group;

/// Combines, for each lane, the values of the lanes up to and including it, in lane order.
///
/// Phases: five shuffles from the lane below, each followed by one application of `op` in the lanes that have a lane below. The predicate
/// of the shuffle says which lanes have one, so no lane number is compared. Partial warps work, too. No shared memory; it orders no memory
/// accesses. The total is the value of the last lane.
///
/// Source: the network is that of Hillis and Steele (1986).
///
/// CUB: `WarpScan::InclusiveScan`, `InclusiveSum`. Differences: no storage.
///
/// All lanes of the warp call it: see [divergence](crate::warp#divergence).
///
/// ```
/// use kernel_primitives::prelude::*;
///
/// #[kernel]
/// fn running_sums(cx: Block, x: Global<f32>, mut out: GlobalMut<f32>) {
///     for tile in cx.tiles::<1>(out.len()) {
///         let mut item = init::<f32, 1>(Add.identity());
///         read_data(cx, &mut item, x.tile(tile));
///         write_data(cx, out.tile(tile), &[warp_inclusive_scan(cx, item[0], Add)]);
///     }
/// }
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = kernel_primitives::Device::emulator().stream()?;
/// let x = stream.buffer_from(&[1.0f32; 40])?;
/// let mut out = stream.buffer_zeroed::<f32>(40)?;
/// running_sums::launch(&stream, (1, 40), &x, &mut out)?;
/// assert_eq!(out.to_vec()?[30..34], [31.0, 32.0, 1.0, 2.0]);
/// # Ok(())
/// # }
/// ```
#[inline(always)]
#[track_caller]
pub fn warp_inclusive_scan<T: Element, R: Reducer<T>>(cx: Block<'_>, value: T, op: R) -> T {
    inclusive(cx, cx.warp_mask(), value, &op)
}

/// Combines, for each lane, the values of the lanes below it, in lane order. The first lane gets the identity, as [`Reducer::of_none`]
/// gives it. The second result is the total of all lanes, in every lane.
///
/// Cost: that of [`warp_inclusive_scan`], and one more shuffle for each of the two results. For sums of `u32` and `i32`, a subtraction
/// replaces the first of these.
///
/// CUB: `WarpScan::ExclusiveScan`, `ExclusiveSum`. Differences: no storage; returns the total, too.
///
/// All lanes of the warp call it: see [divergence](crate::warp#divergence).
///
/// ```
/// use kernel_primitives::prelude::*;
///
/// /// Of each warp, the places of the even numbers among themselves, and how many there are.
/// #[kernel]
/// fn places(cx: Block, x: Global<u32>, mut out: GlobalMut<[u32; 2]>) {
///     for tile in cx.tiles::<1>(out.len()) {
///         // What a partial tile lacks is odd, and does not count.
///         let mut item = init::<u32, 1>(1);
///         read_data(cx, &mut item, x.tile(tile));
///         let (place, count) = warp_exclusive_scan(cx, 1 - item[0] % 2, Add);
///         write_data(cx, out.tile(tile), &[[place, count]]);
///     }
/// }
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = kernel_primitives::Device::emulator().stream()?;
/// let x = stream.buffer_from(&[4u32, 7, 8, 10])?;
/// let mut out = stream.buffer_zeroed::<[u32; 2]>(4)?;
/// places::launch(&stream, (1, 4), &x, &mut out)?;
/// assert_eq!(out.to_vec()?, [[0, 3], [1, 3], [1, 3], [2, 3]]);
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn warp_exclusive_scan<T: Element, R: Reducer<T>>(cx: Block<'_>, value: T, op: R) -> (T, T) {
    let mask = cx.warp_mask();
    let inclusive = inclusive(cx, mask, value, &op);
    let exclusive = below(cx, mask, inclusive, value, &op);
    let total = cx.shuffle(mask, inclusive, cx.warp_lanes() - 1, WARP);
    (exclusive.unwrap_or(op.of_none()), total)
}

/// Works as [`warp_exclusive_scan`], with `initial` before the values: the first lane gets `initial` itself. The total is that of the
/// lanes' values alone.
///
/// CUB: `WarpScan::ExclusiveScan` with `initial_value`. Differences: returns the total, too.
///
/// All lanes of the warp call it: see [divergence](crate::warp#divergence).
///
/// ```
/// use kernel_primitives::prelude::*;
///
/// #[kernel]
/// fn sums_from_a_hundred(cx: Block, x: Global<u32>, mut out: GlobalMut<u32>) {
///     for tile in cx.tiles::<1>(out.len()) {
///         let mut item = init::<u32, 1>(0);
///         read_data(cx, &mut item, x.tile(tile));
///         write_data(cx, out.tile(tile), &[warp_exclusive_scan_from(cx, item[0], 100, Add).0]);
///     }
/// }
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = kernel_primitives::Device::emulator().stream()?;
/// let x = stream.buffer_from(&[1u32, 2, 3])?;
/// let mut out = stream.buffer_zeroed::<u32>(3)?;
/// sums_from_a_hundred::launch(&stream, (1, 3), &x, &mut out)?;
/// assert_eq!(out.to_vec()?, [100, 101, 103]);
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn warp_exclusive_scan_from<T: Element, R: Reducer<T>>(cx: Block<'_>, value: T, initial: T, op: R) -> (T, T) {
    let mask = cx.warp_mask();
    let inclusive = inclusive(cx, mask, value, &op);
    let total = cx.shuffle(mask, inclusive, cx.warp_lanes() - 1, WARP);
    match below(cx, mask, inclusive, value, &op) {
        Some(below) => (op.apply(initial, below), total),
        None => (initial, total),
    }
}

/// Works as [`warp_inclusive_scan`] in each group of `width` lanes. `width` is 1 to 32; otherwise it is a fault. The last group has the
/// lanes that remain.
///
/// Cost: `log2(width)` phases, rounded up. A width that is not a power of two also compares lane numbers.
///
/// CUB: `WarpScan<T, LOGICAL_WARP_THREADS>`. Differences: any width from 1 to 32, at run time.
///
/// All lanes of the warp call it: see [divergence](crate::warp#divergence).
///
/// ```
/// use kernel_primitives::prelude::*;
///
/// #[kernel]
/// fn sums_in_threes(cx: Block, x: Global<u32>, mut out: GlobalMut<u32>) {
///     for tile in cx.tiles::<1>(out.len()) {
///         let mut item = init::<u32, 1>(0);
///         read_data(cx, &mut item, x.tile(tile));
///         write_data(cx, out.tile(tile), &[warp_group_inclusive_scan(cx, item[0], Add, 3)]);
///     }
/// }
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = kernel_primitives::Device::emulator().stream()?;
/// let x = stream.buffer_from(&[1u32; 32])?;
/// let mut out = stream.buffer_zeroed::<u32>(32)?;
/// sums_in_threes::launch(&stream, (1, 32), &x, &mut out)?;
/// assert_eq!(out.to_vec()?[26..], [3, 1, 2, 3, 1, 2]);
/// # Ok(())
/// # }
/// ```
#[inline(always)]
#[track_caller]
pub fn warp_group_inclusive_scan<T: Element, R: Reducer<T>>(cx: Block<'_>, value: T, op: R, width: u32) -> T {
    let (start, _) = group(cx, width);
    inclusive_from(cx, cx.warp_mask(), value, start, width, &op)
}

/// Works as [`warp_exclusive_scan`] in each group of `width` lanes. The total is that of the group.
///
/// CUB: `WarpScan<T, LOGICAL_WARP_THREADS>`.
///
/// All lanes of the warp call it: see [divergence](crate::warp#divergence).
///
/// ```
/// use kernel_primitives::prelude::*;
///
/// #[kernel]
/// fn sums_in_threes(cx: Block, x: Global<u32>, mut out: GlobalMut<[u32; 2]>) {
///     for tile in cx.tiles::<1>(out.len()) {
///         let mut item = init::<u32, 1>(0);
///         read_data(cx, &mut item, x.tile(tile));
///         let (before, total) = warp_group_exclusive_scan(cx, item[0], Add, 3);
///         write_data(cx, out.tile(tile), &[[before, total]]);
///     }
/// }
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = kernel_primitives::Device::emulator().stream()?;
/// let x = stream.buffer_from(&[1u32, 2, 3, 10, 20])?;
/// let mut out = stream.buffer_zeroed::<[u32; 2]>(5)?;
/// sums_in_threes::launch(&stream, (1, 5), &x, &mut out)?;
/// assert_eq!(out.to_vec()?, [[0, 6], [1, 6], [3, 6], [0, 30], [10, 30]]);
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn warp_group_exclusive_scan<T: Element, R: Reducer<T>>(cx: Block<'_>, value: T, op: R, width: u32) -> (T, T) {
    let (start, end) = group(cx, width);
    let mask = cx.warp_mask();
    let inclusive = inclusive_from(cx, mask, value, start, width, &op);
    let below = cx.shuffle_up(mask, inclusive, 1, WARP);
    let total = cx.shuffle(mask, inclusive, end - 1, WARP);
    (if cx.lane() == start { op.of_none() } else { below }, total)
}

#[inline(always)]
#[track_caller]
pub(crate) fn inclusive<T: Element, R: Reducer<T>>(cx: Block<'_>, mask: u32, value: T, op: &R) -> T {
    inclusive_from(cx, mask, value, 0, WARP, op)
}

/// Combines the values of the lanes below, if there are any. Each lane has the combination that includes its `own` value, which is the
/// last. If that value can be subtracted again, no shuffle is needed, and the first lane gets the identity.
#[inline(always)]
#[track_caller]
pub(crate) fn below<T: Element, R: Reducer<T>>(cx: Block<'_>, mask: u32, upto: T, own: T, op: &R) -> Option<T> {
    op.without(upto, own).or_else(|| cx.try_shuffle_up(mask, upto, 1, WARP))
}

/// Scans each group of `width` lanes. `start` is the first lane of this lane's group.
#[track_caller]
fn inclusive_from<T: Element, R: Reducer<T>>(cx: Block<'_>, mask: u32, value: T, start: u32, width: u32, op: &R) -> T {
    let mut total = value;
    let mut delta = 1;
    while delta < width {
        if width.is_power_of_two() {
            total = cx.combine_up(mask, total, delta, width, |below, own| op.apply(below, own));
        } else {
            let below = cx.shuffle_up(mask, total, delta, WARP);
            if cx.lane() >= start + delta {
                total = op.apply(below, total);
            }
        }
        delta *= 2;
    }
    total
}
