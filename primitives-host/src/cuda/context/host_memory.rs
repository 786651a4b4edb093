//! Page-locked memory of the host.

use std::ffi::c_uint;
use std::sync::Arc;

use primitives_cuda_driver::sys::{self, CUresult};
use primitives_gpu::Element;

use super::Context;
use crate::memory::bytes_of_mut;
use crate::{Error, Result};

/// Page-locked host memory, mapped into the device's address space.
pub(crate) struct HostMemory<T> {
    address: *mut T,
    len: usize,
    context: Option<Arc<Context>>,
}

// SAFETY: owned memory of elements.
unsafe impl<T: Send> Send for HostMemory<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for HostMemory<T> {}

impl<T: Element> HostMemory<T> {
    pub(crate) fn zeroed(context: &Arc<Context>, len: usize) -> Result<Self> {
        // Not by `..Self::raw(…)`: what the rest is taken from would be dropped, and free the memory.
        let mut memory = Self::raw(context, len)?;
        memory.context = Some(context.clone());
        bytes_of_mut(memory.as_mut_slice()).fill(0);
        Ok(memory)
    }

    pub(crate) fn as_slice(&self) -> &[T] {
        // SAFETY: `len` elements that were zeroed, owned by this.
        unsafe { std::slice::from_raw_parts(self.address, self.len) }
    }

    pub(crate) fn as_mut_slice(&mut self) -> &mut [T] {
        // SAFETY: as above, borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.address, self.len) }
    }
}

impl<T> HostMemory<T> {
    /// Undefined memory that does not keep its context alive: for what the context owns itself.
    pub(in crate::cuda) fn raw(context: &Context, len: usize) -> Result<Self> {
        let bytes = len as u128 * size_of::<T>() as u128;
        let refuse = |reason: String, driver| Error::Allocation {
            bytes,
            device: "page-locked host memory".into(),
            reason,
            driver,
        };
        let size = usize::try_from(bytes).map_err(|_| refuse("more than can be addressed".into(), None))?.max(1);
        let _relaxed = context.relaxed()?;
        let mut address = std::ptr::null_mut();
        let flags: c_uint = sys::CU_MEMHOSTALLOC_PORTABLE | sys::CU_MEMHOSTALLOC_DEVICEMAP;
        // SAFETY: the pointer is valid for the call.
        match unsafe { sys::cuMemHostAlloc(&raw mut address, size, flags) } {
            CUresult::CUDA_SUCCESS => Ok(Self { address: address.cast(), len, context: None }),
            code => Err(context.error_or(code, |error| refuse(error.to_string(), Some(error)))),
        }
    }

    pub(crate) fn address(&self) -> *mut T {
        self.address
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }
}

impl<T> Drop for HostMemory<T> {
    fn drop(&mut self) {
        let _relaxed = match self.context.as_ref().map(|context| context.relaxed()) {
            Some(Err(_)) => return,
            Some(Ok(relaxed)) => Some(relaxed),
            None => None,
        };
        // SAFETY: allocated by cuMemHostAlloc, freed once. No copy is under way: those with host memory are
        // waited for, or own it, as a `Transfer`.
        unsafe { sys::cuMemFreeHost(self.address.cast()) };
    }
}
