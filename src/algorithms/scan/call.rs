//! Scans.
//!
//! One launch: each tile passes the sum so far to the next one ([`grid::Chain`](crate::grid::Chain)). A pipeline of warps, each with its
//! own task, scans long inputs in memory. Other inputs are scanned tile by tile.

use crate::__algorithms::*;
use crate::__private::Entry;
use crate::algorithms::chained::chained;
use crate::algorithms::kernels::algorithm;
use crate::algorithms::run::{Run, check_output};
use crate::algorithms::tuning::Parameter;
use crate::functor::Reducer;
use crate::input::Source;
use crate::kernels::device::{self, ScanTiles};
use crate::{BufferSlice, BufferSliceMut, Dims, Element, InputArg, KernelParam, Result};

algorithm! {
    /// Inputs and operators that [`inclusive_scan`] has kernels for.
    inclusive_scan
}

/// Combines, for each item, all items up to and including it: `out[i] = x[0] op … op x[i]`.
///
/// `op` is any [`Reducer`]. Items are combined in order, so `op` need not be commutative. `out` may be longer than the input: the rest of
/// it stays as it is.
///
/// **Determinism.** The order of combination depends on the number and the type of the items, on the alignment of the input to 16 bytes,
/// and on [tuning](crate::algorithms::Tuning) values that are the same for all devices in the library's table. So the bits are the same on
/// every run and every device, even for sums of floating-point numbers.
///
/// Cost: one kernel reads the input once, writes the results once, and chains the tiles of its blocks ([`grid`](crate::grid)). The chain is
/// cleared first, unless a [`Workspace`](crate::algorithms::Workspace) has room for it, or there is a single tile, which needs no chain.
/// Temporary memory: for each tile 8 bytes for each 4 bytes of an item. Long inputs in memory, with items of 1, 2, 4, 8 or 16 bytes, take a
/// [pipeline](struct@device::scan_pipeline) that runs at the speed of a copy.
///
/// Ready for numbers with `Add`, `Min` and `Max`. For others, write `instantiate!(kernel_primitives::algorithms::inclusive_scan<MyItem,
/// MyReducer>);`.
///
/// | [same bits](crate::docs::guarantees#determinism-and-order) on every run | same bits on every device | order |
/// |---|---|---|
/// | yes: `net::bits` | yes: `algorithms::scan::scans_of_floats_have_the_same_bits_on_every_device_and_run` | of the input; the operator need not commute: `algorithms::scan::an_operator_that_does_not_commute_keeps_the_order_sanitize` |
///
/// CUB: `DeviceScan::InclusiveScan`, `InclusiveSum`. Thrust: `inclusive_scan`, `transform_inclusive_scan`.
///
/// ```
/// use kernel_primitives::algorithms::inclusive_scan;
/// use kernel_primitives::functor::Max;
/// use kernel_primitives::Device;
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = Device::auto()?.stream()?;
/// let mut largest = stream.buffer_zeroed::<i32>(5)?;
/// inclusive_scan(&stream, &stream.buffer_from(&[3, 1, 4, 1, 5])?, Max, &mut largest)?;
/// assert_eq!(largest.to_vec()?, [3, 3, 4, 4, 5]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Returns [`Error::LengthMismatch`](crate::Error::LengthMismatch) if `out` is shorter than the input, and the errors of a launch and
/// of an allocation.
pub fn inclusive_scan<'a, 'o, I, S, R, Tag>(
    run: impl Into<Run<'a>>,
    x: I,
    op: R,
    out: impl Into<BufferSliceMut<'o, S::Item>>,
) -> Result<()>
where
    I: InputArg<S>,
    S: Source<Item: Element>,
    R: Reducer<S::Item> + KernelParam,
    S::Short: InclusiveScan<R, Tag>,
{
    let kernels = <S::Short as InclusiveScan<R, Tag>>::kernels();
    let first = op.identity();
    scan(kernels, run.into(), x, (first, None), op, out.into())
}

