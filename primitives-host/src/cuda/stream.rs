//! Streams, events, stream-ordered memory and launches on a GPU.

use std::ffi::c_void;
use std::sync::Arc;
use std::time::Duration;

use cust::sys::{self, CUdeviceptr, CUevent, CUfunction, CUresult, CUstream};
use primitives_gpu::Dim3;

use super::module::LoadedKernel;
use super::{Context, call, describe};
use crate::kernel::KernelInfo;
use crate::{Error, Result, trace};

/// A CUDA stream that does not wait for the legacy default stream.
pub(crate) struct RawStream {
    context: Arc<Context>,
    raw: CUstream,
}

// SAFETY: a stream may be used from any thread, and from several at once.
unsafe impl Send for RawStream {}
// SAFETY: as above.
unsafe impl Sync for RawStream {}

impl RawStream {
    pub(crate) fn new(context: &Arc<Context>) -> Result<Self> {
        context.make_current()?;
        let mut raw = std::ptr::null_mut();
        let flags = sys::CUstream_flags_enum::CU_STREAM_NON_BLOCKING as u32;
        // SAFETY: the pointer is valid for the call.
        unsafe { call!(context, cuStreamCreate(&raw mut raw, flags))? };
        Ok(Self { context: context.clone(), raw })
    }

    pub(crate) fn as_raw(&self) -> CUstream {
        self.raw
    }

    /// A fault of an earlier launch.
    pub(crate) fn check_fault(&self) -> Result<()> {
        self.context.faults.take(&self.context).inspect_err(trace::fault)
    }

    pub(crate) fn synchronize(&self) -> Result<()> {
        self.context.make_current()?;
        // SAFETY: the stream is alive.
        unsafe { call!(self.context, cuStreamSynchronize(self.raw))? };
        self.check_fault()
    }

    pub(crate) fn record(&self) -> Result<RawEvent> {
        let event = RawEvent::new(&self.context)?;
        // SAFETY: both are alive and of one context.
        unsafe { call!(self.context, cuEventRecord(event.raw, self.raw))? };
        Ok(event)
    }

    pub(crate) fn wait(&self, event: &RawEvent) -> Result<()> {
        self.context.make_current()?;
        // SAFETY: both are alive; the event may be of another context.
        unsafe { call!(self.context, cuStreamWaitEvent(self.raw, event.raw, 0)) }
    }

    /// Makes later work here wait for all work that `other` has now.
    pub(crate) fn wait_for(&self, other: &RawStream) -> Result<()> {
        self.wait(&other.record()?)
    }

    /// Memory for later work on this stream; the reason if there is none.
    pub(crate) fn allocate(&self, bytes: usize) -> Result<CUdeviceptr, String> {
        self.context.make_current().map_err(|error| error.to_string())?;
        let mut address = 0;
        // SAFETY: the pointer is valid for the call. An allocation of no bytes is not allowed, so it takes one.
        match unsafe { sys::cuMemAllocAsync(&raw mut address, bytes.max(1), self.raw) } {
            CUresult::CUDA_SUCCESS => Ok(address),
            code => Err(describe(code)),
        }
    }

    /// Frees memory after the work that the stream has now.
    pub(crate) fn free(&self, address: CUdeviceptr) {
        if self.context.make_current().is_ok() {
            // SAFETY: from `allocate`, freed once by its owner. A lost context has freed it already and returns an error.
            unsafe { sys::cuMemFreeAsync(address, self.raw) };
        }
    }

    pub(crate) fn fill_zero(&self, address: CUdeviceptr, bytes: usize) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        self.context.make_current()?;
        // SAFETY: the caller owns the range.
        unsafe { call!(self.context, cuMemsetD8Async(address, 0, bytes, self.raw)) }
    }

    /// Returns when `from` may be reused.
    pub(crate) fn copy_from_host(&self, address: CUdeviceptr, from: &[u8]) -> Result<()> {
        if from.is_empty() {
            return Ok(());
        }
        self.context.make_current()?;
        // SAFETY: the caller owns the range; the copy is over when this returns.
        unsafe { call!(self.context, cuMemcpyHtoDAsync_v2(address, from.as_ptr().cast(), from.len(), self.raw))? };
        self.synchronize()
    }

    /// Returns when `to` is filled.
    pub(crate) fn copy_to_host(&self, to: &mut [u8], address: CUdeviceptr) -> Result<()> {
        if !to.is_empty() {
            self.context.make_current()?;
            // SAFETY: the caller owns the range; the copy is over when this returns, or the device is lost.
            unsafe { call!(self.context, cuMemcpyDtoHAsync_v2(to.as_mut_ptr().cast(), address, to.len(), self.raw))? };
        }
        self.synchronize()
    }

    pub(crate) fn copy(&self, to: CUdeviceptr, from: CUdeviceptr, bytes: usize) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        self.context.make_current()?;
        // SAFETY: the caller owns both ranges.
        unsafe { call!(self.context, cuMemcpyDtoDAsync_v2(to, from, bytes, self.raw)) }
    }

    /// # Safety
    /// The parameters are the kernel's; memory they point to is alive until the stream has run the kernel, which stream
    /// order sees to.
    pub(crate) unsafe fn launch(&self, kernel: KernelCall<'_>) -> Result<()> {
        self.context.make_current()?;
        // SAFETY: the caller's contract; grid, block and shared memory are within the device's limits.
        unsafe {
            call!(
                self.context,
                cuLaunchKernel(
                    kernel.function(),
                    kernel.grid.x,
                    kernel.grid.y,
                    kernel.grid.z,
                    kernel.block.x,
                    kernel.block.y,
                    kernel.block.z,
                    kernel.shared_bytes,
                    self.raw,
                    kernel.params.as_mut_ptr(),
                    std::ptr::null_mut(),
                )
            )
        }
    }
}

