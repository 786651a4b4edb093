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
#[cfg(feature = "cuda")]
use crate::memory::free_orphans;
use crate::{Buffer, Error, Result};
use primitives_gpu::Element;

/// A queue of launches and copies that run in order on one device. A clone is cheap, and is the same queue.
///
/// Work is asynchronous on a GPU and immediate on the emulator. On the emulator, a kernel may also call functions of the host. A call that
/// would wait for that kernel returns [`Error::InKernel`]. Two kernels that wait for each other's streams wait for ever. While a launch or a
/// copy of another thread waits for that kernel, it holds no buffer that the kernel may need. If the launch waits because other threads use
/// its buffers in turn, their next calls let it go first. Each time that it finds a buffer in use, they wait at most as long as it has waited.
/// A thread of a kernel must not wait for other threads of the grid in the closure of [`capture`](Self::capture), or in another closure that
/// holds memory: this is a fault.
///
/// # Faults
///
/// On the emulator, the launch itself returns a fault of its kernel. On a GPU, the next launch on the same stream returns it, or the next
/// call that waits for the stream: a synchronisation of the stream or of one of its events, or a copy between the host and a buffer that
/// the stream was the last to write, such as the copy of [`buffer_from`](Self::buffer_from). The fault names its launch: the kernel with
/// its instantiation, source line, block and thread. Other streams are not affected. But if their work uses the results of the faulty
/// launch, it finds whatever the launch has written.
///
/// A thread that faults ends. The threads of its launch that [wait](primitives_gpu::Block::spin) for other threads end too; all other
/// threads run to their end. A stream keeps its first fault until a call returns it. The work in its queue after the launch runs as well,
/// and a wait in this work may end early. Do not use the results of the launch and of this work. A fault that no call has returned is lost
/// when the stream is dropped.
#[derive(Clone)]
pub struct Stream(pub(crate) Arc<StreamInner>);

#[cfg(feature = "cuda")]
impl Drop for Stream {
    /// Frees the memory of buffers that were dropped while other code captured a stream, if the capture has ended.
    fn drop(&mut self) {
        free_orphans(&self.0.device);
    }
}

pub(crate) struct StreamInner {
    pub(crate) device: Device,
    pub(crate) queue: Queue,
}

#[allow(clippy::large_enum_variant, reason = "each is in an `Arc` of its own")]
pub(crate) enum Queue {
    /// Held while a kernel or a graph runs, so that those of one stream never run concurrently. A copy runs at once, and holds its buffers.
    Emulator(Mutex<()>),
    #[cfg(feature = "cuda")]
    Cuda(cuda::RawStream),
    /// The stream of a capture: work is recorded and not run.
    Capture(Recording),
}

