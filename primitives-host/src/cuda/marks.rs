//! Points in a stream's work that other streams wait for.
//!
//! Work gets positions, from 1, as it is put into a stream's queue; a buffer remembers the positions of its last uses. A *mark* is
//! an event between two pieces of work. Who waits for a position waits for the first mark after it, and for all work so far if
//! there is none.
//!
//! A mark behind each piece of work would let others wait for exactly what they need, but costs the host a fifth of a launch.
//! So a stream makes them as long as they are of use: for its first [`AHEAD`] pieces of work, and for as many after each wait of
//! another stream. One that nobody waits for is soon without; the first wait after that is for all that is in the queue.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use primitives_cuda_driver::sys::{self, CUevent, CUresult};

use super::{Context, RawStream, call};
use crate::{Error, Result};

/// Pieces of work that get a mark each without anybody having waited for one; and the most marks that a stream keeps.
const AHEAD: u32 = 64;

/// Positions and marks of a stream.
pub(super) struct Marks {
    /// Of the last work in the queue. Changed in the context's turn, after the work is there.
    enqueued: AtomicU64,
    /// Of the last work that the host knows to be done.
    done: AtomicU64,
    /// How many more pieces of work get a mark.
    ahead: AtomicU32,
    /// By ascending position.
    marks: Mutex<VecDeque<(u64, Mark)>>,
}

/// An event without time.
pub(super) struct Mark(CUevent);

// SAFETY: an event may be used from any thread.
unsafe impl Send for Mark {}

/// Events that no stream has; those of the context are made once and used again. A wait is for what was recorded when it began,
/// so that an event may be recorded anew while streams wait for it.
#[derive(Default)]
pub(super) struct SpareMarks(Mutex<Vec<Mark>>);

impl SpareMarks {
    fn take(&self, context: &Context) -> Result<Mark> {
        if let Some(spare) = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop() {
            return Ok(spare);
        }
        // An event is of the current context. Calls for several devices leave that of the last one current.
        context.make_current()?;
        let mut raw = std::ptr::null_mut();
        // SAFETY: the pointer is valid for the call.
        unsafe { call!(context, cuEventCreate(&raw mut raw, sys::CU_EVENT_DISABLE_TIMING))? };
        Ok(Mark(raw))
    }

    /// Destroys all. The context is current.
    pub(super) fn destroy(&mut self) {
        for Mark(raw) in self.0.get_mut().unwrap_or_else(PoisonError::into_inner).drain(..) {
            // SAFETY: created by `take`, destroyed once.
            unsafe { sys::cuEventDestroy_v2(raw) };
        }
    }
}

impl Marks {
    pub(super) fn new() -> Self {
        let (enqueued, done) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { enqueued, done, ahead: AtomicU32::new(AHEAD), marks: Mutex::default() }
    }

    /// The position of the last work in the queue.
    pub(super) fn enqueued(&self) -> u64 {
        self.enqueued.load(Ordering::Acquire)
    }

    /// Notes that the work up to this position is done.
    pub(super) fn done(&self, at: u64) {
        self.done.fetch_max(at, Ordering::Release);
    }

    /// Whether the host knows that the work up to this position is done.
    pub(super) fn is_done(&self, at: u64) -> bool {
        at <= self.done.load(Ordering::Acquire)
    }

    /// Leaves the events to other streams.
    pub(super) fn give_back(&mut self, spare: &SpareMarks) {
        let marks = self.marks.get_mut().unwrap_or_else(PoisonError::into_inner);
        let mut spare = spare.0.lock().unwrap_or_else(PoisonError::into_inner);
        spare.extend(marks.drain(..).map(|(_, mark)| mark));
    }
}

impl RawStream {
    /// The position of the work that is put into the queue next. The caller has the context's turn.
    #[inline]
    pub(crate) fn next_position(&self) -> u64 {
        self.marks.enqueued.load(Ordering::Relaxed) + 1
    }

    /// Gives the next position to what was just put into the queue, in the context's turn.
    #[inline]
    pub(crate) fn advance(&self) {
        let at = self.take_position();
        // Nothing is recorded on streams that others may capture: their events would be of the capture.
        if self.marks.ahead.load(Ordering::Relaxed) > 0 && !self.is_shown() {
            self.marks.ahead.fetch_sub(1, Ordering::Relaxed);
            let mut marks = self.marks.marks.lock().unwrap_or_else(PoisonError::into_inner);
            // Without this mark, a wait is for a later one.
            let _ = self.mark(&mut marks, at);
        }
    }

    /// A position after all that is in the queue, which no other work gets. The caller has the context's turn.
    pub(crate) fn take_position(&self) -> u64 {
        self.marks.enqueued.fetch_add(1, Ordering::Release) + 1
    }

    /// Records a mark behind the work up to `at`, which is in the queue.
    fn mark(&self, marks: &mut VecDeque<(u64, Mark)>, at: u64) -> Result<CUevent> {
        // A later mark does in place of the oldest.
        let oldest = if marks.len() >= AHEAD as usize { marks.pop_front() } else { None };
        let mark = match oldest {
            Some((_, mark)) => mark,
            None => self.context.spare_marks.take(&self.context)?,
        };
        let raw = mark.0;
        // SAFETY: both are alive and of one context.
        let recorded = unsafe { call!(self.context, cuEventRecord(raw, self.raw)) };
        match recorded {
            Ok(()) => marks.push_back((at, mark)),
            Err(_) => self.context.spare_marks.0.lock().unwrap_or_else(PoisonError::into_inner).push(mark),
        }
        recorded.map(|()| raw)
    }

    /// Makes later work here wait for the work of `other` up to a position.
    ///
    /// # Errors
    /// Returns [`Error::Capture`] if others capture `other`.
    pub(crate) fn wait_for(&self, other: &RawStream, at: u64) -> Result<()> {
        let is_of_other_context = !Arc::ptr_eq(&self.context, &other.context);
        // In a context that is lost, nothing runs any more.
        if other.marks.is_done(at) || is_of_other_context && other.context.check_lost().is_err() {
            return Ok(());
        }
        let mut marks = other.marks.marks.lock().unwrap_or_else(PoisonError::into_inner);
        let later = marks.iter().find(|(position, _)| *position >= at).map(|(_, mark)| mark.0);
        let event = match later {
            Some(event) => event,
            None if other.is_captured()? => {
                let advice = "use the buffers of a captured stream on others before the capture, or after its end";
                return Err(Error::Capture { call: "a wait of another stream", advice });
            }
            // What has a position is in the queue, unless its launch failed: what is there now is enough.
            None => {
                // The event is of the other stream's context, which may be another GPU's.
                other.context.make_current()?;
                other.mark(&mut marks, other.marks.enqueued())?
            }
        };
        other.marks.ahead.store(AHEAD, Ordering::Relaxed);
        self.context.make_current()?;
        // SAFETY: both are alive; the lock is held, so that the event is not recorded anew before.
        match unsafe { sys::cuStreamWaitEvent(self.raw, event, 0) } {
            CUresult::CUDA_SUCCESS => Ok(()),
            code if is_of_other_context => Err(self.context.error_with(&other.context, "cuStreamWaitEvent", code)),
            code => Err(self.context.error("cuStreamWaitEvent", code)),
        }
    }
}
