//! The single seam to the hardware: indices, barriers, shuffles, votes, atomics, fences, shared memory, math and faults.
//!
//! Everything above this module is written once. `nvptx.rs` implements the seam with PTX instructions, and `emulated.rs` with the emulator.
//! `rust_cuda.rs`, with the feature `rust-cuda`, calls Rust CUDA's `cuda_std`; so far it is only type-checked. The terms are those of PTX
//! and CUDA: a *lane* is one of the 32 threads of a *warp*; a mask has one bit for each lane; all lanes of a mask perform an operation
//! together, from the same place in the source.

mod atomic;
mod dim;
mod division;
#[cfg(not(target_arch = "nvptx64"))]
pub mod emulated;
mod fault;
pub mod math;
#[cfg(all(target_arch = "nvptx64", not(feature = "rust-cuda")))]
pub(crate) mod nvptx;
pub mod print;
#[cfg(feature = "rust-cuda")]
#[cfg_attr(not(target_arch = "nvptx64"), allow(dead_code, reason = "compiled on the host to check its types"))]
mod rust_cuda;
#[cfg(any(target_arch = "nvptx64", feature = "rust-cuda"))]
mod seam;
mod warp_ops;

use core::marker::PhantomData;
use core::panic::Location;

pub use atomic::{AtomicElement, AtomicInt, AtomicOrder, AtomicRef, Scope};
pub use dim::Dim3;
pub(crate) use dim::LaunchShape;
pub use division::{DivideInt, divide, division_by_zero, index_out_of_bounds, remainder};
pub use fault::{FAULT_FILE_BYTES, Fault, FaultControl, FaultKind, FaultRecord, Place};
pub use warp_ops::{ReduxInt, ReduxOp, ShuffleMode};

#[cfg(all(target_arch = "nvptx64", feature = "rust-cuda"))]
pub(crate) use rust_cuda as nvptx;

#[cfg(target_arch = "nvptx64")]
use crate::view::LaunchBounds;
use crate::view::{Item, Row, TileIter, WarpRow};

#[cfg(not(target_arch = "nvptx64"))]
use emulated::{Lane, WarpOp};

/// The mask of all 32 lanes of a warp. A block whose size is not a multiple of 32 ends in a partial warp, whose mask is
/// [`Block::warp_mask`].
pub const FULL_MASK: u32 = !0;

/// The number of lanes in a warp.
pub const WARP: u32 = 32;

/// The vote of a barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BarrierVote {
    /// No vote.
    None,
    /// How many threads' predicates are true.
    Count,
    /// Whether all predicates are true.
    All,
    /// Whether any predicate is true.
    Any,
}

/// The block token, by which a kernel reaches the machine.
///
/// A kernel receives it as its first parameter. On the GPU, it is only the address where the launch reports faults: a parameter of the
/// kernel, which takes no register until it is used. On the host, it is the emulator's lane. It can neither outlive the kernel nor leave
/// its thread.
///
/// ```
/// use kernel_primitives::prelude::*;
///
/// #[kernel]
/// fn square(cx: Block, x: Global<f32>, mut out: GlobalMut<f32>) {
///     for i in cx.items(out.len()) {
///         out.set(i, x[i] * x[i]);
///     }
/// }
/// ```
#[derive(Clone, Copy)]
pub struct Block<'k> {
    #[cfg(not(target_arch = "nvptx64"))]
    lane: &'k Lane<'k>,
    #[cfg(target_arch = "nvptx64")]
    control: *const FaultControl,
    /// What the kernel says of its launches, which is constant when everything is inlined.
    #[cfg(target_arch = "nvptx64")]
    shape: LaunchShape,
    _not_send: PhantomData<(&'k (), *const ())>,
}

