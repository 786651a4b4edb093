//! Streams and events: the order of work on a device.

use std::ffi::c_void;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::counters::Tally;
#[cfg(feature = "cuda")]
use crate::cuda;
use crate::device::{Backend, Device};
use crate::launch::graph::{Graph, Recording};
use crate::launch::in_kernel;
use crate::memory::Keeper;
use crate::{Buffer, Error, Result};
use primitives_gpu::Element;

/// A queue of launches and copies that run in order on one device. Cheap to clone; clones are the same queue.
///
/// Work is asynchronous on a GPU and immediate on the emulator. There, a kernel may call the host's functions, too, as long as they do
/// not wait for that kernel: those return [`Error::InKernel`].
///
/// # Faults
///
/// A fault in a kernel comes back from the launch itself on the emulator. On a GPU it comes from the next launch on the same
/// stream, or from the next call that waits for the stream: its synchronisation, that of an event on it, or a copy to the host
/// of what it has written. It names its launch: the kernel with its instantiation, source line, block and thread. Other
/// streams go on undisturbed, on other threads and on this one; but what waits for the stream and uses what the launch should
/// have written finds what it has.
///
/// A thread that faults ends, and so do those of its launch that [wait](primitives_gpu::Block::spin) for others; the rest goes
/// on to its end. A stream keeps its first fault until it is asked. What is in its queue behind the launch runs as well, and a
/// wait in there may end early: the results of both are to be thrown away. A fault that nobody has asked for goes with the
/// stream.
#[derive(Clone)]
pub struct Stream(pub(crate) Arc<StreamInner>);

pub(crate) struct StreamInner {
    pub(crate) device: Device,
    pub(crate) queue: Queue,
}

