//! Fourier transforms of threads, warps and blocks.

use kernel_primitives::element::FftFloat;
use kernel_primitives::prelude::*;
use kernel_primitives::thread::{thread_fft, thread_ifft};
use kernel_primitives::warp::{warp_fft, warp_ifft};

/// Returns the items of the thread with number `thread` of `threads`, striped, or zeros after the end.
fn striped<T: FftFloat, const N: usize>(
    x: Global<Complex<T>>,
    first: usize,
    (thread, threads): (usize, usize),
) -> [Complex<T>; N] {
    core::array::from_fn(|i| x.get(first + thread + i * threads).unwrap_or(Element::ZERO))
}

/// Computes the spectrum of each thread's `N` items, or the inverse.
#[kernel(instantiate(<f32, 1>, <f32, 2>, <f32, 3>, <f32, 4>, <f32, 5>, <f32, 7>, <f32, 8>, <f32, 11>, <f32, 13>, <f32, 16>,
    <f32, 30>, <f32, 32>, <f64, 6>, <f64, 9>, <f64, 12>, <f64, 14>, <f64, 15>))]
pub fn of_threads<T: FftFloat, const N: usize>(
    cx: Block,
    inverse: bool,
    x: Global<Complex<T>>,
    mut out: GlobalMut<Complex<T>, Tiles<N>>,
) {
    for tile in cx.tiles::<N>(out.len()) {
        let items = striped::<T, N>(x, tile.start() + cx.thread_rank() as usize * N, (0, 1));
        write_data(cx, out.tile(tile), &if inverse { thread_ifft(&items) } else { thread_fft(&items) });
    }
}

/// Computes the spectra of groups of `N / ITEMS` lanes, or the inverses. A lane writes its items side by side.
#[kernel(instantiate(<f32, 3, 3>, <f32, 2, 1>, <f32, 20, 5>, <f32, 64, 2>, <f32, 256, 8>, <f32, 352, 11>, <f32, 64, 8>, <f32, 48, 3>,
    <f64, 32, 1>, <f64, 40, 10>, <f64, 224, 7>))]
pub fn of_warps<T: FftFloat, const N: usize, const ITEMS: usize>(
    cx: Block,
    inverse: bool,
    x: Global<Complex<T>>,
    mut out: GlobalMut<Complex<T>, Tiles<ITEMS>>,
) {
    for tile in cx.tiles::<ITEMS>(out.len()) {
        let (group, lane) = (cx.thread_rank() as usize / (N / ITEMS), cx.thread_rank() as usize % (N / ITEMS));
        let items = striped::<T, ITEMS>(x, tile.start() + group * N, (lane, N / ITEMS));
        let items = if inverse { warp_ifft::<T, N, ITEMS>(cx, &items) } else { warp_fft::<T, N, ITEMS>(cx, &items) };
        write_data(cx, out.tile(tile), &items);
    }
}

/// Computes the spectra of a block's `BATCH * N` items, or the inverses. A thread writes its items side by side.
#[kernel(max_threads(BATCH * N / ITEMS), min_blocks(1), instantiate(
    <f32, 1, 1, 5>, <f32, 2, 1, 1>, <f32, 16, 16, 3>, <f32, 32, 32, 2>, <f32, 64, 4, 5>, <f32, 96, 3, 1>,
    <f32, 169, 13, 2>, <f32, 360, 8, 1>, <f32, 1000, 10, 1>, <f32, 1001, 11, 1>, <f32, 2048, 16, 2>, <f32, 2310, 30, 1>, <f32, 4096, 16, 1>,
    <f64, 8, 2, 1>, <f64, 572, 4, 2>, <f64, 729, 9, 1>, <f64, 1000, 10, 1>, <f64, 1024, 8, 2>))]
pub fn of_blocks<T: FftFloat, const N: usize, const ITEMS: usize, const BATCH: usize>(
    cx: Block,
    inverse: bool,
    x: Global<Complex<T>>,
    mut out: GlobalMut<Complex<T>, Tiles<ITEMS>>,
    mut shared: Shared<FftStorage<T, N, ITEMS, BATCH>>,
) {
    for tile in cx.tiles::<ITEMS>(out.len()) {
        let (transform, thread) = (cx.thread_rank() as usize / (N / ITEMS), cx.thread_rank() as usize % (N / ITEMS));
        let items = striped::<T, ITEMS>(x, tile.start() + transform * N, (thread, N / ITEMS));
        let items = if inverse { block_ifft(cx, &mut shared, &items) } else { block_fft(cx, &mut shared, &items) };
        write_data(cx, out.tile(tile), &items);
    }
}
