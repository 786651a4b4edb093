//! Device memory: buffers and slices of them.

use std::marker::PhantomData;
use std::ops::{Bound, RangeBounds};
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use primitives_gpu::Element;
use primitives_gpu::view::RawView;

use crate::device::Device;
use crate::graph::check_host_copy;
use crate::memory::{Memory, bytes_of, bytes_of_mut};
use crate::stream::{Queue, Stream, StreamInner};
use crate::uses::{Mode, Uses};
use crate::{Error, Result};

/// An allocation on a device and the streams that have used it.
///
/// Work on one stream is in order by itself. When another stream comes to an allocation, it waits for those that wrote it
/// before (to read it), or for all that used it (to write it). Nothing is recorded on the way: the event is made when the
/// second stream comes, so the common case of one stream costs a comparison.
#[allow(unreachable_pub, reason = "named by a sealed trait only")]
pub struct Allocation {
    memory: Memory,
    usage: Mutex<Usage>,
    /// The stream that `usage` says is the only one, or null. Who uses a buffer on a GPU holds the device's turn, so
    /// that nobody looks while this changes, and the stream is alive.
    sole: AtomicPtr<StreamInner>,
    /// Held while the host or the emulator accesses the bytes, and while a graph is put into a queue. Borrows keep most of
    /// this apart already; but a graph does not borrow what it uses.
    lock: RwLock<()>,
}

/// An allocation's lock.
pub(crate) enum Held<'a> {
    Read { _guard: RwLockReadGuard<'a, ()> },
    Write { _guard: RwLockWriteGuard<'a, ()> },
}

struct Usage {
    writer: Arc<StreamInner>,
    readers: Vec<Arc<StreamInner>>,
}

impl Allocation {
    pub(crate) fn device(&self) -> &Device {
        self.memory.device()
    }

    pub(crate) fn address(&self) -> u64 {
        self.memory.address()
    }

    pub(crate) fn memory(&self) -> &Memory {
        &self.memory
    }

    pub(crate) fn lock(&self, mode: Mode) -> Held<'_> {
        match mode {
            Mode::Read => Held::Read { _guard: self.lock.read().unwrap_or_else(PoisonError::into_inner) },
            Mode::Write => Held::Write { _guard: self.lock.write().unwrap_or_else(PoisonError::into_inner) },
        }
    }

    /// Orders `stream`'s coming work after the earlier uses of this memory that it must not overlap. The caller holds the device's turn.
    pub(crate) fn enter(&self, stream: &Arc<StreamInner>, mode: Mode) -> Result<()> {
        if std::ptr::eq(self.sole.load(Ordering::Acquire), Arc::as_ptr(stream)) {
            return Ok(());
        }
        let mut usage = self.usage.lock().unwrap_or_else(PoisonError::into_inner);
        match mode {
            Mode::Read => usage.read_on(stream)?,
            Mode::Write => usage.write_on(stream)?,
        }
        let sole = if usage.readers.is_empty() { Arc::as_ptr(&usage.writer) } else { std::ptr::null() };
        self.sole.store(sole.cast_mut(), Ordering::Release);
        Ok(())
    }

    fn writer(&self) -> Arc<StreamInner> {
        self.usage.lock().unwrap_or_else(PoisonError::into_inner).writer.clone()
    }
}

impl Usage {
    /// Orders `stream`'s coming reads of the memory after all writes so far.
    fn read_on(&mut self, stream: &Arc<StreamInner>) -> Result<()> {
        if !Arc::ptr_eq(&self.writer, stream) && !self.readers.iter().any(|reader| Arc::ptr_eq(reader, stream)) {
            stream.wait_for(&self.writer)?;
            self.readers.push(stream.clone());
        }
        Ok(())
    }

    /// Orders `stream`'s coming writes to the memory after all uses so far.
    fn write_on(&mut self, stream: &Arc<StreamInner>) -> Result<()> {
        if !Arc::ptr_eq(&self.writer, stream) {
            stream.wait_for(&self.writer)?;
        }
        for reader in &self.readers {
            if !Arc::ptr_eq(reader, stream) {
                stream.wait_for(reader)?;
            }
        }
        self.readers.clear();
        self.writer = stream.clone();
        Ok(())
    }
}

