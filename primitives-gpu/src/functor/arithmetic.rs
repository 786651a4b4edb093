//! Sum, product, minimum, maximum.

use half::{bf16, f16};

use super::{BinaryFn, Reducer};
use crate::element::{KernelParam, Number};
use crate::simt::Block;

macro_rules! functors {
    ($($(#[$doc:meta])* $name:ident: $method:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $name;

        // SAFETY: zero-sized.
        unsafe impl KernelParam for $name {}

        impl<T: Number> BinaryFn<T> for $name {
            type Output = T;
            #[inline(always)]
            fn apply(&self, a: T, b: T) -> T {
                Number::$method(a, b)
            }
        }
    )*};
}
functors! {
    /// The sum; integers wrap. Identity 0. Seed: `AddFunctor`.
    Add: add;
    /// The product; integers wrap. Identity 1. Seed: `MulFunctor`.
    Mul: mul;
    /// The smaller value; NaN propagates, −0 is less than +0. Identity +∞ or the largest value. Seed: `MinFunctor`.
    Min: minimum;
    /// The larger value; NaN propagates, −0 is less than +0. Identity −∞ or the smallest value. Seed: `MaxFunctor`.
    Max: maximum;
}

macro_rules! reducers {
    (for $types:tt $($name:ident: $identity:ident $(, $redux:ident)?;)*) => {
        $(reducers!(@one $name, $identity, $types);)*
        $($(reducers!(@redux $name, $identity, $redux, u32, i32);)?)*
    };
    (@one $name:ident, $identity:ident, ($($t:ty),*)) => {$(
        impl Reducer<$t> for $name {
            #[inline(always)]
            fn identity(&self) -> $t {
                <$t as Constants>::$identity
            }
        }
    )*};
    (@redux $name:ident, $identity:ident, $redux:ident, $($t:ty),*) => {$(
        impl Reducer<$t> for $name {
            #[inline(always)]
            fn identity(&self) -> $t {
                <$t as Constants>::$identity
            }
            #[inline(always)]
            #[track_caller]
            fn warp(&self, cx: Block<'_>, mask: u32, value: $t) -> Option<$t> {
                Some(cx.$redux(mask, value))
            }
        }
    )*};
}

/// The identities by one name each.
trait Constants: Number {
    const NONE: Self = Self::ZERO;
    const UNIT: Self = Self::ONE;
    const TOP: Self = Self::GREATEST;
    const BOTTOM: Self = Self::LEAST;
}
impl<T: Number> Constants for T {}

reducers! {
    for (u8, u16, u64, usize, i8, i16, i64, isize, f32, f64, f16, bf16)
    Add: NONE, redux_add;
    Min: TOP, redux_min;
    Max: BOTTOM, redux_max;
}
reducers! {
    for (u8, u16, u32, u64, usize, i8, i16, i32, i64, isize, f32, f64, f16, bf16)
    Mul: UNIT;
}
