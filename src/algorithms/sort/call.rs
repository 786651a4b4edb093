//! Radix sorts.
//!
//! `sort_tile` sorts keys that fit in one tile. For more keys, `count_digits` counts the digits of all passes, `begin_digits` turns the
//! counts into positions, and `sort_sweep` is launched once for each pass.

use std::ops::Range;

use crate::__algorithms::*;
use crate::__private::Entry;
use crate::algorithms::kernels::algorithm;
use crate::algorithms::run::{Parts, Run, Scratch, bytes_of, check_output, check_values};
use crate::algorithms::tuning::Parameter;
use crate::functor::{Direction, Turned};
use crate::kernels::device::{self, SORT_AHEAD, SORT_PORTION, SORT_THREADS, SortPass};
use crate::{BufferSlice, BufferSliceMut, Dims, Element, Error, Result, SortKey};

mod numbers;
#[cfg(test)]
mod tests;

pub(in crate::algorithms) use numbers::{Numbers, Values};

algorithm! {
    /// Keys that [`sort_keys`] has kernels for.
    sort_keys
}

/// Sorts keys in the total order of [`SortKey`]. The sort is stable.
///
/// `order` is [`Less`](crate::functor::Less) or [`Greater`](crate::functor::Greater); both keep the order of equal keys. `out` may be
/// longer than `keys`: the rest of it stays as it is. [`sort_keys_by_bits`] sorts by some of the keys' bits.
///
/// Cost: one launch if the keys fit in one tile, which has 8192 keys of four bytes. Otherwise the keys are read once to count all digits,
/// and then read and written once for each eight bits, by the algorithm "Onesweep" (Adinets and Merrill, 2022). If these bits are the same
/// in all keys, this is only a copy. Temporary memory: a copy of the keys if there are more than eight bits, and 2 KiB for each tile.
///
/// Ready for numbers. For others, write `instantiate!(kernel_primitives::algorithms::sort_keys<MyKey>);`.
///
/// | [same bits](crate::docs::guarantees#determinism-and-order) on every run | same bits on every device | order |
/// |---|---|---|
/// | yes: `net::properties::sort` | yes: `net::properties::sort` | stable: `algorithms::sorts::sort::a_range_of_bits_is_sorted_and_the_rest_is_not_looked_at` |
///
/// CUB: `DeviceRadixSort::SortKeys`, `SortKeysDescending`. Differences: NaN is larger than all numbers, whatever its sign, and −0 is less
/// than +0.
///
/// ```
/// use kernel_primitives::algorithms::sort_keys;
/// use kernel_primitives::functor::{Greater, Less};
/// use kernel_primitives::Device;
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = Device::auto()?.stream()?;
/// let x = stream.buffer_from(&[2.5f32, -1.0, 7.0])?;
/// let mut out = stream.buffer_zeroed::<f32>(3)?;
/// sort_keys(&stream, &x, &mut out, Less)?;
/// assert_eq!(out.to_vec()?, [-1.0, 2.5, 7.0]);
/// sort_keys(&stream, &x, &mut out, Greater)?;
/// assert_eq!(out.to_vec()?, [7.0, 2.5, -1.0]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Returns [`Error::LengthMismatch`] if `out` is shorter than `keys`, and the errors of a launch and of an allocation.
pub fn sort_keys<'a, 'k, 'o, K, O, Tag>(
    run: impl Into<Run<'a>>,
    keys: impl Into<BufferSlice<'k, K>>,
    out: impl Into<BufferSliceMut<'o, K>>,
    order: O,
) -> Result<()>
where
    K: SortKey,
    O: Direction,
    K: SortKeys<Tag>,
{
    let _ = order;
    let order = Order::of::<K, O>("sort_keys", 0..K::SORT_BITS)?;
    keys_in_portions(<K as SortKeys<Tag>>::kernels(), run.into(), keys.into(), out.into(), order, SORT_PORTION)
}

