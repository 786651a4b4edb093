//! Gathers over devices.

pub(crate) mod exchange;

use std::panic::Location;

use exchange::{Asking, LIMITS, exchange, takes_all};

use crate::algorithms::{Gather, Scatter};
use crate::expr::{Integral, vector_of};
use crate::{Buffer, ConvertTo, Element, Error, Integer, Result, SplitBuffer, Stream, algorithms};

/// Collects items of all devices by their indices: `out[i] = x[indices[i]]`. An index counts over the whole of `x`. Indices may be equal.
///
/// It takes the items of [`algorithms::gather`]. `indices` and `out` must be split in the same way. `x` must be on the same devices, and
/// may have another length and other ranges. An index out of bounds is a fault. On GPUs, a call that does not wait does not return the
/// fault; [`Split::synchronize`](crate::Split::synchronize) returns it. After a fault, the contents of `out` are unspecified.
///
/// Each device takes one of three ways:
///
/// 1. If the device has all of `x`, it gathers there, and nothing goes between devices.
/// 2. If all of `x` has at most as many bytes as an exchange, `x` is copied to the device, which gathers from the copy. An exchange moves
///    four bytes and an item for each index.
/// 3. Otherwise the devices exchange items. The device sorts its indices stably by the device that has the item, and sends each device the
///    indices of its items. The other devices gather and send the items back, and the device writes them to their places in `out`.
///
/// Cost: the first two ways take [`algorithms::gather`] and the copies. The third way accesses about 60 bytes for each index, and the
/// items. Four bytes and an item go between devices for each index whose item is on another device. The host then waits for the counts of
/// each device: once, or once for each 2^26 indices if a device has more. Temporary memory: the second way takes memory for `x`; the third
/// way takes about 24 bytes and two items for each index, for up to 2^26 indices at a time, and another four bytes and an item on the
/// device that has the item.
///
/// Ready for numbers with indices of `u32`. For other items, write
/// `instantiate!(kernel_primitives::algorithms::gather<MyItem, u32, MyItem>);`, and the same for `scatter<MyItem, u32>`. For other types of
/// indices, which may count more items, also write it for `gather<MyItem, u64, MyItem>`.
///
/// ```
/// use kernel_primitives::{Devices, Split, SplitBuffer, split};
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let devices = Split::even(&Devices::emulated(2)?)?;
/// let x = SplitBuffer::from_slice(&devices, &[10.0f32, 11.0, 12.0])?;
/// let indices = SplitBuffer::from_slice(&devices, &[2u32, 0, 2, 1])?;
/// let mut out = SplitBuffer::uninit(&devices, 4)?;
/// split::gather(&x, &indices, &mut out)?;
/// assert_eq!(out.to_vec()?, [12.0, 10.0, 12.0, 11.0]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Returns [`Error::Split`] if `indices` and `out` are not split in the same way, or if `x` is on other devices, [`Error::Capture`] if a
/// stream captures and a device needs items of another device, [`Error::Fault`] if an index is out of bounds and the call waits for the
/// fault, and the errors of [`algorithms::gather`]. After an error, the contents of `out` are unspecified.
#[track_caller]
pub fn gather<T, I, D, G, S>(x: &SplitBuffer<T>, indices: &SplitBuffer<I>, out: &mut SplitBuffer<T>) -> Result<()>
where
    T: Element + Gather<I, T, D> + Gather<u32, T, G> + Scatter<u32, S>,
    I: Integral + Integer + ConvertTo<usize>,
{
    let (place, call) = (Location::caller(), "`split::gather`");
    super::check("the indices are split in another way than the result", call, indices, out)?;
    if !x.split().has_devices_of(indices.split()) {
        let reason = format!("the input is on other devices than the indices: {x:?} and {indices:?}");
        return Err(Error::Split { call, reason });
    }
    let streams = indices.split().streams();
    let all = x.len();
    let has_all = |device: usize| x.range(device).len() == all;
    let uses = |device: &usize| !(x.range(*device).is_empty() && indices.range(*device).is_empty());
    let goes_between = |device: usize| !indices.range(device).is_empty() && !has_all(device);
    if (0..streams.len()).any(goes_between) {
        let used = (0..streams.len()).filter(uses).map(|device| &streams[device]);
        super::not_captured(call, exchange::ADVICE, used)?;
    }
    let mut asking = Vec::new();
    for (device, out) in out.parts_mut().enumerate().filter(|(_, out)| !out.is_empty()) {
        let (stream, at) = (&streams[device], indices.part(device));
        if has_all(device) {
            algorithms::gather(stream, x.part(device), at, out)?;
        } else if takes_all(all, size_of::<T>(), at.len()) {
            algorithms::gather(stream, &collected(stream, device, x)?, at, out)?;
        } else {
            let index = vector_of(stream, indices.buffer(device), at.len());
            asking.push(Asking { device, index, out });
        }
    }
    let parts: Vec<_> = (0..streams.len()).map(|device| x.part(device)).collect();
    exchange((place, call), streams, &parts, asking, LIMITS)
}

/// Copies all items to the device of a stream. Each device begins with another part, so that they do not all read from one device.
fn collected<T: Element>(stream: &Stream, device: usize, x: &SplitBuffer<T>) -> Result<Buffer<T>> {
    let mut all = stream.buffer_uninit(x.len())?;
    let devices = x.split().streams().len();
    for owner in (0..devices).map(|i| (device + i) % devices).filter(|&owner| !x.range(owner).is_empty()) {
        all.slice_mut(x.range(owner))?.copy_from_peer(stream, x.part(owner))?;
    }
    Ok(all)
}
