//! Functors: the computation that a primitive is generic over.
//!
//! A functor is a type with one of three traits. Closures are functors; a functor that is a kernel's parameter is a named
//! type with [`KernelParam`](crate::KernelParam).
//!
//! ```
//! use kernel_primitives::prelude::*;
//!
//! /// x ↦ a·x + b
//! #[derive(Clone, Copy, KernelParam)]
//! #[repr(C)]
//! struct Affine {
//!     a: f32,
//!     b: f32,
//! }
//!
//! impl UnaryFn<f32> for Affine {
//!     type Output = f32;
//!     fn apply(&self, x: f32) -> f32 {
//!         self.a * x + self.b
//!     }
//! }
//!
//! assert_eq!(Affine { a: 2.0, b: 1.0 }.apply(3.0), 7.0);
//! assert_eq!((|x: f32| x + 1.0).apply(3.0), 4.0);
//! ```

mod arithmetic;
mod compare;

pub use arithmetic::{Add, Max, Min, Mul};

pub use compare::{ByIndex, Comparator, Direction, Greater, Less, compare_exchange};

use crate::simt::Block;

/// A function of one argument.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no function of one `{A}`",
    label = "not a `UnaryFn<{A}>`",
    note = "implement `UnaryFn<{A}>` for it, or pass a closure `|x: {A}| …`"
)]
pub trait UnaryFn<A> {
    /// The result.
    type Output;
    /// Applies the function.
    fn apply(&self, a: A) -> Self::Output;
}

/// A function of two arguments.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no function of `{A}` and `{B}`",
    label = "not a `BinaryFn<{A}, {B}>`",
    note = "implement `BinaryFn<{A}, {B}>` for it, or pass a closure `|x: {A}, y: {B}| …`"
)]
pub trait BinaryFn<A, B = A> {
    /// The result.
    type Output;
    /// Applies the function.
    fn apply(&self, a: A, b: B) -> Self::Output;
}

impl<A, R, F: Fn(A) -> R> UnaryFn<A> for F {
    type Output = R;
    #[inline(always)]
    fn apply(&self, a: A) -> R {
        self(a)
    }
}

impl<A, B, R, F: Fn(A, B) -> R> BinaryFn<A, B> for F {
    type Output = R;
    #[inline(always)]
    fn apply(&self, a: A, b: B) -> R {
        self(a, b)
    }
}

/// An associative function of two `T` with an identity: what reductions and scans combine by.
///
/// Collectives combine neighbours only and keep their order, so the function need not be commutative. Associativity is up
/// to the implementer; for floats the order of combination is fixed by the block's shape, hence results are repeatable.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot reduce `{T}`",
    label = "not a `Reducer<{T}>`",
    note = "a reduction needs `BinaryFn<{T}, Output = {T}>` and an identity: implement `Reducer<{T}>`"
)]
pub trait Reducer<T>: BinaryFn<T, T, Output = T> {
    /// The value that changes nothing: `apply(identity, x) == x == apply(x, identity)`.
    fn identity(&self) -> T;

    /// The reduction over the lanes of `mask` by one instruction, where the hardware has it for this function and type.
    #[doc(hidden)]
    #[inline(always)]
    #[track_caller]
    fn warp(&self, _cx: Block<'_>, _mask: u32, _value: T) -> Option<T> {
        None
    }
}