/// Sorts keys by their bits from `bits.start` to `bits.end`, which is not included. The sort is stable. Otherwise this works as
/// [`sort_keys`].
///
/// `bits` counts the bits of [`to_sort_bits`](SortKey::to_sort_bits) from the lowest; `0..K::SORT_BITS` is the whole key. Fewer bits take
/// fewer passes.
///
/// | [same bits](crate::docs::guarantees#determinism-and-order) on every run | same bits on every device | order |
/// |---|---|---|
/// | yes: `net::properties::sort` | yes: `net::properties::sort` | stable: `algorithms::sorts::sort::a_range_of_bits_is_sorted_and_the_rest_is_not_looked_at` |
///
/// CUB: `DeviceRadixSort::SortKeys` with `begin_bit` and `end_bit`. Differences: a range of the sort bits.
///
/// ```
/// use kernel_primitives::algorithms::sort_keys_by_bits;
/// use kernel_primitives::functor::Less;
/// use kernel_primitives::Device;
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = Device::auto()?.stream()?;
/// let x = stream.buffer_from(&[0x23u32, 0x11, 0x22, 0x10])?;
/// let mut out = stream.buffer_zeroed::<u32>(4)?;
/// sort_keys_by_bits(&stream, &x, &mut out, Less, 4..32)?;
/// assert_eq!(out.to_vec()?, [0x11, 0x10, 0x23, 0x22]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Returns [`Error::SortBits`] if `bits` is not a range of the key's bits, and the errors of [`sort_keys`].
pub fn sort_keys_by_bits<'a, 'k, 'o, K, O, Tag>(
    run: impl Into<Run<'a>>,
    keys: impl Into<BufferSlice<'k, K>>,
    out: impl Into<BufferSliceMut<'o, K>>,
    order: O,
    bits: Range<u32>,
) -> Result<()>
where
    K: SortKey,
    O: Direction,
    K: SortKeys<Tag>,
{
    let _ = order;
    let order = Order::of::<K, O>("sort_keys_by_bits", bits)?;
    keys_in_portions(<K as SortKeys<Tag>>::kernels(), run.into(), keys.into(), out.into(), order, SORT_PORTION)
}

algorithm! {
    /// Keys and values that [`sort_pairs`] has kernels for.
    sort_pairs
}

/// Sorts pairs of a key and a value by the keys. The sort is stable. Otherwise this works as [`sort_keys`].
///
/// A value is any element, of any size. Temporary memory includes a copy of the values if there is one of the keys. If values have more bytes
/// than keys, a tile may have fewer pairs than it has keys alone. With values of more than 16 bytes, no pass is only a copy.
/// [`sort_pairs_by_bits`] sorts by some of the keys' bits.
///
/// Ready for keys and values of any numbers. For others, write `instantiate!(kernel_primitives::algorithms::sort_pairs<MyKey, MyValue>);`.
///
/// | [same bits](crate::docs::guarantees#determinism-and-order) on every run | same bits on every device | order |
/// |---|---|---|
/// | yes: `net::properties::sort` | yes: `net::properties::sort` | stable: `algorithms::sorts::sort::pairs_of_any_length_and_kind_keep_the_order_of_equal_keys` |
///
/// CUB: `DeviceRadixSort::SortPairs`, `SortPairsDescending`. Differences: NaN is larger than all numbers, whatever its sign, and −0 is less
/// than +0.
///
/// ```
/// use kernel_primitives::algorithms::sort_pairs;
/// use kernel_primitives::functor::Less;
/// use kernel_primitives::Device;
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = Device::auto()?.stream()?;
/// let keys = stream.buffer_from(&[2.5f32, -1.0, f32::NAN, 2.5])?;
/// let values = stream.buffer_from(&[0u32, 1, 2, 3])?;
/// let (mut sorted, mut from) = (stream.buffer_zeroed::<f32>(4)?, stream.buffer_zeroed::<u32>(4)?);
/// sort_pairs(&stream, &keys, &values, &mut sorted, &mut from, Less)?;
/// assert_eq!(sorted.to_vec()?[..3], [-1.0, 2.5, 2.5]);
/// assert_eq!(from.to_vec()?, [1, 0, 3, 2]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Returns [`Error::LengthMismatch`] if `keys` and `values` have different lengths, and the errors of [`sort_keys`].
pub fn sort_pairs<'a, 'k, 'v, 'o, 'w, K, V, O, Tag>(
    run: impl Into<Run<'a>>,
    keys: impl Into<BufferSlice<'k, K>>,
    values: impl Into<BufferSlice<'v, V>>,
    keys_out: impl Into<BufferSliceMut<'o, K>>,
    values_out: impl Into<BufferSliceMut<'w, V>>,
    order: O,
) -> Result<()>
where
    K: SortKey,
    V: Element,
    O: Direction,
    K: SortPairs<V, Tag>,
{
    let _ = order;
    let order = Order::of::<K, O>("sort_pairs", 0..K::SORT_BITS)?;
    let from = (keys.into(), Some(values.into()));
    let out = (keys_out.into(), values_out.into());
    pairs_in_portions(<K as SortPairs<V, Tag>>::kernels(), run.into(), from, out, order, SORT_PORTION)
}

