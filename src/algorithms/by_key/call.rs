//! Reductions and scans of runs of equal keys.
//!
//! Each algorithm is one launch. A tile learns from the tiles before it how many runs they have, and the result so far of the last run:
//! [`tile::runs`](crate::algorithms::tile::runs).

use crate::__algorithms::*;
use crate::__private::Entry;
use crate::algorithms::chained::chained;
use crate::algorithms::kernels::algorithm;
use crate::algorithms::run::{Run, check_output, check_values};
use crate::algorithms::tuning::Parameter;
use crate::element::{ConvertTo, Segmented};
use crate::functor::Reducer;
use crate::input::Source;
use crate::kernels::device;
use crate::{BufferSliceMut, Element, InputArg, KernelParam, Result};

algorithm! {
    /// Keys, values and operators that [`reduce_by_key`] has kernels for.
    reduce_by_key
}

/// Combines the values of each run of equal keys with `op`. `out_keys` receives the key of each run, `out_values` the combined values of
/// each run, both in the order of the runs, and `count[0]` the number of runs.
///
/// Keys are compared with `==`: −0 equals +0, and NaN equals nothing, so each NaN is a run of its own. A run keeps its first key. `op` is
/// any [`Reducer`], commutative or not; it combines the values of a run in order. The outputs need not be as long as the input, only long
/// enough for the runs; what is after the runs stays as it is.
///
/// **Determinism.** As for [`inclusive_scan`](crate::algorithms::inclusive_scan): the results have the same bits on every run and every
/// device.
///
/// Cost: one kernel reads the keys and values once, writes the results once, and chains the tiles of its blocks ([`grid`](crate::grid)).
/// The chain is cleared first, unless a [`Workspace`](crate::algorithms::Workspace) has room for it, or there is a single tile, which needs
/// no chain. Temporary memory: for each tile 16 bytes, and another 8 bytes for each 4 bytes of a value. A tile has some 30 KB of values, or
/// of keys if these are larger than values; it is smaller if there are few items.
///
/// Ready for keys of `i32`, `i64`, `u32` and `u64` and numbers with `Add`; with `Min` and `Max` for keys of `i32` and `u32`. For others,
/// write `instantiate!(kernel_primitives::algorithms::reduce_by_key<MyKey, f32, Max>);`.
///
/// | [same bits](crate::docs::guarantees#determinism-and-order) on every run | same bits on every device | order |
/// |---|---|---|
/// | yes: `net::bits` | yes: `net::bits` | of each run: `algorithms::segments::by_key::an_operator_that_does_not_commute_keeps_the_order_sanitize` |
///
/// CUB: `DeviceReduce::ReduceByKey`. Thrust: `reduce_by_key`.
///
/// ```
/// use kernel_primitives::algorithms::reduce_by_key;
/// use kernel_primitives::functor::Add;
/// use kernel_primitives::Device;
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = Device::auto()?.stream()?;
/// let keys = stream.buffer_from(&[7u32, 7, 3, 3, 3])?;
/// let values = stream.buffer_from(&[1.0f32, 2.0, 3.0, 4.0, 5.0])?;
/// let (mut out_keys, mut sums) = (stream.buffer_zeroed::<u32>(2)?, stream.buffer_zeroed::<f32>(2)?);
/// let mut count = stream.buffer_zeroed::<u64>(1)?;
/// reduce_by_key(&stream, &keys, &values, Add, &mut out_keys, &mut sums, &mut count)?;
/// assert_eq!((out_keys.to_vec()?, sums.to_vec()?), (vec![7, 3], vec![3.0, 12.0]));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Returns [`Error::LengthMismatch`](crate::Error::LengthMismatch) if `keys` and `values` have different lengths or if `count` is empty,
/// and the errors of a launch and of an allocation. If an output is too short for the runs, the launch faults.
#[allow(clippy::too_many_arguments, reason = "two inputs, three outputs")]
pub fn reduce_by_key<'a, 'o, 'p, 'c, I, J, K, V, R, Tag>(
    run: impl Into<Run<'a>>,
    keys: I,
    values: J,
    op: R,
    out_keys: impl Into<BufferSliceMut<'o, K::Item>>,
    out_values: impl Into<BufferSliceMut<'p, V::Item>>,
    count: impl Into<BufferSliceMut<'c, u64>>,
) -> Result<()>
where
    I: InputArg<K>,
    J: InputArg<V>,
    K: Source<Item: Element + PartialEq>,
    V: Source<Item: Element>,
    R: Reducer<V::Item> + KernelParam,
    K::Short: ReduceByKey<V::Short, R, Tag>,
{
    let (kernel,) = <K::Short as ReduceByKey<V::Short, R, Tag>>::kernels();
    let (run, mut out_keys, mut out_values, mut count) = (run.into(), out_keys.into(), out_values.into(), count.into());
    let len = run.items("reduce_by_key", &keys)?;
    check_values("reduce_by_key", len, values.items())?;
    check_output("reduce_by_key", "count", count.len(), 1)?;
    let at_a_time = run.tuning(Parameter::ReduceByKeyTiles, size_of::<K::Item>())?;
    let tiles = device::ReduceByKeyStorage::<K, V>::tiles(len, at_a_time);
    let is_crowded = len.div_ceil(tiles.tile) <= at_a_time;
    let tile = (tiles.tile, device::STAGE_THREADS);
    chained::<Segmented<V::Item>>(run, len, tile, |stream, dims, chain, launch| {
        device::reduce_by_key_tiles::launch_entry(
            kernel,
            stream,
            dims,
            keys,
            values,
            &mut out_keys,
            &mut out_values,
            &mut count,
            chain,
            launch,
            tiles.vectors,
            is_crowded.into(),
            op,
        )
    })
}

