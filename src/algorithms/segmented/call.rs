//! Reductions and scans of segments.
//!
//! A reduction of few items is one launch, in which two warps or a block reduce each segment. Otherwise it is two launches: the first
//! reduces tiles of items, whatever segments they have, and the second combines the parts of segments that lie in several tiles. A scan is
//! one launch, in which a tile waits for the tiles before it, back to the last one in which a segment begins
//! ([`tile::scan_runs`](crate::algorithms::tile::scan_runs)). Few items in short segments need no tiles: some lanes, a warp or a block
//! scan each segment ([`scan_warps`](super::scan_warps)).

use crate::__algorithms::*;
use crate::__private::Again;
use crate::__private::Entry;
use crate::algorithms::chained::chained;
use crate::algorithms::kernels::algorithm;
use crate::algorithms::run::{Run, Scratch, bytes_of, check_output, grid};
use crate::algorithms::tuning::Parameter;
use crate::element::Segmented;
use crate::functor::{Reducer, Reduction};
use crate::input::Source;
use crate::kernels::device;
use crate::{BufferSliceMut, ConvertTo, Dims, Element, Error, InputArg, Integer, KernelParam, Result};

/// The largest number of segments for the single launch of small inputs.
const SEGMENTS: usize = 8192;

algorithm! {
    /// Inputs, offsets and reductions that [`segmented_reduce`] has kernels for.
    segmented_reduce
}