/// Sorts pairs of a key and a value by the keys' bits from `bits.start` to `bits.end`, which is not included. The sort is stable. Otherwise
/// this works as [`sort_pairs`].
///
/// `bits` counts as in [`sort_keys_by_bits`].
///
/// | [same bits](crate::docs::guarantees#determinism-and-order) on every run | same bits on every device | order |
/// |---|---|---|
/// | yes: `net::properties::sort` | yes: `net::properties::sort` | stable: `algorithms::sorts::sort::pairs_of_any_length_and_kind_keep_the_order_of_equal_keys` |
///
/// CUB: `DeviceRadixSort::SortPairs` with `begin_bit` and `end_bit`. Differences: a range of the sort bits.
///
/// # Errors
/// Returns [`Error::SortBits`] if `bits` is not a range of the key's bits, and the errors of [`sort_pairs`].
pub fn sort_pairs_by_bits<'a, 'k, 'v, 'o, 'w, K, V, O, Tag>(
    run: impl Into<Run<'a>>,
    keys: impl Into<BufferSlice<'k, K>>,
    values: impl Into<BufferSlice<'v, V>>,
    keys_out: impl Into<BufferSliceMut<'o, K>>,
    values_out: impl Into<BufferSliceMut<'w, V>>,
    order: O,
    bits: Range<u32>,
) -> Result<()>
where
    K: SortKey,
    V: Element,
    O: Direction,
    K: SortPairs<V, Tag>,
{
    let _ = order;
    let order = Order::of::<K, O>("sort_pairs_by_bits", bits)?;
    let from = (keys.into(), Some(values.into()));
    let out = (keys_out.into(), values_out.into());
    pairs_in_portions(<K as SortPairs<V, Tag>>::kernels(), run.into(), from, out, order, SORT_PORTION)
}

/// The kernels of a sort of keys.
type KeysKernels<K> = (Entry<sort_tile<K>>, Entry<count_digits<K>>, Entry<sort_sweep<K>>);
/// The kernels of a sort of pairs.
type PairsKernels<K, V> = (Entry<sort_tile_pairs<K, V>>, Entry<count_digits<K>>, Entry<sort_sweep_pairs<K, V>>);

/// Sorts as [`sort_keys`], in launches of fewer than `portion` keys.
fn keys_in_portions<K>(
    (tile, count, sweep): KeysKernels<K>,
    run: Run<'_>,
    keys: BufferSlice<'_, K>,
    out: BufferSliceMut<'_, K>,
    order: Order,
    portion: usize,
) -> Result<()>
where
    K: SortKey,
{
    let (stream, len, part) = (run.stream, keys.len(), run.part());
    check_output(order.algorithm, "out", out.len(), len)?;
    let mut out = out.into_slice(..len)?;
    let passes = Passes::of::<K, ()>(&run, len, portion, order);
    let Order { begin, end, turned, .. } = order;
    if passes.tiles <= 1 {
        return device::sort_tile::launch_entry(
            tile,
            stream,
            passes.dims(passes.tiles),
            keys,
            &mut out,
            begin,
            end,
            turned,
        );
    }
    let copied = passes.copied();
    let mut memory = run.memory(&[bytes_of::<u64>(passes.words()), Scratch::<K>::bytes(copied)])?;
    let mut parts = memory.parts();
    let mut shared = passes.begin(count, &part, keys, &mut parts)?;
    let mut copy = Scratch::take(&mut parts, copied)?;
    let mut copy = copy.as_mut_slice()?;
    passes.each(|step| {
        let (from, mut to) = step.ends(Some(keys), &mut copy, &mut out);
        device::sort_sweep::launch_entry(
            sweep,
            stream,
            passes.dims(step.pass.tiles),
            from.slice(step.keys.clone())?,
            &mut to,
            &mut shared.counts,
            &mut shared.states,
            &mut shared.tickets,
            step.pass,
        )
    })
}

