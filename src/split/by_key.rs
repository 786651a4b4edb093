//! Runs of equal keys over devices.

use crate::algorithms::ReduceByKey;
use crate::functor::Reducer;
use crate::{Buffer, BufferSlice, Element, KernelParam, Result, SplitBuffer, algorithms};

/// Combines the values of each run of equal keys: the first key of each run, and its values combined by `op`, both in order. A run may go
/// over several devices, and is one. Its key and value are on the device of its last item.
///
/// As [`algorithms::reduce_by_key`], for the same keys, values and operators. `op` need not be commutative. The results of this call are
/// split in the same way, by where runs end; [`SplitBuffer::copy_from_split`] brings them into another split. Their buffers have room for
/// as many runs as their device has items. Which values of a run are combined in which order depends on the split, too.
///
/// Cost: that of [`algorithms::reduce_by_key`] on each device, at the same time. The host waits for the counts, and for the first and last
/// key of each device. For each run over several devices it also gets a value of each, and writes the last.
///
/// ```
/// use kernel_primitives::functor::Add;
/// use kernel_primitives::{Devices, Split, SplitBuffer, split};
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let devices = Split::even(&Devices::emulated(2)?)?;
/// let keys = SplitBuffer::from_slice(&devices, &[7u32, 7, 3, 3, 3, 9])?;
/// let values = SplitBuffer::from_slice(&devices, &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0])?;
/// let (runs, sums) = split::reduce_by_key(&keys, &values, Add)?;
/// assert_eq!((runs.to_vec()?, sums.to_vec()?), (vec![7, 3, 9], vec![3.0, 12.0, 6.0]));
/// assert_eq!((runs.range(0), sums.range(1)), (0..1, 1..3));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Returns [`Error::Split`](crate::Error::Split) if `keys` and `values` are not split in the same way, and the errors of
/// [`algorithms::reduce_by_key`].
pub fn reduce_by_key<K, V, R, Tag>(
    keys: &SplitBuffer<K>,
    values: &SplitBuffer<V>,
    op: R,
) -> Result<(SplitBuffer<K>, SplitBuffer<V>)>
where
    K: Element + PartialEq + ReduceByKey<V, R, Tag>,
    V: Element,
    R: Reducer<V> + KernelParam,
{
    super::check_values("`split::reduce_by_key`", keys, values)?;
    let mut parts = Vec::new();
    for (device, stream) in keys.split().streams().iter().enumerate() {
        let (of_keys, of_values) = (keys.part(device), values.part(device));
        let (mut runs, mut reduced) = (stream.buffer_uninit(of_keys.len())?, stream.buffer_uninit(of_keys.len())?);
        let mut count = stream.buffer_zeroed(1)?;
        if !of_keys.is_empty() {
            algorithms::reduce_by_key(stream, of_keys, of_values, op, &mut runs, &mut reduced, &mut count)?;
        }
        parts.push(Part { runs, reduced, count });
    }
    let mut lens = Vec::new();
    for part in &parts {
        lens.push(part.count.to_vec()?[0] as usize);
    }
    let mut before: Option<Border<K>> = None;
    for device in (0..parts.len()).filter(|&device| !keys.range(device).is_empty()) {
        let (of_keys, end) = (keys.part(device), keys.range(device).len() - 1);
        let (first, last) = (one(of_keys, 0)?, one(of_keys, end)?);
        // What the run has so far goes to the device where it goes on.
        if let Some(Border { device: earlier, last }) = before
            && last == first
        {
            lens[earlier] -= 1;
            let run = parts[earlier].at(lens[earlier])?;
            parts[device].continue_run(run, op)?;
        }
        before = Some(Border { device, last });
    }
    let (runs, reduced): (Vec<_>, Vec<_>) =
        parts.into_iter().zip(lens).map(|(part, len)| ((part.runs, len), (part.reduced, len))).unzip();
    Ok((SplitBuffer::of_parts(keys.split(), runs)?, SplitBuffer::of_parts(keys.split(), reduced)?))
}

/// An item, which is copied to the host.
fn one<T: Element>(part: BufferSlice<'_, T>, at: usize) -> Result<T> {
    Ok(part.slice(at..=at)?.to_vec()?[0])
}

/// The last device so far that has keys, and its last key.
struct Border<K> {
    device: usize,
    last: K,
}

/// The runs of a device.
struct Part<K, V> {
    runs: Buffer<K>,
    reduced: Buffer<V>,
    count: Buffer<u64>,
}

impl<K: Element, V: Element> Part<K, V> {
    /// A run's key and value.
    fn at(&self, run: usize) -> Result<(K, V)> {
        Ok((one(self.runs.as_slice(), run)?, one(self.reduced.as_slice(), run)?))
    }

    /// Puts the values of a run before those of the first, which is the same one.
    fn continue_run(&mut self, (key, before): (K, V), op: impl Reducer<V>) -> Result<()> {
        let (_, value) = self.at(0)?;
        self.runs.slice_mut(..1)?.copy_from(&[key])?;
        self.reduced.slice_mut(..1)?.copy_from(&[op.apply(before, value)])
    }
}