#[allow(clippy::large_enum_variant, reason = "each is in an `Arc` of its own")]
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
    pub(crate) fn turn(busy: &Mutex<()>) -> Result<MutexGuard<'_, ()>> {
        in_kernel::check_stream(busy)?;
        Ok(busy.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The position in the queue of a GPU's stream that its next work gets. The caller has the device's turn.
    #[inline]
    pub(crate) fn next_position(&self) -> u64 {
        match &self.queue {
            #[cfg(feature = "cuda")]
            Queue::Cuda(stream) => stream.next_position(),
            _ => 0,
        }
    }

    /// A position in the queue of a GPU's stream after all that is in it, which no other work gets. The caller has the device's
    /// turn.
    pub(crate) fn take_position(&self) -> u64 {
        match &self.queue {
            #[cfg(feature = "cuda")]
            Queue::Cuda(stream) => stream.take_position(),
            _ => 0,
        }
    }

    /// Makes later work on this stream wait for the work of `other` up to a position.
    pub(crate) fn wait_for(&self, other: &StreamInner, at: u64) -> Result<()> {
        match (&self.queue, &other.queue) {
            #[cfg(feature = "cuda")]
            (Queue::Cuda(this), Queue::Cuda(other)) => this.wait_for(other, at),
            _ => {
                let _ = at;
                Ok(())
            }
        }
    }

    /// Whether the work up to a position is done; false if that cannot be told. The caller has the device's turn.
    pub(crate) fn is_done(&self, at: u64) -> bool {
        match &self.queue {
            Queue::Emulator(_) => true,
            #[cfg(feature = "cuda")]
            Queue::Cuda(stream) => stream.is_done(at),
            Queue::Capture(_) => {
                let _ = at;
                false
            }
        }
    }

    /// Notes that the work up to a position is done.
    pub(crate) fn note_done(&self, at: u64) {
        match &self.queue {
            #[cfg(feature = "cuda")]
            Queue::Cuda(stream) => stream.note_done(at),
            _ => _ = at,
        }
    }

    /// Whether code that is not of this library captures the stream.
    pub(crate) fn is_captured_by_others(&self) -> Result<bool> {
        match &self.queue {
            #[cfg(feature = "cuda")]
            Queue::Cuda(stream) => stream.is_captured(),
            _ => Ok(false),
        }
    }

    /// The fault of an earlier launch on a GPU, if there is one by now.
    pub(crate) fn check_fault(&self) -> Result<()> {
        match &self.queue {
            #[cfg(feature = "cuda")]
            Queue::Cuda(stream) => stream.check_fault(),
            _ => Ok(()),
        }
    }

    pub(crate) fn synchronize(&self) -> Result<()> {
        match &self.queue {
            Queue::Emulator(busy) => {
                drop(Self::turn(busy)?);
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

    /// Waits for what is in the queue, whatever kernels have done. Their faults stay to be returned.
    pub(crate) fn drain(&self) -> Result<()> {
        match &self.queue {
            Queue::Emulator(_) | Queue::Capture(_) => Ok(()),
            #[cfg(feature = "cuda")]
            Queue::Cuda(stream) => stream.drain(),
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

    /// A `CUstream` that was made elsewhere, of the device's context, which this destroys in the end. See
    /// [`Device::from_raw_context`] for an example.
    ///
    /// Its launches report faults here, as on any other stream. Dropping the last clone, and the last buffer that was used on
    /// it, waits for its work.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Adoption`] if the device is the emulator, or the stream is another context's.
    ///
    /// # Safety
    ///
    /// `stream` is a `CUstream` that nobody else destroys, and it is adopted once. For what others capture on it, see
    /// [`is_capturing`](Self::is_capturing).
    pub unsafe fn from_raw(device: &Device, stream: *mut c_void) -> Result<Self> {
        // SAFETY: the caller's contract.
        unsafe { Self::adopt(device, stream, None) }
    }

    /// As [`from_raw`](Self::from_raw), and never destroys the stream; null is the legacy default stream.
    ///
    /// # Errors
    ///
    /// Returns what [`from_raw`](Self::from_raw) returns.
    ///
    /// # Safety
    ///
    /// `stream` is a `CUstream` or null, and is destroyed after this, all its clones, and the buffers that were used on it. It
    /// is adopted once at a time. For what others capture on it, see [`is_capturing`](Self::is_capturing).
    pub unsafe fn from_raw_borrowed(device: &Device, stream: *mut c_void) -> Result<Self> {
        // SAFETY: the caller's contract.
        unsafe { Self::adopt(device, stream, Some(Keeper::new(()))) }
    }

    /// As [`from_raw_borrowed`](Self::from_raw_borrowed), for a stream that `owner` keeps, such as an `Arc<CudaStream>` of `cudarc`: it is
    /// dropped when the last clone of this and the last buffer that was used on it are gone and the work on the stream is over.
    ///
    /// `owner` is dropped on the thread that lets go of the last of these, maybe inside a call of this library, which its drop must not
    /// call. It is never dropped if other code captures the stream just then, or if the driver cannot say whether the work is over. With
    /// an error, it is dropped at once.
    ///
    /// # Errors
    ///
    /// As [`from_raw`](Self::from_raw).
    ///
    /// # Safety
    ///
    /// `stream` is a `CUstream` or null, and is not destroyed before `owner` is dropped. It is adopted once at a time. For what
    /// others capture on it, see [`is_capturing`](Self::is_capturing).
    pub unsafe fn from_raw_owned(device: &Device, stream: *mut c_void, owner: impl Send + 'static) -> Result<Self> {
        // SAFETY: the caller's contract.
        unsafe { Self::adopt(device, stream, Some(Keeper::new(owner))) }
    }

    /// A stream that is destroyed in the end, unless somebody keeps it.
    ///
    /// # Safety
    /// That of the function above with such a keeper.
    unsafe fn adopt(device: &Device, stream: *mut c_void, keeper: Option<Keeper>) -> Result<Self> {
        match &device.backend {
            Backend::Emulator(_) => {
                let _ = (stream, keeper);
                let reason = "the emulator has no CUDA streams; make one with `Device::stream`".into();
                Err(Error::Adoption { what: "a stream", reason })
            }
            #[cfg(feature = "cuda")]
            Backend::Cuda(context) => {
                let adopted = match keeper {
                    Some(keeper) => cuda::Adopted::Kept { _keeper: keeper },
                    None => cuda::Adopted::Owned,
                };
                // SAFETY: the caller's contract.
                let queue = Queue::Cuda(unsafe { cuda::RawStream::adopt(context, stream.cast(), adopted)? });
                Ok(Self(Arc::new(StreamInner { device: device.clone(), queue })))
            }
        }
    }

    /// The device.
    pub fn device(&self) -> &Device {
        &self.0.device
    }

    /// The `CUstream`, for code that is not of this library; null on the emulator and in a capture, which records the work
    /// of this library alone. It is valid as long as this stream.
    pub fn as_raw(&self) -> *mut c_void {
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

    /// Whether work is recorded and not run: true of the stream that [`capture`](Self::capture) gives, and of one whose handle
    /// other code has and captures by the driver (`cuStreamBeginCapture`).
    ///
    /// In a capture of others, launches, copies between buffers and [`set_zero`](crate::BufferSliceMut::set_zero) become part of
    /// the graph that the driver makes. What a graph cannot hold is [`Error::Capture`], and leaves the capture as it is:
    /// allocations, waits, events, copies between the host and a buffer that was last used on the stream, and work elsewhere with
    /// such a buffer. The library sees neither that graph nor its launches. So whoever launches it keeps the stream and the
    /// buffers until it has run, and puts it in an order with all other work on them; that is part of the contract under which the
    /// driver is called. [`capture`](Self::capture) sees to all of this itself.
    pub fn is_capturing(&self) -> bool {
        match &self.0.queue {
            Queue::Emulator(_) => false,
            #[cfg(feature = "cuda")]
            Queue::Cuda(stream) => stream.is_captured().unwrap_or(false),
            Queue::Capture(_) => true,
        }
    }

    /// Captures what `record` launches on the stream that it is given, to launch it as one, as often as wanted: see
    /// [`Graph`].
    ///
    /// What `record` does on that stream is recorded and not run: launches, and copies between buffers. Buffers come from
    /// elsewhere: from before, or from another stream. Work on other streams runs as ever, and is no part of the graph.
    ///
    /// # Errors
    ///
    /// Returns the error of `record` if it fails; what was recorded is then gone. Returns [`Error::Capture`] if `record` makes a call
    /// that cannot be part of a graph: an allocation on the captured stream, its synchronisation, events on it, the launch of a
    /// graph, another capture, or a copy between the host and a buffer of the capture. The captured stream is of no use after
    /// `record` has returned: a launch on a clone of it is such an error as well.
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
            Queue::Cuda(stream) => {
                stream.not_captured("`Stream::record`", NO_EVENT)?;
                Moment::Cuda(stream.record()?, self.clone())
            }
            Queue::Capture(_) => return Err(no_event("`Stream::record`")),
        };
        Ok(Event { moment, tally: self.0.device.tally.clone() })
    }

    /// Makes later work on this stream wait for `event`, which may be of another stream of the same device.
    pub fn wait(&self, event: &Event) -> Result<()> {
        match (&self.0.queue, &event.moment) {
            #[cfg(feature = "cuda")]
            (Queue::Cuda(stream), Moment::Cuda(event, _)) => {
                stream.not_captured("`Stream::wait`", NO_EVENT)?;
                stream.wait(event)
            }
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

/// Why events are no part of a capture.
const NO_EVENT: &str = "a graph has no events: record and wait on the stream that launches it";

fn no_event(call: &'static str) -> Error {
    Error::Capture { call, advice: NO_EVENT }
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
    /// With the stream, whose faults come back here too.
    #[cfg(feature = "cuda")]
    Cuda(cuda::RawEvent, Stream),
}

impl Event {
    /// Waits as [`synchronize`](Self::synchronize), whatever kernels have done.
    pub(crate) fn passed(&self) -> Result<()> {
        match &self.moment {
            Moment::Emulator(_) => Ok(()),
            #[cfg(feature = "cuda")]
            Moment::Cuda(event, _) => event.synchronize(),
        }
    }

    /// Waits until the stream has come to this point.
    pub fn synchronize(&self) -> Result<()> {
        self.tally.synchronizations.add(1);
        match &self.moment {
            Moment::Emulator(_) => Ok(()),
            #[cfg(feature = "cuda")]
            Moment::Cuda(event, stream) => {
                event.synchronize()?;
                stream.0.check_fault()
            }
        }
    }

    /// Device time from `start` to this point; waits for it. Zero between events of different machines.
    pub fn since(&self, start: &Event) -> Result<Duration> {
        self.tally.synchronizations.add(1);
        match (&start.moment, &self.moment) {
            (Moment::Emulator(start), Moment::Emulator(end)) => Ok(end.saturating_duration_since(*start)),
            #[cfg(feature = "cuda")]
            (Moment::Cuda(start, first), Moment::Cuda(end, last)) => {
                let time = end.since(start)?;
                first.0.check_fault()?;
                last.0.check_fault()?;
                Ok(time)
            }
            #[cfg(feature = "cuda")]
            _ => Ok(Duration::ZERO),
        }
    }
}
