//! Histograms.
//!
//! One launch. A block counts in copies of the bins in shared memory, and adds their sums to the counts in global memory. If shared memory
//! cannot hold the bins, the block counts in global memory.

use crate::__algorithms::*;
use crate::__private::Entry;
use crate::algorithms::kernels::algorithm;
use crate::algorithms::run::Run;
use crate::algorithms::tuning::Parameter;
use crate::input::Source;
use crate::kernels::device::{self, Binnable, Binning, EvenBins, LevelBins};
use crate::simt::AtomicElement;
use crate::{BufferSlice, BufferSliceMut, ConvertTo, Dims, Element, Error, InputArg, KernelParam, Ordered, Result};

algorithm! {
    /// Inputs and counts that [`histogram_even`] has kernels for.
    histogram_even
}

/// Counts the items in each of `counts.len()` bins of equal width. The bins divide the range from `low`, which is included, to `high`,
/// which is not. Items outside the range and NaN are not counted.
///
/// Items are integers of 8 to 64 bits, or floats. For integers of up to 32 bits, `low` and `high` are `i64`; for integers of 64 bits they
/// are `i128`. So `0, 256` is the range of all values of a `u8`. For floats, they have the type of the items. An integer `x` is in bin `(x
/// - low) * bins / (high - low)`, computed exactly. A float is in bin `(x - low) * (bins / (high - low))`; each operation is rounded, in
/// `f32` for the half types. `counts` is `u32`, which wraps, or `u64`. Its previous contents are lost.
///
/// Cost: `counts` is cleared, and the input is read once. Up to 16384 bins (16380 on devices whose blocks have 64 KiB of shared memory) are
/// counted in shared memory, and more bins directly in `counts`. Up to 512 bins, and for items of one byte with any bins, the speed does
/// not depend on the items. With more bins, a block has room for fewer copies of the counters; with more than 2048, an input of many equal
/// items is slower for it. No temporary memory.
///
/// Ready for numbers with counts of `u32`. For others, write `instantiate!(kernel_primitives::algorithms::histogram_even<f32, u64>);`.
///
/// | [same bits](crate::docs::guarantees#determinism-and-order) on every run | same bits on every device | order |
/// |---|---|---|
/// | yes: `net::properties::histogram` | yes: `net::properties::histogram` | of the bins: `net::properties::histogram` |
///
/// CUB: `DeviceHistogram::HistogramEven`. Differences: one channel.
///
/// ```
/// use kernel_primitives::algorithms::histogram_even;
/// use kernel_primitives::Device;
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = Device::auto()?.stream()?;
/// let x = stream.buffer_from(&[0.5f32, 2.0, 9.9, 2.5, 10.0, -1.0])?;
/// let mut counts = stream.buffer_zeroed::<u32>(5)?;
/// histogram_even(&stream, &x, 0.0, 10.0, &mut counts)?;
/// assert_eq!(counts.to_vec()?, [1, 2, 0, 0, 1]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Returns [`Error::Bins`] if `counts` is empty, if `low` is not less than `high` (or one of them is NaN), if the type of the items cannot
/// represent `low` or `high` (for integers, `high` may be the number after the largest value), if `high - low` or
/// `bins / (high - low)` overflows for floats, or if there are more than 2^31 bins of floats. Returns the errors of a launch.
pub fn histogram_even<'a, 'o, I, S, C, Tag>(
    run: impl Into<Run<'a>>,
    x: I,
    low: <S::Item as Binnable>::Bound,
    high: <S::Item as Binnable>::Bound,
    counts: impl Into<BufferSliceMut<'o, C>>,
) -> Result<()>
where
    I: InputArg<S>,
    S: Source<Item: Binnable>,
    C: AtomicElement,
    u32: ConvertTo<C>,
    S::Short: HistogramEven<C, Tag>,
{
    let (tiles,) = <S::Short as HistogramEven<C, Tag>>::kernels();
    const NAME: &str = "histogram_even";
    let (run, counts) = (run.into(), counts.into());
    let bins = check_bins(NAME, counts.len())?;
    let Some(binning) = EvenBins::<S::Item>::new(low, high, bins) else {
        let item = std::any::type_name::<S::Item>();
        let reason = format!(
            "from {low} to {high} there is no range of {item} that {bins} bins divide, of a float 2^31 at most"
        );
        return Err(Error::Bins { algorithm: NAME, reason });
    };
    let none = run.stream.buffer_uninit::<S::Item>(0)?;
    histogram(NAME, tiles, run, x, none.as_slice(), binning, counts)
}

algorithm! {
    /// Inputs and counts that [`histogram_ranges`] has kernels for.
    histogram_ranges
}

