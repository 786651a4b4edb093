//! Exchanges items between arrangements over the threads of a block.

use core::marker::PhantomData;
use core::mem::size_of;
use core::panic::Location;

use crate::element::{AnyBits, Element};
use crate::simt::{Block, FaultKind};
use crate::view::{Shared, SharedArray, SharedStorage, vector_items, warp_stripe};

/// The shared memory of an exchange: the items of a block, and 16 bytes more after each 128 if whole vectors would otherwise use the same
/// bank. For an example see [`blocked_to_striped`].
pub struct ExchangeStorage<T, const THREADS: usize, const ITEMS: usize>(PhantomData<T>);

// SAFETY: uninitialised elements.
unsafe impl<T: Element, const THREADS: usize, const ITEMS: usize> SharedStorage for ExchangeStorage<T, THREADS, ITEMS> {
    const BYTES: usize = place::<T, ITEMS>(THREADS * ITEMS) * size_of::<T>();
    const ALIGN: usize = 16;
}

/// Returns whether the items of a thread are an even number of 16-byte vectors. The vectors of neighbouring threads would then use the same
/// banks. With padding after each round of the 32 banks, eight threads in turn use eight different ones.
const fn padded<T, const ITEMS: usize>() -> bool {
    let bytes = vector_items::<T>(ITEMS) * size_of::<T>();
    bytes == 16 && (ITEMS * size_of::<T>() / 16).is_multiple_of(2)
}

/// The place of the block's item `index`.
const fn place<T, const ITEMS: usize>(index: usize) -> usize {
    if padded::<T, ITEMS>() { index + index * size_of::<T>() / 128 * (16 / size_of::<T>()) } else { index }
}

/// The items of a block in shared memory, by their numbers.
struct Items<'k, T, const ITEMS: usize>(SharedArray<'k, T>);

impl<'k, T: Element, const ITEMS: usize> Items<'k, T, ITEMS> {
    /// Enters the storage, with the barrier that a reuse needs, as items of the type `S` or its substitute. A block with another number of
    /// threads than `THREADS` is a fault.
    #[track_caller]
    fn begin<S: Element, const THREADS: usize>(
        cx: Block<'_>,
        shared: &mut Shared<'k, ExchangeStorage<S, THREADS, ITEMS>>,
    ) -> Self {
        const { assert!(ITEMS > 0, "a collective has at least one item a thread") };
        const { assert!(THREADS > 0 && THREADS <= 1024, "a block has 1 to 1024 threads") };
        if cx.block_threads() as usize != THREADS {
            cx.raise(FaultKind::BadShape, [cx.block_threads() as u64, THREADS as u64], Location::caller());
        }
        shared.enter();
        Self(shared.array(0, place::<T, ITEMS>(THREADS * ITEMS)))
    }

    /// # Safety
    /// As for [`SharedArray::store`], for each item of thread `thread`.
    #[track_caller]
    unsafe fn put_blocked(&self, thread: usize, items: &[T; ITEMS]) {
        // SAFETY: the caller's contract; a thread's items are a multiple of the vectors long, and so is the padding.
        unsafe {
            if padded::<T, ITEMS>() {
                let step = const { vector_items::<T>(ITEMS) };
                let mut i = 0;
                while i < ITEMS {
                    self.put_vector(thread * ITEMS + i, items, i);
                    i += step;
                }
            } else {
                self.0.store_items(thread * ITEMS, items);
            }
        }
    }

    /// Writes the 16 bytes from `items[from]` as the block's items from `index`.
    ///
    /// # Safety
    /// As for [`SharedArray::store`]; both are multiples of the vector.
    #[track_caller]
    unsafe fn put_vector(&self, index: usize, items: &[T; ITEMS], from: usize) {
        macro_rules! by {
            ($n:literal) => {{
                let vector: [T; $n] = core::array::from_fn(|i| items[(from + i) % ITEMS]);
                // SAFETY: the caller's contract.
                unsafe { self.0.store_items(place::<T, ITEMS>(index), &vector) }
            }};
        }
        match const { vector_items::<T>(ITEMS) } {
            16 => by!(16),
            8 => by!(8),
            4 => by!(4),
            2 => by!(2),
            _ => by!(1),
        }
    }

