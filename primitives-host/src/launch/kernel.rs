//! Kernels and their launches: what the expansion of `#[kernel]` calls.

use std::ffi::c_void;
use std::sync::Arc;
#[cfg(feature = "cuda")]
use std::sync::MutexGuard;

use primitives_gpu::input::Source;
use primitives_gpu::output::Sink;
use primitives_gpu::view::RawView;
use primitives_gpu::{Block, Dim3, Element};

#[cfg(feature = "cuda")]
use crate::cuda;
use crate::device::{Backend, Device};
use crate::emulator::EmulatedDevice;
use crate::launch::dims::{Dims, Work};
use crate::launch::graph::{Draft, Recording};
use crate::launch::in_kernel;
use crate::launch::input_arg::InputArg;
use crate::launch::output_arg::OutputArg;
use crate::memory::allocation::Allocation;
#[cfg(feature = "cuda")]
use crate::memory::allocation::Displaced;
use crate::memory::slice::{ReadArg, WriteArg, check_lengths};
use crate::memory::uses::{Mode, Uses};
use crate::stream::{Queue, Stream};
use crate::{Error, Result, emulator, trace};

mod info;
#[cfg(test)]
mod tests;

pub use info::{Entry, Grouped, Image, Images, Instantiated, KernelInfo};

/// A pointer to a kernel parameter, null for a zero-sized one, which PTX does not have.
#[inline]
pub fn param<T>(value: &T) -> *mut c_void {
    if size_of::<T>() == 0 { std::ptr::null_mut() } else { std::ptr::from_ref(value).cast_mut().cast() }
}

/// A launch in the making.
pub struct Launch<'a> {
    #[cfg(feature = "cuda")]
    on_gpu: OnGpu<'a>,
    stream: &'a Stream,
    info: &'static KernelInfo,
    dims: Dims,
    /// The arguments' memory, where it is locked or recorded rather than ordered in the driver's queues.
    uses: Uses,
    /// The arguments that are views, for the emulator's reports.
    arguments: Vec<emulator::Argument>,
}

/// What a launch on a GPU has from its beginning: the kernel, which is loaded while no lock is held, and then the turns.
#[cfg(feature = "cuda")]
struct OnGpu<'a> {
    kernel: Option<Result<Arc<cuda::LoadedKernel>>>,
    /// None if the stream captures. Dropped in reverse of the order in which they are taken.
    turns: Option<Turns<'a>>,
    /// Dropped after the turns.
    displaced: Displaced,
}

#[cfg(feature = "cuda")]
struct Turns<'a> {
    /// From the arguments to the queue, see [`Device::turn`].
    _device: MutexGuard<'a, ()>,
    stream: Result<cuda::Ready<'a>>,
}

#[cfg(feature = "cuda")]
impl<'a> OnGpu<'a> {
    fn new(stream: &'a Stream, info: &'static KernelInfo) -> Self {
        let displaced = Displaced::default();
        let Backend::Cuda(context) = &stream.device().backend else {
            return Self { kernel: None, turns: None, displaced };
        };
        let kernel = Some(context.kernel(info));
        let turns = match &stream.0.queue {
            Queue::Cuda(queue) => Some(Turns { stream: queue.ready(), _device: context.turn() }),
            _ => None,
        };
        Self { kernel, turns, displaced }
    }
}

impl<'a> Launch<'a> {
    /// A launch of `info` on `stream`.
    pub fn new(stream: &'a Stream, info: &'static KernelInfo, dims: Dims) -> Self {
        Self {
            #[cfg(feature = "cuda")]
            on_gpu: OnGpu::new(stream, info),
            stream,
            info,
            dims,
            uses: Uses::default(),
            arguments: Vec::new(),
        }
    }

    /// Takes an argument that the kernel reads.
    pub fn read<T: Element>(&mut self, name: &'static str, argument: impl ReadArg<T>) -> Result<RawView<T>> {
        let (allocation, view) = argument.parts();
        self.check_device(name, allocation.device())?;
        self.enter(allocation, Mode::Read)?;
        self.note(name, view);
        Ok(view)
    }

    /// Takes an argument whose items the kernel gets by index.
    pub fn input<S: Source>(&mut self, name: &'static str, argument: impl InputArg<S>) -> Result<S> {
        argument.enter(self, name)
    }

