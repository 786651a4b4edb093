//! Faults of GPU kernels: where they are reported, and their way to an error.
//!
//! Each stream has a *control*: in device memory the addresses of a flag and of a record, and the flag; in host memory, mapped
//! for the device, the record. A launch passes the control's address to its kernel as the last parameter. A thread that
//! faults writes the record and sets the flag; threads that wait for others watch the flag, which is in device memory for
//! that. The host looks at the record's state, which costs a read of its own memory.
//!
//! A graph's parameters are fixed when it is made, and it may be launched on any stream. So it has a *cell*: the two addresses
//! alone, which a launch on another stream than the last one overwrites, in the stream's order.

use std::mem::{ManuallyDrop, offset_of};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use primitives_cuda_driver::sys::{self, CUdeviceptr, CUstream};
use primitives_gpu::simt::{Fault, FaultControl, FaultKind, FaultRecord};

use super::context::HostMemory;
use super::{Context, call};
use crate::fault::{Diagnosis, KernelFault};
use crate::{Error, Result};

/// Bytes of the two addresses.
pub(super) const CELL_BYTES: usize = size_of::<FaultControl>();

/// What a control is in device memory.
#[repr(C)]
struct OnDevice {
    control: FaultControl,
    flag: u32,
    _rest: [u32; 3],
}

/// Controls that are allocated together.
const CHUNK: usize = 32;

/// The controls of a context and the kernels that may fault.
#[derive(Default)]
pub(super) struct Faults {
    pool: Mutex<Pool>,
    /// Names by number.
    kernels: Mutex<Vec<&'static str>>,
}

#[derive(Default)]
struct Pool {
    chunks: Vec<Chunk>,
    free: Vec<Control>,
}

struct Chunk {
    device: CUdeviceptr,
    /// Freed by [`Faults::free`] alone: the memory of a lost context is left where it is.
    records: ManuallyDrop<HostMemory<FaultRecord>>,
}

/// Where one stream's launches report. It lives as long as its context.
pub(super) struct Control {
    /// Of the addresses, in device memory.
    address: CUdeviceptr,
    record: *mut FaultRecord,
    /// Held while a fault is taken from the device, and while a launch is put into the queue: a fault in between would be wiped
    /// out. What was taken stays here until somebody asks.
    found: Mutex<Option<Error>>,
}

/// A stream's turn, and the fault of an earlier launch.
pub(crate) type Ready<'a> = MutexGuard<'a, Option<Error>>;

// SAFETY: the record's state is accessed atomically, and the rest by whoever has the lock and after the device.
unsafe impl Send for Control {}
// SAFETY: as above.
unsafe impl Sync for Control {}

impl Faults {
    /// Registers a kernel and returns its number.
    pub(super) fn register(&self, name: &'static str) -> u32 {
        let mut kernels = self.kernels.lock().unwrap_or_else(PoisonError::into_inner);
        kernels.push(name);
        kernels.len() as u32 - 1
    }

    /// A control without a fault.
    pub(super) fn control(&self, context: &Context) -> Result<Control> {
        if let Some(control) = self.pool().free.pop() {
            return Ok(control);
        }
        // Not under the lock, since it waits for the device.
        let (chunk, mut controls) = Chunk::new(context)?;
        let control = controls.pop().expect("a chunk has controls");
        let mut pool = self.pool();
        pool.chunks.push(chunk);
        pool.free.append(&mut controls);
        Ok(control)
    }

    fn pool(&self) -> MutexGuard<'_, Pool> {
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a control back that no launch uses any more, and whose fault has been taken.
    pub(super) fn give_back(&self, control: Control) {
        self.pool().free.push(control);
    }

    /// Frees the memory of all controls, unless one was not given back: then a kernel may still report to it. The context is
    /// current.
    pub(super) fn free(&mut self) {
        let pool = self.pool.get_mut().unwrap_or_else(PoisonError::into_inner);
        if pool.free.len() < pool.chunks.len() * CHUNK {
            return;
        }
        pool.free.clear();
        for chunk in pool.chunks.drain(..) {
            // SAFETY: from `Chunk::new`, freed once.
            unsafe { sys::cuMemFree_v2(chunk.device) };
            drop(ManuallyDrop::into_inner(chunk.records));
        }
    }

    fn name(&self, number: u32) -> String {
        let kernels = self.kernels.lock().unwrap_or_else(PoisonError::into_inner);
        (*kernels.get(number as usize).unwrap_or(&"unknown")).to_owned()
    }
}

