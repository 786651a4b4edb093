//! Raw memory of a GPU or of the emulator, in bytes.

use std::alloc::{Layout, alloc, dealloc};
use std::collections::TryReserveError;
use std::sync::{Arc, Mutex};
#[cfg(feature = "cuda")]
use std::{mem, sync::PoisonError};

use primitives_gpu::Element;

#[cfg(feature = "cuda")]
use crate::device::Backend;
use crate::device::Device;
use crate::emulator::allocations;
use crate::memory::written::Written;
use crate::stream::{Queue, StreamInner};
use crate::{Error, Result, trace};

pub(crate) mod allocation;
pub(crate) mod buffer;
pub(crate) mod claims;
pub(crate) mod kept;
pub(crate) mod peer;
pub(crate) mod pinned;
pub(crate) mod slice;
pub mod storage;
pub(crate) mod transfer;
pub(crate) mod uses;
pub(crate) mod written;

/// The alignment of every allocation; the driver's is the same or larger.
pub(crate) const ALIGN: usize = 256;

/// The value of unwritten bytes in the emulator. As a float, it is neither zero nor plausible.
const UNWRITTEN: u8 = 0xa5;

/// The message for memory on a captured stream: only memory of no bytes exists there, and copies are recorded in another way.
const NOT_CAPTURED: &str = "memory is not used on a captured stream";

/// Why an allocation cannot be part of a capture.
const ALLOCATION: &str = "an allocation";
const NO_ALLOCATION: &str = "a graph allocates nothing: make the buffer on another stream, before the capture or in it";

/// Bytes on a device. The emulator's are accessed by whoever holds the lock of their allocation, see [`Uses`].
///
/// [`Uses`]: crate::memory::uses::Uses
#[derive(Clone)]
pub(crate) struct Memory {
    device: Device,
    /// The address of the first byte. For no bytes, it is an aligned address without memory.
    address: u64,
    len: usize,
    owner: Owner,
    /// Which bytes have been written, in the emulator.
    written: Option<Arc<Written>>,
}

/// The owner that frees the bytes.
#[derive(Clone)]
pub(crate) enum Owner {
    /// The device, in the order of their uses.
    Device,
    /// Other code.
    Elsewhere,
    /// A value that is dropped with the last clone, when the work that uses the bytes has ended.
    Kept(Arc<Keeper>),
}

/// A value that is kept only for its drop.
pub(crate) struct Keeper {
    _owner: Mutex<Box<dyn Send>>,
}

impl Keeper {
    pub(crate) fn new(owner: impl Send + 'static) -> Self {
        Self { _owner: Mutex::new(Box::new(owner)) }
    }
}

impl Owner {
    pub(crate) fn kept(owner: impl Send + 'static) -> Self {
        Self::Kept(Arc::new(Keeper::new(owner)))
    }
}

impl Memory {
    pub(crate) fn allocate(stream: &StreamInner, bytes: u128) -> Result<Self> {
        let device = &stream.device;
        let refuse =
            |reason: &str| Error::Allocation { bytes, device: device.to_string(), reason: reason.into(), driver: None };
        let len = usize::try_from(bytes).map_err(|_| refuse("more than can be addressed"))?;
        let written = (!device.is_gpu()).then(|| Arc::new(Written::none(len)));
        if len == 0 {
            return Ok(Self { device: device.clone(), address: ALIGN as u64, len, owner: Owner::Device, written });
        }
        let address = match &stream.queue {
            Queue::Emulator(_) => {
                let layout = Layout::from_size_align(len, ALIGN).map_err(|_| refuse("more than can be addressed"))?;
                let emulated = device.as_emulated();
                if let Some(Err(left)) = emulated.map(|emulated| emulated.take_memory(len)) {
                    return Err(refuse(&format!("{left} bytes are left of what its options allow")));
                }
                // SAFETY: the layout has a size.
                let address = unsafe { alloc(layout) };
                if address.is_null() {
                    if let Some(emulated) = emulated {
                        emulated.return_memory(len);
                    }
                    return Err(refuse("the host is out of memory"));
                }
                // SAFETY: so many bytes, which are written before they are handed out.
                unsafe { address.write_bytes(UNWRITTEN, len) };
                let address = address.expose_provenance();
                if let Some(emulated) = emulated {
                    allocations::note(address, len, emulated.number());
                }
                address as u64
            }
            #[cfg(feature = "cuda")]
            Queue::Cuda(stream) => {
                stream.not_captured(ALLOCATION, NO_ALLOCATION)?;
                free_orphans(device);
                stream.allocate(len)?
            }
            Queue::Capture(_) => return Err(Error::Capture { call: ALLOCATION, advice: NO_ALLOCATION }),
        };
        device.tally.allocations.add(1);
        trace::allocation(len, device);
        Ok(Self { device: device.clone(), address, len, owner: Owner::Device, written })
    }

