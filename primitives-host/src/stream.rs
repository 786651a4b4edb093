//! Streams and events: the order of work on a device.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::counters::Tally;
#[cfg(feature = "cuda")]
use crate::cuda;
use crate::device::{Backend, Device};
use crate::graph::{Graph, Recording};
use crate::{Buffer, Error, Result};
use primitives_gpu::Element;

/// A queue of launches and copies that run in order on one device. Cheap to clone; clones are the same queue.
///
/// Work is asynchronous on a GPU and immediate on the emulator. A fault in a kernel comes back from the launch itself
/// (emulator), or from the next launch or synchronisation (GPU). A GPU keeps the first fault until it is asked: where kernels
/// fault on several streams at once, one of the streams gets it, and the others' are not kept.
#[derive(Clone)]
pub struct Stream(pub(crate) Arc<StreamInner>);

pub(crate) struct StreamInner {
    pub(crate) device: Device,
    pub(crate) queue: Queue,
}

pub(crate) enum Queue {
    /// Held while work runs, so that one stream's work is never concurrent.
    Emulator(Mutex<()>),
    #[cfg(feature = "cuda")]
    Cuda(cuda::RawStream),
    /// In capture mode: work is recorded and not run.
    Capture(Recording),
}

impl StreamInner {
    /// The emulator's turn on this stream.
    pub(crate) fn turn(busy: &Mutex<()>) -> MutexGuard<'_, ()> {
        busy.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes later work on this stream wait for all work that `other` has now.
    pub(crate) fn wait_for(&self, other: &StreamInner) -> Result<()> {
        match (&self.queue, &other.queue) {
            #[cfg(feature = "cuda")]
            (Queue::Cuda(this), Queue::Cuda(other)) => this.wait_for(other),
            _ => Ok(()),
        }
    }

    pub(crate) fn synchronize(&self) -> Result<()> {
        match &self.queue {
            Queue::Emulator(busy) => {
                drop(Self::turn(busy));
                Ok(())
            }
            #[cfg(feature = "cuda")]
            Queue::Cuda(stream) => stream.synchronize(),
            Queue::Capture(_) => {
                let advice = "nothing runs in a capture: synchronize a stream that the graph was launched on";
                Err(Error::Capture { call: "`Stream::synchronize`", advice })
            }
        }
    }
}

impl Stream {
    pub(crate) fn new(device: &Device) -> Result<Self> {
        let queue = match &device.backend {
            Backend::Emulator(_) => Queue::Emulator(Mutex::new(())),
            #[cfg(feature = "cuda")]
            Backend::Cuda(context) => Queue::Cuda(cuda::RawStream::new(context)?),
        };
        Ok(Self(Arc::new(StreamInner { device: device.clone(), queue })))
    }

    /// The device.
    pub fn device(&self) -> &Device {
        &self.0.device
    }

    /// The `CUstream`, for code that is not of this library; null on the emulator and in a capture, which records the work
    /// of this library alone. It is valid as long as this stream.
    pub fn as_raw(&self) -> *mut std::ffi::c_void {
        match &self.0.queue {
            Queue::Emulator(_) | Queue::Capture(_) => std::ptr::null_mut(),
            #[cfg(feature = "cuda")]
            Queue::Cuda(stream) => stream.as_raw().cast(),
        }
    }

    /// Waits until all work on the stream is done. Returns a kernel's fault, if there was one.
    pub fn synchronize(&self) -> Result<()> {
        self.0.device.tally.synchronizations.add(1);
        self.0.synchronize()
    }

