//! The memory of buffers, without an element type and shared, for computations that are built at run time.

use std::ffi::c_void;
use std::ops::Range;
use std::panic::Location;
use std::sync::Arc;

use primitives_gpu::{Block, Dim3, Element};

use crate::device::{Backend, Device};
use crate::emulator::{self, allocations};
use crate::fault::{Diagnosis, KernelFault, MemoryPlace};
use crate::launch::dims::Dims;
use crate::launch::graph::{Draft, check_host_copy};
use crate::launch::in_kernel::{self, InClosure};
use crate::launch::kernel::Launch;
use crate::memory::allocation::{Allocation, Displaced};
#[cfg(feature = "cuda")]
use crate::memory::claims::Rounds;
pub use crate::memory::kept::{KeptFor, KeptWords, kept_memory, kept_words};
use crate::memory::uses::{Mode, Uses};
pub use crate::memory::zeroed_vec;
use crate::memory::{claims, peer};
pub use crate::split::{Move, moves};
use crate::stream::{Queue, Stream};
use crate::{Buffer, BufferSlice, BufferSliceMut, Error, KernelInfo, Result, trace};

/// The launch that runs on the calling thread, for other threads that compute a part of it.
pub use crate::launch::in_kernel::{Entered, Running, resume, running};

/// Why a capture cannot order the work of other code.
const NOT_IN_CAPTURE: &str = "the order of a capture is not that of its stream: call it before, or on another stream";

/// The memory of a [`Buffer`] of any element type. Clones share the memory, which is freed after the last clone.
#[derive(Clone)]
pub struct Storage {
    allocation: Arc<Allocation>,
    read_only: bool,
}

impl Storage {
    /// The memory of `buffer`.
    pub fn of<T: Element>(buffer: Buffer<T>) -> Self {
        Self { allocation: buffer.into_allocation(), read_only: false }
    }

    /// The memory of `buffer`. Work and closures may only read it.
    pub fn read_only<T: Element>(buffer: Buffer<T>) -> Self {
        Self { read_only: true, ..Self::of(buffer) }
    }

    /// The memory of a buffer that other code uses too. Work may only read it.
    pub fn shared<T: Element>(buffer: &Buffer<T>) -> Self {
        Self { allocation: buffer.allocation().clone(), read_only: true }
    }

    /// Whether the memory is read-only.
    pub fn is_read_only(&self) -> bool {
        self.read_only
    }

    fn check_write(&self, kernel: &str, argument: &str) -> Result<()> {
        if !self.read_only {
            return Ok(());
        }
        Err(Error::ReadOnly { kernel: kernel.into(), argument: argument.into() })
    }

    /// Orders later work on `stream`, of any code, after all uses so far, and orders later uses on other streams after the work that is on
    /// `stream` by then. The memory is freed in that stream's order.
    ///
    /// # Errors
    /// Returns an error if the stream belongs to another device or captures, and the errors of the driver.
    pub fn use_on(&self, call: &'static str, stream: &Stream) -> Result<()> {
        self.enter_on(call, stream, &mut Displaced::default())
    }

    /// As [`use_on`](Self::use_on). The caller drops what is displaced.
    fn enter_on(&self, call: &'static str, stream: &Stream, displaced: &mut Displaced) -> Result<()> {
        if !self.is_on(stream.device()) {
            return Err(Error::WrongDevice {
                kernel: call.trim_matches('`').into(),
                argument: "the tensor".into(),
                stream: stream.device().to_string(),
                buffer: self.device().to_string(),
            });
        }
        match &stream.0.queue {
            Queue::Emulator(_) => {
                let _ = displaced;
                Ok(())
            }
            #[cfg(feature = "cuda")]
            Queue::Cuda(queue) => {
                queue.not_captured(call, NOT_IN_CAPTURE)?;
                let _turn = self.device().turn();
                self.allocation.enter(&stream.0, Mode::Write, displaced)?;
                queue.take_position();
                Ok(())
            }
            Queue::Capture(_) => Err(Error::Capture { call, advice: NOT_IN_CAPTURE }),
        }
    }

