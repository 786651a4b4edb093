//! Buffers that are split over devices.

use std::fmt;
use std::ops::Range;

use primitives_gpu::Element;

use super::Split;
use crate::memory::buffer::Buffer;
use crate::memory::slice::{BufferSlice, BufferSliceMut, check_lengths};
use crate::stream::Stream;
use crate::{Error, Result};

/// An array in the memory of several devices: a [`Buffer`] on each device of a [`Split`], in order.
///
/// ```
/// use kernel_primitives::{Devices, Split, SplitBuffer};
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let devices = Devices::emulated(2)?;
/// let x = SplitBuffer::from_slice(&Split::even(&devices)?, &[1, 2, 3, 4])?;
/// assert_eq!((x.part(1).to_vec()?, x.range(1)), (vec![3, 4], 2..4));
///
/// // The same elements by other weights: only those that move are copied between devices.
/// let mut y = SplitBuffer::zeroed(&Split::weighted(&devices, &[3.0, 1.0])?, 4)?;
/// y.copy_from_split(&x)?;
/// assert_eq!((y.part(0).to_vec()?, y.to_vec()?), (vec![1, 2, 3], vec![1, 2, 3, 4]));
/// # Ok(())
/// # }
/// ```
pub struct SplitBuffer<T> {
    split: Split,
    bounds: Vec<usize>,
    parts: Vec<Buffer<T>>,
}

impl<T: Element> SplitBuffer<T> {
    fn made(split: &Split, len: usize, part: impl Fn(&Stream, Range<usize>) -> Result<Buffer<T>>) -> Result<Self> {
        let bounds = split.bounds(len);
        let mut parts = Vec::with_capacity(split.streams().len());
        for (device, stream) in split.streams().iter().enumerate() {
            parts.push(part(stream, bounds[device]..bounds[device + 1])?);
        }
        Ok(Self { split: split.clone(), bounds, parts })
    }

    /// Allocates `len` elements, all zero.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Stream::buffer_zeroed`].
    pub fn zeroed(split: &Split, len: usize) -> Result<Self> {
        Self::made(split, len, |stream, range| stream.buffer_zeroed(range.len()))
    }

    /// Allocates `len` elements with unspecified values, as [`Stream::buffer_uninit`] does.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Stream::buffer_uninit`].
    pub fn uninit(split: &Split, len: usize) -> Result<Self> {
        Self::made(split, len, |stream, range| stream.buffer_uninit(range.len()))
    }

    /// Allocates a copy of `data`.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Stream::buffer_from`].
    pub fn from_slice(split: &Split, data: &[T]) -> Result<Self> {
        Self::made(split, data.len(), |stream, range| stream.buffer_from(&data[range]))
    }

    /// Makes a split buffer from one buffer on each device, each with the number of elements that count.
    #[doc(hidden)]
    pub fn of_parts(split: &Split, filled: Vec<(Buffer<T>, usize)>) -> Result<Self> {
        let call = "`SplitBuffer::of_parts`";
        if filled.len() != split.streams().len() {
            let reason = format!("there are {} buffers for {} devices", filled.len(), split.streams().len());
            return Err(Error::Split { call, reason });
        }
        let (mut bounds, mut parts) = (vec![0usize], Vec::new());
        for ((part, len), stream) in filled.into_iter().zip(split.streams()) {
            part.slice(..len)?;
            if !part.device().same_as(stream.device()) {
                let reason = format!("a buffer for {} is on {}", stream.device(), part.device());
                return Err(Error::Split { call, reason });
            }
            // The memory of all devices is in one address space, so the sum does not overflow in practice.
            bounds.push(bounds[bounds.len() - 1].saturating_add(len));
            parts.push(part);
        }
        Ok(Self { split: split.clone(), bounds, parts })
    }

    /// Whether both have the same devices, and the same number of elements on each.
    #[doc(hidden)]
    pub fn is_split_as<U>(&self, other: &SplitBuffer<U>) -> bool {
        self.bounds == other.bounds && self.split.has_devices_of(&other.split)
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.bounds[self.parts.len()]
    }

    /// True if there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The split.
    pub fn split(&self) -> &Split {
        &self.split
    }

    /// The first element of each device, followed by the number of elements.
    #[doc(hidden)]
    pub fn bounds(&self) -> &[usize] {
        &self.bounds
    }

    /// The range of elements that device `device` of the split has.
    ///
    /// # Panics
    ///
    /// Panics if the split has no such device.
    pub fn range(&self, device: usize) -> Range<usize> {
        self.bounds[device]..self.bounds[device + 1]
    }