impl Chunk {
    fn new(context: &Context) -> Result<(Self, Vec<Control>)> {
        let _relaxed = context.relaxed()?;
        let records: HostMemory<FaultRecord> = HostMemory::raw(context, CHUNK)?;
        let mut device = 0;
        // SAFETY: the pointer is valid for the call; `raw` has made the context current.
        unsafe { call!(context, cuMemAlloc_v2(&raw mut device, CHUNK * size_of::<OnDevice>()))? };
        let mut image = Vec::with_capacity(CHUNK);
        let mut controls = Vec::with_capacity(CHUNK);
        for i in 0..CHUNK {
            let address = device + (i * size_of::<OnDevice>()) as u64;
            let record = records.address().wrapping_add(i);
            // SAFETY: owned memory of so many records.
            unsafe { record.write(FaultRecord::EMPTY) };
            let faulted = address + offset_of!(OnDevice, flag) as u64;
            // Mapped memory has the same address for host and device.
            let control = FaultControl { faulted, record: record.expose_provenance() as u64 };
            image.push(OnDevice { control, flag: 0, _rest: [0; 3] });
            controls.push(Control { address, record, found: Mutex::new(None) });
        }
        // SAFETY: the allocation has the image's size.
        if let Err(error) = unsafe { context.copy_aside(device, image.as_ptr().cast(), size_of_val(&*image)) } {
            // SAFETY: allocated above and used by nobody.
            unsafe { sys::cuMemFree_v2(device) };
            return Err(error);
        }
        Ok((Self { device, records: ManuallyDrop::new(records) }, controls))
    }
}

impl Control {
    /// What a kernel on the stream gets as its last parameter.
    pub(super) fn address(&self) -> CUdeviceptr {
        self.address
    }

    fn state(&self) -> &AtomicU32 {
        // SAFETY: the state is only accessed atomically once kernels run, and the record lives as long as the context.
        unsafe { AtomicU32::from_ptr(&raw mut (*self.record).state) }
    }

    /// Whether a fault was recorded that is still on the device. A read of host memory.
    pub(super) fn has_faulted(&self) -> bool {
        self.state().load(Ordering::Acquire) != 0
    }

    /// The turn to put a launch into the stream's queue, whatever was recorded.
    pub(super) fn turn(&self) -> Ready<'_> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The turn to put a launch into the queue of `stream`, whose control this is and which nobody captures; with the fault of an
    /// earlier one.
    pub(super) fn ready(&self, context: &Context, stream: CUstream) -> Result<Ready<'_>> {
        let mut found = self.turn();
        if found.is_none() && self.has_faulted() {
            *found = Some(self.collect(context, stream)?);
        }
        Ok(found)
    }

    /// The fault that was recorded, if any; there is none afterwards. `stream` is as for [`ready`](Self::ready).
    pub(super) fn take(&self, context: &Context, stream: CUstream) -> Result<()> {
        self.ready(context, stream)?.take().map_or(Ok(()), Err)
    }

    /// Takes a fault from the device. The caller has the turn.
    fn collect(&self, context: &Context, stream: CUstream) -> Result<Error> {
        let _relaxed = context.relaxed()?;
        // Until the launch is over its threads must see the flag, or those that wait for one that faulted would wait for ever.
        // SAFETY: the stream is alive, which its owner sees to.
        unsafe { call!(context, cuStreamSynchronize(stream))? };
        // SAFETY: the record is complete, since the thread that claimed it has ended, and nobody writes it before the state is
        // 0 again.
        let found = unsafe { self.record.read_volatile() };
        // SAFETY: the flag is a part of the control's memory.
        unsafe {
            let flag = self.address + offset_of!(OnDevice, flag) as u64;
            call!(context, cuMemsetD32Async(flag, 0, 1, stream))?;
            call!(context, cuStreamSynchronize(stream))?;
        }
        self.state().store(0, Ordering::Release);
        let fault = FaultKind::from_u32(found.kind).map(|kind| Fault { kind, args: found.args });
        let len = (found.file_len as usize).min(found.file.len());
        Ok(Error::Fault(Box::new(KernelFault {
            kernel: context.faults.name(found.kernel),
            block: found.block,
            thread: found.thread,
            file: String::from_utf8_lossy(&found.file[..len]).into_owned(),
            line: found.line,
            column: found.column,
            diagnosis: fault.map_or(Diagnosis::Panicked { message: String::new() }, Diagnosis::from),
            view: None,
            help: None,
            seed: None,
        })))
    }
}
