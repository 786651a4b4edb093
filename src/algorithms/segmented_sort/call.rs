//! Sorts of segments.
//!
//! The first launch sorts each segment within each tile. Then a second launch merges by ranks the segments that lie in several tiles. If
//! there are many items, several passes merge runs in pairs instead, and a last launch copies back what is in the copy.

use crate::__algorithms::*;
use crate::algorithms::kernels::algorithm;
use crate::algorithms::merge::call::MergeTiles;
use crate::algorithms::run::{Run, Scratch, bytes_of, check_output, check_values, grid};
use crate::algorithms::segmented::call::segments_of;
use crate::functor::Comparator;
use crate::input::Source;
use crate::kernels::device::{self, SegmentMergePass};
use crate::{BufferSliceMut, ConvertTo, Dims, Element, InputArg, Integer, KernelParam, Result};

algorithm! {
    /// Inputs, offsets and orders that [`segmented_sort`] has kernels for.
    segmented_sort
}

/// Sorts the items of each segment by any comparator. The sort is stable.
///
/// `offsets` are as for [`segmented_reduce`](crate::algorithms::segmented_reduce): segment `i` is `x[offsets[i]..offsets[i + 1]]`. Items in
/// no segment are copied to `out`. `out` may be longer than the input: the rest of it stays as it is.
///
/// Cost, by the number of items:
///
/// - Up to one tile, which has 1024 items of 16 bytes or fewer: one launch.
/// - Up to 64 such tiles, with segments of up to four tiles on average: two launches. In the second, each item of a segment that lies in
///   several tiles searches all of these tiles.
/// - More items: a first launch reads and writes all items, and sorts tiles of 4096 items of four bytes. If there are several tiles, one
///   launch follows for each doubling from a tile to all items, and a last one. These read and write only the items of segments that cross
///   a border between sorted parts.
///
/// Segments of all lengths are balanced. Short segments cost little more than the first launch. A segment that is the whole input costs as
/// much as a sort by merges with [`sort_by`](crate::algorithms::sort_by). Temporary memory: a copy of the items, 16 bytes for each tile,
/// and one byte for each 4096 items and launch, or, if there are two launches, one bit for each item.
///
/// Ready for numbers with offsets of `u32`, with `Less` and `Greater`. For others, write
/// `instantiate!(kernel_primitives::algorithms::segmented_sort<MyItem, u32, MyOrder>);`.
///
/// | [same bits](crate::docs::guarantees#determinism-and-order) on every run | same bits on every device | order |
/// |---|---|---|
/// | yes: `net::properties::segmented_sort` | yes: `net::properties::segmented_sort` | stable in each segment: `algorithms::segments::segmented_sort::equal_keys_stay_in_their_order` |
///
/// CUB: `DeviceSegmentedSort::StableSortKeys`, `DeviceSegmentedRadixSort::SortKeys`. Differences: any [`Comparator`]; balanced, however
/// long a segment is; one array of offsets, so no items lie between two segments; rows of one length that fit a block are for
/// [`kernels::sort_rows`](fn@crate::kernels::sort_rows).
///
/// ```
/// use kernel_primitives::algorithms::segmented_sort;
/// use kernel_primitives::functor::Less;
/// use kernel_primitives::Device;
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = Device::auto()?.stream()?;
/// let x = stream.buffer_from(&[3u32, 1, 2, 9, 0])?;
/// let offsets = stream.buffer_from(&[0u32, 3, 3, 5])?;
/// let mut out = stream.buffer_zeroed::<u32>(5)?;
/// segmented_sort(&stream, &x, &offsets, Less, &mut out)?;
/// assert_eq!(out.to_vec()?, [1, 2, 3, 0, 9]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Returns [`Error::LengthMismatch`](crate::Error::LengthMismatch) if `offsets` is empty or if `out` is shorter than the input, and the
/// errors of a launch and of an allocation. If offsets decrease, or are larger than the number of items, the launch faults; the fault names
/// the larger and the smaller number.
pub fn segmented_sort<'a, 'o, I, J, S, O, C, Tag>(
    run: impl Into<Run<'a>>,
    x: I,
    offsets: J,
    order: C,
    out: impl Into<BufferSliceMut<'o, S::Item>>,
) -> Result<()>
where
    I: InputArg<S>,
    J: InputArg<O>,
    S: Source<Item: Element>,
    O: Source<Item: Integer + ConvertTo<u64>>,
    C: Comparator<S::Item> + KernelParam,
    S::Short: SegmentedSort<O::Short, C, Tag>,
{
    let (sort, ranks, merge, last) = <S::Short as SegmentedSort<O::Short, C, Tag>>::kernels();
    let (run, out) = (run.into(), out.into());
    let (stream, len) = (run.stream, run.items("segmented_sort", &x)?);
    let segments = segments_of("segmented_sort", run.items("segmented_sort", &offsets)?)?;
    check_output("segmented_sort", "out", out.len(), len)?;
    let mut out = out.into_slice(..len)?;
    let passes = Passes::of(&run, len, segments, [size_of::<S::Item>(), 0])?;
    let [borders, marks] = passes.table();
    let copied = passes.copied();
    let mut memory = run.memory(&[bytes_of::<[u64; 2]>(borders), marks, Scratch::<S::Item>::bytes(copied)])?;
    let mut parts = memory.parts();
    let (mut borders, mut marks) = (parts.take::<[u64; 2]>(borders)?, parts.take::<u8>(marks)?);
    let mut copy = Scratch::take(&mut parts, copied)?;
    let mut copy = copy.as_mut_slice()?;
    let [copied, marked] = passes.of_first();
    device::segment_sort_tiles::launch_entry(
        sort,
        stream,
        passes.dims(),
        x,
        offsets,
        &mut out,
        &mut BufferSliceMut::from(&mut copy).into_slice(..copied)?,
        &mut borders,
        &mut BufferSliceMut::from(&mut marks).into_slice(..marked)?,
        order,
    )?;
    if passes.by_ranks {
        let (dims, mut claims) = (passes.rank_dims(), marks.reinterpret::<u32>()?);
        let copy = copy.as_slice();
        return device::segment_merge_ranks::launch_entry(
            ranks,
            stream,
            dims,
            &mut out,
            copy,
            &borders,
            &mut claims,
            order,
        );
    }
    for pass in 1..=passes.count {
        let (dims, pass) = (passes.merges.dims(), passes.pass(pass));
        device::segment_merge_tiles::launch_entry(
            merge, stream, dims, &mut out, &mut copy, &borders, &mut marks, pass, order,
        )?;
    }
    if passes.count > 0 {
        let moved = marks.as_slice().slice(passes.count * passes.tiles..)?;
        let (dims, tile) = (passes.merges.dims(), passes.merges.tile);
        device::segment_sort_last::launch_entry(last, stream, dims, &mut out, &copy, moved, tile)?;
    }
    Ok(())
}

