//! Runs of equal keys over devices.

use super::host::Call;
use crate::algorithms::ReduceByKey;
use crate::functor::Reducer;
use crate::{Buffer, BufferSlice, Element, KernelParam, Result, SplitBuffer, algorithms};

/// Combines the values of each run of equal keys. Returns the first key of each run, and the values of the run combined by `op`, in the
/// order of the runs. A run that covers several devices is one run. Its key and value are on the device of its last item.
///
/// It takes the keys, values and operators of [`algorithms::reduce_by_key`]. `op` need not be commutative. Both results are split in the
/// same way, by the ends of the runs; [`SplitBuffer::copy_from_split`] copies them to another split. Their buffers have room for as many
/// runs as their device has items. The order in which the values of a run are combined also depends on the split.
///
/// For runs over several devices, the host calls `op` and compares keys. Both must give the same results on the host as on the devices.
///
/// Cost: that of [`algorithms::reduce_by_key`] on each device, at the same time. The host waits for the counts. If several devices have
/// keys, it also waits for the first and last key of each device. For a run over several devices, it receives a value from each of them,
/// and the run's key if the run is not the first run of the device where it begins. It writes a key and a value to the device where the run
/// ends. The host waits for each of these small copies, one after the other.
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
/// Returns [`Error::Split`](crate::Error::Split) if `keys` and `values` are not split in the same way,
/// [`Error::Fault`](crate::Error::Fault) if `op` or a comparison of keys panics on the host, and the errors of
/// [`algorithms::reduce_by_key`].
#[track_caller]
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
    let call = Call::of("`split::reduce_by_key`");
    super::check_values(call.name, keys, values)?;
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
    for (device, part) in parts.iter().enumerate() {
        // A device with keys has a run. Its kernel may have counted none if it had a fault that another thread has received.
        let least = usize::from(!keys.range(device).is_empty());
        lens.push((part.count.to_vec()?[0] as usize).max(least));
    }
    let filled: Vec<usize> = (0..parts.len()).filter(|&device| !keys.range(device).is_empty()).collect();
    let mut ends = Vec::new();
    for &device in filled.iter().filter(|_| filled.len() > 1) {
        ends.push(EndKeys::of(keys.part(device))?);
    }
    // This says for each device whether its last run continues on the next device.
    let goes_on: Vec<bool> = call.run(|| ends.windows(2).map(|pair| pair[0].last == pair[1].first).collect())?;
    // The key and value of a run so far. The device where the run ends receives them.
    let mut before: Option<(K, V)> = None;
    for (at, EndKeys { first, .. }) in ends.into_iter().enumerate() {
        let (part, len) = (&mut parts[filled[at]], &mut lens[filled[at]]);
        let goes_on = goes_on.get(at).copied().unwrap_or(false);
        if let Some((key, value)) = before.take() {
            let of_device = one(part.reduced.as_slice(), 0)?;
            let value = call.run(|| op.apply(value, of_device))?;
            if goes_on && *len == 1 {
                before = Some((key, value));
            } else {
                part.runs.slice_mut(..1)?.copy_from(&[key])?;
                part.reduced.slice_mut(..1)?.copy_from(&[value])?;
            }
        }
        if goes_on {
            *len -= 1;
            if before.is_none() {
                let key = if *len == 0 { first } else { one(part.runs.as_slice(), *len)? };
                before = Some((key, one(part.reduced.as_slice(), *len)?));
            }
        }
    }
    let (runs, reduced): (Vec<_>, Vec<_>) =
        parts.into_iter().zip(lens).map(|(part, len)| ((part.runs, len), (part.reduced, len))).unzip();
    Ok((SplitBuffer::of_parts(keys.split(), runs)?, SplitBuffer::of_parts(keys.split(), reduced)?))
}

/// Copies one item to the host.
fn one<T: Element>(part: BufferSlice<'_, T>, at: usize) -> Result<T> {
    Ok(part.slice(at..=at)?.to_vec()?[0])
}

/// The first and the last key of a device.
struct EndKeys<K> {
    first: K,
    last: K,
}

impl<K: Element> EndKeys<K> {
    /// Returns the end keys of a part that has at least one key.
    fn of(part: BufferSlice<'_, K>) -> Result<Self> {
        let first = one(part, 0)?;
        Ok(Self { first, last: if part.len() == 1 { first } else { one(part, part.len() - 1)? } })
    }
}

/// The runs of a device.
struct Part<K, V> {
    runs: Buffer<K>,
    reduced: Buffer<V>,
    count: Buffer<u64>,
}