impl Drop for Allocation {
    /// The memory returns to its device in stream order: after all uses, without waiting here.
    fn drop(&mut self) {
        let usage = self.usage.get_mut().unwrap_or_else(PoisonError::into_inner);
        for reader in &usage.readers {
            if usage.writer.wait_for(reader).is_err() {
                // The host waits instead. A stream that fails at that too is lost, and its work with it.
                let _ = reader.synchronize();
            }
        }
        self.memory.free(&usage.writer);
    }
}

/// `len` elements of device memory.
///
/// Buffers are stream-ordered: a use on another stream waits for the earlier ones, dropping a buffer frees its memory after
/// the last use, and reading it back waits for what was launched. A launch borrows its buffers only while it is called.
pub struct Buffer<T> {
    allocation: Arc<Allocation>,
    len: usize,
    _elements: PhantomData<T>,
}

impl<T: Element> Buffer<T> {
    fn allocate(stream: &Stream, len: usize) -> Result<Self> {
        // Evaluates what a generic element asserts about its padding.
        const { _ = T::ANY_BITS };
        let bytes = (len as u128) * (size_of::<T>() as u128);
        Ok(Self::on(stream, Memory::allocate(&stream.0, bytes)?, len))
    }

    pub(crate) fn zeroed(stream: &Stream, len: usize) -> Result<Self> {
        let buffer = Self::allocate(stream, len)?;
        buffer.allocation.memory.fill_zero(&stream.0, 0, len * size_of::<T>())?;
        Ok(buffer)
    }

    pub(crate) fn uninit(stream: &Stream, len: usize) -> Result<Self> {
        if T::ANY_BITS { Self::allocate(stream, len) } else { Self::zeroed(stream, len) }
    }

    pub(crate) fn from_slice(stream: &Stream, data: &[T]) -> Result<Self> {
        let buffer = Self::allocate(stream, data.len())?;
        buffer.allocation.memory.write(&stream.0, 0, bytes_of(data))?;
        Ok(buffer)
    }

    /// `len` elements of device memory that was allocated elsewhere, which this frees in the end, in the order of its uses. See
    /// [`Device::from_raw_context`] for an example.
    ///
    /// The buffer is in the order of `stream`: what was enqueued there before is done before the buffer's first use.
    ///
    /// # Errors
    ///
    /// [`Error::Adoption`] on the emulator, on a stream that captures, and for an address that is null or not aligned for `T`.
    ///
    /// # Safety
    ///
    /// `address` is that of `len` elements in memory of the stream's context, allocated with `cuMemAllocAsync`, that nobody
    /// else frees. They are values of `T`, which all bytes are unless `T` contains `bool`. While the buffer is there, no other
    /// buffer has a part of the memory, and work that is not of this library uses it in the order of this buffer's uses only: on
    /// the same stream, or after events.
    pub unsafe fn from_raw(stream: &Stream, address: u64, len: usize) -> Result<Self> {
        // SAFETY: the caller's contract.
        unsafe { Self::adopt(stream, address, len, false) }
    }

    /// As [`from_raw`](Self::from_raw), for memory of any allocator, and never frees it.
    ///
    /// # Errors
    ///
    /// As [`from_raw`](Self::from_raw).
    ///
    /// # Safety
    ///
    /// As [`from_raw`](Self::from_raw), but whoever allocated the memory frees it: after the buffer, and after the work that
    /// uses it, for which a synchronisation of its streams waits.
    pub unsafe fn from_raw_borrowed(stream: &Stream, address: u64, len: usize) -> Result<Self> {
        // SAFETY: the caller's contract.
        unsafe { Self::adopt(stream, address, len, true) }
    }

