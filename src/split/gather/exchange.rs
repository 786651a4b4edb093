//! The exchange of a gather: devices send requests to the owners of the items, and receive answers.
//!
//! A device sorts the numbers of its indices by the part of `x` that has the item. One digit is enough for up to 256 parts, so the sort
//! takes one pass. It is stable. The host receives the number of indices of each part, because it needs the sizes of the copies. Then all
//! requests are sent, the owners gather, and the items that come back are scattered to their places.

use std::ops::Range;
use std::panic::Location;
use std::sync::Arc;

use crate::algorithms::{Gather, Scatter, histogram_even, sort_pairs_by_bits};
use crate::expr::Wanted;
use crate::expr::graph::View;
use crate::functor::Less;
use crate::{Buffer, BufferSlice, BufferSliceMut, Element, Error, Result, Stream, algorithms};

/// The advice for a stream that captures.
pub(crate) const ADVICE: &str = "a graph is of one device: gather before the capture, or after it";

/// Limits on the size of an exchange.
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    /// The most items of a part: the numbers of its items have 32 bits.
    part: usize,
    /// The most indices of a device in a round. This limits the temporary memory.
    round: usize,
}

/// The limits that calls use. Tests use lower ones.
pub(crate) const LIMITS: Limits = Limits { part: u32::MAX as usize, round: 1 << 26 };

/// Returns whether a device that asks for `asked` items receives a copy of all `len` items, because this moves at most as many bytes. An
/// item has `bytes` bytes.
///
/// If the indices are random, the same share of both amounts is on the device itself.
pub(crate) fn takes_all(len: usize, bytes: usize, asked: usize) -> bool {
    len.saturating_mul(bytes) <= asked.saturating_mul(bytes + size_of::<u32>())
}

/// The request of a device.
pub(crate) struct Asking<'a, T> {
    pub(crate) device: usize,
    /// The indices, a vector on the device. They count over all items.
    pub(crate) index: Arc<View>,
    /// The places for the items, one for each index.
    pub(crate) out: BufferSliceMut<'a, T>,
}

/// A part of all items, on a device.
struct Part<'a, T> {
    device: usize,
    items: BufferSlice<'a, T>,
}

/// Divides the items of each device into parts of at most `most` items. Also returns where each part ends.
fn parts<'a, T: Element>(x: &[BufferSlice<'a, T>], most: usize) -> Result<(Vec<Part<'a, T>>, Vec<usize>)> {
    let (mut parts, mut ends, mut end) = (Vec::new(), Vec::new(), 0);
    for (device, &of_device) in x.iter().enumerate() {
        for start in (0..of_device.len()).step_by(most) {
            let items = of_device.slice(start..of_device.len().min(start + most))?;
            end += items.len();
            parts.push(Part { device, items });
            ends.push(end);
        }
    }
    Ok((parts, ends))
}

/// Some of a device's indices, sorted by the part that has the item.
struct Sorted {
    /// The number of the request.
    asking: usize,
    range: Range<usize>,
    /// The place of each index in the range.
    order: Buffer<u32>,
    /// The place of each item in its part.
    items: Buffer<u32>,
    /// The number of indices of each part.
    counts: Buffer<u32>,
}

