//! Tests targets and inputs in one memory. Either all inputs are read before the targets are written, or the assignment is refused.

use std::collections::HashSet;

use kernel_primitives::expr::*;
use kernel_primitives::{Error, ExpressionErrorKind, Result};
use proptest::prelude::*;

use super::{check, indices};
use crate::stream;

/// The number of elements of the memory.
const LEN: usize = 48;

#[derive(Clone, Debug)]
struct View {
    start: usize,
    shape: Vec<usize>,
    strides: Vec<isize>,
}

impl View {
    /// Returns the places of the elements, broadcast to a shape.
    fn places(&self, shape: &[usize]) -> Vec<isize> {
        let ahead = shape.len() - self.shape.len();
        let at = |index: &[usize]| -> isize {
            let axes = self.shape.iter().zip(&self.strides).enumerate();
            axes.map(|(axis, (&extent, stride))| if extent == 1 { 0 } else { index[ahead + axis] as isize * stride })
                .sum()
        };
        indices(shape).map(|index| self.start as isize + at(&index)).collect()
    }

    fn is_inside(&self) -> bool {
        self.places(&self.shape).iter().all(|place| (0..LEN as isize).contains(place))
    }

    fn tensor(&self, whole: &Tensor<i32>) -> Result<Tensor<i32>> {
        whole.slice(self.start as isize..)?.as_strided(&self.shape, &self.strides)
    }
}

#[derive(Clone, Debug)]
struct Case {
    targets: Vec<View>,
    /// For each target, the views whose sum goes to it, with its number.
    sources: Vec<Vec<View>>,
    prepared: bool,
}

fn view(shape: Vec<usize>, narrow: bool) -> impl Strategy<Value = View> {
    let rank = shape.len();
    let stride = prop_oneof![6 => -8..9isize, 1 => Just(12isize), 1 => Just(0isize)];
    let own = prop::collection::vec(prop_oneof![4 => Just(false), 1 => Just(narrow)], rank);
    (0..LEN, own, prop::collection::vec(stride, rank), 0..5usize).prop_map(move |(start, ones, strides, missing)| {
        let own: Vec<usize> = shape.iter().zip(ones).map(|(&extent, one)| if one { 1 } else { extent }).collect();
        let missing = if narrow && missing > 2 { missing.min(rank) - missing.min(rank).min(2) } else { 0 };
        View { start, shape: own[missing..].to_vec(), strides: strides[missing..].to_vec() }
    })
}

fn case() -> impl Strategy<Value = Case> {
    let shape = prop::collection::vec(prop_oneof![1 => Just(0usize), 3 => Just(1usize), 8 => 2..6usize], 0..4);
    let targets = shape.prop_flat_map(|shape| {
        let all = prop_oneof![
            3 => prop::collection::vec(view(shape.clone(), false), 1),
            1 => prop::collection::vec(view(shape.clone(), false), 2),
        ];
        (all, Just(shape))
    });
    targets.prop_flat_map(|(targets, shape)| {
        // These views are near a target: they are the same, except for the stride of one axis or the start.
        let near = (0..targets.len(), 0..8usize, -2..3isize, 0..10usize);
        let given = targets.clone();
        let near = near.prop_map(move |(target, axis, step, start)| {
            let mut view = given[target].clone();
            if let Some(stride) = view.strides.get_mut(axis) {
                *stride += step;
            }
            view.start = if start < 2 { view.start.saturating_sub(start) } else { view.start };
            view
        });
        let source = prop_oneof![1 => near, 1 => view(shape, true)];
        let sources = prop::collection::vec(prop::collection::vec(source, 0..3), targets.len());
        (Just(targets), sources, any::<bool>()).prop_map(|(targets, sources, prepared)| Case {
            targets,
            sources,
            prepared,
        })
    })
}

fn holds(case: Case) -> Result<(), TestCaseError> {
    let stream = stream()?;
    let before: Vec<i32> = (0..LEN as i32).map(|i| i * 1000).collect();
    let whole = Tensor::from_slice(&stream, LEN, &before)?;
    for view in case.targets.iter().chain(case.sources.iter().flatten()) {
        prop_assert_eq!(view.tensor(&whole).is_ok(), view.is_inside(), "{:?}", view);
        if !view.is_inside() {
            return Ok(());
        }
    }
    let shape = &case.targets[0].shape;
    let targets: Vec<Vec<isize>> = case.targets.iter().map(|view| view.places(shape)).collect();
    let sets: Vec<HashSet<isize>> = targets.iter().map(|places| places.iter().copied().collect()).collect();
    let mut mistakes = Vec::new();
    for (at, places) in targets.iter().enumerate() {
        if sets[at].len() < places.len() {
            mistakes.push(ExpressionErrorKind::BadStrides);
        }
        let read = case.sources.iter().flatten().map(|view| view.places(shape));
        if read.into_iter().any(|read| read != *places && read.iter().any(|place| sets[at].contains(place))) {
            mistakes.push(ExpressionErrorKind::Overlap);
        }
        if sets[..at].iter().any(|other| !other.is_disjoint(&sets[at])) {
            mistakes.push(ExpressionErrorKind::Overlap);
        }
    }
    let mut assignments = Vec::new();
    for (at, (target, sources)) in case.targets.iter().zip(&case.sources).enumerate() {
        let mut sum: Expr<i32> = scalar(at as i32 + 1);
        for source in sources {
            sum = sum + source.tensor(&whole)?;
        }
        assignments.push(target.tensor(&whole)?.to(sum));
    }
    let done = if case.prepared {
        Prepared::new(assignments).and_then(|prepared| prepared.run())
    } else {
        assign_all(assignments)
    };
    let mut expected = before.clone();
    match done {
        Ok(()) => {
            prop_assert!(mistakes.is_empty(), "no error, but {mistakes:?}");
            for (at, (places, sources)) in targets.iter().zip(&case.sources).enumerate() {
                let sources: Vec<Vec<isize>> = sources.iter().map(|view| view.places(shape)).collect();
                for (i, &place) in places.iter().enumerate() {
                    let sum: i32 = sources.iter().map(|places| before[places[i] as usize]).sum();
                    expected[place as usize] = sum + at as i32 + 1;
                }
            }
        }
        Err(Error::Expression(error)) => prop_assert!(mistakes.contains(&error.kind), "{error}, not {mistakes:?}"),
        Err(error) => return Err(error.into()),
    }
    prop_assert_eq!(whole.to_vec()?, expected);
    Ok(())
}

#[test]
fn targets_and_what_is_read_in_one_memory() {
    check(case(), holds);
}
