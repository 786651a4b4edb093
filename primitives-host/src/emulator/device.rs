//! A device of the emulator: one of several that a process can have, each with memory of its own.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::{DEVICE, EmulatorOptions, order};
use crate::device::DeviceProperties;
use crate::launch::kernel::EMULATOR_LIMITS;

/// What the handles of an emulated device share. Handles that were made apart are of one device if the numbers are equal, as the
/// handles of a GPU are.
pub(crate) struct EmulatedDevice {
    pub(crate) options: EmulatorOptions,
    number: usize,
    label: Box<str>,
    /// Bytes of the buffers that these handles have made.
    allocated: AtomicUsize,
}

impl EmulatedDevice {
    /// The only device, which has the number 0.
    pub(crate) fn only(options: EmulatorOptions) -> Self {
        Self { options, number: 0, label: DEVICE.into(), allocated: AtomicUsize::new(0) }
    }

    /// One of several.
    pub(crate) fn numbered(options: EmulatorOptions, number: usize) -> Self {
        let label = format!("device {number} of the emulator").into();
        Self { options, number, label, allocated: AtomicUsize::new(0) }
    }

    pub(crate) fn number(&self) -> usize {
        self.number
    }

    pub(crate) fn label(&self) -> &str {
        &self.label
    }

    pub(crate) fn properties(&self) -> DeviceProperties {
        DeviceProperties {
            name: "emulator".into(),
            number: self.number,
            compute_capability: None,
            arch: order::arch(&self.options) / 10,
            multiprocessors: if self.options.checked { 1 } else { self.options.threads as u32 },
            max_block_threads: EMULATOR_LIMITS.block_threads,
            max_block: EMULATOR_LIMITS.block,
            max_grid: EMULATOR_LIMITS.grid,
            max_shared_bytes: self.options.shared_bytes(),
            memory_bytes: self.options.memory_bytes,
            double_precision_ratio: 1,
            l2_bytes: 0,
        }
    }

    /// Takes memory from what the options allow.
    ///
    /// # Errors
    /// The bytes that are left, if they are fewer.
    pub(crate) fn take_memory(&self, bytes: usize) -> Result<(), usize> {
        let Some(limit) = self.options.memory_bytes else { return Ok(()) };
        let taken = |allocated: usize| allocated.checked_add(bytes).filter(|all| *all <= limit);
        let update = self.allocated.fetch_update(Ordering::Relaxed, Ordering::Relaxed, taken);
        update.map(drop).map_err(|allocated| limit.saturating_sub(allocated))
    }

    /// Gives back what [`take_memory`](Self::take_memory) took.
    pub(crate) fn return_memory(&self, bytes: usize) {
        if self.options.memory_bytes.is_some() {
            self.allocated.fetch_sub(bytes, Ordering::Relaxed);
        }
    }
}
