//! Functors: the computations that primitives take as arguments.
//!
//! A functor is a type with one of the traits [`NullaryFn`], [`UnaryFn`], [`BinaryFn`], [`TernaryFn`] and [`NaryFn`]. Closures are
//! functors. If a functor is a parameter of a kernel, it is a named type with [`KernelParam`](crate::KernelParam).
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
//!
//! # The library's functors
//!
//! All of these can be parameters of kernels; those without fields take no space. They apply to every element type that has the trait in
//! the table. The prelude has [`Add`], [`Mul`], [`Min`] and [`Max`]; import the others from here.
//!
//! | functors | of | result |
//! |---|---|---|
//! | [`Identity`]; [`Cast<U>`](Cast) | any; [`ConvertTo<U>`](crate::ConvertTo) | the same; `U` |
//! | [`Neg`] (the seed's `InverseFunctor`), [`Square`]; [`Reciprocal`]; [`Abs`] | [`Arithmetic`](crate::Arithmetic); [`Divide`](crate::Divide); [`Magnitude`](crate::Magnitude) | the same; of complex numbers `Abs` is real |
//! | [`Sqrt`], [`Rsqrt`], [`Cbrt`], [`Exp`], [`Exp2`], [`ExpM1`], [`Log`], [`Log2`], [`Log10`], [`Log1p`], [`Sin`], [`Cos`], [`Tan`], [`Asin`], [`Acos`], [`Atan`], [`Sinh`], [`Cosh`], [`Tanh`], [`Asinh`], [`Acosh`], [`Atanh`], [`Erf`], [`Erfc`], [`Floor`], [`Ceil`], [`Round`], [`Trunc`] | [`Real`](crate::Real) | the same |
//! | [`RealPart`], [`ImaginaryPart`]; [`Conjugate`], [`NormSquared`] | [`Complex`](crate::Complex) | a part; the same, and the square of `Abs` |
//! | [`Relu`]; [`Sigmoid`], [`Silu`], [`Gelu`], [`GeluTanh`] | [`Number`](crate::Number); floats, computed in the accumulation type | the same |
//! | [`Add`], [`Sub`], [`Mul`]; [`Div`]; [`FloorDiv`], [`TruncDiv`], [`FloorRem`], [`TruncRem`] | [`Arithmetic`](crate::Arithmetic); [`Divide`](crate::Divide); [`Quotient`](crate::Quotient) | the same |
//! | [`Min`], [`Max`] | [`Ordered`](crate::Ordered) | the same |
//! | [`Pow`], [`Hypot`], [`Atan2`] | [`Real`](crate::Real) | the same |
//! | [`Equal`], [`NotEqual`]; [`LessThan`], [`LessOrEqual`], [`GreaterThan`], [`GreaterOrEqual`] | any with `==`; [`Ordered`](crate::Ordered) | `bool` |
//! | [`Less`], [`Greater`], [`ByIndex`]: orders for sorts, total also for floats; [`Turned`], known to the launch alone | [`SortKey`] | `bool` |
//! | [`LogicalAnd`], [`LogicalOr`], [`LogicalXor`], [`LogicalNot`] | [`ConvertTo<bool>`](crate::ConvertTo) | `bool` |
//! | [`BitAnd`], [`BitOr`], [`BitXor`], [`BitNot`]; [`Shl`], [`Shr`] | [`Bits`](crate::Bits); [`Integer`](crate::Integer) | the same |
//! | [`Select`]; [`MulAdd`] | `bool` and two of any; [`Float`](crate::Float) | the same |
//! | [`DivideBy`], [`Clamp`], [`Fill`] | with values that are chosen at run time | |
//! | [`Sum`], [`Mean`], [`ArgMax`] and the other [`Reduction`]s; [`ReduceBy`] of an operator; [`FirstPass`] and [`LastPass`] of one | | |
//! | [`PlusTimes`], [`Semiring`] of two operators, [`OfEntry`] of a function and one of them: reductions of a matrix's rows times a vector; [`Overwrite`] and [`Axpby`], an [`Epilogue`] each | | |
//! | [`Flagged`], and every function to `bool`, as a [`Choice`] of selections | | |
//! | [`compose`], [`bind_first`], [`bind_second`], [`swap_arguments`], [`Fold`] | functors out of functors | |

mod activation;
mod arithmetic;
mod choice;
mod combinator;
mod compare;
mod complex;
mod constant;
mod logic;
mod pass;
mod real;
mod reduction;
mod segment;
mod semiring;