/// Counts the items in each of the bins between levels. `counts[i]` is the number of items from `levels[i]`, which is included, to
/// `levels[i + 1]`, which is not. Items outside all bins and NaN are not counted.
///
/// The levels must ascend. A bin between equal levels is empty. If the levels do not ascend, it is unspecified which bins count which
/// items. Otherwise this works as [`histogram_even`], with a binary search in the levels for each item, or, for items of one byte, for each
/// value.
///
/// Ready for the same types. For others, write `instantiate!(kernel_primitives::algorithms::histogram_ranges<f32, u64>);`.
///
/// | [same bits](crate::docs::guarantees#determinism-and-order) on every run | same bits on every device | order |
/// |---|---|---|
/// | yes: `net::properties::histogram` | yes: `net::properties::histogram` | of the bins: `net::properties::histogram` |
///
/// CUB: `DeviceHistogram::HistogramRange`. Differences: one channel.
///
/// ```
/// use kernel_primitives::algorithms::histogram_ranges;
/// use kernel_primitives::Device;
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = Device::auto()?.stream()?;
/// let ages = stream.buffer_from(&[3, 17, 18, 40, 64, 65, 99])?;
/// let levels = stream.buffer_from(&[0, 18, 65])?;
/// let mut counts = stream.buffer_zeroed::<u32>(2)?;
/// histogram_ranges(&stream, &ages, &levels, &mut counts)?;
/// assert_eq!(counts.to_vec()?, [2, 3]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Returns [`Error::Bins`] if `counts` is empty, [`Error::LengthMismatch`] if `levels` does not have one item more than `counts`, and the
/// errors of a launch.
pub fn histogram_ranges<'a, 'l, 'o, I, S, C, Tag>(
    run: impl Into<Run<'a>>,
    x: I,
    levels: impl Into<BufferSlice<'l, S::Item>>,
    counts: impl Into<BufferSliceMut<'o, C>>,
) -> Result<()>
where
    I: InputArg<S>,
    S: Source<Item: Ordered>,
    C: AtomicElement,
    u32: ConvertTo<C>,
    S::Short: HistogramRanges<C, Tag>,
{
    let (tiles,) = <S::Short as HistogramRanges<C, Tag>>::kernels();
    const NAME: &str = "histogram_ranges";
    let (levels, counts) = (levels.into(), counts.into());
    let bins = check_bins(NAME, counts.len())?;
    if levels.len() != bins + 1 {
        return Err(Error::LengthMismatch {
            kernel: NAME.into(),
            first: "`counts`, with one more,".into(),
            first_len: bins + 1,
            second: "`levels`".into(),
            second_len: levels.len(),
        });
    }
    histogram(NAME, tiles, run.into(), x, levels, LevelBins, counts)
}

/// The largest number of items of a block, whose counters have 32 bits. A block may have one tile more.
const MOST_OF_BLOCK: usize = 1 << 31;

fn check_bins(algorithm: &'static str, bins: usize) -> Result<usize> {
    if bins == 0 {
        return Err(Error::Bins { algorithm, reason: "there are no bins".into() });
    }
    Ok(bins)
}

fn histogram<I, S, B, C>(
    algorithm: &str,
    kernel: Entry<histogram_tiles<S, B, C>>,
    run: Run<'_>,
    x: I,
    levels: BufferSlice<'_, S::Item>,
    binning: B,
    mut counts: BufferSliceMut<'_, C>,
) -> Result<()>
where
    I: InputArg<S>,
    S: Source<Item: Element>,
    B: Binning<S::Item> + KernelParam,
    C: AtomicElement,
    u32: ConvertTo<C>,
{
    let (stream, bytes, len) = (run.stream, size_of::<S::Item>(), run.items(algorithm, &x)?);
    counts.set_zero(stream)?;
    let counters = device::histogram_counters::<S::Item>(run.shared_bytes());
    let most = counters / counts.len();
    // One copy for each lane, if there is room.
    let copies = most.clamp(1, run.tuning(Parameter::HistogramCopies, bytes)?).ilog2();
    let tiles = len.div_ceil(device::HISTOGRAM_THREADS * device::HISTOGRAM_VECTORS * S::VECTOR);
    let blocks = blocks_of(len, tiles, run.blocks(Parameter::HistogramBlocks, bytes)?);
    let dims = Dims::new(blocks as u32, device::HISTOGRAM_THREADS as u32).shared_bytes(counters * size_of::<u32>());
    device::histogram_tiles::launch_entry(kernel, stream, dims, x, levels, &mut counts, binning, copies)
}

/// Returns the number of blocks for `tiles` tiles: the wanted number, or more, so that no block counts more items than 32 bits can hold.
fn blocks_of(len: usize, tiles: usize, wanted: usize) -> usize {
    tiles.min(wanted.max(len.div_ceil(MOST_OF_BLOCK)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_block_counts_more_items_than_32_bits_do() {
        for tile in [1usize << 11, 1 << 14] {
            for len in [1usize, 1 << 31, (1 << 32) + 1, 1 << 40, 1 << 48] {
                let tiles = len.div_ceil(tile);
                let blocks = blocks_of(len, tiles, 2);
                assert!(tiles.div_ceil(blocks) * tile <= u32::MAX as usize, "{len} items: {blocks} blocks");
            }
        }
    }
}
