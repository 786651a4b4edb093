//! Sorts by digits.

use std::ops::Range;

use super::run::{Parts, Run, check_output};
use super::tuning::Parameter;
use crate::__private::Instantiated;
use crate::functor::Direction;
use crate::kernels::device::{self, SORT_AHEAD, SORT_PORTION, SORT_THREADS, SortPass};
use crate::{BufferSlice, BufferSliceMut, Dims, Element, Error, Result, SortKey};

/// Sorts keys by their bits from `bits.start` to `bits.end`; stable.
///
/// `bits` counts in [`to_sort_bits`](SortKey::to_sort_bits), from the lowest; `0..K::SORT_BITS` is the whole key, in the total order of
/// [`SortKey`]. `order` is [`Less`](crate::functor::Less) or [`Greater`](crate::functor::Greater), which leaves equal keys in their
/// order too. `out` may be longer than `keys`: the rest of it stays as it is.
///
/// Cost: up to a tile of 8192 keys of four bytes, one launch. Beyond that, one read of the keys, which counts all
/// digits, and one read and one write for each eight bits, by the algorithm "Onesweep" (Adinets and Merrill, 2022);
/// whatever the keys are. Temporary memory: for a copy of the keys if there are more than eight bits, and 2 KiB a tile.
///
/// For keys of a type of one's own: `instantiate!` of [`sort_tile`](struct@device::sort_tile),
/// [`count_digits`](struct@device::count_digits) and [`sort_sweep`](struct@device::sort_sweep).
///
/// CUB: `DeviceRadixSort::SortKeys`, `SortKeysDescending`.
///
/// ```
/// use kernel_primitives::algorithms::sort_keys;
/// use kernel_primitives::functor::{Greater, Less};
/// use kernel_primitives::Device;
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = Device::auto()?.stream()?;
/// let x = stream.buffer_from(&[0x23u32, 0x11, 0x22, 0x10])?;
/// let mut out = stream.buffer_zeroed::<u32>(4)?;
/// sort_keys(&stream, &x, &mut out, Greater, 0..32)?;
/// assert_eq!(out.to_vec()?, [0x23, 0x22, 0x11, 0x10]);
/// sort_keys(&stream, &x, &mut out, Less, 4..32)?;
/// assert_eq!(out.to_vec()?, [0x11, 0x10, 0x23, 0x22]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::SortBits`] unless `bits` is a range of the key's; `out` is shorter than `keys`; and those of a launch and of an
/// allocation.
pub fn sort_keys<'a, 'k, 'o, K, O, Tile, Count, Sweep>(
    run: impl Into<Run<'a>>,
    keys: impl Into<BufferSlice<'k, K>>,
    out: impl Into<BufferSliceMut<'o, K>>,
    order: O,
    bits: Range<u32>,
) -> Result<()>
where
    K: SortKey,
    O: Direction,
    device::sort_tile<K>: Instantiated<Tile>,
    device::count_digits<K>: Instantiated<Count>,
    device::sort_sweep<K>: Instantiated<Sweep>,
{
    let _ = order;
    keys_in_portions(run.into(), keys.into(), out.into(), Order::of::<K, O>("sort_keys", bits)?, SORT_PORTION)
}

/// Sorts pairs of a key and a value by the keys' bits; stable. As [`sort_keys`]; each value goes where its key goes.
///
/// A value is any element of up to 16 bytes, or larger ones at less than the full rate. The temporary memory is for a copy of the
/// values as well.
///
/// For types of one's own: `instantiate!` of [`sort_tile_pairs`](struct@device::sort_tile_pairs),
/// [`sort_sweep_pairs`](struct@device::sort_sweep_pairs) and, if that is not there,
/// [`count_digits`](struct@device::count_digits) of the key.
///
/// CUB: `DeviceRadixSort::SortPairs`, `SortPairsDescending`.
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
/// sort_pairs(&stream, &keys, &values, &mut sorted, &mut from, Less, 0..32)?;
/// assert_eq!(sorted.to_vec()?[..3], [-1.0, 2.5, 2.5]);
/// assert_eq!(from.to_vec()?, [1, 0, 3, 2]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// As [`sort_keys`]; and unless there are as many values as keys.
pub fn sort_pairs<'a, 'k, 'v, 'o, 'w, K, V, O, Tile, Count, Sweep>(
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
    device::sort_tile_pairs<K, V>: Instantiated<Tile>,
    device::count_digits<K>: Instantiated<Count>,
    device::sort_sweep_pairs<K, V>: Instantiated<Sweep>,
{
    let _ = order;
    let from = (keys.into(), values.into());
    let out = (keys_out.into(), values_out.into());
    pairs_in_portions(run.into(), from, out, Order::of::<K, O>("sort_pairs", bits)?, SORT_PORTION)
}