    /// As [`use_on`](Self::use_on), for other code that starts to use the memory. It also waits for copies to the host that are under way,
    /// and on the emulator for all work. If the other code writes, all of the memory counts as written.
    ///
    /// # Errors
    /// Returns the errors of [`use_on`](Self::use_on), and [`Error::InKernel`] if a kernel on the emulator calls this function.
    pub fn lend(&self, call: &'static str, stream: &Stream, write: bool) -> Result<()> {
        check_host_copy(call, &self.allocation)?;
        let mut displaced = Displaced::default();
        let _held = self.allocation.lock(if write { Mode::Write } else { Mode::Read })?;
        self.enter_on(call, stream, &mut displaced)?;
        if let (true, Some(written)) = (write, self.allocation.memory().written()) {
            written.mark_all();
        }
        Ok(())
    }

    /// The device.
    pub fn device(&self) -> &Device {
        self.allocation.device()
    }

    /// Whether the memory is on that device.
    pub fn is_on(&self, device: &Device) -> bool {
        self.device().same_as(device)
    }

    /// The first byte on the device.
    pub fn address(&self) -> u64 {
        self.allocation.address()
    }

    /// The number of bytes.
    pub fn len(&self) -> usize {
        self.allocation.memory().len()
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The first of these bytes that nothing has written. On a GPU, which does not know this, there is none.
    pub fn first_unwritten(&self, bytes: Range<usize>) -> Option<usize> {
        self.allocation.memory().written()?.first_missing(bytes)
    }

    /// Whether both are the same memory.
    pub fn same_as(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.allocation, &other.allocation)
    }

    /// The memory as elements, to read.
    ///
    /// # Safety
    /// The memory was that of a buffer of `T`, or of complex numbers with such parts.
    pub unsafe fn as_slice<T: Element>(&self) -> BufferSlice<'_, T> {
        BufferSlice::of_allocation(&self.allocation)
    }

    /// The memory as elements, to write.
    ///
    /// # Safety
    /// The memory was that of a buffer of `T`, or of complex numbers with such parts, and is not read-only. While the slice lives, no clone of
    /// `self` is used, except by work that was enqueued before, and by graphs.
    pub unsafe fn as_mut_slice<T: Element>(&mut self) -> BufferSliceMut<'_, T> {
        BufferSliceMut::of_allocation(&mut self.allocation)
    }

    /// Calls `body`, which launches kernels that write the memory, with the memory as elements. Earlier copies to the host by other threads
    /// end before the call, and later ones start after it.
    ///
    /// # Errors
    /// Returns [`Error::ReadOnly`] if the memory is read-only, and the errors of `body`.
    ///
    /// # Safety
    /// The memory was that of a buffer of `T`, or of complex numbers with such parts. `body` does nothing with the slice but launch kernels, and
    /// gives none of them another part of this memory. It copies nothing from or to the host, and launches no graph.
    pub unsafe fn written_by<T: Element, R>(
        &self,
        call: &'static str,
        body: impl FnOnce(BufferSliceMut<'_, T>) -> Result<R>,
    ) -> Result<R> {
        self.check_write(call, "`target`")?;
        // Borrows do not keep other threads from using clones. The device orders launches with all other work except copies to the host.
        // These copies hold this lock. This function holds it too, until all launches are enqueued. It takes no other lock, and only
        // threads that use this memory wait for it. A launch on the emulator locks the memory that it uses itself.
        let _held = if self.device().is_gpu() { Some(claims::lock_one(&self.allocation, Mode::Write)?) } else { None };
        body(BufferSliceMut::of_allocation(&mut self.allocation.clone()))
    }
}

/// Whether a device is an unchecked emulator. The host may then compute in its place.
pub fn is_unchecked(device: &Device) -> bool {
    match &device.backend {
        Backend::Emulator(device) => !device.options.checked,
        #[cfg(feature = "cuda")]
        Backend::Cuda(_) => false,
    }
}

