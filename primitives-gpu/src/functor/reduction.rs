//! Reductions with a step before and a step after, for rows, columns and whole arrays.

use core::marker::PhantomData;

use super::{BinaryFn, Reducer};
use crate::KernelParam;
use crate::element::{
    Accumulate, Arithmetic, Average, ConvertTo, Divide, Element, Float, Magnitude, Ordered, Real, Redux,
};
use crate::simt::Block;

/// A reduction of items of type `T`.
///
/// Each item goes through [`pre`](Reduction::pre). The results are combined, in any grouping; [`identity`](Reduction::identity) may be
/// combined at any number of places. The total goes through [`post`](Reduction::post). [`reducer`](Reduction::reducer) is the middle step
/// as the [`Reducer`] that collectives take.
///
/// **Order.** The library's kernels give a thread items that are far apart. So the combination must be commutative in `algorithms::reduce`,
/// `segmented_reduce`, `spmv_by` and `spmm_by`, and in `kernels::reduce_rows` and `reduce_higher_dim`. All reductions of the table below
/// are commutative; [`ReduceBy`] and [`Semiring`](super::Semiring) are commutative if their operator is. [`of`](Reduction::of) and
/// collectives keep the order. So your own kernel can give each thread consecutive items, and reduce by any combination.
///
/// Sums, products and norms accumulate in [`Accumulate::Accum`], which is also the type of their result: `f32` for the half types. Means of
/// integers accumulate in 64 bits ([`Average`]).
///
/// | reduction | result | of no items |
/// |---|---|---|
/// | [`Sum`], [`NanSum`], [`L1`], [`L2`], [`PNorm`], [`CountNonzero`] | | 0 |
/// | [`Prod`] | | 1 |
/// | [`Mean`] | | 0 / 0: NaN; a fault for integers |
/// | [`Min`](MinOf), [`Max`](MaxOf) | NaN if there is one | +∞, −∞ or the type's limits |
/// | [`AbsMin`], [`AbsMax`] | NaN if there is one | the same, and 0 for the largest of none |
/// | [`ArgMin`], [`ArgMax`] | the first of the extreme items, or the first NaN, and its index | the limit, and `u64::MAX` |
/// | [`Any`], [`All`] | NaN is true | `false`, `true` |
/// | [`LogSumExp`] | | −∞ |
/// | [`ReduceBy`] | | [`Reducer::of_none`]: 0 for [`Add`](super::Add) |
///
/// ```
/// use kernel_primitives::functor::{ArgMax, L2, Mean, Reduction};
///
/// assert_eq!(L2.of(&[3.0f32, 4.0]), 5.0);
/// assert_eq!(Mean.of(&[1.0f64, 2.0, 6.0]), 3.0);
/// assert_eq!(ArgMax.of(&[2, 7, 7]).index(), 1);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no reduction of `{T}`",
    label = "not a `Reduction<{T}>`",
    note = "a sum is `Sum`, a product `Prod`, the least `MinOf` and the largest `MaxOf`; an operator with an identity, a `Reducer<{T}>`, \
            reduces as `ReduceBy(…)`; or implement `Reduction<{T}>`"
)]
pub trait Reduction<T>: Sized {
    /// The type of the values that are combined.
    type Accum: Element;
    /// The result.
    type Output;

    /// The value that does not change another value when combined with it.
    fn identity(&self) -> Self::Accum;

    /// The contribution of an item; `index` is its place among all items.
    fn pre(&self, item: T, index: u64) -> Self::Accum;

    /// Combines two contributions. The items of `a` come before those of `b`, if the [order](Reduction) is kept.
    fn combine(&self, a: Self::Accum, b: Self::Accum) -> Self::Accum;

    /// The result of `count` items.
    #[track_caller]
    fn post(&self, total: Self::Accum, count: u64) -> Self::Output;

    /// Combines the lanes of `mask` by one instruction, if the hardware has it.
    #[doc(hidden)]
    #[inline(always)]
    #[track_caller]
    fn warp(&self, _cx: Block<'_>, _mask: u32, _value: Self::Accum) -> Option<Self::Accum> {
        None
    }

