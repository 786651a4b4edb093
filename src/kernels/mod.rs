//! The kernels of the library, which are composed of its primitives. Launch them as they are, instantiate them for your own functors, or
//! copy from them.
//!
//! Each kernel has two pages. The page of the struct has the `launch`, which the host calls. The page of the function is for other kernels,
//! which call it.

mod columns;
pub mod device;
mod elementwise;
pub mod functions;
mod reduce;
mod rows;
mod scan;
mod sort;

pub use columns::reduce_higher_dim;
pub use elementwise::{broadcast_binary, map_any, map_binary, map_ternary, map_unary};
pub use reduce::{block_reduce, reduce_rows};
pub use rows::{layer_norm_rows, softmax_rows};
pub use scan::cumsum_rows;
pub use sort::{sort_rows, top_k_rows};

/// Returns the grid and the block of a kernel that gives each row of a matrix a block.
///
/// There are `rows` blocks. Each has the fewest whole warps whose threads hold the row at `per_thread` elements each, and at most
/// 256 threads. All of these kernels can have those, except [`sort_rows`](struct@sort_rows) and [`top_k_rows`](struct@top_k_rows), whose
/// blocks have `THREADS`.
#[cfg(not(target_arch = "nvptx64"))]
pub fn row_dims(rows: usize, columns: usize, per_thread: usize) -> crate::Dims {
    let threads = columns.div_ceil(per_thread.max(1)).next_multiple_of(32).clamp(32, 256);
    crate::Dims::new(rows.min(i32::MAX as usize) as u32, threads as u32)
}

/// Returns the grid and the block of [`reduce_rows`](struct@reduce_rows), for rows of `columns` elements. A thread reads `per_thread`
/// elements at a time.
///
/// Blocks have 256 threads. All of them work on one row or, if it is too short for them, on several.
#[cfg(not(target_arch = "nvptx64"))]
pub fn reduce_row_dims(rows: usize, columns: usize, per_thread: usize) -> crate::Dims {
    let width = columns.div_ceil(per_thread.max(1)).next_power_of_two().clamp(1, 256);
    let height = 256 / width;
    crate::Dims::new(rows.div_ceil(height).min(i32::MAX as usize) as u32, (width as u32, height as u32))
}
