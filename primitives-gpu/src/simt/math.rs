//! Elementary functions of the floating-point types. On the GPU they are NVIDIA's libdevice; on the host they are the standard library, and
//! `libm` for the functions that it does not have.
//!
//! Square root, the functions that return whole numbers, `abs`, `fmod` and fused multiply-add are exact or correctly rounded on both
//! machines. The others differ by a few units in the last place: see the table in the docs of [`Real`]. The half types compute in `f32` and
//! round once, so most of their results are the nearest value.

use half::{bf16, f16};

use crate::element::{Accumulate, Float};

/// The elementary functions of one argument that all layers have. Each layer passes its own macro to this table, which makes the layer's
/// functions: the methods of [`Real`], the device functions of `kernel_primitives::kernels::functions`, and the operations, the functions
/// and the operators of `kernel_primitives::expr`. What is in brackets after the macro's name comes before the rows.
///
/// A row has the name of the function, of the operation and of the method, the device functions in `f32` and in `f64`, the functions of
/// libdevice in both, and the host's function. The tests have a table of their own: `tests/suite/kernels/simt/elementary.rs`.
#[doc(hidden)]
#[macro_export]
macro_rules! __elementary {
    ($($then:tt)::+ $([$($first:tt)*])?) => {
        $($then)::+! {
            $([$($first)*])?
            /// The cube root.
            cbrt Cbrt cbrt (cbrt_f32 cbrt_f64) (__nv_cbrtf __nv_cbrt, |x| x.cbrt());
            /// e to the power of the argument.
            exp Exp exp (exp_f32 exp_f64) (__nv_expf __nv_exp, |x| x.exp());
            /// 2 to the power of the argument.
            exp2 Exp2 exp2 (exp2_f32 exp2_f64) (__nv_exp2f __nv_exp2, |x| x.exp2());
            /// e to the power of the argument, minus 1, accurate near 0.
            exp_m1 ExpM1 exp_m1 (exp_m1_f32 exp_m1_f64) (__nv_expm1f __nv_expm1, |x| x.exp_m1());
            /// The natural logarithm.
            ln Ln ln (ln_f32 ln_f64) (__nv_logf __nv_log, |x| x.ln());
            /// The base 2 logarithm.
            log2 Log2 log2 (log2_f32 log2_f64) (__nv_log2f __nv_log2, |x| x.log2());
            /// The base 10 logarithm.
            log10 Log10 log10 (log10_f32 log10_f64) (__nv_log10f __nv_log10, |x| x.log10());
            /// The natural logarithm of the argument plus 1, accurate near 0.
            ln_1p Ln1p ln_1p (ln_1p_f32 ln_1p_f64) (__nv_log1pf __nv_log1p, |x| x.ln_1p());
            /// The sine, of radians.
            sin Sin sin (sin_f32 sin_f64) (__nv_sinf __nv_sin, |x| x.sin());
            /// The cosine, of radians.
            cos Cos cos (cos_f32 cos_f64) (__nv_cosf __nv_cos, |x| x.cos());
            /// The tangent, of radians.
            tan Tan tan (tan_f32 tan_f64) (__nv_tanf __nv_tan, |x| x.tan());
            /// The sine, of half turns: of π times the argument. The product is not rounded.
            sin_pi SinPi sin_pi (sin_pi_f32 sin_pi_f64) (__nv_sinpif __nv_sinpi, HostOnly::sin_pi);
            /// The cosine, of half turns: of π times the argument. The product is not rounded.
            cos_pi CosPi cos_pi (cos_pi_f32 cos_pi_f64) (__nv_cospif __nv_cospi, HostOnly::cos_pi);
            /// The arcsine, in radians.
            asin Asin asin (asin_f32 asin_f64) (__nv_asinf __nv_asin, |x| x.asin());
            /// The arccosine, in radians.
            acos Acos acos (acos_f32 acos_f64) (__nv_acosf __nv_acos, |x| x.acos());
            /// The arctangent, in radians.
            atan Atan atan (atan_f32 atan_f64) (__nv_atanf __nv_atan, |x| x.atan());
            /// The hyperbolic sine.
            sinh Sinh sinh (sinh_f32 sinh_f64) (__nv_sinhf __nv_sinh, |x| x.sinh());
            /// The hyperbolic cosine.
            cosh Cosh cosh (cosh_f32 cosh_f64) (__nv_coshf __nv_cosh, |x| x.cosh());
            /// The hyperbolic tangent.
            tanh Tanh tanh (tanh_f32 tanh_f64) (__nv_tanhf __nv_tanh, |x| x.tanh());
            /// The inverse hyperbolic sine.
            asinh Asinh asinh (asinh_f32 asinh_f64) (__nv_asinhf __nv_asinh, HostOnly::asinh);
            /// The inverse hyperbolic cosine.
            acosh Acosh acosh (acosh_f32 acosh_f64) (__nv_acoshf __nv_acosh, |x| if x < 1.0 { Float::NAN } else { HostOnly::acosh(x) });
            /// The inverse hyperbolic tangent.
            atanh Atanh atanh (atanh_f32 atanh_f64) (__nv_atanhf __nv_atanh, HostOnly::atanh);
            // The standard library has an unstable `f32::erf`, and a method of that name would warn.
            /// The error function, `erf` in C.
            erf Erf error_function (erf_f32 erf_f64) (__nv_erff __nv_erf, HostOnly::erf);
            /// 1 minus the error function, `erfc` in C: accurate for large arguments.
            erfc Erfc error_function_complement (erfc_f32 erfc_f64) (__nv_erfcf __nv_erfc, HostOnly::erfc);
        }
    };
}