    /// # Safety
    /// As for [`SharedArray::load`], for each item of thread `thread`.
    #[track_caller]
    unsafe fn take_blocked(&self, thread: usize) -> [T; ITEMS] {
        // SAFETY: the caller's contract; a thread's items are a multiple of the vectors long, and so is the padding.
        unsafe {
            if padded::<T, ITEMS>() {
                let mut items = [T::ZERO; ITEMS];
                let step = const { vector_items::<T>(ITEMS) };
                let mut i = 0;
                while i < ITEMS {
                    self.take_vector(thread * ITEMS + i, &mut items, i);
                    i += step;
                }
                items
            } else {
                self.0.load_items(thread * ITEMS)
            }
        }
    }

    /// Reads what [`put_vector`](Self::put_vector) wrote.
    ///
    /// # Safety
    /// As for [`SharedArray::load`]; both are multiples of the vector.
    #[track_caller]
    unsafe fn take_vector(&self, index: usize, items: &mut [T; ITEMS], to: usize) {
        macro_rules! by {
            ($n:literal) => {{
                // SAFETY: the caller's contract.
                let vector: [T; $n] = unsafe { self.0.load_items(place::<T, ITEMS>(index)) };
                let mut i = 0;
                while i < $n {
                    items[(to + i) % ITEMS] = vector[i];
                    i += 1;
                }
            }};
        }
        match const { vector_items::<T>(ITEMS) } {
            16 => by!(16),
            8 => by!(8),
            4 => by!(4),
            2 => by!(2),
            _ => by!(1),
        }
    }

    /// # Safety
    /// As for [`SharedArray::store`], for `ITEMS` items from `first`, `step` apart.
    #[track_caller]
    unsafe fn put_striped(&self, first: usize, step: usize, items: &[T; ITEMS]) {
        let mut i = 0;
        while i < ITEMS {
            // SAFETY: the caller's contract.
            unsafe { self.0.store(place::<T, ITEMS>(first + i * step), items[i]) };
            i += 1;
        }
    }

    /// # Safety
    /// As for [`SharedArray::load`], for `ITEMS` items from `first`, `step` apart.
    #[track_caller]
    unsafe fn take_striped(&self, first: usize, step: usize) -> [T; ITEMS] {
        let mut items = [T::ZERO; ITEMS];
        let mut i = 0;
        while i < ITEMS {
            // SAFETY: the caller's contract.
            items[i] = unsafe { self.0.load(place::<T, ITEMS>(first + i * step)) };
            i += 1;
        }
        items
    }
}

/// Rearranges items from blocked to striped. Thread `t` has the block's items from `t * ITEMS`, and gets items `t`, `t + THREADS`,
/// `t + 2 * THREADS` and so on.
///
/// Phases: each thread writes its items to shared memory, in vectors; barrier; each thread reads its new items. Neither phase has bank
/// conflicts for elements of 4, 8 and 16 bytes and any number of items, if `THREADS` is a multiple of 32.
///
/// `THREADS` must be the number of threads of the block, in any shape; another number is a fault. Shared memory: an [`ExchangeStorage`]. It
/// may be used again after the next barrier, which the next collective on it makes by itself.
///
/// CUB: `BlockExchange::BlockedToStriped`. Differences: the storage is padded where vectors would meet in a bank.
///
/// All threads of the block call it: see [divergence](crate::block#divergence).
///
/// ```
/// use kernel_primitives::prelude::*;
///
/// #[kernel]
/// fn transpose(
///     cx: Block,
///     x: Global<u32>,
///     mut out: GlobalMut<u32, Tiles<3>>,
///     mut shared: Shared<ExchangeStorage<u32, 4, 3>>,
/// ) {
///     for tile in cx.tiles::<3>(out.len()) {
///         let mut items = init::<u32, 3>(0);
///         read_data(cx, &mut items, x.tile(tile));
///         write_data(cx, out.tile(tile), &blocked_to_striped(cx, &mut shared, &items));
///     }
/// }
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = kernel_primitives::Device::emulator().stream()?;
/// let x = stream.buffer_from(&(0..12).collect::<Vec<u32>>())?;
/// let mut out = stream.buffer_zeroed::<u32>(12)?;
/// transpose::launch(&stream, (1, 4), &x, &mut out)?;
/// assert_eq!(out.to_vec()?, [0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11]);
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn blocked_to_striped<T: Element, const THREADS: usize, const ITEMS: usize>(
    cx: Block<'_>,
    shared: &mut Shared<'_, ExchangeStorage<T, THREADS, ITEMS>>,
    items: &[T; ITEMS],
) -> [T; ITEMS] {
    let all = Items::begin(cx, shared);
    let rank = cx.thread_rank() as usize;
    // SAFETY: each item has one writer and is read after the barrier.
    unsafe {
        all.put_blocked(rank, items);
        cx.barrier();
        all.take_striped(rank, THREADS)
    }
}