    /// [`combine`](Reduction::combine) and the identity, for collectives: `block_reduce(cx, shared, value, op.reducer())`.
    ///
    /// Where a collective combines no items, as in the first item of an exclusive scan, its result by this operator is the identity. That
    /// is −0 for sums of floats by [`ReduceBy`]`(Add)`; [`post`](Reduction::post) with a count of 0 makes it +0.
    ///
    /// A reduction such as [`ArgMax`] works for many types. If nothing else determines the type, name it in the call:
    ///
    /// ```
    /// use kernel_primitives::functor::{ArgMax, Indexed};
    /// use kernel_primitives::prelude::*;
    ///
    /// /// The place of the largest of a block's items.
    /// #[kernel]
    /// fn places(
    ///     cx: Block,
    ///     x: Global<f32>,
    ///     mut out: GlobalMut<u64, PerBlock>,
    ///     mut shared: Shared<ReduceStorage<Indexed<f32>>>,
    /// ) {
    ///     let op = ArgMax;
    ///     let reducer = Reduction::<f32>::reducer(&op);
    ///     let mut best = reducer.identity();
    ///     for i in cx.items(x.len()) {
    ///         best = reducer.apply(best, op.pre(x[i], i.index() as u64));
    ///     }
    ///     let best = block_reduce(cx, &mut shared, best, reducer);
    ///     out.store(best.index());
    /// }
    ///
    /// # fn main() -> kernel_primitives::Result<()> {
    /// let stream = kernel_primitives::Device::emulator().stream()?;
    /// let x = stream.buffer_from(&[3.0f32, 7.0, 1.0, 7.0])?;
    /// let mut out = stream.buffer_zeroed::<u64>(1)?;
    /// places::launch(&stream, (1, 64), &x, &mut out)?;
    /// assert_eq!(out.to_vec()?, [1]);
    /// # Ok(())
    /// # }
    /// ```
    #[inline(always)]
    fn reducer(&self) -> Combine<'_, Self, T> {
        Combine { reduction: self, item: PhantomData }
    }

    /// Reduces a slice by one thread, from the left.
    #[track_caller]
    fn of(&self, items: &[T]) -> Self::Output
    where
        T: Copy,
    {
        let mut total = self.identity();
        for (i, &item) in items.iter().enumerate() {
            total = self.combine(total, self.pre(item, i as u64));
        }
        self.post(total, items.len() as u64)
    }
}

/// The [`Reducer`] of the accumulated values of a reduction: see [`Reduction::reducer`].
pub struct Combine<'a, R, T> {
    reduction: &'a R,
    item: PhantomData<fn(T)>,
}

impl<R, T> Clone for Combine<'_, R, T> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}
impl<R, T> Copy for Combine<'_, R, T> {}

impl<R: Reduction<T>, T> BinaryFn<R::Accum, R::Accum> for Combine<'_, R, T> {
    type Output = R::Accum;
    #[inline(always)]
    fn apply(&self, a: R::Accum, b: R::Accum) -> R::Accum {
        self.reduction.combine(a, b)
    }
}

impl<R: Reduction<T>, T> Reducer<R::Accum> for Combine<'_, R, T> {
    #[inline(always)]
    fn identity(&self) -> R::Accum {
        self.reduction.identity()
    }
    #[inline(always)]
    #[track_caller]
    fn warp(&self, cx: Block<'_>, mask: u32, value: R::Accum) -> Option<R::Accum> {
        self.reduction.warp(cx, mask, value)
    }
}

/// The reduction by a [`Reducer`], which is an operator and its identity, as scans take it. It is commutative if the operator is. The
/// library's kernels need that: see [`Reduction`].
///
/// ```
/// use kernel_primitives::functor::{Max, ReduceBy, Reduction};
///
/// assert_eq!(ReduceBy(Max).of(&[3, 7, 2]), 7);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, KernelParam)]
#[repr(transparent)]
pub struct ReduceBy<R>(pub R);

impl<T: Element, R: Reducer<T>> Reduction<T> for ReduceBy<R> {
    type Accum = T;
    type Output = T;
    #[inline(always)]
    fn identity(&self) -> T {
        self.0.identity()
    }
    #[inline(always)]
    #[track_caller]
    fn pre(&self, item: T, _: u64) -> T {
        item
    }
    #[inline(always)]
    #[track_caller]
    fn combine(&self, a: T, b: T) -> T {
        self.0.apply(a, b)
    }
    #[inline(always)]
    #[track_caller]
    fn post(&self, total: T, count: u64) -> T {
        if count == 0 { self.0.of_none() } else { total }
    }
    #[inline(always)]
    #[track_caller]
    fn warp(&self, cx: Block<'_>, mask: u32, value: T) -> Option<T> {
        self.0.warp(cx, mask, value)
    }
}