pub use activation::{Gelu, GeluTanh, Relu, Sigmoid, Silu};
pub use arithmetic::{
    Abs, Add, Cast, Div, FloorDiv, FloorRem, Identity, Max, Min, Mul, MulAdd, Neg, Reciprocal, Square, Sub, TruncDiv,
    TruncRem,
};
pub use choice::{Choice, Flagged};
pub use combinator::{
    BindFirst, BindSecond, Compose, Fold, OfPair, SwapArguments, bind_first, bind_second, compose, of_pair,
    swap_arguments,
};
pub use compare::{ByIndex, Comparator, Direction, Greater, KeyOrder, Less, Turned};
pub use complex::{Conjugate, ImaginaryPart, NormSquared, RealPart};
pub use constant::{ByConstant, Clamp, DivideBy, Fill};
pub use logic::{
    BitAnd, BitNot, BitOr, BitXor, Equal, GreaterOrEqual, GreaterThan, LessOrEqual, LessThan, LogicalAnd, LogicalNot,
    LogicalOr, LogicalXor, NotEqual, Select, Shl, Shr,
};
pub use pass::{FirstPass, LastPass};
pub use real::{
    Acos, Acosh, Asin, Asinh, Atan, Atan2, Atanh, Cbrt, Ceil, Cos, Cosh, Erf, Erfc, Exp, Exp2, ExpM1, Floor, Hypot,
    Log, Log1p, Log2, Log10, Pow, Round, Rsqrt, Sin, Sinh, Sqrt, Tan, Tanh, Trunc,
};
pub use reduction::{
    AbsMax, AbsMin, All, Any, ArgMax, ArgMin, Combine, CountNonzero, Indexed, L1, L2, LogSumExp, MaxOf, Mean, MinOf,
    NanSum, PNorm, Prod, ReduceBy, Reduction, Sum,
};
pub use segment::BySegment;
pub use semiring::{Axpby, Epilogue, OfEntry, Overwrite, PlusTimes, Semiring};

use crate::element::{Element, SortKey};
use crate::simt::Block;

/// A type without fields that is a kernel parameter, and its implementation of a functor's trait.
macro_rules! functors {
    ($($(#[$doc:meta])* $name:ident: <$($p:ident $(: $bound:path)?),*> $trait:ident<$($arg:ty),*> -> $output:ty
        $(where $bounded:ty: $bounds:path)?, |$($x:ident),*| $value:expr $(, in pairs |$($p2:ident),*| $pair:expr)?;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, crate::KernelParam)]
        pub struct $name;

        impl<$($p $(: $bound)?),*> crate::functor::$trait<$($arg),*> for $name $(where $bounded: $bounds)? {
            type Output = $output;
            #[inline(always)]
            #[track_caller]
            fn apply(&self $(, $x: $arg)*) -> $output {
                $value
            }
            $(
                #[inline(always)]
                fn apply_pair(&self $(, $p2: [$output; 2])*) -> [$output; 2] {
                    $pair
                }
            )?
        }
    )*};
}
use functors;

/// A function without arguments.
pub trait NullaryFn {
    /// The result.
    type Output;
    /// The value.
    #[track_caller]
    fn apply(&self) -> Self::Output;
}

/// A function of one argument.
///
/// A closure is such a function. A type that implements the trait and derives [`KernelParam`](crate::KernelParam) can also be a parameter
/// of a kernel:
///
/// ```
/// use kernel_primitives::prelude::*;
///
/// /// x ↦ x³
/// #[derive(Clone, Copy, KernelParam)]
/// struct Cube;
///
/// impl UnaryFn<f32> for Cube {
///     type Output = f32;
///     fn apply(&self, x: f32) -> f32 {
///         x * x * x
///     }
/// }
///
/// assert_eq!(Cube.apply(3.0), 27.0);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no function of one `{A}`",
    label = "not a `UnaryFn<{A}>`",
    note = "implement `UnaryFn<{A}>` for it, or pass a closure `|x: {A}| …`"
)]
pub trait UnaryFn<A> {
    /// The result.
    type Output;
    /// Applies the function.
    #[track_caller]
    fn apply(&self, a: A) -> Self::Output;

    /// Applies the function twice, by one instruction if the hardware has it.
    #[doc(hidden)]
    #[inline(always)]
    #[track_caller]
    fn apply_pair(&self, [a, b]: [A; 2]) -> [Self::Output; 2] {
        [self.apply(a), self.apply(b)]
    }
}

