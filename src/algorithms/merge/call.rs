//! Merges.
//!
//! Two launches: `merge_splits` finds where each tile of the result begins in both inputs, and `merge_tiles` merges the tiles. If there are
//! few tiles, each finds its own beginning, and there is no first launch. `sort_by` and `top_k` use the same kernels.

use crate::__algorithms::*;
use crate::__private::{Again, Entry};
use crate::algorithms::kernels::algorithm;
use crate::algorithms::run::{Run, bytes_of, check_output, check_values, grid};
use crate::algorithms::tuning::Parameter;
use crate::functor::Comparator;
use crate::input::Source;
use crate::kernels::device::{self, MergePass};
use crate::{BufferSliceMut, Dims, Element, InputArg, KernelParam, Result, Stream};

algorithm! {
    /// Inputs and orders that [`merge`] has kernels for.
    merge
}

/// Merges two sorted inputs into one. The merge is stable: equal items keep their order within each input, and those of `a` come before
/// those of `b`.
///
/// Both inputs must be sorted by `order`, which is any [`Comparator`]. If they are not, or if `order` is not an order, the contents of
/// `out` are unspecified. `out` may be longer than both inputs together: the rest of it stays as it is.
///
/// Cost: one read of the items and one write, in tiles of 4096 items of four bytes. If there are more than 1024 tiles, a small launch first
/// finds where each tile begins in both inputs; it needs eight bytes of temporary memory for each tile. Otherwise there is no temporary
/// memory.
///
/// Ready for numbers with `Less` and `Greater`. For others, write
/// `instantiate!(kernel_primitives::algorithms::merge<MyItem, MyItem, MyOrder>);`.
///
/// | [same bits](crate::docs::guarantees#determinism-and-order) on every run | same bits on every device | order |
/// |---|---|---|
/// | yes: `net::properties::merge` | yes: `net::properties::merge` | stable, of equal items the first input's first: `algorithms::sorts::merge::equal_items_of_the_first_come_first_and_stay_in_order` |
///
/// CUB: `DeviceMerge::MergeKeys`. Thrust: `merge`.
///
/// ```
/// use kernel_primitives::algorithms::merge;
/// use kernel_primitives::functor::Less;
/// use kernel_primitives::Device;
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = Device::auto()?.stream()?;
/// let a = stream.buffer_from(&[1u32, 3, 5])?;
/// let b = stream.buffer_from(&[2u32, 3])?;
/// let mut out = stream.buffer_zeroed::<u32>(5)?;
/// merge(&stream, &a, &b, Less, &mut out)?;
/// assert_eq!(out.to_vec()?, [1, 2, 3, 3, 5]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Returns [`Error::LengthMismatch`](crate::Error::LengthMismatch) if `out` is shorter than both inputs together, and the errors of a
/// launch and of an allocation.
pub fn merge<'a, 'o, I, J, S, T, C, Tag>(
    run: impl Into<Run<'a>>,
    a: I,
    b: J,
    order: C,
    out: impl Into<BufferSliceMut<'o, S::Item>>,
) -> Result<()>
where
    I: InputArg<S>,
    J: InputArg<T>,
    S: Source<Item: Element>,
    T: Source<Item = S::Item>,
    C: Comparator<S::Item> + KernelParam,
    S::Short: Merge<T::Short, C, Tag>,
{
    let (splits_kernel, merge) = <S::Short as Merge<T::Short, C, Tag>>::kernels();
    let (run, out) = (run.into(), out.into());
    let stream = run.stream;
    let len = run.items("merge", &a)? + run.items("merge", &b)?;
    let tiles = MergeTiles::of(&run, len, size_of::<S::Item>(), 0)?;
    check_output("merge", "out", out.len(), tiles.len)?;
    let mut out = out.into_slice(..tiles.len)?;
    let mut memory = run.memory(&[bytes_of::<u64>(tiles.splits())])?;
    let mut splits = memory.parts().take::<u64>(tiles.splits())?;
    tiles.find_splits(splits_kernel, stream, (Again(&a), Again(&b)), &mut splits, MergePass::INPUTS, order)?;
    let dims = tiles.dims_of_keys::<S::Item, C>();
    device::merge_tiles::launch_entry(merge, stream, dims, a, b, &mut out, &splits, MergePass::INPUTS, order)
}

algorithm! {
    /// Keys, values and orders that [`merge_pairs`] has kernels for.
    merge_pairs
}

