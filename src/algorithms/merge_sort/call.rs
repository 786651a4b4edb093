//! Sorts by any comparator.
//!
//! `merge_sort_tiles` sorts tiles, and each pass of merges joins two sorted runs: see [`merge`](crate::algorithms::merge). Many numbers in
//! their own order are sorted by digits: see [`sort_keys`](crate::algorithms::sort_keys).

use crate::__algorithms::*;
use crate::__private::Entry;
use crate::algorithms::Parameter;
use crate::algorithms::kernels::algorithm;
use crate::algorithms::merge::call::MergeTiles;
use crate::algorithms::run::{Run, Scratch, bytes_of, check_output, check_values, grid};
use crate::algorithms::sort::call::{Numbers, Values};
use crate::functor::Comparator;
use crate::input::{Source, Span};
use crate::kernels::device::{self, MergePass, MergeSortShape};
use crate::{BufferSlice, BufferSliceMut, Dims, Element, InputArg, KernelParam, Result};

algorithm! {
    /// Inputs and orders that [`sort_by`] has kernels for.
    sort_by
}

/// Sorts items by any comparator. The sort is stable.
///
/// `order` is any [`Comparator`]. If it is not an order, the contents of `out` are unspecified. `out` may be longer than the input: the
/// rest of it stays as it is.
///
/// Many numbers in memory are sorted by digits, as [`sort_keys`](crate::algorithms::sort_keys) does, if the order is `Less` or `Greater`.
/// [`Parameter::SortDigits`] says how many, such as 2^18 of four bytes. They then have the cost and the temporary memory of `sort_keys`, and
/// the results are the same.
///
/// Cost of other sorts: one launch if the items fit in one tile, which has 8192 items of four bytes. Otherwise, a first launch sorts the
/// tiles; it reads and writes the items once. Each further pass doubles the length of the sorted runs until one run has all items. Each pass
/// takes one read, one write and one launch, or two launches if there are more than four million items of four bytes. Temporary memory: a
/// copy of the items if there are several tiles, and eight bytes for each 4096 items if passes take two launches.
///
/// Ready for numbers with `Less` and `Greater`. For others, write `instantiate!(kernel_primitives::algorithms::sort_by<MyItem, MyOrder>);`.
///
/// | [same bits](crate::docs::guarantees#determinism-and-order) on every run | same bits on every device | order |
/// |---|---|---|
/// | yes: `net::properties::sort` | yes: `net::properties::sort` | stable: `algorithms::sorts::merge_sort::equal_keys_stay_in_their_order` |
///
/// CUB: `DeviceMergeSort::StableSortKeysCopy`. Thrust: `stable_sort`. Differences: any [`Comparator`], always stable, out of place, and by
/// digits where that is faster, as Thrust's.
///
/// ```
/// use kernel_primitives::algorithms::sort_by;
/// use kernel_primitives::functor::Less;
/// use kernel_primitives::Device;
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = Device::auto()?.stream()?;
/// let x = stream.buffer_from(&[3u32, 1, 2])?;
/// let mut out = stream.buffer_zeroed::<u32>(3)?;
/// sort_by(&stream, &x, Less, &mut out)?;
/// assert_eq!(out.to_vec()?, [1, 2, 3]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Returns [`Error::LengthMismatch`](crate::Error::LengthMismatch) if `out` is shorter than the input, and the errors of a launch and
/// of an allocation.
pub fn sort_by<'a, 'o, I, S, C, Tag>(
    run: impl Into<Run<'a>>,
    x: I,
    order: C,
    out: impl Into<BufferSliceMut<'o, S::Item>>,
) -> Result<()>
where
    I: InputArg<S>,
    S: Source<Item: Element>,
    C: Comparator<S::Item> + KernelParam,
    S::Short: SortBy<C, Tag>,
{
    let kernels = <S::Short as SortBy<C, Tag>>::kernels();
    let (run, out) = (run.into(), out.into());
    let len = run.items("sort_by", &x)?;
    check_output("sort_by", "out", out.len(), len)?;
    let out = out.into_slice(..len)?;
    if let Some(numbers) = Numbers::of::<S::Item, C>()
        && len >= run.tuning(Parameter::SortDigits, size_of::<S::Item>())?
        && let Some(keys) = x.buffer_bytes()
    {
        return numbers.sort("sort_by", run, keys, out.reinterpret()?);
    }
    first_of(kernels, run, x, order, out)
}

