//! Reductions of all items.

use kernel_primitives::Complex;
use kernel_primitives::algorithms::reduce as call;
use kernel_primitives::functor::{All, Any, ArgMax, ArgMin, Indexed, MaxOf, Mean, MinOf, Mul, Sum, of_pair};
use kernel_primitives::input::{map, zip};
use kernel_primitives::kernels::device::{REDUCE_THREADS, REDUCE_VECTORS};
use kernel_primitives::{bf16, f16};

use crate::case::Lengths;
use crate::data::{floats, items, reals, small};
use crate::subject::{Subject, alike, equal, exact, near, subject};

/// Returns lengths near a round of a block, for items of this number of bytes.
fn lengths(bytes: usize) -> Lengths {
    let round = REDUCE_THREADS * REDUCE_VECTORS * (16 / bytes);
    Lengths::near(&[round, 2 * round, REDUCE_THREADS])
}

/// Returns the place of the first item that no other item is better than, or of the first NaN.
fn first_of<T: PartialOrd + Copy>(x: &[T], better: impl Fn(T, T) -> bool) -> Option<usize> {
    #[allow(clippy::eq_op, reason = "NaN is not itself")]
    let nan = x.iter().position(|x| x != x);
    nan.or_else(|| (0..x.len()).reduce(|best, i| if better(x[i], x[best]) { i } else { best }))
}

/// Returns the largest error of a sum of floats with this number of bits. Threads add first, then trees.
fn bound(x: &[f64], bits: i32) -> f64 {
    let additions = x.len() / REDUCE_THREADS + 64;
    x.iter().map(|x| x.abs()).sum::<f64>() * additions as f64 * 2f64.powi(-bits)
}

macro_rules! reductions {
    ($($name:literal, $t:ty, $op:expr, $items:ident, $expected:expr;)*) => {
        vec![$(subject(
            &["reduce"],
            $name,
            lengths(size_of::<$t>()),
            |case| ($items::<$t>(case, 0, case.len),),
            |_, (x,)| ($expected(&x[..]),),
            |_, place, (x,), (out,)| call(place.run(), x.get(), $op, out.room()),
        )),*]
    };
}

pub fn subjects() -> Vec<Subject> {
    let mut all = reductions! {
        "f32, Sum", f32, Sum, small, |x: &[f32]| equal(vec![x.iter().sum::<f32>()]);
        "f16, Sum", f16, Sum, small, |x: &[f16]| equal(vec![x.iter().map(|x| x.to_f32()).sum::<f32>()]);
        "bf16, Sum", bf16, Sum, small, |x: &[bf16]| equal(vec![x.iter().map(|x| x.to_f32()).sum::<f32>()]);
        "i32, Sum", i32, Sum, items, |x: &[i32]| exact(vec![x.iter().fold(0i32, |a, &b| a.wrapping_add(b))]);
        "u64, Sum", u64, Sum, items, |x: &[u64]| exact(vec![x.iter().fold(0u64, |a, &b| a.wrapping_add(b))]);
        "u8, Sum", u8, Sum, items, |x: &[u8]| exact(vec![x.iter().fold(0u8, |a, &b| a.wrapping_add(b))]);
        "bool, All", bool, All, items, |x: &[bool]| exact(vec![x.iter().all(|&x| x)]);
        "bool, Any", bool, Any, items, |x: &[bool]| exact(vec![x.iter().any(|&x| x)]);
        "Complex<f32>, Sum", Complex<f32>, Sum, items, |x: &[Complex<f32>]| exact(vec![x.iter().sum::<Complex<f32>>()]);
        "i16, MaxOf", i16, MaxOf, items, |x: &[i16]| exact(vec![x.iter().copied().max().unwrap_or(i16::MIN)]);
        "i32, MinOf", i32, MinOf, items, |x: &[i32]| exact(vec![x.iter().copied().min().unwrap_or(i32::MAX)]);
        "f64, MaxOf", f64, MaxOf, items, |x: &[f64]| alike(vec![largest(x)]);
        "f32, ArgMin", f32, ArgMin, items, |x: &[f32]| {
            let first = first_of(x, |a, b| a < b);
            exact(vec![first.map_or(Indexed::new(f32::INFINITY, u64::MAX), |i| Indexed::new(x[i], i as u64))])
        };
        "i32, ArgMax", i32, ArgMax, items, |x: &[i32]| {
            let first = first_of(x, |a, b| a > b);
            exact(vec![first.map_or(Indexed::new(i32::MIN, u64::MAX), |i| Indexed::new(x[i], i as u64))])
        };
    };
    all.push(subject(
        &["reduce"],
        "f32, Sum, reals",
        lengths(4),
        |case| (floats(case, 0, case.len),),
        |_, (x,)| {
            let x: Vec<f64> = x.iter().map(|&x| x.into()).collect();
            (near::<f32>(vec![(x.iter().sum(), bound(&x, 24))]),)
        },
        |_, place, (x,), (out,)| call(place.run(), x.get(), Sum, out.room()),
    ));
    all.push(subject(
        &["reduce"],
        "f64, Mean, reals",
        lengths(8),
        |case| (reals(case, 0, case.len + 1),),
        |_, (x,)| {
            let mean = x.iter().sum::<f64>() / x.len() as f64;
            // The reference adds one item after the other.
            let bound = bound(x, 53) * (1.0 + x.len() as f64 / 64.0) / x.len() as f64 + mean.abs() * 1e-15;
            (near::<f64>(vec![(mean, bound)]),)
        },
        |_, place, (x,), (out,)| call(place.run(), x.get(), Mean, out.room()),
    ));
    all.push(subject(
        &["reduce"],
        "Map<Zip<f32, f32>, Mul>, Sum",
        lengths(4),
        |case| (small::<f32>(case, 0, case.len), small::<f32>(case, 1, case.len)),
        |_, (x, y)| (equal(vec![x.iter().zip(y).map(|(x, y)| x * y).sum::<f32>()]),),
        |_, place, (x, y), (out,)| call(place.run(), map(zip(x.get(), y.get()), of_pair(Mul)), Sum, out.room()),
    ));
    all
}

/// Returns the greatest number, NaN if there is one, or −∞ for no numbers.
fn largest(x: &[f64]) -> f64 {
    if x.iter().any(|x| x.is_nan()) {
        return f64::NAN;
    }
    x.iter().copied().max_by(f64::total_cmp).unwrap_or(f64::NEG_INFINITY)
}
