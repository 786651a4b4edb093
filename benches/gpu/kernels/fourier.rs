//! The convolution of windowed rows with a filter, by its transform: in one kernel, and the two products that it takes apart.

use core::ops::Mul;

use kernel_primitives::block::{FftStorage, block_fft, block_ifft};
use kernel_primitives::prelude::*;

/// Numbers of a row.
pub const ROW: usize = 1024;

/// Rows times one row of factors.
#[kernel(threads(64), min_blocks(16), instantiate(<f32>, <Complex<f32>>))]
pub fn weighted_rows<F: Element>(
    cx: Block,
    x: Global<Complex<f32>>,
    factors: Global<F>,
    mut out: GlobalMut<Complex<f32>, Striped<16>>,
) where
    Complex<f32>: Mul<F, Output = Complex<f32>>,
{
    let (mut items, mut by) = (init::<_, 16>(Complex::ZERO), [factors[0]; 16]);
    load_striped(cx, &mut by, factors);
    for tile in cx.tiles::<16>(out.len()) {
        load_striped(cx, &mut items, x.tile(tile));
        store_striped(cx, out.tile(tile), &core::array::from_fn(|i| items[i] * by[i]));
    }
}

/// Rows times a window, convolved with a filter, whose transform is `response`, divided by the length.
#[kernel(threads(64), min_blocks(12))]
pub fn convolved_rows(
    cx: Block,
    x: Global<Complex<f32>>,
    window: Global<f32>,
    response: Global<Complex<f32>>,
    mut out: GlobalMut<Complex<f32>, Striped<16>>,
    mut shared: Shared<FftStorage<f32, ROW, 16>>,
) {
    let (mut items, mut weights) = (init::<_, 16>(Complex::ZERO), init::<_, 16>(0.0));
    for tile in cx.tiles::<16>(out.len()) {
        load_striped(cx, &mut items, x.tile(tile));
        load_striped(cx, &mut weights, window);
        let windowed = core::array::from_fn(|i| items[i] * weights[i]);
        let spectrum = block_fft(cx, &mut shared, &windowed);
        load_striped(cx, &mut items, response);
        let product = core::array::from_fn(|i| spectrum[i] * items[i]);
        store_striped(cx, out.tile(tile), &block_ifft(cx, &mut shared, &product));
    }
}