/// The kernels that [`first_of`] launches.
type SortKernels<S, C> = (Entry<merge_sort_tiles<S, C>>, Splits<S, C>, Entry<merge_tiles<InMemory<S>, InMemory<S>, C>>);

/// The kernels that [`first_of_pairs`] launches.
type SortPairsKernels<S, X, C> = (
    Entry<merge_sort_tiles_pairs<S, X, C>>,
    Splits<S, C>,
    Entry<merge_tiles_pairs<InMemory<S>, InMemory<S>, InMemory<X>, InMemory<X>, C>>,
);

type Splits<S, C> = Entry<merge_splits<InMemory<S>, InMemory<S>, C>>;
type InMemory<S> = Span<<S as Source>::Item>;

/// Sorts as [`sort_by`], but writes only the first items, as many as `out` has places.
pub(crate) fn first_of<I, S, C>(
    (sort, splits_kernel, merge): SortKernels<S, C>,
    run: Run<'_>,
    x: I,
    order: C,
    mut out: BufferSliceMut<'_, S::Item>,
) -> Result<()>
where
    I: InputArg<S>,
    S: Source<Item: Element>,
    C: Comparator<S::Item> + KernelParam,
{
    let stream = run.stream;
    let passes = Passes::of(&run, x.items(), out.len(), [size_of::<S::Item>(), 0])?;
    let [copied, more] = passes.copied();
    let bytes = Scratch::<S::Item>::bytes;
    let mut memory = run.memory(&[bytes_of::<u64>(passes.splits()), bytes(copied), bytes(more)])?;
    let mut parts = memory.parts();
    let mut splits = parts.take::<u64>(passes.splits())?;
    let mut copy = Scratch::take(&mut parts, copied)?;
    let mut more = Scratch::take(&mut parts, more)?;
    let mut memory = [copy.as_mut_slice()?, more.as_mut_slice()?];
    let (_, mut to) = passes.ends(0, &mut memory, &mut out);
    device::merge_sort_tiles::launch_entry(sort, stream, passes.dims(), x, &mut to, order)?;
    for pass in 1..=passes.count {
        let (from, mut to) = passes.ends(pass, &mut memory, &mut out);
        let (tiles, pass) = (passes.merges, passes.pass(pass));
        tiles.find_splits(splits_kernel, stream, (from, from), &mut splits, pass, order)?;
        let dims = tiles.dims_of_keys::<S::Item, C>();
        device::merge_tiles::launch_entry(merge, stream, dims, from, from, &mut to, &splits, pass, order)?;
    }
    Ok(())
}

algorithm! {
    /// Keys, values and orders that [`sort_pairs_by`] has kernels for.
    sort_pairs_by
}