/// Sorts as [`sort_pairs`], in launches of fewer than `portion` keys. If there are no values, `values_out` has them. There must be several
/// tiles and an even number of passes then.
fn pairs_in_portions<K, V>(
    (tile, count, sweep): PairsKernels<K, V>,
    run: Run<'_>,
    (keys, values): (BufferSlice<'_, K>, Option<BufferSlice<'_, V>>),
    (keys_out, values_out): (BufferSliceMut<'_, K>, BufferSliceMut<'_, V>),
    order: Order,
    portion: usize,
) -> Result<()>
where
    K: SortKey,
    V: Element,
{
    let (stream, len, part) = (run.stream, keys.len(), run.part());
    check_values(order.algorithm, len, values.map_or(len, |values| values.len()))?;
    check_output(order.algorithm, "keys_out", keys_out.len(), len)?;
    check_output(order.algorithm, "values_out", values_out.len(), len)?;
    let (mut keys_out, mut values_out) = (keys_out.into_slice(..len)?, values_out.into_slice(..len)?);
    let passes = Passes::of::<K, V>(&run, len, portion, order);
    debug_assert!(values.is_some() || passes.tiles > 1 && passes.count.is_multiple_of(2));
    let Order { begin, end, turned, .. } = order;
    if let Some(values) = values
        && passes.tiles <= 1
    {
        let dims = passes.dims(passes.tiles);
        let (keys_out, values_out) = (&mut keys_out, &mut values_out);
        return device::sort_tile_pairs::launch_entry(
            tile, stream, dims, keys, keys_out, values, values_out, begin, end, turned,
        );
    }
    let copied = passes.copied();
    let sizes = [bytes_of::<u64>(passes.words()), Scratch::<K>::bytes(copied), Scratch::<V>::bytes(copied)];
    let mut memory = run.memory(&sizes)?;
    let mut parts = memory.parts();
    let mut shared = passes.begin(count, &part, keys, &mut parts)?;
    let (mut copy, mut values_copy) = (Scratch::take(&mut parts, copied)?, Scratch::take(&mut parts, copied)?);
    let (mut copy, mut values_copy) = (copy.as_mut_slice()?, values_copy.as_mut_slice()?);
    passes.each(|step| {
        let (from, mut to) = step.ends(Some(keys), &mut copy, &mut keys_out);
        let (values_from, mut values_to) = step.ends(values, &mut values_copy, &mut values_out);
        device::sort_sweep_pairs::launch_entry(
            sweep,
            stream,
            passes.dims(step.pass.tiles),
            from.slice(step.keys.clone())?,
            &mut to,
            values_from.slice(step.keys.clone())?,
            &mut values_to,
            &mut shared.counts,
            &mut shared.states,
            &mut shared.tickets,
            step.pass,
        )
    })
}

/// The bits to sort by, and the direction, of a call of `algorithm`.
#[derive(Clone, Copy)]
struct Order {
    algorithm: &'static str,
    begin: u32,
    end: u32,
    turned: u64,
}

impl Order {
    fn of<K: SortKey, O: Direction>(algorithm: &'static str, bits: Range<u32>) -> Result<Self> {
        let Range { start, end } = bits;
        if start > end || end > K::SORT_BITS {
            let key = std::any::type_name::<K>();
            return Err(Error::SortBits { algorithm, key, start, end, bits: K::SORT_BITS });
        }
        Ok(Self { algorithm, begin: start, end, turned: Turned::of::<K, O>().0 })
    }
}

/// The number of values of a digit.
const DIGITS: usize = 256;

/// The passes of a sort, one for each digit, and the launches of each pass.
struct Passes {
    order: Order,
    len: usize,
    /// The number of items of a tile.
    tile: usize,
    /// Bytes of shared memory that blocks can have.
    shared_bytes: usize,
    /// The number of tiles of all keys.
    tiles: usize,
    /// The number of tiles of a launch. The last launch of a pass has as many or fewer.
    half: usize,
    /// The number of launches of a pass.
    portions: usize,
    /// The number of passes, at least one.
    count: usize,
}

/// A launch of a pass.
struct Step {
    keys: Range<usize>,
    pass: SortPass,
    first: bool,
    to_out: bool,
}

/// The memory that all launches of a sort share.
struct Common<'m> {
    counts: BufferSliceMut<'m, u64>,
    tickets: BufferSliceMut<'m, u32>,
    states: BufferSliceMut<'m, u32>,
}

impl Passes {
    /// The passes for `len` keys with values, in launches of fewer than `portion` keys.
    fn of<K, V>(run: &Run<'_>, len: usize, portion: usize, order: Order) -> Self {
        let shared_bytes = run.shared_bytes();
        let tile = device::sort_tile_items(size_of::<K>(), size_of::<V>());
        let tiles = len.div_ceil(tile);
        // Launches have the same number of tiles, because each clears the states of the next one.
        let portions = tiles.div_ceil((portion - 1) / tile).max(1);
        let half = tiles.div_ceil(portions).max(1);
        let count = (order.end - order.begin).div_ceil(8).max(1) as usize;
        Self { order, len, tile, shared_bytes, tiles, half, portions, count }
    }