/// [`sort_keys`] in launches of fewer than `portion` keys.
fn keys_in_portions<K, Tile, Count, Sweep>(
    run: Run<'_>,
    keys: BufferSlice<'_, K>,
    out: BufferSliceMut<'_, K>,
    order: Order,
    portion: usize,
) -> Result<()>
where
    K: SortKey,
    device::sort_tile<K>: Instantiated<Tile>,
    device::count_digits<K>: Instantiated<Count>,
    device::sort_sweep<K>: Instantiated<Sweep>,
{
    let (stream, len, part) = (run.stream, keys.len(), run.part());
    check_output("sort_keys", out.len(), len)?;
    let mut out = out.into_slice(..len)?;
    let passes = Passes::new(len, device::sort_tile_items(size_of::<K>(), 0), portion, order);
    let Order { begin, end, descending } = order;
    if passes.tiles <= 1 {
        return device::sort_tile::<K>::launch(
            stream,
            passes.dims(passes.tiles),
            keys,
            &mut out,
            begin,
            end,
            descending,
        );
    }
    let copied = if passes.count > 1 { len } else { 0 };
    let mut memory = run.memory(&[passes.words() * size_of::<u64>(), copied * size_of::<K>()])?;
    let mut parts = memory.parts();
    let mut shared = passes.begin(&part, keys, &mut parts)?;
    let mut copy = if copied > 0 { Some(parts.take::<K>(copied)?) } else { None };
    passes.each(|step| {
        let (from, mut to) = step.ends(keys, &mut copy, &mut out);
        device::sort_sweep::<K>::launch(
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

/// [`sort_pairs`] in launches of fewer than `portion` keys.
fn pairs_in_portions<K, V, Tile, Count, Sweep>(
    run: Run<'_>,
    (keys, values): (BufferSlice<'_, K>, BufferSlice<'_, V>),
    (keys_out, values_out): (BufferSliceMut<'_, K>, BufferSliceMut<'_, V>),
    order: Order,
    portion: usize,
) -> Result<()>
where
    K: SortKey,
    V: Element,
    device::sort_tile_pairs<K, V>: Instantiated<Tile>,
    device::count_digits<K>: Instantiated<Count>,
    device::sort_sweep_pairs<K, V>: Instantiated<Sweep>,
{
    let (stream, len, part) = (run.stream, keys.len(), run.part());
    if values.len() != len {
        return Err(Error::LengthMismatch {
            kernel: "sort_pairs".into(),
            first: "`keys`".into(),
            first_len: len,
            second: "`values`".into(),
            second_len: values.len(),
        });
    }
    check_output("sort_pairs", keys_out.len(), len)?;
    check_output("sort_pairs", values_out.len(), len)?;
    let (mut keys_out, mut values_out) = (keys_out.into_slice(..len)?, values_out.into_slice(..len)?);
    let passes = Passes::new(len, device::sort_tile_items(size_of::<K>(), size_of::<V>()), portion, order);
    let Order { begin, end, descending } = order;
    if passes.tiles <= 1 {
        let dims = passes.dims(passes.tiles);
        let (keys_out, values_out) = (&mut keys_out, &mut values_out);
        return device::sort_tile_pairs::<K, V>::launch(
            stream, dims, keys, keys_out, values, values_out, begin, end, descending,
        );
    }
    let copied = if passes.count > 1 { len } else { 0 };
    let in_part = if V::ANY_BITS { copied } else { 0 };
    let sizes = [passes.words() * size_of::<u64>(), copied * size_of::<K>(), in_part * size_of::<V>()];
    let mut memory = run.memory(&sizes)?;
    let mut parts = memory.parts();
    let mut shared = passes.begin(&part, keys, &mut parts)?;
    let mut copy = if copied > 0 { Some(parts.take::<K>(copied)?) } else { None };
    // Bytes that may be anything are no values of such an element.
    let mut own = if copied > in_part { Some(stream.buffer_uninit::<V>(copied)?) } else { None };
    let mut values_copy = match &mut own {
        Some(own) => Some(own.as_mut_slice()),
        None if copied > 0 => Some(parts.take::<V>(copied)?),
        None => None,
    };
    passes.each(|step| {
        let (from, mut to) = step.ends(keys, &mut copy, &mut keys_out);
        let (values_from, mut values_to) = step.ends(values, &mut values_copy, &mut values_out);
        device::sort_sweep_pairs::<K, V>::launch(
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

/// The bits to sort by, and which way.
#[derive(Clone, Copy)]
struct Order {
    begin: u32,
    end: u32,
    descending: bool,
}

impl Order {
    fn of<K: SortKey, O: Direction>(algorithm: &'static str, bits: Range<u32>) -> Result<Self> {
        let Range { start, end } = bits;
        if start > end || end > K::SORT_BITS {
            let key = std::any::type_name::<K>();
            return Err(Error::SortBits { algorithm, key, start, end, bits: K::SORT_BITS });
        }
        Ok(Self { begin: start, end, descending: O::DESCENDING })
    }
}

/// Values of a digit.
const DIGITS: usize = 256;

/// How a sort goes: its passes, one for each digit, and the launches that each of them has.
struct Passes {
    order: Order,
    len: usize,
    /// Keys of a tile.
    tile: usize,
    /// Tiles of all keys.
    tiles: usize,
    /// The tiles of a launch; of the last one as many or fewer.
    half: usize,
    /// Launches of a pass.
    portions: usize,
    /// Passes, one at least.
    count: usize,
}

/// A launch of a pass.
struct Step {
    keys: Range<usize>,
    pass: SortPass,
    first: bool,
    to_out: bool,
}

/// What the launches of a sort have in common.
struct Common<'m> {
    counts: BufferSliceMut<'m, u64>,
    tickets: BufferSliceMut<'m, u32>,
    states: BufferSliceMut<'m, u32>,
}

impl Passes {
    fn new(len: usize, tile: usize, portion: usize, order: Order) -> Self {
        let tiles = len.div_ceil(tile);
        // Of equal sizes, since each launch clears the states of the next one.
        let portions = tiles.div_ceil((portion - 1) / tile).max(1);
        let half = tiles.div_ceil(portions).max(1);
        let count = (order.end - order.begin).div_ceil(8).max(1) as usize;
        Self { order, len, tile, tiles, half, portions, count }
    }

    fn dims(&self, blocks: impl TryInto<u32>) -> Dims {
        Dims::new(blocks.try_into().unwrap_or(u32::MAX), SORT_THREADS as u32)
    }

    /// Elements from a pass's counts to the next one's: counts for each portion, and behind the last.
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

    /// Takes and clears what the launches have in common, and finds where in each pass the keys of each digit begin.
    fn begin<'m, K: SortKey, Count>(
        &self,
        run: &Run<'_>,
        keys: BufferSlice<'_, K>,
        parts: &mut Parts<'m>,
    ) -> Result<Common<'m>>
    where
        device::count_digits<K>: Instantiated<Count>,
    {
        let mut words = parts.take::<u64>(self.words())?;
        let [counts, tickets, states] = self.parts();
        // All but the second half of the states, which the first launch clears.
        let cleared = counts + tickets + states - (self.half * DIGITS).div_ceil(2);
        BufferSliceMut::from(&mut words).into_slice(..cleared)?.set_zero(run.stream)?;
        let (mut counts, rest) = words.split_at(counts)?;
        let (tickets, states) = rest.split_at(tickets)?;
        let Order { begin, end, descending } = self.order;
        let dims = self.dims(self.tiles.min(run.blocks(Parameter::SortBlocks, size_of::<K>())?));
        let stream = run.stream;
        device::count_digits::<K>::launch(stream, dims, keys, &mut counts, self.stride(), begin, end, descending)?;
        let dims = (self.count as u32, DIGITS as u32);
        device::begin_digits::launch(stream, dims, &mut counts, self.stride())?;
        Ok(Common { counts, tickets: tickets.reinterpret()?, states: states.reinterpret()? })
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
                    flip: if self.order.descending { !0 } else { 0 },
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
    /// Where a launch reads and where it writes: from the input to the output in the end, and in between to and from a copy, so that
    /// no pass writes what it reads.
    fn ends<'v, T: Element>(
        &self,
        input: BufferSlice<'v, T>,
        copy: &'v mut Option<BufferSliceMut<'_, T>>,
        out: &'v mut BufferSliceMut<'_, T>,
    ) -> (BufferSlice<'v, T>, BufferSliceMut<'v, T>) {
        match (self.first, self.to_out, copy) {
            (true, true, _) => (input, out.into()),
            (false, true, Some(copy)) => (copy.as_slice(), out.into()),
            (true, false, Some(copy)) => (input, copy.into()),
            (false, false, Some(copy)) => (out.as_slice(), copy.into()),
            (_, _, None) => unreachable!("more than one pass has a copy"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Device;
    use crate::functor::{Greater, Less};

    /// Three launches a pass, of which the last is the smallest: each takes up where the one before has ended.
    #[test]
    fn portions_continue_each_other() -> Result<()> {
        let stream = Device::emulator().stream()?;
        let tile = device::sort_tile_items(4, 4);
        let keys: Vec<u32> = (0..5 * tile as u32 - 100).map(|i| i.wrapping_mul(0x9e37_79b1) >> 12 << 7).collect();
        let values: Vec<u32> = (0..keys.len() as u32).collect();
        let (x, v) = (stream.buffer_from(&keys)?, stream.buffer_from(&values)?);
        let mut out = stream.buffer_zeroed::<u32>(keys.len())?;
        let mut values_out = stream.buffer_zeroed::<u32>(keys.len())?;

        let order = Order::of::<u32, Less>("sort_keys", 0..27)?;
        keys_in_portions(Run::on(&stream), x.as_slice(), (&mut out).into(), order, 2 * tile + 1)?;
        let mut expected = keys.clone();
        expected.sort_by_key(|key| key & 0x7ff_ffff);
        assert!(out.to_vec()? == expected);

        let order = Order::of::<u32, Greater>("sort_pairs", 9..32)?;
        let to = ((&mut out).into(), (&mut values_out).into());
        pairs_in_portions(Run::on(&stream), (x.as_slice(), v.as_slice()), to, order, 2 * tile + 1)?;
        let mut expected = values;
        expected.sort_by_key(|&value| std::cmp::Reverse(keys[value as usize] >> 9));
        assert!(values_out.to_vec()? == expected);
        Ok(())
    }
}