/// Reductions without fields.
macro_rules! reductions {
    ($($(#[$doc:meta])* $name:ident: <$t:ident: $bound:path> -> $accum:ty $([where $($a:ty: $b:path),+])?,
        $identity:expr, |$x:ident, $index:pat_param| $pre:expr, |$l:ident, $r:ident| $combine:expr $(=> $redux:ident)?,
        |$total:ident, $count:pat_param| -> $output:ty { $post:expr };)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, KernelParam)]
        pub struct $name;

        impl<$t: $bound> Reduction<$t> for $name $(where $($a: $b),+)? {
            type Accum = $accum;
            type Output = $output;
            #[inline(always)]
            fn identity(&self) -> $accum {
                $identity
            }
            #[inline(always)]
            fn pre(&self, $x: $t, $index: u64) -> $accum {
                $pre
            }
            #[inline(always)]
            fn combine(&self, $l: $accum, $r: $accum) -> $accum {
                $combine
            }
            #[inline(always)]
            #[track_caller]
            fn post(&self, $total: $accum, $count: u64) -> $output {
                $post
            }
            $(
                #[inline(always)]
                #[track_caller]
                fn warp(&self, cx: Block<'_>, mask: u32, value: $accum) -> Option<$accum> {
                    value.redux(cx, Redux::$redux, mask)
                }
            )?
        }
    )*};
}

/// The type of the absolute value of a `T`'s accumulation type.
type Norm<T> = <<T as Accumulate>::Accum as Magnitude>::Real;

reductions! {
    /// The sum. For `bool`, it is the number of `true`.
    Sum: <T: Accumulate> -> T::Accum,
        T::Accum::ZERO, |x, _| x.widen(), |a, b| a.add(b) => Add, |total, _| -> T::Accum { total };
    /// The sum of the items that are not NaN.
    NanSum: <T: Accumulate> -> T::Accum [where T: Ordered],
        T::Accum::ZERO, |x, _| if x.unordered() { T::Accum::ZERO } else { x.widen() },
        |a, b| a.add(b) => Add, |total, _| -> T::Accum { total };
    /// The product.
    Prod: <T: Accumulate> -> T::Accum,
        T::Accum::ONE, |x, _| x.widen(), |a, b| a.mul(b), |total, _| -> T::Accum { total };
    /// The sum, in the type of [`Average`], divided by the number of items. Integers truncate.
    Mean: <T: Average> -> T::Sum,
        T::Sum::ZERO, |x, _| x.to_sum(), |a, b| a.add(b) => Add, |sum, count| -> T::Accum { T::average(sum, count) };
    /// The smallest item. NaN propagates, and −0 is less than +0.
    MinOf: <T: Ordered> -> T, T::GREATEST, |x, _| x, |a, b| a.minimum(b) => Min, |total, _| -> T { total };
    /// The largest item. NaN propagates, and −0 is less than +0.
    MaxOf: <T: Ordered> -> T, T::LEAST, |x, _| x, |a, b| a.maximum(b) => Max, |total, _| -> T { total };
    /// The smallest absolute value. NaN propagates.
    AbsMin: <T: Magnitude> -> T::Real,
        T::Real::GREATEST, |x, _| x.magnitude(), |a, b| a.minimum(b) => Min, |total, _| -> T::Real { total };
    /// The largest absolute value. NaN propagates. It is not negative, unless it is that of the smallest signed integer.
    AbsMax: <T: Magnitude> -> T::Real,
        T::Real::LEAST, |x, _| x.magnitude(), |a, b| a.maximum(b) => Max,
        |total, count| -> T::Real { if count == 0 { T::Real::ZERO } else { total } };
    /// The sum of the absolute values.
    L1: <T: Accumulate> -> Norm<T> [where T::Accum: Magnitude],
        Norm::<T>::ZERO, |x, _| x.widen().magnitude(), |a, b| a.add(b) => Add, |total, _| -> Norm<T> { total };
    /// The square root of the sum of the squares of the absolute values. It overflows if a square does.
    L2: <T: Accumulate> -> Norm<T> [where T::Accum: Magnitude, Norm<T>: Real],
        Norm::<T>::ZERO, |x, _| x.widen().norm_squared(), |a, b| a.add(b), |total, _| -> Norm<T> { total.sqrt() };
    /// The number of items that are not 0. NaN is not 0.
    CountNonzero: <T: ConvertTo<bool>> -> u64,
        0, |x, _| x.convert() as u64, |a, b| a.add(b), |total, _| -> u64 { total };
    /// Whether any item is not 0. NaN is not 0.
    Any: <T: ConvertTo<bool>> -> bool, false, |x, _| x.convert(), |a, b| a | b, |total, _| -> bool { total };
    /// Whether all items are not 0. NaN is not 0.
    All: <T: ConvertTo<bool>> -> bool, true, |x, _| x.convert(), |a, b| a & b, |total, _| -> bool { total };
    /// The first of the smallest items, or the first NaN if there is one, as in NumPy. −0 and +0 are equal. Of equal items, the one with
    /// the lower index is taken, in whichever order they come to [`combine`](Reduction::combine).
    ArgMin: <T: Ordered> -> Indexed<T>,
        Indexed::new(T::GREATEST, u64::MAX), |x, index| Indexed::new(x, index), |a, b| first(a, b, |x, y| x.less(y)),
        |total, _| -> Indexed<T> { total };
    /// The first of the largest items, or the first NaN if there is one, as in NumPy. −0 and +0 are equal. Of equal items, the one with the
    /// lower index is taken, in whichever order they come to [`combine`](Reduction::combine).
    ArgMax: <T: Ordered> -> Indexed<T>,
        Indexed::new(T::LEAST, u64::MAX), |x, index| Indexed::new(x, index), |a, b| first(a, b, |x, y| y.less(x)),
        |total, _| -> Indexed<T> { total };
    /// The logarithm of the sum of the exponentials. It keeps a maximum, and a sum relative to it, so intermediate results do not overflow.
    LogSumExp: <T: Accumulate> -> [T::Accum; 2] [where T::Accum: Real],
        [T::Accum::NEG_INFINITY, T::Accum::ZERO], |x, _| [x.widen(), T::Accum::ONE],
        |a, b| {
            let largest = a[0].maximum(b[0]);
            // The difference of infinities would be NaN.
            let scaled = |[x, sum]: [T::Accum; 2]| if x == largest { sum } else { sum.mul(x.sub(largest).exp()) };
            [largest, scaled(a).add(scaled(b))]
        },
        |total, _| -> T::Accum { total[0].add(total[1].ln()) };
}

