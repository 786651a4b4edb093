//! Launch dimensions.

use primitives_gpu::Dim3;

/// The grid, the block and the extra shared memory of a launch.
///
/// ```
/// use kernel_primitives::Dims;
/// let exact = Dims::new(64, (32, 8)); // 64 blocks of 32 × 8 threads
/// let also: Dims = (64, (32, 8)).into();
/// let by_work = Dims::for_items(1_000_000).items_per_thread(4); // block size by occupancy, as many blocks as needed
/// # let _ = (exact, also, by_work);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Dims {
    pub(crate) work: Work,
    pub(crate) block: Option<Dim3>,
    pub(crate) shared_bytes: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    Grid(Dim3),
    Items { items: usize, per_thread: usize },
}

impl Dims {
    /// A grid of blocks and a block of threads.
    pub fn new(grid: impl Into<Dim3>, block: impl Into<Dim3>) -> Self {
        Self { work: Work::Grid(grid.into()), block: Some(block.into()), shared_bytes: 0 }
    }

    /// A one-dimensional launch for `items` items, one a thread: the block size that fills the device best, and as many
    /// blocks as the items need. No items is no launch.
    pub fn for_items(items: usize) -> Self {
        Self { work: Work::Items { items, per_thread: 1 }, block: None, shared_bytes: 0 }
    }

    /// Lets each thread of [`Dims::for_items`] have `count` items, as a kernel over [`Tiles<N>`](primitives_gpu::view::Tiles)
    /// wants. Without effect if the grid was given.
    pub fn items_per_thread(mut self, count: usize) -> Self {
        if let Work::Items { per_thread, .. } = &mut self.work {
            *per_thread = count.max(1);
        }
        self
    }

    /// Fixes the block.
    pub fn block(mut self, block: impl Into<Dim3>) -> Self {
        self.block = Some(block.into());
        self
    }

    /// Shared memory beyond the kernel's `Shared` parameters, in bytes: what its `SharedSlice` gets.
    pub fn shared_bytes(mut self, bytes: usize) -> Self {
        self.shared_bytes = bytes;
        self
    }
}

impl<G: Into<Dim3>, B: Into<Dim3>> From<(G, B)> for Dims {
    fn from((grid, block): (G, B)) -> Self {
        Self::new(grid, block)
    }
}
