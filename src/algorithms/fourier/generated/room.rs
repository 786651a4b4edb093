//! The resources of multiprocessors, by architecture.

/// The resources of a multiprocessor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in super::super) struct Room {
    /// The bytes of shared memory of all blocks, including the bytes that each block takes for itself.
    pub(super) shared: u32,
    /// The bytes of shared memory that one block may have.
    pub(super) block_shared: u32,
    /// The number of registers of 32 bits.
    pub(super) registers: u32,
    pub(super) threads: u32,
    pub(super) blocks: u32,
}

/// The bytes of shared memory that a block takes for itself.
pub(super) const CONTROL: u32 = 1 << 10;

impl Room {
    /// The resources of sm_90.
    #[cfg(test)]
    pub(super) const H100: Self = Self::new(228, 227, 2048, 32);

    const fn new(shared: u32, block_shared: u32, threads: u32, blocks: u32) -> Self {
        Self { shared: shared << 10, block_shared: block_shared << 10, registers: 1 << 16, threads, blocks }
    }

    /// Returns the resources for ten times the compute capability. An unknown one has those of the newest known one before it.
    pub(in super::super) fn of(arch: u32) -> Self {
        match arch {
            ..80 => Self::new(64, 64, 1024, 16),
            80 => Self::new(164, 163, 2048, 32),
            81..87 => Self::new(100, 99, 1536, 16),
            87 => Self::new(164, 163, 1536, 16),
            88..90 => Self::new(100, 99, 1536, 24),
            90..120 => Self::new(228, 227, 2048, 32),
            _ => Self::new(100, 99, 1536, 24),
        }
    }
}

/// The properties of a device that plans use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in super::super) struct Limits {
    pub(in super::super) room: Room,
    /// The bytes of the cache of the second level, or 0 if passes must not be fused.
    pub(in super::super) cache: usize,
}

/// The smallest cache that keeps the numbers that the blocks of all multiprocessors have in flight.
const LEAST_CACHE: usize = 24 << 20;

impl Limits {
    /// Returns the limits of an architecture whose blocks can have `block_shared` bytes of shared memory. A driver may keep some bytes for
    /// itself.
    pub(in super::super) fn new(arch: u32, block_shared: usize, cache: usize) -> Self {
        let room = Room::of(arch);
        let block_shared = u32::try_from(block_shared).map_or(room.block_shared, |bytes| bytes.min(room.block_shared));
        Self { room: Room { block_shared, ..room }, cache: if cache < LEAST_CACHE { 0 } else { cache } }
    }
}
