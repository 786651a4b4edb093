//! Functors made from functors.

use super::{BinaryFn, NaryFn, TernaryFn, UnaryFn};
use crate::KernelParam;

/// `outer` of the result of `inner`: see [`compose`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, KernelParam)]
#[repr(C)]
pub struct Compose<F, G> {
    /// The function that is applied last.
    pub outer: F,
    /// The function that is applied first, to one, two, three or any number of arguments.
    pub inner: G,
}

/// Makes the function that applies `inner`, with any number of arguments, and then `outer` to its result.
///
/// ```
/// use kernel_primitives::functor::{Abs, Sqrt, Square, Sub, compose};
/// use kernel_primitives::prelude::*;
/// assert_eq!(UnaryFn::apply(&compose(Sqrt, Abs), -4.0f32), 2.0);
/// assert_eq!(BinaryFn::apply(&compose(Square, Sub), 3, 5), 4);
/// ```
#[inline(always)]
pub const fn compose<F, G>(outer: F, inner: G) -> Compose<F, G> {
    Compose { outer, inner }
}

impl<A, F: UnaryFn<G::Output>, G: UnaryFn<A>> UnaryFn<A> for Compose<F, G> {
    type Output = F::Output;
    #[inline(always)]
    #[track_caller]
    fn apply(&self, a: A) -> F::Output {
        self.outer.apply(self.inner.apply(a))
    }
    #[inline(always)]
    #[track_caller]
    fn apply_pair(&self, a: [A; 2]) -> [F::Output; 2] {
        self.outer.apply_pair(self.inner.apply_pair(a))
    }
}

impl<A, B, F: UnaryFn<G::Output>, G: BinaryFn<A, B>> BinaryFn<A, B> for Compose<F, G> {
    type Output = F::Output;
    #[inline(always)]
    #[track_caller]
    fn apply(&self, a: A, b: B) -> F::Output {
        self.outer.apply(self.inner.apply(a, b))
    }
    #[inline(always)]
    #[track_caller]
    fn apply_pair(&self, a: [A; 2], b: [B; 2]) -> [F::Output; 2] {
        self.outer.apply_pair(self.inner.apply_pair(a, b))
    }
}

impl<A, B, C, F: UnaryFn<G::Output>, G: TernaryFn<A, B, C>> TernaryFn<A, B, C> for Compose<F, G> {
    type Output = F::Output;
    #[inline(always)]
    #[track_caller]
    fn apply(&self, a: A, b: B, c: C) -> F::Output {
        self.outer.apply(self.inner.apply(a, b, c))
    }
    #[inline(always)]
    #[track_caller]
    fn apply_pair(&self, a: [A; 2], b: [B; 2], c: [C; 2]) -> [F::Output; 2] {
        self.outer.apply_pair(self.inner.apply_pair(a, b, c))
    }
}

impl<T, F: UnaryFn<G::Output>, G: NaryFn<T, N>, const N: usize> NaryFn<T, N> for Compose<F, G> {
    type Output = F::Output;
    #[inline(always)]
    #[track_caller]
    fn apply(&self, arguments: [T; N]) -> F::Output {
        self.outer.apply(self.inner.apply(arguments))
    }
    #[inline(always)]
    #[track_caller]
    fn apply_pair(&self, arguments: [[T; N]; 2]) -> [F::Output; 2] {
        self.outer.apply_pair(self.inner.apply_pair(arguments))
    }
}

/// A function of two arguments whose first is bound: see [`bind_first`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, KernelParam)]
#[repr(C)]
pub struct BindFirst<F, A> {
    /// The function.
    pub function: F,
    /// Its first argument.
    pub first: A,
}

/// Makes a function of one argument from `function`, with `first` as its first argument.
///
/// ```
/// use kernel_primitives::functor::{Sub, bind_first};
/// use kernel_primitives::prelude::*;
/// assert_eq!(bind_first(Sub, 10).apply(3), 7);
/// ```
#[inline(always)]
pub const fn bind_first<F, A>(function: F, first: A) -> BindFirst<F, A> {
    BindFirst { function, first }
}

impl<A: Copy, B, F: BinaryFn<A, B>> UnaryFn<B> for BindFirst<F, A> {
    type Output = F::Output;
    #[inline(always)]
    #[track_caller]
    fn apply(&self, b: B) -> F::Output {
        self.function.apply(self.first, b)
    }
    #[inline(always)]
    #[track_caller]
    fn apply_pair(&self, b: [B; 2]) -> [F::Output; 2] {
        self.function.apply_pair([self.first; 2], b)
    }
}

