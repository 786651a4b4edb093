//! Sorts of keys.

use std::ops::Range;

use super::shares::{Ends, Passes, Runs, check_places, check_streams, only_device};
use crate::algorithms::{Gather, Merge, SortBy, SortKeys};
use crate::functor::{Comparator, Direction};
use crate::split::host::Call;
use crate::{BufferSlice, BufferSliceMut, Element, KernelParam, Result, SortKey, SplitBuffer, Stream, algorithms};

/// Sorts the keys of all devices in the total order of [`SortKey`]. The sort is stable. Each device of `out` receives exactly as many keys
/// as its part of `out` holds, for any keys. The first keys of the order are on the first device.
///
/// It takes the keys and orders of [`algorithms::sort_keys`]. `out` has as many items as `keys`. It may be split in another way, and over
/// other devices.
///
/// Cost: each device sorts its keys, receives its share by one copy from each device, and merges these pieces two by two. With `p` devices,
/// the merges read and write the share `log2 p` times; a second sort replaces them if it takes fewer passes. Counted in such passes, two
/// devices take 0.6 of the time of one device for keys of four bytes, and eight devices take a fifth; the copies come in addition. Unless
/// all keys go to one device, the host waits for the sorts, and then reads tens of thousands of keys of each device, two or three times, to
/// find the shares. The host's own time for this grows with the cube of `p`: it does not matter for the devices of one machine, but
/// hundreds of emulated devices take seconds. Temporary memory: two copies of the keys on their devices, and a copy of each device's share.
///
/// The host also compares keys, by [`SortKey::to_sort_bits`], which must give the same bits there as on the devices.
///
/// Ready for numbers. For others, write `instantiate!(kernel_primitives::algorithms::sort_keys<MyKey>);`, and the same for
/// `gather<MyKey, u32, MyKey>` and `merge<MyKey, MyKey, Less>`.
///
/// ```
/// use kernel_primitives::functor::{Greater, Less};
/// use kernel_primitives::{Devices, Split, SplitBuffer, split};
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let devices = Split::even(&Devices::emulated(2)?)?;
/// let x = SplitBuffer::from_slice(&devices, &[2.5f32, 7.0, -1.0, 3.0])?;
/// let mut out = SplitBuffer::zeroed(&devices, 4)?;
/// split::sort_keys(&x, &mut out, Less)?;
/// assert_eq!((out.part(0).to_vec()?, out.part(1).to_vec()?), (vec![-1.0, 2.5], vec![3.0, 7.0]));
/// split::sort_keys(&x, &mut out, Greater)?;
/// assert_eq!(out.to_vec()?, [7.0, 3.0, 2.5, -1.0]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Returns [`Error::Split`](crate::Error::Split) if `out` has more or fewer items than `keys`,
/// [`Error::Capture`](crate::Error::Capture) if a stream captures and not all keys stay on one device,
/// [`Error::WrongDevice`](crate::Error::WrongDevice) between GPUs and the emulator, [`Error::Fault`](crate::Error::Fault) if a comparison
/// panics on the host, and the errors of [`algorithms::sort_keys`]. On GPUs, [`Split::synchronize`](crate::Split::synchronize) of the split
/// of `keys`, and of that of `out`, returns faults that the host did not wait for: see [`split`](crate::split).
#[track_caller]
pub fn sort_keys<K, O, S, G, M>(keys: &SplitBuffer<K>, out: &mut SplitBuffer<K>, order: O) -> Result<()>
where
    K: SortKey + SortKeys<S> + Gather<u32, K, G> + Merge<K, O, M>,
    O: Direction + Comparator<K>,
{
    // A sort has a pass for each eight bits, which takes as long as a pass of merges.
    let most = K::SORT_BITS.div_ceil(8) as usize;
    sorted(Call::of("`split::sort_keys`"), keys, out, order, most, |stream, keys, out| {
        algorithms::sort_keys(stream, keys, out, order)
    })
}