/// Reduces each segment to one result: `out[i]` is the reduction of `x[offsets[i]..offsets[i + 1]]` by `op`. For an empty segment, it is
/// the result that `op` gives for no items.
///
/// `offsets` are `u32` or `u64` (or what [`input`](crate::input) computes from integers). There is one offset more than there are segments,
/// and offsets must not decrease. Items before the first offset and after the last one are in no segment. `op` is any [`Reduction`] whose
/// combination is commutative. The index of an item is its place in the segment. `out` may have more items than there are segments: the
/// rest of it stays as it is.
///
/// **Determinism.** The order of combination depends only on the offsets and the number of items.
///
/// Cost: one read of the input and one of the offsets. The number of launches depends on the sizes:
///
/// - Small inputs take one launch. An input is small if it has up to 8192 segments, and up to 2^16 items, or up to 2^20 items in segments
///   of up to 512 vectors on average. A vector is 16 bytes of items of 1, 2, 4 or 8 bytes that are contiguous in memory, and otherwise
///   usually one item. Two warps reduce each segment, or a block if the segment is long. So one long segment among short ones is the work
///   of one block.
/// - Otherwise a warp reduces a tile of 512 vectors, or fewer of items of more than 16 bytes, whatever segments the tile has, and a small
///   second launch follows. Segments of all lengths are balanced, even a segment that is the whole input; short ones have a lane each.
///   Temporary memory: two accumulators and eight bytes for each tile.
///
/// Ready for numbers with offsets of `u32`, with `Sum`, `MinOf` and `MaxOf`, and for sums of `f32` with offsets of `u64`. For others, write
/// `instantiate!(kernel_primitives::algorithms::segmented_reduce<f32, u64, MyReduction>);`.
///
/// | [same bits](crate::docs::guarantees#determinism-and-order) on every run | same bits on every device | order |
/// |---|---|---|
/// | yes: `net::bits` | yes: `net::bits` | fixed by the offsets; the operator must be commutative |
///
/// CUB: `DeviceSegmentedReduce::Reduce`, `Sum`, `Min`, `Max`. Differences: any commutative [`Reduction`]; segments of all lengths are
/// balanced, but in a small input one block reduces a long segment; one array of offsets, so no items lie between two segments.
///
/// ```
/// use kernel_primitives::algorithms::segmented_reduce;
/// use kernel_primitives::functor::Sum;
/// use kernel_primitives::Device;
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = Device::auto()?.stream()?;
/// let x = stream.buffer_from(&[1.0f32, 2.0, 3.0, 4.0, 5.0])?;
/// let offsets = stream.buffer_from(&[0u32, 3, 3, 5])?;
/// let mut sums = stream.buffer_zeroed::<f32>(3)?;
/// segmented_reduce(&stream, &x, &offsets, Sum, &mut sums)?;
/// assert_eq!(sums.to_vec()?, [6.0, 0.0, 9.0]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Returns [`Error::LengthMismatch`] if `offsets` is empty or if `out` has fewer items than there are segments, and the errors of a launch
/// and of an allocation. If offsets decrease, or are larger than the number of items, the launch faults; the fault names the larger and the
/// smaller number.
pub fn segmented_reduce<'a, 'o, I, J, S, O, R, Tag>(
    run: impl Into<Run<'a>>,
    x: I,
    offsets: J,
    op: R,
    out: impl Into<BufferSliceMut<'o, R::Output>>,
) -> Result<()>
where
    I: InputArg<S>,
    J: InputArg<O>,
    S: Source<Item: Element>,
    O: Source<Item: Integer + ConvertTo<u64>>,
    R: Reduction<S::Item, Output: Element> + KernelParam,
    S::Short: SegmentedReduce<O::Short, R, Tag>,
{
    let (warps, tiles_kernel, ends) = <S::Short as SegmentedReduce<O::Short, R, Tag>>::kernels();
    let (run, mut out) = (run.into(), out.into());
    let segments = segments_of("segmented_reduce", run.items("segmented_reduce", &offsets)?)?;
    check_output("segmented_reduce", "out", out.len(), segments)?;
    let (stream, len) = (run.stream, run.items("segmented_reduce", &x)?);
    let are_short = segments * device::segment_warp_items::<S>() >= len;
    let are_few = segments <= SEGMENTS && len <= if are_short { 1 << 20 } else { 1 << 16 };
    // Even without a segment, there is an offset to check.
    if segments == 0 || are_few {
        let blocks = segments.div_ceil(device::SEGMENT_PAIRS).max(1) as u32;
        let dims = Dims::new(blocks, device::SEGMENT_WARPS_THREADS as u32);
        return device::segment_warps::launch_entry(warps, stream, dims, x, offsets, &mut out, op);
    }
    let tile = const { device::segment_tile_items::<S>() };
    let tiles = len.div_ceil(tile).max(1);
    let mut memory = run.memory(&[Scratch::<R::Accum>::bytes(2 * tiles), bytes_of::<u64>(tiles)])?;
    let mut parts = memory.parts();
    let (mut partials, mut crossing) = (Scratch::take(&mut parts, 2 * tiles)?, parts.take::<u64>(tiles)?);
    let mut partials = partials.as_mut_slice()?;
    let threads = device::SEGMENT_THREADS;
    // If there are many empty segments, there are blocks without items.
    let blocks = (tiles * 32).div_ceil(threads).max(segments.div_ceil(device::SEGMENT_OFFSETS));
    let dims = grid(blocks, threads);
    device::segment_tiles::launch_entry(
        tiles_kernel,
        stream,
        dims,
        x,
        Again(&offsets),
        &mut partials,
        &mut crossing,
        &mut out,
        op,
    )?;
    if tiles == 1 {
        return Ok(());
    }
    let threads = device::SEGMENT_ENDS_THREADS;
    let dims = grid(tiles.div_ceil(threads), threads);
    let bits = tile.ilog2();
    device::segment_ends::launch_entry(ends, stream, dims, offsets, &partials, &crossing, &mut out, op, bits)
}

/// The number of segments that `offsets` offsets make, or an error if there is no offset at all.
pub(crate) fn segments_of(algorithm: &str, offsets: usize) -> Result<usize> {
    offsets.checked_sub(1).ok_or_else(|| Error::LengthMismatch {
        kernel: algorithm.into(),
        first: "an `offsets` of no segments".into(),
        first_len: 1,
        second: "`offsets`".into(),
        second_len: 0,
    })
}

