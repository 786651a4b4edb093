//! Runs of equal keys over devices.

use super::host::Call;
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
/// The host calls `op` and compares keys, too: for runs over several devices. Both must say the same there as on the devices.
///
/// Cost: that of [`algorithms::reduce_by_key`] on each device, at the same time. The host waits for the counts, and for the first and last
/// key of each device, if several have keys. Of a run over several devices it also gets a value of each, and the key where the run begins
/// if other runs are before it there, and writes a key and a value where it ends. The host waits for each of these small copies, one after
/// the other.
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
    for part in &parts {
        lens.push(part.count.to_vec()?[0] as usize);
    }
    let filled: Vec<usize> = (0..parts.len()).filter(|&device| !keys.range(device).is_empty()).collect();
    let mut ends = Vec::new();
    for &device in filled.iter().filter(|_| filled.len() > 1) {
        ends.push(EndKeys::of(keys.part(device))?);
    }
    // Whether the last run of a device goes on on the next one.
    let goes_on: Vec<bool> = call.run(|| ends.windows(2).map(|pair| pair[0].last == pair[1].first).collect())?;
    // What a run has so far, which the device gets where it ends.
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

/// An item, which is copied to the host.
fn one<T: Element>(part: BufferSlice<'_, T>, at: usize) -> Result<T> {
    Ok(part.slice(at..=at)?.to_vec()?[0])
}

/// The first and the last key of a device.
struct EndKeys<K> {
    first: K,
    last: K,
}

impl<K: Element> EndKeys<K> {
    /// Those of a part that has keys.
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
