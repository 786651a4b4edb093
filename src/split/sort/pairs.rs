//! Sorts of pairs.

use super::shares::{Ends, Passes, Runs, check_places, check_streams, only_device};
use crate::algorithms::{Gather, MergePairs, SortPairs, SortPairsBy};
use crate::functor::{Comparator, Direction, Identity};
use crate::input::counting;
use crate::split::check_values;
use crate::split::host::Call;
use crate::{
    Buffer, BufferSlice, BufferSliceMut, Element, KernelParam, Result, SortKey, SplitBuffer, Stream, algorithms,
};

/// Sorts the pairs of a key and a value of all devices by the keys, as [`sort_keys`](super::sort_keys) does. Each value goes with its key.
/// The sort is stable.
///
/// It takes the keys, values and orders of [`algorithms::sort_pairs`]. `keys` and `values` must be split in the same way, and so must
/// `keys_out` and `values_out`.
///
/// Cost: that of [`sort_keys`](super::sort_keys). Values of four bytes are merged with their keys. For values of other sizes, the merges
/// move an index of four bytes, and each value moves once at the end.
///
/// Ready for keys and values of any numbers. For others, write
/// `instantiate!(kernel_primitives::algorithms::sort_pairs<MyKey, MyValue>);`, and the same for `gather<MyKey, u32, MyKey>`,
/// `gather<MyValue, u32, MyValue>` and `merge_pairs<MyKey, MyKey, u32, u32, Less>`.
///
/// ```
/// use kernel_primitives::functor::Less;
/// use kernel_primitives::{Devices, Split, SplitBuffer, split};
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let devices = Split::even(&Devices::emulated(2)?)?;
/// let keys = SplitBuffer::from_slice(&devices, &[2.5f32, -1.0, f32::NAN, 2.5])?;
/// let values = SplitBuffer::from_slice(&devices, &[0u64, 1, 2, 3])?;
/// let (mut sorted, mut from) = (SplitBuffer::zeroed(&devices, 4)?, SplitBuffer::zeroed(&devices, 4)?);
/// split::sort_pairs(&keys, &values, &mut sorted, &mut from, Less)?;
/// assert_eq!(sorted.to_vec()?[..3], [-1.0, 2.5, 2.5]);
/// assert_eq!(from.to_vec()?, [1, 0, 3, 2]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Returns [`Error::Split`](crate::Error::Split) if `keys` and `values`, or `keys_out` and `values_out`, are not split in the same way, and
/// the errors of [`sort_keys`](super::sort_keys).
#[track_caller]
pub fn sort_pairs<K, V, O, S, G, H, M>(
    keys: &SplitBuffer<K>,
    values: &SplitBuffer<V>,
    keys_out: &mut SplitBuffer<K>,
    values_out: &mut SplitBuffer<V>,
    order: O,
) -> Result<()>
where
    K: SortKey + SortPairs<V, S> + Gather<u32, K, G> + MergePairs<K, u32, u32, O, M>,
    V: Element + Gather<u32, V, H>,
    O: Direction + Comparator<K>,
{
    let most = K::SORT_BITS.div_ceil(8) as usize;
    let call = Call::of("`split::sort_pairs`");
    sorted(call, (keys, values), (keys_out, values_out), order, most, |stream, (keys, values), (out, values_out)| {
        algorithms::sort_pairs(stream, keys, values, out, values_out, order)
    })
}

/// Sorts the pairs of a key and a value of all devices by the keys and any comparator. The sort is stable.
///
/// See [`sort_pairs`], [`sort_by`](super::sort_by), and [`algorithms::sort_pairs_by`]. The host also calls `order`, which must give the
/// same results there as on the devices: see [`sort_by`](super::sort_by).
///
/// Ready for numbers with values of `i32`, `u32` and `f32`, with `Less` and `Greater`. For others, write
/// `instantiate!(kernel_primitives::algorithms::sort_pairs_by<MyKey, MyValue, MyOrder>);`, and the same for `gather<MyKey, u32, MyKey>`,
/// `gather<MyValue, u32, MyValue>` and `merge_pairs<MyKey, MyKey, u32, u32, MyOrder>`.
///
/// ```
/// use kernel_primitives::functor::Greater;
/// use kernel_primitives::{Devices, Split, SplitBuffer, split};
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let devices = Split::even(&Devices::emulated(2)?)?;
/// let keys = SplitBuffer::from_slice(&devices, &[3u32, 1, 3])?;
/// let values = SplitBuffer::from_slice(&devices, &[0u32, 1, 2])?;
/// let (mut sorted, mut from) = (SplitBuffer::zeroed(&devices, 3)?, SplitBuffer::zeroed(&devices, 3)?);
/// split::sort_pairs_by(&keys, &values, Greater, &mut sorted, &mut from)?;
/// assert_eq!((sorted.to_vec()?, from.to_vec()?), (vec![3, 3, 1], vec![0, 2, 1]));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Returns the errors of [`sort_pairs`].
#[track_caller]
pub fn sort_pairs_by<K, V, C, S, G, H, M>(
    keys: &SplitBuffer<K>,
    values: &SplitBuffer<V>,
    order: C,
    keys_out: &mut SplitBuffer<K>,
    values_out: &mut SplitBuffer<V>,
) -> Result<()>
where
    K: Element + SortPairsBy<V, C, S> + Gather<u32, K, G> + MergePairs<K, u32, u32, C, M>,
    V: Element + Gather<u32, V, H>,
    C: Comparator<K> + KernelParam,
{
    let (call, most) = (Call::of("`split::sort_pairs_by`"), usize::MAX);
    sorted(call, (keys, values), (keys_out, values_out), order, most, |stream, (keys, values), (out, values_out)| {
        algorithms::sort_pairs_by(stream, keys, values, order, out, values_out)
    })
}

