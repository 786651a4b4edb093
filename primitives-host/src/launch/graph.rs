//! Graphs: sequences of launches that are captured once and launched as one.

use std::cell::Cell;
use std::sync::{Arc, Mutex, PoisonError};

#[cfg(feature = "cuda")]
use crate::cuda;
use crate::device::{Backend, Device};
use crate::emulator::EmulatorOptions;
use crate::launch::in_kernel::{self, InClosure};
use crate::memory::allocation::Allocation;
#[cfg(feature = "cuda")]
use crate::memory::allocation::Displaced;
use crate::memory::uses::{Mode, Uses};
use crate::stream::{Queue, Stream, StreamInner};
use crate::{Error, Result, emulator, trace};

/// A sequence of launches, copies and clears on the device, from [`Stream::capture`], that is launched as one unit. On a GPU, this costs
/// the host a fraction of the separate launches.
///
/// ```
/// use kernel_primitives::prelude::*;
/// use kernel_primitives::{Device, Dims, kernels::map_binary};
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = Device::auto()?.stream()?;
/// let one = stream.buffer_from(&[1.0f32; 1000])?;
/// let mut x = stream.buffer_zeroed::<f32>(1000)?;
/// let mut y = stream.buffer_zeroed::<f32>(1000)?;
/// let dims = Dims::for_items(1000).items_per_thread(4);
///
/// let step = stream.capture(|s| {
///     map_binary::<f32, f32, Add, 4>::launch(s, dims, &x, &one, &mut y, Add)?; // y = x + 1
///     x.as_mut_slice().copy_from_device(s, y.as_slice())
/// })?;
/// assert_eq!(x.to_vec()?, [0.0; 1000]); // nothing has run yet
///
/// for _ in 0..10 {
///     step.launch(&stream)?;
/// }
/// assert_eq!(x.to_vec()?, [10.0; 1000]);
/// # Ok(())
/// # }
/// ```
///
/// # What is captured
///
/// A launch of the graph does the captured work in the order of the calls. All arguments of the calls are fixed: the grid and block, values
/// passed to kernels, and the buffers, with the addresses and lengths of their slices. The contents of the buffers are not fixed: each
/// launch of the graph reads the contents at the time when it runs.
///
/// # Order and lifetimes
///
/// A graph keeps the memory of its buffers, so you may drop the buffers before the graph. It does not borrow them, so you can read them,
/// copy to them and use them in other launches between launches of the graph. Each launch of a graph is ordered with the other uses of
/// every buffer that it uses, on any stream, as a launch of a kernel is. Launches of one graph never overlap, on any streams.
///
/// You may drop a graph while it runs: the driver destroys an executable graph after its last launch has ended.
pub struct Graph {
    device: Device,
    program: Program,
    uses: Uses,
    launches: usize,
}

/// Why the launch of a graph cannot be part of a capture.
const NO_GRAPHS: &str = "graphs do not contain others: launch the kernels themselves in the closure";

enum Program {
    Emulator(Vec<Step>),
    #[cfg(feature = "cuda")]
    Cuda(cuda::RawGraph),
}

/// Captured work of the emulator.
pub(crate) type Step = Box<dyn Fn(&EmulatorOptions) -> Result<()> + Send + Sync>;

impl Graph {
    /// See [`Stream::capture`].
    pub(crate) fn capture(device: &Device, record: impl FnOnce(&Stream) -> Result<()>) -> Result<Self> {
        let recording = Recording::new(device)?;
        let stream = Stream(Arc::new(StreamInner { device: device.clone(), queue: Queue::Capture(recording.clone()) }));
        let open = Open::new(&recording);
        record(&stream)?;
        let Recorded { draft, mut uses, launches } = recording.end().ok_or_else(ended)?;
        drop(open);
        if !device.is_gpu() {
            // Each launch of the graph writes these no bytes, so that no two of them overlap.
            uses.add(device.stream()?.buffer_uninit::<u8>(0)?.allocation(), Mode::Write);
        }
        let program = match draft {
            Draft::Emulator(steps) => Program::Emulator(steps),
            #[cfg(feature = "cuda")]
            Draft::Cuda(draft) => Program::Cuda(draft.instantiate()?),
        };
        Ok(Self { device: device.clone(), program, uses, launches })
    }

