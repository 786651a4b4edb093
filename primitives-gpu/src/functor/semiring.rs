//! The operators of a product of a matrix and a vector, and the functions that write the result of each row.

use super::{BinaryFn, Reducer, Reduction, UnaryFn};
use crate::KernelParam;
use crate::element::{Accumulate, Arithmetic, Element};
use crate::simt::Block;

/// The usual arithmetic of matrix products: the sum of the products, in the type that accumulates.
///
/// It is a [`Reduction`] of pairs of an entry of the matrix and the vector's item at the column of the entry. The two may have different
/// types if they accumulate in the same type, such as `f16` and `f32`.
///
/// ```
/// use kernel_primitives::functor::{PlusTimes, Reduction};
///
/// assert_eq!(PlusTimes.of(&[(2.0f32, 10.0f32), (3.0, 100.0)]), 320.0);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, KernelParam)]
pub struct PlusTimes;

impl<V: Accumulate, X: Accumulate<Accum = V::Accum>> Reduction<(V, X)> for PlusTimes {
    type Accum = V::Accum;
    type Output = V::Accum;
    #[inline(always)]
    fn identity(&self) -> V::Accum {
        V::Accum::ADDS_NOTHING
    }
    #[inline(always)]
    fn pre(&self, (entry, item): (V, X), _: u64) -> V::Accum {
        entry.widen().mul(item.widen())
    }
    #[inline(always)]
    fn combine(&self, a: V::Accum, b: V::Accum) -> V::Accum {
        a.add(b)
    }
    #[inline(always)]
    fn post(&self, total: V::Accum, count: u64) -> V::Accum {
        if count == 0 { V::Accum::ZERO } else { total }
    }
}

/// A semiring, given by its two operators: `times` of an entry of a matrix and an item of a vector, and `plus` of the results.
///
/// | semiring | what a product finds |
/// |---|---|
/// | `Semiring { plus: Min, times: Add }`, of floats | the shortest path with one more edge |
/// | `Semiring { plus: LogicalOr, times: LogicalAnd }` | the vertices that are one edge further |
/// | `Semiring { plus: Max, times: Mul }` | the most probable path |
///
/// `plus` must be commutative and have an identity, which is the result of a row without entries ([`Reducer::of_none`]).
///
/// The next product takes this result as an item. In the first row of the table, it is +∞, which means no path, and +∞ plus a length is
/// +∞. For integers, it is the largest value, and [`Add`](super::Add) wraps: use a `times` of your own that saturates. In the third row, it
/// is −∞, and −∞ times an entry of 0 is NaN: keep no entries of 0, or let the [`Epilogue`] write `total.maximum(0.0)`.
///
/// ```
/// use kernel_primitives::functor::{Add, Min, Reduction, Semiring};
///
/// let shortest = Semiring { plus: Min, times: Add };
/// assert_eq!(shortest.of(&[(2.0f32, 10.0f32), (3.0, 1.0)]), 4.0);
/// assert_eq!(shortest.of(&[(2.0f32, f32::INFINITY)]), f32::INFINITY);
/// // The sum of integers wraps.
/// assert_eq!(shortest.of(&[(5i32, i32::MAX)]), i32::MIN + 4);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, KernelParam)]
#[repr(C)]
pub struct Semiring<P, M> {
    /// Combines the products of a row.
    pub plus: P,
    /// Makes a product of an entry and an item.
    pub times: M,
}

impl<V, X, P, M> Reduction<(V, X)> for Semiring<P, M>
where
    M: BinaryFn<V, X, Output: Element>,
    P: Reducer<M::Output>,
{
    type Accum = M::Output;
    type Output = M::Output;
    #[inline(always)]
    fn identity(&self) -> M::Output {
        self.plus.identity()
    }
    #[inline(always)]
    #[track_caller]
    fn pre(&self, (entry, item): (V, X), _: u64) -> M::Output {
        self.times.apply(entry, item)
    }
    #[inline(always)]
    #[track_caller]
    fn combine(&self, a: M::Output, b: M::Output) -> M::Output {
        self.plus.apply(a, b)
    }
    #[inline(always)]
    fn post(&self, total: M::Output, count: u64) -> M::Output {
        if count == 0 { self.plus.of_none() } else { total }
    }
}

/// A reduction of a matrix's rows that applies a function to each entry first.
///
/// `OfEntry { function: Conjugate, reduction: PlusTimes }` multiplies by the conjugate of each entry. With a transposed matrix, that is the
/// product with the adjoint matrix.
///
/// ```
/// use kernel_primitives::functor::{Conjugate, OfEntry, PlusTimes, Reduction};
/// use kernel_primitives::Complex;
///
/// let adjoint = OfEntry { function: Conjugate, reduction: PlusTimes };
/// let (entry, item) = (Complex::new(1.0f32, 2.0), Complex::new(0.0f32, 1.0));
/// assert_eq!(adjoint.of(&[(entry, item)]), Complex::new(2.0, 1.0));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, KernelParam)]
#[repr(C)]
pub struct OfEntry<F, R> {
    /// The function that is applied to an entry.
    pub function: F,
    /// The reduction of the results, each with the item of the vector.
    pub reduction: R,
}