impl StreamInner {
    /// The emulator's turn on this stream.
    pub(crate) fn turn(busy: &Mutex<()>) -> Result<MutexGuard<'_, ()>> {
        in_kernel::check_stream(busy)?;
        Ok(busy.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Refuses a copy of bytes on this stream if a kernel of the emulator that runs on the stream makes the call. The call asks before it
    /// waits for a buffer: who uses the buffer may wait for this kernel.
    pub(crate) fn check_copy(&self, bytes: usize) -> Result<()> {
        match &self.queue {
            Queue::Emulator(busy) if bytes > 0 => in_kernel::check_stream(busy),
            _ => Ok(()),
        }
    }

    /// The position in the queue that the next work of a GPU's stream gets. The caller holds the device's turn.
    #[inline]
    pub(crate) fn next_position(&self) -> u64 {
        match &self.queue {
            #[cfg(feature = "cuda")]
            Queue::Cuda(stream) => stream.next_position(),
            _ => 0,
        }
    }

    /// Takes a position in the queue of a GPU's stream after all work in it. No other work gets this position. The caller holds the
    /// device's turn.
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

    /// Whether the work up to a position is done; false if this is unknown. The caller holds the device's turn.
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

    /// Whether code outside this library captures the stream.
    pub(crate) fn is_captured_by_others(&self) -> Result<bool> {
        match &self.queue {
            #[cfg(feature = "cuda")]
            Queue::Cuda(stream) => stream.is_captured(),
            _ => Ok(false),
        }
    }

    /// Returns the fault of an earlier launch on a GPU, if the GPU has reported one.
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

    /// Waits for the work in the queue, even if kernels had faults. A later call returns these faults.
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

    /// Adopts a `CUstream` of the device's context that other code has created. This library destroys it in the end. See
    /// [`Device::from_raw_context`] for an example.
    ///
    /// Launches of this library on the stream report faults as on any other stream. Dropping the last clone and the last buffer that was
    /// used on the stream waits for its work.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Adoption`] if the device is the emulator, or if the stream belongs to another context.
    ///
    /// # Safety
    ///
    /// `stream` is a `CUstream` that nobody else destroys, and it is adopted once. For what others capture on it, see
    /// [`is_capturing`](Self::is_capturing).
    pub unsafe fn from_raw(device: &Device, stream: *mut c_void) -> Result<Self> {
        // SAFETY: the caller's contract.
        unsafe { Self::adopt(device, stream, None) }
    }

    /// As [`from_raw`](Self::from_raw), but this library never destroys the stream. Null is the legacy default stream.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`from_raw`](Self::from_raw).
    ///
    /// # Safety
    ///
    /// `stream` is a `CUstream` or null, and is destroyed after this, all its clones, and the buffers that were used on it. It
    /// is adopted once at a time. For what others capture on it, see [`is_capturing`](Self::is_capturing).
    pub unsafe fn from_raw_borrowed(device: &Device, stream: *mut c_void) -> Result<Self> {
        // SAFETY: the caller's contract.
        unsafe { Self::adopt(device, stream, Some(Keeper::new(()))) }
    }

    /// As [`from_raw_borrowed`](Self::from_raw_borrowed), for a stream that `owner` keeps alive, such as an `Arc<CudaStream>` of `cudarc`.
    /// `owner` is dropped when the last clone of this stream and the last buffer that was used on it are dropped and the work on the stream
    /// has ended.
    ///
    /// The thread that drops the last of these also drops `owner`, perhaps inside a call of this library. So the drop of `owner` must not
    /// call this library. `owner` is never dropped if other code captures the stream at that moment, or if the driver cannot say whether
    /// the work has ended. If this function returns an error, it drops `owner` at once.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`from_raw`](Self::from_raw).
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

    /// The `CUstream`, for code outside this library. It is null on the emulator and in a capture, which records only work of this library.
    /// It is valid as long as this stream.
    pub fn as_raw(&self) -> *mut c_void {
        match &self.0.queue {
            Queue::Emulator(_) | Queue::Capture(_) => std::ptr::null_mut(),
            #[cfg(feature = "cuda")]
            Queue::Cuda(stream) => stream.as_raw().cast(),
        }
    }

    /// Waits until all work on the stream is done. Returns the first fault of a kernel, if there was one.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Fault`] if a kernel on a GPU has faulted, [`Error::Capture`] if the stream captures, [`Error::InKernel`] if a
    /// kernel of the emulator that runs on this stream makes the call, and the errors of the driver.
    pub fn synchronize(&self) -> Result<()> {
        self.0.device.tally.synchronizations.add(1);
        self.0.synchronize()
    }

    /// Whether work is recorded and not run. This is true for the stream that [`capture`](Self::capture) passes to its closure, and for a
    /// stream that other code captures through the driver (`cuStreamBeginCapture`).
    ///
    /// In a capture by other code, launches, copies between buffers and [`set_zero`](crate::BufferSliceMut::set_zero) become part of the
    /// driver's graph. A graph cannot hold allocations, waits, events, copies between the host and a buffer that was last used on the
    /// stream, and work on other streams with such a buffer. These calls return [`Error::Capture`], and leave the capture as it is. The
    /// library sees neither that graph nor its launches. So the code that launches it must keep the stream and the buffers until the graph
    /// has run, and must order the graph with all other work on them; this is part of the contract of the driver's calls.
    /// [`capture`](Self::capture) does all of this itself.
    pub fn is_capturing(&self) -> bool {
        match &self.0.queue {
            Queue::Emulator(_) => false,
            #[cfg(feature = "cuda")]
            Queue::Cuda(stream) => stream.is_captured().unwrap_or(false),
            Queue::Capture(_) => true,
        }
    }

    /// Captures the work that `record` enqueues on the stream that it receives. The resulting [`Graph`] launches this work as one unit, any
    /// number of times.
    ///
    /// Launches and copies between buffers on that stream are recorded and not run. Allocate the buffers before the capture, or on another
    /// stream. Work on other streams runs as usual, and is not part of the graph.
    ///
    /// # Errors
    ///
    /// Returns the error of `record` if it fails; the recorded work is then lost. Returns [`Error::Capture`] if `record` makes a call that
    /// cannot be part of a graph: an allocation on the captured stream, its synchronisation, events on it, the launch of a graph, another
    /// capture, or a copy between the host and a buffer of the capture. The captured stream cannot be used after `record` has returned: a
    /// launch on a clone of it returns this error as well.
    pub fn capture(&self, record: impl FnOnce(&Stream) -> Result<()>) -> Result<Graph> {
        if let Queue::Capture(_) = &self.0.queue {
            let advice = "this stream captures already: call the closure of the inner capture directly";
            return Err(Error::Capture { call: "`Stream::capture`", advice });
        }
        Graph::capture(&self.0.device, record)
    }

    /// Marks this point of the stream.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Capture`] if the stream captures, and the errors of the driver.
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

    /// Makes later work on this stream wait for `event`, which may belong to any stream of any device. If this is a stream of the
    /// emulator, the call itself waits.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Capture`] if the stream captures, [`Error::ContextLost`] if the event's GPU is lost, and the errors of the driver.
    pub fn wait(&self, event: &Event) -> Result<()> {
        match (&self.0.queue, &event.moment) {
            #[cfg(feature = "cuda")]
            (Queue::Cuda(stream), Moment::Cuda(event, _)) => {
                stream.not_captured("`Stream::wait`", NO_EVENT)?;
                stream.wait(event)
            }
            (Queue::Capture(_), _) => Err(no_event("`Stream::wait`")),
            // A fault is for the next who asks the event's own stream.
            _ => event.passed(),
        }
    }

    /// Allocates a buffer of `len` elements, all zero. Its memory is used in the order of this stream.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Allocation`] if the device does not have the memory, [`Error::Capture`] if the stream captures, and the errors of
    /// the driver.
    pub fn buffer_zeroed<T: Element>(&self, len: usize) -> Result<Buffer<T>> {
        Buffer::zeroed(self, len)
    }

    /// Allocates a buffer of `len` elements with unspecified values. Elements of `bool`, whose bytes must be 0 or 1, are zero.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`buffer_zeroed`](Self::buffer_zeroed).
    pub fn buffer_uninit<T: Element>(&self, len: usize) -> Result<Buffer<T>> {
        Buffer::uninit(self, len)
    }

    /// Allocates a buffer with a copy of `data`.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`buffer_zeroed`](Self::buffer_zeroed), and [`Error::Fault`] if the copy finds that a kernel on a GPU has
    /// faulted.
    pub fn buffer_from<T: Element>(&self, data: &[T]) -> Result<Buffer<T>> {
        Buffer::from_slice(self, data)
    }
}

/// Why a capture has no events.
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
    /// The event and its stream. Waits for the event also return the stream's faults.
    #[cfg(feature = "cuda")]
    Cuda(cuda::RawEvent, Stream),
}

impl Event {
    /// Waits as [`synchronize`](Self::synchronize) does, but returns no faults of kernels.
    pub(crate) fn passed(&self) -> Result<()> {
        match &self.moment {
            Moment::Emulator(_) => Ok(()),
            #[cfg(feature = "cuda")]
            Moment::Cuda(event, _) => event.synchronize(),
        }
    }

    /// Waits until the stream has reached this point.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Fault`] if a kernel on a GPU has faulted, and the errors of the driver.
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

    /// Waits for this point, and returns the device time from `start` to it. The time between an event of a GPU and one of the emulator is
    /// zero.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`synchronize`](Self::synchronize), for both events.
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
