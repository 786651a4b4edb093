//! Fourier transforms of a group of lanes.

use crate::element::{Complex, FftFloat};
use crate::simt::Block;
use crate::thread::{minus, plus, swapped, thread_fft, times};

/// Computes the discrete Fourier transforms of groups of lanes. Each group has its own: `X[k] = Σ x[j] * exp(-2πi * j * k / N)`.
///
/// A group has `N / ITEMS` lanes: 1, 2, 4, 8, 16 or 32. `ITEMS` is a product of 2, 3, 5, 7, 11 and 13, and so is `N`. The input is striped:
/// lane `l` of `L` has `x[l]`, `x[l + L]`, `x[l + 2 * L]` and so on. The result is blocked: lane `l` gets `ITEMS` numbers from
/// `X[l * ITEMS]`. The block must have whole groups. In a group that is not whole, lanes get unspecified values on a GPU, and are a fault
/// in the emulator.
///
/// Cost: a [`thread_fft`] of the lane's items; then, for each item, one shuffle and one product for each doubling of the lanes, and one
/// more shuffle. A shuffle of a complex `f32` is two instructions. No shared memory. The factors come from a table of `N` roots of unity,
/// which are rounded once. The table is part of the program.
///
/// cuFFTDx: `FFT<…, Thread>`. Differences: several lanes have one transform; striped before, and blocked after; the inverse is not divided
/// by the length.
///
/// All lanes of the warp call it: see [divergence](crate::warp#divergence).
///
/// ```
/// use kernel_primitives::prelude::*;
/// use kernel_primitives::warp::warp_fft;
///
/// /// The spectrum of each 12 items, by 4 lanes.
/// #[kernel]
/// fn spectra(cx: Block, x: Global<Complex<f32>>, mut out: GlobalMut<Complex<f32>, Tiles<3>>) {
///     for tile in cx.tiles::<3>(out.len()) {
///         let first = cx.thread_rank() as usize / 4 * 12 + cx.thread_rank() as usize % 4;
///         let items = core::array::from_fn(|i| x.get(tile.start() + first + 4 * i).unwrap_or_default());
///         write_data(cx, out.tile(tile), &warp_fft::<f32, 12, 3>(cx, &items));
///     }
/// }
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = kernel_primitives::Device::emulator().stream()?;
/// // Two cosines: three turns in 12 items, and six.
/// let x: Vec<Complex<f32>> = [1.0, 0.0, -1.0, 0.0].repeat(3).into_iter().map(Complex::from).collect();
/// let y: Vec<Complex<f32>> = [1.0, -1.0].repeat(6).into_iter().map(Complex::from).collect();
/// let mut out = stream.buffer_zeroed(24)?;
/// spectra::launch(&stream, (1, 8), &stream.buffer_from(&[x, y].concat())?, &mut out)?;
/// let powers: Vec<f32> = out.to_vec()?.iter().map(|x| x.norm_sqr().sqrt().round()).collect();
/// assert_eq!(powers[..12], [0.0, 0.0, 0.0, 6.0, 0.0, 0.0, 0.0, 0.0, 0.0, 6.0, 0.0, 0.0]);
/// assert_eq!(powers[12..], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 12.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn warp_fft<T: FftFloat, const N: usize, const ITEMS: usize>(
    cx: Block<'_>,
    items: &[Complex<T>; ITEMS],
) -> [Complex<T>; ITEMS] {
    const {
        let lanes = N / ITEMS;
        assert!(lanes * ITEMS == N && lanes.is_power_of_two() && lanes <= 32, "a group has 1, 2, 4, 8, 16 or 32 lanes");
    };
    let lanes = const { N / ITEMS };
    let lane = cx.lane() as usize % lanes;
    let mut items = thread_fft(items);
    // Item k of a lane now belongs to transform k over all lanes. The lanes compute these transforms together.
    for (k, item) in items.iter_mut().enumerate().skip(1) {
        // SAFETY: less than `lanes * ITEMS`.
        *item = times(*item, unsafe { T::root::<N>(lane * k) });
    }
    let (mask, width) = (cx.warp_mask(), lanes as u32);
    let mut half = lanes / 2;
    while half > 0 {
        // Sums go to the lower half of the lanes, and products of differences to the upper half.
        let upper = lane & half != 0;
        // SAFETY: less than `N / 2`.
        let root = unsafe { T::root::<N>(lane % half * (N / (2 * half))) };
        for item in &mut items {
            let other = cx.shuffle_xor(mask, *item, half as u32, width);
            *item = if upper { times(minus(other, *item), root) } else { plus(*item, other) };
        }
        half /= 2;
    }
    if lanes > 2 {
        // The lanes have the results in bit-reversed order.
        let bits = lanes.trailing_zeros();
        let source = (lane as u32).reverse_bits() >> ((32 - bits) % 32);
        for item in &mut items {
            *item = cx.shuffle(mask, *item, source, width);
        }
    }
    items
}

/// Computes the inverses of [`warp_fft`] times `N`. Each group has its own: `x[j] = Σ X[k] * exp(2πi * j * k / N)`.
///
/// Arrangements and cost are those of [`warp_fft`]: the input is striped, and the result is blocked.
///
/// cuFFTDx: `FFT<…, Thread>`.
///
/// All lanes of the warp call it: see [divergence](crate::warp#divergence).
#[inline(always)]
#[track_caller]
pub fn warp_ifft<T: FftFloat, const N: usize, const ITEMS: usize>(
    cx: Block<'_>,
    items: &[Complex<T>; ITEMS],
) -> [Complex<T>; ITEMS] {
    warp_fft::<T, N, ITEMS>(cx, &items.map(swapped)).map(swapped)
}
