//! Flags of the items that start and end runs.

use super::neighbours::{NeighbourStorage, adjacent_difference_left, adjacent_difference_right};
use crate::element::Element;
use crate::functor::BinaryFn;
use crate::simt::Block;
use crate::view::Shared;

/// Returns, for each item of the block, whether it starts a run: whether `differs` is true for its predecessor and the item. The
/// predecessor of the first item is `before`. If that is `None`, the first item always starts a run.
///
/// Items are in the blocked arrangement. `differs` is any function of two neighbours, and its first argument is the earlier one. Cost and
/// shared memory are those of [`adjacent_difference_left`].
///
/// CUB: `BlockDiscontinuity::FlagHeads`. Differences: flags are `bool`; the item before the first one is an `Option`.
///
/// All threads of the block call it: see [divergence](crate::block#divergence).
///
/// ```
/// use kernel_primitives::prelude::*;
///
/// #[kernel]
/// fn starts(cx: Block, x: Global<u8>, mut out: GlobalMut<bool, Tiles<2>>, mut shared: Shared<NeighbourStorage<u8>>) {
///     for tile in cx.tiles::<2>(out.len()) {
///         let mut items = init::<u8, 2>(0);
///         read_data(cx, &mut items, x.tile(tile));
///         let before = if tile.start() > 0 { Some(x[tile.start() - 1]) } else { None };
///         write_data(cx, out.tile(tile), &flag_heads(cx, &mut shared, &items, before, |a: u8, b: u8| a != b));
///     }
/// }
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = kernel_primitives::Device::emulator().stream()?;
/// let x = stream.buffer_from(&[1u8, 1, 2, 3, 3, 3])?;
/// let mut out = stream.buffer_zeroed::<bool>(6)?;
/// starts::launch(&stream, (1, 32), &x, &mut out)?;
/// assert_eq!(out.to_vec()?, [true, false, true, true, false, false]);
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn flag_heads<T: Element, F: BinaryFn<T, T, Output = bool>, const N: usize>(
    cx: Block<'_>,
    shared: &mut Shared<'_, NeighbourStorage<T>>,
    items: &[T; N],
    before: Option<T>,
    differs: F,
) -> [bool; N] {
    let earlier_first = |item: T, earlier: T| differs.apply(earlier, item);
    let mut heads = adjacent_difference_left(cx, shared, items, before.unwrap_or(items[0]), earlier_first);
    if before.is_none() && cx.thread_rank() == 0 {
        heads[0] = true;
    }
    heads
}

/// Returns, for each item of the block, whether it ends a run: whether `differs` is true for the item and its successor. The successor of
/// the last item is `after`. If that is `None`, the last item always ends a run. Otherwise this works as [`flag_heads`].
///
/// CUB: `BlockDiscontinuity::FlagTails`. Differences: flags are `bool`; the item after the last one is an `Option`.
///
/// All threads of the block call it: see [divergence](crate::block#divergence).
///
/// ```
/// use kernel_primitives::prelude::*;
///
/// #[kernel]
/// fn ends(cx: Block, x: Global<u8>, mut out: GlobalMut<bool, Tiles<2>>, mut shared: Shared<NeighbourStorage<u8>>) {
///     for tile in cx.tiles::<2>(out.len()) {
///         let mut items = init::<u8, 2>(0);
///         read_data(cx, &mut items, x.tile(tile));
///         let after = x.get(tile.start() + tile.len());
///         write_data(cx, out.tile(tile), &flag_tails(cx, &mut shared, &items, after, |a: u8, b: u8| a != b));
///     }
/// }
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = kernel_primitives::Device::emulator().stream()?;
/// let mut out = stream.buffer_zeroed::<bool>(6)?;
/// ends::launch(&stream, (1, 3), &stream.buffer_from(b"aabccc")?, &mut out)?;
/// assert_eq!(out.to_vec()?, [false, true, true, false, false, true]);
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn flag_tails<T: Element, F: BinaryFn<T, T, Output = bool>, const N: usize>(
    cx: Block<'_>,
    shared: &mut Shared<'_, NeighbourStorage<T>>,
    items: &[T; N],
    after: Option<T>,
    differs: F,
) -> [bool; N] {
    let earlier_first = |item: T, later: T| differs.apply(item, later);
    let mut tails = adjacent_difference_right(cx, shared, items, after.unwrap_or(items[N - 1]), earlier_first);
    if after.is_none() && cx.thread_rank() == cx.block_threads() - 1 {
        tails[N - 1] = true;
    }
    tails
}

/// Returns [`flag_heads`] and [`flag_tails`] of the same items.
///
/// CUB: `BlockDiscontinuity::FlagHeadsAndTails`. Differences: flags are `bool`; the items beside the block's are an `Option` each.
///
/// All threads of the block call it: see [divergence](crate::block#divergence).
///
/// ```
/// use kernel_primitives::prelude::*;
///
/// /// Which bytes stand alone, their neighbours being others.
/// #[kernel]
/// fn alone(cx: Block, x: Global<u8>, mut out: GlobalMut<bool, Tiles<2>>, mut shared: Shared<NeighbourStorage<u8>>) {
///     for tile in cx.tiles::<2>(out.len()) {
///         let mut items = init::<u8, 2>(0);
///         read_data(cx, &mut items, x.tile(tile));
///         let differs = |a: u8, b: u8| a != b;
///         let (heads, tails) = flag_heads_and_tails(cx, &mut shared, &items, None, None, differs);
///         write_data(cx, out.tile(tile), &[heads[0] && tails[0], heads[1] && tails[1]]);
///     }
/// }
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = kernel_primitives::Device::emulator().stream()?;
/// let mut out = stream.buffer_zeroed::<bool>(6)?;
/// alone::launch(&stream, (1, 3), &stream.buffer_from(b"aabccd")?, &mut out)?;
/// assert_eq!(out.to_vec()?, [false, false, true, false, false, true]);
/// # Ok(())
/// # }
/// ```
#[inline(always)]
#[track_caller]
pub fn flag_heads_and_tails<T: Element, F: BinaryFn<T, T, Output = bool> + Copy, const N: usize>(
    cx: Block<'_>,
    shared: &mut Shared<'_, NeighbourStorage<T>>,
    items: &[T; N],
    before: Option<T>,
    after: Option<T>,
    differs: F,
) -> ([bool; N], [bool; N]) {
    (flag_heads(cx, shared, items, before, differs), flag_tails(cx, shared, items, after, differs))
}
