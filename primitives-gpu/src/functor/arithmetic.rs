//! Functions of arithmetic and order.

use core::marker::PhantomData;

use super::{UnaryFn, functors, reducers};
use crate::element::{Arithmetic, ConvertTo, Divide, Float, KernelParam, Magnitude, Ordered, Quotient};

functors! {
    /// The argument. Seed: `IdentityFunctor`.
    Identity: <T> UnaryFn<T> -> T, |x| x;
    /// The negative. Unsigned integers wrap. Seed: `InverseFunctor`.
    Neg: <T: Arithmetic> UnaryFn<T> -> T, |x| x.neg(), in pairs |x| T::neg_pair(x);
    /// The argument times itself. Seed: `SquareFunctor`.
    Square: <T: Arithmetic> UnaryFn<T> -> T, |x| x.mul(x), in pairs |x| T::mul_pair(x, x);
    /// One divided by the argument. An integer division by zero is a fault.
    Reciprocal: <T: Divide> UnaryFn<T> -> T, |x| T::ONE.divide(x);
    /// The absolute value. For the smallest signed integer, it is that integer itself; for a complex number, it is the length.
    Abs: <T: Magnitude> UnaryFn<T> -> T::Real, |x| x.magnitude();

    /// The sum; integers wrap. The identity is 0, or −0 for floats, which does not change −0. The sum of no items is +0. Seed:
    /// `AddFunctor`.
    Add: <T: Arithmetic> BinaryFn<T, T> -> T, |a, b| a.add(b), in pairs |a, b| T::add_pair(a, b);
    /// The difference; integers wrap. Seed: `SubFunctor`.
    Sub: <T: Arithmetic> BinaryFn<T, T> -> T, |a, b| a.sub(b), in pairs |a, b| T::sub_pair(a, b);
    /// The product; integers wrap. The identity is 1. Seed: `MulFunctor`.
    Mul: <T: Arithmetic> BinaryFn<T, T> -> T, |a, b| a.mul(b), in pairs |a, b| T::mul_pair(a, b);
    /// The quotient. Floats use IEEE division; integers truncate. An integer division by zero is a fault. Seed: `DivFunctor`.
    Div: <T: Divide> BinaryFn<T, T> -> T, |a, b| a.divide(b);
    /// The quotient rounded down. An integer division by zero is a fault. Seed: `FloorDivFunctor`, which truncates.
    FloorDiv: <T: Quotient> BinaryFn<T, T> -> T, |a, b| a.floor_divide(b);
    /// The quotient rounded towards 0. An integer division by zero is a fault.
    TruncDiv: <T: Quotient> BinaryFn<T, T> -> T, |a, b| a.trunc_divide(b);
    /// The remainder of [`FloorDiv`], with the sign of the divisor. An integer division by zero is a fault.
    FloorRem: <T: Quotient> BinaryFn<T, T> -> T, |a, b| a.floor_remainder(b);
    /// The remainder of [`TruncDiv`], with the sign of the dividend. An integer division by zero is a fault.
    TruncRem: <T: Quotient> BinaryFn<T, T> -> T, |a, b| a.trunc_remainder(b);
    /// The smaller value. NaN propagates, and −0 is less than +0. The identity is +∞ or the largest value. Seed: `MinFunctor`.
    Min: <T: Ordered> BinaryFn<T, T> -> T, |a, b| a.minimum(b), in pairs |a, b| T::minimum_pair(a, b);
    /// The larger value. NaN propagates, and −0 is less than +0. The identity is −∞ or the smallest value. Seed: `MaxFunctor`.
    Max: <T: Ordered> BinaryFn<T, T> -> T, |a, b| a.maximum(b), in pairs |a, b| T::maximum_pair(a, b);

    /// The product of the first two arguments plus the third, rounded once.
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
