//! Functions of arithmetic and order.

use core::marker::PhantomData;

use super::{UnaryFn, functors, reducers};
use crate::element::{Arithmetic, ConvertTo, Divide, Float, KernelParam, Magnitude, Ordered, Quotient};

functors! {
    /// The argument. Seed: `IdentityFunctor`.
    Identity: <T> UnaryFn<T> -> T, |x| x;
    /// The negative; of unsigned integers it wraps. Seed: `InverseFunctor`.
    Neg: <T: Arithmetic> UnaryFn<T> -> T, |x| x.neg(), in pairs |x| T::neg_pair(x);
    /// The argument times itself. Seed: `SquareFunctor`.
    Square: <T: Arithmetic> UnaryFn<T> -> T, |x| x.mul(x), in pairs |x| T::mul_pair(x, x);
    /// One divided by the argument. A division of integers by zero is a fault.
    Reciprocal: <T: Divide> UnaryFn<T> -> T, |x| T::ONE.divide(x);
    /// The absolute value; of the smallest signed integer itself; of a complex number its length.
    Abs: <T: Magnitude> UnaryFn<T> -> T::Real, |x| x.magnitude();

    /// The sum; integers wrap. Identity 0, of floats −0, which leaves −0 as it is; the sum of nothing is +0. Seed: `AddFunctor`.
    Add: <T: Arithmetic> BinaryFn<T, T> -> T, |a, b| a.add(b), in pairs |a, b| T::add_pair(a, b);
    /// The difference; integers wrap. Seed: `SubFunctor`.
    Sub: <T: Arithmetic> BinaryFn<T, T> -> T, |a, b| a.sub(b), in pairs |a, b| T::sub_pair(a, b);
    /// The product; integers wrap. Identity 1. Seed: `MulFunctor`.
    Mul: <T: Arithmetic> BinaryFn<T, T> -> T, |a, b| a.mul(b), in pairs |a, b| T::mul_pair(a, b);
    /// The quotient: of floats by IEEE, of integers truncated. A division of integers by zero is a fault. Seed: `DivFunctor`.
    Div: <T: Divide> BinaryFn<T, T> -> T, |a, b| a.divide(b);
    /// The quotient rounded down. A division of integers by zero is a fault. Seed: `FloorDivFunctor`, which truncates.
    FloorDiv: <T: Quotient> BinaryFn<T, T> -> T, |a, b| a.floor_divide(b);
    /// The quotient rounded towards 0. A division of integers by zero is a fault.
    TruncDiv: <T: Quotient> BinaryFn<T, T> -> T, |a, b| a.trunc_divide(b);
    /// What [`FloorDiv`] leaves, with the sign of the divisor. A division of integers by zero is a fault.
    FloorRem: <T: Quotient> BinaryFn<T, T> -> T, |a, b| a.floor_remainder(b);
    /// What [`TruncDiv`] leaves, with the sign of the dividend. A division of integers by zero is a fault.
    TruncRem: <T: Quotient> BinaryFn<T, T> -> T, |a, b| a.trunc_remainder(b);
    /// The smaller value; NaN propagates, −0 is less than +0. Identity +∞ or the largest value. Seed: `MinFunctor`.
    Min: <T: Ordered> BinaryFn<T, T> -> T, |a, b| a.minimum(b), in pairs |a, b| T::minimum_pair(a, b);
    /// The larger value; NaN propagates, −0 is less than +0. Identity −∞ or the smallest value. Seed: `MaxFunctor`.
    Max: <T: Ordered> BinaryFn<T, T> -> T, |a, b| a.maximum(b), in pairs |a, b| T::maximum_pair(a, b);

    /// The product of the first two and the third added, rounded once.
    MulAdd: <T: Float> TernaryFn<T, T, T> -> T, |a, b, c| a.mul_add(b, c), in pairs |a, b, c| T::mul_add_pair(a, b, c);
}

reducers! {
    Add: Arithmetic, T, T::ADDS_NOTHING, Add, of_none T::ZERO;
    Mul: Arithmetic, T, T::ONE;
    Min: Ordered, T, T::GREATEST, Min;
    Max: Ordered, T, T::LEAST, Max;
}

/// The argument converted to `U`, by the rules of [`ConvertTo`].
///
/// ```
/// use kernel_primitives::{UnaryFn, functor::Cast};
/// assert_eq!(Cast::<u8>::new().apply(300.7f32), 255);
/// ```
#[derive(Debug, PartialEq, Eq)]
pub struct Cast<U>(PhantomData<fn() -> U>);

impl<U> Cast<U> {
    /// The conversion to `U`.
    pub const fn new() -> Self {
        Self(PhantomData)
    }
}

impl<U> Clone for Cast<U> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}
impl<U> Copy for Cast<U> {}

impl<U> Default for Cast<U> {
    fn default() -> Self {
        Self::new()
    }
}

// SAFETY: zero-sized.
unsafe impl<U: 'static> KernelParam for Cast<U> {}

impl<T: ConvertTo<U>, U> UnaryFn<T> for Cast<U> {
    type Output = U;
    #[inline(always)]
    fn apply(&self, x: T) -> U {
        x.convert()
    }
}
