//! The first `k` items over devices.

use crate::algorithms::TopK;
use crate::functor::{Comparator, Direction};
use crate::{Buffer, Error, Result, SortKey, SplitBuffer, algorithms};

/// Finds the first `k` items of all devices in an order, and sorts them: the largest with [`Greater`](crate::functor::Greater), the
/// smallest with [`Less`](crate::functor::Less). The result is on the first device.
///
/// It takes the items and orders of [`algorithms::top_k`].
///
/// Cost: that of [`algorithms::top_k`] on each device, at the same time. Then the first `k` items of each device go to the first device,
/// which finds the first `k` of these. The host does not wait.
///
/// ```
/// use kernel_primitives::functor::Greater;
/// use kernel_primitives::{Devices, Split, SplitBuffer, split};
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let devices = Split::even(&Devices::emulated(3)?)?;
/// let x = SplitBuffer::from_slice(&devices, &[3.0f32, 1.0, 4.0, 1.0, 5.0])?;
/// assert_eq!(split::top_k(&x, 2, Greater)?.to_vec()?, [5.0, 4.0]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Returns [`Error::TooFew`] if there are fewer than `k` items, and the errors of [`algorithms::top_k`].
pub fn top_k<T, O, Tag>(x: &SplitBuffer<T>, k: usize, order: O) -> Result<Buffer<T>>
where
    T: SortKey + TopK<O, Tag>,
    O: Direction + Comparator<T>,
{
    if k > x.len() {
        return Err(Error::TooFew { algorithm: "split::top_k", wanted: k, len: x.len() });
    }
    let streams = x.split().streams();
    let mut found = Vec::new();
    for (device, stream) in streams.iter().enumerate() {
        let part = x.part(device);
        let mut first = stream.buffer_uninit(k.min(part.len()))?;
        algorithms::top_k(stream, part, first.len(), order, &mut first)?;
        found.push(first);
    }
    let stream = &streams[0];
    let most: usize = found.iter().map(Buffer::len).sum();
    if most == found[0].len() {
        return Ok(found.swap_remove(0));
    }
    let (mut all, mut out) = (stream.buffer_uninit(most)?, stream.buffer_uninit(k)?);
    let mut rest = all.as_mut_slice();
    for first in found.iter().filter(|first| !first.is_empty()) {
        let (mut place, after) = rest.split_at(first.len())?;
        place.copy_from_peer(stream, first.as_slice())?;
        rest = after;
    }
    algorithms::top_k(stream, &all, k, order, &mut out)?;
    Ok(out)
}
