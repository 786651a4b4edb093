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

#[cfg(not(target_arch = "nvptx64"))]
mod tests {
    use kernel_primitives::element::{FftFloat, root_of_unity};
    use kernel_primitives::{Buffer, Complex, ConvertTo, Result, Stream};

    use crate::families::fft as kernels;
    use crate::support::{Random, stream, streams};

    /// Returns `exp(-2πi * index / n)`, by the standard library's functions.
    fn root(index: usize, n: usize) -> Complex<f64> {
        // The angle is measured from the nearest quarter of a turn, so that it is small.
        let quarter = (4 * index + n / 2) / n;
        let angle = (4 * index as i64 - (quarter * n) as i64) as f64 / n as f64 * std::f64::consts::FRAC_PI_2;
        let (sin, cos) = angle.sin_cos();
        match quarter % 4 {
            0 => Complex::new(cos, -sin),
            1 => Complex::new(-sin, -cos),
            2 => Complex::new(-cos, sin),
            _ => Complex::new(sin, cos),
        }
    }

    /// A sum, with the rounding errors that it lost (Neumaier).
    #[derive(Clone, Copy, Default)]
    struct Sum(f64, f64);

    impl Sum {
        fn add(&mut self, x: f64) {
            let sum = self.0 + x;
            self.1 += if self.0.abs() >= x.abs() { self.0 - sum + x } else { x - sum + self.0 };
            self.0 = sum;
        }
    }

    /// Computes the discrete Fourier transform by its definition.
    fn direct(x: &[Complex<f64>]) -> Vec<Complex<f64>> {
        let n = x.len();
        let roots: Vec<_> = (0..n).map(|i| root(i, n)).collect();
        let result = |k: usize| {
            let (mut re, mut im) = (Sum::default(), Sum::default());
            for (j, x) in x.iter().enumerate() {
                let product = x * roots[j * k % n];
                re.add(product.re);
                im.add(product.im);
            }
            Complex::new(re.0 + re.1, im.0 + im.1)
        };
        (0..n).map(result).collect()
    }

    /// The shape of a kernel's transforms: their length, a thread's items, the number in a block, and the places of a thread's items.
    #[derive(Clone, Copy, Debug)]
    struct Shape {
        n: usize,
        items: usize,
        batch: usize,
        blocked: bool,
    }

    fn transforms<T: FftFloat + ConvertTo<f64>>(
        shape: Shape,
        launch: impl Fn(&Stream, u32, bool, &Buffer<Complex<T>>, &mut Buffer<Complex<T>>) -> Result<()>,
    ) -> Result<()>
    where
        f64: ConvertTo<T>,
    {
        let Shape { n, items, batch, blocked } = shape;
        // There is the work of three blocks for two blocks, so that one uses its storage again.
        let len = 3 * batch * n;
        let mut random = Random::new(n as u64);
        let mut unit = || -> T { (2.0 * random.unit() - 1.0).convert() };
        let x: Vec<Complex<T>> = (0..len).map(|_| Complex { re: unit(), im: unit() }).collect();
        let wide = |x: Complex<T>| -> Complex<f64> { Complex::new(x.re.convert(), x.im.convert()) };
        let swapped = |x: Complex<f64>| Complex::new(x.im, x.re);

        for inverse in [false, true] {
            let expected: Vec<Complex<f64>> = x
                .chunks(n)
                .flat_map(|x| {
                    let x: Vec<_> = x.iter().map(|&x| if inverse { swapped(wide(x)) } else { wide(x) }).collect();
                    direct(&x).into_iter().map(move |x| if inverse { swapped(x) } else { x })
                })
                .collect();
            for stream in streams()? {
                let mut out = stream.buffer_zeroed(len)?;
                launch(&stream, (batch * n / items) as u32, inverse, &stream.buffer_from(&x)?, &mut out)?;
                let out = out.to_vec()?;
                let threads = n / items;
                let (mut errors, mut all) = (0.0, 0.0);
                for (i, &found) in out.iter().enumerate() {
                    let (first, thread, item) = (i / n * n, i % n / items, i % items);
                    let place = if blocked { i } else { first + thread + item * threads };
                    errors += (wide(found) - expected[place]).norm_sqr();
                    all += expected[place].norm_sqr();
                }
                let error = (errors / all).sqrt() / ConvertTo::<f64>::convert(T::EPSILON);
                // This is the bound in the docs.
                let bound = 0.5 * (n as f64).log2().sqrt();
                assert!(error <= bound, "{shape:?}, inverse {inverse}: an error of {error} epsilons, and not {bound}");
            }
        }
        Ok(())
    }

    macro_rules! of_threads {
        ($($t:ty, $n:literal;)*) => {$(
            let shape = Shape { n: $n, items: $n, batch: 35, blocked: true };
            transforms::<$t>(shape, |stream, threads, inverse, x, out| {
                kernels::of_threads::<$t, $n>::launch(stream, (2, threads), inverse, x, out)
            })?;
        )*};
    }

