//! Functions of items, applied one by one. For rows of items, `[[T; NX]; NY]`, use [`Each`](crate::block::Each) of a functor of items:
//! `elementwise_binary(&rows, &others, Each(Add))`.

use core::mem::MaybeUninit;

use crate::functor::{BinaryFn, NaryFn, NullaryFn, TernaryFn, UnaryFn};

/// An array of what the expression gives for each index. Not a closure: in a closure a fault would not be at the caller's
/// place.
macro_rules! each {
    ($n:expr, $i:ident, $value:expr) => {{
        let mut out = [const { MaybeUninit::uninit() }; $n];
        let mut $i = 0;
        while $i < $n {
            out[$i].write($value);
            $i += 1;
        }
        // SAFETY: every item was written.
        unsafe { assume_init(out) }
    }};
}

/// As [`each`], two at a time.
macro_rules! pairs {
    ($n:expr, $i:ident, $pair:expr, $single:expr) => {{
        let mut out = [const { MaybeUninit::uninit() }; $n];
        let mut $i = 0;
        while $i + 1 < $n {
            let [first, second] = $pair;
            out[$i].write(first);
            out[$i + 1].write(second);
            $i += 2;
        }
        if $i < $n {
            out[$i].write($single);
        }
        // SAFETY: every item was written.
        unsafe { assume_init(out) }
    }};
}

/// # Safety
/// All items are initialised.
#[inline(always)]
unsafe fn assume_init<T, const N: usize>(items: [MaybeUninit<T>; N]) -> [T; N] {
    // SAFETY: the caller's contract; the two types have one layout.
    unsafe { (&raw const items).cast::<[T; N]>().read() }
}

/// Applies `f` to each item: `out[i] = f(a[i])`. Each thread holds the results of its own items.
///
/// Seed: `ElementwiseUnary<InT, OutT, NX, 1, OpFunc>(out, in, compute)`.
///
/// ```
/// use kernel_primitives::prelude::*;
/// assert_eq!(elementwise_unary(&[1.0f32, 2.0], |x: f32| x * x), [1.0, 4.0]);
/// ```
#[inline(always)]
#[track_caller]
pub fn elementwise_unary<A: Copy, F: UnaryFn<A>, const N: usize>(a: &[A; N], f: F) -> [F::Output; N] {
    unary(a, &f)
}

#[inline(always)]
#[track_caller]
pub(crate) fn unary<A: Copy, F: UnaryFn<A>, const N: usize>(a: &[A; N], f: &F) -> [F::Output; N] {
    pairs!(N, i, f.apply_pair([a[i], a[i + 1]]), f.apply(a[i]))
}

/// Applies `f` to each pair of items: `out[i] = f(a[i], b[i])`. Each thread holds the results of its own items.
///
/// Seed: `ElementwiseBinary<InT, OutT, NX, 1, OpFunc>(out, in1, in2, compute)`.
///
/// ```
/// use kernel_primitives::prelude::*;
/// assert_eq!(elementwise_binary(&[1, 2], &[10, 20], Add), [11, 22]);
/// ```
#[inline(always)]
#[track_caller]
pub fn elementwise_binary<A: Copy, B: Copy, F: BinaryFn<A, B>, const N: usize>(
    a: &[A; N],
    b: &[B; N],
    f: F,
) -> [F::Output; N] {
    binary(a, b, &f)
}

#[inline(always)]
#[track_caller]
pub(crate) fn binary<A: Copy, B: Copy, F: BinaryFn<A, B>, const N: usize>(
    a: &[A; N],
    b: &[B; N],
    f: &F,
) -> [F::Output; N] {
    pairs!(N, i, f.apply_pair([a[i], a[i + 1]], [b[i], b[i + 1]]), f.apply(a[i], b[i]))
}

