//! Bitonic sorts of a warp, or of each of several groups of lanes.

use super::network::{Lanes, Record, SortBits, SortIndex, unrolled};
use crate::element::{Element, SortKey};
use crate::functor::{Direction, KeyOrder};
use crate::simt::{Block, WARP};

/// The bits of a key in the order that is asked for.
#[inline(always)]
pub(crate) fn to_bits<K: SortKey, O: Direction>(key: K) -> K::Bits {
    O::default().to_bits(key)
}

/// The inverse of [`to_bits`].
#[inline(always)]
pub(crate) fn of_bits<K: SortKey, O: Direction>(bits: K::Bits) -> K {
    O::default().of_bits(bits)
}

/// A key alone, as a record.
pub(crate) type Alone<K> = <<K as SortKey>::Bits as SortBits>::Alone;

/// A key with an index, as a record.
pub(crate) type Ranked<K, I = u32> = <I as SortIndex>::Record<<K as SortKey>::Bits>;

/// The keys of a thread, at the positions from `first`, as records. Those outside the valid positions come last.
pub(crate) fn alone<K: SortKey, O: Direction, const N: usize>(
    keys: &[K; N],
    first: usize,
    valid: usize,
) -> [Alone<K>; N] {
    const { assert!(N.is_power_of_two() && N <= 16, "a sorting network takes 1, 2, 4, 8 or 16 items a thread") };
    let mut records = [Alone::<K>::LAST; N];
    unrolled!(
        i < N,
        if first + i < valid {
            records[i] = to_bits::<K, O>(keys[i]).alone();
        }
    );
    records
}

/// The inverse of [`alone`].
#[inline(always)]
pub(crate) fn of_alone<K: SortKey, O: Direction, const N: usize>(records: &[Alone<K>; N], keys: &mut [K; N]) {
    unrolled!(i < N, keys[i] = of_bits::<K, O>(SortBits::of_alone(records[i])));
}

/// Works as [`alone`], with an index for each key.
pub(crate) fn ranked<K: SortKey, O: Direction, I: SortIndex, const N: usize>(
    keys: &[K; N],
    indices: &[I; N],
    first: usize,
    valid: usize,
) -> [Ranked<K, I>; N] {
    const { assert!(N.is_power_of_two() && N <= 16, "a sorting network takes 1, 2, 4, 8 or 16 items a thread") };
    let mut records = [Ranked::<K, I>::LAST; N];
    unrolled!(
        i < N,
        if first + i < valid {
            records[i] = indices[i].after(to_bits::<K, O>(keys[i]));
        }
    );
    records
}

/// The inverse of [`ranked`].
pub(crate) fn of_ranked<K: SortKey, O: Direction, I: SortIndex, const N: usize>(
    records: &[Ranked<K, I>; N],
    keys: &mut [K; N],
    indices: &mut [I; N],
) {
    unrolled!(i < N, {
        let (bits, index) = I::of_record::<K::Bits>(records[i]);
        keys[i] = of_bits::<K, O>(bits);
        indices[i] = index;
    });
}