    /// The blocks that have a tile each.
    fn dims(&self, blocks: impl TryInto<u32>) -> Dims {
        Dims::new(blocks.try_into().unwrap_or(u32::MAX), SORT_THREADS as u32)
    }

    /// The number of elements of a copy. A single pass needs none.
    fn copied(&self) -> usize {
        if self.count > 1 { self.len } else { 0 }
    }

    /// The number of elements between the counts of a pass and those of the next pass: counts for each portion, and for the place after the
    /// last one.
    fn stride(&self) -> usize {
        (self.portions + 1) * DIGITS
    }

    /// Words of the counts, the tickets, and both halves of the states.
    fn parts(&self) -> [usize; 3] {
        let rows = self.half + SORT_AHEAD as usize;
        [self.count * self.stride(), (self.count * self.portions).div_ceil(2), rows * DIGITS]
    }

    fn words(&self) -> usize {
        self.parts().iter().sum()
    }

    /// Takes and clears the shared memory of the launches, and finds, for each pass, where the keys of each digit begin.
    fn begin<'m, K: SortKey>(
        &self,
        kernel: Entry<count_digits<K>>,
        run: &Run<'_>,
        keys: BufferSlice<'_, K>,
        parts: &mut Parts<'m>,
    ) -> Result<Common<'m>> {
        let mut words = parts.take::<u64>(self.words())?;
        let [counts, tickets, states] = self.parts();
        // Clears all but the second half of the states, which the first launch clears.
        let cleared = counts + tickets + states - (self.half * DIGITS).div_ceil(2);
        BufferSliceMut::from(&mut words).into_slice(..cleared)?.set_zero(run.stream)?;
        let (mut counts, rest) = words.split_at(counts)?;
        let (tickets, states) = rest.split_at(tickets)?;
        let Order { begin, end, turned, .. } = self.order;
        let blocks = self.tiles.min(run.blocks(Parameter::SortBlocks, size_of::<K>())?);
        let dims = self.dims(blocks).shared_bytes(device::count_digits_bytes(size_of::<K>(), self.shared_bytes));
        let stream = run.stream;
        device::count_digits::launch_entry(kernel, stream, dims, keys, &mut counts, self.stride(), begin, end, turned)?;
        let dims = (self.count as u32, DIGITS as u32);
        let mut tickets = tickets.reinterpret()?;
        device::begin_digits::launch(stream, dims, &mut counts, self.stride(), &mut tickets, self.portions)?;
        Ok(Common { counts, tickets, states: states.reinterpret()? })
    }

    /// Calls `launch` for each launch, in order.
    fn each(&self, mut launch: impl FnMut(Step) -> Result<()>) -> Result<()> {
        for number in 0..self.count * self.portions {
            let (pass, portion) = (number / self.portions, number % self.portions);
            let first = portion * self.half;
            let tiles = self.half.min(self.tiles - first);
            let is_last = number + 1 == self.count * self.portions;
            launch(Step {
                keys: first * self.tile..((first + tiles) * self.tile).min(self.len),
                pass: SortPass {
                    begin: self.order.begin + 8 * pass as u32,
                    end: self.order.end,
                    turned: self.order.turned,
                    launch: number as u32,
                    tiles: tiles as u32,
                    half: self.half as u32,
                    clear: if is_last { 0 } else { self.half as u32 },
                    begins: (pass * self.stride() + portion * DIGITS) as u32,
                },
                first: pass == 0,
                to_out: (self.count - pass) % 2 == 1,
            })?;
        }
        Ok(())
    }
}

impl Step {
    /// What a launch reads and what it writes. The first pass reads the input, if there is one, and the last one writes the output. The passes
    /// use a copy in turn, so that no pass writes what it reads.
    fn ends<'v, T: Element>(
        &self,
        input: Option<BufferSlice<'v, T>>,
        copy: &'v mut BufferSliceMut<'_, T>,
        out: &'v mut BufferSliceMut<'_, T>,
    ) -> (BufferSlice<'v, T>, BufferSliceMut<'v, T>) {
        match (input.filter(|_| self.first), self.to_out) {
            (Some(input), true) => (input, out.into()),
            (Some(input), false) => (input, copy.into()),
            (None, true) => (copy.as_slice(), out.into()),
            (None, false) => (out.as_slice(), copy.into()),
        }
    }
}
