//! Kernels of mathematics.

use kernel_primitives::prelude::*;

use super::elementary::elementary;

/// The number of functions that are not in the table of elementary functions. Their numbers come first.
pub const OTHERS: u32 = 15;

macro_rules! numbered {
    ($($name:ident $variant:ident $method:ident $functions:tt $limits:tt $reference:expr;)*) => {
        /// The functions of the table.
        enum Elementary { $($variant),* }

        /// Calls the function with this number in the table.
        #[inline(always)]
        fn elementary_function<T: Real>(number: u32, x: T) -> T {
            match number {
                $(number if number == Elementary::$variant as u32 => x.$method(),)*
                _ => x,
            }
        }
    };
}
elementary!(numbered);

/// Calls the function of [`Real`] with the number `which` in the test's table.
#[kernel(equal_len(x, y, z, out), instantiate(<f32>, <f64>))]
pub fn math<T: Real>(cx: Block, which: u32, x: Global<T>, y: Global<T>, z: Global<T>, mut out: GlobalMut<T>) {
    for i in cx.items(out.len()) {
        let (a, b, c) = (x[i], y[i], z[i]);
        let value = match which {
            0 => a.sqrt(),
            1 => a.rsqrt(),
            2 => a.powf(b),
            3 => a.atan2(b),
            4 => a.hypot(b),
            5 => a.abs(),
            6 => a.floor(),
            7 => a.ceil(),
            8 => a.trunc(),
            9 => a.round_ties_even(),
            10 => a.round(),
            11 => a.mul_add(b, c),
            12 => a.copysign(b),
            13 => a.tgamma(),
            14 => a.lgamma(),
            _ => elementary_function(which.wrapping_sub(OTHERS), a),
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