/// The temporary memory of a device for its share.
struct Share<K, V> {
    passes: Passes,
    keys: Buffer<K>,
    values: Buffer<V>,
}

/// Sorts with `sort` on each device. `sort` takes as long as `most` passes of merges.
fn sorted<K, V, C, G, H, M>(
    call: Call,
    (keys, values): (&SplitBuffer<K>, &SplitBuffer<V>),
    (keys_out, values_out): (&mut SplitBuffer<K>, &mut SplitBuffer<V>),
    order: C,
    most: usize,
    sort: impl Fn(
        &Stream,
        (BufferSlice<'_, K>, BufferSlice<'_, V>),
        (BufferSliceMut<'_, K>, BufferSliceMut<'_, V>),
    ) -> Result<()>,
) -> Result<()>
where
    K: Element + Gather<u32, K, G> + MergePairs<K, u32, u32, C, M>,
    V: Element + Gather<u32, V, H>,
    C: Comparator<K> + KernelParam,
{
    check_values(call.name, keys, values)?;
    check_values(call.name, keys_out, values_out)?;
    check_places(call.name, keys, keys_out)?;
    let from = keys.split().streams();
    if let Some((device, place)) = only_device(keys, keys_out) {
        let out = (keys_out.part_mut(place), values_out.part_mut(place));
        return sort(&from[device], (keys.part(device), values.part(device)), out);
    }
    check_streams(call.name, keys, keys_out)?;
    let (mut runs, mut values_runs) = (Runs::like(keys)?, Runs::like(values)?);
    for (device, stream) in from.iter().enumerate() {
        if keys.range(device).is_empty() {
            continue;
        }
        let out = (runs.runs[device].as_mut_slice(), values_runs.runs[device].as_mut_slice());
        sort(stream, (keys.part(device), values.part(device)), out)?;
    }
    let split = keys_out.split().clone();
    let mut shares = Vec::new();
    for (device, pieces) in runs.pieces(call, keys_out, order)?.into_iter().enumerate() {
        let (stream, mut passes) = (&split.streams()[device], Passes::of(&pieces, most));
        // Indices of values have 32 bits.
        passes.sort_again |= !passes.is_done() && !is_merged::<V>() && u32::try_from(passes.items()).is_err();
        let begin_in_copy = [passes.begin_in_copy(), passes.begin_in_copy() || !passes.is_done() && !is_merged::<V>()];
        let (mut keys, mut values) = (stream.buffer_uninit(passes.copied())?, stream.buffer_uninit(passes.copied())?);
        let mut target = if begin_in_copy[0] { keys.as_mut_slice() } else { keys_out.part_mut(device) };
        runs.collect(stream, (device, None), &pieces, &mut target)?;
        let mut target = if begin_in_copy[1] { values.as_mut_slice() } else { values_out.part_mut(device) };
        values_runs.collect(stream, (device, None), &pieces, &mut target)?;
        shares.push(Share { passes, keys, values });
    }
    for (device, share) in shares.into_iter().enumerate() {
        if share.passes.is_done() {
            continue;
        }
        let (stream, out) = (&split.streams()[device], (keys_out.part_mut(device), values_out.part_mut(device)));
        if share.passes.sort_again {
            sort(stream, (share.keys.as_slice(), share.values.as_slice()), out)?;
        } else {
            merged(stream, share, order, out)?;
        }
    }
    Ok(())
}

/// Returns whether values are merged directly, by the kernels for values of `u32`.
fn is_merged<V: Element>() -> bool {
    V::ANY_BITS && size_of::<V>() == size_of::<u32>()
}

/// Merges the pieces that a device has received.
fn merged<K, V, C, H, M>(
    stream: &Stream,
    Share { passes, mut keys, mut values }: Share<K, V>,
    order: C,
    (mut out, values_out): (BufferSliceMut<'_, K>, BufferSliceMut<'_, V>),
) -> Result<()>
where
    K: Element + MergePairs<K, u32, u32, C, M>,
    V: Element + Gather<u32, V, H>,
    C: Comparator<K> + KernelParam,
{
    let mut merge = |copy: &mut BufferSliceMut<'_, u32>, values_out: &mut BufferSliceMut<'_, u32>| {
        let mut keys = keys.as_mut_slice();
        passes.each(|in_copy, a, b| {
            let mut ends = Ends::of(&mut keys, &mut out, in_copy, a.clone(), b.clone())?;
            let mut of_values = Ends::of(copy, values_out, in_copy, a, b)?;
            if ends.b.is_empty() {
                ends.to.copy_from_device(stream, ends.a)?;
                return of_values.to.copy_from_device(stream, of_values.a);
            }
            let (a, b) = ((ends.a, of_values.a), (ends.b, of_values.b));
            algorithms::merge_pairs(stream, a, b, order, ends.to, of_values.to)
        })
    };
    if is_merged::<V>() {
        return merge(&mut values.as_mut_slice().reinterpret()?, &mut values_out.reinterpret()?);
    }
    let len = passes.items();
    let (mut places, mut copy) = (stream.buffer_uninit::<u32>(len)?, stream.buffer_uninit::<u32>(len)?);
    let first = if passes.begin_in_copy() { &mut copy } else { &mut places };
    algorithms::transform(stream, counting(0u32, len), Identity, first)?;
    merge(&mut copy.as_mut_slice(), &mut places.as_mut_slice())?;
    algorithms::gather(stream, &values, &places, values_out)
}
