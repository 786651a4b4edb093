//! Parts that kernels of several algorithms share: how warps and blocks divide the items, tiles in shared memory, and the runs in a tile.

use kernel_primitives::prelude::*;
use kernel_primitives::simt::WARP;

pub(crate) mod runs;
pub(crate) mod scan_runs;
pub(crate) mod staged;
pub(crate) mod warps;

/// The number of items of a warp with `rounds` rounds of a vector for each lane. Each warp has a part of the input, for any number of
/// threads of a block.
pub const fn warp_items(rounds: usize, vector: usize) -> usize {
    WARP as usize * rounds * vector
}

/// Returns the first item of this thread's first vector, if each warp of the grid has `rounds` rounds of vectors of `N` items. The vectors
/// of the lanes are contiguous, and a round is `32 * N` items after the one before. If blocks do not have whole warps, a warp continues
/// with threads of the next block.
#[inline(always)]
pub(crate) fn first_of_warp<const N: usize>(cx: Block, rounds: usize) -> usize {
    let thread = cx.block_rank() * cx.block_threads() as usize + cx.thread_rank() as usize;
    thread / WARP as usize * warp_items(rounds, N) + thread % WARP as usize * N
}

/// The bytes of a block's shared memory that a kernel needs to report faults.
pub(crate) const CONTROL: usize = 16;

/// Returns whether blocks may have only 64 KiB of shared memory. This is so in code for architectures before sm_80, and in the emulator,
/// whose options say how much there is.
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