/// Construction and the machine behind the token.
impl<'k> Block<'k> {
    /// The token of the thread that runs this.
    ///
    /// # Safety
    /// Called by a kernel entry only, once a thread and before all else, with the entry's last parameter; `'k` does not
    /// outlive the kernel.
    #[cfg(target_arch = "nvptx64")]
    #[inline(always)]
    pub unsafe fn new(control: *const FaultControl, bounds: LaunchBounds) -> Self {
        nvptx::set_control(control);
        Self { control, shape: bounds.shape, _not_send: PhantomData }
    }

    /// The token of an emulated lane.
    ///
    /// # Safety
    /// Called by the emulator only, on the lane's own stack, with a lane that describes it truly.
    #[cfg(not(target_arch = "nvptx64"))]
    #[inline(always)]
    pub unsafe fn new(lane: &'k Lane<'k>) -> Self {
        Self { lane, _not_send: PhantomData }
    }

    #[cfg(not(target_arch = "nvptx64"))]
    #[inline(always)]
    pub(crate) fn lane_state(self) -> &'k Lane<'k> {
        self.lane
    }

    /// The architecture, by which kernels choose between ways to the same result: the compute capability times 100. It is a constant on a
    /// GPU. The emulator can stand for any architecture.
    #[doc(hidden)]
    pub fn arch(self) -> u32 {
        #[cfg(target_arch = "nvptx64")]
        return nvptx::arch();
        #[cfg(not(target_arch = "nvptx64"))]
        self.lane.arch
    }
}

/// Indices and extents.
impl<'k> Block<'k> {
    /// The index of this thread in its block.
    pub fn thread_idx(self) -> Dim3 {
        #[cfg(target_arch = "nvptx64")]
        {
            let t = self.along(nvptx::thread_idx(), 0);
            let Some(d) = self.shape.threads() else { return t };
            // SAFETY: the hardware counts so.
            unsafe { core::hint::assert_unchecked(t.x < d.x && t.y < d.y && t.z < d.z) };
            let zero_if_one = |index, extent| if extent == 1 { 0 } else { index };
            Dim3::new(zero_if_one(t.x, d.x), zero_if_one(t.y, d.y), zero_if_one(t.z, d.z))
        }
        #[cfg(not(target_arch = "nvptx64"))]
        self.lane.thread_idx
    }

    /// The index of this block in the grid.
    pub fn block_idx(self) -> Dim3 {
        #[cfg(target_arch = "nvptx64")]
        return self.along(nvptx::block_idx(), 0);
        #[cfg(not(target_arch = "nvptx64"))]
        self.lane.block_idx
    }

    /// The extents of a block, in threads.
    pub fn block_dim(self) -> Dim3 {
        #[cfg(target_arch = "nvptx64")]
        return match self.shape.threads() {
            Some(threads) => threads,
            None => self.along(nvptx::block_dim(), 1),
        };
        #[cfg(not(target_arch = "nvptx64"))]
        self.lane.block_dim
    }

    /// The extents of the grid, in blocks.
    pub fn grid_dim(self) -> Dim3 {
        #[cfg(target_arch = "nvptx64")]
        return self.along(nvptx::grid_dim(), 1);
        #[cfg(not(target_arch = "nvptx64"))]
        self.lane.grid_dim
    }

    /// The linear rank of this thread in its block, `x` fastest.
    pub fn thread_rank(self) -> u32 {
        #[cfg(target_arch = "nvptx64")]
        {
            let (t, d) = (self.thread_idx(), self.block_dim());
            t.x + d.x * (t.y + d.y * t.z)
        }
        #[cfg(not(target_arch = "nvptx64"))]
        self.lane.thread_rank
    }

    /// The number of threads in a block.
    pub fn block_threads(self) -> u32 {
        #[cfg(target_arch = "nvptx64")]
        {
            let d = self.block_dim();
            d.x * d.y * d.z
        }
        #[cfg(not(target_arch = "nvptx64"))]
        self.lane.block_threads
    }

    /// The linear rank of this block in the grid, `x` fastest.
    #[inline(always)]
    pub fn block_rank(self) -> usize {
        let (index, grid) = (self.block_idx(), self.grid_dim());
        // A grid has at most 65535 blocks along y and z, so 32 bits count its rows of blocks.
        let row = index.y + grid.y * index.z;
        row as usize * grid.x as usize + index.x as usize
    }