macro_rules! math {
    (
        [$($other:tt)*]
        $($(#[$doc:meta])* $name:ident $variant:ident $method:ident $functions:tt ($single:ident $double:ident, $host:expr);)*
    ) => {
        math! {
            $($other)*
            $($(#[$doc])* $method() = $single, $double, $host;)*
        }
    };
    ($($(#[$doc:meta])* $name:ident($($arg:ident),*) = $f32:ident, $f64:ident, $host:expr;)*) => {
        /// Elementary functions, with the names of the standard library.
        ///
        /// On the host, `f32` and `f64` have inherent methods of most of these names, which give the same values. The standard library has
        /// more methods than these and those of [`Float`], such as `powi` and `sin_cos`. They do not exist when a kernel is compiled for a
        /// GPU.
        ///
        /// Square root and the functions that return whole numbers are exact or correctly rounded on both machines. The others have errors
        /// of a few units in the last place. NVIDIA lists the largest errors of libdevice that it has found (CUDA C++ Programming Guide,
        /// "Mathematical Functions"). They are up to 2 units for most functions, and more for these:
        ///
        /// | function | `f32` | `f64` |
        /// |---|---|---|
        /// | `tgamma` | 5 | 10 |
        /// | `lgamma` | 6, and more from −10.001 to −2.264 | 4, and more from −23.0001 to −2.2637 |
        /// | `error_function_complement` | 4 | 5 |
        /// | `acosh` | 4 | 3 |
        /// | `asinh` | 3 | 3 |
        /// | `powf`, `tan` | 4 | 2 |
        /// | `atan2`, `atanh`, `hypot`, `sinh` | 3 | 2 |
        ///
        /// The host's functions have errors of the same size, but not the same errors. `lgamma` crosses 0 between −3 and −2, and between
        /// most smaller whole numbers. There its error is large relative to the result. `f16` and `bf16` compute in `f32` and round once.
        pub trait Real: Float {
            $($(#[$doc])* fn $name(self $(, $arg: Self)*) -> Self;)*
        }

        // SAFETY: functions of libdevice, with its signatures; all are defined for all values.
        #[cfg(target_arch = "nvptx64")]
        unsafe extern "C" {
            $(
                safe fn $f32(x: f32 $(, $arg: f32)*) -> f32;
                safe fn $f64(x: f64 $(, $arg: f64)*) -> f64;
            )*
        }

        math!(@impl f32 $($name($($arg),*) = $f32, $host;)*);
        math!(@impl f64 $($name($($arg),*) = $f64, $host;)*);
        math!(@half f16 $($name($($arg),*);)*);
        math!(@half bf16 $($name($($arg),*);)*);
    };
    (@half $t:ident $($name:ident($($arg:ident),*);)*) => {
        impl Real for $t {
            $(
                #[inline(always)]
                fn $name(self $(, $arg: Self)*) -> Self {
                    Self::narrow(Real::$name(self.widen() $(, $arg.widen())*))
                }
            )*
        }
    };
    (@impl $t:ident $($name:ident($($arg:ident),*) = $device:ident, $host:expr;)*) => {
        impl Real for $t {
            $(
                fn $name(self $(, $arg: Self)*) -> Self {
                    #[cfg(target_arch = "nvptx64")]
                    return $device(self $(, $arg)*);
                    #[cfg(not(target_arch = "nvptx64"))]
                    {
                        let f: fn($t $(, math!(@type $t $arg))*) -> $t = $host;
                        f(self $(, $arg)*)
                    }
                }
            )*
        }
    };
    (@type $t:ident $arg:ident) => { $t };
}

// These rows are not in the table of all layers. They take two arguments, or expressions compute them by instructions or do not have them.
__elementary! { math [
    /// The square root, correctly rounded.
    sqrt() = __nv_sqrtf, __nv_sqrt, |x| x.sqrt();
    /// The reciprocal square root.
    rsqrt() = __nv_rsqrtf, __nv_rsqrt, |x| x.sqrt().recip();
    /// 10 to the power of the argument.
    exp10() = __nv_exp10f, __nv_exp10, HostOnly::exp10;
    /// This to a power.
    powf(exponent) = __nv_powf, __nv_pow, |x, y| x.powf(y);
    /// The arctangent of this over `x`, in the quadrant of the two.
    atan2(x) = __nv_atan2f, __nv_atan2, |y, x| y.atan2(x);
    /// The gamma function.
    tgamma() = __nv_tgammaf, __nv_tgamma, HostOnly::tgamma;
    /// The natural logarithm of the gamma function's absolute value.
    lgamma() = __nv_lgammaf, __nv_lgamma, HostOnly::lgamma;
    /// The length of the hypotenuse.
    hypot(other) = __nv_hypotf, __nv_hypot, |x, y| x.hypot(y);
    /// The absolute value.
    abs() = __nv_fabsf, __nv_fabs, |x| x.abs();
    /// The largest integer not above this.
    floor() = __nv_floorf, __nv_floor, |x| x.floor();
    /// The smallest integer not below this.
    ceil() = __nv_ceilf, __nv_ceil, |x| x.ceil();
    /// The integer part.
    trunc() = __nv_truncf, __nv_trunc, |x| x.trunc();
    /// The nearest integer, ties to even.
    round_ties_even() = __nv_rintf, __nv_rint, |x| x.round_ties_even();
    /// The nearest integer, ties away from 0.
    round() = __nv_roundf, __nv_round, |x| x.round();
] }

/// What the standard library lacks, or overflows in for large arguments. `libm::acosh` is wrong below 1, and some functions
/// of `f32` are better computed in `f64`.
#[cfg(not(target_arch = "nvptx64"))]
trait HostOnly {
    fn asinh(self) -> Self;
    fn acosh(self) -> Self;
    fn atanh(self) -> Self;
    fn erf(self) -> Self;
    fn erfc(self) -> Self;
    fn exp10(self) -> Self;
    fn tgamma(self) -> Self;
    fn lgamma(self) -> Self;
    fn sin_pi(self) -> Self;
    fn cos_pi(self) -> Self;
}

#[cfg(not(target_arch = "nvptx64"))]
macro_rules! host_only {
    ($($t:ty: $($name:ident = $function:expr),*;)*) => {$(
        impl HostOnly for $t {
            $(
                #[inline]
                fn $name(self) -> $t {
                    $function(self)
                }
            )*
        }
    )*};
}
#[cfg(not(target_arch = "nvptx64"))]
host_only! {
    f32: asinh = libm::asinhf, acosh = libm::acoshf, atanh = libm::atanhf, erf = libm::erff, erfc = libm::erfcf,
        exp10 = |x| libm::exp10(f64::from(x)) as f32, tgamma = libm::tgammaf,
        lgamma = |x| libm::lgamma(f64::from(x)) as f32,
        sin_pi = |x| sin_pi(f64::from(x)) as f32, cos_pi = |x| cos_pi(f64::from(x)) as f32;
    f64: asinh = libm::asinh, acosh = acosh, atanh = libm::atanh, erf = libm::erf, erfc = libm::erfc,
        exp10 = libm::exp10, tgamma = libm::tgamma, lgamma = libm::lgamma,
        sin_pi = sin_pi, cos_pi = cos_pi;
}

/// That of `libm` is a number for some that are less than 1.
#[cfg(not(target_arch = "nvptx64"))]
fn acosh(x: f64) -> f64 {
    if x < 1.0 { f64::NAN } else { libm::acosh(x) }
}

/// The sine of `x` half turns. For a whole number it is a zero with the number's sign, and for an infinity the product is NaN.
#[cfg(not(target_arch = "nvptx64"))]
fn sin_pi(x: f64) -> f64 {
    if x == x.trunc() { x * 0.0 } else { sin_of_half_turns(x, 0) }
}

/// The cosine of `x` half turns. Its zeros are positive: the sum with 0 changes only a negative one.
#[cfg(not(target_arch = "nvptx64"))]
fn cos_pi(x: f64) -> f64 {
    sin_of_half_turns(x, 1) + 0.0
}

/// The sine of `x + quarters / 2` half turns, but for the signs of zeros.
#[cfg(not(target_arch = "nvptx64"))]
fn sin_of_half_turns(x: f64, quarters: i32) -> f64 {
    // Exact: what is left is at most a quarter of a half turn.
    let turn = x % 2.0;
    let nearest = (2.0 * turn).round();
    let rest = (turn - 0.5 * nearest) * core::f64::consts::PI;
    match (nearest as i32 + quarters) & 3 {
        0 => rest.sin(),
        1 => rest.cos(),
        2 => -rest.sin(),
        _ => -rest.cos(),
    }
}

// SAFETY: functions of libdevice, with its signatures; all are defined for all values.
#[cfg(target_arch = "nvptx64")]
unsafe extern "C" {
    safe fn __nv_fmaf(x: f32, y: f32, z: f32) -> f32;
    safe fn __nv_fma(x: f64, y: f64, z: f64) -> f64;
    safe fn __nv_fmodf(x: f32, y: f32) -> f32;
    safe fn __nv_fmod(x: f64, y: f64) -> f64;
}

/// Functions that are exact or rounded once, for the traits of the elements.
macro_rules! exact {
    ($($t:ty: $name:ident($($arg:ident),*) = $device:ident, $host:expr;)*) => {$(
        pub(crate) fn $name($($arg: $t),*) -> $t {
            #[cfg(target_arch = "nvptx64")]
            return $device($($arg),*);
            #[cfg(not(target_arch = "nvptx64"))]
            $host
        }
    )*};
}
exact! {
    f32: fma_f32(x, y, z) = __nv_fmaf, x.mul_add(y, z);
    f64: fma_f64(x, y, z) = __nv_fma, x.mul_add(y, z);
    f32: fmod_f32(x, y) = __nv_fmodf, x % y;
    f64: fmod_f64(x, y) = __nv_fmod, x % y;
}
