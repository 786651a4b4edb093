//! Unique items.

use super::chained::chained;
use super::run::{Run, check_output};
use super::tuning::Parameter;
use crate::__private::Instantiated;
use crate::input::{Constant, Source, constant};
use crate::kernels::device::{self, StagedTiles};
use crate::{BufferSliceMut, Element, Error, InputArg, Result};

/// Keeps the first of each run of equal items: `out` begins with them, in order, and `count[0]` says how many they are.
///
/// Equal is what `==` says: −0 and +0 are, and NaN equals nothing, so that each is a run of its own. `out` need not be as long
/// as the input, only long enough: what is behind the items kept stays as it is. Of a sorted input this keeps each item once.
///
/// Cost: as [`select_if`](super::select_if).
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
/// `count` is empty, and those of a launch. An `out` that is too short for what is kept is a fault of the launch.
pub fn unique<'a, 'o, 'c, I, S, Tag>(
    run: impl Into<Run<'a>>,
    x: I,
    out: impl Into<BufferSliceMut<'o, S::Item>>,
    count: impl Into<BufferSliceMut<'c, u64>>,
) -> Result<()>
where
    I: InputArg<S>,
    S: Source<Item: Element + PartialEq>,
    device::unique_tiles<S, Constant<u8>, false>: Instantiated<Tag>,
{
    let (run, mut out) = (run.into(), out.into());
    let (nothing, mut none) = (constant(0u8, x.items()), run.stream.buffer_uninit::<u8>(0)?);
    unique_of::<I, _, S, Constant<u8>, Tag, false>(run, x, nothing, &mut out, &mut none.as_mut_slice(), count.into())
}

/// Keeps the first key of each run of equal ones, and the value that stands beside it: `out_keys` and `out_values` begin with
/// them, in order, and `count[0]` says how many they are.
///
/// As [`unique`], which says what is equal. CUB: `DeviceSelect::UniqueByKey`. Thrust: `unique_by_key_copy`.
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
/// There are more or fewer values than keys, `count` is empty, and those of a launch. Outputs that are too short for what is
/// kept are a fault of the launch.
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
    device::unique_tiles<K, V, true>: Instantiated<Tag>,
{
    check_values("unique_by_key", keys.items(), values.items())?;
    let (mut out_keys, mut out_values) = (out_keys.into(), out_values.into());
    unique_of::<I, J, K, V, Tag, true>(run.into(), keys, values, &mut out_keys, &mut out_values, count.into())
}

fn unique_of<I, J, K, V, Tag, const VALUES: bool>(
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
    device::unique_tiles<K, V, VALUES>: Instantiated<Tag>,
{
    check_output("unique", count.len(), 1)?;
    let blocks = run.blocks(Parameter::UniqueBlocks, size_of::<K::Item>())?;
    let tiles = StagedTiles::new::<K>(device::unique_bytes::<K, V, VALUES>(), keys.items(), blocks);
    chained::<u64>(run, tiles.len, (tiles.tile, device::STAGE_THREADS), |stream, dims, chain, launch| {
        type Kernel<K, V, const VALUES: bool> = device::unique_tiles<K, V, VALUES>;
        Kernel::<K, V, VALUES>::launch(
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

/// An error unless each key has its value.
pub(super) fn check_values(algorithm: &str, keys: usize, values: usize) -> Result<()> {
    if keys == values {
        return Ok(());
    }
    Err(Error::LengthMismatch {
        kernel: algorithm.into(),
        first: "`keys`".into(),
        first_len: keys,
        second: "`values`".into(),
        second_len: values,
    })
}