/// The number of the emulated device whose memory contains an address, if this is another emulated device than `device`.
pub fn other_emulated_owner(device: &Device, address: u64) -> Option<usize> {
    let own = device.as_emulated()?.number();
    allocations::device_of(address as usize).filter(|&owner| owner != own)
}

/// Copies bytes of one memory to another, on a stream of the target's device, as [`BufferSliceMut::copy_from_peer`] does.
///
/// # Errors
/// Returns the errors of [`BufferSliceMut::copy_from_peer`], [`Error::OutOfRange`] with a range in bytes, and [`Error::ReadOnly`].
///
/// # Safety
/// Both memories are those of buffers of one element type, and the bytes are whole elements.
pub unsafe fn copy(
    call: &'static str,
    stream: &Stream,
    (target, to): (&Storage, usize),
    (source, from): (&Storage, usize),
    bytes: usize,
) -> Result<()> {
    for (storage, start) in [(target, to), (source, from)] {
        let len = storage.len();
        if start.checked_add(bytes).is_none_or(|end| end > len) {
            return Err(Error::OutOfRange { start, end: start.saturating_add(bytes), len });
        }
    }
    target.check_write(call.trim_matches('`'), "the target")?;
    peer::copy(call, stream, (&target.allocation, to), (&source.allocation, from), bytes)
}

/// Whether a stream belongs to a [`Stream::capture`], whose graph keeps the memory that it uses. A graph that other code captures does not
/// keep it.
pub fn keeps_memory(stream: &Stream) -> bool {
    matches!(stream.0.queue, Queue::Capture(_))
}

/// Allocates elements with unspecified values for a computation on `stream`. If [`keeps_memory`] is true, the graph keeps the memory.
///
/// # Errors
/// Returns the errors of an allocation.
pub fn temporary<T: Element>(stream: &Stream, len: usize) -> Result<Buffer<T>> {
    if keeps_memory(stream) { stream.device().stream()?.buffer_uninit(len) } else { stream.buffer_uninit(len) }
}

/// Calls its argument with ranges of bytes.
pub type Ranges = Box<dyn Fn(&mut dyn FnMut(Range<usize>)) + Send + Sync>;

/// How a computation uses a memory.
pub struct StorageUse<'a> {
    /// The memory.
    pub storage: &'a Storage,
    /// Whether it is written. Otherwise it is read.
    pub write: bool,
    /// The bytes that are used.
    pub ranges: Ranges,
    /// Its name in faults.
    pub name: &'static str,
}

/// Returns the number of blocks of a kernel that a GPU runs at once. Each has `threads` threads, and no dynamic shared memory.
///
/// # Errors
/// Returns the errors of loading the kernel.
pub fn blocks_at_once(stream: &Stream, info: &'static KernelInfo, threads: u32) -> Result<usize> {
    match &stream.device().backend {
        Backend::Emulator(_) => unreachable!("a kernel of a GPU, {} with {threads} threads", info.name()),
        #[cfg(feature = "cuda")]
        Backend::Cuda(context) => context.blocks_at_once(&*context.kernel(info)?, threads),
    }
}

