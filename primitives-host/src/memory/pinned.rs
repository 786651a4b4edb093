//! Page-locked host memory.

use std::ops::{Deref, DerefMut};

use crate::Result;
#[cfg(feature = "cuda")]
use crate::cuda;
use crate::device::{Backend, Device};
use crate::memory::{ALIGN, zeroed_vec};
use primitives_gpu::Element;

/// Page-locked host memory, from [`Device::pinned`]: a slice of elements. A GPU copies from it and to it at the full speed of the bus.
pub struct PinnedBuffer<T>(Storage<T>);

enum Storage<T> {
    Ordinary(Vec<T>),
    #[cfg(feature = "cuda")]
    Locked(cuda::HostMemory<T>),
}

impl<T: Element> PinnedBuffer<T> {
    pub(crate) fn zeroed(device: &Device, len: usize) -> Result<Self> {
        const { assert!(align_of::<T>() <= ALIGN, "page-locked memory is aligned to 256 bytes, and elements to more") };
        Ok(Self(match &device.backend {
            Backend::Emulator(_) => Storage::Ordinary(zeroed_vec(len)?),
            #[cfg(feature = "cuda")]
            Backend::Cuda(context) => Storage::Locked(cuda::HostMemory::zeroed(context, len)?),
        }))
    }
}

impl<T: Element> PinnedBuffer<T> {
    /// Whether the driver of a GPU has allocated it. For the emulator, it is ordinary memory.
    #[cfg(feature = "cuda")]
    pub(crate) fn is_locked(&self) -> bool {
        matches!(self.0, Storage::Locked(_))
    }

    /// The bytes, which need not be elements.
    pub(crate) fn bytes(&self) -> &[u8] {
        let (address, len) = match &self.0 {
            Storage::Ordinary(elements) => (elements.as_ptr(), elements.len()),
            #[cfg(feature = "cuda")]
            Storage::Locked(memory) => (memory.address().cast_const(), memory.len()),
        };
        // SAFETY: memory of so many elements, owned by this; they have no padding, and all of it was written.
        unsafe { std::slice::from_raw_parts(address.cast(), len * size_of::<T>()) }
    }
}

impl<T: Element> Deref for PinnedBuffer<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        match &self.0 {
            Storage::Ordinary(elements) => elements,
            #[cfg(feature = "cuda")]
            Storage::Locked(memory) => memory.as_slice(),
        }
    }
}

impl<T: Element> DerefMut for PinnedBuffer<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        match &mut self.0 {
            Storage::Ordinary(elements) => elements,
            #[cfg(feature = "cuda")]
            Storage::Locked(memory) => memory.as_mut_slice(),
        }
    }
}
