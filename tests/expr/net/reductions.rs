//! Tests reductions of random expressions along any axes.

use kernel_primitives::expr::*;
use kernel_primitives::{Error, Result};
use proptest::prelude::*;

use super::layout::{Data, Layout, Lie, layout};
use super::tree::{Builder, Interpreter, Operands, Sketch, cast, sketch};
use super::{check, dtype, hash, indices, shape, with};
use crate::{Sample, Wide, stream};

#[derive(Clone, Copy, Debug, PartialEq)]
enum Reducer {
    Sum,
    /// The sum of elements whose sums round. The error depends on the order.
    RoundedSum,
    Product,
    Mean,
    Norm,
    Dot,
    Min,
    Max,
    ArgMin,
    ArgMax,
    Any,
    All,
    Count,
}

impl Reducer {
    const ALL: [Self; 13] = {
        use Reducer::*;
        [Sum, RoundedSum, Product, Mean, Norm, Dot, Min, Max, ArgMin, ArgMax, Any, All, Count]
    };

    /// Returns a type like `dtype` that it takes.
    fn takes(self, dtype: DType) -> DType {
        match self {
            Self::Any | Self::All | Self::Count => DType::Bool,
            Self::Min | Self::Max | Self::ArgMin | Self::ArgMax => dtype,
            Self::Mean | Self::Norm | Self::RoundedSum if !dtype.is_float() => DType::F32,
            _ if dtype == DType::Bool => DType::U8,
            _ => dtype,
        }
    }

    fn result(self, dtype: DType) -> DType {
        match self {
            Self::ArgMin | Self::ArgMax | Self::Count => DType::U64,
            _ => dtype,
        }
    }

    /// Returns elements for which the results do not depend on the order.
    fn data(self) -> Data {
        match self {
            Self::Sum | Self::Mean | Self::Norm | Self::Dot => Data::Small,
            Self::Product => Data::Powers,
            _ => Data::Any,
        }
    }
}

#[derive(Clone, Debug)]
struct Case {
    shape: Vec<usize>,
    reducer: Reducer,
    dtype: u8,
    /// The reduced expression, if any expression can be reduced.
    sketch: Sketch,
    operands: Vec<Layout>,
    /// The axes as bits, or `None` for all axes at once.
    axes: Option<u16>,
    negative: bool,
    keep: bool,
    target: Layout,
    seed: u64,
}

fn case() -> impl Strategy<Value = Case> {
    let axes = prop_oneof![1 => Just(None), 6 => any::<u16>().prop_map(Some)];
    let what = (prop::sample::select(Reducer::ALL.to_vec()), any::<u8>(), sketch());
    (shape(), what, prop::collection::vec(layout(), 1..3), axes, any::<bool>(), any::<bool>(), layout(), any::<u64>())
        .prop_map(|(shape, (reducer, dtype, sketch), operands, axes, negative, keep, target, seed)| Case {
            shape,
            reducer,
            dtype,
            sketch,
            operands,
            axes,
            negative,
            keep,
            target,
            seed,
        })
}

/// Calls the body with `$T` as a type of numbers.
macro_rules! with_number {
    ($dtype:expr, $T:ident => $body:expr) => {
        with_number!(@ $dtype, $T => $body; I8 i8, I16 i16, I32 i32, I64 i64, U8 u8, U16 u16, U32 u32, U64 u64,
            F16 half::f16, BF16 half::bf16, F32 f32, F64 f64)
    };
    (float $dtype:expr, $T:ident => $body:expr) => {
        with_number!(@ $dtype, $T => $body; F16 half::f16, BF16 half::bf16, F32 f32, F64 f64)
    };
    (@ $dtype:expr, $T:ident => $body:expr; $($variant:ident $t:ty),*) => {
        match $dtype {
            $(DType::$variant => {
                type $T = $t;
                $body
            })*
            other => unreachable!("{other}"),
        }
    };
}