    /// Adopts memory that other code has allocated.
    ///
    /// # Safety
    /// So many bytes of the device, as long as this, and freed by nobody but the owner. On the emulator they are the host's, they are
    /// initialised, and their provenance is exposed.
    pub(crate) unsafe fn adopt(device: &Device, address: u64, len: usize, owner: Owner) -> Self {
        let written = (!device.is_gpu()).then(|| Arc::new(Written::none(len))).inspect(|written| written.mark_all());
        let address = if len == 0 { ALIGN as u64 } else { address };
        Self { device: device.clone(), address, len, owner, written }
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

    /// Which bytes have been written, on the emulator.
    pub(crate) fn written(&self) -> Option<&Arc<Written>> {
        self.written.as_ref()
    }

    fn mark(&self, start: usize, len: usize) {
        if let Some(written) = &self.written {
            written.mark(start..start + len);
        }
    }

    /// The address of the emulator's bytes that start at `start`.
    fn host(&self, start: usize, len: usize) -> *mut u8 {
        debug_assert!(start + len <= self.len);
        std::ptr::with_exposed_provenance_mut(self.address as usize + start)
    }

    /// On a GPU, the caller has its turn.
    pub(crate) fn fill_zero(&self, stream: &StreamInner, start: usize, len: usize) -> Result<()> {
        if len == 0 {
            return Ok(());
        }
        match &stream.queue {
            Queue::Emulator(_) => {
                // SAFETY: inside the allocation, which nothing else uses now: the caller holds its lock, or it is new.
                unsafe { self.host(start, len).write_bytes(0, len) };
                self.mark(start, len);
                Ok(())
            }
            #[cfg(feature = "cuda")]
            Queue::Cuda(stream) => {
                stream.fill_zero(self.address + start as u64, len)?;
                stream.advance();
                Ok(())
            }
            Queue::Capture(_) => unreachable!("{NOT_CAPTURED}"),
        }
    }

    pub(crate) fn write(&self, stream: &StreamInner, start: usize, from: &[u8]) -> Result<()> {
        if from.is_empty() {
            return Ok(());
        }
        self.device.tally.host_to_device_copies.add(1);
        self.device.tally.host_to_device_bytes.add(from.len());
        match &stream.queue {
            Queue::Emulator(_) => {
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
            Queue::Emulator(_) => {
                // SAFETY: inside the allocation, which nothing writes now: the caller holds its lock.
                unsafe { self.host(start, to.len()).copy_to_nonoverlapping(to.as_mut_ptr(), to.len()) };
                Ok(())
            }
            #[cfg(feature = "cuda")]
            Queue::Cuda(stream) => stream.copy_to_host(to, self.address + start as u64),
            Queue::Capture(_) => {
                debug_assert!(to.is_empty(), "{NOT_CAPTURED}");
                Ok(())
            }
        }
    }

    /// Starts a copy of bytes of the host to the bytes that start at `start`. On a GPU, the caller holds the device's turn.
    ///
    /// # Safety
    /// `from` is valid for so many bytes, and nobody writes them, until the stream has come to this point.
    pub(crate) unsafe fn begin_write(
        &self,
        stream: &StreamInner,
        start: usize,
        from: *const u8,
        len: usize,
    ) -> Result<()> {
        match &stream.queue {
            #[cfg(feature = "cuda")]
            Queue::Cuda(stream) if len > 0 => {
                self.device.tally.host_to_device_copies.add(1);
                self.device.tally.host_to_device_bytes.add(len);
                // SAFETY: the caller's contract; inside the allocation.
                unsafe { stream.begin_copy_from_host(self.address + start as u64, from, len)? };
                stream.advance();
                Ok(())
            }
            // SAFETY: the caller's contract.
            _ => self.write(stream, start, unsafe { std::slice::from_raw_parts(from, len) }),
        }
    }

    /// Starts a copy of the bytes that start at `start` to the host. On a GPU, the caller holds the device's turn.
    ///
    /// # Safety
    /// `to` is valid for so many bytes, and nobody accesses them, until the stream has come to this point.
    pub(crate) unsafe fn begin_read(&self, stream: &StreamInner, start: usize, to: *mut u8, len: usize) -> Result<()> {
        match &stream.queue {
            #[cfg(feature = "cuda")]
            Queue::Cuda(stream) if len > 0 => {
                self.device.tally.device_to_host_copies.add(1);
                self.device.tally.device_to_host_bytes.add(len);
                // SAFETY: the caller's contract; inside the allocation.
                unsafe { stream.begin_copy_to_host(to, self.address + start as u64, len)? };
                stream.advance();
                Ok(())
            }
            #[cfg(feature = "cuda")]
            Queue::Cuda(_) => Ok(()),
            // SAFETY: the caller's contract.
            _ => self.read(stream, start, unsafe { std::slice::from_raw_parts_mut(to, len) }),
        }
    }

    /// Copies from this device, or from another device of the same kind. On GPUs, the caller holds the turns of both.
    pub(crate) fn copy(&self, stream: &StreamInner, start: usize, from: &Memory, at: usize, len: usize) -> Result<()> {
        if len == 0 {
            return Ok(());
        }
        let is_near = from.device.same_as(&self.device);
        if is_near {
            self.device.tally.device_copies.add(1);
        } else {
            self.device.tally.peer_copies.add(1);
            self.device.tally.peer_bytes.add(len);
        }
        match &stream.queue {
            Queue::Emulator(_) => {
                // SAFETY: inside both allocations, whose locks the caller holds; they may be one, so the copy may overlap.
                unsafe { self.host(start, len).copy_from(from.host(at, len), len) };
                if let (Some(to), Some(from)) = (&self.written, &from.written) {
                    to.copy(start, from, at, len);
                }
                Ok(())
            }
            #[cfg(feature = "cuda")]
            Queue::Cuda(stream) => {
                let (to, at) = (self.address + start as u64, from.address + at as u64);
                match &from.device.backend {
                    Backend::Cuda(source) if !is_near => stream.copy_from_peer(to, source, at, len)?,
                    _ => stream.copy(to, at, len)?,
                }
                stream.advance();
                Ok(())
            }
            Queue::Capture(_) => unreachable!("{NOT_CAPTURED}"),
        }
    }

    /// Returns the memory after the work that `stream` has now. The owner's drop calls it once.
    pub(crate) fn free(&self, stream: &StreamInner) {
        if self.len == 0 {
            return;
        }
        match &self.owner {
            Owner::Device => {}
            Owner::Elsewhere => return,
            Owner::Kept(owner) => {
                #[cfg(feature = "cuda")]
                if stream.drain().is_err_and(|error| !matches!(error, Error::ContextLost { .. })) {
                    // It is unknown whether the work has ended, so the owner is leaked.
                    mem::forget(Arc::clone(owner));
                }
                let _ = owner;
                return;
            }
        }
        match &stream.queue {
            Queue::Emulator(_) => {
                if let Ok(layout) = Layout::from_size_align(self.len, ALIGN) {
                    allocations::forget(self.address as usize);
                    // SAFETY: allocated with this layout; the owner is being dropped.
                    unsafe { dealloc(self.host(0, 0), layout) };
                    if let Some(emulated) = self.device.as_emulated() {
                        emulated.return_memory(self.len);
                    }
                }
            }
            #[cfg(feature = "cuda")]
            Queue::Cuda(stream) => stream.free(self.address),
            Queue::Capture(_) => unreachable!("{NOT_CAPTURED}"),
        }
    }
}

/// Frees memory that could not be freed when its buffers were dropped, if this is possible now. What is left keeps the device open, so this
/// is called whenever a buffer or a handle of a stream is dropped, and before an allocation. The caller has no turn.
#[cfg(feature = "cuda")]
pub(crate) fn free_orphans(device: &Device) {
    let Some(context) = device.context() else { return };
    let mut orphans = context.orphans.lock().unwrap_or_else(PoisonError::into_inner);
    let freed: Vec<_> = orphans.extract_if(.., |orphan| !orphan.is_captured()).collect();
    // They are freed and dropped outside the lock: both may wait, and they may hold the last clones of their streams.
    drop(orphans);
    for orphan in &freed {
        orphan.free();
    }
}

/// A vector of `len` zeros in host memory.
pub fn zeroed_vec<T: Element>(len: usize) -> Result<Vec<T>> {
    let mut zeros = Vec::<T>::new();
    let refuse = |error: TryReserveError| Error::Allocation {
        driver: None,
        bytes: len as u128 * size_of::<T>() as u128,
        device: "the host".into(),
        reason: error.to_string(),
    };
    zeros.try_reserve_exact(len).map_err(refuse)?;
    // SAFETY: there is room for so many, whose zero is that of all bytes; elements without bytes are there without being written.
    unsafe {
        zeros.as_mut_ptr().write_bytes(0, len);
        zeros.set_len(len);
    }
    Ok(zeros)
}

/// The bytes of `elements`.
pub(crate) fn bytes_of<T: Element>(elements: &[T]) -> &[u8] {
    // SAFETY: an element has no padding, so all its bytes are initialised.
    unsafe { std::slice::from_raw_parts(elements.as_ptr().cast(), size_of_val(elements)) }
}

/// Checks that bytes from the device are valid elements. `bool` has invalid bytes, alone or in arrays and structs.
pub(crate) fn check_bits<T: Element>(bytes: &[u8]) -> Result<()> {
    let size = size_of::<T>();
    let invalid = bytes.chunks_exact(size.max(1)).position(|element| !T::valid_bits(element));
    invalid.map_or(Ok(()), |index| {
        let element = &bytes[index * size..][..size];
        let bits = element.iter().rev().fold(0, |bits, &byte| bits << 8 | u64::from(byte));
        Err(Error::InvalidBits { element: std::any::type_name::<T>(), index, bits })
    })
}

/// The bytes of `elements`. Overwrite them only with valid values of `T`.
pub(crate) fn bytes_of_mut<T: Element>(elements: &mut [T]) -> &mut [u8] {
    // SAFETY: as for `bytes_of`.
    unsafe { std::slice::from_raw_parts_mut(elements.as_mut_ptr().cast(), size_of_val(elements)) }
}
