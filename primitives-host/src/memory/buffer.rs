//! Device memory: buffers.

use std::marker::PhantomData;
use std::ops::RangeBounds;
use std::sync::Arc;

use primitives_gpu::Element;

use crate::device::Device;
use crate::memory::allocation::Allocation;
use crate::memory::pinned::PinnedBuffer;
use crate::memory::slice::{BufferSlice, BufferSliceMut, Part};
use crate::memory::transfer::Transfer;
use crate::memory::{ALIGN, Memory, Owner};
use crate::stream::Stream;
use crate::{Error, Result};

/// `len` elements of device memory.
///
/// Buffers are stream-ordered. A use on another stream waits for earlier uses. Dropping a buffer frees its memory after the last use. A
/// copy to the host waits for the launches that write the buffer. A launch borrows its buffers only during the call.
pub struct Buffer<T> {
    allocation: Arc<Allocation>,
    len: usize,
    _elements: PhantomData<T>,
}

impl<T: Element> Buffer<T> {
    fn allocate(stream: &Stream, len: usize) -> Result<Self> {
        // Evaluates what a generic element asserts about its padding.
        const { _ = T::ANY_BITS };
        const { assert!(align_of::<T>() <= ALIGN, "device memory is aligned to 256 bytes, and elements to more") };
        let bytes = (len as u128) * (size_of::<T>() as u128);
        Ok(Self::on(stream, Memory::allocate(&stream.0, bytes)?, len))
    }

    pub(crate) fn zeroed(stream: &Stream, len: usize) -> Result<Self> {
        let mut buffer = Self::allocate(stream, len)?;
        if buffer.allocation.memory().len() > 0 {
            buffer.as_mut_slice().set_zero(stream)?;
        }
        Ok(buffer)
    }

    pub(crate) fn uninit(stream: &Stream, len: usize) -> Result<Self> {
        if T::ANY_BITS { Self::allocate(stream, len) } else { Self::zeroed(stream, len) }
    }

    pub(crate) fn from_slice(stream: &Stream, data: &[T]) -> Result<Self> {
        let mut buffer = Self::allocate(stream, data.len())?;
        buffer.as_mut_slice().copy_from(data)?;
        Ok(buffer)
    }

    /// Adopts `len` elements of device memory that other code has allocated. This library frees the memory in the end, in the order of its
    /// uses. See [`Device::from_raw_context`] for an example.
    ///
    /// The buffer is in the order of `stream`: earlier work on this stream ends before the buffer's first use.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Adoption`] if the stream belongs to the emulator, if it captures, or if the address is null or not aligned for `T`.
    ///
    /// # Safety
    ///
    /// `address` is that of `len` elements in memory of the stream's context, allocated with `cuMemAllocAsync`, that nobody
    /// else frees. They are values of `T`, which all bytes are unless `T` contains `bool`. While the buffer is there, no other
    /// buffer has a part of the memory, and work that is not of this library uses it in the order of this buffer's uses only: on
    /// the same stream, or after events.
    pub unsafe fn from_raw(stream: &Stream, address: u64, len: usize) -> Result<Self> {
        // SAFETY: the caller's contract.
        unsafe { Self::adopt(stream, address, len, Owner::Device) }
    }

    /// As [`from_raw`](Self::from_raw), for memory of any allocator, which this library never frees.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`from_raw`](Self::from_raw).
    ///
    /// # Safety
    ///
    /// As [`from_raw`](Self::from_raw), but whoever allocated the memory frees it: after the buffer, and after the work that
    /// uses it, for which a synchronisation of its streams waits.
    pub unsafe fn from_raw_borrowed(stream: &Stream, address: u64, len: usize) -> Result<Self> {
        // SAFETY: the caller's contract.
        unsafe { Self::adopt(stream, address, len, Owner::Elsewhere) }
    }

    /// As [`from_raw`](Self::from_raw), for memory of any allocator that `owner` keeps alive. `owner` is dropped when the buffer is dropped
    /// and the work that uses the memory has ended. On the emulator, the memory is memory of the host.
    ///
    /// On a GPU, dropping the buffer waits for the work on the streams that have used it. The thread that drops the buffer, or the last
    /// graph that uses it, also drops `owner`. If other code captures one of these streams at that moment, `owner` is dropped after the
    /// capture, by a thread that allocates or drops a buffer or a stream of the device. `owner` is never dropped if the driver cannot say
    /// whether the work has ended. If this function returns an error, it drops `owner` at once.
    ///
    /// ```
    /// use kernel_primitives::algorithms::inclusive_scan;
    /// use kernel_primitives::functor::Add;
    /// use kernel_primitives::{Buffer, Device};
    ///
    /// # fn main() -> kernel_primitives::Result<()> {
    /// let stream = Device::emulator().stream()?;
    /// let mut owner = vec![1u32, 2, 3, 4];
    /// let (address, len) = (owner.as_mut_ptr().expose_provenance() as u64, owner.len());
    /// // SAFETY: the memory is that of the vector, which goes with the buffer and which nobody else has.
    /// let x = unsafe { Buffer::<u32>::from_raw_owned(&stream, address, len, owner)? };
    /// let mut sums = stream.buffer_zeroed::<u32>(4)?;
    /// inclusive_scan(&stream, &x, Add, &mut sums)?;
    /// assert_eq!(sums.to_vec()?, [1, 3, 6, 10]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Returns [`Error::Adoption`] if the stream captures, or if there are elements and the address is null or not aligned for `T`.
    ///
    /// # Safety
    ///
    /// As [`from_raw`](Self::from_raw), but the memory is there until `owner` is dropped, and is of any allocator. On the emulator, `address` is
    /// one of the host whose provenance is exposed, all bytes are initialised, and other code accesses them only while no work of this
    /// library uses the buffer, and no closure looks at it.
    pub unsafe fn from_raw_owned(
        stream: &Stream,
        address: u64,
        len: usize,
        owner: impl Send + 'static,
    ) -> Result<Self> {
        // SAFETY: the caller's contract.
        unsafe { Self::adopt(stream, address, len, Owner::kept(owner)) }
    }

