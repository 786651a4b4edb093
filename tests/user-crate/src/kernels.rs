//! The kernels. This file is compiled for the host as a module of the crate, and for the GPU by `build.rs`; so it uses
//! `kernel_primitives` and `core` only, and the host's part of the program stands elsewhere.

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

// A kernel of the library for a functor of this crate.
instantiate!(kernel_primitives::kernels::elementwise_unary::<f32, f32, Softsign, 4>);

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
