//! Device functions, and a kernel, in the form that a user writes.

use kernel_primitives::kernels::functions::sin_f32;
use kernel_primitives::prelude::*;

/// Takes arguments of every type, and calls a function of the library.
#[device_function]
pub fn mixed(a: bool, b: i8, c: u16, d: i32, e: u64, f: f32) -> f64 {
    let whole = i64::from(b) + i64::from(c) + i64::from(d) + e as i64;
    if a { whole as f64 } else { f64::from(sin_f32(f)) }
}

/// Returns a narrow result.
#[device_function]
pub fn half_of(a: i8) -> i8 {
    a / 2
}

/// Reads values from a table, which is a constant of the module.
#[device_function]
pub fn prime(index: u32) -> u16 {
    const PRIMES: [u16; 12] = [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37];
    PRIMES.get(index as usize).copied().unwrap_or(0)
}

/// Divides, and can panic.
#[device_function]
pub fn quotient(a: u32, b: u32) -> u32 {
    assert!(b < 100, "too large");
    a / b
}

/// Calls itself. This is Ackermann and Péter's function.
#[device_function]
pub fn ackermann(m: u32, n: u32) -> u32 {
    match (m, n) {
        (0, n) => n + 1,
        (m, 0) => ackermann(m - 1, 1),
        (m, n) => ackermann(m - 1, ackermann(m, n - 1)),
    }
}

/// One of two functions that call each other. This is Hofstadter's female sequence.
#[device_function]
pub fn female(n: u32) -> bool {
    #[inline(never)]
    fn f(n: u32) -> u32 {
        if n == 0 { 1 } else { n - m(f(n - 1)) }
    }
    #[inline(never)]
    fn m(n: u32) -> u32 {
        if n == 0 { 0 } else { n - f(m(n - 1)) }
    }
    f(n) > m(n)
}

/// Has a name that generated code might have, in a build where this function exists.
#[cfg(not(any()))]
#[device_function]
pub fn entry(p0: f32, _: f32, mut y: f32) -> f32 {
    y += 1.0;
    p0 - y
}

#[cfg(any())]
#[device_function]
pub fn absent(x: f32) -> f32 {
    x
}

macro_rules! squares {
    ($($name:ident: $t:ty;)*) => {$(
        #[device_function]
        pub fn $name(x: $t) -> $t {
            x * x
        }
    )*};
}
squares! { square_f32: f32; square_f64: f64; }

/// A functor that other crates do not see.
#[derive(Clone, Copy, KernelParam)]
pub(crate) struct Halve;

impl Halve {
    fn apply(self, x: f32) -> f32 {
        x / 2.0
    }
}

/// Is more public than its functor.
#[kernel]
pub fn halve(cx: Block, op: Halve, mut y: GlobalMut<f32>) {
    for i in cx.items(y.len()) {
        y.set(i, op.apply(y.get(i)));
    }
}