/// A function of two arguments.
///
/// A closure is such a function. A type that implements the trait and derives [`KernelParam`](crate::KernelParam) can also be a parameter
/// of a kernel:
///
/// ```
/// use kernel_primitives::prelude::*;
///
/// /// The value in the middle between two.
/// #[derive(Clone, Copy, KernelParam)]
/// struct Middle;
///
/// impl BinaryFn<f32> for Middle {
///     type Output = f32;
///     fn apply(&self, a: f32, b: f32) -> f32 {
///         0.5 * (a + b)
///     }
/// }
///
/// assert_eq!(Middle.apply(1.0, 4.0), 2.5);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no function of `{A}` and `{B}`",
    label = "not a `BinaryFn<{A}, {B}>`",
    note = "implement `BinaryFn<{A}, {B}>` for it, or pass a closure `|x: {A}, y: {B}| …`"
)]
pub trait BinaryFn<A, B = A> {
    /// The result.
    type Output;
    /// Whether this is the order of the bits of a [`SortKey`](crate::element::SortKey), ascending or descending.
    #[doc(hidden)]
    const IS_ORDER_OF_BITS: bool = false;
    /// Applies the function.
    #[track_caller]
    fn apply(&self, a: A, b: B) -> Self::Output;

    /// Applies the function twice, by one instruction if the hardware has it.
    #[doc(hidden)]
    #[inline(always)]
    #[track_caller]
    fn apply_pair(&self, [a, b]: [A; 2], [c, d]: [B; 2]) -> [Self::Output; 2] {
        [self.apply(a, c), self.apply(b, d)]
    }

    /// Sorts keys by this order, and tells the sort whether it is the keys' own order.
    #[doc(hidden)]
    #[inline(always)]
    #[track_caller]
    fn have_sorted(&self, sort: impl Sort<A>)
    where
        A: Element,
        Self: BinaryFn<A, Output = bool> + Sized,
    {
        sort.by(self);
    }
}

/// A sort, before its order is known.
#[doc(hidden)]
pub trait Sort<K> {
    /// Sorts by a comparator.
    #[track_caller]
    fn by(self, order: &impl Comparator<K>)
    where
        K: Element;

    /// Sorts in the keys' own order.
    #[track_caller]
    fn in_order<O: Direction>(self)
    where
        K: SortKey;
}

/// A function of three arguments.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no function of `{A}`, `{B}` and `{C}`",
    label = "not a `TernaryFn<{A}, {B}, {C}>`",
    note = "implement `TernaryFn<{A}, {B}, {C}>` for it, or pass a closure `|x: {A}, y: {B}, z: {C}| …`"
)]
pub trait TernaryFn<A, B = A, C = B> {
    /// The result.
    type Output;
    /// Applies the function.
    #[track_caller]
    fn apply(&self, a: A, b: B, c: C) -> Self::Output;

    /// Applies the function twice, by one instruction if the hardware has it.
    #[doc(hidden)]
    #[inline(always)]
    #[track_caller]
    fn apply_pair(&self, [a, b]: [A; 2], [c, d]: [B; 2], [e, f]: [C; 2]) -> [Self::Output; 2] {
        [self.apply(a, c, e), self.apply(b, d, f)]
    }
}

/// A function of any number of arguments of one type.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no function of {N} arguments `{T}`",
    label = "not a `NaryFn<{T}, {N}>`",
    note = "implement `NaryFn<{T}, {N}>` for it, or pass a closure `|x: [{T}; {N}]| …`"
)]
pub trait NaryFn<T, const N: usize> {
    /// The result.
    type Output;
    /// Applies the function.
    #[track_caller]
    fn apply(&self, arguments: [T; N]) -> Self::Output;

    /// Applies the function twice, by one instruction if the hardware has it.
    #[doc(hidden)]
    #[inline(always)]
    #[track_caller]
    fn apply_pair(&self, [a, b]: [[T; N]; 2]) -> [Self::Output; 2] {
        [self.apply(a), self.apply(b)]
    }
}

