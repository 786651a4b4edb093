//! Selections.
//!
//! One launch: a tile learns from the tiles before it how many items they keep ([`tile::staged`](crate::algorithms::tile::staged)).

use crate::__algorithms::*;
use crate::__private::Again;
use crate::__private::Entry;
use crate::algorithms::chained::chained;
use crate::algorithms::kernels::algorithm;
use crate::algorithms::run::{Run, check_output};
use crate::algorithms::tuning::Parameter;
use crate::functor::{Choice, Flagged, UnaryFn};
use crate::input::{Constant, Source, constant};
use crate::kernels::device::{self, StagedTiles};
use crate::{BufferSliceMut, ConvertTo, Element, InputArg, KernelParam, Result};

algorithm! {
    /// Inputs and predicates that [`select_if`] has kernels for.
    select_if
}

/// Keeps the items for which `predicate` is true. `out` receives them, in the order of the input, and `count[0]` their number.
///
/// `predicate` is any [`UnaryFn`] from an item to `bool`, such as `bind_second(LessThan, 10)`. `out` need not be as long as the input, only
/// long enough for the items kept; what is after these stays as it is.
///
/// Cost: one kernel reads the input once, writes the items kept once, and chains the tiles of its blocks ([`grid`](crate::grid)). It calls
/// `predicate` twice for each item, and more often for the first item. The chain is cleared first, unless a
/// [`Workspace`](crate::algorithms::Workspace) has room for it, or there is a single tile, which needs no chain. Temporary memory: 16 bytes
/// for each tile of up to 54 KiB.
///
/// Ready for numbers with `bind_second` of `LessThan`, `GreaterThan` and `NotEqual`. For others, write
/// `instantiate!(kernel_primitives::algorithms::select_if<MyItem, MyPredicate>);`.
///
/// | [same bits](crate::docs::guarantees#determinism-and-order) on every run | same bits on every device | order |
/// |---|---|---|
/// | yes: `net::properties::select` | yes: `net::properties::select` | of the input: `net::properties::select` |
///
/// CUB: `DeviceSelect::If`. Thrust: `copy_if`, and `remove_if` with the negated predicate.
///
/// ```
/// use kernel_primitives::algorithms::select_if;
/// use kernel_primitives::functor::{LessThan, bind_second};
/// use kernel_primitives::Device;
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = Device::auto()?.stream()?;
/// let x = stream.buffer_from(&[3u32, 1, 4, 1, 5])?;
/// let (mut small, mut count) = (stream.buffer_zeroed::<u32>(5)?, stream.buffer_zeroed::<u64>(1)?);
/// select_if(&stream, &x, bind_second(LessThan, 4), &mut small, &mut count)?;
/// assert_eq!(count.to_vec()?, [3]);
/// assert_eq!(small.to_vec()?[..3], [3, 1, 1]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Returns [`Error::LengthMismatch`](crate::Error::LengthMismatch) if `count` is empty, and the errors of a launch and of an allocation. If
/// `out` is too short for the items kept, the launch faults.
pub fn select_if<'a, 'o, 'c, I, S, P, Tag>(
    run: impl Into<Run<'a>>,
    x: I,
    predicate: P,
    out: impl Into<BufferSliceMut<'o, S::Item>>,
    count: impl Into<BufferSliceMut<'c, u64>>,
) -> Result<()>
where
    I: InputArg<S>,
    S: Source<Item: Element>,
    P: UnaryFn<S::Item, Output = bool> + KernelParam,
    S::Short: SelectIf<P, Tag>,
{
    let (kernel,) = <S::Short as SelectIf<P, Tag>>::kernels();
    let none = constant((), x.items());
    select("select_if", kernel, run.into(), x, none, predicate, out.into(), count.into())
}

algorithm! {
    /// Inputs and flags that [`select_flagged`] has kernels for.
    select_flagged
}