fn holds(mut case: Case) -> Result<(), TestCaseError> {
    let stream = stream()?;
    let axes: Vec<usize> =
        (0..case.shape.len()).filter(|axis| case.axes.is_none_or(|axes| axes >> axis & 1 != 0)).collect();
    let count: usize = axes.iter().map(|&axis| case.shape[axis]).product();
    let input = case.reducer.takes(dtype(case.dtype));
    if case.reducer == Reducer::Product && input.is_float() && count > 300 {
        case.reducer = Reducer::Sum;
    }
    let reducer = case.reducer;
    let mut leaves = Vec::new();
    for layout in &case.operands {
        let data = (reducer.data(), hash(case.seed, leaves.len() as u64));
        leaves.push(Lie::new(&stream, input, &case.shape, layout, false, data)?);
    }
    let operands = Operands { stream: &stream, shape: &case.shape, leaves: &leaves, tables: &[] };
    let exact = matches!(reducer.data(), Data::Any) && reducer != Reducer::RoundedSum;
    let root = cast(operands.typed(if exact { &case.sketch } else { &Sketch::Leaf(0) }), input);
    let values = Interpreter::new(&operands).values(&root)?;
    let others = leaves[leaves.len() - 1].values();

    // These are the elements of each result, in order.
    let kept: Vec<usize> = (0..case.shape.len()).filter(|axis| !axes.contains(axis)).collect();
    let out: Vec<usize> = kept.iter().map(|&axis| case.shape[axis]).collect();
    let mut all: Vec<Vec<Wide>> = vec![Vec::new(); out.iter().product()];
    for (i, index) in indices(&case.shape).enumerate() {
        let at = kept.iter().fold(0, |at, &axis| at * case.shape[axis] + index[axis]);
        all[at].push(match (reducer, values[i], others[i]) {
            (Reducer::Dot, Wide::Int(a), Wide::Int(b)) => Wide::Int(a * b),
            (Reducer::Dot, Wide::Float(a), Wide::Float(b)) => Wide::Float(a * b),
            (_, value, _) => value,
        });
    }
    let result = reducer.result(input);
    let expected: Vec<Wide> = all.iter().map(|values| of_values(reducer, input, values)).collect();

    let mut shape = out.clone();
    if case.keep {
        shape = (0..case.shape.len()).map(|axis| if axes.contains(&axis) { 1 } else { case.shape[axis] }).collect();
    }
    let mut target = Lie::new(&stream, result, &shape, &case.target, true, (Data::Any, case.seed))?;
    let mut builder = Builder::new(&operands);
    macro_rules! reduce {
        ($reduction:expr) => {{
            let mut reduction = $reduction.over(&stream, &case.shape);
            if case.axes.is_some() {
                let rank = case.shape.len() as isize;
                let signed = |&axis: &usize| if case.negative { axis as isize - rank } else { axis as isize };
                reduction = reduction.axes(&axes.iter().map(signed).collect::<Vec<_>>());
            }
            if case.keep {
                reduction = reduction.keep_axes();
            }
            match reduction.ptx(90) {
                Err(Error::NoImage { .. } | Error::LaunchLimit { .. }) => {}
                text => prop_assert!(text?.contains(".entry")),
            }
            reduction.assign_to(target.view())?;
            let made = reduction.tensor()?;
            prop_assert_eq!(&*made.shape(), &shape[..]);
            made.to_vec()?.into_iter().map(Sample::wide).collect::<Vec<Wide>>()
        }};
    }
    let got = match reducer {
        Reducer::Sum | Reducer::RoundedSum => with_number!(input, T => reduce!(builder.expr::<T>(&root).sum())),
        Reducer::Product => with_number!(input, T => reduce!(builder.expr::<T>(&root).product())),
        Reducer::Dot => with_number!(input, T => {
            reduce!(dot(builder.expr::<T>(&root), leaves[leaves.len() - 1].view::<T>()))
        }),
        Reducer::Mean => with_number!(float input, T => reduce!(builder.expr::<T>(&root).mean())),
        Reducer::Norm => with_number!(float input, T => reduce!(builder.expr::<T>(&root).norm())),
        Reducer::Min => with!(input, T => reduce!(builder.expr::<T>(&root).min())),
        Reducer::Max => with!(input, T => reduce!(builder.expr::<T>(&root).max())),
        Reducer::ArgMin => with!(input, T => reduce!(builder.expr::<T>(&root).arg_min())),
        Reducer::ArgMax => with!(input, T => reduce!(builder.expr::<T>(&root).arg_max())),
        Reducer::Any => reduce!(builder.expr::<bool>(&root).any()),
        Reducer::All => reduce!(builder.expr::<bool>(&root).all()),
        Reducer::Count => reduce!(builder.expr::<bool>(&root).count()),
    };
    for (i, (&got, &expected)) in got.iter().zip(&expected).enumerate() {
        let right = with!(result, T => T::of(got).distance(T::of(expected)) == 0);
        let near = || match (reducer, got) {
            (Reducer::RoundedSum, Wide::Float(got)) => near(input, got, &all[i]),
            _ => false,
        };
        prop_assert!(
            right || near(),
            "result {i}: {got:?}, not {expected:?}, of {} elements of {root:#?}",
            all[i].len()
        );
    }
    // In a view, the result is the same, and nothing beside it changes.
    target.store(&got);
    let same = target.compare();
    prop_assert!(same.is_ok(), "into a view: {}", same.unwrap_err());
    Ok(())
}

/// Returns whether a sum is as near as every order of additions leaves it.
fn near(dtype: DType, got: f64, values: &[Wide]) -> bool {
    let values: Vec<f64> = values.iter().map(|&value| float(value)).collect();
    let magnitude: f64 = values.iter().filter(|value| value.is_finite()).map(|value| value.abs()).sum();
    // Halves are added in `f32`, and then rounded.
    let (bits, most) = if dtype == DType::F64 { (53, f64::MAX) } else { (24, f64::from(f32::MAX)) };
    let sum: f64 = values.iter().sum();
    let error = values.len() as f64 * magnitude * 2f64.powi(-bits);
    // Of two sums, the larger one is not rounded to a smaller value.
    let [least, greatest] =
        [sum - error, sum + error].map(|sum| float(super::reference::convert(Wide::Float(sum), dtype)));
    // If partial sums may overflow, the result cannot be checked.
    magnitude > most / 2.0 || (least..=greatest).contains(&got)
}

