//! Sorts of segments.

use super::merge::{MergeTiles, check_values};
use super::run::{Run, Scratch, check_output};
use super::segmented::segments_of;
use crate::__private::Instantiated;
use crate::functor::Comparator;
use crate::input::Source;
use crate::kernels::device::{self, SegmentMergePass};
use crate::{BufferSliceMut, ConvertTo, Dims, Element, InputArg, Integer, KernelParam, Result};

/// Sorts the items of each segment by any comparator; stable.
///
/// `offsets` are as for [`segmented_reduce`](super::segmented_reduce): segment `i` is `x[offsets[i]..offsets[i + 1]]`. Items that are in no
/// segment go to `out` as they are. `out` may be longer than the input: the rest of it stays as it is.
///
/// Cost: one read and one write of the items, and a launch for each doubling from a tile of 4096 items of four bytes to all; in those, items are read
/// and written whose segment goes over a border between what was sorted so far. Segments of any lengths are balanced: short ones cost
/// little more than the first launch, and one that is all of the input as much as [`sort_by`](super::sort_by). Temporary
/// memory: for a copy of the items, 16 bytes a tile, and a byte for 4096 items a launch.
///
/// For types and orders of one's own: `instantiate!` of [`segment_sort_tiles`](struct@device::segment_sort_tiles),
/// [`segment_merge_tiles`](struct@device::segment_merge_tiles) and [`segment_sort_last`](struct@device::segment_sort_last).
///
/// CUB: `DeviceSegmentedSort::StableSortKeys`, `DeviceSegmentedRadixSort::SortKeys`.
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
/// `offsets` is empty, `out` is shorter than the input, and those of a launch and of an allocation. Offsets that decrease, or are more than
/// there are items, are a fault of the launch, which names the larger and the smaller number.
pub fn segmented_sort<'a, 'o, I, J, S, O, C, Sort, Merge, Last>(
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
    device::segment_sort_tiles<S, O, C>: Instantiated<Sort>,
    device::segment_merge_tiles<S::Item, C>: Instantiated<Merge>,
    device::segment_sort_last<S::Item>: Instantiated<Last>,
{
    let (run, out, len) = (run.into(), out.into(), x.items());
    let stream = run.stream;
    segments_of("segmented_sort", offsets.items())?;
    check_output("segmented_sort", out.len(), len)?;
    let mut out = out.into_slice(..len)?;
    let passes = Passes::of(&run, len, size_of::<S::Item>(), 0)?;
    let [borders, moved] = passes.table();
    let copied = passes.copied();
    let mut memory = run.memory(&[borders * size_of::<[u64; 2]>(), moved, Scratch::<S::Item>::bytes(copied)])?;
    let mut parts = memory.parts();
    let (mut borders, mut moved) = (parts.take::<[u64; 2]>(borders)?, parts.take::<u8>(moved)?);
    let mut copy = Scratch::take(stream, &mut parts, copied)?;
    let mut copy = copy.as_mut_slice();
    let tiles = passes.tiles;
    let dims = passes.dims();
    device::segment_sort_tiles::<S, O, C>::launch(
        stream,
        dims,
        x,
        offsets,
        &mut out,
        &mut borders,
        &mut moved,
        tiles,
        order,
    )?;
    for pass in 1..=passes.count {
        let (dims, pass) = (passes.merges.dims(), passes.pass(pass));
        device::segment_merge_tiles::<S::Item, C>::launch(
            stream, dims, &mut out, &mut copy, &borders, &mut moved, pass, order,
        )?;
    }
    if passes.count > 0 {
        let moved = moved.as_slice().slice(passes.count * tiles..)?;
        let (dims, tile) = (passes.merges.dims(), passes.merges.tile);
        device::segment_sort_last::<S::Item>::launch(stream, dims, &mut out, &copy, moved, tile)?;
    }
    Ok(())
}

/// Sorts pairs of a key and a value in each segment by the keys and any comparator; stable. As [`segmented_sort`]; each value goes where its
/// key goes.
///
/// For types and orders of one's own: `instantiate!` of [`segment_sort_tiles_pairs`](struct@device::segment_sort_tiles_pairs),
/// [`segment_merge_tiles_pairs`](struct@device::segment_merge_tiles_pairs), and [`segment_sort_last`](struct@device::segment_sort_last) of
/// both.
///
/// CUB: `DeviceSegmentedSort::StableSortPairs`, `DeviceSegmentedRadixSort::SortPairs`.
///
/// # Errors
/// As [`segmented_sort`]; and unless there are as many values as keys.
pub fn segmented_sort_pairs<'a, 'o, 'w, I, U, J, S, X, O, C, Sort, Merge, Last, ValuesLast>(
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
    device::segment_sort_tiles_pairs<S, X, O, C>: Instantiated<Sort>,
    device::segment_merge_tiles_pairs<S::Item, X::Item, C>: Instantiated<Merge>,
    device::segment_sort_last<S::Item>: Instantiated<Last>,
    device::segment_sort_last<X::Item>: Instantiated<ValuesLast>,
{
    let (run, out, values_out, len) = (run.into(), keys_out.into(), values_out.into(), keys.items());
    let stream = run.stream;
    segments_of("segmented_sort_pairs", offsets.items())?;
    check_values("segmented_sort_pairs", len, values.items())?;
    check_output("segmented_sort_pairs", out.len(), len)?;
    check_output("segmented_sort_pairs", values_out.len(), len)?;
    let (mut out, mut values_out) = (out.into_slice(..len)?, values_out.into_slice(..len)?);
    let passes = Passes::of(&run, len, size_of::<S::Item>(), size_of::<X::Item>())?;
    let [borders, moved] = passes.table();
    let copied = passes.copied();
    let copies = [Scratch::<S::Item>::bytes(copied), Scratch::<X::Item>::bytes(copied)];
    let mut memory = run.memory(&[borders * size_of::<[u64; 2]>(), moved, copies[0], copies[1]])?;
    let mut parts = memory.parts();
    let (mut borders, mut moved) = (parts.take::<[u64; 2]>(borders)?, parts.take::<u8>(moved)?);
    let mut copy = Scratch::take(stream, &mut parts, copied)?;
    let mut values_copy = Scratch::take(stream, &mut parts, copied)?;
    let (mut copy, mut values_copy) = (copy.as_mut_slice(), values_copy.as_mut_slice());
    let tiles = passes.tiles;
    device::segment_sort_tiles_pairs::<S, X, O, C>::launch(
        stream,
        passes.dims(),
        keys,
        values,
        offsets,
        &mut out,
        &mut values_out,
        &mut borders,
        &mut moved,
        tiles,
        order,
    )?;
    for pass in 1..=passes.count {
        device::segment_merge_tiles_pairs::<S::Item, X::Item, C>::launch(
            stream,
            passes.merges.dims(),
            &mut out,
            &mut copy,
            &mut values_out,
            &mut values_copy,
            &borders,
            &mut moved,
            passes.pass(pass),
            order,
        )?;
    }
    if passes.count > 0 {
        let moved = moved.as_slice().slice(passes.count * tiles..)?;
        let (dims, tile) = (passes.merges.dims(), passes.merges.tile);
        device::segment_sort_last::<S::Item>::launch(stream, dims, &mut out, &copy, moved, tile)?;
        device::segment_sort_last::<X::Item>::launch(stream, dims, &mut values_out, &values_copy, moved, tile)?;
    }
    Ok(())
}

/// How a sort goes: pass 0 sorts tiles, each other one joins the runs of the one before two by two.
struct Passes {
    len: usize,
    /// Items of a tile of pass 0.
    tile: usize,
    /// Passes after that.
    count: usize,
    merges: MergeTiles,
    /// Tiles of a pass of merges.
    tiles: usize,
}

impl Passes {
    fn of(run: &Run<'_>, len: usize, key: usize, value: usize) -> Result<Self> {
        let tile = device::segment_sort_tile_items(key, value);
        let count = len.div_ceil(tile).max(1).next_power_of_two().ilog2() as usize;
        let merges = MergeTiles::of(run, len, key, value)?;
        Ok(Self { len, tile, count, merges, tiles: len.div_ceil(merges.tile) })
    }

    /// The blocks of pass 0: one at least, which looks at the offsets.
    fn dims(&self) -> Dims {
        let blocks = self.len.div_ceil(self.tile).max(1);
        Dims::new(blocks.try_into().unwrap_or(u32::MAX), device::SEGMENT_SORT_THREADS as u32)
    }

    /// Borders between tiles of pass 0, with the one before the first, and rows of where tiles lie.
    fn table(&self) -> [usize; 2] {
        [self.len.div_ceil(self.tile), (self.count + 1) * self.tiles]
    }

    /// Elements of the copy.
    fn copied(&self) -> usize {
        if self.count > 0 { self.len } else { 0 }
    }

    fn pass(&self, pass: usize) -> SegmentMergePass {
        SegmentMergePass { run: self.tile << (pass - 1), pass }
    }
}
