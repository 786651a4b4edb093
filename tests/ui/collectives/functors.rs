//! Functors of the wrong kind.

use kernel_primitives::prelude::*;

struct Half;

impl UnaryFn<f32> for Half {
    type Output = f32;
    fn apply(&self, x: f32) -> f32 {
        x / 2.0
    }
}

fn of_another_type() {
    elementwise_unary(&[1.0f64], Half); //~ `Half` is no function of one `f64`
    //~^ found `Half`
}

fn of_one_argument() {
    elementwise_binary(&[1.0f32], &[2.0f32], Half); //~ `Half` is no function of `f32` and `f32`
    //~^ found `Half`
}

fn without_identity(cx: Block<'_>) -> f32 {
    warp_reduce(cx, 1.0f32, |a: f32, b: f32| a + b) //~ a reduction needs `BinaryFn<f32, Output = f32>` and an identity
}

fn main() {}
