//! The first few of many.

use super::merge::check_values;
use super::merge_sort::{first_of, first_of_pairs};
use super::run::{Run, check_output};
use super::tuning::Parameter;
use crate::__private::Instantiated;
use crate::functor::{Comparator, Direction};
use crate::input::{Source, Span};
use crate::kernels::device;
use crate::{BufferSliceMut, Dims, Element, Error, InputArg, Result, SortKey};

/// Finds the first `k` items in an order, sorted: the largest by [`Greater`](crate::functor::Greater), the smallest by
/// [`Less`](crate::functor::Less).
///
/// The order is the total one of [`SortKey`]: NaN counts as larger than all. `out` may be longer than `k`: the rest of it stays as it is.
///
/// Cost: up to a `k` of 1024, one read of the input and, if that has more than 32 Ki items, a small second launch,
/// which looks at `k` items for each of two blocks a multiprocessor. Whatever the input is: items that are all equal
/// are as fast as any, and so are those that ascend or descend. Beyond that `k`, a merge sort of tiles that then keeps
/// `k` of each run. Temporary memory: for what the second launch looks at; or for two copies of the input.
///
/// For types of one's own: `instantiate!` of [`top_k_tiles`](struct@device::top_k_tiles),
/// [`top_k_last`](struct@device::top_k_last), and what [`sort_by`](super::sort_by) names.
///
/// CUB: `DeviceTopK::MaxKeys`, `MinKeys`.
///
/// ```
/// use kernel_primitives::algorithms::top_k;
/// use kernel_primitives::functor::Greater;
/// use kernel_primitives::Device;
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = Device::auto()?.stream()?;
/// let x = stream.buffer_from(&[3.0f32, 1.0, 4.0, 1.0, 5.0])?;
/// let mut largest = stream.buffer_zeroed::<f32>(2)?;
/// top_k(&stream, &x, 2, Greater, &mut largest)?;
/// assert_eq!(largest.to_vec()?, [5.0, 4.0]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::TooFew`] if there are fewer than `k` items; `out` is shorter than `k`; and those of a launch and of an allocation.
pub fn top_k<'a, 'o, I, S, O, Tiles, Last, Sort, Splits, Merge>(
    run: impl Into<Run<'a>>,
    x: I,
    k: usize,
    order: O,
    out: impl Into<BufferSliceMut<'o, S::Item>>,
) -> Result<()>
where
    I: InputArg<S>,
    S: Source<Item: SortKey>,
    O: Direction + Comparator<S::Item>,
    device::top_k_tiles<S, O>: Instantiated<Tiles>,
    device::top_k_last<S::Item, O>: Instantiated<Last>,
    device::merge_sort_tiles<S, O>: Instantiated<Sort>,
    device::merge_splits<Span<S::Item>, Span<S::Item>, O>: Instantiated<Splits>,
    device::merge_tiles<Span<S::Item>, Span<S::Item>, O>: Instantiated<Merge>,
{
    let (run, out) = (run.into(), out.into());
    let stream = run.stream;
    check("top_k", k, x.items(), out.len())?;
    let mut out = out.into_slice(..k)?;
    if k == 0 {
        return Ok(());
    }
    if k > device::TOP_K_MOST {
        return first_of(run, x, order, out);
    }
    let shares = Shares::of(&run, x.items(), size_of::<S::Item>())?;
    let found = if shares.blocks > 1 { shares.blocks * k } else { 0 };
    let mut memory = run.memory(&[found * size_of::<S::Item>(), 0])?;
    let mut parts = memory.parts();
    let (mut keys, mut none) = (parts.take::<S::Item>(found)?, parts.take::<u64>(0)?);
    let Shares { tiles, more, .. } = shares;
    if found == 0 {
        return device::top_k_tiles::<S, O>::launch(
            stream,
            shares.dims(),
            x,
            &mut out,
            &mut none,
            k,
            tiles,
            more,
            order,
        );
    }
    device::top_k_tiles::<S, O>::launch(stream, shares.dims(), x, &mut keys, &mut none, k, tiles, more, order)?;
    device::top_k_last::<S::Item, O>::launch(stream, last(), &keys, &mut out, k, order)
}

