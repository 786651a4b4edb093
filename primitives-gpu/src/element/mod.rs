//! The types that can be stored, exchanged and computed with.
//!
//! | trait | what it adds | `bool` | integers | `f16` `bf16` `f32` `f64` | [`Complex`] |
//! |---|---|---|---|---|---|
//! | [`Element`] | storage, the value zero | ✓ | ✓ | ✓ | ✓ |
//! | [`Arithmetic`] | one, sum, difference, product, negation | | ✓ | ✓ | ✓ |
//! | [`Ordered`] | minimum, maximum and their identities | ✓ | ✓ | ✓ | |
//! | [`Number`] | both | | ✓ | ✓ | |
//! | [`Divide`] | the quotient | | ✓ | ✓ | ✓ |
//! | [`Quotient`] | floored and truncated quotients and remainders | | ✓ | ✓ | |
//! | [`Magnitude`] | the absolute value | | ✓ | ✓ | ✓ |
//! | [`Bits`] | bitwise operations | ✓ | ✓ | | |
//! | [`Integer`] | shifts, counts of bits | | ✓ | | |
//! | [`Float`] | infinities, NaN, signs, `mul_add` | | | ✓ | |
//! | [`Real`] | elementary functions | | | ✓ | |
//! | [`FftFloat`] | Fourier transforms | | | `f32` `f64` | |
//! | [`Accumulate`] | the type that sums are formed in | ✓ | ✓ | ✓ | ✓ |
//! | [`Average`] | the type that means are formed in | ✓ | ✓ | ✓ | ✓ |
//! | [`ConvertTo`] | conversion to any of these types | ✓ | ✓ | ✓ | to `Complex` |
//! | [`SortKey`] | the bits that sort as the values do | ✓ | ✓ | ✓ | |
//!
//! All operations give the same bits on the GPU and in the emulator. There are two exceptions: the elementary functions of [`Real`] differ
//! by a few units in the last place, as their docs say, and so do the payloads of NaN.

mod accumulate;
mod any_bits;
mod arithmetic;
mod bits;
mod convert;
mod divide;
mod float;
pub(crate) mod halves;
mod magnitude;
mod ordered;
mod roots;
mod segmented;
mod sort_key;

pub use accumulate::{Accumulate, Average};
pub use arithmetic::Arithmetic;
pub use bits::{Bits, Integer};
pub use convert::ConvertTo;
pub use divide::{Divide, Quotient};
pub use float::Float;
pub use magnitude::Magnitude;
pub use num_complex::Complex;
pub use ordered::{Number, Ordered};
pub use roots::{FftFloat, root_of_unity};
pub use segmented::Segmented;
pub use sort_key::SortKey;

pub(crate) use any_bits::AnyBits;

pub use crate::simt::math::Real;

use half::{bf16, f16};

use crate::simt::Block;
use crate::view::Layout;

/// A value that a kernel can take as a parameter: a scalar, a functor, or a `#[repr(C)]` struct of such values.
///
/// `#[derive(KernelParam)]` implements it. The derive requires `#[repr(C)]` or `#[repr(transparent)]` (unless the type has no fields), and
/// parameters as fields.
///
/// # Safety
/// The layout of the type is the same for every compiler: `repr(C)`, `repr(transparent)`, primitive or zero-sized, and so
/// for its fields. It holds no reference or pointer to host memory.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a kernel parameter",
    label = "not a kernel parameter",
    note = "parameters are scalars, `#[repr(C)]` structs with `#[derive(Clone, Copy, KernelParam)]`, or the views \
            `Global<T>`, `GlobalMut<T>` and `Shared<S>`; a closure is none, since a GPU's kernels are compiled apart and call \
            functors by name"
)]
pub unsafe trait KernelParam: Copy + Send + Sync + 'static {
    /// The layout that host and device compare.
    #[doc(hidden)]
    const LAYOUT: Layout = Layout::of::<Self>("opaque");
}

/// Plain old data that can be stored in device memory and exchanged between lanes.
///
/// The number types, [`Complex`], `bool` and arrays of elements implement it. `#[derive(Element)]` implements it for `#[repr(C)]` structs.
/// Shared memory, which most collectives of a block use, has elements that are aligned to up to 16 bytes.
///
/// # Safety
/// The type is `Copy` plain data without padding bytes and without pointers, and all its bytes zero are a valid value,
/// [`ZERO`](Element::ZERO). If not all bit patterns are valid values, those are that have in each byte what some valid value has there:
/// two threads that write one element leave a mix of the bytes of both. Buffers have elements that are aligned to up to 256 bytes.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be stored in device memory",
    label = "not an `Element`",
    note = "elements are numbers, `bool`, arrays of elements, and `#[repr(C)]` structs without padding that have \
            `#[derive(Clone, Copy, Element)]`"
)]
pub unsafe trait Element: KernelParam {
    /// The value whose bytes are all zero.
    const ZERO: Self;
    /// True if every bit pattern is a valid value. `bool` is an exception, which is checked when it is copied back.
    const ANY_BITS: bool = true;

    /// Returns whether `bytes` are a value. There are as many bytes as the type has. It is called only if not all bit patterns are values
    /// ([`ANY_BITS`](Element::ANY_BITS)).
    #[doc(hidden)]
    fn valid_bits(bytes: &[u8]) -> bool {
        let _ = bytes;
        Self::ANY_BITS
    }

    /// Reduces the lanes of `mask` by one instruction, if the hardware has it for this type.
    #[doc(hidden)]
    #[inline(always)]
    #[track_caller]
    fn redux(self, _cx: Block<'_>, _op: Redux, _mask: u32) -> Option<Self> {
        None
    }