algorithm! {
    /// Keys, values, offsets and orders that [`segmented_sort_pairs`] has kernels for.
    segmented_sort_pairs
}

/// Sorts pairs of a key and a value in each segment by the keys, with any comparator. The sort is stable. Otherwise this works as
/// [`segmented_sort`].
///
/// Ready for keys of `i32`, `i64`, `u32`, `u64`, `f32` and `f64` with values of `i32`, `u32` and `f32`, offsets of `u32`, and `Less` and
/// `Greater`. For others, write `instantiate!(kernel_primitives::algorithms::segmented_sort_pairs<MyKey, u32, u32, MyOrder>);`.
///
/// | [same bits](crate::docs::guarantees#determinism-and-order) on every run | same bits on every device | order |
/// |---|---|---|
/// | yes: `net::properties::segmented_sort` | yes: `net::properties::segmented_sort` | stable in each segment: `algorithms::segments::segmented_sort::equal_keys_stay_in_their_order` |
///
/// CUB: `DeviceSegmentedSort::StableSortPairs`, `DeviceSegmentedRadixSort::SortPairs`. Differences: any [`Comparator`]; balanced, however
/// long a segment is; one array of offsets, so no items lie between two segments.
///
/// ```
/// use kernel_primitives::algorithms::segmented_sort_pairs;
/// use kernel_primitives::functor::Less;
/// use kernel_primitives::Device;
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = Device::auto()?.stream()?;
/// let keys = stream.buffer_from(&[3u32, 1, 2, 9, 0])?;
/// let values = stream.buffer_from(&[0u32, 1, 2, 3, 4])?;
/// let offsets = stream.buffer_from(&[0u32, 3, 5])?;
/// let (mut sorted, mut from) = (stream.buffer_zeroed::<u32>(5)?, stream.buffer_zeroed::<u32>(5)?);
/// segmented_sort_pairs(&stream, &keys, &values, &offsets, Less, &mut sorted, &mut from)?;
/// assert_eq!(sorted.to_vec()?, [1, 2, 3, 0, 9]);
/// assert_eq!(from.to_vec()?, [1, 2, 0, 4, 3]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Returns [`Error::LengthMismatch`](crate::Error::LengthMismatch) if `keys` and `values` have different lengths, and the errors of
/// [`segmented_sort`].
pub fn segmented_sort_pairs<'a, 'o, 'w, I, U, J, S, X, O, C, Tag>(
    run: impl Into<Run<'a>>,
    keys: I,
    values: U,
    offsets: J,
    order: C,
    keys_out: impl Into<BufferSliceMut<'o, S::Item>>,
    values_out: impl Into<BufferSliceMut<'w, X::Item>>,
) -> Result<()>
where
    I: InputArg<S>,
    U: InputArg<X>,
    J: InputArg<O>,
    S: Source<Item: Element>,
    X: Source<Item: Element>,
    O: Source<Item: Integer + ConvertTo<u64>>,
    C: Comparator<S::Item> + KernelParam,
    S::Short: SegmentedSortPairs<X::Short, O::Short, C, Tag>,
{
    let (sort, ranks, merge, last, values_last) =
        <S::Short as SegmentedSortPairs<X::Short, O::Short, C, Tag>>::kernels();
    let (run, out, values_out) = (run.into(), keys_out.into(), values_out.into());
    let (stream, len) = (run.stream, run.items("segmented_sort_pairs", &keys)?);
    let segments = segments_of("segmented_sort_pairs", run.items("segmented_sort_pairs", &offsets)?)?;
    check_values("segmented_sort_pairs", len, values.items())?;
    check_output("segmented_sort_pairs", "keys_out", out.len(), len)?;
    check_output("segmented_sort_pairs", "values_out", values_out.len(), len)?;
    let (mut out, mut values_out) = (out.into_slice(..len)?, values_out.into_slice(..len)?);
    let passes = Passes::of(&run, len, segments, [size_of::<S::Item>(), size_of::<X::Item>()])?;
    let [borders, marks] = passes.table();
    let copied = passes.copied();
    let copies = [Scratch::<S::Item>::bytes(copied), Scratch::<X::Item>::bytes(copied)];
    let mut memory = run.memory(&[bytes_of::<[u64; 2]>(borders), marks, copies[0], copies[1]])?;
    let mut parts = memory.parts();
    let (mut borders, mut marks) = (parts.take::<[u64; 2]>(borders)?, parts.take::<u8>(marks)?);
    let mut copy = Scratch::take(&mut parts, copied)?;
    let mut values_copy = Scratch::take(&mut parts, copied)?;
    let (mut copy, mut values_copy) = (copy.as_mut_slice()?, values_copy.as_mut_slice()?);
    let [copied, marked] = passes.of_first();
    device::segment_sort_tiles_pairs::launch_entry(
        sort,
        stream,
        passes.dims(),
        keys,
        values,
        offsets,
        &mut out,
        &mut BufferSliceMut::from(&mut copy).into_slice(..copied)?,
        &mut values_out,
        &mut BufferSliceMut::from(&mut values_copy).into_slice(..copied)?,
        &mut borders,
        &mut BufferSliceMut::from(&mut marks).into_slice(..marked)?,
        order,
    )?;
    if passes.by_ranks {
        let mut claims = marks.reinterpret::<u32>()?;
        return device::segment_merge_ranks_pairs::launch_entry(
            ranks,
            stream,
            passes.rank_dims(),
            &mut out,
            copy.as_slice(),
            &mut values_out,
            &values_copy,
            &borders,
            &mut claims,
            order,
        );
    }
    for pass in 1..=passes.count {
        device::segment_merge_tiles_pairs::launch_entry(
            merge,
            stream,
            passes.merges.dims(),
            &mut out,
            &mut copy,
            &mut values_out,
            &mut values_copy,
            &borders,
            &mut marks,
            passes.pass(pass),
            order,
        )?;
    }
    if passes.count > 0 {
        let moved = marks.as_slice().slice(passes.count * passes.tiles..)?;
        let (dims, tile) = (passes.merges.dims(), passes.merges.tile);
        device::segment_sort_last::launch_entry(last, stream, dims, &mut out, &copy, moved, tile)?;
        device::segment_sort_last::launch_entry(values_last, stream, dims, &mut values_out, &values_copy, moved, tile)?;
    }
    Ok(())
}