    /// Launches the captured work, in its order, and does not wait for its end. `stream` is any stream of the graph's device. A graph may
    /// be launched any number of times.
    ///
    /// # Errors
    ///
    /// Returns [`Error::WrongDevice`] if the stream belongs to another device, [`Error::Capture`] if it captures, and [`Error::Fault`] if
    /// an earlier launch on the stream had a fault. A fault of this launch is returned as for a kernel. On the emulator, this call returns
    /// it, and the work after the faulty kernel does not run. On a GPU, the next call that waits returns it, and the rest of the work has
    /// run. Returns [`Error::InKernel`] if a kernel of the emulator makes the call and the launch would wait for this kernel, such as a
    /// kernel of this graph.
    pub fn launch(&self, stream: &Stream) -> Result<()> {
        if !self.device.same_as(stream.device()) {
            return Err(Error::WrongDevice {
                kernel: "launch of a graph".into(),
                argument: "the graph".into(),
                stream: stream.device().to_string(),
                buffer: self.device.to_string(),
            });
        }
        match (&self.program, &stream.0.queue, &stream.device().backend) {
            (_, Queue::Capture(_), _) => Err(Error::Capture { call: "`Graph::launch`", advice: NO_GRAPHS }),
            (Program::Emulator(steps), Queue::Emulator(busy), Backend::Emulator(device)) => {
                let (_held, _turn) = self.uses.lock_with_turn(busy)?;
                let _running = in_kernel::enter("launch of a graph", busy, &self.uses);
                self.note_launch(stream);
                let run = || steps.iter().try_for_each(|step| step(&device.options)).inspect_err(trace::fault);
                emulator::off_the_lane(run)
            }
            #[cfg(feature = "cuda")]
            (Program::Cuda(graph), Queue::Cuda(queue), Backend::Cuda(context)) => {
                queue.not_captured("`Graph::launch`", NO_GRAPHS)?;
                // Before any lock, since it may wait.
                queue.check_fault()?;
                let mut displaced = Displaced::default();
                let held = self.uses.lock()?;
                let mut ready = queue.ready()?;
                if let Some(fault) = ready.take() {
                    // A subscriber hears of it after the turn, and may use the buffers.
                    drop((ready, held));
                    return Err(fault).inspect_err(trace::fault);
                }
                let turn = context.turn();
                self.uses.enter(&stream.0, &mut displaced)?;
                self.note_launch(stream);
                graph.launch(&stream.0, queue, (&ready, &turn), &mut displaced)
            }
            #[cfg(feature = "cuda")]
            _ => unreachable!("a stream's queue and a graph are of their device's kind"),
        }
    }

    fn note_launch(&self, stream: &Stream) {
        stream.device().tally.graph_launches.add(1);
        trace::graph_launch(self.launches, stream.device());
    }

    /// The number of kernel launches in the graph. A launch without blocks is not captured.
    pub fn launches(&self) -> usize {
        self.launches
    }

    /// The device.
    pub fn device(&self) -> &Device {
        &self.device
    }
}

/// `Graph(3 launches on the emulator)`.
impl std::fmt::Debug for Graph {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Graph({} launches on {})", self.launches, self.device)
    }
}

/// The work that the stream of a capture collects, until the capture ends.
#[derive(Clone)]
pub(crate) struct Recording(Arc<Mutex<Option<Recorded>>>);

/// Captured work, and the buffers that it uses.
pub(crate) struct Recorded {
    pub(crate) draft: Draft,
    pub(crate) uses: Uses,
    pub(crate) launches: usize,
}

/// A graph in the making.
pub(crate) enum Draft {
    Emulator(Vec<Step>),
    #[cfg(feature = "cuda")]
    Cuda(cuda::GraphDraft),
}

impl Recording {
    fn new(device: &Device) -> Result<Self> {
        let draft = match &device.backend {
            Backend::Emulator(_) => Draft::Emulator(Vec::new()),
            #[cfg(feature = "cuda")]
            Backend::Cuda(context) => Draft::Cuda(cuda::GraphDraft::new(context)?),
        };
        Ok(Self(Arc::new(Mutex::new(Some(Recorded { draft, uses: Uses::default(), launches: 0 })))))
    }

    /// Adds to the recorded work. Returns an error if the capture has ended.
    pub(crate) fn add<R>(&self, add: impl FnOnce(&mut Recorded) -> Result<R>) -> Result<R> {
        let mut recorded = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        add(recorded.as_mut().ok_or_else(ended)?)
    }

