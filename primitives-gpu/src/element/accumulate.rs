//! The types that sums and products are formed in.

use half::{bf16, f16};

use super::halves::{bf16_to_f32, f16_to_f32, f32_to_bf16, f32_to_f16};
use super::{Arithmetic, Complex, Element};

/// The type in which an element's sums and products are accumulated: `f32` for `f16` and `bf16`, `u32` for `bool`, else the
/// type itself.
pub trait Accumulate: Element {
    /// The accumulation type.
    type Accum: Arithmetic;
    /// Converts exactly.
    fn widen(self) -> Self::Accum;
    /// Rounds to nearest, ties to even; for `bool`, whether it is not zero.
    fn narrow(value: Self::Accum) -> Self;
}

macro_rules! accumulate {
    ($($t:ty, $accum:ty, $widen:expr, $narrow:expr;)*) => {$(
        impl Accumulate for $t {
            type Accum = $accum;
            #[inline(always)]
            fn widen(self) -> $accum { let f: fn($t) -> $accum = $widen; f(self) }
            #[inline(always)]
            fn narrow(value: $accum) -> Self { let f: fn($accum) -> $t = $narrow; f(value) }
        }
    )*};
    ($($t:ty),*) => { accumulate! { $($t, $t, |x| x, |x| x;)* } };
}
accumulate!(u8, u16, u32, u64, usize, i8, i16, i32, i64, isize, f32, f64);
accumulate! {
    f16, f32, f16_to_f32, f32_to_f16;
    bf16, f32, bf16_to_f32, f32_to_bf16;
    bool, u32, |x| x as u32, |x| x != 0;
}

impl<T: Accumulate> Accumulate for Complex<T> {
    type Accum = Complex<T::Accum>;
    #[inline(always)]
    fn widen(self) -> Self::Accum {
        Complex { re: self.re.widen(), im: self.im.widen() }
    }
    #[inline(always)]
    fn narrow(value: Self::Accum) -> Self {
        Complex { re: T::narrow(value.re), im: T::narrow(value.im) }
    }
}
