//! Unique items.
//!
//! One launch: a tile learns from the tiles before it how many items they keep ([`tile::staged`](crate::algorithms::tile::staged)).

use crate::__algorithms::*;
use crate::__private::Entry;
use crate::algorithms::chained::chained;
use crate::algorithms::kernels::algorithm;
use crate::algorithms::run::{Run, check_output, check_values};
use crate::algorithms::tuning::Parameter;
use crate::input::{Constant, Source, constant};
use crate::kernels::device::{self, StagedTiles};
use crate::{BufferSliceMut, Element, InputArg, Result};

algorithm! {
    /// Inputs that [`unique`] has kernels for.
    unique
}

/// Keeps the first item of each run of equal items. `out` receives these items, in the order of the input, and `count[0]` their number.
///
/// Items are compared with `==`: −0 equals +0, and NaN equals nothing, so each NaN is a run of its own. `out` need not be as long as the
/// input, only long enough for the items kept; what is after these stays as it is. If the input is sorted, each distinct item is kept once.
///
/// Cost: that of [`select_if`](crate::algorithms::select_if).
///
/// Ready for numbers. For others, write `instantiate!(kernel_primitives::algorithms::unique<MyItem>);`.
///
/// | [same bits](crate::docs::guarantees#determinism-and-order) on every run | same bits on every device | order |
/// |---|---|---|
/// | yes: `net::properties::unique` | yes: `net::properties::unique` | of the runs: `net::properties::unique` |
///
/// CUB: `DeviceSelect::Unique`. Thrust: `unique_copy`.
///
/// ```
/// use kernel_primitives::algorithms::unique;
/// use kernel_primitives::Device;
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = Device::auto()?.stream()?;
/// let x = stream.buffer_from(&[7u32, 7, 3, 3, 3, 7])?;
/// let (mut out, mut count) = (stream.buffer_zeroed::<u32>(6)?, stream.buffer_zeroed::<u64>(1)?);
/// unique(&stream, &x, &mut out, &mut count)?;
/// assert_eq!(count.to_vec()?, [3]);
/// assert_eq!(out.to_vec()?[..3], [7, 3, 7]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Returns [`Error::LengthMismatch`](crate::Error::LengthMismatch) if `count` is empty, and the errors of a launch and of an allocation. If
/// `out` is too short for the items kept, the launch faults.
pub fn unique<'a, 'o, 'c, I, S, Tag>(
    run: impl Into<Run<'a>>,
    x: I,
    out: impl Into<BufferSliceMut<'o, S::Item>>,
    count: impl Into<BufferSliceMut<'c, u64>>,
) -> Result<()>
where
    I: InputArg<S>,
    S: Source<Item: Element + PartialEq>,
    S::Short: Unique<Tag>,
{
    let (kernel,) = <S::Short as Unique<Tag>>::kernels();
    let (run, mut out) = (run.into(), out.into());
    let (nothing, mut none) = (constant(0u8, x.items()), run.stream.buffer_uninit::<u8>(0)?);
    unique_of("unique", kernel, run, x, nothing, &mut out, &mut none.as_mut_slice(), count.into())
}

algorithm! {
    /// Keys and values that [`unique_by_key`] has kernels for.
    unique_by_key
}

/// Keeps the first key of each run of equal keys, and its value. `out_keys` and `out_values` receive these, in the order of the input, and
/// `count[0]` their number.
///
/// Otherwise this works as [`unique`].
///
/// Ready for keys of `i32`, `i64`, `u32` and `u64` with values of any numbers. For others, write
/// `instantiate!(kernel_primitives::algorithms::unique_by_key<MyKey, MyValue>);`.
///
/// | [same bits](crate::docs::guarantees#determinism-and-order) on every run | same bits on every device | order |
/// |---|---|---|
/// | yes: `net::properties::unique` | yes: `net::properties::unique` | of the runs: `net::properties::unique` |
///
/// CUB: `DeviceSelect::UniqueByKey`. Thrust: `unique_by_key_copy`.
///
/// ```
/// use kernel_primitives::algorithms::unique_by_key;
/// use kernel_primitives::Device;
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = Device::auto()?.stream()?;
/// let keys = stream.buffer_from(&[7u32, 7, 3, 3])?;
/// let values = stream.buffer_from(&[0.5f32, 1.5, 2.5, 3.5])?;
/// let (mut out_keys, mut out_values) = (stream.buffer_zeroed::<u32>(2)?, stream.buffer_zeroed::<f32>(2)?);
/// let mut count = stream.buffer_zeroed::<u64>(1)?;
/// unique_by_key(&stream, &keys, &values, &mut out_keys, &mut out_values, &mut count)?;
/// assert_eq!((out_keys.to_vec()?, out_values.to_vec()?), (vec![7, 3], vec![0.5, 2.5]));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Returns [`Error::LengthMismatch`](crate::Error::LengthMismatch) if `keys` and `values` have different lengths, and the errors of
/// [`unique`]. If an output is too short for the keys kept, the launch faults.
pub fn unique_by_key<'a, 'o, 'p, 'c, I, J, K, V, Tag>(
    run: impl Into<Run<'a>>,
    keys: I,
    values: J,
    out_keys: impl Into<BufferSliceMut<'o, K::Item>>,
    out_values: impl Into<BufferSliceMut<'p, V::Item>>,
    count: impl Into<BufferSliceMut<'c, u64>>,
) -> Result<()>
where
    I: InputArg<K>,
    J: InputArg<V>,
    K: Source<Item: Element + PartialEq>,
    V: Source<Item: Element>,
    K::Short: UniqueByKey<V::Short, Tag>,
{
    let (kernel,) = <K::Short as UniqueByKey<V::Short, Tag>>::kernels();
    check_values("unique_by_key", keys.items(), values.items())?;
    let (mut out_keys, mut out_values) = (out_keys.into(), out_values.into());
    unique_of("unique_by_key", kernel, run.into(), keys, values, &mut out_keys, &mut out_values, count.into())
}

#[allow(clippy::too_many_arguments, reason = "two inputs, three outputs")]
fn unique_of<I, J, K, V, const VALUES: bool>(
    algorithm: &str,
    kernel: Entry<unique_tiles<K, V, VALUES>>,
    run: Run<'_>,
    keys: I,
    values: J,
    out_keys: &mut BufferSliceMut<'_, K::Item>,
    out_values: &mut BufferSliceMut<'_, V::Item>,
    mut count: BufferSliceMut<'_, u64>,
) -> Result<()>
where
    I: InputArg<K>,
    J: InputArg<V>,
    K: Source<Item: Element + PartialEq>,
    V: Source<Item: Element>,
{
    let len = run.items(algorithm, &keys)?;
    check_output(algorithm, "count", count.len(), 1)?;
    let blocks = run.blocks(Parameter::UniqueBlocks, size_of::<K::Item>())?;
    let tiles = StagedTiles::new::<K>(device::unique_bytes::<K, V, VALUES>(), len, blocks);
    chained::<u64>(run, tiles.len, (tiles.tile, device::STAGE_THREADS), |stream, dims, chain, launch| {
        device::unique_tiles::launch_entry(
            kernel,
            stream,
            dims,
            keys,
            values,
            out_keys,
            out_values,
            &mut count,
            chain,
            launch,
            tiles.batches,
        )
    })
}

#[cfg(test)]
mod tests;