/// Sorts the keys of each group of `WIDTH` lanes: 1, 2, 4, 8, 16 or 32.
///
/// The arrangement is blocked before and after: lane `l` of a group holds positions `l * ITEMS` to `l * ITEMS + ITEMS`. `ITEMS` is 1, 2, 4,
/// 8 or 16. The first `valid` positions of the group are sorted; the other positions have unspecified values afterwards. If `valid` is
/// larger than the group, all positions count, and the emulator reports it. `order` is [`Less`](crate::functor::Less) or
/// [`Greater`](crate::functor::Greater), in the total order of [`SortKey`]. In that order equal keys are identical, so stability does not
/// matter.
///
/// Phases: each lane sorts its items. Then runs of one, two, four and more lanes merge; a run of `m` lanes takes `log2(2m)` exchanges.
/// Cost: `ITEMS * log2(WIDTH) * (log2(WIDTH) + 1) / 2` shuffles, and two for each of these if keys have 8 bytes. In a whole warp that is 15
/// for each item. No shared memory; it orders no memory accesses. In a partial warp, the last group sorts the lanes that it has.
///
/// Seed: `Sort`, which exists only for blocks.
///
/// CUB has no such collective.
///
/// All lanes of the warp call it: see [divergence](crate::warp#divergence).
///
/// ```
/// use kernel_primitives::functor::Less;
/// use kernel_primitives::prelude::*;
/// use kernel_primitives::warp::warp_sort;
///
/// #[kernel]
/// fn sort_eights(cx: Block, x: Global<f32>, mut out: GlobalMut<f32>) {
///     for tile in cx.tiles::<1>(out.len()) {
///         // What a partial tile lacks comes last.
///         let mut key = init::<f32, 1>(f32::NAN);
///         read_data(cx, &mut key, x.tile(tile));
///         warp_sort::<8, 1, _, _>(cx, &mut key, 8, Less);
///         write_data(cx, out.tile(tile), &key);
///     }
/// }
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = kernel_primitives::Device::emulator().stream()?;
/// let x: Vec<f32> = (0..32).map(|i| -(i as f32)).collect();
/// let mut out = stream.buffer_zeroed::<f32>(32)?;
/// sort_eights::launch(&stream, (1, 32), &stream.buffer_from(&x)?, &mut out)?;
/// assert_eq!(out.to_vec()?[..9], [-7.0, -6.0, -5.0, -4.0, -3.0, -2.0, -1.0, 0.0, -15.0]);
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn warp_sort<const WIDTH: u32, const ITEMS: usize, K: SortKey, O: Direction>(
    cx: Block<'_>,
    keys: &mut [K; ITEMS],
    valid: usize,
    order: O,
) {
    let _ = order;
    cx.expect_at_most(valid, WIDTH as usize * ITEMS);
    let mut records = alone::<K, O, ITEMS>(keys, first_position::<WIDTH, ITEMS>(cx), valid);
    Lanes::of_warp(cx).sort(&mut records, WIDTH);
    of_alone::<K, O, ITEMS>(&records, keys);
}

/// Sorts the keys of each group of `WIDTH` lanes, and moves an index with each key. Equal keys are in the order of their indices. So the
/// sort is stable if the indices ascend from position to position.
///
/// Otherwise this works as [`warp_sort`], with records of 8 bytes (12 for keys of 8 bytes) instead of keys, which takes twice the shuffles.
/// Indices are integers of any type; indices of 8 bytes make the records 4 bytes longer.
///
/// Seed: `Sort` with `data_index`, which exists only for blocks, and is unstable.
///
/// CUB has no such collective.
///
/// All lanes of the warp call it: see [divergence](crate::warp#divergence).
///
/// ```
/// use kernel_primitives::prelude::*;
/// use kernel_primitives::functor::Greater;
/// use kernel_primitives::warp::warp_sort_with_index;
///
/// /// The order of each warp's keys.
/// #[kernel]
/// fn order(cx: Block, x: Global<f32>, mut out: GlobalMut<u32>) {
///     for tile in cx.tiles::<1>(out.len()) {
///         // What a partial tile lacks comes last: after equal keys, because its lanes are higher.
///         let (mut key, mut index) = (init::<f32, 1>(f32::NEG_INFINITY), [cx.lane()]);
///         read_data(cx, &mut key, x.tile(tile));
///         warp_sort_with_index::<32, 1, _, _, _>(cx, &mut key, &mut index, 32, Greater);
///         write_data(cx, out.tile(tile), &index);
///     }
/// }
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = kernel_primitives::Device::emulator().stream()?;
/// let x = stream.buffer_from(&[1.0f32, 3.0, 2.0, 3.0])?;
/// let mut out = stream.buffer_zeroed::<u32>(4)?;
/// order::launch(&stream, (1, 4), &x, &mut out)?;
/// assert_eq!(out.to_vec()?, [1, 3, 2, 0]);
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn warp_sort_with_index<const WIDTH: u32, const ITEMS: usize, K: SortKey, O: Direction, I: SortIndex>(
    cx: Block<'_>,
    keys: &mut [K; ITEMS],
    indices: &mut [I; ITEMS],
    valid: usize,
    order: O,
) {
    let _ = order;
    cx.expect_at_most(valid, WIDTH as usize * ITEMS);
    let mut records = ranked::<K, O, I, ITEMS>(keys, indices, first_position::<WIDTH, ITEMS>(cx), valid);
    Lanes::of_warp(cx).sort(&mut records, WIDTH);
    of_ranked::<K, O, I, ITEMS>(&records, keys, indices);
}