    /// Captures what `record` launches on the stream that it is given, to launch it as one, as often as wanted: see
    /// [`Graph`].
    ///
    /// What `record` does on that stream is recorded and not run: launches, and copies between buffers. Buffers come from
    /// elsewhere: from before, or from another stream. Work on other streams runs as ever, and is no part of the graph.
    ///
    /// # Errors
    ///
    /// The error of `record`, if it fails; what was recorded is then gone. [`Error::Capture`] for a call that cannot be part
    /// of a graph: an allocation on the captured stream, its synchronisation, events on it, the launch of a graph or
    /// another capture, and, in `record`, a copy between the host and a buffer of the capture. The captured stream is of no
    /// use after `record` has returned: a launch on a clone of it is such an error as well.
    pub fn capture(&self, record: impl FnOnce(&Stream) -> Result<()>) -> Result<Graph> {
        if let Queue::Capture(_) = &self.0.queue {
            let advice = "this stream captures already: call the closure of the inner capture directly";
            return Err(Error::Capture { call: "`Stream::capture`", advice });
        }
        Graph::capture(&self.0.device, record)
    }

    /// Marks this point of the stream.
    pub fn record(&self) -> Result<Event> {
        let moment = match &self.0.queue {
            Queue::Emulator(_) => Moment::Emulator(Instant::now()),
            #[cfg(feature = "cuda")]
            Queue::Cuda(stream) => Moment::Cuda(stream.record()?),
            Queue::Capture(_) => return Err(no_event("`Stream::record`")),
        };
        Ok(Event { moment, tally: self.0.device.tally.clone() })
    }

    /// Makes later work on this stream wait for `event`, which may be of another stream of the same device.
    pub fn wait(&self, event: &Event) -> Result<()> {
        match (&self.0.queue, &event.moment) {
            #[cfg(feature = "cuda")]
            (Queue::Cuda(stream), Moment::Cuda(event)) => stream.wait(event),
            (Queue::Capture(_), _) => Err(no_event("`Stream::wait`")),
            _ => Ok(()),
        }
    }

    /// A buffer of `len` elements, all zero. Its memory is used in this stream's order.
    pub fn buffer_zeroed<T: Element>(&self, len: usize) -> Result<Buffer<T>> {
        Buffer::zeroed(self, len)
    }

    /// A buffer of `len` elements with unspecified values. For `bool`, whose bytes must be 0 or 1, they are zero.
    pub fn buffer_uninit<T: Element>(&self, len: usize) -> Result<Buffer<T>> {
        Buffer::uninit(self, len)
    }

    /// A buffer with a copy of `data`.
    pub fn buffer_from<T: Element>(&self, data: &[T]) -> Result<Buffer<T>> {
        Buffer::from_slice(self, data)
    }
}

fn no_event(call: &'static str) -> Error {
    Error::Capture { call, advice: "a graph has no events: record and wait on the stream that launches it" }
}

impl std::fmt::Debug for Stream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let what = if matches!(self.0.queue, Queue::Capture(_)) { "captured, on" } else { "on" };
        write!(f, "Stream({what} {})", self.0.device)
    }
}

/// A point in a stream's work, from [`Stream::record`].
pub struct Event {
    moment: Moment,
    tally: Arc<Tally>,
}

enum Moment {
    Emulator(Instant),
    #[cfg(feature = "cuda")]
    Cuda(cuda::RawEvent),
}

impl Event {
    /// Waits until the stream has come to this point.
    pub fn synchronize(&self) -> Result<()> {
        self.tally.synchronizations.add(1);
        match &self.moment {
            Moment::Emulator(_) => Ok(()),
            #[cfg(feature = "cuda")]
            Moment::Cuda(event) => event.synchronize(),
        }
    }

    /// Device time from `start` to this point; waits for it. Zero between events of different machines.
    pub fn since(&self, start: &Event) -> Result<Duration> {
        self.tally.synchronizations.add(1);
        match (&start.moment, &self.moment) {
            (Moment::Emulator(start), Moment::Emulator(end)) => Ok(end.saturating_duration_since(*start)),
            #[cfg(feature = "cuda")]
            (Moment::Cuda(start), Moment::Cuda(end)) => end.since(start),
            #[cfg(feature = "cuda")]
            _ => Ok(Duration::ZERO),
        }
    }
}
