//! Windows of tensors in shared memory.

use super::Twelve;
use kernel_primitives::block::{Border, HaloStorage, block_load_halo};
use kernel_primitives::prelude::*;

/// Returns the border with a number.
fn border<T>(number: u32, outside: T) -> Border<T> {
    match number {
        0 => Border::Clamp,
        1 => Border::Periodic,
        2 => Border::Mirror,
        3 => Border::Symmetric,
        _ => Border::Constant(outside),
    }
}

/// Writes the elements of a window, and of the window that begins one index further along each axis, with the same storage.
#[kernel(max_threads(1024), instantiate(<u8>, <u32>, <Twelve>, <f64>))]
#[allow(clippy::too_many_arguments, reason = "a kernel's parameters")]
pub fn windows<T: Element>(
    cx: Block,
    extents: [u32; 3],
    first: [i64; 3],
    window: [u32; 3],
    number: u32,
    outside: T,
    x: Global<T>,
    mut out: GlobalMut<T>,
    mut next: GlobalMut<T>,
    mut shared: Shared<HaloStorage<T, 600>>,
) {
    let (extents, border) = (extents.map(|extent| extent as usize), border(number, outside));
    let window = window.map(|extent| extent as usize);
    let index = |i: usize| [i / (window[1] * window[2]), i / window[2] % window[1], i % window[2]];
    let begin = first.map(|at| at as isize);
    let elements = block_load_halo(cx, &mut shared, x, extents, begin, window, border);
    for i in cx.items(out.len()) {
        out.set(i, elements.at(index(i.index())));
    }
    let begin = first.map(|at| at as isize + 1);
    let elements = block_load_halo(cx, &mut shared, x, extents, begin, window, border);
    for i in cx.items(next.len()) {
        next.set(i, elements.at(index(i.index())));
    }
}
