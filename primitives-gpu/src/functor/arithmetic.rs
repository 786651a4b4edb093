//! Sum, product, minimum, maximum.

use super::{BinaryFn, Reducer};
use crate::element::{Arithmetic, KernelParam, Ordered, Redux};
use crate::simt::Block;

macro_rules! functors {
    ($($(#[$doc:meta])* $name:ident = $bound:ident::$method:ident, $identity:ident $(, $redux:ident)?;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $name;

        // SAFETY: zero-sized.
        unsafe impl KernelParam for $name {}

        impl<T: $bound> BinaryFn<T> for $name {
            type Output = T;
            #[inline(always)]
            fn apply(&self, a: T, b: T) -> T {
                a.$method(b)
            }
        }

        impl<T: $bound> Reducer<T> for $name {
            #[inline(always)]
            fn identity(&self) -> T {
                T::$identity
            }
            $(
                #[inline(always)]
                #[track_caller]
                fn warp(&self, cx: Block<'_>, mask: u32, value: T) -> Option<T> {
                    value.redux(cx, Redux::$redux, mask)
                }
            )?
        }
    )*};
}
functors! {
    /// The sum; integers wrap. Identity 0. Seed: `AddFunctor`.
    Add = Arithmetic::add, ZERO, Add;
    /// The product; integers wrap. Identity 1. Seed: `MulFunctor`.
    Mul = Arithmetic::mul, ONE;
    /// The smaller value; NaN propagates, −0 is less than +0. Identity +∞ or the largest value. Seed: `MinFunctor`.
    Min = Ordered::minimum, GREATEST, Min;
    /// The larger value; NaN propagates, −0 is less than +0. Identity −∞ or the smallest value. Seed: `MaxFunctor`.
    Max = Ordered::maximum, LEAST, Max;
}
