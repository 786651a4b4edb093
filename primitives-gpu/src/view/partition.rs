//! Partitions say which thread may write which element of a [`GlobalMut`](crate::GlobalMut). They are the view's last type parameter.
//!
//! | partition | owner of an element | written by |
//! |---|---|---|
//! | [`PerThread`] (the default, the same type as [`Tiles<1>`](Tiles)) | one thread of the grid, grid-stride | [`GlobalMut::set`](crate::GlobalMut::set) with an [`Item`] |
//! | [`Tiles<N>`] | one thread of the block that has the tile, `N` consecutive elements | [`write_data`](crate::io::write_data) to a [`Tile`] |
//! | [`Rows<N>`] | one thread of the block that has the row, `N` consecutive elements in each round | [`RowMut::set_items`](super::RowMut::set_items) of a [`Row`] |
//! | [`Striped<N>`], [`WarpStriped<N>`] | one thread of the block that has the tile, `N` elements a step apart | [`store_striped`](crate::block::store_striped) to a [`Tile`] |
//! | [`PerRow`] | the first thread of the block that has the row | [`GlobalMut::store_row`](crate::GlobalMut::store_row) with a [`Row`] |
//! | [`PerWarpRow`] | the first lane of the warp that has the row | [`GlobalMut::store_row`](crate::GlobalMut::store_row) with a [`WarpRow`] |
//! | [`PerBlock`] | the first thread of the block of that rank | [`GlobalMut::store`](crate::GlobalMut::store) |
//! | [`Atomic`] | nobody: all accesses are atomic | [`GlobalMut::at`](crate::GlobalMut::at) |
//!
//! The tokens come from [`Block::items`](crate::Block::items), [`Block::tiles`](crate::Block::tiles), [`Block::rows`](crate::Block::rows)
//! and [`Block::warp_rows`](crate::Block::warp_rows), and cannot be made in another way. In one launch, each token names elements of
//! exactly one thread. So no two threads write the same element.

use core::marker::PhantomData;

use crate::simt::Block;

mod sealed {
    pub trait Sealed {}
}

/// A partition of a [`GlobalMut`](crate::GlobalMut): see the [module](self).
pub trait Partition: sealed::Sealed + 'static {}

/// In each block's tile of `block_threads * ITEMS` elements, each thread of the block owns `ITEMS` consecutive elements.
pub enum Tiles<const ITEMS: usize> {}

/// Each thread of the grid owns the elements at its grid-stride positions: tiles with one item for each thread. So
/// [`set`](crate::GlobalMut::set) writes a view without a partition, such as `GlobalMut<f32>`, and so does
/// [`write_data`](crate::io::write_data) with tiles of one item for each thread.
pub type PerThread = Tiles<1>;

/// In each block's tile of `block_threads * ITEMS` elements, each thread of the block owns `ITEMS` elements that are `block_threads` apart.
/// Those of thread `t` begin at `t`.
pub enum Striped<const ITEMS: usize> {}

/// In each block's tile, each warp owns `32 * ITEMS` consecutive elements. Each of its lanes owns `ITEMS` of these that are 32 apart, or,
/// in a partial warp, as many apart as it has lanes.
pub enum WarpStriped<const ITEMS: usize> {}

/// Each block owns whole rows of a matrix, grid-stride. In round `r` of a row, thread `t` of the block's `T` threads owns the `ITEMS`
/// elements from `(r * T + t) * ITEMS`.
pub enum Rows<const ITEMS: usize> {}

/// One element for each row of a matrix, such as its sum. Each block owns the elements of [its rows](crate::Block::rows), and its first
/// thread writes them.
///
/// ```
/// use kernel_primitives::Dims;
/// use kernel_primitives::prelude::*;
///
/// /// The sum of each row of a matrix.
/// #[kernel]
/// fn row_sums(
///     cx: Block,
///     columns: usize,
///     x: Global<f32>,
///     mut out: GlobalMut<f32, PerRow>,
///     mut shared: Shared<ReduceStorage<f32>>,
/// ) {
///     for row in cx.rows(out.len()) {
///         let row_of_x = x.row(row.index(), columns);
///         let mut sum = 0.0;
///         let mut i = cx.thread_rank() as usize;
///         while i < columns {
///             sum += row_of_x[i];
///             i += cx.block_threads() as usize;
///         }
///         out.store_row(row, block_reduce(cx, &mut shared, sum, Add));
///     }
/// }
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = kernel_primitives::Device::emulator().stream()?;
/// let x = stream.buffer_from(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0])?;
/// let mut out = stream.buffer_zeroed::<f32>(2)?;
/// row_sums::launch(&stream, Dims::for_blocks(out.len()).block(32), 3, &x, &mut out)?;
/// assert_eq!(out.to_vec()?, [6.0, 15.0]);
/// # Ok(())
/// # }
/// ```
pub enum PerRow {}

/// Works as [`PerRow`], for kernels in which a warp has a row. Each warp owns the elements of [its rows](crate::Block::warp_rows), and its
/// first lane writes them.
pub enum PerWarpRow {}

