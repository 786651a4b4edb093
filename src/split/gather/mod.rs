//! Items by index, over devices.

pub(crate) mod exchange;

use std::panic::Location;

use exchange::{Asking, LIMITS, exchange, takes_all};

use crate::algorithms::{Gather, Scatter};
use crate::expr::{Integral, vector_of};
use crate::{Buffer, ConvertTo, Element, Error, Integer, Result, SplitBuffer, Stream, algorithms};

/// Collects items of all devices by their indices: `out[i] = x[indices[i]]`. An index counts over the whole of `x`, and any number of them
/// may be the same.
///
/// As [`algorithms::gather`], for the same items. `indices` and `out` are split in the same way; `x` is over the same devices, and may have
/// another length and other ranges. An index that `x` does not have is a fault, as there. On GPUs a call that does not wait leaves it to
/// [`Split::synchronize`](crate::Split::synchronize). After a fault, the contents of `out` are unspecified.
///
/// A device takes one of three ways.
///
/// - If it has all of `x`, it gathers there, and nothing goes between devices.
/// - If all of `x` has fewer bytes than the device's indices would bring, of which each takes four and an item, `x` is copied to it.
/// - Otherwise it sorts its indices by the device that has the item, stably, and sends each device those of its items. These gather, and the
///   device puts what comes back in its places.
///
/// Cost: of the first two, [`algorithms::gather`], and the copies. Of the third, for each index about 60 bytes of accesses and those of the
/// items; four bytes and an item go between devices, unless the device has the item. The host then waits once, for the counts of each device, or for
/// more than 2^26 indices of a device once for each 2^26. Temporary memory: of the second way for `x`, of the third for about 24 bytes and
/// two items for each index, up to 2^26 of them at a time, and, on the device that has the item, for four bytes and an item more.
///
/// Ready for numbers with indices of `u32`. For other items write
/// `instantiate!(kernel_primitives::algorithms::gather<MyItem, u32, MyItem>);`, and the same for `scatter<MyItem, u32>`; for other integers as
/// indices, which may count more items, also for `gather<MyItem, u64, MyItem>`.
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
/// Returns [`Error::Split`] if `indices` and `out` do not have the same items on the same devices, or if `x` is on other devices,
/// [`Error::Capture`] if a stream captures and a device needs items of another one, [`Error::Fault`] if an index is outside and the call
/// learns of it, and the errors of [`algorithms::gather`]. After an error, the contents of `out` are unspecified.
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

/// All items on the device of a stream. Devices begin with different parts, so that not all read from one.
fn collected<T: Element>(stream: &Stream, device: usize, x: &SplitBuffer<T>) -> Result<Buffer<T>> {
    let mut all = stream.buffer_uninit(x.len())?;
    let devices = x.split().streams().len();
    for owner in (0..devices).map(|i| (device + i) % devices).filter(|&owner| !x.range(owner).is_empty()) {
        all.slice_mut(x.range(owner))?.copy_from_peer(stream, x.part(owner))?;
    }
    Ok(all)
}