/// Sorts the items of all devices by any comparator. The sort is stable. Each device of `out` receives exactly as many items as its part of
/// `out` holds.
///
/// See [`sort_keys`] for the cost, and [`algorithms::sort_by`] for the items. If `order` is not an order, the contents of `out` are
/// unspecified.
///
/// The host also calls `order`, which must give the same results there as on the devices. Otherwise items may be on the wrong device, and
/// `out` is not sorted at the borders between devices. Computed floats may differ in their last bits, by `sin` or by a contracted
/// `a * b + c`: compute keys first, and sort by these keys with [`sort_pairs_by`](super::sort_pairs_by).
///
/// Ready for numbers with `Less` and `Greater`. For others, write
/// `instantiate!(kernel_primitives::algorithms::sort_by<MyItem, MyOrder>);`, and the same for `gather<MyItem, u32, MyItem>` and
/// `merge<MyItem, MyItem, MyOrder>`.
///
/// ```
/// use kernel_primitives::functor::Less;
/// use kernel_primitives::{Devices, Split, SplitBuffer, split};
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let devices = Split::even(&Devices::emulated(3)?)?;
/// let x = SplitBuffer::from_slice(&devices, &[3u32, 1, 2, 0])?;
/// let mut out = SplitBuffer::zeroed(&devices, 4)?;
/// split::sort_by(&x, Less, &mut out)?;
/// assert_eq!(out.to_vec()?, [0, 1, 2, 3]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Returns the errors of [`sort_keys`].
#[track_caller]
pub fn sort_by<T, C, S, G, M>(x: &SplitBuffer<T>, order: C, out: &mut SplitBuffer<T>) -> Result<()>
where
    T: Element + SortBy<C, S> + Gather<u32, T, G> + Merge<T, C, M>,
    C: Comparator<T> + KernelParam,
{
    let call = Call::of("`split::sort_by`");
    sorted(call, x, out, order, usize::MAX, |stream, x, out| algorithms::sort_by(stream, x, order, out))
}

/// Sorts with `sort` on each device. `sort` takes as long as `most` passes of merges.
fn sorted<K, C, G, M>(
    call: Call,
    keys: &SplitBuffer<K>,
    out: &mut SplitBuffer<K>,
    order: C,
    most: usize,
    sort: impl Fn(&Stream, BufferSlice<'_, K>, BufferSliceMut<'_, K>) -> Result<()>,
) -> Result<()>
where
    K: Element + Gather<u32, K, G> + Merge<K, C, M>,
    C: Comparator<K> + KernelParam,
{
    check_places(call.name, keys, out)?;
    let from = keys.split().streams();
    if let Some((device, place)) = only_device(keys, out) {
        return sort(&from[device], keys.part(device), out.part_mut(place));
    }
    check_streams(call.name, keys, out)?;
    let mut runs = Runs::like(keys)?;
    for (device, stream) in from.iter().enumerate() {
        if keys.range(device).is_empty() {
            continue;
        }
        sort(stream, keys.part(device), runs.runs[device].as_mut_slice())?;
    }
    let split = out.split().clone();
    let mut shares = Vec::new();
    for (device, pieces) in runs.pieces(call, out, order)?.into_iter().enumerate() {
        let (stream, passes) = (&split.streams()[device], Passes::of(&pieces, most));
        let mut copy = stream.buffer_uninit(passes.copied())?;
        let mut target = if passes.begin_in_copy() { copy.as_mut_slice() } else { out.part_mut(device) };
        // A merge reads the device's own piece in its run.
        let own = if passes.is_done() || passes.sort_again { None } else { runs.own(stream, &pieces)? };
        runs.collect(stream, (device, own.as_ref().map(|own| own.run)), &pieces, &mut target)?;
        shares.push((passes, copy, own));
    }
    for (device, (passes, mut copy, own)) in shares.into_iter().enumerate() {
        let (stream, mut out, mut copy) = (&split.streams()[device], out.part_mut(device), copy.as_mut_slice());
        if passes.sort_again {
            sort(stream, copy.as_slice(), out)?;
            continue;
        }
        passes.each(|in_copy, a, b| {
            // The device's own piece stays in its run until it is merged.
            if b.is_empty() && own.as_ref().is_some_and(|own| own.range == a) {
                return Ok(());
            }
            let ranges = [a.clone(), b.clone()];
            let Ends { a, b, mut to } = Ends::of(&mut copy, &mut out, in_copy, a, b)?;
            let of_range = |range: &Range<usize>, items| match &own {
                Some(own) if own.range == *range => own.items,
                _ => items,
            };
            let (a, b) = (of_range(&ranges[0], a), of_range(&ranges[1], b));
            if b.is_empty() { to.copy_from_device(stream, a) } else { algorithms::merge(stream, a, b, order, to) }
        })?;
    }
    Ok(())
}