    /// # Safety
    /// That of the two functions above.
    unsafe fn adopt(stream: &Stream, address: u64, len: usize, borrowed: bool) -> Result<Self> {
        // Evaluates what a generic element asserts about its padding.
        const { _ = T::ANY_BITS };
        let refuse = |reason: &str| Err(Error::Adoption { what: "memory", reason: reason.into() });
        let Some(bytes) = len.checked_mul(size_of::<T>()) else { return refuse("it is more than can be addressed") };
        match &stream.0.queue {
            Queue::Emulator(_) => {
                let _ = (address, bytes, borrowed);
                refuse("the emulator has no device memory; copy it with `Stream::buffer_from`")
            }
            Queue::Capture(_) => refuse("a stream that captures has no work to order it by; adopt it on another"),
            #[cfg(feature = "cuda")]
            Queue::Cuda(_) if address == 0 => refuse("its address is null"),
            #[cfg(feature = "cuda")]
            Queue::Cuda(_) if !address.is_multiple_of(align_of::<T>() as u64) => {
                refuse(&format!("{address:#x} is not aligned to {} bytes", align_of::<T>()))
            }
            #[cfg(feature = "cuda")]
            Queue::Cuda(_) => {
                // SAFETY: the caller's contract.
                let memory = unsafe { Memory::adopt(stream.device(), address, bytes, borrowed) };
                Ok(Self::on(stream, memory, len))
            }
        }
    }

    fn on(stream: &Stream, memory: Memory, len: usize) -> Self {
        let usage = Mutex::new(Usage { writer: stream.0.clone(), readers: Vec::new() });
        let sole = AtomicPtr::new(Arc::as_ptr(&stream.0).cast_mut());
        let allocation = Arc::new(Allocation { memory, usage, sole, lock: RwLock::new(()) });
        Self { allocation, len, _elements: PhantomData }
    }

    pub(crate) fn into_allocation(self) -> Arc<Allocation> {
        self.allocation
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The device.
    pub fn device(&self) -> &Device {
        self.allocation.device()
    }

    /// The first element's address on the device, for code that is not of this library. What is launched elsewhere is not in
    /// this buffer's order: use one stream, or events.
    pub fn address(&self) -> u64 {
        self.allocation.address()
    }

    /// All elements, as a slice.
    pub fn as_slice(&self) -> BufferSlice<'_, T> {
        BufferSlice(Part { allocation: &self.allocation, start: 0, len: self.len, _elements: PhantomData })
    }

    /// All elements, as a slice to write.
    pub fn as_mut_slice(&mut self) -> BufferSliceMut<'_, T> {
        BufferSliceMut(Part { allocation: &self.allocation, start: 0, len: self.len, _elements: PhantomData })
    }

    /// The elements of `range`.
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Result<BufferSlice<'_, T>> {
        self.as_slice().slice(range)
    }

    /// The elements of `range`, to write.
    pub fn slice_mut(&mut self, range: impl RangeBounds<usize>) -> Result<BufferSliceMut<'_, T>> {
        self.as_mut_slice().into_slice(range)
    }

    /// Copies all elements to the host, after everything that writes them.
    pub fn to_vec(&self) -> Result<Vec<T>> {
        self.as_slice().to_vec()
    }

    /// Copies all elements to `host`, which has the same length, after everything that writes them.
    pub fn copy_to(&self, host: &mut [T]) -> Result<()> {
        self.as_slice().copy_to(host)
    }

    /// Copies `host`, which has the same length, over all elements, after everything that uses them.
    pub fn copy_from(&mut self, host: &[T]) -> Result<()> {
        self.as_mut_slice().copy_from(host)
    }
}

impl<T> std::fmt::Debug for Buffer<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Buffer<{}>({} on {})", std::any::type_name::<T>(), self.len, self.allocation.device())
    }
}

/// A part of an allocation.
struct Part<'a, T> {
    allocation: &'a Arc<Allocation>,
    /// First byte.
    start: usize,
    /// Elements.
    len: usize,
    _elements: PhantomData<T>,
}

impl<'a, T: Element> Part<'a, T> {
    fn address(self) -> u64 {
        self.allocation.address() + self.start as u64
    }