/// Sorts pairs of a key and a value by the keys, with any comparator. The sort is stable. Otherwise this works as [`sort_by`].
///
/// Values are a buffer, or what [`input`](crate::input) computes. With `counting(0u32, len)`, the output says where each key was in the
/// input. Temporary memory includes a copy of the values. Tiles of four-byte keys and values have 4096 pairs instead of 8192, if each of
/// the smaller tiles then has a multiprocessor of its own.
///
/// Many numbers in memory are sorted by digits, as [`sort_pairs`](crate::algorithms::sort_pairs) does, if the order is `Less` or `Greater`,
/// and if the values are numbers in memory, too. For keys of two bytes or more, they may also be those of `counting` of `u32` or `u64`, which
/// take one more launch.
///
/// Ready for numbers with values of `i32`, `u32` and `f32`, with `Less` and `Greater`. For others, write
/// `instantiate!(kernel_primitives::algorithms::sort_pairs_by<MyKey, u32, MyOrder>);`.
///
/// | [same bits](crate::docs::guarantees#determinism-and-order) on every run | same bits on every device | order |
/// |---|---|---|
/// | yes: `net::properties::sort` | yes: `net::properties::sort` | stable: `algorithms::sorts::merge_sort::equal_keys_stay_in_their_order` |
///
/// CUB: `DeviceMergeSort::StableSortPairs`, `SortPairsCopy`. Thrust: `stable_sort_by_key`. Differences: any [`Comparator`], always stable,
/// out of place, and by digits where that is faster, as Thrust's.
///
/// ```
/// use kernel_primitives::algorithms::sort_pairs_by;
/// use kernel_primitives::functor::Less;
/// use kernel_primitives::Device;
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = Device::auto()?.stream()?;
/// let keys = stream.buffer_from(&[3u32, 1, 3])?;
/// let values = stream.buffer_from(&[0u32, 1, 2])?;
/// let (mut sorted, mut from) = (stream.buffer_zeroed::<u32>(3)?, stream.buffer_zeroed::<u32>(3)?);
/// sort_pairs_by(&stream, &keys, &values, Less, &mut sorted, &mut from)?;
/// assert_eq!((sorted.to_vec()?, from.to_vec()?), (vec![1, 3, 3], vec![1, 0, 2]));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Returns [`Error::LengthMismatch`](crate::Error::LengthMismatch) if `keys` and `values` have different lengths, and the errors of
/// [`sort_by`].
pub fn sort_pairs_by<'a, 'o, 'w, I, J, S, X, C, Tag>(
    run: impl Into<Run<'a>>,
    keys: I,
    values: J,
    order: C,
    keys_out: impl Into<BufferSliceMut<'o, S::Item>>,
    values_out: impl Into<BufferSliceMut<'w, X::Item>>,
) -> Result<()>
where
    I: InputArg<S>,
    J: InputArg<X>,
    S: Source<Item: Element>,
    X: Source<Item: Element>,
    C: Comparator<S::Item> + KernelParam,
    S::Short: SortPairsBy<X::Short, C, Tag>,
{
    let kernels = <S::Short as SortPairsBy<X::Short, C, Tag>>::kernels();
    let (run, out, values_out) = (run.into(), keys_out.into(), values_out.into());
    let len = run.items("sort_pairs_by", &keys)?;
    check_values("sort_pairs_by", len, values.items())?;
    check_output("sort_pairs_by", "keys_out", out.len(), len)?;
    check_output("sort_pairs_by", "values_out", values_out.len(), len)?;
    let (out, values_out) = (out.into_slice(..len)?, values_out.into_slice(..len)?);
    if let Some(numbers) = Numbers::of::<S::Item, C>()
        && len >= run.tuning(Parameter::SortDigits, size_of::<S::Item>())?
        && let Some(keys) = keys.buffer_bytes()
        && let Some(values) = Values::of(&values)
        && numbers.can_sort_pairs(len, values)
    {
        let out = (out.reinterpret()?, values_out.reinterpret()?);
        return numbers.sort_pairs("sort_pairs_by", run, (keys, values), out);
    }
    first_of_pairs(kernels, run, keys, values, order, (out, values_out))
}

