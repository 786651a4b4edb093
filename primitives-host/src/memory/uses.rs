//! The buffers that work uses, and whether it reads or writes them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use crate::Result;
use crate::launch::in_kernel;
use crate::memory::allocation::{Allocation, Displaced, Held, unless_taken};
use crate::memory::claims::Rounds;
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

pub(crate) fn key(allocation: &Allocation) -> usize {
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
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Arc<Allocation>, Mode)> + Clone {
        self.0.values().map(|(allocation, mode)| (allocation, *mode))
    }

    pub(crate) fn contains(&self, allocation: &Allocation) -> bool {
        self.0.contains_key(&key(allocation))
    }

    /// Locks the allocations. While it waits for one of them, it holds none: the thread that it waits for may run a kernel on the emulator,
    /// and a lane of this kernel may need the rest. If others always have one of them, calls that begin later wait for this one: see
    /// [`claims`](crate::memory::claims). All work locks its allocations before it takes its turn on a device.
    ///
    /// # Errors
    /// Returns the errors of [`Allocation::lock`].
    pub(crate) fn lock(&self) -> Result<Vec<Held<'_>>> {
        self.lock_in(&mut Rounds::begin(self, None))
    }

    fn lock_in(&self, rounds: &mut Rounds<'_>) -> Result<Vec<Held<'_>>> {
        'all: loop {
            let mut held = Vec::with_capacity(self.0.len());
            for (allocation, mode) in self.0.values() {
                let Some(lock) = allocation.try_lock(*mode)? else {
                    drop(held);
                    rounds.lose();
                    drop(allocation.lock(*mode)?);
                    continue 'all;
                };
                held.push(lock);
            }
            return Ok(held);
        }
    }

    /// Locks the allocations and takes the turn on a stream of the emulator. While it waits for one of these, it holds none, as
    /// [`lock`](Self::lock) does.
    ///
    /// # Errors
    /// Returns the errors of [`Allocation::lock`] and of [`StreamInner::turn`].
    pub(crate) fn lock_with_turn<'a>(&'a self, busy: &'a Mutex<()>) -> Result<(Vec<Held<'a>>, MutexGuard<'a, ()>)> {
        // Before it waits for a buffer: who uses the buffer may wait for the kernel that makes the call.
        in_kernel::check_stream(busy)?;
        let mut rounds = Rounds::begin(self, Some(busy));
        loop {
            let held = self.lock_in(&mut rounds)?;
            if let Some(turn) = unless_taken(busy.try_lock()) {
                return Ok((held, turn));
            }
            drop(held);
            rounds.lose();
            drop(StreamInner::turn(busy)?);
        }
    }

    /// Orders later work on `stream` after the earlier uses of the allocations. The caller holds turns as for [`Allocation::enter`].
    pub(crate) fn enter(&self, stream: &Arc<StreamInner>, displaced: &mut Displaced) -> Result<()> {
        self.0.values().try_for_each(|(allocation, mode)| allocation.enter(stream, *mode, displaced))
    }
}