/// Merges two inputs that are sorted by their keys. Each key has a value, which moves with it. The merge is stable. Otherwise this works as
/// [`merge`].
///
/// Ready for numbers with values of `i32`, `u32` and `f32`, with `Less` and `Greater`. For others, write
/// `instantiate!(kernel_primitives::algorithms::merge_pairs<MyKey, MyKey, u32, u32, MyOrder>);`.
///
/// | [same bits](crate::docs::guarantees#determinism-and-order) on every run | same bits on every device | order |
/// |---|---|---|
/// | yes: `net::properties::merge` | yes: `net::properties::merge` | stable, of equal keys the first input's first: `algorithms::sorts::merge::equal_items_of_the_first_come_first_and_stay_in_order` |
///
/// CUB: `DeviceMerge::MergePairs`. Thrust: `merge_by_key`.
///
/// ```
/// use kernel_primitives::algorithms::merge_pairs;
/// use kernel_primitives::functor::Less;
/// use kernel_primitives::Device;
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = Device::auto()?.stream()?;
/// let (a, b) = (stream.buffer_from(&[1u32, 3])?, stream.buffer_from(&[2u32, 3])?);
/// let (x, y) = (stream.buffer_from(&[10u32, 30])?, stream.buffer_from(&[20u32, 31])?);
/// let (mut keys, mut values) = (stream.buffer_zeroed::<u32>(4)?, stream.buffer_zeroed::<u32>(4)?);
/// merge_pairs(&stream, (&a, &x), (&b, &y), Less, &mut keys, &mut values)?;
/// assert_eq!((keys.to_vec()?, values.to_vec()?), (vec![1, 2, 3, 3], vec![10, 20, 30, 31]));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Returns [`Error::LengthMismatch`](crate::Error::LengthMismatch) if an input does not have as many values as keys, and the errors of
/// [`merge`].
#[allow(clippy::type_complexity, reason = "pairs")]
pub fn merge_pairs<'a, 'o, 'w, I, J, U, W, S, T, X, Y, C, Tag>(
    run: impl Into<Run<'a>>,
    (a, a_values): (I, U),
    (b, b_values): (J, W),
    order: C,
    keys_out: impl Into<BufferSliceMut<'o, S::Item>>,
    values_out: impl Into<BufferSliceMut<'w, X::Item>>,
) -> Result<()>
where
    I: InputArg<S>,
    J: InputArg<T>,
    U: InputArg<X>,
    W: InputArg<Y>,
    S: Source<Item: Element>,
    T: Source<Item = S::Item>,
    X: Source<Item: Element>,
    Y: Source<Item = X::Item>,
    C: Comparator<S::Item> + KernelParam,
    S::Short: MergePairs<T::Short, X::Short, Y::Short, C, Tag>,
{
    let (splits_kernel, merge) = <S::Short as MergePairs<T::Short, X::Short, Y::Short, C, Tag>>::kernels();
    let (run, keys_out, values_out) = (run.into(), keys_out.into(), values_out.into());
    let stream = run.stream;
    check_values("merge_pairs", a.items(), a_values.items())?;
    check_values("merge_pairs", b.items(), b_values.items())?;
    let len = run.items("merge_pairs", &a)? + run.items("merge_pairs", &b)?;
    let tiles = MergeTiles::of(&run, len, size_of::<S::Item>(), size_of::<X::Item>())?;
    check_output("merge_pairs", "keys_out", keys_out.len(), tiles.len)?;
    check_output("merge_pairs", "values_out", values_out.len(), tiles.len)?;
    let (mut keys_out, mut values_out) = (keys_out.into_slice(..tiles.len)?, values_out.into_slice(..tiles.len)?);
    let mut memory = run.memory(&[bytes_of::<u64>(tiles.splits())])?;
    let mut splits = memory.parts().take::<u64>(tiles.splits())?;
    tiles.find_splits(splits_kernel, stream, (Again(&a), Again(&b)), &mut splits, MergePass::INPUTS, order)?;
    let out = (&mut keys_out, &mut values_out);
    device::merge_tiles_pairs::launch_entry(
        merge,
        stream,
        tiles.dims(),
        a,
        b,
        a_values,
        b_values,
        out.0,
        out.1,
        &splits,
        MergePass::INPUTS,
        order,
    )
}

/// The tiles of one pass of merges.
#[derive(Clone, Copy)]
pub(crate) struct MergeTiles {
    /// Items of the result.
    pub(crate) len: usize,
    /// Items of a tile.
    pub(crate) tile: usize,
    /// The largest number of tiles that search for their own parts of the runs. That many tiles run at the same time, so that the search
    /// takes no longer than a launch.
    searching: usize,
}

impl MergeTiles {
    /// The tiles of `len` items, with keys of `key` bytes and values of `value` bytes.
    pub(crate) fn of(run: &Run<'_>, len: usize, key: usize, value: usize) -> Result<Self> {
        let searching = run.tuning(Parameter::MergeSearching, key)?;
        Ok(Self { len, tile: device::merge_tile_items(key, value), searching })
    }

    fn tiles(self) -> usize {
        self.len.div_ceil(self.tile)
    }

    /// The number of tiles whose beginnings are found by a separate launch.
    pub(crate) fn splits(self) -> usize {
        if self.tiles() > self.searching { self.tiles() } else { 0 }
    }

    /// Finds where tiles begin, and writes that to `splits`, which has [as many places](Self::splits). If it has no places, there is no
    /// launch.
    pub(crate) fn find_splits<S, T, C>(
        self,
        kernel: Entry<merge_splits<S, T, C>>,
        stream: &Stream,
        (a, b): (impl InputArg<S>, impl InputArg<T>),
        splits: &mut BufferSliceMut<'_, u64>,
        pass: MergePass,
        order: C,
    ) -> Result<()>
    where
        S: Source<Item: Element>,
        T: Source<Item = S::Item>,
        C: Comparator<S::Item> + KernelParam,
    {
        if splits.is_empty() {
            return Ok(());
        }
        let dims = grid(self.tiles().div_ceil(device::MERGE_SPLIT_THREADS), device::MERGE_SPLIT_THREADS);
        device::merge_splits::launch_entry(kernel, stream, dims, a, b, splits, pass, self.tile, order)
    }

    /// The blocks of [`merge_tiles`](device::merge_tiles).
    pub(crate) fn dims_of_keys<K: Element, C: Comparator<K>>(self) -> Dims {
        grid(self.tiles(), device::merge_threads::<K, C>())
    }

    /// The blocks of [`merge_tiles_pairs`](device::merge_tiles_pairs), and of merges of segments.
    pub(crate) fn dims(self) -> Dims {
        grid(self.tiles(), device::MERGE_THREADS)
    }
}

#[cfg(test)]
mod tests;