/// Keeps the items whose flags are true. A number is true if it is not 0. If items and flags have different lengths, the call reads as many
/// of each as the shorter one has.
///
/// Otherwise this works as [`select_if`].
///
/// Ready for numbers with flags of `bool`. For others, write `instantiate!(kernel_primitives::algorithms::select_flagged<MyItem, u8>);`.
///
/// | [same bits](crate::docs::guarantees#determinism-and-order) on every run | same bits on every device | order |
/// |---|---|---|
/// | yes: `net::properties::select` | yes: `net::properties::select` | of the input: `net::properties::select` |
///
/// CUB: `DeviceSelect::Flagged`. Thrust: `copy_if` with a stencil.
///
/// ```
/// use kernel_primitives::algorithms::select_flagged;
/// use kernel_primitives::Device;
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = Device::auto()?.stream()?;
/// let x = stream.buffer_from(&[3.0f32, 1.0, 4.0])?;
/// let flags = stream.buffer_from(&[true, false, true])?;
/// let (mut kept, mut count) = (stream.buffer_zeroed::<f32>(2)?, stream.buffer_zeroed::<u64>(1)?);
/// select_flagged(&stream, &x, &flags, &mut kept, &mut count)?;
/// assert_eq!((kept.to_vec()?, count.to_vec()?), (vec![3.0, 4.0], vec![2]));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Returns the errors of [`select_if`].
pub fn select_flagged<'a, 'o, 'c, I, J, S, F, Tag>(
    run: impl Into<Run<'a>>,
    x: I,
    flags: J,
    out: impl Into<BufferSliceMut<'o, S::Item>>,
    count: impl Into<BufferSliceMut<'c, u64>>,
) -> Result<()>
where
    I: InputArg<S>,
    J: InputArg<F>,
    S: Source<Item: Element>,
    F: Source<Item: ConvertTo<bool>>,
    S::Short: SelectFlagged<F::Short, Tag>,
{
    let (kernel,) = <S::Short as SelectFlagged<F::Short, Tag>>::kernels();
    select("select_flagged", kernel, run.into(), x, flags, Flagged, out.into(), count.into())
}

#[allow(clippy::too_many_arguments, reason = "those of the algorithms, and which one it is")]
fn select<I, J, S, F, C>(
    algorithm: &str,
    kernel: Entry<select_tiles<S, F, C, false>>,
    run: Run<'_>,
    x: I,
    flags: J,
    choice: C,
    mut out: BufferSliceMut<'_, S::Item>,
    mut count: BufferSliceMut<'_, u64>,
) -> Result<()>
where
    I: InputArg<S>,
    J: InputArg<F>,
    S: Source<Item: Element>,
    F: Source,
    C: Choice<S::Item, F::Item> + KernelParam,
{
    check_output(algorithm, "count", count.len(), 1)?;
    // The shorter of the two counts.
    let len = if x.items() <= flags.items() { run.items(algorithm, &x)? } else { run.items(algorithm, &flags)? };
    let tiles = tiles::<S>(&run, len)?;
    chained::<u64>(run, tiles.len, (tiles.tile, device::STAGE_THREADS), |stream, dims, chain, launch| {
        device::select_tiles::launch_entry(
            kernel,
            stream,
            dims,
            x,
            flags,
            &mut out,
            &mut count,
            chain,
            launch,
            choice,
            tiles.batches,
            true,
        )
    })
}

/// The tiles of `len` items.
fn tiles<S: Source>(run: &Run<'_>, len: usize) -> Result<StagedTiles> {
    let bytes = size_of::<S::Item>();
    Ok(StagedTiles::new::<S>(bytes, len, run.blocks(Parameter::SelectBlocks, bytes)?))
}

algorithm! {
    /// Inputs and predicates that [`partition`] and [`stable_partition`] have kernels for.
    partition
}