/// Scans as [`inclusive_scan`], after `first` and the items of `before`: `out[i] = first op before[0] op … op x[0] op … op x[i]`.
pub(crate) fn inclusive_scan_after<'a, I, S, R, Tag>(
    run: impl Into<Run<'a>>,
    x: I,
    (first, before): (S::Item, Option<BufferSlice<'_, S::Item>>),
    op: R,
    out: BufferSliceMut<'_, S::Item>,
) -> Result<()>
where
    I: InputArg<S>,
    S: Source<Item: Element>,
    R: Reducer<S::Item> + KernelParam,
    S::Short: InclusiveScan<R, Tag>,
{
    scan(<S::Short as InclusiveScan<R, Tag>>::kernels(), run.into(), x, (first, before), op, out)
}

/// Scans as [`exclusive_scan`], after `first` and the items of `before`: `out[i] = first op before[0] op … op x[0] op … op x[i - 1]`.
pub(crate) fn exclusive_scan_after<'a, I, S, R, Tag>(
    run: impl Into<Run<'a>>,
    x: I,
    (first, before): (S::Item, Option<BufferSlice<'_, S::Item>>),
    op: R,
    out: BufferSliceMut<'_, S::Item>,
) -> Result<()>
where
    I: InputArg<S>,
    S: Source<Item: Element>,
    R: Reducer<S::Item> + KernelParam,
    S::Short: ExclusiveScan<R, Tag>,
{
    scan(<S::Short as ExclusiveScan<R, Tag>>::kernels(), run.into(), x, (first, before), op, out)
}

algorithm! {
    /// Inputs and operators that [`exclusive_scan`] has kernels for.
    exclusive_scan
}

/// Combines, for each item, `first` and all items before it: `out[0] = first`, `out[i] = first op x[0] op … op x[i - 1]`. `op` is also
/// called with the last item, though no result has it. So an operator that checks for overflow may find one there.
///
/// Otherwise this works as [`inclusive_scan`].
///
/// Ready for numbers with `Add`. For others, write `instantiate!(kernel_primitives::algorithms::exclusive_scan<MyItem, MyReducer>);`.
///
/// | [same bits](crate::docs::guarantees#determinism-and-order) on every run | same bits on every device | order |
/// |---|---|---|
/// | yes: `net::bits` | yes: `algorithms::pipeline::sums_of_floats_have_the_same_bits_for_any_number_of_blocks` | as `inclusive_scan` |
///
/// CUB: `DeviceScan::ExclusiveScan`, `ExclusiveSum`. Thrust: `exclusive_scan`, `transform_exclusive_scan`.
///
/// ```
/// use kernel_primitives::algorithms::exclusive_scan;
/// use kernel_primitives::functor::Add;
/// use kernel_primitives::Device;
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = Device::auto()?.stream()?;
/// let mut starts = stream.buffer_zeroed::<u32>(4)?;
/// exclusive_scan(&stream, &stream.buffer_from(&[3, 1, 4, 1])?, 0, Add, &mut starts)?;
/// assert_eq!(starts.to_vec()?, [0, 3, 4, 8]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Returns the errors of [`inclusive_scan`].
pub fn exclusive_scan<'a, 'o, I, S, R, Tag>(
    run: impl Into<Run<'a>>,
    x: I,
    first: S::Item,
    op: R,
    out: impl Into<BufferSliceMut<'o, S::Item>>,
) -> Result<()>
where
    I: InputArg<S>,
    S: Source<Item: Element>,
    R: Reducer<S::Item> + KernelParam,
    S::Short: ExclusiveScan<R, Tag>,
{
    let kernels = <S::Short as ExclusiveScan<R, Tag>>::kernels();
    scan(kernels, run.into(), x, (first, None), op, out.into())
}

/// The kernels of a scan: one for any input, and one for long inputs in memory.
type ScanKernels<S, R, const EXCLUSIVE: bool> =
    (Entry<scan_tiles<S, R, EXCLUSIVE>>, Entry<scan_pipeline<S, R, EXCLUSIVE>>);