impl<V, X, F, R> Reduction<(V, X)> for OfEntry<F, R>
where
    F: UnaryFn<V>,
    R: Reduction<(F::Output, X)>,
{
    type Accum = R::Accum;
    type Output = R::Output;
    #[inline(always)]
    fn identity(&self) -> R::Accum {
        self.reduction.identity()
    }
    #[inline(always)]
    #[track_caller]
    fn pre(&self, (entry, item): (V, X), column: u64) -> R::Accum {
        self.reduction.pre((self.function.apply(entry), item), column)
    }
    #[inline(always)]
    #[track_caller]
    fn combine(&self, a: R::Accum, b: R::Accum) -> R::Accum {
        self.reduction.combine(a, b)
    }
    #[inline(always)]
    #[track_caller]
    fn post(&self, total: R::Accum, count: u64) -> R::Output {
        self.reduction.post(total, count)
    }
    #[inline(always)]
    #[track_caller]
    fn warp(&self, cx: Block<'_>, mask: u32, value: R::Accum) -> Option<R::Accum> {
        self.reduction.warp(cx, mask, value)
    }
}

/// The function that computes what a product of a matrix and a vector writes for a row, in the kernel of the product.
///
/// ```
/// use kernel_primitives::functor::Epilogue;
/// use kernel_primitives::prelude::*;
///
/// /// Adds to what is there, and keeps the result below a limit.
/// #[derive(Clone, Copy, KernelParam)]
/// #[repr(C)]
/// struct AddBelow {
///     limit: f32,
/// }
///
/// impl Epilogue<f32> for AddBelow {
///     type Output = f32;
///     fn reads(&self) -> bool {
///         true
///     }
///     fn apply(&self, total: f32, old: f32) -> f32 {
///         (total + old).minimum(self.limit)
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no epilogue for results of type `{A}`",
    label = "not an `Epilogue<{A}>`",
    note = "a product writes its results as they are with `Overwrite`, and scaled and added with `Axpby`; or implement `Epilogue<{A}>`"
)]
pub trait Epilogue<A> {
    /// The type that is written.
    type Output: Element;

    /// Returns whether [`apply`](Self::apply) uses `old`. If not, it is not read.
    fn reads(&self) -> bool;

    /// Computes the new element from the result of the row and from `old`. That is the previous element of the output, or of another vector
    /// of the call; it is zero if the function does not [read](Self::reads) it.
    #[track_caller]
    fn apply(&self, total: A, old: Self::Output) -> Self::Output;
}

/// The epilogue that writes results without a change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, KernelParam)]
pub struct Overwrite;

impl<A: Element> Epilogue<A> for Overwrite {
    type Output = A;
    #[inline(always)]
    fn reads(&self) -> bool {
        false
    }
    #[inline(always)]
    fn apply(&self, total: A, _: A) -> A {
        total
    }
}

/// The epilogue of BLAS: `y = alpha * total + beta * y`. A value whose factor is 0 takes no part, so a NaN in it does not propagate: if
/// `beta` is 0, `y` is not read. A factor of 1 does not change its value.
///
/// ```
/// use kernel_primitives::functor::{Axpby, Epilogue};
///
/// assert_eq!(Axpby { alpha: 2.0f32, beta: 10.0 }.apply(3.0, 0.5), 11.0);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, KernelParam)]
#[repr(C)]
pub struct Axpby<T> {
    /// The factor of the result.
    pub alpha: T,
    /// The factor of the previous value of `y`.
    pub beta: T,
}

impl<T: Arithmetic> Axpby<T> {
    /// Factors of 1 and 0: `y` becomes the result.
    pub const OVERWRITE: Self = Self { alpha: T::ONE, beta: T::ZERO };
}

impl<T: Arithmetic> Epilogue<T> for Axpby<T> {
    type Output = T;
    #[inline(always)]
    fn reads(&self) -> bool {
        self.beta != T::ZERO
    }
    fn apply(&self, total: T, old: T) -> T {
        // A multiplication by 1 changes a complex number that is infinite or has a negative zero, and so does an addition of zero.
        let scaled = |factor: T, value: T| if factor == T::ONE { value } else { factor.mul(value) };
        match (self.alpha == T::ZERO, self.beta == T::ZERO) {
            (false, false) => scaled(self.alpha, total).add(scaled(self.beta, old)),
            (false, true) => scaled(self.alpha, total),
            (true, false) => scaled(self.beta, old),
            (true, true) => T::ZERO,
        }
    }
}
