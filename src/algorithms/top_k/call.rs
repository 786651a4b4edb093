//! The first `k` items in an order.
//!
//! Few items are the work of one block. Of many, those before a limit are found and sorted: see [`limit`](super::limit). If there are more
//! than 32 bits can number, or so few blocks that the limit would be late, `top_k_tiles` keeps the first `k` items of each block's share,
//! and `top_k_last` keeps the first `k` of these. If `k` is larger than a block can keep, a merge sort runs instead, which drops the items
//! after the first `k` of each run.

use crate::__algorithms::*;
use crate::__private::{Again, Entry};
use crate::algorithms::kernels::algorithm;
use crate::algorithms::merge_sort::call::{first_of, first_of_pairs};
use crate::algorithms::run::{Run, Scratch, bytes_of, check_output, check_values};
use crate::algorithms::tuning::Parameter;
use crate::functor::{Comparator, Direction, Turned};
use crate::input::Source;
use crate::kernels::device::{self, TopKRecord};
use crate::simt::WARP;
use crate::{BufferSliceMut, Dims, Element, Error, InputArg, Result, SortKey, Stream};

algorithm! {
    /// Inputs and orders that [`top_k`] has kernels for.
    top_k
}

/// Finds the first `k` items in an order, and sorts them. [`Greater`](crate::functor::Greater) finds the largest items, and
/// [`Less`](crate::functor::Less) the smallest.
///
/// The order is the total order of [`SortKey`], in which NaN is larger than all numbers. `out` may be longer than `k`: the rest of it stays
/// as it is.
///
/// Cost: up to a `k` of 1024, one read of the input. If the input has more than 30 Ki items (14 Ki items of four bytes on compute
/// capability 9.0), several blocks share it, and a second launch reads the parts of it again that have items before a limit. For items in
/// random order, there are about `k` such parts, of 256 to 1024 items. A small third launch sorts the items before the limit. These are up
/// to about twice `k` if the input is in random order, some thousands if it ascends or descends or all items are equal, and in the worst
/// case `k` of each block, of which there are up to two for each multiprocessor. For a larger `k`, a merge sort of tiles keeps the first
/// `k` items of each run. Temporary memory: some 12 bytes for each part, and for each of `k` items of each block; or, for a larger `k`, up
/// to two copies of the input.
///
/// Ready for numbers. For others, write `instantiate!(kernel_primitives::algorithms::top_k<MyKey, Greater>);`.
///
/// | [same bits](crate::docs::guarantees#determinism-and-order) on every run | same bits on every device | order |
/// |---|---|---|
/// | yes: `net::properties::top_k` | yes: `net::properties::top_k` | sorted: `net::properties::top_k` |
///
/// CUB: `DeviceTopK::MaxKeys`, `MinKeys`. Differences: sorted; NaN is larger than all numbers;
/// [`kernels::top_k_rows`](fn@crate::kernels::top_k_rows) finds those of each row.
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
/// Returns [`Error::TooFew`] if there are fewer than `k` items, [`Error::LengthMismatch`] if `out` is shorter than `k`,
/// [`Error::LaunchLimit`] if there are more than 2^44 items and `k` is at most 1024, and the errors of a launch and of an allocation.
pub fn top_k<'a, 'o, I, S, O, Tag>(
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
    S::Short: TopK<O, Tag>,
{
    let (tiles_kernel, last_kernel, bests_kernel, before_kernel, found_kernel, sort, splits, merge) =
        <S::Short as TopK<O, Tag>>::kernels();
    let (run, out) = (run.into(), out.into());
    let stream = run.stream;
    let len = run.items("top_k", &x)?;
    check("top_k", k, len)?;
    check_output("top_k", "out", out.len(), k)?;
    let mut out = out.into_slice(..k)?;
    if k == 0 {
        return Ok(());
    }
    if k > device::TOP_K_MOST {
        return first_of((sort, splits, merge), run, x, order, out);
    }
    let shares = Shares::of(&run, "top_k", len, size_of::<S::Item>())?;
    let turned = Turned::of::<S::Item, O>().0;
    if let Some(limit) = Limit::of::<S>(&run, &shares, len, k)? {
        return limit.find((bests_kernel, before_kernel), run, x, (k, turned), |stream, found, total| {
            device::top_k_found::launch_entry(found_kernel, stream, Limit::last(), found, total, &mut out, k, turned)
        });
    }
    let found = if shares.blocks > 1 { shares.blocks * k } else { 0 };
    let mut memory = run.memory(&[Scratch::<S::Item>::bytes(found), 0])?;
    let mut parts = memory.parts();
    let (mut keys, mut none) = (Scratch::take(&mut parts, found)?, parts.take::<u64>(0)?);
    let mut keys = keys.as_mut_slice()?;
    let Shares { tiles, more, .. } = shares;
    if found == 0 {
        return device::top_k_tiles::launch_entry(
            tiles_kernel,
            stream,
            shares.dims(),
            x,
            &mut out,
            &mut none,
            k,
            tiles,
            more,
            turned,
        );
    }
    device::top_k_tiles::launch_entry(
        tiles_kernel,
        stream,
        shares.dims(),
        x,
        &mut keys,
        &mut none,
        k,
        tiles,
        more,
        turned,
    )?;
    device::top_k_last::launch_entry(last_kernel, stream, last(), &keys, &mut out, k, turned)
}

algorithm! {
    /// Keys, values and orders that [`top_k_pairs`] has kernels for.
    top_k_pairs
}

/// Finds the first `k` keys in an order, sorts them, and returns them with their values. Of equal keys, it takes those that come first in
/// the input.
///
/// Otherwise this works as [`top_k`], except that a single block, too, needs a second launch. Values are a buffer, or what
/// [`input`](crate::input) computes: `counting(0u32, len)` gives the places of the keys. Only the values of the keys found are read.
///
/// Ready for numbers with `counting(0u32, len)`. For others, write `instantiate!(kernel_primitives::algorithms::top_k_pairs<MyKey, u32,
/// Greater>);`.
///
/// | [same bits](crate::docs::guarantees#determinism-and-order) on every run | same bits on every device | order |
/// |---|---|---|
/// | yes: `net::properties::top_k` | yes: `net::properties::top_k` | sorted; of equal keys those that come first in the input: `net::properties::top_k` |
///
/// CUB: `DeviceTopK::MaxPairs`, `MinPairs`. Differences: sorted, and of equal keys the first.
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
/// Returns [`Error::LengthMismatch`] if `keys` and `values` have different lengths, and the errors of [`top_k`].
pub fn top_k_pairs<'a, 'o, 'w, I, J, S, X, O, Tag>(
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
    S::Short: TopKPairs<X::Short, O, Tag>,
{
    let (tiles_kernel, last_kernel, bests_kernel, before_kernel, found_kernel, sort, splits, merge) =
        <S::Short as TopKPairs<X::Short, O, Tag>>::kernels();
    let (run, out, values_out) = (run.into(), keys_out.into(), values_out.into());
    let stream = run.stream;
    let len = run.items("top_k_pairs", &keys)?;
    check_values("top_k_pairs", len, values.items())?;
    check("top_k_pairs", k, len)?;
    check_output("top_k_pairs", "keys_out", out.len(), k)?;
    check_output("top_k_pairs", "values_out", values_out.len(), k)?;
    let (mut out, mut values_out) = (out.into_slice(..k)?, values_out.into_slice(..k)?);
    if k == 0 {
        return Ok(());
    }
    if k > device::TOP_K_MOST {
        return first_of_pairs((sort, splits, merge), run, keys, values, order, (out, values_out));
    }
    let shares = Shares::of(&run, "top_k_pairs", len, size_of::<S::Item>())?;
    let turned = Turned::of::<S::Item, O>().0;
    if let Some(limit) = Limit::of::<S>(&run, &shares, len, k)? {
        return limit.find((bests_kernel, before_kernel), run, keys, (k, turned), |stream, found, total| {
            device::top_k_found_pairs::launch_entry(
                found_kernel,
                stream,
                Limit::last(),
                found,
                total,
                values,
                &mut out,
                &mut values_out,
                k,
                turned,
            )
        });
    }
    let found = shares.blocks * k;
    let mut memory = run.memory(&[Scratch::<S::Item>::bytes(found), bytes_of::<u64>(found)])?;
    let mut parts = memory.parts();
    let (mut found, mut places) = (Scratch::take(&mut parts, found)?, parts.take::<u64>(found)?);
    let mut found = found.as_mut_slice()?;
    let Shares { tiles, more, .. } = shares;
    device::top_k_tiles::launch_entry(
        tiles_kernel,
        stream,
        shares.dims(),
        keys,
        &mut found,
        &mut places,
        k,
        tiles,
        more,
        turned,
    )?;
    device::top_k_last_pairs::launch_entry(
        last_kernel,
        stream,
        last(),
        &found,
        &places,
        values,
        &mut out,
        &mut values_out,
        k,
        turned,
    )
}

/// One block.
fn last() -> Dims {
    Dims::new(1, device::TOP_K_THREADS as u32)
}

/// Returns an error if there are fewer than `k` items.
fn check(algorithm: &'static str, k: usize, len: usize) -> Result<()> {
    if k <= len { Ok(()) } else { Err(Error::TooFew { algorithm, wanted: k, len }) }
}

/// The number of blocks, and the number of tiles of each block. The first `more` blocks have one tile more.
struct Shares {
    blocks: usize,
    tiles: usize,
    more: usize,
}

/// The largest number of tiles of a block, which counts its items in 32 bits.
const MOST_OF_BLOCK: usize = 1 << 20;

/// The largest number of items of all blocks.
const MOST_ITEMS: usize = device::TOP_K_BLOCKS * MOST_OF_BLOCK * device::TOP_K_TILE;

impl Shares {
    /// The shares of `len` keys of `bytes` bytes.
    fn of(run: &Run<'_>, algorithm: &str, len: usize, bytes: usize) -> Result<Self> {
        const { assert!(device::TOP_K_TILE >= device::TOP_K_MOST, "two tiles have as many items as are found") };
        run.check_items(algorithm, len, MOST_ITEMS)?;
        let tiles = len.div_ceil(device::TOP_K_TILE);
        let few = run.tuning(Parameter::TopKTiles, bytes)?;
        let most =
            run.blocks(Parameter::TopKBlocks, bytes)?.min(device::TOP_K_BLOCKS).max(tiles.div_ceil(MOST_OF_BLOCK));
        let blocks = (tiles / few).clamp(1, most);
        Ok(Self { blocks, tiles: tiles / blocks, more: tiles % blocks })
    }

    fn dims(&self) -> Dims {
        Dims::new(self.blocks as u32, device::TOP_K_THREADS as u32)
    }
}

/// How the first few are found by a limit: see [`limit`](super::limit).
struct Limit {
    /// The number of blocks that read the input, and of segments that they read.
    blocks: usize,
    segments: usize,
    /// The number of samples of each block, and of samples among which the limit is the last.
    samples: usize,
    needed: usize,
    /// A sample is one of so many threads.
    step: usize,
}

impl Limit {
    /// The most samples among which the limit is the last. The limit is the better, the more there are; but all of them are sorted.
    const NEEDED: usize = 128;

    /// The least number of samples of a block. The first keys are rarely all in one block, because rows of items are of blocks in turn.
    const SAMPLES: usize = 16;

    /// Returns how to find the first `k` of `len` keys, unless one block does it alone or there are too many for places of 32 bits.
    fn of<S: Source>(run: &Run<'_>, shares: &Shares, len: usize, k: usize) -> Result<Option<Self>> {
        let (vector, rows) = device::top_k_rows::<S>();
        let row = WARP as usize * vector;
        let most = run.blocks(Parameter::TopKBlocks, size_of::<S::Item>())?;
        let blocks = (len / (row * rows * device::TOP_K_BEST_WARPS)).min(most);
        // Of few blocks, nearly all first keys of threads would be needed, and the limit would come late.
        let few = blocks * device::TOP_K_BEST_THREADS < k + k / 8;
        if shares.blocks < 2 || blocks < 2 || few || len >= u32::MAX as usize {
            return Ok(None);
        }
        let warps = blocks * device::TOP_K_BEST_WARPS;
        let segments = len.div_ceil(row * rows * warps) * warps;
        let step = k.div_ceil(Self::NEEDED).max(1);
        let needed = k.div_ceil(step);
        Ok(Some(Self { blocks, segments, samples: needed.div_ceil(blocks).max(Self::SAMPLES), needed, step }))
    }

    /// The block of the last kernel.
    fn last() -> Dims {
        Dims::new(1, device::TOP_K_FOUND_THREADS as u32)
    }

    /// Finds keys among which the first `k` are, and calls a function with their records and their number.
    fn find<I: InputArg<S>, S: Source<Item: SortKey>>(
        &self,
        (bests, before): (Entry<device::top_k_bests<S>>, Entry<device::top_k_before<S>>),
        run: Run<'_>,
        x: I,
        (k, turned): (usize, u64),
        last: impl FnOnce(&Stream, &BufferSliceMut<'_, TopKRecord<S::Item>>, &BufferSliceMut<'_, u32>) -> Result<()>,
    ) -> Result<()> {
        let Self { blocks, segments, samples, needed, step } = *self;
        let dims = Dims::new(blocks as u32, device::TOP_K_BEST_THREADS as u32);
        let (stream, sizes) = (run.stream, [segments + blocks * samples, blocks * k]);
        let mut memory = run.memory(&[
            Scratch::<TopKRecord<S::Item>>::bytes(sizes[0]),
            Scratch::<TopKRecord<S::Item>>::bytes(sizes[1]),
            bytes_of::<u32>(1),
        ])?;
        let mut parts = memory.parts();
        let (mut records, mut found) = (Scratch::take(&mut parts, sizes[0])?, Scratch::take(&mut parts, sizes[1])?);
        let mut total = parts.take::<u32>(1)?;
        let (mut records, mut found) = (records.as_mut_slice()?, found.as_mut_slice()?);
        device::top_k_bests::launch_entry(
            bests,
            stream,
            dims,
            Again(&x),
            &mut records,
            &mut total,
            segments,
            samples,
            step,
            turned,
        )?;
        let warps = blocks * device::TOP_K_BEST_WARPS;
        device::top_k_before::launch_entry(
            before, stream, dims, x, &records, &mut found, &mut total, k, segments, warps, needed, turned,
        )?;
        last(stream, &found, &total)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Device;

    /// A block numbers its items in 32 bits, however many there are.
    #[test]
    fn a_block_has_no_more_items_than_32_bits_number() -> Result<()> {
        let stream = Device::emulator().stream()?;
        for len in [1, 1 << 31, (1 << 31) + 1, (1 << 32) - 1, 1 << 32, (1 << 40) + 12_345, 1 << 44] {
            for bytes in [1, 4, 8] {
                let Shares { blocks, tiles, more } = Shares::of(&Run::on(&stream), "top_k", len, bytes)?;
                let most = tiles + (more > 0) as usize;
                assert!(most * device::TOP_K_TILE <= 1 << 31, "{len} items: {most} tiles, {blocks} blocks");
                assert!(more < blocks && blocks <= device::TOP_K_BLOCKS, "{len} items: {blocks} blocks");
                assert_eq!(blocks * tiles + more, len.div_ceil(device::TOP_K_TILE));
            }
        }
        Ok(())
    }

    /// The last launch looks at the keys of a limited number of blocks.
    #[test]
    fn more_items_than_all_blocks_can_number_are_refused() -> Result<()> {
        let stream = Device::emulator().stream()?;
        for len in [(1 << 44) + 1, 1 << 45, 1 << 48] {
            let Err(error) = Shares::of(&Run::on(&stream), "top_k", len, 4) else { panic!("{len} items") };
            let Error::LaunchLimit { kernel, what, asked, limit, .. } = &error else { panic!("{error}") };
            assert_eq!((&kernel[..], *what), ("top_k", "the number of items"));
            assert_eq!((*asked, *limit), (len as u64, 1 << 44));
        }
        Ok(())
    }
}