/// Applies `f` to each group of three items: `out[i] = f(a[i], b[i], c[i])`. Each thread holds the results of its own items.
///
/// Seed: `ElementwiseTernary<InT, OutT, NX, 1, OpFunc>(out, in1, in2, in3, compute)`.
///
/// ```
/// use kernel_primitives::{functor::Select, prelude::*};
/// assert_eq!(elementwise_ternary(&[true, false], &[1, 2], &[10, 20], Select), [1, 20]);
/// ```
#[inline(always)]
#[track_caller]
pub fn elementwise_ternary<A: Copy, B: Copy, C: Copy, F: TernaryFn<A, B, C>, const N: usize>(
    a: &[A; N],
    b: &[B; N],
    c: &[C; N],
    f: F,
) -> [F::Output; N] {
    ternary(a, b, c, &f)
}

#[inline(always)]
#[track_caller]
pub(crate) fn ternary<A: Copy, B: Copy, C: Copy, F: TernaryFn<A, B, C>, const N: usize>(
    a: &[A; N],
    b: &[B; N],
    c: &[C; N],
    f: &F,
) -> [F::Output; N] {
    pairs!(N, i, f.apply_pair([a[i], a[i + 1]], [b[i], b[i + 1]], [c[i], c[i + 1]]), f.apply(a[i], b[i], c[i]))
}

/// Applies `f` to the `i`th items of all inputs: `out[i] = f([inputs[0][i], inputs[1][i], …])`. Each thread holds the
/// results of its own items.
///
/// Seed: `ElementwiseAny<InT, OutT, NX, 1, Arity, OpFunc>(out, ins, compute)`.
///
/// ```
/// use kernel_primitives::{functor::Fold, prelude::*};
/// assert_eq!(elementwise_any(&[[1, 2], [10, 20], [100, 200]], Fold(Add)), [111, 222]);
/// ```
#[inline(always)]
#[track_caller]
pub fn elementwise_any<T: Copy, F: NaryFn<T, ARITY>, const N: usize, const ARITY: usize>(
    inputs: &[[T; N]; ARITY],
    f: F,
) -> [F::Output; N] {
    any(inputs, &f)
}

#[inline(always)]
#[track_caller]
pub(crate) fn any<T: Copy, F: NaryFn<T, ARITY>, const N: usize, const ARITY: usize>(
    inputs: &[[T; N]; ARITY],
    f: &F,
) -> [F::Output; N] {
    pairs!(N, i, f.apply_pair([column(inputs, i), column(inputs, i + 1)]), f.apply(column(inputs, i)))
}

/// The `i`th items of all rows.
#[inline(always)]
fn column<T: Copy, const N: usize, const ARITY: usize>(rows: &[[T; N]; ARITY], i: usize) -> [T; ARITY] {
    each!(ARITY, j, rows[j][i])
}

/// Fills registers with the results of `f`: `out[i] = f()`. It fills rows row by row: `elementwise_constant(|| elementwise_constant(f))`.
///
/// Seed: `ElementwiseConstant<InT, OutT, NX, 1, OpFunc>(out, compute)`.
///
/// ```
/// use kernel_primitives::{functor::Fill, prelude::*};
/// assert_eq!(elementwise_constant::<_, 3>(Fill(7)), [7; 3]);
/// ```
#[inline(always)]
#[track_caller]
pub fn elementwise_constant<F: NullaryFn, const N: usize>(f: F) -> [F::Output; N] {
    each!(N, i, f.apply())
}

/// Applies `f` to one row of items and each of several rows: `out[y][x] = f(a[x], b[y][x])`. Each thread holds the results of its own
/// items.
///
/// Seed: `CycleBinary<InT, OutT, NX, NY, OpFunc>(out, in1, in2, compute)`.
///
/// ```
/// use kernel_primitives::prelude::*;
/// assert_eq!(cycle_binary(&[1, 2], &[[10, 20], [30, 40], [50, 60]], Add), [[11, 22], [31, 42], [51, 62]]);
/// ```
#[inline(always)]
#[track_caller]
pub fn cycle_binary<A: Copy, B: Copy, F: BinaryFn<A, B>, const NX: usize, const NY: usize>(
    a: &[A; NX],
    b: &[[B; NX]; NY],
    f: F,
) -> [[F::Output; NX]; NY] {
    each!(NY, y, binary(a, &b[y], &f))
}
