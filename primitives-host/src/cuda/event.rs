//! Events with their times.

use std::sync::Arc;
use std::time::Duration;

use primitives_cuda_driver::sys::{self, CUevent, CUresult};

use super::{Context, call};
use crate::Result;

/// A CUDA event with its time.
pub(crate) struct RawEvent {
    pub(super) context: Arc<Context>,
    pub(super) raw: CUevent,
}

// SAFETY: an event may be used from any thread.
unsafe impl Send for RawEvent {}
// SAFETY: as above.
unsafe impl Sync for RawEvent {}

impl RawEvent {
    pub(super) fn new(context: &Arc<Context>) -> Result<Self> {
        context.make_current()?;
        let mut raw = std::ptr::null_mut();
        // SAFETY: the pointer is valid for the call.
        unsafe { call!(context, cuEventCreate(&raw mut raw, 0))? };
        Ok(Self { context: context.clone(), raw })
    }

    pub(crate) fn synchronize(&self) -> Result<()> {
        let _relaxed = self.context.relaxed()?;
        // SAFETY: the event is alive.
        unsafe { call!(self.context, cuEventSynchronize(self.raw)) }
    }

    /// Whether the stream has come to it.
    pub(crate) fn is_done(&self) -> Result<bool> {
        let _relaxed = self.context.relaxed()?;
        // SAFETY: the event is alive.
        match unsafe { sys::cuEventQuery(self.raw) } {
            CUresult::CUDA_SUCCESS => Ok(true),
            CUresult::CUDA_ERROR_NOT_READY => Ok(false),
            code => Err(self.context.error("cuEventQuery", code)),
        }
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
