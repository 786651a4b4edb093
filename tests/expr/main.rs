//! Tests expressions against plain Rust and `ndarray`, on the device that the environment chooses.

mod cases;
mod complex;
mod deep;
#[path = "../suite/kernels/simt/elementary.rs"]
mod elementary;
mod errors;
mod graphs;
mod net;
mod operators;
mod ops;
mod pools;
mod random;
mod reductions;
mod stencil;
mod stencil_reads;
mod steps;
mod views;
mod weights;

use half::{bf16, f16};
use kernel_primitives::expr::*;
use kernel_primitives::{Device, Error, ExpressionErrorKind, Result, Stream};

/// Checks the kind of an expression error and parts of its text, and that it names the caller's file.
#[track_caller]
fn assert_error<T>(result: Result<T>, kind: ExpressionErrorKind, parts: &[&str]) {
    let Err(error) = result else { panic!("no error, where {kind:?} was expected") };
    let text = error.to_string();
    let Error::Expression(error) = error else { panic!("{text}") };
    assert_eq!(error.kind, kind, "{text}");
    for part in parts.iter().chain(&[std::panic::Location::caller().file()]) {
        assert!(text.contains(part), "no {part:?} in: {text}");
    }
}

/// Returns a stream of the device that the environment chooses.
fn stream() -> Result<Stream> {
    Device::auto()?.stream()
}

/// The types that references compute in.
#[derive(Clone, Copy, Debug)]
enum Wide {
    Int(i128),
    Float(f64),
}

/// An element type with its test data.
trait Sample: Scalar {
    /// Returns values that a rule may treat in a special way.
    fn samples() -> Vec<Self>;
    fn wide(self) -> Wide;
    /// Converts a value by the rules of `as`.
    fn of(value: Wide) -> Self;
    /// Returns how many values are between the two. There are none between NaNs.
    fn distance(self, other: Self) -> u64;
    fn float(self) -> f64 {
        match self.wide() {
            Wide::Int(x) => x as f64,
            Wide::Float(x) => x,
        }
    }
}

impl Sample for bool {
    fn samples() -> Vec<Self> {
        vec![false, true]
    }
    fn wide(self) -> Wide {
        Wide::Int(self.into())
    }
    fn of(value: Wide) -> Self {
        match value {
            Wide::Int(x) => x != 0,
            Wide::Float(x) => x != 0.0,
        }
    }
    fn distance(self, other: Self) -> u64 {
        (self != other).into()
    }
}

macro_rules! integers {
    ($($t:ty),*) => {$(
        impl Sample for $t {
            fn samples() -> Vec<Self> {
                let (least, most) = (<$t>::MIN, <$t>::MAX);
                let mut all = vec![least, least + 1, most, most - 1, most / 2, most / 3, 0, 1, 2, 3, 5, 7, 8, 15, 63, 64, 100];
                all.extend([1, 2, 3, 7, 100].map(|x: $t| x.wrapping_neg()));
                all
            }
            fn wide(self) -> Wide {
                Wide::Int(self as i128)
            }
            fn of(value: Wide) -> Self {
                match value {
                    Wide::Int(x) => x as $t,
                    Wide::Float(x) => x as $t,
                }
            }
            fn distance(self, other: Self) -> u64 {
                self.abs_diff(other).into()
            }
        }
    )*};
}
integers!(i8, i16, i32, i64, u8, u16, u32, u64);

macro_rules! floats {
    ($($t:ident $bits:ident, |$x:ident| $to:expr, |$w:ident| $from:expr, |$i:ident| $int:expr;)*) => {$(
        impl Sample for $t {
            fn samples() -> Vec<Self> {
                let mut all: Vec<$t> = [0.0, 1.0, 0.5, 1.5, 2.5, 3.0, 7.0, 100.0, 0.1, 0.3, 1e-3, 3.125, 55.5]
                    .into_iter()
                    .map(|$w: f64| $from)
                    .collect();
                all.extend([$t::MAX, $t::MIN_POSITIVE, $t::INFINITY, $t::NAN, $t::EPSILON, $t::from_bits(1)]);
                let negative = all.iter().map(|x| $t::from_bits(x.to_bits() | 1 << ($bits::BITS - 1))).collect::<Vec<_>>();
                all.extend(negative);
                all
            }
            fn wide(self) -> Wide {
                let $x = self;
                Wide::Float($to)
            }
            fn of(value: Wide) -> Self {
                match value {
                    Wide::Int($i) => $int,
                    Wide::Float($w) => $from,
                }
            }
            fn distance(self, other: Self) -> u64 {
                let order = |x: $t| {
                    let bits = x.to_bits() as i128;
                    let sign = 1i128 << ($bits::BITS - 1);
                    // −0 comes before +0.
                    if bits & sign != 0 { -1 - (bits ^ sign) } else { bits }
                };
                match (self.is_nan(), other.is_nan()) {
                    (true, true) => 0,
                    (false, false) => (order(self) - order(other)).unsigned_abs() as u64,
                    _ => u64::MAX,
                }
            }
        }
    )*};
}
floats! {
    f16 u16, |x| x.to_f64(), |x| f16::from_f32(odd(x)), |x| f16::from_f32(odd(x as f64));
    bf16 u16, |x| x.to_f64(), |x| bf16::from_f32(odd(x)), |x| bf16::from_f32(odd(x as f64));
    f32 u32, |x| x.into(), |x| x as f32, |x| x as f32;
    f64 u64, |x| x, |x| x, |x| x as f64;
}