    /// The elements of device `device` of the split, to read.
    ///
    /// # Panics
    ///
    /// Panics if the split has no such device.
    pub fn part(&self, device: usize) -> BufferSlice<'_, T> {
        let len = self.range(device).len();
        self.parts[device].slice(..len).expect("a part is at least as long as its range")
    }

    /// The elements of device `device` of the split, to write.
    ///
    /// # Panics
    ///
    /// Panics if the split has no such device.
    pub fn part_mut(&mut self, device: usize) -> BufferSliceMut<'_, T> {
        let len = self.range(device).len();
        self.parts[device].slice_mut(..len).expect("a part is at least as long as its range")
    }

    /// The buffer of device `device` of the split, which may have room for more than its elements.
    #[doc(hidden)]
    pub fn buffer(&self, device: usize) -> &Buffer<T> {
        &self.parts[device]
    }

    /// The elements of each device, to write.
    pub fn parts_mut(&mut self) -> impl Iterator<Item = BufferSliceMut<'_, T>> {
        let parts = self.parts.iter_mut().zip(self.bounds.windows(2));
        parts.map(|(part, bounds)| {
            let part = part.slice_mut(..bounds[1] - bounds[0]);
            part.expect("a part is at least as long as its range")
        })
    }

    /// The buffers, one for each device, each with its number of elements. A buffer may have room for more.
    pub fn into_parts(self) -> Vec<(Buffer<T>, usize)> {
        let mut parts = Vec::with_capacity(self.parts.len());
        for (device, part) in self.parts.into_iter().enumerate() {
            parts.push((part, self.bounds[device + 1] - self.bounds[device]));
        }
        parts
    }

    /// Copies all elements to the host. The copy waits for all earlier writes of the elements.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Buffer::to_vec`].
    pub fn to_vec(&self) -> Result<Vec<T>> {
        let mut host = crate::memory::zeroed_vec(self.len())?;
        self.copy_to(&mut host)?;
        Ok(host)
    }

    /// Copies all elements to `host`, which must have the same length. The copy waits for all earlier writes of the elements.
    ///
    /// # Errors
    ///
    /// Returns [`Error::LengthMismatch`] if the lengths differ, and the errors of [`Buffer::copy_to`].
    pub fn copy_to(&self, host: &mut [T]) -> Result<()> {
        check_lengths("copy to the host", "the split buffer", self.len(), "the host's", host.len())?;
        (0..self.parts.len()).try_for_each(|device| self.part(device).copy_to(&mut host[self.range(device)]))
    }

    /// Copies `host`, which must have the same length, over all elements. The copy waits for all earlier uses of the elements.
    ///
    /// # Errors
    ///
    /// Returns [`Error::LengthMismatch`] if the lengths differ, and the errors of [`Buffer::copy_from`].
    pub fn copy_from(&mut self, host: &[T]) -> Result<()> {
        check_lengths("copy from the host", "the split buffer", self.len(), "the host's", host.len())?;
        (0..self.parts.len()).try_for_each(|device| {
            let range = self.range(device);
            self.part_mut(device).copy_from(&host[range])
        })
    }

    /// Copies `other` over all elements. `other` must have the same length, and may be split in any way over any devices. A range that is
    /// on two different devices goes from one to the other, on the stream of the target device.
    ///
    /// # Errors
    ///
    /// Returns [`Error::LengthMismatch`] if the lengths differ, and the errors of [`BufferSliceMut::copy_from_peer`].
    pub fn copy_from_split(&mut self, other: &Self) -> Result<()> {
        let call = "`copy_from_split`";
        check_lengths(call, "the target", self.len(), "the source", other.len())?;
        for move_ in moves(&self.bounds, &other.bounds) {
            let source = other.part(move_.from).slice(within(&move_.range, other.bounds[move_.from]))?;
            let (stream, range) = (&self.split.0.streams[move_.to], within(&move_.range, self.bounds[move_.to]));
            self.parts[move_.to].slice_mut(range)?.copy_from_peer_by(call, stream, source)?;
        }
        Ok(())
    }
}

/// A range of rows that goes from one device of a split to one of another split.
#[doc(hidden)]
pub struct Move {
    /// The number of the device that has the rows.
    pub from: usize,
    /// The number of the device that the rows go to.
    pub to: usize,
    /// The range of rows in the whole.
    pub range: Range<usize>,
}

/// Divides all rows into ranges that are on one device by the bounds `from` and on one device by the bounds `to`, in order.
#[doc(hidden)]
pub fn moves(to: &[usize], from: &[usize]) -> Vec<Move> {
    let mut moves = Vec::new();
    let (mut target, mut source, mut start) = (0, 0, 0);
    while target + 1 < to.len() && source + 1 < from.len() {
        let end = to[target + 1].min(from[source + 1]);
        if start < end {
            moves.push(Move { from: source, to: target, range: start..end });
            start = end;
        }
        // A device without rows left is done. Both may be done at once.
        match to[target + 1] <= end {
            true => target += 1,
            false => source += 1,
        }
    }
    moves
}

/// A range of rows, counted from the first row of a device.
fn within(range: &Range<usize>, first: usize) -> Range<usize> {
    range.start - first..range.end - first
}

impl<T> fmt::Debug for SplitBuffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SplitBuffer<{}>({})", std::any::type_name::<T>(), self.split.describe(&self.bounds))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every way to bound so many rows by so many devices.
    fn all_bounds(rows: usize, devices: usize) -> Vec<Vec<usize>> {
        if devices == 1 {
            return vec![vec![0, rows]];
        }
        let shorter =
            (0..=rows).flat_map(|end| all_bounds(end, devices - 1).into_iter().map(move |bounds| (bounds, rows)));
        shorter.map(|(bounds, rows)| bounds.into_iter().chain([rows]).collect()).collect()
    }

    #[test]
    fn moves_bring_each_row_once_from_where_it_is_to_where_it_goes() {
        for rows in 0..5 {
            for to in all_bounds(rows, 3) {
                for from in (1..4).flat_map(|devices| all_bounds(rows, devices)) {
                    let mut next = 0;
                    for Move { from: source, to: target, range } in moves(&to, &from) {
                        assert_eq!(range.start, next, "{to:?} {from:?}");
                        assert!(!range.is_empty(), "{to:?} {from:?}");
                        assert!(to[target] <= range.start && range.end <= to[target + 1], "{to:?} {from:?}");
                        assert!(from[source] <= range.start && range.end <= from[source + 1], "{to:?} {from:?}");
                        next = range.end;
                    }
                    assert_eq!(next, rows, "{to:?} {from:?}");
                }
            }
        }
    }
}
