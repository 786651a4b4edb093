//! Streams, stream-ordered memory and launches on a GPU.

use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use primitives_cuda_driver::sys::{self, CUdeviceptr, CUresult, CUstream, CUstreamCaptureStatus};

use super::context::Relaxed;
use super::event::RawEvent;
use super::fault::{CELL_BYTES, Control, Ready};
use super::marks::Marks;
use super::{Context, KernelCall, adoption, call};
use crate::memory::Keeper;
use crate::memory::kept::{KeptFor, Numbers};
use crate::{Error, Result, trace};

/// Why copies between host and device are no part of a capture, as in
/// [`check_host_copy`](crate::launch::graph::check_host_copy).
const NOT_RUN: &str = "what was captured has not run, so copy before the capture, or after a launch of the graph";

/// A CUDA stream, with the control that its launches report faults to. One that this library makes does not wait for the
/// legacy default stream.
pub(crate) struct RawStream {
    pub(super) context: Arc<Context>,
    pub(super) raw: CUstream,
    /// Gone only while it is dropped.
    control: Option<Control>,
    /// Whether the handle was given out.
    shown: AtomicBool,
    pub(super) marks: Marks,
    /// Why work on the stream that is no kernel has failed, until somebody asks.
    failed: Mutex<Option<Error>>,
    /// The addresses and the sizes of memory for kernels, by its purpose. See [`kept_memory`](Self::kept_memory).
    kept: [OnceLock<(CUdeviceptr, usize)>; 2],
    /// Those of the uses of the words that the stream keeps.
    pub(crate) numbers: Numbers,
    /// The last to go: what keeps the stream may keep the context.
    adopted: Option<Adopted>,
}

/// Whose an adopted stream is.
pub(crate) enum Adopted {
    /// Destroyed with the [`RawStream`].
    Owned,
    /// Left to whoever made it. What keeps it for this goes with the [`RawStream`], when the work is over.
    Kept { _keeper: Keeper },
}

/// Streams that their owners have dropped, with their controls. Those whose work is done are used again.
#[derive(Default)]
pub(super) struct IdleStreams(Mutex<Vec<(Handle, Control)>>);

struct Handle(CUstream);

// SAFETY: a stream may be used from any thread.
unsafe impl Send for Handle {}

impl IdleStreams {
    /// A stream whose work is done, without a fault.
    fn take(&self, context: &Context) -> Result<Option<(CUstream, Control)>> {
        let _relaxed = context.relaxed()?;
        let mut idle = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for at in 0..idle.len() {
            // SAFETY: the stream is alive: it is in the list.
            match unsafe { sys::cuStreamQuery(idle[at].0.0) } {
                CUresult::CUDA_ERROR_NOT_READY => continue,
                CUresult::CUDA_SUCCESS => {}
                code => return Err(context.error("cuStreamQuery", code)),
            }
            let (Handle(raw), control) = idle.swap_remove(at);
            drop(idle);
            // A fault that nobody asked for goes with its stream.
            if let Err(error @ Error::ContextLost { .. }) = control.take(context, raw) {
                return Err(error);
            }
            return Ok(Some((raw, control)));
        }
        Ok(None)
    }

    /// Waits for the work of all streams and destroys them; their controls are then unused. The context is current.
    pub(super) fn finish(&mut self, context: &Context) -> Result<()> {
        for (Handle(raw), control) in self.0.get_mut().unwrap_or_else(PoisonError::into_inner).drain(..) {
            // SAFETY: created by `RawStream::new`, destroyed once.
            unsafe {
                call!(context, cuStreamSynchronize(raw))?;
                sys::cuStreamDestroy_v2(raw);
            }
            context.faults.give_back(control);
        }
        Ok(())
    }
}

// SAFETY: a stream may be used from any thread, and from several at once.
unsafe impl Send for RawStream {}
// SAFETY: as above.
unsafe impl Sync for RawStream {}

impl RawStream {
    pub(crate) fn new(context: &Arc<Context>) -> Result<Self> {
        context.make_current()?;
        let (raw, control) = match context.idle_streams.take(context)? {
            Some(idle) => idle,
            None => {
                let control = context.faults.control(context)?;
                let mut raw = std::ptr::null_mut();
                let flags = sys::CU_STREAM_NON_BLOCKING;
                // SAFETY: the pointer is valid for the call.
                match unsafe { call!(context, cuStreamCreate(&raw mut raw, flags)) } {
                    Ok(()) => (raw, control),
                    Err(error) => {
                        context.faults.give_back(control);
                        return Err(error);
                    }
                }
            }
        };
        Ok(Self::of(context, raw, control, None))
    }

