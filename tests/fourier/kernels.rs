//! Instantiations for inputs and functions of the tests.

#[allow(dead_code, reason = "each test binary uses a part")]
#[path = "../suite/kernels/types.rs"]
pub mod types;

use kernel_primitives::functor::{Identity, Mul, NormSquared, OfPair};
use kernel_primitives::input::{self, Constant, Reversed, Span, Zip};
use kernel_primitives::output::{Discard, SpanMut, Strided};
use kernel_primitives::prelude::*;

pub use types::*;

/// The input's items times a window.
pub type Windowed = input::Map<Zip<Span<f32>, Span<f32>>, OfPair<Mul>>;

instantiate!(
    kernel_primitives::algorithms::fft<f32, Windowed, NormSquared, f32>,
    kernel_primitives::algorithms::fft<f32, Constant<f32>, Identity, Discard<Complex<f32>>>,
    kernel_primitives::algorithms::fft<f64, Reversed<Span<Complex<f64>>>, Identity, Strided<SpanMut<Complex<f64>>>>,
);
