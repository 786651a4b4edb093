//! Kernels whose launch is unsafe, or private to their module.

use kernel_primitives::input::{Source, Span};
use kernel_primitives::prelude::*;
#[cfg(not(target_arch = "nvptx64"))]
use kernel_primitives::{Buffer, BufferSlice, Error, Result, Stream};

/// Writes the items of `x` at the places `at`.
///
/// # Safety
/// All places are less than the length of `x`.
#[kernel(equal_len(at, out), instantiate(<Span<f32>>))]
pub unsafe fn gather<S: Source<Item: Element>>(cx: Block, x: Input<S>, at: Global<u32>, mut out: GlobalMut<S::Item>) {
    for i in cx.items(out.len()) {
        // SAFETY: the caller promises it.
        let [item] = unsafe { x.items_inside(at[i] as usize) };
        out.set(i, item);
    }
}

/// Writes the last `width` elements of each of the `rows` rows.
#[kernel(launch())]
pub fn ends_of_rows(cx: Block, x: Input<Span<u32>>, rows: u64, width: u64, mut out: GlobalMut<u32>) {
    let columns = x.len() / rows as usize;
    for i in cx.items(out.len()) {
        let (row, column) = (i.index() / width as usize, i.index() % width as usize);
        // SAFETY: the caller of the launch has checked that rows have at least `width` elements.
        let [item] = unsafe { x.items_inside((row + 1) * columns - width as usize + column) };
        out.set(i, item);
    }
}

/// Counts the threads of its blocks, which have 64 threads.
#[kernel(threads(64))]
pub fn sixty_four(cx: Block, counts: GlobalMut<u32, Atomic>) {
    if cx.thread_rank() < 64 {
        counts.at(0).fetch_add(1);
    }
}

/// Calls the other kernel with blocks of any shape.
#[kernel]
pub fn as_sixty_four(cx: Block, counts: GlobalMut<u32, Atomic>) {
    sixty_four(cx, counts);
}

/// Writes the ranks of the thread and its block, and what is along `y` and `z`, in launches of one dimension.
#[kernel(one_dimensional, max_threads(1024))]
pub fn along_x(cx: Block, mut out: GlobalMut<[u32; 4]>) {
    for i in cx.items(out.len()) {
        let (thread, block, extents, grid) = (cx.thread_idx(), cx.block_idx(), cx.block_dim(), cx.grid_dim());
        let indices = thread.y + thread.z + block.y + block.z;
        let extents = extents.y * extents.z * grid.y * grid.z;
        out.set(i, [cx.thread_rank(), cx.block_rank() as u32, indices, extents]);
    }
}

/// Calls the other kernel with launches of any shape.
#[kernel]
pub fn as_along_x(cx: Block, out: GlobalMut<[u32; 4]>) {
    along_x(cx, out);
}

/// Launches [`ends_of_rows`](enum@ends_of_rows) after it has checked the width.
#[cfg(not(target_arch = "nvptx64"))]
pub fn ends(stream: &Stream, x: BufferSlice<'_, u32>, rows: usize, width: usize) -> Result<Buffer<u32>> {
    let columns = x.len().checked_div(rows).unwrap_or(0);
    if width > columns {
        return Err(Error::LengthMismatch {
            kernel: "ends_of_rows".into(),
            first: "`width`".into(),
            first_len: width,
            second: "a row".into(),
            second_len: columns,
        });
    }
    let mut out = stream.buffer_zeroed(rows * width)?;
    ends_of_rows::launch(stream, (3, 32), x, rows as u64, width as u64, &mut out)?;
    Ok(out)
}

/// A kernel whose generic arguments have names that an expansion might choose for its items.
pub mod names {
    use kernel_primitives::prelude::*;

    pub trait Named {
        const NUMBER: u32;
    }

    pub struct Tag;

    impl Named for Tag {
        const NUMBER: u32 = 1;
    }

    pub const INFO: u32 = 10;
    pub const LAYOUT: u32 = 20;
    pub const BOUNDS: u32 = 40;
    #[allow(non_upper_case_globals, reason = "the name of a function")]
    pub const images: u32 = 100;

    /// Writes the sum of the numbers that its arguments stand for.
    #[kernel(instantiate(<Tag, INFO, images>, <Tag, LAYOUT, BOUNDS>))]
    pub fn sum_of_names<N: Named, const A: u32, const B: u32>(cx: Block, mut out: GlobalMut<u32>) {
        for i in cx.items(out.len()) {
            out.set(i, N::NUMBER + A + B);
        }
    }

    instantiate!(sum_of_names::<Tag, BOUNDS, images>);
}
