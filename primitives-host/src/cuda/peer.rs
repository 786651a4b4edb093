//! Copies from the memory of another GPU.

use std::sync::{Arc, PoisonError};

use primitives_cuda_driver::sys::{self, CUdeviceptr, CUresult};

use super::{Context, RawStream};
use crate::Result;

impl RawStream {
    /// Copies from the memory of another context. Without [peer access](Context::let_access), the driver goes through the host.
    pub(crate) fn copy_from_peer(
        &self,
        to: CUdeviceptr,
        source: &Arc<Context>,
        from: CUdeviceptr,
        bytes: usize,
    ) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        source.check_lost()?;
        self.context.make_current()?;
        // SAFETY: the caller owns both ranges, which are of these contexts; both are alive.
        match unsafe { sys::cuMemcpyPeerAsync(to, self.context.as_raw(), from, source.as_raw(), bytes, self.raw) } {
            CUresult::CUDA_SUCCESS => Ok(()),
            code => Err(self.context.error_with(source, "cuMemcpyPeerAsync", code)),
        }
    }
}

impl Context {
    /// Lets all other GPUs that this process has open access the memory of the pool: see [`let_access`](Self::let_access).
    pub(crate) fn let_access_of_all(&self) {
        let others = Self::all().into_iter().filter(|other| !std::ptr::eq(&**other, self));
        others.for_each(|peer| self.let_access(&peer));
    }

    /// Lets another GPU access the memory of the pool, if the hardware can. It is asked once a GPU, by a caller without locks: it may take
    /// long.
    pub(crate) fn let_access(&self, peer: &Context) {
        {
            let mut asked = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
            if asked.contains(&peer.device()) {
                return;
            }
            asked.push(peer.device());
        }
        let Ok(_relaxed) = self.relaxed() else { return };
        let mut can = 0;
        // SAFETY: the pointer is valid for the call.
        let code = unsafe { sys::cuDeviceCanAccessPeer(&raw mut can, peer.device(), self.device()) };
        if code != CUresult::CUDA_SUCCESS || can == 0 {
            return;
        }
        let access = sys::CUmemAccessDesc {
            location: sys::CUmemLocation {
                type_: sys::CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE,
                id: peer.device(),
            },
            flags: sys::CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
        };
        // SAFETY: the pointer is valid for the call, and the pool is alive. If that fails, copies are slower.
        unsafe { sys::cuMemPoolSetAccess(self.pool, &raw const access, 1) };
    }
}