    fn sub(self, range: impl RangeBounds<usize>) -> Result<Self> {
        let start = match range.start_bound() {
            Bound::Included(&start) => start,
            Bound::Excluded(&before) => before.saturating_add(1),
            Bound::Unbounded => 0,
        };
        let end = match range.end_bound() {
            Bound::Included(&last) => last.saturating_add(1),
            Bound::Excluded(&end) => end,
            Bound::Unbounded => self.len,
        };
        if start > end || end > self.len {
            return Err(Error::OutOfRange { start, end, len: self.len });
        }
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
        let _held = self.allocation.lock(Mode::Read);
        let writer = self.allocation.writer();
        if T::ANY_BITS {
            return self.allocation.memory.read(&writer, self.start, bytes_of_mut(host));
        }
        let mut bytes = vec![0; size_of_val(host)];
        self.allocation.memory.read(&writer, self.start, &mut bytes)?;
        copy_checked(&bytes, host)
    }

    fn copy_from(self, host: &[T]) -> Result<()> {
        check_lengths("copy from the host", "the slice", self.len, "the host's", host.len())?;
        check_host_copy("`Buffer::copy_from`", self.allocation)?;
        let _held = self.allocation.lock(Mode::Write);
        let _turn = self.allocation.device().turn();
        let stream = self.allocation.writer();
        self.allocation.enter(&stream, Mode::Write)?;
        self.allocation.memory.write(&stream, self.start, bytes_of(host))
    }

    fn to_vec(self) -> Result<Vec<T>> {
        let mut host = Vec::new();
        let bytes = self.len as u128 * size_of::<T>() as u128;
        host.try_reserve_exact(self.len).map_err(|error| Error::Allocation {
            bytes,
            device: "the host".into(),
            reason: error.to_string(),
        })?;
        host.resize(self.len, T::ZERO);
        self.copy_to(&mut host)?;
        Ok(host)
    }

    fn raw(self) -> RawView<T> {
        RawView::new(self.address() as usize as *mut T, self.len)
    }
}

pub(crate) fn check_lengths(what: &str, first: &str, first_len: usize, second: &str, second_len: usize) -> Result<()> {
    if first_len == second_len {
        return Ok(());
    }
    Err(Error::LengthMismatch {
        kernel: what.into(),
        first: first.into(),
        first_len,
        second: second.into(),
        second_len,
    })
}

/// Copies bytes from the device over elements whose bytes are not all values: `bool`, alone or in arrays and structs.
fn copy_checked<T: Element>(bytes: &[u8], host: &mut [T]) -> Result<()> {
    let size = size_of::<T>();
    if size == 0 {
        return Ok(());
    }
    if let Some(index) = bytes.chunks_exact(size).position(|element| !T::valid_bits(element)) {
        let element = &bytes[index * size..][..size];
        let bits = element.iter().rev().fold(0, |bits, &byte| bits << 8 | byte as u64);
        return Err(Error::InvalidBits { element: std::any::type_name::<T>(), index, bits });
    }
    bytes_of_mut(host).copy_from_slice(bytes);
    Ok(())
}

/// A part of a [`Buffer`], to read.
pub struct BufferSlice<'a, T>(Part<'a, T>);

/// A part of a [`Buffer`], to write.
pub struct BufferSliceMut<'a, T>(Part<'a, T>);

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
        let len = allocation.memory.len() / size_of::<T>().max(1);
        Self(Part { allocation, start: 0, len, _elements: PhantomData })
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.0.len
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.0.len == 0
    }

    /// The elements of `range`, counted in this slice.
    pub fn slice(self, range: impl RangeBounds<usize>) -> Result<Self> {
        Ok(Self(self.0.sub(range)?))
    }

    /// The same bytes as elements of another type. Fails if size or alignment do not fit.
    pub fn reinterpret<U: Element>(self) -> Result<BufferSlice<'a, U>> {
        Ok(BufferSlice(self.0.reinterpret()?))
    }

    /// Copies the elements to the host, after everything that writes them.
    pub fn to_vec(&self) -> Result<Vec<T>> {
        self.0.to_vec()
    }

    /// Copies the elements to `host`, which has the same length, after everything that writes them.
    pub fn copy_to(&self, host: &mut [T]) -> Result<()> {
        self.0.copy_to(host)
    }
}

impl<'a, T: Element> BufferSliceMut<'a, T> {
    /// The number of elements.
    pub fn len(&self) -> usize {
        self.0.len
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.0.len == 0
    }

