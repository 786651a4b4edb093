//! Histograms over devices: each device counts its items, and the first device adds the counts.

use crate::algorithms::{HistogramEven, HistogramRanges};
use crate::expr::{Reductions, SplitTensor, Summed, Tensor};
use crate::input::{Source, Span};
use crate::kernels::device::Binnable;
use crate::simt::AtomicElement;
use crate::{Buffer, ConvertTo, Element, Ordered, Result, SplitBuffer, Stream, algorithms};

/// Counts the items of all devices in each of `bins` bins of equal width between `low` and `high`. The counts are on the first device.
///
/// It takes the types of items and counts of [`algorithms::histogram_even`].
///
/// Cost: that of [`algorithms::histogram_even`] on each device, at the same time. Then the counts of each device go to the first device,
/// which adds them.
///
/// ```
/// use kernel_primitives::{Devices, Split, SplitBuffer, split};
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let devices = Split::even(&Devices::emulated(2)?)?;
/// let x = SplitBuffer::from_slice(&devices, &[0.5f32, 2.0, 9.9, 2.5, 10.0, -1.0])?;
/// let counts = split::histogram_even::<_, u32, _>(&x, 0.0, 10.0, 5)?;
/// assert_eq!(counts.to_vec()?, [1, 2, 0, 0, 1]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Returns the errors of [`algorithms::histogram_even`].
pub fn histogram_even<T, C, Tag>(x: &SplitBuffer<T>, low: T::Bound, high: T::Bound, bins: usize) -> Result<Tensor<C>>
where
    T: Element + Binnable,
    C: AtomicElement + Summed,
    u32: ConvertTo<C>,
    Span<T>: Source<Item = T, Short: HistogramEven<C, Tag>>,
{
    summed(x, bins, |device, stream, counts| algorithms::histogram_even(stream, x.part(device), low, high, counts))
}

/// Counts the items of all devices in each of the bins between `levels`, which must ascend. The counts are on the first device.
///
/// It takes the types of items and counts of [`algorithms::histogram_ranges`]; the levels are on the host. Its cost is that of
/// [`histogram_even`].
///
/// ```
/// use kernel_primitives::{Devices, Split, SplitBuffer, split};
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let devices = Split::even(&Devices::emulated(2)?)?;
/// let ages = SplitBuffer::from_slice(&devices, &[3, 17, 18, 40, 64, 65, 99])?;
/// let counts = split::histogram_ranges::<_, u32, _>(&ages, &[0, 18, 65])?;
/// assert_eq!(counts.to_vec()?, [2, 3]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Returns the errors of [`algorithms::histogram_ranges`].
pub fn histogram_ranges<T, C, Tag>(x: &SplitBuffer<T>, levels: &[T]) -> Result<Tensor<C>>
where
    T: Element + Ordered + HistogramRanges<C, Tag>,
    C: AtomicElement + Summed,
    u32: ConvertTo<C>,
{
    summed(x, levels.len().saturating_sub(1), |device, stream, counts| {
        algorithms::histogram_ranges(stream, x.part(device), &stream.buffer_from(levels)?, counts)
    })
}

/// Adds the counts of all devices.
fn summed<T: Element, C: Element + Summed>(
    x: &SplitBuffer<T>,
    bins: usize,
    count: impl Fn(usize, &Stream, &mut Buffer<C>) -> Result<()>,
) -> Result<Tensor<C>> {
    let mut rows = Vec::new();
    for (device, stream) in x.split().streams().iter().enumerate() {
        let mut counts = stream.buffer_uninit(bins)?;
        count(device, stream, &mut counts)?;
        rows.push(counts);
    }
    let all = SplitTensor::of_rows(x.split(), bins, rows)?.to_tensor(&x.split().streams()[0])?;
    all.sum().axes(&[0]).tensor()
}
