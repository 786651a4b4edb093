//! The device functions of the library: elementary functions, and random numbers from a counter.
//!
//! Each is an ordinary function on the host. For kernels that are written at run time, it is a PTX function; see
//! [`device_function`](macro@crate::device_function). All exist for `f32` and for `f64`, as the end of the name says. None of them panics,
//! except [`division_by_zero()`] and [`index_out_of_bounds()`], whose purpose this is, and which are not in [`all`].
//!
//! | functions | |
//! |---|---|
//! | `sin`, `ln_1p`, `tanh`, `erf` and so on | every elementary function of expressions of one argument |
//! | `atan2`, `pow`, `powi`, `hypot`, `fmod`, `floor_div`, `floor_rem` | of two arguments |
//! | `exp10`, `tgamma`, `lgamma` | |
//! | `uniform`, `normal` | of a seed and an index |
//!
//! Host and GPU agree as far as [`Real`] says. `powi`, `fmod` and `uniform` give the same bits. `lgamma` and `tgamma` of libdevice have
//! errors of up to 10 units in the last place. Near the zeros of `lgamma`, the error is as many units in the last place of 1.
//!
//! ```
//! use kernel_primitives::kernels::functions::{self, hypot_f64, uniform_f32};
//!
//! assert_eq!(hypot_f64(3.0, 4.0), 5.0);
//! // Element 7 of the stream with the seed 2024.
//! assert!((0.0..1.0).contains(&uniform_f32(2024, 7)));
//!
//! let names: Vec<_> = functions::all().iter().map(|code| code.name()).collect();
//! assert!(names.contains(&"kernel_primitives::kernels::functions::hypot_f64"));
//! ```

use kernel_primitives::prelude::*;
use kernel_primitives::thread::{NormalF32, NormalF64, Philox, UniformF32, UniformF64};