    fn of(context: &Arc<Context>, raw: CUstream, control: Control, adopted: Option<Adopted>) -> Self {
        let (shown, marks) = (AtomicBool::new(adopted.is_some()), Marks::new());
        let failed = Mutex::new(None);
        let (context, control, kept, numbers) =
            (context.clone(), Some(control), Default::default(), Default::default());
        Self { context, raw, control, shown, marks, failed, kept, numbers, adopted }
    }

    /// A stream that was made elsewhere; null is the legacy default stream.
    ///
    /// # Safety
    /// The handle is a stream's, which is alive as long as what this returns and, if owned, nobody else's.
    pub(crate) unsafe fn adopt(context: &Arc<Context>, raw: CUstream, adopted: Adopted) -> Result<Self> {
        context.make_current()?;
        let mut of = std::ptr::null_mut();
        // SAFETY: the stream is alive; the pointer is valid for the call.
        unsafe { call!(context, cuStreamGetCtx(raw, &raw mut of))? };
        if of != context.raw {
            return Err(adoption("a stream", format!("it is of another context than {}", context.label())));
        }
        Ok(Self::of(context, raw, context.faults.control(context)?, Some(adopted)))
    }

    fn control(&self) -> &Control {
        self.control.as_ref().expect("it goes with the stream")
    }

    pub(crate) fn as_raw(&self) -> CUstream {
        self.shown.store(true, Ordering::Relaxed);
        self.raw
    }

    /// Whether code that is not of this library has the handle, and may capture the stream.
    pub(super) fn is_shown(&self) -> bool {
        self.shown.load(Ordering::Relaxed)
    }

    /// Whether others capture the stream now. Costs nothing where nobody else has the handle: no stream joins a capture by a
    /// wait, since [`wait_for`](Self::wait_for) refuses to wait for one that is captured.
    pub(crate) fn is_captured(&self) -> Result<bool> {
        if !self.is_shown() {
            return Ok(false);
        }
        self.context.make_current()?;
        self.asks_for_capture()
    }

    /// Whether the driver says that the stream is captured. The context is current.
    fn asks_for_capture(&self) -> Result<bool> {
        let mut status = CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
        // SAFETY: the stream is alive; the pointer is valid for the call.
        match unsafe { sys::cuStreamIsCapturing(self.raw, &raw mut status) } {
            CUresult::CUDA_SUCCESS => Ok(status != CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE),
            // The legacy default stream, while a stream is captured that waits for it.
            CUresult::CUDA_ERROR_STREAM_CAPTURE_IMPLICIT => Ok(true),
            code => Err(self.context.error("cuStreamIsCapturing", code)),
        }
    }

    /// Refuses a call that would break the capture of others.
    pub(crate) fn not_captured(&self, call: &'static str, advice: &'static str) -> Result<()> {
        if self.is_captured()? { Err(Error::Capture { call, advice }) } else { Ok(()) }
    }

    /// The handle, for work that this library enqueues by other means than the driver.
    pub(super) fn raw(&self) -> CUstream {
        self.raw
    }

    /// Notes that work on the stream has failed, for the next who asks for faults.
    pub(crate) fn fail(&self, error: Error) {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }

    /// A fault of an earlier launch, or other work that has failed.
    pub(crate) fn check_fault(&self) -> Result<()> {
        if let Some(error) = self.failed.lock().unwrap_or_else(PoisonError::into_inner).take() {
            return Err(error);
        }
        // A subscriber hears of it after the turn.
        let fault = self.ready()?.take();
        fault.map_or(Ok(()), Err).inspect_err(trace::fault)
    }

