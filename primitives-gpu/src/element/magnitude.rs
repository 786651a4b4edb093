//! Absolute values.

use half::{bf16, f16};

use super::{Arithmetic, Complex, Element, Ordered, Real};

/// An element with an absolute value.
pub trait Magnitude: Element {
    /// The type of the absolute value. It is the type itself, or, for a complex number, the type of its parts.
    type Real: Ordered + Arithmetic;

    /// The absolute value. For the smallest signed integer, it is that integer itself, because integers wrap. For a complex number, it is
    /// the length, without overflow of intermediate results.
    fn magnitude(self) -> Self::Real;

    /// The square of the absolute value.
    #[inline(always)]
    fn norm_squared(self) -> Self::Real {
        let magnitude = self.magnitude();
        magnitude.mul(magnitude)
    }
}

macro_rules! magnitude {
    ($($($t:ty),*: |$x:ident| $value:expr;)*) => {$($(
        impl Magnitude for $t {
            type Real = $t;
            #[inline(always)]
            fn magnitude(self) -> $t {
                let $x = self;
                $value
            }
        }
    )*)*};
}
magnitude! {
    u8, u16, u32, u64, usize: |x| x;
    i8, i16, i32, i64, isize: |x| x.wrapping_abs();
    f32: |x| f32::from_bits(x.to_bits() & !(1 << 31));
    f64: |x| f64::from_bits(x.to_bits() & !(1 << 63));
    f16: |x| f16::from_bits(x.to_bits() & 0x7fff);
    bf16: |x| bf16::from_bits(x.to_bits() & 0x7fff);
}

impl<T: Real> Magnitude for Complex<T> {
    type Real = T;
    #[inline(always)]
    fn magnitude(self) -> T {
        self.re.hypot(self.im)
    }
    #[inline(always)]
    fn norm_squared(self) -> T {
        self.re.mul(self.re).add(self.im.mul(self.im))
    }
}
