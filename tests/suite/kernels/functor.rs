//! Functors of a user, and the library's kernels compiled for them.

use kernel_primitives::functor::{Cast, Div, Fold, LessThan, Neg, Reciprocal, Select, Square, Sub};
use kernel_primitives::kernels;
use kernel_primitives::prelude::*;

/// Maps `x` to `a * x + b`. It has state.
#[derive(Clone, Copy, KernelParam)]
#[repr(C)]
pub struct Affine {
    pub a: f32,
    pub b: f32,
}

impl UnaryFn<f32> for Affine {
    type Output = f32;
    #[inline(always)]
    fn apply(&self, x: f32) -> f32 {
        self.a * x + self.b
    }
}

/// Divides a number by other numbers. A division by 0 is a fault.
#[derive(Clone, Copy, KernelParam)]
pub struct Quotients;

impl Quotients {
    const OF: i32 = 5040;
}

impl NaryFn<i32, 2> for Quotients {
    type Output = i32;
    #[inline(always)]
    fn apply(&self, items: [i32; 2]) -> i32 {
        Div.apply(Div.apply(Self::OF, items[0]), items[1])
    }
}

impl TernaryFn<i32, i32, i32> for Quotients {
    type Output = i32;
    #[inline(always)]
    fn apply(&self, a: i32, b: i32, c: i32) -> i32 {
        Div.apply(NaryFn::apply(self, [a, b]), c)
    }
}

/// The sum of the quotients.
impl Reduction<i32> for Quotients {
    type Accum = i32;
    type Output = i32;
    #[inline(always)]
    fn identity(&self) -> i32 {
        0
    }
    #[inline(always)]
    fn pre(&self, item: i32, _: u64) -> i32 {
        Div.apply(Self::OF, item)
    }
    #[inline(always)]
    fn combine(&self, a: i32, b: i32) -> i32 {
        a + b
    }
    #[inline(always)]
    fn post(&self, total: i32, _: u64) -> i32 {
        total
    }
}

instantiate!(
    kernels::map_unary::<i32, i32, Reciprocal, 4>,
    kernels::map_binary::<i32, i32, Div, 4>,
    kernels::broadcast_binary::<i32, i32, Div, u32, 4>,
    kernels::map_ternary::<i32, i32, i32, i32, Quotients, 4>,
    kernels::map_any::<i32, i32, Quotients, 2, 4>,
    kernels::reduce_higher_dim::<i32, Quotients, 4>,
    kernels::map_unary::<f32, f32, Affine, 4>,
    kernels::map_unary::<f32, f32, Affine, 1>,
    kernels::map_unary::<f16, f32, Cast<f32>, 8>,
    kernels::map_unary::<bf16, f32, Cast<f32>, 4>,
    kernels::map_unary::<f32, f16, Cast<f16>, 4>,
    kernels::map_unary::<f32, bf16, Cast<bf16>, 2>,
    kernels::map_unary::<f16, f16, Neg, 8>,
    kernels::map_unary::<bf16, bf16, Neg, 8>,
    kernels::map_unary::<f16, f16, Square, 7>,
    kernels::map_unary::<bf16, bf16, Square, 7>,
    kernels::map_binary::<f32, bool, LessThan, 4>,
    kernels::map_binary::<i64, bool, LessThan, 3>,
    kernels::map_binary::<f32, f32, Sub, 3>,
    kernels::map_binary::<f64, f64, Sub, 1>,
    kernels::map_binary::<u8, u8, Add, 16>,
    kernels::map_binary::<i64, i64, Mul, 2>,
    kernels::map_binary::<u64, u64, Max, 2>,
    kernels::map_binary::<i8, i8, Min, 3>,
    kernels::map_binary::<i16, i16, Mul, 8>,
    kernels::map_ternary::<bool, f64, f64, f64, Select, 2>,
    kernels::map_any::<u16, u16, Fold<Max>, 4, 8>,
);

/// `out = a * x + y` by closures. The first one captures a value.
#[kernel(equal_len(x, y, out))]
pub fn axpy_by_closures(cx: Block, a: f32, x: Global<f32>, y: Global<f32>, mut out: GlobalMut<f32, Tiles<4>>) {
    for tile in cx.tiles::<4>(out.len()) {
        let mut u = init::<f32, 4>(0.0);
        let mut v = init::<f32, 4>(0.0);
        read_data(cx, &mut u, x.tile(tile));
        read_data(cx, &mut v, y.tile(tile));
        let scaled = elementwise_unary(&u, |x: f32| a * x);
        write_data(cx, out.tile(tile), &elementwise_binary(&scaled, &v, |s: f32, y: f32| s + y));
    }
}

/// Uses a function of two types: the second argument shifts the first.
#[kernel]
pub fn shift_left(cx: Block, x: Global<u64>, by: Global<u8>, mut out: GlobalMut<u64, Tiles<2>>) {
    for tile in cx.tiles::<2>(out.len()) {
        let mut values = init::<u64, 2>(0);
        let mut shifts = init::<u8, 2>(0);
        read_data(cx, &mut values, x.tile(tile));
        read_data(cx, &mut shifts, by.tile(tile));
        let shifted = elementwise_binary(&values, &shifts, |value: u64, shift: u8| value.wrapping_shl(shift as u32));
        write_data(cx, out.tile(tile), &shifted);
    }
}
