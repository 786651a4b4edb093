//! Tests random stencils: sums of weighted neighbours, of views of any layout, at any boundary.

use half::f16;
use kernel_primitives::expr::*;
use kernel_primitives::{Error, ExpressionErrorKind, Result};
use proptest::prelude::*;

use super::layout::{Data, Layout, Lie, layout};
use super::{check, hash, indices, shape};
use crate::{Sample, Wide, stream};

/// A boundary without its value.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Outside {
    Clamp,
    Periodic,
    Mirror,
    Symmetric,
    Constant,
    Interior,
}

/// The value outside for a boundary with a constant.
const CONSTANT: i128 = 5;

impl Outside {
    fn boundary<T: Sample>(self) -> Boundary<T> {
        match self {
            Self::Clamp => Boundary::Clamp,
            Self::Periodic => Boundary::Periodic,
            Self::Mirror => Boundary::Mirror,
            Self::Symmetric => Boundary::Symmetric,
            Self::Constant => Boundary::Constant(T::of(Wide::Int(CONSTANT))),
            Self::Interior => Boundary::Interior,
        }
    }

    /// Returns the index that stands for `at` on an axis of `extent`, by the rules of an endless repetition.
    fn index(self, at: isize, extent: usize) -> Option<usize> {
        let extent = extent as isize;
        let inside = match self {
            Self::Clamp | Self::Interior => at.clamp(0, extent - 1),
            Self::Periodic => at.rem_euclid(extent),
            Self::Mirror => {
                let period = (2 * (extent - 1)).max(1);
                at.rem_euclid(period).min(period - at.rem_euclid(period))
            }
            Self::Symmetric => at.rem_euclid(2 * extent).min(2 * extent - 1 - at.rem_euclid(2 * extent)),
            Self::Constant if !(0..extent).contains(&at) => return None,
            Self::Constant => at,
        };
        Some(inside as usize)
    }
}

#[derive(Clone, Debug)]
struct Case {
    dtype: u8,
    shape: Vec<usize>,
    outside: Outside,
    /// The distances along the innermost axes, at most one for each axis of the source.
    offsets: Vec<Vec<isize>>,
    source: Layout,
    /// A second part of the source, if the source is an expression.
    second: Option<Layout>,
    target: Layout,
    other: Layout,
    seed: u64,
}

fn case() -> impl Strategy<Value = Case> {
    use Outside::*;
    let outside = prop::sample::select(vec![Clamp, Periodic, Mirror, Symmetric, Constant, Interior]);
    let offset =
        prop_oneof![12 => -1..2isize, 6 => -4..5isize, 1 => -40..41isize, 1 => Just(isize::MIN), 1 => Just(isize::MAX)];
    let offsets = prop::collection::vec(prop::collection::vec(offset, 0..4), 1..7);
    let second = prop_oneof![2 => Just(None), 1 => layout().prop_map(Some)];
    (any::<u8>(), shape(), outside, offsets, (layout(), second, layout(), layout()), any::<u64>()).prop_map(
        |(dtype, shape, outside, offsets, (source, second, target, other), seed)| {
            let second = second.filter(|_| outside != Constant);
            Case { dtype, shape, outside, offsets, source, second, target, other, seed }
        },
    )
}

fn holds(case: Case) -> Result<(), TestCaseError> {
    match case.dtype % 4 {
        0 => holds_of::<f32>(case),
        1 => holds_of::<i64>(case),
        2 => holds_of::<f16>(case),
        _ => holds_of::<u8>(case),
    }
}