impl Drop for RawStream {
    fn drop(&mut self) {
        if self.context.make_current().is_ok() {
            // SAFETY: created by `new`, destroyed once; its work goes on to its end.
            unsafe { sys::cuStreamDestroy_v2(self.raw) };
        }
    }
}

/// A CUDA event.
pub(crate) struct RawEvent {
    context: Arc<Context>,
    raw: CUevent,
}

// SAFETY: an event may be used from any thread.
unsafe impl Send for RawEvent {}
// SAFETY: as above.
unsafe impl Sync for RawEvent {}

impl RawEvent {
    fn new(context: &Arc<Context>) -> Result<Self> {
        context.make_current()?;
        let mut raw = std::ptr::null_mut();
        // SAFETY: the pointer is valid for the call.
        unsafe { call!(context, cuEventCreate(&raw mut raw, 0))? };
        Ok(Self { context: context.clone(), raw })
    }

    pub(crate) fn synchronize(&self) -> Result<()> {
        self.context.make_current()?;
        // SAFETY: the event is alive.
        unsafe { call!(self.context, cuEventSynchronize(self.raw))? };
        self.context.faults.take(&self.context).inspect_err(trace::fault)
    }

    pub(crate) fn since(&self, start: &RawEvent) -> Result<Duration> {
        self.synchronize()?;
        start.synchronize()?;
        let mut milliseconds = 0.0f32;
        // SAFETY: both events are recorded and done; the pointer is valid for the call.
        unsafe { call!(self.context, cuEventElapsedTime(&raw mut milliseconds, start.raw, self.raw))? };
        Ok(Duration::from_secs_f64(f64::from(milliseconds.max(0.0)) / 1e3))
    }
}

impl Drop for RawEvent {
    fn drop(&mut self) {
        if self.context.make_current().is_ok() {
            // SAFETY: created by `new`, destroyed once.
            unsafe { sys::cuEventDestroy_v2(self.raw) };
        }
    }
}

/// A launch as the driver takes it.
pub(crate) struct KernelCall<'p> {
    kernel: Arc<LoadedKernel>,
    pub(crate) grid: Dim3,
    pub(crate) block: Dim3,
    pub(super) shared_bytes: u32,
    /// Of the kernel's PTX parameters, in order; what follows them is of no meaning.
    pub(super) params: &'p mut [*mut c_void],
}

impl<'p> KernelCall<'p> {
    /// A launch within the device's limits. `params` are the kernel's parameters in order, null where zero-sized.
    pub(crate) fn new(
        context: &Context,
        info: &KernelInfo,
        kernel: Arc<LoadedKernel>,
        (grid, block): (Dim3, Dim3),
        shared_bytes: usize,
        params: &'p mut [*mut c_void],
    ) -> Result<Self> {
        if block.count() > kernel.max_threads as u64 {
            return Err(Error::LaunchLimit {
                kernel: info.name().into(),
                device: context.label().into(),
                what: "the number of threads in a block, given the kernel's registers,",
                asked: block.count(),
                limit: kernel.max_threads as u64,
            });
        }
        // PTX has no zero-sized parameters: close the gaps.
        let mut kept = 0;
        for at in 0..params.len() {
            if !params[at].is_null() {
                params[kept] = params[at];
                kept += 1;
            }
        }
        Ok(Self { kernel, grid, block, shared_bytes: shared_bytes as u32, params })
    }

    pub(super) fn function(&self) -> CUfunction {
        self.kernel.function
    }
}