/// The sum of the absolute values to the power of `p`, to the power of 1/`p`. `p` must be positive and finite.
#[derive(Clone, Copy, Debug, PartialEq, KernelParam)]
#[repr(transparent)]
pub struct PNorm<A> {
    /// The power, in the type that accumulates.
    pub p: A,
}

impl<T: Accumulate> Reduction<T> for PNorm<Norm<T>>
where
    T::Accum: Magnitude,
    Norm<T>: Real,
{
    type Accum = Norm<T>;
    type Output = Norm<T>;
    #[inline(always)]
    fn identity(&self) -> Norm<T> {
        Norm::<T>::ZERO
    }
    #[inline(always)]
    fn pre(&self, item: T, _: u64) -> Norm<T> {
        item.widen().magnitude().powf(self.p)
    }
    #[inline(always)]
    fn combine(&self, a: Norm<T>, b: Norm<T>) -> Norm<T> {
        a.add(b)
    }
    #[inline(always)]
    fn post(&self, total: Norm<T>, _: u64) -> Norm<T> {
        total.powf(Norm::<T>::ONE.divide(self.p))
    }
}

/// An item and its index.
#[derive(Clone, Copy, Debug, PartialEq, crate::Element)]
#[repr(C)]
pub struct Indexed<T> {
    /// The item.
    pub value: T,
    // The index is in bytes, so that no padding is needed for an item of any size.
    index: [u8; 8],
}

impl<T> Indexed<T> {
    /// Makes the item with that index.
    #[inline(always)]
    pub const fn new(value: T, index: u64) -> Self {
        Self { value, index: index.to_ne_bytes() }
    }

    /// The index.
    #[inline(always)]
    pub const fn index(&self) -> u64 {
        u64::from_ne_bytes(self.index)
    }
}

/// Returns the better one. NaN is better than any number. If neither is better, returns the one with the lower index.
fn first<T: Ordered>(a: Indexed<T>, b: Indexed<T>, better: impl Fn(T, T) -> bool) -> Indexed<T> {
    let (a_nan, b_nan) = (a.value.unordered(), b.value.unordered());
    let wins = (a_nan & !b_nan) | better(a.value, b.value) & !b_nan;
    let loses = (b_nan & !a_nan) | better(b.value, a.value) & !a_nan;
    if wins | (!loses & (a.index() <= b.index())) { a } else { b }
}
