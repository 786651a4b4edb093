//! Activation functions of neural networks.
//!
//! Functions with an exponential compute in the accumulation type, so for half types they round once, at the end.

use core::f64::consts::FRAC_1_SQRT_2;

use super::functors;
use crate::element::{Accumulate, Number, Real};

functors! {
    /// The larger of the argument and 0. NaN propagates.
    Relu: <T: Number> UnaryFn<T> -> T, |x| x.maximum(T::ZERO), in pairs |x| T::maximum_pair(x, [T::ZERO; 2]);
    /// 1 / (1 + e⁻ˣ), accurate for all arguments.
    Sigmoid: <T: Accumulate> UnaryFn<T> -> T where T::Accum: Real, |x| T::narrow(sigmoid(x.widen()));
    /// x / (1 + e⁻ˣ), also called Swish. The result for −∞ is −0.
    Silu: <T: Accumulate> UnaryFn<T> -> T where T::Accum: Real, |x| T::narrow(silu(x.widen()));
    /// x times the normal distribution function of x, by the complementary error function. It is accurate for all arguments. The result for
    /// −∞ is −0. (Hendrycks and Gimpel, "Gaussian error linear units", 2016.)
    Gelu: <T: Accumulate> UnaryFn<T> -> T where T::Accum: Real, |x| T::narrow(gelu(x.widen()));
    /// The approximation of [`Gelu`] by the hyperbolic tangent: x (1 + tanh(√(2/π) (x + 0.044715 x³))) / 2. The result for −∞ is −0.
    GeluTanh: <T: Accumulate> UnaryFn<T> -> T where T::Accum: Real, |x| T::narrow(gelu_tanh(x.widen()));
}

/// Computed from e to the power of −|x|, which does not overflow.
#[inline(always)]
fn sigmoid<A: Real>(x: A) -> A {
    let power = x.magnitude().neg().exp();
    let numerator = if x.less(A::ZERO) { power } else { A::ONE };
    numerator.divide(A::ONE.add(power))
}

/// `x` times a gate that goes to 0 faster than `x` goes to −∞.
#[inline(always)]
fn gated<A: Real>(x: A, gate: A) -> A {
    if x == A::NEG_INFINITY { A::ZERO.neg() } else { x.mul(gate) }
}

#[inline(always)]
fn silu<A: Real>(x: A) -> A {
    gated(x, sigmoid(x))
}

#[inline(always)]
fn gelu<A: Real>(x: A) -> A {
    gated(x, A::from_f64(0.5).mul(x.mul(A::from_f64(-FRAC_1_SQRT_2)).error_function_complement()))
}

#[inline(always)]
fn gelu_tanh<A: Real>(x: A) -> A {
    let cubic = x.add(x.mul(x).mul(x).mul(A::from_f64(0.044715)));
    // (1 + tanh u) / 2 is the sigmoid of 2u, which has no cancellation; the factor is 2√(2/π).
    gated(x, sigmoid(cubic.mul(A::from_f64(1.595_769_121_605_730_7))))
}
