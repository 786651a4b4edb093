//! Sums, differences and products.

use half::{bf16, f16};

#[cfg(target_arch = "nvptx64")]
use super::halves::by_pairs;
#[cfg(not(target_arch = "nvptx64"))]
use super::halves::{bf16_to_f32, f16_to_f32, f32_to_bf16, f32_to_f16};
use super::{Complex, Element};
#[cfg(target_arch = "nvptx64")]
use crate::simt::nvptx;

/// An element with arithmetic.
///
/// Integers wrap. Floats round to nearest, ties to even, and nothing is contracted. A complex product is (ac − bd) + (ad + bc)i, in which
/// each operation is rounded.
///
/// ```
/// use kernel_primitives::prelude::*;
/// fn polynomial<T: Arithmetic>(x: T) -> T {
///     x.mul(x).add(T::ONE)
/// }
/// assert_eq!((polynomial(16u8), polynomial(0.5f32)), (1, 1.25));
/// ```
pub trait Arithmetic: Element + PartialEq {
    /// One.
    const ONE: Self;

    /// The value that does not change a sum: −0 for floats, because the sum of −0 and +0 is +0.
    #[doc(hidden)]
    const ADDS_NOTHING: Self = Self::ZERO;

    /// The sum.
    fn add(self, other: Self) -> Self;
    /// The difference.
    fn sub(self, other: Self) -> Self;
    /// The product.
    fn mul(self, other: Self) -> Self;
    /// The negative. For an unsigned integer, it is the complement to 2ⁿ.
    fn neg(self) -> Self;

    /// Two sums, by one instruction if the hardware has it. The next three are similar.
    #[doc(hidden)]
    #[inline(always)]
    fn add_pair([a, b]: [Self; 2], [c, d]: [Self; 2]) -> [Self; 2] {
        [a.add(c), b.add(d)]
    }
    #[doc(hidden)]
    #[inline(always)]
    fn sub_pair([a, b]: [Self; 2], [c, d]: [Self; 2]) -> [Self; 2] {
        [a.sub(c), b.sub(d)]
    }
    #[doc(hidden)]
    #[inline(always)]
    fn mul_pair([a, b]: [Self; 2], [c, d]: [Self; 2]) -> [Self; 2] {
        [a.mul(c), b.mul(d)]
    }
    #[doc(hidden)]
    #[inline(always)]
    fn neg_pair([a, b]: [Self; 2]) -> [Self; 2] {
        [a.neg(), b.neg()]
    }
}

macro_rules! integers {
    ($($t:ty),*) => {$(
        impl Arithmetic for $t {
            const ONE: Self = 1;
            #[inline(always)]
            fn add(self, other: Self) -> Self { self.wrapping_add(other) }
            #[inline(always)]
            fn sub(self, other: Self) -> Self { self.wrapping_sub(other) }
            #[inline(always)]
            fn mul(self, other: Self) -> Self { self.wrapping_mul(other) }
            #[inline(always)]
            fn neg(self) -> Self { self.wrapping_neg() }
        }
    )*};
}
integers!(u8, u16, u32, u64, usize, i8, i16, i32, i64, isize);

macro_rules! floats {
    ($($t:ty),*) => {$(
        impl Arithmetic for $t {
            const ONE: Self = 1.0;
            const ADDS_NOTHING: Self = -0.0;
            #[inline(always)]
            fn add(self, other: Self) -> Self { self + other }
            #[inline(always)]
            fn sub(self, other: Self) -> Self { self - other }
            #[inline(always)]
            fn mul(self, other: Self) -> Self { self * other }
            #[inline(always)]
            fn neg(self) -> Self { -self }
        }
    )*};
}
floats!(f32, f64);

// On the GPU, instructions of the type, which the compiler packs in pairs. On the host, `f32`, with the same bits.
macro_rules! halves {
    ($($t:ident, $widen:ident, $narrow:ident, $add:ident $sub:ident $mul:ident, $add2:ident $sub2:ident $mul2:ident;)*) => {$(
        impl Arithmetic for $t {
            const ONE: Self = $t::ONE;
            const ADDS_NOTHING: Self = $t::NEG_ZERO;
            #[inline(always)]
            fn add(self, other: Self) -> Self { halves!(@ $t, $widen, $narrow, $add, self + other) }
            #[inline(always)]
            fn sub(self, other: Self) -> Self { halves!(@ $t, $widen, $narrow, $sub, self - other) }
            #[inline(always)]
            fn mul(self, other: Self) -> Self { halves!(@ $t, $widen, $narrow, $mul, self * other) }
            #[inline(always)]
            fn neg(self) -> Self { $t::from_bits(self.to_bits() ^ 0x8000) }
            #[cfg(target_arch = "nvptx64")]
            #[inline(always)]
            fn add_pair(a: [Self; 2], b: [Self; 2]) -> [Self; 2] { by_pairs!($t, nvptx::$add2, a, b) }
            #[cfg(target_arch = "nvptx64")]
            #[inline(always)]
            fn sub_pair(a: [Self; 2], b: [Self; 2]) -> [Self; 2] { by_pairs!($t, nvptx::$sub2, a, b) }
            #[cfg(target_arch = "nvptx64")]
            #[inline(always)]
            fn mul_pair(a: [Self; 2], b: [Self; 2]) -> [Self; 2] { by_pairs!($t, nvptx::$mul2, a, b) }
            #[cfg(target_arch = "nvptx64")]
            #[inline(always)]
            fn neg_pair(a: [Self; 2]) -> [Self; 2] { by_pairs!($t, |pair: u32| pair ^ 0x8000_8000, a) }
        }
    )*};
    (@ $t:ident, $widen:ident, $narrow:ident, $device:ident, $a:ident $op:tt $b:ident) => {{
        #[cfg(target_arch = "nvptx64")]
        return $t::from_bits(nvptx::$device($a.to_bits(), $b.to_bits()));
        #[cfg(not(target_arch = "nvptx64"))]
        $narrow($widen($a) $op $widen($b))
    }};
}
halves! {
    f16, f16_to_f32, f32_to_f16, f16_add f16_sub f16_mul, f16x2_add f16x2_sub f16x2_mul;
    bf16, bf16_to_f32, f32_to_bf16, bf16_add bf16_sub bf16_mul, bf16x2_add bf16x2_sub bf16x2_mul;
}

impl<T: Arithmetic> Arithmetic for Complex<T> {
    const ONE: Self = Self { re: T::ONE, im: T::ZERO };
    const ADDS_NOTHING: Self = Self { re: T::ADDS_NOTHING, im: T::ADDS_NOTHING };
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        Self { re: self.re.add(other.re), im: self.im.add(other.im) }
    }
    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        Self { re: self.re.sub(other.re), im: self.im.sub(other.im) }
    }
    fn mul(self, other: Self) -> Self {
        Self {
            re: self.re.mul(other.re).sub(self.im.mul(other.im)),
            im: self.re.mul(other.im).add(self.im.mul(other.re)),
        }
    }
    #[inline(always)]
    fn neg(self) -> Self {
        Self { re: self.re.neg(), im: self.im.neg() }
    }
}