    /// Takes an argument whose places the kernel writes by index.
    pub fn output<O: Sink>(&mut self, name: &'static str, mut argument: impl OutputArg<O>) -> Result<O> {
        argument.enter_mut(self, name)
    }

    /// Takes an argument that the kernel writes.
    pub fn write<T: Element>(&mut self, name: &'static str, argument: impl WriteArg<T>) -> Result<RawView<T>> {
        let (allocation, view) = argument.parts();
        self.check_device(name, allocation.device())?;
        self.enter(allocation, Mode::Write)?;
        self.note(name, view);
        Ok(view)
    }

    /// Takes memory that the kernel finds by itself.
    pub(crate) fn storage(&mut self, allocation: &Arc<Allocation>, mode: Mode) -> Result<()> {
        self.check_device("a tensor", allocation.device())?;
        self.enter(allocation, mode)
    }

    fn note<T>(&mut self, name: &'static str, view: RawView<T>) {
        if !self.stream.device().is_gpu() {
            let (address, len) = (view.address().addr(), view.len());
            self.arguments.push(emulator::Argument { name, address, len, size: size_of::<T>() });
        }
    }

    fn enter(&mut self, allocation: &Arc<Allocation>, mode: Mode) -> Result<()> {
        match &self.stream.0.queue {
            Queue::Emulator(_) | Queue::Capture(_) => self.uses.add(allocation, mode),
            #[cfg(feature = "cuda")]
            Queue::Cuda(_) => allocation.enter(&self.stream.0, mode, &mut self.on_gpu.displaced)?,
        }
        Ok(())
    }

    fn check_device(&self, name: &'static str, device: &Device) -> Result<()> {
        if device.same_as(self.stream.device()) {
            return Ok(());
        }
        Err(Error::WrongDevice {
            kernel: self.info.name.into(),
            argument: format!("`{name}`"),
            stream: self.stream.device().to_string(),
            buffer: device.to_string(),
        })
    }

    /// Checks that the arguments have one length.
    pub fn equal_lengths(&self, lengths: &[(&str, usize)]) -> Result<()> {
        let Some((&(first, first_len), rest)) = lengths.split_first() else { return Ok(()) };
        for &(second, second_len) in rest {
            if second_len != first_len {
                let quoted = |name| format!("`{name}`");
                check_lengths(self.info.name, &quoted(first), first_len, &quoted(second), second_len)?;
            }
        }
        Ok(())
    }