/// Rearranges items from striped to blocked. This is the inverse of [`blocked_to_striped`], with the same cost and the same call.
///
/// CUB: `BlockExchange::StripedToBlocked`. Differences: the storage is padded where vectors would meet in a bank.
///
/// All threads of the block call it: see [divergence](crate::block#divergence).
#[track_caller]
pub fn striped_to_blocked<T: Element, const THREADS: usize, const ITEMS: usize>(
    cx: Block<'_>,
    shared: &mut Shared<'_, ExchangeStorage<T, THREADS, ITEMS>>,
    items: &[T; ITEMS],
) -> [T; ITEMS] {
    let all = Items::begin(cx, shared);
    let rank = cx.thread_rank() as usize;
    // SAFETY: each item has one writer and is read after the barrier.
    unsafe {
        all.put_striped(rank, THREADS, items);
        cx.barrier();
        all.take_blocked(rank)
    }
}

/// Rearranges items from blocked to warp-striped, within each warp. Lane `l` gets its warp's items `l`, `l + 32`, `l + 64` and so on. In a
/// partial warp, the step is the number of its lanes.
///
/// Otherwise this works as [`blocked_to_striped`], with a barrier of the warp instead of the block's. The example of
/// [`warp_striped_to_blocked`] has both.
///
/// CUB: `BlockExchange::BlockedToWarpStriped`, `WarpExchange::BlockedToStriped`.
///
/// All threads of the block call it: see [divergence](crate::block#divergence).
#[track_caller]
pub fn blocked_to_warp_striped<T: Element, const THREADS: usize, const ITEMS: usize>(
    cx: Block<'_>,
    shared: &mut Shared<'_, ExchangeStorage<T, THREADS, ITEMS>>,
    items: &[T; ITEMS],
) -> [T; ITEMS] {
    let all = Items::begin(cx, shared);
    let (first, step) = warp_stripe::<ITEMS>(cx);
    // SAFETY: each item has one writer, and is read by a lane of the same warp after the warp's barrier.
    unsafe {
        all.put_blocked(cx.thread_rank() as usize, items);
        cx.sync_warp(cx.warp_mask());
        all.take_striped(first, step)
    }
}

