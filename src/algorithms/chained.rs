//! Launches of tiles in a chain.

use super::run::{Run, bytes_of};
use crate::grid::Chain;
use crate::kernels::device::SCAN_PIPELINE_SLOTS;
use crate::{BufferSliceMut, Dims, Element, Result, Stream};

/// How a pipeline of tiles in slots of shared memory is launched.
pub(super) struct PipelineLaunch {
    pub(super) dims: Dims,
    pub(super) slots: u32,
    /// The items of all tiles, of which the first one may begin before the input, by less than a vector of 16 bytes.
    pub(super) len: usize,
}

impl PipelineLaunch {
    /// Of `len` items of so many bytes, by tiles of so many items; a block has so many threads, and that many bytes of shared memory
    /// besides the slots.
    pub(super) fn new(run: &Run<'_>, (len, bytes): (usize, usize), tile: usize, threads: usize, shared: usize) -> Self {
        let device = run.stream.device().properties();
        let free = device.max_shared_bytes.saturating_sub(shared + 16);
        let slots = (free / (tile * bytes)).clamp(1, SCAN_PIPELINE_SLOTS);
        let len = len + 16 / bytes - 1;
        let blocks = len.div_ceil(tile).min(device.multiprocessors.max(1) as usize) as u32;
        let dims = Dims::new(blocks, threads as u32).shared_bytes(slots * tile * bytes);
        Self { dims, slots: slots as u32, len }
    }
}

/// Calls `launch` with a block of so many threads for each tile of so many items, one at least, the memory of a chain of their
/// values, none for a single one, and the launch's number in it.
pub(super) fn chained<T: Element>(
    run: Run<'_>,
    len: usize,
    (tile, threads): (usize, usize),
    launch: impl FnOnce(&Stream, Dims, &mut BufferSliceMut<'_, u64>, u32) -> Result<()>,
) -> Result<()> {
    let stream = run.stream;
    let tiles = len.div_ceil(tile).max(1);
    let dims = Dims::new(tiles.try_into().unwrap_or(u32::MAX), threads as u32);
    let words = if tiles > 1 { Chain::<T>::words(tiles) } else { 0 };
    let run = match run.chain(words)? {
        Ok((mut chain, number)) => return launch(stream, dims, &mut chain, number),
        Err(run) => run,
    };
    let mut memory = run.memory(&[bytes_of::<u64>(words)])?;
    let mut chain = memory.parts().take::<u64>(words)?;
    if tiles > 1 {
        chain.set_zero(stream)?;
    }
    launch(stream, dims, &mut chain, 1)
}
