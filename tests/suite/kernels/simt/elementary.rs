//! The table of the elementary functions of one argument, for the tests of three binaries: `suite`, `functions` and `expr`.

/// Passes the table to a macro. What is in brackets after the macro's name comes before the rows.
///
/// A row has the name of the function, of a variant for it, and of the method of `Real`. Then it has:
///
/// - the device functions in `f32` and in `f64`, and the function of `libm`. They are compared on the host, where most functions are those
///   of `std`. `tests/functions/known.rs` has values of the functions that are `libm`'s on the host, too.
/// - the largest errors of the method in `f32` and in `f64`, in units in the last place, and the range of the arguments. The errors are
///   those of the CUDA programming guide, plus one for the reference, or plus two for a reference of `libm` in `f64`.
/// - the reference in `f64`. This is the function of `std`, or that of `libm` if `std` does not have it.
///
/// `sin_pi` and `cos_pi` are not here. The tests have a reference for them that is exact at the zeros.
macro_rules! elementary {
    ($then:ident $([$($first:tt)*])?) => {
        $then! {
            $([$($first)*])?
            cbrt Cbrt cbrt (cbrt_f32 cbrt_f64 libm::cbrt) (2 2, -1e30 1e30) f64::cbrt;
            exp Exp exp (exp_f32 exp_f64 libm::exp) (3 2, -80.0 80.0) f64::exp;
            exp2 Exp2 exp2 (exp2_f32 exp2_f64 libm::exp2) (3 2, -120.0 120.0) f64::exp2;
            exp_m1 ExpM1 exp_m1 (exp_m1_f32 exp_m1_f64 libm::expm1) (2 2, -10.0 10.0) f64::exp_m1;
            ln Ln ln (ln_f32 ln_f64 libm::log) (2 2, 1e-30 1e30) f64::ln;
            log2 Log2 log2 (log2_f32 log2_f64 libm::log2) (2 2, 1e-30 1e30) f64::log2;
            log10 Log10 log10 (log10_f32 log10_f64 libm::log10) (3 2, 1e-30 1e30) f64::log10;
            ln_1p Ln1p ln_1p (ln_1p_f32 ln_1p_f64 libm::log1p) (2 2, -0.9 10.0) f64::ln_1p;
            sin Sin sin (sin_f32 sin_f64 libm::sin) (3 3, -1e4 1e4) f64::sin;
            cos Cos cos (cos_f32 cos_f64 libm::cos) (3 3, -1e4 1e4) f64::cos;
            tan Tan tan (tan_f32 tan_f64 libm::tan) (5 3, -1e4 1e4) f64::tan;
            asin Asin asin (asin_f32 asin_f64 libm::asin) (3 3, -1.0 1.0) f64::asin;
            acos Acos acos (acos_f32 acos_f64 libm::acos) (3 3, -1.0 1.0) f64::acos;
            atan Atan atan (atan_f32 atan_f64 libm::atan) (3 3, -1e3 1e3) f64::atan;
            sinh Sinh sinh (sinh_f32 sinh_f64 libm::sinh) (4 3, -20.0 20.0) f64::sinh;
            cosh Cosh cosh (cosh_f32 cosh_f64 libm::cosh) (3 2, -20.0 20.0) f64::cosh;
            tanh Tanh tanh (tanh_f32 tanh_f64 libm::tanh) (3 2, -10.0 10.0) f64::tanh;
            asinh Asinh asinh (asinh_f32 asinh_f64 libm::asinh) (4 5, -1e10 1e10) libm::asinh;
            // That of `libm` is a number for some arguments below 1.
            acosh Acosh acosh (acosh_f32 acosh_f64 |x| if x < 1.0 { f64::NAN } else { libm::acosh(x) }) (5 5, 1.0 1e3)
                |x| if x < 1.0 { f64::NAN } else { libm::acosh(x) };
            atanh Atanh atanh (atanh_f32 atanh_f64 libm::atanh) (4 4, -1.0 1.0) libm::atanh;
            erf Erf error_function (erf_f32 erf_f64 libm::erf) (3 3, -4.0 4.0) libm::erf;
            erfc Erfc error_function_complement (erfc_f32 erfc_f64 libm::erfc) (5 7, -4.0 9.0) libm::erfc;
        }
    };
}
pub(crate) use elementary;
