//! Splits: rows over several devices.

mod buffer;

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

pub use self::buffer::{Move, SplitBuffer, moves};
use crate::devices::Devices;
use crate::stream::Stream;
use crate::{Error, Result};

/// The share of the largest weight, rounded down to a power of two. All other shares are in proportion, and at least 1.
const UNIT_SHARE: u64 = 1 << 40;

/// A rule for splitting rows over devices. It has a stream and a weight for each device. A clone is cheap.
///
/// Each device has a range of rows, in the order of the devices. The length of the range is in proportion to the device's weight. If there
/// are fewer rows than devices, some devices have no rows. A split gives the same ranges for the same number of rows.
///
/// ```
/// use kernel_primitives::{Devices, Split};
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let devices = Devices::emulated(3)?;
/// let even = Split::even(&devices)?;
/// assert_eq!(even.ranges(10).collect::<Vec<_>>(), [0..3, 3..6, 6..10]);
/// let weighted = Split::weighted(&devices, &[1.0, 2.0, 1.0])?;
/// assert_eq!(weighted.ranges(8).collect::<Vec<_>>(), [0..2, 2..6, 6..8]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Split(Arc<Parts>);

struct Parts {
    streams: Vec<Stream>,
    /// The sum of the shares before each device, and the sum of all shares.
    before: Vec<u64>,
}

impl Split {
    /// Creates a split with equal weights, and a new stream on each device.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Device::stream`](crate::Device::stream).
    pub fn even(devices: &Devices) -> Result<Self> {
        Self::weighted(devices, &vec![1.0; devices.len()])
    }

    /// Creates a split with these weights, and a new stream on each device.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Split`] if the numbers of weights and devices differ, or if a weight is zero, negative or not finite, and the
    /// errors of [`Device::stream`](crate::Device::stream).
    pub fn weighted(devices: &Devices, weights: &[f64]) -> Result<Self> {
        let shares = shares("`Split::weighted`", devices.len(), weights)?;
        Ok(Self::new(devices.streams()?, shares))
    }

    /// Creates a split whose weights are the measured speeds of copies in each device's memory, and a new stream on each device. The speed
    /// of memory limits most work. Devices of the emulator have equal weights.
    ///
    /// Each GPU copies 64 MiB a few times, which takes 128 MiB of memory. The device keeps this memory for later buffers, as it does with
    /// all freed memory.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Allocation`] if a device does not have the memory, and the errors of [`even`](Self::even).
    pub fn measured(devices: &Devices) -> Result<Self> {
        let streams = devices.streams()?;
        let weights = streams.iter().map(bandwidth).collect::<Result<Vec<_>>>()?;
        let shares = shares("`Split::measured`", streams.len(), &weights)?;
        Ok(Self::new(streams, shares))
    }

    /// Creates a split over the devices of these streams, with these weights. Work is enqueued on these streams.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`weighted`](Self::weighted) and of [`Devices::new`]. Two streams of one device are an error.
    pub fn of_streams(streams: impl IntoIterator<Item = Stream>, weights: &[f64]) -> Result<Self> {
        let (streams, call): (Vec<Stream>, _) = (streams.into_iter().collect(), "`Split::of_streams`");
        Devices::listed_by(call, streams.iter().map(|stream| stream.device().clone()))?;
        let shares = shares(call, streams.len(), weights)?;
        Ok(Self::new(streams, shares))
    }

    fn new(streams: Vec<Stream>, shares: Vec<u64>) -> Self {
        let mut sum = 0;
        let sums = shares.into_iter().map(|share| {
            sum += share;
            sum
        });
        let before = [0].into_iter().chain(sums).collect();
        Self(Arc::new(Parts { streams, before }))
    }

    /// The streams, one for each device.
    pub fn streams(&self) -> &[Stream] {
        &self.0.streams
    }

    /// The range of each device, for this number of rows.
    pub fn ranges(&self, rows: usize) -> impl Iterator<Item = Range<usize>> + use<> {
        let bounds = self.bounds(rows);
        (1..bounds.len()).map(move |end| bounds[end - 1]..bounds[end])
    }

    /// The first row of each device, for this number of rows, followed by the number of rows.
    #[doc(hidden)]
    pub fn bounds(&self, rows: usize) -> Vec<usize> {
        let before = &self.0.before;
        let all = u128::from(before[before.len() - 1]);
        // At most 2^64 rows, and 2^41 for each of the devices.
        let bound = |before: &u64| (rows as u128 * u128::from(*before) / all) as usize;
        before.iter().map(bound).collect()
    }

    /// Whether both splits have the same devices in the same order.
    #[doc(hidden)]
    pub fn has_devices_of(&self, other: &Self) -> bool {
        let (a, b) = (self.streams(), other.streams());
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.device().same_as(b.device()))
    }

    /// A text with the first few ranges and their devices.
    #[doc(hidden)]
    pub fn describe(&self, bounds: &[usize]) -> String {
        const MOST: usize = 8;
        let ranges = bounds.windows(2).zip(self.streams()).take(MOST);
        let words = ranges.map(|(bounds, stream)| format!("{}..{} on {}", bounds[0], bounds[1], stream.device()));
        let words = words.collect::<Vec<_>>().join(", ");
        let all = self.streams().len();
        if all > MOST { format!("{words}, … ({all} devices)") } else { words }
    }

    /// Takes the faults that kernels on the streams have had so far, and returns the first. It does not wait.
    #[doc(hidden)]
    pub fn check_faults(&self) -> Result<()> {
        let mut all = Ok(());
        for stream in self.streams() {
            let faultless = stream.0.check_fault();
            all = all.and(faultless);
        }
        all
    }

    /// Waits for the work on all streams.
    ///
    /// On GPUs, each stream has the [faults](Stream#faults) of its own kernels. A copy from another device does not return that device's
    /// faults.
    ///
    /// # Errors
    ///
    /// Returns the first fault of a kernel on one of the streams, after all streams have ended, and the errors of [`Stream::synchronize`].
    pub fn synchronize(&self) -> Result<()> {
        let mut all = Ok(());
        for stream in self.streams() {
            let done = stream.synchronize();
            all = all.and(done);
        }
        all
    }
}