/// A function of two arguments whose second is bound: see [`bind_second`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, KernelParam)]
#[repr(C)]
pub struct BindSecond<F, B> {
    /// The function.
    pub function: F,
    /// Its second argument.
    pub second: B,
}

/// Makes a function of one argument from `function`, with `second` as its second argument.
///
/// ```
/// use kernel_primitives::functor::{Sub, bind_second};
/// use kernel_primitives::prelude::*;
/// assert_eq!(bind_second(Sub, 10).apply(3), -7);
/// ```
#[inline(always)]
pub const fn bind_second<F, B>(function: F, second: B) -> BindSecond<F, B> {
    BindSecond { function, second }
}

impl<A, B: Copy, F: BinaryFn<A, B>> UnaryFn<A> for BindSecond<F, B> {
    type Output = F::Output;
    #[inline(always)]
    #[track_caller]
    fn apply(&self, a: A) -> F::Output {
        self.function.apply(a, self.second)
    }
    #[inline(always)]
    #[track_caller]
    fn apply_pair(&self, a: [A; 2]) -> [F::Output; 2] {
        self.function.apply_pair(a, [self.second; 2])
    }
}

/// A function of two arguments in reverse order: see [`swap_arguments`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, KernelParam)]
#[repr(transparent)]
pub struct SwapArguments<F>(pub F);

/// Makes a function that takes its two arguments in reverse order.
///
/// ```
/// use kernel_primitives::functor::{Sub, swap_arguments};
/// use kernel_primitives::prelude::*;
/// assert_eq!(swap_arguments(Sub).apply(10, 3), -7);
/// ```
#[inline(always)]
pub const fn swap_arguments<F>(function: F) -> SwapArguments<F> {
    SwapArguments(function)
}

impl<A, B, F: BinaryFn<B, A>> BinaryFn<A, B> for SwapArguments<F> {
    type Output = F::Output;
    #[inline(always)]
    #[track_caller]
    fn apply(&self, a: A, b: B) -> F::Output {
        self.0.apply(b, a)
    }
    #[inline(always)]
    #[track_caller]
    fn apply_pair(&self, a: [A; 2], b: [B; 2]) -> [F::Output; 2] {
        self.0.apply_pair(b, a)
    }
}

/// A function of any number of arguments from a function of two. It applies from the left: `f(f(a, b), c)`. There must be at least one
/// argument.
///
/// ```
/// use kernel_primitives::functor::{Add, Fold, NaryFn};
/// assert_eq!(Fold(Add).apply([1, 2, 3]), 6);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, KernelParam)]
#[repr(transparent)]
pub struct Fold<F>(pub F);

impl<T: Copy, F: BinaryFn<T, T, Output = T>, const N: usize> NaryFn<T, N> for Fold<F> {
    type Output = T;
    #[track_caller]
    fn apply(&self, arguments: [T; N]) -> T {
        const { assert!(N > 0, "a fold without an identity needs an argument") };
        let mut total = arguments[0];
        let mut i = 1;
        while i < N {
            total = self.0.apply(total, arguments[i]);
            i += 1;
        }
        total
    }
    #[track_caller]
    fn apply_pair(&self, [a, b]: [[T; N]; 2]) -> [T; 2] {
        const { assert!(N > 0, "a fold without an identity needs an argument") };
        let mut totals = [a[0], b[0]];
        let mut i = 1;
        while i < N {
            totals = self.0.apply_pair(totals, [a[i], b[i]]);
            i += 1;
        }
        totals
    }
}

/// A function of a pair from a function of two arguments: see [`of_pair`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, KernelParam)]
#[repr(transparent)]
pub struct OfPair<F>(pub F);

/// Makes a function that takes the two arguments of `f` as a pair, such as the items of [`zip`](crate::input::zip).
///
/// ```
/// use kernel_primitives::functor::{Sub, of_pair};
/// use kernel_primitives::prelude::*;
/// assert_eq!(of_pair(Sub).apply((5, 3)), 2);
/// ```
#[inline(always)]
pub const fn of_pair<F>(f: F) -> OfPair<F> {
    OfPair(f)
}

impl<A, B, F: BinaryFn<A, B>> UnaryFn<(A, B)> for OfPair<F> {
    type Output = F::Output;
    #[inline(always)]
    #[track_caller]
    fn apply(&self, (a, b): (A, B)) -> F::Output {
        self.0.apply(a, b)
    }
}