    /// The number of blocks in the grid.
    #[inline(always)]
    pub fn grid_blocks(self) -> usize {
        let d = self.grid_dim();
        d.x as usize * d.y as usize * d.z as usize
    }

    /// What the hardware says of the three dimensions; in a launch of one dimension, the other two are known.
    #[cfg(target_arch = "nvptx64")]
    #[inline(always)]
    fn along(self, all: Dim3, known: u32) -> Dim3 {
        if self.shape.one_dimensional() { Dim3::new(all.x, known, known) } else { all }
    }

    /// This thread's number in its warp, 0 to 31.
    pub fn lane(self) -> u32 {
        #[cfg(target_arch = "nvptx64")]
        return nvptx::lane_id();
        #[cfg(not(target_arch = "nvptx64"))]
        {
            self.lane.thread_rank % WARP
        }
    }

    /// The number of the lane, hidden from the compiler: computations from it stay in their place.
    #[doc(hidden)]
    #[inline(always)]
    pub fn opaque(self, number: u32) -> u32 {
        crate::view::opaque(number)
    }

    /// This warp's number in its block.
    #[inline(always)]
    pub fn warp(self) -> u32 {
        self.thread_rank() / WARP
    }

    /// The number of warps in a block. The last one may be partial.
    #[inline(always)]
    pub fn warps(self) -> u32 {
        self.block_threads().div_ceil(WARP)
    }

    /// The number of lanes in this warp: 32, or fewer in the last warp of a block whose size is not a multiple of 32.
    pub fn warp_lanes(self) -> u32 {
        // If the extents are known, so is the answer.
        if self.block_threads().is_multiple_of(WARP) {
            return WARP;
        }
        (self.block_threads() - self.warp() * WARP).min(WARP)
    }

    /// The mask of the lanes that exist in this warp.
    #[inline(always)]
    pub fn warp_mask(self) -> u32 {
        FULL_MASK >> (WARP - self.warp_lanes())
    }
}

/// The partition of an index range over the grid. It gives the tokens by which owned elements are written.
impl<'k> Block<'k> {
    /// Returns this thread's items among `0..len`, in a grid-stride loop: thread `t` of the grid's `T` threads owns `t`, `t + T`, `t + 2T`
    /// and so on. The items index [`Global`](crate::Global), and are the tokens of [`PerThread`](crate::view::PerThread) writes.
    pub fn items(self, len: usize) -> impl Iterator<Item = Item> {
        let threads = self.block_threads() as usize;
        let first = self.block_rank() * threads + self.thread_rank() as usize;
        let stride = self.grid_blocks() * threads;
        ItemIter { next: first, stride, len }
    }

    /// Returns this block's rows among `0..rows`, in a grid-stride loop: block `b` of the grid's `B` blocks owns rows `b`, `b + B`,
    /// `b + 2B` and so on. They are the tokens of [`Rows`](crate::view::Rows) and [`PerRow`](crate::view::PerRow) writes. The iteration is
    /// the same in all threads of the block.
    ///
    /// Within a row, the threads share the elements by a loop in the kernel, from `thread_rank()` in steps of `block_threads()`: see the
    /// example of [`PerRow`](crate::view::PerRow).
    #[inline(always)]
    pub fn rows(self, rows: usize) -> impl Iterator<Item = Row> {
        ItemIter { next: self.block_rank(), stride: self.grid_blocks(), len: rows }.map(|item| Row::new(item.index()))
    }

    /// Returns this warp's rows among `0..rows`, in a grid-stride loop over the grid's warps, block by block: warp `w` of `W` owns rows
    /// `w`, `w + W` and so on. They are the tokens of [`PerWarpRow`](crate::view::PerWarpRow) writes. The iteration is the same in all
    /// lanes of the warp. Other warps of the block may have one row more or less.
    #[inline(always)]
    pub fn warp_rows(self, rows: usize) -> impl Iterator<Item = WarpRow> {
        let warps = self.block_threads().div_ceil(WARP) as usize;
        let first = self.block_rank() * warps + (self.thread_rank() / WARP) as usize;
        ItemIter { next: first, stride: self.grid_blocks() * warps, len: rows }.map(|item| WarpRow::new(item.index()))
    }

