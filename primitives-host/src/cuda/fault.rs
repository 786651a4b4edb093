//! Faults of GPU kernels: the record that a faulting thread writes, and its way to an error.

use std::sync::atomic::{AtomicU32, Ordering, fence};
use std::sync::{Mutex, PoisonError};

use cust::sys::CUdeviceptr;
use primitives_gpu::simt::{Fault, FaultKind, FaultRecord};

use super::Context;
use super::context::HostMemory;
use crate::error::{Diagnosis, KernelFault};
use crate::{Error, Result};

/// One record a context, in memory that host and device share, and the kernels that may write it.
pub(super) struct FaultPage {
    record: Option<HostMemory<FaultRecord>>,
    kernels: Mutex<Vec<FaultingKernel>>,
}

/// A loaded kernel that can fault; its number is its place in the list.
struct FaultingKernel {
    name: &'static str,
    /// The module's flag that tells spinning threads to give up, if the kernel spins.
    flag: Option<CUdeviceptr>,
}

impl FaultPage {
    pub(super) fn unmapped() -> Self {
        Self { record: None, kernels: Mutex::new(Vec::new()) }
    }

    pub(super) fn new(context: &Context) -> Result<Self> {
        let record: HostMemory<FaultRecord> = HostMemory::raw(context, 1)?;
        // SAFETY: the memory is owned and large enough.
        unsafe { record.address().write(FaultRecord::EMPTY) };
        Ok(Self { record: Some(record), kernels: Mutex::new(Vec::new()) })
    }

    /// The record's address, the same for host and device.
    pub(super) fn address(&self) -> u64 {
        self.record.as_ref().map_or(0, |record| record.address().addr() as u64)
    }

    /// Registers a kernel and returns its number.
    pub(super) fn register(&self, name: &'static str, flag: Option<CUdeviceptr>) -> u32 {
        let mut kernels = self.kernels.lock().unwrap_or_else(PoisonError::into_inner);
        kernels.push(FaultingKernel { name, flag });
        kernels.len() as u32 - 1
    }

    /// The fault that was recorded, if any; the record is empty afterwards. A read of host memory if there is none.
    pub(super) fn take(&self, context: &Context) -> Result<()> {
        let Some(record) = &self.record else { return Ok(()) };
        // SAFETY: the state is only accessed atomically once kernels run; the page lives as long as `self`.
        let state = unsafe { AtomicU32::from_ptr(&raw mut (*record.address()).state) };
        if state.load(Ordering::Acquire) == 0 {
            return Ok(());
        }
        let kernels = self.kernels.lock().unwrap_or_else(PoisonError::into_inner);
        // A thread that has claimed the record completes it within microseconds.
        while state.load(Ordering::Acquire) == 1 {
            std::hint::spin_loop();
        }
        if state.load(Ordering::Acquire) == 0 {
            return Ok(()); // another host thread took it
        }
        fence(Ordering::SeqCst);
        // SAFETY: the record is complete, and no thread writes it before the state is 0 again.
        let found = unsafe { record.address().read_volatile() };
        let kernel = kernels.get(found.kernel as usize);
        context.make_current()?;
        // Until the launch is over its threads must see the flag, or those that wait for a thread that faulted would wait for
        // ever; and other launches may have faulted after the record was taken, so all flags go back. The flags are written
        // on the legacy stream, which our streams do not wait for.
        // SAFETY: a flag is a word of a module that stays loaded as long as the context.
        unsafe {
            super::call!(context, cuCtxSynchronize())?;
            for flag in kernels.iter().filter_map(|kernel| kernel.flag) {
                super::call!(context, cuMemsetD32_v2(flag, 0, 1))?;
            }
            super::call!(context, cuStreamSynchronize(std::ptr::null_mut()))?;
        }
        state.store(0, Ordering::Release);
        let fault = FaultKind::from_u32(found.kind).map(|kind| Fault { kind, args: found.args });
        let len = (found.file_len as usize).min(found.file.len());
        Err(Error::Fault(Box::new(KernelFault {
            kernel: kernel.map_or("unknown", |kernel| kernel.name).to_owned(),
            block: found.block,
            thread: found.thread,
            file: String::from_utf8_lossy(&found.file[..len]).into_owned(),
            line: found.line,
            column: found.column,
            diagnosis: fault.map_or(Diagnosis::Panicked { message: String::new() }, Diagnosis::from),
        })))
    }
}