algorithm! {
    /// Items and lengths that [`run_length_encode`] has kernels for.
    run_length_encode
}

/// Counts the items of each run of equal items. `items` receives the first item of each run, `lengths` the number of items of each run,
/// both in the order of the runs, and `count[0]` the number of runs.
///
/// `lengths` are numbers of any type; an integer type that is too small wraps. Otherwise this works as [`reduce_by_key`] with a value of 1
/// for each item. Temporary memory: 32 bytes for each tile. A tile has some 50 KB of items; it is smaller if there are few items. If items
/// are not read in vectors, such as strided ones or those of 3 bytes, it has 6528 items at most.
///
/// Ready for numbers with lengths of `u32`. For others, write
/// `instantiate!(kernel_primitives::algorithms::run_length_encode<MyItem, u64>);`.
///
/// | [same bits](crate::docs::guarantees#determinism-and-order) on every run | same bits on every device | order |
/// |---|---|---|
/// | yes: `net::properties::by_key` | yes: `net::properties::by_key` | of the runs: `net::properties::by_key` |
///
/// CUB: `DeviceRunLengthEncode::Encode`.
///
/// ```
/// use kernel_primitives::algorithms::run_length_encode;
/// use kernel_primitives::Device;
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = Device::auto()?.stream()?;
/// let x = stream.buffer_from(&[7u32, 7, 3, 3, 3, 7])?;
/// let (mut items, mut lengths) = (stream.buffer_zeroed::<u32>(3)?, stream.buffer_zeroed::<u32>(3)?);
/// let mut count = stream.buffer_zeroed::<u64>(1)?;
/// run_length_encode(&stream, &x, &mut items, &mut lengths, &mut count)?;
/// assert_eq!((items.to_vec()?, lengths.to_vec()?), (vec![7, 3, 7], vec![2, 3, 1]));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Returns the errors of [`reduce_by_key`].
pub fn run_length_encode<'a, 'o, 'p, 'c, I, S, L, Tag>(
    run: impl Into<Run<'a>>,
    x: I,
    items: impl Into<BufferSliceMut<'o, S::Item>>,
    lengths: impl Into<BufferSliceMut<'p, L>>,
    count: impl Into<BufferSliceMut<'c, u64>>,
) -> Result<()>
where
    I: InputArg<S>,
    S: Source<Item: Element + PartialEq>,
    L: Element,
    u64: ConvertTo<L>,
    S::Short: RunLengthEncode<L, Tag>,
{
    let (kernel,) = <S::Short as RunLengthEncode<L, Tag>>::kernels();
    let (run, mut items, mut lengths, mut count) = (run.into(), items.into(), lengths.into(), count.into());
    let len = run.items("run_length_encode", &x)?;
    check_output("run_length_encode", "count", count.len(), 1)?;
    let enough = run.tuning(Parameter::RunTiles, size_of::<S::Item>())?;
    let tiles = device::RunLengthItems::<S>::tiles(len, enough);
    let tile = (tiles.tile, device::STAGE_THREADS);
    chained::<Segmented<u64>>(run, len, tile, |stream, dims, chain, launch| {
        device::run_length_tiles::launch_entry(
            kernel,
            stream,
            dims,
            x,
            &mut items,
            &mut lengths,
            &mut count,
            chain,
            launch,
            tiles.vectors,
        )
    })
}