/// Launches a kernel that was written at run time, on a GPU.
///
/// # Safety
/// As for [`Launch::run`]: `params` are the kernel's, with a null at the end; it accesses the memory of `uses` and nothing else.
pub unsafe fn launch<'a>(
    stream: &Stream,
    info: &'static KernelInfo,
    dims: Dims,
    uses: impl Iterator<Item = (&'a Storage, bool)> + Clone,
    params: &mut [*mut c_void],
) -> Result<()> {
    let mut launch = Launch::new(stream, info, dims);
    // Borrows do not keep other threads from copying the written memory to the host. This launch waits until they have finished.
    #[cfg(feature = "cuda")]
    {
        let read_by_host = || uses.clone().find(|(storage, write)| *write && storage.allocation.is_read_by_host());
        if read_by_host().is_some() {
            drop(launch);
            let mut written = Uses::default();
            for (storage, _) in uses.clone().filter(|(_, write)| *write) {
                written.add(&storage.allocation, Mode::Write);
            }
            let mut rounds = Rounds::begin(&written, None);
            launch = Launch::new(stream, info, dims);
            while let Some((storage, _)) = read_by_host() {
                drop(launch);
                rounds.lose();
                drop(storage.allocation.lock(Mode::Write)?);
                launch = Launch::new(stream, info, dims);
            }
        }
    }
    for (storage, write) in uses {
        if write {
            storage.check_write(info.name(), "a tensor")?;
        }
        launch.storage(&storage.allocation, if write { Mode::Write } else { Mode::Read })?;
    }
    // SAFETY: the caller's contract.
    unsafe { launch.run(params, |_: Block<'_>| unreachable!("a kernel of a GPU")) }
}

/// A computation on the host.
pub struct HostPass<'a> {
    /// The memory that it uses. In memories that are only read, all bytes in the ranges must have been written.
    pub uses: Vec<StorageUse<'a>>,
    /// The computation.
    pub body: Box<dyn Fn() -> Result<()> + Send + Sync>,
}

/// Runs `body` on the host, as a launch on a stream of the emulator. It runs in the stream's order, is counted as a launch, and is recorded
/// if the stream captures. In memories that are only read, all bytes in the ranges must have been written.
///
/// # Safety
/// `body` accesses the memory of `uses` and nothing else, by address: it reads elements, and leaves in those that are written values of their
/// buffers' types. What it reads outside of the ranges has unspecified values, if nothing has written it.
pub unsafe fn run_on_host(
    stream: &Stream,
    kernel: &str,
    place: &'static Location<'static>,
    uses: Vec<StorageUse<'_>>,
    body: impl Fn() -> Result<()> + Send + Sync + 'static,
) -> Result<()> {
    // SAFETY: the caller's contract.
    unsafe { run_passes_on_host(stream, kernel, place, vec![HostPass { uses, body: Box::new(body) }], [0u32].into()) }
}

/// Runs passes on the host, in the order of these numbers, as [`run_on_host`] runs one. They are one launch, so no other work comes between
/// them, and nothing is held while the call waits. Each is counted as a launch. Later passes do not run after an error.
///
/// # Safety
/// The contract of [`run_on_host`] holds for each pass.
pub unsafe fn run_passes_on_host(
    stream: &Stream,
    kernel: &str,
    place: &'static Location<'static>,
    passes: Vec<HostPass<'_>>,
    order: Arc<[u32]>,
) -> Result<()> {
    let uses = || passes.iter().flat_map(|pass| &pass.uses);
    for StorageUse { storage, write, name, .. } in uses() {
        if *write {
            storage.check_write(kernel, &format!("`{name}`"))?;
        }
        if !storage.is_on(stream.device()) {
            return Err(Error::WrongDevice {
                kernel: kernel.into(),
                argument: format!("`{name}`"),
                stream: stream.device().to_string(),
                buffer: storage.device().to_string(),
            });
        }
    }
    let mut all = Uses::default();
    for StorageUse { storage, write, .. } in uses() {
        all.add(&storage.allocation, if *write { Mode::Write } else { Mode::Read });
    }
    let kernel: Arc<str> = kernel.into();
    let launch = Arc::clone(&kernel);
    let launches = order.len();
    let owned = |StorageUse { storage, write, ranges, name }: StorageUse<'_>| (storage.clone(), write, ranges, name);
    let passes: Vec<_> = passes
        .into_iter()
        .map(|HostPass { uses, body }| (uses.into_iter().map(owned).collect::<Vec<_>>(), body))
        .collect();
    let step = move || {
        for &number in order.iter() {
            let (accesses, body) = &passes[number as usize];
            for (storage, write, ranges, name) in accesses {
                if let (false, Some(written)) = (*write, storage.allocation.memory().written())
                    && !written.is_whole()
                {
                    let mut missing = None;
                    ranges(&mut |bytes| missing = missing.or_else(|| written.first_missing(bytes)));
                    if let Some(byte) = missing {
                        let memory = MemoryPlace::Argument { name, element: 0, byte };
                        return Err(host_fault(&kernel, place, Diagnosis::Unwritten { memory }));
                    }
                }
            }
            body()?;
            for (storage, write, ranges, _) in accesses {
                if let (true, Some(written)) = (*write, storage.allocation.memory().written())
                    && !written.is_whole()
                {
                    ranges(&mut |bytes| written.mark(bytes));
                }
            }
        }
        Ok(())
    };
    match (&stream.0.queue, &stream.device().backend) {
        (Queue::Capture(recording), _) => recording.add(|recorded| {
            match &mut recorded.draft {
                Draft::Emulator(steps) => steps.push(Box::new(move |_| step())),
                #[cfg(feature = "cuda")]
                Draft::Cuda(_) => unreachable!("a capture is of its device's kind"),
            }
            recorded.uses.append(&all);
            recorded.launches += launches;
            Ok(())
        }),
        (Queue::Emulator(busy), Backend::Emulator(_)) => {
            let (_held, _turn) = all.lock_with_turn(busy)?;
            let _running = in_kernel::enter(&launch, busy, &all);
            stream.device().tally.launches.add(launches);
            emulator::off_the_lane(|| step().inspect_err(trace::fault))
        }
        #[cfg(feature = "cuda")]
        _ => unreachable!("what runs on the host is on a stream of the emulator"),
    }
}

/// Calls `body` with the address of the first byte of a tensor's memory on the host. The call waits for the work on the memory, and no
/// other code uses the memory during the call. `body` may read only bytes that have been written.
///
/// `ranges` calls its argument with the ranges of bytes that `body` uses, until the argument returns true. A call in `body` that waits for
/// the end of `body` is an error, as in a kernel. A lane that waits for others in `body` ends its launch with a fault.
pub fn with_bytes<R>(
    call: &'static str,
    place: &Location<'_>,
    (storage, write): (&Storage, bool),
    ranges: impl Fn(&mut dyn FnMut(Range<usize>) -> bool) -> Result<()>,
    body: impl FnOnce(*mut u8) -> Result<R>,
) -> Result<R> {
    let name = "the tensor";
    let memory = storage.allocation.memory();
    if storage.device().is_gpu() {
        let advice = "copy it, with `to_vec` or `to_ndarray`";
        return Err(Error::NotOnHost { call, device: storage.device().to_string(), advice });
    }
    let kernel = call.trim_matches('`');
    if write {
        storage.check_write(kernel, name)?;
    }
    check_host_copy(call, &storage.allocation)?;
    let mut uses = Uses::default();
    uses.add(&storage.allocation, if write { Mode::Write } else { Mode::Read });
    let _held = uses.lock()?;
    let (_running, _closure) = (in_kernel::enter_on_host(kernel, &uses), InClosure::enter());
    let partly = memory.written().filter(|written| !written.is_whole());
    if let (false, Some(written)) = (write, partly) {
        let mut missing = None;
        ranges(&mut |bytes| {
            missing = written.first_missing(bytes);
            missing.is_some()
        })?;
        if let Some(byte) = missing {
            let memory = MemoryPlace::Argument { name, element: 0, byte };
            return Err(host_fault(kernel, place, Diagnosis::Unwritten { memory })).inspect_err(trace::fault);
        }
    }
    let result = body(std::ptr::with_exposed_provenance_mut(memory.address() as usize))?;
    if let (true, Some(written)) = (write, partly) {
        ranges(&mut |bytes| {
            written.mark(bytes);
            false
        })?;
    }
    Ok(result)
}

/// A fault of a computation on the host. It has no block and no thread, and the place of the call.
pub fn host_fault(kernel: &str, place: &Location<'_>, diagnosis: Diagnosis) -> Error {
    Error::Fault(Box::new(KernelFault {
        kernel: kernel.into(),
        block: Dim3::new(0, 0, 0),
        thread: Dim3::new(0, 0, 0),
        file: place.file().into(),
        line: place.line(),
        column: place.column(),
        diagnosis,
        view: None,
        help: None,
        seed: None,
    }))
}