    /// The turn to put work into the queue, with the fault of an earlier launch, which the caller takes or leaves.
    pub(crate) fn ready(&self) -> Result<Ready<'_>> {
        let control = self.control();
        // To look at a fault takes a wait, which a capture would not survive: it is for afterwards.
        if control.has_faulted() && self.is_captured()? {
            return Ok(control.turn());
        }
        control.ready(&self.context, self.raw)
    }

    pub(crate) fn synchronize(&self) -> Result<()> {
        let advice = "nothing runs in a capture: synchronize a stream that the graph was launched on";
        self.not_captured("`Stream::synchronize`", advice)?;
        self.finish(&self.context.relaxed()?)
    }

    /// Waits for the work in the queue, which is not captured. The context is current, and the thread's calls are relaxed: a copy that
    /// is under way is waited for whatever other threads find out meanwhile.
    fn finish(&self, relaxed: &Relaxed) -> Result<()> {
        self.wait_idle(relaxed)?;
        self.check_fault()
    }

    fn wait_idle(&self, _relaxed: &Relaxed) -> Result<()> {
        let enqueued = self.marks.enqueued();
        // SAFETY: the stream is alive.
        unsafe { call!(self.context, cuStreamSynchronize(self.raw))? };
        self.marks.done(enqueued);
        Ok(())
    }

    /// Whether the work up to a position is done. The caller has the context's turn.
    pub(crate) fn is_done(&self, at: u64) -> bool {
        if self.marks.is_done(at) {
            return true;
        }
        let Ok(false) = self.is_captured() else { return false };
        let Ok(_relaxed) = self.context.relaxed() else { return false };
        let enqueued = self.marks.enqueued();
        // SAFETY: the stream is alive.
        let is_idle = unsafe { sys::cuStreamQuery(self.raw) } == CUresult::CUDA_SUCCESS;
        if is_idle {
            self.marks.done(enqueued);
        }
        is_idle
    }

    /// Notes that the work up to a position is done.
    pub(crate) fn note_done(&self, at: u64) {
        self.marks.done(at);
    }

    /// Waits for the work in the queue, and leaves faults to the next who asks.
    pub(crate) fn drain(&self) -> Result<()> {
        self.wait_idle(&self.context.relaxed()?)
    }

    pub(crate) fn record(&self) -> Result<RawEvent> {
        let event = RawEvent::new(&self.context)?;
        // SAFETY: both are alive and of one context.
        unsafe { call!(self.context, cuEventRecord(event.raw, self.raw))? };
        Ok(event)
    }

    pub(crate) fn wait(&self, event: &RawEvent) -> Result<()> {
        event.context.check_lost()?;
        self.context.make_current()?;
        // SAFETY: both are alive; the event may be of another context.
        match unsafe { sys::cuStreamWaitEvent(self.raw, event.raw, 0) } {
            CUresult::CUDA_SUCCESS => Ok(()),
            code if Arc::ptr_eq(&self.context, &event.context) => Err(self.context.error("cuStreamWaitEvent", code)),
            code => Err(self.context.error_with(&event.context, "cuStreamWaitEvent", code)),
        }
    }

    /// Memory for later work on this stream.
    pub(crate) fn allocate(&self, bytes: usize) -> Result<CUdeviceptr> {
        let _relaxed = self.context.relaxed()?;
        let mut address = 0;
        // SAFETY: the pointer is valid for the call, and the pool is alive.
        match unsafe { sys::cuMemAllocFromPoolAsync(&raw mut address, bytes, self.context.pool, self.raw) } {
            CUresult::CUDA_SUCCESS => Ok(address),
            code => Err(self.context.error_or(code, |error| Error::Allocation {
                bytes: bytes as u128,
                device: self.context.label().into(),
                reason: error.to_string(),
                driver: Some(error),
            })),
        }
    }

    /// Frees memory after the work that the stream has now.
    pub(crate) fn free(&self, address: CUdeviceptr) {
        if let Ok(_relaxed) = self.context.relaxed() {
            // SAFETY: from `allocate`, freed once by its owner. A lost context has freed it already and returns an error.
            unsafe { sys::cuMemFreeAsync(address, self.raw) };
        }
    }

    /// See [`kept_memory`](crate::memory::kept::kept_memory).
    pub(crate) fn kept_memory(&self, purpose: KeptFor, bytes: usize, cleared: usize) -> Result<Option<CUdeviceptr>> {
        if self.is_captured()? {
            return Ok(None);
        }
        let place = &self.kept[purpose as usize];
        let kept = match place.get() {
            Some(kept) => kept,
            None => {
                let address = self.allocate(bytes)?;
                if let Err(error) = self.fill_zero(address, cleared) {
                    self.free(address);
                    return Err(error);
                }
                // Another thread may have been faster.
                if place.set((address, bytes)).is_err() {
                    self.free(address);
                }
                place.get().expect("it was set")
            }
        };
        Ok((kept.1 >= bytes).then_some(kept.0))
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
        self.not_captured("`Buffer::copy_from`", NOT_RUN)?;
        let relaxed = self.context.relaxed()?;
        // SAFETY: the caller owns the range; the copy is over when this returns, or the device is lost.
        unsafe { call!(self.context, cuMemcpyHtoDAsync_v2(address, from.as_ptr().cast(), from.len(), self.raw))? };
        self.finish(&relaxed)
    }

    /// Begins a copy, which is over when the stream has come to this point.
    ///
    /// # Safety
    /// `from` is valid for so many bytes until then, and nobody writes them; the caller owns the range on the device.
    pub(crate) unsafe fn begin_copy_from_host(&self, address: CUdeviceptr, from: *const u8, len: usize) -> Result<()> {
        self.context.make_current()?;
        // SAFETY: the caller's contract.
        unsafe { call!(self.context, cuMemcpyHtoDAsync_v2(address, from.cast(), len, self.raw)) }
    }

    /// As [`begin_copy_from_host`](Self::begin_copy_from_host), the other way.
    ///
    /// # Safety
    /// As there; and nobody reads the bytes.
    pub(crate) unsafe fn begin_copy_to_host(&self, to: *mut u8, address: CUdeviceptr, len: usize) -> Result<()> {
        self.context.make_current()?;
        // SAFETY: the caller's contract.
        unsafe { call!(self.context, cuMemcpyDtoHAsync_v2(to.cast(), address, len, self.raw)) }
    }

    /// Returns when `to` is filled.
    pub(crate) fn copy_to_host(&self, to: &mut [u8], address: CUdeviceptr) -> Result<()> {
        self.not_captured("`Buffer::copy_to`", NOT_RUN)?;
        let relaxed = self.context.relaxed()?;
        if !to.is_empty() {
            // SAFETY: the caller owns the range; the copy is over when this returns, or the device is lost.
            unsafe { call!(self.context, cuMemcpyDtoHAsync_v2(to.as_mut_ptr().cast(), address, to.len(), self.raw))? };
        }
        self.finish(&relaxed)
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
    /// order sees to. The caller has the stream's [turn](Self::ready) and the context's.
    pub(crate) unsafe fn launch(&self, kernel: KernelCall<'_>) -> Result<()> {
        self.context.make_current()?;
        let control = self.control().address();
        // In a capture of others the launch would be an edge of a kind that not all of them can read.
        let overlap = kernel.waits() && !(self.is_shown() && self.asks_for_capture()?);
        // SAFETY: the caller's contract.
        unsafe { kernel.run(&self.context, (self.raw, overlap), control)? };
        self.advance();
        Ok(())
    }

    /// What keeps the stream goes with it, or stays for good where nobody knows whether the work is over.
    fn let_go(&mut self, over: bool) {
        if !over {
            mem::forget(self.adopted.take());
        }
    }

    /// Fills a graph's cell, so that its launches on this stream report here.
    pub(super) fn fill_cell(&self, cell: CUdeviceptr) -> Result<()> {
        self.copy(cell, self.control().address(), CELL_BYTES)
    }
}

