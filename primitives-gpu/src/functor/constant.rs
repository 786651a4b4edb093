//! Functions with values that are chosen at run time.

use half::{bf16, f16};

use super::{NullaryFn, UnaryFn};
use crate::KernelParam;
use crate::element::{Accumulate, Divide, Ordered};
use crate::simt;

/// Always the same value. Seed: the functor of `ElementwiseConstant`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, KernelParam)]
#[repr(transparent)]
pub struct Fill<T>(pub T);

impl<T: Copy> NullaryFn for Fill<T> {
    type Output = T;
    #[inline(always)]
    fn apply(&self) -> T {
        self.0
    }
}

/// The argument, limited to the range from `low` to `high`. NaN propagates. If `low` is greater than `high`, the result is `high`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, KernelParam)]
#[repr(C)]
pub struct Clamp<T> {
    /// The lower bound.
    pub low: T,
    /// The upper bound.
    pub high: T,
}

impl<T: Ordered> UnaryFn<T> for Clamp<T> {
    type Output = T;
    #[inline(always)]
    fn apply(&self, x: T) -> T {
        x.maximum(self.low).minimum(self.high)
    }
    #[inline(always)]
    fn apply_pair(&self, x: [T; 2]) -> [T; 2] {
        T::minimum_pair(T::maximum_pair(x, [self.low; 2]), [self.high; 2])
    }
}

/// The argument divided by a constant. Seed: `DivideFunctor`.
///
/// Floats are multiplied by the inverse of the divisor, in the accumulation type, as in the seed. So the result may differ from the
/// quotient in the last place. It may differ by more for divisors of `f32` above 2^126, of `f64` above 2^1022, and their negatives, whose
/// inverses are subnormal: by a few units in the last place. Divisors of `f32` of at most 2^-128, and of `f64` of at most 2^-1024, have
/// infinite inverses, so the result is an infinity or NaN. Use [`Div`](super::Div) for such divisors. Integer division truncates.
///
/// ```
/// use kernel_primitives::{UnaryFn, f16, functor::DivideBy};
/// assert_eq!(DivideBy::new(4.0f32).apply(10.0), 2.5);
/// assert_eq!(DivideBy::new(f16::from_f32(3.0)).apply(f16::from_f32(6.0)), f16::from_f32(2.0));
/// assert_eq!(DivideBy::new(3).apply(-10), -3);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, KernelParam)]
#[repr(transparent)]
pub struct DivideBy<T: ByConstant>(T::Divisor);

impl<T: ByConstant> DivideBy<T> {
    /// Makes the division by `divisor`. If that is the integer 0, each application is a fault.
    #[inline(always)]
    pub fn new(divisor: T) -> Self {
        Self::by(divisor.widen())
    }

    /// Makes the division by a divisor of the accumulation type. For `f16` and `bf16`, it is any `f32`, such as a number of items that is
    /// not a half. Otherwise it works as [`new`](Self::new).
    ///
    /// ```
    /// use kernel_primitives::{UnaryFn, f16, functor::DivideBy};
    /// let mean = DivideBy::<f16>::by(65536.0);
    /// assert_eq!(mean.apply(f16::from_f32(32768.0)), f16::from_f32(0.5));
    /// ```
    #[inline(always)]
    pub fn by(divisor: T::Accum) -> Self {
        Self(T::divisor(divisor))
    }
}

impl<T: ByConstant> UnaryFn<T> for DivideBy<T> {
    type Output = T;
    #[inline(always)]
    #[track_caller]
    fn apply(&self, x: T) -> T {
        x.by_divisor(self.0)
    }
}

/// How a type is divided by a constant.
pub trait ByConstant: Accumulate {
    /// The value that is computed once from the divisor.
    type Divisor: KernelParam + PartialEq + core::fmt::Debug;
    #[doc(hidden)]
    fn divisor(divisor: Self::Accum) -> Self::Divisor;
    #[doc(hidden)]
    #[track_caller]
    fn by_divisor(self, divisor: Self::Divisor) -> Self;
}

macro_rules! floats {
    ($($t:ty),*) => {$(
        impl ByConstant for $t {
            type Divisor = <$t as Accumulate>::Accum;
            #[inline(always)]
            fn divisor(divisor: Self::Accum) -> Self::Divisor { Divide::divide(1.0, divisor) }
            #[inline(always)]
            fn by_divisor(self, inverse: Self::Divisor) -> Self { Self::narrow(self.widen() * inverse) }
        }
    )*};
}
floats!(f16, bf16, f32, f64);

macro_rules! integers {
    ($($t:ty),*) => {$(
        impl ByConstant for $t {
            type Divisor = $t;
            #[inline(always)]
            fn divisor(divisor: $t) -> $t { divisor }
            #[inline(always)]
            #[track_caller]
            fn by_divisor(self, divisor: $t) -> Self { simt::divide(self, divisor) }
        }
    )*};
}
integers!(u8, u16, u32, u64, usize, i8, i16, i32, i64, isize);
