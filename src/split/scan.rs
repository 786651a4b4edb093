//! Scans over devices: of each device's items, and of what comes before them.

use super::host::Call;
use crate::algorithms::{ExclusiveScan, InclusiveScan, inclusive_scan_after};
use crate::functor::Reducer;
use crate::{BufferSlice, BufferSliceMut, Element, KernelParam, Result, SplitBuffer, Stream, algorithms};

/// Combines, for each item, all items up to and including it, those on the devices before too.
///
/// As [`algorithms::inclusive_scan`], for the same items and operators. `op` need not be commutative. Which items are combined in which
/// order depends on the split, too. The host calls `op`, too: it must give the same there as on the devices.
///
/// Cost: the first device scans its items once. The devices between the first and the last scan theirs twice, the first time to learn what
/// they amount to. The last waits for all before it: two devices take as long as one, and many devices half as long as their number
/// promises. The host waits for each device but the last.
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
/// [`Error::Fault`](crate::Error::Fault) if `op` panics on the host, and the errors of [`algorithms::inclusive_scan`].
#[track_caller]
pub fn inclusive_scan<T, R, Tag>(x: &SplitBuffer<T>, op: R, out: &mut SplitBuffer<T>) -> Result<()>
where
    T: Element + InclusiveScan<R, Tag>,
    R: Reducer<T> + KernelParam,
{
    let first = op.identity();
    let of_one = |stream: &Stream, x: BufferSlice<'_, T>, first: T, op: R, out: BufferSliceMut<'_, T>| {
        inclusive_scan_after(stream, x, first, op, out)
    };
    let amount = |_: usize, result: T| -> Result<T> { Ok(result) };
    scan(Call::of("`split::inclusive_scan`"), x, first, op, out, (amount, of_one))
}

/// Combines, for each item, `first` and all items before it, those on the devices before too.
///
/// As [`inclusive_scan`], and [`algorithms::exclusive_scan`].
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
#[track_caller]
pub fn exclusive_scan<T, R, Tag>(x: &SplitBuffer<T>, first: T, op: R, out: &mut SplitBuffer<T>) -> Result<()>
where
    T: Element + ExclusiveScan<R, Tag>,
    R: Reducer<T> + KernelParam,
{
    let call = Call::of("`split::exclusive_scan`");
    let of_one = |stream: &Stream, x: BufferSlice<'_, T>, first: T, op: R, out: BufferSliceMut<'_, T>| {
        algorithms::exclusive_scan(stream, x, first, op, out)
    };
    let amount = |device: usize, before: T| -> Result<T> {
        let last = last_of(x.part(device))?;
        call.run(|| op.apply(before, last))
    };
    scan(call, x, first, op, out, (amount, of_one))
}

/// The last item, which is copied to the host.
fn last_of<T: Element>(part: BufferSlice<'_, T>) -> Result<T> {
    Ok(part.slice(part.len() - 1..)?.to_vec()?[0])
}

/// Scans by `of_one` on each device. `amount` is what a device's items amount to, given its number and its last result.
fn scan<T, R>(
    call: Call,
    x: &SplitBuffer<T>,
    first: T,
    op: R,
    out: &mut SplitBuffer<T>,
    (amount, of_one): (
        impl Fn(usize, T) -> Result<T>,
        impl Fn(&Stream, BufferSlice<'_, T>, T, R, BufferSliceMut<'_, T>) -> Result<()>,
    ),
) -> Result<()>
where
    T: Element,
    R: Reducer<T> + KernelParam,
{
    super::check_result(call.name, x, out)?;
    let streams = x.split().streams();
    let devices: Vec<usize> = (0..streams.len()).filter(|&device| !x.range(device).is_empty()).collect();
    let Some((&last, all_before)) = devices.split_last() else { return Ok(()) };
    // All at once: the first has its results, and the others what they amount to.
    for (at, &device) in all_before.iter().enumerate() {
        let first = if at == 0 { first } else { op.identity() };
        of_one(&streams[device], x.part(device), first, op, out.part_mut(device))?;
    }
    let mut before = first;
    for (at, &device) in all_before.iter().enumerate() {
        let amount = amount(device, last_of(out.part(device))?)?;
        if at > 0 {
            of_one(&streams[device], x.part(device), before, op, out.part_mut(device))?;
            before = call.run(|| op.apply(before, amount))?;
        } else {
            before = amount;
        }
    }
    of_one(&streams[last], x.part(last), before, op, out.part_mut(last))
}