/// Converts to `f32`, and sets the last bit if that is not exact. If the result is rounded once more, this is the same as one rounding.
fn odd(x: f64) -> f32 {
    let near = x as f32;
    if f64::from(near) == x || !near.is_finite() {
        return near;
    }
    let inward = if f64::from(near).abs() > x.abs() { f32::from_bits(near.to_bits() - 1) } else { near };
    f32::from_bits(inward.to_bits() | 1)
}

/// Returns numbers that look random, of small magnitude, by a fixed rule.
fn numbers<T: Sample>(len: usize, seed: u64) -> Vec<T> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    (0..len)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            T::of(Wide::Float((state >> 40) as f64 / (1 << 21) as f64 - 4.0))
        })
        .collect()
}

/// Compares element by element. NaN equals NaN.
#[track_caller]
fn assert_near<T: Sample>(got: &[T], expected: &[T], ulps: u64, what: &str) {
    assert_eq!(got.len(), expected.len(), "{what}");
    for (i, (&got, &expected)) in got.iter().zip(expected).enumerate() {
        assert!(got.distance(expected) <= ulps, "{what}, element {i}: {got:?}, not {expected:?}");
    }
}

#[test]
fn the_five_operand_expression() -> Result<()> {
    let stream = stream()?;
    for n in [0, 1, 3, 1000, 1024, 100_003] {
        let data = |k: usize| (0..n).map(|i| ((i * (k + 3)) % 17) as f32 * 0.25 - 1.0).collect::<Vec<_>>();
        let make = |k| Tensor::from_slice(&stream, n, &data(k));
        let (a, b, c, d, e, f) = (make(0)?, make(1)?, make(2)?, make(3)?, make(4)?, make(5)?);
        a.assign(&b + &c * &d + sin(&e) * &f + 10.0)?;
        let (b, c, d, e, f) = (data(1), data(2), data(3), data(4), data(5));
        for (i, a) in a.to_vec()?.into_iter().enumerate() {
            let expected = b[i] + c[i] * d[i] + e[i].sin() * f[i] + 10.0;
            assert!((a - expected).abs() <= 2e-6 * expected.abs(), "{i}: {a} {expected}");
        }
    }
    Ok(())
}

/// The test counts in a process of its own, where nothing else uses the device.
#[test]
fn an_assignment_is_one_launch_and_copies_nothing() {
    let program = std::env::current_exe().unwrap();
    let child = std::process::Command::new(program).args(["--exact", "child_counts"]).env("EXPR_CHILD", "1").output();
    let child = child.unwrap();
    let said = String::from_utf8_lossy(&child.stdout);
    assert!(child.status.success() && said.contains("1 passed"), "{said}");
}

#[test]
fn child_counts() -> Result<()> {
    if std::env::var_os("EXPR_CHILD").is_none() {
        return Ok(());
    }
    let stream = stream()?;
    let x = Tensor::from_slice(&stream, [30, 1], &numbers::<f32>(30, 1))?;
    let index = Tensor::from_slice(&stream, [30, 40], &vec![3u32; 1200])?;
    let table = Tensor::from_slice(&stream, 5, &numbers::<f64>(5, 2))?;
    let y = Tensor::<f64>::uninit(&stream, [40, 30])?;
    for round in 0..3 {
        let before = stream.device().counters();
        y.t().assign(x.clone() * 2.0 + gather(&table, &index) * sin(&x) + uniform::<f64>(round))?;
        y.add_assign(scalar(1.0f64))?;
        let cost = stream.device().counters().since(before);
        assert_eq!((cost.launches, cost.host_to_device_copies, cost.device_copies, cost.allocations), (2, 0, 0, 0));
        assert_eq!(cost.synchronizations, 0);
    }
    Ok(())
}
