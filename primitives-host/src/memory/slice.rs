//! Parts of buffers: slices, copies of them, and kernels' arguments.

use std::marker::PhantomData;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

use primitives_gpu::Element;
use primitives_gpu::view::RawView;

use crate::launch::graph::check_host_copy;
use crate::memory::allocation::{Allocation, Displaced, ReadByHost};
use crate::memory::buffer::Buffer;
use crate::memory::claims;
use crate::memory::peer;
use crate::memory::pinned::PinnedBuffer;
use crate::memory::transfer::{Direction, Transfer};
use crate::memory::uses::{Mode, Uses};
use crate::memory::{bytes_of, bytes_of_mut, check_bits, zeroed_vec};
use crate::stream::{Queue, Stream};
use crate::{Error, Result};

/// A part of an allocation.
pub(crate) struct Part<'a, T> {
    pub(crate) allocation: &'a Arc<Allocation>,
    /// First byte.
    pub(crate) start: usize,
    /// Elements.
    pub(crate) len: usize,
    pub(crate) _elements: PhantomData<T>,
}

impl<'a, T: Element> Part<'a, T> {
    fn address(self) -> u64 {
        self.allocation.address() + self.start as u64
    }

    fn sub(self, range: impl RangeBounds<usize>) -> Result<Self> {
        // A bound past the largest number lies outside of any buffer.
        let start = match range.start_bound() {
            Bound::Included(&start) => Some(start),
            Bound::Excluded(&before) => before.checked_add(1),
            Bound::Unbounded => Some(0),
        };
        let end = match range.end_bound() {
            Bound::Included(&last) => last.checked_add(1),
            Bound::Excluded(&end) => Some(end),
            Bound::Unbounded => Some(self.len),
        };
        let (start, end) = match (start, end) {
            (Some(start), Some(end)) if start <= end && end <= self.len => (start, end),
            _ => {
                let (start, end) = (start.unwrap_or(usize::MAX), end.unwrap_or(usize::MAX));
                return Err(Error::OutOfRange { start, end, len: self.len });
            }
        };
        Ok(Self { start: self.start + start * size_of::<T>(), len: end - start, ..self })
    }

    fn reinterpret<U: Element>(self) -> Result<Part<'a, U>> {
        let refuse = |reason: String| Error::Reinterpret {
            from: std::any::type_name::<T>(),
            to: std::any::type_name::<U>(),
            len: self.len,
            address: self.address(),
            reason,
        };
        if !U::ANY_BITS {
            return Err(refuse("not all bytes are values of it".into()));
        }
        let bytes = self.len * size_of::<T>();
        if size_of::<U>() == 0 || !bytes.is_multiple_of(size_of::<U>()) {
            return Err(refuse(format!("{bytes} bytes are no multiple of its {}", size_of::<U>())));
        }
        if !self.address().is_multiple_of(align_of::<U>() as u64) {
            return Err(refuse(format!("it needs an alignment of {} bytes", align_of::<U>())));
        }
        Ok(Part { allocation: self.allocation, start: self.start, len: bytes / size_of::<U>(), _elements: PhantomData })
    }

    fn copy_to(self, host: &mut [T]) -> Result<()> {
        check_lengths("copy to the host", "the slice", self.len, "the host's", host.len())?;
        check_host_copy("`Buffer::copy_to`", self.allocation)?;
        self.allocation.writer().check_copy(size_of_val(host))?;
        let _held = claims::lock_one(self.allocation, Mode::Read)?;
        let _read = ReadByHost::new(self.allocation);
        let writer = self.allocation.writer();
        if T::ANY_BITS {
            return self.allocation.memory().read(&writer, self.start, bytes_of_mut(host));
        }
        let mut bytes = zeroed_vec(size_of_val(host))?;
        self.allocation.memory().read(&writer, self.start, &mut bytes)?;
        check_bits::<T>(&bytes)?;
        bytes_of_mut(host).copy_from_slice(&bytes);
        Ok(())
    }

    fn copy_from(self, host: &[T]) -> Result<()> {
        check_lengths("copy from the host", "the slice", self.len, "the host's", host.len())?;
        check_host_copy("`Buffer::copy_from`", self.allocation)?;
        self.allocation.writer().check_copy(size_of_val(host))?;
        let mut displaced = Displaced::default();
        let _held = claims::lock_one(self.allocation, Mode::Write)?;
        let stream = self.allocation.writer();
        {
            let _turn = self.allocation.device().turn();
            self.allocation.enter(&stream, Mode::Write, &mut displaced)?;
            // Other work has later positions, and the copy waits for this one: then nobody else needs to.
            stream.take_position();
        }
        // Nobody else uses these bytes meanwhile: they are borrowed to be written, and a graph waits for the lock.
        self.allocation.memory().write(&stream, self.start, bytes_of(host))
    }

    fn to_vec(self) -> Result<Vec<T>> {
        let mut host = zeroed_vec(self.len)?;
        self.copy_to(&mut host)?;
        Ok(host)
    }

    fn raw(self) -> RawView<T> {
        RawView::new(self.address() as usize as *mut T, self.len)
    }
}