impl Sorted {
    fn of(
        (place, call): (&'static Location<'static>, &'static str),
        index: &Arc<View>,
        (asking, range): (usize, Range<usize>),
        ends: &[usize],
    ) -> Result<Self> {
        let (stream, len) = (&index.stream, range.len());
        let wanted = Wanted::of((place, call), index, range.clone(), ends)?;
        let (parts, numbers, items) = wanted.slices();
        let mut counts = stream.buffer_uninit::<u32>(ends.len().max(1))?;
        histogram_even(stream, parts, 0, counts.len() as i64, &mut counts)?;
        let (mut sorted, mut order) = (stream.buffer_uninit::<u16>(len)?, stream.buffer_uninit::<u32>(len)?);
        let bits = usize::BITS - (counts.len() - 1).leading_zeros();
        sort_pairs_by_bits(stream, parts, numbers, &mut sorted, &mut order, Less, 0..bits)?;
        let mut in_order = stream.buffer_uninit::<u32>(len)?;
        algorithms::gather(stream, items, &order, &mut in_order)?;
        Ok(Self { asking, range, order, items: in_order, counts })
    }

    /// Returns the range of each part among the sorted indices.
    fn ranges(&self) -> Result<Vec<Range<usize>>> {
        let mut end = 0;
        let ranges = self.counts.to_vec()?.into_iter().map(|count| {
            end += count as usize;
            end - count as usize..end
        });
        Ok(ranges.collect())
    }
}

/// Answers the requests of devices: gathers items of `x`, which has a part on each device of `streams`.
pub(crate) fn exchange<T, G, S>(
    call: (&'static Location<'static>, &'static str),
    streams: &[Stream],
    x: &[BufferSlice<'_, T>],
    mut asking: Vec<Asking<'_, T>>,
    limits: Limits,
) -> Result<()>
where
    T: Element + Gather<u32, T, G> + Scatter<u32, S>,
{
    let (parts, ends) = parts(x, limits.part)?;
    if parts.len() > 1 << u16::BITS {
        let reason = format!("the input has {} parts, more than 2^16", parts.len());
        return Err(Error::Split { call: call.1, reason });
    }
    let most = asking.iter().map(|one| one.out.len()).max().unwrap_or(0);
    for start in (0..most).step_by(limits.round) {
        let mut sorted = Vec::new();
        for (number, one) in asking.iter().enumerate().filter(|(_, one)| one.out.len() > start) {
            let range = start..one.out.len().min(start + limits.round);
            sorted.push(Sorted::of(call, &one.index, (number, range), &ends)?);
        }
        let ranges: Vec<_> = sorted.iter().map(Sorted::ranges).collect::<Result<_>>()?;
        // All requests come before all answers, so that no device waits for an answer before it answers another device.
        let mut answers = Vec::new();
        for (sorted, ranges) in sorted.iter().zip(&ranges) {
            let home = asking[sorted.asking].device;
            answers.push(Answers::of(streams, home, &parts, sorted, ranges)?);
        }
        for (sorted, answers) in sorted.iter().zip(answers) {
            let one = &mut asking[sorted.asking];
            let items = answers.brought(&streams[one.device])?;
            let out = BufferSliceMut::from(&mut one.out).into_slice(sorted.range.clone())?;
            algorithms::scatter(&streams[one.device], &items, &sorted.order, out)?;
        }
    }
    Ok(())
}

/// The items that a device receives.
struct Answers<T> {
    /// All items. Those that the device has itself are already there.
    items: Buffer<T>,
    /// The items of other devices, and their ranges in `items`.
    elsewhere: Vec<(Range<usize>, Buffer<T>)>,
}

impl<T: Element> Answers<T> {
    /// Requests all items that the device `home` wants.
    fn of<G>(
        streams: &[Stream],
        home: usize,
        parts: &[Part<'_, T>],
        sorted: &Sorted,
        ranges: &[Range<usize>],
    ) -> Result<Self>
    where
        T: Gather<u32, T, G>,
    {
        let (mut items, mut elsewhere) = (streams[home].buffer_uninit(sorted.range.len())?, Vec::new());
        // Each device begins with another owner, so that they do not all ask one device.
        for number in (0..parts.len()).map(|i| (home + i) % parts.len()) {
            let (part, range) = (&parts[number], ranges[number].clone());
            if range.is_empty() {
                continue;
            }
            let (stream, asked) = (&streams[part.device], sorted.items.slice(range.clone())?);
            if part.device == home {
                algorithms::gather(stream, part.items, asked, items.slice_mut(range)?)?;
                continue;
            }
            let (mut there, mut found) = (stream.buffer_uninit(range.len())?, stream.buffer_uninit(range.len())?);
            there.as_mut_slice().copy_from_peer(stream, asked)?;
            algorithms::gather(stream, part.items, &there, &mut found)?;
            elsewhere.push((range, found));
        }
        Ok(Self { items, elsewhere })
    }

    /// Copies all items to the device of a stream.
    fn brought(mut self, stream: &Stream) -> Result<Buffer<T>> {
        for (range, found) in &self.elsewhere {
            self.items.slice_mut(range.clone())?.copy_from_peer(stream, found.as_slice())?;
        }
        Ok(self.items)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::vector_of;
    use crate::{Devices, Split, SplitBuffer};

    #[test]
    fn rounds_and_parts_of_any_size_give_the_same() -> Result<()> {
        let split = Split::weighted(&Devices::emulated(3)?, &[2.0, 1.0, 3.0])?;
        let host: Vec<u16> = (0..50).map(|i| i * 31).collect();
        let x = SplitBuffer::from_slice(&split, &host)?;
        let indices: Vec<u32> = (0..130).map(|i| i * 7919 % 50).collect();
        let at = SplitBuffer::from_slice(&split, &indices)?;
        let expected: Vec<u16> = indices.iter().map(|&index| host[index as usize]).collect();
        for (part, round) in [(1, 1000), (7, 3), (1000, 1), (13, 64)] {
            let mut out = SplitBuffer::uninit(&split, indices.len())?;
            let asking = out.parts_mut().enumerate().map(|(device, out)| {
                let index = vector_of(&split.streams()[device], at.buffer(device), out.len());
                Asking { device, index, out }
            });
            let parts: Vec<_> = (0..3).map(|device| x.part(device)).collect();
            let call = (Location::caller(), "`a test`");
            exchange(call, split.streams(), &parts, asking.collect(), Limits { part, round })?;
            assert_eq!(out.to_vec()?, expected, "{part} {round}");
        }
        Ok(())
    }
}
