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

#[cfg(not(target_arch = "nvptx64"))]
pub use host::subjects;

#[cfg(not(target_arch = "nvptx64"))]
mod host {
    use super::{spectra_of_blocks, spectra_of_warps};
    use crate::case::{Case, Lengths};
    use crate::data::floats;
    use crate::shape::{Shape, blocks};
    use crate::subject::{Subject, near_parts, subject};

    /// Returns the numbers of whole transforms.
    fn numbers(case: &Case, tile: usize) -> Vec<f32> {
        floats(case, 0, case.len.div_ceil(tile).min(3) * tile)
    }

    /// Returns the spectrum of real numbers and the inverse, and the largest error of results.
    fn spectrum(x: &[f32]) -> Vec<([f64; 4], f64)> {
        let n = x.len();
        let norm = x.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>().sqrt();
        // Errors of equal items are equal, and add up in a few results.
        let bound = 8.0 * norm * (2.0 + (n as f64).log2()) * f64::from(f32::EPSILON);
        let result = |k: usize| {
            let (mut re, mut im) = (0.0, 0.0);
            for (j, &x) in x.iter().enumerate() {
                let angle = std::f64::consts::TAU * (j * k % n) as f64 / n as f64;
                re += f64::from(x) * angle.cos();
                im -= f64::from(x) * angle.sin();
            }
            // This is the rounding of the sums of the passes, and the rounding of the result itself, which may be most of the spectrum.
            ([re, im, re, -im], bound + 2.0 * f64::from(f32::EPSILON) * re.hypot(im))
        };
        (0..n).map(result).collect()
    }

    pub fn subjects() -> Vec<Subject> {
        let mut all = Vec::new();
        macro_rules! warps {
            ($($name:literal, $n:literal, $items:literal, $groups:literal;)*) => {$(
                all.push(subject(
                    &["warp_fft", "warp_ifft"],
                    $name,
                    Lengths::near(&[$groups * $n]).most(3 * $groups * $n),
                    |case| (numbers(case, $n),),
                    |_, (x,)| (near_parts(x.chunks($n).flat_map(spectrum).collect()),),
                    |case, place, (x,), (out,)| {
                        let dims = Shape::exactly(case, $groups * $n / $items).dims(blocks(case));
                        spectra_of_warps::<$n, $items>::launch(place.stream, dims, x.get(), out.exact())
                    },
                ));
            )*};
        }
        warps! { "96, 3", 96, 3, 2; "160, 10", 160, 10, 3; "7, 7", 7, 7, 33; }
        macro_rules! blocks {
            ($($name:literal, $n:literal, $items:literal, $batch:literal;)*) => {$(
                all.push(subject(
                    &["block_fft", "block_ifft"],
                    $name,
                    Lengths::near(&[$batch * $n]).most(3 * $batch * $n),
                    |case| (numbers(case, $n),),
                    |_, (x,)| {
                        // A thread writes its results side by side, and they are strided in the spectrum.
                        let of_threads = |x: &[f32]| -> Vec<_> {
                            let (all, threads) = (spectrum(x), $n / $items);
                            (0..$n).map(|i| all[i / $items + i % $items * threads]).collect()
                        };
                        (near_parts(x.chunks($n).flat_map(of_threads).collect()),)
                    },
                    |case, place, (x,), (out,)| {
                        let dims = Shape::exactly(case, $batch * $n / $items).dims(blocks(case));
                        spectra_of_blocks::<$n, $items, $batch>::launch(place.stream, dims, x.get(), out.exact())
                    },
                ));
            )*};
        }
        blocks! { "240, 4, 2", 240, 4, 2; "49, 7, 3", 49, 7, 3; "26, 2, 5", 26, 2, 5; "512, 16, 1", 512, 16, 1; }
        all
    }
}