    /// Returns this block's tiles of `0..len`, in a grid-stride loop. A tile has `block_threads * ITEMS` elements, `ITEMS` consecutive ones
    /// for each thread (the *blocked* arrangement); the last tile may be shorter. Tiles are the tokens of [`Tiles`](crate::view::Tiles)
    /// writes. The iteration is the same in all threads of the block.
    #[inline(always)]
    pub fn tiles<const ITEMS: usize>(self, len: usize) -> TileIter<ITEMS> {
        const { assert!(ITEMS > 0, "a tile has at least one item a thread") };
        let tile = self.block_threads() as usize * ITEMS;
        TileIter::new(self.block_rank() * tile, self.grid_blocks() * tile, tile, len)
    }
}

struct ItemIter {
    next: usize,
    stride: usize,
    len: usize,
}

impl Iterator for ItemIter {
    type Item = Item;

    fn next(&mut self) -> Option<Item> {
        let index = self.next;
        if index >= self.len {
            return None;
        }
        self.next = index.saturating_add(self.stride);
        Some(Item::new(index))
    }
}

/// Barriers, fences, waiting.
impl<'k> Block<'k> {
    /// Waits until all threads of the block have arrived, and orders their memory accesses (`bar.sync 0`).
    #[track_caller]
    pub fn barrier(self) {
        #[cfg(target_arch = "nvptx64")]
        nvptx::barrier();
        #[cfg(not(target_arch = "nvptx64"))]
        self.lane.machine.barrier(self.lane, BarrierVote::None, false, Location::caller());
    }

    /// A barrier that returns the number of threads in which `predicate` is true.
    #[track_caller]
    pub fn barrier_count(self, predicate: bool) -> u32 {
        #[cfg(target_arch = "nvptx64")]
        return nvptx::barrier_count(predicate);
        #[cfg(not(target_arch = "nvptx64"))]
        self.lane.machine.barrier(self.lane, BarrierVote::Count, predicate, Location::caller())
    }

    /// A barrier that returns whether `predicate` is true in all threads.
    #[track_caller]
    pub fn barrier_all(self, predicate: bool) -> bool {
        #[cfg(target_arch = "nvptx64")]
        return nvptx::barrier_all(predicate);
        #[cfg(not(target_arch = "nvptx64"))]
        {
            self.lane.machine.barrier(self.lane, BarrierVote::All, predicate, Location::caller()) != 0
        }
    }

    /// A barrier that returns whether `predicate` is true in any thread.
    #[track_caller]
    pub fn barrier_any(self, predicate: bool) -> bool {
        #[cfg(target_arch = "nvptx64")]
        return nvptx::barrier_any(predicate);
        #[cfg(not(target_arch = "nvptx64"))]
        {
            self.lane.machine.barrier(self.lane, BarrierVote::Any, predicate, Location::caller()) != 0
        }
    }

    /// Waits until all lanes of `mask` have arrived, and orders their memory accesses.
    #[track_caller]
    pub fn sync_warp(self, mask: u32) {
        #[cfg(target_arch = "nvptx64")]
        nvptx::sync_warp(mask);
        #[cfg(not(target_arch = "nvptx64"))]
        self.lane.machine.warp_op(self.lane, mask, WarpOp::Sync, 0, Location::caller());
    }

    /// Orders this thread's earlier memory accesses before its later ones, for all threads in `scope`.
    #[track_caller]
    pub fn fence(self, scope: Scope) {
        #[cfg(target_arch = "nvptx64")]
        nvptx::fence(scope);
        #[cfg(not(target_arch = "nvptx64"))]
        self.lane.machine.fence(self.lane, scope, Location::caller());
    }

