//! Launches of tiles in a chain.

use super::run::{Run, bytes_of, grid};
use crate::grid::Chain;
use crate::{BufferSliceMut, Dims, Element, Result, Stream};

/// Calls `launch` with the blocks of a launch, the memory of a chain, and the number of the launch in that chain. There is one block of
/// `threads` threads for each tile of `tile` items, and at least one block. A single tile gets an empty chain.
pub(super) fn chained<T: Element>(
    run: Run<'_>,
    len: usize,
    (tile, threads): (usize, usize),
    launch: impl FnOnce(&Stream, Dims, &mut BufferSliceMut<'_, u64>, u32) -> Result<()>,
) -> Result<()> {
    let stream = run.stream;
    let tiles = len.div_ceil(tile).max(1);
    let dims = grid(tiles, threads);
    let words = if tiles > 1 { Chain::<T>::words(tiles) } else { 0 };
    let run = match run.chain(words)? {
        Ok((mut chain, number)) => return launch(stream, dims, &mut chain, number),
        Err(run) => run,
    };
    if let Some(mut kept) = run.kept_chain(words)? {
        return launch(stream, dims, &mut kept.words.slice_mut(..words)?, kept.number);
    }
    let mut memory = run.memory(&[bytes_of::<u64>(words)])?;
    let mut chain = memory.parts().take::<u64>(words)?;
    if tiles > 1 {
        chain.set_zero(stream)?;
    }
    launch(stream, dims, &mut chain, 1)
}
