//! Reductions over segments of a warp, whose limits are data.

use crate::element::Element;
use crate::functor::Reducer;
use crate::simt::{Block, WARP};

use super::reduce_down;

/// Combines the values of each segment of the warp, in lane order. Every lane gets the result of its segment. A segment starts at each lane
/// whose `head` is true, and at the first lane.
///
/// Phases: one vote, five shuffles from the lane above, and one that distributes the results. Every lane runs every phase, however short
/// its segment is. No shared memory. Partial warps work, too.
///
/// CUB: `WarpReduce::HeadSegmentedReduce`. Differences: every lane of the segment gets the result, and not only the first one.
///
/// All lanes of the warp call it: see [divergence](crate::warp#divergence).
///
/// ```
/// use kernel_primitives::prelude::*;
///
/// #[kernel]
/// fn sums_to_multiples_of_seven(cx: Block, x: Global<u32>, mut out: GlobalMut<u32>) {
///     for tile in cx.tiles::<1>(out.len()) {
///         let mut item = init::<u32, 1>(0);
///         read_data(cx, &mut item, x.tile(tile));
///         write_data(cx, out.tile(tile), &[warp_reduce_by_heads(cx, item[0], item[0] % 7 == 0, Add)]);
///     }
/// }
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = kernel_primitives::Device::emulator().stream()?;
/// let x = stream.buffer_from(&(0..32).collect::<Vec<u32>>())?;
/// let mut out = stream.buffer_zeroed::<u32>(32)?;
/// sums_to_multiples_of_seven::launch(&stream, (1, 32), &x, &mut out)?;
/// assert_eq!(out.to_vec()?[26..], [168, 168, 118, 118, 118, 118]);
/// # Ok(())
/// # }
/// ```
#[inline(always)]
#[track_caller]
pub fn warp_reduce_by_heads<T: Element, R: Reducer<T>>(cx: Block<'_>, value: T, head: bool, op: R) -> T {
    let mask = cx.warp_mask();
    let heads = cx.ballot(mask, head) | 1;
    by_heads(cx, mask, value, heads, &op)
}

/// Combines the values of each segment of the warp, in lane order. Every lane gets the result of its segment. A segment ends with each lane
/// whose `tail` is true, and with the last lane.
///
/// Cost and scope are as for [`warp_reduce_by_heads`].
///
/// CUB: `WarpReduce::TailSegmentedReduce`. Differences: every lane of the segment gets the result, and not only the first one.
///
/// All lanes of the warp call it: see [divergence](crate::warp#divergence).
///
/// ```
/// use kernel_primitives::prelude::*;
///
/// #[kernel]
/// fn sums_up_to_multiples_of_three(cx: Block, x: Global<u32>, mut out: GlobalMut<u32>) {
///     for tile in cx.tiles::<1>(out.len()) {
///         let mut item = init::<u32, 1>(0);
///         read_data(cx, &mut item, x.tile(tile));
///         write_data(cx, out.tile(tile), &[warp_reduce_by_tails(cx, item[0], item[0] % 3 == 0, Add)]);
///     }
/// }
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = kernel_primitives::Device::emulator().stream()?;
/// let x = stream.buffer_from(&[1u32, 2, 3, 4, 5, 6, 7])?;
/// let mut out = stream.buffer_zeroed::<u32>(7)?;
/// sums_up_to_multiples_of_three::launch(&stream, (1, 7), &x, &mut out)?;
/// assert_eq!(out.to_vec()?, [6, 6, 6, 15, 15, 15, 7]);
/// # Ok(())
/// # }
/// ```
#[inline(always)]
#[track_caller]
pub fn warp_reduce_by_tails<T: Element, R: Reducer<T>>(cx: Block<'_>, value: T, tail: bool, op: R) -> T {
    let mask = cx.warp_mask();
    // The lane after a tail is a head. A head after the last lane of the warp does no harm.
    let heads = cx.ballot(mask, tail) << 1 | 1;
    by_heads(cx, mask, value, heads, &op)
}

/// `heads` has one bit for each segment, at its first lane. The bit of the first lane is set.
#[track_caller]
fn by_heads<T: Element, R: Reducer<T>>(cx: Block<'_>, mask: u32, value: T, heads: u32, op: &R) -> T {
    let lane = cx.lane();
    let start = 31 - (heads & (!0 >> (31 - lane))).leading_zeros();
    // Two shifts, because the last lane has no lane above.
    let above = heads >> lane >> 1;
    let end = (lane + 1 + above.trailing_zeros()).min(cx.warp_lanes());
    let total = reduce_down(cx, mask, value, end, WARP, op);
    cx.shuffle(mask, total, start, WARP)
}