fn scan<I, S, R, const EXCLUSIVE: bool>(
    (tiles_kernel, pipeline): ScanKernels<S, R, EXCLUSIVE>,
    run: Run<'_>,
    x: I,
    (first, before): (S::Item, Option<BufferSlice<'_, S::Item>>),
    op: R,
    out: BufferSliceMut<'_, S::Item>,
) -> Result<()>
where
    I: InputArg<S>,
    S: Source<Item: Element>,
    R: Reducer<S::Item> + KernelParam,
{
    let algorithm = if EXCLUSIVE { "exclusive_scan" } else { "inclusive_scan" };
    let len = run.items(algorithm, &x)?;
    check_output(algorithm, "out", out.len(), len)?;
    let all = out.len();
    let (mut out, nothing) = out.split_at(all)?;
    let before = before.unwrap_or(nothing.as_slice());
    let bytes = size_of::<S::Item>();
    let tile = const { device::scan_pipeline_tile::<S>() };
    if tile > 0 && len / tile >= run.tuning(Parameter::ScanPipeline, bytes)? {
        let device = run.stream.device().properties();
        let free = device.max_shared_bytes.saturating_sub(device::scan_pipeline_shared::<S::Item>() + 16);
        let slots = (free / (tile * bytes)).clamp(1, device::SCAN_PIPELINE_SLOTS);
        // The first tile may begin before the input, by less than a vector.
        let len = len + 16 / bytes - 1;
        let blocks = len.div_ceil(tile).min(device.multiprocessors.max(1) as usize) as u32;
        let threads = device::SCAN_PIPELINE_THREADS;
        let dims = Dims::new(blocks, threads as u32).shared_bytes(slots * tile * bytes);
        return chained::<S::Item>(run, len, (tile, threads), |stream, _, chain, launch| {
            device::scan_pipeline::launch_entry(
                pipeline,
                stream,
                dims,
                x,
                first,
                before,
                &mut out,
                chain,
                launch,
                slots as u32,
                op,
            )
        });
    }
    let tiles = ScanTiles::new::<S>(len, run.tuning(Parameter::ScanTiles, bytes)?);
    let tile = (tiles.tile, const { device::scan_threads::<S>() });
    chained::<S::Item>(run, tiles.len, tile, |stream, dims, chain, launch| {
        device::scan_tiles::launch_entry(
            tiles_kernel,
            stream,
            dims,
            x,
            first,
            before,
            &mut out,
            chain,
            launch,
            tiles.rounds,
            op,
        )
    })
}

#[cfg(test)]
mod tests {
    use primitives_host::Device;

    use super::*;
    use crate::algorithms::Tuning;
    use crate::functor::Add;
    use crate::input::Span;

    /// By the kernel for any input and by the pipeline, of a tile and of several.
    #[test]
    fn items_in_memory_come_before_a_scan() -> Result<()> {
        let stream = Device::emulator().stream()?;
        let mut pipeline = Tuning::of(stream.device())?.clone();
        pipeline.set(Parameter::ScanPipeline, None, 2)?;
        let before = stream.buffer_from(&[30u32, 4])?;
        let tiles = 3 * device::scan_pipeline_tile::<Span<u32>>() + 5;
        for (len, tuning) in [(5, None), (30_000, None), (tiles, Some(&pipeline))] {
            let run = || tuning.map_or(Run::on(&stream), |tuning| Run::on(&stream).tuned(tuning));
            for offset in [0, 1] {
                let host: Vec<u32> = (0..(len + offset) as u32).map(|i| i % 7).collect();
                let (x, mut out) = (stream.buffer_from(&host)?, stream.buffer_zeroed::<u32>(len)?);
                let mut sums = vec![534];
                sums.extend(host[offset..].iter().scan(534, |sum, x| {
                    *sum += x;
                    Some(*sum)
                }));
                let all = (500, Some(before.as_slice()));
                inclusive_scan_after(run(), x.slice(offset..)?, all, Add, out.as_mut_slice())?;
                assert!(out.to_vec()? == sums[1..], "{len} from {offset}");
                exclusive_scan_after(run(), x.slice(offset..)?, all, Add, out.as_mut_slice())?;
                assert!(out.to_vec()? == sums[..len], "{len} from {offset}");
            }
        }
        // An added zero would lose the sign.
        let (x, before) = (stream.buffer_from(&[-0.0f32; 3])?, stream.buffer_from(&[-0.0f32])?);
        let mut out = stream.buffer_zeroed::<f32>(3)?;
        inclusive_scan_after(&stream, &x, (Add.identity(), Some(before.as_slice())), Add, out.as_mut_slice())?;
        assert!(out.to_vec()?.iter().all(|sum| sum.is_sign_negative()));
        Ok(())
    }
}