fn holds_of<T: Sample + Numeric + Promote<T, Output = T> + Summed>(case: Case) -> Result<(), TestCaseError> {
    let Case { shape, outside, seed, .. } = case;
    let stream = stream()?;
    let lie = |shape: &[usize], layout: &Layout, target: bool, number: u64| {
        Lie::new(&stream, T::DTYPE, shape, layout, target, (Data::Small, hash(seed, number)))
    };
    let sources: Vec<Lie> = std::iter::once(&case.source)
        .chain(&case.second)
        .zip(0..)
        .map(|(layout, number)| lie(&shape, layout, false, number))
        .collect::<Result<_>>()?;
    // This is the shape of the stencil's source, over all axes. Axes that the source does not have, or repeats, have extent 1.
    let own = sources.iter().fold(Shape::SCALAR, |own, lie| own.broadcast(&lie.view::<T>().shape()).unwrap());
    let ahead = shape.len() - own.rank();
    let rank = own.rank();
    let offsets: Vec<Vec<isize>> = case.offsets.iter().map(|by| by[..by.len().min(rank)].to_vec()).collect();
    let mut extents = vec![1; shape.len()];
    extents[ahead..].copy_from_slice(&own);
    let full: Vec<Vec<i128>> = offsets
        .iter()
        .map(|by| {
            let mut full = vec![0; shape.len() - by.len()];
            full.extend(by.iter().map(|&by| by as i128));
            full
        })
        .collect();
    let along = |axis: usize| full.iter().map(move |by| by[axis]);
    let before: Vec<i128> = (0..shape.len()).map(|axis| -along(axis).min().unwrap().min(0)).collect();
    let after: Vec<i128> = (0..shape.len()).map(|axis| along(axis).max().unwrap().max(0)).collect();
    let refused = (0..shape.len()).any(|axis| {
        let (extent, farthest) = (extents[axis] as i128, before[axis].max(after[axis]));
        match outside {
            Outside::Mirror => extent > 0 && farthest > extent - 1,
            Outside::Symmetric => extent > 0 && farthest > extent,
            Outside::Interior => before[axis] + after[axis] > 0 && before[axis] + after[axis] >= extent,
            _ => false,
        }
    });
    let result: Vec<usize> = (0..shape.len())
        .map(|axis| match outside {
            Outside::Interior if extents[axis] != 1 && !refused => shape[axis] - (before[axis] + after[axis]) as usize,
            _ => shape[axis],
        })
        .collect();
    let mut target = lie(&result, &case.target, true, 7)?;
    let other = lie(&result, &case.other, false, 8)?;

    let weight = |at: usize| T::of(Wide::Int(at as i128 % 3 + 1));
    let expr = |other: &Lie| {
        let f = |n: &Neighbours<T>| {
            let terms = offsets.iter().enumerate().map(|(at, by)| n.at(by.clone()) * weight(at));
            terms.reduce(|sum, term| sum + term).unwrap() + other.view::<T>()
        };
        let x = sources[0].view::<T>();
        match sources.get(1) {
            None => stencil(x, outside.boundary(), f),
            Some(second) => stencil(second.view::<T>() + x * T::of(Wide::Int(2)), outside.boundary(), f),
        }
    };
    let assigned = target.view::<T>().assign(expr(&other));
    if refused {
        let refusal = assigned.unwrap_err();
        let stencil = matches!(&refusal, Error::Expression(error) if error.kind == ExpressionErrorKind::BadStencil);
        prop_assert!(stencil, "{refusal}");
        return Ok(());
    }
    assigned?;
    for arch in [75, 90] {
        prop_assert!(target.view::<T>().ptx(expr(&other), arch)?.contains(".entry"));
    }

    let int = |value: Wide| match value {
        Wide::Int(x) => x,
        Wide::Float(x) => x as i128,
    };
    let parts: Vec<Vec<i128>> = sources.iter().map(|lie| lie.values().into_iter().map(int).collect()).collect();
    let read = |index: &[usize]| {
        let place = index.iter().zip(&shape).fold(0, |place, (index, extent)| place * extent + index);
        parts.get(1).map_or(parts[0][place], |second| second[place] + 2 * parts[0][place])
    };
    let expected: Vec<i128> = indices(&result)
        .zip(other.values())
        .map(|(index, other)| {
            let neighbour = |by: &Vec<i128>| {
                let mut at = index.clone();
                for axis in 0..at.len() {
                    if outside == Outside::Interior {
                        at[axis] += if extents[axis] == 1 { 0 } else { (before[axis] + by[axis]) as usize };
                        continue;
                    }
                    // If an axis is repeated, all of its indices are 0. Distances that do not change any index may have any length.
                    let own = if extents[axis] == 1 { 0 } else { at[axis] };
                    let to = match outside {
                        Outside::Periodic => (own as i128 + by[axis]).rem_euclid(extents[axis] as i128),
                        _ => (own as i128 + by[axis]).clamp(-1_000_000, 1_000_000),
                    };
                    let Some(to) = outside.index(to as isize, extents[axis]) else { return CONSTANT };
                    if extents[axis] != 1 {
                        at[axis] = to;
                    }
                }
                read(&at)
            };
            let sum = full.iter().enumerate().map(|(at, by)| (at as i128 % 3 + 1) * neighbour(by)).sum::<i128>();
            sum + int(other)
        })
        .collect();
    let values: Vec<Wide> = expected.iter().map(|&value| T::of(Wide::Int(value)).wide()).collect();
    target.store(&values);
    let same = target.compare();
    prop_assert!(same.is_ok(), "{}", same.unwrap_err());

    // The sum along the first axis, or of all elements, is exact.
    let axes: &[isize] = if result.is_empty() || seed % 2 == 0 { &[] } else { &[0] };
    let sum = expr(&target).sum();
    let sum = if axes.is_empty() { sum } else { sum.axes(axes) };
    let sums = sum.over(&stream, &result).tensor()?.to_vec()?;
    let with_other: Vec<i128> = expected
        .iter()
        .zip(other.values())
        .zip(&values)
        .map(|((sum, other), &new)| sum - int(other) + int(new))
        .collect();
    let columns = sums.len();
    let mut expected = vec![0i128; columns];
    for (at, value) in with_other.iter().enumerate() {
        // The value is an element of the expression, in its type.
        expected[at % columns.max(1)] += int(T::of(Wide::Int(*value)).wide());
    }
    let largest = expected.iter().map(|value| value.abs()).max().unwrap_or(0);
    if !T::DTYPE.is_float() || (largest < 1 << 11 && with_other.len() < 100) {
        let expected: Vec<T> = expected.iter().map(|&value| T::of(Wide::Int(value))).collect();
        for (at, (got, expected)) in sums.iter().zip(&expected).enumerate() {
            prop_assert!(got.distance(*expected) == 0, "sum {at}: {got:?}, not {expected:?}");
        }
    }
    Ok(())
}

#[test]
fn random_stencils() {
    check(case(), holds);
}
