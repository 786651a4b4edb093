//! Streams and events: the order of work on a device.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

#[cfg(feature = "cuda")]
use crate::cuda;
use crate::device::{Backend, Device};
use crate::{Buffer, Result};
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

    /// The `CUstream`, for code that is not of this library; null on the emulator. It is valid as long as this stream.
    pub fn as_raw(&self) -> *mut std::ffi::c_void {
        match &self.0.queue {
            Queue::Emulator(_) => std::ptr::null_mut(),
            #[cfg(feature = "cuda")]
            Queue::Cuda(stream) => stream.as_raw().cast(),
        }
    }

    /// Waits until all work on the stream is done. Returns a kernel's fault, if there was one.
    pub fn synchronize(&self) -> Result<()> {
        self.0.synchronize()
    }

    /// Marks this point of the stream.
    pub fn record(&self) -> Result<Event> {
        let moment = match &self.0.queue {
            Queue::Emulator(_) => Moment::Emulator(Instant::now()),
            #[cfg(feature = "cuda")]
            Queue::Cuda(stream) => Moment::Cuda(stream.record()?),
        };
        Ok(Event { moment })
    }

    /// Makes later work on this stream wait for `event`, which may be of another stream of the same device.
    pub fn wait(&self, event: &Event) -> Result<()> {
        match (&self.0.queue, &event.moment) {
            #[cfg(feature = "cuda")]
            (Queue::Cuda(stream), Moment::Cuda(event)) => stream.wait(event),
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

impl std::fmt::Debug for Stream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Stream(on {})", self.0.device)
    }
}

/// A point in a stream's work, from [`Stream::record`].
pub struct Event {
    moment: Moment,
}

enum Moment {
    Emulator(Instant),
    #[cfg(feature = "cuda")]
    Cuda(cuda::RawEvent),
}

impl Event {
    /// Waits until the stream has come to this point.
    pub fn synchronize(&self) -> Result<()> {
        match &self.moment {
            Moment::Emulator(_) => Ok(()),
            #[cfg(feature = "cuda")]
            Moment::Cuda(event) => event.synchronize(),
        }
    }

    /// Device time from `start` to this point; waits for it. Zero between events of different machines.
    pub fn since(&self, start: &Event) -> Result<Duration> {
        match (&start.moment, &self.moment) {
            (Moment::Emulator(start), Moment::Emulator(end)) => Ok(end.saturating_duration_since(*start)),
            #[cfg(feature = "cuda")]
            (Moment::Cuda(start), Moment::Cuda(end)) => end.since(start),
            #[cfg(feature = "cuda")]
            _ => Ok(Duration::ZERO),
        }
    }
}