impl Drop for RawStream {
    fn drop(&mut self) {
        let Some(control) = self.control.take() else { return };
        let free = matches!(self.is_captured(), Ok(false));
        let _relaxed = match self.context.relaxed() {
            Ok(relaxed) => relaxed,
            Err(error) => return self.let_go(matches!(error, Error::ContextLost { .. })),
        };
        self.marks.give_back(&self.context.spare_marks);
        // While others capture the stream, nothing can be freed in its order. The memory then stays in the pool.
        if free {
            self.kept.iter().filter_map(OnceLock::get).for_each(|&(address, _)| self.free(address));
        }
        if self.adopted.is_none() && free {
            // Its work goes on to its end.
            let mut idle = self.context.idle_streams.0.lock().unwrap_or_else(PoisonError::into_inner);
            return idle.push((Handle(self.raw), control));
        }
        // What runs reports to the control; and a stream of somebody else's may be gone when this returns. A stream that is
        // captured runs nothing and cannot be waited for; as what it has queued before may run still, its control is not used again.
        let waited = if free {
            // SAFETY: the stream is alive.
            unsafe { call!(self.context, cuStreamSynchronize(self.raw)) }
        } else {
            Ok(())
        };
        let (synchronized, lost) = (free && waited.is_ok(), matches!(waited, Err(Error::ContextLost { .. })));
        // No kernel faults any more. A control whose fault cannot be taken is not used again.
        let is_clean = synchronized && matches!(control.take(&self.context, self.raw), Ok(()) | Err(Error::Fault(_)));
        if !matches!(self.adopted, Some(Adopted::Kept { .. })) {
            // SAFETY: one of this library's or an owned one is destroyed once.
            unsafe { sys::cuStreamDestroy_v2(self.raw) };
        }
        if is_clean {
            self.context.faults.give_back(control);
        } else {
            self.context.has_unfinished.store(true, Ordering::Relaxed);
        }
        self.let_go(synchronized || lost);
    }
}
