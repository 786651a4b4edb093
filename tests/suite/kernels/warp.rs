//! Kernels with collectives of a warp.

use super::{Compose, Last, Map, Triangular};
use kernel_primitives::prelude::*;

/// Reduces each warp's values, and writes the result for each thread, in several rounds.
#[kernel(instantiate(
    <f32, Add>, <f64, Mul>, <f16, Add>, <bf16, Max>, <i32, Min>, <i32, Add>, <u32, Max>, <u32, Add>, <u32, Mul>, <u8, Add>,
    <i64, Min>, <f32, Max>, <f16, Min>, <u8, Last>, <Map<u32>, Compose>, <Map<u64>, Compose>, <Triangular, Compose>,
))]
pub fn warp_reduced<T: Element, R: Reducer<T> + KernelParam>(cx: Block, x: Global<T>, mut out: GlobalMut<T>, op: R) {
    for i in cx.items(out.len()) {
        out.set(i, warp_reduce(cx, x[i], op));
    }
}

/// Reduces by only one warp of the block.
#[kernel]
pub fn second_warp_reduced(cx: Block, x: Global<f32>, mut out: GlobalMut<f32>) {
    for i in cx.items(out.len()) {
        let value = if cx.warp() == 1 { warp_reduce(cx, x[i], Add) } else { -1.0 };
        out.set(i, value);
    }
}

/// A user's functor with a parameter.
#[derive(Clone, Copy, KernelParam)]
#[repr(C)]
pub struct AddModulo {
    pub modulus: u32,
}

impl BinaryFn<u32> for AddModulo {
    type Output = u32;
    #[inline(always)]
    fn apply(&self, a: u32, b: u32) -> u32 {
        (a + b) % self.modulus.max(1)
    }
}

impl Reducer<u32> for AddModulo {
    #[inline(always)]
    fn identity(&self) -> u32 {
        0
    }
}

instantiate!(warp_reduced::<u32, AddModulo>);