/// The largest number of short tiles that are merged by ranks, and the largest average number of these in a segment. Each item of a segment
/// searches all tiles of the segment.
const RANKED: usize = 64;
const RANKED_OF_SEGMENT: usize = 4;

/// The passes of a sort. Pass 0 sorts tiles. Each later pass merges the runs of the previous pass in pairs, or a single launch merges all
/// by ranks.
struct Passes {
    len: usize,
    /// Items of a tile of pass 0.
    tile: usize,
    /// Whether tiles are merged by ranks instead of by passes.
    by_ranks: bool,
    /// Passes after pass 0.
    count: usize,
    merges: MergeTiles,
    /// Tiles of a pass of merges.
    tiles: usize,
}

impl Passes {
    fn of(run: &Run<'_>, len: usize, segments: usize, [key, value]: [usize; 2]) -> Result<Self> {
        let short = device::segment_sort_short_items(key, value);
        let shorts = len.div_ceil(short);
        let by_ranks = (2..=RANKED).contains(&shorts) && segments.saturating_mul(RANKED_OF_SEGMENT) >= shorts;
        let tile = if by_ranks || shorts <= 1 { short } else { device::segment_sort_tile_items(key, value) };
        let doublings = len.div_ceil(tile).max(1).next_power_of_two().ilog2() as usize;
        let merges = MergeTiles::of(run, len, key, value)?;
        let count = if by_ranks { 0 } else { doublings };
        Ok(Self { len, tile, by_ranks, count, merges, tiles: len.div_ceil(merges.tile) })
    }