#[test]
fn a_sum_is_infinite_only_where_its_type_overflows() {
    let near = |dtype, got: f64, values: &[f64]| {
        near(dtype, got, &values.iter().map(|&value| Wide::Float(value)).collect::<Vec<_>>())
    };
    for dtype in [DType::F32, DType::F64, DType::BF16] {
        assert!(!near(dtype, f64::INFINITY, &[70_000.0]) && !near(dtype, f64::NEG_INFINITY, &[70_000.0]), "{dtype}");
    }
    // 65 504 is the largest `f16`, and sums below 65 520 are rounded to it.
    assert!(near(DType::F16, f64::INFINITY, &[65_504.0, 17.0]) && !near(DType::F16, 65_504.0, &[65_504.0, 17.0]));
    assert!(near(DType::F16, 65_504.0, &[65_504.0, 15.0]) && !near(DType::F16, f64::INFINITY, &[65_504.0, 15.0]));
    assert!(!near(DType::F16, f64::NEG_INFINITY, &[65_504.0, 17.0]) && !near(DType::F16, 0.0, &[65_504.0, 17.0]));
    assert!(near(DType::F32, f64::INFINITY, &[f64::INFINITY, 1.0]) && !near(DType::F32, 1.0, &[f64::INFINITY, 1.0]));
}

fn float(value: Wide) -> f64 {
    match value {
        Wide::Int(x) => x as f64,
        Wide::Float(x) => x,
    }
}

/// Returns the reduction of values, in their order. Sums and products of floats are exact.
fn of_values(reducer: Reducer, dtype: DType, values: &[Wide]) -> Wide {
    let round = |value: f64| super::reference::convert(Wide::Float(value), dtype);
    let sum = || values.iter().map(|&value| float(value)).fold(-0.0, |a, b| a + b);
    let int = |f: &dyn Fn(i128, i128) -> i128, start: i128| {
        let ints = values.iter().map(|&value| if let Wide::Int(x) = value { x } else { unreachable!("an integer") });
        super::reference::convert(Wide::Int(ints.fold(start, f)), dtype)
    };
    let count = values.len();
    // This finds the first value that no other value is better than.
    let best = |least: bool| {
        let better = |a: Wide, b: Wide| match (a, b) {
            (Wide::Int(a), Wide::Int(b)) => {
                if least {
                    a < b
                } else {
                    a > b
                }
            }
            (a, b) => {
                let (a, b) = (float(a), float(b));
                a.is_nan() && !b.is_nan() || if least { a < b } else { a > b } && !b.is_nan()
            }
        };
        (0..count).reduce(|best, i| if better(values[i], values[best]) { i } else { best })
    };
    match reducer {
        Reducer::Sum | Reducer::RoundedSum | Reducer::Dot if dtype.is_float() => {
            if count == 0 {
                Wide::Float(0.0)
            } else {
                round(sum())
            }
        }
        Reducer::Sum | Reducer::RoundedSum | Reducer::Dot => int(&|a, b| a.wrapping_add(b), 0),
        Reducer::Product if dtype.is_float() => round(values.iter().map(|&value| float(value)).product()),
        Reducer::Product => int(&|a, b| a.wrapping_mul(b), 1),
        Reducer::Mean => {
            // Means of halves are computed in `f32`, and rounded again.
            let mean = sum() / count as f64;
            round(if dtype == DType::F64 { mean } else { f64::from(mean as f32) })
        }
        Reducer::Norm => {
            let norm = values.iter().map(|&value| float(value).powi(2)).fold(0f64, |a, b| a + b).sqrt();
            round(if dtype == DType::F64 { norm } else { f64::from(norm as f32) })
        }
        Reducer::Min | Reducer::Max => {
            let least = reducer == Reducer::Min;
            let op = if least { super::reference::Two::Min } else { super::reference::Two::Max };
            let none = with!(dtype, T => {
                use kernel_primitives::element::Ordered;
                if least { <T as Ordered>::GREATEST.wide() } else { <T as Ordered>::LEAST.wide() }
            });
            values.iter().fold(none, |a, &b| super::reference::apply_two(op, dtype, a, b))
        }
        Reducer::ArgMin | Reducer::ArgMax => {
            let at = best(reducer == Reducer::ArgMin);
            Wide::Int(at.map_or(u64::MAX.into(), |at| at as i128))
        }
        Reducer::Any => Wide::Int(values.iter().any(|&value| super::reference::truth(value)).into()),
        Reducer::All => Wide::Int(values.iter().all(|&value| super::reference::truth(value)).into()),
        Reducer::Count => Wide::Int(values.iter().filter(|&&value| super::reference::truth(value)).count() as i128),
    }
}

#[test]
fn reductions_of_random_expressions() {
    check(case(), holds);
}
