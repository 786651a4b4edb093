//! Parts that kernels of several algorithms share: how warps and blocks divide the items, tiles in shared memory, and the runs in a tile.

use kernel_primitives::prelude::*;
use kernel_primitives::simt::WARP;

pub(crate) mod runs;
pub(crate) mod scan_runs;
pub(crate) mod staged;
pub(crate) mod warps;

/// Items that a warp has of so many rounds of a vector a lane, where each has a part of the input, whatever the blocks' shape.
pub const fn warp_items(rounds: usize, vector: usize) -> usize {
    WARP as usize * rounds * vector
}

/// The first item of this thread's first vector, where each of the grid's warps has so many rounds of vectors of `N`
/// items: the lanes' side by side, one round `32 * N` items after the other. Threads of blocks that are no whole warps
/// are counted on into the next block.
#[inline(always)]
pub(crate) fn first_of_warp<const N: usize>(cx: Block, rounds: usize) -> usize {
    let thread = cx.block_rank() * cx.block_threads() as usize + cx.thread_rank() as usize;
    thread / WARP as usize * warp_items(rounds, N) + thread % WARP as usize * N
}

/// Bytes of a block's shared memory that a kernel needs for what it reports faults to.
pub(crate) const CONTROL: usize = 16;

/// Whether blocks may have 64 KiB of shared memory and no more: in code for architectures before sm_80, and in the emulator, whose
/// options say how much there is.
#[inline(always)]
pub(crate) fn has_little_shared(cx: Block<'_>) -> bool {
    cfg!(not(target_arch = "nvptx64")) || cx.arch() < 800
}

/// Calls a function with the number of items in a vector of the source as its constant.
macro_rules! by_vector {
    ($source:ty, $f:ident::<$($t:ty),*; VECTOR $(, $constant:tt)*>($($arg:expr),*)) => {
        match const { <$source as kernel_primitives::input::Source>::VECTOR } {
            16 => $f::<$($t,)* 16 $(, $constant)*>($($arg),*),
            8 => $f::<$($t,)* 8 $(, $constant)*>($($arg),*),
            4 => $f::<$($t,)* 4 $(, $constant)*>($($arg),*),
            2 => $f::<$($t,)* 2 $(, $constant)*>($($arg),*),
            _ => $f::<$($t,)* 1 $(, $constant)*>($($arg),*),
        }
    };
}
pub(crate) use by_vector;
