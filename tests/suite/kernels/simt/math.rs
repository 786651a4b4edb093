//! Kernels of mathematics.

use kernel_primitives::prelude::*;

/// Calls the function of [`Real`] with the number `which` in the test's table.
#[kernel(equal_len(x, y, z, out), instantiate(<f32>, <f64>))]
pub fn math<T: Real>(cx: Block, which: u32, x: Global<T>, y: Global<T>, z: Global<T>, mut out: GlobalMut<T>) {
    for i in cx.items(out.len()) {
        let (a, b, c) = (x[i], y[i], z[i]);
        let value = match which {
            0 => a.sqrt(),
            1 => a.rsqrt(),
            2 => a.cbrt(),
            3 => a.exp(),
            4 => a.exp2(),
            5 => a.exp_m1(),
            6 => a.ln(),
            7 => a.log2(),
            8 => a.log10(),
            9 => a.ln_1p(),
            10 => a.powf(b),
            11 => a.sin(),
            12 => a.cos(),
            13 => a.tan(),
            14 => a.asin(),
            15 => a.acos(),
            16 => a.atan(),
            17 => a.atan2(b),
            18 => a.sinh(),
            19 => a.cosh(),
            20 => a.tanh(),
            21 => a.hypot(b),
            22 => a.abs(),
            23 => a.floor(),
            24 => a.ceil(),
            25 => a.trunc(),
            26 => a.round_ties_even(),
            27 => a.round(),
            28 => a.mul_add(b, c),
            29 => a.copysign(b),
            30 => a.acosh(),
            31 => a.asinh(),
            32 => a.atanh(),
            33 => a.error_function(),
            34 => a.error_function_complement(),
            35 => a.tgamma(),
            _ => a.lgamma(),
        };
        out.set(i, value);
    }
}

/// Writes quotients, and products plus sums with two roundings.
#[kernel(equal_len(x, y, out))]
pub fn divide_f32(cx: Block, x: Global<f32>, y: Global<f32>, mut out: GlobalMut<[f32; 2]>) {
    for i in cx.items(out.len()) {
        out.set(i, [x[i] / y[i], x[i] * y[i] + x[i]]);
    }
}

/// Does the same as [`divide_f32`].
#[kernel(equal_len(x, y, out))]
pub fn divide_f64(cx: Block, x: Global<f64>, y: Global<f64>, mut out: GlobalMut<[f64; 2]>) {
    for i in cx.items(out.len()) {
        out.set(i, [x[i] / y[i], x[i] * y[i] + x[i]]);
    }
}
