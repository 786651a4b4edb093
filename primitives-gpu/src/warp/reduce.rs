//! Reductions over a warp and over groups of its lanes.

use crate::element::Element;
use crate::functor::Reducer;
use crate::simt::{Block, FULL_MASK, WARP};

use super::group;

/// Combines the values of the warp's lanes, in lane order. Every lane gets the result.
///
/// Phases: five shuffles with exclusive-or addressing, each followed by one application of `op`. For 32-bit integer sum, minimum and
/// maximum, it is one `redux.sync` on sm_80 and later. A partial warp, at the end of a block whose size is not a multiple of 32, combines
/// the lanes that it has, and one more shuffle distributes the result. No shared memory; it orders no memory accesses.
///
/// Seed: `WarpReduce(val, reducer)`, which has the result in lane 0 and assumes a full warp.
///
/// CUB: `WarpReduce::Reduce`, `Sum`. Differences: no storage; every lane gets the result, and not only the first one.
///
/// All lanes of the warp call it: see [divergence](crate::warp#divergence).
///
/// ```
/// use kernel_primitives::prelude::*;
///
/// #[kernel]
/// fn warp_sums(cx: Block, x: Global<f32>, mut out: GlobalMut<f32>) {
///     // The loop is over tiles, not over items: so all lanes make all rounds, for any length.
///     for tile in cx.tiles::<1>(out.len()) {
///         let mut item = init::<f32, 1>(Add.identity());
///         read_data(cx, &mut item, x.tile(tile));
///         write_data(cx, out.tile(tile), &[warp_reduce(cx, item[0], Add)]);
///     }
/// }
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = kernel_primitives::Device::emulator().stream()?;
/// let x = stream.buffer_from(&[1.0f32; 64])?;
/// let mut out = stream.buffer_zeroed::<f32>(64)?;
/// warp_sums::launch(&stream, (1, 64), &x, &mut out)?;
/// assert_eq!(out.to_vec()?, [32.0; 64]);
/// # Ok(())
/// # }
/// ```
#[inline(always)]
#[track_caller]
pub fn warp_reduce<T: Element, R: Reducer<T>>(cx: Block<'_>, value: T, op: R) -> T {
    reduce(cx, value, &op)
}

/// Combines the values of each group of `width` lanes, in lane order. Every lane gets the result of its group. `width` is 1 to 32;
/// otherwise it is a fault. The last group has the lanes that remain.
///
/// Phases: for a power of two, `log2(width)` shuffles with exclusive-or addressing. For other widths and in partial warps, `log2(width)`
/// (rounded up) from the lane above, and one more that distributes the result. If the width is a constant, only the phases that it needs
/// remain.
///
/// CUB: `WarpReduce<T, LOGICAL_WARP_THREADS>`. Differences: any width from 1 to 32, at run time; every lane of the group gets the result,
/// and not only the first one.
///
/// All lanes of the warp call it: see [divergence](crate::warp#divergence).
///
/// ```
/// use kernel_primitives::prelude::*;
///
/// #[kernel]
/// fn sums_of_fives(cx: Block, x: Global<u32>, mut out: GlobalMut<u32>) {
///     for tile in cx.tiles::<1>(out.len()) {
///         let mut item = init::<u32, 1>(0);
///         read_data(cx, &mut item, x.tile(tile));
///         write_data(cx, out.tile(tile), &[warp_group_reduce(cx, item[0], Add, 5)]);
///     }
/// }
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = kernel_primitives::Device::emulator().stream()?;
/// let x = stream.buffer_from(&[1u32; 32])?;
/// let mut out = stream.buffer_zeroed::<u32>(32)?;
/// sums_of_fives::launch(&stream, (1, 32), &x, &mut out)?;
/// assert_eq!(out.to_vec()?[28..], [5, 5, 2, 2]);
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn warp_group_reduce<T: Element, R: Reducer<T>>(cx: Block<'_>, value: T, op: R, width: u32) -> T {
    let (start, end) = group(cx, width);
    let mask = cx.warp_mask();
    if width.is_power_of_two() && cx.warp_lanes() == WARP {
        return butterfly(cx, mask, value, width, &op);
    }
    let total = reduce_down(cx, mask, value, end, width, &op);
    cx.shuffle(mask, total, start, WARP)
}

#[track_caller]
pub(crate) fn reduce<T: Element, R: Reducer<T>>(cx: Block<'_>, value: T, op: &R) -> T {
    let lanes = cx.warp_lanes();
    // A constant mask saves the instructions by which the lanes check that they have the same mask.
    let mask = if lanes == WARP { FULL_MASK } else { cx.warp_mask() };
    if let Some(total) = op.warp(cx, mask, value) {
        return total;
    }
    if lanes == WARP {
        butterfly(cx, FULL_MASK, value, WARP, op)
    } else {
        let total = reduce_down(cx, mask, value, lanes, WARP, op);
        cx.shuffle(mask, total, 0, WARP)
    }
}

/// Combines groups of `width` lanes, a power of two, in lane order. Every lane gets the result of its group.
#[track_caller]
fn butterfly<T: Element, R: Reducer<T>>(cx: Block<'_>, mask: u32, value: T, width: u32, op: &R) -> T {
    let mut total = value;
    let mut bit = 1;
    while bit < width {
        total = butterfly_step(cx, mask, total, bit, op);
        bit *= 2;
    }
    total
}

/// Does one step of a butterfly: combines the value of each lane with that of the lane whose number differs in `bit`. The value of the
/// lower lane comes first.
#[inline(always)]
#[track_caller]
fn butterfly_step<T: Element, R: Reducer<T>>(cx: Block<'_>, mask: u32, value: T, bit: u32, op: &R) -> T {
    let other = cx.shuffle_xor(mask, value, bit, WARP);
    if cx.lane() & bit == 0 { op.apply(value, other) } else { op.apply(other, value) }
}

/// Combines, in each lane, the values from that lane up to lane `end` (exclusive), in lane order. No lane is more than `width` from its
/// end.
#[track_caller]
pub(crate) fn reduce_down<T: Element, R: Reducer<T>>(
    cx: Block<'_>,
    mask: u32,
    value: T,
    end: u32,
    width: u32,
    op: &R,
) -> T {
    let lane = cx.lane();
    let mut total = value;
    let mut delta = 1;
    while delta < width {
        // This shuffles by lane number. `shuffle_down` would read lanes that do not exist in a partial warp.
        let other = cx.shuffle(mask, total, (lane + delta).min(end - 1), WARP);
        if lane + delta < end {
            total = op.apply(total, other);
        }
        delta *= 2;
    }
    total
}
