//! Selections.

use super::chained::chained;
use super::run::{Run, check_output};
use super::tuning::Parameter;
use crate::__private::{Again, Instantiated};
use crate::functor::{Choice, Flagged, UnaryFn};
use crate::input::{Constant, Source, constant};
use crate::kernels::device::{self, StagedTiles};
use crate::{BufferSliceMut, ConvertTo, Element, InputArg, KernelParam, Result};

/// Keeps the items of which `predicate` is true: `out` begins with them, in the order of the input, and `count[0]` says how many
/// they are.
///
/// `predicate` is any [`UnaryFn`] of an item to `bool`, such as `bind_second(LessThan, 10)`. `out` need not be as long as the
/// input, only long enough: what is behind the items kept stays as it is.
///
/// Cost: one read of the input and one write of what is kept, by one kernel that chains its blocks' tiles
/// ([`grid`](crate::grid)), after the chain was cleared, which a [`Workspace`](super::Workspace) saves for few tiles; a
/// single tile has none. Temporary memory: 16 bytes a tile of 54 KiB.
///
/// CUB: `DeviceSelect::If`. Thrust: `copy_if`, `remove_if` with the predicate negated.
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
/// `count` is empty, and those of a launch. An `out` that is too short for what is kept is a fault of the launch.
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
    device::select_tiles<S, Constant<()>, P, false>: Instantiated<Tag>,
{
    let none = constant((), x.items());
    select::<I, _, S, Constant<()>, P, Tag>(run.into(), x, none, predicate, out.into(), count.into())
}

/// Keeps the items whose flags are true; of numbers, not 0. As many as there are both items and flags are looked at.
///
/// As [`select_if`]. CUB: `DeviceSelect::Flagged`. Thrust: `copy_if` with a stencil.
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
/// As [`select_if`].
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
    device::select_tiles<S, F, Flagged, false>: Instantiated<Tag>,
{
    select::<I, J, S, F, Flagged, Tag>(run.into(), x, flags, Flagged, out.into(), count.into())
}

fn select<I, J, S, F, C, Tag>(
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
    device::select_tiles<S, F, C, false>: Instantiated<Tag>,
{
    check_output("select", count.len(), 1)?;
    let tiles = tiles::<S>(&run, x.items().min(flags.items()))?;
    chained::<u64>(run, tiles.len, (tiles.tile, device::STAGE_THREADS), |stream, dims, chain, launch| {
        type Kernel<S, F, C> = device::select_tiles<S, F, C, false>;
        Kernel::<S, F, C>::launch(
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

/// The tiles of so many items.
fn tiles<S: Source>(run: &Run<'_>, len: usize) -> Result<StagedTiles> {
    let bytes = size_of::<S::Item>();
    Ok(StagedTiles::new::<S>(bytes, len, run.blocks(Parameter::SelectBlocks, bytes)?))
}

/// Puts the items of which `predicate` is true before the others: `out` begins with them, in the order of the input, the others
/// follow, the input's last one first, and `count[0]` says where those begin.
///
/// `out` may be longer than the input: the rest of it stays as it is. Cost and temporary memory: as [`select_if`], but that all items are
/// written. [`stable_partition`] has the others in the order of the input.
///
/// CUB: `DevicePartition::If`. Thrust: `partition_copy`.
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
/// `out` is shorter than the input, `count` is empty, and those of a launch.
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
    device::select_tiles<S, Constant<()>, P, true>: Instantiated<Tag>,
{
    let (mut out, mut count, len) = (out.into(), count.into(), x.items());
    check_output("partition", count.len(), 1)?;
    check_output("partition", out.len(), len)?;
    let run = run.into();
    let tiles = tiles::<S>(&run, len)?;
    chained::<u64>(run, tiles.len, (tiles.tile, device::STAGE_THREADS), |stream, dims, chain, launch| {
        type Kernel<S, P> = device::select_tiles<S, Constant<()>, P, true>;
        let none = constant((), len);
        Kernel::<S, P>::launch(
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

/// Puts the items of which `predicate` is true before the others, both in the order of the input; `count[0]` says where the others begin.
///
/// As [`partition`], but that each item is read, and `predicate` asked, twice: by two launches of one kernel, after `count`
/// was cleared, and the chain as for [`select_if`].
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
/// As [`partition`].
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
    device::select_tiles<S, Constant<()>, P, true>: Instantiated<Tag>,
{
    type Kernel<S, P> = device::select_tiles<S, Constant<()>, P, true>;
    let (out, mut count, len) = (out.into(), count.into().into_slice(..)?, x.items());
    check_output("stable_partition", count.len(), 1)?;
    check_output("stable_partition", out.len(), len)?;
    let (mut empty, mut out) = out.split_at(0)?;
    let none = || constant((), len);
    let run = run.into();
    let tiles = tiles::<S>(&run, len)?;
    chained::<u64>(run, tiles.len, (tiles.tile, device::STAGE_THREADS), |stream, dims, chain, launch| {
        count.set_zero(stream)?;
        let (nowhere, batches) = (&mut empty, tiles.batches);
        Kernel::<S, P>::launch(
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
        Kernel::<S, P>::launch(stream, dims, x, none(), &mut out, &mut count, chain, launch, predicate, batches, true)
    })
}