impl<'a, T: Element> Part<'a, T> {
    /// Begins a copy between the elements and pinned memory, which the transfer owns.
    fn transfer(self, stream: &Stream, host: PinnedBuffer<T>, direction: Direction) -> Result<Transfer<T>> {
        let (call, mode) = match direction {
            Direction::FromHost => ("`copy_from_async`", Mode::Write),
            Direction::ToHost => ("`copy_to_async`", Mode::Read),
        };
        check_lengths(call, "the slice", self.len, "the host's", host.len())?;
        let access = Access::new(call, &self, stream)?;
        check_host_copy(call, access.0)?;
        let advice = "what was captured has not run: copy on a stream that does not capture";
        match &stream.0.queue {
            Queue::Emulator(_) => {}
            #[cfg(feature = "cuda")]
            Queue::Cuda(queue) => {
                if !host.is_locked() {
                    return Err(Error::WrongDevice {
                        kernel: call.trim_matches('`').into(),
                        argument: "host".into(),
                        stream: stream.device().to_string(),
                        buffer: "the emulator, whose pinned memory is ordinary".into(),
                    });
                }
                queue.not_captured(call, advice)?;
            }
            Queue::Capture(_) => return Err(Error::Capture { call, advice }),
        }
        let mut uses = Uses::default();
        uses.add(access.0, mode);
        let (memory, bytes) = (access.0.memory(), self.len * size_of::<T>());
        stream.0.check_copy(bytes)?;
        Transfer::begin(stream, host, direction, |host| {
            let mut displaced = Displaced::default();
            let _held = uses.lock()?;
            let _turn = stream.device().turn();
            uses.enter(&stream.0, &mut displaced)?;
            // SAFETY: as many bytes, which the transfer owns until the stream has come to its end.
            unsafe {
                match direction {
                    Direction::FromHost => memory.begin_write(&stream.0, self.start, host.cast_const(), bytes),
                    Direction::ToHost => memory.begin_read(&stream.0, self.start, host, bytes),
                }
            }
        })
    }
}

pub(crate) fn check_lengths(what: &str, first: &str, first_len: usize, second: &str, second_len: usize) -> Result<()> {
    if first_len == second_len {
        return Ok(());
    }
    Err(Error::LengthMismatch {
        kernel: what.trim_matches('`').into(),
        first: first.into(),
        first_len,
        second: second.into(),
        second_len,
    })
}

/// A part of a [`Buffer`], to read.
pub struct BufferSlice<'a, T>(pub(crate) Part<'a, T>);

/// A part of a [`Buffer`], to write.
pub struct BufferSliceMut<'a, T>(pub(crate) Part<'a, T>);

impl<T> Clone for BufferSlice<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for BufferSlice<'_, T> {}
impl<T> Clone for Part<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Part<'_, T> {}

impl<'a, T: Element> BufferSlice<'a, T> {
    pub(crate) fn of_allocation(allocation: &'a Arc<Allocation>) -> Self {
        let len = allocation.memory().len() / size_of::<T>().max(1);
        Self(Part { allocation, start: 0, len, _elements: PhantomData })
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.0.len
    }

    /// True if the length is 0.
    pub fn is_empty(&self) -> bool {
        self.0.len == 0
    }

    /// The elements of `range`, counted in this slice.
    ///
    /// # Errors
    /// Returns [`Error::OutOfRange`] if the range is not inside the slice.
    pub fn slice(self, range: impl RangeBounds<usize>) -> Result<Self> {
        Ok(Self(self.0.sub(range)?))
    }

