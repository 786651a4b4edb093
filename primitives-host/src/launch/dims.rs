//! Launch dimensions.

use primitives_gpu::Dim3;

/// The grid, the block and the extra shared memory of a launch.
///
/// ```
/// use kernel_primitives::Dims;
/// let exact = Dims::new(64, (32, 8)); // 64 blocks of 32 × 8 threads
/// let also: Dims = (64, (32, 8)).into();
/// let by_work = Dims::for_items(1_000_000).items_per_thread(4); // block size by occupancy, as many blocks as needed
/// let rows = vec![0.0f32; 1000];
/// let by_rows = Dims::for_blocks(rows.len()).block(128); // a block a row
/// # let _ = (exact, also, by_work, by_rows);
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
    Blocks(usize),
    Items { items: usize, per_thread: usize },
}

impl Dims {
    /// A grid of blocks and a block of threads. With no blocks, the launch does nothing; with no threads in a block, it returns an error.
    ///
    /// Extents are `u32`, as on the GPU. For a length, which is a `usize`, use [`for_items`](Self::for_items) or
    /// [`for_blocks`](Self::for_blocks).
    pub fn new(grid: impl Extents, block: impl Extents) -> Self {
        Self { work: Work::Grid(grid.extents()), block: Some(block.extents()), shared_bytes: 0 }
    }

    /// A one-dimensional grid of `blocks` blocks, for example one for each row or segment. The block has the size that fills the device
    /// best, unless [`block`](Self::block) sets it. If a grid cannot have so many blocks, the launch returns an error. With no blocks, the
    /// launch does nothing.
    pub fn for_blocks(blocks: usize) -> Self {
        Self { work: Work::Blocks(blocks), block: None, shared_bytes: 0 }
    }

    /// A one-dimensional launch for `items` items, one for each thread. The block has the size that fills the device best, and the grid has
    /// as many blocks as the items need. With no items, the launch does nothing.
    pub fn for_items(items: usize) -> Self {
        Self { work: Work::Items { items, per_thread: 1 }, block: None, shared_bytes: 0 }
    }

    /// Gives each thread of [`Dims::for_items`] `count` items, for a kernel over [`Tiles<N>`](primitives_gpu::view::Tiles). It has no
    /// effect if the grid is given.
    pub fn items_per_thread(mut self, count: usize) -> Self {
        if let Work::Items { per_thread, .. } = &mut self.work {
            *per_thread = count.max(1);
        }
        self
    }

    /// Sets the block.
    pub fn block(mut self, block: impl Extents) -> Self {
        self.block = Some(block.extents());
        self
    }

    /// Sets the shared memory for the kernel's `SharedSlice`, in bytes. It is added to that of the kernel's `Shared` parameters.
    pub fn shared_bytes(mut self, bytes: usize) -> Self {
        self.shared_bytes = bytes;
        self
    }
}

/// Extents of a grid or a block: `256`, `(32, 8)`, `(8, 8, 4)` or a [`Dim3`], of `u32`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no extent of a grid or a block",
    label = "not a `u32`, `(u32, u32)`, `(u32, u32, u32)` or `Dim3`",
    note = "for a length, which is a `usize`, write `Dims::for_items(len)` for a thread an item, or \
            `Dims::for_blocks(len).block(256)` for a block an item"
)]
pub trait Extents {
    /// The extents in all three dimensions.
    fn extents(self) -> Dim3;
}

macro_rules! extents {
    ($($t:ty),*) => {$(
        impl Extents for $t {
            fn extents(self) -> Dim3 {
                self.into()
            }
        }
    )*};
}
extents! { u32, (u32, u32), (u32, u32, u32), Dim3 }

impl<G: Extents, B: Extents> From<(G, B)> for Dims {
    fn from((grid, block): (G, B)) -> Self {
        Self::new(grid, block)
    }
}
