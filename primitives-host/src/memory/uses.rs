//! The buffers that work uses, and whether it reads or writes them.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::Result;
use crate::memory::allocation::{Allocation, Held};
use crate::stream::StreamInner;

/// How work uses a buffer. A later mode includes the earlier one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Mode {
    Read,
    Write,
}

/// The allocations that a launch, a copy or a graph uses. Each is listed once, with the stronger mode of its uses. The key is the address
/// of the `Allocation` on the host, because an allocation of no bytes has no address on the device.
#[derive(Default)]
pub(crate) struct Uses(BTreeMap<usize, (Arc<Allocation>, Mode)>);

fn key(allocation: &Allocation) -> usize {
    std::ptr::from_ref(allocation).addr()
}

impl Uses {
    pub(crate) fn add(&mut self, allocation: &Arc<Allocation>, mode: Mode) {
        let (_, strongest) = self.0.entry(key(allocation)).or_insert_with(|| (allocation.clone(), mode));
        *strongest = mode.max(*strongest);
    }

    pub(crate) fn append(&mut self, other: &Self) {
        for (allocation, mode) in other.0.values() {
            self.add(allocation, *mode);
        }
    }

    /// The allocations, each with its mode.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Arc<Allocation>, Mode)> {
        self.0.values().map(|(allocation, mode)| (allocation, *mode))
    }

    pub(crate) fn contains(&self, allocation: &Allocation) -> bool {
        self.0.contains_key(&key(allocation))
    }

    /// Locks the allocations. All work locks them in the order of the keys, and before it takes its turn on a stream or a device, so that
    /// no two threads wait for each other.
    ///
    /// # Errors
    /// Returns the errors of [`Allocation::lock`].
    pub(crate) fn lock(&self) -> Result<Vec<Held<'_>>> {
        self.0.values().map(|(allocation, mode)| allocation.lock(*mode)).collect()
    }

    /// Orders later work on `stream` after the earlier uses of the allocations.
    pub(crate) fn enter(&self, stream: &Arc<StreamInner>) -> Result<()> {
        self.0.values().try_for_each(|(allocation, mode)| allocation.enter(stream, *mode))
    }
}