algorithm! {
    /// Inputs, offsets and operators that [`segmented_inclusive_scan`] has kernels for.
    segmented_inclusive_scan
}

/// Combines, for each item, the items of its segment up to and including it.
///
/// Segments are those of [`segmented_reduce`]. The items before the first offset are scanned as one more segment, and so are those after
/// the last offset. `op` is any [`Reducer`], commutative or not. `out` may be longer than the input: the rest of it stays as it is.
///
/// **Determinism.** The order of combination depends on the offsets, on the number and the type of the items, on the alignment of the input
/// to 16 bytes, and on [tuning](crate::algorithms::Tuning) values that are the same for all devices in the library's table.
///
/// Cost: one launch, with one read of the input, two of the offsets and one write.
///
/// Few items in short segments need no temporary memory: [some lanes](struct@device::segment_scan_warps), a warp or a block scan each
/// segment, depending on the average length. A call takes this way if all of the following hold. There are up to 2^20 items of up to four
/// bytes, 2^19 of eight bytes, or 2^18 of more (the tuning value `scan.segments`). Segments have up to 16 384 items of 1, 2 or 4 bytes on
/// average, or 64 KB of items of 8 or 16 bytes; of items of other sizes and of strided ones, they have up to 4096. There are four items
/// for each offset, or up to 8192 offsets. One long segment among short ones is then the work of one block.
///
/// Otherwise a block scans a tile of some 50 KB of items, whatever segments the tile has; tiles are smaller if there are few items. If
/// items are not read in vectors, such as strided ones or those of 3 bytes, a tile has 3200 items at most.
/// Segments of all lengths are balanced. So are empty segments, whether they are together or among many items. A warp reads the offsets of
/// its part of a tile in groups of 256, one group after the other. If there are hundreds of empty segments between any two items, such as a
/// million segments of a few thousand items, a few warps read all offsets, and the scan takes about as long as these reads wait. A tile
/// waits for the tiles before it, back to the last one in which a segment begins ([`grid`](crate::grid)). Temporary memory: for each tile
/// 16 bytes, and another 8 bytes for each 4 bytes of an item. It is cleared first, unless a [`Workspace`](crate::algorithms::Workspace) has
/// room for it. A single tile needs none.
///
/// Ready for numbers with offsets of `u32`, with `Add`. For others, write
/// `instantiate!(kernel_primitives::algorithms::segmented_inclusive_scan<f32, u32, Max>);`.
///
/// | [same bits](crate::docs::guarantees#determinism-and-order) on every run | same bits on every device | order |
/// |---|---|---|
/// | yes: `net::bits` | yes: `algorithms::segments::segmented::sums_of_segments_have_the_same_bits_for_any_number_of_blocks`, `algorithms::segments::segmented_warps::sums_of_few_items_have_the_same_bits_on_every_device` | of each segment: `algorithms::segments::segmented::segments_are_scanned_in_order_sanitize`, `algorithms::segments::segmented_warps::lanes_keep_the_order_of_an_operator_that_does_not_commute_sanitize` |
///
/// CUB: `DeviceSegmentedScan::InclusiveSegmentedScan`. Differences: segments are those of [`segmented_reduce`]; segments of all lengths are
/// balanced, but in a small input one block scans a long segment.
///
/// ```
/// use kernel_primitives::algorithms::segmented_inclusive_scan;
/// use kernel_primitives::functor::Add;
/// use kernel_primitives::Device;
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = Device::auto()?.stream()?;
/// let x = stream.buffer_from(&[1.0f32, 2.0, 3.0, 4.0, 5.0])?;
/// let offsets = stream.buffer_from(&[0u32, 3, 3, 5])?;
/// let mut sums = stream.buffer_zeroed::<f32>(5)?;
/// segmented_inclusive_scan(&stream, &x, &offsets, Add, &mut sums)?;
/// assert_eq!(sums.to_vec()?, [1.0, 3.0, 6.0, 4.0, 9.0]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Returns [`Error::LengthMismatch`] if `offsets` is empty or if `out` is shorter than the input, and the errors of a launch and of an
/// allocation. If offsets decrease, or are larger than the number of items, the launch faults; the fault names the larger and the smaller
/// number.
pub fn segmented_inclusive_scan<'a, 'o, I, J, S, O, R, Tag>(
    run: impl Into<Run<'a>>,
    x: I,
    offsets: J,
    op: R,
    out: impl Into<BufferSliceMut<'o, S::Item>>,
) -> Result<()>
where
    I: InputArg<S>,
    J: InputArg<O>,
    S: Source<Item: Element>,
    O: Source<Item: Integer + ConvertTo<u64>>,
    R: Reducer<S::Item> + KernelParam,
    S::Short: SegmentedInclusiveScan<O::Short, R, Tag>,
{
    let kernels = <S::Short as SegmentedInclusiveScan<O::Short, R, Tag>>::kernels();
    let first = op.identity();
    scan("segmented_inclusive_scan", kernels, run.into(), (x, offsets), (first, false), op, out.into())
}