/// Rearranges items from warp-striped to blocked. This is the inverse of [`blocked_to_warp_striped`], with the same cost. After
/// [`load_warp_striped`](super::load_warp_striped), it gives a tile in the blocked arrangement that was read from global memory with
/// coalesced accesses.
///
/// CUB: `BlockExchange::WarpStripedToBlocked`, `WarpExchange::StripedToBlocked`.
///
/// All threads of the block call it: see [divergence](crate::block#divergence).
///
/// ```
/// use kernel_primitives::prelude::*;
///
/// /// A scan wants the items blocked, and global memory is best accessed warp-striped.
/// #[kernel]
/// fn running_sums(
///     cx: Block,
///     x: Global<u32>,
///     mut out: GlobalMut<u32, WarpStriped<3>>,
///     mut shared: Shared<ExchangeStorage<u32, 64, 3>>,
///     mut scan: Shared<ScanStorage<u32>>,
/// ) {
///     for tile in cx.tiles::<3>(out.len()) {
///         let mut items = init::<u32, 3>(0);
///         load_warp_striped(cx, &mut items, x.tile(tile));
///         let items = warp_striped_to_blocked(cx, &mut shared, &items);
///         let (sums, _) = block_inclusive_scan(cx, &mut scan, &items, Add);
///         let sums = blocked_to_warp_striped(cx, &mut shared, &sums);
///         store_striped(cx, out.tile(tile), &sums);
///     }
/// }
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = kernel_primitives::Device::emulator().stream()?;
/// let x = stream.buffer_from(&[1u32; 150])?;
/// let mut out = stream.buffer_zeroed::<u32>(150)?;
/// running_sums::launch(&stream, (1, 64), &x, &mut out)?;
/// assert_eq!(out.to_vec()?, (1..=150).collect::<Vec<u32>>());
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn warp_striped_to_blocked<T: Element, const THREADS: usize, const ITEMS: usize>(
    cx: Block<'_>,
    shared: &mut Shared<'_, ExchangeStorage<T, THREADS, ITEMS>>,
    items: &[T; ITEMS],
) -> [T; ITEMS] {
    let all = Items::begin(cx, shared);
    let (first, step) = warp_stripe::<ITEMS>(cx);
    // SAFETY: each item has one writer, and is read by a lane of the same warp after the warp's barrier.
    unsafe {
        all.put_striped(first, step, items);
        cx.sync_warp(cx.warp_mask());
        all.take_blocked(cx.thread_rank() as usize)
    }
}

/// Moves each item to the place of its rank. The result is in the blocked arrangement: thread `t` gets the items with `ITEMS` ranks from
/// `t * ITEMS`.
///
/// An item whose rank is not a place of the tile, such as `u32::MAX`, is dropped. Two items with one rank are a race, and a place without
/// an item gets an unspecified value. The emulator reports both.
///
/// Phases and shared memory are those of [`blocked_to_striped`]. The bank conflicts of the writes depend on the ranks.
///
/// CUB: `BlockExchange::ScatterToBlocked`. Differences: a rank that is no place, such as `u32::MAX`, goes nowhere.
///
/// All threads of the block call it: see [divergence](crate::block#divergence).
///
/// ```
/// use kernel_primitives::prelude::*;
///
/// #[kernel]
/// fn reverse(
///     cx: Block,
///     x: Global<u32>,
///     mut out: GlobalMut<u32, Tiles<2>>,
///     mut shared: Shared<ExchangeStorage<u32, 4, 2>>,
/// ) {
///     for tile in cx.tiles::<2>(out.len()) {
///         let mut items = init::<u32, 2>(0);
///         read_data(cx, &mut items, x.tile(tile));
///         let rank = cx.thread_rank() * 2;
///         let items = scatter_to_blocked(cx, &mut shared, &items, &[7 - rank, 6 - rank]);
///         write_data(cx, out.tile(tile), &items);
///     }
/// }
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = kernel_primitives::Device::emulator().stream()?;
/// let x = stream.buffer_from(&(0..8).collect::<Vec<u32>>())?;
/// let mut out = stream.buffer_zeroed::<u32>(8)?;
/// reverse::launch(&stream, (1, 4), &x, &mut out)?;
/// assert_eq!(out.to_vec()?, [7, 6, 5, 4, 3, 2, 1, 0]);
/// # Ok(())
/// # }
/// ```
#[inline(always)]
#[track_caller]
pub fn scatter_to_blocked<T: Element, const THREADS: usize, const ITEMS: usize>(
    cx: Block<'_>,
    shared: &mut Shared<'_, ExchangeStorage<T, THREADS, ITEMS>>,
    items: &[T; ITEMS],
    ranks: &[u32; ITEMS],
) -> [T; ITEMS] {
    let all = scatter(cx, shared, items, ranks);
    // SAFETY: any bits are taken, and nobody writes after the barrier.
    let found = unsafe { all.take_blocked(cx.thread_rank() as usize) };
    core::array::from_fn(|i| found[i].or_zero())
}

