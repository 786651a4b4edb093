//! Fourier transforms.

use super::{Shape, blocks};
use crate::case::{Case, Lengths};
use crate::data::floats;
use crate::kernels::fft::{spectra_of_blocks, spectra_of_warps};
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