    /// Launches, or records the launch if the stream captures.
    ///
    /// # Safety
    /// `params` are the kernel's PTX parameters in order, null where zero-sized, and a null at the end, in whose place the
    /// control goes that a kernel reports faults to. `body` is the kernel with the same arguments; the views in them come from this launch's `read` and `write`.
    pub unsafe fn run(
        mut self,
        params: &mut [*mut c_void],
        body: impl Fn(Block<'_>) + Send + Sync + 'static,
    ) -> Result<()> {
        match &self.stream.0.queue {
            // Only what is recorded is boxed: a launch does not allocate for its body.
            // SAFETY: the caller's contract.
            Queue::Capture(recording) => unsafe { self.record(recording, params, Box::new(body)) },
            // SAFETY: the caller's contract.
            _ => unsafe { self.enqueue(params, &body) },
        }
    }

    /// # Safety
    /// As for [`run`](Self::run).
    unsafe fn enqueue(&mut self, params: &mut [*mut c_void], body: &(dyn Fn(Block<'_>) + Sync)) -> Result<()> {
        let device = self.stream.device();
        match (&self.stream.0.queue, &device.backend) {
            (Queue::Emulator(busy), Backend::Emulator(emulated)) => {
                let _ = params;
                let Some(launch) = self.for_emulator()? else { return Ok(()) };
                let (_held, _turn) = self.uses.lock_with_turn(busy)?;
                let _running = in_kernel::enter(launch.kernel, busy, &self.uses);
                device.tally.launches.add(1);
                let _span = trace::launch(launch.kernel, launch.grid, launch.block, launch.shared_bytes, device);
                emulator::run(&launch, &emulated.options, body).inspect_err(trace::fault)
            }
            #[cfg(feature = "cuda")]
            (Queue::Cuda(stream), Backend::Cuda(context)) => {
                let _ = body;
                let Turns { _device: turn, stream: ready } = self.on_gpu.turns.take().expect("it began with its turns");
                let mut ready = ready?;
                if let Some(fault) = ready.take() {
                    // A subscriber hears of it after the turns.
                    drop((ready, turn));
                    return Err(fault).inspect_err(trace::fault);
                }
                let Some(call) = self.for_driver(context, params)? else { return Ok(()) };
                device.tally.launches.add(1);
                let _span = trace::launch(self.info.name, call.grid, call.block, self.shared_bytes(), device);
                // SAFETY: the caller's contract.
                unsafe { stream.launch(call) }
            }
            _ => unreachable!("a stream's queue is of its device's kind, and this one does not capture"),
        }
    }

    /// # Safety
    /// As for [`run`](Self::run).
    unsafe fn record(
        &mut self,
        recording: &Recording,
        params: &mut [*mut c_void],
        body: Box<dyn Fn(Block<'_>) + Send + Sync>,
    ) -> Result<()> {
        recording.add(|recorded| {
            match (&mut recorded.draft, &self.stream.device().backend) {
                (Draft::Emulator(steps), _) => {
                    let _ = params;
                    let Some(launch) = self.for_emulator()? else { return Ok(()) };
                    steps.push(Box::new(move |options| emulator::run(&launch, options, &*body)));
                }
                #[cfg(feature = "cuda")]
                (Draft::Cuda(draft), Backend::Cuda(context)) => {
                    let Some(call) = self.for_driver(context, params)? else { return Ok(()) };
                    // SAFETY: the caller's contract; the graph keeps the memory that the parameters point to.
                    unsafe { draft.launch(call)? };
                }
                #[cfg(feature = "cuda")]
                _ => unreachable!("a capture is of its device's kind"),
            }
            recorded.uses.append(&self.uses);
            recorded.launches += 1;
            Ok(())
        })
    }

    /// The launch for the emulator; `None` for one of nothing.
    fn for_emulator(&self) -> Result<Option<emulator::Launch<'static>>> {
        let Some((grid, block)) = self.resolve(|_, _| Ok(self.info.max_threads().unwrap_or(256).min(256)))? else {
            return Ok(None);
        };
        let (kernel, place, shared_bytes) = (self.info.name, self.info.place, self.shared_bytes());
        let regions = self.uses.iter().filter_map(|(allocation, mode)| {
            let memory = allocation.memory();
            let (address, len, written) = (memory.address() as usize, memory.len(), memory.written()?.clone());
            Some(emulator::Region { address, len, written, writable: mode == Mode::Write })
        });
        let (regions, arguments) = (regions.collect(), self.arguments.clone());
        let (device, shared_params) =
            (self.stream.device().as_emulated().map_or(0, EmulatedDevice::number), self.info.shared_params);
        Ok(Some(emulator::Launch {
            kernel,
            place,
            grid,
            block,
            device,
            shared_bytes,
            shared_params,
            regions,
            arguments,
        }))
    }

    /// The launch for the driver, with the kernel loaded; `None` for one of nothing.
    #[cfg(feature = "cuda")]
    fn for_driver<'p>(
        &mut self,
        context: &Arc<cuda::Context>,
        params: &'p mut [*mut c_void],
    ) -> Result<Option<cuda::KernelCall<'p>>> {
        let kernel = self.on_gpu.kernel.take().expect("a launch on a GPU has its kernel")?;
        let best_block = |shared, tiles: &dyn Fn(u32) -> usize| context.best_block(self.info, &kernel, shared, tiles);
        let Some((grid, block)) = self.resolve(best_block)? else { return Ok(None) };
        let shared_bytes = self.shared_bytes();
        cuda::KernelCall::new(context, self.info, kernel, (grid, block), shared_bytes, params).map(Some)
    }

    /// Blocks of so many threads that the launch's items need.
    fn blocks_of(&self, threads: u64) -> usize {
        match self.dims.work {
            Work::Grid(grid) => grid.count() as usize,
            Work::Blocks(blocks) => blocks,
            Work::Items { items, per_thread } => items.div_ceil((threads as usize).saturating_mul(per_thread).max(1)),
        }
    }

    fn shared_bytes(&self) -> usize {
        self.info.static_shared.saturating_add(self.dims.shared_bytes)
    }

    /// The grid and the block, within the device's limits; `None` for a launch of nothing.
    ///
    /// `best_block` is asked for the block size of a launch over items, given the shared memory and the number of blocks by
    /// block size.
    fn resolve(
        &self,
        best_block: impl Fn(usize, &dyn Fn(u32) -> usize) -> Result<u32>,
    ) -> Result<Option<(Dim3, Dim3)>> {
        let limits = match &self.stream.device().backend {
            Backend::Emulator(device) => &Limits { shared_bytes: device.options.shared_bytes(), ..EMULATOR_LIMITS },
            #[cfg(feature = "cuda")]
            Backend::Cuda(context) => context.limits(),
        };
        let limit = |what, asked, limit| -> Result<()> {
            if asked <= limit {
                return Ok(());
            }
            let (kernel, device) = (self.info.name.into(), self.stream.device().to_string());
            Err(Error::LaunchLimit { kernel, device, what, asked, limit })
        };
        limit("shared memory in bytes", self.shared_bytes() as u64, limits.shared_bytes as u64)?;
        let block = match (self.dims.block, self.info.threads()) {
            (Some(block), Some(threads)) if block != threads => {
                let (kernel, device) = (self.info.name.into(), self.stream.device().to_string());
                return Err(Error::OtherBlock { kernel, device, asked: block, threads });
            }
            (Some(block), _) | (None, Some(block)) => block,
            (None, None) => best_block(self.shared_bytes(), &|threads| self.blocks_of(threads as u64))?.into(),
        };
        if block.count() == 0 {
            let (kernel, device) = (self.info.name.into(), self.stream.device().to_string());
            return Err(Error::EmptyBlock { kernel, device, block });
        }
        limit("the number of threads in a block", block.count(), limits.block_threads as u64)?;
        if let Some(threads) = self.info.max_threads() {
            limit("the number of threads in a block, by the kernel's `max_threads`,", block.count(), threads as u64)?;
        }
        limit("the block's x dimension", block.x as u64, limits.block.x as u64)?;
        limit("the block's y dimension", block.y as u64, limits.block.y as u64)?;
        limit("the block's z dimension", block.z as u64, limits.block.z as u64)?;
        let grid = match self.dims.work {
            Work::Grid(grid) => grid,
            Work::Blocks(blocks) => {
                limit("the grid's x dimension", blocks as u64, limits.grid.x as u64)?;
                Dim3::new(blocks as u32, 1, 1)
            }
            // Kernels over items stride by the grid, so a grid at the limit still covers them all.
            Work::Items { .. } => Dim3::new(self.blocks_of(block.count()).min(limits.grid.x as usize) as u32, 1, 1),
        };
        limit("the grid's x dimension", grid.x as u64, limits.grid.x as u64)?;
        limit("the grid's y dimension", grid.y as u64, limits.grid.y as u64)?;
        limit("the grid's z dimension", grid.z as u64, limits.grid.z as u64)?;
        if self.info.one_dimensional() {
            limit("the block's y dimension, by the kernel's `one_dimensional`,", block.y as u64, 1)?;
            limit("the block's z dimension, by the kernel's `one_dimensional`,", block.z as u64, 1)?;
            limit("the grid's y dimension, by the kernel's `one_dimensional`,", grid.y as u64, 1)?;
            limit("the grid's z dimension, by the kernel's `one_dimensional`,", grid.z as u64, 1)?;
        }
        // Indices are counted in 64 bits, with room for the items of a thread.
        limit("the number of threads in the grid", grid.count().saturating_mul(block.count()), 1 << 48)?;
        Ok((grid.count() > 0).then_some((grid, block)))
    }
}

/// What a launch may ask for.
pub(crate) struct Limits {
    pub(crate) block_threads: u32,
    pub(crate) block: Dim3,
    pub(crate) grid: Dim3,
    pub(crate) shared_bytes: usize,
}

/// The emulator takes what a current GPU takes.
pub(crate) const EMULATOR_LIMITS: Limits = Limits {
    block_threads: 1024,
    block: Dim3::new(1024, 1024, 64),
    grid: Dim3::new(i32::MAX as u32, 65535, 65535),
    shared_bytes: 227 * 1024,
};