algorithm! {
    /// Inputs, offsets and operators that [`segmented_exclusive_scan`] has kernels for.
    segmented_exclusive_scan
}

/// Combines, for each item, `first` and the items before it in its segment. The first item of each segment gets `first`. `op` is also
/// called with the last item of a segment, though no result has it.
///
/// Otherwise this works as [`segmented_inclusive_scan`].
///
/// Ready for the same types. For others, write `instantiate!(kernel_primitives::algorithms::segmented_exclusive_scan<f32, u32, Max>);`.
///
/// | [same bits](crate::docs::guarantees#determinism-and-order) on every run | same bits on every device | order |
/// |---|---|---|
/// | yes: `net::bits` | yes: `net::bits` | of each segment: `algorithms::segments::segmented::segments_are_scanned_in_order_sanitize` |
///
/// CUB: `DeviceSegmentedScan::ExclusiveSegmentedScan`. Differences: segments are those of [`segmented_reduce`]; segments of all lengths are
/// balanced, but in a small input one block scans a long segment.
///
/// ```
/// use kernel_primitives::algorithms::segmented_exclusive_scan;
/// use kernel_primitives::functor::Add;
/// use kernel_primitives::Device;
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = Device::auto()?.stream()?;
/// let x = stream.buffer_from(&[1u32, 2, 3, 4, 5])?;
/// let offsets = stream.buffer_from(&[0u32, 3, 3, 5])?;
/// let mut sums = stream.buffer_zeroed::<u32>(5)?;
/// segmented_exclusive_scan(&stream, &x, &offsets, 100, Add, &mut sums)?;
/// assert_eq!(sums.to_vec()?, [100, 101, 103, 100, 104]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Returns the errors of [`segmented_inclusive_scan`].
pub fn segmented_exclusive_scan<'a, 'o, I, J, S, O, R, Tag>(
    run: impl Into<Run<'a>>,
    x: I,
    offsets: J,
    first: S::Item,
    op: R,
    out: impl Into<BufferSliceMut<'o, S::Item>>,
) -> Result<()>
where
    I: InputArg<S>,
    J: InputArg<O>,
    S: Source<Item: Element>,
    O: Source<Item: Integer + ConvertTo<u64>>,
    R: Reducer<S::Item> + KernelParam,
    S::Short: SegmentedExclusiveScan<O::Short, R, Tag>,
{
    let kernels = <S::Short as SegmentedExclusiveScan<O::Short, R, Tag>>::kernels();
    scan("segmented_exclusive_scan", kernels, run.into(), (x, offsets), (first, true), op, out.into())
}