/// Sorts as [`sort_pairs_by`], but writes only the first pairs, as many as the outputs have places. Both outputs must have the same length.
pub(crate) fn first_of_pairs<I, J, S, X, C>(
    (sort, splits_kernel, merge): SortPairsKernels<S, X, C>,
    run: Run<'_>,
    keys: I,
    values: J,
    order: C,
    (mut out, mut values_out): (BufferSliceMut<'_, S::Item>, BufferSliceMut<'_, X::Item>),
) -> Result<()>
where
    I: InputArg<S>,
    J: InputArg<X>,
    S: Source<Item: Element>,
    X: Source<Item: Element>,
    C: Comparator<S::Item> + KernelParam,
{
    let stream = run.stream;
    let passes = Passes::of(&run, keys.items(), out.len(), [size_of::<S::Item>(), size_of::<X::Item>()])?;
    let copied = passes.copied();
    let bytes = copied.map(|len| [Scratch::<S::Item>::bytes(len), Scratch::<X::Item>::bytes(len)]);
    let mut memory =
        run.memory(&[bytes_of::<u64>(passes.splits()), bytes[0][0], bytes[1][0], bytes[0][1], bytes[1][1]])?;
    let mut parts = memory.parts();
    let mut splits = parts.take::<u64>(passes.splits())?;
    let mut copy = Scratch::take(&mut parts, copied[0])?;
    let mut more = Scratch::take(&mut parts, copied[1])?;
    let mut values_copy = Scratch::take(&mut parts, copied[0])?;
    let mut more_values = Scratch::take(&mut parts, copied[1])?;
    let mut memory = [copy.as_mut_slice()?, more.as_mut_slice()?];
    let mut values_memory = [values_copy.as_mut_slice()?, more_values.as_mut_slice()?];
    let (_, mut to) = passes.ends(0, &mut memory, &mut out);
    let (_, mut values_to) = passes.ends(0, &mut values_memory, &mut values_out);
    device::merge_sort_tiles_pairs::launch_entry(
        sort,
        stream,
        passes.dims(),
        keys,
        values,
        &mut to,
        &mut values_to,
        order,
    )?;
    for pass in 1..=passes.count {
        let (from, mut to) = passes.ends(pass, &mut memory, &mut out);
        let (values_from, mut values_to) = passes.ends(pass, &mut values_memory, &mut values_out);
        let (tiles, pass) = (passes.merges, passes.pass(pass));
        tiles.find_splits(splits_kernel, stream, (from, from), &mut splits, pass, order)?;
        device::merge_tiles_pairs::launch_entry(
            merge,
            stream,
            tiles.dims(),
            from,
            from,
            values_from,
            values_from,
            &mut to,
            &mut values_to,
            &splits,
            pass,
            order,
        )?;
    }
    Ok(())
}

/// The passes of a sort. Pass 0 sorts tiles. Each later pass merges the runs of the previous pass in pairs.
struct Passes {
    len: usize,
    /// The number of first items to keep.
    keep: usize,
    /// Tiles of pass 0, and the shared memory that they take.
    shape: MergeSortShape,
    /// The number of passes after pass 0.
    count: usize,
    merges: MergeTiles,
}

impl Passes {
    fn of(run: &Run<'_>, len: usize, keep: usize, [key, value]: [usize; 2]) -> Result<Self> {
        let mut shape = MergeSortShape::of(key, value, run.shared_bytes());
        let processors = run.stream.device().properties().multiprocessors as usize;
        // A tile of pairs takes longer than the additional pass of merges that twice as many tiles need.
        if value > 0 && len > shape.tile && 2 * len.div_ceil(shape.tile) <= processors {
            shape = shape.halved(key, value);
        }
        let count = len.div_ceil(shape.tile).max(1).next_power_of_two().ilog2() as usize;
        Ok(Self { len, keep, shape, count, merges: MergeTiles::of(run, len, key, value)? })
    }

    /// The blocks of pass 0.
    fn dims(&self) -> Dims {
        grid(self.len.div_ceil(self.shape.tile), device::MERGE_SORT_THREADS).shared_bytes(self.shape.shared_bytes)
    }

    /// The lengths of the two copies. Passes write alternately to the first copy and to the output, or to the second copy if the output is
    /// too short.
    fn copied(&self) -> [usize; 2] {
        let len = |passes: usize| if self.count >= passes { self.len } else { 0 };
        [len(1), if self.keep < self.len { len(2) } else { 0 }]
    }

    fn splits(&self) -> usize {
        if self.count > 0 { self.merges.splits() } else { 0 }
    }

    fn pass(&self, pass: usize) -> MergePass {
        MergePass { run: self.shape.tile << (pass - 1), keep: self.keep }
    }

    /// What a pass reads and what it writes. The last pass writes to the output. Pass 0 reads the input instead.
    fn ends<'v, T: Element>(
        &self,
        pass: usize,
        [copy, more]: &'v mut [BufferSliceMut<'_, T>; 2],
        out: &'v mut BufferSliceMut<'_, T>,
    ) -> (BufferSlice<'v, T>, BufferSliceMut<'v, T>) {
        let in_turn = (self.count - pass).is_multiple_of(2);
        match (in_turn, self.keep < self.len) {
            (true, true) if pass < self.count => (copy.as_slice(), more.into()),
            (true, _) => (copy.as_slice(), out.into()),
            (false, true) => (more.as_slice(), copy.into()),
            (false, false) => (out.as_slice(), copy.into()),
        }
    }
}