    #[test]
    fn sanitize_threads_transform_their_items() -> Result<()> {
        of_threads! {
            f32, 1; f32, 2; f32, 3; f32, 4; f32, 5; f32, 7; f32, 8; f32, 11; f32, 13; f32, 16; f32, 30; f32, 32;
            f64, 6; f64, 9; f64, 12; f64, 14; f64, 15;
        }
        Ok(())
    }

    macro_rules! of_warps {
        ($($t:ty, $n:literal, $items:literal;)*) => {$(
            // There are one and a half warps. Groups of 32 lanes have two warps.
            let lanes = $n / $items;
            let shape = Shape { n: $n, items: $items, batch: if lanes == 32 { 2 } else { 48 / lanes }, blocked: true };
            transforms::<$t>(shape, |stream, threads, inverse, x, out| {
                kernels::of_warps::<$t, $n, $items>::launch(stream, (2, threads), inverse, x, out)
            })?;
        )*};
    }

    #[test]
    fn sanitize_groups_of_lanes_transform_their_items() -> Result<()> {
        of_warps! {
            f32, 3, 3; f32, 2, 1; f32, 20, 5; f32, 64, 2; f32, 256, 8; f32, 352, 11; f32, 64, 8; f32, 48, 3;
            f64, 32, 1; f64, 40, 10; f64, 224, 7;
        }
        Ok(())
    }

    macro_rules! of_blocks {
        ($($t:ty, $n:literal, $items:literal, $batch:literal;)*) => {$(
            let shape = Shape { n: $n, items: $items, batch: $batch, blocked: false };
            transforms::<$t>(shape, |stream, threads, inverse, x, out| {
                kernels::of_blocks::<$t, $n, $items, $batch>::launch(stream, (2, threads), inverse, x, out)
            })?;
        )*};
    }

    #[test]
    fn sanitize_blocks_transform_short_rows() -> Result<()> {
        of_blocks! {
            f32, 1, 1, 5; f32, 2, 1, 1; f32, 16, 16, 3; f32, 32, 32, 2; f32, 64, 4, 5; f32, 96, 3, 1; f32, 169, 13, 2;
            f64, 8, 2, 1;
        }
        Ok(())
    }

    #[test]
    fn blocks_transform_lengths_of_many_factors() -> Result<()> {
        of_blocks! { f32, 360, 8, 1; f32, 1001, 11, 1; f32, 2310, 30, 1; f64, 572, 4, 2; }
        Ok(())
    }

    #[test]
    fn blocks_transform_powers() -> Result<()> {
        of_blocks! { f32, 1000, 10, 1; f32, 2048, 16, 2; f32, 4096, 16, 1; f64, 729, 9, 1; f64, 1000, 10, 1; f64, 1024, 8, 2; }
        Ok(())
    }

    #[test]
    fn a_block_of_other_than_the_transforms_threads_is_a_fault() -> Result<()> {
        let stream = stream()?;
        let x = stream.buffer_zeroed(96)?;
        let mut out = stream.buffer_zeroed(96)?;
        let launched = kernels::of_blocks::<f32, 96, 3, 1>::launch(&stream, (1, 31), false, &x, &mut out);
        let error = launched.and_then(|()| stream.synchronize()).unwrap_err();
        assert!(error.to_string().contains("31"), "{error}");
        Ok(())
    }

    #[test]
    #[allow(clippy::excessive_precision, clippy::approx_constant, reason = "the digits of a table")]
    fn roots_of_unity_are_nearest_numbers() {
        for n in [1, 2, 3, 7, 8, 12, 97, 1000, 1 << 12, 1001 * 13] {
            for index in 0..n {
                let (found, near) = (root_of_unity(index, n), root(index, n));
                // The reference is off by a unit in the last place, because its angle and its function are rounded.
                let is_near = |a: f64, b: f64| (a - b).abs() <= 2.0 * f64::EPSILON * b.abs();
                assert!(is_near(found.re, near.re) && is_near(found.im, near.im), "{index} of {n}: {found} for {near}");
                assert_eq!(root_of_unity(index * 5, n * 5), found, "{index} of {n}, in other terms");
            }
        }
        assert_eq!(root_of_unity(3, 4), Complex::new(0.0, 1.0));
        // These are half the square root of three, half that of two, and the sine of a degree to 20 digits.
        assert_eq!(root_of_unity(1, 12).re, 0.866_025_403_784_438_646_76);
        assert_eq!(root_of_unity(5, 8).im, 0.707_106_781_186_547_524_40);
        assert_eq!(-root_of_unity(1, 360).im, 0.017_452_406_437_283_512_819);
    }

    #[test]
    fn the_most_passes_of_a_thread_leave_nothing_out() {
        // There are five factors. The compiler refuses more.
        let spectrum = kernel_primitives::thread::thread_fft(&[Complex::new(1.0f64, 0.0); 243]);
        assert!((spectrum[0].re - 243.0).abs() < 1e-9, "{}", spectrum[0]);
        assert!(spectrum[1..].iter().all(|x| x.re.hypot(x.im) < 1e-9));
    }
}