    /// Lets the blocks of the next kernel of the stream start, where a multiprocessor has room for them. This happens once all blocks of
    /// this kernel have called it or have ended. The next kernel waits for the end of this one in any case, and so the results of both are
    /// the same with and without this call.
    ///
    /// In a kernel without this call, each block does it first. That saves the time of a launch. But the waiting blocks take registers and
    /// shared memory. If all blocks of this kernel run at once, it can be better to call this near their end. It has an effect on GPUs of
    /// sm_90 and later.
    pub fn launch_dependents(self) {
        #[cfg(target_arch = "nvptx64")]
        if self.arch() >= 900 {
            nvptx::launch_dependents();
        }
    }

    /// One turn of a wait for memory that another thread will change. It sleeps for about `nanoseconds`. It ends the thread if the launch,
    /// or an earlier one on its stream, has faulted meanwhile. Every wait loop must call it. The emulator then runs other lanes and blocks.
    #[track_caller]
    pub fn spin(self, nanoseconds: u32) {
        #[cfg(target_arch = "nvptx64")]
        // SAFETY: the launch's control.
        unsafe {
            nvptx::spin(self.control, nanoseconds)
        };
        #[cfg(not(target_arch = "nvptx64"))]
        {
            let _ = nanoseconds;
            self.lane.machine.spin(self.lane, Location::caller());
        }
    }

    /// Sleeps for about `nanoseconds`, in a wait that [spins](Self::spin) from time to time. On a GPU, a spin reads memory to find out
    /// about faults.
    #[track_caller]
    pub(crate) fn pause(self, nanoseconds: u32) {
        #[cfg(target_arch = "nvptx64")]
        nvptx::pause(nanoseconds);
        #[cfg(not(target_arch = "nvptx64"))]
        self.spin(nanoseconds);
    }

    /// Ends the thread and its launch with a fault of the kernel's author. The host receives it with `code` and the source line of the
    /// caller.
    #[inline(always)]
    #[track_caller]
    pub fn fault(self, code: u64) -> ! {
        self.raise(FaultKind::User, [code, 0], Location::caller())
    }

    /// Ends the thread and its launch with a fault unless `size` is at most `limit`. This is for a kernel that supports sizes up to a
    /// limit.
    #[inline(always)]
    #[track_caller]
    pub fn require_at_most(self, size: usize, limit: usize) {
        if size > limit {
            self.raise(FaultKind::BadShape, [size as u64, limit as u64], Location::caller());
        }
    }

    /// Works as [`require_at_most`](Self::require_at_most) in the emulator, and does nothing on a GPU. This is for a count that means all
    /// if it is larger than the limit, which is still a mistake.
    #[track_caller]
    pub(crate) fn expect_at_most(self, count: usize, limit: usize) {
        #[cfg(not(target_arch = "nvptx64"))]
        self.require_at_most(count, limit);
        #[cfg(target_arch = "nvptx64")]
        let _ = (count, limit);
    }

    pub(crate) fn raise(self, kind: FaultKind, args: [u64; 2], place: Place) -> ! {
        #[cfg(target_arch = "nvptx64")]
        // SAFETY: the launch's control.
        unsafe {
            nvptx::raise(self.control, kind, args, place)
        };
        #[cfg(not(target_arch = "nvptx64"))]
        self.lane.machine.fault(self.lane, Fault { kind, args }, None, place)
    }

    /// Works as [`raise`](Self::raise), for an access outside the view that starts at `view`. The emulator names the view.
    pub(crate) fn raise_outside<T>(self, kind: FaultKind, args: [u64; 2], view: *const T, place: Place) -> ! {
        #[cfg(target_arch = "nvptx64")]
        {
            let _ = view;
            self.raise(kind, args, place)
        }
        #[cfg(not(target_arch = "nvptx64"))]
        self.lane.machine.fault(self.lane, Fault { kind, args }, Some(view.addr()), place)
    }
}