macro_rules! functions {
    (
        [[$($other:ident),*] $($more:tt)*]
        $($(#[$doc:meta])* $name:ident $variant:ident $method:ident ($f32:ident $f64:ident) $real:tt;)*
    ) => {
        functions! {
            [$($other),*]
            $($more)*
            $($(#[$doc])* $f32, $f64 = Real::$method, x;)*
        }
    };
    ([$($other:ident),*] $($(#[$doc:meta])* $f32:ident, $f64:ident = $function:path, $($x:ident),+;)*) => {
        $(
            $(#[$doc])*
            #[device_function]
            pub fn $f32($($x: f32),+) -> f32 {
                $function($($x),+)
            }

            $(#[$doc])*
            #[device_function]
            pub fn $f64($($x: f64),+) -> f64 {
                $function($($x),+)
            }
        )*

        /// The descriptions of all functions of this module, for the host.
        #[cfg(not(target_arch = "nvptx64"))]
        pub fn all() -> Vec<&'static crate::FunctionCode> {
            vec![$($f32::info().code(), $f64::info().code(),)* $($other::info().code()),*]
        }
    };
}

// The functions of the table of elementary functions, and the others.
kernel_primitives::__elementary! { functions [
    // The source of these is below.
    [powi_f32, powi_f64, uniform_f32, uniform_f64, normal_f32, normal_f64]
    /// The arctangent of `y / x`, in the quadrant of the two.
    atan2_f32, atan2_f64 = Real::atan2, y, x;
    /// 10 to the power of `x`.
    exp10_f32, exp10_f64 = Real::exp10, x;
    /// `x` to the power of `y`.
    pow_f32, pow_f64 = Real::powf, x, y;
    /// The length of the hypotenuse.
    hypot_f32, hypot_f64 = Real::hypot, x, y;
    /// The remainder of a division whose whole quotient is rounded to 0, as Rust's `x % y`.
    fmod_f32, fmod_f64 = Quotient::trunc_remainder, x, y;
    /// The quotient, rounded down.
    floor_div_f32, floor_div_f64 = Quotient::floor_divide, x, y;
    /// The remainder of a division whose whole quotient is rounded down.
    floor_rem_f32, floor_rem_f64 = Quotient::floor_remainder, x, y;
    /// The gamma function.
    tgamma_f32, tgamma_f64 = Real::tgamma, x;
    /// The natural logarithm of the gamma function's absolute value.
    lgamma_f32, lgamma_f64 = Real::lgamma, x;
] }

/// `x` to a whole power, by repeated squaring. For an exponent larger than a few dozens, `pow_f32` is more accurate.
#[device_function]
pub fn powi_f32(x: f32, n: i32) -> f32 {
    powi(x, n)
}

/// `x` to a whole power, by repeated squaring. For an exponent larger than a few dozens, `pow_f64` is more accurate.
#[device_function]
pub fn powi_f64(x: f64, n: i32) -> f64 {
    powi(x, n)
}

fn powi<T: Real + Divide>(mut x: T, n: i32) -> T {
    let mut rest = n.unsigned_abs();
    let mut power = T::ONE;
    loop {
        if rest & 1 == 1 {
            power = power.mul(x);
        }
        rest >>= 1;
        if rest == 0 {
            break;
        }
        x = x.mul(x);
    }
    if n < 0 { T::ONE.divide(power) } else { power }
}

/// A random number with a uniform distribution from 0 to 1 (exclusive). It is element `index` of the numbers that stream 0 of the seed of
/// [`Philox`] gives as [`UniformF32`]. One draw gives four successive numbers.
#[device_function]
pub fn uniform_f32(seed: u64, index: u64) -> f32 {
    let [a, b, c, d] = UniformF32.apply(bits(seed, index / 4));
    let (a, b) = if index & 2 == 0 { (a, b) } else { (c, d) };
    if index & 1 == 0 { a } else { b }
}

/// A random number with a uniform distribution from 0 to 1 (exclusive). It is element `index` of the numbers that stream 0 of the seed of
/// [`Philox`] gives as [`UniformF64`]. One draw gives the numbers of an even index and of the next one.
#[device_function]
pub fn uniform_f64(seed: u64, index: u64) -> f64 {
    let [a, b] = UniformF64.apply(bits(seed, index / 2));
    if index & 1 == 0 { a } else { b }
}

/// A random number with the normal distribution of mean 0 and variance 1. It is element `index` of the numbers that stream 0 of the seed of
/// [`Philox`] gives as [`NormalF32`]. One draw gives four successive numbers.
#[device_function]
pub fn normal_f32(seed: u64, index: u64) -> f32 {
    let [a, b, c, d] = bits(seed, index / 4);
    let (a, b) = if index & 2 == 0 { (a, b) } else { (c, d) };
    // The other two numbers are not computed.
    let [x, y, ..] = NormalF32.apply([a, b, a, b]);
    if index & 1 == 0 { x } else { y }
}

/// A random number with the normal distribution of mean 0 and variance 1. It is element `index` of the numbers that stream 0 of the seed of
/// [`Philox`] gives as [`NormalF64`]. One draw gives the numbers of an even index and of the next one.
#[device_function]
pub fn normal_f64(seed: u64, index: u64) -> f64 {
    let [x, y] = NormalF64.apply(bits(seed, index / 2));
    if index & 1 == 0 { x } else { y }
}

#[inline(always)]
fn bits(seed: u64, draw: u64) -> [u32; 4] {
    Philox::new(seed, 0).skip(draw).draw()
}

/// Reports a division by zero and ends the thread. The kernel of an expression calls this instead of dividing.
#[device_function]
pub fn division_by_zero() -> bool {
    kernel_primitives::simt::division_by_zero()
}

/// Reports an index outside of `len` elements and ends the thread. The kernel of an expression calls this instead of reading.
#[device_function]
pub fn index_out_of_bounds(index: u64, len: u64) -> bool {
    kernel_primitives::simt::index_out_of_bounds(index, len)
}