algorithm! {
    /// Keys, values and operators that [`inclusive_scan_by_key`] has kernels for.
    inclusive_scan_by_key
}

/// Combines, for each item, the values of its run of equal keys up to and including its own. This is a scan that starts again with each
/// run.
///
/// Keys are compared with `==`, as in [`reduce_by_key`]. `op` is any [`Reducer`], commutative or not. `out` may be longer than the input:
/// the rest of it stays as it is. **Determinism** is that of [`inclusive_scan`](crate::algorithms::inclusive_scan).
///
/// Cost: one read of keys and values and one write. Launches and temporary memory are those of [`reduce_by_key`].
///
/// Ready for keys of `i32`, `i64`, `u32` and `u64` and numbers with `Add`. For others, write
/// `instantiate!(kernel_primitives::algorithms::inclusive_scan_by_key<MyKey, f32, Max>);`.
///
/// | [same bits](crate::docs::guarantees#determinism-and-order) on every run | same bits on every device | order |
/// |---|---|---|
/// | yes: `net::bits` | yes: `net::bits` | of each run: `algorithms::segments::by_key::an_operator_that_does_not_commute_keeps_the_order_sanitize` |
///
/// CUB: `DeviceScan::InclusiveScanByKey`. Thrust: `inclusive_scan_by_key`.
///
/// ```
/// use kernel_primitives::algorithms::inclusive_scan_by_key;
/// use kernel_primitives::functor::Add;
/// use kernel_primitives::Device;
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = Device::auto()?.stream()?;
/// let keys = stream.buffer_from(&[7u32, 7, 3, 3, 3])?;
/// let values = stream.buffer_from(&[1.0f32, 2.0, 3.0, 4.0, 5.0])?;
/// let mut sums = stream.buffer_zeroed::<f32>(5)?;
/// inclusive_scan_by_key(&stream, &keys, &values, Add, &mut sums)?;
/// assert_eq!(sums.to_vec()?, [1.0, 3.0, 3.0, 7.0, 12.0]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Returns [`Error::LengthMismatch`](crate::Error::LengthMismatch) if `keys` and `values` have different lengths or if `out` is shorter
/// than these, and the errors of a launch and of an allocation.
pub fn inclusive_scan_by_key<'a, 'o, I, J, K, V, R, Tag>(
    run: impl Into<Run<'a>>,
    keys: I,
    values: J,
    op: R,
    out: impl Into<BufferSliceMut<'o, V::Item>>,
) -> Result<()>
where
    I: InputArg<K>,
    J: InputArg<V>,
    K: Source<Item: Element + PartialEq>,
    V: Source<Item: Element>,
    R: Reducer<V::Item> + KernelParam,
    K::Short: InclusiveScanByKey<V::Short, R, Tag>,
{
    let (kernel,) = <K::Short as InclusiveScanByKey<V::Short, R, Tag>>::kernels();
    let first = op.identity();
    scan_by_key("inclusive_scan_by_key", kernel, run.into(), keys, values, (first, false), op, out.into())
}

