//! Raw memory of either machine, in bytes.

use std::alloc::{Layout, alloc, dealloc};
use std::sync::Arc;

use primitives_gpu::Element;

use crate::device::Device;
use crate::stream::{Queue, StreamInner};
use crate::written::Written;
use crate::{Error, Result, trace};

/// The alignment of every allocation; the driver's is the same or larger.
const ALIGN: usize = 256;

/// What unwritten memory of the emulator holds: a float that is neither zero nor plausible.
const UNWRITTEN: u8 = 0xa5;

/// Captured streams allocate nothing, and copies on them are recorded elsewhere.
const NOT_CAPTURED: &str = "memory is not used on a captured stream";

/// Bytes on a device. The emulator's are accessed by whoever holds the lock of their allocation, see [`Uses`].
///
/// [`Uses`]: crate::uses::Uses
pub(crate) struct Memory {
    device: Device,
    /// First byte; not null, also for no bytes.
    address: u64,
    len: usize,
    /// Somebody else's, who frees it.
    borrowed: bool,
    /// The emulator's knowledge of what the bytes hold.
    written: Option<Arc<Written>>,
}

impl Memory {
    pub(crate) fn allocate(stream: &StreamInner, bytes: u128) -> Result<Self> {
        let device = &stream.device;
        let refuse = |reason: &str| Error::Allocation { bytes, device: device.to_string(), reason: reason.into() };
        let len = usize::try_from(bytes).map_err(|_| refuse("more than can be addressed"))?;
        let address = match &stream.queue {
            Queue::Emulator(_) => {
                let layout =
                    Layout::from_size_align(len.max(1), ALIGN).map_err(|_| refuse("more than can be addressed"))?;
                // SAFETY: the layout has a size; the bytes are written before they are handed out.
                unsafe {
                    let address = alloc(layout);
                    if address.is_null() {
                        return Err(refuse("the host is out of memory"));
                    }
                    address.write_bytes(UNWRITTEN, len);
                    address.expose_provenance() as u64
                }
            }
            #[cfg(feature = "cuda")]
            Queue::Cuda(stream) => stream.allocate(len, |reason| refuse(&reason))?,
            Queue::Capture(_) => {
                let advice =
                    "a graph allocates nothing: make the buffer on another stream, before the capture or in it";
                return Err(Error::Capture { call: "an allocation", advice });
            }
        };
        device.tally.allocations.add(1);
        trace::allocation(len, device);
        let written = matches!(stream.queue, Queue::Emulator(_)).then(|| Arc::new(Written::none(len)));
        Ok(Self { device: device.clone(), address, len, borrowed: false, written })
    }

    /// Memory of a GPU that was allocated elsewhere.
    ///
    /// # Safety
    /// So many bytes of the device, as long as this, and freed by nobody else unless borrowed.
    #[cfg(feature = "cuda")]
    pub(crate) unsafe fn adopt(device: &Device, address: u64, len: usize, borrowed: bool) -> Self {
        Self { device: device.clone(), address, len, borrowed, written: None }
    }

    pub(crate) fn device(&self) -> &Device {
        &self.device
    }