    /// # Safety
    /// That of the function above which has this owner.
    unsafe fn adopt(stream: &Stream, address: u64, len: usize, owner: Owner) -> Result<Self> {
        // Evaluates what a generic element asserts about its padding.
        const { _ = T::ANY_BITS };
        const { assert!(align_of::<T>() <= ALIGN, "device memory is aligned to 256 bytes, and elements to more") };
        let refuse = |reason: &str| Err(Error::Adoption { what: "memory", reason: reason.into() });
        let Some(bytes) = len.checked_mul(size_of::<T>()) else { return refuse("it is more than can be addressed") };
        if stream.is_capturing() {
            return refuse("a stream that captures has no work to order it by; adopt it on another");
        }
        if !stream.device().is_gpu() && !matches!(owner, Owner::Kept(_)) {
            return refuse("the emulator has no device memory; copy it with `Stream::buffer_from`");
        }
        // Of no elements, only what is kept may be anywhere.
        if bytes > 0 || !matches!(owner, Owner::Kept(_)) {
            if address == 0 {
                return refuse("its address is null");
            }
            if !address.is_multiple_of(align_of::<T>() as u64) {
                return refuse(&format!("{address:#x} is not aligned to {} bytes", align_of::<T>()));
            }
        }
        // SAFETY: the caller's contract.
        let memory = unsafe { Memory::adopt(stream.device(), address, bytes, owner) };
        Ok(Self::on(stream, memory, len))
    }

    fn on(stream: &Stream, memory: Memory, len: usize) -> Self {
        let allocation = Allocation::new(stream, memory);
        Self { allocation: Arc::new(allocation), len, _elements: PhantomData }
    }

    pub(crate) fn allocation(&self) -> &Arc<Allocation> {
        &self.allocation
    }

    pub(crate) fn into_allocation(self) -> Arc<Allocation> {
        self.allocation
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True if the length is 0.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The device.
    pub fn device(&self) -> &Device {
        self.allocation.device()
    }

    /// The first element's address on the device, for code outside this library. The work of such code is not in the order of this buffer's
    /// uses: use one stream, or events.
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
    ///
    /// # Errors
    ///
    /// Returns [`Error::OutOfRange`] if the range is not inside the buffer.
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Result<BufferSlice<'_, T>> {
        self.as_slice().slice(range)
    }

    /// The elements of `range`, to write.
    ///
    /// # Errors
    ///
    /// Returns [`Error::OutOfRange`] if the range is not inside the buffer.
    pub fn slice_mut(&mut self, range: impl RangeBounds<usize>) -> Result<BufferSliceMut<'_, T>> {
        self.as_mut_slice().into_slice(range)
    }

    /// Copies all elements to the host. The copy waits for all earlier writes of the elements.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`BufferSlice::to_vec`].
    pub fn to_vec(&self) -> Result<Vec<T>> {
        self.as_slice().to_vec()
    }

    /// Copies all elements to `host`, which must have the same length. The copy waits for all earlier writes of the elements.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`BufferSlice::copy_to`].
    pub fn copy_to(&self, host: &mut [T]) -> Result<()> {
        self.as_slice().copy_to(host)
    }

    /// Starts a copy of all elements to `host`, which must have the same length, in the order of `stream`: see
    /// [`BufferSlice::copy_to_async`].
    ///
    /// # Errors
    ///
    /// Returns the errors of [`BufferSlice::copy_to_async`].
    pub fn copy_to_async(&self, stream: &Stream, host: PinnedBuffer<T>) -> Result<Transfer<T>> {
        self.as_slice().copy_to_async(stream, host)
    }

    /// Starts a copy of `host`, which must have the same length, over all elements, in the order of `stream`: see
    /// [`BufferSliceMut::copy_from_async`].
    ///
    /// # Errors
    ///
    /// Returns the errors of [`BufferSliceMut::copy_from_async`].
    pub fn copy_from_async(&mut self, stream: &Stream, host: PinnedBuffer<T>) -> Result<Transfer<T>> {
        self.as_mut_slice().copy_from_async(stream, host)
    }

    /// Copies `host`, which must have the same length, over all elements. The copy waits for all earlier uses of the elements.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`BufferSliceMut::copy_from`].
    pub fn copy_from(&mut self, host: &[T]) -> Result<()> {
        self.as_mut_slice().copy_from(host)
    }
}

impl<T> std::fmt::Debug for Buffer<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Buffer<{}>({} on {})", std::any::type_name::<T>(), self.len, self.allocation.device())
    }
}