    /// The same bytes as elements of another type. Fails if size or alignment do not fit.
    ///
    /// # Errors
    /// Returns [`Error::Reinterpret`] if the bytes are no whole number of elements of the other type, if they are not aligned for it, or if
    /// not all bytes are values of it.
    pub fn reinterpret<U: Element>(self) -> Result<BufferSlice<'a, U>> {
        Ok(BufferSlice(self.0.reinterpret()?))
    }

    /// Copies the elements to the host. The copy waits for all earlier writes of the elements.
    ///
    /// # Errors
    /// Returns [`Error::Allocation`] if the host does not have the memory, and the errors of [`copy_to`](Self::copy_to).
    pub fn to_vec(&self) -> Result<Vec<T>> {
        self.0.to_vec()
    }

    /// Copies the elements to `host`, which must have the same length. The copy waits for all earlier writes of the elements.
    ///
    /// # Errors
    /// Returns [`Error::LengthMismatch`] if the lengths differ, [`Error::Capture`] if a capture uses the buffer, [`Error::Fault`] if the
    /// copy finds that a kernel on a GPU has faulted, [`Error::InKernel`] if a kernel of the emulator makes the call and the copy would
    /// wait for this kernel, [`Error::InvalidBits`] if the bytes are no values of `T`, such as 2 for a `bool`, and the errors of the
    /// driver.
    pub fn copy_to(&self, host: &mut [T]) -> Result<()> {
        self.0.copy_to(host)
    }

    /// Starts a copy of the elements to `host`, which must have the same length, in the order of `stream` and after all earlier writes of
    /// the elements. The [`Transfer`] owns `host` until [`Transfer::wait`] returns it.
    ///
    /// # Errors
    ///
    /// Returns [`Error::LengthMismatch`] if the lengths differ, [`Error::WrongDevice`] if the buffer is on another device than the
    /// stream, and [`Error::Capture`] if the stream captures, or a capture of this thread uses the buffer. The memory is dropped with
    /// an error.
    pub fn copy_to_async(&self, stream: &Stream, host: PinnedBuffer<T>) -> Result<Transfer<T>> {
        self.0.transfer(stream, host, Direction::ToHost)
    }
}

impl<'a, T: Element> BufferSliceMut<'a, T> {
    pub(crate) fn of_allocation(allocation: &'a mut Arc<Allocation>) -> Self {
        Self(BufferSlice::of_allocation(allocation).0)
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.0.len
    }

    /// True if the length is 0.
    pub fn is_empty(&self) -> bool {
        self.0.len == 0
    }

