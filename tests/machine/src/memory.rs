//! Shared memory, clusters of blocks, and descriptions of arrays.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use primitives_host::__private::TileAxis;

/// The bytes of the addresses of one block's shared memory, as other blocks of its cluster see them. The block's own addresses are below
/// this. The addresses of the block `rank` begin at `rank + 1` times this.
pub(super) const WINDOW: u64 = 1 << 24;

/// A barrier that counts the bytes of copies. One thread announces them.
#[derive(Clone, Copy, Default)]
struct ByteBarrier {
    /// The bytes that are announced and are not there, or `None` between two phases.
    missing: Option<i64>,
    /// The number of phases that are over.
    phases: u64,
}

/// A block's shared memory, and whether each byte was written.
pub(super) struct SharedMemory {
    pub(super) bytes: Vec<u8>,
    pub(super) written: Vec<bool>,
    /// The barriers that count bytes, by address.
    barriers: HashMap<u64, ByteBarrier>,
    /// The copies that are not done: their barrier, where the bytes go, and the bytes.
    copies: Vec<(u64, usize, Vec<u8>)>,
    /// Whether the block has begun and has not ended. Other blocks access its memory only then.
    pub(super) lives: bool,
}

impl SharedMemory {
    fn new(bytes: usize) -> Self {
        let (barriers, copies) = (HashMap::new(), Vec::new());
        Self { bytes: vec![0; bytes], written: vec![false; bytes], barriers, copies, lives: false }
    }

    pub(super) fn announce(&mut self, barrier: u64, bytes: i64) {
        let barrier = self.barriers.entry(barrier).or_default();
        assert!(barrier.missing.is_none(), "more threads announce copies than the barrier counts");
        barrier.missing = Some(bytes);
    }

    pub(super) fn arrived(&mut self, barrier: u64, bytes: i64) {
        let barrier = self.barriers.entry(barrier).or_default();
        let missing = barrier.missing.as_mut().expect("copies are announced");
        *missing -= bytes;
        if *missing == 0 {
            (barrier.missing, barrier.phases) = (None, barrier.phases + 1);
        }
    }

    /// Begins a copy. The bytes that it replaces have no value until it is done.
    pub(super) fn begin(&mut self, barrier: u64, to: usize, bytes: Vec<u8>) {
        let is_announced = self.barriers.get(&barrier).is_some_and(|barrier| barrier.missing.is_some());
        assert!(is_announced, "copies are announced");
        let range = to..to + bytes.len();
        assert!(range.end <= self.bytes.len(), "a copy outside of shared memory, to {to:#x}");
        self.written[range].fill(false);
        self.copies.push((barrier, to, bytes));
    }

    /// Completes all copies that a barrier counts.
    pub(super) fn complete(&mut self, barrier: u64) {
        let (done, rest) = std::mem::take(&mut self.copies).into_iter().partition(|copy| copy.0 == barrier);
        self.copies = rest;
        let done: Vec<(u64, usize, Vec<u8>)> = done;
        for (barrier, to, bytes) in done {
            let range = to..to + bytes.len();
            self.bytes[range.clone()].copy_from_slice(&bytes);
            self.written[range].fill(true);
            self.arrived(barrier, bytes.len() as i64);
        }
    }

    /// Returns the number of phases of a barrier that are over.
    pub(super) fn phases(&self, barrier: u64) -> u64 {
        self.barriers.get(&barrier).map_or(0, |barrier| barrier.phases)
    }
}

/// The blocks of a cluster: their shared memory, and their barrier.
pub(super) struct Cluster {
    pub(super) blocks: Vec<RefCell<SharedMemory>>,
    /// The number of warps.
    warps: usize,
    /// The number of warps that have arrived in the present phase of the barrier.
    arrived: Cell<usize>,
    /// The number of phases that are over.
    pub(super) phases: Cell<u64>,
}

impl Cluster {
    pub(super) fn new(blocks: usize, warps_of_block: usize, shared: usize) -> Self {
        let memory = |_| RefCell::new(SharedMemory::new(shared));
        let (warps, arrived, phases) = (blocks * warps_of_block, Cell::new(0), Cell::new(0));
        Self { blocks: (0..blocks).map(memory).collect(), warps, arrived, phases }
    }

    /// A warp arrives at the barrier.
    pub(super) fn arrive(&self) {
        self.arrived.set(self.arrived.get() + 1);
        if self.arrived.get() == self.warps {
            self.arrived.set(0);
            self.phases.set(self.phases.get() + 1);
        }
    }
}

/// A description of an array with elements of 8 bytes, as a test gives it in the place of the driver's.
pub struct TestMap {
    /// The address of the first element.
    pub address: u64,
    /// The axes, of which the first is contiguous.
    pub axes: Vec<TileAxis>,
}

impl TestMap {
    /// The addresses and bytes of the rows of a tile, in the order in which a copy lays them down.
    pub(super) fn pieces(&self, place: &[u64]) -> Vec<(u64, usize)> {
        let Self { address, axes } = self;
        // This is what the driver's documentation asks for.
        let is_known = axes[0].stride == 8
            && (2..=5).contains(&axes.len())
            && axes[1..].iter().all(|axis| axis.stride.is_multiple_of(16) && axis.stride < 1 << 40)
            && axes[1..].windows(2).all(|two| two[1].stride.is_multiple_of(two[0].stride))
            && axes.iter().all(|axis| (1..=256).contains(&axis.tile) && axis.extent <= 1 << 32);
        assert!(is_known && axes.len() == place.len(), "a tile of another array: {place:?} of {axes:?}");
        let is_inside = |(&place, axis): (&u64, &TileAxis)| place + u64::from(axis.tile) <= axis.extent;
        assert!(place.iter().zip(axes).all(is_inside), "a tile outside: {place:?} of {axes:?}");
        let begin = address + place.iter().zip(axes).map(|(place, axis)| place * axis.stride).sum::<u64>();
        let rows = axes[1..].iter().fold(vec![begin], |rows, axis| {
            let along = |step: u32| rows.iter().map(move |row| row + u64::from(step) * axis.stride);
            (0..axis.tile).flat_map(along).collect()
        });
        rows.into_iter().map(|row| (row, 8 * axes[0].tile as usize)).collect()
    }
}