algorithm! {
    /// Keys, values and operators that [`exclusive_scan_by_key`] has kernels for.
    exclusive_scan_by_key
}

/// Combines, for each item, `first` and the values that come before it in its run of equal keys. The first item of each run gets `first`.
/// `op` is also called with the last value of a run, though no result has it.
///
/// Otherwise this works as [`inclusive_scan_by_key`].
///
/// Ready for the same types. For others, write `instantiate!(kernel_primitives::algorithms::exclusive_scan_by_key<MyKey, f32, Max>);`.
///
/// | [same bits](crate::docs::guarantees#determinism-and-order) on every run | same bits on every device | order |
/// |---|---|---|
/// | yes: `net::bits` | yes: `net::bits` | of each run: `algorithms::segments::by_key::an_operator_that_does_not_commute_keeps_the_order_sanitize` |
///
/// CUB: `DeviceScan::ExclusiveScanByKey`. Thrust: `exclusive_scan_by_key`.
///
/// ```
/// use kernel_primitives::algorithms::exclusive_scan_by_key;
/// use kernel_primitives::functor::Add;
/// use kernel_primitives::input::constant;
/// use kernel_primitives::Device;
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = Device::auto()?.stream()?;
/// let keys = stream.buffer_from(&[7u32, 7, 3, 3, 3])?;
/// let values = stream.buffer_from(&[1u32, 2, 3, 4, 5])?;
/// let mut sums = stream.buffer_zeroed::<u32>(5)?;
/// exclusive_scan_by_key(&stream, &keys, &values, 100, Add, &mut sums)?;
/// assert_eq!(sums.to_vec()?, [100, 101, 100, 103, 107]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Returns the errors of [`inclusive_scan_by_key`].
pub fn exclusive_scan_by_key<'a, 'o, I, J, K, V, R, Tag>(
    run: impl Into<Run<'a>>,
    keys: I,
    values: J,
    first: V::Item,
    op: R,
    out: impl Into<BufferSliceMut<'o, V::Item>>,
) -> Result<()>
where
    I: InputArg<K>,
    J: InputArg<V>,
    K: Source<Item: Element + PartialEq>,
    V: Source<Item: Element>,
    R: Reducer<V::Item> + KernelParam,
    K::Short: ExclusiveScanByKey<V::Short, R, Tag>,
{
    let (kernel,) = <K::Short as ExclusiveScanByKey<V::Short, R, Tag>>::kernels();
    scan_by_key("exclusive_scan_by_key", kernel, run.into(), keys, values, (first, true), op, out.into())
}

#[allow(clippy::too_many_arguments, reason = "those of the algorithms, and which one it is")]
fn scan_by_key<I, J, K, V, R>(
    algorithm: &str,
    kernel: Entry<scan_by_key_tiles<K, V, R>>,
    run: Run<'_>,
    keys: I,
    values: J,
    (first, exclusive): (V::Item, bool),
    op: R,
    mut out: BufferSliceMut<'_, V::Item>,
) -> Result<()>
where
    I: InputArg<K>,
    J: InputArg<V>,
    K: Source<Item: Element + PartialEq>,
    V: Source<Item: Element>,
    R: Reducer<V::Item> + KernelParam,
{
    let len = run.items(algorithm, &keys)?;
    check_values(algorithm, len, values.items())?;
    check_output(algorithm, "out", out.len(), len)?;
    let enough = run.tuning(Parameter::RunTiles, size_of::<K::Item>())?;
    let tiles = device::ScanByKeyItems::<K, V>::tiles(len, enough);
    let tile = (tiles.tile, device::SCAN_THREADS);
    chained::<Segmented<V::Item>>(run, len, tile, |stream, dims, chain, launch| {
        device::scan_by_key_tiles::launch_entry(
            kernel,
            stream,
            dims,
            keys,
            values,
            first,
            &mut out,
            chain,
            launch,
            tiles.vectors,
            exclusive,
            op,
        )
    })
}