/// `Split(device 0 of the emulator: 1, device 1 of the emulator: 0.5)`. The weights are scaled so that the largest is 1.
impl fmt::Debug for Split {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shares = || self.0.before.windows(2).map(|before| before[1] - before[0]);
        let largest = shares().max().unwrap_or(UNIT_SHARE);
        f.write_str("Split(")?;
        for (at, (stream, share)) in self.streams().iter().zip(shares()).enumerate() {
            let weight = share as f64 / largest as f64;
            write!(f, "{}{}: {weight}", if at > 0 { ", " } else { "" }, stream.device())?;
        }
        f.write_str(")")
    }
}

/// Bytes that are copied to measure a device.
const MEASURED: usize = 64 << 20;

/// Copies that a device can make in a second; 1 for a device of the emulator.
fn bandwidth(stream: &Stream) -> Result<f64> {
    if !stream.device().is_gpu() {
        return Ok(1.0);
    }
    let (x, mut y) = (stream.buffer_zeroed::<u8>(MEASURED)?, stream.buffer_uninit::<u8>(MEASURED)?);
    let mut least = f64::INFINITY;
    for _ in 0..5 {
        let start = stream.record()?;
        y.as_mut_slice().copy_from_device(stream, x.as_slice())?;
        let time = stream.record()?.since(&start)?.as_secs_f64();
        // A clock that is too coarse gives no weight.
        least = least.min(time.max(1e-9));
    }
    Ok(1.0 / least)
}

/// Checks the weights, and computes the shares of the devices.
fn shares(call: &'static str, devices: usize, weights: &[f64]) -> Result<Vec<u64>> {
    let refuse = |reason| Err(Error::Split { call, reason });
    if weights.len() != devices {
        return refuse(format!("there are {} weights for {devices} devices", weights.len()));
    }
    for (at, &weight) in weights.iter().enumerate() {
        if !(weight.is_finite() && weight > 0.0) {
            return refuse(format!("weight {at} is {weight}, and not a positive number"));
        }
    }
    let largest = weights.iter().copied().fold(0.0, f64::max);
    // As a multiple of the least positive number, each subnormal number is normal.
    let scale = if largest < f64::MIN_POSITIVE { (1u64 << 52) as f64 } else { 1.0 };
    // The largest without its fraction: by a power of two, quotients are exact.
    let unit = f64::from_bits((largest * scale).to_bits() & f64::INFINITY.to_bits());
    let share = |weight: &f64| ((weight * scale / unit * UNIT_SHARE as f64).round() as u64).max(1);
    Ok(weights.iter().map(share).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(weights: &[f64]) -> Split {
        let shares = shares("a test", weights.len(), weights).expect("weights");
        let devices = Devices::emulated(weights.len()).expect("devices");
        Split::new(devices.streams().expect("streams"), shares)
    }

    #[test]
    fn ranges_cover_all_rows_in_order() {
        for weights in [&[1.0][..], &[1.0; 3], &[1.0; 8], &[3.0, 1.0], &[0.1, 7.25, 1e-3, 2.0], &[1e300, 1e-300, 1.0]] {
            let split = split(weights);
            for rows in [0, 1, 2, 3, 5, 7, 8, 9, 1000, 1 << 33, usize::MAX - 1, usize::MAX] {
                let bounds = split.bounds(rows);
                assert_eq!((bounds.len(), bounds[0], bounds[weights.len()]), (weights.len() + 1, 0, rows));
                assert!(bounds.is_sorted(), "{weights:?} {rows}: {bounds:?}");
                assert_eq!(split.ranges(rows).map(|range| range.len()).sum::<usize>(), rows);
            }
        }
    }

    #[test]
    fn ranges_are_in_proportion_to_the_weights() {
        for count in [1, 2, 3, 7, 8, 100] {
            let even = split(&vec![0.3; count]);
            for rows in [0, 1, 5, 99, 100, 1 << 20] {
                let lengths: Vec<usize> = even.ranges(rows).map(|range| range.len()).collect();
                let (least, most) = (lengths.iter().min().unwrap(), lengths.iter().max().unwrap());
                assert!(most - least <= 1, "{count} {rows}: {lengths:?}");
            }
        }
        let weights = [5.0, 1.0, 2.5, 1.5];
        let lengths: Vec<usize> = split(&weights).ranges(1000).map(|range| range.len()).collect();
        assert_eq!(lengths, [500, 100, 250, 150]);
        assert_eq!(split(&[5e-324, 1.5e-323]).bounds(4), [0, 1, 4]);
    }

    #[test]
    fn devices_of_the_emulator_are_alike() {
        let measured = Split::measured(&Devices::emulated(4).expect("devices")).expect("a split");
        assert_eq!(measured.bounds(100), [0, 25, 50, 75, 100]);
    }

    #[test]
    fn the_most_devices_do_not_overflow() {
        let bounds = split(&[1.0; 1024]).bounds(usize::MAX);
        assert_eq!((bounds[1024], bounds[512]), (usize::MAX, usize::MAX / 2));
    }
}