    pub(crate) fn address(&self) -> u64 {
        self.address
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// What has been written, on the emulator.
    pub(crate) fn written(&self) -> Option<&Arc<Written>> {
        self.written.as_ref()
    }

    fn mark(&self, start: usize, len: usize) {
        if let Some(written) = &self.written {
            written.mark(start..start + len);
        }
    }

    /// The emulator's bytes from `start` on.
    fn host(&self, start: usize, len: usize) -> *mut u8 {
        debug_assert!(start + len <= self.len);
        std::ptr::with_exposed_provenance_mut(self.address as usize + start)
    }

    pub(crate) fn fill_zero(&self, stream: &StreamInner, start: usize, len: usize) -> Result<()> {
        match &stream.queue {
            Queue::Emulator(busy) => {
                let _turn = StreamInner::turn(busy);
                // SAFETY: inside the allocation, which nothing else uses now: the caller holds its lock, or it is new.
                unsafe { self.host(start, len).write_bytes(0, len) };
                self.mark(start, len);
                Ok(())
            }
            #[cfg(feature = "cuda")]
            Queue::Cuda(stream) => stream.fill_zero(self.address + start as u64, len),
            Queue::Capture(_) => unreachable!("{NOT_CAPTURED}"),
        }
    }

    pub(crate) fn write(&self, stream: &StreamInner, start: usize, from: &[u8]) -> Result<()> {
        if !from.is_empty() {
            self.device.tally.host_to_device_copies.add(1);
            self.device.tally.host_to_device_bytes.add(from.len());
        }
        match &stream.queue {
            Queue::Emulator(busy) => {
                let _turn = StreamInner::turn(busy);
                // SAFETY: inside the allocation, which nothing else uses now: the caller holds its lock, or it is new.
                unsafe { self.host(start, from.len()).copy_from_nonoverlapping(from.as_ptr(), from.len()) };
                self.mark(start, from.len());
                Ok(())
            }
            #[cfg(feature = "cuda")]
            Queue::Cuda(stream) => stream.copy_from_host(self.address + start as u64, from),
            Queue::Capture(_) => unreachable!("{NOT_CAPTURED}"),
        }
    }

    pub(crate) fn read(&self, stream: &StreamInner, start: usize, to: &mut [u8]) -> Result<()> {
        if !to.is_empty() {
            self.device.tally.device_to_host_copies.add(1);
            self.device.tally.device_to_host_bytes.add(to.len());
        }
        match &stream.queue {
            Queue::Emulator(busy) => {
                let _turn = StreamInner::turn(busy);
                // SAFETY: inside the allocation, which nothing writes now: the caller holds its lock.
                unsafe { self.host(start, to.len()).copy_to_nonoverlapping(to.as_mut_ptr(), to.len()) };
                Ok(())
            }
            #[cfg(feature = "cuda")]
            Queue::Cuda(stream) => stream.copy_to_host(to, self.address + start as u64),
            Queue::Capture(_) => unreachable!("{NOT_CAPTURED}"),
        }
    }

    pub(crate) fn copy(&self, stream: &StreamInner, start: usize, from: &Memory, at: usize, len: usize) -> Result<()> {
        if len > 0 {
            self.device.tally.device_copies.add(1);
        }
        match &stream.queue {
            Queue::Emulator(busy) => {
                let _turn = StreamInner::turn(busy);
                // SAFETY: inside both allocations, whose locks the caller holds; they may be one, so the copy may overlap.
                unsafe { self.host(start, len).copy_from(from.host(at, len), len) };
                if let (Some(to), Some(from)) = (&self.written, &from.written) {
                    to.copy(start, from, at, len);
                }
                Ok(())
            }
            #[cfg(feature = "cuda")]
            Queue::Cuda(stream) => stream.copy(self.address + start as u64, from.address + at as u64, len),
            Queue::Capture(_) => unreachable!("{NOT_CAPTURED}"),
        }
    }

    /// Gives the memory back after the work that `stream` has now. Called once, by the owner's drop.
    pub(crate) fn free(&self, stream: &StreamInner) {
        if self.borrowed {
            return;
        }
        match &stream.queue {
            Queue::Emulator(_) => {
                if let Ok(layout) = Layout::from_size_align(self.len.max(1), ALIGN) {
                    // SAFETY: allocated with this layout; the owner is being dropped.
                    unsafe { dealloc(self.host(0, 0), layout) };
                }
            }
            #[cfg(feature = "cuda")]
            Queue::Cuda(stream) => stream.free(self.address),
            Queue::Capture(_) => unreachable!("{NOT_CAPTURED}"),
        }
    }
}

/// The bytes of `elements`.
pub(crate) fn bytes_of<T: Element>(elements: &[T]) -> &[u8] {
    // SAFETY: an element has no padding, so all its bytes are initialised.
    unsafe { std::slice::from_raw_parts(elements.as_ptr().cast(), size_of_val(elements)) }
}

/// The bytes of `elements`, to be overwritten by bytes that are values of `T`.
pub(crate) fn bytes_of_mut<T: Element>(elements: &mut [T]) -> &mut [u8] {
    // SAFETY: as for `bytes_of`.
    unsafe { std::slice::from_raw_parts_mut(elements.as_mut_ptr().cast(), size_of_val(elements)) }
}
