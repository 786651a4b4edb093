//! The kernels. Cargo compiles this file for the host as a module of the crate, and `build.rs` compiles it for the GPU. So it
//! uses `kernel_primitives` and `core` only, and the host's part of the program is in other files. What those use is `pub`.

use kernel_primitives::functor::Greater;
use kernel_primitives::input::{Reversed, Span};
use kernel_primitives::prelude::*;

/// x ↦ x / (1 + |x|)
#[derive(Clone, Copy, Debug, KernelParam)]
pub struct Softsign;

impl UnaryFn<f32> for Softsign {
    type Output = f32;

    fn apply(&self, x: f32) -> f32 {
        x / (1.0 + x.abs())
    }
}

// Compiles a kernel of the library for a functor of this crate.
instantiate!(kernel_primitives::kernels::map_unary::<f32, f32, Softsign, 4>);

// Algorithms of the library for inputs of this crate's choice. The two launch some kernels in common.
instantiate!(
    kernel_primitives::algorithms::sort_by<Reversed<Span<u64>>, Greater>,
    kernel_primitives::algorithms::top_k<Reversed<Span<u64>>, Greater>
);

/// `y[i] = a * x[i] + y[i]`
#[kernel(equal_len(x, y))]
pub fn axpy(cx: Block, a: f32, x: Global<f32>, mut y: GlobalMut<f32>) {
    for i in cx.items(x.len()) {
        y.set(i, a * x[i] + y.get(i));
    }
}

/// 3x² − 2x³ between 0 and 1, for kernels that are written at run time.
#[device_function]
pub fn smooth(x: f32) -> f32 {
    let x = x.clamp(0.0, 1.0);
    x * x * (3.0 - 2.0 * x)
}