    /// The elements to read.
    pub fn as_slice(&self) -> BufferSlice<'_, T> {
        BufferSlice(self.0)
    }

    /// The elements of `range`, counted in this slice.
    ///
    /// # Errors
    /// Returns [`Error::OutOfRange`] if the range is not inside the slice.
    pub fn into_slice(self, range: impl RangeBounds<usize>) -> Result<Self> {
        Ok(Self(self.0.sub(range)?))
    }

    /// The elements before `at`, and the rest.
    ///
    /// # Errors
    /// Returns [`Error::OutOfRange`] if `at` is larger than the length.
    pub fn split_at(self, at: usize) -> Result<(Self, Self)> {
        Ok((Self(self.0.sub(..at)?), Self(self.0.sub(at..)?)))
    }

    /// The same bytes as elements of another type. Fails if size or alignment do not fit.
    ///
    /// # Errors
    /// Returns [`Error::Reinterpret`] if the bytes are no whole number of elements of the other type, if they are not aligned for it, or if
    /// not all bytes are values of it, and if not all bytes are values of `T`.
    pub fn reinterpret<U: Element>(self) -> Result<BufferSliceMut<'a, U>> {
        if !T::ANY_BITS {
            return Err(Error::Reinterpret {
                from: std::any::type_name::<T>(),
                to: std::any::type_name::<U>(),
                len: self.0.len,
                address: self.0.address(),
                reason: format!("writes could leave bytes that are no {}", std::any::type_name::<T>()),
            });
        }
        Ok(BufferSliceMut(self.0.reinterpret()?))
    }

    /// Copies `host`, which must have the same length, over the elements. The copy waits for all earlier uses of the elements.
    ///
    /// # Errors
    /// Returns the errors of [`BufferSlice::copy_to`], except [`Error::InvalidBits`].
    pub fn copy_from(&mut self, host: &[T]) -> Result<()> {
        self.0.copy_from(host)
    }

    /// Starts a copy of `host`, which must have the same length, over the elements, in the order of `stream` and after all earlier uses of
    /// the elements. The [`Transfer`] owns `host` until [`Transfer::wait`] returns it. Later work on `stream` finds the new elements, and
    /// work on other streams waits for the copy.
    ///
    /// # Errors
    ///
    /// Returns [`Error::LengthMismatch`] if the lengths differ, [`Error::WrongDevice`] if the buffer is on another device than the
    /// stream, and [`Error::Capture`] if the stream captures, or a capture of this thread uses the buffer. The memory is dropped with
    /// an error.
    pub fn copy_from_async(&mut self, stream: &Stream, host: PinnedBuffer<T>) -> Result<Transfer<T>> {
        self.0.transfer(stream, host, Direction::FromHost)
    }

    /// Sets all elements to [`ZERO`](Element::ZERO), on `stream`. This costs the host a fraction of the launch of a kernel. A
    /// [`Graph`](crate::Graph) can contain it.
    ///
    /// # Errors
    /// Returns [`Error::WrongDevice`] if the memory is on another device than the stream, and the errors of the driver.
    pub fn set_zero(&mut self, stream: &Stream) -> Result<()> {
        let target = Access::new("set to zero", &self.0, stream)?;
        let bytes = self.0.len * size_of::<T>();
        let mut uses = Uses::default();
        uses.add(target.0, Mode::Write);
        if let Queue::Capture(recording) = &stream.0.queue {
            return recording.add(|recorded| recorded.fill_zero(&uses, (target.0, self.0.start), bytes));
        }
        stream.0.check_copy(bytes)?;
        let mut displaced = Displaced::default();
        let _held = uses.lock()?;
        let _turn = stream.device().turn();
        uses.enter(&stream.0, &mut displaced)?;
        target.0.memory().fill_zero(&stream.0, self.0.start, bytes)
    }

    /// Copies `other` over the elements, on `stream`. `other` must have the same length, and must be on the same device.
    ///
    /// # Errors
    /// Returns [`Error::LengthMismatch`] if the lengths differ, [`Error::WrongDevice`] if one of the two is on another device than the
    /// stream, [`Error::InKernel`] if a kernel of the emulator makes the call and the copy would wait for this kernel, and the errors of
    /// the driver.
    pub fn copy_from_device(&mut self, stream: &Stream, other: BufferSlice<'_, T>) -> Result<()> {
        let call = "copy on the device";
        check_lengths(call, "the target", self.0.len, "the source", other.0.len)?;
        let access = |part| Access::new(call, part, stream);
        let (target, source) = (access(&self.0)?, access(&other.0)?);
        let (to, from) = ((target.0, self.0.start), (source.0, other.0.start));
        peer::copy(call, stream, to, from, self.0.len * size_of::<T>())
    }

    /// Copies `other` over the elements. `other` must have the same length, and may be on any device. `stream` must belong to this buffer's
    /// device. The copy waits for all earlier writes of `other`, also on the streams of its device, and later writes of `other` wait for
    /// the copy.
    ///
    /// GPUs that can access each other's memory copy directly, over NVLink if they have it. All other copies go through the host. The copy
    /// is only enqueued: if a kernel that should have written `other` has a fault, the stream of that kernel returns it.
    ///
    /// # Errors
    ///
    /// Returns [`Error::LengthMismatch`] if the lengths differ, [`Error::WrongDevice`] if this buffer is on another device than the stream,
    /// or if one of the two buffers is on a GPU and the other one on the emulator, and [`Error::Capture`] if the stream captures and the
    /// devices differ.
    pub fn copy_from_peer(&mut self, stream: &Stream, other: BufferSlice<'_, T>) -> Result<()> {
        self.copy_from_peer_by("`copy_from_peer`", stream, other)
    }

    /// As [`copy_from_peer`](Self::copy_from_peer), for another call.
    pub(crate) fn copy_from_peer_by(
        &mut self,
        call: &'static str,
        stream: &Stream,
        other: BufferSlice<'_, T>,
    ) -> Result<()> {
        check_lengths(call, "the target", self.0.len, "the source", other.0.len)?;
        let (to, from) = ((self.0.allocation, self.0.start), (other.0.allocation, other.0.start));
        peer::copy(call, stream, to, from, self.0.len * size_of::<T>())
    }
}

