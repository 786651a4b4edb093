//! Scans over devices.

use crate::algorithms::{ExclusiveScan, InclusiveScan, exclusive_scan_after, inclusive_scan_after};
use crate::functor::Reducer;
use crate::{Buffer, BufferSlice, BufferSliceMut, Element, KernelParam, Result, SplitBuffer, Stream};

/// Combines, for each item, all items up to and including this item, over all devices.
///
/// It takes the items and operators of [`algorithms::inclusive_scan`](crate::algorithms::inclusive_scan()). `op` need not be commutative.
/// The order in which items are combined also depends on the split.
///
/// Cost: the first device scans its items once. The devices between the first and the last scan their items twice, the first time to find
/// their totals. The last device waits for all devices before it. So one call on two devices takes as long as on one device, and one call
/// on many devices is half as fast as their number promises. The host waits for no device, so the first devices can begin the next call
/// meanwhile.
///
/// ```
/// use kernel_primitives::functor::Max;
/// use kernel_primitives::{Devices, Split, SplitBuffer, split};
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let devices = Split::even(&Devices::emulated(2)?)?;
/// let x = SplitBuffer::from_slice(&devices, &[3, 1, 4, 1, 5, 0])?;
/// let mut largest = SplitBuffer::zeroed(&devices, 6)?;
/// split::inclusive_scan(&x, Max, &mut largest)?;
/// assert_eq!(largest.to_vec()?, [3, 3, 4, 4, 5, 5]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Returns [`Error::Split`](crate::Error::Split) if `x` and `out` do not have the same items on the same devices,
/// [`Error::Capture`](crate::Error::Capture) if a stream captures and another device has items, and the errors of
/// [`algorithms::inclusive_scan`](crate::algorithms::inclusive_scan()).
pub fn inclusive_scan<T, R, Tag>(x: &SplitBuffer<T>, op: R, out: &mut SplitBuffer<T>) -> Result<()>
where
    T: Element + InclusiveScan<R, Tag>,
    R: Reducer<T> + KernelParam,
{
    let first = op.identity();
    scan::<T, R, false>("`split::inclusive_scan`", x, first, op, out, |stream, x, before, op, out| {
        inclusive_scan_after(stream, x, before, op, out)
    })
}

/// Combines, for each item, `first` and all items before this item, over all devices.
///
/// See [`inclusive_scan`] for the cost, and [`algorithms::exclusive_scan`](crate::algorithms::exclusive_scan()).
///
/// ```
/// use kernel_primitives::functor::Add;
/// use kernel_primitives::{Devices, Split, SplitBuffer, split};
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let devices = Split::even(&Devices::emulated(2)?)?;
/// let x = SplitBuffer::from_slice(&devices, &[3u32, 1, 4, 1])?;
/// let mut starts = SplitBuffer::zeroed(&devices, 4)?;
/// split::exclusive_scan(&x, 10, Add, &mut starts)?;
/// assert_eq!(starts.to_vec()?, [10, 13, 14, 18]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Returns the errors of [`inclusive_scan`].
pub fn exclusive_scan<T, R, Tag>(x: &SplitBuffer<T>, first: T, op: R, out: &mut SplitBuffer<T>) -> Result<()>
where
    T: Element + ExclusiveScan<R, Tag>,
    R: Reducer<T> + KernelParam,
{
    scan::<T, R, true>("`split::exclusive_scan`", x, first, op, out, |stream, x, before, op, out| {
        exclusive_scan_after(stream, x, before, op, out)
    })
}

/// Scans with `of_one` on each device, after a first item and the totals of the devices before it.
fn scan<T, R, const EXCLUSIVE: bool>(
    call: &'static str,
    x: &SplitBuffer<T>,
    first: T,
    op: R,
    out: &mut SplitBuffer<T>,
    of_one: impl Fn(&Stream, BufferSlice<'_, T>, (T, Option<BufferSlice<'_, T>>), R, BufferSliceMut<'_, T>) -> Result<()>,
) -> Result<()>
where
    T: Element,
    R: Reducer<T> + KernelParam,
{
    super::check_result(call, x, out)?;
    let streams = x.split().streams();
    let devices: Vec<usize> = (0..streams.len()).filter(|&device| !x.range(device).is_empty()).collect();
    let Some((&last, all_before)) = devices.split_last() else { return Ok(()) };
    if all_before.is_empty() {
        return of_one(&streams[last], x.part(last), (first, None), op, out.part_mut(last));
    }
    let advice = "a graph is of one device: scan before the capture, or after it";
    super::not_captured(call, advice, devices.iter().map(|&device| &streams[device]))?;
    // All devices scan at once. Then the first device has its results, and the other devices have their totals.
    for (at, &device) in all_before.iter().enumerate() {
        let first = if at == 0 { first } else { op.identity() };
        of_one(&streams[device], x.part(device), (first, None), op, out.part_mut(device))?;
    }
    // For each device after the first, this has the totals of all devices before it. An exclusive scan's last result lacks the last item.
    let mut before: Vec<Buffer<T>> = Vec::new();
    for pair in devices.windows(2) {
        let (from, stream) = (pair[0], &streams[pair[1]]);
        let known = before.last().map_or(0, Buffer::len);
        let mut items = stream.buffer_uninit(known + 1 + usize::from(EXCLUSIVE))?;
        if let Some(before) = before.last() {
            items.slice_mut(..known)?.copy_from_peer(stream, before.as_slice())?;
        }
        items.slice_mut(known..known + 1)?.copy_from_peer(stream, last_of(out.part(from))?)?;
        if EXCLUSIVE {
            items.slice_mut(known + 1..)?.copy_from_peer(stream, last_of(x.part(from))?)?;
        }
        before.push(items);
    }
    for (&device, before) in devices[1..].iter().zip(&before) {
        let before = (op.identity(), Some(before.as_slice()));
        of_one(&streams[device], x.part(device), before, op, out.part_mut(device))?;
    }
    Ok(())
}

fn last_of<T: Element>(part: BufferSlice<'_, T>) -> Result<BufferSlice<'_, T>> {
    part.slice(part.len() - 1..)
}