impl<R, F: Fn() -> R> NullaryFn for F {
    type Output = R;
    #[inline(always)]
    fn apply(&self) -> R {
        self()
    }
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

impl<A, B, C, R, F: Fn(A, B, C) -> R> TernaryFn<A, B, C> for F {
    type Output = R;
    #[inline(always)]
    fn apply(&self, a: A, b: B, c: C) -> R {
        self(a, b, c)
    }
}

impl<T, R, F: Fn([T; N]) -> R, const N: usize> NaryFn<T, N> for F {
    type Output = R;
    #[inline(always)]
    fn apply(&self, arguments: [T; N]) -> R {
        self(arguments)
    }
}

/// An associative function of two `T` with an identity. Reductions and scans combine by it.
///
/// In `apply(a, b)`, `a` comes before `b`. Scans, reductions by key and collectives combine only neighbours, and keep their order, so the
/// function need not be commutative; [`block_reduce_path`](crate::block::block_reduce_path) is the exception. Other reductions over whole
/// buffers need a commutative function: see [`Reduction`]. The implementer must ensure associativity. For floats, the shape of the block
/// fixes the order of combination, so results are repeatable.
///
/// ```
/// use kernel_primitives::prelude::*;
///
/// /// x ↦ a·x + b
/// #[derive(Clone, Copy, Debug, PartialEq, Element)]
/// #[repr(C)]
/// struct Map {
///     a: f32,
///     b: f32,
/// }
///
/// /// The first map, and then the second.
/// #[derive(Clone, Copy, KernelParam)]
/// struct Then;
///
/// impl BinaryFn<Map> for Then {
///     type Output = Map;
///     fn apply(&self, first: Map, second: Map) -> Map {
///         Map { a: second.a * first.a, b: second.a * first.b + second.b }
///     }
/// }
///
/// impl Reducer<Map> for Then {
///     fn identity(&self) -> Map {
///         Map { a: 1.0, b: 0.0 }
///     }
/// }
///
/// let (add_one, triple) = (Map { a: 1.0, b: 1.0 }, Map { a: 3.0, b: 0.0 });
/// assert_eq!(thread_reduce(Then.identity(), &[add_one, triple], Then), Map { a: 3.0, b: 3.0 });
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot reduce `{T}`",
    label = "not a `Reducer<{T}>`",
    note = "a reduction needs `BinaryFn<{T}, Output = {T}>` and an identity: implement `Reducer<{T}>`"
)]
pub trait Reducer<T>: BinaryFn<T, T, Output = T> {
    /// The value that changes nothing: `apply(identity, x) == x == apply(x, identity)`.
    fn identity(&self) -> T;

    /// The result for no items. It is the identity, unless several values are equal to it and another one is usual: −0 is the identity of
    /// [`Add`], and a sum of no items is +0.
    #[inline(always)]
    fn of_none(&self) -> T {
        self.identity()
    }

    /// Reduces the lanes of `mask` by one instruction, if the hardware has it for this function and type.
    #[doc(hidden)]
    #[inline(always)]
    #[track_caller]
    fn warp(&self, _cx: Block<'_>, _mask: u32, _value: T) -> Option<T> {
        None
    }

    /// Whether [`warp`](Self::warp) returns a result.
    #[doc(hidden)]
    #[inline(always)]
    fn has_instruction(&self) -> bool {
        false
    }

    /// Combines `a`, `b` and `c` by one instruction, if the hardware has it for this function and type.
    #[doc(hidden)]
    #[inline(always)]
    fn of_three(&self, _a: T, _b: T, _c: T) -> Option<T> {
        None
    }

    /// Returns `x` of `apply(x, last)`, if it can be computed to the bit for this function and type.
    #[doc(hidden)]
    #[inline(always)]
    fn without(&self, _combined: T, _last: T) -> Option<T> {
        None
    }
}

/// Makes functors reducers: the identity, and the warp's instruction if there is one.
macro_rules! reducers {
    ($($name:ident: $($bound:ident)?, $t:ident, $identity:expr $(, $redux:ident)? $(, of_none $none:expr)?;)*) => {$(
        reducers!(@ $name, $($bound)?, $t, $identity $(, $redux)? $(, of_none $none)?);
    )*};
    (@ $name:ident, $bound:ident, $t:ident, $identity:expr $(, $redux:ident)? $(, of_none $none:expr)?) => {
        impl<$t: $bound> crate::functor::Reducer<$t> for $name {
            reducers!(@body $t, $identity $(, $redux)?);
            $(
                #[inline(always)]
                fn of_none(&self) -> $t {
                    $none
                }
            )?
        }
    };
    (@ $name:ident, , $t:ident, $identity:expr) => {
        impl crate::functor::Reducer<$t> for $name {
            reducers!(@body $t, $identity);
        }
    };
    (@body $t:ident, $identity:expr $(, $redux:ident)?) => {
        #[inline(always)]
        fn identity(&self) -> $t {
            $identity
        }
        $(
            #[inline(always)]
            #[track_caller]
            fn warp(&self, cx: crate::Block<'_>, mask: u32, value: $t) -> Option<$t> {
                value.redux(cx, crate::element::Redux::$redux, mask)
            }
            #[inline(always)]
            fn has_instruction(&self) -> bool {
                <$t as crate::element::Element>::HAS_REDUX
            }
            #[inline(always)]
            fn of_three(&self, a: $t, b: $t, c: $t) -> Option<$t> {
                <$t as crate::element::Element>::of_three(crate::element::Redux::$redux, [a, b, c])
            }
            #[inline(always)]
            fn without(&self, combined: $t, last: $t) -> Option<$t> {
                combined.without(crate::element::Redux::$redux, last)
            }
        )?
    };
}
use reducers;