/// Sorts pairs of a key and a value by the keys, in each group of `WIDTH` lanes. The sort is stable.
///
/// It works as [`warp_sort_with_index`] with the positions as indices. Then every lane fetches its values from their old positions, in
/// `ITEMS * ITEMS` shuffles of a value. For large values and many items, prefer the sorts of a block, which move values through shared
/// memory.
///
/// CUB has no such collective.
///
/// All lanes of the warp call it: see [divergence](crate::warp#divergence).
///
/// ```
/// use kernel_primitives::functor::Greater;
/// use kernel_primitives::prelude::*;
/// use kernel_primitives::warp::warp_sort_pairs;
///
/// #[kernel]
/// fn by_score(cx: Block, scores: Global<f32>, names: Global<u8>, mut out: GlobalMut<u8>) {
///     for tile in cx.tiles::<1>(out.len()) {
///         // What a partial tile lacks comes last, because the sort is stable.
///         let (mut score, mut name) = (init::<f32, 1>(f32::NEG_INFINITY), init::<u8, 1>(0));
///         read_data(cx, &mut score, scores.tile(tile));
///         read_data(cx, &mut name, names.tile(tile));
///         warp_sort_pairs::<32, 1, _, _, _>(cx, &mut score, &mut name, 32, Greater);
///         write_data(cx, out.tile(tile), &name);
///     }
/// }
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = kernel_primitives::Device::emulator().stream()?;
/// let scores = stream.buffer_from(&[1.0f32, 3.0, 2.0])?;
/// let mut out = stream.buffer_zeroed::<u8>(3)?;
/// by_score::launch(&stream, (1, 3), &scores, &stream.buffer_from(b"abc")?, &mut out)?;
/// assert_eq!(out.to_vec()?, b"bca");
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn warp_sort_pairs<const WIDTH: u32, const ITEMS: usize, K: SortKey, V: Element, O: Direction>(
    cx: Block<'_>,
    keys: &mut [K; ITEMS],
    values: &mut [V; ITEMS],
    valid: usize,
    order: O,
) {
    let first = first_position::<WIDTH, ITEMS>(cx);
    let start = cx.lane() & !(WIDTH - 1);
    let mut positions = [0u32; ITEMS];
    unrolled!(i < ITEMS, positions[i] = (first + i) as u32);
    warp_sort_with_index::<WIDTH, ITEMS, K, O, _>(cx, keys, &mut positions, valid, order);
    let (mask, last) = (cx.warp_mask(), cx.warp_lanes() - 1);
    let before = *values;
    unrolled!(i < ITEMS, {
        // Positions that are not valid have no value, so any existing lane serves as the source.
        let source = (start + (positions[i] / ITEMS as u32).min(WIDTH - 1)).min(last);
        unrolled!(j < ITEMS, {
            let value = cx.shuffle(mask, before[j], source, WARP);
            if positions[i] % ITEMS as u32 == j as u32 {
                values[i] = value;
            }
        });
    });
}

/// The position in its group of this lane's first item.
#[inline(always)]
fn first_position<const WIDTH: u32, const ITEMS: usize>(cx: Block<'_>) -> usize {
    const { assert!(WIDTH.is_power_of_two() && WIDTH <= 32, "a group has 1, 2, 4, 8, 16 or 32 lanes") };
    (cx.lane() & (WIDTH - 1)) as usize * ITEMS
}
