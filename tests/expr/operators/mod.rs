//! Tests every operator and function, for every element type, against Rust's own arithmetic and `libm`.

mod assignments;
mod floats;
mod integers;
mod types;

use kernel_primitives::Result;
use kernel_primitives::expr::*;

pub(crate) use floats::sin_of_half_turns;

use crate::{Sample, assert_near, stream};

/// Returns all pairs of samples: the first values, and the second values.
fn pairs<T: Sample>() -> (Vec<T>, Vec<T>) {
    let samples = T::samples();
    samples.iter().flat_map(|&a| samples.iter().map(move |&b| (a, b))).unzip()
}

/// Compares an expression of all pairs of samples with a function.
fn check2<T: Sample, O: Sample>(
    name: &str,
    expression: impl Fn(Expr<T>, Expr<T>) -> Expr<O>,
    ulps: u64,
    reference: impl Fn(T, T) -> O,
) -> Result<()> {
    check_pairs(name, pairs(), expression, ulps, reference)
}

fn check_pairs<T: Sample, U: Sample, O: Sample>(
    name: &str,
    (a, b): (Vec<T>, Vec<U>),
    expression: impl Fn(Expr<T>, Expr<U>) -> Expr<O>,
    ulps: u64,
    reference: impl Fn(T, U) -> O,
) -> Result<()> {
    let stream = stream()?;
    let (x, y) = (Tensor::from_slice(&stream, a.len(), &a)?, Tensor::from_slice(&stream, b.len(), &b)?);
    let z = Tensor::uninit(&stream, a.len())?;
    z.assign(expression(x.expr(), y.expr()))?;
    let got = z.to_vec()?;
    for i in 0..a.len() {
        let what = format!("{name} of {} {:?} and {} {:?}", T::DTYPE, a[i], U::DTYPE, b[i]);
        assert_near(&got[i..=i], &[reference(a[i], b[i])], ulps, &what);
    }
    Ok(())
}

fn check1<T: Sample, O: Sample>(
    name: &str,
    expression: impl Fn(Expr<T>) -> Expr<O>,
    ulps: u64,
    reference: impl Fn(T) -> O,
) -> Result<()> {
    let samples = T::samples();
    check_pairs(name, (samples.clone(), samples), |x, _: Expr<T>| expression(x), ulps, |a, _| reference(a))
}

/// Tests comparisons, and operators that use them, for every type.
fn compares<T: Sample + PartialOrd + Promote<T, Output = T>>() -> Result<()> {
    check2("==", eq, 0, |a: T, b| a == b)?;
    check2("!=", ne, 0, |a: T, b| a != b)?;
    check2("<", lt, 0, |a: T, b| a < b)?;
    check2("<=", le, 0, |a: T, b| a <= b)?;
    check2(">", gt, 0, |a: T, b| a > b)?;
    check2(">=", ge, 0, |a: T, b| a >= b)?;
    check2("select", |a, b| select(lt(&a, &b), a, b), 0, |a: T, b| if a < b { a } else { b })
}
