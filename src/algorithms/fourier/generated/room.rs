//! What multiprocessors have, by architecture.

/// What a multiprocessor has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in super::super) struct Room {
    /// Bytes of shared memory of all blocks, with what each takes for itself.
    pub(super) shared: u32,
    /// Bytes of shared memory that one block may have.
    pub(super) block_shared: u32,
    /// Registers of 32 bits.
    pub(super) registers: u32,
    pub(super) threads: u32,
    pub(super) blocks: u32,
}

/// Bytes of shared memory that a block takes for itself.
pub(super) const CONTROL: u32 = 1 << 10;

impl Room {
    /// That of sm_90.
    #[cfg(test)]
    pub(super) const H100: Self = Self::new(228, 227, 2048, 32);

    const fn new(shared: u32, block_shared: u32, threads: u32, blocks: u32) -> Self {
        Self { shared: shared << 10, block_shared: block_shared << 10, registers: 1 << 16, threads, blocks }
    }

    /// Of the compute capability times ten. Of one that is not known, that of the newest one before it.
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

/// A device, as plans see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in super::super) struct Limits {
    pub(in super::super) room: Room,
    /// Bytes of the cache of the second level; 0 if passes are not to be fused.
    pub(in super::super) cache: usize,
}

/// The smallest cache that keeps what the blocks of all multiprocessors have under way.
const LEAST_CACHE: usize = 24 << 20;

impl Limits {
    /// Those of an architecture, with so many bytes of shared memory for a block, of which a driver may keep some.
    pub(in super::super) fn new(arch: u32, block_shared: usize, cache: usize) -> Self {
        let room = Room::of(arch);
        let block_shared = u32::try_from(block_shared).map_or(room.block_shared, |bytes| bytes.min(room.block_shared));
        Self { room: Room { block_shared, ..room }, cache: if cache < LEAST_CACHE { 0 } else { cache } }
    }
}
