//! Views of memory. Kernels and primitives access memory through them.
//!
//! A view checks every access against its length, and in the emulator it reports every access to the machine. The raw pointers below are
//! the `unsafe` level.

mod elements;
mod global;
mod global_mut;
mod param;
pub mod partition;
pub(crate) mod raw;
mod shared;
mod split_barrier;
mod striped;
mod warp_rows;

pub(crate) use elements::{Elements, opaque};
pub use global::Global;
pub use global_mut::{GlobalMut, RowMut, TileMut};
#[doc(hidden)]
pub use param::{
    FlatParam, LaunchBounds, Layout, SharedParam, arena_layout, element_layout, require_threads, storage_layout,
    value_layout, view_layout,
};
pub use partition::{
    Atomic, Item, Partition, PerBlock, PerRow, PerThread, PerWarpRow, Row, Rows, Striped, Tile, TileIter, Tiles,
    WarpRow, WarpStriped,
};
pub use raw::RawView;
pub(crate) use raw::vector_items;
#[doc(hidden)]
pub use shared::StorageAccess;
pub use shared::{Phases, Shared, SharedArray, SharedSlice, SharedStorage};
pub(crate) use shared::{group_copies, wait_for_copies, wait_for_copies_but_last};
pub use split_barrier::{Parity, SplitBarriers};
pub use striped::StripedMut;
pub(crate) use striped::{stripe, warp_stripe};
pub use warp_rows::WarpRowMut;