    /// Whether [`redux`](Self::redux) returns a result.
    #[doc(hidden)]
    const HAS_REDUX: bool = false;

    /// Combines three values by `op` with one instruction, if the hardware has it for this type.
    #[doc(hidden)]
    #[inline(always)]
    fn of_three(_op: Redux, _values: [Self; 3]) -> Option<Self> {
        None
    }

    /// `==`, by a hardware instruction, also for halves, whose type does not use it.
    #[doc(hidden)]
    #[inline(always)]
    fn equals(self, other: Self) -> bool
    where
        Self: PartialEq,
    {
        self == other
    }

    /// The value that was combined with `last` by `op`, if the result determines it to the bit.
    #[doc(hidden)]
    #[inline(always)]
    fn without(self, _op: Redux, _last: Self) -> Option<Self> {
        None
    }
}

/// The operations that the hardware reduces over a warp.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Redux {
    /// Wrapping sum.
    Add,
    /// Smallest.
    Min,
    /// Largest.
    Max,
    /// Bitwise and.
    And,
    /// Bitwise or.
    Or,
    /// Bitwise exclusive or.
    Xor,
}

macro_rules! elements {
    ($($t:ty: $zero:expr $(, $more:ident)?;)*) => {$(
        // SAFETY: a primitive, or `repr(transparent)` over one, without padding.
        unsafe impl KernelParam for $t {
            const LAYOUT: Layout = Layout::of::<Self>(stringify!($t));
        }
        // SAFETY: as above; zero bytes are the value zero.
        unsafe impl Element for $t {
            const ZERO: Self = $zero;
            $(elements!(@$more);)?
        }
    )*};
    (@half) => {
        #[inline(always)]
        fn equals(self, other: Self) -> bool {
            // Exact, and of NaN a NaN.
            let (a, b): (f32, f32) = (self.convert(), other.convert());
            a == b
        }
    };
    (@redux) => {
        const HAS_REDUX: bool = true;

        #[track_caller]
        fn redux(self, cx: Block<'_>, op: Redux, mask: u32) -> Option<Self> {
            Some(match op {
                Redux::Add => cx.redux_add(mask, self),
                Redux::Min => cx.redux_min(mask, self),
                Redux::Max => cx.redux_max(mask, self),
                Redux::And => cx.redux_and(mask, self),
                Redux::Or => cx.redux_or(mask, self),
                Redux::Xor => cx.redux_xor(mask, self),
            })
        }

        fn of_three(op: Redux, [a, b, c]: [Self; 3]) -> Option<Self> {
            if op != Redux::Add {
                return None;
            }
            #[cfg(target_arch = "nvptx64")]
            let sum = crate::simt::nvptx::add_three(a as u32, b as u32, c as u32) as Self;
            #[cfg(not(target_arch = "nvptx64"))]
            let sum = a.wrapping_add(b).wrapping_add(c);
            Some(sum)
        }

        fn without(self, op: Redux, last: Self) -> Option<Self> {
            match op {
                Redux::Add => Some(self.wrapping_sub(last)),
                Redux::Xor => Some(self ^ last),
                _ => None,
            }
        }
    };
}
elements! {
    u8: 0; u16: 0; u32: 0, redux; u64: 0; usize: 0; i8: 0; i16: 0; i32: 0, redux; i64: 0; isize: 0;
    f32: 0.0; f64: 0.0; f16: f16::ZERO, half; bf16: bf16::ZERO, half;
}

// SAFETY: `repr(C)` with two fields of one type.
unsafe impl<T: KernelParam> KernelParam for Complex<T> {
    const LAYOUT: Layout = Layout::of::<Self>("complex").with("", 2, T::LAYOUT);
}
// SAFETY: two elements of one type in a row have no padding between them; two zeros are the complex zero.
unsafe impl<T: Element> Element for Complex<T> {
    const ZERO: Self = Self { re: T::ZERO, im: T::ZERO };
    const ANY_BITS: bool = T::ANY_BITS;

    fn valid_bits(bytes: &[u8]) -> bool {
        <[T; 2]>::valid_bits(bytes)
    }
}

// SAFETY: one byte, the same for every compiler.
unsafe impl KernelParam for bool {
    const LAYOUT: Layout = Layout::of::<Self>("bool");
}
// SAFETY: one byte, zero is `false`.
unsafe impl Element for bool {
    const ZERO: Self = false;
    const ANY_BITS: bool = false;

    fn valid_bits(bytes: &[u8]) -> bool {
        bytes[0] <= 1
    }
}

// SAFETY: an array has the layout of its elements in a row.
unsafe impl<T: KernelParam, const N: usize> KernelParam for [T; N] {
    const LAYOUT: Layout = Layout::of::<Self>("array").with("", N, T::LAYOUT);
}
// SAFETY: elements in a row, without padding between them.
unsafe impl<T: Element, const N: usize> Element for [T; N] {
    const ZERO: Self = [T::ZERO; N];
    const ANY_BITS: bool = T::ANY_BITS;

    fn valid_bits(bytes: &[u8]) -> bool {
        T::ANY_BITS || bytes.chunks_exact(size_of::<T>().max(1)).all(T::valid_bits)
    }
}

// SAFETY: zero-sized.
unsafe impl KernelParam for () {}
// SAFETY: zero-sized.
unsafe impl<T: ?Sized + 'static> KernelParam for core::marker::PhantomData<T> where Self: Send + Sync {}