    /// The blocks of pass 0. There is at least one, which checks the offsets.
    fn dims(&self) -> Dims {
        grid(self.len.div_ceil(self.tile).max(1), device::SEGMENT_SORT_THREADS)
    }

    /// The blocks that merge by ranks.
    fn rank_dims(&self) -> Dims {
        let threads = device::SEGMENT_RANK_THREADS;
        Dims::new(self.len.div_ceil(threads) as u32, threads as u32)
    }

    /// The number of borders of tiles of pass 0, counting the one before the first tile; and the bytes of the rows that say where tiles
    /// lie, or of a bit for each item of whole tiles.
    fn table(&self) -> [usize; 2] {
        let tiles = self.len.div_ceil(self.tile);
        [tiles, if self.by_ranks { tiles * self.tile / 8 } else { (self.count + 1) * self.tiles }]
    }

    /// Elements of the copy.
    fn copied(&self) -> usize {
        if self.by_ranks || self.count > 0 { self.len } else { 0 }
    }

    /// The elements of the copy and the marks that pass 0 writes.
    fn of_first(&self) -> [usize; 2] {
        if self.by_ranks { [self.len, self.table()[1]] } else { [0, self.tiles] }
    }

    fn pass(&self, pass: usize) -> SegmentMergePass {
        SegmentMergePass { run: self.tile << (pass - 1), pass }
    }
}
