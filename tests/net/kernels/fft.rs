//! Fourier transforms.

use kernel_primitives::prelude::*;
use kernel_primitives::warp::{warp_fft, warp_ifft};

/// Returns the parts of results: of the spectrum, and of the inverse.
fn parts(spectrum: Complex<f32>, inverse: Complex<f32>) -> [f32; 4] {
    [spectrum.re, spectrum.im, inverse.re, inverse.im]
}

/// Computes the spectra of groups of `N / ITEMS` lanes, and the inverses, of real numbers.
#[kernel(max_threads(1024), instantiate(<96, 3>, <160, 10>, <7, 7>))]
pub fn spectra_of_warps<const N: usize, const ITEMS: usize>(
    cx: Block,
    x: Global<f32>,
    mut out: GlobalMut<[f32; 4], Tiles<ITEMS>>,
) {
    for tile in cx.tiles::<ITEMS>(out.len()) {
        let (group, lane) = (cx.thread_rank() as usize / (N / ITEMS), cx.thread_rank() as usize % (N / ITEMS));
        let first = tile.start() + group * N + lane;
        let items: [_; ITEMS] = core::array::from_fn(|i| Complex::from(x.get(first + i * (N / ITEMS)).unwrap_or(0.0)));
        let (spectrum, inverse) = (warp_fft::<f32, N, ITEMS>(cx, &items), warp_ifft::<f32, N, ITEMS>(cx, &items));
        write_data(cx, out.tile(tile), &core::array::from_fn(|i| parts(spectrum[i], inverse[i])));
    }
}

/// Computes the spectra of a block's `BATCH * N` items, and the inverses, of real numbers. A thread writes its items side by side.
#[kernel(max_threads(1024), instantiate(<240, 4, 2>, <49, 7, 3>, <26, 2, 5>, <512, 16, 1>))]
pub fn spectra_of_blocks<const N: usize, const ITEMS: usize, const BATCH: usize>(
    cx: Block,
    x: Global<f32>,
    mut out: GlobalMut<[f32; 4], Tiles<ITEMS>>,
    mut shared: Shared<FftStorage<f32, N, ITEMS, BATCH>>,
) {
    for tile in cx.tiles::<ITEMS>(out.len()) {
        let (transform, thread) = (cx.thread_rank() as usize / (N / ITEMS), cx.thread_rank() as usize % (N / ITEMS));
        let first = tile.start() + transform * N + thread;
        let items: [_; ITEMS] = core::array::from_fn(|i| Complex::from(x.get(first + i * (N / ITEMS)).unwrap_or(0.0)));
        let (spectrum, inverse) = (block_fft(cx, &mut shared, &items), block_ifft(cx, &mut shared, &items));
        write_data(cx, out.tile(tile), &core::array::from_fn(|i| parts(spectrum[i], inverse[i])));
    }
}