    /// Ends the capture. Clones of its stream, which a closure may have kept, return errors after that.
    fn end(&self) -> Option<Recorded> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn uses(&self, allocation: &Allocation) -> bool {
        let recorded = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        recorded.as_ref().is_some_and(|recorded| recorded.uses.contains(allocation))
    }
}

impl Recorded {
    /// Adds a range of zeros: `bytes` of an allocation, from its byte `start` on. `uses` has the allocation.
    pub(crate) fn fill_zero(
        &mut self,
        uses: &Uses,
        (allocation, start): (&Arc<Allocation>, usize),
        bytes: usize,
    ) -> Result<()> {
        let to = allocation.address() + start as u64;
        match &mut self.draft {
            Draft::Emulator(steps) => {
                let written = allocation.memory().written().cloned();
                steps.push(Box::new(move |_| {
                    // SAFETY: inside the allocation, which the graph keeps, and locks while it runs.
                    unsafe { std::ptr::with_exposed_provenance_mut::<u8>(to as usize).write_bytes(0, bytes) };
                    if let Some(written) = &written {
                        written.mark(start..start + bytes);
                    }
                    Ok(())
                }));
            }
            #[cfg(feature = "cuda")]
            Draft::Cuda(draft) => draft.fill_zero(to, bytes)?,
        }
        self.uses.append(uses);
        Ok(())
    }

    /// Adds a copy on the device: `bytes` of an allocation from its byte `at` on, to those of another. `uses` has both.
    pub(crate) fn copy(
        &mut self,
        uses: &Uses,
        (target, start): (&Arc<Allocation>, usize),
        (source, at): (&Arc<Allocation>, usize),
        bytes: usize,
    ) -> Result<()> {
        let (to, from) = (target.address() + start as u64, source.address() + at as u64);
        match &mut self.draft {
            Draft::Emulator(steps) => {
                let written = target.memory().written().cloned().zip(source.memory().written().cloned());
                steps.push(Box::new(move |_| {
                    let (to, from) = (to as usize, from as usize);
                    // SAFETY: inside the allocations, which the graph keeps, and locks while it runs; they may be one, so
                    // the copy may overlap.
                    unsafe {
                        let from = std::ptr::with_exposed_provenance::<u8>(from);
                        std::ptr::with_exposed_provenance_mut::<u8>(to).copy_from(from, bytes);
                    }
                    if let Some((to, from)) = &written {
                        to.copy(start, from, at, bytes);
                    }
                    Ok(())
                }));
            }
            #[cfg(feature = "cuda")]
            Draft::Cuda(draft) => draft.copy(to, from, bytes)?,
        }
        self.uses.append(uses);
        Ok(())
    }
}

fn ended() -> Error {
    Error::Capture { call: "a launch", advice: "the capture of its stream has ended, so launch on another" }
}

thread_local! {
    /// The captures whose closures run on this thread, from the outermost in.
    static OPEN: Cell<Vec<Recording>> = const { Cell::new(Vec::new()) };
}

/// Calls `f` with the captures whose closures run on this thread. Returns `None` if the thread is ending and has destroyed the variable.
fn with_open<R>(f: impl FnOnce(&mut Vec<Recording>) -> R) -> Option<R> {
    // The value is taken out, and not borrowed: a lane that overflows its stack here would never end a borrow.
    let result = OPEN.try_with(|cell| {
        let mut open = cell.take();
        let result = f(&mut open);
        cell.set(open);
        result
    });
    result.ok()
}

/// A capture while its closure runs. Ends the capture also if the closure fails or unwinds.
struct Open {
    recording: Recording,
    _closure: InClosure,
}

impl Open {
    fn new(recording: &Recording) -> Self {
        with_open(|open| open.push(recording.clone()));
        Self { recording: recording.clone(), _closure: InClosure::enter() }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        // Not the last one: a lane that has overflowed its stack leaves its captures behind.
        with_open(|open| open.retain(|other| !Arc::ptr_eq(&other.0, &self.recording.0)));
        self.recording.end();
    }
}

/// Refuses a copy between the host and a buffer if the closure around the call has captured work on this buffer. That work has not run, and
/// a caller who reads the buffer would not notice it.
pub(crate) fn check_host_copy(call: &'static str, allocation: &Allocation) -> Result<()> {
    let nothing = allocation.memory().len() == 0;
    if nothing || with_open(|open| open.iter().any(|recording| recording.uses(allocation))) != Some(true) {
        return Ok(());
    }
    let advice = "what was captured has not run, so copy before the capture, or after a launch of the graph";
    Err(Error::Capture { call, advice })
}