impl<'a, T: Element> From<&'a Buffer<T>> for BufferSlice<'a, T> {
    fn from(buffer: &'a Buffer<T>) -> Self {
        buffer.as_slice()
    }
}

impl<'a, T: Element> From<&'a BufferSliceMut<'_, T>> for BufferSlice<'a, T> {
    fn from(slice: &'a BufferSliceMut<'_, T>) -> Self {
        slice.as_slice()
    }
}

impl<'a, T: Element> From<&'a mut Buffer<T>> for BufferSliceMut<'a, T> {
    fn from(buffer: &'a mut Buffer<T>) -> Self {
        buffer.as_mut_slice()
    }
}

impl<'a, T: Element> From<&'a mut BufferSliceMut<'_, T>> for BufferSliceMut<'a, T> {
    fn from(slice: &'a mut BufferSliceMut<'_, T>) -> Self {
        Self(slice.0)
    }
}

/// A part's allocation, which is known to be on the stream's device.
struct Access<'a>(&'a Arc<Allocation>);

impl<'a> Access<'a> {
    fn new<T>(what: &str, part: &Part<'a, T>, stream: &Stream) -> Result<Self> {
        if part.allocation.device().same_as(stream.device()) {
            return Ok(Self(part.allocation));
        }
        Err(Error::WrongDevice {
            kernel: what.trim_matches('`').into(),
            argument: "the slice".into(),
            stream: stream.device().to_string(),
            buffer: part.allocation.device().to_string(),
        })
    }
}

mod sealed {
    use crate::memory::allocation::Allocation;
    use primitives_gpu::view::RawView;
    use std::sync::Arc;

    /// Where an argument's elements lie.
    #[allow(unreachable_pub, reason = "sealed")]
    pub trait Argument<T> {
        fn parts(&self) -> (&Arc<Allocation>, RawView<T>);
    }
}
pub(crate) use sealed::Argument;

/// An argument for a kernel's `Global<T>` parameter: a `&Buffer<T>` or a [`BufferSlice<T>`](BufferSlice).
#[diagnostic::on_unimplemented(
    message = "a `Global<{T}>` parameter does not take `{Self}`",
    label = "not a buffer of `{T}` to read",
    note = "pass a `&Buffer<{T}>` or a `BufferSlice<{T}>`"
)]
pub trait ReadArg<T>: Argument<T> {}

/// An argument for a kernel's `GlobalMut<T>` parameter: a `&mut Buffer<T>` or a [`BufferSliceMut<T>`](BufferSliceMut).
#[diagnostic::on_unimplemented(
    message = "a `GlobalMut<{T}>` parameter does not take `{Self}`",
    label = "not a buffer of `{T}` to write",
    note = "pass a `&mut Buffer<{T}>` or a `BufferSliceMut<{T}>`"
)]
pub trait WriteArg<T>: Argument<T> {}

macro_rules! arguments {
    ($($trait:ident: $t:ty, |$this:ident| $part:expr;)*) => {$(
        impl<T: Element> Argument<T> for $t {
            fn parts(&self) -> (&Arc<Allocation>, RawView<T>) {
                let $this = self;
                let part: &Part<'_, T> = &$part;
                (part.allocation, part.raw())
            }
        }
        impl<T: Element> $trait<T> for $t {}
    )*};
}
arguments! {
    ReadArg: &Buffer<T>, |this| this.as_slice().0;
    ReadArg: BufferSlice<'_, T>, |this| this.0;
    ReadArg: &BufferSlice<'_, T>, |this| this.0;
    ReadArg: &BufferSliceMut<'_, T>, |this| this.0;
    WriteArg: &mut Buffer<T>, |this| this.as_slice().0;
    WriteArg: BufferSliceMut<'_, T>, |this| this.0;
    WriteArg: &mut BufferSliceMut<'_, T>, |this| this.0;
}