/// Moves the items for which `predicate` is true before the other items. `out` begins with the items for which it is true, in the order of
/// the input. The other items follow in reverse order. `count[0]` is the number of the former, which is the place where the others begin.
///
/// `out` may be longer than the input: the rest of it stays as it is. Cost and temporary memory are those of [`select_if`], except that all
/// items are written. [`stable_partition`] keeps the order of the other items, too.
///
/// Ready for numbers with `bind_second` of `LessThan`. For others, write `instantiate!(kernel_primitives::algorithms::partition<MyItem,
/// MyPredicate>);`.
///
/// | [same bits](crate::docs::guarantees#determinism-and-order) on every run | same bits on every device | order |
/// |---|---|---|
/// | yes: `net::properties::select` | yes: `net::properties::select` | the first part of the input, the second in reverse: `net::properties::select` |
///
/// CUB: `DevicePartition::If`. Thrust: `partition_copy`. Differences: [`stable_partition`] keeps the rest in order, too.
///
/// ```
/// use kernel_primitives::algorithms::partition;
/// use kernel_primitives::functor::{LessThan, bind_second};
/// use kernel_primitives::Device;
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = Device::auto()?.stream()?;
/// let x = stream.buffer_from(&[3u32, 1, 4, 1, 5])?;
/// let (mut out, mut count) = (stream.buffer_zeroed::<u32>(5)?, stream.buffer_zeroed::<u64>(1)?);
/// partition(&stream, &x, bind_second(LessThan, 4), &mut out, &mut count)?;
/// assert_eq!((out.to_vec()?, count.to_vec()?), (vec![3, 1, 1, 5, 4], vec![3]));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Returns [`Error::LengthMismatch`](crate::Error::LengthMismatch) if `out` is shorter than the input or `count` is empty, and the
/// errors of a launch and of an allocation.
pub fn partition<'a, 'o, 'c, I, S, P, Tag>(
    run: impl Into<Run<'a>>,
    x: I,
    predicate: P,
    out: impl Into<BufferSliceMut<'o, S::Item>>,
    count: impl Into<BufferSliceMut<'c, u64>>,
) -> Result<()>
where
    I: InputArg<S>,
    S: Source<Item: Element>,
    P: UnaryFn<S::Item, Output = bool> + KernelParam,
    S::Short: Partition<P, Tag>,
{
    let (kernel,) = <S::Short as Partition<P, Tag>>::kernels();
    let (run, mut out, mut count) = (run.into(), out.into(), count.into());
    let len = run.items("partition", &x)?;
    check_output("partition", "count", count.len(), 1)?;
    check_output("partition", "out", out.len(), len)?;
    let tiles = tiles::<S>(&run, len)?;
    chained::<u64>(run, tiles.len, (tiles.tile, device::STAGE_THREADS), |stream, dims, chain, launch| {
        let none = constant((), len);
        device::select_tiles::launch_entry(
            kernel,
            stream,
            dims,
            x,
            none,
            &mut out,
            &mut count,
            chain,
            launch,
            predicate,
            tiles.batches,
            false,
        )
    })
}