/// Each block owns the element of its rank, and its first thread writes it. The buffer must have at least as many elements as the grid has
/// blocks.
///
/// ```
/// use kernel_primitives::Dims;
/// use kernel_primitives::prelude::*;
///
/// /// The largest item that each block visits.
/// #[kernel]
/// fn maxima(cx: Block, x: Global<i32>, mut out: GlobalMut<i32, PerBlock>, mut shared: Shared<ReduceStorage<i32>>) {
///     let mut largest = i32::MIN;
///     for i in cx.items(x.len()) {
///         largest = largest.max(x[i]);
///     }
///     // All threads call both: the reduction is a collective, and of what they store, the first thread's counts.
///     out.store(block_reduce(cx, &mut shared, largest, Max));
/// }
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = kernel_primitives::Device::emulator().stream()?;
/// let x = stream.buffer_from(&(0..100).collect::<Vec<i32>>())?;
/// let mut out = stream.buffer_zeroed::<i32>(2)?;
/// maxima::launch(&stream, Dims::for_blocks(out.len()).block(64), &x, &mut out)?;
/// assert_eq!(out.to_vec()?, [63, 99]);
/// # Ok(())
/// # }
/// ```
pub enum PerBlock {}

/// No one owns an element; every access is atomic.
pub enum Atomic {}

impl<const ITEMS: usize> sealed::Sealed for Tiles<ITEMS> {}
impl<const ITEMS: usize> Partition for Tiles<ITEMS> {}
impl<const ITEMS: usize> sealed::Sealed for Striped<ITEMS> {}
impl<const ITEMS: usize> Partition for Striped<ITEMS> {}
impl<const ITEMS: usize> sealed::Sealed for WarpStriped<ITEMS> {}
impl<const ITEMS: usize> Partition for WarpStriped<ITEMS> {}
impl<const ITEMS: usize> sealed::Sealed for Rows<ITEMS> {}
impl<const ITEMS: usize> Partition for Rows<ITEMS> {}
impl sealed::Sealed for PerRow {}
impl Partition for PerRow {}
impl sealed::Sealed for PerWarpRow {}
impl Partition for PerWarpRow {}
impl sealed::Sealed for PerBlock {}
impl Partition for PerBlock {}
impl sealed::Sealed for Atomic {}
impl Partition for Atomic {}

/// The index of an element that this thread owns. It is a token from [`Block::items`](crate::Block::items).
#[derive(Clone, Copy, Debug)]
pub struct Item {
    index: usize,
    _thread: PhantomData<*const ()>,
}

impl Item {
    #[inline(always)]
    pub(crate) fn new(index: usize) -> Self {
        Self { index, _thread: PhantomData }
    }

    /// The index.
    #[inline(always)]
    pub fn index(self) -> usize {
        self.index
    }
}

/// A block's tile of an index range, with `ITEMS` consecutive elements for each thread. It is a token from
/// [`Block::tiles`](crate::Block::tiles).
#[derive(Clone, Copy, Debug)]
pub struct Tile<const ITEMS: usize> {
    start: usize,
    len: usize,
    _thread: PhantomData<*const ()>,
}

impl<const ITEMS: usize> Tile<ITEMS> {
    /// The first element.
    #[inline(always)]
    pub fn start(self) -> usize {
        self.start
    }

    /// The number of elements in the tile: `block_threads * ITEMS`, or fewer in the last tile.
    #[inline(always)]
    #[allow(clippy::len_without_is_empty, reason = "a tile is never empty")]
    pub fn len(self) -> usize {
        self.len
    }

    /// The number of this thread's items that the tile has: `ITEMS`, or fewer, down to none, in the last tile.
    #[inline(always)]
    pub fn valid_items(self, cx: Block<'_>) -> usize {
        self.len.saturating_sub(cx.thread_rank() as usize * ITEMS).min(ITEMS)
    }
}

/// The number of a row that this block owns. It is a token from [`Block::rows`](crate::Block::rows).
#[derive(Clone, Copy, Debug)]
pub struct Row {
    index: usize,
    _thread: PhantomData<*const ()>,
}

impl Row {
    #[inline(always)]
    pub(crate) fn new(index: usize) -> Self {
        Self { index, _thread: PhantomData }
    }

    /// The number.
    #[inline(always)]
    pub fn index(self) -> usize {
        self.index
    }
}

/// The number of a row that this warp owns. It is a token from [`Block::warp_rows`](crate::Block::warp_rows).
#[derive(Clone, Copy, Debug)]
pub struct WarpRow {
    index: usize,
    _thread: PhantomData<*const ()>,
}

impl WarpRow {
    #[inline(always)]
    pub(crate) fn new(index: usize) -> Self {
        Self { index, _thread: PhantomData }
    }

    /// The number.
    #[inline(always)]
    pub fn index(self) -> usize {
        self.index
    }
}

/// The tiles of one block, in ascending order.
#[derive(Clone, Debug)]
pub struct TileIter<const ITEMS: usize> {
    next: usize,
    stride: usize,
    tile: usize,
    len: usize,
}

impl<const ITEMS: usize> TileIter<ITEMS> {
    #[inline(always)]
    pub(crate) fn new(first: usize, stride: usize, tile: usize, len: usize) -> Self {
        Self { next: first, stride, tile, len }
    }
}

impl<const ITEMS: usize> Iterator for TileIter<ITEMS> {
    type Item = Tile<ITEMS>;

    fn next(&mut self) -> Option<Tile<ITEMS>> {
        let start = self.next;
        if start >= self.len {
            return None;
        }
        self.next = start.saturating_add(self.stride);
        Some(Tile { start, len: self.tile.min(self.len - start), _thread: PhantomData })
    }
}