/// The kernels of a scan of segments: one for few items, and one for any input.
type ScanKernels<S, O, R> = (Entry<segment_scan_warps<S, O, R>>, Entry<segment_scan_tiles<S, O, R>>);

fn scan<I, J, S, O, R>(
    algorithm: &str,
    (warps, tiles_kernel): ScanKernels<S, O, R>,
    run: Run<'_>,
    (x, offsets): (I, J),
    (first, exclusive): (S::Item, bool),
    op: R,
    mut out: BufferSliceMut<'_, S::Item>,
) -> Result<()>
where
    I: InputArg<S>,
    J: InputArg<O>,
    S: Source<Item: Element>,
    O: Source<Item: Integer + ConvertTo<u64>>,
    R: Reducer<S::Item> + KernelParam,
{
    let (len, ends) = (run.items(algorithm, &x)?, run.items(algorithm, &offsets)?);
    segments_of(algorithm, ends)?;
    check_output(algorithm, "out", out.len(), len)?;
    let bytes = size_of::<S::Item>();
    // One block may have to scan one long segment, which has no more items than this.
    let lane_bits = device::segment_scan_lane_bits::<S>(len, ends);
    let most = run.tuning(Parameter::ScanSegments, bytes)?;
    if let Some(bits) = lane_bits.filter(|_| len <= most) {
        let threads = device::SEGMENT_SCAN_WARPS_THREADS;
        // The items after the last offset are a segment, too.
        let dims = Dims::new((ends + 1).div_ceil(threads >> bits) as u32, threads as u32);
        return device::segment_scan_warps::launch_entry(
            warps, run.stream, dims, x, offsets, first, &mut out, bits, exclusive, op,
        );
    }
    let enough = run.tuning(Parameter::RunTiles, bytes)?;
    let tiles = device::SegmentScanItems::<S>::tiles(len, enough);
    // If there are many empty segments, there are blocks without items, which only check offsets.
    let places = len.max(ends.div_ceil(device::SEGMENT_SCAN_OFFSETS) * tiles.tile);
    let tile = (tiles.tile, device::SCAN_THREADS);
    chained::<Segmented<S::Item>>(run, places, tile, |stream, dims, chain, launch| {
        device::segment_scan_tiles::launch_entry(
            tiles_kernel,
            stream,
            dims,
            x,
            offsets,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Device;
    use crate::functor::Sum;
    use crate::input::Span;

    /// If another thread writes the offsets between the two launches, the second launch still ends, and writes only inside the output.
    #[test]
    fn offsets_that_were_written_after_they_were_checked_are_no_way_out() -> Result<()> {
        let stream = Device::auto()?.stream()?;
        let partials = stream.buffer_from(&[1.0f32; 20])?;
        let mut around = stream.buffer_from(&[77.0f32; 12])?;
        for crossing in [0, 1, 2, u64::MAX - 1] {
            for offsets in [[0, 0, 0, 0], [0, u64::MAX, 1, 0], [9, 5, u64::MAX, 3], [u64::MAX; 4]] {
                let (offsets, crossing) = (stream.buffer_from(&offsets)?, stream.buffer_from(&[crossing; 10])?);
                let mut out = around.slice_mut(4..7)?;
                let dims = Dims::new(1, device::SEGMENT_ENDS_THREADS as u32);
                device::segment_ends::<f32, Span<u64>, Sum>::launch(
                    &stream, dims, &offsets, &partials, &crossing, &mut out, Sum, 11,
                )
                .and_then(|()| stream.synchronize())
                .or_else(|error| match &error {
                    // These faults are of tiles that write the same segment, or of a segment that does not exist.
                    Error::Fault(fault) if !matches!(fault.diagnosis, crate::Diagnosis::Panicked { .. }) => Ok(()),
                    _ => Err(error),
                })?;
                let found = around.to_vec()?;
                assert!(found[..4].iter().chain(&found[7..]).all(|&item| item == 77.0));
            }
        }
        Ok(())
    }
}