/// Moves the items for which `predicate` is true before the other items. Both groups keep the order of the input. `count[0]` is the place
/// where the others begin.
///
/// Otherwise this works as [`partition`], except that two launches of one kernel read each item twice, and call `predicate` three times for
/// it. `count` is cleared first, and so is the chain, as for [`select_if`].
///
/// Ready for the same types. For others, write `instantiate!(kernel_primitives::algorithms::partition<MyItem, MyPredicate>);`.
///
/// | [same bits](crate::docs::guarantees#determinism-and-order) on every run | same bits on every device | order |
/// |---|---|---|
/// | yes: `net::properties::select` | yes: `net::properties::select` | both parts of the input: `net::properties::select` |
///
/// Thrust: `stable_partition_copy`.
///
/// ```
/// use kernel_primitives::algorithms::stable_partition;
/// use kernel_primitives::functor::{LessThan, bind_second};
/// use kernel_primitives::Device;
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = Device::auto()?.stream()?;
/// let x = stream.buffer_from(&[3u32, 1, 4, 1, 5])?;
/// let (mut out, mut count) = (stream.buffer_zeroed::<u32>(5)?, stream.buffer_zeroed::<u64>(1)?);
/// stable_partition(&stream, &x, bind_second(LessThan, 4), &mut out, &mut count)?;
/// assert_eq!((out.to_vec()?, count.to_vec()?), (vec![3, 1, 1, 4, 5], vec![3]));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Returns the errors of [`partition`].
pub fn stable_partition<'a, 'o, 'c, I, S, P, Tag>(
    run: impl Into<Run<'a>>,
    x: I,
    predicate: P,
    out: impl Into<BufferSliceMut<'o, S::Item>>,
    count: impl Into<BufferSliceMut<'c, u64>>,
) -> Result<()>
where
    I: InputArg<S>,
    S: Source<Item: Element>,
    P: UnaryFn<S::Item, Output = bool> + KernelParam,
    S::Short: Partition<P, Tag>,
{
    let (kernel,) = <S::Short as Partition<P, Tag>>::kernels();
    let (run, out, count) = (run.into(), out.into(), count.into());
    let len = run.items("stable_partition", &x)?;
    check_output("stable_partition", "count", count.len(), 1)?;
    check_output("stable_partition", "out", out.len(), len)?;
    let (mut count, (mut empty, mut out)) = (count.into_slice(..1)?, out.split_at(0)?);
    let none = || constant((), len);
    let tiles = tiles::<S>(&run, len)?;
    chained::<u64>(run, tiles.len, (tiles.tile, device::STAGE_THREADS), |stream, dims, chain, launch| {
        count.set_zero(stream)?;
        let (nowhere, batches) = (&mut empty, tiles.batches);
        device::select_tiles::launch_entry(
            kernel,
            stream,
            dims,
            Again(&x),
            none(),
            nowhere,
            &mut count,
            &mut *chain,
            launch,
            predicate,
            batches,
            true,
        )?;
        device::select_tiles::launch_entry(
            kernel,
            stream,
            dims,
            x,
            none(),
            &mut out,
            &mut count,
            chain,
            launch,
            predicate,
            batches,
            true,
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Device;
    use crate::functor::{BindSecond, NotEqual, bind_second};
    use crate::input::Span;

    /// On the 528 blocks of an H200, about a thousand tiles fill each turn. There are as many turns as with the largest tiles.
    #[test]
    fn tiles_fill_all_blocks_as_few_times_as_they_can() {
        let blocks = 528;
        let largest = StagedTiles::new::<Span<u32>>(4, usize::MAX / 16, blocks);
        for len in [1 << 16, 1 << 20, 5_000_000, 1 << 23, 1 << 24, 20_000_000, 1 << 25, 1 << 28] {
            let tiles = StagedTiles::new::<Span<u32>>(4, len, blocks);
            let times = |tile: usize| tiles.len.div_ceil(tile).div_ceil(blocks);
            assert!(tiles.tile <= largest.tile, "{len}");
            assert_eq!(times(tiles.tile), times(largest.tile), "{len}");
            let smaller = tiles.tile - tiles.tile / tiles.batches as usize;
            assert!(smaller == 0 || times(smaller) > times(tiles.tile), "{len}: smaller tiles take no longer");
        }
        assert_eq!(StagedTiles::new::<Span<u32>>(4, 1 << 24, blocks).batches, 7, "3 turns of 9 would be 2.3");
    }

    /// A tile has no more batches than its block has memory for, whatever the launch says.
    #[test]
    fn more_batches_than_a_block_has_memory_for_are_not_read() -> Result<()> {
        let stream = Device::auto()?.stream()?;
        let items: Vec<u32> = (0..100_000).map(|i| i % 7).collect();
        let expected: Vec<u32> = items.iter().copied().filter(|&item| item != 3).collect();
        let x = stream.buffer_from(&items)?;
        for batches in [1000, u32::MAX] {
            let mut out = stream.buffer_from(&vec![9u32; items.len()])?;
            let (mut count, mut chain) = (stream.buffer_zeroed::<u64>(1)?, stream.buffer_zeroed::<u64>(0)?);
            device::select_tiles::<Span<u32>, Constant<()>, BindSecond<NotEqual, u32>, false>::launch(
                &stream,
                (1, device::STAGE_THREADS as u32),
                &x,
                constant((), usize::MAX),
                &mut out,
                &mut count,
                &mut chain,
                1,
                bind_second(NotEqual, 3),
                batches,
                true,
            )?;
            let found = out.to_vec()?;
            let written = found.iter().position(|&item| item == 9).expect("one tile of several");
            assert!(written > 1000 && found[..written] == expected[..written], "{written} items");
            assert!(found[written..].iter().all(|&item| item == 9));
        }
        Ok(())
    }
}
