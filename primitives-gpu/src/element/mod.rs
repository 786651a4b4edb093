//! What can be stored, exchanged and computed with.

mod number;

pub use number::{Accumulate, Number};

use half::{bf16, f16};

use crate::view::Layout;

/// A value that travels to a kernel as a parameter: a scalar, a functor, a `#[repr(C)]` struct of such.
///
/// Implemented by `#[derive(KernelParam)]`, which demands `#[repr(C)]` or `#[repr(transparent)]` (unless the type has no
/// fields) and parameters as fields.
///
/// # Safety
/// The layout of the type is the same for every compiler: `repr(C)`, `repr(transparent)`, primitive or zero-sized, and so
/// for its fields. It holds no reference or pointer to host memory.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a kernel parameter",
    label = "not a kernel parameter",
    note = "parameters are scalars, `#[repr(C)]` structs with `#[derive(Clone, Copy, KernelParam)]`, or the views \
            `Global<T>`, `GlobalMut<T>` and `Shared<S>`"
)]
pub unsafe trait KernelParam: Copy + Send + Sync + 'static {
    /// The layout that host and device compare.
    #[doc(hidden)]
    const LAYOUT: Layout = Layout::of::<Self>("opaque");
}

/// Plain old data that lives in device memory and is exchanged between lanes.
///
/// Implemented for the number types, `bool`, arrays of elements, and by `#[derive(Element)]` for `#[repr(C)]` structs.
///
/// # Safety
/// The type is `Copy` plain data without padding bytes and without pointers, and all its bytes zero are a valid value,
/// [`ZERO`](Element::ZERO).
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be stored in device memory",
    label = "not an `Element`",
    note = "elements are numbers, `bool`, arrays of elements, and `#[repr(C)]` structs without padding that have \
            `#[derive(Clone, Copy, Element)]`"
)]
pub unsafe trait Element: KernelParam {
    /// The value whose bytes are all zero.
    const ZERO: Self;
    /// True if every bit pattern is a valid value. `bool` is the exception: it is checked when it is copied back.
    const ANY_BITS: bool = true;

    /// Whether `bytes`, as many as the type has, are a value; asked only if not [`ANY_BITS`](Element::ANY_BITS).
    #[doc(hidden)]
    fn valid_bits(bytes: &[u8]) -> bool {
        let _ = bytes;
        Self::ANY_BITS
    }
}

macro_rules! elements {
    ($($t:ty: $zero:expr),* $(,)?) => {$(
        // SAFETY: a primitive, or `repr(transparent)` over one, without padding.
        unsafe impl KernelParam for $t {
            const LAYOUT: Layout = Layout::of::<Self>(stringify!($t));
        }
        // SAFETY: as above; zero bytes are the value zero.
        unsafe impl Element for $t {
            const ZERO: Self = $zero;
        }
    )*};
}
elements! {
    u8: 0, u16: 0, u32: 0, u64: 0, usize: 0, i8: 0, i16: 0, i32: 0, i64: 0, isize: 0,
    f32: 0.0, f64: 0.0, f16: f16::ZERO, bf16: bf16::ZERO,
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
