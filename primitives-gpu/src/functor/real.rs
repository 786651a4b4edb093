//! Elementary functions.

use super::functors;
use crate::element::Real;

functors! {
    /// The square root, correctly rounded.
    Sqrt: <T: Real> UnaryFn<T> -> T, |x| x.sqrt();
    /// The reciprocal square root.
    Rsqrt: <T: Real> UnaryFn<T> -> T, |x| x.rsqrt();
    /// The cube root.
    Cbrt: <T: Real> UnaryFn<T> -> T, |x| x.cbrt();
    /// e to the power of the argument. Seed: `ExpFunctor`.
    Exp: <T: Real> UnaryFn<T> -> T, |x| x.exp();
    /// 2 to the power of the argument.
    Exp2: <T: Real> UnaryFn<T> -> T, |x| x.exp2();
    /// e to the power of the argument, minus 1, accurate near 0.
    ExpM1: <T: Real> UnaryFn<T> -> T, |x| x.exp_m1();
    /// The natural logarithm.
    Log: <T: Real> UnaryFn<T> -> T, |x| x.ln();
    /// The base 2 logarithm.
    Log2: <T: Real> UnaryFn<T> -> T, |x| x.log2();
    /// The base 10 logarithm.
    Log10: <T: Real> UnaryFn<T> -> T, |x| x.log10();
    /// The natural logarithm of the argument plus 1, accurate near 0.
    Log1p: <T: Real> UnaryFn<T> -> T, |x| x.ln_1p();
    /// The sine, of radians.
    Sin: <T: Real> UnaryFn<T> -> T, |x| x.sin();
    /// The cosine, of radians.
    Cos: <T: Real> UnaryFn<T> -> T, |x| x.cos();
    /// The tangent, of radians.
    Tan: <T: Real> UnaryFn<T> -> T, |x| x.tan();
    /// The arcsine, in radians.
    Asin: <T: Real> UnaryFn<T> -> T, |x| x.asin();
    /// The arccosine, in radians.
    Acos: <T: Real> UnaryFn<T> -> T, |x| x.acos();
    /// The arctangent, in radians.
    Atan: <T: Real> UnaryFn<T> -> T, |x| x.atan();
    /// The hyperbolic sine.
    Sinh: <T: Real> UnaryFn<T> -> T, |x| x.sinh();
    /// The hyperbolic cosine.
    Cosh: <T: Real> UnaryFn<T> -> T, |x| x.cosh();
    /// The hyperbolic tangent.
    Tanh: <T: Real> UnaryFn<T> -> T, |x| x.tanh();
    /// The inverse hyperbolic sine.
    Asinh: <T: Real> UnaryFn<T> -> T, |x| x.asinh();
    /// The inverse hyperbolic cosine.
    Acosh: <T: Real> UnaryFn<T> -> T, |x| x.acosh();
    /// The inverse hyperbolic tangent.
    Atanh: <T: Real> UnaryFn<T> -> T, |x| x.atanh();
    /// The error function.
    Erf: <T: Real> UnaryFn<T> -> T, |x| x.error_function();
    /// 1 minus the error function, accurate for large arguments.
    Erfc: <T: Real> UnaryFn<T> -> T, |x| x.error_function_complement();
    /// The largest integer not above the argument.
    Floor: <T: Real> UnaryFn<T> -> T, |x| x.floor();
    /// The smallest integer not below the argument.
    Ceil: <T: Real> UnaryFn<T> -> T, |x| x.ceil();
    /// The nearest integer, ties to even.
    Round: <T: Real> UnaryFn<T> -> T, |x| x.round_ties_even();
    /// The integer part.
    Trunc: <T: Real> UnaryFn<T> -> T, |x| x.trunc();

    /// The first argument to the power of the second.
    Pow: <T: Real> BinaryFn<T, T> -> T, |x, y| x.powf(y);
    /// The length of the hypotenuse.
    Hypot: <T: Real> BinaryFn<T, T> -> T, |x, y| x.hypot(y);
    /// The arctangent of the first over the second, in the quadrant of the two.
    Atan2: <T: Real> BinaryFn<T, T> -> T, |y, x| y.atan2(x);
}