    /// The elements to read.
    pub fn as_slice(&self) -> BufferSlice<'_, T> {
        BufferSlice(self.0)
    }

    /// The elements of `range`, counted in this slice.
    pub fn into_slice(self, range: impl RangeBounds<usize>) -> Result<Self> {
        Ok(Self(self.0.sub(range)?))
    }

    /// The elements before `at` and those from `at` on.
    pub fn split_at(self, at: usize) -> Result<(Self, Self)> {
        Ok((Self(self.0.sub(..at)?), Self(self.0.sub(at..)?)))
    }

    /// The same bytes as elements of another type. Fails if size or alignment do not fit.
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

    /// Copies `host`, which has the same length, over the elements, after everything that uses them.
    pub fn copy_from(&mut self, host: &[T]) -> Result<()> {
        self.0.copy_from(host)
    }

    /// Makes all elements [`ZERO`](Element::ZERO), on `stream`: at a fraction of what a launch of a kernel costs the host,
    /// and in a [`Graph`](crate::Graph) too.
    ///
    /// # Errors
    /// The memory is on another device than the stream, and what the driver says.
    pub fn set_zero(&mut self, stream: &Stream) -> Result<()> {
        let target = Access::new("set to zero", &self.0, stream)?;
        let bytes = self.0.len * size_of::<T>();
        let mut uses = Uses::default();
        uses.add(target.0, Mode::Write);
        if let Queue::Capture(recording) = &stream.0.queue {
            return recording.add(|recorded| recorded.fill_zero(&uses, self.0.address(), bytes));
        }
        let _held = uses.lock();
        let _turn = stream.device().turn();
        uses.enter(&stream.0)?;
        target.0.memory.fill_zero(&stream.0, self.0.start, bytes)
    }

    /// Copies `other`, which has the same length and lies on the same device, over the elements, on `stream`.
    pub fn copy_from_device(&mut self, stream: &Stream, other: BufferSlice<'_, T>) -> Result<()> {
        check_lengths("copy on the device", "the target", self.0.len, "the source", other.0.len)?;
        let access = |part| Access::new("copy on the device", part, stream);
        let (target, source) = (access(&self.0)?, access(&other.0)?);
        let bytes = self.0.len * size_of::<T>();
        let mut uses = Uses::default();
        uses.add(target.0, Mode::Write);
        uses.add(source.0, Mode::Read);
        if let Queue::Capture(recording) = &stream.0.queue {
            return recording.add(|recorded| recorded.copy(&uses, self.0.address(), other.0.address(), bytes));
        }
        let _held = uses.lock();
        let _turn = stream.device().turn();
        uses.enter(&stream.0)?;
        target.0.memory.copy(&stream.0, self.0.start, &source.0.memory, other.0.start, bytes)
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

/// A part's allocation, known to be on the stream's device.
struct Access<'a>(&'a Arc<Allocation>);

impl<'a> Access<'a> {
    fn new<T>(what: &str, part: &Part<'a, T>, stream: &Stream) -> Result<Self> {
        if part.allocation.device().same_as(stream.device()) {
            return Ok(Self(part.allocation));
        }
        Err(Error::WrongDevice {
            kernel: what.into(),
            argument: "the slice".into(),
            stream: stream.device().to_string(),
            buffer: part.allocation.device().to_string(),
        })
    }
}

mod sealed {
    use super::Allocation;
    use primitives_gpu::view::RawView;
    use std::sync::Arc;

    /// Where an argument's elements lie.
    #[allow(unreachable_pub, reason = "sealed")]
    pub trait Argument<T> {
        fn parts(&self) -> (&Arc<Allocation>, RawView<T>);
    }
}
pub(crate) use sealed::Argument;

/// What a kernel's `Global<T>` parameter takes: a `&Buffer<T>` or a [`BufferSlice<T>`](BufferSlice).
#[diagnostic::on_unimplemented(
    message = "a `Global<{T}>` parameter does not take `{Self}`",
    label = "not a buffer of `{T}` to read",
    note = "pass a `&Buffer<{T}>` or a `BufferSlice<{T}>`"
)]
pub trait ReadArg<T>: Argument<T> {}

/// What a kernel's `GlobalMut<T>` parameter takes: a `&mut Buffer<T>` or a [`BufferSliceMut<T>`](BufferSliceMut).
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