/// Finds the first `k` keys in an order, sorted, with their values; of equal keys those that come first in the input.
///
/// As [`top_k`]. Values are anything that [`input`](crate::input) makes: `counting(0u32, len)` gives the places of the
/// keys. Only those of the keys found are looked at.
///
/// For types of one's own: `instantiate!` of [`top_k_tiles`](struct@device::top_k_tiles),
/// [`top_k_last_pairs`](struct@device::top_k_last_pairs), and what [`sort_pairs_by`](super::sort_pairs_by) names.
///
/// CUB: `DeviceTopK::MaxPairs`, `MinPairs`.
///
/// ```
/// use kernel_primitives::algorithms::top_k_pairs;
/// use kernel_primitives::functor::Greater;
/// use kernel_primitives::input::counting;
/// use kernel_primitives::Device;
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = Device::auto()?.stream()?;
/// let x = stream.buffer_from(&[5.0f32, 1.0, 4.0, 1.0, 5.0])?;
/// let (mut largest, mut places) = (stream.buffer_zeroed::<f32>(3)?, stream.buffer_zeroed::<u32>(3)?);
/// top_k_pairs(&stream, &x, counting(0u32, 5), 3, Greater, &mut largest, &mut places)?;
/// assert_eq!((largest.to_vec()?, places.to_vec()?), (vec![5.0, 5.0, 4.0], vec![0, 4, 2]));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// As [`top_k`]; and unless there are as many values as keys.
pub fn top_k_pairs<'a, 'o, 'w, I, J, S, X, O, Tiles, Last, Sort, Splits, Merge>(
    run: impl Into<Run<'a>>,
    keys: I,
    values: J,
    k: usize,
    order: O,
    keys_out: impl Into<BufferSliceMut<'o, S::Item>>,
    values_out: impl Into<BufferSliceMut<'w, X::Item>>,
) -> Result<()>
where
    I: InputArg<S>,
    J: InputArg<X>,
    S: Source<Item: SortKey>,
    X: Source<Item: Element>,
    O: Direction + Comparator<S::Item>,
    device::top_k_tiles<S, O>: Instantiated<Tiles>,
    device::top_k_last_pairs<S::Item, X, O>: Instantiated<Last>,
    device::merge_sort_tiles_pairs<S, X, O>: Instantiated<Sort>,
    device::merge_splits<Span<S::Item>, Span<S::Item>, O>: Instantiated<Splits>,
    device::merge_tiles_pairs<Span<S::Item>, Span<S::Item>, Span<X::Item>, Span<X::Item>, O>: Instantiated<Merge>,
{
    let (run, out, values_out) = (run.into(), keys_out.into(), values_out.into());
    let stream = run.stream;
    check_values("top_k_pairs", keys.items(), values.items())?;
    check("top_k_pairs", k, keys.items(), out.len())?;
    check_output("top_k_pairs", values_out.len(), k)?;
    let (mut out, mut values_out) = (out.into_slice(..k)?, values_out.into_slice(..k)?);
    if k == 0 {
        return Ok(());
    }
    if k > device::TOP_K_MOST {
        return first_of_pairs(run, keys, values, order, (out, values_out));
    }
    let shares = Shares::of(&run, keys.items(), size_of::<S::Item>())?;
    let found = shares.blocks * k;
    let mut memory = run.memory(&[found * size_of::<S::Item>(), found * size_of::<u64>()])?;
    let mut parts = memory.parts();
    let (mut found, mut places) = (parts.take::<S::Item>(found)?, parts.take::<u64>(found)?);
    let Shares { tiles, more, .. } = shares;
    device::top_k_tiles::<S, O>::launch(stream, shares.dims(), keys, &mut found, &mut places, k, tiles, more, order)?;
    device::top_k_last_pairs::<S::Item, X, O>::launch(
        stream,
        last(),
        &found,
        &places,
        values,
        &mut out,
        &mut values_out,
        k,
        order,
    )
}

/// One block.
fn last() -> Dims {
    Dims::new(1, device::TOP_K_THREADS as u32)
}

/// An error unless there are `k` items, and places for them.
fn check(algorithm: &'static str, k: usize, len: usize, output: usize) -> Result<()> {
    if k > len {
        return Err(Error::TooFew { algorithm, wanted: k, len });
    }
    check_output(algorithm, output, k)
}

/// How many blocks there are, and tiles of each: of the first `more` one more.
struct Shares {
    blocks: usize,
    tiles: usize,
    more: usize,
}

impl Shares {
    /// Those of `len` keys of so many bytes.
    fn of(run: &Run<'_>, len: usize, bytes: usize) -> Result<Self> {
        const { assert!(device::TOP_K_TILE >= device::TOP_K_MOST, "two tiles have as many items as are found") };
        let tiles = len.div_ceil(device::TOP_K_TILE);
        let few = run.tuning(Parameter::TopKTiles, bytes)?;
        let blocks = (tiles / few).clamp(1, run.blocks(Parameter::TopKBlocks, bytes)?);
        Ok(Self { blocks, tiles: tiles / blocks, more: tiles % blocks })
    }

    fn dims(&self) -> Dims {
        Dims::new(self.blocks as u32, device::TOP_K_THREADS as u32)
    }
}
