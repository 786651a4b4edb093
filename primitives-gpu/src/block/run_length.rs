//! Decoding of runs, which are given as values and lengths.

use core::marker::PhantomData;
use core::mem::size_of;
use core::panic::Location;

use super::combine::partials::{self, MAX_WARPS};
use super::combine::scan::{ScanStorage, block_exclusive_scan};
use crate::element::Element;
use crate::functor::Add;
use crate::simt::{Block, FaultKind};
use crate::view::{Shared, SharedArray, SharedStorage};

/// The shared memory of [`run_length_decode`]: the value and the start of each run of the block.
pub struct RunLengthStorage<T, const THREADS: usize, const RUNS: usize>(PhantomData<T>);

// SAFETY: uninitialised elements.
unsafe impl<T: Element, const THREADS: usize, const RUNS: usize> SharedStorage for RunLengthStorage<T, THREADS, RUNS> {
    const BYTES: usize = Self::STARTS + THREADS * RUNS * size_of::<u32>();
    const ALIGN: usize = 16;
}

impl<T: Element, const THREADS: usize, const RUNS: usize> RunLengthStorage<T, THREADS, RUNS> {
    /// The place of the starts of the runs, after their values.
    const STARTS: usize = {
        let values = (THREADS * RUNS * size_of::<T>()).next_multiple_of(16);
        // The lengths are scanned in the same place before.
        let scan = <ScanStorage<u32> as SharedStorage>::BYTES;
        if values > scan { values } else { scan }
    };
}

/// The runs of a block. Windows of the decoded items are read from them as long as the storage is borrowed.
#[derive(Clone, Copy)]
pub struct RunWindow<'s, T> {
    values: SharedArray<'s, T>,
    starts: SharedArray<'s, u32>,
    runs: u32,
    total: u32,
}

/// Prepares the runs of the block. Thread `t` has the values and lengths of `RUNS` runs from `t * RUNS` (the blocked arrangement). A length
/// may be 0. There must be fewer than 2^32 decoded items; otherwise it is a fault.
///
/// Phases: the lengths are scanned; values and starts go to shared memory; barrier. Three barriers in all.
///
/// `THREADS` must be the number of threads of the block; another number is a fault. Shared memory: an element and a `u32` for each run. It
/// is in use until the last [`run_length_decode`], and the next collective on it begins with a barrier.
///
/// CUB: `BlockRunLengthDecode::BlockRunLengthDecode`.
///
/// All threads of the block call it: see [divergence](crate::block#divergence).
#[track_caller]
pub fn run_length_begin<'s, T: Element, const THREADS: usize, const RUNS: usize>(
    cx: Block<'s>,
    shared: &'s mut Shared<'_, RunLengthStorage<T, THREADS, RUNS>>,
    values: &[T; RUNS],
    lengths: &[u32; RUNS],
) -> RunWindow<'s, T> {
    const { assert!(THREADS > 0 && THREADS <= MAX_WARPS * 32, "a block has 1 to 1024 threads") };
    partials::warps(cx);
    if cx.block_threads() as usize != THREADS {
        cx.raise(FaultKind::BadShape, [cx.block_threads() as u64, THREADS as u64], Location::caller());
    }
    let (starts, total) = block_exclusive_scan(cx, shared.phase::<ScanStorage<u32>>(), lengths, Add);
    shared.enter();
    let window = RunWindow {
        values: shared.array(0, THREADS * RUNS),
        starts: shared.array(RunLengthStorage::<T, THREADS, RUNS>::STARTS, THREADS * RUNS),
        runs: (THREADS * RUNS) as u32,
        total,
    };
    let first = cx.thread_rank() as usize * RUNS;
    let mut i = 0;
    while i < RUNS {
        // Of all runs that are too long, the first one in order still begins where it should.
        if starts[i].checked_add(lengths[i]).is_none() {
            cx.raise(FaultKind::BadShape, [starts[i] as u64 + lengths[i] as u64, u32::MAX as u64], Location::caller());
        }
        // SAFETY: each run has one writer, and is read after the barrier.
        unsafe {
            window.values.store(first + i, values[i]);
            window.starts.store(first + i, starts[i]);
        }
        i += 1;
    }
    cx.barrier();
    window
}

impl<T: Element> RunWindow<'_, T> {
    /// The number of decoded items of the block.
    #[inline(always)]
    #[allow(clippy::len_without_is_empty, reason = "a count, not a collection")]
    pub fn len(self) -> u32 {
        self.total
    }
}

/// Decodes a window of the block's runs. Thread `t` gets the decoded items `from + t * N` to `from + t * N + N`, in the blocked
/// arrangement, and the distance of each from the start of its run. After the last item, `out` keeps its values.
///
/// Phases: each thread finds the run of its first item by a binary search in shared memory, and goes on from there. There is no barrier:
/// you may call it for one window after another.
///
/// CUB: `BlockRunLengthDecode::RunLengthDecode`. Differences: returns the distances from the starts of runs, too.
///
/// No thread waits for another here: any may call it or not.
///
/// ```
/// use kernel_primitives::prelude::*;
///
/// #[kernel]
/// fn decode(
///     cx: Block,
///     values: Global<u8>,
///     lengths: Global<u32>,
///     mut out: GlobalMut<u8, Tiles<4>>,
///     mut shared: Shared<RunLengthStorage<u8, 32, 1>>,
/// ) {
///     let rank = cx.thread_rank() as usize;
///     let runs = run_length_begin(cx, &mut shared, &[values[rank]], &[lengths[rank]]);
///     for tile in cx.tiles::<4>(out.len()) {
///         let mut items = [0; 4];
///         run_length_decode(cx, runs, tile.start() as u32, &mut items);
///         write_data(cx, out.tile(tile), &items);
///     }
/// }
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = kernel_primitives::Device::emulator().stream()?;
/// let values = stream.buffer_from(&(0..32).collect::<Vec<u8>>())?;
/// let lengths = stream.buffer_from(&(0..32).map(|i| i % 3).collect::<Vec<u32>>())?;
/// let mut out = stream.buffer_zeroed::<u8>(31)?;
/// decode::launch(&stream, (1, 32), &values, &lengths, &mut out)?;
/// assert_eq!(out.to_vec()?[..7], [1, 2, 2, 4, 5, 5, 7]);
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn run_length_decode<T: Element, const N: usize>(
    cx: Block<'_>,
    runs: RunWindow<'_, T>,
    from: u32,
    out: &mut [T; N],
) -> [u32; N] {
    let mut offsets = [0; N];
    let first = from as u64 + cx.thread_rank() as u64 * N as u64;
    if first >= runs.total as u64 {
        return offsets;
    }
    let first = first as u32;
    // SAFETY: inside the arrays, which were written before a barrier and stay as they are until the storage's next use.
    unsafe {
        // The run is the last one that starts at or before the item, because empty runs start where the next run does.
        let (mut low, mut high) = (0, runs.runs);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if runs.starts.load(middle as usize) <= first {
                low = middle;
            } else {
                high = middle;
            }
        }
        let mut run = low;
        let mut start = runs.starts.load(run as usize);
        let mut value = runs.values.load(run as usize);
        let mut i = 0;
        while i < N {
            let item = first as u64 + i as u64;
            if item < runs.total as u64 {
                while run + 1 < runs.runs && runs.starts.load(run as usize + 1) as u64 <= item {
                    run += 1;
                    start = runs.starts.load(run as usize);
                    value = runs.values.load(run as usize);
                }
                out[i] = value;
                offsets[i] = item as u32 - start;
            }
            i += 1;
        }
    }
    offsets
}