/// Works as [`scatter_to_blocked`], with the result in the striped arrangement: thread `t` gets the items of ranks `t`, `t + THREADS` and
/// so on. Use it to compact or sort a tile before a coalesced write to global memory.
///
/// CUB: `BlockExchange::ScatterToStriped`, `ScatterToStripedGuarded`, `ScatterToStripedFlagged`. Differences: a rank that is no place, such
/// as `u32::MAX`, goes nowhere.
///
/// All threads of the block call it: see [divergence](crate::block#divergence).
///
/// ```
/// use kernel_primitives::prelude::*;
///
/// /// The odd items of a tile, then the even ones, each in order.
/// #[kernel]
/// fn odd_first(
///     cx: Block,
///     x: Global<u32>,
///     mut out: GlobalMut<u32, Striped<2>>,
///     mut shared: Shared<ExchangeStorage<u32, 4, 2>>,
///     mut scan: Shared<ScanStorage<u32>>,
/// ) {
///     for tile in cx.tiles::<2>(out.len()) {
///         let mut items = init::<u32, 2>(0);
///         read_data(cx, &mut items, x.tile(tile));
///         let odd = items.map(|item| item % 2);
///         let (before, count) = block_exclusive_scan(cx, &mut scan, &odd, Add);
///         let ranks = core::array::from_fn(|i| {
///             let even_before = cx.thread_rank() * 2 + i as u32 - before[i];
///             if odd[i] == 1 { before[i] } else { count + even_before }
///         });
///         store_striped(cx, out.tile(tile), &scatter_to_striped(cx, &mut shared, &items, &ranks));
///     }
/// }
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = kernel_primitives::Device::emulator().stream()?;
/// let x = stream.buffer_from(&(0..8).collect::<Vec<u32>>())?;
/// let mut out = stream.buffer_zeroed::<u32>(8)?;
/// odd_first::launch(&stream, (1, 4), &x, &mut out)?;
/// assert_eq!(out.to_vec()?, [1, 3, 5, 7, 0, 2, 4, 6]);
/// # Ok(())
/// # }
/// ```
#[inline(always)]
#[track_caller]
pub fn scatter_to_striped<T: Element, const THREADS: usize, const ITEMS: usize>(
    cx: Block<'_>,
    shared: &mut Shared<'_, ExchangeStorage<T, THREADS, ITEMS>>,
    items: &[T; ITEMS],
    ranks: &[u32; ITEMS],
) -> [T; ITEMS] {
    let all = scatter(cx, shared, items, ranks);
    // SAFETY: any bits are taken, and nobody writes after the barrier.
    let found = unsafe { all.take_striped(cx.thread_rank() as usize, THREADS) };
    core::array::from_fn(|i| found[i].or_zero())
}

/// Writes the items to the places of their ranks. Other places keep their bits, which need not be a value.
#[track_caller]
fn scatter<'k, T: Element, const THREADS: usize, const ITEMS: usize>(
    cx: Block<'_>,
    shared: &mut Shared<'k, ExchangeStorage<T, THREADS, ITEMS>>,
    items: &[T; ITEMS],
    ranks: &[u32; ITEMS],
) -> Items<'k, AnyBits<T>, ITEMS> {
    let all = Items::begin(cx, shared);
    let mut i = 0;
    while i < ITEMS {
        if (ranks[i] as usize) < THREADS * ITEMS {
            // SAFETY: read after the barrier, as any bits.
            unsafe { all.0.set(place::<T, ITEMS>(ranks[i] as usize), AnyBits::of(items[i])) };
        }
        i += 1;
    }
    cx.barrier();
    all
}
