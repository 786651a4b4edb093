//! Histograms in shared memory.

use core::marker::PhantomData;

use crate::functor::UnaryFn;
use crate::simt::{Block, FaultKind};
use crate::view::{Shared, SharedArray, SharedStorage};
use core::panic::Location;

/// The shared memory of [`block_histogram`]: one counter for each of up to `BINS` bins.
pub struct HistogramStorage<const BINS: usize>(PhantomData<()>);

// SAFETY: uninitialised elements.
unsafe impl<const BINS: usize> SharedStorage for HistogramStorage<BINS> {
    const BYTES: usize = BINS * size_of::<u32>();
    const ALIGN: usize = 16;
}

/// The counters of a block's histogram in shared memory. They are complete, and do not change as long as the storage is borrowed.
#[derive(Clone, Copy)]
pub struct Bins<'s> {
    cx: Block<'s>,
    counters: SharedArray<'s, u32>,
    bins: usize,
}

impl Bins<'_> {
    /// The number of bins.
    #[inline(always)]
    #[allow(clippy::len_without_is_empty, reason = "the number of bins is the author's")]
    pub fn len(self) -> usize {
        self.bins
    }

    /// The number of items in `bin`. A bin outside is a fault.
    #[track_caller]
    pub fn get(self, bin: usize) -> u32 {
        if bin >= self.bins {
            self.cx.raise(FaultKind::OutOfBounds, [bin as u64, self.bins as u64], Location::caller());
        }
        // SAFETY: inside; a barrier lies between the updates and this, and the next use of the storage begins with one.
        unsafe { self.counters.load(bin) }
    }
}

/// Counts the items of the block by bin. The functor `bin` returns the bin of an item. An item whose bin is `bins` or more, such as an item
/// after the end of a partial tile, is not counted. The counters are in shared memory, for all threads.
///
/// Phases: all threads set the counters to zero; barrier; each thread adds its items by atomics of block scope; barrier. Items of a warp
/// that are in one bin are added one after another, so data with few bins is slow. Successive items of a thread in one bin are added
/// together, so runs are cheap in the blocked arrangement.
///
/// `bins` is at most `BINS`; otherwise it is a fault. Any block shape works. Shared memory: it may be used again after the next barrier,
/// which the next collective on it makes by itself. `items` may be empty. An iterator can add several tiles to the same counters: see the
/// example.
///
/// CUB: `BlockHistogram`. Differences: works as `BLOCK_HISTO_ATOMIC`; a functor names the bin, and an item without a bin is not counted.
///
/// All threads of the block call it: see [divergence](crate::block#divergence).
///
/// ```
/// use kernel_primitives::prelude::*;
///
/// #[kernel]
/// fn histogram(cx: Block, x: Global<u8>, counts: GlobalMut<u32, Atomic>, mut shared: Shared<HistogramStorage<256>>) {
///     let items = cx.items(x.len()).map(|i| x[i]);
///     let bins = block_histogram(cx, &mut shared, 256, items, |value: u8| value as usize);
///     let mut bin = cx.thread_rank() as usize;
///     while bin < 256 {
///         counts.at(bin).fetch_add(bins.get(bin));
///         bin += cx.block_threads() as usize;
///     }
/// }
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = kernel_primitives::Device::emulator().stream()?;
/// let x = stream.buffer_from(&[3u8, 7, 3, 3])?;
/// let mut counts = stream.buffer_zeroed::<u32>(256)?;
/// histogram::launch(&stream, (1, 64), &x, &mut counts)?;
/// assert_eq!(counts.to_vec()?[..8], [0, 0, 0, 3, 0, 0, 0, 1]);
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn block_histogram<'s, T, const BINS: usize>(
    cx: Block<'s>,
    shared: &'s mut Shared<'_, HistogramStorage<BINS>>,
    bins: usize,
    items: impl IntoIterator<Item = T>,
    bin: impl UnaryFn<T, Output = usize>,
) -> Bins<'s> {
    if bins > BINS {
        cx.raise(FaultKind::BadShape, [bins as u64, BINS as u64], Location::caller());
    }
    shared.enter();
    let counters = shared.array::<u32>(0, BINS);
    // SAFETY: inside the array; the barriers lie between the zeros, the atomic updates and what reads.
    unsafe {
        let mut index = cx.thread_rank() as usize;
        while index < bins {
            counters.store(index, 0);
            index += cx.block_threads() as usize;
        }
        cx.barrier();
        let (mut run, mut count) = (usize::MAX, 0);
        for item in items {
            let bin = bin.apply(item);
            if bin != run {
                if run < bins {
                    counters.at(run).fetch_add(count);
                }
                (run, count) = (bin, 0);
            }
            count += 1;
        }
        if run < bins {
            counters.at(run).fetch_add(count);
        }
        cx.barrier();
    }
    Bins { cx, counters, bins }
}
